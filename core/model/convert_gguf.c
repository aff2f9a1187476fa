/* convert_gguf.c: a converted checkpoint as a GGUF file: settings, tokeniser, tensors. */
#include "convert_internal.h"

#include "gguf_internal.h"
#include "source_internal.h"
#include "vocab_gguf.h"

#include <stdio.h>
#include <string.h>

/* general.file_type: llama.cpp's numbers for files whose matrices are mostly of one type. */
static const struct {
    int type;
    uint32_t file_type;
} file_types[] = {{WEIR_F32, 0},  {WEIR_F16, 1},  {WEIR_Q4_0, 2}, {WEIR_Q4_1, 3},
                  {WEIR_Q8_0, 7}, {WEIR_Q5_0, 8}, {WEIR_Q5_1, 9}, {WEIR_BF16, 32}};

static void put_file_type(weir__gguf_writer *w, int type) {
    for (size_t i = 0; i < sizeof file_types / sizeof *file_types; i++)
        if (file_types[i].type == type)
            weir__gguf_put_u32(w, "general.file_type", file_types[i].file_type);
    if (weir_type_any(type)->block > 1)
        weir__gguf_put_u32(w, "general.quantization_version", 2);
}

/* The type of most values. */
static int main_type(const weir__conversion *c) {
    uint64_t bytes[WEIR_TYPES] = {0};
    int best = WEIR_F32;
    for (size_t i = 0; i < c->n; i++)
        if (c->items[i].from && c->items[i].n_dims > 1 && c->items[i].type < WEIR_TYPES)
            bytes[c->items[i].type] += c->items[i].from->size;
    for (int t = 0; t < WEIR_TYPES; t++)
        best = bytes[t] > bytes[best] ? t : best;
    return best;
}

static void put_setting(void *data, const char *key, const weir__value *v) {
    weir__gguf_writer *w = data;
    if (v->kind == WEIR__INTEGER)
        weir__gguf_put_u32(w, key, (uint32_t)v->integer);
    else if (v->kind == WEIR__REAL)
        weir__gguf_put_f32(w, key, (float)v->real);
    else if (v->kind == WEIR__TEXT)
        weir__gguf_put_string(w, key, v->text.data);
}

/* Every key of another GGUF file but those that a conversion changes. */
static void copy_keys(const weir__conversion *c, weir__gguf_writer *w, bool typed) {
    static const char *const changed[] = {"general.file_type", "general.quantization_version", "split.no", "split.count",
                                          "split.tensors.count"};
    const weir__gguf *g = weir__gguf_source_keys(c->source);
    for (size_t i = 0; i < weir__gguf_key_count(g); i++) {
        const weir__gguf_key *key = weir__gguf_key_at(g, i);
        char name[WEIR_GGUF_MAX_NAME + 1];
        bool skip = false;
        snprintf(name, sizeof name, "%.*s", (int)key->name.size, key->name.data);
        for (size_t j = 0; j < sizeof changed / sizeof *changed; j++)
            skip |= strcmp(name, changed[j]) == 0 && (typed || j >= 2);
        if (!skip)
            weir__gguf_put_copy(w, name, key);
    }
}

/* "…/Qwen2.5-0.5B/" or a file in it is Qwen2.5-0.5B. */
static void put_name(const weir__conversion *c, const weir__vocab_said *said, weir__gguf_writer *w) {
    const char *path = weir__source_path(c->source);
    size_t end = strlen(path);
    while (end > 0 && path[end - 1] == '/')
        end--;
    size_t begin = end;
    while (begin > 0 && path[begin - 1] != '/')
        begin--;
    char name[128];
    snprintf(name, sizeof name, "%.*s", (int)(end - begin), path + begin);
    bool phi3 = weir__gguf_phi3((weir__string){name, strlen(name)});
    if (phi3 ? said->other : said->phi3)
        snprintf(name, sizeof name, "%s", phi3 ? c->family->name : "Phi-3");
    weir__gguf_put_string(w, "general.name", name);
}

typedef struct text_target {
    weir__conversion *c;
    weir__gguf_writer *w;
    weir__vocab_said said;
} text_target;

static int put_vocab(void *data, const weir__vocab *v, weir_error **error) {
    text_target *t = data;
    int code = weir__vocab_write_gguf(t->c->system, v, (size_t)t->c->config.vocab, t->w, &t->said, error);
    weir__convert_warn(t->c, t->said.warning);
    return code;
}

static int put_keys(weir__conversion *c, weir__gguf_writer *w, weir_error **error) {
    text_target text = {.c = c, .w = w};
    if (!c->family) {
        copy_keys(c, w, c->options->type >= 0);
        if (c->options->type >= 0)
            put_file_type(w, main_type(c));
        return WEIR_OK;
    }
    weir__gguf_put_string(w, "general.architecture", c->family->gguf ? c->family->gguf : c->family->name);
    int code = weir__convert_vocab(c, put_vocab, &text, error);
    if (!code)
        weir__templates_write_gguf(c->source, w);
    put_name(c, &text.said, w);
    put_file_type(w, main_type(c));
    weir__config_emit(c->family, &c->config, WEIR__FORMAT_GGUF, put_setting, w);
    return code;
}

static int put_bytes(void *sink, const void *bytes, size_t size, weir_error **error) {
    return weir__gguf_put_data(sink, bytes, size, error);
}

int weir__convert_to_gguf(weir__conversion *c, const char *out, weir_error **error) {
    weir__gguf_writer *w;
    int code = weir__convert_list(c, WEIR__FORMAT_GGUF, error);
    if (!code)
        code = weir__gguf_create(c->system, out, &w, error);
    if (code)
        return code;
    code = put_keys(c, w, error);
    for (size_t i = 0; i < c->n; i++)
        weir__gguf_put_tensor(w, c->items[i].name, c->items[i].type, c->items[i].n_dims, c->items[i].dims);
    for (size_t i = 0; i < c->n && !code; i++)
        code = weir__convert_data(c, &c->items[i], put_bytes, w, error);
    if (!code)
        return weir__gguf_finish(w, error);
    weir__gguf_abort(w);
    return code;
}
