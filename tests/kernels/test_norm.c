/* rmsnorm, the activation blocks it makes, and the tiles it runs over. */
#include "helper_reference.h"
#include "helper_reference_k.h"

#include <math.h>

static void norms_have_the_bits_of_the_reference(void **state) {
    need_level(state);
    static const int widths[] = {8, 16, 21, 64, 576, 1000};
    for (int i = 0; i < 6; i++) {
        rng r = {(uint64_t)i};
        int n = widths[i];
        float *x = zeroed((size_t)n * 16), *w = zeroed((size_t)n * 4), *y = poisoned((size_t)n * 16), *want = zeroed((size_t)n * 16);
        void *base = w;
        for (int j = 0; j < 4 * n; j++)
            x[j] = 5 * rng_normal(&r);
        for (int j = 0; j < n; j++)
            w[j] = 1 + rng_float(&r);
        for (int row = 0; row < 4; row++)
            ref_rmsnorm(x + row * n, w, n, 1e-5f, want + row * n);
        weir_step step = {.rows = 4, .tile_rows = 4};
        weir_k_rmsnorm a = {.step = &step, .x = x, .x_rows = WEIR_ROWS_PASS, .width = n, .weight_base = &base, .eps = 1e-5f, .y = y};
        for (unsigned workers = 1; workers <= 4; workers++) {
            run_kernel(level_of(state), WEIR_K_rmsnorm, &a, workers);
            assert_same_bits(y, want, (size_t)(4 * n), "rmsnorm");
        }
        free(x);
        free(w);
        free(y);
        free(want);
    }
}

/* The same norm once more, in blocks of 256 and of 32 at once. y: what it gives. */
static void check_acts_k(int level, const weir_k_rmsnorm *norm, const float *y, int rows) {
    int values = rows * norm->width;
    weir_k_rmsnorm a = *norm;
    a.acts_k = poisoned((size_t)rows * weir_act_size(256, a.width));
    ref_act_k *want = zeroed((size_t)(values / 256) * sizeof *want);
    ref_quantise_k(y, values, want);
    run_kernel(level, WEIR_K_rmsnorm, &a, 3);
    assert_same_acts_k(a.acts_k, want, values, "acts of 256");
    free(a.acts_k);
    free(want);
}

/* The reference quantises what the reference norm gives. */
static void check_acts(int level, const float *x, int rows, int n) {
    float *w = zeroed((size_t)n * 4), *y = zeroed((size_t)(rows * n) * 4);
    void *acts = poisoned((size_t)rows * weir_act_size(32, n)), *base = w;
    ref_act *want = zeroed((size_t)(rows * n / 32) * sizeof *want);
    for (int j = 0; j < n; j++)
        w[j] = j % 7 ? 1.0f : -0.3f;
    for (int row = 0; row < rows; row++)
        ref_rmsnorm(x + row * n, w, n, 1e-6f, y + row * n);
    ref_quantise(y, rows * n, want);
    weir_step step = {.rows = rows, .tile_rows = rows};
    weir_k_rmsnorm a = {.step = &step, .x = x, .x_rows = WEIR_ROWS_PASS, .width = n, .weight_base = &base, .eps = 1e-6f, .acts = acts};
    run_kernel(level, WEIR_K_rmsnorm, &a, 2);
    assert_same_acts(acts, want, rows * n, "acts");
    if (n % 256 == 0)
        check_acts_k(level, &a, y, rows);
    free(w);
    free(y);
    free(acts);
    free(want);
}

static void activations_have_the_bits_of_the_reference(void **state) {
    need_level(state);
    enum { ROWS = 200, N = 96 };
    rng r = {3};
    float *x = zeroed(ROWS * N * sizeof *x);
    for (int i = 0; i < ROWS * N; i++)
        x[i] = rng_normal(&r) * (rng_below(&r, 20) ? 1.0f : 100.0f) * (i / N % 9 == 0 ? 1e-30f : 1.0f);
    memset(x + 5 * N, 0, N * sizeof *x);
    memset(x + 6 * N, 0, 32 * sizeof *x);
    check_acts(level_of(state), x, ROWS, N);
    check_acts(level_of(state), x, 9, 512);
    free(x);
}

static void infinities_and_nans_make_the_whole_block_nan(void **state) {
    need_level(state);
    float x[3 * 32];
    for (int i = 0; i < 96; i++)
        x[i] = (float)(i % 32);
    x[3] = INFINITY;
    x[40] = NAN;
    x[70] = 3e38f;
    x[71] = -3e38f;
    check_acts(level_of(state), x, 3, 32);
    float wide[4 * 256];
    for (int i = 0; i < 4 * 256; i++)
        wide[i] = (float)(i % 100) * (i < 256 ? 1e-42f : 1.0f);
    wide[256 + 255] = INFINITY;
    wide[512 + 17] = NAN;
    check_acts(level_of(state), wide, 4, 256);
}

static void gathered_rows_go_to_the_output_tile(void **state) {
    need_level(state);
    float x[5 * 16], w[16], y[2 * 16], want[2 * 16];
    void *base = w;
    rng r = {5};
    for (int i = 0; i < 80; i++)
        x[i] = rng_normal(&r);
    for (int i = 0; i < 16; i++)
        w[i] = 1 + rng_float(&r);
    const int32_t out_row[3] = {0, 4, 2};
    weir_step step = {.rows = 5, .tile_rows = 5, .outputs = 3, .out_first = 1, .out_rows = 2, .out_row = out_row};
    weir_k_rmsnorm a = {.step = &step,
                        .x = x,
                        .x_rows = WEIR_ROWS_GATHER,
                        .width = 16,
                        .weight_base = &base,
                        .eps = 1e-5f,
                        .y_rows = WEIR_ROWS_OUT,
                        .y = y};
    run_kernel(level_of(state), WEIR_K_rmsnorm, &a, 2);
    ref_rmsnorm(x + 4 * 16, w, 16, 1e-5f, want);
    ref_rmsnorm(x + 2 * 16, w, 16, 1e-5f, want + 16);
    assert_same_bits(y, want, 32, "gathered");
}

/* Sandwich norms: what a block gives, in the tile's own buffer, is normed and added to the pass's rows. */
static void an_added_norm_goes_onto_the_rows_of_the_pass(void **state) {
    need_level(state);
    static const int widths[] = {16, 21, 96};
    for (int i = 0; i < 3; i++) {
        rng r = {(uint64_t)i + 9};
        int n = widths[i];
        float *x = zeroed((size_t)n * 12), *w = zeroed((size_t)n * 4), *y = zeroed((size_t)n * 28), *want = zeroed((size_t)n * 28),
              *normed = zeroed((size_t)n * 4);
        void *base = w;
        for (int j = 0; j < 3 * n; j++)
            x[j] = rng_normal(&r);
        for (int j = 0; j < n; j++)
            w[j] = 1 + rng_float(&r);
        for (int j = 0; j < 7 * n; j++)
            want[j] = rng_normal(&r);
        weir_step step = {.rows = 7, .tile_first = 2, .tile_rows = 3};
        weir_k_rmsnorm a = {.step = &step,
                            .x = x,
                            .x_rows = WEIR_ROWS_TILE,
                            .width = n,
                            .weight_base = &base,
                            .eps = 1e-6f,
                            .y_rows = WEIR_ROWS_PASS,
                            .add = 1,
                            .y = y};
        memcpy(y, want, (size_t)n * 28);
        run_kernel(level_of(state), WEIR_K_rmsnorm, &a, 2);
        for (int row = 0; row < 3; row++) {
            ref_rmsnorm(x + row * n, w, n, 1e-6f, normed);
            for (int j = 0; j < n; j++)
                want[(row + 2) * n + j] = want[(row + 2) * n + j] + normed[j];
        }
        assert_same_bits(y, want, (size_t)(7 * n), "added");
        free(x);
        free(w);
        free(y);
        free(want);
        free(normed);
    }
}

static void tiles_move_through_a_pass_and_wrap(void **state) {
    need_level(state);
    weir_step step = {.rows = 10, .tile = 4, .tile_first = 0, .tile_rows = 10, .outputs = 3, .out_tile = 2, .out_first = 3, .out_rows = 0};
    static const int want[5][2] = {{0, 4}, {4, 4}, {8, 2}, {0, 4}, {4, 4}}, outputs[3][2] = {{0, 2}, {2, 1}, {0, 2}};
    weir_k_tile a = {&step, 0}, o = {&step, 1};
    for (int i = 0; i < 5; i++) {
        run_kernel(level_of(state), WEIR_K_tile, &a, 3);
        assert_int_equal(step.tile_first, want[i][0]);
        assert_int_equal(step.tile_rows, want[i][1]);
    }
    for (int i = 0; i < 3; i++) {
        run_kernel(level_of(state), WEIR_K_tile, &o, 3);
        assert_int_equal(step.out_first, outputs[i][0]);
        assert_int_equal(step.out_rows, outputs[i][1]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        EACH_LEVEL(norms_have_the_bits_of_the_reference),         EACH_LEVEL(activations_have_the_bits_of_the_reference),
        EACH_LEVEL(infinities_and_nans_make_the_whole_block_nan), EACH_LEVEL(gathered_rows_go_to_the_output_tile),
        EACH_LEVEL(an_added_norm_goes_onto_the_rows_of_the_pass), EACH_LEVEL(tiles_move_through_a_pass_and_wrap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
