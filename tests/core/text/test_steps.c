/* test_steps.c: every normaliser and pre-tokeniser gives what the tokenizers library gives on texts that are hard (tests/data/steps), and what only weir promises:
 * bytes that are no UTF-8, character maps, patterns that are refused. */
#include "../../../core/text/steps.h"
#include "test.h"

#define TEXT(t)                                                                                                                            \
    { t, sizeof(t) - 1 }
#define MARK "\xE2\x96\x81"
#define SPLIT(p, b, i)                                                                                                                     \
    { .kind = WEIR__SPLIT, .pattern = TEXT(p), .regex = true, .behaviour = b, .invert = i }

static const weir__step normalisers[] = {
    {.kind = WEIR__LOWERCASE},
    {.kind = WEIR__NFC},
    {.kind = WEIR__NFD},
    {.kind = WEIR__NFKC},
    {.kind = WEIR__NFKD},
    {.kind = WEIR__STRIP, .left = true, .right = true},
    {.kind = WEIR__STRIP_ACCENT},
    {.kind = WEIR__BERT, .clean_text = true, .chinese = true, .strip_accents = true, .lowercase = true},
    {.kind = WEIR__BERT, .clean_text = true, .chinese = true},
    {.kind = WEIR__NMT},
    {.kind = WEIR__REPLACE, .pattern = TEXT(" {2,}"), .regex = true, .content = TEXT("_")},
    {.kind = WEIR__REPLACE, .pattern = TEXT("\\s+$"), .regex = true, .content = TEXT("#")},
    {.kind = WEIR__PREPEND, .content = TEXT(MARK)},
};
static const weir__step pretokenisers[] = {
    {.kind = WEIR__WHITESPACE},
    {.kind = WEIR__WHITESPACE_SPLIT},
    {.kind = WEIR__PUNCTUATION, .behaviour = WEIR__ISOLATED},
    {.kind = WEIR__PUNCTUATION, .behaviour = WEIR__CONTIGUOUS},
    {.kind = WEIR__PUNCTUATION, .behaviour = WEIR__MERGED_WITH_NEXT},
    {.kind = WEIR__PUNCTUATION, .behaviour = WEIR__MERGED_WITH_PREVIOUS},
    {.kind = WEIR__PUNCTUATION, .behaviour = WEIR__REMOVED},
    {.kind = WEIR__BERT_SPLIT},
    {.kind = WEIR__DIGITS, .individual = true},
    {.kind = WEIR__DIGITS},
    {.kind = WEIR__METASPACE, .content = TEXT(MARK), .prepend = WEIR__PREPEND_ALWAYS, .split = true},
    {.kind = WEIR__METASPACE, .content = TEXT(MARK), .prepend = WEIR__PREPEND_FIRST},
    {.kind = WEIR__METASPACE, .content = TEXT(MARK), .prepend = WEIR__PREPEND_NEVER, .split = true},
    SPLIT("\\s+", WEIR__REMOVED, false),
    SPLIT("\\s+", WEIR__MERGED_WITH_NEXT, false),
    SPLIT("\\s+", WEIR__MERGED_WITH_PREVIOUS, false),
    SPLIT("[a-z]", WEIR__CONTIGUOUS, false),
    SPLIT("\\w+|[^\\w\\s]+", WEIR__REMOVED, true),
    SPLIT("\\s+$", WEIR__ISOLATED, false),
    SPLIT("\\s?\\p{P}+", WEIR__ISOLATED, false),
    SPLIT("'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+",
          WEIR__ISOLATED, false),
    SPLIT(" ?[^(\\s|[.,!?\xE2\x80\xA6])]+", WEIR__ISOLATED, false),
    SPLIT("[\\p{L}&&[^a-m]]+", WEIR__ISOLATED, false),
    SPLIT("[^\\S\\n]+", WEIR__ISOLATED, false),
    SPLIT("^\\s+|\\s+$", WEIR__ISOLATED, false),
    SPLIT("[\\w-]+", WEIR__ISOLATED, false),
    {.kind = WEIR__BYTE_LEVEL, .use_regex = true, .add_prefix_space = true},
};
enum { NORMALISERS = sizeof normalisers / sizeof normalisers[0], PRETOKENISERS = sizeof pretokenisers / sizeof pretokenisers[0] };

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

static char *slurp(const char *path, size_t *size) {
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    char *text = malloc(1 << 20);
    *size = fread(text, 1, (1 << 20) - 1, f);
    text[*size] = 0;
    fclose(f);
    return text;
}

static void append(char *line, const char *text, size_t size) {
    size_t used = strlen(line);
    for (size_t i = 0; i < size; i++) {
        bool end = text[i] == '\n' || text[i] == '\r';
        assert_true(used + 3 < 8192);
        if (end)
            line[used++] = '\\';
        line[used++] = (char)(end ? text[i] == '\n' ? 'n' : 'r' : text[i]);
    }
    line[used] = 0;
}

static void run_normaliser(const weir__step *step, weir__string text, weir__work *w, char *line) {
    weir__ops o;
    weir__string out;
    weir_error *error = NULL;
    if (weir__ops_init(s, &o, (weir__steps){step, 1}, weir__normaliser_kinds, "normaliser", "test", &error) ||
        weir__normalise(&o, w, text, &out, &error))
        fail_msg("%s", weir_error_text(error));
    append(line, out.data, out.size);
    weir__ops_fini(&o);
}

static void run_pretokeniser(const weir__step *step, weir__string text, weir__work *w, char *line) {
    weir__ops o;
    weir__string out;
    const weir__cuts *cuts;
    weir_error *error = NULL;
    if (weir__ops_init(s, &o, (weir__steps){step, 1}, weir__pretokeniser_kinds, "pre-tokeniser", "test", &error) ||
        weir__pretokenise(&o, w, text, true, &out, &cuts, &error))
        fail_msg("%s", weir_error_text(error));
    for (size_t i = 0; i < cuts->size; i++) {
        append(line, out.data + cuts->data[i].begin, cuts->data[i].size);
        strcat(line, "\t");
    }
    weir__ops_fini(&o);
}

/* Steps [first, end) of all texts, normalisers first. */
static void check_steps(size_t first, size_t end) {
    size_t n, n_want, rows = 0;
    char *texts = slurp(WEIR_TEST_DATA "/steps/texts", &n), *want = slurp(WEIR_TEST_DATA "/steps/expected", &n_want), *at = want;
    static char line[8192];
    weir__work w = {.system = s};
    for (char *text = texts; text <= texts + n; text += strlen(text) + 1) {
        for (size_t i = 0; i < NORMALISERS + PRETOKENISERS; i++) {
            char *line_end = strchr(at, '\n');
            assert_non_null(line_end);
            *line_end = 0;
            weir__string in = {text, strlen(text)};
            snprintf(line, sizeof line, "%c%zu ", i < NORMALISERS ? 'N' : 'P', i < NORMALISERS ? i : i - NORMALISERS);
            if (i >= first && i < end && i < NORMALISERS)
                run_normaliser(&normalisers[i], in, &w, line);
            else if (i >= first && i < end)
                run_pretokeniser(&pretokenisers[i - NORMALISERS], in, &w, line);
            if (i >= first && i < end)
                assert_string_equal(line, at);
            at = line_end + 1;
            rows++;
        }
    }
    assert_true(rows > 3000 && at == want + n_want);
    weir__work_fini(&w);
    free(texts);
    free(want);
}

static void normalisers_give_what_the_reference_gives(void **state) {
    (void)state;
    check_steps(0, NORMALISERS);
}

static void pretokenisers_give_what_the_reference_gives(void **state) {
    (void)state;
    check_steps(NORMALISERS, NORMALISERS + PRETOKENISERS);
}

static void assert_normal(const weir__step *steps, size_t n, weir__string in, const char *want, size_t size) {
    weir__ops o;
    weir__string out;
    weir__work w = {.system = s};
    assert_int_equal(weir__ops_init(s, &o, (weir__steps){steps, n}, weir__normaliser_kinds, "normaliser", "test", NULL), WEIR_OK);
    assert_int_equal(weir__normalise(&o, &w, in, &out, NULL), WEIR_OK);
    assert_int_equal(out.size, size);
    assert_memory_equal(out.data, want, size);
    weir__work_fini(&w);
    weir__ops_fini(&o);
}

static void bytes_that_are_no_text_pass_through(void **state) {
    (void)state;
    static const char in[] = "E\xCC\x81\xFF\xCC\x81 \xE4\xB8", nfc[] = "\xC3\x89\xFF\xCC\x81 \xE4\xB8",
                      low[] = "e\xCC\x81\xFF\xCC\x81 \xE4\xB8";
    assert_normal(&normalisers[1], 1, (weir__string)TEXT(in), nfc, sizeof nfc - 1);
    assert_normal(&normalisers[0], 1, (weir__string)TEXT(in), low, sizeof low - 1);
    assert_normal(&normalisers[10], 1, (weir__string)TEXT("a  \xFF  b"), "a_\xFF_b", 5);
}

static void steps_run_one_after_another(void **state) {
    (void)state;
    static const weir__step steps[] = {{.kind = WEIR__STRIP, .left = true},
                                       {.kind = WEIR__PREPEND, .content = TEXT(MARK)},
                                       {.kind = WEIR__REPLACE, .pattern = TEXT(" "), .content = TEXT(MARK)}};
    assert_normal(steps, 3, (weir__string)TEXT("  a b "), MARK "a" MARK "b" MARK, 11);
    assert_normal(steps, 3, (weir__string)TEXT("  "), "", 0);
}

/* A map of one trie: "a" -> "X", "ab" -> "YZ". Units of a double array: see core/text/charsmap.c. */
static size_t make_map(char *blob) {
    static const uint32_t labels[] = {'a', 'b'};
    uint32_t units[512] = {0};
    uint32_t root = 1u << 10, a = root >> 10 ^ labels[0];
    units[0] = root;                                   /* children of the root begin at 1 */
    units[a] = labels[0] | 1u << 8 | (a ^ 256u) << 10; /* its children at 256 */
    units[256] = 0u | 1u << 31;                        /* "a": replacement 0 */
    units[256 ^ labels[1]] = labels[1] | 1u << 8 | ((256u ^ labels[1]) ^ 400u) << 10;
    units[400] = 2u | 1u << 31; /* "ab": replacement 2 */
    uint32_t bytes = sizeof units;
    memcpy(blob, &bytes, 4);
    memcpy(blob + 4, units, sizeof units);
    memcpy(blob + 4 + sizeof units, "X\0YZ", 5);
    return 4 + sizeof units + 5;
}

static void a_character_map_takes_the_longest_key(void **state) {
    (void)state;
    static char blob[4096];
    weir__step step = {.kind = WEIR__CHARSMAP, .pattern = {blob, make_map(blob)}};
    assert_normal(&step, 1, (weir__string)TEXT("cabaa\xC3\xA9"), "cYZXX\xC3\xA9", 7);
    step.graphemes = true; /* graphemes are looked up one by one, and "ab" is two */
    assert_normal(&step, 1, (weir__string)TEXT("caba"), "cXbX", 4);
}

static void a_broken_character_map_is_an_error(void **state) {
    (void)state;
    static char blob[4096];
    size_t size = make_map(blob);
    weir__work w = {.system = s};
    for (size_t cut = 0; cut < size; cut += cut < 16 || cut > size - 16 ? 1 : 101) {
        weir__step step = {.kind = WEIR__CHARSMAP, .pattern = {blob, cut}};
        weir__ops o;
        weir__string out;
        weir_error *error = NULL;
        assert_int_equal(weir__ops_init(s, &o, (weir__steps){&step, 1}, weir__normaliser_kinds, "normaliser", "test", NULL), WEIR_OK);
        assert_int_equal(weir__normalise(&o, &w, (weir__string)TEXT("ab"), &out, &error), WEIR_EFORMAT);
        assert_non_null(strstr(weir_error_text(error), "character map"));
        weir_error_free(error);
        weir__ops_fini(&o);
    }
    weir__work_fini(&w);
}

static void steps_of_another_kind_are_refused(void **state) {
    (void)state;
    weir__ops o;
    weir_error *error = NULL;
    weir__step step = {.kind = WEIR__DIGITS};
    assert_int_equal(weir__ops_init(s, &o, (weir__steps){&step, 1}, weir__normaliser_kinds, "normaliser", "a.json", &error),
                     WEIR_EUNSUPPORTED);
    assert_non_null(strstr(weir_error_text(error), "a.json: step 0 of the normaliser: Digits is no normaliser"));
    weir_error_free(error);
}

static void assert_translated(const char *pattern, const char *want) {
    char *out = NULL;
    weir_error *error = NULL;
    int code = weir__regex_translate(s, (weir__string){pattern, strlen(pattern)}, "a.json", &out, &error);
    if (!want) {
        assert_int_equal(code, WEIR_EUNSUPPORTED);
        assert_non_null(strstr(weir_error_text(error), "a.json"));
        weir_error_free(error);
        return;
    }
    assert_int_equal(code, WEIR_OK);
    assert_string_equal(out, want);
    weir__free(s, out);
}

static void patterns_are_translated(void **state) {
    (void)state;
    assert_translated("a\\p{L}+|(?i:'s)", "a\\p{L}+|(?i:'s)");
    assert_translated("[a[b-c]d]", "[ab-cd]");
    assert_translated("[a&&[^b]]", "(?:(?=[a])(?=[^b])[\\x{0}-\\x{10FFFF}])");
    assert_translated("\\u00e9\\h", "\\x{00e9}[0-9a-fA-F]");
    assert_translated("[[:alpha:]]]", "[[:alpha:]]]");
    assert_translated("[]a]", "[]a]");
    assert_translated("[ab]+$", "(?<![ab])[ab]+$");
    assert_translated("[ab", NULL);
    assert_translated("[a[^b]]", NULL);
    assert_translated("[^a&&b]", NULL);
}

static void a_pattern_that_is_none_is_refused_by_its_text(void **state) {
    (void)state;
    weir__regex *r;
    weir_error *error = NULL;
    assert_int_equal(weir__regex_new(s, (weir__string)TEXT("a(b"), "a.json", &r, &error), WEIR_EUNSUPPORTED);
    assert_non_null(strstr(weir_error_text(error), "a.json: pattern \"a(b\""));
    weir_error_free(error);
}

static void a_pattern_that_backtracks_without_end_is_an_error_that_names_it(void **state) {
    (void)state;
    weir__regex *r;
    weir_error *error = NULL;
    size_t begin, end;
    char text[64];
    memset(text, 'a', sizeof text);
    assert_int_equal(weir__regex_new(s, (weir__string)TEXT("(a+)+[bc]"), "a.json", &r, NULL), WEIR_OK);
    weir__regex_run *run = weir__regex_run_new(s);
    assert_int_equal(weir__regex_find(r, run, (weir__string){text, sizeof text}, 0, &begin, &end, &error), WEIR_EINVAL);
    assert_non_null(strstr(weir_error_text(error), "\"(a+)+[bc]\""));
    weir_error_free(error);
    weir__regex_run_free(run);
    weir__regex_free(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(normalisers_give_what_the_reference_gives),
        cmocka_unit_test(pretokenisers_give_what_the_reference_gives),
        cmocka_unit_test(bytes_that_are_no_text_pass_through),
        cmocka_unit_test(steps_run_one_after_another),
        cmocka_unit_test(a_character_map_takes_the_longest_key),
        cmocka_unit_test(a_broken_character_map_is_an_error),
        cmocka_unit_test(steps_of_another_kind_are_refused),
        cmocka_unit_test(patterns_are_translated),
        cmocka_unit_test(a_pattern_that_is_none_is_refused_by_its_text),
        cmocka_unit_test(a_pattern_that_backtracks_without_end_is_an_error_that_names_it),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
