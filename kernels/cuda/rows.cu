/* rows.cu: what is done value by value or row by row: the step's tiles, embedding, RMSNorm, gating, soft caps, and what follows a product made elsewhere. */
#include "weights.h"

DEVICE void next_tile(int32_t total, int32_t most, int32_t *first, int32_t *rows) {
    const int32_t next = *first + *rows >= total ? 0 : *first + *rows;
    *first = next;
    *rows = min(total - next, most);
}

extern "C" __global__ void __launch_bounds__(WEIR_CUDA_TILE_THREADS) weir_tile(weir_step *step, int32_t outputs) {
    if (threadIdx.x != 0)
        return;
    if (outputs)
        next_tile(step->outputs, step->out_tile, &step->out_first, &step->out_rows);
    else
        next_tile(step->rows, step->tile, &step->tile_first, &step->tile_rows);
}

/* A token that the table does not have becomes a row of zeros. */
template <class W> DEVICE void embed(const weir_step *step, const char *table, int n, int k, float *x, float scale) {
    const int r = (int)blockIdx.x;
    if (r >= step->tile_rows)
        return;
    const int32_t token = KDEV_PTR(step->token)[step->tile_first + r];
    if (step->history && threadIdx.x == 0) {
        const int position = position_of(step, r);
        KDEV_PTR(step->history)[block_of(step, r, position) * WEIR_KV_BLOCK + (size_t)(position % WEIR_KV_BLOCK)] = token;
    }
    const W w(table, n, k);
    float *to = x + (size_t)(step->tile_first + r) * (size_t)k;
    for (int g = (int)threadIdx.x; g < (k + GROUP - 1) / GROUP; g += WEIR_CUDA_MAP_THREADS) {
        float v[GROUP] = {0};
        if (token >= 0 && token < n)
            values_of(w, (size_t)token, g, v);
#pragma unroll
        for (int i = 0; i < GROUP; i++) {
            const int at = i < 4 ? W::low(g) + i : W::high(g) + i - 4;
            if (at < k)
                to[at] = scale != 0.0f ? v[i] * scale : v[i];
        }
    }
}

#define T(name)                                                                                                                            \
    extern "C" __global__ void __launch_bounds__(WEIR_CUDA_MAP_THREADS)                                                                    \
        weir_embed_##name(const weir_step *step, void *const *base, uint64_t offset, int32_t n, int32_t k, float *x, float scale) {        \
        embed<weights_##name>(step, unit_at(base, offset), n, k, x, scale);                                                                \
    }
WEIR_CUDA_TYPES(T)
#undef T

/* x may be y. */
extern "C" __global__ void __launch_bounds__(WEIR_CUDA_MAP_THREADS)
    weir_rmsnorm(const weir_step *step, const float *x, int32_t x_rows, int32_t width, void *const *weight_base, uint64_t weight_offset,
                 float eps, float *y, int32_t y_rows, int32_t add) {
    const int r = (int)blockIdx.x;
    if (r >= rows_count(step, x_rows))
        return;
    const float *w = floats_at(weight_base, weight_offset), *from = x + rows_index(step, x_rows, r) * (size_t)width;
    float *to = y + rows_index(step, y_rows, r) * (size_t)width, sum = 0.0f;
    for (int i = (int)threadIdx.x; i < width; i += WEIR_CUDA_MAP_THREADS)
        sum = fmaf(from[i], from[i], sum);
    const float scale = 1.0f / sqrtf(block_reduce<op_sum>(sum, 0.0f) / (float)width + eps);
    for (int i = (int)threadIdx.x; i < width; i += WEIR_CUDA_MAP_THREADS) {
        const float v = from[i] * scale * w[i];
        to[i] = add ? to[i] + v : v;
    }
}

/* This thread's value of a row, or -1. */
DEVICE int column(int width) {
    const int i = (int)(blockIdx.x * WEIR_CUDA_MAP_THREADS + threadIdx.x);
    return i < width ? i : -1;
}

extern "C" __global__ void __launch_bounds__(WEIR_CUDA_MAP_THREADS)
    weir_gate(const weir_step *step, const float *gate, int32_t ldg, const float *up, int32_t ldu, int32_t n, float *y, int32_t ldy,
              int32_t activation) {
    const int i = column(n), r = (int)blockIdx.y;
    if (i >= 0 && r < step->tile_rows)
        y[(size_t)r * (size_t)ldy + i] = activation_of(gate[(size_t)r * (size_t)ldg + i], activation) * up[(size_t)r * (size_t)ldu + i];
}

extern "C" __global__ void __launch_bounds__(WEIR_CUDA_MAP_THREADS)
    weir_finish(const weir_step *step, const float *product, int32_t ldp, int32_t n, int32_t rows, float *y, int32_t ldy, int32_t y_rows,
                int32_t add, void *const *bias_base, uint64_t bias_offset) {
    const int i = column(n), r = (int)blockIdx.y;
    if (i >= 0 && r < rows_count(step, rows))
        put_product(step, product[(size_t)r * (size_t)ldp + i], y, ldy, y_rows, r, i, add,
                    bias_base ? floats_at(bias_base, bias_offset) : NULL);
}

extern "C" __global__ void __launch_bounds__(WEIR_CUDA_MAP_THREADS)
    weir_to_f16(const weir_step *step, const float *x, int32_t ldx, int32_t width, int32_t rows, __half *out) {
    const int i = column(width), r = (int)blockIdx.y;
    if (i >= 0 && r < rows_count(step, rows))
        out[(size_t)r * (size_t)width + i] = __float2half_rn(x[(size_t)r * (size_t)ldx + i]);
}

extern "C" __global__ void __launch_bounds__(WEIR_CUDA_MAP_THREADS)
    weir_softcap(const weir_step *step, float *x, int32_t width, int32_t rows, float cap) {
    const int i = column(width), r = (int)blockIdx.y;
    if (i >= 0 && r < rows_count(step, rows)) {
        float *at = x + (size_t)r * (size_t)width + i;
        *at = softcap_of(*at, cap);
    }
}
