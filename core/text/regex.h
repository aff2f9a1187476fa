/* regex.h: patterns of tokenisers: Oniguruma's syntax, as tokenizer.json has it, matched by PCRE2. Knows no tokeniser. */
#ifndef WEIR_TEXT_REGEX_H
#define WEIR_TEXT_REGEX_H

#include "text.h"

typedef struct weir__regex weir__regex;         /* a compiled pattern; immutable, any thread */
typedef struct weir__regex_run weir__regex_run; /* matching of one thread, with any patterns */

/* EUNSUPPORTED: the pattern is none, or has something that is not run; the error names `source`, the pattern, what and where. ENOMEM. */
int weir__regex_new(weir_system *s, weir__string pattern, const char *source, weir__regex **out, weir_error **error);
void weir__regex_free(weir__regex *r);

/* Of one thread; NULL without memory. Its work is bounded by the sizes of the texts that are searched from 0 on, whatever the pattern. */
weir__regex_run *weir__regex_run_new(weir_system *s);
void weir__regex_run_free(weir__regex_run *run);
/* The first match in text[from..size) that is not empty; *begin == size: there is none. `text` is valid UTF-8 and all that the pattern sees. EINVAL: the
 * pattern takes more work or memory than the text is worth, the error names it and says which. ENOMEM. */
int weir__regex_find(const weir__regex *r, weir__regex_run *run, weir__string text, size_t from, size_t *begin, size_t *end,
                     weir_error **error);

/* Oniguruma's pattern in PCRE2's syntax, zero-ended; weir__free. EUNSUPPORTED, ENOMEM. */
int weir__regex_translate(weir_system *s, weir__string pattern, const char *source, char **out, weir_error **error);

#endif
