/* spm.c: SentencePiece's byte-pair encoding (github.com/google/sentencepiece, Kudo & Richardson 2018): characters are joined to the neighbouring pair whose piece
 * scores best, and what is no piece in the end becomes byte pieces or the unknown piece. */
#include "tokenizer.h"

#include <string.h>

typedef struct spm {
    uint32_t *order; /* [size] ascending for descending scores */
} spm;

/* Floats as numbers of the same order, reversed; what is no number comes last. */
static uint32_t descending(float score) {
    uint32_t bits;
    if (score != score)
        return UINT32_MAX;
    score += 0.0f; /* one zero */
    memcpy(&bits, &score, sizeof bits);
    return ~(bits & 0x80000000u ? ~bits : bits | 0x80000000u);
}

static int init(weir__tokenizer *t, const weir__vocab *v, weir_error **error) {
    if (!v->scores)
        return weir_fail(error, WEIR_EFORMAT, "%s: found no scores of the pieces, wanted %zu", v->source, v->size);
    spm *m = t->model_data = weir__alloc(t->system, sizeof *m);
    if (m)
        m->order = weir__alloc(t->system, v->size * sizeof *m->order);
    if (!m || !m->order)
        return weir_fail(error, WEIR_ENOMEM, "%s: tokeniser", v->source);
    for (size_t i = 0; i < v->size; i++)
        m->order[i] = descending((float)v->scores[i]);
    return WEIR_OK;
}

static void fini(weir__tokenizer *t) {
    spm *m = t->model_data;
    if (!m)
        return;
    weir__free(t->system, m->order);
    weir__free(t->system, m);
}

/* Text between two of the encoder's symbol starts. */
typedef struct word {
    const weir__encoder *e;
    const char *text;
} word;

static int32_t find_piece(const word *w, uint32_t from, uint32_t to) {
    const weir__tokenizer *t = w->e->t;
    size_t begin = w->e->starts[from], size = w->e->starts[to] - begin;
    if (size > t->longest)
        return -1;
    int64_t id = weir__index_find(&t->index, w->text + begin, size);
    return weir__is_plain(t, id) ? (int32_t)id : -1;
}

static uint32_t pair(const void *data, const weir__merge *m, uint32_t left, uint32_t right) {
    int32_t id = find_piece(data, left, m->symbols[right].next);
    return id >= 0 ? (uint32_t)id : WEIR__NONE;
}

/* One symbol a character; a byte that is no UTF-8 is one too. */
static int set_symbols(weir__encoder *e, const word *w, size_t size) {
    weir__merge *m = &e->merge;
    size_t n = 0;
    for (size_t at = 0; at < size; n++) {
        int step = weir__utf8_step(w->text + at, size - at);
        if (weir__grow(e->system, &e->starts, &e->starts_room, n + 2, sizeof *e->starts))
            return WEIR_ENOMEM;
        e->starts[n] = (uint32_t)at;
        at += step > 0 ? (size_t)step : 1;
    }
    if (weir__merge_reserve(e->system, m, n))
        return WEIR_ENOMEM;
    e->starts[n] = (uint32_t)size;
    m->count = n;
    for (uint32_t i = 0; i < n; i++)
        m->symbols[i].id = find_piece(w, i, i + 1);
    return WEIR_OK;
}

static int encode_word(weir__encoder *e, weir__string text, weir_error **error) {
    word w = {e, text.data};
    weir__merge *m = &e->merge;
    int code = WEIR_OK;
    if (set_symbols(e, &w, text.size))
        return weir_fail(error, WEIR_ENOMEM, "tokeniser: a word of %zu bytes", text.size);
    weir__merge_run(m, &(weir__merge_rules){.pair = pair, .data = &w, .priority = ((const spm *)e->t->model_data)->order});
    for (uint32_t at = 0; at < m->count && !code; at = m->symbols[at].next) {
        size_t begin = e->starts[at], size = e->starts[m->symbols[at].next] - begin;
        code = m->symbols[at].id >= 0 ? weir__push(e, m->symbols[at].id, error)
                                      : weir__push_unknown(e, (weir__string){text.data + begin, size}, error);
    }
    return code;
}

static int encode(weir__encoder *e, weir__string chunk, weir_error **error) {
    int code = WEIR_OK;
    while (chunk.size > 0 && !code) {
        size_t n = weir__mark_cut(e->t, chunk);
        code = encode_word(e, (weir__string){chunk.data, n}, error);
        chunk = (weir__string){chunk.data + n, chunk.size - n};
    }
    return code;
}

const weir__text_model weir__spm_model = {WEIR__SPM, init, fini, encode};
