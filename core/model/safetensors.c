/* safetensors.c: the header of one safetensors file (safetensors.h): its bytes, its entries, and whether they cover the buffer. */
#include "safetensors.h"

#include "../text/index.h"
#include "../text/json.h"

#include <stdlib.h>
#include <string.h>

enum {
    LENGTH = 8,
    SHOWN = 128,
    DIGITS = 18
}; /* bytes of the header's length; of a name in an error; of a count that surely fits 63 bits */

static const weir__safetensors_type types[] = {
    {"F32", "f32", WEIR_F32, 32},    {"F16", "f16", WEIR_F16, 16},    {"BF16", "bf16", WEIR_BF16, 16}, {"I8", "i8", 24, 8},
    {"I16", "i16", 25, 16},          {"I32", "i32", 26, 32},          {"I64", "i64", 27, 64},          {"F64", "f64", 28, 64},
    {"U8", "u8", 1000, 8},           {"U16", "u16", 1001, 16},        {"U32", "u32", 1002, 32},        {"U64", "u64", 1003, 64},
    {"BOOL", "bool", 1004, 8},       {"C64", "c64", 1005, 64},        {"F8_E4M3", "f8_e4m3", 1006, 8}, {"F8_E5M2", "f8_e5m2", 1007, 8},
    {"F8_E8M0", "f8_e8m0", 1008, 8}, {"F6_E2M3", "f6_e2m3", 1009, 6}, {"F6_E3M2", "f6_e3m2", 1010, 6}, {"F4", "f4", 1011, 4},
};

const weir__safetensors_type *weir__safetensors_type_get(int type) {
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].type == type)
            return &types[i];
    return NULL;
}

/* ---- entries ---- */

/* An entry while it is read. */
typedef struct entry {
    weir__string name;
    int type;
    unsigned bits, n_dims;
    int64_t shape[WEIR_MAX_DIMS]; /* in the file's order: the row length last */
    int64_t from, to;             /* in the buffer */
    bool has_type, has_shape, has_offsets;
} entry;

/* Reports a fault of an entry. Returns false. */
#define entry_fail(j, e, format, ...)                                                                                                      \
    weir__json_fail(j, WEIR_EFORMAT, "tensor \"%s\": " format, weir__quote((char[SHOWN]){0}, SHOWN, (e)->name.data, (e)->name.size),       \
                    __VA_ARGS__)

/* A whole number of at most 18 digits. */
static bool read_count(weir__json *j, const entry *e, const char *what, int64_t *v) {
    weir__string s;
    char shown[48];
    *v = 0;
    if (weir__json_peek(j) == WEIR__JSON_ARRAY || weir__json_peek(j) == WEIR__JSON_OBJECT)
        return entry_fail(j, e, "%s: found no number", what);
    if (!weir__json_slice(j, &s))
        return false;
    for (size_t i = 0; i < s.size; i++) {
        if (s.size > DIGITS || s.data[i] < '0' || s.data[i] > '9')
            return entry_fail(j, e, "%s: found %s, wanted a whole number of at most %d digits", what,
                              weir__quote(shown, sizeof shown, s.data, s.size), DIGITS);
        *v = *v * 10 + (s.data[i] - '0');
    }
    return true;
}

static bool enter_list(weir__json *j, const entry *e, const char *what) {
    if (weir__json_peek(j) != WEIR__JSON_ARRAY)
        return entry_fail(j, e, "%s: found no array", what);
    return weir__json_array(j);
}

static bool read_shape(weir__json *j, entry *e) {
    if (!enter_list(j, e, "shape"))
        return false;
    while (weir__json_next(j)) {
        if (e->n_dims == WEIR_MAX_DIMS)
            return entry_fail(j, e, "found more than %d dimensions", WEIR_MAX_DIMS);
        if (!read_count(j, e, "shape", &e->shape[e->n_dims++]))
            return false;
    }
    return !j->code;
}

static bool read_offsets(weir__json *j, entry *e) {
    int64_t *const to[] = {&e->from, &e->to};
    int n = 0;
    if (!enter_list(j, e, "data_offsets"))
        return false;
    while (weir__json_next(j)) {
        if (n == 2)
            return entry_fail(j, e, "data_offsets: found more than %d numbers, wanted beginning and end", 2);
        if (!read_count(j, e, "data_offsets", to[n++]))
            return false;
    }
    if (!j->code && n < 2)
        return entry_fail(j, e, "data_offsets: found %d numbers, wanted beginning and end", n);
    if (!j->code && e->to < e->from)
        return entry_fail(j, e, "data_offsets: found an end, %lld, before the beginning, %lld", (long long)e->to, (long long)e->from);
    return !j->code;
}

static bool read_type(weir__json *j, entry *e) {
    weir__json_text name;
    char shown[48];
    if (weir__json_peek(j) != WEIR__JSON_STRING)
        return entry_fail(j, e, "dtype: found %s", "no string");
    if (!weir__json_string(j, &name))
        return false;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (!weir__json_equal(name, types[i].dtype))
            continue;
        e->type = types[i].type;
        e->bits = types[i].bits;
        return true;
    }
    return entry_fail(j, e, "dtype: found \"%s\", which is no type of safetensors", weir__quote(shown, sizeof shown, name.data, name.size));
}

static bool read_field(weir__json *j, entry *e, weir__json_text key) {
    static const struct {
        const char *name;
        bool (*read)(weir__json *j, entry *e);
    } fields[] = {{"dtype", read_type}, {"shape", read_shape}, {"data_offsets", read_offsets}};
    bool *const seen[] = {&e->has_type, &e->has_shape, &e->has_offsets};
    char shown[48];
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        if (!weir__json_equal(key, fields[i].name))
            continue;
        if (*seen[i])
            return entry_fail(j, e, "%s: found twice", fields[i].name);
        *seen[i] = true;
        return fields[i].read(j, e);
    }
    return entry_fail(j, e, "found key \"%s\", wanted dtype, shape and data_offsets", weir__quote(shown, sizeof shown, key.data, key.size));
}

/* Bytes that the shape makes; false: not below 2^63, or no whole number of them. */
static bool entry_bytes(const entry *e, int64_t *bytes) {
    int64_t n = e->bits;
    bool empty = false, over = false;
    for (unsigned i = 0; i < e->n_dims; i++) {
        empty |= e->shape[i] == 0;
        over |= __builtin_mul_overflow(n, e->shape[i], &n);
    }
    *bytes = empty ? 0 : n / 8;
    return empty || (!over && n % 8 == 0);
}

static bool check_entry(weir__json *j, const entry *e) {
    int64_t bytes;
    if (!e->has_type || !e->has_shape || !e->has_offsets)
        return entry_fail(j, e, "%s: not found, but needed", !e->has_type ? "dtype" : !e->has_shape ? "shape" : "data_offsets");
    if (!entry_bytes(e, &bytes))
        return entry_fail(j, e, "shape: it makes more than 2^63 bits, or no whole number of bytes of %u-bit values", e->bits);
    if (bytes != e->to - e->from)
        return entry_fail(j, e, "data_offsets: found %lld bytes, wanted %lld as dtype and shape say", (long long)(e->to - e->from),
                          (long long)bytes);
    return true;
}

/* Adds an entry to the table; its offset still counts from the buffer's beginning. */
static bool add_tensor(weir__safetensors *st, weir__json *j, const entry *e) {
    if (st->n_tensors == WEIR_SAFETENSORS_MAX_TENSORS)
        return weir__json_fail(j, WEIR_EFORMAT, "found more than %d tensors", WEIR_SAFETENSORS_MAX_TENSORS);
    if (weir__grow(st->system, &st->tensors, &st->room, st->n_tensors + 1, sizeof *st->tensors))
        return weir__json_fail(j, WEIR_ENOMEM, "no memory for %zu tensors", st->n_tensors + 1);
    weir__tensor *t = &st->tensors[st->n_tensors++];
    *t = (weir__tensor){.name = e->name,
                        .type = e->type,
                        .n_dims = e->n_dims,
                        .dims = {1, 1, 1, 1},
                        .offset = (uint64_t)e->from,
                        .size = (uint64_t)(e->to - e->from)};
    for (unsigned i = 0; i < e->n_dims; i++)
        t->dims[i] = e->shape[e->n_dims - 1 - i];
    return true;
}

/* The reader stands before the value of a tensor's key. The name is unescaped where it stands. */
static bool read_entry(weir__safetensors *st, weir__json *j, weir__json_text key) {
    entry e = {.name = {key.data, key.size}};
    if (key.size == 0 || key.size > WEIR_GGUF_MAX_NAME)
        return weir__json_fail(j, WEIR_EFORMAT, "found a tensor's name of %zu bytes, wanted 1 to %d", key.size, WEIR_GGUF_MAX_NAME);
    if (weir__json_peek(j) != WEIR__JSON_OBJECT)
        return entry_fail(j, &e, "found %s, wanted an object of dtype, shape and data_offsets", "another value");
    for (weir__json_object(j); weir__json_next_key(j, &key);)
        if (!read_field(j, &e, key))
            return false;
    if (j->code || !check_entry(j, &e))
        return false;
    if (memchr(e.name.data, '\\', e.name.size))
        e.name.size = weir__json_unescape((weir__json_text){e.name.data, e.name.size, true}, st->header + (e.name.data - st->header));
    return add_tensor(st, j, &e);
}

/* Texts about the file, which nothing here needs: only their form is checked. */
static bool read_metadata(weir__json *j) {
    weir__json_text key, value;
    for (weir__json_object(j); weir__json_next_key(j, &key);)
        weir__json_string(j, &value);
    return !j->code;
}

static int read_entries(weir__safetensors *st, size_t size, weir_error **error) {
    weir__json j;
    weir__json_text key;
    bool metadata = false;
    weir__json_init(&j, st->file.path, st->header, size, error);
    for (weir__json_object(&j); weir__json_next_key(&j, &key);) {
        if (!weir__json_equal(key, "__metadata__"))
            read_entry(st, &j, key);
        else if (metadata)
            weir__json_fail(&j, WEIR_EFORMAT, "\"__metadata__\": found twice");
        else
            metadata = read_metadata(&j);
    }
    return weir__json_finish(&j);
}

/* ---- the buffer ---- */

static int by_place(const void *a, const void *b) {
    const weir__tensor *x = *(const weir__tensor *const *)a, *y = *(const weir__tensor *const *)b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return x->size < y->size ? -1 : x->size > y->size;
}

static int not_covered(const weir__safetensors *st, const weir__tensor *t, uint64_t at, weir_error **error) {
    char shown[SHOWN];
    return weir_fail(error, WEIR_EFORMAT, "%s: tensor \"%s\": its data begins at byte %llu of the buffer, wanted %llu: %s", st->file.path,
                     weir__quote(shown, sizeof shown, t->name.data, t->name.size), (unsigned long long)t->offset, (unsigned long long)at,
                     t->offset < at ? "it overlaps with another tensor" : "the bytes between belong to no tensor");
}

/* As the format demands, tensors follow one another without holes or overlaps from the beginning of the buffer to its end. */
static int check_cover(const weir__safetensors *st, const weir__tensor **order, uint64_t buffer, weir_error **error) {
    uint64_t at = 0;
    for (size_t i = 0; i < st->n_tensors; i++) {
        char shown[SHOWN];
        const weir__tensor *t = order[i];
        if (t->offset != at)
            return not_covered(st, t, at, error);
        if (t->size > buffer - at)
            return weir_fail(error, WEIR_EFORMAT, "%s: tensor \"%s\": found %llu bytes before the end of the file, wanted %llu: %s",
                             st->file.path, weir__quote(shown, sizeof shown, t->name.data, t->name.size), (unsigned long long)(buffer - at),
                             (unsigned long long)t->size, "the file is cut short");
        at += t->size;
    }
    if (at < buffer)
        return weir_fail(error, WEIR_EFORMAT, "%s: found %llu bytes behind the last tensor, wanted none", st->file.path,
                         (unsigned long long)(buffer - at));
    return WEIR_OK;
}

static int place_tensors(weir__safetensors *st, uint64_t start, weir_error **error) {
    const weir__tensor **order = weir__alloc(st->system, (st->n_tensors + 1) * sizeof *order);
    if (!order)
        return weir_fail(error, WEIR_ENOMEM, "%s: no memory for %zu tensors", st->file.path, st->n_tensors);
    bool sorted = true;
    for (size_t i = 0; i < st->n_tensors; i++) {
        order[i] = &st->tensors[i];
        sorted = sorted && (i == 0 || by_place(&order[i - 1], &order[i]) <= 0);
    }
    if (!sorted)
        qsort(order, st->n_tensors, sizeof *order, by_place);
    int code = check_cover(st, order, st->file.size - start, error);
    weir__free(st->system, order);
    for (size_t i = 0; i < st->n_tensors && !code; i++)
        st->tensors[i].offset += start;
    return code;
}

/* ---- opening ---- */

static int check_length(const weir__file *f, uint64_t n, weir_error **error) {
    if (n > f->size - LENGTH)
        return weir_fail(error, WEIR_EFORMAT, "%s: found a header of %llu bytes, wanted at most the %llu that the file has left", f->path,
                         (unsigned long long)n, (unsigned long long)(f->size - LENGTH));
    if (n > WEIR_SAFETENSORS_MAX_HEADER)
        return weir_fail(error, WEIR_EFORMAT, "%s: found a header of %llu bytes, wanted at most %d", f->path, (unsigned long long)n,
                         WEIR_SAFETENSORS_MAX_HEADER);
    return WEIR_OK;
}

/* Bytes of the file, or of what was given in its place. */
static int fetch(const weir__file *f, const char *bytes, size_t size, uint64_t at, void *to, size_t n, weir_error **error) {
    if (f->fd >= 0)
        return weir__file_read(f, at, to, n, error);
    if (at > size || n > size - at)
        return weir_fail(error, WEIR_EFORMAT, "%s: found %zu bytes, wanted %zu at byte %llu", f->path, size, n, (unsigned long long)at);
    memcpy(to, bytes + at, n);
    return WEIR_OK;
}

static int read_all(weir__safetensors *st, const char *bytes, size_t size, weir_error **error) {
    uint8_t length[LENGTH];
    uint64_t n = 0;
    if (st->file.size < LENGTH)
        return weir_fail(error, WEIR_EFORMAT, "%s: found a file of %llu bytes, wanted %d at least", st->file.path,
                         (unsigned long long)st->file.size, LENGTH);
    int code = fetch(&st->file, bytes, size, 0, length, LENGTH, error);
    for (int i = LENGTH - 1; i >= 0; i--)
        n = n << 8 | length[i];
    if (!code)
        code = check_length(&st->file, n, error);
    if (!code && !(st->header = weir__alloc(st->system, (size_t)n + 1)))
        code = weir_fail(error, WEIR_ENOMEM, "%s: a header of %llu bytes", st->file.path, (unsigned long long)n);
    if (!code)
        code = fetch(&st->file, bytes, size, LENGTH, st->header, (size_t)n, error);
    if (!code && st->header[0] != '{')
        code = weir_fail(error, WEIR_EFORMAT, "%s: the header begins with no \"{\": this is no safetensors file", st->file.path);
    if (!code)
        code = read_entries(st, (size_t)n, error);
    return code ? code : place_tensors(st, LENGTH + n, error);
}

/* Takes `file`. */
static int open_file(weir__file *file, const char *bytes, size_t size, weir__safetensors **out, weir_error **error) {
    weir_system *s = file->system;
    weir__safetensors *st = weir__alloc(s, sizeof *st);
    char *path = weir__strdup(s, file->path);
    if (!st || !path) {
        int code = weir_fail(error, WEIR_ENOMEM, "%s", file->path);
        weir__file_close(file);
        weir__free(s, st);
        weir__free(s, path);
        return code;
    }
    st->system = s;
    st->file = *file;
    st->file.path = path;
    int code = read_all(st, bytes, size, error);
    if (code)
        weir__safetensors_free(st);
    else
        *out = st;
    return code;
}

int weir__safetensors_open(weir_system *s, const char *path, weir__safetensors **out, weir_error **error) {
    weir__file file;
    int code = weir__file_open(s, path, &file, error);
    return code ? code : open_file(&file, NULL, 0, out, error);
}

int weir__safetensors_parse(weir_system *s, const char *name, const void *bytes, size_t size, uint64_t file_size, weir__safetensors **out,
                            weir_error **error) {
    weir__file file = {.system = s, .path = name, .fd = -1, .size = file_size > size ? file_size : size};
    return open_file(&file, bytes, size, out, error);
}

void weir__safetensors_free(weir__safetensors *st) {
    if (!st)
        return;
    weir__file_close(&st->file);
    weir__free(st->system, st->header);
    weir__free(st->system, st->tensors);
    weir__free(st->system, (char *)(uintptr_t)st->file.path);
    weir__free(st->system, st);
}
