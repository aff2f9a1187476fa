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

/* The name of the pre-tokeniser that does what v's steps do; NULL: there is none. Patterns are compared as texts in which \n, \r, \t and \x{...} are the characters. */
const char *weir__pre_name(const weir__vocab *v);
/* Whether two pipelines are step by step the same. */
bool weir__steps_same(weir__steps a, weir__steps b);

#endif
