/* test_pretokenise.c: where text is cut before byte-pair merging. Expectations are written out by hand from the patterns' definition. */
#include "../../../core/text/pretokenise.h"
#include "test.h"

/* Cuts `text` with a named pre-tokeniser and compares with chunks joined by '|'. */
static void assert_cuts(const char *name, const char *text, size_t size, const char *want) {
    weir_system *s;
    weir__pre *p;
    weir__string chunk;
    char got[512];
    size_t used = 0;
    assert_int_equal(weir_system_new(NULL, &s, NULL), WEIR_OK);
    assert_int_equal(weir__pre_new(s, name, "test", &p, NULL), WEIR_OK);
    weir__pre_run *r = weir__pre_run_new(p);
    weir__pre_start(r, text, size);
    for (;;) {
        assert_int_equal(weir__pre_next(r, &chunk, NULL), WEIR_OK);
        if (chunk.size == 0)
            break;
        assert_true(used + chunk.size + 1 < sizeof got);
        memcpy(got + used, chunk.data, chunk.size);
        used += chunk.size;
        got[used++] = '|';
    }
    got[used > 0 ? used - 1 : 0] = 0;
    assert_string_equal(got, want);
    weir__pre_run_free(r);
    weir__pre_free(p);
    weir_system_free(s);
}
#define smollm(text, want) assert_cuts("smollm", text, sizeof(text) - 1, want)
#define gpt2(text, want) assert_cuts("gpt-2", text, sizeof(text) - 1, want)

static void words_take_one_space_along(void **state) {
    (void)state;
    smollm("", "");
    smollm("Hello world", "Hello| world");
    smollm("  Hello   world  ", " | Hello|  | world|  ");
    smollm("a\n\n b", "a|\n\n| b");
    smollm("a\tb", "a|\t|b");
    smollm("Hi, you!! ok", "Hi|,| you|!!| ok");
}

static void contractions_are_cut_off(void **state) {
    (void)state;
    smollm("I'll we've he's", "I|'ll| we|'ve| he|'s");
    smollm("'RE 'dog' 's", "'|RE| '|dog|'| '|s"); /* capitals, and those behind a space, are none */
}

static void digits_stand_alone(void **state) {
    (void)state;
    smollm("ab12 345", "ab|1|2| |3|4|5");
    smollm("x  7", "x|  |7");                                /* a digit ends the text between digits, so both spaces stay together */
    smollm("\xC2\xBD\xE2\x85\xA7", "\xC2\xBD|\xE2\x85\xA7"); /* one half, roman eight */
    gpt2("ab12 345", "ab|12| 345");
    gpt2("x  7", "x| | 7");
}

static void white_space_is_unicodes(void **state) {
    (void)state;
    smollm("a\xC2\xA0 b", "a|\xC2\xA0| b"); /* no-break space is white space */
    smollm("a\xC2\x85"
           "b",
           "a|\xC2\x85|b"); /* so is next line */
    smollm("a \xE1\xA0\x8E"
           "b",
           "a| \xE1\xA0\x8E|b"); /* the Mongolian vowel separator is not */
    smollm("a \x1C"
           "b",
           "a| \x1C|b"); /* nor is the file separator */
    smollm("a \xE2\x80\x8B"
           "b",
           "a| \xE2\x80\x8B|b"); /* nor the zero width space */
    smollm("a\xE3\x80\x80\xE3\x80\x80"
           "b",
           "a|\xE3\x80\x80|\xE3\x80\x80|b");
}

static void letters_of_all_scripts_are_letters(void **state) {
    (void)state;
    smollm("\xD0\xBC\xD0\xB8\xD1\x80 \xE6\x9D\xB1\xE4\xBA\xAC!", "\xD0\xBC\xD0\xB8\xD1\x80| \xE6\x9D\xB1\xE4\xBA\xAC|!");
    smollm("e\xCC\x81t", "e|\xCC\x81|t"); /* a combining mark is no letter */
}

static void bytes_that_are_no_text_are_chunks_of_their_own(void **state) {
    (void)state;
    smollm("ab\xFF\xFE"
           "cd",
           "ab|\xFF\xFE|cd");
    smollm("\xF0\x9F", "\xF0\x9F");
    smollm("a \xC3(", "a| |\xC3|(");
    smollm("\xED\xA0\x80x", "\xED\xA0\x80|x"); /* a surrogate */
}

static void an_unknown_name_is_refused_with_the_known_ones(void **state) {
    (void)state;
    weir_system *s;
    weir__pre *p;
    weir_error *error = NULL;
    assert_int_equal(weir_system_new(NULL, &s, NULL), WEIR_OK);
    assert_int_equal(weir__pre_new(s, "klingon", "file.gguf", &p, &error), WEIR_EUNSUPPORTED);
    assert_non_null(strstr(weir_error_text(error), "file.gguf"));
    assert_non_null(strstr(weir_error_text(error), "\"klingon\""));
    assert_non_null(strstr(weir_error_text(error), "\"smollm\""));
    weir_error_free(error);
    weir_system_free(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_take_one_space_along),
        cmocka_unit_test(contractions_are_cut_off),
        cmocka_unit_test(digits_stand_alone),
        cmocka_unit_test(white_space_is_unicodes),
        cmocka_unit_test(letters_of_all_scripts_are_letters),
        cmocka_unit_test(bytes_that_are_no_text_are_chunks_of_their_own),
        cmocka_unit_test(an_unknown_name_is_refused_with_the_known_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
