/* many.cu: products of many rows where there is no cuBLAS: rows of weights as plain matrices, and tiled products with those. A block makes 64 x 64 results from pieces
 * of k in shared memory; sums run over ascending k. */
#include "weights.h"

/* ---- weights as plain matrices ---- */

template <class W, class T> DEVICE void dequantise(const char *at, int n, int k, int first, T *out) {
    const W w(at, n, k);
    T *to = out + (size_t)blockIdx.x * (size_t)k;
    for (int g = (int)threadIdx.x; g < (k + GROUP - 1) / GROUP; g += WEIR_CUDA_PACK_THREADS) {
        float v[GROUP];
        values_of(w, (size_t)first + blockIdx.x, g, v);
#pragma unroll
        for (int i = 0; i < GROUP; i++) {
            const int at = i < 4 ? W::low(g) + i : W::high(g) + i - 4;
            if (at < k)
                store_as(to + at, v[i]);
        }
    }
}

#define AS(name, T, form)                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(WEIR_CUDA_PACK_THREADS)                                                                   \
        weir_dequantise_##name##_##form(void *const *base, uint64_t offset, int32_t n, int32_t k, int32_t first, T *out) {                 \
        dequantise<weights_##name, T>(unit_at(base, offset), n, k, first, out);                                                            \
    }
#define T(name) AS(name, __half, f16) AS(name, float, f32)
WEIR_CUDA_TYPES(T)
#undef T
#undef AS

/* ---- products ---- */

enum { TILE = 64, F32_PIECE = 16, F16_PIECE = 32, PAD = 8 };
static_assert(TILE == WEIR_CUDA_GEMM_ROWS && TILE == WEIR_CUDA_GEMM_OUTPUTS, "a block's results");

/* Thread (i, j) has rows i, i + 16, ... and outputs j, j + 16, ... */
extern "C" __global__ void __launch_bounds__(WEIR_CUDA_GEMM_F32_THREADS)
    weir_gemm_f32(const weir_step *step, const float *x, int32_t ldx, const float *w, int32_t n, int32_t k, int32_t rows, float *y,
                  int32_t ldy, int32_t y_rows, int32_t add, void *const *bias_base, uint64_t bias_offset) {
    __shared__ float a[TILE][F32_PIECE + 1], b[TILE][F32_PIECE + 1];
    const int count = rows_count(step, rows), first = (int)blockIdx.y * TILE, output = (int)blockIdx.x * TILE;
    if (first >= count || output >= n)
        return;
    const int i = (int)threadIdx.x / 16, j = (int)threadIdx.x % 16;
    float sum[4][4] = {{0}};
    for (int piece = 0; piece < k; piece += F32_PIECE) {
        for (int e = (int)threadIdx.x; e < TILE * F32_PIECE; e += WEIR_CUDA_GEMM_F32_THREADS) {
            const int line = e / F32_PIECE, c = e % F32_PIECE;
            const bool inside = piece + c < k;
            a[line][c] = inside && first + line < count ? x[(size_t)(first + line) * (size_t)ldx + (size_t)(piece + c)] : 0.0f;
            b[line][c] = inside && output + line < n ? w[(size_t)(output + line) * (size_t)k + (size_t)(piece + c)] : 0.0f;
        }
        __syncthreads();
#pragma unroll 4
        for (int c = 0; c < F32_PIECE; c++) {
#pragma unroll
            for (int e = 0; e < 16; e++)
                sum[e / 4][e % 4] = fmaf(a[i + e / 4 * 16][c], b[j + e % 4 * 16][c], sum[e / 4][e % 4]);
        }
        __syncthreads();
    }
    const float *bias = bias_base ? floats_at(bias_base, bias_offset) : NULL;
#pragma unroll
    for (int e = 0; e < 16; e++) {
        const int r = first + i + e / 4 * 16, o = output + j + e % 4 * 16;
        if (r < count && o < n)
            put_product(step, sum[e / 4][e % 4], y, ldy, y_rows, r, o, add, bias);
    }
}

/* Lines first .. first + 63 of a row-major matrix, F16_PIECE values from `piece` on; zeros outside. */
DEVICE void load_lines(__half to[TILE][F16_PIECE + PAD], const __half *from, int ld, int first, int lines, int piece, int k) {
    const bool whole = ld % 8 == 0 && k % 8 == 0;
    for (int e = (int)threadIdx.x; e < TILE * F16_PIECE / 8; e += WEIR_CUDA_GEMM_F16_THREADS) {
        const int line = e / (F16_PIECE / 8), c = e % (F16_PIECE / 8) * 8, left = first + line < lines ? k - piece - c : 0;
        const __half *at = from + (size_t)(first + line) * (size_t)ld + (size_t)(piece + c);
        uint4 u = {0, 0, 0, 0};
        if (left >= 8 && whole)
            u = *(const uint4 *)at;
        else if (left > 0) {
            __half part[8];
#pragma unroll
            for (int i = 0; i < 8; i++)
                part[i] = i < left ? at[i] : __float2half_rn(0.0f);
            memcpy(&u, part, sizeof u);
        }
        *reinterpret_cast<uint4 *>(&to[line][c]) = u;
    }
}

DEVICE unsigned pair_at(const __half *at) {
    return *(const unsigned *)at;
}

/* One piece: warp (wi, wj) of 2 x 2 has 32 x 32 results, two by four of 16 x 8. */
DEVICE void multiply_piece(const __half a[TILE][F16_PIECE + PAD], const __half b[TILE][F16_PIECE + PAD], int wi, int wj, float d[2][4][4]) {
    const int lane = (int)threadIdx.x % WARP, g = lane / 4, t = lane % 4 * 2;
#pragma unroll
    for (int c = 0; c < F16_PIECE; c += 16) {
        unsigned fa[2][4], fb[4][2];
#pragma unroll
        for (int i = 0; i < 2; i++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                fa[i][e] = pair_at(&a[wi * 32 + i * 16 + g + e % 2 * 8][c + t + e / 2 * 8]);
#pragma unroll
        for (int j = 0; j < 4; j++)
#pragma unroll
            for (int e = 0; e < 2; e++)
                fb[j][e] = pair_at(&b[wj * 32 + j * 8 + g][c + t + e * 8]);
#pragma unroll
        for (int i = 0; i < 2; i++)
#pragma unroll
            for (int j = 0; j < 4; j++)
                kdev_mma_m16n8k16_f16f32(d[i][j], fa[i], fb[j]);
    }
}

extern "C" __global__ void __launch_bounds__(WEIR_CUDA_GEMM_F16_THREADS)
    weir_gemm_f16(const weir_step *step, const __half *x, int32_t ldx, const __half *w, int32_t n, int32_t k, int32_t rows, float *y,
                  int32_t ldy, int32_t y_rows, int32_t add, void *const *bias_base, uint64_t bias_offset) {
    __shared__ __align__(16) __half a[TILE][F16_PIECE + PAD];
    __shared__ __align__(16) __half b[TILE][F16_PIECE + PAD];
    const int count = rows_count(step, rows), first = (int)blockIdx.y * TILE, output = (int)blockIdx.x * TILE;
    if (first >= count || output >= n)
        return;
    const int warp = (int)threadIdx.x / WARP, wi = warp / 2, wj = warp % 2, lane = (int)threadIdx.x % WARP;
    float d[2][4][4] = {{{0}}};
    for (int piece = 0; piece < k; piece += F16_PIECE) {
        load_lines(a, x, ldx, first, count, piece, k);
        load_lines(b, w, k, output, n, piece, k);
        __syncthreads();
        multiply_piece(a, b, wi, wj, d);
        __syncthreads();
    }
    const float *bias = bias_base ? floats_at(bias_base, bias_offset) : NULL;
#pragma unroll
    for (int e = 0; e < 32; e++) {
        const int r = first + wi * 32 + e / 16 * 16 + lane / 4 + e % 4 / 2 * 8, o = output + wj * 32 + e / 4 % 4 * 8 + lane % 4 * 2 + e % 2;
        if (r < count && o < n)
            put_product(step, d[e / 16][e / 4 % 4][e % 4], y, ldy, y_rows, r, o, add, bias);
    }
}
