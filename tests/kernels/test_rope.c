/* rope_table against libm, rope_store against the definition: rotated queries, keys and values where the block table says. */
#include "helper_reference.h"

#include <math.h>

static void check_table(int level, int positions, int dim, double base, int every) {
    float *t = poisoned((size_t)positions * (size_t)dim * sizeof *t);
    double frequency[512];
    weir_rope_frequencies(&(weir_rope){.base = base, .dim = dim}, frequency);
    weir_k_rope_table a = {t, positions, dim, frequency, 1};
    run_kernel(level, WEIR_K_rope_table, &a, 3);
    for (int p = 0; p < positions; p += every)
        for (int i = 0; i < dim / 2; i++) {
            double angle = p * pow(base, -2.0 * i / dim);
            const float *at = t + ((size_t)p * (size_t)dim / 2 + (size_t)i) * 2;
            if (fabs((double)at[0] - cos(angle)) > 6.1e-8 || fabs((double)at[1] - sin(angle)) > 6.1e-8)
                fail_msg("position %d, pair %d: %a %a", p, i, (double)at[0], (double)at[1]);
        }
    free(t);
}

static void tables_are_cosines_and_sines(void **state) {
    need_level(state);
    check_table(level_of(state), 3000, 64, 10000, 1);
    check_table(level_of(state), 300, 8, 10000, 1);
    check_table(level_of(state), 300, 128, 500000, 1);
    check_table(level_of(state), 300, 16, 1, 1);
}

static void angles_of_a_million_are_reduced_exactly(void **state) {
    need_level(state);
    check_table(level_of(state), 1000000, 4, 1.5, 997);
}

static void tables_are_the_same_at_every_level(void **state) {
    need_level(state);
    float a[64 * 100], b[64 * 100];
    double frequency[32];
    weir_rope_frequencies(&(weir_rope){.base = 100000, .dim = 64}, frequency);
    weir_k_rope_table one = {a, 100, 64, frequency, 1}, two = {b, 100, 64, frequency, 1};
    run_kernel(WEIR_CPU_GENERIC, WEIR_K_rope_table, &one, 1);
    run_kernel(level_of(state), WEIR_K_rope_table, &two, 4);
    assert_memory_equal(a, b, sizeof a);
}

static void tables_are_scaled_before_they_are_rounded(void **state) {
    need_level(state);
    float t[200 * 8];
    double frequency[4], scale = 1.0 + 0.1 * log(4.0);
    weir_rope_frequencies(&(weir_rope){.base = 10000, .dim = 8}, frequency);
    weir_k_rope_table a = {t, 200, 8, frequency, scale};
    run_kernel(level_of(state), WEIR_K_rope_table, &a, 2);
    for (int p = 0; p < 200; p++)
        for (int i = 0; i < 4; i++) {
            double angle = p * frequency[i];
            assert_true(fabs((double)t[p * 8 + 2 * i] - scale * cos(angle)) < 7e-8);
            assert_true(fabs((double)t[p * 8 + 2 * i + 1] - scale * sin(angle)) < 7e-8);
        }
}

enum { HEADS = 3, KV_HEADS = 2, ROWS = 5, LD = 1800 };

typedef struct rope_case {
    int dim, rope_dim, type;
    bool norms;
} rope_case;

static float stored(int type, float f) {
    return type == WEIR_F16 ? ref_from_f16(ref_to_f16(f)) : f;
}
static float pool_at(int type, const void *pool, size_t i) {
    return type == WEIR_F16 ? ref_from_f16(((const uint16_t *)pool)[i]) : ((const float *)pool)[i];
}

static void rotate(float *x, int rope_dim, const float *angles) {
    for (int i = 0; i < rope_dim / 2; i++) {
        float a = x[i], b = x[i + rope_dim / 2], c = angles[2 * i], s = angles[2 * i + 1], bs = b * s, as = a * s;
        x[i] = fmaf(a, c, -bs);
        x[i + rope_dim / 2] = fmaf(b, c, as);
    }
}

/* Two sequences, blocks out of order, a tile in the middle of a pass. */
static void check_store(int level, const rope_case *c) {
    rng r = {(uint64_t)c->dim};
    const int32_t slot[7] = {9, 9, 0, 0, 0, 1, 1}, position[7] = {0, 0, 31, 32, 33, 0, 70}, blocks[6] = {4, 2, 5, 1, 0, 3};
    int padded = (c->dim + 15) / 16 * 16, q_floats = HEADS * c->dim, k_floats = KV_HEADS * c->dim;
    float *table = zeroed(128 * (size_t)c->rope_dim * 4 + 4), qkv[ROWS * LD], want[ROWS * LD];
    double frequency[128];
    weir_rope_frequencies(&(weir_rope){.base = 10000, .dim = c->rope_dim}, frequency);
    weir_k_rope_table t = {table, 128, c->rope_dim, frequency, 1};
    if (c->rope_dim)
        run_kernel(level, WEIR_K_rope_table, &t, 1);
    for (int i = 0; i < ROWS * LD; i++)
        qkv[i] = want[i] = rng_normal(&r);
    size_t size = (size_t)(6 * KV_HEADS * 32 * padded) * 4;
    void *k = poisoned(size), *v = poisoned(size);
    weir_step step = {
        .rows = 7, .tile_first = 2, .tile_rows = ROWS, .blocks_per_sequence = 3, .slot = slot, .position = position, .blocks = blocks};
    weir_k_rope_store a = {.step = &step,
                           .qkv = qkv,
                           .ld = LD,
                           .k_offset = q_floats,
                           .v_offset = q_floats + k_floats,
                           .heads = HEADS,
                           .rope_dim = c->rope_dim,
                           .positions = 128,
                           .table = table,
                           .kv = {k, v, c->type, KV_HEADS, c->dim, 0}};
    float norms[2 * 256 + 3], *q_norm = norms + 3, *k_norm = q_norm + c->dim;
    void *base = norms;
    for (int i = 0; i < 2 * c->dim; i++)
        q_norm[i] = 1 + rng_float(&r);
    if (c->norms) {
        a.norm_base = &base;
        a.q_norm = 3 * sizeof(float);
        a.k_norm = (size_t)(3 + c->dim) * sizeof(float);
        a.norm_eps = 1e-6f;
    }
    run_kernel(level, WEIR_K_rope_store, &a, 2);
    for (int row = 0; row < ROWS; row++) {
        int p = position[row + 2];
        for (int h = 0; h < HEADS + KV_HEADS; h++) {
            float *head = want + row * LD + h * c->dim;
            if (c->norms)
                ref_rmsnorm(head, h < HEADS ? q_norm : k_norm, c->dim, 1e-6f, head);
            rotate(head, c->rope_dim, table + p * c->rope_dim);
        }
        assert_same_bits(qkv + row * LD, want + row * LD, (size_t)q_floats, "rotated queries");
        for (int h = 0; h < KV_HEADS; h++) {
            int block = blocks[slot[row + 2] * 3 + p / 32] * KV_HEADS + h;
            for (int d = 0; d < padded; d++) {
                float value = d < c->dim ? stored(c->type, want[row * LD + q_floats + k_floats + h * c->dim + d]) : 0;
                float got = pool_at(c->type, v, (size_t)((block * 32 + p % 32) * padded + d));
                assert_same_bits(&got, &value, 1, "stored value");
                if (d >= c->dim)
                    continue;
                value = stored(c->type, want[row * LD + q_floats + h * c->dim + d]);
                got = pool_at(c->type, k, (size_t)((block * c->dim + d) * 32 + p % 32));
                assert_same_bits(&got, &value, 1, "stored key");
            }
        }
    }
    free(table);
    free(k);
    free(v);
}

static void rotated_rows_are_stored_where_the_table_says(void **state) {
    need_level(state);
    check_store(level_of(state), &(rope_case){16, 16, WEIR_F16, false});
    check_store(level_of(state), &(rope_case){16, 8, WEIR_F32, false});
    check_store(level_of(state), &(rope_case){8, 8, WEIR_F16, false});
    check_store(level_of(state), &(rope_case){24, 24, WEIR_F32, false});
    check_store(level_of(state), &(rope_case){20, 0, WEIR_F16, false});
}

static void heads_are_normed_before_they_are_rotated(void **state) {
    need_level(state);
    check_store(level_of(state), &(rope_case){16, 16, WEIR_F16, true});
    check_store(level_of(state), &(rope_case){24, 8, WEIR_F32, true});
    check_store(level_of(state), &(rope_case){20, 20, WEIR_F32, true});
    check_store(level_of(state), &(rope_case){256, 128, WEIR_F16, true});
}

int main(void) {
    const struct CMUnitTest tests[] = {
        EACH_LEVEL(tables_are_cosines_and_sines),
        EACH_LEVEL(angles_of_a_million_are_reduced_exactly),
        EACH_LEVEL(tables_are_the_same_at_every_level),
        EACH_LEVEL(tables_are_scaled_before_they_are_rounded),
        EACH_LEVEL(rotated_rows_are_stored_where_the_table_says),
        EACH_LEVEL(heads_are_normed_before_they_are_rotated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
