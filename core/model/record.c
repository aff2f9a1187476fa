/* record.c: one unit of a decoder as recorded work over the current tile: norm, attention, norm, gated MLP, each added to the residual stream; with the biases,
 * norms and caps that the config and the unit's tensors ask for (forward.h). */
#include "forward.h"

/* Values in a block of the int8 activations that a product takes; 0: floats. */
static uint32_t acts_of(const weir__forward *f, const weir__tensor_plan *t) {
    return weir__forward_int8(f) ? weir_type_get(t->type)->acts : 0;
}

/* Records work that reads tensor t. */
static int add(const weir__forward *f, weir__list *l, enum weir_kernel kernel, const void *args, bool joined, const weir__tensor_plan *t,
               weir_error **error) {
    return weir__plan_refused(f->checkpoint, t, weir__list_add(l, kernel, args, joined, error), error);
}

typedef struct products {
    const weir__tensor_plan *of[3]; /* NULL: fewer */
} products;

/* RMSNorm of the residual stream as the products that read it want it. */
static int record_norm(const weir__forward *f, weir__list *l, void *const *slot, const weir__tensor_plan *norm, int x_rows,
                       products readers, weir_error **error) {
    const weir__config *c = weir__checkpoint_config(f->checkpoint);
    weir_k_rmsnorm k = {.step = weir__step_device(&f->step),
                        .x = f->w.x,
                        .x_rows = x_rows,
                        .width = c->width,
                        .weight_base = slot,
                        .weight_offset = norm->offset,
                        .eps = (float)c->norm_eps,
                        .y_rows = x_rows == WEIR_ROWS_GATHER ? WEIR_ROWS_OUT : WEIR_ROWS_TILE};
    for (int i = 0; i < 3 && readers.of[i]; i++) {
        uint32_t block = acts_of(f, readers.of[i]);
        if (block == 256)
            k.acts_k = f->w.normed_acts_k;
        else if (block)
            k.acts = f->w.normed_acts;
        else
            k.y = f->w.normed;
    }
    return weir__list_add(l, WEIR_K_rmsnorm, &k, true, error);
}

/* The normed rows as product t takes them. */
static const void *normed_acts(const weir__forward *f, const weir__tensor_plan *t) {
    uint32_t block = acts_of(f, t);
    return block == 256 ? f->w.normed_acts_k : block ? f->w.normed_acts : NULL;
}

static weir_k_matmul product_of(const weir__forward *f, const weir__tensor_plan *t, void *const *slot) {
    return (weir_k_matmul){.step = weir__step_device(&f->step),
                           .w = weir__plan_weight(t, slot),
                           .ldx = t->k,
                           .rows = WEIR_ROWS_TILE,
                           .y_rows = WEIR_ROWS_TILE,
                           .workspace = f->w.products,
                           .most_rows = (int32_t)f->options.tile,
                           .f32 = f->options.activations_f32};
}

static void set_bias(weir_k_matmul *k, const weir__tensor_plan *bias) {
    k->bias = bias != NULL;
    k->bias_offset = bias ? bias->offset : 0;
}

/* What a branch gives goes to the residual stream: added by the product itself, or through a norm behind it. */
static int record_branch(const weir__forward *f, weir__list *l, void *const *slot, weir_k_matmul *k, const weir__tensor_plan *of,
                         const weir__tensor_plan *post, weir_error **error) {
    const weir__config *c = weir__checkpoint_config(f->checkpoint);
    k->ldy = c->width;
    k->y = post ? f->w.normed : f->w.x;
    k->y_rows = post ? WEIR_ROWS_TILE : WEIR_ROWS_PASS;
    k->add = !post;
    int code = add(f, l, WEIR_K_matmul, k, true, of, error);
    if (code || !post)
        return code;
    weir_k_rmsnorm norm = {.step = weir__step_device(&f->step),
                           .x = f->w.normed,
                           .x_rows = WEIR_ROWS_TILE,
                           .width = c->width,
                           .weight_base = slot,
                           .weight_offset = post->offset,
                           .eps = (float)c->norm_eps,
                           .y_rows = WEIR_ROWS_PASS,
                           .add = 1,
                           .y = f->w.x};
    return weir__list_add(l, WEIR_K_rmsnorm, &norm, true, error);
}

/* ---- attention ---- */

static int record_qkv(const weir__forward *f, const weir__unit_plan *p, void *const *slot, weir__list *l, weir_error **error) {
    const struct {
        enum weir__role role, bias;
        int32_t offset;
    } in[] = {{WEIR__Q, WEIR__Q_BIAS, 0}, {WEIR__K, WEIR__K_BIAS, f->q_width}, {WEIR__V, WEIR__V_BIAS, f->q_width + f->k_width}};
    int code = WEIR_OK;
    for (int i = 0; i < 3 && !code; i++) {
        const weir__tensor_plan *t = weir__plan_role(p, in[i].role);
        weir_k_matmul k = product_of(f, t, slot);
        k.x = f->w.normed;
        k.acts = normed_acts(f, t);
        k.y = f->w.qkv + in[i].offset;
        k.ldy = f->qkv_width;
        set_bias(&k, weir__plan_role(p, in[i].bias));
        code = add(f, l, WEIR_K_matmul, &k, i == 2, t, error);
    }
    return code;
}

static int record_store(const weir__forward *f, uint32_t layer, const weir__unit_plan *p, void *const *slot, weir__list *l,
                        weir_error **error) {
    const weir__config *c = weir__checkpoint_config(f->checkpoint);
    const weir__tensor_plan *q = weir__plan_role(p, WEIR__Q_NORM), *k = weir__plan_role(p, WEIR__K_NORM);
    weir_k_rope_store store = {.step = weir__step_device(&f->step),
                               .qkv = f->w.qkv,
                               .ld = f->qkv_width,
                               .k_offset = f->q_width,
                               .v_offset = f->q_width + f->k_width,
                               .heads = c->heads,
                               .rope_dim = c->rope.dim,
                               .positions = (int32_t)f->options.context,
                               .table = f->w.rope,
                               .kv = f->kv[layer]};
    if (q && k) {
        store.norm_base = slot;
        store.q_norm = q->offset;
        store.k_norm = k->offset;
        store.norm_eps = (float)c->norm_eps;
    }
    return weir__list_add(l, WEIR_K_rope_store, &store, true, error);
}

static int record_scores(const weir__forward *f, uint32_t layer, const weir__tensor_plan *out, weir__list *l, weir_error **error) {
    const weir__config *c = weir__checkpoint_config(f->checkpoint);
    int32_t context = (int32_t)f->options.context;
    uint32_t block = acts_of(f, out);
    weir_k_attention a = {.step = weir__step_device(&f->step),
                          .q = f->w.qkv,
                          .ldq = f->qkv_width,
                          .heads = c->heads,
                          .scale = (float)c->attention_scale,
                          .splits = (context + WEIR_ATTENTION_SPLIT - 1) / WEIR_ATTENTION_SPLIT,
                          .kv = f->kv[layer],
                          .partial = f->w.partial,
                          .out = f->w.attention,
                          .acts = block ? f->w.attention_acts : NULL,
                          .acts_block = (int32_t)block,
                          .window = weir__config_local(c, layer) ? c->window : 0,
                          .softcap = (float)c->attention_softcap};
    int code = weir__list_add(l, WEIR_K_attention, &a, true, error);
    return code ? code : weir__list_add(l, WEIR_K_attention_merge, &a, true, error);
}

static int record_attention(const weir__forward *f, uint32_t u, const weir__unit_plan *p, void *const *slot, weir__list *l,
                            weir_error **error) {
    const weir__tensor_plan *out = weir__plan_role(p, WEIR__O);
    products readers = {{weir__plan_role(p, WEIR__Q), weir__plan_role(p, WEIR__K), weir__plan_role(p, WEIR__V)}};
    int code = record_norm(f, l, slot, weir__plan_role(p, WEIR__ATTN_NORM), WEIR_ROWS_PASS, readers, error);
    if (!code)
        code = record_qkv(f, p, slot, l, error);
    if (!code)
        code = record_store(f, u, p, slot, l, error);
    if (!code)
        code = record_scores(f, u, out, l, error);
    weir_k_matmul k = product_of(f, out, slot);
    k.x = f->w.attention;
    k.acts = acts_of(f, out) ? f->w.attention_acts : NULL;
    set_bias(&k, weir__plan_role(p, WEIR__O_BIAS));
    return code ? code : record_branch(f, l, slot, &k, out, weir__plan_role(p, WEIR__POST_ATTN_NORM), error);
}

/* ---- MLP ---- */

static int record_gated(const weir__forward *f, const weir__unit_plan *p, void *const *slot, weir__list *l, weir_error **error) {
    const weir__config *c = weir__checkpoint_config(f->checkpoint);
    const weir__tensor_plan *gate = weir__plan_role(p, WEIR__GATE), *up = weir__plan_role(p, WEIR__UP),
                            *down = weir__plan_role(p, WEIR__DOWN);
    const weir__tensor_plan *gate_bias = weir__plan_role(p, WEIR__GATE_BIAS), *up_bias = weir__plan_role(p, WEIR__UP_BIAS);
    uint32_t block = acts_of(f, down);
    weir_k_glu k = {.step = weir__step_device(&f->step),
                    .gate = weir__plan_weight(gate, slot),
                    .up = weir__plan_weight(up, slot),
                    .x = f->w.normed,
                    .acts = weir__forward_int8(f) ? f->w.normed_acts : NULL,
                    .acts_k = weir__forward_int8(f) ? f->w.normed_acts_k : NULL,
                    .ldx = c->width,
                    .ldy = c->ffn,
                    .y = block == 32 ? NULL : f->w.hidden,
                    .acts_out = block ? f->w.hidden_acts : NULL,
                    .acts_block = (int32_t)block,
                    .activation = c->activation,
                    .workspace = f->w.products,
                    .most_rows = (int32_t)f->options.tile,
                    .f32 = f->options.activations_f32};
    if (gate_bias && up_bias) {
        k.bias = 1;
        k.gate_bias = gate_bias->offset;
        k.up_bias = up_bias->offset;
    }
    return add(f, l, WEIR_K_glu, &k, true, gate, error);
}

static int record_mlp(const weir__forward *f, const weir__unit_plan *p, void *const *slot, weir__list *l, weir_error **error) {
    const weir__tensor_plan *gate = weir__plan_role(p, WEIR__GATE), *up = weir__plan_role(p, WEIR__UP),
                            *down = weir__plan_role(p, WEIR__DOWN);
    products readers = {{gate, up, NULL}};
    int code = record_norm(f, l, slot, weir__plan_role(p, WEIR__FFN_NORM), WEIR_ROWS_PASS, readers, error);
    if (!code)
        code = record_gated(f, p, slot, l, error);
    weir_k_matmul k = product_of(f, down, slot);
    k.x = f->w.hidden;
    k.acts = acts_of(f, down) ? f->w.hidden_acts : NULL;
    set_bias(&k, weir__plan_role(p, WEIR__DOWN_BIAS));
    return code ? code : record_branch(f, l, slot, &k, down, weir__plan_role(p, WEIR__POST_FFN_NORM), error);
}

int weir__record_unit(const weir__forward *f, uint32_t u, weir__list *l, weir_error **error) {
    const weir__unit_plan *p = weir__checkpoint_unit(f->checkpoint, u);
    void *const *slot = weir__forward_slot(f, u);
    int code = record_attention(f, u, p, slot, l, error);
    return code ? code : record_mlp(f, p, slot, l, error);
}

/* ---- the static modules ---- */

int weir__record_embedding(const weir__forward *f, weir__list *l, weir_error **error) {
    uint32_t units = weir__checkpoint_graph(f->checkpoint)->units;
    const weir__tensor_plan *t = weir__plan_role(weir__checkpoint_unit(f->checkpoint, units), WEIR__EMBEDDING);
    weir_k_embed k = {weir__step_device(&f->step), weir__plan_weight(t, weir__forward_slot(f, units)), f->w.x,
                      (float)weir__checkpoint_config(f->checkpoint)->embedding_scale};
    return add(f, l, WEIR_K_embed, &k, true, t, error);
}

int weir__record_final_norm(const weir__forward *f, weir__list *l, weir_error **error) {
    uint32_t units = weir__checkpoint_graph(f->checkpoint)->units;
    weir_k_rmsnorm norm = {.step = weir__step_device(&f->step),
                           .x = f->w.x,
                           .x_rows = WEIR_ROWS_PASS,
                           .width = weir__checkpoint_config(f->checkpoint)->width,
                           .weight_base = weir__forward_slot(f, units),
                           .weight_offset = weir__plan_role(weir__checkpoint_unit(f->checkpoint, units), WEIR__OUTPUT_NORM)->offset,
                           .eps = (float)weir__checkpoint_config(f->checkpoint)->norm_eps,
                           .y_rows = WEIR_ROWS_TILE,
                           .y = f->w.normed};
    return weir__list_add(l, WEIR_K_rmsnorm, &norm, true, error);
}

int weir__record_head(const weir__forward *f, weir__list *l, weir_error **error) {
    const weir__config *c = weir__checkpoint_config(f->checkpoint);
    uint32_t units = weir__checkpoint_graph(f->checkpoint)->units;
    const weir__unit_plan *p = weir__checkpoint_unit(f->checkpoint, units);
    void *const *slot = weir__forward_slot(f, units);
    const weir__tensor_plan *head = weir__plan_role(p, c->tied ? WEIR__EMBEDDING : WEIR__HEAD);
    int code = record_norm(f, l, slot, weir__plan_role(p, WEIR__OUTPUT_NORM), WEIR_ROWS_GATHER, (products){{head, NULL, NULL}}, error);
    weir_k_matmul k = product_of(f, head, slot);
    k.x = f->w.normed;
    k.acts = normed_acts(f, head);
    k.rows = k.y_rows = WEIR_ROWS_OUT;
    k.most_rows = (int32_t)f->out_tile;
    k.y = f->w.logits;
    k.ldy = c->vocab;
    if (!code)
        code = add(f, l, WEIR_K_matmul, &k, true, head, error);
    weir_k_softcap cap = {weir__step_device(&f->step), f->w.logits, c->vocab, WEIR_ROWS_OUT, (float)c->logit_softcap};
    if (!code && c->logit_softcap > 0)
        code = weir__list_add(l, WEIR_K_softcap, &cap, true, error);
    return code;
}
