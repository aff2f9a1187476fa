/* products.c: products on this device. Few rows read the packed weights; many rows go through tiles: weights to floats, then cuBLAS or an own kernel. Both ways lie
 * in the op, and a run's rows decide. */
#include "bind.h"

#define TILE_BYTES ((int64_t)32 << 20) /* of weights as floats at a time */

/* The workspace: a tile of weights, the rows of x in f16, and two products apart from their place. */
typedef struct workspace {
    uint64_t weights, x, products[2];
} workspace;

static int64_t padded(int64_t n) {
    return (n + 15) / 16 * 16;
}

static int64_t aligned(int64_t bytes) {
    return (bytes + 255) / 256 * 256;
}

/* Outputs at a time: a multiple of a block's, as f32, the wider of both. */
static int64_t tile_outputs(int64_t n, int64_t k) {
    int64_t most = TILE_BYTES / (k * (int64_t)sizeof(float)) / WEIR_CUDA_GEMM_OUTPUTS * WEIR_CUDA_GEMM_OUTPUTS;
    most = most > 0 ? most : WEIR_CUDA_GEMM_OUTPUTS;
    return most < padded(n) ? most : padded(n);
}

static int64_t carve(workspace *w, uint64_t base, int64_t rows, int64_t n, int64_t k) {
    int64_t weights = aligned(tile_outputs(n, k) * k * (int64_t)sizeof(float)), x = aligned(rows * k * 2),
            product = aligned(rows * n * (int64_t)sizeof(float));
    *w = (workspace){base, base + (uint64_t)weights, {base + (uint64_t)(weights + x), base + (uint64_t)(weights + x + product)}};
    return weights + x + 2 * product;
}

size_t weir__cuda_product_workspace(int32_t rows, int32_t n, int32_t k) {
    workspace w;
    return (size_t)carve(&w, 0, rows, n, k) + 256;
}

/* One product: where its rows are, and where the result goes. */
typedef struct product {
    const weir_step *step;
    weir_weight w;
    const float *x;
    int32_t ldx, rows;
    uint64_t y;
    int32_t ldy, y_rows, add, bias;
    uint64_t bias_offset;
    uint64_t apart; /* [rows][n]: for a result that a library product cannot put in its place */
    workspace space;
    bool f32;
} product;

static enum weir__cuda_count count_of(const product *p) {
    return weir__cuda_rows_of(p->rows);
}

/* ---- few rows ---- */

static void few(weir__binder *b, const product *p) {
    int type = weir__cuda_type(p->w.type);
    weir_product_f32_args a = {.step = weir__cuda_address(p->step),
                               .base = weir__cuda_address(p->w.base),
                               .offset = p->w.offset,
                               .n = p->w.n,
                               .k = p->w.k,
                               .x = weir__cuda_address(p->x),
                               .ldx = p->ldx,
                               .rows = p->rows,
                               .y = p->y,
                               .ldy = p->ldy,
                               .y_rows = p->y_rows,
                               .add = p->add,
                               .bias = p->bias,
                               .bias_offset = p->bias_offset};
    weir__cuda_add(b, WEIR__CUDA_weir_product_f32 + (unsigned)type, &a, sizeof a, WEIR_CUDA_PRODUCT_THREADS,
                   weir__cuda_fixed(WEIR_CUDA_DIV(p->w.n, WEIR_CUDA_PRODUCT_OUTPUTS)), weir__cuda_per(count_of(p), WEIR_CUDA_PRODUCT_ROWS));
}

/* ---- many rows ---- */

static void to_f16(weir__binder *b, const product *p) {
    weir_to_f16_args a = {weir__cuda_address(p->step), weir__cuda_address(p->x), p->ldx, p->w.k, p->rows, p->space.x};
    weir__cuda_add(b, WEIR__CUDA_weir_to_f16, &a, sizeof a, WEIR_CUDA_MAP_THREADS,
                   weir__cuda_fixed(WEIR_CUDA_DIV(p->w.k, WEIR_CUDA_MAP_THREADS)), weir__cuda_per(count_of(p), 1));
}

static void dequantise(weir__binder *b, const product *p, int64_t first, int64_t outputs) {
    unsigned f = WEIR__CUDA_weir_dequantise_f32_f16 + 2 * (unsigned)weir__cuda_type(p->w.type) + (p->f32 ? 1 : 0);
    weir_dequantise_f32_f16_args a = {.base = weir__cuda_address(p->w.base),
                                      .offset = p->w.offset,
                                      .n = p->w.n,
                                      .k = p->w.k,
                                      .first = (int32_t)first,
                                      .out = p->space.weights};
    weir__cuda_add(b, (enum weir__cuda_function)f, &a, sizeof a, WEIR_CUDA_PACK_THREADS, weir__cuda_fixed(outputs), weir__cuda_fixed(1));
}

static void library(weir__binder *b, const product *p, int64_t first, int64_t outputs, bool in_place) {
    weir__cuda_work *w = weir__cuda_more(b);
    if (!w)
        return;
    w->is_gemm = true;
    w->gemm = (weir__cuda_gemm){.x = p->f32 ? weir__cuda_address(p->x) : p->space.x,
                                .w = p->space.weights,
                                .y = (in_place ? p->y : p->apart) + (uint64_t)first * sizeof(float),
                                .n = (int32_t)outputs,
                                .k = p->w.k,
                                .ldx = p->f32 ? p->ldx : p->w.k,
                                .ldy = in_place ? p->ldy : p->w.n,
                                .m = count_of(p),
                                .f16 = !p->f32,
                                .add = in_place && p->add};
}

static void own(weir__binder *b, const product *p, int64_t first, int64_t outputs) {
    weir_gemm_f32_args a = {.step = weir__cuda_address(p->step),
                            .x = p->f32 ? weir__cuda_address(p->x) : p->space.x,
                            .ldx = p->f32 ? p->ldx : p->w.k,
                            .w = p->space.weights,
                            .n = (int32_t)outputs,
                            .k = p->w.k,
                            .rows = p->rows,
                            .y = p->y + (uint64_t)first * sizeof(float),
                            .ldy = p->ldy,
                            .y_rows = p->y_rows,
                            .add = p->add,
                            .bias_base = p->bias ? weir__cuda_address(p->w.base) : 0,
                            .bias_offset = p->bias_offset + (uint64_t)first * sizeof(float)};
    weir__cuda_add(b, p->f32 ? WEIR__CUDA_weir_gemm_f32 : WEIR__CUDA_weir_gemm_f16, &a, sizeof a,
                   p->f32 ? WEIR_CUDA_GEMM_F32_THREADS : WEIR_CUDA_GEMM_F16_THREADS,
                   weir__cuda_fixed(WEIR_CUDA_DIV(outputs, WEIR_CUDA_GEMM_OUTPUTS)), weir__cuda_per(count_of(p), WEIR_CUDA_GEMM_ROWS));
}

static void finish(weir__binder *b, const product *p) {
    weir_finish_args a = {.step = weir__cuda_address(p->step),
                          .product = p->apart,
                          .ldp = p->w.n,
                          .n = p->w.n,
                          .rows = p->rows,
                          .y = p->y,
                          .ldy = p->ldy,
                          .y_rows = p->y_rows,
                          .add = p->add,
                          .bias_base = p->bias ? weir__cuda_address(p->w.base) : 0,
                          .bias_offset = p->bias_offset};
    weir__cuda_add(b, WEIR__CUDA_weir_finish, &a, sizeof a, WEIR_CUDA_MAP_THREADS,
                   weir__cuda_fixed(WEIR_CUDA_DIV(p->w.n, WEIR_CUDA_MAP_THREADS)), weir__cuda_per(count_of(p), 1));
}

/* In f16 the rows of x are there already when `shared`: another product of the same rows has made them. */
static void many(weir__binder *b, const product *p, bool shared) {
    int64_t n = p->w.n, most = tile_outputs(n, p->w.k);
    bool in_place = !p->bias && p->y_rows != WEIR_ROWS_PASS;
    if (!p->f32 && !shared)
        to_f16(b, p);
    for (int64_t first = 0; first < n; first += most) {
        int64_t outputs = n - first < most ? n - first : most;
        dequantise(b, p, first, outputs);
        if (b->blas)
            library(b, p, first, outputs, in_place);
        else
            own(b, p, first, outputs);
    }
    if (b->blas && !in_place)
        finish(b, p);
}

static bool refused(weir__binder *b, int32_t type, const void *acts, const void *space) {
    if (weir__cuda_type(type) < 0)
        b->why = "weights of this type are not on this device (there are f32, f16, bf16, q4_0, q4_1, q8_0)";
    else if (acts)
        b->why = "int8 activations are not on this device";
    else if (!space)
        b->why = "a product needs a workspace on this device";
    return b->why != NULL;
}

void weir__cuda_bind_matmul(weir__binder *b, const weir_k_matmul *k) {
    if (refused(b, k->w.type, k->acts, k->workspace))
        return;
    product p = {.step = k->step,
                 .w = k->w,
                 .x = k->x,
                 .ldx = k->ldx,
                 .rows = k->rows,
                 .y = weir__cuda_address(k->y),
                 .ldy = k->ldy,
                 .y_rows = k->y_rows,
                 .add = k->add,
                 .bias = k->bias,
                 .bias_offset = k->bias_offset,
                 .f32 = k->f32};
    carve(&p.space, weir__cuda_address(k->workspace), k->most_rows, k->w.n, k->w.k);
    p.apart = p.space.products[0];
    b->when = (weir__cuda_when){count_of(&p), 0, WEIR__CUDA_FEW_ROWS};
    few(b, &p);
    b->when = (weir__cuda_when){count_of(&p), WEIR__CUDA_FEW_ROWS + 1, INT32_MAX};
    many(b, &p, false);
}

/* ---- the gated half of an MLP ---- */

static void gated(weir__binder *b, const weir_k_glu *k) {
    weir_gated_f32_args a = {.step = weir__cuda_address(k->step),
                             .gate_base = weir__cuda_address(k->gate.base),
                             .gate_offset = k->gate.offset,
                             .up_base = weir__cuda_address(k->up.base),
                             .up_offset = k->up.offset,
                             .n = k->gate.n,
                             .k = k->gate.k,
                             .x = weir__cuda_address(k->x),
                             .ldx = k->ldx,
                             .y = weir__cuda_address(k->y),
                             .ldy = k->ldy,
                             .activation = k->activation,
                             .bias = k->bias,
                             .gate_bias = k->gate_bias,
                             .up_bias = k->up_bias};
    weir__cuda_add(b, WEIR__CUDA_weir_gated_f32 + (unsigned)weir__cuda_type(k->gate.type), &a, sizeof a, WEIR_CUDA_PRODUCT_THREADS,
                   weir__cuda_fixed(WEIR_CUDA_DIV(k->gate.n, WEIR_CUDA_GATED_OUTPUTS)),
                   weir__cuda_per(WEIR__CUDA_ROWS, WEIR_CUDA_PRODUCT_ROWS));
}

static void gate(weir__binder *b, const weir_k_glu *k, const product *gate, const product *up) {
    weir_gate_args a = {.step = weir__cuda_address(k->step),
                        .gate = gate->y,
                        .ldg = gate->ldy,
                        .up = up->y,
                        .ldu = up->ldy,
                        .n = k->gate.n,
                        .y = weir__cuda_address(k->y),
                        .ldy = k->ldy,
                        .activation = k->activation};
    weir__cuda_add(b, WEIR__CUDA_weir_gate, &a, sizeof a, WEIR_CUDA_MAP_THREADS,
                   weir__cuda_fixed(WEIR_CUDA_DIV(k->gate.n, WEIR_CUDA_MAP_THREADS)), weir__cuda_per(WEIR__CUDA_ROWS, 1));
}

/* One of the two products, to a place of its own. A library product with a bias is made where the result goes at last, then finished to its place. */
static product half_of(const weir_k_glu *k, const weir_weight *w, int i, uint64_t bias_offset) {
    product p = {.step = k->step, .w = *w, .x = k->x, .ldx = k->ldx, .rows = WEIR_ROWS_TILE, .y_rows = WEIR_ROWS_TILE, .f32 = k->f32};
    carve(&p.space, weir__cuda_address(k->workspace), k->most_rows, w->n, w->k);
    p.y = p.space.products[i];
    p.apart = weir__cuda_address(k->y);
    p.ldy = w->n;
    p.bias = k->bias;
    p.bias_offset = bias_offset;
    return p;
}

void weir__cuda_bind_glu(weir__binder *b, const weir_k_glu *k) {
    if (refused(b, k->gate.type, k->acts_out, k->workspace) || refused(b, k->up.type, NULL, k->workspace))
        return;
    product halves[2] = {half_of(k, &k->gate, 0, k->gate_bias), half_of(k, &k->up, 1, k->up_bias)};
    b->when = (weir__cuda_when){WEIR__CUDA_ROWS, 0, WEIR__CUDA_FEW_ROWS};
    if (k->gate.type == k->up.type) {
        gated(b, k);
    } else {
        few(b, &halves[0]);
        few(b, &halves[1]);
        gate(b, k, &halves[0], &halves[1]);
    }
    b->when = (weir__cuda_when){WEIR__CUDA_ROWS, WEIR__CUDA_FEW_ROWS + 1, INT32_MAX};
    many(b, &halves[0], false);
    many(b, &halves[1], true);
    gate(b, k, &halves[0], &halves[1]);
}
