/* attention_block.h: the two inner products of attention over one KV block, for queries that share it.
 *   scores: acc = fma(q[d], k[d][position], acc), d ascends, lanes are positions;
 *   values: acc = fma(weight[position], v[position][d], acc), positions ascend, lanes are dimensions.
 * The number of queries in registers at a time is this level's choice; it changes no bit. Knows no rows, no mask, no softmax. */
#ifndef WEIR_CPU_ATTENTION_BLOCK_H
#define WEIR_CPU_ATTENTION_BLOCK_H

#include "vec16.h"

enum { REGISTERS = 16 }; /* most accumulators of a tile */

INLINE vec16 load_kv(const void *p, size_t i, const bool f16) {
    return f16 ? vec16_load_f16((const uint16_t *)p + i) : vec16_load((const float *)p + i);
}

/* scores[n][SPLIT] of 32 positions for n queries [n][dim]; `width` vectors of positions at a time. */
INLINE void score_tile(const void *k, const bool f16, const float *q, int dim, const int n, const int width, float *scores) {
    for (int at = 0; at < KV_BLOCK; at += 16 * width) {
        vec16 acc[REGISTERS], key[2];
        UNROLL for (int i = 0; i < n * width; i++) acc[i] = vec16_zero();
        for (int d = 0; d < dim; d++) {
            UNROLL for (int w = 0; w < width; w++) key[w] = load_kv(k, (size_t)(d * KV_BLOCK + at + 16 * w), f16);
            UNROLL for (int i = 0; i < n; i++) {
                vec16 x = vec16_set1(q[i * dim + d]);
                UNROLL for (int w = 0; w < width; w++) acc[i * width + w] = vec16_fma(x, key[w], acc[i * width + w]);
            }
        }
        UNROLL for (int i = 0; i < n * width; i++) vec16_store(scores + i / width * SPLIT + at + 16 * (i % width), acc[i]);
    }
}

/* Dimensions [at, at + 16 width) of out[n][padded] += weights[n][SPLIT] x values[count][padded]. */
INLINE void value_columns(const void *v, const bool f16, const float *weights, int count, int padded, int at, const int n, const int width,
                          float *out) {
    vec16 acc[REGISTERS], value[4];
    UNROLL for (int i = 0; i < n * width; i++) acc[i] = vec16_load(out + i / width * padded + at + 16 * (i % width));
    for (int j = 0; j < count; j++) {
        UNROLL for (int w = 0; w < width; w++) value[w] = load_kv(v, (size_t)(j * padded + at + 16 * w), f16);
        UNROLL for (int i = 0; i < n; i++) {
            vec16 x = vec16_set1(weights[i * SPLIT + j]);
            UNROLL for (int w = 0; w < width; w++) acc[i * width + w] = vec16_fma(x, value[w], acc[i * width + w]);
        }
    }
    UNROLL for (int i = 0; i < n * width; i++) vec16_store(out + i / width * padded + at + 16 * (i % width), acc[i]);
}

INLINE void value_tile(const void *v, const bool f16, const float *weights, int count, int padded, const int n, const int width,
                       float *out) {
    int at = 0;
    for (; at + 16 * width <= padded; at += 16 * width)
        value_columns(v, f16, weights, count, padded, at, n, width, out);
    for (; at < padded; at += 16)
        value_columns(v, f16, weights, count, padded, at, n, 1, out);
}

/* Queries of a tile, vectors of positions, vectors of dimensions: 32 registers, or 16 of half a vector. */
#ifdef WEIR_VEC_AVX512
#define TILES(T) T(8, 2, 2) T(4, 2, 4) T(3, 2, 4) T(2, 2, 4) T(1, 2, 4)
#else
#define TILES(T) T(4, 1, 1) T(3, 1, 1) T(2, 2, 2) T(1, 2, 4)
#endif

/* For n queries, the largest tile first. */
INLINE void scores_of(const void *k, const bool f16, const float *q, int dim, int n, float *scores) {
#define T(size, width, unused)                                                                                                             \
    for (; n >= size; n -= size, q += size * dim, scores += size * SPLIT)                                                                  \
        score_tile(k, f16, q, dim, size, width, scores);
    TILES(T)
#undef T
}

INLINE void values_of(const void *v, const bool f16, const float *weights, int count, int padded, int n, float *out) {
#define T(size, unused, width)                                                                                                             \
    for (; n >= size; n -= size, weights += size * SPLIT, out += size * padded)                                                            \
        value_tile(v, f16, weights, count, padded, size, width, out);
    TILES(T)
#undef T
}

static void block_scores(const void *k, bool f16, const float *q, int dim, int n, float *scores) {
    if (f16)
        scores_of(k, true, q, dim, n, scores);
    else
        scores_of(k, false, q, dim, n, scores);
}

/* Adds positions [0, count) of v to out. */
static void block_values(const void *v, bool f16, const float *weights, int count, int padded, int n, float *out) {
    if (f16)
        values_of(v, true, weights, count, padded, n, out);
    else
        values_of(v, false, weights, count, padded, n, out);
}

#endif
