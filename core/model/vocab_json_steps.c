/* vocab_json_steps.c: normalizer, pre_tokenizer and decoder of a tokenizer.json, written by the tables that they are read by (tokenizer_json_tables.h). */
#include "base64.h"
#include "tokenizer_json_tables.h"
#include "vocab_json_internal.h"

#include <string.h>

static const struct list {
    const char *key, *inner;
    const weir__component *known;
} lists[] = {{"normalizer", "normalizers", weir__normalisers},
             {"pre_tokenizer", "pretokenizers", weir__pretokenisers},
             {"decoder", "decoders", weir__decoders}};

static void put_pattern(weir__json_writer *w, const char *key, const weir__step *step) {
    weir__put_key(w, key);
    weir__json_write_open(w, '{');
    weir__put_text(w, step->regex ? "Regex" : "String", step->pattern);
    weir__json_write_close(w, '}');
}

static int put_charsmap(vocab_file *f, const char *key, const weir__step *step, weir_error **error) {
    char *text = weir__alloc(f->system, step->pattern.size / 3 * 4 + 8);
    if (!text)
        return weir_fail(error, WEIR_ENOMEM, "%s: %s", f->v->source, key);
    size_t n = weir__base64_encode((const unsigned char *)step->pattern.data, step->pattern.size, text);
    weir__put_text(f->json, key, (weir__string){text, n});
    weir__free(f->system, text);
    return WEIR_OK;
}

static int put_option(vocab_file *f, const weir__option *o, const weir__step *step, weir_error **error) {
    weir__json_writer *w = f->json;
    const void *from = (const char *)step + o->offset;
    const char *word;
    switch (o->kind) {
    case WEIR__OPTION_NOTHING:
        if (strcmp(o->name, "str_rep") != 0) /* of old files only */
            weir__put_flag(w, o->name, true);
        return WEIR_OK;
    case WEIR__OPTION_BOOLEAN:
        weir__put_flag(w, o->name, *(const bool *)from);
        return WEIR_OK;
    case WEIR__OPTION_TEXT:
    case WEIR__OPTION_CHARACTER:
        weir__put_text(w, o->name, *(const weir__string *)from);
        return WEIR_OK;
    case WEIR__OPTION_COUNT:
        weir__put_key(w, o->name);
        weir__json_write_int(w, *(const uint32_t *)from);
        return WEIR_OK;
    case WEIR__OPTION_PATTERN:
        put_pattern(w, o->name, step);
        return WEIR_OK;
    case WEIR__OPTION_BEHAVIOUR:
    case WEIR__OPTION_SCHEME:
        word = o->kind == WEIR__OPTION_SCHEME ? weir__scheme_words[step->prepend] : weir__behaviour_words[step->behaviour];
        weir__put_text(w, o->name, (weir__string){word, strlen(word)});
        return WEIR_OK;
    case WEIR__OPTION_PREFIX: /* said by its scheme */
        return WEIR_OK;
    case WEIR__OPTION_CHARSMAP:
        return put_charsmap(f, o->name, step, error);
    }
    return WEIR_EINVAL;
}

static int put_step(vocab_file *f, const struct list *list, const weir__step *step, weir_error **error) {
    const weir__component *c = list->known;
    while (c->name && c->defaults.kind != step->kind)
        c++;
    if (!c->name)
        return weir_fail(error, WEIR_EUNSUPPORTED, "%s: step %d has no name in a tokenizer.json's %s", f->v->source, (int)step->kind,
                         list->key);
    if (step->kind == WEIR__CHARSMAP && !step->graphemes)
        return weir_fail(error, WEIR_EUNSUPPORTED, "%s: a tokenizer.json cannot say SentencePiece's way with a precompiled_charsmap",
                         f->v->source);
    int code = WEIR_OK;
    weir__json_write_open(f->json, '{');
    weir__put_text(f->json, "type", (weir__string){c->name, strlen(c->name)});
    for (size_t i = 0; i < WEIR__MOST_OPTIONS && c->options[i].name && !code; i++)
        code = put_option(f, &c->options[i], step, error);
    weir__json_write_close(f->json, '}');
    return code;
}

static bool is_spaced(weir__steps steps) {
    return steps.size == 1 && steps.data[0].kind == WEIR__WORDPIECE_JOIN && steps.data[0].content.size == 1 &&
           memcmp(steps.data[0].content.data, WEIR__SPACED_PREFIX, 1) == 0;
}

int weir__put_steps(vocab_file *f, enum weir__list which, weir__steps steps, weir_error **error) {
    static const weir__step nothing[] = {{.kind = WEIR__FUSE}};
    const struct list *list = &lists[which];
    int code = WEIR_OK;
    if (which == WEIR__LIST_DECODER && steps.size == 0)
        steps = (weir__steps){nothing, 1};
    else if (which == WEIR__LIST_DECODER && is_spaced(steps))
        steps.size = 0;
    weir__put_key(f->json, list->key);
    if (steps.size == 0)
        weir__json_write_word(f->json, "null");
    if (steps.size > 1) {
        weir__json_write_open(f->json, '{');
        weir__put_text(f->json, "type", (weir__string){"Sequence", 8});
        weir__put_key(f->json, list->inner);
        weir__json_write_open(f->json, '[');
    }
    for (size_t i = 0; i < steps.size && !code; i++)
        code = put_step(f, list, &steps.data[i], error);
    if (steps.size > 1) {
        weir__json_write_close(f->json, ']');
        weir__json_write_close(f->json, '}');
    }
    return code;
}
