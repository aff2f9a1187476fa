/* normalise.c: the steps that change a text before it is cut. Bytes that are no UTF-8 pass through as they are. Normal forms: compose.c; charsmap.c. */
#include "bytes.h"
#include "steps.h"
#include "unicode.h"

#include <string.h>

const uint64_t weir__normaliser_kinds = 1u << WEIR__PREPEND | 1u << WEIR__REPLACE | 1u << WEIR__LOWERCASE | 1u << WEIR__NFC |
                                        1u << WEIR__NFD | 1u << WEIR__NFKC | 1u << WEIR__NFKD | 1u << WEIR__STRIP |
                                        1u << WEIR__STRIP_ACCENT | 1u << WEIR__BERT | 1u << WEIR__CHARSMAP | 1u << WEIR__NMT |
                                        1u << WEIR__BYTE_LEVEL;

static bool is_ascii(weir__string in) {
    bool ascii = true;
    for (size_t i = 0; i < in.size && ascii; i++)
        ascii = (unsigned char)in.data[i] < 0x80;
    return ascii;
}

/* Nothing below U+0300 is changed by NFC: no lead byte from 0xCC on. */
static bool is_nfc(weir__string in) {
    bool low = true;
    for (size_t i = 0; i < in.size && low; i++)
        low = (unsigned char)in.data[i] < 0xCC;
    return low;
}

static int prepend(weir__work *w, const weir__step *step, weir__string in, weir__buffer *out) {
    if (in.size == 0)
        return WEIR_OK;
    int code = weir__buffer_put(w->system, out, step->content.data, step->content.size);
    return code ? code : weir__buffer_put(w->system, out, in.data, in.size);
}

static int replace_text(weir__work *w, const weir__step *step, weir__string in, weir__buffer *out) {
    int code = WEIR_OK;
    for (size_t at = 0; !code && at < in.size;) {
        const char *found = memmem(in.data + at, in.size - at, step->pattern.data, step->pattern.size);
        size_t n = found ? (size_t)(found - in.data) - at : in.size - at;
        code = weir__buffer_put(w->system, out, in.data + at, n);
        if (!code && found)
            code = weir__buffer_put(w->system, out, step->content.data, step->content.size);
        at += n + (found ? step->pattern.size : 0);
    }
    return code;
}

static int fail(int code, weir_error **error) {
    if (code == WEIR_ETOOBIG)
        return weir_fail(error, code, "tokeniser: the normaliser makes the text more than %d times as long", WEIR__GROWTH);
    return code ? weir_fail(error, code, "tokeniser") : WEIR_OK;
}

/* A run of valid characters. */
static int replace_run(weir__work *w, const weir__step *step, const weir__regex *r, weir__string run, weir__buffer *out,
                       weir_error **error) {
    size_t begin, end, from = 0;
    int code = WEIR_OK;
    while (!code && from < run.size) {
        code = weir__work_find(w, r, run, from, &begin, &end, error);
        if (code)
            return code;
        code = weir__buffer_put(w->system, out, run.data + from, begin - from);
        if (!code && begin < end)
            code = weir__buffer_put(w->system, out, step->content.data, step->content.size);
        from = end;
    }
    return fail(code, error);
}

static int replace_pattern(weir__work *w, const weir__step *step, const weir__regex *r, weir__string in, weir__buffer *out,
                           weir_error **error) {
    int code = WEIR_OK;
    for (size_t at = 0; !code && at < in.size;) {
        size_t n = weir__utf8_valid(in.data + at, in.size - at);
        code = replace_run(w, step, r, (weir__string){in.data + at, n}, out, error);
        at += n;
        if (!code && at < in.size)
            code = fail(weir__buffer_put(w->system, out, in.data + at++, 1), error);
    }
    return code;
}

/* What one character becomes: writes up to 3, returns how many. */
typedef size_t map_fn(int32_t c, int32_t to[3]);

static size_t lowercase(int32_t c, int32_t to[3]) {
    to[0] = c == 0x130 ? 'i' : weir__char_lower(c); /* the one character whose lower case is two */
    to[1] = 0x307;
    return c == 0x130 ? 2 : 1;
}

static size_t drop_marks(int32_t c, int32_t to[3]) {
    to[0] = c;
    return !weir__is_mark(c);
}

static size_t drop_nonspacing(int32_t c, int32_t to[3]) {
    to[0] = c;
    return !weir__is_nonspacing(c);
}

static size_t clean(int32_t c, int32_t to[3]) {
    bool gap = c == '\t' || c == '\n' || c == '\r';
    to[0] = gap || weir__is_space(c) ? ' ' : c;
    return gap || !(c == 0 || c == 0xFFFD || weir__is_other(c));
}

static size_t space_ideographs(int32_t c, int32_t to[3]) {
    bool is = weir__is_ideograph(c);
    to[0] = is ? ' ' : c;
    to[1] = c;
    to[2] = ' ';
    return is ? 3 : 1;
}

/* SentencePiece's nmt rules. */
static size_t nmt(int32_t c, int32_t to[3]) {
    bool gone = (c >= 1 && c <= 8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F;
    bool space = c == 9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 || (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 ||
                 c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
    to[0] = space ? ' ' : c;
    return !gone;
}

static int map(weir__work *w, weir__string in, map_fn *fn, weir__buffer *out) {
    int code = WEIR_OK;
    if (weir__grow(w->system, &out->data, &out->room, in.size + 1, 1))
        return WEIR_ENOMEM;
    for (size_t at = 0, length; at < in.size && !code; at += length) {
        int32_t c = weir__char_at(in.data + at, in.size - at, &length), to[3];
        char bytes[12];
        size_t n = c < 0 ? 0 : fn(c, to), size = 0;
        for (size_t i = 0; i < n; i++)
            size += weir__char_put(bytes + size, to[i]);
        code = c < 0 ? weir__buffer_put(w->system, out, in.data + at, length) : weir__buffer_put(w->system, out, bytes, size);
    }
    return code;
}

/* GPT-2's characters for bytes, those that are no UTF-8 too. */
static int write_bytes(weir__work *w, weir__string in, weir__buffer *out) {
    int code = WEIR_OK;
    char piece[2];
    for (size_t i = 0; i < in.size && !code; i++)
        code = weir__buffer_put(w->system, out, piece, weir__byte_piece((unsigned char)in.data[i], piece));
    return code;
}

/* White space at the end, in bytes. */
static size_t trailing(weir__string in) {
    size_t end = in.size, length;
    while (end > 0) {
        size_t at = end - 1;
        while (at > 0 && end - at < 4 && ((unsigned char)in.data[at] & 0xC0) == 0x80)
            at--;
        if (!weir__is_space(weir__char_at(in.data + at, end - at, &length)) || at + length != end)
            break;
        end = at;
    }
    return in.size - end;
}

static weir__string strip(const weir__step *step, weir__string in) {
    size_t length;
    while (step->left && in.size > 0 && weir__is_space(weir__char_at(in.data, in.size, &length)))
        in = (weir__string){in.data + length, in.size - length};
    in.size -= step->right ? trailing(in) : 0;
    return in;
}

/* One mapping; the text stands in a buffer of `w` afterwards. */
static int map_to(weir__work *w, map_fn *fn, weir__string *text) {
    weir__buffer *out = weir__work_buffer(w, 0, text->data);
    int code = map(w, *text, fn, out);
    *text = (weir__string){out->data, out->size};
    return code;
}

static int form_to(weir__work *w, bool compatible, bool compose, weir__string *text) {
    if (is_ascii(*text) || (compose && !compatible && is_nfc(*text)))
        return WEIR_OK;
    weir__buffer *out = weir__work_buffer(w, 0, text->data);
    int code = weir__normal_form(w, *text, compatible, compose, out);
    *text = (weir__string){out->data, out->size};
    return code;
}

static int bert(weir__work *w, const weir__step *step, weir__string *text) {
    int code = step->clean_text ? map_to(w, clean, text) : WEIR_OK;
    if (!code && step->chinese && !is_ascii(*text))
        code = map_to(w, space_ideographs, text);
    if (!code && step->strip_accents && !is_ascii(*text)) {
        code = form_to(w, false, false, text);
        if (!code)
            code = map_to(w, drop_nonspacing, text);
    }
    return !code && step->lowercase ? map_to(w, lowercase, text) : code;
}

static int run_simple(weir__work *w, const weir__step *step, weir__string *text) {
    weir__buffer *out;
    int code;
    switch (step->kind) {
    case WEIR__LOWERCASE:
        return map_to(w, lowercase, text);
    case WEIR__NFC:
    case WEIR__NFD:
    case WEIR__NFKC:
    case WEIR__NFKD:
        return form_to(w, step->kind >= WEIR__NFKC, step->kind == WEIR__NFC || step->kind == WEIR__NFKC, text);
    case WEIR__STRIP:
        *text = strip(step, *text);
        return WEIR_OK;
    case WEIR__STRIP_ACCENT:
        return is_ascii(*text) ? WEIR_OK : map_to(w, drop_marks, text);
    case WEIR__BERT:
        return bert(w, step, text);
    case WEIR__NMT:
        return map_to(w, nmt, text);
    default:
        out = weir__work_buffer(w, 0, text->data);
        if (step->kind == WEIR__BYTE_LEVEL)
            code = write_bytes(w, *text, out);
        else
            code = (step->kind == WEIR__PREPEND ? prepend : replace_text)(w, step, *text, out);
        *text = (weir__string){out->data, out->size};
        return code;
    }
}

int weir__normalise(const weir__ops *o, weir__work *w, weir__string in, weir__string *out, weir_error **error) {
    int code = WEIR_OK;
    size_t most = in.size < WEIR__TEXT_MOST / WEIR__GROWTH ? in.size * WEIR__GROWTH + WEIR__GROWTH_ROOM : WEIR__TEXT_MOST;
    w->text[0].most = w->text[1].most = most;
    for (size_t i = 0; i < o->size && !code; i++) {
        const weir__step *step = &o->steps[i];
        if (step->kind != WEIR__CHARSMAP && !o->patterns[i]) {
            code = fail(run_simple(w, step, &in), error);
            continue;
        }
        weir__buffer *to = weir__work_buffer(w, 0, in.data);
        code = o->patterns[i] ? replace_pattern(w, step, o->patterns[i], in, to, error) : weir__charsmap(step, w, in, to, error);
        in = (weir__string){to->data, to->size};
    }
    *out = in;
    return code;
}
