/* fuzz_gguf.c: any bytes as a GGUF file: header, typed keys, vocabulary. Nothing may crash, hang or leak; memory is bounded by the input. */
#include "../../core/model/gguf.h"

#include <string.h>

static weir_system *s;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Asks for everything that a loader asks for. */
static void read_keys(const weir__gguf *g) {
    for (size_t i = 0; i < weir__gguf_key_count(g); i++) {
        char name[WEIR_GGUF_MAX_NAME + 1];
        const weir__gguf_key *key = weir__gguf_key_at(g, i);
        int64_t n;
        double d;
        bool b;
        weir__string text;
        memcpy(name, key->name.data, key->name.size);
        name[key->name.size] = 0;
        weir__gguf_get_int(g, name, true, 0, 1000, &n, NULL);
        weir__gguf_get_float(g, name, true, &d, NULL);
        weir__gguf_get_bool(g, name, true, &b, NULL);
        weir__gguf_get_string(g, name, true, &text, NULL);
        const uint8_t *at = key->data;
        for (uint64_t k = 0; key->type == WEIR__GGUF_ARRAY && key->element == WEIR__GGUF_STRING && k < key->count; k++) {
            text = weir__gguf_next_string(&at);
            if (text.size > 0 && (const uint8_t *)text.data + text.size > key->data + key->size)
                __builtin_trap();
        }
    }
}

static void use_tokenizer(const weir__gguf *g) {
    weir__tokenizer *t;
    weir__ids ids = {0};
    if (weir__gguf_tokenizer(g, &t, NULL) || !t)
        return;
    weir__tokenizer_encode(t, &(weir__part){"Hello, w\xC3\xB6rld 12\n\xFF", 19, true}, 1, true, &ids, NULL);
    weir__ids_free(s, &ids);
    weir__tokenizer_free(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    weir__gguf *g;
    weir_error *error = NULL;
    if (!s && weir_system_new(NULL, &s, NULL))
        return 0;
    if (weir__gguf_parse(s, "fuzz.gguf", data, size, size, &g, &error)) {
        weir_error_free(error);
        return 0;
    }
    for (size_t i = 0; i < weir__gguf_tensor_count(g); i++) {
        const weir__tensor *t = weir__gguf_tensor_at(g, i);
        if (t->size > size || t->offset > size - t->size)
            __builtin_trap();
    }
    read_keys(g);
    use_tokenizer(g);
    weir__gguf_free(g);
    return 0;
}
