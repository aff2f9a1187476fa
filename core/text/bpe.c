/* bpe.c: byte-level byte-pair encoding (GPT-2): bytes are written as printable characters, and pieces are joined by ranked merges inside of what the
 * pre-tokeniser cuts. A byte whose character is no piece is left out, as the tokenizers library and llama.cpp do, unless the vocabulary has an unknown piece. */
#include "tokenizer.h"

#include <string.h>

/* A merge of two pieces; `rank` + 1, 0: an empty slot. */
typedef struct weir__merge_slot {
    int32_t left, right;
    uint32_t rank;
} merge_slot;

typedef struct bpe {
    weir__pre *pre;
    merge_slot *slots; /* [mask + 1] at most half full */
    size_t mask;
    uint64_t seed;
    int32_t *results; /* [merges] by rank */
    int32_t unk;      /* -1: bytes without a piece are left out */
} bpe;

/* The code point that stands for a byte: itself if it is printable Latin-1, else the next free one from U+0100 on (all are below U+0144). */
static void byte_points(uint16_t points[256]) {
    uint16_t next = 256;
    for (uint16_t b = 0; b < 256; b++) {
        bool printable = (b >= 33 && b <= 126) || (b >= 161 && b != 173);
        points[b] = printable ? b : next++;
    }
}

static size_t put_point(char *to, uint16_t point) {
    if (point < 0x80) {
        to[0] = (char)point;
        return 1;
    }
    to[0] = (char)(0xC0 | point >> 6);
    to[1] = (char)(0x80 | (point & 0x3F));
    return 2;
}

/* The bytes that a piece stands for, at `to`; false: it has a character that stands for none. */
static bool unmap(const int16_t bytes[512], weir__string piece, char *to, size_t *size) {
    *size = 0;
    for (size_t i = 0; i < piece.size;) {
        int step = weir__utf8_step(piece.data + i, piece.size - i);
        unsigned char c = (unsigned char)piece.data[i];
        if (step != 1 && step != 2)
            return false;
        unsigned point = step == 1 ? c : (c & 0x1Fu) << 6 | ((unsigned char)piece.data[i + 1] & 0x3F);
        if (point >= 512 || bytes[point] < 0)
            return false;
        to[(*size)++] = (char)bytes[point];
        i += (size_t)step;
    }
    return true;
}

/* Pieces of other characters, and control and user-defined ones, stand for their own bytes. */
static void set_texts(weir__tokenizer *t) {
    uint16_t points[256];
    int16_t bytes[512];
    byte_points(points);
    memset(bytes, -1, sizeof bytes);
    for (int16_t b = 0; b < 256; b++)
        bytes[points[b]] = b;
    char *to = t->text_bytes;
    for (size_t i = 0; i < t->size; i++) {
        if (t->kinds[i] == WEIR__CONTROL || t->kinds[i] == WEIR__UNKNOWN)
            continue;
        size_t size = 0;
        if (t->kinds[i] == WEIR__USER || !unmap(bytes, t->pieces[i], to, &size)) {
            t->texts[i] = t->pieces[i];
            continue;
        }
        t->texts[i] = (weir__string){to, size};
        to += size;
    }
    for (size_t b = 0; b < 256; b++) {
        char name[2];
        int64_t id = weir__index_find(&t->index, name, put_point(name, points[b]));
        t->byte_ids[b] = weir__is_plain(t, id) ? (int32_t)id : -1;
    }
}

static merge_slot *slot(const bpe *b, int32_t left, int32_t right) {
    uint64_t h = weir__mix(b->seed ^ ((uint64_t)(uint32_t)left << 32 | (uint32_t)right));
    for (size_t at = h & b->mask;; at = (at + 1) & b->mask) {
        merge_slot *s = &b->slots[at];
        if (s->rank == 0 || (s->left == left && s->right == right))
            return s;
    }
}

/* Splits "left right" and finds the three pieces. False: one is not there. */
static bool parse_merge(const weir__tokenizer *t, weir__string line, char *joined, int64_t ids[3]) {
    const char *gap = line.size > 2 ? memchr(line.data + 1, ' ', line.size - 2) : NULL;
    if (!gap)
        return false;
    size_t left = (size_t)(gap - line.data), right = line.size - left - 1;
    memcpy(joined, line.data, left);
    memcpy(joined + left, gap + 1, right);
    ids[0] = weir__index_find(&t->index, line.data, left);
    ids[1] = weir__index_find(&t->index, gap + 1, right);
    ids[2] = weir__index_find(&t->index, joined, left + right);
    return ids[0] >= 0 && ids[1] >= 0 && ids[2] >= 0;
}

/* Merges into pieces that text must not become (control pieces) are passed over; of equal merges the first counts. */
static int add_merge(weir__tokenizer *t, const weir__old_vocab *v, size_t rank, char *joined, weir_error **error) {
    bpe *b = t->model_data;
    int64_t ids[3];
    char shown[96];
    if (!parse_merge(t, v->merges[rank], joined, ids))
        return weir_fail(error, WEIR_EFORMAT, "%s: merge %zu: found \"%s\", wanted two pieces of the vocabulary that make a third",
                         v->source, rank, weir__quote(shown, sizeof shown, v->merges[rank].data, v->merges[rank].size));
    b->results[rank] = (int32_t)ids[2];
    merge_slot *s = slot(b, (int32_t)ids[0], (int32_t)ids[1]);
    if (weir__is_plain(t, ids[2]) && s->rank == 0)
        *s = (merge_slot){(int32_t)ids[0], (int32_t)ids[1], (uint32_t)rank + 1};
    return WEIR_OK;
}

static int add_merges(weir__tokenizer *t, const weir__old_vocab *v, weir_error **error) {
    bpe *b = t->model_data;
    size_t room = 16, longest = 0;
    while (room < 2 * v->merges_count)
        room *= 2;
    for (size_t i = 0; i < v->merges_count; i++)
        longest = v->merges[i].size > longest ? v->merges[i].size : longest;
    b->mask = room - 1;
    b->slots = weir__alloc(t->system, room * sizeof *b->slots);
    b->results = weir__alloc(t->system, (v->merges_count + 1) * sizeof *b->results);
    char *joined = weir__alloc(t->system, longest + 1);
    int code = WEIR_OK;
    if (!b->slots || !b->results || !joined)
        code = weir_fail(error, WEIR_ENOMEM, "%s: tokeniser of %zu merges", v->source, v->merges_count);
    b->seed = weir__mix((uintptr_t)b->slots);
    for (size_t i = 0; i < v->merges_count && !code; i++)
        code = add_merge(t, v, i, joined, error);
    weir__free(t->system, joined);
    return code;
}

static int init(weir__tokenizer *t, const weir__old_vocab *v, weir_error **error) {
    if (v->merges_count > WEIR_MAX_MERGES)
        return weir_fail(error, WEIR_EFORMAT, "%s: found %zu merges, wanted at most %d", v->source, v->merges_count, WEIR_MAX_MERGES);
    bpe *b = t->model_data = weir__alloc(t->system, sizeof *b);
    if (!b)
        return weir_fail(error, WEIR_ENOMEM, "%s: tokeniser", v->source);
    b->unk = t->unk >= 0 && t->kinds[t->unk] == WEIR__UNKNOWN ? t->unk : -1;
    set_texts(t);
    int code = weir__pre_new(t->system, v->pre ? v->pre : "", v->source, &b->pre, error);
    return code ? code : add_merges(t, v, error);
}

static void fini(weir__tokenizer *t) {
    bpe *b = t->model_data;
    if (!b)
        return;
    weir__pre_free(b->pre);
    weir__free(t->system, b->slots);
    weir__free(t->system, b->results);
    weir__free(t->system, b);
}

static uint32_t pair(const void *data, const weir__merge *m, uint32_t left, uint32_t right) {
    uint32_t rank = slot(data, m->symbols[left].id, m->symbols[right].id)->rank;
    return rank > 0 ? rank - 1 : WEIR__NONE;
}

/* The chunk's bytes as symbols. */
static void set_symbols(const weir__tokenizer *t, weir__merge *m, weir__string chunk) {
    const bpe *b = t->model_data;
    m->count = 0;
    for (size_t i = 0; i < chunk.size; i++) {
        int32_t id = t->byte_ids[(unsigned char)chunk.data[i]];
        if (id < 0)
            id = b->unk;
        if (id >= 0)
            m->symbols[m->count++].id = id;
    }
}

static int encode_chunk(weir__encoder *e, weir__string chunk) {
    const bpe *b = e->t->model_data;
    weir__merge *m = &e->merge;
    if (weir__merge_reserve(e->system, m, chunk.size))
        return WEIR_ENOMEM;
    set_symbols(e->t, m, chunk);
    weir__merge_run(m, &(weir__merge_rules){.pair = pair, .data = b, .result = b->results});
    for (uint32_t at = 0; at < m->count; at = m->symbols[at].next) {
        if (weir__ids_push(e->system, e->ids, m->symbols[at].id))
            return WEIR_ENOMEM;
    }
    return WEIR_OK;
}

static int encode(weir__encoder *e, const char *text, size_t size, weir_error **error) {
    const bpe *b = e->t->model_data;
    if (!e->pre && !(e->pre = weir__pre_run_new(b->pre)))
        return weir_fail(error, WEIR_ENOMEM, "tokeniser");
    weir__string chunk;
    weir__pre_start(e->pre, text, size);
    for (;;) {
        int code = weir__pre_next(e->pre, &chunk, error);
        if (code || chunk.size == 0)
            return code;
        if (encode_chunk(e, chunk))
            return weir_fail(error, WEIR_ENOMEM, "tokeniser: a chunk of %zu bytes", chunk.size);
    }
}

const weir__text_model weir__bpe_model = {.name = "gpt2", .init = init, .free = fini, .encode = encode};
