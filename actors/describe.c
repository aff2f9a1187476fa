/* describe.c: what a loaded model says of itself (model.h): its members' addresses and what its file says. */
#include <string.h>

#include "model.h"

static void put_str(weir_writer *w, const char *key, const char *value, size_t size) {
    weir__write_key(w, key);
    weir_write_str(w, value, size);
}

static void put_int(weir_writer *w, const char *key, uint64_t value) {
    weir__write_key(w, key);
    weir_write_uint(w, value);
}

static void put_text(weir_writer *w, const char *key, const char *text) {
    if (text)
        put_str(w, key, text, strlen(text));
}

/* The named templates: a map of name to text. */
static void put_templates(weir_writer *w, const weir__source *src) {
    weir__string name, text;
    char key[128];
    weir__write_key(w, "templates");
    weir_write_map(w);
    for (uint32_t i = 0; weir__source_template_name(src, i, &name); i++) {
        if (name.size >= sizeof key)
            continue;
        memcpy(key, name.data, name.size);
        key[name.size] = 0;
        if (weir__source_template(src, key, &text))
            put_str(w, key, text.data, text.size);
    }
    weir_write_close(w);
}

static void put_source(weir_writer *w, const weir__source *src) {
    weir__value name;
    weir__string text;
    weir__source_get(src, "general.name", &name);
    if (name.kind == WEIR__TEXT)
        put_str(w, "name", name.text.data, name.text.size);
    if (weir__source_template(src, NULL, &text))
        put_str(w, "template", text.data, text.size);
    put_templates(w, src);
}

static void put_tokenizer(weir_writer *w, const weir__tokenizer *t) {
    weir__write_key(w, "tokenizer");
    weir_write_bool(w, t != NULL);
    if (!t)
        return;
    weir__write_key(w, "bos");
    weir_write_int(w, weir__tokenizer_bos(t));
    weir__write_key(w, "eos");
    weir_write_int(w, weir__tokenizer_eos(t));
}

weir_body *weir__model_describe(const weir__model *m) {
    const weir__config *c = weir__checkpoint_config(m->checkpoint);
    const weir__source *src = weir__checkpoint_source(m->checkpoint);
    weir_writer *w = weir_write_begin(m->system);
    weir_write_map(w);
    for (int i = 0; i < WEIR__MEMBERS; i++)
        put_int(w, weir__member_names[i], m->members[i].address);
    const struct {
        const char *key;
        uint64_t value;
    } numbers[] = {{"layers", (uint64_t)c->layers},
                   {"width", (uint64_t)c->width},
                   {"heads", (uint64_t)c->heads},
                   {"kv_heads", (uint64_t)c->kv_heads},
                   {"head_dim", (uint64_t)c->head_dim},
                   {"ffn", (uint64_t)c->ffn},
                   {"vocab", (uint64_t)c->vocab},
                   {"context", m->options.context},
                   {"tile", m->options.tile},
                   {"threads", weir__device_threads(m->device)},
                   {"bytes", weir__checkpoint_bytes(m->checkpoint)},
                   {"parameters", weir__checkpoint_parameters(m->checkpoint)}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        put_int(w, numbers[i].key, numbers[i].value);
    put_str(w, "path", m->path, strlen(m->path));
    put_str(w, "device", weir__device_detail(m->device), strlen(weir__device_detail(m->device)));
    put_text(w, "activations", m->options.activations_f32 || !weir__device_has_int8(m->device) ? "f32" : "int8");
    put_str(w, "kv", m->options.kv_f32 ? "f32" : "f16", 3);
    put_text(w, "architecture", weir__checkpoint_family(m->checkpoint)->name);
    put_text(w, "warning", weir__checkpoint_warning(m->checkpoint));
    put_source(w, src);
    put_tokenizer(w, weir__checkpoint_tokenizer(m->checkpoint, NULL));
    weir_write_close(w);
    return weir_write_end(w);
}
