/* shard_index.h: model.safetensors.index.json, which says in what shard each tensor is. Knows no config.json. */
#ifndef WEIR_SHARD_INDEX_H
#define WEIR_SHARD_INDEX_H

#include "safetensors.h"

typedef struct weir__shard_index weir__shard_index;

/* Strict JSON with an object weight_map of tensor names and file names, which must be plain names of files in the same folder; the rest (metadata) is only
 * checked for its form. ENOENT, EIO, EFORMAT, EDEPTH, ENOMEM. */
int weir__shard_index_open(weir_system *s, const char *path, weir__shard_index **out, weir_error **error);
/* The same from memory. Copies the text. */
WEIR_API int weir__shard_index_parse(weir_system *s, const char *name, const char *text, size_t size, weir__shard_index **out,
                                     weir_error **error);
WEIR_API void weir__shard_index_free(weir__shard_index *x); /* NULL does nothing */

WEIR_API uint32_t weir__shard_index_files(const weir__shard_index *x);               /* 1 to WEIR_MAX_FILES, in order of their names */
WEIR_API const char *weir__shard_index_file(const weir__shard_index *x, uint32_t i); /* its name */

/* Whether the shards (in order of weir__shard_index_file) have exactly the tensors that the index says. EFORMAT names tensor and shard. Once per index. */
int weir__shard_index_check(weir__shard_index *x, weir__safetensors *const *shards, weir_error **error);

#endif
