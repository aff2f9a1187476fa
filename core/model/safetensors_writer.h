/* safetensors_writer.h: writes one safetensors file, whole or not at all. Errors stick: the first one comes out of finish. */
#ifndef WEIR_SAFETENSORS_WRITER_H
#define WEIR_SAFETENSORS_WRITER_H

#include "source.h"

typedef struct weir__safetensors_writer weir__safetensors_writer;

int weir__safetensors_create(weir_system *s, const char *path, weir__safetensors_writer **out, weir_error **error);
/* Announces a tensor of f32, f16 or bf16; dims[0] is the row length. Its data is written in the same order after the last announcement. */
void weir__safetensors_put_tensor(weir__safetensors_writer *w, const char *name, int type, unsigned n_dims, const int64_t *dims);
void weir__safetensors_put_data(weir__safetensors_writer *w, const void *data, size_t size);
/* The writer is freed. EINVAL: data and announcements differ; EIO, ENOMEM. */
int weir__safetensors_finish(weir__safetensors_writer *w, weir_error **error);
void weir__safetensors_abort(weir__safetensors_writer *w);

#endif
