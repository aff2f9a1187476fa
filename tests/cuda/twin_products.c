/* twin_products.c: products and gated products of the twin (twin.h). Up to 16 rows an entry point of the weights' type reads them as they are packed. More go through
 * the workspace: x as f16 (unless floats are wanted), a piece of the matrix as f16 or f32, its product by cuBLAS or an own kernel, and what cuBLAS leaves to do. */
#include "twin.h"

#include "../../kernels/cuda/list.h"

enum {
    FEW_ROWS = 16,
    PIECE = 32 << 20,
    PLACE = 256
}; /* PIECE: bytes of a matrix as f32 at a time; places in the workspace are multiples of PLACE */

/* A product as both kinds of kernel ask for it. */
typedef struct product {
    const weir_step *step;
    const weir_weight *w;
    const float *x;
    int32_t ldx, rows, f32;
    uint64_t y;
    int32_t ldy, y_rows, add, bias;
    uint64_t bias_offset;
    uint64_t piece, halves; /* places in the workspace: of the matrix, of x as f16 */
    uint64_t aside;         /* [rows][n]: of a result that needs more done to it */
} product;

static uint64_t address(const void *p) {
    return (uint64_t)(uintptr_t)p;
}

/* ---- the workspace ---- */

static int64_t piece_rows(const weir_weight *w) {
    int64_t all = 16 * twin_over(w->n, 16), fit = PIECE / (4 * (int64_t)w->k), blocks = fit / WEIR_CUDA_GEMM_OUTPUTS;
    int64_t rows = (blocks ? blocks : 1) * WEIR_CUDA_GEMM_OUTPUTS;
    return rows < all ? rows : all;
}

static uint64_t place(uint64_t at, int64_t bytes) {
    return at + (uint64_t)(PLACE * twin_over(bytes, PLACE));
}

/* Sets the places of p; returns where the first of two results apart would lie, *second the other. */
static uint64_t lay_out(product *p, const void *workspace, int32_t most_rows, uint64_t *second) {
    p->piece = address(workspace);
    p->halves = place(p->piece, 4 * piece_rows(p->w) * p->w->k);
    uint64_t first = place(p->halves, 2 * (int64_t)most_rows * p->w->k);
    *second = place(first, 4 * (int64_t)most_rows * p->w->n);
    return first;
}

/* ---- few rows ---- */

static void straight(twin *t, const product *p) {
    twin_call l = twin_begin("product", twin_type(t, p->w->type), NULL);
    twin_offset(&l, "bias_offset", p->bias_offset);
    twin_int(&l, "bias", p->bias);
    twin_int(&l, "add", p->add);
    twin_int(&l, "y_rows", p->y_rows);
    twin_int(&l, "ldy", p->ldy);
    twin_address(&l, "y", p->y);
    twin_int(&l, "rows", p->rows);
    twin_int(&l, "ldx", p->ldx);
    twin_pointer(&l, "x", p->x);
    twin_int(&l, "k", p->w->k);
    twin_int(&l, "n", p->w->n);
    twin_offset(&l, "offset", p->w->offset);
    twin_pointer(&l, "base", p->w->base);
    twin_pointer(&l, "step", p->step);
    twin_end(t, &l, twin_over(p->w->n, WEIR_CUDA_PRODUCT_OUTPUTS), twin_over(twin_rows(t, p->rows), WEIR_CUDA_PRODUCT_ROWS), 1,
             WEIR_CUDA_PRODUCT_THREADS);
}

/* ---- many rows ---- */

static void halve(twin *t, const product *p) {
    twin_call l = twin_begin("to_f16", NULL, NULL);
    twin_address(&l, "out", p->halves);
    twin_int(&l, "rows", p->rows);
    twin_int(&l, "width", p->w->k);
    twin_int(&l, "ldx", p->ldx);
    twin_pointer(&l, "x", p->x);
    twin_pointer(&l, "step", p->step);
    twin_end(t, &l, twin_over(p->w->k, WEIR_CUDA_MAP_THREADS), twin_rows(t, p->rows), 1, WEIR_CUDA_MAP_THREADS);
}

static void unpack(twin *t, const product *p, int64_t first, int64_t rows) {
    twin_call l = twin_begin("dequantise", twin_type(t, p->w->type), p->f32 ? "f32" : "f16");
    twin_address(&l, "out", p->piece);
    twin_int(&l, "first", (int32_t)first);
    twin_int(&l, "k", p->w->k);
    twin_int(&l, "n", p->w->n);
    twin_offset(&l, "offset", p->w->offset);
    twin_pointer(&l, "base", p->w->base);
    twin_end(t, &l, rows, 1, 1, WEIR_CUDA_PACK_THREADS);
}

/* Whether cuBLAS may put the product where it belongs: nothing is added but what was there, and the first row of y is the tile's. */
static bool direct(const product *p) {
    return !p->bias && p->y_rows != WEIR_ROWS_PASS;
}

/* cuBLAS counts columns: the transpose of y = w (transposed back) times the transpose of x. */
static void by_library(twin *t, const product *p, int64_t first, int64_t rows) {
    const float one = 1, before = direct(p) && p->add ? 1 : 0;
    cudaDataType type = p->f32 ? CUDA_R_32F : CUDA_R_16F;
    const void *x = p->f32 ? (const void *)p->x : (const void *)(uintptr_t)p->halves;
    uint64_t y = (direct(p) ? p->y : p->aside) + 4 * (uint64_t)first;
    int count = twin_rows(t, p->rows);
    if (!*t->why && count)
        t->blas->GemmEx(t->handle, CUBLAS_OP_T, CUBLAS_OP_N, (int)rows, count, p->w->k, &one, (const void *)(uintptr_t)p->piece, type,
                        p->w->k, x, type, p->f32 ? p->ldx : p->w->k, &before, (void *)(uintptr_t)y, CUDA_R_32F,
                        direct(p) ? p->ldy : p->w->n, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
}

static void put_bias(twin_call *l, const product *p, uint64_t behind) {
    twin_pointer(l, "bias_base", p->bias ? p->w->base : NULL);
    twin_offset(l, "bias_offset", p->bias_offset + behind);
}

static void by_own(twin *t, const product *p, int64_t first, int64_t rows) {
    twin_call l = twin_begin("gemm", p->f32 ? "f32" : "f16", NULL);
    put_bias(&l, p, 4 * (uint64_t)first);
    twin_int(&l, "add", p->add);
    twin_int(&l, "y_rows", p->y_rows);
    twin_int(&l, "ldy", p->ldy);
    twin_address(&l, "y", p->y + 4 * (uint64_t)first);
    twin_int(&l, "rows", p->rows);
    twin_int(&l, "k", p->w->k);
    twin_int(&l, "n", (int32_t)rows);
    twin_address(&l, "w", p->piece);
    twin_int(&l, "ldx", p->f32 ? p->ldx : p->w->k);
    twin_address(&l, "x", p->f32 ? address(p->x) : p->halves);
    twin_pointer(&l, "step", p->step);
    twin_end(t, &l, twin_over(rows, WEIR_CUDA_GEMM_OUTPUTS), twin_over(twin_rows(t, p->rows), WEIR_CUDA_GEMM_ROWS), 1,
             p->f32 ? WEIR_CUDA_GEMM_F32_THREADS : WEIR_CUDA_GEMM_F16_THREADS);
}

static void complete(twin *t, const product *p) {
    twin_call l = twin_begin("finish", NULL, NULL);
    put_bias(&l, p, 0);
    twin_int(&l, "add", p->add);
    twin_int(&l, "y_rows", p->y_rows);
    twin_int(&l, "ldy", p->ldy);
    twin_address(&l, "y", p->y);
    twin_int(&l, "rows", p->rows);
    twin_int(&l, "n", p->w->n);
    twin_int(&l, "ldp", p->w->n);
    twin_address(&l, "product", p->aside);
    twin_pointer(&l, "step", p->step);
    twin_end(t, &l, twin_over(p->w->n, WEIR_CUDA_MAP_THREADS), twin_rows(t, p->rows), 1, WEIR_CUDA_MAP_THREADS);
}

static void in_pieces(twin *t, const product *p) {
    int64_t most = piece_rows(p->w);
    for (int64_t first = 0; first < p->w->n; first += most) {
        int64_t left = p->w->n - first, rows = left < most ? left : most;
        unpack(t, p, first, rows);
        if (t->blas)
            by_library(t, p, first, rows);
        else
            by_own(t, p, first, rows);
    }
    if (t->blas && !direct(p))
        complete(t, p);
}

void twin_matmul(twin *t, const weir_k_matmul *k) {
    uint64_t other;
    product p = {.step = k->step,
                 .w = &k->w,
                 .x = k->x,
                 .ldx = k->ldx,
                 .rows = k->rows,
                 .f32 = k->f32,
                 .y = address(k->y),
                 .ldy = k->ldy,
                 .y_rows = k->y_rows,
                 .add = k->add,
                 .bias = k->bias,
                 .bias_offset = k->bias_offset};
    p.aside = lay_out(&p, k->workspace, k->most_rows, &other);
    if (twin_rows(t, k->rows) <= FEW_ROWS) {
        straight(t, &p);
        return;
    }
    if (!k->f32)
        halve(t, &p);
    in_pieces(t, &p);
}

/* ---- gate and up ---- */

static void gated(twin *t, const weir_k_glu *k) {
    twin_call l = twin_begin("gated", twin_type(t, k->gate.type), NULL);
    twin_offset(&l, "up_bias", k->up_bias);
    twin_offset(&l, "gate_bias", k->gate_bias);
    twin_int(&l, "bias", k->bias);
    twin_int(&l, "activation", k->activation);
    twin_int(&l, "ldy", k->ldy);
    twin_pointer(&l, "y", k->y);
    twin_int(&l, "ldx", k->ldx);
    twin_pointer(&l, "x", k->x);
    twin_int(&l, "k", k->gate.k);
    twin_int(&l, "n", k->gate.n);
    twin_offset(&l, "up_offset", k->up.offset);
    twin_pointer(&l, "up_base", k->up.base);
    twin_offset(&l, "gate_offset", k->gate.offset);
    twin_pointer(&l, "gate_base", k->gate.base);
    twin_pointer(&l, "step", k->step);
    twin_end(t, &l, twin_over(k->gate.n, WEIR_CUDA_GATED_OUTPUTS), twin_over(t->rows, WEIR_CUDA_PRODUCT_ROWS), 1,
             WEIR_CUDA_PRODUCT_THREADS);
}

static void combine(twin *t, const weir_k_glu *k, uint64_t gate, uint64_t up) {
    twin_call l = twin_begin("gate", NULL, NULL);
    twin_int(&l, "activation", k->activation);
    twin_int(&l, "ldy", k->ldy);
    twin_pointer(&l, "y", k->y);
    twin_int(&l, "n", k->gate.n);
    twin_int(&l, "ldu", k->gate.n);
    twin_address(&l, "up", up);
    twin_int(&l, "ldg", k->gate.n);
    twin_address(&l, "gate", gate);
    twin_pointer(&l, "step", k->step);
    twin_end(t, &l, twin_over(k->gate.n, WEIR_CUDA_MAP_THREADS), t->rows, 1, WEIR_CUDA_MAP_THREADS);
}

/* One of both, to the workspace; y, where the end result goes, is room for what is not done yet. */
static product half(const weir_k_glu *k, const weir_weight *w, uint64_t bias_offset, bool second) {
    uint64_t other;
    product p = {.step = k->step,
                 .w = w,
                 .x = k->x,
                 .ldx = k->ldx,
                 .rows = WEIR_ROWS_TILE,
                 .f32 = k->f32,
                 .ldy = w->n,
                 .y_rows = WEIR_ROWS_TILE,
                 .bias = k->bias,
                 .bias_offset = bias_offset,
                 .aside = address(k->y)};
    p.y = lay_out(&p, k->workspace, k->most_rows, &other);
    if (second)
        p.y = other;
    return p;
}

void twin_glu(twin *t, const weir_k_glu *k) {
    product gate = half(k, &k->gate, k->gate_bias, false), up = half(k, &k->up, k->up_bias, true);
    bool few = t->rows <= FEW_ROWS;
    if (few && k->gate.type == k->up.type) {
        gated(t, k);
        return;
    }
    if (!few && !k->f32)
        halve(t, &gate);
    if (few)
        straight(t, &gate), straight(t, &up);
    else
        in_pieces(t, &gate), in_pieces(t, &up);
    combine(t, k, gate.y, up.y);
}
