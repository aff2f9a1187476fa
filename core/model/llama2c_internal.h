/* llama2c_internal.h: what the two halves of the llama2.c reader share: the model (llama2c.c) and its vocabulary (llama2c_vocab.c). */
#ifndef WEIR_LLAMA2C_INTERNAL_H
#define WEIR_LLAMA2C_INTERNAL_H

#include "gguf_internal.h"

/* A checkpoint's header, checked. */
typedef struct weir__llama2c {
    int64_t dim, hidden, layers, heads, kv_heads, vocab, context;
    bool tied; /* the head is the embedding */
} weir__llama2c;

/* Checks each field, and the size of the file against all of them. EFORMAT names field, found and wanted. */
int weir__llama2c_header(const char *name, const void *header, size_t size, uint64_t file_size, weir__llama2c *m, weir_error **error);

/* Reads a vocabulary of that many pieces and puts the tokenizer.ggml.* keys. */
int weir__llama2c_put_vocabulary(weir_system *s, weir__gguf_writer *w, const char *path, int64_t pieces, weir_error **error);

#endif
