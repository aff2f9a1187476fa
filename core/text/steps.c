/* steps.c: making steps ready, and their workspace. What the steps do: normalise.c, pretokenise.c. */
#include "steps.h"

#include <string.h>

int weir__buffer_put(weir_system *s, weir__buffer *b, const char *data, size_t size) {
    size_t most = b->most > 0 ? b->most : WEIR__TEXT_MOST;
    if (b->size > most || size > most - b->size)
        return WEIR_ETOOBIG;
    if (weir__grow(s, &b->data, &b->room, b->size + size, 1))
        return WEIR_ENOMEM;
    if (size > 0)
        memcpy(b->data + b->size, data, size);
    b->size += size;
    return WEIR_OK;
}

void weir__work_fini(weir__work *w) {
    for (size_t i = 0; i < 4; i++)
        weir__free(w->system, w->text[i].data);
    weir__free(w->system, w->cuts[0].data);
    weir__free(w->system, w->cuts[1].data);
    weir__free(w->system, w->chars);
    weir__regex_run_free(w->run);
}

weir__buffer *weir__work_buffer(weir__work *w, size_t first, const char *text) {
    const weir__buffer *b = &w->text[first];
    bool holds = b->data && text >= b->data && text < b->data + b->room;
    weir__buffer *other = &w->text[first + holds];
    other->size = 0;
    return other;
}

int weir__work_find(weir__work *w, const weir__regex *r, weir__string text, size_t from, size_t *begin, size_t *end, weir_error **error) {
    if (!w->run && !(w->run = weir__regex_run_new(w->system)))
        return weir_fail(error, WEIR_ENOMEM, "tokeniser");
    return weir__regex_find(r, w->run, text, from, begin, end, error);
}

static weir__string copy(char **to, weir__string text) {
    weir__string kept = {*to, text.size};
    if (text.size > 0)
        memcpy(*to, text.data, text.size);
    *to += text.size;
    return kept;
}

const char *weir__step_name(enum weir__step_kind kind) {
    static const char *const names[] = {[WEIR__PREPEND] = "Prepend",
                                        [WEIR__REPLACE] = "Replace",
                                        [WEIR__LOWERCASE] = "Lowercase",
                                        [WEIR__NFC] = "NFC",
                                        [WEIR__NFD] = "NFD",
                                        [WEIR__NFKC] = "NFKC",
                                        [WEIR__NFKD] = "NFKD",
                                        [WEIR__STRIP] = "Strip",
                                        [WEIR__STRIP_ACCENT] = "StripAccents",
                                        [WEIR__BERT] = "BertNormalizer",
                                        [WEIR__CHARSMAP] = "Precompiled",
                                        [WEIR__NMT] = "Nmt",
                                        [WEIR__SPLIT] = "Split",
                                        [WEIR__DIGITS] = "Digits",
                                        [WEIR__BYTE_LEVEL] = "ByteLevel",
                                        [WEIR__METASPACE] = "Metaspace",
                                        [WEIR__WHITESPACE] = "Whitespace",
                                        [WEIR__WHITESPACE_SPLIT] = "WhitespaceSplit",
                                        [WEIR__PUNCTUATION] = "Punctuation",
                                        [WEIR__BERT_SPLIT] = "BertPreTokenizer",
                                        [WEIR__FIXED_LENGTH] = "FixedLength",
                                        [WEIR__BYTE_FALLBACK] = "ByteFallback",
                                        [WEIR__FUSE] = "Fuse",
                                        [WEIR__STRIP_DECODED] = "Strip",
                                        [WEIR__WORDPIECE_JOIN] = "WordPiece",
                                        [WEIR__BPE_JOIN] = "BPEDecoder",
                                        [WEIR__CTC] = "CTC"};
    bool known = (size_t)kind < sizeof names / sizeof names[0] && names[kind];
    return known ? names[kind] : "an unknown component";
}

static int check(const weir__step *step, size_t i, uint64_t kinds, const char *what, const char *source, weir_error **error) {
    if ((unsigned)step->kind >= 64 || !(kinds >> step->kind & 1))
        return weir_fail(error, WEIR_EUNSUPPORTED, "%s: step %zu of the %s: %s is no %s", source, i, what, weir__step_name(step->kind),
                         what);
    bool wants_pattern = step->kind == WEIR__REPLACE || step->kind == WEIR__SPLIT;
    if (wants_pattern && step->pattern.size == 0)
        return weir_fail(error, WEIR_EUNSUPPORTED, "%s: step %zu of the %s: found an empty pattern", source, i, what);
    if (step->kind == WEIR__FIXED_LENGTH && step->start == 0)
        return weir_fail(error, WEIR_EUNSUPPORTED, "%s: step %zu of the %s: FixedLength: found length 0", source, i, what);
    if (step->kind == WEIR__METASPACE && step->content.size == 0)
        return weir_fail(error, WEIR_EUNSUPPORTED, "%s: step %zu of the %s: found an empty replacement", source, i, what);
    return WEIR_OK;
}

/* The pattern that a step has, or is known by: GPT-2's of ByteLevel (github.com/openai/gpt-2, encoder.py). */
static weir__string pattern_of(const weir__step *step) {
    static const char gpt2[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
    if (step->kind == WEIR__BYTE_LEVEL && step->use_regex)
        return (weir__string){gpt2, sizeof gpt2 - 1};
    return step->regex ? step->pattern : (weir__string){NULL, 0};
}

int weir__ops_init(weir_system *s, weir__ops *o, weir__steps steps, uint64_t kinds, const char *what, const char *source,
                   weir_error **error) {
    size_t bytes = 1;
    int code = WEIR_OK;
    *o = (weir__ops){.system = s, .size = steps.size};
    for (size_t i = 0; i < steps.size && !code; i++) {
        bytes += steps.data[i].pattern.size + steps.data[i].content.size;
        code = check(&steps.data[i], i, kinds, what, source, error);
    }
    if (code)
        return code;
    o->steps = weir__alloc(s, (steps.size + 1) * sizeof *o->steps);
    o->patterns = weir__alloc(s, (steps.size + 1) * sizeof(weir__regex *));
    char *to = o->bytes = weir__alloc(s, bytes);
    if (!o->steps || !o->patterns || !to)
        code = weir_fail(error, WEIR_ENOMEM, "%s: %s", source, what);
    for (size_t i = 0; i < steps.size && !code; i++) {
        o->steps[i] = steps.data[i];
        o->steps[i].pattern = copy(&to, steps.data[i].pattern);
        o->steps[i].content = copy(&to, steps.data[i].content);
        weir__string pattern = pattern_of(&o->steps[i]);
        if (pattern.data)
            code = weir__regex_new(s, pattern, source, &o->patterns[i], error);
    }
    if (code)
        weir__ops_fini(o);
    return code;
}

void weir__ops_fini(weir__ops *o) {
    for (size_t i = 0; o->patterns && i < o->size; i++)
        weir__regex_free(o->patterns[i]);
    weir__free(o->system, o->patterns);
    weir__free(o->system, o->steps);
    weir__free(o->system, o->bytes);
    *o = (weir__ops){0};
}
