/* compose.c: Unicode's normal forms (Unicode Standard Annex 15): decompose, order marks by combining class, compose. Linear for any text: runs of marks are
 * sorted by counting. */
#include "steps.h"
#include "unicode.h"

#include <string.h>

/* Characters that are never joined to one before them stand between independent texts. */
static bool begins_anew(int32_t c) {
    return c < 0x300 || (c >= 0x3400 && c <= 0xA4CF) || (c >= 0xAC00 && c <= 0xD7A3) || (c >= 0x1F000 && c <= 0x3FFFF);
}

/* Sorts marks stably by their classes, from `chars` through `spare`. */
static void sort_marks(int32_t *chars, int32_t *spare, size_t n) {
    size_t place[257] = {0};
    for (size_t i = 0; i < n; i++)
        place[weir__combining_class(chars[i]) + 1]++;
    for (size_t i = 1; i < 257; i++)
        place[i] += place[i - 1];
    for (size_t i = 0; i < n; i++)
        spare[place[weir__combining_class(chars[i])]++] = chars[i];
    memcpy(chars, spare, n * sizeof *chars);
}

/* Short runs, which are nearly all, are sorted in place. */
static void insert_marks(int32_t *chars, size_t n) {
    for (size_t i = 1; i < n; i++) {
        int32_t c = chars[i];
        size_t at = i;
        for (; at > 0 && weir__combining_class(chars[at - 1]) > weir__combining_class(c); at--)
            chars[at] = chars[at - 1];
        chars[at] = c;
    }
}

static void order(int32_t *chars, int32_t *spare, size_t n) {
    for (size_t i = 0; i < n;) {
        size_t from = i;
        while (i < n && weir__combining_class(chars[i]) > 0)
            i++;
        if (i - from > 16)
            sort_marks(chars + from, spare, i - from);
        else if (i - from > 1)
            insert_marks(chars + from, i - from);
        i += i == from;
    }
}

/* Puts out the characters gathered so far; w->chars has room for twice as many. */
static int flush(weir__work *w, size_t n, bool compose, weir__buffer *out) {
    char bytes[4];
    int code = WEIR_OK;
    if (n == 0)
        return WEIR_OK;
    order(w->chars, w->chars + n, n);
    if (compose)
        n = weir__compose(w->chars, n);
    for (size_t i = 0; i < n && !code; i++)
        code = weir__buffer_put(w->system, out, bytes, weir__char_put(bytes, w->chars[i]));
    return code;
}

int weir__normal_form(weir__work *w, weir__string in, bool compatible, bool compose, weir__buffer *out) {
    size_t n = 0;
    int code = WEIR_OK;
    for (size_t at = 0, length; at < in.size && !code; at += length) {
        int32_t c = weir__char_at(in.data + at, in.size - at, &length);
        if (begins_anew(c)) {
            code = flush(w, n, compose, out);
            n = 0;
        }
        if (c < 0) {
            code = code ? code : weir__buffer_put(w->system, out, in.data + at, 1);
            continue;
        }
        if (weir__grow(w->system, &w->chars, &w->chars_room, 2 * (n + WEIR__DECOMPOSED), sizeof *w->chars))
            return WEIR_ENOMEM;
        n += weir__decompose(c, compatible, w->chars + n);
    }
    return code ? code : flush(w, n, compose, out);
}
