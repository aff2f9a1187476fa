/* The launches themselves: what they must tell, so that the other tests can rely on it. */
#include "launch.h"

enum { N = 64 };

static const char *to_f16(const weir_step *step, const float *x, uint16_t *out, int32_t width) {
    int32_t rows = WEIR_ROWS_TILE;
    const launch_arg args[] = {LAUNCH_ARG(0, step) LAUNCH_ARG(0, x) LAUNCH_ARG(0, width) LAUNCH_ARG(0, width) LAUNCH_ARG(0, rows)
                                   LAUNCH_ARG(0, out)};
    return launch_try("weir_to_f16", (launch){.x = 1, .threads = WEIR_CUDA_MAP_THREADS}, args, sizeof args / sizeof *args);
}

static void assert_says(const char *why, const char *part) {
    if (!why || !strstr(why, part))
        fail_msg("said: %s", why ? why : "nothing");
}

static void need_zone(void) {
    if (launch_zone() == 0)
        weir_test_skip_machine("something else watches the bytes beside arrays (WEIR_TEST_ZONE=0)");
}

static void a_launch_reads_and_writes_the_tests_arrays(void **state) {
    (void)state;
    float *x = zeros(N * sizeof *x);
    uint16_t *out = nans(N * sizeof *out);
    x[N - 1] = 1;
    assert_null(to_f16(&(weir_step){.tile_rows = 1}, x, out, N));
    assert_int_equal(out[0], 0);
    assert_int_equal(out[N - 1], 0x3c00);
}

static void bytes_written_behind_an_array_are_told(void **state) {
    (void)state;
    need_zone();
    float *x = zeros(N * sizeof *x);
    assert_says(to_f16(&(weir_step){.tile_rows = 1}, x, nans((N - 1) * 2), N), "bytes beside an array of 126 were written");
}

static void bytes_written_before_an_array_are_told(void **state) {
    (void)state;
    need_zone();
    float *x = zeros(N * sizeof *x), *y = zeros(N * sizeof *y), eps = 1;
    void *unit = zeros(N * sizeof(float)), *const *base = &unit;
    weir_step s = {.tile_rows = 1, .tile_first = -1};
    const weir_step *step = &s;
    int32_t x_rows = WEIR_ROWS_TILE, y_rows = WEIR_ROWS_PASS, width = N, add = 0;
    uint64_t offset = 0;
    const launch_arg args[] = {LAUNCH_ARG(0, step) LAUNCH_ARG(0, x) LAUNCH_ARG(0, x_rows) LAUNCH_ARG(0, width) LAUNCH_ARG(0, base)
                                   LAUNCH_ARG(0, offset) LAUNCH_ARG(0, eps) LAUNCH_ARG(0, y) LAUNCH_ARG(0, y_rows) LAUNCH_ARG(0, add)};
    assert_says(launch_try("weir_rmsnorm", (launch){.x = 1, .threads = WEIR_CUDA_MAP_THREADS}, args, sizeof args / sizeof *args),
                "bytes beside an array of 256 were written");
}

static void pointers_into_no_array_are_refused(void **state) {
    (void)state;
    int32_t slot = 0;
    float *x = zeros(N * sizeof *x);
    uint16_t *out = nans(N * sizeof *out), *end = out + N;
    assert_says(to_f16(&(weir_step){.tile_rows = 1}, x, end, N), "points into no array");
    assert_says(to_f16(&(weir_step){.tile_rows = 1, .slot = &slot}, x, out, N), "points into no array");
}

static void a_kernel_that_is_not_there_is_told(void **state) {
    (void)state;
    assert_says(launch_try("weir_none", (launch){.x = 1, .threads = 1}, NULL, 0), "cuModuleGetFunction: CUDA_ERROR_NOT_FOUND");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        launch_test(a_launch_reads_and_writes_the_tests_arrays), launch_test(bytes_written_behind_an_array_are_told),
        launch_test(bytes_written_before_an_array_are_told),     launch_test(pointers_into_no_array_are_refused),
        launch_test(a_kernel_that_is_not_there_is_told),
    };
    return cmocka_run_group_tests(tests, launch_open, launch_close);
}
