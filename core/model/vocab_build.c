/* vocab_build.c: memory and lists of vocab_build.h. */
#include "vocab_build.h"

#include <stdio.h>
#include <string.h>

typedef struct kept {
    _Alignas(16) struct kept *next;
} kept;

void weir__build_init(weir__build *b, weir_system *s, const char *source) {
    *b = (weir__build){.system = s, .source = source};
    b->v = (weir__vocab){.source = source, .bos = -1, .eos = -1, .unk = -1, .pad = -1, .before = b->before, .after = b->after};
    b->v.normaliser.data = b->normaliser;
    b->v.pretokeniser.data = b->pretokeniser;
    b->v.decoder.data = b->decoder;
}

void weir__build_fini(weir__build *b) {
    for (kept *k = b->kept, *next; k; k = next) {
        next = k->next;
        weir__free(b->system, k);
    }
    b->kept = NULL;
}

void *weir__build_alloc(weir__build *b, size_t n) {
    kept *k = n < SIZE_MAX - sizeof *k ? weir__alloc(b->system, n + sizeof *k) : NULL;
    if (!k)
        return NULL;
    k->next = b->kept;
    b->kept = k;
    return k + 1;
}

int weir__make_tokenizer(void *making, const weir__vocab *v, weir_error **error) {
    weir__making *m = making;
    snprintf(m->warning, sizeof m->warning, "%s", v->warning ? v->warning : "");
    return weir__tokenizer_new(m->system, v, m->out, error);
}

static int no_memory(const weir__build *b, weir_error **error) {
    return weir_fail(error, WEIR_ENOMEM, "%s: vocabulary", b->source);
}

int weir__build_pieces(weir__build *b, size_t size, bool scores, weir_error **error) {
    b->pieces = weir__build_alloc(b, size * sizeof *b->pieces + 1);
    b->kinds = weir__build_alloc(b, size * sizeof *b->kinds + 1);
    b->scores = scores ? weir__build_alloc(b, size * sizeof *b->scores + 1) : NULL;
    if (!b->pieces || !b->kinds || (scores && !b->scores))
        return no_memory(b, error);
    for (size_t i = 0; i < size; i++)
        b->kinds[i] = WEIR__UNUSED;
    b->v.pieces = b->pieces;
    b->v.kinds = b->kinds;
    b->v.scores = b->scores;
    b->v.size = size;
    return WEIR_OK;
}

int weir__build_piece(weir__build *b, int64_t id, weir__string piece, enum weir__piece_kind kind, weir_error **error) {
    char name[48], other[48];
    if (b->pieces[id].data)
        return weir_fail(error, WEIR_EFORMAT, "%s: id %lld: found two pieces, \"%s\" and \"%s\", wanted one", b->source, (long long)id,
                         weir__quote(other, sizeof other, b->pieces[id].data, b->pieces[id].size),
                         weir__quote(name, sizeof name, piece.data, piece.size));
    b->pieces[id] = piece;
    b->kinds[id] = kind;
    return WEIR_OK;
}

int32_t weir__build_find(const weir__build *b, const char *piece, size_t size) {
    for (size_t i = 0; i < b->v.size; i++)
        if (b->pieces[i].data && b->pieces[i].size == size && memcmp(b->pieces[i].data, piece, size) == 0)
            return (int32_t)i;
    return -1;
}

int weir__build_before(weir__build *b, int32_t id, weir_error **error) {
    if (b->v.n_before == WEIR__MOST_BOUNDS)
        return weir_fail(error, WEIR_EFORMAT, "%s: more than %d tokens before a text", b->source, WEIR__MOST_BOUNDS);
    memmove(b->before + 1, b->before, b->v.n_before++ * sizeof *b->before);
    b->before[0] = id;
    return WEIR_OK;
}

int weir__build_after(weir__build *b, int32_t id, weir_error **error) {
    if (b->v.n_after == WEIR__MOST_BOUNDS)
        return weir_fail(error, WEIR_EFORMAT, "%s: more than %d tokens behind a text", b->source, WEIR__MOST_BOUNDS);
    b->after[b->v.n_after++] = id;
    return WEIR_OK;
}

int weir__build_step(weir__build *b, weir__steps *list, const weir__step *step, weir_error **error) {
    weir__step *to = list == &b->v.normaliser ? b->normaliser : list == &b->v.pretokeniser ? b->pretokeniser : b->decoder;
    if (list->size == WEIR__MOST_STEPS)
        return weir_fail(error, WEIR_EUNSUPPORTED, "%s: more than %d steps in one list", b->source, WEIR__MOST_STEPS);
    to[list->size++] = *step;
    return WEIR_OK;
}
