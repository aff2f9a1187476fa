/* exp, silu, tanh and GELU of every level: their accuracy against libm, and the same bits as the scalar reference. */
#include "helper_reference.h"

#include <math.h>

enum { COUNT = 200000 };

static weir__map_fn *exp_of(int level) {
    weir__map_fn *const f[] = AT_LEVELS(weir__exp);
    return f[level];
}

static weir__map_fn *silu_of(int level) {
    weir__map_fn *const f[] = AT_LEVELS(weir__silu);
    return f[level];
}

static weir__map_fn *tanh_of(int level) {
    weir__map_fn *const f[] = AT_LEVELS(weir__tanh);
    return f[level];
}

static weir__map_fn *gelu_of(int level) {
    weir__map_fn *const f[] = AT_LEVELS(weir__gelu);
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

/* Even steps from -10 to 10, and every magnitude from the denormals up. */
static float *all_sizes(void) {
    float *x = spread(-10.0f, 10.0f);
    for (int i = 0; i < COUNT / 2; i++) {
        uint32_t bits = (uint32_t)i * 43u;
        memcpy(&x[2 * i], &bits, sizeof bits);
        if (isnan(x[2 * i]) || i % 4 >= 2)
            x[2 * i] = -x[2 * i];
    }
    return x;
}

static void tanh_is_within_two_ulp_of_libm_also_near_zero(void **state) {
    need_level(state);
    float *x = all_sizes(), *y = zeroed(COUNT * sizeof *y);
    for (int pass = 0; pass < 2; pass++) {
        tanh_of(level_of(state))(x, y, COUNT);
        for (int i = 0; i < COUNT; i++)
            if (!isnan(x[i]) && ulps(y[i], tanh((double)x[i])) > 2.0)
                fail_msg("tanh(%a) = %a", (double)x[i], (double)y[i]);
        free(x);
        x = spread(0.55f, 0.575f);
    }
    free(x);
    free(y);
}

/* Relative to the value itself, also where 1 + tanh would cancel; the argument of exp, 2 u, is off by up to 4 rounding errors. */
static void gelu_is_as_exact_as_its_argument_of_exp(void **state) {
    need_level(state);
    float *x = all_sizes(), *y = zeroed(COUNT * sizeof *y);
    gelu_of(level_of(state))(x, y, COUNT);
    for (int i = 0; i < COUNT; i++) {
        double v = x[i], u = sqrt(2 / acos(-1.0)) * (v + 0.044715 * v * v * v), want = v / (1 + exp(-2 * u));
        if (isnan(v) || fabs(v) > 10 || fabs(want) < 1e-36)
            continue;
        if (fabs((double)y[i] - want) > (3 + 4 * fabs(u)) * 0x1p-23 * fabs(want))
            fail_msg("gelu(%a) = %a, wanted %a", v, (double)y[i], want);
    }
    free(x);
    free(y);
}

static void compare_all(weir__map_fn *fn, float reference(float), const float *x, const char *what) {
    float *y = zeroed(COUNT * sizeof *y), *want = zeroed(COUNT * sizeof *y);
    fn(x, y, COUNT);
    for (int i = 0; i < COUNT; i++)
        want[i] = reference(x[i]);
    assert_same_bits(y, want, COUNT, what);
    free(y);
    free(want);
}

static void functions_have_the_bits_of_the_reference(void **state) {
    need_level(state);
    int level = level_of(state);
    float *x = spread(-130.0f, 130.0f), *sizes = all_sizes();
    compare_all(exp_of(level), ref_exp, x, "exp");
    compare_all(silu_of(level), ref_silu, x, "silu");
    compare_all(tanh_of(level), ref_tanh, x, "tanh");
    compare_all(gelu_of(level), ref_gelu, x, "gelu");
    compare_all(tanh_of(level), ref_tanh, sizes, "tanh");
    compare_all(gelu_of(level), ref_gelu, sizes, "gelu");
    free(x);
    free(sizes);
}

static void tanh_and_gelu_of_the_edges(void **state) {
    need_level(state);
    const float x[6] = {-INFINITY, INFINITY, NAN, 0.0f, -0.0f, 1e30f};
    float y[6];
    tanh_of(level_of(state))(x, y, 6);
    assert_true(y[0] == -1 && y[1] == 1 && isnan(y[2]) && y[3] == 0 && !signbit(y[3]) && y[4] == 0 && signbit(y[4]) && y[5] == 1);
    gelu_of(level_of(state))(x, y, 6);
    assert_true(isinf(y[1]) && isnan(y[2]) && y[3] == 0 && y[4] == 0 && y[5] == 1e30f);
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
        EACH_LEVEL(tanh_is_within_two_ulp_of_libm_also_near_zero),
        EACH_LEVEL(gelu_is_as_exact_as_its_argument_of_exp),
        EACH_LEVEL(functions_have_the_bits_of_the_reference),
        EACH_LEVEL(tanh_and_gelu_of_the_edges),
        EACH_LEVEL(exp_of_the_edges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
