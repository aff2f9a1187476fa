/* plan.c: a unit's tensors: checks of shape and type, places in the blob, reading and packing (model.h). */
#include "model.h"

#include <stdio.h>

static const char *path_of(const weir__checkpoint *c) {
    return weir__source_path(weir__checkpoint_source(c));
}

/* A shape in the order of the file: safetensors has the row length last, GGUF first. */
static void show_shape(const weir__checkpoint *c, const int64_t *dims, unsigned n, char *to, size_t room) {
    bool gguf = weir__source_format(weir__checkpoint_source(c)) == WEIR__FORMAT_GGUF;
    size_t used = 0;
    for (unsigned i = 0; i < n; i++)
        used += (size_t)snprintf(to + used, room - used, "%s%lld", i ? " x " : "", (long long)dims[gguf ? i : n - 1 - i]);
    if (n == 0)
        snprintf(to, room, "a scalar");
}

static int shape_error(const weir__checkpoint *c, const weir__tensor *t, int64_t n, int64_t k, weir_error **error) {
    char found[96], wanted[48];
    show_shape(c, t->dims, t->n_dims, found, sizeof found);
    show_shape(c, (int64_t[2]){k, n}, n ? 2 : 1, wanted, sizeof wanted);
    return weir_fail(error, WEIR_EFORMAT, "%s: tensor \"%.*s\" is %s, wanted %s", path_of(c), (int)t->name.size, t->name.data, found,
                     wanted);
}

/* GGUF may leave out dimensions of 1 at the end; safetensors has exactly those that are meant, and a leading 1 is another shape, as it is to PyTorch. */
static bool fits(const weir__checkpoint *c, const weir__tensor *t, int64_t n, int64_t k) {
    bool gguf = weir__source_format(weir__checkpoint_source(c)) == WEIR__FORMAT_GGUF;
    return t->dims[0] == k && t->dims[1] == (n ? n : 1) && t->dims[2] == 1 && t->dims[3] == 1 && (gguf || t->n_dims == (n ? 2 : 1));
}

static bool is_float(int type) {
    return type == WEIR_F32 || type == WEIR_F16 || type == WEIR_BF16;
}

static int check_type(const weir__checkpoint *c, const weir__tensor *t, bool vector, weir_error **error) {
    char known[256] = "";
    if (vector ? is_float(t->type) : weir_type_get(t->type) != NULL)
        return WEIR_OK;
    for (int i = 0; i < WEIR_TYPES; i++)
        if (weir_type_get(i) && (!vector || is_float(i)))
            weir__enumerate(known, sizeof known, weir_type_get(i)->name);
    return weir_fail(error, WEIR_EUNSUPPORTED, "%s: tensor \"%.*s\" is of type %s (%d), supported here: %s", path_of(c), (int)t->name.size,
                     t->name.data, weir__tensor_type_name(t->type), t->type, known);
}

/* The type that a matrix has in memory. */
static int packed_type(const weir__checkpoint *c, const weir__tensor *t) {
    int quant = weir__checkpoint_quant(c);
    return quant >= 0 && is_float(t->type) && t->dims[0] % weir_type_any(quant)->block == 0 ? quant : t->type;
}

int weir__plan_add(const weir__checkpoint *c, weir__unit_plan *p, const weir__tensor_plan *want, int32_t row, int32_t rows,
                   const char *name, weir_error **error) {
    const weir__tensor *t = weir__source_find(weir__checkpoint_source(c), name);
    if (!t)
        return weir__tensor_missing(weir__checkpoint_source(c), name, error);
    if (!fits(c, t, want->vector ? 0 : rows, want->k))
        return shape_error(c, t, want->vector ? 0 : rows, want->k, error);
    int code = check_type(c, t, want->vector, error);
    if (code)
        return code;
    int type = want->vector ? WEIR_F32 : packed_type(c, t);
    size_t packed = want->vector ? ((size_t)want->k * sizeof(float) + 63) / 64 * 64 : weir_packed_size(type, want->n, want->k);
    if (!packed)
        return weir_fail(error, WEIR_EFORMAT, "%s: tensor \"%s\": rows of %d are no multiple of its type's block", path_of(c), name,
                         want->k);
    uint64_t row_bytes = want->vector ? t->size : t->size / (uint64_t)rows;
    weir__tensor_plan *out = &p->tensors[p->count++];
    *out = *want;
    out->source = t;
    out->type = type;
    out->n = want->vector ? 1 : want->n;
    out->source_offset = (uint64_t)row * row_bytes;
    out->source_bytes = (uint64_t)out->n * row_bytes;
    out->offset = p->blob_bytes;
    p->blob_bytes += packed;
    p->source_bytes += (out->source_bytes + 63) / 64 * 64;
    return WEIR_OK;
}

weir_weight weir__plan_weight(const weir__tensor_plan *t, void *const *slot) {
    return (weir_weight){slot, t->offset, t->type, t->n, t->k};
}

int weir__unit_read(const weir__checkpoint *c, uint32_t ordinal, void *staging, weir_error **error) {
    const weir__unit_plan *p = weir__checkpoint_unit(c, ordinal);
    uint8_t *to = staging;
    for (uint32_t i = 0; i < p->count; i++) {
        const weir__tensor_plan *t = &p->tensors[i];
        int code = weir__source_read(weir__checkpoint_source(c), t->source, t->source_offset, to, t->source_bytes, error);
        if (code)
            return code;
        to += (t->source_bytes + 63) / 64 * 64;
    }
    return WEIR_OK;
}

int weir__plan_refused(const weir__checkpoint *c, const weir__tensor_plan *t, int code, weir_error **error) {
    if (code != WEIR_EUNSUPPORTED || !error)
        return code;
    weir_error *why = *error;
    weir_fail(error, code, "%s: tensor \"%.*s\" of type %s: %s", path_of(c), (int)t->source->name.size, t->source->name.data,
              weir__tensor_type_name(t->source->type), weir_error_text(why));
    weir_error_free(why);
    return code;
}

static int pack_tensor(const weir__checkpoint *checkpoint, const weir__tensor_plan *t, const void *from, void *const *slot,
                       weir__list *list, weir_error **error) {
    const weir__config *c = weir__checkpoint_config(checkpoint);
    weir_weight w = weir__plan_weight(t, slot);
    int32_t rope_dim = t->rope_heads ? c->rope.dim : 0;
    if (t->vector) {
        w.type = t->source->type;
        weir_k_pack_vector args = {from, w, t->rope_heads, rope_dim, t->norm ? c->norm_add : 0};
        return weir__plan_refused(checkpoint, t, weir__list_add(list, WEIR_K_pack_vector, &args, false, error), error);
    }
    weir_k_pack args = {from, w, t->rope_heads, rope_dim, t->source->type, 0};
    return weir__plan_refused(checkpoint, t, weir__list_add(list, WEIR_K_pack, &args, false, error), error);
}

int weir__unit_pack(const weir__checkpoint *c, uint32_t ordinal, const void *staging, void *const *slot, weir__list *list,
                    weir_error **error) {
    const weir__unit_plan *p = weir__checkpoint_unit(c, ordinal);
    const uint8_t *from = staging;
    for (uint32_t i = 0; i < p->count; i++) {
        int code = pack_tensor(c, &p->tensors[i], from, slot, list, error);
        if (code)
            return code;
        from += (p->tensors[i].source_bytes + 63) / 64 * 64;
    }
    return WEIR_OK;
}
