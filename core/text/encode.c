/* encode.c: a prompt's parts become ids: added tokens are found where they are allowed, the text between them goes through the pipeline's steps to the model. */
#include "tokenizer.h"

#include <string.h>

int weir__ids_push(weir_system *s, weir__ids *ids, int32_t id) {
    if (weir__grow(s, &ids->data, &ids->room, ids->size + 1, sizeof *ids->data))
        return WEIR_ENOMEM;
    ids->data[ids->size++] = id;
    return WEIR_OK;
}

void weir__ids_free(weir_system *s, weir__ids *ids) {
    weir__free(s, ids->data);
    *ids = (weir__ids){0};
}

int weir__push(weir__encoder *e, int32_t id, weir_error **error) {
    return weir__ids_push(e->system, e->ids, id) ? weir_fail(error, WEIR_ENOMEM, "tokeniser") : WEIR_OK;
}

int weir__push_unknown(weir__encoder *e, weir__string text, weir_error **error) {
    const weir__tokenizer *t = e->t;
    bool bytes = t->byte_fallback;
    char shown[32];
    int code = WEIR_OK;
    for (size_t i = 0; i < text.size && bytes; i++)
        bytes = t->byte_ids[(unsigned char)text.data[i]] >= 0;
    if (!bytes && t->unk < 0)
        return weir_fail(error, WEIR_EINVAL, "tokeniser: no piece for \"%s\", and the vocabulary has no unknown piece",
                         weir__quote(shown, sizeof shown, text.data, text.size));
    if (!bytes)
        return weir__push(e, t->unk, error);
    for (size_t i = 0; i < text.size && !code; i++)
        code = weir__push(e, t->byte_ids[(unsigned char)text.data[i]], error);
    return code;
}

static bool is_mark(const char *p, size_t n) {
    return n >= WEIR__SPACE_MARK_SIZE && memcmp(p, WEIR__SPACE_MARK, WEIR__SPACE_MARK_SIZE) == 0;
}

size_t weir__mark_cut(const weir__tokenizer *t, weir__string chunk) {
    size_t at = 0;
    if (!t->cuts_at_mark)
        return chunk.size;
    while (is_mark(chunk.data + at, chunk.size - at))
        at += WEIR__SPACE_MARK_SIZE;
    const char *next = at < chunk.size ? memmem(chunk.data + at, chunk.size - at, WEIR__SPACE_MARK, WEIR__SPACE_MARK_SIZE) : NULL;
    return next ? (size_t)(next - chunk.data) : chunk.size;
}

/* Normalised text without added tokens. */
static int encode_text(weir__encoder *e, weir__string text, bool first, weir_error **error) {
    const weir__cuts *cuts;
    if (text.size == 0)
        return WEIR_OK;
    int code = weir__pretokenise(&e->t->pretokeniser, &e->work, text, first, &text, &cuts, error);
    for (size_t i = 0; !code && i < cuts->size; i++) {
        if (cuts->data[i].size > 0)
            code = e->t->model->encode(e, (weir__string){text.data + cuts->data[i].begin, cuts->data[i].size}, error);
    }
    return code;
}

/* Text in which added tokens have been looked for as it stood; now in its normalised form. */
static int encode_section(weir__encoder *e, weir__string text, bool first, weir_error **error) {
    const weir__trie *trie = &e->t->normalized;
    size_t from = 0, at = 0;
    if (text.size == 0)
        return WEIR_OK;
    int code = weir__normalise(&e->t->normaliser, &e->work, text, &text, error);
    if (code || text.size == 0)
        return code;
    while (!code && trie->nodes > 0 && at < text.size) {
        weir__found f = weir__added_at(e->t, trie, text, from, at, 0);
        if (!f.added) {
            at = f.end > at ? f.end : at + 1;
            continue;
        }
        code = encode_text(e, (weir__string){text.data + from, f.begin - from}, first && from == 0, error);
        if (!code)
            code = weir__push(e, f.added->id, error);
        from = at = f.end;
    }
    return code ? code : encode_text(e, (weir__string){text.data + from, text.size - from}, first && from == 0, error);
}

/* All parts as one text. */
static int join(weir__encoder *e, const weir__part *parts, size_t n, weir__string *text, weir_error **error) {
    size_t size = 0;
    for (size_t i = 0; i < n; i++) {
        if (parts[i].size > WEIR_MAX_TEXT - size)
            return weir_fail(error, WEIR_ETOOBIG, "tokeniser: more than %u bytes of text", WEIR_MAX_TEXT);
        size += parts[i].size;
    }
    *text = n > 0 ? (weir__string){parts[0].text, size} : (weir__string){"", 0};
    if (n < 2)
        return WEIR_OK;
    char *to = e->joined = weir__alloc(e->system, size + 1);
    if (!to)
        return weir_fail(error, WEIR_ENOMEM, "tokeniser: a text of %zu bytes", size);
    for (size_t i = 0; i < n; i++) {
        if (parts[i].size > 0)
            memcpy(to, parts[i].text, parts[i].size);
        to += parts[i].size;
    }
    text->data = e->joined;
    return WEIR_OK;
}

static int encode_parts(weir__encoder *e, const weir__part *parts, size_t n, weir_error **error) {
    weir__string text;
    size_t from = 0, at = 0, part = 0, part_end = n > 0 ? parts[0].size : 0;
    int code = join(e, parts, n, &text, error);
    while (!code && e->t->raw.nodes > 0 && at < text.size) {
        while (at >= part_end && part + 1 < n)
            part_end += parts[++part].size;
        weir__found f = weir__added_at(e->t, &e->t->raw, text, from, at, parts[part].special ? part_end : 0);
        if (!f.added) {
            at = f.end > at ? f.end : at + 1;
            continue;
        }
        code = encode_section(e, (weir__string){text.data + from, f.begin - from}, from == 0, error);
        if (!code)
            code = weir__push(e, f.added->id, error);
        from = at = f.end;
    }
    return code ? code : encode_section(e, (weir__string){text.data + from, text.size - from}, from == 0, error);
}

static int push_all(weir__encoder *e, const int32_t *ids, size_t n, weir_error **error) {
    int code = WEIR_OK;
    for (size_t i = 0; i < n && !code; i++)
        code = weir__push(e, ids[i], error);
    return code;
}

int weir__tokenizer_encode(const weir__tokenizer *t, const weir__part *parts, size_t n, bool bounds, weir__ids *ids, weir_error **error) {
    weir__encoder e = {.t = t, .system = t->system, .ids = ids, .work.system = t->system};
    size_t before = ids->size;
    int code = push_all(&e, t->before, bounds ? t->n_before : 0, error);
    if (!code)
        code = encode_parts(&e, parts, n, error);
    if (!code)
        code = push_all(&e, t->after, bounds ? t->n_after : 0, error);
    if (code)
        ids->size = before;
    weir__merge_fini(e.system, &e.merge);
    weir__work_fini(&e.work);
    weir__free(e.system, e.joined);
    weir__free(e.system, e.starts);
    weir__free(e.system, e.cells);
    return code;
}
