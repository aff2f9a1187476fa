/* product_float.c: products of the types without blocks: f32, f16, bf16. Panels are [k][16]. */
#include "product.h"

/* Values of 16 rows at k. */
INLINE vec16 values_at(const int type, const uint8_t *w, int k) {
    if (type == WEIR_F32)
        return vec16_load((const float *)(const void *)w + (size_t)k * PANEL);
    const uint16_t *p = (const uint16_t *)(const void *)w + (size_t)k * PANEL;
    return type == WEIR_F16 ? vec16_load_f16(p) : vec16_load_bf16(p);
}

INLINE void widen(const int type, const uint8_t *panel, int first, int count, float (*to)[PANEL]) {
    for (int k = 0; k < count; k++)
        vec16_store(to[k], values_at(type, panel, first + k));
}

/* As many k as fill cache lines are asked for together. */
INLINE void vector(const int type, const tile *t, const int panels, float (*out)[PANEL]) {
    enum { STEP = 4 };
    const size_t width = type == WEIR_F32 ? 4 : 2;
    const float *x = (const float *)(const void *)t->x;
    const uint8_t *w[VECTOR_PANELS];
    vec16 acc[VECTOR_PANELS];
    UNROLL for (int p = 0; p < panels; p++) {
        w[p] = t->w + (size_t)p * t->panel_bytes;
        acc[p] = vec16_zero();
    }
    int k = 0;
    for (; k + STEP <= t->k; k += STEP) {
        UNROLL for (int p = 0; p < panels; p++) prefetch_ahead(w[p] + (size_t)k * PANEL * width, STEP * PANEL * width);
        UNROLL for (int i = 0; i < STEP; i++) {
            vec16 v = vec16_set1(x[k + i]);
            UNROLL for (int p = 0; p < panels; p++) acc[p] = vec16_fma(v, values_at(type, w[p], k + i), acc[p]);
        }
    }
    for (; k < t->k; k++)
        UNROLL for (int p = 0; p < panels; p++) acc[p] = vec16_fma(vec16_set1(x[k]), values_at(type, w[p], k), acc[p]);
    UNROLL for (int p = 0; p < panels; p++) vec16_store(out[p], acc[p]);
}

#define ROW(type, name)                                                                                                                    \
    static void name##_widen(const uint8_t *panel, int first, int count, float(*to)[PANEL]) {                                              \
        widen(WEIR_##type, panel, first, count, to);                                                                                       \
    }                                                                                                                                      \
    static void name##_vector(const tile *t, int panels, float(*out)[PANEL]) {                                                             \
        if (panels == VECTOR_PANELS)                                                                                                       \
            vector(WEIR_##type, t, VECTOR_PANELS, out);                                                                                    \
        else if (panels == 2)                                                                                                              \
            vector(WEIR_##type, t, 2, out);                                                                                                \
        else                                                                                                                               \
            vector(WEIR_##type, t, 1, out);                                                                                                \
    }                                                                                                                                      \
    const product WEIR__AT(product_##name) = {.widen = WEIR_##type == WEIR_F32 ? NULL : name##_widen, .vector = name##_vector};
WEIR_TYPES_FLOAT(ROW)
