/* test_decoder.c: streamed text: whole characters, stop strings held back, nothing twice, nothing lost. */
#include "helper_vocab.h"

#define MARK "\xE2\x96\x81"
#define REPLACED "\xEF\xBF\xBD"
enum { BYTE_0 = 3, BOS = 1 };

static weir_system *s;
static weir__tokenizer *spm, *bpe;
static int32_t mark_hello, mark_world, comma;

static int setup(void **state) {
    (void)state;
    static vocab a, b;
    init_sentencepiece(&a);
    mark_hello = add_piece(&a, MARK "Hello", WEIR__NORMAL, -1);
    mark_world = add_piece(&a, MARK "world", WEIR__NORMAL, -2);
    comma = add_piece(&a, ",", WEIR__NORMAL, -3);
    init_bytes(&b);
    return weir_system_new(NULL, &s, NULL) || weir__tokenizer_new(s, described(&a), &spm, NULL) ||
           weir__tokenizer_new(s, described(&b), &bpe, NULL);
}

static int teardown(void **state) {
    (void)state;
    weir__tokenizer_free(spm);
    weir__tokenizer_free(bpe);
    weir_system_free(s);
    return 0;
}

/* A stream and all that it gave out. */
typedef struct stream {
    weir__decoder d;
    char out[4096];
    size_t size;
} stream;

static void start(stream *x, const weir__tokenizer *t, const weir__string *stops, size_t n) {
    weir__decoder_init(&x->d, s, t, stops, n);
    x->size = 0;
    x->out[0] = 0;
}

/* Takes what is safe; it must be whole characters. */
static void take(stream *x) {
    assert_int_equal(weir__utf8_valid(x->d.held, x->d.safe), x->d.safe);
    assert_true(x->size + x->d.safe < sizeof x->out);
    if (x->d.safe > 0)
        memcpy(x->out + x->size, x->d.held, x->d.safe);
    x->size += x->d.safe;
    x->out[x->size] = 0;
    weir__decoder_take(&x->d);
    assert_int_equal(x->d.safe, 0);
}

static const char *feed(stream *x, int32_t id) {
    assert_int_equal(weir__decoder_feed(&x->d, id, NULL), WEIR_OK);
    take(x);
    return x->out;
}

static const char *feed_text(stream *x, const char *text) {
    assert_int_equal(weir__decoder_feed_bytes(&x->d, text, strlen(text), NULL), WEIR_OK);
    take(x);
    return x->out;
}

static const char *finish(stream *x) {
    assert_int_equal(weir__decoder_finish(&x->d, NULL), WEIR_OK);
    take(x);
    weir__decoder_fini(&x->d);
    return x->out;
}

static void sentencepieces_first_space_is_left_out(void **state) {
    (void)state;
    stream x;
    start(&x, spm, NULL, 0);
    feed(&x, BOS);
    assert_string_equal(feed(&x, mark_hello), "Hello");
    assert_string_equal(feed(&x, comma), "Hello,");
    assert_string_equal(feed(&x, mark_world), "Hello, world");
    finish(&x);
    start(&x, spm, NULL, 0);
    feed(&x, comma); /* no mark at the beginning: the next one is a space */
    assert_string_equal(feed(&x, mark_world), ", world");
    finish(&x);
    start(&x, spm, NULL, 0);
    assert_string_equal(feed(&x, BYTE_0 + ' '), ""); /* however it is written */
    assert_string_equal(feed(&x, BYTE_0 + ' '), " ");
    finish(&x);
}

static void byte_pieces_make_characters(void **state) {
    (void)state;
    stream x;
    start(&x, spm, NULL, 0);
    assert_string_equal(feed(&x, BYTE_0 + 0xF0), "");
    assert_string_equal(feed(&x, BYTE_0 + 0x9F), "");
    assert_string_equal(feed(&x, BYTE_0 + 0xA6), "");
    assert_string_equal(feed(&x, BYTE_0 + 0x99), "\xF0\x9F\xA6\x99");
    finish(&x);
}

static void streaming_D1(void **state) {
    (void)state;
    static const struct {
        const char *in, *out;
    } rows[] = {
        {"\xFF", REPLACED},
        {"a\xFF\xFE"
         "b",
         "a" REPLACED REPLACED "b"},
        {"\xC3(", REPLACED "("},
        {"\xE2\x82"
         "A",
         REPLACED "A"}, /* one for both bytes of a cut character */
        {"\xF0\x9F\x98"
         "A",
         REPLACED "A"},
        {"\xF0\x9F\xC3\xA9", REPLACED "\xC3\xA9"},
        {"\xED\xA0\x80", REPLACED REPLACED REPLACED}, /* a surrogate: no byte of it begins a character that the next one continues */
        {"\xE0\x80\x80", REPLACED REPLACED REPLACED},
        {"\xF4\x90\x80\x80", REPLACED REPLACED REPLACED REPLACED},
        {"\xC0\xAF", REPLACED REPLACED},
        {"\xE2\x82", REPLACED}, /* the end cuts one */
        {"\xF0\x9F\x98\x80\xF0\x9F", "\xF0\x9F\x98\x80" REPLACED},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        stream x;
        start(&x, bpe, NULL, 0);
        for (const char *p = rows[i].in; *p; p++)
            feed(&x, (unsigned char)*p);
        assert_string_equal(finish(&x), rows[i].out);
    }
}

static void streaming_D3(void **state) {
    (void)state;
    stream x;
    start(&x, bpe, NULL, 0);
    assert_string_equal(feed(&x, 0xC4), "");
    assert_string_equal(feed(&x, 0x8F), "\xC4\x8F");
    assert_string_equal(finish(&x), "\xC4\x8F");
}

static void streaming_D7(void **state) {
    (void)state;
    static const weir__string stop[] = {{"DEFGHIJ", 7}};
    stream x;
    start(&x, bpe, stop, 1);
    assert_string_equal(feed_text(&x, "ABC"), "ABC");
    assert_string_equal(feed_text(&x, "DEF"), "ABC");
    assert_string_equal(feed_text(&x, "G"), "ABC");
    assert_string_equal(feed_text(&x, "HI"), "ABC");
    assert_string_equal(feed_text(&x, "JKL"), "ABC");
    assert_true(x.d.stopped);
    assert_string_equal(feed_text(&x, "more"), "ABC");
    assert_string_equal(finish(&x), "ABC");
    start(&x, bpe, stop, 1);
    feed_text(&x, "DEFG");
    assert_string_equal(feed_text(&x, "Hx"), "DEFGHx"); /* given out as soon as it cannot be the stop string */
    assert_string_equal(feed_text(&x, "DEDEFG"), "DEFGHxDE");
    assert_string_equal(finish(&x), "DEFGHxDEDEFG");
    assert_false(x.d.stopped);
}

static void streaming_D9(void **state) {
    (void)state;
    static const weir__string stops[] = {{"\n", 1}, {"Alice:", 6}};
    stream x;
    start(&x, bpe, stops, 2);
    assert_string_equal(feed_text(&x, " Alice"), " ");
    assert_string_equal(feed_text(&x, "!"), " Alice!");
    assert_string_equal(feed_text(&x, " Al"), " Alice! ");
    assert_string_equal(feed_text(&x, "\nx"), " Alice! Al");
    assert_true(x.d.stopped);
    assert_string_equal(finish(&x), " Alice! Al");
}

static void streaming_D11(void **state) {
    (void)state;
    static const weir__string stop[] = {{"Hello", 5}};
    stream x;
    start(&x, spm, stop, 1);
    assert_string_equal(feed(&x, mark_hello), "");
    assert_true(x.d.stopped);
    assert_int_equal(x.size, 0);
    assert_string_equal(finish(&x), "");
}

static void the_stop_string_that_begins_first_wins(void **state) {
    (void)state;
    static const weir__string stops[] = {{"BC", 2}, {"ABCD", 4}, {"AB", 0}};
    stream x;
    start(&x, bpe, stops, 3); /* an empty one is none */
    assert_string_equal(feed_text(&x, "xABC"), "x");
    assert_false(x.d.stopped);
    assert_string_equal(feed_text(&x, "D"), "x");
    assert_true(x.d.stopped);
    finish(&x);
    start(&x, bpe, stops, 2);
    feed_text(&x, "xABC");
    assert_string_equal(feed_text(&x, "E"), "xA");
    assert_true(x.d.stopped);
    finish(&x);
    start(&x, bpe, stops, 2);
    feed_text(&x, "xABC");
    assert_string_equal(finish(&x), "xA"); /* the end decides too */
    assert_true(x.d.stopped);
}

static void a_stop_string_begins_where_a_character_does(void **state) {
    (void)state;
    static const weir__string stops[] = {{"\xA9", 1}, {"b\xC3", 2}};
    stream x;
    start(&x, bpe, stops, 2);
    assert_string_equal(feed_text(&x, "\xC3\xA9"), "\xC3\xA9");
    assert_string_equal(feed_text(&x, "ab\xC3\xA9"), "\xC3\xA9"
                                                     "a");
    assert_true(x.d.stopped);
    finish(&x);
}

static void tokenizer_C17_an_answer_begins_behind_its_prompt(void **state) {
    (void)state;
    stream x;
    static const int32_t prompt[] = {'H', 'i', 0xF0, 0x9F};
    start(&x, bpe, NULL, 0);
    assert_int_equal(weir__decoder_context(&x.d, prompt, 4, NULL), WEIR_OK);
    take(&x);
    assert_string_equal(x.out, "");
    feed(&x, 0x98);
    assert_string_equal(feed(&x, 0x80), "\xF0\x9F\x98\x80");
    assert_string_equal(feed(&x, '!'), "\xF0\x9F\x98\x80!");
    finish(&x);
    /* Half a character that is not completed is the prompt's, not new text. */
    start(&x, bpe, NULL, 0);
    assert_int_equal(weir__decoder_context(&x.d, prompt, 4, NULL), WEIR_OK);
    assert_string_equal(feed(&x, 'a'), "a");
    finish(&x);
    start(&x, bpe, NULL, 0);
    assert_int_equal(weir__decoder_context(&x.d, prompt, 4, NULL), WEIR_OK);
    assert_string_equal(finish(&x), "");
    /* The first space of what continues a text is a space. */
    start(&x, spm, NULL, 0);
    assert_int_equal(weir__decoder_context(&x.d, (int32_t[]){BOS, mark_hello}, 2, NULL), WEIR_OK);
    assert_string_equal(feed(&x, mark_world), " world");
    finish(&x);
    start(&x, spm, NULL, 0);
    assert_int_equal(weir__decoder_context(&x.d, (int32_t[]){BOS}, 1, NULL), WEIR_OK);
    assert_string_equal(feed(&x, mark_world), "world");
    finish(&x);
    /* Stop strings are looked for in new text only. */
    static const weir__string stop[] = {{"Hi", 2}};
    start(&x, bpe, stop, 1);
    assert_int_equal(weir__decoder_context(&x.d, prompt, 2, NULL), WEIR_OK);
    assert_string_equal(feed(&x, '!'), "!");
    finish(&x);
}

static void tokens_outside_of_the_vocabulary_are_refused(void **state) {
    (void)state;
    stream x;
    weir_error *error = NULL;
    start(&x, bpe, NULL, 0);
    assert_int_equal(weir__decoder_feed(&x.d, 256, &error), WEIR_ETOKEN);
    assert_non_null(strstr(weir_error_text(error), "256"));
    weir_error_free(error);
    assert_int_equal(weir__decoder_feed(&x.d, -1, NULL), WEIR_ETOKEN);
    finish(&x);
}

static uint32_t next_random(uint32_t *r) {
    return *r = *r * 1664525u + 1013904223u;
}
static uint32_t below(uint32_t *r, uint32_t n) {
    return (uint32_t)((uint64_t)next_random(r) * n >> 32);
}

/* Whether n bytes begin a character: by code points that fillings of the missing bytes would give, not by byte classes. */
static bool begins(const unsigned char *p, size_t n, size_t length) {
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    uint32_t low = p[0] & (0x7Fu >> length), high = low;
    for (size_t i = 1; i < length; i++) {
        if (i < n && (p[i] & 0xC0) != 0x80)
            return false;
        low = low << 6 | (i < n ? p[i] & 0x3Fu : 0);
        high = high << 6 | (i < n ? p[i] & 0x3Fu : 0x3F);
    }
    low = low < least[length] ? least[length] : low;
    high = high > 0x10FFFF ? 0x10FFFF : high;
    return low <= high && !(low >= 0xD800 && high <= 0xDFFF);
}

/* The whole text at once: characters, and U+FFFD for each maximal part that begins one but ends. */
static size_t decode_whole(const unsigned char *p, size_t n, char *to) {
    size_t size = 0;
    for (size_t i = 0; i < n;) {
        size_t length = p[i] < 0x80 ? 1 : p[i] < 0xC0 ? 0 : p[i] < 0xE0 ? 2 : p[i] < 0xF0 ? 3 : p[i] < 0xF8 ? 4 : 0, there = 1;
        if (length == 1 || (length > 1 && i + length <= n && begins(p + i, length, length))) {
            memcpy(to + size, p + i, length);
            size += length;
            i += length;
            continue;
        }
        while (length > 1 && there + 1 < length && i + there < n && begins(p + i, there + 1, length))
            there++;
        memcpy(to + size, REPLACED, 3);
        size += 3;
        i += there;
    }
    return size;
}

static size_t cut_at_stop(const char *text, size_t size, const weir__string *stops, size_t n) {
    for (size_t i = 0; i < size; i++) {
        for (size_t k = 0; k < n; k++) {
            if (stops[k].size <= size - i && memcmp(text + i, stops[k].data, stops[k].size) == 0)
                return i;
        }
    }
    return size;
}

static size_t random_bytes(uint32_t *r, unsigned char *p) {
    static const char *const parts[] = {
        "a",        "b",    "ab",   "\n",           "\xC3\xA9", "\xC3", "\xE2\x82\xAC", "\xE2\x82", "\xF0\x9F\x98\x80",
        "\xF0\x9F", "\xFF", "\x80", "\xED\xA0\x80", "\xE0\x80", "aab",  "\xF4\x90"};
    size_t n = 0;
    for (uint32_t left = below(r, 24); left > 0; left--) {
        const char *part = parts[below(r, sizeof parts / sizeof parts[0])];
        memcpy(p + n, part, strlen(part));
        n += strlen(part);
    }
    return n;
}

static void text_given_out_is_the_text_of_all_tokens_however_it_is_split(void **state) {
    (void)state;
    static const weir__string stops[] = {{"aab", 3},
                                         {"ab\n", 3},
                                         {"\xC3\xA9"
                                          "a",
                                          3},
                                         {"b\xEF\xBF\xBD", 4}};
    uint32_t r = 1;
    for (int round = 0; round < 20000; round++) {
        unsigned char bytes[256];
        char want[1024];
        stream x;
        size_t n = random_bytes(&r, bytes), n_stops = below(&r, 5);
        size_t size = cut_at_stop(want, decode_whole(bytes, n, want), stops, n_stops);
        start(&x, bpe, stops, n_stops);
        for (size_t at = 0; at < n;) {
            size_t piece = 1 + below(&r, 6);
            piece = piece > n - at ? n - at : piece;
            assert_int_equal(weir__decoder_feed_bytes(&x.d, (char *)bytes + at, piece, NULL), WEIR_OK);
            if (below(&r, 3) > 0)
                take(&x);
            at += piece;
        }
        finish(&x);
        if (x.size != size || memcmp(x.out, want, size) != 0)
            fail_msg("round %d: \"%s\" is not \"%.*s\"", round, x.out, (int)size, want);
    }
}

static void without_memory_nothing_is_lost(void **state) {
    (void)state;
    stream x;
    uint64_t before = held_bytes(s);
    start(&x, bpe, NULL, 0);
    weir__inject_arm(s, "ALLOC", 1, 1);
    assert_int_equal(weir__decoder_feed(&x.d, 'a', NULL), WEIR_ENOMEM);
    assert_string_equal(feed(&x, 'a'), "a"); /* the same token again */
    assert_string_equal(finish(&x), "a");
    assert_int_equal(held_bytes(s), before);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sentencepieces_first_space_is_left_out),
        cmocka_unit_test(byte_pieces_make_characters),
        cmocka_unit_test(streaming_D1),
        cmocka_unit_test(streaming_D3),
        cmocka_unit_test(streaming_D7),
        cmocka_unit_test(streaming_D9),
        cmocka_unit_test(streaming_D11),
        cmocka_unit_test(the_stop_string_that_begins_first_wins),
        cmocka_unit_test(a_stop_string_begins_where_a_character_does),
        cmocka_unit_test(tokenizer_C17_an_answer_begins_behind_its_prompt),
        cmocka_unit_test(tokens_outside_of_the_vocabulary_are_refused),
        cmocka_unit_test(text_given_out_is_the_text_of_all_tokens_however_it_is_split),
        cmocka_unit_test(without_memory_nothing_is_lost),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
