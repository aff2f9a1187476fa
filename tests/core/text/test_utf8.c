/* test_utf8.c: what is a character of UTF-8, what may become one, what never will; names fit to be shown. */
#include "../../../core/text/text.h"
#include "test.h"

static int encode(uint32_t c, char *p) {
    if (c < 0x80) {
        p[0] = (char)c;
        return 1;
    }
    int n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (int i = n - 1; i > 0; i--, c >>= 6)
        p[i] = (char)(0x80 | (c & 0x3F));
    p[0] = (char)((0xF00 >> n) | c);
    return n;
}

static void every_code_point_and_its_beginnings(void **state) {
    (void)state;
    for (uint32_t c = 0; c < 0x110000; c++) {
        char p[4];
        int n = encode(c, p);
        bool surrogate = c >= 0xD800 && c < 0xE000;
        assert_int_equal(weir__utf8_step(p, (size_t)n), surrogate ? 0 : n);
        for (int k = 1; k < n; k++)
            assert_int_equal(weir__utf8_step(p, (size_t)k), surrogate && k > 1 ? 0 : -1);
    }
}

static void what_is_never_a_character(void **state) {
    (void)state;
    static const char *const bad[] = {"\x80",
                                      "\xBF",
                                      "\xC0\x80",
                                      "\xC1\xBF",
                                      "\xE0\x80\x80",
                                      "\xE0\x9F\xBF",
                                      "\xF0\x80\x80\x80",
                                      "\xF0\x8F\xBF\xBF",
                                      "\xF4\x90\x80\x80",
                                      "\xF5\x80\x80\x80",
                                      "\xFF",
                                      "\xC3"
                                      "A",
                                      "\xE2\x82"
                                      "A",
                                      "\xF0\x9F\x98"
                                      "A"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(weir__utf8_step(bad[i], strlen(bad[i])), 0);
    assert_int_equal(weir__utf8_step("", 0), -1);
}

static void the_valid_part_ends_at_the_first_bad_byte(void **state) {
    (void)state;
    char text[64];
    for (size_t at = 0; at < 40; at++) {
        memset(text, 'a', sizeof text);
        text[at] = (char)0xFF;
        assert_int_equal(weir__utf8_valid(text, 40), at);
    }
    assert_int_equal(weir__utf8_valid("abc\xC3\xA9 \xE2\x82", 8), 6);
}

static void names_are_quoted(void **state) {
    (void)state;
    char to[16];
    assert_string_equal(weir__quote(to, sizeof to, "plain", 5), "plain");
    assert_string_equal(weir__quote(to, sizeof to, "\xC3\xA9\x01\xFF", 4), "\xC3\xA9\\x01\\xFF");
    assert_string_equal(weir__quote(to, sizeof to, "", 0), "");
    assert_string_equal(weir__quote(to, sizeof to, "0123456789abcdefgh", 18), "0123456789ab...");
    assert_string_equal(weir__quote(to, 8, "\xFF\xFF\xFF", 3), "\\xFF...");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_point_and_its_beginnings),
        cmocka_unit_test(what_is_never_a_character),
        cmocka_unit_test(the_valid_part_ends_at_the_first_bad_byte),
        cmocka_unit_test(names_are_quoted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
