/* tokenizer_json_steps.c: normalizer, pre_tokenizer and decoder of a tokenizer.json: one reader of all components that tokenizer_json_tables.c knows; others are
 * refused by name. */
#include "base64.h"
#include "tokenizer_json_internal.h"
#include "tokenizer_json_tables.h"

#include <string.h>

/* One of three lists while it is read. */
typedef struct reading {
    const weir__tokenizer_file *file;
    const char *what; /* the list, for errors */
    const weir__component *known;
    weir__steps *list;
} reading;

/* A word of a list that ends with NULL; its place. EUNSUPPORTED. */
static int read_choice(weir__json at, const char *const *words, int *to) {
    char name[48];
    weir__json_text text;
    if (!weir__json_string(&at, &text))
        return at.code;
    for (int i = 0; words[i]; i++)
        if (weir__json_equal(text, words[i])) {
            *to = i;
            return WEIR_OK;
        }
    weir__json_fail(&at, WEIR_EUNSUPPORTED, "\"%s\" is not supported", weir__quote(name, sizeof name, text.data, text.size));
    return at.code;
}

static int read_behaviour(weir__json at, weir__step *step) {
    int i = 0;
    int code = read_choice(at, weir__behaviour_words, &i);
    step->behaviour = (enum weir__behaviour)i;
    return code;
}

static int read_scheme(weir__json at, weir__step *step) {
    int i = 0;
    int code = read_choice(at, weir__scheme_words, &i);
    step->prepend = (enum weir__prepend)i;
    return code;
}

static int read_text(const weir__tokenizer_file *f, weir__json at, weir__string *to, weir_error **error) {
    weir__json_text text = {0};
    int code = weir__at_text(at, &text);
    return code ? code : weir__keep_text(f, text, to, error);
}

static int read_character(const weir__tokenizer_file *f, weir__json at, weir__string *to, weir_error **error) {
    int code = read_text(f, at, to, error);
    if (!code && (to->size == 0 || weir__utf8_step(to->data, to->size) != (int)to->size))
        weir__json_fail(&at, WEIR_EFORMAT, "found %zu bytes, wanted one character", to->size);
    return code ? code : at.code;
}

static int read_pattern(const weir__tokenizer_file *f, weir__json at, weir__step *step, weir_error **error) {
    static const char *const kinds[] = {"String", "Regex"};
    weir__json kind[2];
    weir__json j = at;
    int code = weir__json_fields(&j, "pattern", kinds, 2, kind);
    if (code)
        return code;
    step->regex = kind[1].text != NULL;
    if (!kind[0].text == !kind[1].text) {
        weir__json_fail(&at, WEIR_EFORMAT, "pattern: wanted \"String\" or \"Regex\"");
        return at.code;
    }
    return read_text(f, kind[step->regex], &step->pattern, error);
}

enum { MOST_CHARSMAP = 8 << 20 }; /* bytes of base64; published ones have under 700,000 */

static int read_charsmap(const weir__tokenizer_file *f, weir__json at, weir__step *step, weir_error **error) {
    weir__json_text text;
    if (!weir__json_string(&at, &text))
        return at.code;
    if (text.size > MOST_CHARSMAP) {
        weir__json_fail(&at, WEIR_ETOOBIG, "precompiled_charsmap: found %zu bytes, wanted at most %d", text.size, MOST_CHARSMAP);
        return at.code;
    }
    unsigned char *blob = weir__build_alloc(f->build, text.size / 4 * 3 + 1);
    if (!blob)
        return weir_fail(error, WEIR_ENOMEM, "%s: precompiled_charsmap", f->build->source);
    size_t size = text.escaped ? (size_t)-1 : weir__base64_decode(text.data, text.size, blob);
    if (size == (size_t)-1)
        weir__json_fail(&at, WEIR_EFORMAT, "precompiled_charsmap: found something that is no base64");
    step->pattern = (weir__string){(char *)blob, size};
    return at.code;
}

static int read_prefix(weir__json at, weir__step *step) {
    bool prefix = true;
    int code = weir__at_bool(at, &prefix);
    step->prepend = prefix ? step->prepend : WEIR__PREPEND_NEVER;
    return code;
}

static int read_count(weir__json at, uint32_t *to) {
    int64_t count = 0;
    int code = weir__at_range(at, 0, UINT32_MAX, &count);
    *to = (uint32_t)count;
    return code;
}

static int read_option(const weir__tokenizer_file *f, const weir__option *o, weir__json at, weir__step *step, weir_error **error) {
    void *to = (char *)step + o->offset;
    switch (o->kind) {
    case WEIR__OPTION_NOTHING:
        return WEIR_OK;
    case WEIR__OPTION_BOOLEAN:
        return weir__at_bool(at, to);
    case WEIR__OPTION_TEXT:
        return read_text(f, at, to, error);
    case WEIR__OPTION_CHARACTER:
        return read_character(f, at, to, error);
    case WEIR__OPTION_COUNT:
        return read_count(at, to);
    case WEIR__OPTION_PATTERN:
        return read_pattern(f, at, step, error);
    case WEIR__OPTION_BEHAVIOUR:
        return read_behaviour(at, step);
    case WEIR__OPTION_SCHEME:
        return read_scheme(at, step);
    case WEIR__OPTION_PREFIX:
        return read_prefix(at, step);
    case WEIR__OPTION_CHARSMAP:
        return read_charsmap(f, at, step, error);
    }
    return WEIR_EINVAL;
}

static int read_options(const weir__tokenizer_file *f, const weir__component *c, weir__json at, weir__step *step, weir_error **error) {
    const char *names[WEIR__MOST_OPTIONS + 1] = {"type"};
    weir__json option[WEIR__MOST_OPTIONS + 1], j = at;
    size_t n = 0;
    for (; n < WEIR__MOST_OPTIONS && c->options[n].name; n++)
        names[n + 1] = c->options[n].name;
    int code = weir__json_fields(&j, c->name, names, n + 1, option);
    for (size_t i = 0; i < n && !code; i++) {
        if (option[i + 1].text)
            code = read_option(f, &c->options[i], option[i + 1], step, error);
        else if (c->options[i].needed)
            weir__json_fail(&at, WEIR_EFORMAT, "%s: found no \"%s\"", c->name, c->options[i].name), code = at.code;
    }
    return code;
}

/* BertNormalizer strips accents if it says so; if it says nothing, or null, where it lowers. */
static int complete_bert(weir__json at, weir__step *step) {
    weir__json found = at;
    if (!weir__json_find(&found, "strip_accents") || weir__json_null(&found))
        step->strip_accents = step->lowercase;
    return found.code;
}

static int read_component(void *data, weir__json at, weir__json_text type, weir_error **error) {
    reading *r = data;
    char name[48];
    const weir__component *c = r->known;
    while (c->name && !weir__json_equal(type, c->name))
        c++;
    if (!c->name) {
        weir__json_fail(&at, WEIR_EUNSUPPORTED, "%s \"%s\" is not supported", r->what,
                        weir__quote(name, sizeof name, type.data, type.size));
        return at.code;
    }
    weir__step step = c->defaults;
    int code = read_options(r->file, c, at, &step, error);
    if (!code && step.kind == WEIR__BERT)
        code = complete_bert(at, &step);
    return code ? code : weir__build_step(r->file->build, r->list, &step, error);
}

int weir__normaliser_read(const weir__tokenizer_file *f, weir__json at, weir_error **error) {
    reading r = {f, "normalizer", weir__normalisers, &f->build->v.normaliser};
    return weir__components(at, r.what, "normalizers", read_component, &r, error);
}

int weir__pretokeniser_read(const weir__tokenizer_file *f, weir__json at, weir_error **error) {
    reading r = {f, "pre_tokenizer", weir__pretokenisers, &f->build->v.pretokeniser};
    return weir__components(at, r.what, "pretokenizers", read_component, &r, error);
}

int weir__decoder_read(const weir__tokenizer_file *f, weir__json at, weir_error **error) {
    static const weir__step spaces = {.kind = WEIR__WORDPIECE_JOIN, .content = {WEIR__SPACED_PREFIX, 1}};
    reading r = {f, "decoder", weir__decoders, &f->build->v.decoder};
    if (!at.text)
        return weir__build_step(f->build, r.list, &spaces, error);
    return weir__components(at, r.what, "decoders", read_component, &r, error);
}
