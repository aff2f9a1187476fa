/* weights.h: the layout of each weight type on this device (README.md), read eight values at a time: group g of a row is values low(g) .. + 3 and high(g) .. + 3. Codes
 * come as whole floats; a value is scale * code (+ minimum). Float types have codes alone. Knows no product. */
#ifndef WEIR_KERNELS_CUDA_WEIGHTS_H
#define WEIR_KERNELS_CUDA_WEIGHTS_H

#include "common.h"

enum { GROUP = 8, BLOCK = 32, PANEL = 16 };

DEVICE size_t padded_rows(int n) {
    return ((size_t)n + PANEL - 1) / PANEL * PANEL;
}

/* Byte i of four, minus `offset`, as a float: the byte becomes the low end of 2^23's fraction. Exact, and without a conversion. */
DEVICE float byte_code(uint32_t bytes, int i, float offset) {
    return bits_float(__byte_perm(bytes, 0x4b000000u, 0x7650u + (unsigned)i)) - (8388608.0f + offset);
}

/* ---- what a float type's value is ---- */

struct value_f32 {
    typedef float type;
    static __device__ __forceinline__ float widen(float v) { return v; }
};
struct value_f16 {
    typedef __half type;
    static __device__ __forceinline__ float widen(__half v) { return __half2float(v); }
};
struct value_bf16 {
    typedef __nv_bfloat16 type;
    static __device__ __forceinline__ float widen(__nv_bfloat16 v) { return __bfloat162float(v); }
};

/* Eight values of an array of `n` from 8 g on as floats, zeros beyond n. `whole`: rows begin at 16 bytes and have whole groups. */
template <class V> DEVICE void load8(const typename V::type *row, int g, int n, bool whole, float v[GROUP]) {
    typename V::type of[GROUP];
    if (whole) {
        const uint4 *from = (const uint4 *)(row + g * GROUP);
#pragma unroll
        for (int i = 0; i < GROUP * (int)sizeof(of[0]) / 16; i++) {
            const uint4 u = from[i];
            memcpy((char *)of + i * sizeof u, &u, sizeof u);
        }
#pragma unroll
        for (int i = 0; i < GROUP; i++)
            v[i] = V::widen(of[i]);
    } else {
#pragma unroll
        for (int i = 0; i < GROUP; i++)
            v[i] = g * GROUP + i < n ? V::widen(row[g * GROUP + i]) : 0.0f;
    }
}

/* ---- matrices ---- */

template <class V> struct weights_float {
    static const bool scaled = false, has_minimum = false;
    const typename V::type *values;
    int k;

    __device__ __forceinline__ weights_float(const char *at, int, int columns) : values((const typename V::type *)at), k(columns) {}
    static __device__ __forceinline__ int low(int g) { return g * GROUP; }
    static __device__ __forceinline__ int high(int g) { return g * GROUP + 4; }
    __device__ __forceinline__ void codes(size_t row, int g, float w[GROUP]) const {
        load8<V>(values + row * (size_t)k, g, k, k % GROUP == 0, w);
    }
    __device__ __forceinline__ float scale(size_t, int) const { return 1.0f; }
    __device__ __forceinline__ float minimum(size_t, int) const { return 0.0f; }
};

/* Four groups a block: bytes 4 (g % 4) .. + 3 hold values 4 (g % 4) .. + 3 in their low nibbles, those from 16 on in the high ones. */
template <bool Minima> struct weights_q4 {
    static const bool scaled = true, has_minimum = Minima;
    const char *codes_at;
    const __half *scales;
    int blocks;

    __device__ __forceinline__ weights_q4(const char *at, int n, int k)
        : codes_at(at), scales((const __half *)(at + padded_rows(n) * (size_t)k / 2)), blocks(k / BLOCK) {}
    static __device__ __forceinline__ int low(int g) { return g / 4 * BLOCK + g % 4 * 4; }
    static __device__ __forceinline__ int high(int g) { return low(g) + BLOCK / 2; }
    __device__ __forceinline__ void codes(size_t row, int g, float w[GROUP]) const {
        const uint32_t q = ((const uint32_t *)codes_at)[row * (size_t)blocks * 4 + (size_t)g];
        const uint32_t lows = q & 0x0f0f0f0fu, highs = q >> 4 & 0x0f0f0f0fu;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            w[i] = byte_code(lows, i, Minima ? 0.0f : 8.0f);
            w[i + 4] = byte_code(highs, i, Minima ? 0.0f : 8.0f);
        }
    }
    __device__ __forceinline__ float scale(size_t row, int g) const {
        const size_t b = row * (size_t)blocks + (size_t)(g / 4);
        return __half2float(scales[Minima ? 2 * b : b]);
    }
    __device__ __forceinline__ float minimum(size_t row, int g) const {
        return Minima ? __half2float(scales[2 * (row * (size_t)blocks + (size_t)(g / 4)) + 1]) : 0.0f;
    }
};

struct weights_q8_0 {
    static const bool scaled = true, has_minimum = false;
    const char *codes_at;
    const __half *scales;
    int blocks;

    __device__ __forceinline__ weights_q8_0(const char *at, int n, int k)
        : codes_at(at), scales((const __half *)(at + padded_rows(n) * (size_t)k)), blocks(k / BLOCK) {}
    static __device__ __forceinline__ int low(int g) { return g * GROUP; }
    static __device__ __forceinline__ int high(int g) { return g * GROUP + 4; }
    __device__ __forceinline__ void codes(size_t row, int g, float w[GROUP]) const {
        const uint2 q = ((const uint2 *)codes_at)[row * (size_t)blocks * 4 + (size_t)g];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            w[i] = byte_code(q.x ^ 0x80808080u, i, 128.0f);
            w[i + 4] = byte_code(q.y ^ 0x80808080u, i, 128.0f);
        }
    }
    __device__ __forceinline__ float scale(size_t row, int g) const {
        return __half2float(scales[row * (size_t)blocks + (size_t)(g / 4)]);
    }
    __device__ __forceinline__ float minimum(size_t, int) const {
        return 0.0f;
    }
};

typedef weights_float<value_f32> weights_f32;
typedef weights_float<value_f16> weights_f16;
typedef weights_float<value_bf16> weights_bf16;
typedef weights_q4<false> weights_q4_0;
typedef weights_q4<true> weights_q4_1;

/* Values of a group, each rounded as weir_dequantise rounds it. */
template <class W> DEVICE void values_of(const W &w, size_t row, int g, float v[GROUP]) {
    w.codes(row, g, v);
    if (W::scaled) {
        const float d = w.scale(row, g), m = w.minimum(row, g);
#pragma unroll
        for (int i = 0; i < GROUP; i++) {
            v[i] = d * v[i];
            if (W::has_minimum)
                v[i] = v[i] + m;
        }
    }
}

#endif
