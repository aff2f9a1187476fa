/* attention.c: causal attention over a paged KV pool. A row's positions are cut at absolute multiples of 256 into splits; each split has a softmax of its
 * own (largest score, 16 strided partial sums of the weights, unnormalised values), and splits are merged in ascending order. Up to PARTIAL_ROWS rows the
 * splits are spread over threads and meet in `partial`; beyond that a thread runs all splits of its rows. Both do the same arithmetic on the same numbers.
 *
 * Scores are products with q * scale. A row sees positions [from, to): to is its own position + 1, from is 0 or as far back as the window reaches. Blocks
 * that no row sees are left alone, a lane that a row does not see is masked before anything looks at it, and its value is never read. */
#include "activation.h"
#include "attention_block.h"

#include <math.h>

enum {
    QUERIES = 24,
    MOST_ROWS = 8,
    SHARED = 5
}; /* queries and rows that share KV blocks; from SHARED queries on a block is widened to float once */

/* Queries (row, head) that share one KV head of one sequence, and what is known of them within one split. */
typedef struct group {
    const weir_k_attention *a;
    int first_row, rows; /* in the tile; same sequence, positions ascend */
    int first_head, heads, kv_head;
    int from[MOST_ROWS], to[MOST_ROWS]; /* what each row sees */
    int dim, padded;
    _Alignas(64) float q[QUERIES * MAX_HEAD];   /* [rows * heads][dim], scaled */
    _Alignas(64) float scores[QUERIES * SPLIT]; /* then weights */
    _Alignas(64) float out[QUERIES * MAX_HEAD]; /* [rows * heads][padded] of this split */
    float largest[QUERIES], sum[QUERIES];
    _Alignas(64) float block[KV_BLOCK * MAX_HEAD]; /* a KV block as float: a vector that crosses a cache line costs two loads */
} group;

static int row_position(const weir_k_attention *a, int row) {
    return a->step->position[a->step->tile_first + row];
}

/* The first position that a row sees. */
static int row_first(const weir_k_attention *a, int row) {
    return a->window ? max_int(row_position(a, row) - a->window + 1, 0) : 0;
}

typedef struct range {
    int from, to; /* from >= to: nothing */
} range;

/* What a row sees of positions [start, start + size), counted from start. */
static range seen(const group *g, int row, int start, int size) {
    return (range){max_int(g->from[row] - start, 0), min_int(g->to[row] - start, size)};
}

/* The rows that see something of positions [start, start + size): positions ascend, so they stand together. */
static range rows_at(const group *g, int start, int size) {
    range r = {0, g->rows};
    while (r.from < r.to && g->to[r.from] <= start)
        r.from++;
    while (r.from < r.to && g->from[r.to - 1] >= start + size)
        r.to--;
    return r;
}

static void take_rows(group *g, int first_row, int rows) {
    g->first_row = first_row;
    g->rows = rows;
    for (int r = 0; r < rows; r++) {
        g->from[r] = row_first(g->a, first_row + r);
        g->to[r] = row_position(g->a, first_row + r) + 1;
    }
    vec16 scale = vec16_set1(g->a->scale);
    for (int i = 0; i < g->rows * g->heads; i++) {
        const float *q =
            g->a->q + (size_t)(g->first_row + i / g->heads) * (size_t)g->a->ldq + (size_t)(g->first_head + i % g->heads) * (size_t)g->dim;
        for (int d = 0; d < g->dim; d += 16)
            vec16_store_n(g->q + i * g->dim + d, vec16_mul(vec16_load_n(q + d, g->dim - d), scale), g->dim - d);
    }
}

/* The group's KV head in block b of the whole sequence; `floats` per head and block. */
static const void *kv_block(const group *g, const void *pool, int b, size_t floats) {
    const weir_step *s = g->a->step;
    size_t block = (size_t)s->blocks[(size_t)s->slot[s->tile_first + g->first_row] * (size_t)s->blocks_per_sequence + (size_t)b];
    size_t at = (block * (size_t)g->a->kv.kv_heads + (size_t)g->kv_head) * floats;
    return (const uint8_t *)pool + at * (g->a->kv.type == WEIR_F16 ? 2 : 4);
}

/* The block itself, or its floats when enough queries share it. */
static const void *shared_block(group *g, const void *block, int floats, int queries, bool *f16) {
    *f16 = g->a->kv.type == WEIR_F16;
    if (!*f16 || queries < SHARED)
        return block;
    for (int i = 0; i < floats; i += 16)
        vec16_store(g->block + i, vec16_load_f16((const uint16_t *)block + i));
    *f16 = false;
    return g->block;
}

/* Scores of positions `at` of the split that are not in r become nothing. */
INLINE vec16 visible(vec16 s, range r, int at, vec16 none) {
    s = vec16_select(mask16_below(r.to - at), s, none);
    return at < r.from ? vec16_select(mask16_below(r.from - at), none, s) : s;
}

/* Positions r of a split. */
static void softmax(group *g, int query, range r) {
    float *scores = g->scores + query * SPLIT, cap = g->a->softcap;
    vec16 none = vec16_set1(-INFINITY), largest = none, sum = vec16_zero();
    int first = r.from / 16 * 16;
    for (int i = first; i < r.to && cap > 0; i += 16)
        vec16_store(scores + i, vec16_softcap(vec16_load(scores + i), vec16_set1(cap)));
    for (int i = first; i < r.to; i += 16) {
        vec16 s = visible(vec16_load(scores + i), r, i, none);
        largest = vec16_max(largest, s);
        vec16_store(scores + i, s);
    }
    g->largest[query] = vec16_max_lane(largest);
    largest = vec16_set1(g->largest[query]);
    for (int i = first; i < r.to; i += 16) {
        vec16 weight = vec16_exp(vec16_sub(vec16_load(scores + i), largest));
        sum = vec16_add(sum, weight);
        vec16_store(scores + i, weight);
    }
    g->sum[query] = vec16_sum(sum);
}

/* Rows of the group that see something of block b of a split, and where that block begins. */
typedef struct place {
    range rows;
    int split, b, start;
} place;
static place place_of(const group *g, int split, int b) {
    int start = split * SPLIT + b * KV_BLOCK;
    return (place){rows_at(g, start, KV_BLOCK), split, b, start};
}

static void add_scores(group *g, place at) {
    bool f16;
    int query = at.rows.from * g->heads, queries = (at.rows.to - at.rows.from) * g->heads, size = g->dim * KV_BLOCK;
    const void *k = shared_block(g, kv_block(g, g->a->kv.k, at.start / KV_BLOCK, (size_t)size), size, queries, &f16);
    block_scores(k, f16, g->q + query * g->dim, g->dim, queries, g->scores + query * SPLIT + at.b * KV_BLOCK);
}

/* Adds positions r of a block's values to the sums of some rows. Not inlined: three callers, one copy of the product. */
static __attribute__((noinline)) void add_range(group *g, const void *v, bool f16, int b, range rows, range r) {
    int query = rows.from * g->heads;
    if (r.from < r.to)
        block_values((const uint8_t *)v + (size_t)(r.from * g->padded) * (f16 ? 2 : 4), f16,
                     g->scores + query * SPLIT + b * KV_BLOCK + r.from, r.to - r.from, g->padded, (rows.to - rows.from) * g->heads,
                     g->out + query * g->padded);
}

/* Values of one block, for every row in ascending order: what a row sees before all see it, what all see, what a row sees after that. */
static void add_values(group *g, place at) {
    bool f16;
    int queries = (at.rows.to - at.rows.from) * g->heads, size = KV_BLOCK * g->padded;
    const void *v = shared_block(g, kv_block(g, g->a->kv.v, at.start / KV_BLOCK, (size_t)size), size, queries, &f16);
    range first = seen(g, at.rows.from, at.start, KV_BLOCK), last = seen(g, at.rows.to - 1, at.start, KV_BLOCK);
    range all = last.from < first.to ? (range){last.from, first.to} : (range){KV_BLOCK, KV_BLOCK};
    for (int r = at.rows.from; r < at.rows.to && first.from < all.from; r++) {
        range own = seen(g, r, at.start, KV_BLOCK);
        add_range(g, v, f16, at.b, (range){r, r + 1}, (range){own.from, min_int(own.to, all.from)});
    }
    add_range(g, v, f16, at.b, at.rows, all);
    for (int r = at.rows.from; r < at.rows.to && last.to > all.to; r++) {
        range own = seen(g, r, at.start, KV_BLOCK);
        add_range(g, v, f16, at.b, (range){r, r + 1}, (range){max_int(own.from, all.to), own.to});
    }
}

/* One split of the rows that see something of it: fills largest, sum and out of their queries. */
static void run_split(group *g, int split, range rows) {
    int start = split * SPLIT, query = rows.from * g->heads, queries = (rows.to - rows.from) * g->heads;
    int first = seen(g, rows.from, start, SPLIT).from / KV_BLOCK,
        blocks = (seen(g, rows.to - 1, start, SPLIT).to + KV_BLOCK - 1) / KV_BLOCK;
    for (int b = first; b < blocks; b++) {
        place at = place_of(g, split, b);
        if (at.rows.from < at.rows.to)
            add_scores(g, at);
    }
    for (int i = query; i < query + queries; i++)
        softmax(g, i, seen(g, i / g->heads, start, SPLIT));
    memset(g->out + query * g->padded, 0, (size_t)(queries * g->padded) * sizeof *g->out);
    for (int b = first; b < blocks; b++) {
        place at = place_of(g, split, b);
        if (at.rows.from < at.rows.to)
            add_values(g, at);
    }
}

/* ---- merging ---- */

static float exp_one(float x) {
    float t[16];
    vec16_store(t, vec16_exp(vec16_set1(x)));
    return t[0];
}

/* A row's head: its first split is copied, each later one is folded in. */
typedef struct merged {
    _Alignas(64) float out[MAX_HEAD];
    float largest, sum;
} merged;

static void merge(merged *m, bool first, float largest, float sum, const float *out, int padded) {
    if (first) {
        m->largest = largest;
        m->sum = sum;
        memcpy(m->out, out, (size_t)padded * sizeof *out);
        return;
    }
    float most = m->largest > largest ? m->largest : largest, old = exp_one(m->largest - most), add = exp_one(largest - most);
    m->largest = most;
    m->sum = fmaf(m->sum, old, sum * add);
    vec16 old16 = vec16_set1(old), add16 = vec16_set1(add);
    for (int d = 0; d < padded; d += 16)
        vec16_store(m->out + d, vec16_fma(vec16_load(m->out + d), old16, vec16_mul(vec16_load(out + d), add16)));
}

static void put(const weir_k_attention *a, const merged *m, int row, int head) {
    int dim = a->kv.dim;
    float *out = a->out + (size_t)row * (size_t)(a->heads * dim) + (size_t)(head * dim);
    vec16 sum = vec16_set1(m->sum);
    for (int d = 0; d < dim; d += 16)
        vec16_store_n(out + d, vec16_div(vec16_load(m->out + d), sum), dim - d);
}

/* ---- the kernels ---- */

/* How heads that share a KV head are cut into groups. */
typedef struct cut {
    int heads, parts; /* heads of a part (the last may have fewer), parts of a KV head */
} cut;
static cut cut_of(const weir_k_attention *a) {
    int shared = a->heads / a->kv.kv_heads, heads = min_int(shared, QUERIES);
    return (cut){heads, (shared + heads - 1) / heads};
}

/* Sets the group's heads to part `index` of kv_heads * parts. */
static void group_heads(group *g, const weir_k_attention *a, cut c, int index) {
    int shared = a->heads / a->kv.kv_heads, part = index % c.parts;
    g->a = a;
    g->dim = a->kv.dim;
    g->padded = (int)pad16((size_t)a->kv.dim);
    g->kv_head = index / c.parts;
    g->first_head = g->kv_head * shared + part * c.heads;
    g->heads = min_int(c.heads, shared - part * c.heads);
}

static float *partial_at(const weir_k_attention *a, int row, int head, int split) {
    size_t index = ((size_t)row * (size_t)a->heads + (size_t)head) * (size_t)a->splits + (size_t)split;
    return a->partial + index * partial_floats(a->kv.dim);
}

static void one_split(group *g, int row, int split) {
    take_rows(g, row, 1);
    run_split(g, split, (range){0, 1});
    for (int h = 0; h < g->heads; h++) {
        float *p = partial_at(g->a, row, g->first_head + h, split);
        memcpy(p, g->out + h * g->padded, (size_t)g->padded * sizeof *p);
        p[g->padded] = g->largest[h];
        p[g->padded + 1] = g->sum[h];
    }
}

/* Splits that a row sees something of. */
static range row_splits(const weir_k_attention *a, int row) {
    return (range){row_first(a, row) / SPLIT, row_position(a, row) / SPLIT + 1};
}

/* Few rows: a chunk is one split of one row and one group of heads. */
static void few_rows(const weir_k_attention *a, group *g, int rows, const weir_work *work) {
    cut c = cut_of(a);
    int parts = a->kv.kv_heads * c.parts, splits = 0;
    for (int r = 0; r < rows; r++)
        splits = max_int(splits, row_splits(a, r).to - row_splits(a, r).from);
    for (uint32_t i; i = weir_work_take(work), i < (uint32_t)(rows * splits * parts);) {
        int part = (int)i % parts, row = (int)i / parts / splits;
        range all = row_splits(a, row);
        int split = all.from + (int)i / parts % splits;
        if (split >= all.to)
            continue;
        group_heads(g, a, c, part);
        one_split(g, row, split);
    }
}

static void all_splits(group *g, merged *m) {
    int last = (g->to[g->rows - 1] - 1) / SPLIT;
    for (int split = g->from[0] / SPLIT; split <= last; split++) {
        range rows = rows_at(g, split * SPLIT, SPLIT);
        if (rows.from >= rows.to)
            continue;
        run_split(g, split, rows);
        for (int i = rows.from * g->heads; i < rows.to * g->heads; i++)
            merge(&m[i], split == g->from[i / g->heads] / SPLIT, g->largest[i], g->sum[i], g->out + i * g->padded, g->padded);
    }
    for (int i = 0; i < g->rows * g->heads; i++)
        put(g->a, &m[i], g->first_row + i / g->heads, g->first_head + i % g->heads);
}

/* Rows from `row` on, before `end`, of the same sequence. */
static int same_sequence(const weir_step *s, int row, int end) {
    int n = 1;
    while (row + n < end && s->slot[s->tile_first + row + n] == s->slot[s->tile_first + row])
        n++;
    return n;
}

/* Many rows: a chunk is some rows and one group of heads; the last rows, which have most to do, come first. */
static void many_rows(const weir_k_attention *a, group *g, int rows, const weir_work *work) {
    merged m[QUERIES];
    cut c = cut_of(a);
    int parts = a->kv.kv_heads * c.parts, step = min_int(MOST_ROWS, QUERIES / c.heads), blocks = (rows + step - 1) / step;
    for (uint32_t i; i = weir_work_take(work), i < (uint32_t)(blocks * parts);) {
        int row = (blocks - 1 - (int)i / parts) * step, end = min_int(row + step, rows);
        group_heads(g, a, c, (int)i % parts);
        for (; row < end; row += g->rows) {
            take_rows(g, row, same_sequence(a->step, row, end));
            all_splits(g, m);
        }
    }
}

void WEIR__AT(attention)(const void *args, const weir_work *work) {
    const weir_k_attention *a = args;
    group g;
    int rows = a->step->tile_rows;
    if (rows <= PARTIAL_ROWS)
        few_rows(a, &g, rows, work);
    else
        many_rows(a, &g, rows, work);
}

static void merge_row(const weir_k_attention *a, int row) {
    merged m;
    int padded = (int)pad16((size_t)a->kv.dim);
    for (int h = 0; h < a->heads; h++) {
        range all = row_splits(a, row);
        for (int split = all.from; split < all.to; split++) {
            const float *p = partial_at(a, row, h, split);
            merge(&m, split == all.from, p[padded], p[padded + 1], p, padded);
        }
        put(a, &m, row, h);
    }
}

void WEIR__AT(attention_merge)(const void *args, const weir_work *work) {
    const weir_k_attention *a = args;
    int rows = a->step->tile_rows, width = a->heads * a->kv.dim;
    if (rows > PARTIAL_ROWS && !a->acts)
        return;
    for (uint32_t c; c = weir_work_take(work), c < (uint32_t)rows;) {
        int row = (int)c;
        if (rows <= PARTIAL_ROWS)
            merge_row(a, row);
        if (a->acts)
            act_quantise(a->out + (size_t)row * (size_t)width, width, a->acts_block,
                         (uint8_t *)a->acts + (size_t)row * weir_act_size(a->acts_block, width));
    }
}
