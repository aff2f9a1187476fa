/* Products of one and few rows, gated products, and those of many rows, against doubles on the file's own values. */
#include "launch.h"

#include <math.h>

typedef struct problem {
    int type, n, k, rows;
    uint8_t *file;
    void *packed;
    float *x, *bias; /* bias lies behind the packed matrix, as in a unit's blob */
    size_t bias_offset;
    weir_step step;
} problem;

static problem problem_new(int type, int n, int k, int rows) {
    rng r = {(uint64_t)(type * 7919 + n * 31 + k + rows)};
    problem p = {.type = type, .n = n, .k = k, .rows = rows};
    p.file = launch_weights(&r, type, n, k);
    void *packed = launch_packed(type, p.file, launch_weir_type[type], n, k, 0, 0);
    p.bias_offset = launch_packed_size(type, n, k);
    p.packed = zeros(p.bias_offset + (size_t)n * sizeof(float));
    memcpy(p.packed, packed, p.bias_offset);
    p.bias = (float *)(void *)((char *)p.packed + p.bias_offset);
    p.x = zeros((size_t)(rows * k) * sizeof(float));
    for (int i = 0; i < n; i++)
        p.bias[i] = rng_float(&r);
    for (int i = 0; i < rows * k; i++)
        p.x[i] = rng_float(&r);
    p.step = (weir_step){.rows = rows + 3, .tile = rows + 2, .tile_first = 3, .tile_rows = rows, .out_rows = rows, .out_tile = rows};
    return p;
}

static double exact(const problem *p, int r, int j) {
    int type = launch_weir_type[p->type];
    const uint8_t *row = p->file + (size_t)j * ref_row_bytes(type, p->k);
    double sum = 0;
    for (int i = 0; i < p->k; i++)
        sum += (double)p->x[r * p->k + i] * (double)ref_value(type, row, i);
    return sum;
}

static void check_product(int type, int n, int k, int rows) {
    problem p = problem_new(type, n, k, rows);
    int ldy = n + 5, pass = p.step.tile_first;
    float *y = nans((size_t)((rows + pass) * ldy) * sizeof *y), *got = zeros((size_t)(rows * n) * sizeof *got);
    double *want = zeros((size_t)(rows * n) * sizeof *want);
    for (int r = 0; r < rows; r++)
        for (int j = 0; j < n; j++)
            y[(r + pass) * ldy + j] = (float)(r - j);
    launch_product(type, &p.step, &p.packed, n, k, p.x, WEIR_ROWS_TILE, y, ldy, WEIR_ROWS_PASS, 1, 1, p.bias_offset);
    for (int r = 0; r < rows; r++)
        for (int j = 0; j < n; j++) {
            got[r * n + j] = y[(r + pass) * ldy + j];
            want[r * n + j] = exact(&p, r, j) + (double)p.bias[j] + (double)(r - j);
        }
    assert_near(got, want, (size_t)(rows * n), NEAR_SUM, "product");
    assert_true(isnan(y[(pass - 1) * ldy]) && isnan(y[pass * ldy + n]));
}

static void product_is_the_sum_over_k_of_every_type(void **state) {
    (void)state;
    const int n[] = {1, 5, 16, 35}, k[] = {32, 64, 576, 2048};
    for (int type = 0; type < LAUNCH_TYPES; type++)
        for (int i = 0; i < 4; i++)
            check_product(type, n[i], k[i], i * 3 % 5 + 1);
}

static void product_takes_any_number_of_rows(void **state) {
    (void)state;
    for (int type = 0; type < LAUNCH_TYPES; type++)
        for (int rows = 1; rows <= 9; rows++)
            check_product(type, 7, 96, rows);
}

static void product_of_floats_takes_rows_of_any_length(void **state) {
    (void)state;
    for (int k = 1; k < 40; k += 6)
        check_product(k % 3, 6, k, 3);
}

static void product_has_the_same_bits_whatever_the_number_of_rows(void **state) {
    (void)state;
    for (int type = 0; type < LAUNCH_TYPES; type++) {
        problem p = problem_new(type, 20, 576, 9);
        float *all = nans(9 * 20 * sizeof *all), *one = nans(20 * sizeof *one);
        launch_product(type, &p.step, &p.packed, 20, 576, p.x, WEIR_ROWS_TILE, all, 20, WEIR_ROWS_TILE, 0, 0, 0);
        p.step.tile_rows = 1;
        for (int r = 0; r < 9; r++) {
            launch_product(type, &p.step, &p.packed, 20, 576, p.x + r * 576, WEIR_ROWS_TILE, one, 20, WEIR_ROWS_TILE, 0, 0, 0);
            assert_same_bits(all + r * 20, one, 20, "row");
        }
    }
}

static double activated(double x, int activation) {
    if (activation == WEIR_SILU)
        return x / (1 + exp(-x));
    return x / 2 * (1 + tanh(sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
}

static void launch_gated(const problem *gate, const problem *up, int activation, int bias, float *y) {
    launch l = {.x = (unsigned)WEIR_CUDA_DIV(gate->n, WEIR_CUDA_GATED_OUTPUTS),
                .y = (unsigned)WEIR_CUDA_DIV(gate->step.tile, WEIR_CUDA_PRODUCT_ROWS),
                .threads = WEIR_CUDA_PRODUCT_THREADS};
    switch (gate->type) {
#define T(name)                                                                                                                            \
    case LAUNCH_##name:                                                                                                                    \
        run_weir_gated_##name(l, &gate->step, &gate->packed, 0, &up->packed, 0, gate->n, gate->k, gate->x, gate->k, y, gate->n,            \
                              activation, bias, gate->bias_offset, up->bias_offset);                                                       \
        break;
        WEIR_CUDA_TYPES(T)
#undef T
    }
}

static void check_gated(int type, int n, int k, int rows, int activation, int bias) {
    problem gate = problem_new(type, n, k, rows), up = problem_new(type, n, k, rows);
    rng r = {99};
    for (int i = 0; i < n; i++)
        up.bias[i] = rng_float(&r);
    float *y = nans((size_t)(rows * n) * sizeof *y);
    double *want = zeros((size_t)(rows * n) * sizeof *want);
    launch_gated(&gate, &up, activation, bias, y);
    for (int i = 0; i < rows * n; i++) {
        double g = exact(&gate, i / n, i % n) + (bias ? (double)gate.bias[i % n] : 0);
        double u = exact(&up, i / n, i % n) + (bias ? (double)up.bias[i % n] : 0);
        want[i] = activated(g, activation) * u;
    }
    assert_near(y, want, (size_t)(rows * n), NEAR_GATED, "gated");
}

static void gated_is_activation_of_gate_times_up(void **state) {
    (void)state;
    for (int type = 0; type < LAUNCH_TYPES; type++) {
        check_gated(type, 17, 64, 1 + type, WEIR_SILU, type % 2);
        check_gated(type, 34, 576, 9 - type, WEIR_GELU_TANH, 1);
    }
}

/* The three steps where there is no cuBLAS: weights as plain rows, in two pieces of outputs, then products. */
static void check_many(int type, int n, int k, int rows, bool half) {
    problem p = problem_new(type, n, k, rows);
    void *w = nans((size_t)(n * k) * 4), *x = nans((size_t)(rows * k) * 2);
    float *y = zeros((size_t)(rows * n) * sizeof *y);
    double *want = zeros((size_t)(rows * n) * sizeof *want);
    launch map = {(unsigned)WEIR_CUDA_DIV(k, WEIR_CUDA_MAP_THREADS), (unsigned)rows + 2, 1, WEIR_CUDA_MAP_THREADS, 0};
    run_weir_to_f16(map, &p.step, p.x, k, k, WEIR_ROWS_TILE, x);
    for (int first = 0, part = n / 2 + 1; first < n; first += part) {
        int outputs = n - first < part ? n - first : part;
        launch rows_of = {.x = (unsigned)outputs, .threads = WEIR_CUDA_PACK_THREADS};
        switch (type) {
#define T(name)                                                                                                                            \
    case LAUNCH_##name:                                                                                                                    \
        if (half)                                                                                                                          \
            run_weir_dequantise_##name##_f16(rows_of, &p.packed, 0, n, k, first, w);                                                       \
        else                                                                                                                               \
            run_weir_dequantise_##name##_f32(rows_of, &p.packed, 0, n, k, first, w);                                                       \
        break;
            WEIR_CUDA_TYPES(T)
#undef T
        }
        launch l = {(unsigned)WEIR_CUDA_DIV(outputs, WEIR_CUDA_GEMM_OUTPUTS), (unsigned)WEIR_CUDA_DIV(rows, WEIR_CUDA_GEMM_ROWS) + 1, 1,
                    half ? WEIR_CUDA_GEMM_F16_THREADS : WEIR_CUDA_GEMM_F32_THREADS, 0};
        uint64_t bias = p.bias_offset + (uint64_t)first * 4;
        if (half)
            run_weir_gemm_f16(l, &p.step, x, k, w, outputs, k, WEIR_ROWS_TILE, y + first, n, WEIR_ROWS_TILE, 0, &p.packed, bias);
        else
            run_weir_gemm_f32(l, &p.step, p.x, k, w, outputs, k, WEIR_ROWS_TILE, y + first, n, WEIR_ROWS_TILE, 1, &p.packed, bias);
    }
    for (int i = 0; i < rows * n; i++)
        want[i] = exact(&p, i / n, i % n) + (double)p.bias[i % n];
    assert_near(y, want, (size_t)(rows * n), half ? NEAR_SUM_F16 : NEAR_SUM, half ? "gemm f16" : "gemm f32");
}

static void many_rows_go_by_plain_weights_in_f32(void **state) {
    (void)state;
    for (int type = 0; type < LAUNCH_TYPES; type++)
        check_many(type, 37 + type * 17, 96, 30 + type * 9, false);
    check_many(LAUNCH_f32, 9, 45, 3, false);
}

static void many_rows_go_by_plain_weights_in_f16(void **state) {
    (void)state;
    for (int type = 0; type < LAUNCH_TYPES; type++)
        check_many(type, 37 + type * 17, 96, 30 + type * 9, true);
    check_many(LAUNCH_f16, 9, 45, 3, true);
}

static void dequantised_values_are_exactly_the_files(void **state) {
    (void)state;
    for (int type = 0; type < LAUNCH_TYPES; type++) {
        problem p = problem_new(type, 5, 96, 1);
        float *w = nans(5 * 96 * sizeof *w);
        launch l = {.x = 5, .threads = WEIR_CUDA_PACK_THREADS};
        switch (type) {
#define T(name)                                                                                                                            \
    case LAUNCH_##name:                                                                                                                    \
        run_weir_dequantise_##name##_f32(l, &p.packed, 0, 5, 96, 0, w);                                                                    \
        break;
            WEIR_CUDA_TYPES(T)
#undef T
        }
        for (int j = 0; j < 5; j++) {
            float want[96];
            weir_dequantise(launch_weir_type[type], p.file + (size_t)j * ref_row_bytes(launch_weir_type[type], 96), 96, want);
            assert_same_bits(w + j * 96, want, 96, "value");
        }
    }
}

static void finish_adds_bias_and_what_was_there(void **state) {
    (void)state;
    float *product = zeros(2 * 300 * sizeof *product), *y = zeros(5 * 310 * sizeof *y), *bias = zeros(300 * sizeof *bias);
    void *unit = bias;
    for (int i = 0; i < 600; i++)
        product[i] = (float)i;
    for (int i = 0; i < 5 * 310; i++)
        y[i] = 1;
    for (int i = 0; i < 300; i++)
        bias[i] = (float)i / 2;
    weir_step step = {.tile_rows = 2, .tile_first = 3};
    launch l = {2, 4, 1, WEIR_CUDA_MAP_THREADS, 0};
    run_weir_finish(l, &step, product, 300, 300, WEIR_ROWS_TILE, y, 310, WEIR_ROWS_PASS, 1, &unit, 0);
    assert_float_equal(y[3 * 310 + 299], 299 + 149.5 + 1, 0);
    assert_float_equal(y[4 * 310 + 1], 301 + 0.5 + 1, 0);
    assert_float_equal(y[4 * 310 + 300], 1, 0);
    run_weir_finish(l, &step, product, 300, 300, WEIR_ROWS_TILE, y, 310, WEIR_ROWS_PASS, 0, NULL, 0);
    assert_float_equal(y[4 * 310 + 1], 301, 0);
    assert_float_equal(y[2 * 310], 1, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        launch_test(product_is_the_sum_over_k_of_every_type),    launch_test(product_takes_any_number_of_rows),
        launch_test(product_of_floats_takes_rows_of_any_length), launch_test(product_has_the_same_bits_whatever_the_number_of_rows),
        launch_test(gated_is_activation_of_gate_times_up),       launch_test(many_rows_go_by_plain_weights_in_f32),
        launch_test(many_rows_go_by_plain_weights_in_f16),       launch_test(dequantised_values_are_exactly_the_files),
        launch_test(finish_adds_bias_and_what_was_there),
    };
    return cmocka_run_group_tests(tests, launch_open, launch_close);
}
