/* test_pretokenise.c: where text is cut before byte-pair merging. Expectations are written out by hand from the patterns' definition. */
#include "../../../core/text/steps.h"
#include "test.h"

/* Cuts `text` and compares with chunks joined by '|'. */
static void assert_steps(const weir__step *steps, size_t n, const char *text, size_t size, const char *want) {
    weir_system *s;
    weir__ops ops;
    const weir__cuts *cuts;
    weir__string cut;
    char got[512];
    size_t used = 0;
    assert_int_equal(weir_system_new(NULL, &s, NULL), WEIR_OK);
    weir__work work = {.system = s};
    assert_int_equal(weir__ops_init(s, &ops, (weir__steps){steps, n}, weir__pretokeniser_kinds, "pre-tokeniser", "test", NULL), WEIR_OK);
    assert_int_equal(weir__pretokenise(&ops, &work, (weir__string){text, size}, true, &cut, &cuts, NULL), WEIR_OK);
    for (size_t i = 0; i < cuts->size; i++) {
        assert_true(used + cuts->data[i].size + 1 < sizeof got);
        memcpy(got + used, cut.data + cuts->data[i].begin, cuts->data[i].size);
        used += cuts->data[i].size;
        got[used++] = '|';
    }
    got[used > 0 ? used - 1 : 0] = 0;
    assert_string_equal(got, want);
    weir__ops_fini(&ops);
    weir__work_fini(&work);
    weir_system_free(s);
}
static const weir__step digits_gpt2[] = {{.kind = WEIR__DIGITS, .individual = true}, {.kind = WEIR__BYTE_LEVEL, .use_regex = true}};
#define smollm(text, want) assert_steps(digits_gpt2, 2, text, sizeof(text) - 1, want)
#define gpt2(text, want) assert_steps(digits_gpt2 + 1, 1, text, sizeof(text) - 1, want)

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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_take_one_space_along),
        cmocka_unit_test(contractions_are_cut_off),
        cmocka_unit_test(digits_stand_alone),
        cmocka_unit_test(white_space_is_unicodes),
        cmocka_unit_test(letters_of_all_scripts_are_letters),
        cmocka_unit_test(bytes_that_are_no_text_are_chunks_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
