/* layer_types.c: which layers of a decoder are local: a list in config.json, or what the family says. */
#include "family.h"

#include <string.h>

static bool is_text(const weir__value *v, const char *text) {
    return v->kind == WEIR__TEXT && v->text.size == strlen(text) && memcmp(v->text.data, text, v->text.size) == 0;
}

/* config.json's list; kind ABSENT: it has none. */
static int find_types(const weir__source *src, const weir__config *c, weir__value *types, weir_error **error) {
    char found[96];
    *types = (weir__value){0};
    if (weir__source_format(src) == WEIR__FORMAT_SAFETENSORS)
        weir__source_get(src, "layer_types", types);
    if (types->kind == WEIR__NULL)
        types->kind = WEIR__ABSENT;
    if (types->kind != WEIR__LIST && types->kind != WEIR__ABSENT)
        return weir_fail(error, WEIR_EFORMAT, "%s: key \"layer_types\": found %s, wanted a list of %d, one for each layer",
                         weir__source_settings_path(src), weir__value_shown(types, found, sizeof found), c->layers);
    if (types->kind == WEIR__LIST && types->count != (uint64_t)c->layers)
        return weir_fail(error, WEIR_EFORMAT, "%s: layer_types has %llu elements, num_hidden_layers is %d", weir__source_settings_path(src),
                         (unsigned long long)types->count, c->layers);
    return WEIR_OK;
}

/* What the list says of a layer. */
static int read_type(const weir__source *src, int32_t layer, bool *local, weir_error **error) {
    char found[96];
    weir__value v;
    weir__source_element(src, "layer_types", (uint64_t)layer, &v);
    *local = is_text(&v, "sliding_attention");
    if (*local || is_text(&v, "full_attention"))
        return WEIR_OK;
    return weir_fail(error, WEIR_EUNSUPPORTED, "%s: layer_types of layer %d is %s, wanted \"full_attention\" or \"sliding_attention\"",
                     weir__source_settings_path(src), layer, weir__value_shown(&v, found, sizeof found));
}

/* Where all layers are alike the list may say so, and nothing else. */
static int check_alike(const weir__source *src, const weir__config *c, int32_t layer, bool local, weir_error **error) {
    if (local == (c->window > 0))
        return WEIR_OK;
    return weir_fail(error, WEIR_EUNSUPPORTED,
                     "%s: layer_types of layer %d is \"%s\", wanted \"%s\": layers of this architecture are all alike, with a window if "
                     "sliding_window is set",
                     weir__source_settings_path(src), layer, local ? "sliding_attention" : "full_attention",
                     local ? "full_attention" : "sliding_attention");
}

int weir__config_layers(const weir__source *src, weir__config *c, bool (*local)(const weir__config *c, int32_t layer), weir_error **error) {
    weir__value types;
    int code = find_types(src, c, &types, error);
    for (int32_t i = 0; i < c->layers && !code; i++) {
        bool is = !local || local(c, i);
        if (types.kind == WEIR__LIST)
            code = read_type(src, i, &is, error);
        if (!code && types.kind == WEIR__LIST && !local)
            code = check_alike(src, c, i, is, error);
        if (!code && is && c->window > 0)
            c->local[i / 64] |= UINT64_C(1) << i % 64;
    }
    return code;
}
