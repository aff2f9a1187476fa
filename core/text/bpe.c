/* bpe.c: byte-pair encoding (Sennrich et al. 2016): symbols are joined by ranked merges inside of what the pre-tokeniser cuts. Symbols are bytes, written as
 * GPT-2's characters, or characters. What has no piece becomes bytes or the unknown piece, or is left out where the vocabulary has neither, as the tokenizers
 * library does. */
#include "tokenizer.h"

#include <string.h>

/* A merge of two pieces; `rank` + 1, 0: an empty slot. */
typedef struct merge_slot {
    int32_t left, right;
    uint32_t rank;
} merge_slot;

typedef struct bpe {
    merge_slot *slots; /* [mask + 1] at most half full */
    size_t mask;
    uint64_t seed;
    int32_t *results; /* [merges] by rank */
    bool ignore_merges;
    weir__string prefix, suffix; /* in `bytes` */
    char *bytes;
} bpe;

static merge_slot *slot(const bpe *b, int32_t left, int32_t right) {
    uint64_t h = weir__mix(b->seed ^ ((uint64_t)(uint32_t)left << 32 | (uint32_t)right));
    for (size_t at = h & b->mask;; at = (at + 1) & b->mask) {
        merge_slot *s = &b->slots[at];
        if (s->rank == 0 || (s->left == left && s->right == right))
            return s;
    }
}

/* Finds the three pieces of a merge; what continues a word is joined without its prefix. False: one is not there. */
static bool find_merge(const weir__tokenizer *t, const bpe *b, weir__merge_pair pair, char *joined, int64_t ids[3]) {
    if (pair.left.size == 0 || pair.right.size <= b->prefix.size)
        return false;
    weir__string rest = {pair.right.data + b->prefix.size, pair.right.size - b->prefix.size};
    memcpy(joined, pair.left.data, pair.left.size);
    memcpy(joined + pair.left.size, rest.data, rest.size);
    ids[0] = weir__index_find(&t->index, pair.left.data, pair.left.size);
    ids[1] = weir__index_find(&t->index, pair.right.data, pair.right.size);
    ids[2] = weir__index_find(&t->index, joined, pair.left.size + rest.size);
    return ids[0] >= 0 && ids[1] >= 0 && ids[2] >= 0;
}

/* Merges into pieces that text must not become (control pieces) are passed over; of equal merges the last counts, as in the tokenizers library. */
static int add_merge(weir__tokenizer *t, const weir__vocab *v, size_t rank, char *joined, weir_error **error) {
    bpe *b = t->model_data;
    weir__merge_pair pair = v->merges[rank];
    int64_t ids[3];
    char left[64], right[64];
    if (!find_merge(t, b, pair, joined, ids))
        return weir_fail(error, WEIR_EFORMAT,
                         "%s: merge %zu: found \"%s\" and \"%s\", wanted two pieces of the vocabulary that make a third", v->source, rank,
                         weir__quote(left, sizeof left, pair.left.data, pair.left.size),
                         weir__quote(right, sizeof right, pair.right.data, pair.right.size));
    b->results[rank] = (int32_t)ids[2];
    if (weir__is_plain(t, ids[2]))
        *slot(b, (int32_t)ids[0], (int32_t)ids[1]) = (merge_slot){(int32_t)ids[0], (int32_t)ids[1], (uint32_t)rank + 1};
    return WEIR_OK;
}

static int add_merges(weir__tokenizer *t, const weir__vocab *v, weir_error **error) {
    bpe *b = t->model_data;
    size_t room = 16, longest = 0;
    while (room < 2 * v->n_merges)
        room *= 2;
    for (size_t i = 0; i < v->n_merges; i++) {
        size_t size = v->merges[i].left.size + v->merges[i].right.size;
        longest = size > longest ? size : longest;
    }
    b->mask = room - 1;
    b->slots = weir__alloc(t->system, room * sizeof *b->slots);
    b->results = weir__alloc(t->system, (v->n_merges + 1) * sizeof *b->results);
    char *joined = weir__alloc(t->system, longest + 1);
    int code = WEIR_OK;
    if (!b->slots || !b->results || !joined)
        code = weir_fail(error, WEIR_ENOMEM, "%s: tokeniser of %zu merges", v->source, v->n_merges);
    b->seed = weir__mix((uintptr_t)b->slots);
    for (size_t i = 0; i < v->n_merges && !code; i++)
        code = add_merge(t, v, i, joined, error);
    weir__free(t->system, joined);
    return code;
}

static int keep_affixes(weir__tokenizer *t, const weir__vocab *v) {
    bpe *b = t->model_data;
    size_t n = v->continuing_prefix.size, m = v->end_suffix.size;
    b->bytes = weir__alloc(t->system, n + m + 1);
    if (!b->bytes)
        return WEIR_ENOMEM;
    if (n > 0)
        memcpy(b->bytes, v->continuing_prefix.data, n);
    if (m > 0)
        memcpy(b->bytes + n, v->end_suffix.data, m);
    b->prefix = (weir__string){b->bytes, n};
    b->suffix = (weir__string){b->bytes + n, m};
    return WEIR_OK;
}

static void find_bytes(weir__tokenizer *t) {
    for (size_t c = 0; c < 256; c++) {
        char name[2];
        int64_t id = weir__index_find(&t->index, name, weir__byte_piece((unsigned char)c, name));
        t->byte_ids[c] = weir__is_plain(t, id) ? (int32_t)id : -1;
    }
}

static int init(weir__tokenizer *t, const weir__vocab *v, weir_error **error) {
    enum { MOST_AFFIX = 64 };
    if (v->n_merges > WEIR_MAX_MERGES)
        return weir_fail(error, WEIR_EFORMAT, "%s: found %zu merges, wanted at most %d", v->source, v->n_merges, WEIR_MAX_MERGES);
    if (v->continuing_prefix.size > MOST_AFFIX || v->end_suffix.size > MOST_AFFIX)
        return weir_fail(error, WEIR_EUNSUPPORTED, "%s: found a prefix or suffix of words of more than %d bytes", v->source, MOST_AFFIX);
    bpe *b = t->model_data = weir__alloc(t->system, sizeof *b);
    if (!b || keep_affixes(t, v))
        return weir_fail(error, WEIR_ENOMEM, "%s: tokeniser", v->source);
    b->ignore_merges = v->ignore_merges;
    if (t->byte_level)
        find_bytes(t);
    t->cuts_at_mark &= b->suffix.size == 0 && b->prefix.size == 0 && !b->ignore_merges;
    return add_merges(t, v, error);
}

static void fini(weir__tokenizer *t) {
    bpe *b = t->model_data;
    if (!b)
        return;
    weir__free(t->system, b->slots);
    weir__free(t->system, b->results);
    weir__free(t->system, b->bytes);
    weir__free(t->system, b);
}

static uint32_t pair(const void *data, const weir__merge *m, uint32_t left, uint32_t right) {
    uint32_t rank = slot(data, m->symbols[left].id, m->symbols[right].id)->rank;
    return rank > 0 ? rank - 1 : WEIR__NONE;
}

static void set_byte_symbols(const weir__tokenizer *t, weir__merge *m, weir__string chunk) {
    for (size_t i = 0; i < chunk.size; i++) {
        int32_t id = t->byte_ids[(unsigned char)chunk.data[i]];
        id = id < 0 ? t->unk : id;
        if (id >= 0)
            m->symbols[m->count++].id = id;
    }
}

/* The piece of a character, with what stands before it inside of words and behind a word's last. */
static int32_t find_char(const weir__tokenizer *t, weir__string character, bool first, bool last) {
    const bpe *b = t->model_data;
    char name[160];
    weir__string prefix = first ? (weir__string){"", 0} : b->prefix, suffix = last ? b->suffix : (weir__string){"", 0};
    if (prefix.size + suffix.size > 0) {
        memcpy(name, prefix.data, prefix.size);
        memcpy(name + prefix.size, character.data, character.size);
        memcpy(name + prefix.size + character.size, suffix.data, suffix.size);
        character = (weir__string){name, prefix.size + character.size + suffix.size};
    }
    int64_t id = weir__index_find(&t->index, character.data, character.size);
    return weir__is_plain(t, id) ? (int32_t)id : -1;
}

/* A character without a piece: its bytes, or the unknown piece, one for several if they are fused, or nothing. */
static void set_unknown(const weir__tokenizer *t, weir__merge *m, weir__string character, bool *unknown) {
    bool bytes = t->byte_fallback;
    for (size_t i = 0; i < character.size && bytes; i++)
        bytes = t->byte_ids[(unsigned char)character.data[i]] >= 0;
    for (size_t i = 0; i < character.size && bytes; i++)
        m->symbols[m->count++].id = t->byte_ids[(unsigned char)character.data[i]];
    if (bytes || t->unk < 0)
        return;
    if (!(*unknown && t->fuse_unk))
        m->symbols[m->count++].id = t->unk;
    *unknown = true;
}

static void set_char_symbols(const weir__tokenizer *t, weir__merge *m, weir__string chunk) {
    bool unknown = false;
    for (size_t at = 0, n; at < chunk.size; at += n) {
        int step = weir__utf8_step(chunk.data + at, chunk.size - at);
        n = step > 0 ? (size_t)step : 1;
        int32_t id = find_char(t, (weir__string){chunk.data + at, n}, at == 0, at + n == chunk.size);
        if (id < 0) {
            set_unknown(t, m, (weir__string){chunk.data + at, n}, &unknown);
            continue;
        }
        m->symbols[m->count++].id = id;
        unknown = false;
    }
}

static int encode_word(weir__encoder *e, weir__string word, weir_error **error) {
    const bpe *b = e->t->model_data;
    weir__merge *m = &e->merge;
    if (weir__merge_reserve(e->system, m, word.size))
        return weir_fail(error, WEIR_ENOMEM, "tokeniser: a word of %zu bytes", word.size);
    m->count = 0;
    (e->t->byte_level ? set_byte_symbols : set_char_symbols)(e->t, m, word);
    weir__merge_run(m, &(weir__merge_rules){.pair = pair, .data = b, .result = b->results});
    int code = WEIR_OK;
    for (uint32_t at = 0; at < m->count && !code; at = m->symbols[at].next)
        code = weir__push(e, m->symbols[at].id, error);
    return code;
}

/* The piece that a whole chunk is; -1: none. */
static int64_t find_chunk(const weir__tokenizer *t, weir__string chunk) {
    char name[2 * WEIR_MAX_PIECE];
    size_t size = 0;
    if (chunk.size > t->longest)
        return -1;
    for (size_t i = 0; i < chunk.size && t->byte_level; i++)
        size += weir__byte_piece((unsigned char)chunk.data[i], name + size);
    int64_t id = t->byte_level ? weir__index_find(&t->index, name, size) : weir__index_find(&t->index, chunk.data, chunk.size);
    return weir__is_plain(t, id) ? id : -1;
}

static int encode(weir__encoder *e, weir__string chunk, weir_error **error) {
    const bpe *b = e->t->model_data;
    int64_t whole = b->ignore_merges ? find_chunk(e->t, chunk) : -1;
    if (whole >= 0)
        return weir__push(e, (int32_t)whole, error);
    int code = WEIR_OK;
    while (chunk.size > 0 && !code) {
        size_t n = e->t->byte_level ? chunk.size : weir__mark_cut(e->t, chunk);
        code = encode_word(e, (weir__string){chunk.data, n}, error);
        chunk = (weir__string){chunk.data + n, chunk.size - n};
    }
    return code;
}

const weir__text_model weir__bpe_model = {WEIR__BPE, init, fini, encode};
