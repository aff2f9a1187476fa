/* vocab_gguf.h: a vocabulary as keys of a GGUF file. */
#ifndef WEIR_VOCAB_GGUF_H
#define WEIR_VOCAB_GGUF_H

#include "gguf.h"

typedef struct weir__vocab_said {
    bool phi3;         /* the file's general.name has to say Phi-3 ... */
    bool other;        /* ... or must not */
    char warning[256]; /* what could not be said, "": nothing */
} weir__vocab_said;

/* tokenizer.ggml.* if GGUF's words say exactly this vocabulary; else all of tokenizer.json under GGUF's key for it, tokenizer.huggingface.json; if not even that can
 * be, nothing: the warning tells. `size`: pieces that the model has room for; missing ones become unused ones. ENOMEM. Failures of writing stick to the writer. */
int weir__vocab_write_gguf(weir_system *s, const weir__vocab *v, size_t size, weir__gguf_writer *w, weir__vocab_said *said,
                           weir_error **error);
/* The chat templates. */
void weir__templates_write_gguf(const weir__source *src, weir__gguf_writer *w);

#endif
