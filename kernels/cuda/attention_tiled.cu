/* attention_tiled.cu: causal attention of many rows: a block takes 16 rows of one head and goes through their positions in pieces that lie in shared memory, with a
 * running softmax (Milakov & Gimelshein 2018; Dao et al. 2022). Eight threads share a row: each has every eighth position of the scores and every eighth dimension of
 * the result. Rows of different sequences are done one sequence after the other. What a row does not see is never multiplied, not even by zero. */
#include "common.h"

enum { TILED_ROWS = WEIR_CUDA_TILED_ROWS, ROW_THREADS = 8 };
static_assert(TILED_ROWS * ROW_THREADS == WEIR_CUDA_ATTENTION_THREADS, "eight threads a row");

/* A block's shared memory; rows are padded by one float so that a column has its lines in different banks. */
struct tiled_room {
    float *q;      /* [TILED_ROWS][dim + 1] scaled */
    float *kv;     /* [positions][dim + 1] */
    float *weight; /* [TILED_ROWS][positions + 1] */
    int dim, positions;
};

/* What this thread's row sees, and what is known of it so far. DIMS: the thread's dimensions, a constant so that they stay in registers. */
template <int DIMS> struct tiled_row {
    int from, to;
    float largest, sum, out[DIMS];
};

/* Positions [start, start + n) of one KV head of the sequence of tile row `row`, as floats. */
template <class T>
DEVICE void load_piece(const weir_step *step, const tiled_room &m, const T *pool, int kv_heads, int kv_head, int row, int start, int n) {
    const size_t block = block_of(step, row, start);
    const T *from = pool + ((block * (size_t)kv_heads + (size_t)kv_head) * WEIR_KV_BLOCK + (size_t)(start % WEIR_KV_BLOCK)) * (size_t)m.dim;
    for (int i = (int)threadIdx.x; i < n * m.dim; i += WEIR_CUDA_ATTENTION_THREADS)
        m.kv[i / m.dim * (m.dim + 1) + i % m.dim] = to_float(from[i]);
}

/* Scores of the piece at `start` become weights in shared memory; what the row has so far is scaled to the new largest score. */
template <int DIMS, int PER_THREAD> DEVICE void tiled_scores(const tiled_room &m, tiled_row<DIMS> &r, int start, float softcap) {
    const int row = (int)threadIdx.x / ROW_THREADS, lane = (int)threadIdx.x % ROW_THREADS;
    const float *q = m.q + row * (m.dim + 1);
    float score[PER_THREAD] = {0}, largest = -INFINITY;
    for (int d = 0; d < m.dim; d++) {
#pragma unroll
        for (int i = 0; i < PER_THREAD; i++)
            score[i] = fmaf(q[d], m.kv[(lane + i * ROW_THREADS) * (m.dim + 1) + d], score[i]);
    }
#pragma unroll
    for (int i = 0; i < PER_THREAD; i++) {
        const int position = start + lane + i * ROW_THREADS;
        if (softcap > 0.0f)
            score[i] = softcap_of(score[i], softcap);
        if (position < r.from || position >= r.to)
            score[i] = -INFINITY;
        largest = op_max::join(largest, score[i]);
    }
    largest = kdev_reduce<op_max, ROW_THREADS>(largest);
    const float most = op_max::join(r.largest, largest), old = r.largest > -INFINITY ? exp_of(r.largest - most) : 0.0f;
    r.largest = most;
    r.sum = r.sum * old;
#pragma unroll
    for (int i = 0; i < PER_THREAD; i++) {
        const float weight = score[i] > -INFINITY || score[i] != score[i] ? exp_of(score[i] - most) : 0.0f;
        r.sum += weight;
        m.weight[row * (m.positions + 1) + lane + i * ROW_THREADS] = weight;
    }
#pragma unroll
    for (int i = 0; i < DIMS; i++)
        r.out[i] = r.out[i] * old;
}

template <int DIMS> DEVICE void tiled_values(const tiled_room &m, tiled_row<DIMS> &r, int start, int n) {
    const int row = (int)threadIdx.x / ROW_THREADS, lane = (int)threadIdx.x % ROW_THREADS;
    for (int p = max(r.from - start, 0); p < min(r.to - start, n); p++) {
        const float weight = m.weight[row * (m.positions + 1) + p];
        const float *v = m.kv + p * (m.dim + 1) + lane;
#pragma unroll
        for (int i = 0; i < DIMS; i++)
            if (lane + i * ROW_THREADS < m.dim)
                r.out[i] = fmaf(weight, v[i * ROW_THREADS], r.out[i]);
    }
}

struct tiled_pools {
    const void *k, *v;
    int kv_heads, kv_head;
};

/* Whether any of the rows sees something of positions [start, start + n): a KV block that none sees may be anything. */
DEVICE bool piece_seen(const weir_step *step, int first, int rows, int window, int start, int n) {
    for (int r = first; r < first + rows; r++) {
        const int position = position_of(step, r);
        if (first_seen(position, window) < start + n && position >= start)
            return true;
    }
    return false;
}

/* Rows first .. first + rows of the tile, which are of one sequence; their queries lie in m.q from line `line` on. Every thread goes through all pieces. */
template <class T, int DIMS, int PER_THREAD>
DEVICE void tiled_sequence(const weir_step *step, const tiled_room &m, const tiled_pools &kv, int first, int rows, int line, int window,
                           float softcap, float *out, int ld) {
    const int row = (int)threadIdx.x / ROW_THREADS - line, lane = (int)threadIdx.x % ROW_THREADS;
    const bool mine = row >= 0 && row < rows;
    const int position = mine ? position_of(step, first + row) : 0, end = position_of(step, first + rows - 1) + 1;
    tiled_row<DIMS> r = {mine ? first_seen(position, window) : 0, mine ? position + 1 : 0, -INFINITY, 0.0f, {0}};
    int start = first_seen(position_of(step, first), window) / m.positions * m.positions;
    for (; start < end; start += m.positions) {
        const int n = min(m.positions, end - start);
        if (!piece_seen(step, first, rows, window, start, n))
            continue;
        __syncthreads();
        load_piece(step, m, (const T *)kv.k, kv.kv_heads, kv.kv_head, first, start, n);
        __syncthreads();
        tiled_scores<DIMS, PER_THREAD>(m, r, start, softcap);
        __syncthreads();
        load_piece(step, m, (const T *)kv.v, kv.kv_heads, kv.kv_head, first, start, n);
        __syncthreads();
        tiled_values<DIMS>(m, r, start, n);
    }
    r.sum = kdev_reduce<op_sum, ROW_THREADS>(r.sum);
#pragma unroll
    for (int i = 0; i < DIMS; i++)
        if (mine && lane + i * ROW_THREADS < m.dim)
            out[(size_t)(first + row) * (size_t)ld + (size_t)(lane + i * ROW_THREADS)] = r.out[i] / r.sum;
}

/* The block's rows, one sequence after the other. */
template <class T, int DIMS, int PER_THREAD>
DEVICE void tiled_block(const weir_step *step, const tiled_room &m, const tiled_pools &kv, int first, int rows, int window, float softcap,
                        float *out, int ld) {
    for (int line = 0, n; line < rows; line += n) {
        n = 1;
        while (line + n < rows && slot_of(step, first + line + n) == slot_of(step, first + line))
            n++;
        tiled_sequence<T, DIMS, PER_THREAD>(step, m, kv, first + line, n, line, window, softcap, out, ld);
    }
}

template <class T>
DEVICE void attention_tiled(const weir_step *step, const float *q, int ldq, int heads, float scale, const T *kv_k, const T *kv_v,
                            int kv_heads, int dim, float *out, int window, float softcap, float *shared) {
    const int first = (int)blockIdx.x * TILED_ROWS, head = (int)blockIdx.y, rows = min(TILED_ROWS, step->tile_rows - first);
    if (rows <= 0)
        return;
    const int positions = WEIR_CUDA_TILED_POSITIONS(dim);
    const tiled_room m = {shared, shared + TILED_ROWS * (dim + 1), shared + (TILED_ROWS + positions) * (dim + 1), dim, positions};
    const tiled_pools kv = {kv_k, kv_v, kv_heads, head / (heads / kv_heads)};
    for (int i = (int)threadIdx.x; i < TILED_ROWS * dim; i += WEIR_CUDA_ATTENTION_THREADS) {
        const int row = i / dim, d = i % dim;
        m.q[row * (dim + 1) + d] = row < rows ? q[(size_t)(first + row) * (size_t)ldq + (size_t)(head * dim + d)] * scale : 0.0f;
    }
    for (int i = (int)threadIdx.x; i < positions * (dim + 1); i += WEIR_CUDA_ATTENTION_THREADS)
        m.kv[i] = 0.0f;
    float *to = out + head * dim;
    if (dim <= 64)
        tiled_block<T, 8, 4>(step, m, kv, first, rows, window, softcap, to, heads * dim);
    else if (dim <= 128)
        tiled_block<T, 16, 4>(step, m, kv, first, rows, window, softcap, to, heads * dim);
    else
        tiled_block<T, 32, 2>(step, m, kv, first, rows, window, softcap, to, heads * dim);
}

#define TILED(T, name)                                                                                                                     \
    extern "C" __global__ void __launch_bounds__(WEIR_CUDA_ATTENTION_THREADS)                                                              \
        weir_attention_tiled_##name(const weir_step *step, const float *q, int32_t ldq, int32_t heads, float scale, const T *kv_k,         \
                                    const T *kv_v, int32_t kv_heads, int32_t dim, float *out, int32_t window, float softcap) {             \
        KDEV_DYN_SHARED(float, shared);                                                                                                    \
        attention_tiled<T>(step, q, ldq, heads, scale, kv_k, kv_v, kv_heads, dim, out, window, softcap, shared);                           \
    }
TILED(__half, f16)
TILED(float, f32)
#undef TILED
