/* tokenizer_json.c: the outermost object of a tokenizer.json, and small things that its parts share. What a component means is core/text's (vocab.h). */
#include "tokenizer_json_internal.h"

weir__string weir__take(const weir__tokenizer_file *f, weir__json_text s) {
    if (!s.escaped)
        return (weir__string){s.data, s.size};
    char *to = f->text + (s.data - f->text);
    return (weir__string){to, weir__json_unescape(s, to)};
}

int weir__keep_text(const weir__tokenizer_file *f, weir__json_text s, weir__string *to, weir_error **error) {
    char *memory = weir__build_alloc(f->build, s.size + 1);
    if (!memory)
        return weir_fail(error, WEIR_ENOMEM, "%s", f->build->source);
    *to = (weir__string){memory, weir__json_unescape(s, memory)};
    return WEIR_OK;
}

int weir__at_bool(weir__json at, bool *to) {
    if (at.text)
        weir__json_bool(&at, to);
    return at.code;
}

int weir__at_text(weir__json at, weir__json_text *to) {
    if (at.text)
        weir__json_string(&at, to);
    return at.code;
}

int weir__at_range(weir__json at, int64_t least, int64_t most, int64_t *to) {
    int64_t value = *to;
    if (!at.text || !weir__json_int(&at, &value))
        return at.code;
    if (value < least || value > most)
        weir__json_fail(&at, WEIR_EFORMAT, "found %lld, wanted %lld to %lld", (long long)value, (long long)least, (long long)most);
    *to = value;
    return at.code;
}

/* Sequences that are open, each an array before its next component. */
enum { NESTED = 8 };
typedef struct walk {
    const char *what, *list;
    weir__component_fn *fn;
    void *data;
    weir_error **error;
    weir__json open[NESTED];
    size_t depth;
} walk;

static int missing(weir__json at, const char *what, const char *key) {
    weir__json_fail(&at, WEIR_EFORMAT, "%s: found no object with a \"%s\"", what, key);
    return at.code;
}

static int open_sequence(walk *w, weir__json at) {
    weir__json list = at;
    if (w->depth == NESTED) {
        weir__json_fail(&at, WEIR_EUNSUPPORTED, "%s: more than %d Sequences in each other", w->what, NESTED);
        return at.code;
    }
    if (!weir__json_find(&list, w->list))
        return list.code ? list.code : missing(at, w->what, w->list);
    weir__json_array(&list);
    w->open[w->depth++] = list;
    return list.code;
}

static int take_component(walk *w, weir__json at) {
    weir__json_text type;
    weir__json found = at;
    if (!weir__json_find(&found, "type"))
        return found.code ? found.code : missing(at, w->what, "type");
    if (!weir__json_string(&found, &type))
        return found.code;
    return weir__json_equal(type, "Sequence") ? open_sequence(w, at) : w->fn(w->data, at, type, w->error);
}

int weir__components(weir__json at, const char *what, const char *list, weir__component_fn *fn, void *data, weir_error **error) {
    walk w = {.what = what, .list = list, .fn = fn, .data = data, .error = error};
    int code = at.text ? take_component(&w, at) : WEIR_OK;
    while (!code && w.depth > 0) {
        weir__json *top = &w.open[w.depth - 1];
        if (weir__json_next(top)) {
            code = take_component(&w, *top);
        } else {
            code = top->code;
            w.depth--;
        }
    }
    return code;
}

enum { VERSION, TRUNCATION, PADDING, ADDED, NORMALISER, PRETOKENISER, POST, DECODER, MODEL, KEYS };
static const char *const keys[KEYS] = {"version",       "truncation",     "padding", "added_tokens", "normalizer",
                                       "pre_tokenizer", "post_processor", "decoder", "model"};

static int check_version(weir__json at) {
    weir__json_text version;
    if (at.text && weir__json_string(&at, &version) && !weir__json_equal(version, "1.0"))
        weir__json_fail(&at, WEIR_EUNSUPPORTED, "a version other than \"1.0\" is not supported");
    return at.code;
}

int weir__tokenizer_json_read(const weir__tokenizer_file *f, weir_error **error) {
    weir__json j, at[KEYS];
    weir__json_init(&j, f->build->source, f->text, f->size, error);
    int code = weir__json_fields(&j, "tokenizer", keys, KEYS, at);
    if (code || (code = weir__json_finish(&j)) || (code = check_version(at[VERSION])))
        return code;
    if (!at[MODEL].text)
        return weir_fail(error, WEIR_EFORMAT, "%s: found no \"model\"", f->build->source);
    if ((code = weir__normaliser_read(f, at[NORMALISER], error)) || (code = weir__pretokeniser_read(f, at[PRETOKENISER], error)) ||
        (code = weir__decoder_read(f, at[DECODER], error)) || (code = weir__model_read(f, at[MODEL], at[ADDED], error)))
        return code;
    return weir__post_read(f, at[POST], error);
}
