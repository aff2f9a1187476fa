/* norm.c: RMSNorm, a row a thread, with the row's activation blocks made while it is in cache. */
#include "activation.h"

/* Sum of squares: 16 strided partials, one fma each, and the fixed tree. */
static float square_sum(const float *x, int n) {
    vec16 acc = vec16_zero();
    for (int i = 0; i < n; i += 16) {
        vec16 v = vec16_load_n(x + i, n - i);
        acc = vec16_fma(v, v, acc);
    }
    return vec16_sum(acc);
}

/* (x * scale) * w */
INLINE vec16 scaled(const float *x, const float *w, vec16 scale, int n) {
    return vec16_mul(vec16_mul(vec16_load_n(x, n), scale), vec16_load_n(w, n));
}

/* y may be x. */
static void norm_row(const weir_k_rmsnorm *a, const float *w, const float *x, float *y, act_block *acts) {
    float mean = square_sum(x, a->width) / (float)a->width;
    vec16 scale = vec16_set1(1.0f / sqrtf(mean + a->eps));
    for (int i = 0; i < a->width; i += BLOCK) {
        int n0 = min_int(a->width - i, 16), n1 = max_int(min_int(a->width - i - 16, 16), 0);
        vec16 v0 = scaled(x + i, w + i, scale, n0), v1 = n1 ? scaled(x + i + 16, w + i + 16, scale, n1) : vec16_zero();
        if (y) {
            vec16_store_n(y + i, v0, n0);
            if (n1)
                vec16_store_n(y + i + 16, v1, n1);
        }
        if (acts)
            act_quantise_block(v0, v1, acts + i / BLOCK);
    }
}

void WEIR__AT(rmsnorm)(const void *args, const weir_work *work) {
    const weir_k_rmsnorm *a = args;
    const float *w = (const float *)(const void *)((const uint8_t *)*a->weight_base + a->weight_offset);
    uint32_t rows = (uint32_t)rows_count(a->step, a->x_rows);
    for (uint32_t c; c = weir_work_take(work), c < rows;) {
        int r = (int)c;
        size_t width = (size_t)a->width;
        float *y = a->y ? a->y + rows_index(a->step, a->y_rows, r) * width : NULL;
        void *acts = a->acts ? (uint8_t *)a->acts + (size_t)r * weir_act_size(32, a->width) : NULL;
        norm_row(a, w, a->x + rows_index(a->step, a->x_rows, r) * width, y, acts);
    }
}
