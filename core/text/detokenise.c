/* detokenise.c: what each piece stands for, by the decoder's steps, computed once: inside of a text and, where that differs, at its beginning. The streaming decoder
 * (decoder.c) only puts these together. */
#include "tokenizer.h"

#include <string.h>

static const uint64_t decoder_kinds = 1u << WEIR__BYTE_LEVEL | 1u << WEIR__REPLACE | 1u << WEIR__METASPACE | 1u << WEIR__BYTE_FALLBACK |
                                      1u << WEIR__FUSE | 1u << WEIR__STRIP_DECODED | 1u << WEIR__WORDPIECE_JOIN;

/* Bytes that the steps may make of one piece, and of all in relation to the vocabulary's. */
enum { PIECE_MOST = 16 * WEIR_MAX_PIECE, TEXTS_GROWTH = 4, TEXTS_ROOM = 1 << 20 };

/* One piece on its way through the steps. */
typedef struct piece {
    weir__tokenizer *t;
    size_t id;
    bool first;
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
    default: /* BYTE_FALLBACK: byte pieces are bytes whatever the steps; FUSE */
        break;
    }
}

/* How many steps work on single pieces: those before FUSE. */
static size_t single_steps(weir__steps steps) {
    size_t n = 0;
    while (n < steps.size && steps.data[n].kind != WEIR__FUSE)
        n++;
    return n;
}

static int byte_of(const weir__tokenizer *t, size_t id) {
    for (int c = 0; c < 256; c++) {
        if (t->byte_ids[c] == (int32_t)id)
            return c;
    }
    return -1;
}

static void make_text(piece *p, weir__steps steps, weir__string *to) {
    weir__tokenizer *t = p->t;
    weir__string source = t->pieces[p->id];
    size_t n = single_steps(steps);
    char byte;
    to->size = 0;
    if (t->kinds[p->id] == WEIR__CONTROL || t->kinds[p->id] == WEIR__UNKNOWN)
        return;
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
    for (size_t i = 0; i < n && !p->code; i++)
        run_step(p, &steps.data[i]);
    if (!p->code)
        p->code = weir__buffer_put(t->system, &t->text_bytes, p->now.data, p->now.size);
    to->size = p->now.size;
}

static int check(weir__tokenizer *t, const weir__vocab *v, bool *differ, weir_error **error) {
    bool fused = false;
    *differ = false;
    for (size_t i = 0; i < v->decoder.size; i++) {
        const weir__step *step = &v->decoder.data[i];
        bool fits = (unsigned)step->kind < 64 && (decoder_kinds >> step->kind & 1) && !(fused && step->kind != WEIR__STRIP_DECODED);
        fits &= !(step->kind == WEIR__REPLACE && (step->regex || step->pattern.size == 0)) && !(fused && step->stop > 0);
        fits &= !(step->kind == WEIR__METASPACE && step->content.size == 0) && !(fused && t->strip_most > 0);
        if (!fits)
            return weir_fail(error, WEIR_EUNSUPPORTED,
                             "%s: step %zu of the decoder: kind %d with these settings, at this place, is not supported", v->source, i,
                             (int)step->kind);
        *differ |= step->kind == WEIR__METASPACE || step->kind == WEIR__WORDPIECE_JOIN;
        if (fused) {
            t->strip_most = step->start;
            t->strip = step->content;
        }
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

static int make_texts(weir__tokenizer *t, weir__steps steps, weir__string *texts, bool first) {
    piece p = {.t = t, .first = first, .now.most = PIECE_MOST, .next.most = PIECE_MOST};
    for (p.id = 0; p.id < t->size && !p.code; p.id++)
        make_text(&p, steps, &texts[p.id]);
    weir__free(t->system, p.now.data);
    weir__free(t->system, p.next.data);
    return p.code;
}

int weir__detokenise_init(weir__tokenizer *t, const weir__vocab *v, weir_error **error) {
    bool differ;
    size_t bytes = 0;
    int code = check(t, v, &differ, error);
    if (code)
        return code;
    for (size_t i = 0; i < t->size; i++)
        bytes += t->pieces[i].size;
    t->text_bytes.most = TEXTS_GROWTH * bytes + TEXTS_ROOM;
    t->texts = weir__alloc(t->system, t->size * sizeof *t->texts);
    t->firsts = differ ? weir__alloc(t->system, t->size * sizeof *t->firsts) : NULL;
    code = t->texts && (t->firsts || !differ) ? make_texts(t, v->decoder, t->texts, false) : WEIR_ENOMEM;
    if (!code && differ)
        code = make_texts(t, v->decoder, t->firsts, true);
    if (!code)
        code = weir__buffer_put(t->system, &t->text_bytes, t->strip.data, t->strip.size);
    if (code == WEIR_ETOOBIG)
        return weir_fail(error, code, "%s: the decoder makes pieces of %zu bytes too long", v->source, bytes);
    if (code)
        return weir_fail(error, code, "%s: tokeniser of %zu pieces", v->source, v->size);
    const char *at = t->text_bytes.data;
    point(t->texts, t->size, &at);
    if (differ)
        point(t->firsts, t->size, &at);
    t->strip.data = at;
    return WEIR_OK;
}
