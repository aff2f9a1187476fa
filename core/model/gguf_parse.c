/* gguf_parse.c: the structure of a GGUF v3 header. It is walked twice by the same code: first to check every length against the bytes that are there, reading
 * on as needed; then, with all of it in memory and its size known, to fill the tables. Iterative throughout. */
#include "gguf_internal.h"

#include <stdio.h>
#include <string.h>

enum { VERSION = 3, DEFAULT_ALIGNMENT = 32, LEAST_KEY = 8 + 1 + 4 + 1, LEAST_TENSOR = 8 + 1 + 4 + 8 + 4 + 8 }; /* bytes */
enum { LEAST_ALIGNMENT = 8, MOST_ALIGNMENT = 1 << 20 };

static const struct {
    const char *name;
    size_t size;
} types[WEIR__GGUF_TYPES] = {
    [WEIR__GGUF_U8] = {"u8", 1},       [WEIR__GGUF_I8] = {"i8", 1},   [WEIR__GGUF_U16] = {"u16", 2}, [WEIR__GGUF_I16] = {"i16", 2},
    [WEIR__GGUF_U32] = {"u32", 4},     [WEIR__GGUF_I32] = {"i32", 4}, [WEIR__GGUF_F32] = {"f32", 4}, [WEIR__GGUF_BOOL] = {"bool", 1},
    [WEIR__GGUF_U64] = {"u64", 8},     [WEIR__GGUF_I64] = {"i64", 8}, [WEIR__GGUF_F64] = {"f64", 8}, [WEIR__GGUF_STRING] = {"string", 0},
    [WEIR__GGUF_ARRAY] = {"array", 0},
};

size_t weir__gguf_type_size(uint32_t type) {
    return type < WEIR__GGUF_TYPES ? types[type].size : 0;
}
const char *weir__gguf_type_name(uint32_t type) {
    return type < WEIR__GGUF_TYPES ? types[type].name : NULL;
}

/* "key "general.name"", "tensor "output.weight"": who an error is about. */
typedef struct label {
    char text[160];
} label;
static const char *name_it(label *l, const char *what, weir__string name) {
    char shown[128];
    snprintf(l->text, sizeof l->text, "%s \"%s\"", what, weir__quote(shown, sizeof shown, name.data, name.size));
    return l->text;
}

/* The head of an array: element type and count, of which the least bytes must be there. */
static int array_head(weir__header *h, const char *what, uint32_t *element, uint64_t *count, weir_error **error) {
    int code = weir__header_u32(h, what, element, error);
    if (!code)
        code = weir__header_u64(h, what, count, error);
    if (code)
        return code;
    if (!weir__gguf_type_name(*element))
        return weir_fail(error, WEIR_EFORMAT, "%s: %s: found an array of type %u, wanted 0 to %d", h->file->path, what, *element,
                         WEIR__GGUF_TYPES - 1);
    size_t least = *element == WEIR__GGUF_STRING ? 8 : *element == WEIR__GGUF_ARRAY ? 12 : weir__gguf_type_size(*element);
    if (*count > (h->file->size - h->at) / least)
        return weir_fail(error, WEIR_EFORMAT,
                         "%s: %s: found an array of %llu elements, wanted at most the %llu bytes that the file has left", h->file->path,
                         what, (unsigned long long)*count, (unsigned long long)(h->file->size - h->at));
    return WEIR_OK;
}

/* Passes over the elements of an array of strings or scalars. */
static int skip_elements(weir__header *h, const char *what, uint32_t element, uint64_t count, weir_error **error) {
    weir__string s;
    int code = WEIR_OK;
    if (element == WEIR__GGUF_STRING) {
        for (uint64_t i = 0; i < count && !code; i++)
            code = weir__header_string(h, what, UINT64_MAX, &s, error);
        return code;
    }
    uint64_t bytes = count * weir__gguf_type_size(element); /* at most what the file has left */
    code = weir__header_need(h, bytes, what, error);
    h->at += code ? 0 : (size_t)bytes;
    return code;
}

/* Passes over arrays in an array: left[depth] arrays are still to come at each depth. */
static int skip_nested(weir__header *h, const char *what, uint64_t count, weir_error **error) {
    uint64_t left[WEIR_GGUF_MAX_NESTING] = {count};
    int depth = 0, code = WEIR_OK;
    while (depth >= 0 && !code) {
        uint32_t element;
        uint64_t n;
        if (left[depth] == 0) {
            depth--;
            continue;
        }
        left[depth]--;
        code = array_head(h, what, &element, &n, error);
        if (code)
            break;
        if (element != WEIR__GGUF_ARRAY)
            code = skip_elements(h, what, element, n, error);
        else if (++depth < WEIR_GGUF_MAX_NESTING)
            left[depth] = n;
        else
            code =
                weir_fail(error, WEIR_EFORMAT, "%s: %s: found arrays nested more than %d deep", h->file->path, what, WEIR_GGUF_MAX_NESTING);
    }
    return code;
}

static int walk_value(weir__header *h, const char *what, uint32_t type, weir__gguf_key *key, weir_error **error) {
    weir__string s;
    uint32_t element = 0;
    uint64_t count = 1;
    size_t from = h->at;
    int code;
    if (type == WEIR__GGUF_STRING) {
        code = weir__header_string(h, what, UINT64_MAX, &s, error);
    } else if (type == WEIR__GGUF_ARRAY) {
        code = array_head(h, what, &element, &count, error);
        from = h->at;
        if (!code)
            code = element == WEIR__GGUF_ARRAY ? skip_nested(h, what, count, error) : skip_elements(h, what, element, count, error);
    } else {
        code = skip_elements(h, what, type, 1, error);
    }
    if (code)
        return code;
    key->element = (enum weir__gguf_type)element;
    key->count = count;
    key->data = h->data + from;
    key->size = h->at - from;
    return WEIR_OK;
}

/* Pointers in *key are valid until the header grows. */
static int walk_key(weir__header *h, size_t i, weir__gguf_key *key, weir_error **error) {
    label l;
    uint32_t type;
    snprintf(l.text, sizeof l.text, "key %zu", i);
    size_t from = h->at;
    int code = weir__header_string(h, l.text, WEIR_GGUF_MAX_NAME, &key->name, error);
    if (code)
        return code;
    if (key->name.size == 0)
        return weir_fail(error, WEIR_EFORMAT, "%s: key %zu: found an empty name", h->file->path, i);
    name_it(&l, "key", key->name);
    code = weir__header_u32(h, l.text, &type, error);
    if (code)
        return code;
    if (!weir__gguf_type_name(type))
        return weir_fail(error, WEIR_EFORMAT, "%s: %s: found type %u, wanted 0 to %d", h->file->path, l.text, type, WEIR__GGUF_TYPES - 1);
    key->type = (enum weir__gguf_type)type;
    code = walk_value(h, l.text, type, key, error);
    key->name.data = (const char *)h->data + from + 8;
    return code;
}

/* Bytes of a tensor; false: they do not fit 63 bits. The row length is a multiple of the block. */
static bool tensor_bytes(const weir__tensor *t, const weir_type_info *info, uint64_t *bytes) {
    int64_t n = t->dims[0] / info->block;
    bool over = __builtin_mul_overflow(n, (int64_t)info->bytes, &n);
    for (int i = 1; i < WEIR_MAX_DIMS; i++)
        over |= __builtin_mul_overflow(n, t->dims[i], &n);
    *bytes = (uint64_t)n;
    return !over;
}

static int walk_dims(weir__header *h, const char *what, weir__tensor *t, weir_error **error) {
    int code = weir__header_u32(h, what, &t->n_dims, error);
    if (code)
        return code;
    if (t->n_dims == 0 || t->n_dims > WEIR_MAX_DIMS)
        return weir_fail(error, WEIR_EFORMAT, "%s: %s: found %u dimensions, wanted 1 to %d", h->file->path, what, t->n_dims, WEIR_MAX_DIMS);
    for (unsigned i = 0; i < WEIR_MAX_DIMS; i++) {
        uint64_t n = 1;
        code = i < t->n_dims ? weir__header_u64(h, what, &n, error) : WEIR_OK;
        if (code)
            return code;
        if (n == 0 || n > INT64_MAX)
            return weir_fail(error, WEIR_EFORMAT, "%s: %s: dimension %u: found %llu, wanted 1 to 2^63 - 1", h->file->path, what, i,
                             (unsigned long long)n);
        t->dims[i] = (int64_t)n;
    }
    return WEIR_OK;
}

/* Afterwards `offset` counts from the beginning of the tensor data. */
static int walk_tensor(weir__header *h, size_t i, weir__tensor *t, weir_error **error) {
    label l;
    uint32_t type;
    snprintf(l.text, sizeof l.text, "tensor %zu", i);
    size_t from = h->at;
    int code = weir__header_string(h, l.text, WEIR_GGUF_MAX_NAME, &t->name, error);
    if (code)
        return code;
    if (t->name.size == 0)
        return weir_fail(error, WEIR_EFORMAT, "%s: tensor %zu: found an empty name", h->file->path, i);
    name_it(&l, "tensor", t->name);
    code = walk_dims(h, l.text, t, error);
    if (!code)
        code = weir__header_u32(h, l.text, &type, error);
    if (!code)
        code = weir__header_u64(h, l.text, &t->offset, error);
    if (code)
        return code;
    t->name.data = (const char *)h->data + from + 8;
    const weir_type_info *info = type <= INT32_MAX ? weir_type_any((int)type) : NULL;
    if (!info)
        return weir_fail(error, WEIR_EFORMAT, "%s: %s: found weight type %u, which is no type of GGUF", h->file->path, l.text, type);
    if (t->dims[0] % info->block != 0)
        return weir_fail(error, WEIR_EFORMAT, "%s: %s: found rows of %lld values, wanted a multiple of the block of %s, %u", h->file->path,
                         l.text, (long long)t->dims[0], info->name, info->block);
    t->type = (int)type;
    if (!tensor_bytes(t, info, &t->size))
        return weir_fail(error, WEIR_EFORMAT, "%s: %s: its dimensions make more than 2^63 bytes", h->file->path, l.text);
    return WEIR_OK;
}

static int check_version(const weir__header *h, uint32_t version, weir_error **error) {
    if (version == VERSION)
        return WEIR_OK;
    if (version != 0 && (version & 0xFFFF) == 0)
        return weir_fail(error, WEIR_EUNSUPPORTED, "%s: found a big-endian GGUF file, wanted little-endian", h->file->path);
    return weir_fail(error, WEIR_EUNSUPPORTED, "%s: found GGUF version %u, wanted %d", h->file->path, version, VERSION);
}

static int walk_start(weir__header *h, uint64_t *n_tensors, uint64_t *n_keys, weir_error **error) {
    uint32_t version;
    int code = weir__header_need(h, 4, "magic number", error);
    if (code)
        return code;
    if (memcmp(h->data, "FUGG", 4) == 0)
        return weir_fail(error, WEIR_EUNSUPPORTED, "%s: found a big-endian GGUF file, wanted little-endian", h->file->path);
    if (memcmp(h->data, "GGUF", 4) != 0)
        return weir_fail(error, WEIR_EFORMAT, "%s: found %02x %02x %02x %02x at the beginning, wanted \"GGUF\"", h->file->path, h->data[0],
                         h->data[1], h->data[2], h->data[3]);
    h->at = 4;
    if ((code = weir__header_u32(h, "version", &version, error)) || (code = check_version(h, version, error)) ||
        (code = weir__header_u64(h, "number of tensors", n_tensors, error)) ||
        (code = weir__header_u64(h, "number of keys", n_keys, error)))
        return code;
    uint64_t left = h->file->size - h->at;
    if (*n_tensors > WEIR_GGUF_MAX_TENSORS || *n_tensors > left / LEAST_TENSOR)
        return weir_fail(error, WEIR_EFORMAT, "%s: found %llu tensors, wanted at most %d, and no more than %llu bytes can hold",
                         h->file->path, (unsigned long long)*n_tensors, WEIR_GGUF_MAX_TENSORS, (unsigned long long)left);
    if (*n_keys > WEIR_GGUF_MAX_KV || *n_keys > left / LEAST_KEY)
        return weir_fail(error, WEIR_EFORMAT, "%s: found %llu keys, wanted at most %d, and no more than %llu bytes can hold", h->file->path,
                         (unsigned long long)*n_keys, WEIR_GGUF_MAX_KV, (unsigned long long)left);
    return WEIR_OK;
}

/* Walks all of the header. Tables of NULL: only checks, and reads what is not in memory yet. */
static int walk(weir__header *h, size_t n_keys, size_t n_tensors, weir__gguf_key *keys, weir__tensor *tensors, weir_error **error) {
    weir__gguf_key key;
    weir__tensor tensor;
    int code = WEIR_OK;
    for (size_t i = 0; i < n_keys && !code; i++)
        code = walk_key(h, i, keys ? &keys[i] : &key, error);
    for (size_t i = 0; i < n_tensors && !code; i++)
        code = walk_tensor(h, i, tensors ? &tensors[i] : &tensor, error);
    return code;
}

static int index_names(weir__gguf *g, weir_error **error) {
    label l;
    if (weir__index_init(g->system, &g->key_index, g->keys, sizeof *g->keys, g->n_keys) ||
        weir__index_init(g->system, &g->tensor_index, g->tensors, sizeof *g->tensors, g->n_tensors))
        return weir_fail(error, WEIR_ENOMEM, "%s: names of %zu tensors", g->file.path, g->n_tensors);
    for (size_t i = 0; i < g->n_keys; i++) {
        if (!weir__index_add(&g->key_index, (uint32_t)i))
            return weir_fail(error, WEIR_EFORMAT, "%s: %s: found twice", g->file.path, name_it(&l, "key", g->keys[i].name));
    }
    for (size_t i = 0; i < g->n_tensors; i++) {
        if (!weir__index_add(&g->tensor_index, (uint32_t)i))
            return weir_fail(error, WEIR_EFORMAT, "%s: %s: found twice", g->file.path, name_it(&l, "tensor", g->tensors[i].name));
    }
    return WEIR_OK;
}

static int read_alignment(const weir__gguf *g, uint64_t *alignment, weir_error **error) {
    const weir__gguf_key *key = weir__gguf_find(g, "general.alignment");
    *alignment = DEFAULT_ALIGNMENT;
    if (!key)
        return WEIR_OK;
    if (key->type != WEIR__GGUF_U32)
        return weir_fail(error, WEIR_EFORMAT, "%s: key \"general.alignment\": found %s, wanted u32", g->file.path, types[key->type].name);
    *alignment = weir__le32(key->data);
    if (*alignment < LEAST_ALIGNMENT || *alignment > MOST_ALIGNMENT || (*alignment & (*alignment - 1)) != 0)
        return weir_fail(error, WEIR_EFORMAT, "%s: key \"general.alignment\": found %llu, wanted a power of two from %d to %d",
                         g->file.path, (unsigned long long)*alignment, LEAST_ALIGNMENT, MOST_ALIGNMENT);
    return WEIR_OK;
}

/* Turns offsets into places in the file; every tensor lies inside of it. */
static int place_tensors(weir__gguf *g, size_t header_size, weir_error **error) {
    uint64_t alignment;
    int code = read_alignment(g, &alignment, error);
    if (code)
        return code;
    uint64_t start = (header_size + alignment - 1) / alignment * alignment;
    uint64_t data = g->file.size > start ? g->file.size - start : 0;
    for (size_t i = 0; i < g->n_tensors; i++) {
        weir__tensor *t = &g->tensors[i];
        label l;
        if (t->offset % alignment != 0)
            return weir_fail(error, WEIR_EFORMAT, "%s: %s: found offset %llu, wanted a multiple of the alignment, %llu", g->file.path,
                             name_it(&l, "tensor", t->name), (unsigned long long)t->offset, (unsigned long long)alignment);
        uint64_t there = t->offset < data ? data - t->offset : 0;
        if (there < t->size)
            return weir_fail(error, WEIR_EFORMAT, "%s: %s: found %llu bytes before the end of the file, wanted %llu: the file is cut short",
                             g->file.path, name_it(&l, "tensor", t->name), (unsigned long long)there, (unsigned long long)t->size);
        t->offset += start;
    }
    return WEIR_OK;
}

int weir__gguf_parse_header(weir__gguf *g, weir__header *h, weir_error **error) {
    uint64_t n_tensors = 0, n_keys = 0;
    int code = walk_start(h, &n_tensors, &n_keys, error);
    if (code)
        return code;
    size_t start = h->at;
    code = walk(h, (size_t)n_keys, (size_t)n_tensors, NULL, NULL, error);
    if (code)
        return code;
    g->keys = weir__alloc(g->system, (size_t)(n_keys + 1) * sizeof *g->keys);
    g->tensors = weir__alloc(g->system, (size_t)(n_tensors + 1) * sizeof *g->tensors);
    uint8_t *exact = weir__realloc(g->system, h->data, h->at); /* gives back what was read too far */
    if (exact)
        h->data = exact;
    if (!g->keys || !g->tensors || !exact)
        return weir_fail(error, WEIR_ENOMEM, "%s: tables of %llu tensors", g->file.path, (unsigned long long)n_tensors);
    g->n_keys = (size_t)n_keys;
    g->n_tensors = (size_t)n_tensors;
    h->size = h->room = h->at;
    h->at = start;
    code = walk(h, g->n_keys, g->n_tensors, g->keys, g->tensors, error);
    if (!code)
        code = index_names(g, error);
    return code ? code : place_tensors(g, h->at, error);
}
