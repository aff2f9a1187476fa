/* convert.h: one checkpoint written as another: GGUF from GGUF or from safetensors, safetensors from either; matrices in another type if one is asked for. */
#ifndef WEIR_CONVERT_H
#define WEIR_CONVERT_H

#include "source.h"

typedef struct weir__convert_options {
    int type; /* of matrices: one that weir_type_writes, for safetensors a float; -1: as they are (f32 where safetensors has no such type) */
    uint64_t shard_bytes;                                        /* safetensors: most bytes of data in a file; 0: one file */
    bool (*progress)(void *data, uint64_t done, uint64_t total); /* bytes of the source; false: give up (ECANCELLED). May be NULL */
    void *data;
    uint64_t kept; /* result: matrices that keep their type because their rows are no whole blocks of the other */
    char warning
        [512]; /* result: what could not be said in the other format, or was not as the files say; several separated by "; ". "": nothing */
} weir__convert_options;

/* Writes `out`: a GGUF file if its name ends in .gguf, else a folder of safetensors with config.json. Settings, the tokeniser and
 * tensor names are translated; between files of the same format they are copied, whatever the family. Quantised bytes are gguf-py's. On failure nothing is left. EINVAL (a type
 * that is not written or that safetensors has not, a folder that has a checkpoint, a file that would be written over itself), EUNSUPPORTED (a family or setting that the other format cannot say), and what opening and
 * reading say. Blocks for as long as it takes. */
WEIR_API int weir__convert(weir_system *s, const char *in, const char *out, weir__convert_options *o, weir_error **error);

#endif
