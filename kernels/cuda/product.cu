/* product.cu: products of one or few rows with weights, each weight read once for four rows. A block makes four sums for each of its rows, from four rows of weights
 * (outputs, or rows of gate and up); its four warps take groups of eight values in turn, lanes beside each other, so that a warp reads 128 bytes or more that lie
 * together. The order of every sum depends on k alone. */
#include "weights.h"

enum { PRODUCT_WARPS = WEIR_CUDA_PRODUCT_THREADS / WARP, SUMS = 4, MOST_ROWS = WEIR_CUDA_PRODUCT_ROWS };

/* Eight values of x as group g of the weights has them. */
template <class W> DEVICE void load_x(const float *x, int g, int k, bool whole, float v[GROUP]) {
    const int low = W::low(g), high = W::high(g);
    if (whole) {
        const float4 a = *(const float4 *)(x + low), b = *(const float4 *)(x + high);
        v[0] = a.x, v[1] = a.y, v[2] = a.z, v[3] = a.w;
        v[4] = b.x, v[5] = b.y, v[6] = b.z, v[7] = b.w;
    } else {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            v[i] = low + i < k ? x[low + i] : 0.0f;
            v[i + 4] = high + i < k ? x[high + i] : 0.0f;
        }
    }
}

/* Where a block's four rows of weights are. */
template <class W> struct operands {
    W first, second; /* of sums 0, 1 and of 2, 3 */
    size_t row[SUMS];
    __device__ __forceinline__ const W &of(int s) const { return s < SUMS / 2 ? first : second; }
};

/* Adds group g of R rows to their sums. */
template <class W, int R>
DEVICE void add_group(const operands<W> &o, const float *const x[R], int g, int k, bool whole, float sum[SUMS][R]) {
    float w[SUMS][GROUP], d[SUMS], m[SUMS];
#pragma unroll
    for (int s = 0; s < SUMS; s++) {
        o.of(s).codes(o.row[s], g, w[s]);
        d[s] = o.of(s).scale(o.row[s], g);
        m[s] = o.of(s).minimum(o.row[s], g);
    }
#pragma unroll
    for (int r = 0; r < R; r++) {
        float v[GROUP], total = 0.0f;
        load_x<W>(x[r], g, k, whole, v);
#pragma unroll
        for (int i = 0; i < GROUP && W::has_minimum; i++)
            total += v[i];
#pragma unroll
        for (int s = 0; s < SUMS; s++) {
            float part = W::scaled ? 0.0f : sum[s][r];
#pragma unroll
            for (int i = 0; i < GROUP; i++)
                part = fmaf(v[i], w[s][i], part);
            sum[s][r] = W::scaled ? fmaf(d[s], part, sum[s][r]) : part;
            if (W::has_minimum)
                sum[s][r] = fmaf(m[s], total, sum[s][r]);
        }
    }
}

/* The sums of R rows of x, from row `first` of `count` on, to out[s][r]; rows beyond count are done with the last one's x. Ends with a barrier. */
template <class W, int R>
DEVICE void block_sums(const operands<W> &o, const float *x, int ldx, int first, int count, int k, float out[SUMS][MOST_ROWS]) {
    __shared__ float of_warp[PRODUCT_WARPS][SUMS][MOST_ROWS];
    const int thread = (int)threadIdx.x, lane = thread % WARP, warp = thread / WARP;
    const bool whole = k % GROUP == 0 && ldx % 4 == 0;
    float sum[SUMS][R];
    const float *row[R];
#pragma unroll
    for (int r = 0; r < R; r++) {
        row[r] = x + (size_t)min(first + r, count - 1) * (size_t)ldx;
#pragma unroll
        for (int s = 0; s < SUMS; s++)
            sum[s][r] = 0.0f;
    }
#pragma unroll 1 /* more would not fit the registers */
    for (int g = thread; g < (k + GROUP - 1) / GROUP; g += WEIR_CUDA_PRODUCT_THREADS)
        add_group<W, R>(o, row, g, k, whole, sum);
#pragma unroll
    for (int s = 0; s < SUMS; s++) {
#pragma unroll
        for (int r = 0; r < R; r++) {
            const float all = warp_reduce<op_sum>(sum[s][r]);
            if (lane == 0)
                of_warp[warp][s][r] = all;
        }
    }
    __syncthreads();
    if (thread < SUMS * R) {
        const int s = thread / R, r = thread % R;
        out[s][r] = (of_warp[0][s][r] + of_warp[1][s][r]) + (of_warp[2][s][r] + of_warp[3][s][r]);
    }
    __syncthreads();
}

template <class W>
DEVICE void sums_of_rows(const operands<W> &o, const float *x, int ldx, int first, int count, int k, float out[SUMS][MOST_ROWS]) {
    const int rows = count - first;
    if (rows == 1)
        block_sums<W, 1>(o, x, ldx, first, count, k, out);
    else
        block_sums<W, MOST_ROWS>(o, x, ldx, first, count, k, out);
}

/* y (+)= product + bias, for output j of row r. */
DEVICE void put_product(const weir_step *step, float product, float *y, int ldy, int y_rows, int r, int j, int add, const float *bias) {
    float *to = y + rows_index(step, y_rows, r) * (size_t)ldy + j;
    if (bias)
        product = product + bias[j];
    *to = add ? *to + product : product;
}

template <class W>
DEVICE void product(const weir_step *step, const char *w, int n, int k, const float *x, int ldx, int rows, float *y, int ldy, int y_rows,
                    int add, const float *bias) {
    __shared__ float out[SUMS][MOST_ROWS];
    const int count = rows_count(step, rows), first = (int)blockIdx.y * MOST_ROWS, output = (int)blockIdx.x * SUMS;
    if (first >= count || output >= n)
        return;
    const W matrix(w, n, k);
    const operands<W> o = {matrix, matrix, {(size_t)output, (size_t)output + 1, (size_t)output + 2, (size_t)output + 3}};
    sums_of_rows<W>(o, x, ldx, first, count, k, out);
    const int r = (int)threadIdx.x / SUMS, s = (int)threadIdx.x % SUMS;
    if (r < MOST_ROWS && first + r < count && output + s < n)
        put_product(step, out[s][r], y, ldy, y_rows, first + r, output + s, add, bias);
}

template <class W>
DEVICE void gated(const weir_step *step, const char *gate, const char *up, int n, int k, const float *x, int ldx, float *y, int ldy,
                  int activation, const float *gate_bias, const float *up_bias) {
    __shared__ float out[SUMS][MOST_ROWS];
    const int count = step->tile_rows, first = (int)blockIdx.y * MOST_ROWS, output = (int)blockIdx.x * WEIR_CUDA_GATED_OUTPUTS;
    if (first >= count || output >= n)
        return;
    const size_t at = (size_t)output;
    const operands<W> o = {W(gate, n, k), W(up, n, k), {at, at + 1, at, at + 1}};
    sums_of_rows<W>(o, x, ldx, first, count, k, out);
    const int r = (int)threadIdx.x / 2, s = (int)threadIdx.x % 2, j = output + s;
    if (r >= MOST_ROWS || first + r >= count || j >= n)
        return;
    const float g = gate_bias ? out[s][r] + gate_bias[j] : out[s][r], u = up_bias ? out[s + 2][r] + up_bias[j] : out[s + 2][r];
    y[(size_t)(first + r) * (size_t)ldy + j] = activation_of(g, activation) * u;
}

#define T(name)                                                                                                                            \
    extern "C" __global__ void __launch_bounds__(WEIR_CUDA_PRODUCT_THREADS, 4)                                                             \
        weir_product_##name(const weir_step *step, void *const *base, uint64_t offset, int32_t n, int32_t k, const float *x, int32_t ldx,  \
                            int32_t rows, float *y, int32_t ldy, int32_t y_rows, int32_t add, int32_t bias, uint64_t bias_offset) {        \
        product<weights_##name>(step, unit_at(base, offset), n, k, x, ldx, rows, y, ldy, y_rows, add,                                      \
                                bias ? floats_at(base, bias_offset) : NULL);                                                               \
    }                                                                                                                                      \
    extern "C" __global__ void __launch_bounds__(WEIR_CUDA_PRODUCT_THREADS, 4)                                                             \
        weir_gated_##name(const weir_step *step, void *const *gate_base, uint64_t gate_offset, void *const *up_base, uint64_t up_offset,   \
                          int32_t n, int32_t k, const float *x, int32_t ldx, float *y, int32_t ldy, int32_t activation, int32_t bias,      \
                          uint64_t gate_bias, uint64_t up_bias) {                                                                          \
        gated<weights_##name>(step, unit_at(gate_base, gate_offset), unit_at(up_base, up_offset), n, k, x, ldx, y, ldy, activation,        \
                              bias ? floats_at(gate_base, gate_bias) : NULL, bias ? floats_at(up_base, up_bias) : NULL);                   \
    }
WEIR_CUDA_TYPES(T)
#undef T
