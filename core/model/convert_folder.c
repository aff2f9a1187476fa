/* convert_folder.c: a converted checkpoint as a folder: weights, config.json, and the files of the tokeniser. */
#include "convert_internal.h"

#include "../text/json_write.h"
#include "safetensors_writer.h"

#include <stdio.h>
#include <string.h>

/* What transformers calls the class that runs a family's checkpoints. */
static void put_class(weir__json_writer *w, const char *family) {
    char name[64];
    int n = snprintf(name, sizeof name, "%sForCausalLM", family);
    name[0] = (char)(name[0] - 'a' + 'A');
    weir__json_write_key(w, "architectures", 13);
    weir__json_write_open(w, '[');
    weir__json_write_string(w, name, (size_t)n);
    weir__json_write_close(w, ']');
    weir__json_write_key(w, "model_type", 10);
    weir__json_write_string(w, family, strlen(family));
}

typedef struct setting_writer {
    weir__json_writer *json;
    const char *outer; /* the object that is open, NULL: none */
    bool inner;        /* only settings of objects are written, else only others */
} setting_writer;

static void put_value(weir__json_writer *w, const weir__value *v) {
    switch (v->kind) {
    case WEIR__INTEGER:
        weir__json_write_int(w, v->integer);
        return;
    case WEIR__REAL:
        weir__json_write_real(w, v->real);
        return;
    case WEIR__BOOLEAN:
        weir__json_write_word(w, v->integer ? "true" : "false");
        return;
    case WEIR__TEXT:
        weir__json_write_string(w, v->text.data, v->text.size);
        return;
    default:
        weir__json_write_word(w, "null");
    }
}

static void put_setting(void *data, const char *key, const weir__value *v) {
    setting_writer *s = data;
    const char *dot = strchr(key, '.');
    if ((dot != NULL) != s->inner)
        return;
    if (dot && !s->outer) {
        s->outer = "rope_scaling";
        weir__json_write_key(s->json, s->outer, strlen(s->outer));
        weir__json_write_open(s->json, '{');
    }
    key = dot ? dot + 1 : key;
    weir__json_write_key(s->json, key, strlen(key));
    put_value(s->json, v);
}

/* Where not all layers are alike, the list of them. */
static void put_layers(weir__json_writer *w, const weir__config *c) {
    int32_t local = 0;
    for (int32_t i = 0; i < c->layers; i++)
        local += weir__config_local(c, (uint32_t)i);
    if (local == 0 || local == c->layers)
        return;
    weir__json_write_key(w, "layer_types", 11);
    weir__json_write_open(w, '[');
    for (int32_t i = 0; i < c->layers; i++) {
        const char *type = weir__config_local(c, (uint32_t)i) ? "sliding_attention" : "full_attention";
        weir__json_write_string(w, type, strlen(type));
    }
    weir__json_write_close(w, ']');
}

static const char *dtype_of(const weir__conversion *c) {
    for (size_t i = 0; i < c->n; i++)
        if (c->items[i].n_dims > 1)
            return c->items[i].type == WEIR_BF16 ? "bfloat16" : c->items[i].type == WEIR_F16 ? "float16" : "float32";
    return "float32";
}

static void put_config(const weir__conversion *c, weir__safetensors_writer *to) {
    weir__json_writer w;
    weir__json_write_init(&w, c->system, 2);
    weir__json_write_open(&w, '{');
    put_class(&w, c->family->name);
    setting_writer outer = {&w, NULL, false}, inner = {&w, NULL, true};
    weir__config_emit(c->family, &c->config, WEIR__FORMAT_SAFETENSORS, put_setting, &outer);
    weir__config_emit(c->family, &c->config, WEIR__FORMAT_SAFETENSORS, put_setting, &inner);
    if (inner.outer)
        weir__json_write_close(&w, '}');
    put_layers(&w, &c->config);
    weir__json_write_key(&w, "torch_dtype", 11);
    weir__json_write_string(&w, dtype_of(c), strlen(dtype_of(c)));
    weir__json_write_close(&w, '}');
    weir__safetensors_put_json(to, "config.json", &w);
}

static int put_bytes(void *sink, const void *bytes, size_t size, weir_error **error) {
    return weir__safetensors_put_data(sink, bytes, size, error);
}

static int write_folder(weir__conversion *c, const char *out, weir_error **error) {
    weir__safetensors_writer *w;
    int code = weir__safetensors_create(c->system, out, c->options->shard_bytes, &w, error);
    if (code)
        return code;
    if (c->family) {
        put_config(c, w);
        code = weir__convert_text(c, w, error);
    } else {
        code = weir__convert_copy_text(c, w, error);
    }
    for (size_t i = 0; i < c->n; i++)
        weir__safetensors_put_tensor(w, c->items[i].name, c->items[i].type, c->items[i].n_dims, c->items[i].dims);
    for (size_t i = 0; i < c->n && !code; i++)
        code = weir__convert_data(c, &c->items[i], put_bytes, w, error);
    if (!code)
        return weir__safetensors_finish(w, error);
    weir__safetensors_abort(w);
    return code;
}

/* config.json says llama3's parameters, GGUF the factors that they made. */
static int check_scaling(weir__conversion *c, weir_error **error) {
    if (!c->family || c->config.rope.scaling != WEIR_ROPE_FACTORS || weir__rope_guess(&c->config))
        return WEIR_OK;
    return weir_fail(error, WEIR_EUNSUPPORTED, "%s: tensor \"rope_freqs.weight\" (rotary factors) has no place in config.json",
                     weir__source_path(c->source));
}

int weir__convert_to_folder(weir__conversion *c, const char *out, weir_error **error) {
    int code = check_scaling(c, error);
    if (!code)
        code = weir__convert_list(c, WEIR__FORMAT_SAFETENSORS, error);
    return code ? code : write_folder(c, out, error);
}
