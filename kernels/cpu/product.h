/* product.h: products of panels of 16 outputs with rows, at this level. Owns the order of summation: lanes are outputs, k ascends.
 *   integer: the exact int32 sum of a block, then acc = fma(d_w * d_a, sum, acc), with a minimum also acc = fma(m_w, s_a, acc); blocks ascend.
 *   float:   acc = fma(x[k], w[k], acc), w being the exact value of the type (d * q rounded, then + m rounded).
 * The same bits for any number of rows or panels at a time. */
#ifndef WEIR_CPU_PRODUCT_H
#define WEIR_CPU_PRODUCT_H

#include "vec16.h"

/* Most accumulators of a tile: rows of one panel, or panels of one row. With 32 registers 16 rows share each unpacking of a block. */
#if defined(WEIR_PRODUCT_VNNI)
enum { PRODUCT_ROWS = 16 };
#else
enum { PRODUCT_ROWS = 8 };
#endif

/* What one tile multiplies. */
typedef struct tile {
    const uint8_t *w;           /* the first panel */
    const uint8_t *x;           /* the first row: act_blocks or floats */
    size_t panel_bytes, stride; /* from panel to panel, from row to row */
    int k;
} tile;

/* One row reads a panel's blocks once, panel after panel: asked for this early, they come at the speed of memory even where the processor's own prefetching
 * loses the stream (measured: 10 to 28 GB/s without, a steady 30 with). Any address will do. */
enum { PREFETCH_BYTES = 4096 };
INLINE void prefetch_ahead(const void *block, size_t bytes) {
    for (size_t i = 0; i < bytes; i += 64)
        __builtin_prefetch((const void *)((uintptr_t)block + PREFETCH_BYTES + i));
}

#if defined(WEIR_PRODUCT_VNNI)
#include "product_vnni.h"
#elif defined(WEIR_VEC_AVX2) || defined(WEIR_VEC_AVX512)
#include "product_avx2.h"
#else
#include "product_generic.h"
#endif

/* ---- float products ---- */

/* Values of 16 rows at one k. Codes of a q panel lie four to an int32 lane. */
INLINE vec16 values_f32(const uint8_t *w, int k) {
    return vec16_load((const float *)(const void *)w + (size_t)k * PANEL);
}
INLINE vec16 values_f16(const uint8_t *w, int k) {
    return vec16_load_f16((const uint16_t *)(const void *)w + (size_t)k * PANEL);
}
INLINE vec16 values_q4_1(const uint8_t *w, int k) {
    const panel_q4_1 *p = (const panel_q4_1 *)(const void *)w + k / BLOCK;
    int i = k % BLOCK;
    ivec16 q = ivec16_and(ivec16_right(ivec16_load(p->q[i % 16 / 4]), i % 4 * 8 + i / 16 * 4), ivec16_set1(15));
    return vec16_add(vec16_mul(vec16_load_f16(p->d), ivec16_float(q)), vec16_load_f16(p->m));
}
INLINE vec16 values_q8_0(const uint8_t *w, int k) {
    const panel_q8_0 *p = (const panel_q8_0 *)(const void *)w + k / BLOCK;
    int i = k % BLOCK;
    ivec16 q = ivec16_right(ivec16_left(ivec16_load(p->q[i / 4]), 24 - i % 4 * 8), 24);
    return vec16_mul(vec16_load_f16(p->d), ivec16_float(q));
}

#define PRODUCT_FLOAT(type)                                                                                                                \
    INLINE void float_##type(const tile *t, const int rows, const int panels, float(*out)[PANEL]) {                                        \
        vec16 acc[PRODUCT_ROWS];                                                                                                           \
        UNROLL for (int i = 0; i < rows * panels; i++) acc[i] = vec16_zero();                                                              \
        for (int k = 0; k < t->k; k++) {                                                                                                   \
            UNROLL for (int p = 0; p < panels; p++) {                                                                                      \
                vec16 w = values_##type(t->w + (size_t)p * t->panel_bytes, k);                                                             \
                UNROLL for (int r = 0; r < rows; r++) {                                                                                    \
                    float x = ((const float *)(const void *)(t->x + (size_t)r * t->stride))[k];                                            \
                    acc[p * rows + r] = vec16_fma(vec16_set1(x), w, acc[p * rows + r]);                                                    \
                }                                                                                                                          \
            }                                                                                                                              \
        }                                                                                                                                  \
        UNROLL for (int i = 0; i < rows * panels; i++) vec16_store(out[i], acc[i]);                                                        \
    }
PRODUCT_FLOAT(f32)
PRODUCT_FLOAT(f16)
PRODUCT_FLOAT(q4_1)
PRODUCT_FLOAT(q8_0)
#undef PRODUCT_FLOAT

/* ---- tiles of fixed shapes ---- */

typedef void tile_fn(const tile *t, float (*out)[PANEL]);
/* How one kind of product is computed: the most, 8, 4, 2, 1 rows of a panel, and one row of several panels. */
typedef struct product {
    tile_fn *most, *rows8, *rows4, *rows2, *rows1, *vector;
    int vector_panels;
} product;

#define SHAPE(name, suffix, rows, panels)                                                                                                  \
    static void name##_##suffix(const tile *t, float(*out)[PANEL]) {                                                                       \
        name(t, rows, panels, out);                                                                                                        \
    }
#define SHAPES(name, vector_panels)                                                                                                        \
    SHAPE(name, most, PRODUCT_ROWS, 1)                                                                                                     \
    SHAPE(name, rows8, 8, 1)                                                                                                               \
    SHAPE(name, rows4, 4, 1)                                                                                                               \
    SHAPE(name, rows2, 2, 1)                                                                                                               \
    SHAPE(name, rows1, 1, 1)                                                                                                               \
    SHAPE(name, vector, 1, vector_panels)                                                                                                  \
    static const product name##_shapes = {name##_most,  name##_rows8,  name##_rows4, name##_rows2,                                         \
                                          name##_rows1, name##_vector, vector_panels};
SHAPES(product_q4_1, 1)
SHAPES(product_q8_0, 1)
SHAPES(float_f32, 4)
SHAPES(float_f16, 4)
SHAPES(float_q4_1, 4)
SHAPES(float_q8_0, 4)
#undef SHAPES
#undef SHAPE

/* ---- one matrix and the rows it meets ---- */

typedef struct operand {
    const product *product;
    tile all; /* of the first panel and the first row */
} operand;

INLINE const product *product_of(int type, bool integer) {
    switch (type) {
    case WEIR_Q4_1:
        return integer ? &product_q4_1_shapes : &float_q4_1_shapes;
    case WEIR_Q8_0:
        return integer ? &product_q8_0_shapes : &float_q8_0_shapes;
    case WEIR_F16:
        return &float_f16_shapes;
    default:
        return &float_f32_shapes;
    }
}

static operand operand_of(const weir_weight *w, const float *x, int ldx, const void *acts) {
    const weir_type_info *type = weir_type_get(w->type);
    bool integer = type->acts && acts;
    size_t panel_bytes = (size_t)w->k / type->block * type->panel_bytes;
    const void *rows = integer ? acts : x;
    size_t stride = integer ? weir_act_size((int)type->acts, w->k) : (size_t)ldx * sizeof(float);
    return (operand){product_of(w->type, integer), {weight_at(w), rows, panel_bytes, stride, w->k}};
}

/* out[r] = panel `panel` times rows row..row + rows; rows <= PRODUCT_ROWS. */
static void operand_rows(const operand *o, int panel, int row, int rows, float (*out)[PANEL]) {
    tile t = o->all;
    t.w += (size_t)panel * t.panel_bytes;
    t.x += (size_t)row * t.stride;
    for (int done = 0, n; done < rows; done += n) {
        int left = rows - done;
        n = left == PRODUCT_ROWS ? PRODUCT_ROWS : left >= 8 ? 8 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
        const product *p = o->product;
        tile_fn *fn = n == PRODUCT_ROWS ? p->most : n == 8 ? p->rows8 : n == 4 ? p->rows4 : n == 2 ? p->rows2 : p->rows1;
        fn(&t, out + done);
        t.x += (size_t)n * t.stride;
    }
}

/* out[p] = panels panel..panel + panels times one row; panels <= PRODUCT_ROWS. */
static void operand_vector(const operand *o, int panel, int panels, int row, float (*out)[PANEL]) {
    tile t = o->all;
    t.w += (size_t)panel * t.panel_bytes;
    t.x += (size_t)row * t.stride;
    int step = o->product->vector_panels;
    for (int done = 0, n; done < panels; done += n) {
        n = panels - done >= step ? step : 1;
        (n == 1 ? o->product->rows1 : o->product->vector)(&t, out + done);
        t.w += (size_t)n * t.panel_bytes;
    }
}

#endif
