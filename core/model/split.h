/* split.h: names of files that a checkpoint was cut into, "NAME-00002-of-00005.gguf", and the parts of a split GGUF file. Knows no tensor. */
#ifndef WEIR_SPLIT_H
#define WEIR_SPLIT_H

#include "gguf.h"

typedef struct weir__split {
    size_t prefix;      /* bytes of the path before "-00002-of-00005" */
    uint64_t no, count; /* as written: 2, 5; unchecked */
} weir__split;

/* Parses a path that ends in "-DIGITS-of-DIGITS" and the suffix; `digits`: exactly so many of each, 0: 1 to 9. False: it is no such name. */
bool weir__split_parse(const char *path, const char *suffix, size_t digits, weir__split *split);

/* The parts of a GGUF file, in order; a file that was not cut is its only part. The first one has the settings. */
typedef struct weir__parts {
    weir_system *system;
    uint32_t count;
    weir__gguf *gguf[]; /* [count] owned */
} weir__parts;

/* Opens a GGUF file and, if its key split.count says that it was cut (llama.cpp's gguf-split), all other parts, found by its name. ENOENT names the part that
 * is missing; EFORMAT: the parts disagree with their names or with each other. Otherwise as weir__gguf_open. */
int weir__parts_open(weir_system *s, const char *path, weir__parts **out, weir_error **error);
void weir__parts_free(weir__parts *p); /* NULL does nothing */

#endif
