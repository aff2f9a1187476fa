/* charsmap.c: SentencePiece's precompiled character map: u32 size of the trie in bytes, the trie (a double array of Darts, github.com/s-yata/darts-clone),
 * then zero-ended replacements. A value of the trie is where its replacement begins. Every place is checked when it is used. */
#include "steps.h"
#include "unicode.h"

#include <string.h>

enum {
    MOST_KEY = 64,           /* bytes; published maps have under 20 */
    MOST_REPLACEMENT = 1024, /* bytes; published maps have under 64 */
    HF_GRAPHEME = 6,         /* bytes from which on the tokenizers library looks at single characters */
};

typedef struct charsmap {
    const char *trie, *text;
    size_t units, text_size;
} charsmap;

static uint32_t le32(const char *p) {
    const unsigned char *u = (const unsigned char *)p;
    return (uint32_t)u[0] | (uint32_t)u[1] << 8 | (uint32_t)u[2] << 16 | (uint32_t)u[3] << 24;
}

static bool open_map(weir__string blob, charsmap *m) {
    size_t bytes = blob.size >= 4 ? le32(blob.data) : 0;
    if (bytes < 4 || bytes % 4 != 0 || bytes > blob.size - 4)
        return false;
    *m = (charsmap){blob.data + 4, blob.data + 4 + bytes, bytes / 4, blob.size - 4 - bytes};
    return true;
}

/* Reads unit `at`; zero, which has no label, outside of the trie. */
static uint32_t unit(const charsmap *m, size_t at) {
    return at < m->units ? le32(m->trie + 4 * at) : 0;
}
static size_t offset(uint32_t u) {
    return (size_t)(u >> 10) << ((u & 1u << 9) >> 6);
}

/* The replacement of the longest key (`shortest`: the shortest) that begins the text; *size is the key's, 0: none. */
static uint32_t look_up(const charsmap *m, weir__string in, bool shortest, size_t *size) {
    size_t at = offset(unit(m, 0));
    uint32_t value = 0;
    *size = 0;
    for (size_t i = 0; i < in.size && i < MOST_KEY; i++) {
        unsigned char c = (unsigned char)in.data[i];
        at ^= c;
        uint32_t u = unit(m, at);
        if (c == 0 || (u & (1u << 31 | 0xFF)) != c)
            break;
        at ^= offset(u);
        if (u >> 8 & 1) {
            value = unit(m, at) & 0x7FFFFFFF;
            *size = i + 1;
            if (shortest)
                break;
        }
    }
    return value;
}

static int put_replacement(weir__work *w, const charsmap *m, uint32_t value, weir__buffer *out, weir_error **error) {
    size_t left = value < m->text_size ? m->text_size - value : 0;
    const char *text = m->text + (left > 0 ? value : 0);
    const char *end = memchr(text, 0, left < MOST_REPLACEMENT ? left : MOST_REPLACEMENT);
    if (!end)
        return weir_fail(error, WEIR_EFORMAT, "tokeniser: the precompiled character map has no end of the replacement at %u", value);
    int code = weir__buffer_put(w->system, out, text, (size_t)(end - text));
    return code ? weir_fail(error, code, "tokeniser") : WEIR_OK;
}

/* The size of the grapheme that the text begins with. */
static size_t grapheme(weir__string in) {
    size_t length, size;
    int32_t state = 0, before = weir__char_at(in.data, in.size, &size);
    while (before >= 0 && size < in.size) {
        int32_t c = weir__char_at(in.data + size, in.size - size, &length);
        if (c < 0 || weir__grapheme_ends(before, c, &state))
            break;
        before = c;
        size += length;
    }
    return size;
}

/* One replacement, or one character as it is. Returns through *used what was taken of the text. */
static int step_at(const weir__step *step, weir__work *w, const charsmap *m, weir__string in, size_t *used, weir__buffer *out,
                   weir_error **error) {
    size_t key;
    uint32_t value;
    weir__char_at(in.data, in.size, used);
    if (!step->graphemes) {
        value = look_up(m, in, false, &key);
        *used = key > 0 ? key : *used;
    } else {
        value = look_up(m, (weir__string){in.data, *used}, true, &key);
    }
    if (key > 0)
        return put_replacement(w, m, value, out, error);
    int code = weir__buffer_put(w->system, out, in.data, *used);
    return code ? weir_fail(error, code, "tokeniser") : WEIR_OK;
}

int weir__charsmap(const weir__step *step, weir__work *w, weir__string in, weir__buffer *out, weir_error **error) {
    charsmap m;
    int code = WEIR_OK;
    if (!open_map(step->pattern, &m))
        return weir_fail(error, WEIR_EFORMAT, "tokeniser: the precompiled character map is broken");
    for (size_t at = 0, used, whole = 0; at < in.size && !code; at += used) {
        weir__string rest = {in.data + at, in.size - at};
        /* The library asks for a whole grapheme first; a long one is gone through character by character up to its end. */
        bool begins = step->graphemes && at >= whole;
        size_t n = begins ? grapheme(rest) : 0, key = 0;
        uint32_t value = begins && n < HF_GRAPHEME ? look_up(&m, (weir__string){rest.data, n}, true, &key) : 0;
        whole = begins ? at + n : whole;
        used = n;
        code = key > 0 ? put_replacement(w, &m, value, out, error) : step_at(step, w, &m, rest, &used, out, error);
    }
    return code;
}
