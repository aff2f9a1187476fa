/* attention.cu: causal attention over KV blocks [block][kv_head][32][dim], for few rows: a block takes one row, one KV head and one split of 256 absolute positions;
 * attention_merge puts a row's splits together in ascending order. Positions that a row does not see are never read. */
#include "common.h"

enum {
    QUERIES = WEIR_CUDA_ATTENTION_QUERIES,
    SPLIT = WEIR_CUDA_ATTENTION_SPLIT,
    MAX_DIM = WEIR_CUDA_ATTENTION_DIM,
    ATTENTION_THREADS = WEIR_CUDA_ATTENTION_THREADS,
    ATTENTION_WARPS = ATTENTION_THREADS / WARP,
    KEY_LANES = 8, /* lanes that share a key: 8 values each at a time */
    KEYS = ATTENTION_THREADS / KEY_LANES
};
static_assert(SPLIT == WEIR_ATTENTION_SPLIT && SPLIT % WEIR_KV_BLOCK == 0, "splits are the contract's");

DEVICE float to_float(float v) {
    return v;
}
DEVICE float to_float(__half v) {
    return __half2float(v);
}

/* Values d .. d + 7 of a head, zeros beyond dim; vectors where every head begins at 16 bytes. */
template <class T> DEVICE void load_head8(const T *head, int d, int dim, float v[8]) {
    if (dim % 8 == 0) {
        T of[8];
#pragma unroll
        for (int i = 0; i < 8 * (int)sizeof(T) / 16; i++) {
            const uint4 u = ((const uint4 *)(head + d))[i];
            memcpy((char *)of + i * 16, &u, 16);
        }
#pragma unroll
        for (int i = 0; i < 8; i++)
            v[i] = to_float(of[i]);
    } else {
#pragma unroll
        for (int i = 0; i < 8; i++)
            v[i] = d + i < dim ? to_float(head[d + i]) : 0.0f;
    }
}

/* What a block works on: `count` queries of one row that share KV head `kv_head`, positions [from, to) of split `split`. */
struct split_work {
    int row, split, kv_head, kv_heads, first_head, count, dim, from, to;
};

/* Where one position's K or V of the work's KV head lies in its pool. */
DEVICE size_t head_at(const weir_step *step, const split_work &w, int position) {
    const size_t block = block_of(step, w.row, position);
    return ((block * (size_t)w.kv_heads + (size_t)w.kv_head) * WEIR_KV_BLOCK + (size_t)(position % WEIR_KV_BLOCK)) * (size_t)w.dim;
}

/* q: [QUERIES][MAX_DIM] scaled queries, zeros beyond dim and count; scores: [QUERIES][SPLIT]. Eight lanes a key. */
template <class T>
DEVICE void split_scores(const weir_step *step, const split_work &w, const T *keys, const float q[QUERIES][MAX_DIM], float softcap,
                         float scores[QUERIES][SPLIT]) {
    const int lane = (int)threadIdx.x % KEY_LANES, start = w.split * SPLIT;
    for (int first = w.from; first < w.to; first += KEYS) { /* the same turns for every lane of a warp */
        const int position = first + (int)threadIdx.x / KEY_LANES, seen = min(position, w.to - 1);
        const T *key = keys + head_at(step, w, seen);
        float sum[QUERIES] = {0};
        for (int d = lane * 8; d < w.dim; d += KEY_LANES * 8) {
            float k[8];
            load_head8(key, d, w.dim, k);
#pragma unroll
            for (int i = 0; i < QUERIES; i++)
#pragma unroll
                for (int j = 0; j < 8; j++)
                    sum[i] = fmaf(q[i][d + j], k[j], sum[i]);
        }
#pragma unroll
        for (int i = 0; i < QUERIES; i++) {
            sum[i] = kdev_reduce<op_sum, KEY_LANES>(sum[i]);
            if (lane == 0 && position < w.to)
                scores[i][position - start] = softcap > 0.0f ? softcap_of(sum[i], softcap) : sum[i];
        }
    }
}

/* Turns one query's scores into weights, by a warp; notes the largest and the sum at `out`. */
DEVICE void split_softmax(const split_work &w, float *scores, float *out) {
    const int lane = (int)threadIdx.x % WARP, from = w.from - w.split * SPLIT, to = w.to - w.split * SPLIT;
    float largest = -INFINITY, sum = 0.0f;
    for (int i = from + lane; i < to; i += WARP)
        largest = op_max::join(largest, scores[i]);
    largest = warp_reduce<op_max>(largest);
    for (int i = from + lane; i < to; i += WARP) {
        scores[i] = exp_of(scores[i] - largest);
        sum += scores[i];
    }
    sum = warp_reduce<op_sum>(sum);
    if (lane == 0) {
        out[0] = largest;
        out[1] = sum;
    }
}

/* Weighted sums of values. A thread has two dimensions and every `turns`-th position; room: [turns][QUERIES][dim] floats. */
template <class T>
DEVICE void split_values(const weir_step *step, const split_work &w, const T *values, const float weights[QUERIES][SPLIT], float *room,
                         float *out, int out_stride) {
    const int pairs = (w.dim + 1) / 2, turns = ATTENTION_THREADS / pairs, start = w.split * SPLIT;
    const int turn = (int)threadIdx.x / pairs, d = (int)threadIdx.x % pairs * 2;
    float a[QUERIES] = {0}, b[QUERIES] = {0};
    for (int position = w.from + turn; turn < turns && position < w.to; position += turns) {
        const T *v = values + head_at(step, w, position) + d;
        const float x = to_float(v[0]), y = d + 1 < w.dim ? to_float(v[1]) : 0.0f;
#pragma unroll
        for (int i = 0; i < QUERIES; i++) {
            a[i] = fmaf(weights[i][position - start], x, a[i]);
            b[i] = fmaf(weights[i][position - start], y, b[i]);
        }
    }
    for (int i = 0; i < QUERIES && turn < turns; i++) {
        room[(turn * QUERIES + i) * w.dim + d] = a[i];
        if (d + 1 < w.dim)
            room[(turn * QUERIES + i) * w.dim + d + 1] = b[i];
    }
    __syncthreads();
    for (int i = (int)threadIdx.x; i < w.count * w.dim; i += ATTENTION_THREADS) {
        float sum = room[i];
        for (int t = 1; t < turns; t++)
            sum += room[t * QUERIES * w.dim + i];
        out[(size_t)(i / w.dim) * (size_t)out_stride + i % w.dim] = sum;
    }
}

template <class T>
DEVICE void attention(const weir_step *step, const float *q, int ldq, int heads, float scale, int splits, const T *kv_k, const T *kv_v,
                      int kv_heads, int dim, float *partial, int window, float softcap) {
    __shared__ float query[QUERIES][MAX_DIM];
    __shared__ float scores[QUERIES][SPLIT];
    const int shared = heads / kv_heads, parts = (shared + QUERIES - 1) / QUERIES, part = (int)blockIdx.y % parts;
    split_work w;
    w.row = (int)blockIdx.z;
    w.split = (int)blockIdx.x;
    if (w.row >= step->tile_rows)
        return;
    const int position = position_of(step, w.row);
    w.from = max(first_seen(position, window), w.split * SPLIT);
    w.to = min(position + 1, (w.split + 1) * SPLIT);
    if (w.from >= w.to)
        return;
    w.kv_head = (int)blockIdx.y / parts;
    w.kv_heads = kv_heads;
    w.first_head = w.kv_head * shared + part * QUERIES;
    w.count = min(QUERIES, shared - part * QUERIES);
    w.dim = dim;
    for (int i = (int)threadIdx.x; i < QUERIES * MAX_DIM; i += ATTENTION_THREADS) {
        const int head = i / MAX_DIM, d = i % MAX_DIM;
        query[head][d] =
            head < w.count && d < dim ? q[(size_t)w.row * (size_t)ldq + (size_t)((w.first_head + head) * dim + d)] * scale : 0.0f;
    }
    __syncthreads();
    split_scores(step, w, kv_k, query, softcap, scores);
    __syncthreads();
    const int stride = splits * WEIR_CUDA_PARTIAL_FLOATS(dim);
    float *out = partial + (((size_t)w.row * (size_t)heads + (size_t)w.first_head) * (size_t)splits + (size_t)w.split) *
                               WEIR_CUDA_PARTIAL_FLOATS((size_t)dim);
    float spare[2];
    for (int i = (int)threadIdx.x / WARP; i < QUERIES; i += ATTENTION_WARPS)
        split_softmax(w, scores[i], i < w.count ? out + (size_t)i * (size_t)stride + dim : spare);
    __syncthreads();
    split_values(step, w, kv_v, scores, &query[0][0], out, stride);
}

#define ATTENTION(T, name)                                                                                                                 \
    extern "C" __global__ void __launch_bounds__(WEIR_CUDA_ATTENTION_THREADS) weir_attention_##name(                                       \
        const weir_step *step, const float *q, int32_t ldq, int32_t heads, float scale, int32_t splits, const T *kv_k, const T *kv_v,      \
        int32_t kv_heads, int32_t dim, float *partial, int32_t window, float softcap) {                                                    \
        attention<T>(step, q, ldq, heads, scale, splits, kv_k, kv_v, kv_heads, dim, partial, window, softcap);                             \
    }
ATTENTION(__half, f16)
ATTENTION(float, f32)
#undef ATTENTION

extern "C" __global__ void __launch_bounds__(WEIR_CUDA_MAP_THREADS)
    weir_attention_merge(const weir_step *step, int32_t heads, int32_t splits, int32_t dim, const float *partial, float *out,
                         int32_t window) {
    const int r = (int)blockIdx.y, head = (int)blockIdx.x, d = (int)threadIdx.x;
    if (r >= step->tile_rows || d >= dim)
        return;
    const int position = position_of(step, r), first = first_seen(position, window) / SPLIT, last = position / SPLIT;
    const size_t stride = WEIR_CUDA_PARTIAL_FLOATS((size_t)dim);
    const float *p = partial + (((size_t)r * (size_t)heads + (size_t)head) * (size_t)splits + (size_t)first) * stride;
    float value = p[d], largest = p[dim], sum = p[dim + 1];
    for (int split = first + 1; split <= last; split++) {
        p += stride;
        const float most = op_max::join(largest, p[dim]), old = exp_of(largest - most), add = exp_of(p[dim] - most);
        largest = most;
        sum = fmaf(sum, old, p[dim + 1] * add);
        value = fmaf(value, old, p[d] * add);
    }
    out[((size_t)r * (size_t)heads + (size_t)head) * (size_t)dim + (size_t)d] = value / sum;
}
