/* make.h: random models of any family, shape and weight type, as GGUF: for timing and for tests where no trained file of that shape is at hand. */
#ifndef WEIR_MAKE_H
#define WEIR_MAKE_H

#include "family.h"

typedef struct weir__make_options {
    const char *family;                                                    /* its name */
    int32_t layers, width, heads, kv_heads, head_dim, ffn, vocab, context; /* kv_heads, head_dim 0: heads, width / heads */
    int type; /* of matrices; norms and biases are f32. Rows must be whole blocks */
    bool tied;
    uint64_t seed;
    bool (*progress)(void *data, uint64_t done, uint64_t total); /* bytes; false: give up (ECANCELLED). May be NULL */
    void *data;
} weir__make_options;

/* Writes the file. Weights are about N(0, 1 / inputs), so that activations neither vanish nor grow; blocks of types that weir does not quantise to have random
 * codes and scales of that size. The tokeniser is one of bytes. EINVAL (names the option), EUNSUPPORTED (family, type), EIO, ENOMEM, ECANCELLED. Blocks and
 * computes for as long as it takes: some 100 MB a second. */
WEIR_API int weir__make(weir_system *s, const weir__make_options *o, const char *path, weir_error **error);

#endif
