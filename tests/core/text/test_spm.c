/* test_spm.c: SentencePiece's byte-pair encoding on a vocabulary made here: scores, the space before the text, bytes for what is no piece. */
#include "helper_vocab.h"

#include <math.h>

#define M "\xE2\x96\x81" /* U+2581 */
enum { BYTE_0 = 3, UNK = 0, BOS = 1, EOS = 2 };

static weir_system *s;
static weir__tokenizer *t;
static int32_t mark, marks, mark_a, a, b_, ab, ba, aba, z, zz, zzzz, e_acute;

static void build(vocab *b) {
    init_sentencepiece(b);
    mark = add_piece(b, M, WEIR__NORMAL, -50);
    marks = add_piece(b, M M, WEIR__NORMAL, -40);
    mark_a = add_piece(b, M "a", WEIR__NORMAL, -3);
    a = add_piece(b, "a", WEIR__NORMAL, -51);
    b_ = add_piece(b, "b", WEIR__NORMAL, -52);
    ab = add_piece(b, "ab", WEIR__NORMAL, -5);
    ba = add_piece(b, "ba", WEIR__NORMAL, -5);
    aba = add_piece(b, "aba", WEIR__NORMAL, -6);
    z = add_piece(b, "Z", WEIR__NORMAL, -60);
    zz = add_piece(b, "ZZ", WEIR__NORMAL, -7);
    zzzz = add_piece(b, "ZZZZ", WEIR__NORMAL, -8);
    e_acute = add_piece(b, "\xC3\xA9", WEIR__NORMAL, -61);
}

static int setup(void **state) {
    (void)state;
    static vocab b;
    build(&b);
    return weir_system_new(NULL, &s, NULL) || weir__tokenizer_new(s, described(&b), &t, NULL);
}

static int teardown(void **state) {
    (void)state;
    weir__tokenizer_free(t);
    weir_system_free(s);
    return 0;
}

static void the_best_score_merges_first_then_the_left(void **state) {
    (void)state;
    assert_text(t, s, "aba", mark_a, ba);    /* "space a" scores best */
    assert_text(t, s, "Zaba", mark, z, aba); /* equal scores: "a b" is further left than "b a" */
    assert_text(t, s, "bab", mark, ba, b_);
    assert_text(t, s, "ZZZZZ", mark, zzzz, z);
}

static void spaces_are_marks(void **state) {
    (void)state;
    assert_text(t, s, " ", marks);
    assert_text(t, s, "  ", marks, mark);
    assert_text(t, s, "a a", mark_a, mark_a);
    assert_text(t, s, "a   a ", mark_a, marks, mark_a, mark);
}

static void what_is_no_piece_becomes_bytes(void **state) {
    (void)state;
    assert_text(t, s, "a\n", mark_a, BYTE_0 + '\n');
    assert_text(t, s, "\xC3\xA9", mark, e_acute);
    assert_text(t, s, "\xF0\x9F\xA6\x99", mark, BYTE_0 + 0xF0, BYTE_0 + 0x9F, BYTE_0 + 0xA6, BYTE_0 + 0x99);
    assert_text(t, s, "a\xFF\xC3", mark_a, BYTE_0 + 0xFF, BYTE_0 + 0xC3);
}

static void tokenizer_C3_a_space_after_a_special_piece(void **state) {
    (void)state;
    /* The space goes before each text that follows a special piece, if the vocabulary wants one. */
    assert_special(t, s, "<s>a", BOS, mark_a);
    assert_special(t, s, "a</s>a", mark_a, EOS, mark_a);
    static vocab b;
    weir__tokenizer *bare;
    build(&b);
    b.add_space_prefix = false;
    assert_int_equal(weir__tokenizer_new(s, described(&b), &bare, NULL), WEIR_OK);
    assert_special(bare, s, "<s>a", BOS, a);
    assert_text(bare, s, "a a", a, mark_a);
    weir__tokenizer_free(bare);
}

static void tokenizer_C15_a_users_text_stays_text(void **state) {
    (void)state;
    static vocab b;
    weir__tokenizer *evil;
    build(&b);
    int32_t less = add_piece(&b, "<", WEIR__NORMAL, -70), rest = add_piece(&b, "s>", WEIR__NORMAL, -9);
    add_piece(&b, "0x41>", WEIR__NORMAL, -9);
    assert_int_equal(weir__tokenizer_new(s, described(&b), &evil, NULL), WEIR_OK);
    /* "<" and "s>" are pieces, and so is "<s>": but text must not become it, nor a byte piece written out. */
    assert_text(evil, s, "<s>", mark, less, rest);
    weir__ids ids = {0};
    assert_int_equal(weir__tokenizer_encode(evil, &(weir__part){"<0x41><unk></s>", 15, false}, 1, false, &ids, NULL), WEIR_OK);
    for (size_t i = 0; i < ids.size; i++)
        assert_true(ids.data[i] != BYTE_0 + 0x41 && ids.data[i] != UNK && ids.data[i] != EOS && ids.data[i] != BOS);
    weir__ids_free(s, &ids);
    weir__tokenizer_free(evil);
}

static void pieces_with_a_mark_inside_keep_texts_whole(void **state) {
    (void)state;
    static vocab b;
    weir__tokenizer *across;
    build(&b);
    int32_t a_b = add_piece(&b, "a" M "b", WEIR__NORMAL, -1), a_mark = add_piece(&b, "a" M, WEIR__NORMAL, -2);
    assert_int_equal(weir__tokenizer_new(s, described(&b), &across, NULL), WEIR_OK);
    assert_text(across, s, "Za b", mark, z, a_b);
    assert_text(across, s, "Za Z", mark, z, a_mark, z);
    weir__tokenizer_free(across);
}

static void beginning_is_added(void **state) {
    (void)state;
    assert_ids(t, s, (&(weir__part){"a", 1, false}), 1, true, BOS, mark_a);
    assert_ids(t, s, (&(weir__part){"", 0, false}), 1, true, BOS);
}

static void long_runs(void **state) {
    (void)state;
    enum { N = 1 << 20 };
    char *text = malloc(N);
    weir__ids ids = {0};
    static const struct {
        char c;
        size_t tokens;
    } rows[] = {{'Z', 1 + N / 4}, {' ', N / 2 + 1}, {'\n', 1 + N}, {'x', 1 + N}};
    for (size_t i = 0; i < 4; i++) {
        memset(text, rows[i].c, N);
        ids.size = 0;
        assert_int_equal(weir__tokenizer_encode(t, &(weir__part){text, N, true}, 1, false, &ids, NULL), WEIR_OK);
        assert_int_equal(ids.size, rows[i].tokens);
    }
    weir__ids_free(s, &ids);
    free(text);
}

static void pieces_decode_to_their_text(void **state) {
    (void)state;
    size_t size;
    assert_memory_equal(weir__tokenizer_bytes(t, mark_a, false, &size), " a", 2);
    assert_int_equal(size, 2);
    for (int c = 0; c < 256; c++) {
        assert_int_equal((unsigned char)*weir__tokenizer_bytes(t, BYTE_0 + c, false, &size), c);
        assert_int_equal(size, 1);
    }
    weir__tokenizer_bytes(t, BOS, false, &size);
    assert_int_equal(size, 0);
    assert_memory_equal(weir__tokenizer_bytes(t, BOS, true, &size), "<s>", 3);
}

static void without_bytes_there_is_the_unknown_piece_or_an_error(void **state) {
    (void)state;
    static vocab b;
    weir__tokenizer *few;
    weir_error *error = NULL;
    weir__ids ids = {0};
    init_vocab(&b, WEIR__SPM);
    b.v.unk = add_piece(&b, "<unk>", WEIR__UNKNOWN, 0);
    add_piece(&b, "a", WEIR__NORMAL, 0);
    assert_int_equal(weir__tokenizer_new(s, described(&b), &few, NULL), WEIR_OK);
    assert_text(few, s, "a\xC3\xA9", 1, 0);
    weir__tokenizer_free(few);
    b.v.unk = -1;
    assert_int_equal(weir__tokenizer_new(s, described(&b), &few, NULL), WEIR_OK);
    assert_int_equal(weir__tokenizer_encode(few, &(weir__part){"a", 1, false}, 1, false, &ids, NULL), WEIR_OK);
    assert_int_equal(weir__tokenizer_encode(few, &(weir__part){"aa\xC3\xA9", 4, false}, 1, false, &ids, &error), WEIR_EINVAL);
    assert_non_null(strstr(weir_error_text(error), "\xC3\xA9"));
    assert_int_equal(ids.size, 1); /* what was there before */
    weir_error_free(error);
    weir__ids_free(s, &ids);
    weir__tokenizer_free(few);
}

static void strange_scores_are_survived(void **state) {
    (void)state;
    static vocab b;
    weir__tokenizer *odd;
    build(&b);
    b.scores[ab] = NAN;
    b.scores[ba] = -INFINITY;
    b.scores[aba] = INFINITY;
    assert_int_equal(weir__tokenizer_new(s, described(&b), &odd, NULL), WEIR_OK);
    assert_text(odd, s, "Zabb", mark, z, ab, b_);
    assert_text(odd, s, "Zaba", mark, z, aba);
    weir__tokenizer_free(odd);
    build(&b);
    b.v.scores = NULL;
    assert_int_equal(weir__tokenizer_new(s, described(&b), &odd, NULL), WEIR_EFORMAT);
    build(&b);
    b.pieces[BYTE_0 + 5] = (weir__string){"<0x5>", 5};
    assert_int_equal(weir__tokenizer_new(s, described(&b), &odd, NULL), WEIR_EFORMAT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_best_score_merges_first_then_the_left),
        cmocka_unit_test(spaces_are_marks),
        cmocka_unit_test(what_is_no_piece_becomes_bytes),
        cmocka_unit_test(tokenizer_C3_a_space_after_a_special_piece),
        cmocka_unit_test(tokenizer_C15_a_users_text_stays_text),
        cmocka_unit_test(pieces_with_a_mark_inside_keep_texts_whole),
        cmocka_unit_test(beginning_is_added),
        cmocka_unit_test(long_runs),
        cmocka_unit_test(pieces_decode_to_their_text),
        cmocka_unit_test(without_bytes_there_is_the_unknown_piece_or_an_error),
        cmocka_unit_test(strange_scores_are_survived),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
