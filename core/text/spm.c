/* spm.c: SentencePiece's byte-pair encoding (github.com/google/sentencepiece, Kudo & Richardson 2018): spaces are written as U+2581, characters are joined to the
 * neighbouring pair whose piece scores best, and what is no piece in the end becomes byte pieces or the unknown piece. */
#include "tokenizer.h"

#include <stdio.h>
#include <string.h>

typedef struct spm {
    uint32_t *order;   /* [size] ascending for descending scores */
    size_t longest;    /* bytes of the longest piece */
    bool cuts_at_mark; /* no piece has a mark behind another character: text may be cut before such marks without changing the result */
    bool has_bytes;    /* the vocabulary has byte pieces */
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

static bool is_mark(const char *p, size_t n) {
    return n >= WEIR__SPACE_MARK_SIZE && memcmp(p, WEIR__SPACE_MARK, WEIR__SPACE_MARK_SIZE) == 0;
}

static bool mark_inside(weir__string piece) {
    bool other = false;
    for (size_t i = 0; i < piece.size; i++) {
        if (!is_mark(piece.data + i, piece.size - i))
            other = true;
        else if (other)
            return true;
        else
            i += WEIR__SPACE_MARK_SIZE - 1;
    }
    return false;
}

/* Marks as spaces. Returns the bytes written. */
static size_t unmark(weir__string piece, char *to) {
    size_t size = 0;
    for (size_t i = 0; i < piece.size; i++) {
        bool mark = is_mark(piece.data + i, piece.size - i);
        to[size++] = mark ? ' ' : piece.data[i];
        i += mark ? WEIR__SPACE_MARK_SIZE - 1 : 0;
    }
    return size;
}

/* The value of "<0x0A>", -1: no such piece. */
static int byte_value(weir__string piece) {
    static const char digits[] = "0123456789ABCDEF";
    if (piece.size != 6 || memcmp(piece.data, "<0x", 3) != 0 || piece.data[5] != '>')
        return -1;
    const char *high = memchr(digits, piece.data[3], 16), *low = memchr(digits, piece.data[4], 16);
    return high && low ? (int)((high - digits) * 16 + (low - digits)) : -1;
}

static int set_piece(weir__tokenizer *t, const char *source, size_t id, char **to, weir_error **error) {
    spm *m = t->model_data;
    weir__string piece = t->pieces[id];
    size_t size = 0;
    if (t->kinds[id] == WEIR__BYTE) {
        int value = byte_value(piece);
        char shown[64];
        if (value < 0)
            return weir_fail(error, WEIR_EFORMAT, "%s: piece %zu is of kind byte: found \"%s\", wanted \"<0x00>\" to \"<0xFF>\"", source,
                             id, weir__quote(shown, sizeof shown, piece.data, piece.size));
        (*to)[size++] = (char)value;
        t->byte_ids[value] = (int32_t)id;
        m->has_bytes = true;
    } else if (t->kinds[id] == WEIR__USER) {
        t->texts[id] = piece;
        return WEIR_OK;
    } else if (weir__is_plain(t, (int64_t)id)) {
        size = unmark(piece, *to);
        m->longest = piece.size > m->longest ? piece.size : m->longest;
        m->cuts_at_mark &= !mark_inside(piece);
    }
    t->texts[id] = (weir__string){*to, size};
    *to += size;
    return WEIR_OK;
}

static int init(weir__tokenizer *t, const weir__old_vocab *v, weir_error **error) {
    if (!v->scores)
        return weir_fail(error, WEIR_EFORMAT, "%s: found no scores of the pieces, wanted %zu", v->source, v->size);
    spm *m = t->model_data = weir__alloc(t->system, sizeof *m);
    if (m)
        m->order = weir__alloc(t->system, v->size * sizeof *m->order);
    if (!m || !m->order)
        return weir_fail(error, WEIR_ENOMEM, "%s: tokeniser", v->source);
    m->cuts_at_mark = true;
    char *to = t->text_bytes;
    for (size_t i = 0; i < v->size; i++) {
        int code = set_piece(t, v->source, i, &to, error);
        if (code)
            return code;
        m->order[i] = descending(v->scores[i]);
    }
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
    if (size > ((const spm *)t->model_data)->longest)
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

static int push_unknown(weir__encoder *e, const char *text, size_t size, weir_error **error) {
    char shown[16];
    if (e->t->unk < 0)
        return weir_fail(error, WEIR_EINVAL, "tokeniser: no piece for \"%s\", and the vocabulary has no unknown piece",
                         weir__quote(shown, sizeof shown, text, size));
    return weir__ids_push(e->system, e->ids, e->t->unk) ? weir_fail(error, WEIR_ENOMEM, "tokeniser") : WEIR_OK;
}

/* A symbol that is no piece: its bytes, each unknown byte as the unknown piece; one unknown piece if the vocabulary has no bytes at all. */
static int push_bytes(weir__encoder *e, const char *text, size_t size, weir_error **error) {
    if (!((const spm *)e->t->model_data)->has_bytes)
        return push_unknown(e, text, size, error);
    for (size_t i = 0; i < size; i++) {
        int32_t id = e->t->byte_ids[(unsigned char)text[i]];
        int code = WEIR_OK;
        if (id < 0)
            code = push_unknown(e, text + i, 1, error);
        else if (weir__ids_push(e->system, e->ids, id))
            code = weir_fail(error, WEIR_ENOMEM, "tokeniser");
        if (code)
            return code;
    }
    return WEIR_OK;
}

static int encode_word(weir__encoder *e, const char *text, size_t size, weir_error **error) {
    word w = {e, text};
    weir__merge *m = &e->merge;
    if (set_symbols(e, &w, size))
        return weir_fail(error, WEIR_ENOMEM, "tokeniser: a word of %zu bytes", size);
    weir__merge_run(m, &(weir__merge_rules){.pair = pair, .data = &w, .priority = ((const spm *)e->t->model_data)->order});
    for (uint32_t at = 0; at < m->count; at = m->symbols[at].next) {
        int32_t id = m->symbols[at].id;
        int code = WEIR_OK;
        if (id < 0)
            code = push_bytes(e, text + e->starts[at], e->starts[m->symbols[at].next] - e->starts[at], error);
        else if (weir__ids_push(e->system, e->ids, id))
            code = weir_fail(error, WEIR_ENOMEM, "tokeniser");
        if (code)
            return code;
    }
    return WEIR_OK;
}

/* The run with marks for its spaces, and one before it if the vocabulary says so. */
static int mark_spaces(weir__encoder *e, const char *text, size_t size, size_t *marked) {
    size_t spaces = e->t->add_space_prefix;
    for (size_t i = 0; i < size; i++)
        spaces += text[i] == ' ';
    if (weir__grow(e->system, &e->marked, &e->marked_room, size + (WEIR__SPACE_MARK_SIZE - 1) * spaces + 1, 1))
        return WEIR_ENOMEM;
    char *to = e->marked;
    for (size_t i = e->t->add_space_prefix ? SIZE_MAX : 0; i != size; i++) {
        if (i == SIZE_MAX || text[i] == ' ') {
            memcpy(to, WEIR__SPACE_MARK, WEIR__SPACE_MARK_SIZE);
            to += WEIR__SPACE_MARK_SIZE;
        } else {
            *to++ = text[i];
        }
    }
    *marked = (size_t)(to - e->marked);
    return WEIR_OK;
}

/* Where the word at the beginning ends: before the first mark that follows another character. */
static size_t word_size(const char *text, size_t size) {
    size_t at = 0;
    while (is_mark(text + at, size - at))
        at += WEIR__SPACE_MARK_SIZE;
    while (at < size && !is_mark(text + at, size - at))
        at++;
    return at;
}

static int encode(weir__encoder *e, const char *text, size_t size, weir_error **error) {
    const spm *m = e->t->model_data;
    size_t marked;
    if (mark_spaces(e, text, size, &marked))
        return weir_fail(error, WEIR_ENOMEM, "tokeniser: a text of %zu bytes", size);
    for (size_t at = 0; at < marked;) {
        size_t n = m->cuts_at_mark ? word_size(e->marked + at, marked - at) : marked - at;
        int code = encode_word(e, e->marked + at, n, error);
        if (code)
            return code;
        at += n;
    }
    return WEIR_OK;
}

const weir__text_model weir__spm_model = {.name = "llama", .space_prefix = true, .init = init, .free = fini, .encode = encode};
