/* test_tokenizer_json_refused.c: what of a tokenizer.json is refused, and by which name. */
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

#define VOCAB "\"vocab\": {\"a\": 0, \"b\": 1, \"ab\": 2, \"c\": 3, \"abc\": 4}"

static void assert_refused(const char *text, int code, const char *part) {
    weir__tokenizer *t = NULL;
    weir_error *error = NULL;
    folder_text("tokenizer.json", text);
    int found = weir__tokenizer_json_open(s, folder, &t, &error);
    if (found != code || !strstr(weir_error_text(error), part) || !strstr(weir_error_text(error), "tokenizer.json"))
        fail_msg("%s: found code %d, \"%s\"; wanted %d with \"%s\"", text, found, error ? weir_error_text(error) : "", code, part);
    assert_null(t);
    weir_error_free(error);
}

#define MODEL "\"model\": {" VOCAB ", \"merges\": []}"

static void unknown_components_are_refused_by_name(void **state) {
    (void)state;
    assert_refused("{\"normalizer\": {\"type\": \"Rot13\"}, " MODEL "}", WEIR_EUNSUPPORTED, "normalizer \"Rot13\" is not supported");
    assert_refused("{\"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"UnicodeScripts\"}]}, " MODEL "}",
                   WEIR_EUNSUPPORTED, "pre_tokenizer \"UnicodeScripts\"");
    assert_refused("{\"decoder\": {\"type\": \"Morse\"}, " MODEL "}", WEIR_EUNSUPPORTED, "decoder \"Morse\"");
    assert_refused("{\"post_processor\": {\"type\": \"X\\u0001\"}, " MODEL "}", WEIR_EUNSUPPORTED, "post_processor \"X\\u0001\"");
    assert_refused("{\"model\": {\"type\": \"Lattice\", \"vocab\": {}}}", WEIR_EUNSUPPORTED, "model \"Lattice\"");
}

static void steps_that_are_not_run_are_refused_by_their_names(void **state) {
    (void)state;
    static const char form[] = "{\"decoder\": {\"type\": \"Sequence\", \"decoders\": [%s]}, " MODEL "}";
    static const struct {
        const char *decoders, *part;
    } cases[] = {
        {"{\"type\": \"Replace\", \"pattern\": {\"Regex\": \"a\"}, \"content\": \"\"}", "step 0 of the decoder: Replace by a pattern"},
        {"{\"type\": \"Fuse\"}, {\"type\": \"Replace\", \"pattern\": {\"String\": \"ab\"}, \"content\": \"\"}",
         "step 1 of the decoder: Replace of more than one character"},
        {"{\"type\": \"Fuse\"}, {\"type\": \"ByteLevel\"}", "step 1 of the decoder: ByteLevel is not supported behind Fuse"},
        {"{\"type\": \"Fuse\"}, {\"type\": \"Strip\", \"content\": \" \", \"start\": 0, \"stop\": 1}", "step 1 of the decoder: Strip of"},
        {"{\"type\": \"Fuse\"}, {\"type\": \"CTC\"}", "step 1 of the decoder: CTC is supported only as the first"},
        {"{\"type\": \"BPEDecoder\", \"suffix\": \"\"}", "step 0 of the decoder: BPEDecoder with an empty text"},
    };
    char text[1024];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        snprintf(text, sizeof text, form, cases[i].decoders);
        assert_refused(text, WEIR_EUNSUPPORTED, cases[i].part);
    }
    assert_refused("{\"pre_tokenizer\": {\"type\": \"FixedLength\", \"length\": 0}, " MODEL "}", WEIR_EUNSUPPORTED,
                   "step 0 of the pre-tokeniser: FixedLength");
}

static void unknown_settings_are_refused_by_name(void **state) {
    (void)state;
    assert_refused("{\"flavour\": 1, " MODEL "}", WEIR_EUNSUPPORTED, "\"flavour\"");
    assert_refused("{\"version\": \"2.0\", " MODEL "}", WEIR_EUNSUPPORTED, "version");
    assert_refused("{\"normalizer\": {\"type\": \"NFC\", \"form\": 1}, " MODEL "}", WEIR_EUNSUPPORTED, "NFC: setting \"form\"");
    assert_refused("{\"model\": {" VOCAB ", \"merges\": [], \"dropout\": 0.1}}", WEIR_EUNSUPPORTED, "\"dropout\" of 0.1");
    assert_refused("{\"model\": {\"type\": \"Unigram\", \"vocab\": [[\"a\", 0]], \"merges\": []}}", WEIR_EUNSUPPORTED,
                   "model Unigram: setting \"merges\"");
    assert_refused("{\"pre_tokenizer\": {\"type\": \"Punctuation\", \"behavior\": \"Odd\"}, " MODEL "}", WEIR_EUNSUPPORTED, "\"Odd\"");
    assert_refused("{\"added_tokens\": [{\"id\": 9, \"content\": \"x\", \"odd\": 1}], " MODEL "}", WEIR_EUNSUPPORTED, "\"odd\"");
}

static void what_is_missing_is_named(void **state) {
    (void)state;
    assert_refused("{}", WEIR_EFORMAT, "\"model\"");
    assert_refused("{\"model\": {\"type\": \"BPE\", \"merges\": []}}", WEIR_EFORMAT, "\"vocab\"");
    assert_refused("{\"normalizer\": {}, " MODEL "}", WEIR_EFORMAT, "\"type\"");
    assert_refused("{\"normalizer\": {\"type\": \"Prepend\"}, " MODEL "}", WEIR_EFORMAT, "\"prepend\"");
    assert_refused("{\"added_tokens\": [{\"content\": \"x\"}], " MODEL "}", WEIR_EFORMAT, "\"id\"");
    assert_refused("{\"post_processor\": {\"type\": \"TemplateProcessing\", \"single\": [{\"SpecialToken\": {\"id\": \"x\"}}], "
                   "\"special_tokens\": {}}, " MODEL "}",
                   WEIR_EFORMAT, "\"x\"");
}

static void ids_are_checked(void **state) {
    (void)state;
    assert_refused("{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": -1}, \"merges\": []}}", WEIR_EFORMAT, "-1");
    assert_refused("{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 99999999999}, \"merges\": []}}", WEIR_EFORMAT, "99999999999");
    assert_refused("{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 2000000}, \"merges\": []}}", WEIR_EFORMAT, "only 1 pieces");
    assert_refused("{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 0}, \"merges\": []}}", WEIR_EFORMAT, "two pieces");
    assert_refused("{\"model\": {\"type\": \"BPE\", \"vocab\": {}, \"merges\": []}}", WEIR_EFORMAT, "found 0 pieces");
    assert_refused("{\"added_tokens\": [{\"id\": 1, \"content\": \"x\"}], " MODEL "}", WEIR_EFORMAT, "two pieces");
    assert_refused("{\"post_processor\": {\"type\": \"BertProcessing\", \"sep\": [\"x\", 5], \"cls\": [\"x\", 1]}, " MODEL "}",
                   WEIR_EFORMAT, "id 5");
}

static void merges_are_checked(void **state) {
    (void)state;
    assert_refused("{\"model\": {" VOCAB ", \"merges\": [\"a\"]}}", WEIR_EFORMAT, "merge 0");
    assert_refused("{\"model\": {" VOCAB ", \"merges\": [\"a b\", \"a b c\"]}}", WEIR_EFORMAT, "merge 1");
    assert_refused("{\"model\": {" VOCAB ", \"merges\": [[\"a\"]]}}", WEIR_EFORMAT, "merge 0");
    assert_refused("{\"model\": {" VOCAB ", \"merges\": [\"a x\"]}}", WEIR_EFORMAT, "");
    assert_refused("{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0}, \"merges\": [\"a a\", \"a a\"]}}", WEIR_EFORMAT,
                   "more than 1 merges");
}

static void a_file_that_is_no_json_is_refused_with_its_place(void **state) {
    (void)state;
    assert_refused("{\"model\": {" VOCAB ", \"merges\": []}", WEIR_EFORMAT, "line 1, column 79: found the end of the text");
    assert_refused("", WEIR_EFORMAT, "line 1, column 1");
    assert_refused("{\"model\": {\"vocab\": {\"\xFF\": 0}}}", WEIR_EFORMAT, "UTF-8");
}

static void nesting_is_limited(void **state) {
    (void)state;
    char text[4096] = "{\"decoder\": ", *at = text + strlen(text);
    for (int i = 0; i < 20; i++)
        at += sprintf(at, "{\"type\": \"Sequence\", \"decoders\": [");
    for (int i = 0; i < 20; i++)
        at += sprintf(at, "]}");
    sprintf(at, ", " MODEL "}");
    assert_refused(text, WEIR_EUNSUPPORTED, "Sequences");
}

/* A file may say that texts grow without end: what is made of them stays in proportion. */
static void texts_that_grow_without_end_are_refused(void **state) {
    (void)state;
    static const char step[] = "{\"type\": \"Replace\", \"pattern\": {\"String\": \"a\"}, \"content\": \"aaaaaaaaaaaaaaaa\"}";
    char steps[2048] = "", text[4096];
    weir__ids ids = {0};
    for (int i = 0; i < 12; i++)
        sprintf(steps + strlen(steps), "%s%s", i ? ", " : "", step);
    snprintf(text, sizeof text, "{\"decoder\": {\"type\": \"Sequence\", \"decoders\": [%s]}, " MODEL "}", steps);
    assert_refused(text, WEIR_ETOOBIG, "decoder");
    snprintf(text, sizeof text, "{\"normalizer\": {\"type\": \"Sequence\", \"normalizers\": [%s]}, " MODEL "}", steps);
    weir__tokenizer *t = NULL;
    folder_text("tokenizer.json", text);
    assert_int_equal(weir__tokenizer_json_open(s, folder, &t, NULL), WEIR_OK);
    assert_non_null(t);
    assert_int_equal(weir__tokenizer_encode(t, &(weir__part){"a", 1, true}, 1, false, &ids, NULL), WEIR_ETOOBIG);
    weir__ids_free(s, &ids);
    weir__tokenizer_free(t);
    assert_refused("{\"pre_tokenizer\": {\"type\": \"Metaspace\", \"replacement\": \"__\"}, " MODEL "}", WEIR_EFORMAT, "one character");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unknown_components_are_refused_by_name),
        cmocka_unit_test(steps_that_are_not_run_are_refused_by_their_names),
        cmocka_unit_test(unknown_settings_are_refused_by_name),
        cmocka_unit_test(what_is_missing_is_named),
        cmocka_unit_test(ids_are_checked),
        cmocka_unit_test(merges_are_checked),
        cmocka_unit_test(a_file_that_is_no_json_is_refused_with_its_place),
        cmocka_unit_test(nesting_is_limited),
        cmocka_unit_test(texts_that_grow_without_end_are_refused),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
