/* source_gguf.c: GGUF files as a source (source.h). The header itself is read by gguf.c. */
#include "gguf_internal.h"
#include "source_internal.h"
#include "split.h"

#include <stdio.h>
#include <string.h>

#define TEMPLATE "tokenizer.chat_template"

static const weir__gguf *first(const weir__source *src) {
    return ((const weir__parts *)src->data)->gguf[0];
}

const struct weir__gguf *weir__gguf_source_keys(const weir__source *src) {
    return first(src);
}

static int gather(weir__source *src, const weir__parts *p, weir_error **error) {
    size_t n = 0;
    for (uint32_t i = 0; i < p->count; i++)
        n += weir__gguf_tensor_count(p->gguf[i]);
    src->files = weir__alloc(src->system, p->count * sizeof *src->files);
    src->tensors = weir__alloc(src->system, (n + 1) * sizeof *src->tensors);
    if (!src->files || !src->tensors)
        return weir_fail(error, WEIR_ENOMEM, "%s: no memory for %zu tensors", src->path, n);
    src->n_files = p->count;
    for (uint32_t i = 0; i < p->count; i++) {
        src->files[i] = p->gguf[i]->file;
        for (size_t t = 0; t < weir__gguf_tensor_count(p->gguf[i]); t++) {
            src->tensors[src->n_tensors] = *weir__gguf_tensor_at(p->gguf[i], t);
            src->tensors[src->n_tensors++].file = i;
        }
    }
    return WEIR_OK;
}

static int open_parts(weir__source *src, weir_error **error) {
    weir__parts *p = NULL;
    int code = weir__parts_open(src->system, src->main, &p, error);
    src->data = p;
    return code ? code : gather(src, p, error);
}

static void close_parts(weir__source *src) {
    weir__parts_free(src->data);
}

/* ---- settings ---- */

static void set_integer(weir__value *v, enum weir__value_kind kind, int64_t n) {
    v->kind = kind;
    v->integer = n;
    v->real = (double)n;
}

/* A scalar or string at p. */
static void value_at(enum weir__gguf_type type, const uint8_t *p, weir__value *v) {
    float narrow;
    switch (type) {
    case WEIR__GGUF_STRING:
        v->kind = WEIR__TEXT;
        v->text = weir__gguf_next_string(&p);
        return;
    case WEIR__GGUF_F32:
        memcpy(&narrow, p, sizeof narrow);
        v->kind = WEIR__REAL;
        v->real = (double)narrow;
        return;
    case WEIR__GGUF_F64:
        v->kind = WEIR__REAL;
        memcpy(&v->real, p, sizeof v->real);
        return;
    case WEIR__GGUF_BOOL:
        set_integer(v, WEIR__BOOLEAN, *p);
        return;
    case WEIR__GGUF_U64:
        if (weir__le64(p) > INT64_MAX) {
            v->kind = WEIR__REAL;
            v->real = (double)weir__le64(p);
            return;
        }
        set_integer(v, WEIR__INTEGER, (int64_t)weir__le64(p));
        return;
    default: {
        int64_t n = 0;
        bool above;
        weir__gguf_key key = {.type = type, .data = p};
        if (weir__gguf_integer(&key, &n, &above))
            set_integer(v, WEIR__INTEGER, n);
    }
    }
}

static void value_of(const weir__gguf_key *key, weir__value *v) {
    *v = (weir__value){0};
    if (key && key->type == WEIR__GGUF_ARRAY)
        *v = (weir__value){.kind = WEIR__LIST, .count = key->count};
    else if (key)
        value_at(key->type, key->data, v);
}

static void get(const weir__source *src, const char *key, weir__value *v) {
    value_of(weir__gguf_find(first(src), key), v);
}

static void element(const weir__source *src, const char *name, uint64_t i, weir__value *v) {
    const weir__gguf_key *key = weir__gguf_find(first(src), name);
    *v = (weir__value){0};
    if (!key || key->type != WEIR__GGUF_ARRAY || i >= key->count || key->element == WEIR__GGUF_ARRAY)
        return;
    const uint8_t *at = key->data;
    if (key->element == WEIR__GGUF_STRING)
        for (uint64_t skip = 0; skip < i; skip++)
            weir__gguf_next_string(&at);
    else
        at += i * weir__gguf_type_size(key->element);
    value_at(key->element, at, v);
}

static int each(const weir__source *src, weir__setting_fn *fn, void *data, weir_error **error) {
    for (size_t i = 0; i < weir__gguf_key_count(first(src)); i++) {
        const weir__gguf_key *key = weir__gguf_key_at(first(src), i);
        char name[WEIR_GGUF_MAX_NAME + 1];
        weir__value v;
        snprintf(name, sizeof name, "%.*s", (int)key->name.size, key->name.data);
        value_of(key, &v);
        int code = fn(data, name, &v, error);
        if (code)
            return code;
    }
    return WEIR_OK;
}

/* ---- text ---- */

static int vocab(const weir__source *src, weir__vocab_fn *fn, void *data, weir_error **error) {
    return weir__gguf_vocab(first(src), fn, data, error);
}

static bool chat_template(const weir__source *src, const char *name, weir__string *text) {
    char key[WEIR_GGUF_MAX_NAME];
    int n = snprintf(key, sizeof key, name ? TEMPLATE ".%s" : TEMPLATE, name);
    weir__value v = {0};
    if (n > 0 && (size_t)n < sizeof key)
        get(src, key, &v);
    *text = v.text;
    return v.kind == WEIR__TEXT;
}

static bool template_name(const weir__source *src, uint32_t i, weir__string *name) {
    for (size_t k = 0; k < weir__gguf_key_count(first(src)); k++) {
        weir__string key = weir__gguf_key_at(first(src), k)->name;
        if (key.size <= sizeof TEMPLATE || memcmp(key.data, TEMPLATE ".", sizeof TEMPLATE) != 0 || i-- > 0)
            continue;
        *name = (weir__string){key.data + sizeof TEMPLATE, key.size - sizeof TEMPLATE};
        return true;
    }
    return false;
}

const weir__format_ops weir__gguf_format = {open_parts,    close_parts,           get, element, each, vocab, chat_template,
                                            template_name, "general.architecture"};
