/* vocab_merges.h: byte-pair encoding by ranked merges and by scores of pieces, one made from the other, where both make the same pieces of every text. Knows no file
 * format.
 *
 * A piece is the same in both if, of its characters alone, merging makes the piece by both. For what happens between two of a text's characters before anything is
 * joined across them does not depend on the rest of the text; so both merge alike everywhere if they do in each piece and rank the pieces' last merges alike. */
#ifndef WEIR_VOCAB_MERGES_H
#define WEIR_VOCAB_MERGES_H

#include "../text/text.h"

/* scores[v->size], exact in single precision, by which WEIR__SPM merges as v's merges do. *same false: there are none. ENOMEM. */
int weir__scores_of_merges(weir_system *s, const weir__vocab *v, float *scores, bool *same, weir_error **error);
/* Merges (weir__free; strings lie in v's pieces) that do what v's scores do. *same false: there are none, as where pieces of
 * equal scores can meet. ENOMEM. */
int weir__merges_of_scores(weir_system *s, const weir__vocab *v, weir__merge_pair **merges, size_t *n, bool *same, weir_error **error);
int weir__byte_of_name(weir__string piece); /* the value of "<0x0A>", -1: it is none */
/* Kinds of all pieces, added tokens and the unknown one regarded; weir__free. NULL without memory. */
uint8_t *weir__vocab_kinds(weir_system *s, const weir__vocab *v);

#endif
