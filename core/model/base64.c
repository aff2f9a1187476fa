/* base64.c: base64.h. */
#include "base64.h"

static int digit(char c) {
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

size_t weir__base64_decode(const char *text, size_t n, unsigned char *to) {
    size_t padding = n > 0 && text[n - 1] == '=' ? 1 + (n > 1 && text[n - 2] == '=') : 0, used = 0;
    if (n % 4 != 0)
        return (size_t)-1;
    for (size_t i = 0; i < n; i += 4) {
        unsigned word = 0;
        for (size_t k = i; k < i + 4; k++) {
            int value = k >= n - padding ? 0 : digit(text[k]);
            if (value < 0)
                return (size_t)-1;
            word = word << 6 | (unsigned)value;
        }
        for (int shift = 16; shift >= 0; shift -= 8)
            to[used++] = (unsigned char)(word >> shift);
    }
    return used - padding;
}

size_t weir__base64_encode(const unsigned char *bytes, size_t n, char *to) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t used = 0;
    for (size_t i = 0; i < n; i += 3) {
        size_t left = n - i < 3 ? n - i : 3;
        unsigned word = (unsigned)bytes[i] << 16 | (left > 1 ? (unsigned)bytes[i + 1] << 8 : 0) | (left > 2 ? bytes[i + 2] : 0);
        for (size_t k = 0; k < 4; k++)
            to[used++] = k > left ? '=' : digits[word >> (18 - 6 * k) & 63];
    }
    return used;
}
