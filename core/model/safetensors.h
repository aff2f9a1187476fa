/* safetensors.h: reads the header of one safetensors file (github.com/huggingface/safetensors, "Format"): u64 length of the header, a JSON object that names
 * tensors, the buffer with their data. Trusts nothing; memory: the header's bytes and a table of tensors. Knows no config.json and no shards. */
#ifndef WEIR_SAFETENSORS_H
#define WEIR_SAFETENSORS_H

#include "file.h"
#include "source.h"

typedef struct weir__safetensors {
    weir_system *system;
    weir__file file;       /* `path` is owned; closed: made from memory */
    char *header;          /* owned; tensors' names lie in it */
    weir__tensor *tensors; /* [n_tensors] owned, in the header's order */
    size_t n_tensors, room;
} weir__safetensors;

/* Errors name the file and the tensor, the value found and the value wanted. Refused: what the format forbids (data that does not match the shape, holes and
 * overlaps, bytes behind the last tensor, a key twice), more than 4 dimensions, limits of limits.h. A name that is there twice is the caller's to find.
 * ENOENT, EIO, EFORMAT, EDEPTH, ENOMEM. Blocks on the file. */
int weir__safetensors_open(weir_system *s, const char *path, weir__safetensors **out, weir_error **error);
/* The same from memory, `file_size` being the size that the whole file would have (fuzzing, tests). Copies the bytes. */
WEIR_API int weir__safetensors_parse(weir_system *s, const char *name, const void *bytes, size_t size, uint64_t file_size,
                                     weir__safetensors **out, weir_error **error);
WEIR_API void weir__safetensors_free(weir__safetensors *st); /* NULL does nothing */

typedef struct weir__safetensors_type {
    const char *dtype, *name; /* "F8_E4M3" in files, "f8_e4m3" where weir shows it */
    int type;                 /* GGUF's number where it has one */
    unsigned bits;            /* of an element */
} weir__safetensors_type;
const weir__safetensors_type *weir__safetensors_type_get(int type); /* NULL: no type of safetensors */

#endif
