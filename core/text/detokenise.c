/* detokenise.c: what each piece stands for, by the decoder's steps, computed once: inside of a text and, where that differs, at its beginning. The streaming decoder
 * (decoder.c) only puts these together. */
#include "tokenizer.h"

#include <string.h>

static const uint64_t decoder_kinds = 1u << WEIR__BYTE_LEVEL | 1u << WEIR__REPLACE | 1u << WEIR__METASPACE | 1u << WEIR__BYTE_FALLBACK |
                                      1u << WEIR__FUSE | 1u << WEIR__STRIP_DECODED | 1u << WEIR__WORDPIECE_JOIN | 1u << WEIR__BPE_JOIN |
                                      1u << WEIR__CTC;

/* Bytes that the steps may make of one piece, and of all in relation to the vocabulary's. */
enum { PIECE_MOST = 16 * WEIR_MAX_PIECE, TEXTS_GROWTH = 4, TEXTS_ROOM = 1 << 20 };

/* One piece on its way through the steps. */
typedef struct piece {
    weir__tokenizer *t;
    size_t id;
    bool first;
    const int32_t *shown; /* [t->size] position + 1 in t->added of tokens that are shown as normalised, 0: others; NULL: there are none */
    weir__work work;
    weir__buffer now, next;
    int code;
} piece;

static void put(piece *p, const char *text, size_t size) {
    if (!p->code)
        p->code = weir__buffer_put(p->t->system, &p->next, text, size);
}

static void done(piece *p) {
    weir__buffer now = p->now;
    p->now = p->next;
    p->next = now;
    p->next.size = 0;
}

static void replace(piece *p, weir__string pattern, weir__string content) {
    for (size_t at = 0; at < p->now.size && !p->code;) {
        const char *found = memmem(p->now.data + at, p->now.size - at, pattern.data, pattern.size);
        size_t n = found ? (size_t)(found - p->now.data) - at : p->now.size - at;
        put(p, p->now.data + at, n);
        if (found)
            put(p, content.data, content.size);
        at += n + (found ? pattern.size : 0);
    }
    done(p);
}

static bool begins_with(const weir__buffer *b, weir__string head) {
    return head.size > 0 && b->size >= head.size && memcmp(b->data, head.data, head.size) == 0;
}

/* Spaces before signs and English endings. */
static void clean_up(piece *p) {
    static const char *const rules[][2] = {{" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
                                           {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
                                           {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        replace(p, (weir__string){rules[i][0], strlen(rules[i][0])}, (weir__string){rules[i][1], strlen(rules[i][1])});
}

static void join_words(piece *p, const weir__step *step) {
    if (!p->first) {
        bool continues = begins_with(&p->now, step->content);
        size_t skip = continues ? step->content.size : 0;
        put(p, " ", !continues);
        if (p->now.size > skip)
            put(p, p->now.data + skip, p->now.size - skip);
        done(p);
    }
    if (step->cleanup)
        clean_up(p);
}

/* Each suffix is a space but the last one, which is one only if another piece follows. */
static void join_suffixed(piece *p, const weir__step *step) {
    weir__string c = step->content;
    if (p->now.size >= c.size && memcmp(p->now.data + p->now.size - c.size, c.data, c.size) == 0)
        p->now.size -= c.size;
    replace(p, c, (weir__string){" ", 1});
}

static void clean_ctc(piece *p, const weir__step *step) {
    replace(p, step->pattern, (weir__string){"", 0});
    if (!step->cleanup)
        return;
    clean_up(p);
    replace(p, step->content, (weir__string){" ", 1});
}

/* Takes `content` off the beginning and the end. */
static void strip(piece *p, const weir__step *step) {
    weir__string text = {p->now.data, p->now.size}, c = step->content;
    for (uint32_t i = 0; i < step->start && c.size > 0 && text.size >= c.size && memcmp(text.data, c.data, c.size) == 0; i++)
        text = (weir__string){text.data + c.size, text.size - c.size};
    for (uint32_t i = 0; i < step->stop && c.size > 0 && text.size >= c.size && memcmp(text.data + text.size - c.size, c.data, c.size) == 0;
         i++)
        text.size -= c.size;
    put(p, text.data, text.size);
    done(p);
}

static void bytes_of(piece *p) {
    size_t size;
    if (p->t->kinds[p->id] == WEIR__USER || p->t->kinds[p->id] == WEIR__OUTSIDE) /* its content is text as it is */
        return;
    p->code = weir__grow(p->t->system, &p->next.data, &p->next.room, p->now.size + 1, 1);
    if (p->code || !weir__bytes_of((weir__string){p->now.data, p->now.size}, p->next.data, &size))
        return;
    p->next.size = size;
    done(p);
}

static void run_step(piece *p, const weir__step *step) {
    weir__string space = {" ", 1};
    switch (step->kind) {
    case WEIR__BYTE_LEVEL:
        bytes_of(p);
        break;
    case WEIR__REPLACE:
        replace(p, step->pattern, step->content);
        break;
    case WEIR__METASPACE:
        replace(p, step->content, p->first && step->prepend != WEIR__PREPEND_NEVER ? (weir__string){"", 0} : space);
        break;
    case WEIR__STRIP_DECODED:
        strip(p, step);
        break;
    case WEIR__WORDPIECE_JOIN:
        join_words(p, step);
        break;
    case WEIR__BPE_JOIN:
        join_suffixed(p, step);
        break;
    case WEIR__CTC:
        clean_ctc(p, step);
        break;
    default: /* BYTE_FALLBACK: byte pieces are bytes whatever the steps; FUSE */
        break;
    }
}

static int byte_of(const weir__tokenizer *t, size_t id) {
    for (int c = 0; c < 256; c++) {
        if (t->byte_ids[c] == (int32_t)id)
            return c;
    }
    return -1;
}

/* An added token that is looked for in the normalised text is that text. */
static weir__string source_of(piece *p) {
    weir__string source = p->t->pieces[p->id];
    if (p->shown && p->shown[p->id] > 0)
        p->code = weir__normalise(&p->t->normaliser, &p->work, p->t->added[p->shown[p->id] - 1].content, &source, NULL);
    return source;
}

static void make_text(piece *p, weir__steps steps, weir__string *to) {
    weir__tokenizer *t = p->t;
    size_t n = steps.size;
    bool fused = false;
    char byte;
    to->size = 0;
    if (t->kinds[p->id] == WEIR__CONTROL || t->kinds[p->id] == WEIR__UNKNOWN)
        return;
    weir__string source = source_of(p);
    p->now.size = p->next.size = 0;
    put(p, source.data, source.size);
    done(p);
    if (t->kinds[p->id] == WEIR__BYTE) {
        byte = (char)byte_of(t, p->id);
        put(p, &byte, 1);
        p->now.size = 0;
        done(p);
        n = 0;
    }
    for (size_t i = 0; i < n && !p->code; i++) {
        if (!(fused && steps.data[i].kind == WEIR__STRIP_DECODED)) /* of the whole text: t->strip */
            run_step(p, &steps.data[i]);
        fused |= steps.data[i].kind == WEIR__FUSE;
    }
    if (!p->code)
        p->code = weir__buffer_put(t->system, &t->text_bytes, p->now.data, p->now.size);
    to->size = p->now.size;
}

static bool is_character(weir__string text) {
    return text.size > 0 && weir__utf8_step(text.data, text.size) == (int)text.size;
}

/* What is wrong with step i; NULL: nothing. */
static const char *complaint(const weir__tokenizer *t, const weir__step *step, size_t i, bool fused) {
    bool joins = step->kind == WEIR__BPE_JOIN || step->kind == WEIR__CTC, replaces = step->kind == WEIR__REPLACE;
    if ((unsigned)step->kind >= 64 || !(decoder_kinds >> step->kind & 1))
        return "is no decoder";
    if (replaces && step->regex)
        return "by a pattern is not supported in a decoder";
    if ((replaces && step->pattern.size == 0) || (step->kind == WEIR__CTC && (step->pattern.size == 0 || step->content.size == 0)) ||
        ((step->kind == WEIR__METASPACE || step->kind == WEIR__BPE_JOIN) && step->content.size == 0))
        return "with an empty text is not supported";
    if (joins && i > 0)
        return "is supported only as the first step";
    if (fused && replaces && !is_character(step->pattern))
        return "of more than one character is not supported behind Fuse";
    if (fused && step->kind == WEIR__STRIP_DECODED && step->stop > 0)
        return "of a text's end is not supported behind Fuse";
    if (fused && step->kind != WEIR__STRIP_DECODED && !replaces)
        return "is not supported behind Fuse";
    return fused && t->strip_most > 0 ? "is not supported behind Fuse and Strip" : NULL;
}

static int check(weir__tokenizer *t, const weir__vocab *v, bool *differ, weir_error **error) {
    bool fused = false;
    *differ = false;
    for (size_t i = 0; i < v->decoder.size; i++) {
        const weir__step *step = &v->decoder.data[i];
        const char *wrong = complaint(t, step, i, fused);
        if (wrong)
            return weir_fail(error, WEIR_EUNSUPPORTED, "%s: step %zu of the decoder: %s %s", v->source, i, weir__step_name(step->kind),
                             wrong);
        *differ |= step->kind == WEIR__METASPACE || step->kind == WEIR__WORDPIECE_JOIN;
        if (fused && step->kind == WEIR__STRIP_DECODED) {
            t->strip_most = step->start;
            t->strip = step->content;
        }
        if (step->kind == WEIR__BPE_JOIN)
            t->suffix = step->content;
        t->repeats |= step->kind == WEIR__CTC;
        fused |= step->kind == WEIR__FUSE;
    }
    return WEIR_OK;
}

/* The texts lie one after another; now that they stay where they are, they can be pointed at. */
static void point(weir__string *texts, size_t n, const char **at) {
    for (size_t i = 0; i < n; i++) {
        texts[i].data = *at;
        if (texts[i].size > 0) /* none of them has text: there is no memory */
            *at += texts[i].size;
    }
}

/* Sets `shown` of a piece. ENOMEM. */
static int find_shown(weir__tokenizer *t, int32_t **shown) {
    *shown = NULL;
    for (size_t i = 0; i < t->n_added && t->normaliser.size > 0; i++) {
        if (!t->added[i].normalized)
            continue;
        if (!*shown && !(*shown = weir__alloc(t->system, t->size * sizeof **shown)))
            return WEIR_ENOMEM;
        (*shown)[t->added[i].id] = (int32_t)i + 1;
    }
    return WEIR_OK;
}

static int make_texts(weir__tokenizer *t, weir__steps steps, const int32_t *shown, weir__string *texts, bool first) {
    piece p = {.t = t, .first = first, .shown = shown, .work.system = t->system, .now.most = PIECE_MOST, .next.most = PIECE_MOST};
    for (p.id = 0; p.id < t->size && !p.code; p.id++)
        make_text(&p, steps, &texts[p.id]);
    weir__free(t->system, p.now.data);
    weir__free(t->system, p.next.data);
    weir__work_fini(&p.work);
    return p.code;
}

int weir__detokenise_init(weir__tokenizer *t, const weir__vocab *v, weir_error **error) {
    bool differ;
    size_t bytes = 0;
    int32_t *shown;
    int code = check(t, v, &differ, error);
    if (code)
        return code;
    for (size_t i = 0; i < t->size; i++)
        bytes += t->pieces[i].size;
    t->text_bytes.most = TEXTS_GROWTH * bytes + TEXTS_ROOM;
    t->texts = weir__alloc(t->system, t->size * sizeof *t->texts);
    t->firsts = differ ? weir__alloc(t->system, t->size * sizeof *t->firsts) : NULL;
    code = find_shown(t, &shown);
    if (!code)
        code = t->texts && (t->firsts || !differ) ? make_texts(t, v->decoder, shown, t->texts, false) : WEIR_ENOMEM;
    if (!code && differ)
        code = make_texts(t, v->decoder, shown, t->firsts, true);
    weir__free(t->system, shown);
    if (!code)
        code = weir__buffer_put(t->system, &t->text_bytes, t->strip.data, t->strip.size);
    if (!code)
        code = weir__buffer_put(t->system, &t->text_bytes, t->suffix.data, t->suffix.size);
    if (code == WEIR_ETOOBIG)
        return weir_fail(error, code, "%s: the decoder makes pieces of %zu bytes too long", v->source, bytes);
    if (code)
        return weir_fail(error, code, "%s: tokeniser of %zu pieces", v->source, v->size);
    const char *at = t->text_bytes.data;
    point(t->texts, t->size, &at);
    if (differ)
        point(t->firsts, t->size, &at);
    t->strip.data = at;
    t->suffix.data = t->suffix.size > 0 ? at + t->strip.size : NULL;
    return WEIR_OK;
}
