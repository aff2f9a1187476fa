/* weir_rope_frequencies: every scaling against its published definition in libm's double, at the sizes and settings of published models. */
#include "helper_kernels.h"

#include <math.h>

enum { MOST = 256 };
static const double pi = 3.14159265358979323846;

static void assert_close(const weir_rope *r, const double *want) {
    double got[MOST];
    weir_rope_frequencies(r, got);
    for (int i = 0; i < r->dim / 2; i++)
        if (!(fabs(got[i] - want[i]) <= 5e-15 * want[i]))
            fail_msg("base %g, dim %d, scaling %d, pair %d: %.17g, wanted %.17g", r->base, r->dim, r->scaling, i, got[i], want[i]);
}

static double plain(const weir_rope *r, int i) {
    return 1 / pow(r->base, 2.0 * i / r->dim);
}

static void plain_frequencies_are_powers_of_the_base(void **state) {
    (void)state;
    static const double bases[] = {1, 100, 10000, 500000, 1e6, 5e6, 1e8};
    static const int dims[] = {2, 8, 20, 64, 96, 128, 256};
    for (int b = 0; b < 7; b++)
        for (int d = 0; d < 7; d++) {
            weir_rope r = {.base = bases[b], .dim = dims[d]};
            double want[MOST];
            for (int i = 0; i < r.dim / 2; i++)
                want[i] = plain(&r, i);
            assert_close(&r, want);
        }
}

static void linear_scaling_divides_all_of_them(void **state) {
    (void)state;
    weir_rope r = {.base = 1e6, .dim = 256, .scaling = WEIR_ROPE_LINEAR, .factor = 8};
    double want[MOST];
    for (int i = 0; i < 128; i++)
        want[i] = plain(&r, i) / 8;
    assert_close(&r, want);
}

static void each_pair_is_divided_by_its_own_factor(void **state) {
    (void)state;
    float factors[48];
    double want[MOST];
    weir_rope r = {.base = 10000, .dim = 96, .scaling = WEIR_ROPE_FACTORS, .factors = factors};
    for (int i = 0; i < 48; i++) {
        factors[i] = 1 + 0.37f * (float)i;
        want[i] = plain(&r, i) / (double)factors[i];
    }
    assert_close(&r, want);
}

/* As transformers' _compute_llama3_parameters writes it. */
static void llama3_want(const weir_rope *r, double *want) {
    for (int i = 0; i < r->dim / 2; i++) {
        double f = plain(r, i), wavelength = 2 * pi / f;
        double smooth = (r->original_context / wavelength - r->low_freq) / (r->high_freq - r->low_freq);
        if (wavelength > r->original_context / r->low_freq)
            want[i] = f / r->factor;
        else if (wavelength < r->original_context / r->high_freq)
            want[i] = f;
        else
            want[i] = (1 - smooth) * f / r->factor + smooth * f;
    }
}

static void llama3_stretches_long_waves_alone(void **state) {
    (void)state;
    weir_rope r = {
        .base = 500000, .dim = 128, .scaling = WEIR_ROPE_LLAMA3, .factor = 8, .original_context = 8192, .low_freq = 1, .high_freq = 4};
    double want[MOST];
    llama3_want(&r, want);
    assert_true(want[0] == plain(&r, 0) && want[63] == plain(&r, 63) / 8);
    assert_close(&r, want);
    r.factor = 32;
    r.dim = 64;
    llama3_want(&r, want);
    assert_close(&r, want);
    r.original_context = 40;
    r.dim = 16;
    llama3_want(&r, want);
    assert_close(&r, want);
}

/* As transformers' _compute_yarn_parameters writes it. */
static double correction(const weir_rope *r, double rotations) {
    return r->dim * log(r->original_context / (rotations * 2 * pi)) / (2 * log(r->base));
}

static void yarn_want(const weir_rope *r, double *want) {
    double low = correction(r, r->beta_fast), high = correction(r, r->beta_slow);
    if (!r->untruncated) {
        low = floor(low);
        high = ceil(high);
    }
    low = fmax(low, 0);
    high = fmin(high, r->dim - 1);
    high = low == high ? high + 0.001 : high;
    for (int i = 0; i < r->dim / 2; i++) {
        double f = plain(r, i), extrapolation = 1 - fmin(fmax((i - low) / (high - low), 0), 1);
        want[i] = f / r->factor * (1 - extrapolation) + f * extrapolation;
    }
}

static void yarn_ramps_between_two_numbers_of_rotations(void **state) {
    (void)state;
    static const weir_rope settings[] = {
        {.base = 1e6, .dim = 128, .factor = 4, .original_context = 32768, .beta_fast = 32, .beta_slow = 1},
        {.base = 10000, .dim = 64, .factor = 40, .original_context = 4096, .beta_fast = 32, .beta_slow = 1},
        {.base = 150000, .dim = 64, .factor = 32, .original_context = 4096, .beta_fast = 32, .beta_slow = 1, .untruncated = true},
        {.base = 10000, .dim = 16, .factor = 2, .original_context = 48, .beta_fast = 32, .beta_slow = 1},
        {.base = 10000, .dim = 16, .factor = 2, .original_context = 20, .beta_fast = 400, .beta_slow = 300},
        {.base = 10000, .dim = 16, .factor = 2, .original_context = 48, .beta_fast = 32, .beta_slow = 13.6}, /* both ends at 0 */
        {.base = 50, .dim = 8, .factor = 16, .original_context = 100000, .beta_fast = 32, .beta_slow = 1},
    };
    for (int i = 0; i < 7; i++) {
        weir_rope r = settings[i];
        double want[MOST];
        r.scaling = WEIR_ROPE_YARN;
        yarn_want(&r, want);
        assert_close(&r, want);
    }
}

/* Nothing that a file may hold makes the function itself misbehave; what comes out is no number and is refused elsewhere. */
static void impossible_settings_end(void **state) {
    (void)state;
    static const double values[] = {0, -1, 1, 1e308, 1e-308, INFINITY, -INFINITY, NAN};
    double out[MOST];
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 8; j++) {
            weir_rope r = {values[i], 64, WEIR_ROPE_YARN, values[j], values[i], 1, 4, values[j], 1, false, NULL};
            weir_rope_frequencies(&r, out);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_frequencies_are_powers_of_the_base),    cmocka_unit_test(linear_scaling_divides_all_of_them),
        cmocka_unit_test(each_pair_is_divided_by_its_own_factor),      cmocka_unit_test(llama3_stretches_long_waves_alone),
        cmocka_unit_test(yarn_ramps_between_two_numbers_of_rotations), cmocka_unit_test(impossible_settings_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
