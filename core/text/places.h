/* places.h: the places that may be merged, in order of (priority, position). Knows no symbols.
 *
 * A long text has few priorities, and the places of each come in from left to right. So each priority has a lane, a list in order of arrival, as long as what arrives is further
 * right; the lanes' priorities are in a small heap. What fits in no lane goes into a heap of its own. The order in which things come out does not depend on which way they went. */
#ifndef WEIR_TEXT_PLACES_H
#define WEIR_TEXT_PLACES_H

#include "text.h"

typedef struct weir__lane {
    uint32_t priority;
    uint32_t head, tail; /* entries; UINT32_MAX: the lane is free */
    uint32_t last;       /* position of the tail */
} weir__lane;

typedef struct weir__places {
    uint64_t *heap;  /* [2 * room] priority in the upper half, position in the lower */
    uint64_t *order; /* priorities of the lanes in use, a heap; lane in the lower half */
    weir__lane *lanes;
    struct weir__place *entries; /* [2 * room] */
    size_t heap_size, order_size, n_entries, room;
    uint32_t free; /* first of the entries that were taken out */
    bool has_lanes;
} weir__places;

/* Room for the pairs of n symbols: one entry a neighbouring pair; a merge takes one out and puts two in at most. ENOMEM. */
int weir__places_reserve(weir_system *s, weir__places *q, size_t n);
void weir__places_fini(weir_system *s, weir__places *q);
/* Empties it for a text of n symbols. */
void weir__places_start(weir__places *q, size_t n);
void weir__places_push(weir__places *q, uint32_t priority, uint32_t position);
/* Takes out the first; false: it is empty. */
bool weir__places_pop(weir__places *q, uint32_t *priority, uint32_t *position);

#endif
