/* f16.h: half precision to float and back, exactly, by integer arithmetic alone: the same results as the processor's conversions (round to nearest
 * even; NaNs become quiet and keep what fits of their payload). IEEE 754-2019 binary16, binary32. */
#ifndef WEIR_CPU_F16_H
#define WEIR_CPU_F16_H

#include <stdint.h>
#include <string.h>

static inline uint32_t float_bits(float f) {
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static inline float bits_float(uint32_t u) {
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static inline float f16_to_float(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, fraction = h & 0x3ff;
    if (exponent == 31)
        return bits_float(sign | 0x7f800000 | fraction << 13 | (fraction ? 0x400000 : 0));
    if (exponent)
        return bits_float(sign | (exponent + 112) << 23 | fraction << 13);
    if (!fraction)
        return bits_float(sign);
    uint32_t shift = (uint32_t)__builtin_clz(fraction) - 21; /* brings the first one to bit 10 */
    return bits_float(sign | (113 - shift) << 23 | (fraction << shift & 0x3ff) << 13);
}

/* v / 2^shift, nearest even; 1 <= shift <= 31. */
static inline uint32_t shift_nearest(uint32_t v, uint32_t shift) {
    uint32_t half = 1u << (shift - 1), rest = v & ((half << 1) - 1), whole = v >> shift;
    return whole + (rest > half || (rest == half && (whole & 1)));
}

static inline uint16_t float_to_f16(float f) {
    uint32_t u = float_bits(f), sign = u >> 16 & 0x8000, magnitude = u & 0x7fffffff;
    if (magnitude > 0x7f800000)
        return (uint16_t)(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
    if (magnitude >= 0x47800000) /* 2^16 and above */
        return (uint16_t)(sign | 0x7c00);
    if (magnitude >= 0x38800000) /* 2^-14: normal; a carry out of the fraction is right, up to infinity */
        return (uint16_t)(sign | shift_nearest(magnitude - 0x38000000, 13));
    if (magnitude < 0x33000000) /* below half of the least subnormal */
        return (uint16_t)sign;
    uint32_t exponent = magnitude >> 23, fraction = (magnitude & 0x7fffff) | 0x800000;
    return (uint16_t)(sign | shift_nearest(fraction, 126 - exponent));
}

#endif
