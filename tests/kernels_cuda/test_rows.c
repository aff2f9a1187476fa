/* What is done row by row, against the cpu's kernels: tiles, embedding, norms, gating, soft caps, rotary tables, rotation and storing. */
#include "launch.h"

#include <math.h>

enum { CPU = WEIR_CPU_GENERIC };

static const int32_t token[8] = {0, 3, 99, -1, 16, 2, 1, 5}, slot[8] = {0, 0, 0, 1, 1, 1, 1, 0},
                     position[8] = {30, 31, 32, 0, 1, 63, 64, 65}, out_row[4] = {7, 1, 4, 2}, blocks[6] = {5, 1, 4, 0, 2, 3};

static weir_step step_of(int first, int rows) {
    return (weir_step){.rows = 8,
                       .tile = 6,
                       .tile_first = first,
                       .tile_rows = rows,
                       .outputs = 4,
                       .out_tile = 3,
                       .out_first = 1,
                       .out_rows = 3,
                       .blocks_per_sequence = 3,
                       .token = copied(token, sizeof token),
                       .slot = copied(slot, sizeof slot),
                       .position = copied(position, sizeof position),
                       .out_row = copied(out_row, sizeof out_row),
                       .blocks = copied(blocks, sizeof blocks)};
}

static launch map_over(int width, int rows) {
    return (launch){(unsigned)WEIR_CUDA_DIV(width, WEIR_CUDA_MAP_THREADS), (unsigned)rows, 1, WEIR_CUDA_MAP_THREADS, 0};
}

static launch row_each(int rows) {
    return (launch){.x = (unsigned)rows, .threads = WEIR_CUDA_MAP_THREADS};
}

static void assert_close(const float *got, const float *want, size_t n, double tolerance, const char *what) {
    double *exact = zeros(n * sizeof *exact);
    for (size_t i = 0; i < n; i++)
        exact[i] = (double)want[i];
    assert_near(got, exact, n, tolerance, what);
}

static void tile_moves_as_on_the_cpu(void **state) {
    (void)state;
    for (int32_t outputs = 0; outputs < 2; outputs++) {
        weir_step a = step_of(6, 2), b;
        a.out_first = 0, a.out_rows = 4;
        b = a;
        for (int i = 0; i < 5; i++) {
            run_weir_tile((launch){.x = 1, .threads = WEIR_CUDA_TILE_THREADS}, &a, outputs);
            run_kernel(CPU, WEIR_K_tile, &(weir_k_tile){&b, outputs}, 1);
            assert_memory_equal(&a, &b, sizeof a);
        }
    }
}

static void check_embed(int type, int n, int k, float scale) {
    rng r = {(uint64_t)type + 5};
    int weir = launch_weir_type[type];
    int32_t *history = zeros(6 * 32 * sizeof *history), *want_history = zeros(6 * 32 * sizeof *history);
    uint8_t *file = launch_weights(&r, type, n, k);
    void *packed = launch_packed(type, file, weir, n, k, 0, 0), *panels = zeros(weir_packed_size(weir, n, k));
    weir_k_pack pack = {.source = file, .w = {&panels, 0, weir, n, k}, .source_type = weir};
    run_kernel(CPU, WEIR_K_pack, &pack, 1);
    float *got = zeros((size_t)(8 * k) * sizeof *got), *want = zeros((size_t)(8 * k) * sizeof *want);
    weir_step step = step_of(1, 6);
    step.history = want_history;
    run_kernel(CPU, WEIR_K_embed, &(weir_k_embed){&step, {&panels, 0, weir, n, k}, want, scale}, 1);
    step.history = history;
    switch (type) {
#define T(name)                                                                                                                            \
    case LAUNCH_##name:                                                                                                                    \
        run_weir_embed_##name(row_each(8), &step, &packed, 0, n, k, got, scale);                                                           \
        break;
        WEIR_CUDA_TYPES(T)
#undef T
    }
    assert_same_bits(got, want, (size_t)(8 * k), "embedded");
    assert_memory_equal(history, want_history, 6 * 32 * sizeof *history);
}

static void embed_has_the_cpus_bits_for_every_type(void **state) {
    (void)state;
    for (int type = 0; type < LAUNCH_TYPES; type++) {
        check_embed(type, 17, 96, 0);
        check_embed(type, 20, 64, 3.5f);
    }
    check_embed(LAUNCH_f16, 17, 45, 0);
}

static void check_norm(int width, int x_rows, int y_rows, int add) {
    rng r = {(uint64_t)width};
    float *x = zeros((size_t)(8 * width) * 4), *got = zeros((size_t)(8 * width) * 4), *want = zeros((size_t)(8 * width) * 4);
    float *w = zeros((size_t)width * 4);
    void *unit = w;
    for (int i = 0; i < 8 * width; i++) {
        x[i] = rng_normal(&r) * 3;
        got[i] = want[i] = rng_normal(&r);
    }
    for (int i = 0; i < width; i++)
        w[i] = 1 + rng_normal(&r) / 4;
    weir_step step = step_of(2, 5);
    weir_k_rmsnorm a = {&step, x, x_rows, width, &unit, 0, 1e-5f, y_rows, add, want, NULL, NULL};
    run_kernel(CPU, WEIR_K_rmsnorm, &a, 1);
    run_weir_rmsnorm(row_each(7), &step, x, x_rows, width, &unit, 0, 1e-5f, got, y_rows, add);
    assert_close(got, want, (size_t)(8 * width), NEAR_NORM, "norm");
}

static void rmsnorm_is_the_cpus_for_every_way_of_addressing_rows(void **state) {
    (void)state;
    const int widths[] = {5, 64, 576, 2048};
    for (int i = 0; i < 4; i++) {
        check_norm(widths[i], WEIR_ROWS_TILE, WEIR_ROWS_TILE, 0);
        check_norm(widths[i], WEIR_ROWS_PASS, WEIR_ROWS_TILE, 0);
        check_norm(widths[i], WEIR_ROWS_TILE, WEIR_ROWS_PASS, 1);
        check_norm(widths[i], WEIR_ROWS_GATHER, WEIR_ROWS_OUT, 0);
    }
}

static void rmsnorm_works_in_place(void **state) {
    (void)state;
    float *x = zeros(600 * sizeof *x), *w = zeros(300 * sizeof *w);
    void *unit = w;
    weir_step step = step_of(0, 2);
    for (int i = 0; i < 600; i++)
        x[i] = (float)(i % 7) - 2;
    for (int i = 0; i < 300; i++)
        w[i] = 2;
    run_weir_rmsnorm(row_each(2), &step, x, WEIR_ROWS_TILE, 300, &unit, 0, 0, x, WEIR_ROWS_TILE, 0);
    double sum = 0;
    for (int i = 0; i < 300; i++)
        sum += (double)x[i] * (double)x[i];
    assert_true(fabs(sum / 300 - 4) < 1e-5);
}

static void gate_has_the_bits_of_the_cpus_functions(void **state) {
    (void)state;
    enum { N = 300, ROWS = 3 };
    float *gate = zeros(ROWS * N * sizeof *gate), *up = zeros(ROWS * N * sizeof *up), *got = nans(ROWS * (N + 4) * sizeof *got);
    rng r = {3};
    for (int i = 0; i < ROWS * N; i++) {
        gate[i] = rng_normal(&r) * 20;
        up[i] = rng_normal(&r);
    }
    weir_step step = step_of(0, ROWS);
    for (int activation = WEIR_SILU; activation <= WEIR_GELU_TANH; activation++) {
        run_weir_gate(map_over(N, 6), &step, gate, N, up, N, N, got, N + 4, activation);
        for (int i = 0; i < ROWS * N; i++) {
            float want = (activation == WEIR_SILU ? ref_silu(gate[i]) : ref_gelu(gate[i])) * up[i];
            assert_same_bits(&got[i / N * (N + 4) + i % N], &want, 1, "gate");
        }
    }
}

static void softcap_has_the_cpus_bits(void **state) {
    (void)state;
    float want[3 * 500], *got = zeros(sizeof want);
    rng r = {4};
    for (int i = 0; i < 3 * 500; i++)
        got[i] = want[i] = rng_normal(&r) * (i % 3 ? 1.0f : 90.0f);
    weir_step step = step_of(0, 2);
    run_kernel(CPU, WEIR_K_softcap, &(weir_k_softcap){&step, want, 500, WEIR_ROWS_TILE, 30}, 1);
    run_weir_softcap(map_over(500, 6), &step, got, 500, WEIR_ROWS_TILE, 30);
    assert_same_bits(got, want, 3 * 500, "soft cap");
}

static void to_f16_rounds_to_nearest_even(void **state) {
    (void)state;
    float *x = zeros(2 * 310 * sizeof *x);
    uint16_t *got = nans(2 * 300 * sizeof *got);
    rng r = {6};
    for (int i = 0; i < 2 * 310; i++)
        x[i] = ldexpf(rng_normal(&r), rng_below(&r, 40) - 20);
    weir_step step = step_of(0, 2);
    run_weir_to_f16(map_over(300, 2), &step, x, 310, 300, WEIR_ROWS_TILE, got);
    for (int i = 0; i < 2 * 300; i++)
        assert_int_equal(got[i], ref_to_f16(x[i / 300 * 310 + i % 300]));
}

static void rope_table_has_the_cpus_bits(void **state) {
    (void)state;
    enum { DIM = 64, POSITIONS = 300 };
    double *frequency = zeros(DIM / 2 * sizeof *frequency);
    float *got = nans(POSITIONS * DIM * sizeof *got), *want = zeros(POSITIONS * DIM * sizeof *want);
    weir_rope_frequencies(&(weir_rope){.base = 10000, .dim = DIM}, frequency);
    frequency[0] = 1e6; /* far around */
    run_kernel(CPU, WEIR_K_rope_table, &(weir_k_rope_table){want, POSITIONS, DIM, frequency, 1.25}, 1);
    launch l = {.x = WEIR_CUDA_DIV(POSITIONS * DIM / 2, WEIR_CUDA_MAP_THREADS), .threads = WEIR_CUDA_MAP_THREADS};
    run_weir_rope_table(l, got, POSITIONS, DIM, frequency, 1.25);
    assert_same_bits(got, want, POSITIONS * DIM, "table");
}

/* ---- rotation and storing ---- */

static float pool_value(const void *pool, bool half, size_t at) {
    return half ? ref_from_f16(((const uint16_t *)pool)[at]) : ((const float *)pool)[at];
}

/* K and V of every tile row, from the cpu's blocks and from the device's. */
static void check_stored(const weir_kv *want, const weir_kv *got, const weir_step *step, double tolerance) {
    bool half = want->type == WEIR_F16;
    int padded = (want->dim + 15) / 16 * 16;
    for (int r = step->tile_first; r < step->tile_first + step->tile_rows; r++)
        for (int i = 0; i < want->kv_heads * want->dim; i++) {
            int d = i % want->dim, at = position[r] % 32;
            size_t head = (size_t)(blocks[slot[r] * 3 + position[r] / 32] * want->kv_heads + i / want->dim);
            float k = pool_value(want->k, half, (head * (size_t)want->dim + (size_t)d) * 32 + (size_t)at);
            float v = pool_value(want->v, half, (head * 32 + (size_t)at) * (size_t)padded + (size_t)d);
            size_t mine = (head * 32 + (size_t)at) * (size_t)want->dim + (size_t)d;
            assert_true(fabs((double)pool_value(got->k, half, mine) - (double)k) <= tolerance * (1 + fabs((double)k)));
            assert_float_equal(pool_value(got->v, half, mine), v, 0);
        }
}

static void check_store(int type, int heads, int kv_heads, int dim, int rope_dim, bool norms) {
    enum { POOL = 6 };
    rng r = {(uint64_t)(dim * 3 + rope_dim)};
    int ld = (heads + 2 * kv_heads) * dim + 3, k_offset = heads * dim, v_offset = k_offset + kv_heads * dim;
    size_t pool = (size_t)(POOL * kv_heads * 32 * (dim + 16)) * 4;
    weir_kv want = {zeros(pool), zeros(pool), type, kv_heads, dim, 0}, got = {zeros(pool), zeros(pool), type, kv_heads, dim, 0};
    float *a = zeros((size_t)(8 * ld) * 4), *b = zeros((size_t)(8 * ld) * 4), *table = zeros((size_t)(66 * rope_dim + 1) * 4);
    float *w = zeros((size_t)(2 * dim) * 4);
    void *unit = w, *const *base = norms ? &unit : NULL;
    for (int i = 0; i < 8 * ld; i++)
        a[i] = b[i] = rng_normal(&r);
    for (int i = 0; i < 66 * rope_dim; i++)
        table[i] = rng_float(&r);
    for (int i = 0; i < 2 * dim; i++)
        w[i] = 1 + rng_float(&r) / 2;
    weir_step step = step_of(1, 7);
    weir_k_rope_store args = {&step, a, ld, k_offset, v_offset, heads, rope_dim, 66, table, want, base, 0, (uint64_t)dim * 4, 1e-6f, 0};
    run_kernel(CPU, WEIR_K_rope_store, &args, 1);
    launch l = {8, (unsigned)WEIR_CUDA_DIV(heads + kv_heads, WEIR_CUDA_STORE_HEADS), 1, WEIR_CUDA_STORE_THREADS, 0};
    if (type == WEIR_F16)
        run_weir_rope_store_f16(l, &step, b, ld, k_offset, v_offset, heads, rope_dim, table, got.k, got.v, kv_heads, dim, base, 0,
                                (uint64_t)dim * 4, 1e-6f);
    else
        run_weir_rope_store_f32(l, &step, b, ld, k_offset, v_offset, heads, rope_dim, table, got.k, got.v, kv_heads, dim, base, 0,
                                (uint64_t)dim * 4, 1e-6f);
    assert_close(b, a, (size_t)(8 * ld), norms ? NEAR_NORM : 0, "rotated rows");
    check_stored(&want, &got, &step, !norms ? 0 : type == WEIR_F16 ? NEAR_NORM_F16 : NEAR_NORM);
}

static void rope_store_rotates_and_stores_as_on_the_cpu(void **state) {
    (void)state;
    check_store(WEIR_F16, 6, 2, 64, 64, false);
    check_store(WEIR_F32, 9, 3, 80, 32, false);
    check_store(WEIR_F16, 4, 4, 128, 128, true);
    check_store(WEIR_F32, 5, 1, 30, 10, true);
    check_store(WEIR_F32, 2, 1, 16, 0, false);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        launch_test(tile_moves_as_on_the_cpu),
        launch_test(embed_has_the_cpus_bits_for_every_type),
        launch_test(rmsnorm_is_the_cpus_for_every_way_of_addressing_rows),
        launch_test(rmsnorm_works_in_place),
        launch_test(gate_has_the_bits_of_the_cpus_functions),
        launch_test(softcap_has_the_cpus_bits),
        launch_test(to_f16_rounds_to_nearest_even),
        launch_test(rope_table_has_the_cpus_bits),
        launch_test(rope_store_rotates_and_stores_as_on_the_cpu),
    };
    return cmocka_run_group_tests(tests, launch_open, launch_close);
}
