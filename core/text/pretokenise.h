/* pretokenise.h: cuts text into the chunks inside of which byte-level BPE merges. One pattern a named pre-tokeniser, run by PCRE2. Knows no vocabulary. */
#ifndef WEIR_TEXT_PRETOKENISE_H
#define WEIR_TEXT_PRETOKENISE_H

#include "text.h"

typedef struct weir__pre weir__pre;         /* a compiled pattern; immutable, any thread */
typedef struct weir__pre_run weir__pre_run; /* matching of one thread */

/* EUNSUPPORTED: no such pre-tokeniser; the error names it, `source` and the known ones. ENOMEM. */
int weir__pre_new(weir_system *s, const char *name, const char *source, weir__pre **out, weir_error **error);
void weir__pre_free(weir__pre *p);

/* NULL without memory. */
weir__pre_run *weir__pre_run_new(const weir__pre *p);
void weir__pre_run_free(weir__pre_run *r);
/* Starts on a text, which must stay where it is. */
void weir__pre_start(weir__pre_run *r, const char *text, size_t size);
/* The next chunk; size 0: none left. A run of bytes that are no UTF-8 is a chunk of its own. EINVAL if PCRE2 gives up. */
int weir__pre_next(weir__pre_run *r, weir__string *chunk, weir_error **error);

#endif
