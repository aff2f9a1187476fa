/* gguf_writer.c: writes GGUF v3 files: the header is gathered in memory, tensor data goes straight to an output (output.h), so that the file appears when
 * all of it is there. Errors stick: the first one comes out of finish. */
#include "gguf_internal.h"
#include "output.h"

#include <string.h>

enum { ALIGNMENT = 32, VERSION = 3, COUNTS_AT = 8 };

struct weir__gguf_writer {
    weir_system *system;
    weir__output output;
    uint8_t *keys; /* [keys_size] keys as the file has them */
    size_t keys_size, keys_room;
    uint8_t *infos; /* [infos_size] tensors as the file has them */
    size_t infos_size, infos_room;
    uint64_t *sizes; /* [n_tensors] bytes of data */
    size_t n_tensors, sizes_room;
    uint64_t n_keys;
    uint64_t offset;  /* of the next tensor that is announced */
    bool header_done; /* data has begun */
    size_t tensor;    /* that data goes to */
    uint64_t written; /* of its data */
    int code;         /* the first error, WEIR_OK: none */
    weir_error *error;
};

static void stick(weir__gguf_writer *w, int code, const char *text) {
    if (w->code)
        return;
    w->code = code;
    weir_fail(&w->error, code, "%s: %s", w->output.path, text);
}

static void put(weir__gguf_writer *w, uint8_t **buffer, size_t *size, size_t *room, const void *bytes, size_t n) {
    if (w->code || n == 0)
        return;
    if (weir__grow(w->system, buffer, room, *size + n, 1)) {
        stick(w, WEIR_ENOMEM, "header");
        return;
    }
    memcpy(*buffer + *size, bytes, n);
    *size += n;
}

static void put_key(weir__gguf_writer *w, const void *bytes, size_t n) {
    put(w, &w->keys, &w->keys_size, &w->keys_room, bytes, n);
}
static void put_info(weir__gguf_writer *w, const void *bytes, size_t n) {
    put(w, &w->infos, &w->infos_size, &w->infos_room, bytes, n);
}

static void le32(uint8_t to[4], uint32_t v) {
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(v >> 8 * i);
}
static void le64(uint8_t to[8], uint64_t v) {
    le32(to, (uint32_t)v);
    le32(to + 4, (uint32_t)(v >> 32));
}

static void key_u32(weir__gguf_writer *w, uint32_t v) {
    uint8_t bytes[4];
    le32(bytes, v);
    put_key(w, bytes, 4);
}
static void key_u64(weir__gguf_writer *w, uint64_t v) {
    uint8_t bytes[8];
    le64(bytes, v);
    put_key(w, bytes, 8);
}
static void key_string(weir__gguf_writer *w, const char *s, size_t n) {
    key_u64(w, n);
    put_key(w, s, n);
}

static void begin_key(weir__gguf_writer *w, const char *key, enum weir__gguf_type type) {
    if (w->header_done)
        stick(w, WEIR_EINVAL, "a key after tensor data");
    key_string(w, key, strlen(key));
    key_u32(w, (uint32_t)type);
    w->n_keys++;
}

static void begin_array(weir__gguf_writer *w, const char *key, enum weir__gguf_type element, size_t n) {
    begin_key(w, key, WEIR__GGUF_ARRAY);
    key_u32(w, (uint32_t)element);
    key_u64(w, n);
}

void weir__gguf_put_u32(weir__gguf_writer *w, const char *key, uint32_t v) {
    begin_key(w, key, WEIR__GGUF_U32);
    key_u32(w, v);
}

static uint32_t float_bits(float v) {
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

void weir__gguf_put_f32(weir__gguf_writer *w, const char *key, float v) {
    begin_key(w, key, WEIR__GGUF_F32);
    key_u32(w, float_bits(v));
}

void weir__gguf_put_bool(weir__gguf_writer *w, const char *key, bool v) {
    begin_key(w, key, WEIR__GGUF_BOOL);
    put_key(w, &(uint8_t){v}, 1);
}

void weir__gguf_put_string(weir__gguf_writer *w, const char *key, const char *v) {
    begin_key(w, key, WEIR__GGUF_STRING);
    key_string(w, v, strlen(v));
}

void weir__gguf_put_text(weir__gguf_writer *w, const char *key, weir__string v) {
    begin_key(w, key, WEIR__GGUF_STRING);
    key_string(w, v.data, v.size);
}

void weir__gguf_put_bytes(weir__gguf_writer *w, const char *key, weir__string v) {
    begin_array(w, key, WEIR__GGUF_U8, v.size);
    put_key(w, v.data, v.size);
}

void weir__gguf_put_strings(weir__gguf_writer *w, const char *key, const weir__string *v, size_t n) {
    begin_array(w, key, WEIR__GGUF_STRING, n);
    for (size_t i = 0; i < n; i++)
        key_string(w, v[i].data, v[i].size);
}

void weir__gguf_put_f32s(weir__gguf_writer *w, const char *key, const float *v, size_t n) {
    begin_array(w, key, WEIR__GGUF_F32, n);
    for (size_t i = 0; i < n; i++)
        key_u32(w, float_bits(v[i]));
}

void weir__gguf_put_i32s(weir__gguf_writer *w, const char *key, const int32_t *v, size_t n) {
    begin_array(w, key, WEIR__GGUF_I32, n);
    for (size_t i = 0; i < n; i++)
        key_u32(w, (uint32_t)v[i]);
}

void weir__gguf_put_copy(weir__gguf_writer *w, const char *name, const weir__gguf_key *key) {
    if (key->type == WEIR__GGUF_ARRAY)
        begin_array(w, name, key->element, (size_t)key->count);
    else
        begin_key(w, name, key->type);
    put_key(w, key->data, key->size);
}

static uint64_t padding(uint64_t at) {
    return (ALIGNMENT - at % ALIGNMENT) % ALIGNMENT;
}

void weir__gguf_put_tensor(weir__gguf_writer *w, const char *name, int type, unsigned n_dims, const int64_t *dims) {
    const weir_type_info *info = weir_type_any(type);
    if (w->header_done || !info || n_dims == 0 || n_dims > WEIR_MAX_DIMS || dims[0] % info->block != 0) {
        stick(w, WEIR_EINVAL, w->header_done ? "a tensor after tensor data" : "a tensor of impossible type or shape");
        return;
    }
    uint8_t bytes[8];
    int64_t size = dims[0] / info->block * info->bytes;
    bool bad = dims[0] < 1;
    le64(bytes, strlen(name));
    put_info(w, bytes, 8);
    put_info(w, name, strlen(name));
    le32(bytes, n_dims);
    put_info(w, bytes, 4);
    for (unsigned i = 0; i < n_dims; i++) {
        bad |= dims[i] < 1 || (i > 0 && __builtin_mul_overflow(size, dims[i], &size));
        le64(bytes, (uint64_t)dims[i]);
        put_info(w, bytes, 8);
    }
    le32(bytes, (uint32_t)type);
    put_info(w, bytes, 4);
    le64(bytes, w->offset);
    put_info(w, bytes, 8);
    if (bad)
        stick(w, WEIR_EINVAL, "a tensor of impossible shape");
    else if (weir__grow(w->system, &w->sizes, &w->sizes_room, w->n_tensors + 1, sizeof *w->sizes))
        stick(w, WEIR_ENOMEM, "header");
    if (w->code)
        return;
    w->sizes[w->n_tensors++] = (uint64_t)size;
    w->offset += (uint64_t)size + padding((uint64_t)size);
}

static void write_all(weir__gguf_writer *w, const void *bytes, size_t n) {
    if (!w->code)
        w->code = weir__output_write(&w->output, bytes, n, &w->error);
}

static void write_padding(weir__gguf_writer *w, uint64_t at) {
    static const char zeros[ALIGNMENT];
    write_all(w, zeros, (size_t)padding(at));
}

static void write_header(weir__gguf_writer *w) {
    uint8_t start[24] = "GGUF";
    if (w->header_done)
        return;
    w->header_done = true;
    le32(start + 4, VERSION);
    le64(start + COUNTS_AT, w->n_tensors);
    le64(start + COUNTS_AT + 8, w->n_keys);
    write_all(w, start, sizeof start);
    write_all(w, w->keys, w->keys_size);
    write_all(w, w->infos, w->infos_size);
    write_padding(w, sizeof start + w->keys_size + w->infos_size);
}

/* The error that has stuck, once. */
static int surrender(weir__gguf_writer *w, weir_error **error) {
    if (w->error && error) {
        *error = w->error;
        w->error = NULL;
    }
    return w->code;
}

int weir__gguf_put_data(weir__gguf_writer *w, const void *data, size_t size, weir_error **error) {
    write_header(w);
    for (const char *p = data; size > 0 && !w->code;) {
        if (w->tensor == w->n_tensors) {
            stick(w, WEIR_EINVAL, "more data than the tensors have");
            break;
        }
        uint64_t left = w->sizes[w->tensor] - w->written;
        size_t n = size < left ? size : (size_t)left;
        write_all(w, p, n);
        p += n;
        size -= n;
        w->written += n;
        if (w->written == w->sizes[w->tensor]) {
            write_padding(w, w->written);
            w->tensor++;
            w->written = 0;
        }
    }
    return surrender(w, error);
}

static void release(weir__gguf_writer *w) {
    weir__output_fini(&w->output);
    weir__free(w->system, w->keys);
    weir__free(w->system, w->infos);
    weir__free(w->system, w->sizes);
    weir_error_free(w->error);
    weir__free(w->system, w);
}

int weir__gguf_create(weir_system *s, const char *path, weir__gguf_writer **out, weir_error **error) {
    weir__gguf_writer *w = weir__alloc(s, sizeof *w);
    if (!w)
        return weir_fail(error, WEIR_ENOMEM, "%s", path);
    w->system = s;
    int code = weir__output_open(s, path, &w->output, error);
    if (code)
        release(w);
    else
        *out = w;
    return code;
}

void weir__gguf_abort(weir__gguf_writer *w) {
    if (w)
        release(w);
}

int weir__gguf_finish(weir__gguf_writer *w, weir_error **error) {
    write_header(w);
    if (w->tensor < w->n_tensors)
        stick(w, WEIR_EINVAL, "less data than the tensors have");
    if (!w->code)
        w->code = weir__output_publish(&w->output, &w->error);
    int code = surrender(w, error);
    release(w);
    return code;
}
