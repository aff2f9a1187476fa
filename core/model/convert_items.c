/* convert_items.c: which tensors a converted checkpoint has, under which names, of which types. */
#include "convert_internal.h"

#include "../text/index.h"

#include <stdio.h>
#include <string.h>

static bool is_float(int type) {
    return type == WEIR_F32 || type == WEIR_F16 || type == WEIR_BF16;
}

/* Vectors are f32 in GGUF and as they are in safetensors; matrices become the type that is asked for if their rows are whole blocks of it. */
static int type_of(weir__conversion *c, const weir__tensor *t, enum weir__format to) {
    int wanted = c->options->type;
    if (t->n_dims == 1)
        return to == WEIR__FORMAT_GGUF && c->family && is_float(t->type) ? WEIR_F32 : t->type;
    if (!weir_type_reads(t->type))
        return t->type;
    if (wanted < 0)
        wanted = to == WEIR__FORMAT_SAFETENSORS && !is_float(t->type) ? WEIR_F32 : t->type;
    if (t->dims[0] % weir_type_any(wanted)->block) {
        c->options->kept++;
        return t->type;
    }
    return wanted;
}

static weir__item *add_item(weir__conversion *c, const char *name, weir_error **error) {
    if (weir__grow(c->system, &c->items, &c->room, c->n + 1, sizeof *c->items)) {
        weir_fail(error, WEIR_ENOMEM, "%s: no memory for tensors", weir__source_path(c->source));
        return NULL;
    }
    weir__item *item = &c->items[c->n];
    *item = (weir__item){.name = weir__strdup(c->system, name)};
    if (!item->name) {
        weir_fail(error, WEIR_ENOMEM, "%s: no memory for tensors", weir__source_path(c->source));
        return NULL;
    }
    c->n++;
    return item;
}

static weir__item *add_tensor(weir__conversion *c, const char *name, const weir__tensor *t, enum weir__format to, weir_error **error) {
    weir__item *item = add_item(c, name, error);
    if (!item)
        return NULL;
    item->from = t;
    item->type = type_of(c, t, to);
    item->n_dims = t->n_dims;
    memcpy(item->dims, t->dims, sizeof item->dims);
    c->total += t->size;
    return item;
}

/* Between files of one format: all tensors as they are. */
static int list_all(weir__conversion *c, enum weir__format to, weir_error **error) {
    for (size_t i = 0; i < weir__source_tensor_count(c->source); i++) {
        const weir__tensor *t = weir__source_tensor_at(c->source, i);
        char name[WEIR_GGUF_MAX_NAME + 1];
        snprintf(name, sizeof name, "%.*s", (int)t->name.size, t->name.data);
        if (!add_tensor(c, name, t, to, error))
            return WEIR_ENOMEM;
    }
    return WEIR_OK;
}

typedef struct target {
    weir__conversion *c;
    enum weir__format to;
} target;

static bool is_norm(enum weir__role role) {
    return role == WEIR__OUTPUT_NORM || role == WEIR__ATTN_NORM || role == WEIR__Q_NORM || role == WEIR__K_NORM ||
           role == WEIR__POST_ATTN_NORM || role == WEIR__FFN_NORM || role == WEIR__POST_FFN_NORM;
}

/* Heads whose rows GGUF has as rotary pairs. */
static int32_t heads_of(const weir__conversion *c, enum weir__role role) {
    bool q = role == WEIR__Q || role == WEIR__Q_BIAS, k = role == WEIR__K || role == WEIR__K_BIAS;
    return !c->family->gguf_pairs ? 0 : q ? c->config.heads : k ? c->config.kv_heads : 0;
}

/* What a norm of this family stores less in safetensors. */
static float norm_offset(const weir__family *f) {
    weir__config c = {0};
    f->defaults(&c, WEIR__FORMAT_SAFETENSORS);
    return c.norm_add;
}

static int list_row(void *data, const weir__tensor_row *row, int32_t layer, int64_t n, int64_t k, weir_error **error) {
    const target *a = data;
    weir__conversion *c = a->c;
    char from[96], name[96];
    bool gguf = a->to == WEIR__FORMAT_GGUF;
    (void)n, (void)k;
    snprintf(from, sizeof from, gguf ? row->hf : row->gguf, layer);
    snprintf(name, sizeof name, gguf ? row->gguf : row->hf, layer);
    const weir__tensor *t = weir__source_find(c->source, from);
    if (!t)
        return weir__tensor_missing(c->source, from, error);
    weir__item *item = add_tensor(c, name, t, a->to, error);
    if (!item)
        return WEIR_ENOMEM;
    item->heads = heads_of(c, row->role);
    item->rope_dim = c->config.rope.dim;
    item->to_pairs = gguf;
    item->add = is_norm(row->role) ? (gguf ? norm_offset(c->family) : -norm_offset(c->family)) : 0;
    return WEIR_OK;
}

/* GGUF says llama3's scaling as a tensor: how much slower each pair turns. */
static int list_factors(weir__conversion *c, weir_error **error) {
    const weir_rope *r = &c->config.rope;
    enum { MOST = 512 };
    double plain[MOST], scaled[MOST];
    if (r->scaling != WEIR_ROPE_LLAMA3)
        return WEIR_OK;
    weir__item *item = add_item(c, "rope_freqs.weight", error);
    if (!item)
        return WEIR_ENOMEM;
    item->type = WEIR_F32;
    item->n_dims = 1;
    memcpy(item->dims, (int64_t[WEIR_MAX_DIMS]){r->dim / 2, 1, 1, 1}, sizeof item->dims);
    item->values = weir__alloc(c->system, (size_t)r->dim / 2 * sizeof *item->values);
    if (!item->values)
        return weir_fail(error, WEIR_ENOMEM, "rotary factors");
    weir_rope_frequencies(&(weir_rope){.base = r->base, .dim = r->dim}, plain);
    weir_rope_frequencies(r, scaled);
    for (int32_t i = 0; i < r->dim / 2; i++)
        item->values[i] = (float)(plain[i] / scaled[i]);
    return WEIR_OK;
}

int weir__convert_list(weir__conversion *c, enum weir__format to, weir_error **error) {
    if (!c->family)
        return list_all(c, to, error);
    target a = {c, to};
    int code = to == WEIR__FORMAT_GGUF ? list_factors(c, error) : WEIR_OK;
    return code ? code : weir__family_each(c->family, &c->config, list_row, &a, error);
}
