/* test_vocab_pre.c: the work that patterns take on long texts: those of published models cut 1 MiB of anything, one that would take the square of it is an error. */
#include "../../../core/model/vocab_pre.h"
#include "../../../core/text/steps.h"
#include "test.h"

#define SPLITS(p)                                                                                                                          \
    { .kind = WEIR__SPLIT, .pattern = {p, sizeof(p) - 1}, .regex = true }
#define ENDINGS "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
#define UPPER_NO_HAN "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]"
#define LOWER_NO_HAN "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]"
#define HEAD "[^\\r\\n\\p{L}\\p{N}]?"
#define REST "|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define KIMI_LOWER "[\\p{Han}]+|" HEAD UPPER_NO_HAN "*" LOWER_NO_HAN "+" ENDINGS
static const weir__step kimi = SPLITS(KIMI_LOWER "|" HEAD UPPER_NO_HAN "+" LOWER_NO_HAN "*" ENDINGS REST);
static const weir__step kimi_without_capitals = SPLITS(KIMI_LOWER REST);

enum { MIB = 1 << 20 };

static weir__string repeated(const char *unit, size_t size) {
    size_t n = strlen(unit);
    char *text = malloc(size);
    assert_non_null(text);
    for (size_t i = 0; i < size / n * n; i++)
        text[i] = unit[i % n];
    return (weir__string){text, size / n * n};
}

static int cut_text(weir__steps steps, weir__string text, size_t *n, weir_error **error) {
    weir_system *s;
    weir__ops ops;
    const weir__cuts *cuts;
    weir__string out;
    assert_int_equal(weir_system_new(NULL, &s, NULL), WEIR_OK);
    weir__work work = {.system = s};
    assert_int_equal(weir__ops_init(s, &ops, steps, weir__pretokeniser_kinds, "pre-tokeniser", "test", NULL), WEIR_OK);
    int code = weir__pretokenise(&ops, &work, text, true, &out, &cuts, error);
    *n = code ? 0 : cuts->size;
    weir__ops_fini(&ops);
    weir__work_fini(&work);
    weir_system_free(s);
    return code;
}

static void assert_cuts(weir__steps steps, const char *what) {
    static const char *const units[] = {"a",        "A",   " ",   "\n", "1",   "!", "\xF0\x9F\x98\x80", "\xE4\xB8\xAD",
                                        "\xCC\x81", " \n", "\t ", "'s", "a A1"};
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        weir__string text = repeated(units[i], MIB);
        weir_error *error = NULL;
        size_t n;
        if (cut_text(steps, text, &n, &error))
            fail_msg("%s, 1 MiB of \"%s\": %s", what, units[i], weir_error_text(error));
        assert_true(n > 0);
        free((char *)text.data);
    }
}

static void published_patterns_cut_long_texts(void **state) {
    (void)state;
    static const char *const names[] = {"default",        "gpt-2",       "llama-bpe", "qwen2", "gpt-4o", "tekken",    "deepseek-llm",
                                        "deepseek-coder", "deepseek-v3", "falcon",    "bloom", "olmo",   "starcoder", "seed-coder"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const weir__pre_row *row;
        assert_int_equal(weir__pre_find(names[i], "test", &row, NULL), WEIR_OK);
        assert_cuts(row->pretokeniser, names[i]);
    }
    assert_cuts((weir__steps){&kimi, 1}, "kimi");
}

/* Each place of the run is tried as far as the run goes: the work would be its square. */
static void a_pattern_that_takes_the_square_of_a_text_is_an_error_that_names_it(void **state) {
    (void)state;
    static const weir__step tries[] = {SPLITS("\\p{L}+\\d"), SPLITS("a*[bc]|a*[de]"), SPLITS("(?:a|aa)+[bc]")};
    const weir__step *steps[] = {&kimi_without_capitals, &tries[0], &tries[1], &tries[2]};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        weir__string text = repeated(i ? "a" : "A", MIB);
        weir_error *error = NULL;
        size_t n;
        if (cut_text((weir__steps){steps[i], 1}, text, &n, &error) != WEIR_EINVAL)
            fail_msg("%s: %s", steps[i]->pattern.data, error ? weir_error_text(error) : "no error");
        assert_non_null(strstr(weir_error_text(error), "backtracks too much"));
        assert_non_null(strstr(weir_error_text(error), i ? "a" : "Han"));
        weir_error_free(error);
        free((char *)text.data);
    }
}

static void what_is_seen_of_a_text_changes_no_cut(void **state) {
    (void)state;
    for (size_t size = 250; size < 262; size++) { /* around what a first try sees */
        static const weir__step gap = SPLITS("\\s+(?!\\S)|\\s+$|b\\b|\\p{L}+c");
        char text[600];
        size_t n;
        memset(text, ' ', sizeof text);
        text[size] = 'x';
        assert_int_equal(cut_text((weir__steps){&gap, 1}, (weir__string){text, size + 1}, &n, NULL), WEIR_OK);
        assert_int_equal(n, 2); /* all spaces but the last, then the last with x */
        memset(text, 'a', size);
        assert_int_equal(cut_text((weir__steps){&gap, 1}, (weir__string){text, size}, &n, NULL), WEIR_OK);
        assert_int_equal(n, 1);
        text[size - 1] = 'c';
        text[size] = 'b';
        assert_int_equal(cut_text((weir__steps){&gap, 1}, (weir__string){text, size + 1}, &n, NULL), WEIR_OK);
        assert_int_equal(n, 2);
        memset(text + size, '\xCC', 1);
        text[size + 1] = '\x81'; /* a character over the edge */
        assert_int_equal(cut_text((weir__steps){&gap, 1}, (weir__string){text, size + 2}, &n, NULL), WEIR_OK);
        assert_int_equal(n, 2);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_patterns_cut_long_texts),
        cmocka_unit_test(a_pattern_that_takes_the_square_of_a_text_is_an_error_that_names_it),
        cmocka_unit_test(what_is_seen_of_a_text_changes_no_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
