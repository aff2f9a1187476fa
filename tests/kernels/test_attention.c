/* attention and attention_merge: the bits of the literal reference for one row and many, few splits and many, any threads, any tile; pools and workspaces
 * are full of NaNs wherever nothing was stored. */
#include "helper_reference.h"
#include "helper_reference_k.h"

#include <math.h>

typedef struct shape {
    int heads, kv_heads, dim, type;
    int window;
    float softcap;
} shape;

/* A pool with `sequences` sequences of up to `context` positions, blocks shuffled. */
typedef struct pool {
    int level, context, per_sequence, padded;
    shape s;
    void *k, *v;
    int32_t *blocks;
    float *keys, *values; /* [sequence][kv_head][position][dim] as stored */
} pool;

static void pool_put(pool *p, void *to, size_t i, float f) {
    if (p->s.type == WEIR_F16)
        ((uint16_t *)to)[i] = ref_to_f16(f);
    else
        ((float *)to)[i] = f;
}

static size_t history(const pool *p, int sequence, int head, int position) {
    return (((size_t)sequence * (size_t)p->s.kv_heads + (size_t)head) * (size_t)p->context + (size_t)position) * (size_t)p->s.dim;
}

static void store(pool *p, rng *r, int sequence, int head, int position) {
    size_t block = (size_t)p->blocks[sequence * p->per_sequence + position / 32] * (size_t)p->s.kv_heads + (size_t)head,
           at = history(p, sequence, head, position);
    for (int d = 0; d < p->padded; d++) {
        float k = 2 * rng_normal(r), v = d < p->s.dim ? rng_normal(r) : 0;
        pool_put(p, p->v, (block * 32 + (size_t)(position % 32)) * (size_t)p->padded + (size_t)d, v);
        if (d >= p->s.dim)
            continue;
        pool_put(p, p->k, (block * (size_t)p->s.dim + (size_t)d) * 32 + (size_t)(position % 32), k);
        p->keys[at + (size_t)d] = p->s.type == WEIR_F16 ? ref_from_f16(ref_to_f16(k)) : k;
        p->values[at + (size_t)d] = p->s.type == WEIR_F16 ? ref_from_f16(ref_to_f16(v)) : v;
    }
}

/* Fills positions [0, lengths[i]) of each sequence; the rest stays poison. */
static void pool_open(pool *p, rng *r, int level, shape s, int sequences, const int *lengths, int context) {
    int per = (context + 31) / 32, count = sequences * per;
    *p = (pool){.level = level, .context = context, .per_sequence = per, .padded = (s.dim + 15) / 16 * 16, .s = s};
    size_t floats = (size_t)(count * s.kv_heads * 32 * p->padded), past = (size_t)(sequences * s.kv_heads * context * s.dim);
    p->k = poisoned(floats * 4);
    p->v = poisoned(floats * 4);
    p->blocks = zeroed((size_t)count * 4);
    p->keys = zeroed(past * 4);
    p->values = zeroed(past * 4);
    for (int i = 0; i < count; i++)
        p->blocks[i] = (i * 7 + 3) % count; /* counts that 7 does not divide */
    for (int q = 0; q < sequences; q++)
        for (int h = 0; h < s.kv_heads; h++)
            for (int j = 0; j < lengths[q]; j++)
                store(p, r, q, h, j);
}

static void pool_close(pool *p) {
    free(p->k);
    free(p->v);
    free(p->blocks);
    free(p->keys);
    free(p->values);
}

static void reference_row(const pool *p, const float *q, int sequence, int position, float scale, float *out) {
    int shared = p->s.heads / p->s.kv_heads, dim = p->s.dim;
    for (int h = 0; h < p->s.heads; h++) {
        size_t at = history(p, sequence, h / shared, 0);
        int from = p->s.window && position >= p->s.window ? position - p->s.window + 1 : 0;
        ref_attention(q + h * dim, p->keys + at, p->values + at, &(ref_view){from, position + 1, scale, p->s.softcap}, dim, dim,
                      out + h * dim);
    }
}

/* Rows of a pass, run in tiles of `tile` rows. */
static void compare(const pool *p, rng *r, const int32_t *slot, const int32_t *position, int rows, int tile, unsigned workers) {
    int width = p->s.heads * p->s.dim, ldq = width + 5, splits = (p->context + 255) / 256;
    float scale = 0.3f, *q = zeroed((size_t)(rows * ldq) * 4), *out = poisoned((size_t)(rows * width) * 4),
          *want = zeroed((size_t)(rows * width) * 4);
    bool blocks = width % 32 == 0;
    float *partial = poisoned(weir_attention_workspace(p->s.heads, p->s.dim, splits));
    uint8_t *acts = poisoned((size_t)rows * weir_act_size(32, width) + 64);
    uint8_t *acts_k = poisoned((size_t)rows * weir_act_size(256, width) + 64);
    for (int i = 0; i < rows * ldq; i++)
        q[i] = rng_normal(r);
    weir_step step = {.rows = rows,
                      .tile = tile,
                      .tile_rows = rows,
                      .blocks_per_sequence = p->per_sequence,
                      .slot = slot,
                      .position = position,
                      .blocks = p->blocks};
    weir_k_tile next = {&step, 0};
    for (int done = 0; done < rows; done += step.tile_rows) {
        run_kernel(p->level, WEIR_K_tile, &next, 1);
        weir_k_attention a = {.step = &step,
                              .q = q + done * ldq,
                              .ldq = ldq,
                              .heads = p->s.heads,
                              .scale = scale,
                              .splits = splits,
                              .kv = {p->k, p->v, p->s.type, p->s.kv_heads, p->s.dim, 0},
                              .partial = partial,
                              .out = out + done * width,
                              .window = p->s.window,
                              .softcap = p->s.softcap,
                              .acts = blocks ? acts + (size_t)done * weir_act_size(32, width) : NULL,
                              .acts_block = 32};
        run_kernel(p->level, WEIR_K_attention, &a, workers);
        run_kernel(p->level, WEIR_K_attention_merge, &a, workers);
        a.acts = acts_k + (size_t)done * weir_act_size(256, width);
        a.acts_block = 256;
        if (width % 256 == 0)
            run_kernel(p->level, WEIR_K_attention_merge, &a, workers);
    }
    for (int i = 0; i < rows; i++)
        reference_row(p, q + i * ldq, slot[i], position[i], scale, want + i * width);
    assert_same_bits(out, want, (size_t)(rows * width), "attention");
    if (blocks) {
        ref_act *ref = zeroed((size_t)(rows * width / 32) * sizeof *ref);
        ref_quantise(want, rows * width, ref);
        assert_same_acts(acts, ref, rows * width, "attention's activations");
        free(ref);
    }
    if (width % 256 == 0) {
        ref_act_k *ref = zeroed((size_t)(rows * width / 256) * sizeof *ref);
        ref_quantise_k(want, rows * width, ref);
        assert_same_acts_k(acts_k, ref, rows * width, "attention's activations of 256");
        free(ref);
    }
    free(q);
    free(out);
    free(want);
    free(partial);
    free(acts);
    free(acts_k);
}

/* The last `rows` positions of one sequence of `length`. */
static void last_rows(int level, shape s, int length, int rows, int tile, unsigned workers) {
    rng r = {(uint64_t)(length * 31 + rows)};
    pool p;
    int32_t slot[96] = {0}, position[96];
    pool_open(&p, &r, level, s, 1, &length, (length + 31) / 32 * 32 + 32);
    for (int i = 0; i < rows; i++)
        position[i] = length - rows + i;
    compare(&p, &r, slot, position, rows, tile, workers);
    pool_close(&p);
}

static void one_row_has_the_bits_of_the_reference(void **state) {
    need_level(state);
    static const int lengths[] = {1, 33, 255, 256, 257, 600};
    for (int i = 0; i < 6; i += case_step(2))
        for (unsigned workers = 1; workers <= 4; workers += 3) {
            last_rows(level_of(state), (shape){9, 3, 64, WEIR_F16, 0, 0}, lengths[i], 1, 1, workers);
            last_rows(level_of(state), (shape){4, 4, 8, WEIR_F32, 0, 0}, lengths[i], 1, 1, workers);
        }
}

static void many_rows_have_the_bits_of_the_reference(void **state) {
    need_level(state);
    static const int rows[] = {2, 4, 5, 33, 96};
    for (int i = 0; i < 5; i += case_step(2)) {
        last_rows(level_of(state), i < 3 ? (shape){9, 3, 64, WEIR_F16, 0, 0} : (shape){6, 2, 16, WEIR_F16, 0, 0}, 290, rows[i], rows[i], 2);
        last_rows(level_of(state), (shape){6, 1, 16, WEIR_F32, 0, 0}, 96, rows[i], rows[i], 3);
        last_rows(level_of(state), (shape){2, 2, 24, WEIR_F16, 0, 0}, i < 4 ? 530 : 100, rows[i], rows[i], 4);
    }
}

static void any_tile_gives_the_same_bits(void **state) {
    need_level(state);
    static const int tiles[] = {1, 3, 5, 11, 40};
    for (int i = 0; i < 5; i += case_step(3))
        last_rows(level_of(state), (shape){8, 2, 32, WEIR_F16, 0, 0}, 270, 40, tiles[i], 2);
}

static void wide_heads_and_large_groups_are_cut(void **state) {
    need_level(state);
    last_rows(level_of(state), (shape){2, 1, 256, WEIR_F16, 0, 0}, 300, 9, 9, 2);
    last_rows(level_of(state), (shape){50, 1, 20, WEIR_F16, 0, 0}, 70, 7, 7, 2);
    last_rows(level_of(state), (shape){50, 1, 20, WEIR_F32, 0, 0}, 70, 1, 1, 2);
}

static void sequences_of_one_pass_do_not_meet(void **state) {
    need_level(state);
    rng r = {77};
    pool p;
    const int lengths[3] = {40, 300, 7};
    const int32_t slot[12] = {1, 1, 1, 0, 2, 2, 2, 2, 2, 2, 2, 0}, position[12] = {255, 256, 299, 39, 0, 1, 2, 3, 4, 5, 6, 11};
    pool_open(&p, &r, level_of(state), (shape){6, 2, 32, WEIR_F16, 0, 0}, 3, lengths, 320);
    compare(&p, &r, slot, position, 12, 12, 3);
    compare(&p, &r, slot, position, 12, 2, 2);
    pool_close(&p);
}

static const int windows[] = {1, 2, 15, 31, 32, 33, 100, 255, 256, 257, 300, 512, 599, 600, 2000000000};
enum { WINDOWS = sizeof windows / sizeof *windows };

static void a_window_of_one_row_has_the_bits_of_the_reference(void **state) {
    need_level(state);
    for (int i = 0; i < WINDOWS; i += case_step(4)) {
        last_rows(level_of(state), (shape){9, 3, 64, WEIR_F16, windows[i], 0}, 600, 1, 1, 1 + (unsigned)i % 4);
        last_rows(level_of(state), (shape){4, 2, 20, WEIR_F32, windows[i], 0}, 256 + i, 4, 4, 2);
    }
}

static void windows_of_many_rows_have_the_bits_of_the_reference(void **state) {
    need_level(state);
    for (int i = 0; i < WINDOWS; i += case_step(4)) {
        last_rows(level_of(state), (shape){6, 2, 16, WEIR_F16, windows[i], 0}, 300, 40, 40, 2);
        last_rows(level_of(state), (shape){3, 3, 24, WEIR_F32, windows[i], 0}, 530 + i, 23, 11, 3);
    }
    last_rows(level_of(state), (shape){2, 1, 256, WEIR_F16, 40, 0}, 310, 70, 70, 2);
}

static void capped_scores_have_the_bits_of_the_reference(void **state) {
    need_level(state);
    static const int rows[] = {1, 3, 5, 40};
    for (int i = 0; i < 4; i++) {
        last_rows(level_of(state), (shape){8, 4, 32, WEIR_F16, 0, 50}, 290, rows[i], rows[i], 2);
        last_rows(level_of(state), (shape){8, 4, 20, WEIR_F32, 37, 2}, 290, rows[i], rows[i], 3);
    }
}

/* Rows of one pass whose windows lie far apart in one sequence, with others beside. */
static void windows_of_sequences_and_of_distant_rows_do_not_meet(void **state) {
    need_level(state);
    static const int chosen[] = {1, 20, 64, 300};
    const int lengths[3] = {40, 700, 7};
    const int32_t slot[12] = {1, 1, 1, 1, 1, 1, 0, 0, 2, 2, 2, 2}, position[12] = {3, 10, 240, 256, 600, 699, 11, 39, 0, 1, 2, 6};
    for (int i = 0; i < 4; i++) {
        rng r = {79};
        pool p;
        pool_open(&p, &r, level_of(state), (shape){6, 2, 32, i % 2 ? WEIR_F32 : WEIR_F16, chosen[i], 0}, 3, lengths, 704);
        compare(&p, &r, slot, position, 12, 12, 3);
        compare(&p, &r, slot, position, 12, 3, 2);
        pool_close(&p);
    }
}

/* The block table has nothing for what lies before the windows: a look there is a look at wild memory. */
static void blocks_outside_every_window_are_left_alone(void **state) {
    need_level(state);
    for (int rows = 1; rows <= 9; rows += 4) {
        rng r = {80};
        pool p;
        const int length = 600;
        int32_t slot[9] = {0}, position[9];
        pool_open(&p, &r, level_of(state), (shape){6, 2, 16, WEIR_F16, 50, 0}, 1, &length, 608);
        int first = length - rows - 49;
        for (int b = 0; b < first / 32; b++)
            p.blocks[b] = INT32_MAX;
        for (int i = 0; i < rows; i++)
            position[i] = length - rows + i;
        compare(&p, &r, slot, position, rows, rows, 2);
        pool_close(&p);
    }
}

/* What a row costs is what its window holds: chunks of work at position 1,000,000 are as many as at 1,000. */
static void a_window_far_on_is_no_more_work(void **state) {
    need_level(state);
    enum { FAR = 1000000, WINDOW = 64, HEADS = 4, DIM = 16 };
    int32_t *blocks = zeroed((FAR / 32 + 1) * sizeof *blocks), slot = 0, position = FAR;
    int splits = FAR / 256 + 1;
    float q[HEADS * DIM] = {1}, out[HEADS * DIM], *partial = zeroed(weir_attention_workspace(HEADS, DIM, splits));
    float *kv = zeroed(3 * 32 * HEADS * DIM * sizeof *kv);
    weir_step step = {
        .rows = 1, .tile_rows = 1, .blocks_per_sequence = FAR / 32 + 1, .slot = &slot, .position = &position, .blocks = blocks};
    weir_k_attention a = {.step = &step,
                          .q = q,
                          .ldq = HEADS * DIM,
                          .heads = HEADS,
                          .scale = 1,
                          .splits = splits,
                          .kv = {kv, kv, WEIR_F32, HEADS, DIM, 0},
                          .partial = partial,
                          .out = out,
                          .window = WINDOW};
    _Atomic uint32_t next = 0;
    weir_cpu_table_get(level_of(state))->run[WEIR_K_attention](&a, &(weir_work){0, 1, &next});
    assert_true(next <= 2 * HEADS + 1);
    free(blocks);
    free(partial);
    free(kv);
}

/* A later position's infinite value must not reach an earlier row, whose weight for it is zero. */
static void values_of_later_positions_never_count(void **state) {
    need_level(state);
    rng r = {78};
    pool p;
    const int length = 20;
    int32_t slot[20] = {0}, position[20];
    pool_open(&p, &r, level_of(state), (shape){3, 1, 16, WEIR_F16, 0, 0}, 1, &length, 32);
    for (int d = 0; d < 16; d++) {
        pool_put(&p, p.v, (size_t)(p.blocks[0] * 32 + 19) * 16 + (size_t)d, INFINITY);
        p.values[history(&p, 0, 0, 19) + (size_t)d] = INFINITY;
    }
    for (int i = 0; i < 20; i++)
        position[i] = i;
    compare(&p, &r, slot, position, 20, 20, 2);
    pool_close(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        EACH_LEVEL(one_row_has_the_bits_of_the_reference),
        EACH_LEVEL(many_rows_have_the_bits_of_the_reference),
        EACH_LEVEL(any_tile_gives_the_same_bits),
        EACH_LEVEL(wide_heads_and_large_groups_are_cut),
        EACH_LEVEL(sequences_of_one_pass_do_not_meet),
        EACH_LEVEL(values_of_later_positions_never_count),
        EACH_LEVEL(a_window_of_one_row_has_the_bits_of_the_reference),
        EACH_LEVEL(windows_of_many_rows_have_the_bits_of_the_reference),
        EACH_LEVEL(capped_scores_have_the_bits_of_the_reference),
        EACH_LEVEL(windows_of_sequences_and_of_distant_rows_do_not_meet),
        EACH_LEVEL(blocks_outside_every_window_are_left_alone),
        EACH_LEVEL(a_window_far_on_is_no_more_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
