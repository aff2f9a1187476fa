/* tokenizer_slow.c: added tokens of forms from before tokenizer.json (tokenizer_slow.h). */
#include "tokenizer_slow.h"

#include "tokenizer_json_internal.h"

#include <string.h>

enum { MOST_ADDED = 8192 }; /* published files of these forms have under 2,000 */

int weir__slow_add(weir__build *b, const weir__added *a, weir_error **error) {
    if (!b->added)
        b->v.added = b->added = weir__build_alloc(b, MOST_ADDED * sizeof *b->added);
    if (!b->added)
        return weir_fail(error, WEIR_ENOMEM, "%s: added tokens", b->source);
    for (size_t i = 0; i < b->v.n_added; i++)
        if (b->added[i].id == a->id)
            return WEIR_OK;
    if (b->v.n_added == MOST_ADDED)
        return weir_fail(error, WEIR_ETOOBIG, "%s: more than %d added tokens", b->source, MOST_ADDED);
    b->added[b->v.n_added++] = *a;
    return WEIR_OK;
}

/* A key that is a decimal id. -1: it is none. */
static int64_t key_id(weir__json_text key) {
    int64_t id = 0;
    for (size_t i = 0; i < key.size; i++) {
        if (key.data[i] < '0' || key.data[i] > '9' || id >= WEIR__MOST_PIECES)
            return -1;
        id = id * 10 + (key.data[i] - '0');
    }
    return key.size > 0 && id < WEIR__MOST_PIECES ? id : -1;
}

static int add_token(weir__build *b, weir__json_text content, int64_t id, weir__added *a, int64_t *highest, weir_error **error) {
    const weir__tokenizer_file file = {.build = b};
    int code = weir__keep_text(&file, content, &a->content, error);
    if (code || a->content.size == 0)
        return code;
    a->id = (int32_t)id;
    *highest = id > *highest ? id : *highest;
    return weir__slow_add(b, a, error);
}

/* One of added_tokens_decoder: {"content": ..., flags}. */
static int read_described(weir__build *b, weir__json at, int64_t id, int64_t *highest, weir_error **error) {
    enum { CONTENT, SINGLE_WORD, LSTRIP, RSTRIP, NORMALIZED, SPECIAL, FIELDS };
    static const char *const fields[FIELDS] = {"content", "single_word", "lstrip", "rstrip", "normalized", "special"};
    weir__json field[FIELDS];
    weir__json_text content = {0};
    weir__added a = {0};
    int code = weir__json_fields(&at, "added token", fields, FIELDS, field);
    if (code || (code = weir__at_text(field[CONTENT], &content)) || (code = weir__at_bool(field[SINGLE_WORD], &a.single_word)) ||
        (code = weir__at_bool(field[LSTRIP], &a.lstrip)) || (code = weir__at_bool(field[RSTRIP], &a.rstrip)) ||
        (code = weir__at_bool(field[NORMALIZED], &a.normalized)) || (code = weir__at_bool(field[SPECIAL], &a.special)))
        return code;
    return add_token(b, content, id, &a, highest, error);
}

static int read_decoder(weir__build *b, weir__json at, int64_t *highest, weir_error **error) {
    weir__json_text key;
    int code = WEIR_OK;
    if (!at.text)
        return WEIR_OK;
    for (weir__json_object(&at); !code && weir__json_next_key(&at, &key);) {
        int64_t id = key_id(key);
        if (id < 0)
            weir__json_fail(&at, WEIR_EFORMAT, "added_tokens_decoder: wanted ids as keys");
        else
            code = read_described(b, at, id, highest, error);
    }
    return code ? code : at.code;
}

/* added_tokens.json: {"content": id}. */
static int read_file(weir__build *b, const weir__text_file *f, int64_t *highest, weir_error **error) {
    weir__json_text key;
    weir__json j;
    int code = WEIR_OK;
    if (!f->data)
        return WEIR_OK;
    weir__json_init(&j, f->path, f->data, f->size, error);
    for (weir__json_object(&j); !code && weir__json_next_key(&j, &key);) {
        int64_t id = -1;
        weir__added a = {.normalized = true};
        code = weir__at_range(j, 0, WEIR__MOST_PIECES - 1, &id);
        if (!code)
            code = add_token(b, key, id, &a, highest, error);
    }
    return code ? code : weir__json_finish(&j);
}

int weir__slow_added(weir__build *b, const weir__text_file *file, const weir__tokenizer_settings *t, int64_t *highest, weir_error **error) {
    int code = read_decoder(b, t->added, highest, error);
    return code ? code : read_file(b, file, highest, error);
}

int weir__slow_place(weir__build *b, weir_error **error) {
    int code = WEIR_OK;
    for (size_t i = 0; i < b->v.n_added && !code; i++) {
        weir__added *a = &b->added[i];
        weir__string there = b->pieces[a->id];
        a->outside = !there.data;
        if (!there.data || there.size != a->content.size || memcmp(there.data, a->content.data, there.size) != 0)
            code = weir__build_piece(b, a->id, a->content, a->special ? WEIR__CONTROL : WEIR__USER, error);
    }
    return code;
}
