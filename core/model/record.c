/* record.c: pieces of recorded work that families share (forward.h). */
#include "forward.h"

/* What the matrices of a unit want their input to be: those whose inner dimension is the model's width read the normed rows. */
static void wanted(const weir__forward *f, const weir__unit_plan *p, bool *floats, bool *acts, bool *acts_k) {
    int32_t width = weir__checkpoint_config(f->checkpoint)->width;
    *floats = *acts = *acts_k = false;
    for (uint32_t i = 0; i < p->count; i++) {
        if (p->tensors[i].vector || p->tensors[i].k != width)
            continue;
        int32_t block = weir__record_acts(f, weir__plan_weight(p, i, NULL).type);
        *(block == 256 ? acts_k : block ? acts : floats) = true;
    }
}

/* A row is a multiple of its type's block, and that of the activations' block. */
int32_t weir__record_acts(const weir__forward *f, int type) {
    return f->options.activations_f32 ? 0 : (int32_t)weir_type_get(type)->acts;
}

const void *weir__record_normed_acts(const weir__forward *f, int type) {
    int32_t block = weir__record_acts(f, type);
    return block == 256 ? f->w.normed_acts_k : block ? f->w.normed_acts : NULL;
}

int weir__record_norm(const weir__forward *f, weir__list *l, void *const *slot, const weir__unit_plan *p, uint32_t tensor, int x_rows,
                      weir_error **error) {
    const weir__config *c = weir__checkpoint_config(f->checkpoint);
    bool floats, acts, acts_k;
    wanted(f, p, &floats, &acts, &acts_k);
    weir_k_rmsnorm norm = {.step = f->step,
                           .x = f->w.x,
                           .x_rows = x_rows,
                           .width = c->width,
                           .weight_base = slot,
                           .weight_offset = p->tensors[tensor].offset,
                           .eps = c->norm_eps,
                           .y_rows = x_rows == WEIR_ROWS_GATHER ? WEIR_ROWS_OUT : WEIR_ROWS_TILE,
                           .y = floats ? f->w.normed : NULL,
                           .acts = acts ? f->w.normed_acts : NULL,
                           .acts_k = acts_k ? f->w.normed_acts_k : NULL};
    return weir__list_add(l, WEIR_K_rmsnorm, &norm, true, error);
}

int weir__record_attention(const weir__forward *f, uint32_t layer, int out_type, weir__list *l, weir_error **error) {
    const weir__config *c = weir__checkpoint_config(f->checkpoint);
    int32_t context = (int32_t)f->options.context, block = weir__record_acts(f, out_type);
    weir_k_attention a = {.step = f->step,
                          .q = f->w.qkv,
                          .ldq = f->qkv_width,
                          .heads = c->heads,
                          .scale = 1.0f / __builtin_sqrtf((float)c->head_dim),
                          .splits = (context + WEIR_ATTENTION_SPLIT - 1) / WEIR_ATTENTION_SPLIT,
                          .kv = f->kv[layer],
                          .partial = f->w.partial,
                          .out = f->w.attention,
                          .acts = block ? f->w.attention_acts : NULL,
                          .acts_block = block};
    int code = weir__list_add(l, WEIR_K_attention, &a, true, error);
    return code ? code : weir__list_add(l, WEIR_K_attention_merge, &a, true, error);
}
