/* rope.c: norms (where the model has them for each head) and rotates queries and keys, and stores keys and values in the KV pools. Position-wise; the rotation of one pair is
 * (a cos - b sin, b cos + a sin), each as fma(x, cos, +- rounded product). */
#include "rms.h"

enum { ROW_GROUP = 16 }; /* rows of a chunk: they mostly share the cache lines of K, where positions stand side by side */

/* RMSNorm of one head, in place. */
static void norm_head(float *head, const float *w, int dim, float eps) {
    vec16 scale = vec16_set1(rms_scale(head, dim, eps));
    for (int i = 0; i < dim; i += 16) {
        int n = min_int(16, dim - i);
        vec16_store_n(head + i, rms_scaled(head + i, w + i, scale, n), n);
    }
}

static void norm_heads(const weir_k_rope_store *a, float *heads, int count, uint64_t offset) {
    const float *w = floats_at(a->norm_base, offset);
    for (int h = 0; h < count; h++)
        norm_head(heads + (size_t)h * (size_t)a->kv.dim, w, a->kv.dim, a->norm_eps);
}

/* i with i + rope_dim / 2, in place. angles: [rope_dim / 2][cos, sin]. */
static void rotate(float *restrict head, const float *restrict angles, int rope_dim) {
    int half = rope_dim / 2;
    for (int i = 0; i < half; i++) {
        float x = head[i], y = head[i + half], c = angles[2 * i], s = angles[2 * i + 1];
        head[i] = fmaf(x, c, -(y * s));
        head[i + half] = fmaf(y, c, x * s);
    }
}

/* k: [dim] to K [dim][32] at one position. */
static void store_key(const weir_kv *kv, size_t head_of_block, int position, const float *k) {
    size_t at = head_of_block * (size_t)kv->dim * KV_BLOCK + (size_t)position;
    if (kv->type == WEIR_F32) {
        float *to = (float *)kv->k + at;
        for (int d = 0; d < kv->dim; d++)
            to[(size_t)d * KV_BLOCK] = k[d];
        return;
    }
    uint16_t *to = (uint16_t *)kv->k + at, half[16];
    for (int d = 0; d < kv->dim; d += 16) {
        int n = min_int(16, kv->dim - d);
        vec16_store_f16(half, vec16_load_n(k + d, n));
        for (int i = 0; i < n; i++)
            to[(size_t)(d + i) * KV_BLOCK] = half[i];
    }
}

/* v: [dim] to V [32][dim padded to 16] at one position; the padding is zero. */
static void store_value(const weir_kv *kv, size_t head_of_block, int position, const float *v) {
    size_t padded = pad16((size_t)kv->dim), at = (head_of_block * KV_BLOCK + (size_t)position) * padded;
    for (int d = 0; d < kv->dim; d += 16) {
        vec16 x = vec16_load_n(v + d, min_int(16, kv->dim - d));
        if (kv->type == WEIR_F32)
            vec16_store((float *)kv->v + at + d, x);
        else
            vec16_store_f16((uint16_t *)kv->v + at + d, x);
    }
}

static void rope_row(const weir_k_rope_store *a, int r) {
    const weir_step *s = a->step;
    int row = s->tile_first + r, position = s->position[row], dim = a->kv.dim;
    float *qkv = a->qkv + (size_t)r * (size_t)a->ld;
    const float *angles = a->table + (size_t)position * (size_t)a->rope_dim;
    size_t block = (size_t)s->blocks[(size_t)s->slot[row] * (size_t)s->blocks_per_sequence + (size_t)(position / KV_BLOCK)];
    if (a->norm_base) {
        norm_heads(a, qkv, a->heads, a->q_norm);
        norm_heads(a, qkv + a->k_offset, a->kv.kv_heads, a->k_norm);
    }
    for (int h = 0; h < a->heads; h++)
        rotate(qkv + (size_t)h * (size_t)dim, angles, a->rope_dim);
    for (int h = 0; h < a->kv.kv_heads; h++) {
        float *k = qkv + a->k_offset + (size_t)h * (size_t)dim;
        size_t head_of_block = block * (size_t)a->kv.kv_heads + (size_t)h;
        rotate(k, angles, a->rope_dim);
        store_key(&a->kv, head_of_block, position % KV_BLOCK, k);
        store_value(&a->kv, head_of_block, position % KV_BLOCK, qkv + a->v_offset + (size_t)h * (size_t)dim);
    }
}

void WEIR__AT(rope_store)(const void *args, const weir_work *work) {
    const weir_k_rope_store *a = args;
    int rows = a->step->tile_rows, groups = (rows + ROW_GROUP - 1) / ROW_GROUP;
    for (uint32_t c; c = weir_work_take(work), c < (uint32_t)groups;) {
        int first = (int)c * ROW_GROUP;
        for (int r = first; r < min_int(first + ROW_GROUP, rows); r++)
            rope_row(a, r);
    }
}
