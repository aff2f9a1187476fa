/* rope.cu: tables of the rotary embedding (Su et al. 2021), and what is done with a row's queries, keys and values: norms of heads, rotation, storing in KV blocks.
 * Table entries are those of kernels/cpu/rope_table.c, operation by operation. */
#include "common.h"

/* ---- tables ---- */

#define HALF_PI_HIGH 0x1.921fb54442d18p+0
#define HALF_PI_LOW 0x1.1a62633145c07p-54
#define TWO_OVER_PI 0x1.45f306dc9c883p-1
#define ROUND_MAGIC64 0x1.8p+52 /* adding it rounds to an integer, in the low bits of the sum */

/* Taylor's series on |r| <= pi / 4: of the sine (odd 1) divided by r, of the cosine (odd -1). */
DEVICE double series(double square, int odd) {
    double sum = 1;
#pragma unroll
    for (int i = 18; i >= 2; i -= 2)
        sum = fma(sum, square * (-1.0 / (i * (i + odd))), 1.0);
    return sum;
}

extern "C" __global__ void __launch_bounds__(WEIR_CUDA_MAP_THREADS)
    weir_rope_table(float *out, int32_t positions, int32_t dim, const double *frequency, double scale) {
    const int half = dim / 2;
    const size_t i = (size_t)blockIdx.x * WEIR_CUDA_MAP_THREADS + threadIdx.x;
    if (i >= (size_t)positions * (size_t)half)
        return;
    const double angle = (double)(i / (size_t)half) * frequency[i % (size_t)half], turns = angle * TWO_OVER_PI + ROUND_MAGIC64;
    const double whole = turns - ROUND_MAGIC64, r = fma(-whole, HALF_PI_LOW, fma(-whole, HALF_PI_HIGH, angle)), square = r * r;
    uint64_t n;
    memcpy(&n, &turns, sizeof n); /* its low bits are the count of quarter turns */
    const double sine = series(square, 1) * r, cosine = series(square, -1), c = n & 1 ? sine : cosine, s = n & 1 ? cosine : sine;
    out[2 * i] = (float)(scale * ((n + 1) & 2 ? -c : c));
    out[2 * i + 1] = (float)(scale * (n & 2 ? -s : s));
}

/* ---- rows ---- */

DEVICE void store_as(float *to, float v) {
    *to = v;
}
DEVICE void store_as(__half *to, float v) {
    *to = __float2half_rn(v);
}

/* RMSNorm's scale of one head, by a warp. */
DEVICE float head_scale(const float *head, int dim, float eps, int lane) {
    float sum = 0.0f;
    for (int i = lane; i < dim; i += WARP)
        sum = fmaf(head[i], head[i], sum);
    return 1.0f / sqrtf(warp_reduce<op_sum>(sum) / (float)dim + eps);
}

/* Norms (w not NULL) and rotates a head of x, by a warp: to `x` and, if that is not NULL, to `store`. */
template <class T>
DEVICE void turn_head(float *x, const float *w, float eps, int dim, const float *angles, int rope_dim, T *store, int lane) {
    const float scale = w ? head_scale(x, dim, eps, lane) : 1.0f;
    const int half = rope_dim / 2;
    __syncwarp();
#pragma unroll 1
    for (int i = lane; i < half; i += WARP) {
        const float a = w ? x[i] * scale * w[i] : x[i], b = w ? x[i + half] * scale * w[i + half] : x[i + half];
        const float c = angles[2 * i], s = angles[2 * i + 1], first = fmaf(a, c, -(b * s)), second = fmaf(b, c, a * s);
        x[i] = first;
        x[i + half] = second;
        if (store) {
            store_as(store + i, first);
            store_as(store + i + half, second);
        }
    }
#pragma unroll 1
    for (int i = rope_dim + lane; i < dim; i += WARP) {
        const float v = w ? x[i] * scale * w[i] : x[i];
        x[i] = v;
        if (store)
            store_as(store + i, v);
    }
}

template <class T>
DEVICE void rope_store(const weir_step *step, float *qkv, int ld, int k_offset, int v_offset, int heads, int rope_dim, const float *table,
                       T *kv_k, T *kv_v, int kv_heads, int dim, const float *q_norm, const float *k_norm, float eps) {
    const int r = (int)blockIdx.x, lane = (int)threadIdx.x % WARP;
    const int head = (int)blockIdx.y * WEIR_CUDA_STORE_HEADS + (int)threadIdx.x / WARP, kv_head = head - heads;
    if (r >= step->tile_rows || kv_head >= kv_heads)
        return;
    const int position = position_of(step, r);
    const float *angles = table + (size_t)position * (size_t)rope_dim;
    float *row = qkv + (size_t)r * (size_t)ld;
    if (kv_head < 0) {
        turn_head<T>(row + head * dim, q_norm, eps, dim, angles, rope_dim, NULL, lane);
        return;
    }
    const size_t at =
        ((block_of(step, r, position) * (size_t)kv_heads + (size_t)kv_head) * WEIR_KV_BLOCK + (size_t)(position % WEIR_KV_BLOCK)) *
        (size_t)dim;
    turn_head<T>(row + k_offset + kv_head * dim, k_norm, eps, dim, angles, rope_dim, kv_k + at, lane);
    for (int i = lane; i < dim; i += WARP)
        store_as(kv_v + at + i, row[v_offset + kv_head * dim + i]);
}

#define STORE(T, name)                                                                                                                     \
    extern "C" __global__ void __launch_bounds__(WEIR_CUDA_STORE_THREADS)                                                                  \
        weir_rope_store_##name(const weir_step *step, float *qkv, int32_t ld, int32_t k_offset, int32_t v_offset, int32_t heads,           \
                               int32_t rope_dim, const float *table, T *kv_k, T *kv_v, int32_t kv_heads, int32_t dim,                      \
                               void *const *norm_base, uint64_t q_norm, uint64_t k_norm, float norm_eps) {                                 \
        rope_store<T>(step, qkv, ld, k_offset, v_offset, heads, rope_dim, table, kv_k, kv_v, kv_heads, dim,                                \
                      norm_base ? floats_at(norm_base, q_norm) : NULL, norm_base ? floats_at(norm_base, k_norm) : NULL, norm_eps);         \
    }
STORE(__half, f16)
STORE(float, f32)
#undef STORE
