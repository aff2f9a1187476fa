/* test_gguf_tokenizer.c: tokenisers made from published vocabularies give the published ids. Texts and ids come from the reference folder, from tests/data, and
 * from the fetched model's file. */
#include "helper_gguf.h"

static weir_system *s;

static int setup(void **state) {
    (void)state;
    return weir_system_new(NULL, &s, NULL);
}

static int teardown(void **state) {
    (void)state;
    weir_system_free(s);
    return 0;
}

static weir__tokenizer *load(const char *path) {
    weir__gguf *g;
    weir__tokenizer *t = NULL;
    weir_error *error = NULL;
    if (weir__gguf_open(s, path, &g, &error) || weir__gguf_tokenizer(g, &t, &error))
        fail_msg("%s", weir_error_text(error));
    weir__gguf_free(g);
    assert_non_null(t);
    return t;
}

/* A file, with an ending zero; free(). */
static char *slurp(const char *path, size_t *size) {
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    *size = (size_t)ftell(f);
    rewind(f);
    char *text = malloc(*size + 1);
    assert_int_equal(fread(text, 1, *size, f), *size);
    text[*size] = 0;
    fclose(f);
    return text;
}

static weir__ids encode(const weir__tokenizer *t, const char *text, size_t size, bool special, bool bounds) {
    weir__ids ids = {0};
    assert_int_equal(weir__tokenizer_encode(t, &(weir__part){text, size, special}, 1, bounds, &ids, NULL), WEIR_OK);
    return ids;
}

static void assert_equal_ids(weir__ids *ids, const int32_t *want, size_t n, const char *what) {
    bool same = ids->size == n;
    for (size_t i = 0; same && i < n; i++)
        same = ids->data[i] == want[i];
    if (!same)
        fail_msg("ids of \"%.60s\" differ", what);
    weir__ids_free(s, ids);
}

/* The decoder gives back the text that was encoded. */
static void assert_round_trip(const weir__tokenizer *t, const char *text, size_t size) {
    weir__ids ids = encode(t, text, size, false, false);
    weir__decoder d;
    weir__decoder_init(&d, s, t, NULL, 0);
    for (size_t i = 0; i < ids.size; i++)
        assert_int_equal(weir__decoder_feed(&d, ids.data[i], NULL), WEIR_OK);
    assert_int_equal(weir__decoder_finish(&d, NULL), WEIR_OK);
    assert_int_equal(d.safe, size);
    assert_memory_equal(d.held, text, size);
    weir__decoder_fini(&d);
    weir__ids_free(s, &ids);
}

/* All texts of NAME.gguf.inp against the lines of NAME.gguf.out; `lossless`: what was encoded is decoded to the same text. A failure names the file and the text. */
static void check_vectors(const char *name, bool lossless) {
    static const char line[] = "\n__ggml_vocab_test__\n";
    char file[96];
    size_t n_in, n_out, rows = 0;
    snprintf(file, sizeof file, "vectors/%s.gguf", name);
    weir_test_need(weir_test_reference(file), "the folder of reference vocabularies");
    weir__tokenizer *t = load(weir_test_reference(file));
    strcat(file, ".inp");
    char *in = slurp(weir_test_reference(file), &n_in);
    strcpy(file + strlen(file) - 4, ".out");
    char *out = slurp(weir_test_reference(file), &n_out), *ids_at = out;
    for (char *text = in, *next; (next = strstr(text, line)) != NULL; text = next + sizeof line - 1, rows++) {
        int32_t want[512];
        size_t n = 0;
        char what[160];
        for (; *ids_at != '\n' && *ids_at; n++)
            want[n] = (int32_t)strtol(ids_at, &ids_at, 10);
        ids_at++;
        snprintf(what, sizeof what, "%s, text %zu: %.60s", name, rows, text);
        weir__ids ids = encode(t, text, (size_t)(next - text), false, false);
        assert_equal_ids(&ids, want, n, what);
        if (lossless)
            assert_round_trip(t, text, (size_t)(next - text));
    }
    assert_true(rows > 40);
    free(in);
    free(out);
    weir__tokenizer_free(t);
}

#define VECTORS(test, name, lossless)                                                                                                      \
    static void test(void **state) {                                                                                                       \
        (void)state;                                                                                                                       \
        check_vectors(name, lossless);                                                                                                     \
    }
VECTORS(vectors_of_llama_spm, "ggml-vocab-llama-spm", true)
VECTORS(vectors_of_gpt_2, "ggml-vocab-gpt-2", true)
VECTORS(vectors_of_starcoder, "ggml-vocab-starcoder", true)
VECTORS(vectors_of_llama_bpe, "ggml-vocab-llama-bpe", true)
VECTORS(vectors_of_qwen2, "ggml-vocab-qwen2", true)
VECTORS(vectors_of_deepseek_llm, "ggml-vocab-deepseek-llm", true)
VECTORS(vectors_of_bert_bge, "ggml-vocab-bert-bge", false) /* WordPiece keeps neither case nor spaces */

static void tokenizer_C1_a_space_before_the_text_and_bytes_for_what_is_no_piece(void **state) {
    (void)state;
    static const int32_t want[] = {1, 910, 338, 29871, 243, 162, 169, 156, 29889, 8223};
    const char *path = weir_test_reference("vectors/ggml-vocab-llama-spm.gguf");
    weir_test_need(path, "the folder of reference vocabularies");
    weir__tokenizer *t = load(path);
    weir__ids ids = encode(t, "This is \xF0\x9F\xA6\x99.cpp", 16, false, true);
    assert_equal_ids(&ids, want, sizeof want / sizeof want[0], "This is ...");
    weir__tokenizer_free(t);
}

static void tokenizer_C3_a_space_after_a_special_piece(void **state) {
    (void)state;
    const char *path = weir_test_reference("vectors/ggml-vocab-llama-spm.gguf");
    weir_test_need(path, "the folder of reference vocabularies");
    weir__tokenizer *t = load(path);
    int32_t with_mark = weir__tokenizer_find(t, "\xE2\x96\x81G", 4);
    weir__ids ids = encode(t, "<s>G", 4, true, false);
    assert_equal_ids(&ids, (int32_t[]){1, with_mark}, 2, "<s>G");
    ids = encode(t, "<s>G", 4, false, false); /* as text it stays text */
    for (size_t i = 0; i < ids.size; i++)
        assert_int_not_equal(ids.data[i], 1);
    weir__ids_free(s, &ids);
    weir__tokenizer_free(t);
}

/* Reads the JSON string that begins at `p` (at its quote) into `to`; returns what is behind it. Escapes: those that the file has. */
static const char *json_string(const char *p, char *to, size_t *size) {
    *size = 0;
    for (p++; *p != '"'; p++) {
        unsigned point;
        if (*p != '\\') {
            to[(*size)++] = *p;
            continue;
        }
        switch (*++p) {
        case 'n':
            to[(*size)++] = '\n';
            break;
        case 't':
            to[(*size)++] = '\t';
            break;
        case 'u':
            assert_int_equal(sscanf(p + 1, "%4x", &point), 1);
            assert_true(point < 0x80);
            to[(*size)++] = (char)point;
            p += 4;
            break;
        default:
            to[(*size)++] = *p;
        }
    }
    return p + 1;
}

/* The I64 or I32 tensor `name` of a safetensors file; free(). */
static int32_t *tensor_ids(const char *file, const char *name, size_t *n) {
    uint64_t header;
    size_t from, to;
    char key[80], type[8];
    memcpy(&header, file, 8);
    snprintf(key, sizeof key, "\"%s\":", name);
    const char *at = strstr(file + 8, key);
    assert_true(at && at < file + 8 + header);
    assert_int_equal(sscanf(strstr(at, "\"dtype\":") + 8, " \"%3s", type), 1);
    assert_int_equal(sscanf(strstr(at, "\"data_offsets\":") + 15, " [%zu, %zu]", &from, &to), 2);
    size_t width = strcmp(type, "I64") == 0 ? 8 : 4;
    *n = (to - from) / width;
    int32_t *ids = malloc(*n * sizeof *ids);
    for (size_t i = 0; i < *n; i++)
        memcpy(&ids[i], file + 8 + header + from + i * width, 4);
    return ids;
}

/* A file of smollm2/, from the reference folder or, trimmed, from tests/data. */
static char *smollm2_file(const char *name, size_t *size) {
    char path[512];
    snprintf(path, sizeof path, "models/smollm2/%s", name);
    const char *whole = weir_test_reference(path);
    snprintf(path, sizeof path, "%s/smollm2/%s", WEIR_TEST_DATA, name);
    return slurp(whole ? whole : path, size);
}

static void tokenizer_C5_ids_of_published_texts(void **state) {
    (void)state;
    static const char *const prompts[] = {"capital", "story",    "code",        "numbers",   "unicode",
                                          "long",    "chat-sky", "chat-system", "chat-turns"};
    weir_test_need(weir_test_smollm2(), "the fetched SmolLM2 file");
    weir__tokenizer *t = load(weir_test_smollm2());
    size_t n_json, n_reference;
    char *json = smollm2_file("prompts.json", &n_json), *reference = smollm2_file("reference.safetensors", &n_reference),
         *text = malloc(n_json);
    for (size_t i = 0; i < sizeof prompts / sizeof prompts[0]; i++) {
        char key[64];
        size_t size, n, n_tokens;
        bool chat = strncmp(prompts[i], "chat", 4) == 0;
        snprintf(key, sizeof key, "\"%s\": {", prompts[i]);
        const char *at = strstr(json, key);
        const char *rest = json_string(strstr(strstr(at, chat ? "\"rendered\":" : "\"text\":"), ":") + 2, text, &size);
        assert_int_equal(sscanf(strstr(rest, "\"n_tokens\":") + 11, " %zu", &n_tokens), 1);
        snprintf(key, sizeof key, "%s.ids", prompts[i]);
        int32_t *want = tensor_ids(reference, key, &n);
        weir__ids ids = encode(t, text, size, chat, false);
        assert_int_equal(ids.size, n_tokens);
        assert_true(n > 0 && n <= ids.size);
        ids.size = n; /* the trimmed reference has only the first ids of the longest text */
        assert_equal_ids(&ids, want, n, text);
        if (!chat)
            assert_round_trip(t, text, size);
        free(want);
    }
    free(json);
    free(reference);
    free(text);
    weir__tokenizer_free(t);
}

static void a_vocabulary_of_tests_data_round_trips(void **state) {
    (void)state;
    static const char *const texts[] = {
        "", "The forest 1234", " a  b\n\n\tc ", "Za\xC5\xBC\xC3\xB3\xC5\x82\xC4\x87 \xE6\x9D\xB1 \xF0\x9F\x99\x82", "<s>", "\x01\x7F"};
    weir__tokenizer *t = load(WEIR_TEST_DATA "/families/llama/model.gguf");
    assert_int_equal(weir__tokenizer_size(t), 512);
    assert_int_equal(weir__tokenizer_eos(t), 2);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        assert_round_trip(t, texts[i], strlen(texts[i]));
    weir__tokenizer_free(t);
}

/* A vocabulary of the pieces "a", "b", "ab" and one merge. */
static void put_bpe(bytes *b, const char *model, const char *pre) {
    static const char *const pieces[] = {"a", "b", "ab"};
    put_start(b, 0, 4);
    put_key(b, "tokenizer.ggml.model", WEIR__GGUF_STRING);
    put_string(b, model);
    put_key(b, "tokenizer.ggml.pre", WEIR__GGUF_STRING);
    put_string(b, pre);
    put_array(b, "tokenizer.ggml.tokens", WEIR__GGUF_STRING, 3);
    for (size_t i = 0; i < 3; i++)
        put_string(b, pieces[i]);
    put_array(b, "tokenizer.ggml.merges", WEIR__GGUF_STRING, 1);
    put_string(b, "a b");
}

static void assert_refused(const char *model, const char *pre, const char *name, const char *known) {
    bytes b;
    weir__tokenizer *t;
    put_bpe(&b, model, pre);
    parsed p = parse(&b);
    assert_int_equal(weir__gguf_tokenizer(p.file, &t, &p.error), WEIR_EUNSUPPORTED);
    assert_non_null(strstr(weir_error_text(p.error), name));
    assert_non_null(strstr(weir_error_text(p.error), known));
    end(&p);
}

static void what_is_not_known_is_refused_by_its_name(void **state) {
    (void)state;
    assert_refused("rwkv", "gpt-2", "\"rwkv\"", "\"bert\"");
    assert_refused("gpt2", "klingon", "\"klingon\"", "\"smollm\"");
    assert_refused("gpt2", "", "\"\"", "\"qwen2\"");
}

static void every_pretokeniser_of_the_table_runs(void **state) {
    (void)state;
    static const char *const names[] = {"default",   "gpt-2",     "smollm", "starcoder",    "llama-bpe",      "llama3",
                                        "qwen2",     "stablelm2", "gpt-4o", "deepseek-llm", "deepseek-coder", "deepseek-v3",
                                        "tekken",    "falcon",    "bloom",  "viking",       "seed-coder",     "bailingmoe",
                                        "command-r", "refact",    "mpt",    "olmo",         "dbrx",           "smaug-bpe"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        bytes b;
        weir__tokenizer *t = NULL;
        put_bpe(&b, "gpt2", names[i]);
        parsed p = parse(&b);
        if (weir__gguf_tokenizer(p.file, &t, &p.error))
            fail_msg("%s", weir_error_text(p.error));
        weir__ids ids = {0};
        assert_int_equal(weir__tokenizer_encode(t, &(weir__part){"ab1ab ab", 8, false}, 1, false, &ids, NULL), WEIR_OK);
        assert_true(ids.size >= 3);
        weir__ids_free(p.system, &ids);
        weir__tokenizer_free(t);
        end(&p);
    }
}

static void a_file_without_a_vocabulary_has_no_tokeniser(void **state) {
    (void)state;
    bytes b;
    weir__tokenizer *t;
    put_start(&b, 0, 0);
    parsed p = parse(&b);
    assert_int_equal(p.code, WEIR_OK);
    assert_int_equal(weir__gguf_tokenizer(p.file, &t, NULL), WEIR_OK);
    assert_null(t);
    end(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokenizer_C1_a_space_before_the_text_and_bytes_for_what_is_no_piece),
        cmocka_unit_test(tokenizer_C3_a_space_after_a_special_piece),
        cmocka_unit_test(tokenizer_C5_ids_of_published_texts),
        cmocka_unit_test(vectors_of_llama_spm),
        cmocka_unit_test(vectors_of_gpt_2),
        cmocka_unit_test(vectors_of_starcoder),
        cmocka_unit_test(vectors_of_llama_bpe),
        cmocka_unit_test(vectors_of_qwen2),
        cmocka_unit_test(vectors_of_deepseek_llm),
        cmocka_unit_test(vectors_of_bert_bge),
        cmocka_unit_test(a_vocabulary_of_tests_data_round_trips),
        cmocka_unit_test(what_is_not_known_is_refused_by_its_name),
        cmocka_unit_test(every_pretokeniser_of_the_table_runs),
        cmocka_unit_test(a_file_without_a_vocabulary_has_no_tokeniser),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
