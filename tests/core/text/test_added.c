/* test_added.c: added tokens: where they are found and what white space they take. Expectations follow the tokenizers library. */
#include "helper_vocab.h"

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

/* A byte-level vocabulary with one added token; ids below 256 are bytes. */
static weir__tokenizer *make(vocab *b, weir__added added, const weir__step *normaliser) {
    weir__tokenizer *t = NULL;
    init_bytes(b);
    described(b);
    b->v.size++;
    b->pieces[256] = added.content;
    b->kinds[256] = WEIR__NORMAL;
    added.id = 256;
    b->added[0] = added;
    b->v.n_added = 1;
    b->v.normaliser = (weir__steps){normaliser, normaliser != NULL};
    assert_int_equal(weir__tokenizer_new(s, &b->v, &t, NULL), WEIR_OK);
    return t;
}
#define CONTENT(t) .content = {t, sizeof(t) - 1}

static void special_ones_are_found_where_the_prompt_allows_it(void **state) {
    (void)state;
    static vocab b;
    weir__tokenizer *t = make(&b, (weir__added){CONTENT("<x>"), .special = true}, NULL);
    assert_special(t, s, "a<x>b", 'a', 256, 'b');
    assert_text(t, s, "<x>", '<', 'x', '>');
    weir__tokenizer_free(t);
}

static void others_are_text(void **state) {
    (void)state;
    static vocab b;
    weir__tokenizer *t = make(&b, (weir__added){CONTENT("<x>")}, NULL);
    assert_text(t, s, "a<x>b", 'a', 256, 'b');
    weir__part parts[] = {{"<", 1, true}, {"x>", 2, false}};
    assert_ids(t, s, parts, 2, false, 256);
    weir__tokenizer_free(t);
}

static void what_looks_like_a_turn_is_special_whatever_its_file_says(void **state) {
    (void)state;
    static vocab b;
    weir__tokenizer *t = make(&b, (weir__added){CONTENT("<|x|>")}, NULL);
    assert_text(t, s, "<|x|>", '<', '|', 'x', '|', '>');
    assert_special(t, s, "<|x|>", 256);
    weir__tokenizer_free(t);
}

static void white_space_around_is_taken(void **state) {
    (void)state;
    static vocab b;
    weir__tokenizer *t = make(&b, (weir__added){CONTENT("<x>"), .lstrip = true}, NULL);
    assert_text(t, s, "a \t\xE3\x80\x80<x> b", 'a', 256, ' ', 'b');
    assert_text(t, s, "  <x>  <x>", 256, 256);
    weir__tokenizer_free(t);
    t = make(&b, (weir__added){CONTENT("<x>"), .rstrip = true}, NULL);
    assert_text(t, s, "a <x> \n b", 'a', ' ', 256, 'b');
    assert_text(t, s, "<x>  <x>  ", 256, 256);
    weir__tokenizer_free(t);
}

static void a_single_word_stands_alone(void **state) {
    (void)state;
    static vocab b;
    weir__tokenizer *t = make(&b, (weir__added){CONTENT("ab"), .single_word = true}, NULL);
    assert_text(t, s, "ab ab-abc", 256, ' ', 256, '-', 'a', 'b', 'c');
    assert_text(t, s,
                "\xC3\xA9"
                "ab",
                0xC3, 0xA9, 'a', 'b');
    assert_text(t, s, "_ab", '_', 'a', 'b');
    weir__tokenizer_free(t);
}

static void normalized_ones_are_found_in_the_normalised_text(void **state) {
    (void)state;
    static const weir__step lower = {.kind = WEIR__LOWERCASE};
    static vocab b;
    weir__tokenizer *t = make(&b, (weir__added){CONTENT("Ab"), .normalized = true}, &lower);
    assert_text(t, s, "AB ab", 256, ' ', 256);
    weir__tokenizer_free(t);
    t = make(&b, (weir__added){CONTENT("Ab")}, &lower);
    assert_text(t, s, "Ab AB", 256, ' ', 'a', 'b');
    weir__tokenizer_free(t);
}

static void one_outside_of_the_vocabulary_is_refused(void **state) {
    (void)state;
    static vocab b;
    weir__tokenizer *t;
    weir_error *error = NULL;
    init_bytes(&b);
    described(&b);
    b.added[0] = (weir__added){.id = 256, CONTENT("<x>")};
    b.v.n_added = 1;
    assert_int_equal(weir__tokenizer_new(s, &b.v, &t, &error), WEIR_EFORMAT);
    assert_non_null(strstr(weir_error_text(error), "added token 0: found id 256"));
    weir_error_free(error);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(special_ones_are_found_where_the_prompt_allows_it),
        cmocka_unit_test(others_are_text),
        cmocka_unit_test(what_looks_like_a_turn_is_special_whatever_its_file_says),
        cmocka_unit_test(white_space_around_is_taken),
        cmocka_unit_test(a_single_word_stands_alone),
        cmocka_unit_test(normalized_ones_are_found_in_the_normalised_text),
        cmocka_unit_test(one_outside_of_the_vocabulary_is_refused),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
