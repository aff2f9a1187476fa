/* bind.c: from the arguments of a recorded kernel to launches (work.h), for all kernels but products. */
#include "bind.h"

#include <string.h>

/* ---- sizes of a run ---- */

int32_t weir__cuda_counted(enum weir__cuda_count count, const weir__shape *shape) {
    switch (count) {
    case WEIR__CUDA_ROWS:
        return shape->rows;
    case WEIR__CUDA_OUTPUTS:
        return shape->outputs;
    case WEIR__CUDA_SPLITS:
        return (shape->positions + WEIR_ATTENTION_SPLIT - 1) / WEIR_ATTENTION_SPLIT;
    default:
        return 1;
    }
}

uint32_t weir__cuda_size(weir__cuda_dim d, const weir__shape *shape) {
    uint32_t n = (uint32_t)weir__cuda_counted(d.count, shape);
    return d.times * ((n + d.per - 1) / d.per);
}

bool weir__cuda_taken(const weir__cuda_work *w, const weir__shape *shape) {
    int32_t n = weir__cuda_counted(w->when.count, shape);
    return n >= w->when.least && n <= w->when.most;
}

/* ---- the op that is being made ---- */

weir__cuda_op *weir__cuda_op_ref(weir__cuda_op *op) {
    atomic_fetch_add_explicit(&op->refs, 1, memory_order_relaxed);
    return op;
}

void weir__cuda_op_unref(weir__cuda_op *op) {
    /* acq_rel: every owner's last use comes before the decrement that frees */
    if (op && atomic_fetch_sub_explicit(&op->refs, 1, memory_order_acq_rel) == 1)
        weir__free(op->system, op);
}

weir__cuda_work *weir__cuda_more(weir__binder *b) {
    weir__cuda_op *op = b->op;
    if (!op || op->count == op->room) {
        uint32_t room = op ? 2 * op->room : 2;
        weir__cuda_op *more = weir__realloc(b->system, op, sizeof *op + room * sizeof *op->work);
        if (!more) {
            b->why = "no memory";
            return NULL;
        }
        if (!op) {
            more->system = b->system;
            more->count = 0;
            atomic_init(&more->refs, 1);
        }
        more->room = room;
        b->op = op = more;
    }
    weir__cuda_work *w = &op->work[op->count++];
    memset(w, 0, sizeof *w);
    w->when = b->when;
    return w;
}

void weir__cuda_add(weir__binder *b, enum weir__cuda_function f, const void *args, size_t size, uint32_t threads, weir__cuda_dim x,
                    weir__cuda_dim y) {
    weir__cuda_work *w = weir__cuda_more(b);
    if (!w)
        return;
    w->launch = (weir__cuda_launch){.function = f, .threads = threads, .grid = {x, y, weir__cuda_fixed(1)}};
    memcpy(w->launch.args, args, size);
}

weir__cuda_dim weir__cuda_fixed(int64_t n) {
    return (weir__cuda_dim){WEIR__CUDA_ONE, 1, (uint32_t)n};
}

weir__cuda_dim weir__cuda_per(enum weir__cuda_count count, uint32_t per) {
    return (weir__cuda_dim){count, per, 1};
}

enum weir__cuda_count weir__cuda_rows_of(int32_t rows) {
    return rows == WEIR_ROWS_OUT || rows == WEIR_ROWS_GATHER ? WEIR__CUDA_OUTPUTS : WEIR__CUDA_ROWS;
}

uint64_t weir__cuda_address(const void *p) {
    return (uint64_t)(uintptr_t)p;
}

int weir__cuda_type(int32_t type) {
    static const int32_t types[] = {WEIR_F32, WEIR_F16, WEIR_BF16, WEIR_Q4_0, WEIR_Q4_1, WEIR_Q8_0};
    for (int i = 0; i < 6; i++)
        if (types[i] == type)
            return i;
    return -1;
}

static void refuse(weir__binder *b, const char *why) {
    b->why = b->why ? b->why : why;
}

/* ---- kernels ---- */

static void bind_tile(weir__binder *b, const weir_k_tile *k) {
    weir_tile_args a = {weir__cuda_address(k->step), k->outputs};
    weir__cuda_add(b, WEIR__CUDA_weir_tile, &a, sizeof a, WEIR_CUDA_TILE_THREADS, weir__cuda_fixed(1), weir__cuda_fixed(1));
}

static void bind_embed(weir__binder *b, const weir_k_embed *k) {
    int type = weir__cuda_type(k->table.type);
    if (type < 0) {
        refuse(b, "weights of this type are not on this device (there are f32, f16, bf16, q4_0, q4_1, q8_0)");
        return;
    }
    weir_embed_f32_args a = {.step = weir__cuda_address(k->step),
                             .base = weir__cuda_address(k->table.base),
                             .offset = k->table.offset,
                             .n = k->table.n,
                             .k = k->table.k,
                             .x = weir__cuda_address(k->x),
                             .scale = k->scale};
    weir__cuda_add(b, WEIR__CUDA_weir_embed_f32 + (unsigned)type, &a, sizeof a, WEIR_CUDA_MAP_THREADS, weir__cuda_per(WEIR__CUDA_ROWS, 1),
                   weir__cuda_fixed(1));
}

static void bind_rmsnorm(weir__binder *b, const weir_k_rmsnorm *k) {
    if (k->acts || k->acts_k || !k->y) {
        refuse(b, "int8 activations are not on this device");
        return;
    }
    weir_rmsnorm_args a = {.step = weir__cuda_address(k->step),
                           .x = weir__cuda_address(k->x),
                           .x_rows = k->x_rows,
                           .width = k->width,
                           .weight_base = weir__cuda_address(k->weight_base),
                           .weight_offset = k->weight_offset,
                           .eps = k->eps,
                           .y = weir__cuda_address(k->y),
                           .y_rows = k->y_rows,
                           .add = k->add};
    weir__cuda_add(b, WEIR__CUDA_weir_rmsnorm, &a, sizeof a, WEIR_CUDA_MAP_THREADS, weir__cuda_per(weir__cuda_rows_of(k->x_rows), 1),
                   weir__cuda_fixed(1));
}

static void bind_rope_table(weir__binder *b, const weir_k_rope_table *k) {
    weir_rope_table_args a = {weir__cuda_address(k->out), k->positions, k->dim, weir__cuda_address(k->frequency), k->scale};
    int64_t values = (int64_t)k->positions * k->dim / 2;
    weir__cuda_add(b, WEIR__CUDA_weir_rope_table, &a, sizeof a, WEIR_CUDA_MAP_THREADS,
                   weir__cuda_fixed(WEIR_CUDA_DIV(values, WEIR_CUDA_MAP_THREADS)), weir__cuda_fixed(1));
}

static void bind_rope_store(weir__binder *b, const weir_k_rope_store *k) {
    weir_rope_store_f16_args a = {.step = weir__cuda_address(k->step),
                                  .qkv = weir__cuda_address(k->qkv),
                                  .ld = k->ld,
                                  .k_offset = k->k_offset,
                                  .v_offset = k->v_offset,
                                  .heads = k->heads,
                                  .rope_dim = k->rope_dim,
                                  .table = weir__cuda_address(k->table),
                                  .kv_k = weir__cuda_address(k->kv.k),
                                  .kv_v = weir__cuda_address(k->kv.v),
                                  .kv_heads = k->kv.kv_heads,
                                  .dim = k->kv.dim,
                                  .norm_base = weir__cuda_address(k->norm_base),
                                  .q_norm = k->q_norm,
                                  .k_norm = k->k_norm,
                                  .norm_eps = k->norm_eps};
    bool f16 = k->kv.type == WEIR_F16;
    weir__cuda_add(b, f16 ? WEIR__CUDA_weir_rope_store_f16 : WEIR__CUDA_weir_rope_store_f32, &a, sizeof a, WEIR_CUDA_STORE_THREADS,
                   weir__cuda_per(WEIR__CUDA_ROWS, 1), weir__cuda_fixed(WEIR_CUDA_DIV(k->heads + k->kv.kv_heads, WEIR_CUDA_STORE_HEADS)));
}

/* ---- attention: few rows split over the context, many in tiles ---- */

static void bind_attention_split(weir__binder *b, const weir_k_attention *k) {
    bool f16 = k->kv.type == WEIR_F16;
    int32_t shared = k->heads / k->kv.kv_heads;
    weir_attention_f16_args a = {.step = weir__cuda_address(k->step),
                                 .q = weir__cuda_address(k->q),
                                 .ldq = k->ldq,
                                 .heads = k->heads,
                                 .scale = k->scale,
                                 .splits = k->splits,
                                 .kv_k = weir__cuda_address(k->kv.k),
                                 .kv_v = weir__cuda_address(k->kv.v),
                                 .kv_heads = k->kv.kv_heads,
                                 .dim = k->kv.dim,
                                 .partial = weir__cuda_address(k->partial),
                                 .window = k->window,
                                 .softcap = k->softcap};
    b->when = (weir__cuda_when){WEIR__CUDA_ROWS, 0, WEIR__CUDA_FEW_QUERIES};
    weir__cuda_add(b, f16 ? WEIR__CUDA_weir_attention_f16 : WEIR__CUDA_weir_attention_f32, &a, sizeof a, WEIR_CUDA_ATTENTION_THREADS,
                   weir__cuda_per(WEIR__CUDA_SPLITS, 1),
                   weir__cuda_fixed(k->kv.kv_heads * WEIR_CUDA_DIV(shared, WEIR_CUDA_ATTENTION_QUERIES)));
    if (!b->why)
        b->op->work[b->op->count - 1].launch.grid[2] = weir__cuda_per(WEIR__CUDA_ROWS, 1);
}

static void bind_attention_tiled(weir__binder *b, const weir_k_attention *k) {
    bool f16 = k->kv.type == WEIR_F16;
    weir_attention_tiled_f16_args a = {.step = weir__cuda_address(k->step),
                                       .q = weir__cuda_address(k->q),
                                       .ldq = k->ldq,
                                       .heads = k->heads,
                                       .scale = k->scale,
                                       .kv_k = weir__cuda_address(k->kv.k),
                                       .kv_v = weir__cuda_address(k->kv.v),
                                       .kv_heads = k->kv.kv_heads,
                                       .dim = k->kv.dim,
                                       .out = weir__cuda_address(k->out),
                                       .window = k->window,
                                       .softcap = k->softcap};
    b->when = (weir__cuda_when){WEIR__CUDA_ROWS, WEIR__CUDA_FEW_QUERIES + 1, INT32_MAX};
    weir__cuda_add(b, f16 ? WEIR__CUDA_weir_attention_tiled_f16 : WEIR__CUDA_weir_attention_tiled_f32, &a, sizeof a,
                   WEIR_CUDA_ATTENTION_THREADS, weir__cuda_per(WEIR__CUDA_ROWS, WEIR_CUDA_TILED_ROWS), weir__cuda_fixed(k->heads));
    if (!b->why)
        b->op->work[b->op->count - 1].launch.shared = (uint32_t)WEIR_CUDA_TILED_SHARED(k->kv.dim);
}

static void bind_attention(weir__binder *b, const weir_k_attention *k) {
    if (k->acts)
        refuse(b, "int8 activations are not on this device");
    if (k->kv.dim > WEIR_CUDA_ATTENTION_DIM)
        refuse(b, "heads of more than 256 dimensions are not on this device");
    if (b->why)
        return;
    bind_attention_split(b, k);
    bind_attention_tiled(b, k);
}

static void bind_attention_merge(weir__binder *b, const weir_k_attention_merge *k) {
    weir_attention_merge_args a = {.step = weir__cuda_address(k->step),
                                   .heads = k->heads,
                                   .splits = k->splits,
                                   .dim = k->kv.dim,
                                   .partial = weir__cuda_address(k->partial),
                                   .out = weir__cuda_address(k->out),
                                   .window = k->window};
    b->when = (weir__cuda_when){WEIR__CUDA_ROWS, 0, WEIR__CUDA_FEW_QUERIES};
    weir__cuda_add(b, WEIR__CUDA_weir_attention_merge, &a, sizeof a, WEIR_CUDA_MAP_THREADS, weir__cuda_fixed(k->heads),
                   weir__cuda_per(WEIR__CUDA_ROWS, 1));
}

/* ---- the rest ---- */

static void bind_softcap(weir__binder *b, const weir_k_softcap *k) {
    weir_softcap_args a = {weir__cuda_address(k->step), weir__cuda_address(k->x), k->width, k->rows, k->cap};
    weir__cuda_add(b, WEIR__CUDA_weir_softcap, &a, sizeof a, WEIR_CUDA_MAP_THREADS,
                   weir__cuda_fixed(WEIR_CUDA_DIV(k->width, WEIR_CUDA_MAP_THREADS)), weir__cuda_per(weir__cuda_rows_of(k->rows), 1));
}

static void bind_sample(weir__binder *b, const weir_k_sample *k) {
    weir_draw_args a = {weir__cuda_address(k->step), weir__cuda_address(k->logits), k->vocab, weir__cuda_address(k->workspace)};
    weir__cuda_add(b, WEIR__CUDA_weir_draw, &a, sizeof a, WEIR_CUDA_SAMPLE_THREADS, weir__cuda_per(WEIR__CUDA_OUTPUTS, 1),
                   weir__cuda_fixed(1));
}

static void bind_matmul(weir__binder *b, const weir_k_matmul *k) {
    weir__cuda_bind_matmul(b, k);
}

static void bind_glu(weir__binder *b, const weir_k_glu *k) {
    weir__cuda_bind_glu(b, k);
}

static void bind_pack(weir__binder *b, const weir_k_pack *k) {
    int type = weir__cuda_type(k->w.type);
    bool floats = k->w.type == WEIR_F32 || k->w.type == WEIR_F16 || k->w.type == WEIR_BF16;
    bool source_floats = k->source_type == WEIR_F32 || k->source_type == WEIR_F16 || k->source_type == WEIR_BF16;
    if (type < 0)
        refuse(b, "weights of this type are not on this device (there are f32, f16, bf16, q4_0, q4_1, q8_0)");
    else if (floats ? !source_floats : k->source_type != k->w.type)
        refuse(b, "weights are not quantised while they are loaded to this device: convert the file first");
    if (b->why)
        return;
    weir_pack_f32_args a = {.source = weir__cuda_address(k->source),
                            .source_type = k->source_type,
                            .base = weir__cuda_address(k->w.base),
                            .offset = k->w.offset,
                            .n = k->w.n,
                            .k = k->w.k,
                            .rope_heads = k->rope_heads,
                            .rope_dim = k->rope_dim};
    weir__cuda_add(b, WEIR__CUDA_weir_pack_f32 + (unsigned)type, &a, sizeof a, WEIR_CUDA_PACK_THREADS,
                   weir__cuda_fixed(((int64_t)k->w.n + 15) / 16 * 16), weir__cuda_fixed(1));
}

static void bind_pack_vector(weir__binder *b, const weir_k_pack_vector *k) {
    weir_pack_vector_args a = {.source = weir__cuda_address(k->source),
                               .type = k->w.type,
                               .base = weir__cuda_address(k->w.base),
                               .offset = k->w.offset,
                               .k = k->w.k,
                               .rope_heads = k->rope_heads,
                               .rope_dim = k->rope_dim,
                               .add = k->add};
    weir__cuda_add(b, WEIR__CUDA_weir_pack_vector, &a, sizeof a, WEIR_CUDA_MAP_THREADS,
                   weir__cuda_fixed(WEIR_CUDA_DIV(k->w.k, WEIR_CUDA_MAP_THREADS)), weir__cuda_fixed(1));
}

const char *weir__cuda_bind(weir_system *s, bool blas, enum weir_kernel kernel, const void *args, weir__cuda_op **out) {
    weir__binder b = {.system = s, .blas = blas, .when = WEIR__CUDA_ALWAYS};
    switch (kernel) {
#define K(name)                                                                                                                            \
    case WEIR_K_##name:                                                                                                                    \
        bind_##name(&b, args);                                                                                                             \
        break;
        WEIR_KERNELS(K)
#undef K
    default:
        b.why = "this device has no such kernel";
    }
    if (b.why)
        weir__cuda_op_unref(b.op);
    else
        *out = b.op;
    return b.why;
}

size_t weir__cuda_attention_workspace(int32_t rows, int32_t heads, int32_t dim, int32_t splits) {
    int32_t most = rows < WEIR__CUDA_FEW_QUERIES ? rows : WEIR__CUDA_FEW_QUERIES;
    return (size_t)most * (size_t)heads * (size_t)splits * WEIR_CUDA_PARTIAL_FLOATS((size_t)dim) * sizeof(float);
}

size_t weir__cuda_sample_workspace(int32_t rows, int32_t vocab) {
    return (size_t)rows * WEIR_CUDA_SAMPLE_WORKSPACE(vocab);
}
