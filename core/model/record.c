/* record.c: pieces of recorded work that families share (forward.h). */
#include "forward.h"

/* What the matrices of a unit want their input to be: those whose inner dimension is the model's width read the normed rows. */
static void wanted(const weir__forward *f, const weir__unit_plan *p, bool *floats, bool *acts) {
    int32_t width = weir__checkpoint_config(f->checkpoint)->width;
    *floats = *acts = false;
    for (uint32_t i = 0; i < p->count; i++) {
        if (p->tensors[i].vector || p->tensors[i].k != width)
            continue;
        bool integer = f->w.normed_acts && weir_type_get(p->tensors[i].source->type)->acts;
        *(integer ? acts : floats) = true;
    }
}

int weir__record_norm(const weir__forward *f, weir__list *l, void *const *slot, const weir__unit_plan *p, uint32_t tensor, int x_rows,
                      weir_error **error) {
    const weir__config *c = weir__checkpoint_config(f->checkpoint);
    bool floats, acts;
    wanted(f, p, &floats, &acts);
    weir_k_rmsnorm norm = {.step = f->step,
                           .x = f->w.x,
                           .x_rows = x_rows,
                           .width = c->width,
                           .weight_base = slot,
                           .weight_offset = p->tensors[tensor].offset,
                           .eps = c->norm_eps,
                           .y_rows = x_rows == WEIR_ROWS_GATHER ? WEIR_ROWS_OUT : WEIR_ROWS_TILE,
                           .y = floats ? f->w.normed : NULL,
                           .acts = acts ? f->w.normed_acts : NULL};
    return weir__list_add(l, WEIR_K_rmsnorm, &norm, true, error);
}

int weir__record_attention(const weir__forward *f, uint32_t layer, weir__list *l, weir_error **error) {
    const weir__config *c = weir__checkpoint_config(f->checkpoint);
    int32_t context = (int32_t)f->options.context;
    weir_k_attention a = {.step = f->step,
                          .q = f->w.qkv,
                          .ldq = f->qkv_width,
                          .heads = c->heads,
                          .scale = 1.0f / __builtin_sqrtf((float)c->head_dim),
                          .splits = (context + WEIR_ATTENTION_SPLIT - 1) / WEIR_ATTENTION_SPLIT,
                          .kv = f->kv[layer],
                          .partial = f->w.partial,
                          .out = f->w.attention,
                          .acts = f->w.attention_acts,
                          .acts_block = 32};
    int code = weir__list_add(l, WEIR_K_attention, &a, true, error);
    return code ? code : weir__list_add(l, WEIR_K_attention_merge, &a, true, error);
}
