/* tokenizer_json_added.c: added_tokens of a tokenizer.json. */
#include "tokenizer_json_internal.h"

#include <string.h>

enum { MOST_ADDED = 1 << 18 }; /* published files have under 70,000 */
enum { ID, CONTENT, SINGLE_WORD, LSTRIP, RSTRIP, NORMALIZED, SPECIAL, FIELDS };
static const char *const fields[FIELDS] = {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"};

int weir__added_count(weir__json at, size_t *count, int64_t *highest) {
    weir__json field[FIELDS];
    if (!at.text)
        return WEIR_OK;
    for (weir__json_array(&at); weir__json_next(&at); ++*count) {
        int64_t id = -1;
        if (weir__json_fields(&at, "added token", fields, FIELDS, field))
            return at.code;
        int code = weir__at_range(field[ID], 0, WEIR__MOST_PIECES - 1, &id);
        if (code)
            return code;
        if (id < 0 || !field[CONTENT].text)
            weir__json_fail(&at, WEIR_EFORMAT, "added token: found no \"%s\"", id < 0 ? "id" : "content");
        else if (*count == MOST_ADDED)
            weir__json_fail(&at, WEIR_ETOOBIG, "found more than %d added tokens", MOST_ADDED);
        *highest = id > *highest ? id : *highest;
    }
    return at.code;
}

/* Gives the token its place among the pieces. One that the model has too must have the model's id, as the tokenizers library would take that one. */
static int place(weir__build *b, weir__added *a, weir_error **error) {
    weir__string there = b->pieces[a->id];
    a->outside = !there.data || b->kinds[a->id] != WEIR__NORMAL;
    if (there.data && there.size == a->content.size && memcmp(there.data, a->content.data, there.size) == 0)
        return WEIR_OK;
    return weir__build_piece(b, a->id, a->content, a->special ? WEIR__CONTROL : WEIR__USER, error);
}

static int read_one(const weir__tokenizer_file *f, weir__json *at, weir__added *a, weir_error **error) {
    weir__json field[FIELDS];
    weir__json_text content = {0};
    int64_t id = 0;
    int code = weir__json_fields(at, "added token", fields, FIELDS, field);
    if (code || (code = weir__at_range(field[ID], 0, WEIR__MOST_PIECES - 1, &id)) || (code = weir__at_text(field[CONTENT], &content)) ||
        (code = weir__at_bool(field[SINGLE_WORD], &a->single_word)) || (code = weir__at_bool(field[LSTRIP], &a->lstrip)) ||
        (code = weir__at_bool(field[RSTRIP], &a->rstrip)) || (code = weir__at_bool(field[SPECIAL], &a->special)))
        return code;
    a->normalized = !a->special;
    if ((code = weir__at_bool(field[NORMALIZED], &a->normalized)))
        return code;
    a->id = (int32_t)id;
    a->content = weir__take(f, content);
    return a->content.size > 0 ? place(f->build, a, error) : WEIR_OK;
}

int weir__added_read(const weir__tokenizer_file *f, weir__json at, size_t count, weir_error **error) {
    weir__build *b = f->build;
    b->v.added = b->added = weir__build_alloc(b, count * sizeof *b->added + 1);
    if (!b->added)
        return weir_fail(error, WEIR_ENOMEM, "%s: %zu added tokens", b->source, count);
    if (!at.text)
        return WEIR_OK;
    for (weir__json_array(&at); weir__json_next(&at);) {
        weir__added *a = &b->added[b->v.n_added];
        int code = read_one(f, &at, a, error);
        if (code)
            return code;
        b->v.n_added += a->content.size > 0; /* an empty one is never found in a text */
    }
    return at.code;
}
