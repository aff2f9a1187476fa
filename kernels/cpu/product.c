/* product.c: runs the product of a weight type over panels and rows. Owns how sums stay in registers and panels in cache; knows no type's blocks.
 *
 * Float products of many rows widen a piece of a panel once, for all rows of a call, and go over it some rows at a time. Sums between pieces are floats in
 * memory: nothing is rounded that would not be rounded in registers. */
#include "product.h"

#define ROW(type, name) [WEIR_##type] = &WEIR__AT(product_##name),
static const product *const products[WEIR_TYPES] = {WEIR_TYPES_FLOAT(ROW) WEIR_TYPES_BLOCKS(ROW)};
#undef ROW

operand operand_of(const weir_weight *w, const float *x, int ldx, const void *acts) {
    const weir_type_info *type = weir_type_get(w->type);
    bool integer = type->acts && acts;
    size_t panel_bytes = (size_t)w->k / type->block * type->panel_bytes;
    const void *rows = integer ? acts : x;
    size_t stride = integer ? weir_act_size((int)type->acts, w->k) : (size_t)ldx * sizeof(float);
    return (operand){products[w->type], integer, {weight_at(w), rows, panel_bytes, stride, w->k}};
}

/* ---- int8 activations ---- */

static void integer_rows(const product *p, tile t, int rows, float (*out)[PANEL]) {
    for (int done = 0, n; done < rows; done += n) {
        int left = rows - done;
        n = left >= PRODUCT_ROWS ? PRODUCT_ROWS : left >= 8 ? 8 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
        rows_fn *fn = n == PRODUCT_ROWS ? p->most : n == 8 ? p->rows8 : n == 4 ? p->rows4 : n == 2 ? p->rows2 : p->rows1;
        fn(&t, out + done);
        t.x += (size_t)n * t.stride;
    }
}

/* ---- float activations ---- */

/* Rows and panels whose sums stay in registers; k of a piece: its widened panels and the rows' values stay in L1. */
#if defined(WEIR_VEC_AVX512)
enum { MICRO_ROWS = 12, MICRO_PANELS = 2, PIECE = 128 };
#elif defined(WEIR_VEC_AVX2)
enum { MICRO_ROWS = 6, MICRO_PANELS = 1, PIECE = 256 };
#else
enum { MICRO_ROWS = 4, MICRO_PANELS = 1, PIECE = 256 };
#endif

/* A piece of panels, and the first row's values there. */
typedef struct piece {
    const float *w[MICRO_PANELS]; /* [k][16] */
    const uint8_t *x;
    size_t stride;
    int k;
} piece;

/* acc[p * rows + r] += panel p times row r, at one k. x: addresses of every third row there. */
INLINE void micro_step(vec16 *acc, const int rows, const int panels, const float *const *w, const uint8_t *const *x, size_t stride, int k) {
    vec16 v[MICRO_PANELS];
    UNROLL for (int p = 0; p < panels; p++) v[p] = vec16_load(w[p] + (size_t)k * PANEL);
    UNROLL for (int r = 0; r < rows; r++) {
        float f;
        memcpy(&f, x[r / 3] + (size_t)(r % 3) * stride + (size_t)k * sizeof f, sizeof f);
        vec16 row = vec16_set1(f);
        UNROLL for (int p = 0; p < panels; p++) acc[p * rows + r] = vec16_fma(row, v[p], acc[p * rows + r]);
    }
}

/* out[p * ld + r] += the piece of panel p times row r. Few addresses, a stride apart, and four k a turn: what a turn costs beside the sums is felt. */
INLINE void micro(const piece *t, const int rows, const int panels, float (*out)[PANEL], int ld) {
    enum { TURN = 4 };
    vec16 acc[MICRO_ROWS * MICRO_PANELS];
    const uint8_t *x[(MICRO_ROWS + 2) / 3];
    const float *w[MICRO_PANELS];
    const size_t stride = t->stride;
    UNROLL for (int r = 0; r < rows; r += 3) x[r / 3] = t->x + (size_t)r * stride;
    UNROLL for (int p = 0; p < panels; p++) w[p] = t->w[p];
    UNROLL for (int p = 0; p < panels; p++) UNROLL for (int r = 0; r < rows; r++) acc[p * rows + r] = vec16_load(out[p * ld + r]);
    int k = 0;
    for (; k + TURN <= t->k; k += TURN) {
        UNROLL for (int i = 0; i < TURN; i++) micro_step(acc, rows, panels, w, x, stride, i);
        UNROLL for (int r = 0; r < rows; r += 3) x[r / 3] += TURN * sizeof(float);
        UNROLL for (int p = 0; p < panels; p++) w[p] += TURN * PANEL;
    }
    for (; k < t->k; k++) {
        micro_step(acc, rows, panels, w, x, stride, 0);
        UNROLL for (int r = 0; r < rows; r += 3) x[r / 3] += sizeof(float);
        UNROLL for (int p = 0; p < panels; p++) w[p] += PANEL;
    }
    UNROLL for (int p = 0; p < panels; p++) UNROLL for (int r = 0; r < rows; r++) vec16_store(out[p * ld + r], acc[p * rows + r]);
}

#define MICRO(rows)                                                                                                                        \
    static void micro_##rows(const piece *t, int panels, float(*out)[PANEL], int ld) {                                                     \
        if (panels == 1)                                                                                                                   \
            micro(t, rows, 1, out, ld);                                                                                                    \
        else                                                                                                                               \
            micro(t, rows, MICRO_PANELS, out, ld);                                                                                         \
    }
MICRO(1)
MICRO(2)
MICRO(4)
#if defined(WEIR_VEC_AVX512)
MICRO(8)
MICRO(12)
#define MICRO_MOST micro_12
#define MICRO_8 micro_8
#elif defined(WEIR_VEC_AVX2)
MICRO(6)
#define MICRO_MOST micro_6
#define MICRO_8 micro_4
#else
#define MICRO_MOST micro_4
#define MICRO_8 micro_4
#endif
#undef MICRO

static void piece_rows(piece t, int panels, int rows, float (*out)[PANEL]) {
    for (int done = 0, n; done < rows; done += n) {
        int left = rows - done;
        n = left >= MICRO_ROWS ? MICRO_ROWS : left >= 8 ? 8 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
        (n == MICRO_ROWS ? MICRO_MOST : n == 8 ? MICRO_8 : n == 4 ? micro_4 : n == 2 ? micro_2 : micro_1)(&t, panels, out + done, rows);
        t.x += (size_t)n * t.stride;
    }
}

/* Up to MICRO_PANELS panels. */
static void float_rows(const product *p, const tile *t, int panels, int rows, float (*out)[PANEL]) {
    _Alignas(64) float values[MICRO_PANELS][PIECE][PANEL];
    memset(out, 0, (size_t)(panels * rows) * sizeof *out);
    for (int k = 0; k < t->k; k += PIECE) {
        piece at = {.x = t->x + (size_t)k * sizeof(float), .stride = t->stride, .k = min_int(PIECE, t->k - k)};
        for (int i = 0; i < panels; i++) {
            const uint8_t *panel = t->w + (size_t)i * t->panel_bytes;
            at.w[i] = p->widen ? values[i][0] : (const float *)(const void *)panel + (size_t)k * PANEL;
            if (p->widen)
                p->widen(panel, k, at.k, values[i]);
        }
        piece_rows(at, panels, rows, out);
    }
}

/* ---- either ---- */

/* How many panels are taken together. */
static int together(const operand *o, int panels, int rows) {
    if (o->integer)
        return 1;
    if (rows > 1 || !o->product->vector)
        return min_int(panels, MICRO_PANELS);
    return panels >= VECTOR_PANELS ? VECTOR_PANELS : min_int(panels, 2);
}

void operand_product(const operand *o, int panel, int panels, int row, int rows, float (*out)[PANEL]) {
    tile t = o->all;
    t.w += (size_t)panel * t.panel_bytes;
    t.x += (size_t)row * t.stride;
    for (int n; panels > 0; panels -= n) {
        n = together(o, panels, rows);
        if (o->integer)
            integer_rows(o->product, t, rows, out);
        else if (rows == 1 && o->product->vector)
            o->product->vector(&t, n, out);
        else
            float_rows(o->product, &t, n, rows, out);
        t.w += (size_t)n * t.panel_bytes;
        out += n * rows;
    }
}
