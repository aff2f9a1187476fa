/* unicode.h: what a character is: its classes and mappings, over utf8proc (Unicode 14), with a fast path for ASCII. Knows no tokeniser. */
#ifndef WEIR_TEXT_UNICODE_H
#define WEIR_TEXT_UNICODE_H

#include "text.h"

/* The character at p, which has n bytes left. A byte that is no UTF-8 is -1 and one byte long. *length is its bytes. */
int32_t weir__char_at(const char *p, size_t n, size_t *length);
/* Writes c (0 to 0x10FFFF) as UTF-8, at most 4 bytes; returns how many. */
size_t weir__char_put(char *to, int32_t c);

/* Each false for -1. */
bool weir__is_space(int32_t c);       /* White_Space, as Rust's char::is_whitespace and Oniguruma's \s */
bool weir__is_numeric(int32_t c);     /* Nd, Nl, No */
bool weir__is_punctuation(int32_t c); /* P*, and the rest of ASCII's signs: $+<=>^`|~ */
bool weir__is_word(int32_t c);        /* \w of Rust's regex: Alphabetic, M*, Nd, Pc, joiners */
bool weir__is_mark(int32_t c);        /* M* */
bool weir__is_nonspacing(int32_t c);  /* Mn */
bool weir__is_other(int32_t c);       /* Cc, Cf, Cs, Co */
bool weir__is_ideograph(int32_t c);   /* BertNormalizer's Chinese characters */

int32_t weir__char_lower(int32_t c); /* the simple mapping */

/* What a character decomposes to, canonically or (`compatible`) also by compatibility: up to WEIR__DECOMPOSED characters; returns how many. */
enum { WEIR__DECOMPOSED = 32 };
size_t weir__decompose(int32_t c, bool compatible, int32_t *to);
uint8_t weir__combining_class(int32_t c);
/* Composes n characters in canonical order in place; returns how many are left. */
size_t weir__compose(int32_t *chars, size_t n);
/* Whether a grapheme ends between a and b; *state is 0 at the beginning of a text. */
bool weir__grapheme_ends(int32_t a, int32_t b, int32_t *state);

#endif
