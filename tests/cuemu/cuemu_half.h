/* cuemu_half.h: __half and __nv_bfloat16 in integers. Part of cuemu.h. Conversions round to nearest, ties to even; the payload of a NaN is not kept. */
#pragma once

struct __half {
    uint16_t u;
};
struct __nv_bfloat16 {
    uint16_t u;
};
struct alignas(4) __half2 {
    __half x, y;
};
struct alignas(4) __nv_bfloat162 {
    __nv_bfloat16 x, y;
};
typedef __half half;
typedef __half2 half2;

CUEMU_INLINE float __half2float(__half h) {
    const uint32_t sign = (uint32_t)(h.u & 0x8000) << 16, e = h.u >> 10 & 31, m = h.u & 1023;
    if (e == 31)
        return cuemu::unbits<float>(sign | 0x7f800000 | (m ? m << 13 | 0x400000 : 0));
    if (e)
        return cuemu::unbits<float>(sign | (e + 112) << 23 | m << 13);
    const float f = (float)m * 0x1p-24f;
    return sign ? -f : f;
}

CUEMU_INLINE __half __float2half_rn(float f) {
    const uint32_t x = (uint32_t)cuemu::bits(f), sign = x >> 16 & 0x8000, a = x & 0x7fffffff;
    if (a > 0x7f800000)
        return {(uint16_t)0x7fff};
    if (a >= 0x477ff000) /* rounds to infinity */
        return {(uint16_t)(sign | 0x7c00)};
    if (a < 0x38800000) { /* a subnormal half: adding 0.5 leaves its value in the low bits of the sum */
        const float t = fabsf(f) + 0.5f;
        return {(uint16_t)(sign | ((uint32_t)cuemu::bits(t) - 0x3f000000))};
    }
    return {(uint16_t)(sign | ((a - 0x38000000 + 0xfff + (a >> 13 & 1)) >> 13))};
}
CUEMU_INLINE __half __float2half(float f) {
    return __float2half_rn(f);
}

CUEMU_INLINE float __bfloat162float(__nv_bfloat16 b) {
    return cuemu::unbits<float>((uint64_t)b.u << 16);
}
CUEMU_INLINE __nv_bfloat16 __float2bfloat16_rn(float f) {
    const uint32_t x = (uint32_t)cuemu::bits(f);
    if ((x & 0x7fffffff) > 0x7f800000)
        return {(uint16_t)0x7fff};
    return {(uint16_t)((x + 0x7fff + (x >> 16 & 1)) >> 16)};
}
CUEMU_INLINE __nv_bfloat16 __float2bfloat16(float f) {
    return __float2bfloat16_rn(f);
}

CUEMU_INLINE __half __ushort_as_half(unsigned short u) {
    return {u};
}
CUEMU_INLINE unsigned short __half_as_ushort(__half h) {
    return h.u;
}
CUEMU_INLINE __nv_bfloat16 __ushort_as_bfloat16(unsigned short u) {
    return {u};
}
CUEMU_INLINE float2 __half22float2(__half2 h) {
    return {__half2float(h.x), __half2float(h.y)};
}
CUEMU_INLINE __half2 __floats2half2_rn(float a, float b) {
    return {__float2half(a), __float2half(b)};
}
CUEMU_INLINE float __low2float(__half2 h) {
    return __half2float(h.x);
}
CUEMU_INLINE float __high2float(__half2 h) {
    return __half2float(h.y);
}
CUEMU_INLINE float2 __bfloat1622float2(__nv_bfloat162 h) {
    return {__bfloat162float(h.x), __bfloat162float(h.y)};
}
