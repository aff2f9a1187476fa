/* gguf.h: reads the header of GGUF v3 files (github.com/ggml-org/ggml/blob/master/docs/gguf.md), little endian. Trusts nothing: every count, offset,
 * product and string length is checked against the bytes that are there before anything is allocated. Memory: at most the header's bytes plus a table
 * per key and tensor. Tensor data is not touched here. */
#ifndef WEIR_GGUF_H
#define WEIR_GGUF_H

#include "source.h"

typedef struct weir__gguf weir__gguf;

enum weir__gguf_type {
    WEIR__GGUF_U8,
    WEIR__GGUF_I8,
    WEIR__GGUF_U16,
    WEIR__GGUF_I16,
    WEIR__GGUF_U32,
    WEIR__GGUF_I32,
    WEIR__GGUF_F32,
    WEIR__GGUF_BOOL,
    WEIR__GGUF_STRING,
    WEIR__GGUF_ARRAY,
    WEIR__GGUF_U64,
    WEIR__GGUF_I64,
    WEIR__GGUF_F64,
    WEIR__GGUF_TYPES
};

typedef struct weir__gguf_key {
    weir__string name;
    enum weir__gguf_type type;
    enum weir__gguf_type element; /* of an array */
    uint64_t count;               /* of an array; else 1 */
    const uint8_t *data;          /* into the header: little endian, unaligned; strings as u64 length and bytes */
    size_t size;                  /* bytes at data */
} weir__gguf_key;

/* Opens and reads the header. Errors name the file and the key or tensor, the value found and the value wanted. ENOENT, EIO, EFORMAT,
 * EUNSUPPORTED (version, byte order), ENOMEM. Blocks on the file: call it on a stream's thread. */
WEIR_API int weir__gguf_open(weir_system *s, const char *path, weir__gguf **out, weir_error **error);
/* The same from memory, `file_size` being the size that the whole file would have (fuzzing, tests). Copies the bytes. */
int weir__gguf_parse(weir_system *s, const char *name, const void *bytes, size_t size, uint64_t file_size, weir__gguf **out,
                     weir_error **error);
WEIR_API void weir__gguf_free(weir__gguf *g);

const char *weir__gguf_path(const weir__gguf *g);
WEIR_API size_t weir__gguf_key_count(const weir__gguf *g);
WEIR_API const weir__gguf_key *weir__gguf_key_at(const weir__gguf *g, size_t i);
WEIR_API size_t weir__gguf_tensor_count(const weir__gguf *g);
WEIR_API const weir__tensor *weir__gguf_tensor_at(const weir__gguf *g, size_t i);
const weir__gguf_key *weir__gguf_find(const weir__gguf *g, const char *key);       /* NULL if absent */
const weir__tensor *weir__gguf_find_tensor(const weir__gguf *g, const char *name); /* NULL if absent */

/* Typed values. Absent: *v is left alone and 0 is returned, unless `required` (EFORMAT). Wrong type or not representable: EFORMAT. */
int weir__gguf_get_int(const weir__gguf *g, const char *key, bool required, int64_t min, int64_t max, int64_t *v, weir_error **error);
int weir__gguf_get_float(const weir__gguf *g, const char *key, bool required, double *v, weir_error **error);
int weir__gguf_get_bool(const weir__gguf *g, const char *key, bool required, bool *v, weir_error **error);
int weir__gguf_get_string(const weir__gguf *g, const char *key, bool required, weir__string *v, weir_error **error);
/* Element i of an array of strings is read in order: start with *at = key->data. */
WEIR_API weir__string weir__gguf_next_string(const uint8_t **at);

/* Reads `size` bytes at `offset` of the file into `to` with pread. EIO, EFORMAT (the file ended: it shrank). Any thread. */
int weir__gguf_read(const weir__gguf *g, uint64_t offset, void *to, size_t size, weir_error **error);

/* Calls fn with the vocabulary, which lives for the time of the call; not at all if the file has none. EFORMAT for lengths that disagree, EUNSUPPORTED, ENOMEM, or what
 * fn returns. */
WEIR_API int weir__gguf_vocab(const weir__gguf *g, weir__vocab_fn *fn, void *data, weir_error **error);
/* Makes the tokeniser that the file describes. *out NULL and 0: the file has none. Errors as weir__tokenizer_new, and EFORMAT for lengths that disagree. */
WEIR_API int weir__gguf_tokenizer(const weir__gguf *g, weir__tokenizer **out, weir_error **error);

/* ---- writing ---- */

typedef struct weir__gguf_writer weir__gguf_writer;
int weir__gguf_create(weir_system *s, const char *path, weir__gguf_writer **out,
                      weir_error **error); /* to a temporary file beside it; renamed by finish */
void weir__gguf_put_u32(weir__gguf_writer *w, const char *key, uint32_t v);
void weir__gguf_put_f32(weir__gguf_writer *w, const char *key, float v);
void weir__gguf_put_bool(weir__gguf_writer *w, const char *key, bool v);
void weir__gguf_put_string(weir__gguf_writer *w, const char *key, const char *v);
void weir__gguf_put_text(weir__gguf_writer *w, const char *key, weir__string v);
void weir__gguf_put_bytes(weir__gguf_writer *w, const char *key, weir__string v); /* an array of u8 */
void weir__gguf_put_strings(weir__gguf_writer *w, const char *key, const weir__string *v, size_t n);
void weir__gguf_put_f32s(weir__gguf_writer *w, const char *key, const float *v, size_t n);
void weir__gguf_put_i32s(weir__gguf_writer *w, const char *key, const int32_t *v, size_t n);
/* A value of any type as another file has it. */
void weir__gguf_put_copy(weir__gguf_writer *w, const char *name, const weir__gguf_key *key);
/* Announces a tensor; its data is written in the same order with put_data after the last announcement. Not WEIR_OK: an error has stuck, this is it; the writer can
 * only be aborted. */
void weir__gguf_put_tensor(weir__gguf_writer *w, const char *name, int type, unsigned n_dims, const int64_t *dims);
int weir__gguf_put_data(weir__gguf_writer *w, const void *data, size_t size, weir_error **error);
/* Errors stick and come out of put_data or here; the writer is freed. A failed write leaves no file. */
int weir__gguf_finish(weir__gguf_writer *w, weir_error **error);
void weir__gguf_abort(weir__gguf_writer *w);

#endif
