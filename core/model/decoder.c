/* decoder.c: which tensors a unit of a decoder has, by the family's rows, and of what shape. */
#include "model.h"

#include <stdio.h>
#include <string.h>

const weir__tensor_row weir__decoder_tensors[WEIR__DECODER_TENSORS] = {WEIR__DECODER_ROWS};

/* Whether a model with this config has a tensor of this role at all. */
static bool present(const weir__config *c, enum weir__role role) {
    switch (role) {
    case WEIR__HEAD:
        return !c->tied;
    case WEIR__Q_BIAS:
    case WEIR__K_BIAS:
    case WEIR__V_BIAS:
        return c->qkv_bias;
    case WEIR__O_BIAS:
        return c->out_bias;
    case WEIR__GATE_BIAS:
    case WEIR__UP_BIAS:
    case WEIR__DOWN_BIAS:
        return c->ffn_bias;
    default:
        return true;
    }
}

static bool is_static(enum weir__role role) {
    return role <= WEIR__HEAD;
}

/* Shape of a role: a vector has n = 0. */
static weir__tensor_plan shape_of(const weir__config *c, enum weir__role role) {
    const int32_t H = c->width, q = c->heads * c->head_dim, kv = c->kv_heads * c->head_dim;
    const struct {
        int32_t n, k, heads;
        bool norm;
    } shapes[WEIR__ROLES] = {
        [WEIR__EMBEDDING] = {c->vocab, H, 0, false},
        [WEIR__OUTPUT_NORM] = {0, H, 0, true},
        [WEIR__HEAD] = {c->vocab, H, 0, false},
        [WEIR__ATTN_NORM] = {0, H, 0, true},
        [WEIR__Q] = {q, H, c->heads, false},
        [WEIR__K] = {kv, H, c->kv_heads, false},
        [WEIR__V] = {kv, H, 0, false},
        [WEIR__O] = {H, q, 0, false},
        [WEIR__Q_BIAS] = {0, q, c->heads, false},
        [WEIR__K_BIAS] = {0, kv, c->kv_heads, false},
        [WEIR__V_BIAS] = {0, kv, 0, false},
        [WEIR__O_BIAS] = {0, H, 0, false},
        [WEIR__Q_NORM] = {0, c->head_dim, 0, true},
        [WEIR__K_NORM] = {0, c->head_dim, 0, true},
        [WEIR__POST_ATTN_NORM] = {0, H, 0, true},
        [WEIR__FFN_NORM] = {0, H, 0, true},
        [WEIR__GATE] = {c->ffn, H, 0, false},
        [WEIR__UP] = {c->ffn, H, 0, false},
        [WEIR__DOWN] = {H, c->ffn, 0, false},
        [WEIR__GATE_BIAS] = {0, c->ffn, 0, false},
        [WEIR__UP_BIAS] = {0, c->ffn, 0, false},
        [WEIR__DOWN_BIAS] = {0, H, 0, false},
        [WEIR__POST_FFN_NORM] = {0, H, 0, true},
    };
    return (weir__tensor_plan){.n = shapes[role].n,
                               .k = shapes[role].k,
                               .rope_heads = shapes[role].heads,
                               .vector = shapes[role].n == 0,
                               .norm = shapes[role].norm};
}

/* Rows of all parts of a fused tensor, of which row i is the first. */
static int32_t fused_rows(const weir__config *c, const weir__family *f, size_t i) {
    int32_t n = 0;
    for (size_t j = i; j < f->n_tensors && strcmp(f->tensors[j].gguf, f->tensors[i].gguf) == 0; j++)
        n += shape_of(c, f->tensors[j].role).n;
    return n;
}

int weir__family_each(const weir__family *f, const weir__config *c, weir__row_fn *fn, void *data, weir_error **error) {
    int code = WEIR_OK;
    for (int32_t layer = -1; layer < c->layers; layer++)
        for (size_t i = 0; i < f->n_tensors && !code; i++) {
            const weir__tensor_row *t = &f->tensors[i];
            bool part = i > 0 && strcmp(t->gguf, t[-1].gguf) == 0;
            if (!part && is_static(t->role) == (layer < 0) && present(c, t->role))
                code = fn(data, t, layer, fused_rows(c, f, i), shape_of(c, t->role).k, error);
        }
    return code;
}

int weir__decoder_plan(const weir__checkpoint *c, uint32_t ordinal, weir__unit_plan *p, weir_error **error) {
    const weir__config *o = weir__checkpoint_config(c);
    const weir__family *f = weir__checkpoint_family(c);
    bool gguf = weir__source_format(weir__checkpoint_source(c)) == WEIR__FORMAT_GGUF, last = ordinal == (uint32_t)o->layers;
    int32_t rows = 0, row = 0;
    snprintf(p->path, sizeof p->path, last ? "static" : "layers.%u", ordinal);
    memset(p->index, -1, sizeof p->index);
    for (size_t i = 0; i < f->n_tensors; i++) {
        const weir__tensor_row *t = &f->tensors[i];
        char name[96];
        if (is_static(t->role) != last || !present(o, t->role))
            continue;
        bool part = i > 0 && strcmp(t->gguf, t[-1].gguf) == 0;
        rows = part ? rows : fused_rows(o, f, i);
        row = part ? row : 0;
        weir__tensor_plan want = shape_of(o, t->role);
        if (!gguf || !f->gguf_pairs)
            want.rope_heads = 0;
        snprintf(name, sizeof name, gguf ? t->gguf : t->hf, ordinal);
        p->index[t->role] = (int8_t)p->count;
        int code = weir__plan_add(c, p, &want, row, rows, name, error);
        if (code)
            return code;
        row += want.n;
    }
    return WEIR_OK;
}
