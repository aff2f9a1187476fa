/* source.h: an opened checkpoint as its format has it: settings by key, tensors by name, a tokeniser. Formats: GGUF (one file or split) and Hugging Face's
 * (a folder of safetensors and config.json). Knows no family: what keys and tensors mean is the families' (family.h).
 *
 * Immutable after it is opened; any thread may read it. Opening and reading block on files: on a stream's thread. */
#ifndef WEIR_SOURCE_H
#define WEIR_SOURCE_H

#include "../../kernels/kernels.h"
#include "../rt/rt.h"
#include "vocab_build.h"

typedef struct weir__source weir__source;

enum weir__format { WEIR__FORMAT_GGUF, WEIR__FORMAT_SAFETENSORS, WEIR__FORMATS };

/* A tensor as its file has it. */
typedef struct weir__tensor {
    weir__string name;
    int type; /* GGUF's number, which weir_type_any knows, or from 1000 on one of safetensors' that GGUF has not; weir__tensor_type_name */
    unsigned n_dims;             /* safetensors: may be 0 */
    int64_t dims[WEIR_MAX_DIMS]; /* dims[0] is the row length; unused ones are 1. Safetensors: may be 0 */
    uint32_t file;               /* of a split or sharded checkpoint: which one */
    uint64_t offset, size;       /* in that file, bytes; inside the file (checked) */
} weir__tensor;

/* A setting's value. */
typedef struct weir__value {
    enum weir__value_kind { WEIR__ABSENT, WEIR__NULL, WEIR__BOOLEAN, WEIR__INTEGER, WEIR__REAL, WEIR__TEXT, WEIR__LIST, WEIR__MAP } kind;
    int64_t integer;   /* BOOLEAN: 0 or 1; INTEGER: beyond int64 it is a REAL */
    double real;       /* REAL and INTEGER */
    weir__string text; /* TEXT: its bytes, in the source's memory */
    uint64_t count;    /* LIST: elements */
} weir__value;

/* Opens a GGUF file (any part of a split one: the others are found by its name), a folder with config.json and safetensors or with one GGUF, a .safetensors file
 * (a shard: all of them), or an index of shards. Errors name the file and the key or tensor, the value found and the value wanted: ENOENT (a missing part by name), EIO, EFORMAT, EUNSUPPORTED,
 * ENOMEM. */
WEIR_API int weir__source_open(weir_system *s, const char *path, weir__source **out, weir_error **error);
WEIR_API void weir__source_free(weir__source *src); /* NULL does nothing */
weir_system *weir__source_system(const weir__source *src);
WEIR_API const char *weir__source_path(const weir__source *src);
const char *weir__source_settings_path(const weir__source *src); /* the file that has the settings, for errors */
WEIR_API enum weir__format weir__source_format(const weir__source *src);
WEIR_API uint32_t weir__source_files(const weir__source *src);
WEIR_API const char *weir__source_file(const weir__source *src, uint32_t i); /* path */
WEIR_API uint64_t weir__source_bytes(const weir__source *src);               /* of all files */

/* What the file calls its family: general.architecture, or model_type. EFORMAT: it does not; ENOENT: there is no config.json. */
WEIR_API int weir__source_family(const weir__source *src, weir__string *name, weir_error **error);
/* The value of a key: GGUF's "llama.block_count", config.json's "rope_parameters.rope_theta". ABSENT if there is none. */
WEIR_API void weir__source_get(const weir__source *src, const char *key, weir__value *v);
/* Element i of a list. ABSENT beyond its end. */
WEIR_API void weir__source_element(const weir__source *src, const char *key, uint64_t i, weir__value *v);
/* Calls fn for every setting: GGUF's keys in order; config.json's, and those of objects inside as "outer.inner". fn's first code that is not 0 ends it. */
typedef int weir__setting_fn(void *data, const char *key, const weir__value *v, weir_error **error);
WEIR_API int weir__source_each(const weir__source *src, weir__setting_fn *fn, void *data, weir_error **error);

WEIR_API size_t weir__source_tensor_count(const weir__source *src);
WEIR_API const weir__tensor *weir__source_tensor_at(const weir__source *src, size_t i);    /* NULL beyond the last */
WEIR_API const char *weir__tensor_type_name(int type);                                     /* "q4_k", "f8_e4m3"; never NULL */
WEIR_API const weir__tensor *weir__source_find(const weir__source *src, const char *name); /* NULL if absent */
/* Reads `size` bytes at `offset` of a tensor's data into `to` with pread. EIO, EFORMAT (the file ended: it shrank). */
WEIR_API int weir__source_read(const weir__source *src, const weir__tensor *t, uint64_t offset, void *to, size_t size, weir_error **error);

/* Calls fn with the vocabulary, which lives for the time of the call; not at all if there is none. fn's code, or errors of reading: EFORMAT, EUNSUPPORTED, ... */
WEIR_API int weir__source_vocab(const weir__source *src, weir__vocab_fn *fn, void *data, weir_error **error);
/* Makes the tokeniser. *out NULL and 0: there is none. Errors as weir__tokenizer_new. */
WEIR_API int weir__source_tokenizer(const weir__source *src, weir__tokenizer **out, weir_error **error);
/* The tokeniser of a checkpoint that may lack weights: what weir__source_open takes, a folder of tokeniser files, or one of those (tokenizer_json.h). *out NULL and 0:
 * there is none. Errors of weir__source_open and weir__tokenizer_new. */
WEIR_API int weir__tokenizer_open(weir_system *s, const char *path, weir__tokenizer **out, weir_error **error);
/* The chat template (name NULL: the default one), bytes in the source's memory; false: there is none. */
WEIR_API bool weir__source_template(const weir__source *src, const char *name, weir__string *text);
/* Name i of the named templates; false beyond the last. */
WEIR_API bool weir__source_template_name(const weir__source *src, uint32_t i, weir__string *name);

#endif
