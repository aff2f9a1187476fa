/* unicode.c: the classes and mappings of unicode.h. */
#include "unicode.h"

#include <string.h>
#include <utf8proc.h>

enum { ASCII = 0x80 };

int32_t weir__char_at(const char *p, size_t n, size_t *length) {
    const unsigned char *u = (const unsigned char *)p;
    if (u[0] < ASCII) {
        *length = 1;
        return u[0];
    }
    int step = weir__utf8_step(p, n);
    *length = step > 0 ? (size_t)step : 1;
    switch (step) {
    case 2:
        return (u[0] & 0x1F) << 6 | (u[1] & 0x3F);
    case 3:
        return (u[0] & 0x0F) << 12 | (u[1] & 0x3F) << 6 | (u[2] & 0x3F);
    case 4:
        return (u[0] & 0x07) << 18 | (u[1] & 0x3F) << 12 | (u[2] & 0x3F) << 6 | (u[3] & 0x3F);
    default:
        return -1;
    }
}

size_t weir__char_put(char *to, int32_t c) {
    if (c < ASCII) {
        to[0] = (char)c;
        return 1;
    }
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char first[5] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (size_t i = n; i-- > 1; c >>= 6)
        to[i] = (char)(0x80 | (c & 0x3F));
    to[0] = (char)(first[n] | c);
    return n;
}

static int category(int32_t c) {
    return (int)utf8proc_category(c);
}

bool weir__is_space(int32_t c) {
    if (c < ASCII)
        return c == ' ' || (c >= '\t' && c <= '\r');
    int k = category(c);
    return c == 0x85 || (k >= UTF8PROC_CATEGORY_ZS && k <= UTF8PROC_CATEGORY_ZP);
}

bool weir__is_numeric(int32_t c) {
    if (c < ASCII)
        return c >= '0' && c <= '9';
    int k = category(c);
    return k >= UTF8PROC_CATEGORY_ND && k <= UTF8PROC_CATEGORY_NO;
}

bool weir__is_punctuation(int32_t c) {
    if (c < ASCII)
        return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
    int k = category(c);
    return k >= UTF8PROC_CATEGORY_PC && k <= UTF8PROC_CATEGORY_PO;
}

/* Symbols of category So that are Alphabetic. */
static bool is_circled_letter(int32_t c) {
    return (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) || (c >= 0x1F150 && c <= 0x1F169) ||
           (c >= 0x1F170 && c <= 0x1F189);
}

bool weir__is_word(int32_t c) {
    if (c < ASCII)
        return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
    int k = category(c);
    return (k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_NL) || k == UTF8PROC_CATEGORY_PC || c == 0x200C || c == 0x200D ||
           is_circled_letter(c);
}

bool weir__is_mark(int32_t c) {
    if (c < ASCII)
        return false;
    int k = category(c);
    return k >= UTF8PROC_CATEGORY_MN && k <= UTF8PROC_CATEGORY_ME;
}

bool weir__is_nonspacing(int32_t c) {
    return c >= ASCII && category(c) == UTF8PROC_CATEGORY_MN;
}

bool weir__is_other(int32_t c) {
    if (c < 0)
        return false;
    int k = category(c);
    return k >= UTF8PROC_CATEGORY_CC;
}

bool weir__is_ideograph(int32_t c) {
    static const int32_t ranges[][2] = {{0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xF900, 0xFAFF},   {0x20000, 0x2A6DF},
                                        {0x2A700, 0x2B73F}, {0x2B740, 0x2B81F}, {0x2B920, 0x2CEAF}, {0x2F800, 0x2FA1F}};
    bool in = false;
    for (size_t i = 0; c >= 0x3400 && i < sizeof ranges / sizeof ranges[0]; i++)
        in |= c >= ranges[i][0] && c <= ranges[i][1];
    return in;
}

int32_t weir__char_lower(int32_t c) {
    if (c < ASCII)
        return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c;
    return utf8proc_tolower(c);
}

size_t weir__decompose(int32_t c, bool compatible, int32_t *to) {
    int last = 0;
    utf8proc_option_t options = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | (compatible ? UTF8PROC_COMPAT : 0);
    utf8proc_ssize_t n = c < ASCII ? 0 : utf8proc_decompose_char(c, to, WEIR__DECOMPOSED, options, &last);
    if (n > 0 && n <= WEIR__DECOMPOSED)
        return (size_t)n;
    to[0] = c;
    return 1;
}

uint8_t weir__combining_class(int32_t c) {
    return c < 0x300 ? 0 : (uint8_t)utf8proc_get_property(c)->combining_class;
}

size_t weir__compose(int32_t *chars, size_t n) {
    utf8proc_ssize_t left = utf8proc_normalize_utf32(chars, (utf8proc_ssize_t)n, UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    return left >= 0 ? (size_t)left : n;
}

bool weir__grapheme_ends(int32_t a, int32_t b, int32_t *state) {
    return utf8proc_grapheme_break_stateful(a, b, state);
}
