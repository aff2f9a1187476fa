/* json_value.c: strings with their escapes, numbers, booleans and null of a JSON text (json.h). Knows nothing of objects and arrays. */
#include "json_internal.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A number that is written longer is refused: a double needs 17 digits, and exact conversion costs more than linear time. */
enum { NUMBER_BYTES = 512 };

/* ---- strings ---- */

/* Value of 4 hexadecimal digits, -1 if they are none. */
static int32_t hex4(const char *p, size_t n) {
    int32_t value = 0;
    if (n < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        char c = p[i];
        int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
        if (digit < 0)
            return -1;
        value = value << 4 | digit;
    }
    return value;
}

/* The character of the escape at p ("\..." ) and how many bytes it is written with; 0: no escape that JSON has. */
static size_t read_escape(const char *p, size_t n, uint32_t *c) {
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    if (n < 2)
        return 0;
    if (p[1] != 'u') {
        const char *name = p[1] ? strchr(names, p[1]) : NULL;
        *c = name ? (unsigned char)values[name - names] : 0;
        return name ? 2 : 0;
    }
    int32_t high = hex4(p + 2, n - 2);
    if (high < 0 || (high >= 0xDC00 && high < 0xE000))
        return 0;
    *c = (uint32_t)high;
    if (high < 0xD800 || high >= 0xE000)
        return 6;
    int32_t low = n >= 12 && p[6] == '\\' && p[7] == 'u' ? hex4(p + 8, n - 8) : -1;
    if (low < 0xDC00 || low >= 0xE000)
        return 0;
    *c = 0x10000 + (((uint32_t)high & 0x3FF) << 10) + ((uint32_t)low & 0x3FF);
    return 12;
}

static size_t put_utf8(uint32_t c, char *to) {
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--, c >>= 6)
        to[i] = (char)(0x80 | (c & 0x3F));
    to[0] = (char)((0xF00 >> n) | c);
    return n;
}

/* Bytes from p on that need no closer look: no quote, backslash, control character, nor a byte beyond ASCII. */
static size_t plain_bytes(const char *p, size_t n) {
    size_t i = 0;
    while (i < n && (unsigned char)p[i] >= 0x20 && (unsigned char)p[i] < 0x80 && p[i] != '"' && p[i] != '\\')
        i++;
    return i;
}

bool weir__json_scan_string(weir__json *j, weir__json_text *to) {
    uint32_t c;
    size_t from = ++j->at;
    bool escaped = false;
    for (;;) {
        j->at += plain_bytes(j->text + j->at, j->size - j->at);
        if (j->at == j->size)
            return weir__json_unexpected(j, "the string's closing quote");
        if (j->text[j->at] == '"')
            break;
        bool escape = j->text[j->at] == '\\';
        int step = escape ? (int)read_escape(j->text + j->at, j->size - j->at, &c) : weir__utf8_step(j->text + j->at, j->size - j->at);
        if (step <= 0 || (!escape && (unsigned char)j->text[j->at] < 0x20))
            return weir__json_unexpected(j, escape ? "an escape that JSON has" : "a character of a string, in UTF-8");
        escaped |= escape;
        j->at += (size_t)step;
    }
    *to = (weir__json_text){j->text + from, j->at - from, escaped};
    j->at++;
    return true;
}

bool weir__json_string(weir__json *j, weir__json_text *to) {
    *to = (weir__json_text){0};
    if (!weir__json_want(j, WEIR__JSON_STRING) || !weir__json_scan_string(j, to))
        return false;
    j->due = false;
    return true;
}

size_t weir__json_unescape(weir__json_text s, char *to) {
    size_t used = 0;
    if (!s.escaped) {
        memmove(to, s.data, s.size);
        return s.size;
    }
    for (size_t i = 0; i < s.size;) {
        uint32_t c;
        if (s.data[i] == '\\') {
            i += read_escape(s.data + i, s.size - i, &c);
            used += put_utf8(c, to + used);
        } else {
            to[used++] = s.data[i++];
        }
    }
    return used;
}

bool weir__json_same(weir__json_text s, const char *text, size_t size) {
    if (!s.escaped)
        return s.size == size && memcmp(s.data, text, size) == 0;
    for (size_t i = 0; i < s.size;) {
        char bytes[4];
        uint32_t c;
        size_t n = 1;
        if (s.data[i] == '\\') {
            i += read_escape(s.data + i, s.size - i, &c);
            n = put_utf8(c, bytes);
        } else {
            bytes[0] = s.data[i++];
        }
        if (size < n || memcmp(bytes, text, n) != 0)
            return false;
        text += n;
        size -= n;
    }
    return size == 0;
}

bool weir__json_equal(weir__json_text s, const char *text) {
    return weir__json_same(s, text, strlen(text));
}

/* ---- numbers ---- */

static size_t digits(const weir__json *j, size_t at) {
    size_t n = 0;
    while (at + n < j->size && j->text[at + n] >= '0' && j->text[at + n] <= '9')
        n++;
    return n;
}

static bool byte_is(const weir__json *j, size_t at, char a, char b) {
    return at < j->size && (j->text[at] == a || j->text[at] == b);
}

/* The end of the number that begins at the reader's place; on a failure j->at is where it is wrong. */
static bool number_end(weir__json *j, size_t *end) {
    size_t n, at = j->at + (j->text[j->at] == '-');
    n = byte_is(j, at, '0', '0') ? 1 : digits(j, at);
    at += n;
    if (n > 0 && byte_is(j, at, '.', '.')) {
        n = digits(j, at + 1);
        at += 1 + n;
    }
    if (n > 0 && byte_is(j, at, 'e', 'E')) {
        at += 1 + byte_is(j, at + 1, '+', '-');
        n = digits(j, at);
        at += n;
    }
    if (n == 0) {
        j->at = at;
        return weir__json_unexpected(j, "a digit");
    }
    *end = at;
    return true;
}

bool weir__json_number(weir__json *j, weir__json_text *to) {
    size_t end = 0;
    *to = (weir__json_text){0};
    if (!weir__json_want(j, WEIR__JSON_NUMBER) || !number_end(j, &end))
        return false;
    if (end - j->at > NUMBER_BYTES)
        return weir__json_fail(j, WEIR_EFORMAT, "found a number of %zu bytes, wanted at most %d", end - j->at, NUMBER_BYTES);
    *to = (weir__json_text){j->text + j->at, end - j->at, false};
    j->at = end;
    j->due = false;
    return true;
}

/* A failure at the number that was just read. */
static bool bad_number(weir__json *j, weir__json_text number, const char *wanted) {
    char name[64], key[64];
    j->at -= number.size;
    weir__quote(name, sizeof name, number.data, number.size);
    if (!j->key.data)
        return weir__json_fail(j, WEIR_EFORMAT, "found %s, wanted %s", name, wanted);
    return weir__json_fail(j, WEIR_EFORMAT, "\"%s\": found %s, wanted %s", weir__quote(key, sizeof key, j->key.data, j->key.size), name,
                           wanted);
}

bool weir__json_int(weir__json *j, int64_t *to) {
    weir__json_text number;
    uint64_t value = 0;
    *to = 0;
    if (!weir__json_number(j, &number))
        return false;
    bool negative = number.data[0] == '-';
    for (size_t i = negative; i < number.size; i++) {
        unsigned digit = (unsigned)(number.data[i] - '0');
        if (digit > 9 || __builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, digit, &value))
            return bad_number(j, number, "an integer of 64 bits");
    }
    if (value > (uint64_t)INT64_MAX + negative)
        return bad_number(j, number, "an integer of 64 bits");
    *to = negative ? (int64_t)(0 - value) : (int64_t)value;
    return true;
}

bool weir__json_double(weir__json *j, double *to) {
    char bytes[NUMBER_BYTES + 1];
    weir__json_text number;
    *to = 0;
    if (!weir__json_number(j, &number))
        return false;
    memcpy(bytes, number.data, number.size);
    bytes[number.size] = 0;
    double value = strtod_l(bytes, NULL, newlocale(LC_ALL_MASK, "C", NULL)); /* a constant of the C library: nothing is allocated */
    if (!isfinite(value))
        return bad_number(j, number, "a number that a double can hold");
    *to = value;
    return true;
}

/* ---- the rest ---- */

static bool read_word(weir__json *j, const char *word) {
    size_t n = strlen(word);
    if (j->size - j->at < n || memcmp(j->text + j->at, word, n) != 0)
        return weir__json_unexpected(j, word);
    j->at += n;
    j->due = false;
    return true;
}

bool weir__json_bool(weir__json *j, bool *to) {
    *to = false;
    if (!weir__json_want(j, WEIR__JSON_BOOL))
        return false;
    bool value = j->text[j->at] == 't';
    if (!read_word(j, value ? "true" : "false"))
        return false;
    *to = value;
    return true;
}

bool weir__json_null(weir__json *j) {
    return weir__json_peek(j) == WEIR__JSON_NULL && read_word(j, "null");
}
