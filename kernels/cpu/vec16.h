/* vec16.h: the one vector type, 16 lanes of float or int32, with the same results in every lane at every level. Lanes are outputs or strided partials,
 * never parts of one sum whose order would depend on the level. Rounding to nearest even, denormals kept, no contraction. */
#ifndef WEIR_CPU_VEC16_H
#define WEIR_CPU_VEC16_H

#include "f16.h"
#include "level.h"

#include <math.h>

#if defined(WEIR_VEC_AVX512)
#include "vec16_avx512.h"
#elif defined(WEIR_VEC_AVX2)
#include "vec16_avx2.h"
#else
#include "vec16_generic.h"
#endif

/* max(a, b) and min(a, b) are a > b ? a : b and a < b ? a : b: b where one is no number or both are zeros. */

INLINE vec16 vec16_zero(void) {
    return vec16_set1(0);
}

/* The first n lanes (0..16); the others are zero, and their memory is not touched. */
INLINE vec16 vec16_load_n(const float *p, int n) {
    float t[16] = {0};
    if (n >= 16)
        return vec16_load(p);
    memcpy(t, p, (size_t)n * sizeof *t);
    return vec16_load(t);
}

INLINE void vec16_store_n(float *p, vec16 a, int n) {
    float t[16];
    if (n >= 16) {
        vec16_store(p, a);
        return;
    }
    vec16_store(t, a);
    memcpy(p, t, (size_t)n * sizeof *t);
}

/* ivec16_lookup(table, index) is table's lane index, 0..15, in every lane. */

/* vec16_sum is the fixed tree: lanes i and i + 8, then + 4, + 2, + 1. vec16_max_lane is the same tree of a > b ? a : b. */

/* Nearest even integer of |a| < 2^22, as the float a + 1.5 * 2^23 whose low bits are that integer: no conversion that would be undefined for NaN. */
#define ROUND_MAGIC 12582912.0f
INLINE ivec16 vec16_round(vec16 a) {
    return ivec16_sub(vec16_bits(vec16_add(a, vec16_set1(ROUND_MAGIC))), ivec16_set1(0x4b400000));
}

/* exp: x = n ln 2 + r with |r| <= ln 2 / 2, a polynomial in r by Horner with fma (our own least-maximum fit of the relative error on that
 * interval, 3e-9), times 2^(n - 1), times 2: no step meets a denormal, which would cost hundreds of cycles. Within 1 unit in the last place above -86,
 * 0 from there down (exp(-86) = 4.5e-38), inf on overflow, NaN for NaN. */
INLINE vec16 vec16_exp(vec16 x) {
    vec16 least = vec16_set1(-86.0f), magic = vec16_set1(ROUND_MAGIC);
    mask16 none = vec16_ge(least, x);
    x = vec16_min(vec16_set1(89.0f), vec16_max(least, x));
    vec16 t = vec16_fma(x, vec16_set1(0x1.715476p+0f), magic), n = vec16_sub(t, magic);
    vec16 r = vec16_fma(n, vec16_set1(-0x1.62e4p-1f), x);
    r = vec16_fma(n, vec16_set1(-0x1.7f7d1cp-20f), r);
    vec16 p = vec16_set1(0x1.6a4744p-10f);
    p = vec16_fma(p, r, vec16_set1(0x1.1239a2p-7f));
    p = vec16_fma(p, r, vec16_set1(0x1.5558b6p-5f));
    p = vec16_fma(p, r, vec16_set1(0x1.555492p-3f));
    p = vec16_fma(p, r, vec16_set1(0x1.fffffcp-2f));
    p = vec16_fma(p, r, vec16_set1(1.0f));
    p = vec16_fma(p, r, vec16_set1(1.0f));
    /* t's bits are ROUND_MAGIC's + n; shifted left only n's low bits stay, added to the exponent of 2^-1 */
    ivec16 power = ivec16_add(ivec16_left(vec16_bits(t), 23), ivec16_set1(0x3f000000));
    p = vec16_mul(p, ivec16_as_float(power));
    return vec16_select(none, vec16_zero(), vec16_add(p, p));
}

/* x / (1 + exp(-x)) (Hendrycks & Gimpel 2016; Elfwing et al. 2017). */
INLINE vec16 vec16_silu(vec16 x) {
    vec16 one = vec16_set1(1.0f);
    return vec16_div(x, vec16_add(one, vec16_exp(vec16_sub(vec16_zero(), x))));
}

/* tanh of the magnitude, with the sign put back: below 0.5625 a + a^3 times a polynomial in a^2 (our own least-maximum fit of the relative error there,
 * 2e-9), from there on 1 - 2 / (exp(2 a) + 1). Within 2 units in the last place everywhere; zeros and NaN as they are. */
INLINE vec16 vec16_tanh(vec16 x) {
    ivec16 bits = vec16_bits(x);
    vec16 a = ivec16_as_float(ivec16_and(bits, ivec16_set1(0x7fffffff))), one = vec16_set1(1.0f);
    vec16 far = vec16_sub(one, vec16_div(vec16_set1(2.0f), vec16_add(vec16_exp(vec16_add(a, a)), one)));
    vec16 square = vec16_mul(a, a), p = vec16_set1(-0x1.95001ep-8f);
    p = vec16_fma(p, square, vec16_set1(0x1.582fbp-6f));
    p = vec16_fma(p, square, vec16_set1(-0x1.b90948p-5f));
    p = vec16_fma(p, square, vec16_set1(0x1.110c72p-3f));
    p = vec16_fma(p, square, vec16_set1(-0x1.555548p-2f));
    vec16 near = vec16_fma(vec16_mul(a, square), p, a);
    a = vec16_select(vec16_ge(vec16_set1(0.5625f), a), near, far);
    return ivec16_as_float(ivec16_add(vec16_bits(a), ivec16_and(bits, ivec16_set1(INT32_MIN))));
}

/* cap * tanh(x / cap) */
INLINE vec16 vec16_softcap(vec16 x, vec16 cap) {
    return vec16_mul(cap, vec16_tanh(vec16_div(x, cap)));
}

/* GELU in its tanh form, x / 2 (1 + tanh u) with u = sqrt(2 / pi) (x + 0.044715 x^3) (Hendrycks & Gimpel 2016), as the equal x / (1 + exp(-2 u)), in which
 * nothing cancels: -2 u = x fma(x^2, c3, c1), c1 = -2 sqrt(2 / pi), c3 = 0.044715 c1. Off by less than (3 + 4 abs(u)) 2^-23 of itself. */
INLINE vec16 vec16_gelu_tanh(vec16 x) {
    vec16 one = vec16_set1(1.0f), inner = vec16_fma(vec16_mul(x, x), vec16_set1(-0x1.2444f2p-4f), vec16_set1(-0x1.988454p+0f));
    return vec16_div(x, vec16_add(one, vec16_exp(vec16_mul(x, inner))));
}

#endif
