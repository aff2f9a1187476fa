/* merge.h: the loop that byte-pair encoding and SentencePiece share: a row of symbols, of which the neighbouring pair of best priority is merged until none is left.
 * Knows no vocabulary: rules come in as functions and tables.
 *
 * Order: lowest priority number first, then the leftmost. A doubly linked list and a queue: n log n at worst, linear
 * where the places of each rule come up from left to right, as in texts that repeat themselves; no recursion. */
#ifndef WEIR_TEXT_MERGE_H
#define WEIR_TEXT_MERGE_H

#include "places.h"

#define WEIR__NONE UINT32_MAX

typedef struct weir__symbol {
    uint32_t next, prev; /* positions; `count` after the last, WEIR__NONE before the first */
    uint32_t pair;       /* the rule that merges this symbol with the next one, WEIR__NONE: none does */
    int32_t id;          /* -1: no piece */
} weir__symbol;

/* Workspace, used again from chunk to chunk. Zeroed at first; weir__merge_fini gives it back. */
typedef struct weir__merge {
    weir__symbol *symbols;
    size_t count, room;
    weir__places places;
} weir__merge;

typedef struct weir__merge_rules {
    /* The rule for two neighbouring symbols, WEIR__NONE: none. */
    uint32_t (*pair)(const void *data, const weir__merge *m, uint32_t left, uint32_t right);
    const void *data;
    const uint32_t *priority; /* by rule; NULL: the rule's number */
    const int32_t *result;    /* by rule: the merged piece; NULL: the rule's number */
} weir__merge_rules;

/* Room for n < 2^32 - 1 symbols. ENOMEM. */
int weir__merge_reserve(weir_system *s, weir__merge *m, size_t n);
/* Merges symbols[0..count), of which `id` is set. Afterwards the list from position 0 along `next` is the result. */
void weir__merge_run(weir__merge *m, const weir__merge_rules *rules);
void weir__merge_fini(weir_system *s, weir__merge *m);

#endif
