/* vocab_pre.h: pre-tokenisers by the names that GGUF files have for them. */
#ifndef WEIR_VOCAB_PRE_H
#define WEIR_VOCAB_PRE_H

#include "../text/text.h"

typedef struct weir__pre_row {
    const char *name;
    weir__steps pretokeniser, normaliser;
    bool ignore_merges; /* a chunk that is a piece is that piece */
    bool add_bos;       /* where the file says nothing */
} weir__pre_row;

/* EUNSUPPORTED: no such pre-tokeniser; the error names it, `source` and the known ones. */
int weir__pre_find(const char *name, const char *source, const weir__pre_row **out, weir_error **error);

#endif
