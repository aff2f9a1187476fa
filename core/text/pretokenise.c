/* pretokenise.c: the steps that cut a text into what the model encodes piece by piece. A step goes through the cuts of the one before; some (METASPACE,
 * BYTE_LEVEL) also write the text anew. */
#include "steps.h"
#include "tokenizer.h"
#include "unicode.h"

#include <string.h>

const uint64_t weir__pretokeniser_kinds = 1u << WEIR__SPLIT | 1u << WEIR__DIGITS | 1u << WEIR__BYTE_LEVEL | 1u << WEIR__METASPACE |
                                          1u << WEIR__WHITESPACE | 1u << WEIR__WHITESPACE_SPLIT | 1u << WEIR__PUNCTUATION |
                                          1u << WEIR__BERT_SPLIT | 1u << WEIR__FIXED_LENGTH;

/* The step that is being run. */
typedef struct cutter {
    weir__work *w;
    const weir__step *step;
    const weir__regex *pattern;
    weir__string text;
    weir__cuts *out;
    size_t base; /* cuts of `out` that stood there before the current one */
    bool first;
    bool last_matched; /* the segment before this one was a match */
    int code;
} cutter;

static void push(cutter *c, size_t begin, size_t end, bool raw) {
    weir__cuts *out = c->out;
    if (!c->code && weir__grow(c->w->system, &out->data, &out->room, out->size + 1, sizeof *out->data))
        c->code = WEIR_ENOMEM;
    if (!c->code)
        out->data[out->size++] = (weir__cut){(uint32_t)begin, (uint32_t)(end - begin) & INT32_MAX, raw};
}

/* A segment, matched or between matches, goes where the behaviour says. */
static void segment(cutter *c, enum weir__behaviour behaviour, size_t begin, size_t end, bool match) {
    weir__cut *last = c->out->size > c->base ? &c->out->data[c->out->size - 1] : NULL;
    bool joins = false;
    if (begin == end || (behaviour == WEIR__REMOVED && match))
        return;
    if (last && behaviour == WEIR__CONTIGUOUS)
        joins = match == c->last_matched;
    else if (last && behaviour == WEIR__MERGED_WITH_PREVIOUS)
        joins = match && !c->last_matched;
    else if (last && behaviour == WEIR__MERGED_WITH_NEXT)
        joins = !match && c->last_matched;
    c->last_matched = match;
    if (joins)
        last->size = (uint32_t)(end - last->begin) & INT32_MAX;
    else
        push(c, begin, end, false);
}

/* Finds where the text next matches, from `from` on; *begin == size: nowhere. */
static int find_text(cutter *c, weir__string text, size_t from, size_t *begin, size_t *end) {
    const char *at = memmem(text.data + from, text.size - from, c->step->pattern.data, c->step->pattern.size);
    *begin = at ? (size_t)(at - text.data) : text.size;
    *end = at ? *begin + c->step->pattern.size : text.size;
    return WEIR_OK;
}

static void split(cutter *c, weir__cut cut, weir_error **error) {
    weir__string text = {c->text.data + cut.begin, cut.size};
    enum weir__behaviour behaviour = c->step->kind == WEIR__BYTE_LEVEL ? WEIR__ISOLATED : c->step->behaviour;
    bool invert = c->step->kind == WEIR__SPLIT && c->step->invert;
    size_t from = 0, begin, end;
    while (from < text.size && !c->code) {
        c->code = c->pattern ? weir__work_find(c->w, c->pattern, text, from, &begin, &end, error) : find_text(c, text, from, &begin, &end);
        if (c->code)
            return;
        segment(c, behaviour, cut.begin + from, cut.begin + begin, invert);
        segment(c, behaviour, cut.begin + begin, cut.begin + end, !invert);
        from = end;
    }
}

/* Splits at single characters of a class. */
static void split_class(cutter *c, weir__cut cut, bool (*in_class)(int32_t), enum weir__behaviour behaviour) {
    const char *text = c->text.data + cut.begin;
    size_t gap = 0, length;
    for (size_t at = 0; at < cut.size && !c->code; at += length) {
        if (!in_class(weir__char_at(text + at, cut.size - at, &length)))
            continue;
        segment(c, behaviour, cut.begin + gap, cut.begin + at, false);
        segment(c, behaviour, cut.begin + at, cut.begin + at + length, true);
        gap = at + length;
    }
    segment(c, behaviour, cut.begin + gap, cut.begin + cut.size, false);
}

enum { SPACE, WORD, SIGN };
static int class_of(int32_t c) {
    return weir__is_word(c) ? WORD : weir__is_space(c) ? SPACE : SIGN;
}

/* Runs of word characters and runs of what is neither that nor space. */
static void split_words(cutter *c, weir__cut cut) {
    const char *text = c->text.data + cut.begin;
    size_t from = 0, length;
    int class = SPACE;
    for (size_t at = 0; at < cut.size && !c->code; at += length) {
        int next = class_of(weir__char_at(text + at, cut.size - at, &length));
        if (next == class)
            continue;
        if (class != SPACE)
            push(c, cut.begin + from, cut.begin + at, false);
        class = next;
        from = at;
    }
    if (class != SPACE && cut.size > 0)
        push(c, cut.begin + from, cut.begin + cut.size, false);
}

/* Spaces go, signs stand alone. */
static void split_bert(cutter *c, weir__cut cut) {
    const char *text = c->text.data + cut.begin;
    size_t from = 0, length;
    for (size_t at = 0; at < cut.size && !c->code; at += length) {
        int32_t character = weir__char_at(text + at, cut.size - at, &length);
        bool space = weir__is_space(character), sign = weir__is_punctuation(character);
        if (!space && !sign)
            continue;
        segment(c, WEIR__ISOLATED, cut.begin + from, cut.begin + at, false);
        if (sign)
            segment(c, WEIR__ISOLATED, cut.begin + at, cut.begin + at + length, true);
        from = at + length;
    }
    segment(c, WEIR__ISOLATED, cut.begin + from, cut.begin + cut.size, false);
}

static void split_lengths(cutter *c, weir__cut cut) {
    const char *text = c->text.data + cut.begin;
    size_t from = 0;
    uint32_t characters = 0;
    for (size_t at = 0; at < cut.size && !c->code; at++) {
        if (((unsigned char)text[at] & 0xC0) == 0x80 || characters++ < c->step->start)
            continue;
        push(c, cut.begin + from, cut.begin + at, false);
        from = at;
        characters = 1;
    }
    push(c, cut.begin + from, cut.begin + cut.size, false);
}

static void run_cut(cutter *c, weir__cut cut, weir_error **error) {
    c->base = c->out->size;
    c->last_matched = false;
    if (cut.raw) {
        push(c, cut.begin, cut.begin + cut.size, true);
        return;
    }
    switch (c->step->kind) {
    case WEIR__DIGITS:
        split_class(c, cut, weir__is_numeric, c->step->individual ? WEIR__ISOLATED : WEIR__CONTIGUOUS);
        break;
    case WEIR__WHITESPACE_SPLIT:
        split_class(c, cut, weir__is_space, WEIR__REMOVED);
        break;
    case WEIR__PUNCTUATION:
        split_class(c, cut, weir__is_punctuation, c->step->behaviour);
        break;
    case WEIR__WHITESPACE:
        split_words(c, cut);
        break;
    case WEIR__BERT_SPLIT:
        split_bert(c, cut);
        break;
    case WEIR__FIXED_LENGTH:
        split_lengths(c, cut);
        break;
    default:
        split(c, cut, error);
    }
}

static bool begins_with(weir__string text, weir__string head) {
    return text.size >= head.size && memcmp(text.data, head.data, head.size) == 0;
}

/* Whether the step puts something before this cut, the i-th: bytes that are no UTF-8 do not end a text. */
static bool wants_prefix(const cutter *c, const weir__cuts *in, size_t i) {
    weir__cut cut = in->data[i];
    weir__string text = {c->text.data + cut.begin, cut.size};
    if (cut.raw || cut.size == 0 || (i > 0 && in->data[i - 1].raw))
        return false;
    if (c->step->kind == WEIR__BYTE_LEVEL)
        return text.data[0] != ' ';
    bool may = c->step->prepend == WEIR__PREPEND_ALWAYS || (c->step->prepend == WEIR__PREPEND_FIRST && c->first && i == 0);
    return may && text.data[0] != ' ' && !begins_with(text, c->step->content);
}

/* Writes a cut's text: its spaces as the replacement. */
static int write_spaces(cutter *c, weir__string text, weir__buffer *to) {
    int code = WEIR_OK;
    for (size_t at = 0; at < text.size && !code;) {
        const char *space = memchr(text.data + at, ' ', text.size - at);
        size_t n = space ? (size_t)(space - text.data) - at : text.size - at;
        code = weir__buffer_put(c->w->system, to, text.data + at, n);
        if (!code && space)
            code = weir__buffer_put(c->w->system, to, c->step->content.data, c->step->content.size);
        at += n + (space != NULL);
    }
    return code;
}

/* Writes a cut's bytes as GPT-2's characters. */
static int write_bytes(cutter *c, weir__string text, weir__buffer *to) {
    char piece[2];
    int code = WEIR_OK;
    for (size_t i = 0; i < text.size && !code; i++)
        code = weir__buffer_put(c->w->system, to, piece, weir__byte_piece((unsigned char)text.data[i], piece));
    return code;
}

/* Cuts before each replacement in the text that was written. */
static void split_marks(cutter *c, const weir__buffer *to, size_t begin) {
    weir__string mark = c->step->content;
    for (size_t at = begin; at < to->size && !c->code;) {
        const char *next = at + 1 < to->size ? memmem(to->data + at + 1, to->size - at - 1, mark.data, mark.size) : NULL;
        size_t end = next ? (size_t)(next - to->data) : to->size;
        push(c, at, end, false);
        at = end;
    }
}

static void swap(cutter *c, const weir__cuts **in) {
    *in = c->out;
    c->out = c->out == &c->w->cuts[0] ? &c->w->cuts[1] : &c->w->cuts[0];
    c->out->size = 0;
}

enum rewriting { MARKS, PREFIX, BYTES };

/* Writes one cut anew. */
static void rewrite_cut(cutter *c, const weir__cuts *in, size_t i, enum rewriting how, weir__buffer *to) {
    weir__cut cut = in->data[i];
    weir__string text = {c->text.data + cut.begin, cut.size}, space = {" ", 1};
    size_t begin = to->size;
    bool raw = cut.raw && how != BYTES;
    if (how != BYTES && wants_prefix(c, in, i)) {
        space = how == MARKS ? c->step->content : space;
        c->code = weir__buffer_put(c->w->system, to, space.data, space.size);
    }
    if (c->code)
        return;
    if (how == BYTES)
        c->code = write_bytes(c, text, to);
    else
        c->code = how == MARKS && !raw ? write_spaces(c, text, to) : weir__buffer_put(c->w->system, to, text.data, text.size);
    if (how == MARKS && c->step->split && !raw)
        split_marks(c, to, begin);
    else
        push(c, begin, to->size, raw);
}

/* METASPACE, the space that BYTE_LEVEL puts in front, and its characters for bytes: the text is written anew, cut by cut. */
static void rewrite(cutter *c, const weir__cuts **in, enum rewriting how) {
    weir__buffer *to = weir__work_buffer(c->w, 2, c->text.data);
    for (size_t i = 0; i < (*in)->size && !c->code; i++)
        rewrite_cut(c, *in, i, how, to);
    if (c->code)
        return;
    c->text = (weir__string){to->data, to->size};
    swap(c, in);
}

/* The text as it is: runs of valid characters, and of bytes between them. */
static void cut_valid(cutter *c) {
    for (size_t at = 0; at < c->text.size && !c->code;) {
        size_t n = weir__utf8_valid(c->text.data + at, c->text.size - at), from = at;
        if (n > 0)
            push(c, at, at + n, false);
        at += n;
        from = at;
        while (at < c->text.size && weir__utf8_step(c->text.data + at, c->text.size - at) <= 0)
            at++;
        if (at > from)
            push(c, from, at, true);
    }
}

/* `last`: the model takes bytes; else a BYTE_LEVEL writes characters for them, which the steps behind it see. */
static void run_step(cutter *c, const weir__cuts **in, bool last, weir_error **error) {
    bool bytes = c->step->kind == WEIR__BYTE_LEVEL;
    if (c->step->kind == WEIR__METASPACE) {
        rewrite(c, in, MARKS);
        return;
    }
    if (bytes && c->step->add_prefix_space)
        rewrite(c, in, PREFIX);
    if (!bytes || c->step->use_regex) {
        for (size_t i = 0; i < (*in)->size && !c->code; i++)
            run_cut(c, (*in)->data[i], error);
        swap(c, in);
    }
    if (bytes && !last)
        rewrite(c, in, BYTES);
}

int weir__pretokenise(const weir__ops *o, weir__work *w, weir__string in, bool first, weir__string *text, const weir__cuts **cuts,
                      weir_error **error) {
    cutter c = {.w = w, .text = in, .out = &w->cuts[0], .first = first};
    c.out->size = 0;
    weir_error *why = NULL;
    cut_valid(&c);
    swap(&c, cuts);
    for (size_t i = 0; i < o->size && !c.code; i++) {
        c.step = &o->steps[i];
        c.pattern = o->patterns[i];
        run_step(&c, cuts, i + 1 == o->size, &why);
    }
    *text = c.text;
    if (c.code && !why)
        return weir_fail(error, c.code, "tokeniser: a text of %zu bytes", in.size);
    if (error && why)
        *error = why;
    else
        weir_error_free(why);
    return c.code;
}
