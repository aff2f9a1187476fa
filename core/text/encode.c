/* encode.c: a prompt's parts become ids: finds special pieces where they are allowed, gives the text between them to the vocabulary's model. */
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

static int no_memory(weir_error **error) {
    return weir_fail(error, WEIR_ENOMEM, "tokeniser");
}

static int push(weir__encoder *e, int32_t id, weir_error **error) {
    return weir__ids_push(e->system, e->ids, id) ? no_memory(error) : WEIR_OK;
}

static int add_text(weir__encoder *e, const char *text, size_t size, weir_error **error) {
    if (size == 0)
        return WEIR_OK;
    if (size > WEIR_MAX_TEXT - e->run_size)
        return weir_fail(error, WEIR_ETOOBIG, "tokeniser: more than %u bytes of text", WEIR_MAX_TEXT);
    if (weir__grow(e->system, &e->run, &e->run_room, e->run_size + size, 1))
        return no_memory(error);
    memcpy(e->run + e->run_size, text, size);
    e->run_size += size;
    return WEIR_OK;
}

static int flush(weir__encoder *e, weir_error **error) {
    size_t size = e->run_size;
    e->run_size = 0;
    return size > 0 ? e->t->model->encode(e, e->run, size, error) : WEIR_OK;
}

/* A part in which special pieces are recognised: leftmost first, the longest of those that begin at the same byte. */
static int add_special(weir__encoder *e, const char *text, size_t size, weir_error **error) {
    int code = WEIR_OK;
    size_t from = 0, at = 0;
    while (at < size && !code) {
        int32_t id = weir__special_at(e->t, text + at, size - at);
        if (id < 0) {
            at++;
            continue;
        }
        code = add_text(e, text + from, at - from, error);
        if (!code)
            code = flush(e, error);
        if (!code)
            code = push(e, id, error);
        from = at += e->t->pieces[id].size;
    }
    return code ? code : add_text(e, text + from, at - from, error);
}

static int encode(weir__encoder *e, const weir__part *parts, size_t n, bool bounds, weir_error **error) {
    int code = bounds && e->t->add_bos ? push(e, e->t->bos, error) : WEIR_OK;
    for (size_t i = 0; i < n && !code; i++)
        code = (parts[i].special ? add_special : add_text)(e, parts[i].text, parts[i].size, error);
    if (!code)
        code = flush(e, error);
    if (!code && bounds && e->t->add_eos)
        code = push(e, e->t->eos, error);
    return code;
}

int weir__tokenizer_encode(const weir__tokenizer *t, const weir__part *parts, size_t n, bool bounds, weir__ids *ids, weir_error **error) {
    weir__encoder e = {.t = t, .system = t->system, .ids = ids};
    size_t before = ids->size;
    int code = encode(&e, parts, n, bounds, error);
    if (code)
        ids->size = before;
    weir__merge_fini(e.system, &e.merge);
    weir__free(e.system, e.run);
    weir__free(e.system, e.marked);
    weir__free(e.system, e.starts);
    weir__pre_run_free(e.pre);
    return code;
}
