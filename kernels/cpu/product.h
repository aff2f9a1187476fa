/* product.h: products of panels of 16 outputs with rows, at this level. Owns the order of summation: lanes are outputs, k ascends.
 *   integer: the exact int32 sum of a block, then acc = fma(d_w * d_a, sum, acc), with a minimum also acc = fma(m_w, s_a, acc); blocks ascend.
 *   float:   acc = fma(x[k], w[k], acc), w being the exact value of the type (d * q rounded, then + m rounded).
 * The same bits for any number of rows or panels at a time. A type is a `product`, made in product_float.c, product_32.c or product_k.c and found by its
 * row in layout.h's lists; product.c runs it. */
#ifndef WEIR_CPU_PRODUCT_H
#define WEIR_CPU_PRODUCT_H

#include "vec16.h"

/* What one tile multiplies. */
typedef struct tile {
    const uint8_t *w;           /* the first panel */
    const uint8_t *x;           /* the first row: activation blocks or floats */
    size_t panel_bytes, stride; /* from panel to panel, from row to row */
    int k;
} tile;

/* With 32 registers 16 rows share each unpacking of a block. */
#if defined(WEIR_PRODUCT_VNNI)
enum { PRODUCT_ROWS = 16 };
#else
enum { PRODUCT_ROWS = 8 };
#endif
enum { VECTOR_PANELS = 4 };

/* out[r] = the panel times row r, for a fixed number of rows. */
typedef void rows_fn(const tile *t, float (*out)[PANEL]);
/* Values of a panel at k = first .. first + count, both multiples of 32 or, in types without blocks, any. */
typedef void widen_fn(const uint8_t *panel, int first, int count, float (*to)[PANEL]);
/* out[p] = panel p times one row of floats; panels is 1, 2 or VECTOR_PANELS. */
typedef void vector_fn(const tile *t, int panels, float (*out)[PANEL]);

typedef struct product {
    rows_fn *most, *rows8, *rows4, *rows2, *rows1; /* with int8 activations: PRODUCT_ROWS, 8, 4, 2, 1 rows; NULL: float products only */
    widen_fn *widen;                               /* with floats; NULL: panels are floats as they lie */
    vector_fn *vector;                             /* one row of floats, straight from the panels; NULL: it takes the way of many rows */
} product;

/* A type's product from `integer(type, tile, rows, out)`, inlined once per number of rows, and its widen_fn. */
#define PRODUCT_SHAPE(name, suffix, call)                                                                                                  \
    static void name##_##suffix(const tile *t, float(*out)[PANEL]) {                                                                       \
        call;                                                                                                                              \
    }
#define PRODUCT_OF_BLOCKS(integer, type, name, widen)                                                                                      \
    PRODUCT_SHAPE(name, most, integer(type, t, PRODUCT_ROWS, out))                                                                         \
    PRODUCT_SHAPE(name, rows8, integer(type, t, 8, out))                                                                                   \
    PRODUCT_SHAPE(name, rows4, integer(type, t, 4, out))                                                                                   \
    PRODUCT_SHAPE(name, rows2, integer(type, t, 2, out))                                                                                   \
    PRODUCT_SHAPE(name, rows1, integer(type, t, 1, out))                                                                                   \
    const product WEIR__AT(product_##name) = {name##_most, name##_rows8, name##_rows4, name##_rows2, name##_rows1, widen, NULL};

#define ROW(type, name) extern const product WEIR__AT(product_##name);
WEIR_TYPES_FLOAT(ROW)
WEIR_TYPES_BLOCKS(ROW)
#undef ROW

/* One row reads a panel's blocks once, panel after panel: asked for this early, they come at the speed of memory even where the processor's own prefetching
 * loses the stream (measured: 10 to 28 GB/s without, a steady 30 with). Any address will do. */
enum { PREFETCH_BYTES = 4096 };
INLINE void prefetch_ahead(const void *block, size_t bytes) {
    for (size_t i = 0; i < bytes; i += 64)
        __builtin_prefetch((const void *)((uintptr_t)block + PREFETCH_BYTES + i));
}

/* The same for a super-block of some kilobytes, spread over its 4 x 16 steps: as one burst it would wait for itself. */
enum { PREFETCH_SUPER = 8192 };
INLINE void prefetch_step(const void *block, const int bytes, int i, const int c) {
    const int lines = (bytes / 64 + 3) / 4;
    if (c < lines)
        __builtin_prefetch((const void *)((uintptr_t)block + PREFETCH_SUPER + (size_t)(64 * (lines * i + c))));
}

/* ---- one matrix and the rows it meets ---- */

typedef struct operand {
    const product *product;
    bool integer;
    tile all; /* of the first panel and the first row */
} operand;

enum { SUMS = 128, ROW_BLOCK = 64 }; /* most panels * rows of a call; rows of a chunk of work: their activations stay in L2 */

operand WEIR__AT(operand_of)(const weir_weight *w, const float *x, int ldx, const void *acts);
/* out[p * rows + r] = panel `panel` + p times row `row` + r; panels * rows <= SUMS. */
void WEIR__AT(operand_product)(const operand *o, int panel, int panels, int row, int rows, float (*out)[PANEL]);
#define operand_of WEIR__AT(operand_of)
#define operand_product WEIR__AT(operand_product)

#endif
