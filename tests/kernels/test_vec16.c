/* exp and silu of every level: their accuracy against libm, and the same bits as the scalar reference. */
#include "helper_reference.h"

#include <math.h>

enum { COUNT = 200000 };

static weir__map_fn *exp_of(int level) {
    weir__map_fn *const f[] = {weir__exp_generic, weir__exp_avx2, weir__exp_avx512, weir__exp_avx512};
    return f[level];
}

static weir__map_fn *silu_of(int level) {
    weir__map_fn *const f[] = {weir__silu_generic, weir__silu_avx2, weir__silu_avx512, weir__silu_avx512};
    return f[level];
}

static double ulps(float got, double want) {
    float near = (float)want;
    double unit = (double)nextafterf(fabsf(near), INFINITY) - (double)fabsf(near);
    return fabs((double)got - want) / unit;
}

static float *spread(float from, float to) {
    float *x = zeroed(COUNT * sizeof *x);
    for (int i = 0; i < COUNT; i++)
        x[i] = from + (to - from) * (float)i / COUNT;
    return x;
}

static void exp_is_within_one_ulp_of_libm(void **state) {
    need_level(state);
    float *x = spread(-85.99f, 88.7f), *y = zeroed(COUNT * sizeof *y);
    exp_of(level_of(state))(x, y, COUNT);
    for (int i = 0; i < COUNT; i++)
        if (ulps(y[i], exp((double)x[i])) > 1.0)
            fail_msg("exp(%a) = %a", (double)x[i], (double)y[i]);
    free(x);
    free(y);
}

static void silu_is_within_three_ulp_of_libm(void **state) {
    need_level(state);
    float *x = spread(-80.0f, 80.0f), *y = zeroed(COUNT * sizeof *y);
    silu_of(level_of(state))(x, y, COUNT);
    for (int i = 0; i < COUNT; i++)
        if (x[i] != 0 && ulps(y[i], (double)x[i] / (1 + exp(-(double)x[i]))) > 3.0)
            fail_msg("silu(%a) = %a", (double)x[i], (double)y[i]);
    free(x);
    free(y);
}

static void exp_and_silu_have_the_bits_of_the_reference(void **state) {
    need_level(state);
    float *x = spread(-130.0f, 130.0f), *y = zeroed(COUNT * sizeof *y), *want = zeroed(COUNT * sizeof *y);
    exp_of(level_of(state))(x, y, COUNT);
    for (int i = 0; i < COUNT; i++)
        want[i] = ref_exp(x[i]);
    assert_same_bits(y, want, COUNT, "exp");
    silu_of(level_of(state))(x, y, COUNT);
    for (int i = 0; i < COUNT; i++)
        want[i] = ref_silu(x[i]);
    assert_same_bits(y, want, COUNT, "silu");
    free(x);
    free(y);
    free(want);
}

static void exp_of_the_edges(void **state) {
    need_level(state);
    const float x[7] = {-INFINITY, INFINITY, NAN, 0.0f, -0.0f, -1e30f, 1e30f};
    float y[7];
    exp_of(level_of(state))(x, y, 7);
    assert_true(y[0] == 0 && !signbit(y[0]));
    assert_true(isinf(y[1]) && y[1] > 0);
    assert_true(isnan(y[2]));
    assert_true(y[3] == 1 && y[4] == 1 && y[5] == 0 && isinf(y[6]));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        EACH_LEVEL(exp_is_within_one_ulp_of_libm),
        EACH_LEVEL(silu_is_within_three_ulp_of_libm),
        EACH_LEVEL(exp_and_silu_have_the_bits_of_the_reference),
        EACH_LEVEL(exp_of_the_edges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
