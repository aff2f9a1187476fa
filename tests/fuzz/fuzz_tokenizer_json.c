/* fuzz_tokenizer_json.c: any bytes as a tokenizer.json, as SentencePiece's tokenizer.model or as GPT-2's vocab.json and merges.txt, by the first byte. What is taken becomes a
 * tokeniser that encodes a text, and decodes it, without harm. */
#include "../../core/model/tokenizer_json_internal.h"
#include "../../core/model/tokenizer_slow.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static weir_system *s;

static weir__text_file file_of(const char *name, const uint8_t *data, size_t size) {
    weir__text_file f = {.system = s, .path = weir__strdup(s, name), .data = weir__alloc(s, size + 1), .size = size};
    if (!f.path || !f.data)
        abort();
    memcpy(f.data, data, size);
    return f;
}

static void use(const weir__tokenizer *t) {
    static const char text[] = " Hello  w\xC3\xB6rld <s>ab</s>\n\n123 \xF0\x9F\xA6\x99\xFF";
    weir__part parts[] = {{text, sizeof text - 1, true}, {text, 12, false}};
    weir__ids ids = {0};
    weir__decoder d;
    weir__tokenizer_encode(t, parts, 2, true, &ids, NULL);
    weir__decoder_init(&d, s, t, NULL, 0);
    for (size_t i = 0; i < ids.size; i++)
        if (weir__decoder_feed(&d, ids.data[i], NULL) == WEIR_ETOKEN)
            __builtin_trap();
    weir__decoder_finish(&d, NULL);
    weir__decoder_fini(&d);
    weir__ids_free(s, &ids);
}

static int read_gpt2(weir__build *b, const uint8_t *data, size_t size, weir_error **error) {
    const uint8_t *cut = memchr(data, 0, size);
    size_t n = cut ? (size_t)(cut - data) : size;
    weir__text_file vocab = file_of("vocab.json", data, n), merges = file_of("merges.txt", data + n, size - n), none = {0};
    weir__tokenizer_settings settings = {.add_bos = -1, .add_eos = -1, .bos_id = -1};
    weir__tokenizer *t = NULL;
    int code = weir__gpt2_read(b, &vocab, &merges, &none, &settings, error);
    if (!code && weir__tokenizer_new(s, &b->v, &t, NULL) == WEIR_OK)
        use(t);
    weir__tokenizer_free(t);
    weir__text_file_fini(&vocab);
    weir__text_file_fini(&merges);
    return code;
}

static int read_one(weir__build *b, bool json, const uint8_t *data, size_t size, weir_error **error) {
    weir__text_file f = file_of(json ? "tokenizer.json" : "tokenizer.model", data, size), none = {0};
    const weir__tokenizer_file file = {b, f.data, f.size};
    weir__tokenizer_settings settings = {.add_bos = -1, .add_eos = -1, .bos_id = -1};
    weir__tokenizer *t = NULL;
    int code = json ? weir__tokenizer_json_read(&file, error) : weir__sentencepiece_read(b, &f, &none, &settings, error);
    if (!code && weir__tokenizer_new(s, &b->v, &t, NULL) == WEIR_OK)
        use(t);
    weir__tokenizer_free(t);
    weir__text_file_fini(&f);
    return code;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static weir__build b;
    weir_error *error = NULL;
    if (size < 1 || (!s && weir_system_new(NULL, &s, NULL)))
        return 0;
    weir__build_init(&b, s, "fuzz");
    int code = data[0] == 'g' ? read_gpt2(&b, data + 1, size - 1, &error) : read_one(&b, data[0] != 's', data + 1, size - 1, &error);
    if (!code != !error)
        __builtin_trap();
    weir_error_free(error);
    weir__build_fini(&b);
    return 0;
}
