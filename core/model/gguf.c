/* gguf.c: opens GGUF files, finds keys and tensors in them, reads their bytes. The structure of the header is gguf_parse.c's. */
#include "gguf.h"

#include "gguf_internal.h"

#include <math.h>
#include <string.h>

/* Parses what *file or the header's bytes hold; file and bytes are taken. */
static int parse(weir__file *file, weir__header *h, weir__gguf **out, weir_error **error) {
    weir_system *s = file->system;
    weir__gguf *g = weir__alloc(s, sizeof *g);
    char *path = weir__strdup(s, file->path);
    if (!g || !path) {
        int code = weir_fail(error, WEIR_ENOMEM, "%s", file->path);
        weir__file_close(file);
        weir__free(s, h->data);
        weir__free(s, path);
        weir__free(s, g);
        return code;
    }
    g->system = s;
    g->file = *file;
    g->file.path = path;
    h->file = &g->file;
    int code = weir__gguf_parse_header(g, h, error);
    g->header = h->data;
    if (code)
        weir__gguf_free(g);
    else
        *out = g;
    return code;
}

int weir__gguf_open(weir_system *s, const char *path, weir__gguf **out, weir_error **error) {
    weir__file file;
    int code = weir__file_open(s, path, &file, error);
    return code ? code : parse(&file, &(weir__header){0}, out, error);
}

int weir__gguf_parse(weir_system *s, const char *name, const void *bytes, size_t size, uint64_t file_size, weir__gguf **out,
                     weir_error **error) {
    weir__file file = {.system = s, .path = name, .fd = -1, .size = file_size > size ? file_size : size};
    weir__header h = {.data = weir__alloc(s, size + 1), .size = size, .room = size};
    if (!h.data)
        return weir_fail(error, WEIR_ENOMEM, "%s", name);
    if (size > 0)
        memcpy(h.data, bytes, size);
    return parse(&file, &h, out, error);
}

void weir__gguf_free(weir__gguf *g) {
    if (!g)
        return;
    weir__file_close(&g->file);
    weir__index_fini(g->system, &g->key_index);
    weir__index_fini(g->system, &g->tensor_index);
    weir__free(g->system, g->header);
    weir__free(g->system, g->keys);
    weir__free(g->system, g->tensors);
    weir__free(g->system, (char *)(uintptr_t)g->file.path);
    weir__free(g->system, g);
}

const char *weir__gguf_path(const weir__gguf *g) {
    return g->file.path;
}
size_t weir__gguf_key_count(const weir__gguf *g) {
    return g->n_keys;
}
const weir__gguf_key *weir__gguf_key_at(const weir__gguf *g, size_t i) {
    return i < g->n_keys ? &g->keys[i] : NULL;
}
size_t weir__gguf_tensor_count(const weir__gguf *g) {
    return g->n_tensors;
}
const weir__tensor *weir__gguf_tensor_at(const weir__gguf *g, size_t i) {
    return i < g->n_tensors ? &g->tensors[i] : NULL;
}

const weir__gguf_key *weir__gguf_find(const weir__gguf *g, const char *key) {
    int64_t i = weir__index_find(&g->key_index, key, strlen(key));
    return i >= 0 ? &g->keys[i] : NULL;
}

const weir__tensor *weir__gguf_find_tensor(const weir__gguf *g, const char *name) {
    int64_t i = weir__index_find(&g->tensor_index, name, strlen(name));
    return i >= 0 ? &g->tensors[i] : NULL;
}

/* The key, NULL if absent: then *code says whether that is an error. */
static const weir__gguf_key *want(const weir__gguf *g, const char *name, bool required, int *code, weir_error **error) {
    const weir__gguf_key *key = weir__gguf_find(g, name);
    *code = key || !required ? WEIR_OK : weir_fail(error, WEIR_EFORMAT, "%s: key \"%s\": not found, but needed", g->file.path, name);
    return key;
}

static int wrong_type(const weir__gguf *g, const char *name, const weir__gguf_key *key, const char *wanted, weir_error **error) {
    return weir_fail(error, WEIR_EFORMAT, "%s: key \"%s\": found %s, wanted %s", g->file.path, name, weir__gguf_type_name(key->type),
                     wanted);
}

bool weir__gguf_integer(const weir__gguf_key *key, int64_t *v, bool *above) {
    const uint8_t *p = key->data;
    *above = false;
    switch (key->type) {
    case WEIR__GGUF_U8:
        *v = p[0];
        return true;
    case WEIR__GGUF_I8:
        *v = (int8_t)p[0];
        return true;
    case WEIR__GGUF_U16:
        *v = p[0] | p[1] << 8;
        return true;
    case WEIR__GGUF_I16:
        *v = (int16_t)(p[0] | p[1] << 8);
        return true;
    case WEIR__GGUF_U32:
        *v = weir__le32(p);
        return true;
    case WEIR__GGUF_I32:
        *v = (int32_t)weir__le32(p);
        return true;
    case WEIR__GGUF_U64:
    case WEIR__GGUF_I64:
        *v = (int64_t)weir__le64(p);
        *above = key->type == WEIR__GGUF_U64 && *v < 0;
        return true;
    default:
        return false;
    }
}

int weir__gguf_get_int(const weir__gguf *g, const char *name, bool required, int64_t min, int64_t max, int64_t *v, weir_error **error) {
    int code;
    bool above;
    int64_t found;
    const weir__gguf_key *key = want(g, name, required, &code, error);
    if (!key)
        return code;
    if (!weir__gguf_integer(key, &found, &above))
        return wrong_type(g, name, key, min >= 0 ? "an unsigned integer" : "an integer", error);
    if (above)
        return weir_fail(error, WEIR_EFORMAT, "%s: key \"%s\": found %llu, wanted %lld to %lld", g->file.path, name,
                         (unsigned long long)found, (long long)min, (long long)max);
    if (found < min || found > max)
        return weir_fail(error, WEIR_EFORMAT, "%s: key \"%s\": found %lld, wanted %lld to %lld", g->file.path, name, (long long)found,
                         (long long)min, (long long)max);
    *v = found;
    return WEIR_OK;
}

int weir__gguf_get_float(const weir__gguf *g, const char *name, bool required, double *v, weir_error **error) {
    int code;
    double found;
    const weir__gguf_key *key = want(g, name, required, &code, error);
    if (!key)
        return code;
    if (key->type == WEIR__GGUF_F32) {
        float narrow;
        uint32_t bits = weir__le32(key->data);
        memcpy(&narrow, &bits, sizeof narrow);
        found = narrow;
    } else if (key->type == WEIR__GGUF_F64) {
        uint64_t bits = weir__le64(key->data);
        memcpy(&found, &bits, sizeof found);
    } else {
        return wrong_type(g, name, key, "a float", error);
    }
    if (!isfinite(found))
        return weir_fail(error, WEIR_EFORMAT, "%s: key \"%s\": found %f, wanted a finite number", g->file.path, name, found);
    *v = found;
    return WEIR_OK;
}

int weir__gguf_get_bool(const weir__gguf *g, const char *name, bool required, bool *v, weir_error **error) {
    int code;
    const weir__gguf_key *key = want(g, name, required, &code, error);
    if (!key)
        return code;
    if (key->type != WEIR__GGUF_BOOL)
        return wrong_type(g, name, key, "a bool", error);
    if (key->data[0] > 1)
        return weir_fail(error, WEIR_EFORMAT, "%s: key \"%s\": found %u, wanted a bool, 0 or 1", g->file.path, name, key->data[0]);
    *v = key->data[0];
    return WEIR_OK;
}

int weir__gguf_get_string(const weir__gguf *g, const char *name, bool required, weir__string *v, weir_error **error) {
    int code;
    const weir__gguf_key *key = want(g, name, required, &code, error);
    if (!key)
        return code;
    if (key->type != WEIR__GGUF_STRING)
        return wrong_type(g, name, key, "a string", error);
    const uint8_t *at = key->data;
    *v = weir__gguf_next_string(&at);
    return WEIR_OK;
}

weir__string weir__gguf_next_string(const uint8_t **at) {
    weir__string s = {(const char *)*at + 8, (size_t)weir__le64(*at)};
    *at += 8 + s.size;
    return s;
}

int weir__gguf_read(const weir__gguf *g, uint64_t offset, void *to, size_t size, weir_error **error) {
    if (g->file.fd < 0)
        return weir_fail(error, WEIR_EINVAL, "%s: read: made from memory, there is no file", g->file.path);
    return weir__file_read(&g->file, offset, to, size, error);
}
