/* unigram.c: the unigram model (Kudo 2018, "Subword regularization"): the cut of a text whose pieces' scores have the largest sum, found by Viterbi's way in one
 * pass. A character that begins no piece of its own length is unknown, which costs 10 below the worst score; neighbouring unknown ones are one. */
#include "tokenizer.h"

#include <string.h>

typedef struct unigram {
    weir__trie trie;
    double *scores; /* [size] */
    double unknown; /* score of an unknown character */
} unigram;

/* The best way to a place in the text. */
typedef struct cell {
    double score;
    uint32_t from; /* UINT32_MAX: no way yet */
    int32_t id;    /* -1: unknown */
} cell;

static const double unknown_penalty = 10; /* SentencePiece's kUnkPenalty */

static int fill(weir__tokenizer *t, const weir__vocab *v, weir_error **error) {
    unigram *u = t->model_data;
    double least = 0;
    bool any = false;
    for (size_t i = 0; i < v->size; i++) {
        double score = u->scores[i] = v->scores[i];
        if (score != score || score > 1e30 || score < -1e30)
            return weir_fail(error, WEIR_EFORMAT, "%s: piece %zu: found score %g, wanted a finite number", v->source, i, score);
        if (t->kinds[i] == WEIR__UNUSED || t->kinds[i] == WEIR__OUTSIDE)
            continue;
        least = any && least < score ? least : score;
        any = true;
        if (weir__is_plain(t, (int64_t)i) && weir__trie_add(t->system, &u->trie, t->pieces[i], (int32_t)i))
            return weir_fail(error, WEIR_ENOMEM, "%s: tokeniser of %zu pieces", v->source, v->size);
    }
    u->unknown = least - unknown_penalty;
    return WEIR_OK;
}

static int init(weir__tokenizer *t, const weir__vocab *v, weir_error **error) {
    if (!v->scores)
        return weir_fail(error, WEIR_EFORMAT, "%s: found no scores of the pieces, wanted %zu", v->source, v->size);
    unigram *u = t->model_data = weir__alloc(t->system, sizeof *u);
    if (u)
        u->scores = weir__alloc(t->system, v->size * sizeof *u->scores);
    if (!u || !u->scores)
        return weir_fail(error, WEIR_ENOMEM, "%s: tokeniser", v->source);
    return fill(t, v, error);
}

static void fini(weir__tokenizer *t) {
    unigram *u = t->model_data;
    if (!u)
        return;
    weir__trie_fini(t->system, &u->trie);
    weir__free(t->system, u->scores);
    weir__free(t->system, u);
}

static void improve(cell *to, double score, size_t from, int32_t id) {
    if (to->from == UINT32_MAX || score > to->score)
        *to = (cell){score, (uint32_t)from, id};
}

/* All pieces that begin at `at`, and the unknown character. */
static void extend(const unigram *u, cell *cells, weir__string text, size_t at, size_t character) {
    double here = cells[at].score;
    bool single = false;
    uint32_t node = u->trie.nodes > 0 ? WEIR__TRIE_ROOT : WEIR__TRIE_MISS;
    for (size_t i = at; i < text.size && node != WEIR__TRIE_MISS; i++) {
        node = weir__trie_step(&u->trie, node, (unsigned char)text.data[i]);
        int32_t id = node == WEIR__TRIE_MISS ? -1 : weir__trie_value(&u->trie, node);
        if (id < 0)
            continue;
        improve(&cells[i + 1], here + u->scores[id], at, id);
        single |= i + 1 - at == character;
    }
    if (!single)
        improve(&cells[at + character], here + u->unknown, at, -1);
}

/* Turns the ways back into ways on: afterwards `from` of a place is where the piece that begins there ends, and `id` is that piece. */
static void turn(cell *cells, size_t end) {
    size_t at = end;
    int32_t id = cells[at].id;
    uint32_t from = cells[at].from;
    while (at > 0) {
        size_t before = from;
        int32_t next_id = cells[before].id;
        uint32_t next_from = cells[before].from;
        cells[before].from = (uint32_t)at;
        cells[before].id = id;
        at = before;
        id = next_id;
        from = next_from;
    }
}

static int emit(weir__encoder *e, const cell *cells, weir__string text, weir_error **error) {
    int code = WEIR_OK;
    for (size_t at = 0; at < text.size && !code;) {
        size_t end = cells[at].from;
        if (cells[at].id >= 0) {
            code = weir__push(e, cells[at].id, error);
        } else {
            while (end < text.size && cells[end].id < 0)
                end = cells[end].from;
            code = weir__push_unknown(e, (weir__string){text.data + at, end - at}, error);
        }
        at = end;
    }
    return code;
}

static int encode_word(weir__encoder *e, weir__string text, weir_error **error) {
    const unigram *u = e->t->model_data;
    if (weir__grow(e->system, &e->cells, &e->cells_room, text.size + 1, sizeof(cell)))
        return weir_fail(error, WEIR_ENOMEM, "tokeniser: a word of %zu bytes", text.size);
    cell *cells = e->cells;
    for (size_t i = 0; i <= text.size; i++)
        cells[i].from = UINT32_MAX;
    cells[0] = (cell){0, 0, -1};
    for (size_t at = 0; at < text.size;) {
        int step = weir__utf8_step(text.data + at, text.size - at);
        size_t character = step > 0 ? (size_t)step : 1;
        extend(u, cells, text, at, character);
        at += character;
    }
    turn(cells, text.size);
    return emit(e, cells, text, error);
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

const weir__text_model weir__unigram_model = {WEIR__UNIGRAM, init, fini, encode};
