/* safetensors_writer.h: writes a checkpoint of safetensors: one file or shards with an index, and the texts that stand beside them (config.json, ...). Knows no
 * family and no JSON of the caller's. */
#ifndef WEIR_SAFETENSORS_WRITER_H
#define WEIR_SAFETENSORS_WRITER_H

#include "../text/json_write.h"
#include "source.h"

typedef struct weir__safetensors_writer weir__safetensors_writer;

/* Into a folder, which is made if need be: model.safetensors, or shards of at most shard_bytes of data (a larger tensor is alone) and their index; 0: one file.
 * Everything has temporary names until finish. EINVAL: the folder has a checkpoint; ENOMEM, EIO. */
WEIR_API int weir__safetensors_create(weir_system *s, const char *folder, uint64_t shard_bytes, weir__safetensors_writer **out,
                                      weir_error **error);
/* A file beside the weights, "config.json", or in a folder there, which is made if need be. Before the data, or when all of it was written. */
WEIR_API void weir__safetensors_put_file(weir__safetensors_writer *w, const char *name, const void *bytes, size_t size);
/* The same from a writer of JSON, which is freed. */
void weir__safetensors_put_json(weir__safetensors_writer *w, const char *name, weir__json_writer *json);
/* Announces a tensor of a type that safetensors has; dims[0] is the row length. Names differ (the caller's to see to). Its data is written in the same order
 * with put_data after the last announcement. Not WEIR_OK: an error has stuck, this is it; the writer can only be aborted. */
WEIR_API void weir__safetensors_put_tensor(weir__safetensors_writer *w, const char *name, int type, unsigned n_dims, const int64_t *dims);
WEIR_API int weir__safetensors_put_data(weir__safetensors_writer *w, const void *data, size_t size, weir_error **error);
/* An error of the caller's, which comes out of finish. */
void weir__safetensors_fail(weir__safetensors_writer *w, int code, const char *what);
/* Errors stick and come out of put_data or here; the writer is freed. EINVAL: what was announced cannot be written. A failed write leaves nothing that was not there. */
WEIR_API int weir__safetensors_finish(weir__safetensors_writer *w, weir_error **error);
WEIR_API void weir__safetensors_abort(weir__safetensors_writer *w); /* NULL does nothing */

#endif
