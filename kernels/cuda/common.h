/* common.h: what the kernels share: rows of the step block, sums over warps and blocks in a fixed order, our own exp, tanh and activations. The elementary functions
 * are those of kernels/cpu, operation by operation (kernels/README.md), so that equal inputs give equal bits; nothing here may be contracted (nvcc -fmad=false). */
#ifndef WEIR_KERNELS_CUDA_COMMON_H
#define WEIR_KERNELS_CUDA_COMMON_H

#include "kdev.h"

#include "../kernels.h"
#include "list.h"

#include <string.h>

#define DEVICE static __device__ __forceinline__

enum { WARP = 32 };
#define ALL_LANES 0xffffffffu

/* ---- rows ---- */

DEVICE int rows_count(const weir_step *s, int rows) {
    return rows == WEIR_ROWS_TILE || rows == WEIR_ROWS_PASS ? s->tile_rows : s->out_rows;
}

DEVICE size_t rows_index(const weir_step *s, int rows, int r) {
    if (rows == WEIR_ROWS_PASS)
        return (size_t)(s->tile_first + r);
    return (size_t)(rows == WEIR_ROWS_GATHER ? KDEV_PTR(s->out_row)[s->out_first + r] : r);
}

DEVICE int position_of(const weir_step *s, int r) {
    return KDEV_PTR(s->position)[s->tile_first + r];
}

DEVICE int slot_of(const weir_step *s, int r) {
    return KDEV_PTR(s->slot)[s->tile_first + r];
}

/* The KV block of `position` in the sequence of tile row r. */
DEVICE size_t block_of(const weir_step *s, int r, int position) {
    return (size_t)KDEV_PTR(s->blocks)[(size_t)slot_of(s, r) * (size_t)s->blocks_per_sequence + (size_t)(position / WEIR_KV_BLOCK)];
}

/* The first position that a row at `position` sees. */
DEVICE int first_seen(int position, int window) {
    return window && position - window + 1 > 0 ? position - window + 1 : 0;
}

/* What lies at *base + offset. */
DEVICE char *unit_at(void *const *base, uint64_t offset) {
    void *const unit = *base;
    return (char *)KDEV_PTR(unit) + offset;
}

DEVICE const float *floats_at(void *const *base, uint64_t offset) {
    return (const float *)unit_at(base, offset);
}

/* ---- bits ---- */

DEVICE float bits_float(uint32_t u) {
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

DEVICE uint32_t float_bits(float f) {
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

/* ---- sums over a warp and a block: a butterfly, then the warps' sums by another one ---- */

struct op_sum {
    template <class T> static __device__ __forceinline__ T join(T a, T b) { return a + b; }
};
struct op_max {
    template <class T> static __device__ __forceinline__ T join(T a, T b) { return a > b ? a : b; }
};

template <class Op, class T> DEVICE T warp_reduce(T v) {
    return kdev_reduce<Op, WARP>(v);
}

/* blockDim.x: a multiple of 32, the same for every caller of a kernel; `none` changes nothing. Every thread gets the result. */
template <class Op, class T> DEVICE T block_reduce(T v, T none) {
    __shared__ T of_warp[WARP];
    const int lane = (int)threadIdx.x % WARP, warp = (int)threadIdx.x / WARP, warps = (int)blockDim.x / WARP;
    v = warp_reduce<Op>(v);
    if (lane == 0)
        of_warp[warp] = v;
    __syncthreads();
    v = warp_reduce<Op>(lane < warps ? of_warp[lane] : none);
    __syncthreads(); /* of_warp may be written again at once */
    return v;
}

/* ---- elementary functions ---- */

DEVICE float exp_of(float x) {
    if (!(x > -86.0f))
        return x == x ? 0.0f : x;
    x = x < 89.0f ? x : 89.0f;
    const float t = fmaf(x, 0x1.715476p+0f, 0x1.8p+23f), n = t - 0x1.8p+23f;
    float r = fmaf(n, -0x1.62e4p-1f, x);
    r = fmaf(n, -0x1.7f7d1cp-20f, r);
    float p = 0x1.6a4744p-10f;
    p = fmaf(p, r, 0x1.1239a2p-7f);
    p = fmaf(p, r, 0x1.5558b6p-5f);
    p = fmaf(p, r, 0x1.555492p-3f);
    p = fmaf(p, r, 0x1.fffffcp-2f);
    p = fmaf(p, r, 1.0f);
    p = fmaf(p, r, 1.0f);
    p = p * bits_float((float_bits(t) << 23) + 0x3f000000u);
    return p + p;
}

DEVICE float tanh_of(float x) {
    const uint32_t bits = float_bits(x);
    float a = bits_float(bits & 0x7fffffffu);
    if (a <= 0.5625f) {
        const float square = a * a;
        float p = -0x1.95001ep-8f;
        p = fmaf(p, square, 0x1.582fbp-6f);
        p = fmaf(p, square, -0x1.b90948p-5f);
        p = fmaf(p, square, 0x1.110c72p-3f);
        p = fmaf(p, square, -0x1.555548p-2f);
        a = fmaf(a * square, p, a);
    } else {
        a = 1.0f - 2.0f / (exp_of(a + a) + 1.0f);
    }
    return bits_float(float_bits(a) + (bits & 0x80000000u));
}

DEVICE float softcap_of(float x, float cap) {
    return cap * tanh_of(x / cap);
}

DEVICE float activation_of(float x, int activation) {
    if (activation == WEIR_SILU)
        return x / (1.0f + exp_of(0.0f - x));
    return x / (1.0f + exp_of(x * fmaf(x * x, -0x1.2444f2p-4f, -0x1.988454p+0f)));
}

#endif
