/* test_tokenizer_json.c: tokenizer.json: ids and texts that the tokenizers library gives, older spellings. What is refused: test_tokenizer_json_refused.c. */
#include "helper_folder.h"
#include "helper_tokenizer.h"

#include "../../../core/model/gguf.h"

static weir_system *s;

static int setup(void **state) {
    return weir_system_new(NULL, &s, NULL) || folder_make(state);
}

static int teardown(void **state) {
    weir_system_free(s);
    return folder_remove(state);
}

/* ---- what others computed ---- */

static void same_as_the_library(const char *name) {
    char path[512], cases[512];
    weir__tokenizer *t = NULL;
    size_t count;
    snprintf(path, sizeof path, WEIR_TEST_DATA "/tokenizers/%s.json", name);
    snprintf(cases, sizeof cases, WEIR_TEST_DATA "/tokenizers/%s.cases.json", name);
    assert_int_equal(weir__tokenizer_json_open(s, path, &t, NULL), WEIR_OK);
    assert_non_null(t);
    assert_int_equal(check_cases(s, t, cases, &count), 0);
    assert_true(count > 100);
    weir__tokenizer_free(t);
}

#define LIBRARY(name)                                                                                                                      \
    static void the_librarys_ids_of_##name(void **state) {                                                                                 \
        (void)state;                                                                                                                       \
        same_as_the_library(#name);                                                                                                        \
    }
LIBRARY(llama3)
LIBRARY(qwen2)
LIBRARY(deepseek3)
LIBRARY(falcon)
LIBRARY(roberta)
LIBRARY(llama2)
LIBRARY(gemma)
LIBRARY(mistral)
LIBRARY(bert)
LIBRARY(t5)
LIBRARY(wordy)
LIBRARY(chars)
LIBRARY(suffixed)
LIBRARY(words)
LIBRARY(bytes)
LIBRARY(lengths)
LIBRARY(ctc)
LIBRARY(joined)

static void the_reference_unigram(void **state) {
    (void)state;
    char path[4096];
    size_t count;
    weir__tokenizer *t = NULL;
    weir_test_need(weir_test_reference("vectors/unigram.tokenizer.json"), "vectors/unigram.tokenizer.json");
    snprintf(path, sizeof path, "%s", weir_test_reference("vectors/unigram.tokenizer.json"));
    assert_int_equal(weir__tokenizer_json_open(s, path, &t, NULL), WEIR_OK);
    assert_int_equal(check_cases(s, t, weir_test_reference("vectors/unigram.json"), &count), 0);
    assert_true(count > 10);
    weir__tokenizer_free(t);
}

static void encode(const weir__tokenizer *t, const char *text, weir__ids *ids) {
    ids->size = 0;
    assert_int_equal(weir__tokenizer_encode(t, &(weir__part){text, strlen(text), true}, 1, false, ids, NULL), WEIR_OK);
}

/* The families' GGUFs carry the tokeniser that stands beside them as JSON. */
static void the_same_as_in_gguf(void **state) {
    (void)state;
    static const char *const texts[] = {"Hello world 1234", "  x\n\n\ty ", "<s>a</s>", "caf\xC3\xA9 \xF0\x9F\xA6\x99", ""};
    weir__tokenizer *t = NULL, *other = NULL;
    weir__gguf *g = NULL;
    weir__ids ids = {0}, others = {0};
    weir_test_need(weir_test_reference("models/families/tokenizer.json"), "models/families/tokenizer.json");
    assert_int_equal(weir__tokenizer_json_open(s, weir_test_reference("models/families/tokenizer.json"), &t, NULL), WEIR_OK);
    assert_int_equal(weir__gguf_open(s, WEIR_TEST_DATA "/families/llama/model.gguf", &g, NULL), WEIR_OK);
    assert_int_equal(weir__gguf_tokenizer(g, &other, NULL), WEIR_OK);
    assert_int_equal(weir__tokenizer_size(t), weir__tokenizer_size(other));
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        encode(t, texts[i], &ids);
        encode(other, texts[i], &others);
        assert_int_equal(ids.size, others.size);
        if (ids.size > 0)
            assert_memory_equal(ids.data, others.data, ids.size * sizeof *ids.data);
    }
    weir__ids_free(s, &ids);
    weir__ids_free(s, &others);
    weir__tokenizer_free(t);
    weir__tokenizer_free(other);
    weir__gguf_free(g);
}

static void the_decision_models_tokenizer(void **state) {
    (void)state;
    weir__tokenizer *t = NULL;
    weir_test_need(weir_test_reference("models/decision/tokenizer"), "models/decision/tokenizer");
    assert_int_equal(weir__tokenizer_json_open(s, weir_test_reference("models/decision/tokenizer"), &t, NULL), WEIR_OK);
    assert_int_equal(weir__tokenizer_size(t), 600);
    weir__tokenizer_free(t);
}

/* ---- spellings ---- */

static weir__tokenizer *open_text(const char *text) {
    weir__tokenizer *t = NULL;
    weir_error *error = NULL;
    folder_text("tokenizer.json", text);
    if (weir__tokenizer_json_open(s, folder, &t, &error))
        fail_msg("%s", weir_error_text(error));
    assert_non_null(t);
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

#define VOCAB "\"vocab\": {\"a\": 0, \"b\": 1, \"ab\": 2, \"c\": 3, \"abc\": 4}"

static void merges_are_lines_or_pairs(void **state) {
    (void)state;
    static const char *const forms[] = {"[\"a b\", \"ab c\"]", "[[\"a\", \"b\"], [\"ab\", \"c\"]]"};
    char text[512];
    for (size_t i = 0; i < 2; i++) {
        snprintf(text, sizeof text, "{\"model\": {\"merges\": %s, \"type\": \"BPE\", " VOCAB "}}", forms[i]);
        weir__tokenizer *t = open_text(text);
        assert_encoded(t, false, "abcba", 4, 1, 0);
        weir__tokenizer_free(t);
    }
}

static void a_model_without_a_type_is_known_by_what_it_has(void **state) {
    (void)state;
    weir__tokenizer *t = open_text("{\"version\": \"1.0\", \"model\": {" VOCAB ", \"merges\": [\"a b\"]}}");
    assert_encoded(t, false, "abc", 2, 3);
    weir__tokenizer_free(t);
    t = open_text("{\"model\": {\"unk_id\": 0, \"vocab\": [[\"?\", 0], [\"x\", -1.5], [\"xx\", -2e0]]}}");
    assert_encoded(t, false, "xxz", 2, 0);
    weir__tokenizer_free(t);
    t = open_text("{\"model\": {\"unk_token\": \"?\", \"continuing_subword_prefix\": \"##\", \"max_input_chars_per_word\": 3, "
                  "\"vocab\": {\"?\": 0, \"x\": 1, \"##y\": 2}}}");
    assert_encoded(t, false, "xy", 1, 2);
    assert_encoded(t, false, "xyyy", 0);
    weir__tokenizer_free(t);
}

static void escapes_in_pieces_are_resolved(void **state) {
    (void)state;
    weir__tokenizer *t = open_text("{\"model\": {\"type\": \"BPE\", \"vocab\": {\"\\u00e9\": 0, \"\\ud83e\\udd99\": 1, \"\\\"\": 2, "
                                   "\"\\u00e9\\\"\": 3}, \"merges\": [\"\\u00e9 \\\"\"]}}");
    assert_encoded(t, false, "\xC3\xA9\"\xF0\x9F\xA6\x99\"", 3, 1, 2);
    weir__tokenizer_free(t);
}

static void added_tokens_may_lie_beyond_the_models_pieces(void **state) {
    (void)state;
    weir__tokenizer *t = open_text("{\"added_tokens\": [{\"id\": 7, \"content\": \"<x>\", \"special\": true}, "
                                   "{\"id\": 9, \"content\": \"ab\", \"special\": false, \"normalized\": false}], "
                                   "\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1}, \"merges\": []}}");
    assert_int_equal(weir__tokenizer_size(t), 10);
    assert_encoded(t, false, "a<x>bab", 0, 7, 1, 9);
    weir__tokenizer_free(t);
}

/* The ids are the tokenizers library's. */
static void an_added_token_that_the_model_does_not_have_is_no_piece(void **state) {
    (void)state;
    static const char added[] = "\"added_tokens\": [{\"id\": 4, \"content\": \"ab\", \"single_word\": true, \"normalized\": false}], "
                                "\"normalizer\": {\"type\": \"Lowercase\"}";
    static const char *const models[] = {
        "{\"type\": \"WordPiece\", \"unk_token\": \"?\", \"continuing_subword_prefix\": \"##\", \"vocab\": {\"?\": 0, \"a\": 1, \"##b\": "
        "2, \"b\": 3}}",
        "{\"type\": \"Unigram\", \"unk_id\": 0, \"vocab\": [[\"?\", 0], [\"a\", -9], [\"b\", -9], [\"c\", -9]]}",
        "{\"type\": \"BPE\", \"ignore_merges\": true, \"vocab\": {\"?\": 0, \"a\": 1, \"b\": 2}, \"merges\": []}"};
    char text[1024];
    for (size_t i = 0; i < 3; i++) {
        snprintf(text, sizeof text, "{%s, \"model\": %s}", added, models[i]);
        weir__tokenizer *t = open_text(text);
        assert_encoded(t, false, "AB", 1, 2);
        assert_encoded(t, false, "ab", 4);
        weir__tokenizer_free(t);
    }
}

static void an_added_token_that_the_model_has_stays_a_piece(void **state) {
    (void)state;
    weir__tokenizer *t = open_text("{\"added_tokens\": [{\"id\": 3, \"content\": \"ab\", \"single_word\": true, \"normalized\": false}], "
                                   "\"normalizer\": {\"type\": \"Lowercase\"}, \"model\": {\"type\": \"BPE\", \"ignore_merges\": true, "
                                   "\"vocab\": {\"?\": 0, \"a\": 1, \"b\": 2, \"ab\": 3}, \"merges\": []}}");
    assert_encoded(t, false, "AB", 3);
    weir__tokenizer_free(t);
}

/* Without a decoder, pieces are shown with a space between them: that is no part of a chunk. */
static void a_whole_chunk_is_looked_up_as_it_is_written_whatever_the_decoder(void **state) {
    (void)state;
    weir__tokenizer *t =
        open_text("{\"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false}, \"model\": {\"type\": \"BPE\", "
                  "\"ignore_merges\": true, \"vocab\": {\"a\": 0, \"b\": 1, \"\\u0120\": 2, \"\\u0120a\": 3}, \"merges\": []}}");
    assert_encoded(t, false, "a b a", 0, 2, 1, 3);
    weir__tokenizer_free(t);
}

static void assert_decoded(const weir__tokenizer *t, const char *want, const int32_t *ids, size_t n) {
    expected e = {.n_ids = n, .decoded = {want, strlen(want)}};
    memcpy(e.ids, ids, n * sizeof *ids);
    assert_int_equal(check_decoded(s, t, &e), 0);
}
#define assert_ids_are(t, want, ...)                                                                                                       \
    assert_decoded(t, want, (const int32_t[]){__VA_ARGS__}, sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t))

/* All of these texts are the tokenizers library's. */
static void a_lone_prefix_is_a_word_at_a_texts_beginning_and_nothing_inside(void **state) {
    (void)state;
    weir__tokenizer *t = open_text("{\"decoder\": {\"type\": \"WordPiece\"}, \"model\": {\"type\": \"WordPiece\", \"unk_token\": \"?\", "
                                   "\"continuing_subword_prefix\": \"##\", \"vocab\": {\"?\": 0, \"##\": 1, \"W\": 2, \"##b\": 3}}}");
    assert_ids_are(t, "## W", 1, 2);
    assert_ids_are(t, "##b", 1, 3);
    assert_ids_are(t, "W W", 2, 1, 2);
    assert_ids_are(t, "##", 1, 1);
    weir__tokenizer_free(t);
}

static void a_suffix_is_a_space_before_what_follows(void **state) {
    (void)state;
    weir__tokenizer *t = open_text("{\"decoder\": {\"type\": \"BPEDecoder\"}, \"model\": {\"type\": \"BPE\", \"vocab\": {\"a</w>\": 0, "
                                   "\"b\": 1, \"</w>\": 2, \"c</w>x\": 3, \"<s>\": 4}, \"merges\": []}, \"added_tokens\": [{\"id\": 4, "
                                   "\"content\": \"<s>\", \"special\": true}]}");
    assert_ids_are(t, "a a", 0, 0);
    assert_ids_are(t, "ba b", 1, 0, 1);
    assert_ids_are(t, " ", 2, 2);
    assert_ids_are(t, "b", 1, 2);
    assert_ids_are(t, "a c x", 0, 3);
    assert_ids_are(t, "a", 0, 4);
    assert_ids_are(t, "a a", 0, 4, 0);
    weir__tokenizer_free(t);
}

static void tokens_that_follow_themselves_are_one_for_ctc(void **state) {
    (void)state;
    weir__tokenizer *t =
        open_text("{\"decoder\": {\"type\": \"CTC\"}, \"model\": {\"type\": \"WordLevel\", \"unk_token\": \"?\", \"vocab\": "
                  "{\"?\": 0, \"a\": 1, \"b\": 2, \"|\": 3, \"<pad>\": 4}}}");
    assert_ids_are(t, "aa b ", 1, 1, 4, 1, 3, 2, 3);
    assert_ids_are(t, " ", 4, 4, 3);
    assert_ids_are(t, " a", 3, 3, 1);
    weir__tokenizer_free(t);
}

static void an_added_token_of_the_normalised_text_is_shown_normalised(void **state) {
    (void)state;
    weir__tokenizer *t = open_text("{\"normalizer\": {\"type\": \"Lowercase\"}, \"decoder\": {\"type\": \"Fuse\"}, \"model\": {\"type\": "
                                   "\"BPE\", \"vocab\": {\"a\": 0}, \"merges\": []}, \"added_tokens\": [{\"id\": 1, \"content\": \"Xy\", "
                                   "\"normalized\": true}, {\"id\": 2, \"content\": \"Zz\", \"normalized\": false}]}");
    assert_ids_are(t, "axyZz", 0, 1, 2);
    weir__tokenizer_free(t);
}

static void a_word_that_is_no_piece_needs_an_unknown_piece(void **state) {
    (void)state;
    weir__tokenizer *t = open_text("{\"model\": {\"type\": \"WordLevel\", \"unk_token\": \"?\", \"vocab\": {\"a\": 0}}}");
    weir__ids ids = {0};
    weir_error *error = NULL;
    assert_int_equal(weir__tokenizer_encode(t, &(weir__part){"bc", 2, false}, 1, false, &ids, &error), WEIR_EINVAL);
    assert_non_null(strstr(weir_error_text(error), "no piece for \"bc\""));
    weir_error_free(error);
    weir__ids_free(s, &ids);
    weir__tokenizer_free(t);
}

static void what_stands_around_a_text_is_of_the_post_processor(void **state) {
    (void)state;
    static const char form[] = "{\"model\": {" VOCAB ", \"merges\": []}, \"post_processor\": %s}";
    static const char *const posts[] = {
        "{\"type\": \"TemplateProcessing\", \"single\": [{\"SpecialToken\": {\"id\": \"x\", \"type_id\": 0}}, {\"Sequence\": {\"id\": "
        "\"A\", "
        "\"type_id\": 0}}, {\"SpecialToken\": {\"id\": \"y\", \"type_id\": 0}}], \"pair\": [], \"special_tokens\": {\"x\": {\"id\": \"x\", "
        "\"ids\": [3, 4], \"tokens\": [\"c\", \"abc\"]}, \"y\": {\"id\": \"y\", \"ids\": [1], \"tokens\": [\"b\"]}}}",
        "{\"type\": \"BertProcessing\", \"sep\": [\"b\", 1], \"cls\": [\"c\", 3]}",
        "{\"type\": \"Sequence\", \"processors\": [{\"type\": \"ByteLevel\", \"trim_offsets\": true}, {\"type\": \"RobertaProcessing\", "
        "\"sep\": [\"b\", 1], \"cls\": [\"c\", 3], \"trim_offsets\": true, \"add_prefix_space\": false}]}",
    };
    char text[1024];
    for (size_t i = 0; i < 3; i++) {
        snprintf(text, sizeof text, form, posts[i]);
        weir__tokenizer *t = open_text(text);
        if (i == 0)
            assert_encoded(t, true, "a", 3, 4, 0, 1);
        else
            assert_encoded(t, true, "a", 3, 0, 1);
        assert_encoded(t, false, "a", 0);
        weir__tokenizer_free(t);
    }
}

static void sequences_in_sequences_are_flattened(void **state) {
    (void)state;
    weir__tokenizer *t = open_text(
        "{\"normalizer\": {\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"Lowercase\"}, "
        "{\"type\": \"Replace\", \"pattern\": {\"String\": \"\\u0062\"}, \"content\": \"c\"}]}, {\"type\": \"Sequence\", \"normalizers\": "
        "[]}, "
        "{\"type\": \"Replace\", \"pattern\": {\"Regex\": \"c+\"}, \"content\": \"b\"}]}, \"model\": {" VOCAB ", \"merges\": []}}");
    assert_encoded(t, false, "ABBCA", 0, 1, 0);
    weir__tokenizer_free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_librarys_ids_of_llama3),
        cmocka_unit_test(the_librarys_ids_of_qwen2),
        cmocka_unit_test(the_librarys_ids_of_deepseek3),
        cmocka_unit_test(the_librarys_ids_of_falcon),
        cmocka_unit_test(the_librarys_ids_of_roberta),
        cmocka_unit_test(the_librarys_ids_of_llama2),
        cmocka_unit_test(the_librarys_ids_of_gemma),
        cmocka_unit_test(the_librarys_ids_of_mistral),
        cmocka_unit_test(the_librarys_ids_of_bert),
        cmocka_unit_test(the_librarys_ids_of_t5),
        cmocka_unit_test(the_librarys_ids_of_wordy),
        cmocka_unit_test(the_librarys_ids_of_chars),
        cmocka_unit_test(the_librarys_ids_of_suffixed),
        cmocka_unit_test(the_librarys_ids_of_words),
        cmocka_unit_test(the_librarys_ids_of_bytes),
        cmocka_unit_test(the_librarys_ids_of_lengths),
        cmocka_unit_test(the_librarys_ids_of_ctc),
        cmocka_unit_test(the_librarys_ids_of_joined),
        cmocka_unit_test(the_reference_unigram),
        cmocka_unit_test(the_same_as_in_gguf),
        cmocka_unit_test(the_decision_models_tokenizer),
        cmocka_unit_test(merges_are_lines_or_pairs),
        cmocka_unit_test(a_model_without_a_type_is_known_by_what_it_has),
        cmocka_unit_test(escapes_in_pieces_are_resolved),
        cmocka_unit_test(added_tokens_may_lie_beyond_the_models_pieces),
        cmocka_unit_test(an_added_token_that_the_model_does_not_have_is_no_piece),
        cmocka_unit_test(an_added_token_that_the_model_has_stays_a_piece),
        cmocka_unit_test(a_whole_chunk_is_looked_up_as_it_is_written_whatever_the_decoder),
        cmocka_unit_test(a_lone_prefix_is_a_word_at_a_texts_beginning_and_nothing_inside),
        cmocka_unit_test(a_suffix_is_a_space_before_what_follows),
        cmocka_unit_test(tokens_that_follow_themselves_are_one_for_ctc),
        cmocka_unit_test(an_added_token_of_the_normalised_text_is_shown_normalised),
        cmocka_unit_test(a_word_that_is_no_piece_needs_an_unknown_piece),
        cmocka_unit_test(what_stands_around_a_text_is_of_the_post_processor),
        cmocka_unit_test(sequences_in_sequences_are_flattened),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
