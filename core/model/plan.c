/* plan.c: which tensors make a unit, where their packed forms lie in its blob, and how they are read and packed (model.h). */
#include "model.h"

#include <stdio.h>

static int shape_error(const weir__checkpoint *c, const weir__tensor *t, int64_t n, int64_t k, weir_error **error) {
    char found[96];
    int used = 0;
    for (unsigned i = 0; i < t->n_dims; i++)
        used += snprintf(found + used, sizeof found - (size_t)used, "%s%lld", i ? " x " : "", (long long)t->dims[i]);
    if (n)
        return weir_fail(error, WEIR_EFORMAT, "%s: tensor \"%.*s\" is %s, wanted %lld x %lld", weir__gguf_path(weir__checkpoint_gguf(c)),
                         (int)t->name.size, t->name.data, found, (long long)k, (long long)n);
    return weir_fail(error, WEIR_EFORMAT, "%s: tensor \"%.*s\" is %s, wanted %lld", weir__gguf_path(weir__checkpoint_gguf(c)),
                     (int)t->name.size, t->name.data, found, (long long)k);
}

static int check_type(const weir__checkpoint *c, const weir__tensor *t, bool vector, weir_error **error) {
    if (vector ? t->type == WEIR_F32 || t->type == WEIR_F16 : weir_type_get(t->type) != NULL)
        return WEIR_OK;
    const weir_type_info *any = weir_type_any(t->type);
    return weir_fail(error, WEIR_EUNSUPPORTED, "%s: tensor \"%.*s\" is of type %s (%d), supported here: %s",
                     weir__gguf_path(weir__checkpoint_gguf(c)), (int)t->name.size, t->name.data, any ? any->name : "?", t->type,
                     vector ? "f32, f16" : "f32, f16, q4_1, q8_0");
}

int weir__plan_add(const weir__checkpoint *c, weir__unit_plan *p, const char *name, int64_t n, int64_t k, int rope_heads,
                   weir_error **error) {
    const weir__gguf *g = weir__checkpoint_gguf(c);
    const weir__tensor *t = weir__gguf_find_tensor(g, name);
    if (!t)
        return weir_fail(error, WEIR_EFORMAT, "%s: tensor \"%s\" is missing", weir__gguf_path(g), name);
    bool vector = n == 0;
    if (t->dims[0] != k || t->dims[1] != (vector ? 1 : n) || t->dims[2] != 1 || t->dims[3] != 1)
        return shape_error(c, t, n, k, error);
    int code = check_type(c, t, vector, error);
    if (code)
        return code;
    size_t packed = vector ? ((size_t)k * sizeof(float) + 63) / 64 * 64 : weir_packed_size(t->type, n, k);
    if (!packed)
        return weir_fail(error, WEIR_EFORMAT, "%s: tensor \"%s\": rows of %lld are no multiple of its type's block", weir__gguf_path(g),
                         name, (long long)k);
    weir__tensor_plan *out = &p->tensors[p->count++];
    *out = (weir__tensor_plan){t, p->blob_bytes, vector ? 1 : (int32_t)n, (int32_t)k, rope_heads, vector};
    p->blob_bytes += packed;
    p->source_bytes += (t->size + 63) / 64 * 64;
    return WEIR_OK;
}

weir_weight weir__plan_weight(const weir__unit_plan *p, uint32_t index, void *const *slot) {
    const weir__tensor_plan *t = &p->tensors[index];
    return (weir_weight){slot, t->offset, t->vector ? WEIR_F32 : t->source->type, t->n, t->k};
}

int weir__unit_read(const weir__checkpoint *c, uint32_t ordinal, void *staging, weir_error **error) {
    const weir__unit_plan *p = weir__checkpoint_unit(c, ordinal);
    uint8_t *to = staging;
    for (uint32_t i = 0; i < p->count; i++) {
        const weir__tensor *t = p->tensors[i].source;
        int code = weir__gguf_read(weir__checkpoint_gguf(c), t->offset, to, t->size, error);
        if (code)
            return code;
        to += (t->size + 63) / 64 * 64;
    }
    return WEIR_OK;
}

int weir__unit_pack(const weir__checkpoint *c, uint32_t ordinal, const void *staging, void *const *slot, weir__list *list,
                    weir_error **error) {
    const weir__unit_plan *p = weir__checkpoint_unit(c, ordinal);
    const uint8_t *from = staging;
    for (uint32_t i = 0; i < p->count; i++) {
        const weir__tensor_plan *t = &p->tensors[i];
        weir_weight w = {slot, t->offset, t->source->type, t->n, t->k};
        int code;
        if (t->vector) {
            weir_k_pack_vector args = {from, w, 0, 0, 0};
            code = weir__list_add(list, WEIR_K_pack_vector, &args, false, error);
        } else {
            weir_k_pack args = {from, w, t->rope_heads, t->rope_heads ? weir__checkpoint_config(c)->rope_dim : 0, t->source->type, 0};
            code = weir__list_add(list, WEIR_K_pack, &args, false, error);
        }
        if (code)
            return code;
        from += (t->source->size + 63) / 64 * 64;
    }
    return WEIR_OK;
}
