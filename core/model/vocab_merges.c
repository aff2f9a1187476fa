/* vocab_merges.c: merges and scores (vocab_merges.h): each piece is merged from its characters by the merges, with the loop that tokenisers use. */
#include "vocab_merges.h"

#include "../text/index.h"
#include "../text/merge.h"

#include <stdlib.h>
#include <string.h>

/* A merge by its result and where that is cut. */
typedef struct rule {
    uint64_t key; /* result's id in the upper half, bytes of the left part in the lower */
    uint32_t rank;
} rule;

typedef struct work {
    weir_system *system;
    const weir__vocab *v;
    const weir__merge_pair *merges; /* [n] */
    size_t n;
    uint8_t *kinds; /* [v->size] */
    bool *hidden;   /* [v->size] added tokens that are cut out of every text before the model sees it */
    weir__index index;
    rule *rules;      /* [n] ascending by key */
    int32_t *results; /* [n] by rank */
    weir__merge merge;
    uint32_t *starts; /* [symbols + 1] of the piece that is being merged */
    size_t starts_room;
    uint32_t last; /* the rank of the merge that made the whole piece, WEIR__NONE: none did */
    weir__string text;
} work;

#define MARK "\xE2\x96\x81"

enum { MOST_RUN = 256 };        /* characters of a piece of one character again and again */
enum { MOST_SPLITS = 1 << 28 }; /* cuts of pieces that are looked at, by their bytes; published vocabularies have under 2^24 */

static bool is_plain(const work *w, int64_t id) {
    return id >= 0 && (w->kinds[id] == WEIR__NORMAL || w->kinds[id] == WEIR__UNUSED || w->kinds[id] == WEIR__USER);
}

static size_t step_at(weir__string text, size_t at) {
    int step = weir__utf8_step(text.data + at, text.size - at);
    return step > 0 ? (size_t)step : 1;
}

static int no_memory(const weir__vocab *v, weir_error **error) {
    return weir_fail(error, WEIR_ENOMEM, "%s: vocabulary of %zu pieces", v->source, v->size);
}

/* Added tokens are found in the raw text: those without a mark that a space becomes cannot come up later. */
static void set_hidden(work *w) {
    const weir__vocab *v = w->v;
    for (size_t i = 0; i < v->normaliser.size; i++)
        if (v->normaliser.data[i].kind != WEIR__PREPEND && v->normaliser.data[i].kind != WEIR__REPLACE)
            return;
    for (size_t i = 0; i < v->n_added; i++) {
        const weir__added *a = &v->added[i];
        w->hidden[a->id] = !a->special && !a->single_word && !memmem(a->content.data, a->content.size, MARK, sizeof MARK - 1);
    }
}

static int work_init(work *w, weir_system *s, const weir__vocab *v, weir_error **error) {
    *w = (work){.system = s, .v = v, .kinds = weir__vocab_kinds(s, v), .hidden = weir__alloc(s, v->size + 1)};
    if (!w->kinds || !w->hidden || weir__index_init(s, &w->index, v->pieces, sizeof *v->pieces, v->size))
        return no_memory(v, error);
    for (size_t i = 0; i < v->size; i++)
        if (v->pieces[i].size > 0)
            weir__index_add(&w->index, (uint32_t)i);
    set_hidden(w);
    return WEIR_OK;
}

static void work_fini(work *w) {
    weir__free(w->system, w->kinds);
    weir__free(w->system, w->hidden);
    weir__free(w->system, w->rules);
    weir__free(w->system, w->results);
    weir__free(w->system, w->starts);
    weir__index_fini(w->system, &w->index);
    weir__merge_fini(w->system, &w->merge);
}

static int by_key(const void *a, const void *b) {
    const rule *x = a, *y = b;
    return x->key != y->key ? (x->key < y->key ? -1 : 1) : x->rank < y->rank ? -1 : x->rank > y->rank;
}

static const rule *find_rule(const work *w, uint64_t key) {
    size_t low = 0, high = w->n;
    while (low < high) { /* behind the last of equal ones: the last counts */
        size_t middle = low + (high - low) / 2;
        if (w->rules[middle].key <= key)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && w->rules[low - 1].key == key ? &w->rules[low - 1] : NULL;
}

/* The id of left + right, whose bytes may lie apart. */
static int64_t find_joined(const work *w, weir__merge_pair pair) {
    char joined[WEIR_MAX_PIECE];
    if (pair.left.size + pair.right.size > sizeof joined)
        return -1;
    memcpy(joined, pair.left.data, pair.left.size);
    memcpy(joined + pair.left.size, pair.right.data, pair.right.size);
    return weir__index_find(&w->index, joined, pair.left.size + pair.right.size);
}

static bool set_rules(work *w, weir_error **error, int *code) {
    w->rules = weir__alloc(w->system, (w->n + 1) * sizeof *w->rules);
    w->results = weir__alloc(w->system, (w->n + 1) * sizeof *w->results);
    if (!w->rules || !w->results) {
        *code = no_memory(w->v, error);
        return false;
    }
    for (size_t i = 0; i < w->n; i++) {
        int64_t id = find_joined(w, w->merges[i]);
        if (id < 0)
            return false;
        w->results[i] = (int32_t)id;
        w->rules[i] = (rule){(uint64_t)id << 32 | w->merges[i].left.size, (uint32_t)i};
    }
    qsort(w->rules, w->n, sizeof *w->rules, by_key);
    return true;
}

static uint32_t pair(const void *data, const weir__merge *m, uint32_t left, uint32_t right) {
    work *w = (work *)data;
    if (m->symbols[left].id < 0 || m->symbols[right].id < 0)
        return WEIR__NONE;
    uint32_t begin = w->starts[left], middle = w->starts[right], end = w->starts[m->symbols[right].next];
    int64_t id = weir__index_find(&w->index, w->text.data + begin, end - begin);
    const rule *r = is_plain(w, id) ? find_rule(w, (uint64_t)id << 32 | (middle - begin)) : NULL;
    if (r && begin == 0 && end == w->text.size)
        w->last = r->rank;
    return r ? r->rank : WEIR__NONE;
}

static int set_symbols(work *w) {
    size_t n = 0;
    for (size_t at = 0; at < w->text.size; at += step_at(w->text, at), n++) {
        if (weir__grow(w->system, &w->starts, &w->starts_room, n + 2, sizeof *w->starts))
            return WEIR_ENOMEM;
        w->starts[n] = (uint32_t)at;
    }
    w->starts[n] = (uint32_t)w->text.size;
    if (weir__merge_reserve(w->system, &w->merge, n))
        return WEIR_ENOMEM;
    w->merge.count = n;
    for (size_t i = 0; i < n; i++) {
        int64_t id = weir__index_find(&w->index, w->text.data + w->starts[i], w->starts[i + 1] - w->starts[i]);
        w->merge.symbols[i].id = is_plain(w, id) ? (int32_t)id : -1;
    }
    return WEIR_OK;
}

/* Merges a piece's characters: w->last. *same false: two symbols are left, which scores alone would join. */
static int merge_piece(work *w, size_t id, bool *same, weir_error **error) {
    w->text = w->v->pieces[id];
    w->last = WEIR__NONE;
    if (w->text.size == 0 || step_at(w->text, 0) == w->text.size)
        return WEIR_OK;
    if (set_symbols(w))
        return no_memory(w->v, error);
    weir__merge_run(&w->merge, &(weir__merge_rules){.pair = pair, .data = w, .result = w->results});
    uint32_t second = w->merge.symbols[0].next;
    *same &= second >= w->merge.count || w->merge.symbols[second].next < w->merge.count;
    return WEIR_OK;
}

/* Whether the first piece of this text is this one: others of the same text are never made. */
static bool is_first(const work *w, size_t id) {
    weir__string p = w->v->pieces[id];
    return is_plain(w, (int64_t)id) && p.size > 0 && !w->hidden[id] && weir__index_find(&w->index, p.data, p.size) == (int64_t)id;
}

/* made[rank]: the piece whose last merge it is, + 1. */
static int merge_all(work *w, uint32_t *made, bool *same, weir_error **error) {
    int code = WEIR_OK;
    for (size_t i = 0; i < w->v->size && !code && *same; i++) {
        if (!is_first(w, i))
            continue;
        code = merge_piece(w, i, same, error);
        if (!code && w->last != WEIR__NONE)
            made[w->last] = (uint32_t)i + 1;
    }
    return code;
}

int weir__scores_of_merges(weir_system *s, const weir__vocab *v, float *scores, bool *same, weir_error **error) {
    work w;
    uint32_t *made = NULL, place = 0;
    int code = work_init(&w, s, v, error);
    w.merges = v->merges;
    w.n = v->n_merges;
    *same = !code && w.n < 1 << 24 && set_rules(&w, error, &code);
    if (*same && !(made = weir__alloc(s, (w.n + 1) * sizeof *made)))
        code = no_memory(v, error);
    if (!code && *same)
        code = merge_all(&w, made, same, error);
    if (!code && *same) {
        for (size_t i = 0; i < v->size; i++)
            scores[i] = -(float)w.n;
        for (size_t rank = 0; rank < w.n; rank++)
            if (made[rank])
                scores[made[rank] - 1] = -(float)place++;
    }
    weir__free(s, made);
    work_fini(&w);
    return code;
}

/* ---- the other way ---- */

typedef struct split {
    double score;
    uint32_t id, left; /* bytes of the left part */
} split;

static int by_score(const void *a, const void *b) {
    const split *x = a, *y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return x->id != y->id ? (x->id < y->id ? -1 : 1) : x->left < y->left ? -1 : x->left > y->left;
}

typedef struct splits {
    split *data;
    size_t n, room;
    uint64_t looked; /* bytes */
} splits;

/* The ways to make a piece of two. */
static int split_piece(work *w, splits *list, size_t id) {
    weir__string p = w->v->pieces[id];
    for (size_t at = step_at(p, 0); at < p.size; at += step_at(p, at)) {
        list->looked += p.size;
        if (!is_plain(w, weir__index_find(&w->index, p.data, at)) || !is_plain(w, weir__index_find(&w->index, p.data + at, p.size - at)))
            continue;
        if (weir__grow(w->system, &list->data, &list->room, list->n + 1, sizeof *list->data))
            return WEIR_ENOMEM;
        list->data[list->n++] = (split){(double)(float)w->v->scores[id], (uint32_t)id, (uint32_t)at};
    }
    return WEIR_OK;
}

static int split_all(work *w, splits *list, bool *same, weir_error **error) {
    for (size_t i = 0; i < w->v->size && *same; i++) {
        if (!is_first(w, i))
            continue;
        if (split_piece(w, list, i))
            return no_memory(w->v, error);
        *same = list->looked < MOST_SPLITS && list->n < WEIR_MAX_MERGES && w->v->scores[i] == w->v->scores[i];
    }
    qsort(list->data, list->n, sizeof *list->data, by_score);
    return WEIR_OK;
}

/* How often a text repeats its first character; 0: it has others too. */
static size_t run_of(weir__string p, size_t width) {
    for (size_t at = width; at < p.size; at++)
        if (p.data[at] != p.data[at - width])
            return 0;
    return p.size % width == 0 ? p.size / width : 0;
}

static uint32_t any_pair(const void *data, const weir__merge *m, uint32_t left, uint32_t right) {
    const work *w = data;
    uint32_t begin = w->starts[left], end = w->starts[m->symbols[right].next];
    int64_t id = weir__index_find(&w->index, w->text.data + begin, end - begin);
    return is_plain(w, id) ? (uint32_t)id : WEIR__NONE;
}

/* Where the symbols are that merging leaves of w->text, as a bit a symbol at which one begins. */
static int cuts_of(work *w, const weir__merge_rules *rules, bool *cuts, weir_error **error) {
    if (set_symbols(w))
        return no_memory(w->v, error);
    memset(cuts, 0, (4 * MOST_RUN + 1) * sizeof *cuts);
    weir__merge_run(&w->merge, rules);
    for (uint32_t at = 0; at < w->merge.count; at = w->merge.symbols[at].next)
        cuts[at] = true;
    return WEIR_OK;
}

/* Merges every run of the character up to four times the longest piece both ways: by rank, and leftmost first. Longer ones repeat what these do. */
static int compare_runs(work *w, weir__string character, size_t longest, bool *same, weir_error **error) {
    bool ranked[4 * MOST_RUN + 1], leftmost[4 * MOST_RUN + 1];
    char *text = weir__alloc(w->system, 4 * longest * character.size + 1);
    uint32_t *equal = weir__alloc(w->system, w->v->size * sizeof *equal);
    int code = text && equal ? WEIR_OK : no_memory(w->v, error);
    for (size_t n = 1; n <= 4 * longest && !code && *same; n++) {
        memcpy(text + (n - 1) * character.size, character.data, character.size);
        w->text = (weir__string){text, n * character.size};
        code = cuts_of(w, &(weir__merge_rules){.pair = pair, .data = w, .result = w->results}, ranked, error);
        if (!code)
            code = cuts_of(w, &(weir__merge_rules){.pair = any_pair, .data = w, .priority = equal}, leftmost, error);
        *same &= !code && memcmp(ranked, leftmost, sizeof ranked) == 0;
    }
    weir__free(w->system, text);
    weir__free(w->system, equal);
    return code;
}

/* Between equal scores the leftmost pair is joined first, which ranks cannot say. Where all such pieces are one character again and again (SentencePiece's spaces), and
 * nothing else is made of them, ranks may do the same. */
static int check_tie(work *w, const splits *list, double score, bool *same, weir_error **error) {
    weir__string character = {NULL, 0};
    size_t longest = 0;
    for (size_t i = 0; i < list->n && *same; i++) {
        weir__string p = w->v->pieces[list->data[i].id];
        if (list->data[i].score != score)
            continue;
        if (!character.data)
            character = (weir__string){p.data, step_at(p, 0)};
        size_t n = memcmp(p.data, character.data, character.size) == 0 ? run_of(p, character.size) : 0;
        longest = n > longest ? n : longest;
        *same = n > 1 && n <= MOST_RUN;
    }
    for (size_t i = 0; i < list->n && *same; i++) {
        weir__merge_pair m = w->merges[i];
        if (list->data[i].score == score)
            continue;
        for (int side = 0; side < 2 && *same; side++) {
            weir__string part = side ? m.right : m.left;
            *same = part.size <= character.size || memcmp(part.data, character.data, character.size) != 0 || !run_of(part, character.size);
        }
    }
    return *same ? compare_runs(w, character, longest, same, error) : WEIR_OK;
}

static int check_ties(work *w, const splits *list, const uint32_t *made, bool *same, weir_error **error) {
    const split *before = NULL, *tied = NULL;
    int code = WEIR_OK;
    for (size_t i = 0; i < list->n && !code && *same; i++) {
        if (!made[i])
            continue;
        if (before && before->score == list->data[i].score && !(tied && tied->score == before->score)) {
            tied = before;
            code = check_tie(w, list, tied->score, same, error);
        }
        before = &list->data[i];
    }
    return code;
}

static int check_splits(work *w, const splits *list, bool *same, weir_error **error) {
    uint32_t *made = weir__alloc(w->system, (list->n + 1) * sizeof *made);
    int code = made ? WEIR_OK : no_memory(w->v, error);
    if (!code)
        *same = set_rules(w, error, &code);
    if (!code && *same)
        code = merge_all(w, made, same, error);
    if (!code && *same)
        code = check_ties(w, list, made, same, error);
    weir__free(w->system, made);
    return code;
}

int weir__merges_of_scores(weir_system *s, const weir__vocab *v, weir__merge_pair **merges, size_t *n, bool *same, weir_error **error) {
    work w;
    splits list = {0};
    *merges = NULL;
    *same = v->scores != NULL;
    int code = work_init(&w, s, v, error);
    if (!code && *same)
        code = split_all(&w, &list, same, error);
    if (!code && *same && !(*merges = weir__alloc(s, (list.n + 1) * sizeof **merges)))
        code = no_memory(v, error);
    for (size_t i = 0; i < list.n && *merges; i++) {
        weir__string p = v->pieces[list.data[i].id];
        size_t left = list.data[i].left;
        (*merges)[i] = (weir__merge_pair){{p.data, left}, {p.data + left, p.size - left}};
    }
    w.merges = *merges;
    w.n = *n = list.n;
    if (!code && *same)
        code = check_splits(&w, &list, same, error);
    weir__free(s, list.data);
    work_fini(&w);
    return code;
}
