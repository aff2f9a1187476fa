/* utf8.c: UTF-8 as Unicode defines it (no overlong forms, no surrogates, nothing above U+10FFFF), and names made fit to be shown. */
#include "text.h"

#include <stdio.h>
#include <string.h>

static bool continues(unsigned char c) {
    return (c & 0xC0) == 0x80;
}

/* Bounds of the second byte after `lead` (Unicode Standard, table 3-7). */
static bool second_fits(unsigned char lead, unsigned char c) {
    switch (lead) {
    case 0xE0:
        return c >= 0xA0 && c <= 0xBF;
    case 0xED:
        return c >= 0x80 && c <= 0x9F;
    case 0xF0:
        return c >= 0x90 && c <= 0xBF;
    case 0xF4:
        return c >= 0x80 && c <= 0x8F;
    default:
        return continues(c);
    }
}

int weir__utf8_step(const char *p, size_t n) {
    const unsigned char *u = (const unsigned char *)p;
    if (n == 0)
        return -1;
    if (u[0] < 0x80)
        return 1;
    if (u[0] < 0xC2 || u[0] > 0xF4)
        return 0;
    size_t length = u[0] < 0xE0 ? 2 : u[0] < 0xF0 ? 3 : 4;
    for (size_t i = 1; i < length; i++) {
        if (i == n)
            return -1;
        if (i == 1 ? !second_fits(u[0], u[1]) : !continues(u[i]))
            return 0;
    }
    return (int)length;
}

size_t weir__utf8_valid(const char *text, size_t n) {
    size_t i = 0;
    while (i < n) {
        uint64_t word;
        if (n - i >= sizeof word) {
            memcpy(&word, text + i, sizeof word);
            if (!(word & UINT64_C(0x8080808080808080))) {
                i += sizeof word;
                continue;
            }
        }
        int step = weir__utf8_step(text + i, n - i);
        if (step <= 0)
            break;
        i += (size_t)step;
    }
    return i;
}

char *weir__quote(char *to, size_t room, const char *text, size_t n) {
    size_t used = 0;
    for (size_t i = 0; i < n;) {
        int step = weir__utf8_step(text + i, n - i);
        bool plain = step > 1 || (step == 1 && (unsigned char)text[i] >= 0x20 && text[i] != 0x7F);
        size_t width = plain ? (size_t)step : 4;
        if (used + width + 4 > room) {
            memcpy(to + used, "...", 3);
            used += 3;
            break;
        }
        if (plain)
            memcpy(to + used, text + i, width);
        else
            snprintf(to + used, 5, "\\x%02X", (unsigned char)text[i]);
        used += width;
        i += plain ? width : 1;
    }
    to[used] = 0;
    return to;
}

void weir__enumerate(char *to, size_t room, const char *word) {
    size_t used = strlen(to), n = strlen(word), comma = used > 0 ? 2 : 0;
    if (used + comma + n >= room)
        return;
    memcpy(to + used, ", ", comma);
    memcpy(to + used + comma, word, n + 1);
}
