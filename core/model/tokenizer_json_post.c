/* tokenizer_json_post.c: the post_processor of a tokenizer.json: which ids stand before and behind a single text. Pairs of texts are not encoded here, so what it says
 * about them has no effect; nor have type ids and offsets. */
#include "tokenizer_json_internal.h"

/* The tokens of one processor, around a text. */
typedef struct around {
    const weir__tokenizer_file *file;
    weir_error **error;
    int32_t before[WEIR__MOST_BOUNDS], after[WEIR__MOST_BOUNDS];
    size_t n_before, n_after;
    bool behind; /* the text was seen */
} around;

static int add_id(around *a, weir__json at, int64_t id) {
    size_t *n = a->behind ? &a->n_after : &a->n_before, size = a->file->build->v.size;
    if (id < 0 || (uint64_t)id >= size)
        weir__json_fail(&at, WEIR_EFORMAT, "post_processor: found token id %lld, wanted 0 to %zu", (long long)id, size - 1);
    else if (*n == WEIR__MOST_BOUNDS)
        weir__json_fail(&at, WEIR_EUNSUPPORTED, "post_processor: more than %d tokens around a text", WEIR__MOST_BOUNDS);
    else
        (a->behind ? a->after : a->before)[(*n)++] = (int32_t)id;
    return at.code;
}

static int add_ids(around *a, weir__json token) {
    int64_t id;
    weir__json ids = token;
    if (!weir__json_find(&ids, "ids")) {
        weir__json_fail(&token, WEIR_EFORMAT, "TemplateProcessing: found no \"ids\"");
        return ids.code ? ids.code : token.code;
    }
    weir__json_array(&ids);
    while (weir__json_next(&ids))
        if (weir__json_int(&ids, &id) && add_id(a, ids, id))
            return WEIR_EFORMAT;
    return ids.code;
}

/* The ids that a template's token stands for, by its name among the special_tokens. */
static int add_token(around *a, weir__json at, weir__json tokens) {
    char quoted[64];
    weir__json_text text = {0}, key;
    weir__string name;
    int code = weir__at_text(at, &text);
    if (code || (code = weir__keep_text(a->file, text, &name, a->error)))
        return code;
    if (tokens.text)
        for (weir__json_object(&tokens); weir__json_next_key(&tokens, &key);)
            if (weir__json_same(key, name.data, name.size))
                return add_ids(a, tokens);
    weir__json_fail(&at, WEIR_EFORMAT, "TemplateProcessing: token \"%s\" is not among its special_tokens",
                    weir__quote(quoted, sizeof quoted, name.data, name.size));
    return tokens.code ? tokens.code : at.code;
}

static int add_sequence(around *a, weir__json at) {
    weir__json_text name = {0};
    int code = weir__at_text(at, &name);
    if (!code && (!weir__json_equal(name, "A") || a->behind))
        weir__json_fail(&at, WEIR_EUNSUPPORTED, "TemplateProcessing: \"single\" with anything but one sequence A is not supported");
    a->behind = true;
    return code ? code : at.code;
}

static int add_piece(around *a, weir__json at, weir__json tokens) {
    static const char *const kinds[] = {"SpecialToken", "Sequence"}, *const fields[] = {"id", "type_id"};
    weir__json kind[2], field[2];
    weir__json j = at;
    int code = weir__json_fields(&j, "TemplateProcessing", kinds, 2, kind);
    if (code)
        return code;
    bool sequence = kind[1].text != NULL;
    if (!kind[sequence].text) {
        weir__json_fail(&at, WEIR_EFORMAT, "TemplateProcessing: wanted a SpecialToken or a Sequence");
        return at.code;
    }
    code = weir__json_fields(&kind[sequence], kinds[sequence], fields, 2, field);
    if (code)
        return code;
    if (!field[0].text) {
        weir__json_fail(&at, WEIR_EFORMAT, "%s: found no \"id\"", kinds[sequence]);
        return at.code;
    }
    return sequence ? add_sequence(a, field[0]) : add_token(a, field[0], tokens);
}

static int read_template(around *a, weir__json at) {
    static const char *const fields[] = {"type", "single", "pair", "special_tokens"};
    weir__json field[4];
    int code = weir__json_fields(&at, "TemplateProcessing", fields, 4, field);
    if (code || !field[1].text)
        return code;
    for (weir__json_array(&field[1]); weir__json_next(&field[1]) && !code;)
        code = add_piece(a, field[1], field[3]);
    return code ? code : field[1].code;
}

/* A ["[SEP]", 102] of BertProcessing and RobertaProcessing. */
static int add_pair(around *a, weir__json at) {
    weir__json_text text;
    int64_t id;
    weir__json j = at;
    if (j.text && weir__json_array(&j) && weir__json_next(&j) && weir__json_string(&j, &text) && weir__json_next(&j) &&
        weir__json_int(&j, &id) && !weir__json_next(&j) && !j.code)
        return add_id(a, at, id);
    return j.code ? j.code
                  : weir_fail(a->error, WEIR_EFORMAT, "%s: post_processor: wanted \"cls\" and \"sep\", each a token and its id",
                              a->file->build->source);
}

static int read_bert(around *a, weir__json at) {
    static const char *const fields[] = {"type", "sep", "cls", "trim_offsets", "add_prefix_space"};
    weir__json field[5];
    int code = weir__json_fields(&at, "post_processor", fields, 5, field);
    if (code || (code = add_pair(a, field[2])))
        return code;
    a->behind = true;
    return add_pair(a, field[1]);
}

static int read_nothing(around *a, weir__json at) {
    static const char *const fields[] = {"type", "add_prefix_space", "trim_offsets", "use_regex"};
    weir__json field[4];
    (void)a;
    return weir__json_fields(&at, "post_processor ByteLevel", fields, 4, field);
}

static const struct processor {
    const char *name;
    int (*read)(around *a, weir__json at);
} processors[] = {
    {"TemplateProcessing", read_template},
    {"BertProcessing", read_bert},
    {"RobertaProcessing", read_bert},
    {"ByteLevel", read_nothing}, /* offsets only */
};

/* What one processor adds stands around what those before it added. */
static int put_around(around *a, weir_error **error) {
    int code = WEIR_OK;
    for (size_t i = a->n_before; i > 0 && !code; i--)
        code = weir__build_before(a->file->build, a->before[i - 1], error);
    for (size_t i = 0; i < a->n_after && !code; i++)
        code = weir__build_after(a->file->build, a->after[i], error);
    return code;
}

static int read_processor(void *data, weir__json at, weir__json_text type, weir_error **error) {
    char name[48];
    around a = {.file = data, .error = error};
    for (size_t i = 0; i < sizeof processors / sizeof processors[0]; i++)
        if (weir__json_equal(type, processors[i].name)) {
            int code = processors[i].read(&a, at);
            return code ? code : put_around(&a, error);
        }
    weir__json_fail(&at, WEIR_EUNSUPPORTED, "post_processor \"%s\" is not supported", weir__quote(name, sizeof name, type.data, type.size));
    return at.code;
}

int weir__post_read(const weir__tokenizer_file *f, weir__json at, weir_error **error) {
    return weir__components(at, "post_processor", "processors", read_processor, (void *)f, error);
}
