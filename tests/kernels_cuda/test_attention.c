/* Attention over blocks, split and merged for few rows and tiled for many, against the definition in doubles. What no row sees is NaN, and its block's number nonsense. */
#include "launch.h"

#include <math.h>

enum { MAX_POSITIONS = 640, NO_BLOCK = 1 << 28 };

typedef struct shape {
    int type, heads, kv_heads, dim, window;
    float cap;
    int rows, sequences, last; /* rows of each sequence, ending at position last */
} shape;

typedef struct world {
    shape s;
    weir_step step;
    int32_t *slot, *position, *blocks;
    float *q, *k, *v; /* k, v: [sequence][position][kv_heads * dim], as stored */
    void *pool_k, *pool_v;
    float *out;
    double *want;
} world;

static int first_seen(const shape *s, int position) {
    return s->window && position - s->window + 1 > 0 ? position - s->window + 1 : 0;
}

static void store(const world *w, void *pool, size_t at, float *value) {
    if (w->s.type == WEIR_F16) {
        ((uint16_t *)pool)[at] = ref_to_f16(*value);
        *value = ref_from_f16(ref_to_f16(*value));
    } else {
        ((float *)pool)[at] = *value;
    }
}

/* Fills the blocks that some row of a sequence sees, from the first position seen on. */
static void fill_sequence(world *w, int sequence, rng *r) {
    const shape *s = &w->s;
    int per = w->step.blocks_per_sequence, from = first_seen(s, s->last - s->rows + 1), width = s->kv_heads * s->dim;
    for (int b = 0; b < per; b++)
        w->blocks[sequence * per + b] = b < from / 32 || b > s->last / 32 ? NO_BLOCK : (b * 7 + sequence) % per + sequence * per;
    for (int p = from; p <= s->last; p++)
        for (int i = 0; i < width; i++) {
            size_t block = (size_t)w->blocks[sequence * per + p / 32], head = block * (size_t)s->kv_heads + (size_t)(i / s->dim);
            size_t at = (head * 32 + (size_t)(p % 32)) * (size_t)s->dim + (size_t)(i % s->dim);
            size_t plain = ((size_t)sequence * MAX_POSITIONS + (size_t)p) * (size_t)width + (size_t)i;
            w->k[plain] = rng_normal(r);
            w->v[plain] = rng_normal(r);
            store(w, w->pool_k, at, &w->k[plain]);
            store(w, w->pool_v, at, &w->v[plain]);
        }
}

static world world_new(shape s) {
    rng r = {(uint64_t)(s.dim + s.last * 3 + s.rows)};
    int rows = s.rows * s.sequences, per = MAX_POSITIONS / 32, width = s.kv_heads * s.dim;
    size_t pool = (size_t)(s.sequences * MAX_POSITIONS * width) * 4;
    world w = {.s = s};
    w.slot = zeros((size_t)(rows + 2) * 4);
    w.position = zeros((size_t)(rows + 2) * 4);
    w.blocks = zeros((size_t)(s.sequences * per) * 4);
    w.q = zeros((size_t)(rows * s.heads * s.dim) * 4);
    w.k = zeros(pool);
    w.v = zeros(pool);
    w.pool_k = nans(pool);
    w.pool_v = nans(pool);
    w.out = nans((size_t)(rows * s.heads * s.dim) * 4);
    w.want = zeros((size_t)(rows * s.heads * s.dim) * 8);
    w.step = (weir_step){.tile_first = 2,
                         .tile_rows = rows,
                         .tile = rows + 3,
                         .blocks_per_sequence = per,
                         .slot = w.slot,
                         .position = w.position,
                         .blocks = w.blocks};
    for (int i = 0; i < rows * s.heads * s.dim; i++)
        w.q[i] = rng_normal(&r) * 2;
    for (int i = 0; i < rows; i++) {
        w.slot[i + 2] = i / s.rows;
        w.position[i + 2] = s.last - s.rows + 1 + i % s.rows;
    }
    for (int i = 0; i < s.sequences; i++)
        fill_sequence(&w, i, &r);
    return w;
}

static double score_of(const world *w, const float *q, const float *k, double scale) {
    double sum = 0;
    for (int d = 0; d < w->s.dim; d++)
        sum += (double)q[d] * (double)k[d];
    sum *= scale;
    return w->s.cap > 0 ? (double)w->s.cap * tanh(sum / (double)w->s.cap) : sum;
}

static void expect_query(world *w, int row, int head, double scale) {
    const shape *s = &w->s;
    int position = w->position[row + 2], width = s->kv_heads * s->dim;
    size_t kv = ((size_t)w->slot[row + 2] * MAX_POSITIONS) * (size_t)width + (size_t)(head / (s->heads / s->kv_heads) * s->dim);
    const float *q = w->q + (row * s->heads + head) * s->dim;
    double sum = 0, *want = w->want + (row * s->heads + head) * s->dim;
    for (int p = first_seen(s, position); p <= position; p++) {
        double weight = exp(score_of(w, q, w->k + kv + (size_t)p * (size_t)width, scale));
        sum += weight;
        for (int d = 0; d < s->dim; d++)
            want[d] += weight * (double)w->v[kv + (size_t)p * (size_t)width + (size_t)d];
    }
    for (int d = 0; d < s->dim; d++)
        want[d] /= sum;
}

static void run_split(world *w, float scale) {
    const shape *s = &w->s;
    int splits = MAX_POSITIONS / 256 + 1, rows = w->step.tile_rows, shared = s->heads / s->kv_heads;
    float *partial = nans((size_t)(rows * s->heads * splits * WEIR_CUDA_PARTIAL_FLOATS(s->dim)) * 4);
    launch l = {(unsigned)splits, (unsigned)(s->kv_heads * WEIR_CUDA_DIV(shared, WEIR_CUDA_ATTENTION_QUERIES)), (unsigned)rows + 3,
                WEIR_CUDA_ATTENTION_THREADS, 0};
    launch merge = {(unsigned)s->heads, (unsigned)rows + 3, 1, WEIR_CUDA_MAP_THREADS, 0};
    int ldq = s->heads * s->dim;
    if (s->type == WEIR_F16)
        run_weir_attention_f16(l, &w->step, w->q, ldq, s->heads, scale, splits, w->pool_k, w->pool_v, s->kv_heads, s->dim, partial,
                               s->window, s->cap);
    else
        run_weir_attention_f32(l, &w->step, w->q, ldq, s->heads, scale, splits, w->pool_k, w->pool_v, s->kv_heads, s->dim, partial,
                               s->window, s->cap);
    run_weir_attention_merge(merge, &w->step, s->heads, splits, s->dim, partial, w->out, s->window);
}

static void run_tiled(world *w, float scale) {
    const shape *s = &w->s;
    launch l = {(unsigned)WEIR_CUDA_DIV(w->step.tile, WEIR_CUDA_TILED_ROWS) + 1, (unsigned)s->heads, 1, WEIR_CUDA_ATTENTION_THREADS,
                WEIR_CUDA_TILED_SHARED((size_t)s->dim)};
    int ldq = s->heads * s->dim;
    if (s->type == WEIR_F16)
        run_weir_attention_tiled_f16(l, &w->step, w->q, ldq, s->heads, scale, w->pool_k, w->pool_v, s->kv_heads, s->dim, w->out, s->window,
                                     s->cap);
    else
        run_weir_attention_tiled_f32(l, &w->step, w->q, ldq, s->heads, scale, w->pool_k, w->pool_v, s->kv_heads, s->dim, w->out, s->window,
                                     s->cap);
}

static void check_attention(shape s, void run(world *, float)) {
    world w = world_new(s);
    float scale = 1 / sqrtf((float)s.dim);
    int rows = w.step.tile_rows;
    for (int i = 0; i < rows * s.heads; i++)
        expect_query(&w, i / s.heads, i % s.heads, (double)scale);
    run(&w, scale);
    assert_near(w.out, w.want, (size_t)(rows * s.heads * s.dim), NEAR_SUM, "attention");
    arrays_end(NULL);
}

/* type, heads, kv_heads, dim, window, cap, rows, sequences, last position */
static const shape shapes[] = {
    {WEIR_F16, 9, 3, 64, 0, 0, 1, 1, 0},      {WEIR_F16, 9, 3, 64, 0, 0, 1, 2, 254},    {WEIR_F16, 4, 4, 80, 0, 0, 1, 1, 255},
    {WEIR_F16, 8, 1, 128, 0, 0, 2, 1, 256},   {WEIR_F32, 9, 1, 64, 0, 0, 1, 1, 256},    {WEIR_F32, 14, 2, 80, 0, 30, 3, 1, 257},
    {WEIR_F32, 2, 1, 256, 0, 0, 1, 1, 600},   {WEIR_F16, 2, 2, 30, 0, 0, 4, 1, 40},     {WEIR_F16, 6, 2, 64, 10, 0, 1, 2, 300},
    {WEIR_F32, 4, 2, 128, 33, 50, 5, 2, 262}, {WEIR_F16, 4, 2, 64, 300, 0, 2, 1, 520},  {WEIR_F16, 3, 1, 64, 0, 0, 35, 1, 34},
    {WEIR_F32, 2, 1, 80, 0, 0, 20, 2, 100},   {WEIR_F16, 2, 1, 128, 40, 0, 33, 1, 257}, {WEIR_F32, 1, 1, 256, 0, 20, 17, 1, 60},
    {WEIR_F32, 2, 1, 15, 7, 0, 5, 5, 31},
};

static void attention_in_splits_is_the_definitions(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        check_attention(shapes[i], run_split);
}

static void attention_in_tiles_is_the_definitions(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        check_attention(shapes[i], run_tiled);
}

static void attention_has_the_same_bits_in_any_order_of_threads(void **state) {
    (void)state;
    void (*const runs[])(world *, float) = {run_split, run_tiled};
    for (int i = 0; i < 2; i++) {
        world a = world_new((shape){WEIR_F16, 4, 2, 64, 0, 0, 5, 2, 270}), b = world_new(a.s);
        runs[i](&a, 0.125f);
        launch_reverse(true);
        runs[i](&b, 0.125f);
        launch_reverse(false);
        assert_same_bits(a.out, b.out, (size_t)(10 * 4 * 64), "attention");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        launch_test(attention_in_splits_is_the_definitions),
        launch_test(attention_in_tiles_is_the_definitions),
        launch_test(attention_has_the_same_bits_in_any_order_of_threads),
    };
    return cmocka_run_group_tests(tests, launch_open, launch_close);
}
