/* test_tokenizer_folder.c: what the files beside a tokeniser say; folders without a tokenizer.json: GPT-2's files, SentencePiece's. */
#include "helper_folder.h"
#include "helper_tokenizer.h"

static weir_system *s;

static int setup(void **state) {
    return weir_system_new(NULL, &s, NULL) || folder_make(state);
}

static int teardown(void **state) {
    weir_system_free(s);
    return folder_remove(state);
}

static weir__tokenizer *open_path(const char *path) {
    weir__tokenizer *t = NULL;
    weir_error *error = NULL;
    if (weir__tokenizer_json_open(s, path, &t, &error))
        fail_msg("%s", weir_error_text(error));
    return t;
}

static void assert_tokens(const weir__tokenizer *t, bool bounds, const char *text, const int32_t *wanted, size_t n) {
    weir__ids ids = {0};
    assert_int_equal(weir__tokenizer_encode(t, &(weir__part){text, strlen(text), true}, 1, bounds, &ids, NULL), WEIR_OK);
    assert_int_equal(ids.size, n);
    if (n > 0)
        assert_memory_equal(ids.data, wanted, n * sizeof *wanted);
    weir__ids_free(s, &ids);
}
#define assert_encoded(t, bounds, text, ...)                                                                                               \
    assert_tokens(t, bounds, text, (const int32_t[]){__VA_ARGS__}, sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t))

static void assert_refused(const char *path, int code, const char *part) {
    weir__tokenizer *t = NULL;
    weir_error *error = NULL;
    assert_int_equal(weir__tokenizer_json_open(s, path, &t, &error), code);
    if (!strstr(weir_error_text(error), part))
        fail_msg("\"%s\" without \"%s\"", weir_error_text(error), part);
    assert_null(t);
    weir_error_free(error);
}

#define MODEL                                                                                                                              \
    "{\"model\": {\"vocab\": {\"<s>\": 0, \"</s>\": 1, \"a\": 2, \"<end>\": 3}, \"merges\": []}, \"added_tokens\": ["                      \
    "{\"id\": 0, \"content\": \"<s>\", \"special\": true}, {\"id\": 1, \"content\": \"</s>\", \"special\": true}, "                        \
    "{\"id\": 3, \"content\": \"<end>\", \"special\": true}]"
#define TEMPLATE                                                                                                                           \
    ", \"post_processor\": {\"type\": \"TemplateProcessing\", \"single\": [{\"SpecialToken\": {\"id\": \"<s>\", \"type_id\": 0}}, "        \
    "{\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}], \"pair\": [], \"special_tokens\": {\"<s>\": {\"id\": \"<s>\", \"ids\": [0], "       \
    "\"tokens\": [\"<s>\"]}}}"

static void a_folder_without_a_tokenizer_has_none(void **state) {
    (void)state;
    folder_text("vocab.json", "{}");
    assert_null(open_path(folder));
}

static void special_tokens_are_named_by_text_or_object(void **state) {
    (void)state;
    folder_text("tokenizer.json", MODEL "}");
    folder_text("tokenizer_config.json", "{\"bos_token\": {\"__type\": \"AddedToken\", \"content\": \"<s>\"}, \"eos_token\": \"</s>\"}");
    weir__tokenizer *t = open_path(folder);
    assert_int_equal(weir__tokenizer_bos(t), 0);
    assert_int_equal(weir__tokenizer_eos(t), 1);
    assert_false(weir__tokenizer_add_bos(t));
    weir__tokenizer_free(t);
}

static void special_tokens_map_serves_where_the_config_says_nothing(void **state) {
    (void)state;
    folder_text("tokenizer.json", MODEL "}");
    folder_text("tokenizer_config.json", "{\"eos_token\": null}");
    folder_text("special_tokens_map.json", "{\"eos_token\": {\"content\": \"<end>\"}, \"bos_token\": \"<s>\"}");
    weir__tokenizer *t = open_path(folder);
    assert_int_equal(weir__tokenizer_bos(t), 0);
    assert_int_equal(weir__tokenizer_eos(t), 3);
    weir__tokenizer_free(t);
}

static void the_generation_config_adds_ends(void **state) {
    (void)state;
    folder_text("tokenizer.json", MODEL "}");
    folder_text("tokenizer_config.json", "{\"eos_token\": \"</s>\"}");
    folder_text("generation_config.json", "{\"bos_token_id\": 0, \"eos_token_id\": [3, 1, 999999]}");
    weir__tokenizer *t = open_path(folder);
    assert_int_equal(weir__tokenizer_bos(t), 0);
    assert_int_equal(weir__tokenizer_eos(t), 1);
    assert_true(weir__tokenizer_is_end(t, 1));
    assert_true(weir__tokenizer_is_end(t, 3));
    assert_false(weir__tokenizer_is_end(t, 2));
    weir__tokenizer_free(t);
}

static void the_models_config_serves_where_nothing_else_names_an_end(void **state) {
    (void)state;
    folder_text("tokenizer.json", MODEL "}");
    folder_text("config.json", "{\"eos_token_id\": 3, \"bos_token_id\": null}");
    weir__tokenizer *t = open_path(folder);
    assert_int_equal(weir__tokenizer_eos(t), 3);
    assert_int_equal(weir__tokenizer_bos(t), -1);
    weir__tokenizer_free(t);
}

static void add_bos_and_eos_win_over_the_template(void **state) {
    (void)state;
    folder_text("tokenizer.json", MODEL TEMPLATE "}");
    weir__tokenizer *t = open_path(folder);
    assert_encoded(t, true, "a", 0, 2);
    weir__tokenizer_free(t);
    folder_text("tokenizer_config.json",
                "{\"bos_token\": \"<s>\", \"eos_token\": \"</s>\", \"add_bos_token\": false, \"add_eos_token\": true}");
    t = open_path(folder);
    assert_encoded(t, true, "a", 2, 1);
    weir__tokenizer_free(t);
    folder_text("tokenizer_config.json", "{\"bos_token\": \"<s>\", \"add_bos_token\": true}");
    t = open_path(folder);
    assert_encoded(t, true, "a", 0, 2);
    weir__tokenizer_free(t);
}

/* What stands behind a special token gets a space before it if the file's normaliser puts one there, and none if only the beginning of a text gets one. */
static void tokenizer_C3(void **state) {
    (void)state;
    static const char *const steps[] = {
        "\"normalizer\": {\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"Prepend\", \"prepend\": \"\xE2\x96\x81\"}, "
        "{\"type\": \"Replace\", \"pattern\": {\"String\": \" \"}, \"content\": \"\xE2\x96\x81\"}]}",
        "\"pre_tokenizer\": {\"type\": \"Metaspace\", \"replacement\": \"\xE2\x96\x81\", \"prepend_scheme\": \"first\", \"split\": false}"};
    char text[1024];
    for (int i = 0; i < 2; i++) {
        snprintf(text, sizeof text,
                 "{%s, \"added_tokens\": [{\"id\": 0, \"content\": \"<s>\", \"special\": true}], \"model\": {\"vocab\": {\"<s>\": 0, "
                 "\"\xE2\x96\x81\": 1, \"G\": 2, \"\xE2\x96\x81G\": 3}, \"merges\": [\"\xE2\x96\x81 G\"]}}",
                 steps[i]);
        folder_text("tokenizer.json", text);
        weir__tokenizer *t = open_path(folder);
        assert_encoded(t, false, "G", 3);
        assert_encoded(t, false, "<s>G", 0, i == 0 ? 3 : 2);
        weir__tokenizer_free(t);
    }
}

static void a_file_is_opened_with_or_without_its_folder(void **state) {
    (void)state;
    folder_text("tokenizer.json", MODEL "}");
    folder_text("other.json", MODEL "}");
    folder_text("tokenizer_config.json", "{\"eos_token\": \"</s>\"}");
    weir__tokenizer *t = open_path(folder_path("tokenizer.json"));
    assert_int_equal(weir__tokenizer_eos(t), 1);
    weir__tokenizer_free(t);
    t = open_path(folder_path("other.json"));
    assert_int_equal(weir__tokenizer_eos(t), -1);
    weir__tokenizer_free(t);
}

static void files_that_are_no_tokenizer_are_named(void **state) {
    (void)state;
    folder_text("x.txt", "");
    assert_refused(folder_path("x.txt"), WEIR_EUNSUPPORTED, "x.txt");
    assert_refused(folder_path("tokenizer.json"), WEIR_ENOENT, "tokenizer.json");
    folder_text("tokenizer.json", MODEL "}");
    folder_text("tokenizer_config.json", "{\"eos_token\": 5}");
    assert_refused(folder, WEIR_EFORMAT, "tokenizer_config.json: line 1, column 15: \"eos_token\": found a number, wanted a string");
}

/* ---- GPT-2's own files ---- */

#define GPT2_VOCAB "{\"a\": 0, \"b\": 1, \"ab\": 2, \"\\u0120\": 3, \"\\u0120ab\": 4, \"<|endoftext|>\": 5, \"c\": 6}"

static void put_gpt2(void) {
    folder_text("vocab.json", GPT2_VOCAB);
    folder_text("merges.txt", "#version: 0.2\na b\n\xC4\xA0 ab\r\n\n");
}

static void gpt2s_files_make_a_tokenizer(void **state) {
    (void)state;
    put_gpt2();
    folder_text("tokenizer_config.json", "{\"tokenizer_class\": \"GPT2Tokenizer\", \"eos_token\": \"<|endoftext|>\"}");
    folder_text("added_tokens.json", "{\"<x>\": 8}");
    weir__tokenizer *t = open_path(folder);
    assert_int_equal(weir__tokenizer_eos(t), 5);
    assert_int_equal(weir__tokenizer_size(t), 9);
    assert_encoded(t, true, "ab ab<|endoftext|>c<x>", 2, 4, 5, 6, 8);
    weir__tokenizer_free(t);
}

static void added_tokens_are_taken_from_the_config(void **state) {
    (void)state;
    put_gpt2();
    folder_text("tokenizer_config.json", "{\"tokenizer_class\": \"Qwen2Tokenizer\", \"added_tokens_decoder\": {\"7\": {\"content\": "
                                         "\"<t>\", \"lstrip\": true, \"normalized\": false, \"rstrip\": false, \"single_word\": false, "
                                         "\"special\": true}}}");
    weir__tokenizer *t = open_path(folder);
    assert_encoded(t, false, "ab  <t>c", 2, 7, 6);
    weir__tokenizer_free(t);
}

static void a_class_that_is_not_known_is_refused(void **state) {
    (void)state;
    put_gpt2();
    folder_text("tokenizer_config.json", "{\"tokenizer_class\": \"CTRLTokenizer\"}");
    assert_refused(folder, WEIR_EUNSUPPORTED, "tokenizer_class \"CTRLTokenizer\"");
}

static void a_broken_merge_is_named_with_its_line(void **state) {
    (void)state;
    put_gpt2();
    folder_text("merges.txt", "#version: 0.2\na b\nabc\n");
    assert_refused(folder, WEIR_EFORMAT, "merges.txt: line 3: found \"abc\"");
}

/* ---- SentencePiece's file ---- */

static char bytes[16384];
static size_t used;

static void put_bytes(const void *data, size_t n) {
    assert_true(used + n <= sizeof bytes);
    memcpy(bytes + used, data, n);
    used += n;
}

static void put_piece(const char *piece, float score, char kind) {
    size_t n = strlen(piece);
    char head[] = {0x0A, (char)(n + 2 + 5 + (kind ? 2 : 0)), 0x0A, (char)n};
    put_bytes(head, 4);
    put_bytes(piece, n);
    put_bytes("\x15", 1);
    put_bytes(&score, 4);
    if (kind)
        put_bytes((char[]){0x18, kind}, 2);
}

#define MARK "\xE2\x96\x81"

static void put_spm(char type) {
    used = 0;
    put_piece("<unk>", 0, WEIR__UNKNOWN);
    put_piece("<s>", 0, WEIR__CONTROL);
    put_piece("</s>", 0, WEIR__CONTROL);
    for (int c = 0; c < 256; c++) {
        char text[8];
        snprintf(text, sizeof text, "<0x%02X>", (unsigned)c);
        put_piece(text, 0, WEIR__BYTE);
    }
    put_piece(MARK "ab", -1, 0);
    put_piece("ab", -2, 0);
    put_piece(MARK, -3, 0);
    put_piece("a", -4, 0);
    put_piece("b", -5, 0);
    put_piece("[x]", 0, WEIR__USER);
    put_bytes((char[]){0x12, 5, 0x18, type, (char)0x98, 0x02, 1}, 7); /* trainer: model_type, byte_fallback */
    put_bytes((char[]){0x1A, 4, 0x18, 1, 0x20, 0}, 6);                /* normaliser: a space before the text, spaces stay */
}

enum { AB = 259, PLAIN_AB, SPACE, A, B, USER };

static void sentencepieces_bpe_makes_a_tokenizer(void **state) {
    (void)state;
    put_spm(2);
    folder_put("tokenizer.model", bytes, used);
    folder_text("tokenizer_config.json", "{\"tokenizer_class\": \"LlamaTokenizer\", \"bos_token\": \"<s>\"}");
    weir__tokenizer *t = open_path(folder);
    assert_int_equal(weir__tokenizer_size(t), 265);
    assert_int_equal(weir__tokenizer_eos(t), 2);
    assert_encoded(t, true, "abab", 1, AB, PLAIN_AB);
    assert_encoded(t, false, "ab  ab\n", AB, SPACE, AB, 3 + '\n');
    weir__tokenizer_free(t);
}

static void sentencepieces_unigram_ends_its_texts(void **state) {
    (void)state;
    put_spm(1);
    folder_put("tokenizer.model", bytes, used);
    weir__tokenizer *t = open_path(folder_path("tokenizer.model"));
    assert_encoded(t, true, "ab", AB, 2);
    weir__tokenizer_free(t);
}

static void sentencepieces_that_are_not_run_are_refused_by_name(void **state) {
    (void)state;
    put_spm(4);
    folder_put("tokenizer.model", bytes, used);
    assert_refused(folder, WEIR_EUNSUPPORTED, "model_type");
    put_spm(2);
    put_bytes((char[]){0x1A, 2, 0x28, 0}, 4);
    folder_put("tokenizer.model", bytes, used);
    assert_refused(folder, WEIR_EUNSUPPORTED, "escape_whitespaces");
    put_spm(2);
    folder_put("tokenizer.model", bytes, used);
    folder_text("tokenizer_config.json", "{\"tokenizer_class\": \"XLNetTokenizer\"}");
    assert_refused(folder, WEIR_EUNSUPPORTED, "XLNetTokenizer");
}

static void a_sentencepiece_file_that_is_cut_short_is_refused(void **state) {
    (void)state;
    put_spm(2);
    for (size_t n = 1; n < used; n += n < used - 40 ? 13 : 1) {
        weir__tokenizer *t = NULL;
        folder_put("tokenizer.model", bytes, n);
        int code = weir__tokenizer_json_open(s, folder, &t, NULL);
        assert_true(code == WEIR_EFORMAT || code == WEIR_EUNSUPPORTED || t != NULL);
        weir__tokenizer_free(t);
    }
    folder_put("tokenizer.model", "\x0A\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01", 11);
    assert_refused(folder, WEIR_EFORMAT, "tokenizer.model");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_folder_without_a_tokenizer_has_none),
        TEST(special_tokens_are_named_by_text_or_object),
        TEST(special_tokens_map_serves_where_the_config_says_nothing),
        TEST(the_generation_config_adds_ends),
        TEST(the_models_config_serves_where_nothing_else_names_an_end),
        TEST(add_bos_and_eos_win_over_the_template),
        TEST(tokenizer_C3),
        TEST(a_file_is_opened_with_or_without_its_folder),
        TEST(files_that_are_no_tokenizer_are_named),
        TEST(gpt2s_files_make_a_tokenizer),
        TEST(added_tokens_are_taken_from_the_config),
        TEST(a_class_that_is_not_known_is_refused),
        TEST(a_broken_merge_is_named_with_its_line),
        TEST(sentencepieces_bpe_makes_a_tokenizer),
        TEST(sentencepieces_unigram_ends_its_texts),
        TEST(sentencepieces_that_are_not_run_are_refused_by_name),
        TEST(a_sentencepiece_file_that_is_cut_short_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
