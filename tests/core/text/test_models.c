/* test_models.c: unigram, WordPiece and BPE of characters on vocabularies made here, and every model on long texts of the hard kinds: 1 MiB each, on a stack where
 * recursion by length would end the process; the test's time limit is what ends one that is not linear. */
#include "helper_vocab.h"

#include <pthread.h>

#define M TEST_MARK

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

static weir__tokenizer *make(vocab *b) {
    weir__tokenizer *t = NULL;
    weir_error *error = NULL;
    if (weir__tokenizer_new(s, described(b), &t, &error))
        fail_msg("%s", weir_error_text(error));
    return t;
}

/* Ids: <unk> 0, M 1, M a 2, a 3, b 4, ab 5, M ab 6, bc 7. */
static void init_unigram(vocab *b) {
    init_vocab(b, WEIR__UNIGRAM);
    b->v.unk = add_piece(b, "<unk>", WEIR__UNKNOWN, 0);
    add_piece(b, M, WEIR__NORMAL, -2);
    add_piece(b, M "a", WEIR__NORMAL, -3);
    add_piece(b, "a", WEIR__NORMAL, -4);
    add_piece(b, "b", WEIR__NORMAL, -4);
    add_piece(b, "ab", WEIR__NORMAL, -5);
    add_piece(b, M "ab", WEIR__NORMAL, -8);
    add_piece(b, "bc", WEIR__NORMAL, -1);
    b->add_space_prefix = true;
}

static void unigram_takes_the_best_sum(void **state) {
    (void)state;
    static vocab b;
    init_unigram(&b);
    weir__tokenizer *t = make(&b);
    assert_text(t, s, "a", 2);
    assert_text(t, s, "ab", 1, 5);  /* of equal sums the one whose last piece begins first */
    assert_text(t, s, "abc", 2, 7); /* -4 */
    assert_text(t, s, "b a", 1, 4, 2);
    assert_text(t, s, "aab", 2, 5); /* -8, as -3 - 4 - 4 is worse */
    assert_text(t, s, "a  a", 2, 1, 2);
    weir__tokenizer_free(t);
}

static void unigrams_unknown_neighbours_are_one(void **state) {
    (void)state;
    static vocab b;
    init_unigram(&b);
    weir__tokenizer *t = make(&b);
    assert_text(t, s,
                "a\xC3\xA9\xE4\xB8\xAD"
                "b",
                2, 0, 4);
    assert_text(t, s, "xyz x", 1, 0, 1, 0);
    assert_text(t, s, "a\xFF\xFE", 2, 0);
    weir__tokenizer_free(t);
    for (unsigned c = 0; c < 256; c++) {
        char name[8];
        snprintf(name, sizeof name, "<0x%02X>", c);
        add_piece(&b, name, WEIR__BYTE, 0);
    }
    t = make(&b);
    assert_text(t, s,
                "a\xC3\xA9"
                "b",
                2, 8 + 0xC3, 8 + 0xA9, 4);
    assert_text(t, s, "<0x41>", 1, 8 + '<', 8 + '0', 8 + 'x', 8 + '4', 8 + '1', 8 + '>'); /* written out, it is text */
    weir__tokenizer_free(t);
}

static void unigrams_scores_must_be_numbers(void **state) {
    (void)state;
    static vocab b;
    weir__tokenizer *t;
    weir_error *error = NULL;
    init_unigram(&b);
    b.scores[3] = 1.0 / 0.0;
    assert_int_equal(weir__tokenizer_new(s, described(&b), &t, &error), WEIR_EFORMAT);
    assert_non_null(strstr(weir_error_text(error), "piece 3"));
    weir_error_free(error);
    init_unigram(&b);
    b.v.scores = NULL;
    assert_int_equal(weir__tokenizer_new(s, described(&b), &t, NULL), WEIR_EFORMAT);
}

/* [UNK] 0, un 1, ##aff 2, ##able 3, a 4, ##a 5, ! 6, e 7, [CLS] 8, [SEP] 9. */
static void init_wordpiece(vocab *b) {
    static const weir__step normal = {.kind = WEIR__BERT, .clean_text = true, .chinese = true, .strip_accents = true, .lowercase = true};
    static const weir__step split = {.kind = WEIR__BERT_SPLIT},
                            join = {.kind = WEIR__WORDPIECE_JOIN, .content = {"##", 2}, .cleanup = true};
    static const char *const words[] = {"[UNK]", "un", "##aff", "##able", "a", "##a", "!", "e"};
    init_vocab(b, WEIR__WORDPIECE);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        add_piece(b, words[i], i == 0 ? WEIR__CONTROL : WEIR__NORMAL, 0);
    b->v.unk = 0;
    b->v.bos = add_piece(b, "[CLS]", WEIR__CONTROL, 0);
    b->v.eos = add_piece(b, "[SEP]", WEIR__CONTROL, 0);
    b->add_bos = b->add_eos = true;
    b->v.normaliser = (weir__steps){&normal, 1};
    b->v.pretokeniser = (weir__steps){&split, 1};
    b->v.decoder = (weir__steps){&join, 1};
    b->v.continuing_prefix = (weir__string){"##", 2};
    b->v.max_word = 10;
}

static void wordpiece_takes_the_longest_piece_first(void **state) {
    (void)state;
    static vocab b;
    init_wordpiece(&b);
    weir__tokenizer *t = make(&b);
    assert_text(t, s, "Unaffable", 1, 2, 3);
    assert_text(t, s, "a!aa", 4, 6, 4, 5);
    assert_text(t, s, "\xC3\x89 e\xCC\x81", 7, 7); /* accents go */
    assert_text(t, s, "unx a", 0, 4);              /* one part unknown: all of the word */
    assert_text(t, s, "aaaaaaaaaa aaaaaaaaaaa", 4, 5, 5, 5, 5, 5, 5, 5, 5, 5, 0);
    assert_text(t, s, "##a", 0, 0, 4); /* what stands for the inside of a word is no text */
    assert_ids(t, s, (&(weir__part){"a", 1, false}), 1, true, 8, 4, 9);
    assert_special(t, s, "a[SEP]a", 4, 9, 4);
    weir__tokenizer_free(t);
}

static void wordpieces_words_are_joined_with_spaces(void **state) {
    (void)state;
    static vocab b;
    init_wordpiece(&b);
    weir__tokenizer *t = make(&b);
    weir__decoder d;
    weir__decoder_init(&d, s, t, NULL, 0);
    static const int32_t ids[] = {8, 1, 2, 3, 4, 6, 0, 7, 9};
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++)
        assert_int_equal(weir__decoder_feed(&d, ids[i], NULL), WEIR_OK);
    assert_int_equal(weir__decoder_finish(&d, NULL), WEIR_OK);
    assert_int_equal(d.safe, 14);
    assert_memory_equal(d.held, "unaffable a! e", 14);
    weir__decoder_fini(&d);
    weir__tokenizer_free(t);
}

/* <unk> 0, a 1, b 2, ab 3, ##b 4, a</w> 5, ##b</w> 6, ab</w> 7. */
static void affixes_of_words_choose_the_pieces(void **state) {
    (void)state;
    static const weir__step split = {.kind = WEIR__WHITESPACE_SPLIT};
    static const char *const words[] = {"<unk>", "a", "b", "ab", "##b", "a</w>", "##b</w>", "ab</w>"};
    static vocab b;
    init_vocab(&b, WEIR__BPE);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        add_piece(&b, words[i], i == 0 ? WEIR__UNKNOWN : WEIR__NORMAL, 0);
    b.v.unk = 0;
    b.v.pretokeniser = (weir__steps){&split, 1};
    b.v.continuing_prefix = (weir__string){"##", 2};
    b.v.end_suffix = (weir__string){"</w>", 4};
    b.merges[0] = (weir__merge_pair){{"a", 1}, {"##b</w>", 7}};
    b.v.n_merges = 1;
    weir__tokenizer *t = make(&b);
    assert_text(t, s, "ab a abb", 7, 5, 1, 4, 6);
    assert_text(t, s, "cc", 0, 0);
    weir__tokenizer_free(t);
    b.v.fuse_unk = true;
    t = make(&b);
    assert_text(t, s, "cc acb", 0, 1, 0, 6);
    weir__tokenizer_free(t);
}

static void whole_chunks_go_before_merges_if_the_vocabulary_says_so(void **state) {
    (void)state;
    static vocab b;
    init_bytes(&b);
    int32_t abc = add_piece(&b, "abc", WEIR__NORMAL, 0), ab = add_merge(&b, "a", "b");
    weir__tokenizer *t = make(&b);
    assert_text(t, s, "abc", ab, 'c');
    weir__tokenizer_free(t);
    b.v.ignore_merges = true;
    t = make(&b);
    assert_text(t, s, "abc", abc);
    assert_text(t, s, "abcd", ab, 'c', 'd');
    weir__tokenizer_free(t);
}

/* ---- long texts ---- */

/* A megabyte; a quarter under sanitizers. */
static size_t long_size(void) {
    const char *sanitized = getenv("WEIR_SANITIZED");
    return sanitized && *sanitized ? 1 << 18 : 1 << 20;
}

typedef struct job {
    const weir__tokenizer *t;
    const char *unit, *tail;
    size_t tokens;
    int code;
} job;

static void *encode_long(void *data) {
    job *j = data;
    size_t unit = strlen(j->unit), tail = strlen(j->tail), size = 0, most = long_size();
    char *text = malloc(most + 64);
    for (; size + unit <= most; size += unit)
        memcpy(text + size, j->unit, unit);
    memcpy(text + size, j->tail, tail);
    weir__ids ids = {0};
    j->code = weir__tokenizer_encode(j->t, &(weir__part){text, size + tail, true}, 1, false, &ids, NULL);
    j->tokens = ids.size;
    weir__ids_free(s, &ids);
    free(text);
    return NULL;
}

static void check_long(vocab *b) {
    static const char *const texts[][2] = {{"x", ""},
                                           {" ", ""},
                                           {" ", "1"},
                                           {"\n", ""},
                                           {"\n ", "x"},
                                           {"\xF0\x9F\x99\x82", ""},
                                           {"7", ""},
                                           {"\xFF", ""},
                                           {"Z", ""},
                                           {"a b", ""},
                                           {"\xE4\xB8\xAD\xE6\x96\x87", ""},
                                           {"\xCC\x81\xCC\xA3", ""},
                                           {"-", ""},
                                           {M, "a"},
                                           {"aB", ""},
                                           {"<|", ""},
                                           {"x\xFF", ""}};
    weir__tokenizer *t = make(b);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        job j = {t, texts[i][0], texts[i][1], 0, 0};
        pthread_attr_t attributes;
        pthread_t thread;
        pthread_attr_init(&attributes);
        pthread_attr_setstacksize(&attributes, 256 << 10);
        assert_int_equal(pthread_create(&thread, &attributes, encode_long, &j), 0);
        pthread_join(thread, NULL);
        pthread_attr_destroy(&attributes);
        assert_int_equal(j.code, WEIR_OK);
        assert_true(j.tokens <= long_size() + 64);
    }
    weir__tokenizer_free(t);
}

static void tokenizer_C7_long_texts_of_every_kind_through_byte_level_bpe(void **state) {
    (void)state;
    static const weir__step steps[] = {
        {.kind = WEIR__NFC},
        {.kind = WEIR__SPLIT, .pattern = {"[\\r\\n]", 6}, .regex = true},
        {.kind = WEIR__SPLIT, .pattern = {"\\s+$", 4}, .regex = true},
        {.kind = WEIR__SPLIT,
         .pattern = {"[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+", 86},
         .regex = true},
        {.kind = WEIR__BYTE_LEVEL}};
    static vocab b;
    init_bytes(&b);
    add_merge(&b, "x", "x");
    add_merge(&b, "xx", "xx");
    add_merge(&b, "\xC4\xA0", "\xC4\xA0");
    add_piece(&b, "<|end|>", WEIR__CONTROL, 0);
    b.v.normaliser = (weir__steps){steps, 1};
    b.v.pretokeniser = (weir__steps){steps + 1, 4};
    b.v.decoder = (weir__steps){steps + 4, 1};
    check_long(&b);
}

static void tokenizer_C7_long_texts_of_every_kind_through_sentencepieces_bpe(void **state) {
    (void)state;
    static vocab b;
    init_sentencepiece(&b);
    add_piece(&b, M, WEIR__NORMAL, -1);
    add_piece(&b, M M, WEIR__NORMAL, -2);
    add_piece(&b, "xx", WEIR__NORMAL, -3);
    add_piece(&b, "a" M "b", WEIR__NORMAL, -4);
    check_long(&b);
}

static void tokenizer_C7_long_texts_of_every_kind_through_bpe_of_characters(void **state) {
    (void)state;
    static vocab b;
    init_sentencepiece(&b);
    b.v.model = WEIR__BPE;
    b.v.scores = NULL;
    add_piece(&b, M, WEIR__NORMAL, 0);
    add_piece(&b, "x", WEIR__NORMAL, 0);
    add_merge(&b, "x", "x");
    add_merge(&b, M, M);
    describe_marks(&b);
    check_long(&b);
}

static void tokenizer_C7_long_texts_of_every_kind_through_unigram(void **state) {
    (void)state;
    static const weir__step steps[] = {{.kind = WEIR__NFKC},
                                       {.kind = WEIR__REPLACE, .pattern = {" {2,}", 5}, .regex = true, .content = {" ", 1}}};
    static vocab b;
    init_unigram(&b);
    add_piece(&b, "xxxx", WEIR__NORMAL, -2);
    b.v.normaliser = (weir__steps){steps, 2};
    check_long(&b);
}

static void tokenizer_C7_long_texts_of_every_kind_through_wordpiece(void **state) {
    (void)state;
    static vocab b;
    init_wordpiece(&b);
    check_long(&b);
    b.v.max_word = SIZE_MAX; /* words without bound */
    add_piece(&b, "x", WEIR__NORMAL, 0);
    add_piece(&b, "##x", WEIR__NORMAL, 0);
    add_piece(&b, "##xx", WEIR__NORMAL, 0);
    check_long(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unigram_takes_the_best_sum),
        cmocka_unit_test(unigrams_unknown_neighbours_are_one),
        cmocka_unit_test(unigrams_scores_must_be_numbers),
        cmocka_unit_test(wordpiece_takes_the_longest_piece_first),
        cmocka_unit_test(wordpieces_words_are_joined_with_spaces),
        cmocka_unit_test(affixes_of_words_choose_the_pieces),
        cmocka_unit_test(whole_chunks_go_before_merges_if_the_vocabulary_says_so),
        cmocka_unit_test(tokenizer_C7_long_texts_of_every_kind_through_byte_level_bpe),
        cmocka_unit_test(tokenizer_C7_long_texts_of_every_kind_through_sentencepieces_bpe),
        cmocka_unit_test(tokenizer_C7_long_texts_of_every_kind_through_bpe_of_characters),
        cmocka_unit_test(tokenizer_C7_long_texts_of_every_kind_through_unigram),
        cmocka_unit_test(tokenizer_C7_long_texts_of_every_kind_through_wordpiece),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
