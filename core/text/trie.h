/* trie.h: byte strings by their beginnings: a trie whose edges are one hash table. Knows no vocabulary: each string has a number of the caller. */
#ifndef WEIR_TEXT_TRIE_H
#define WEIR_TEXT_TRIE_H

#include "text.h"

typedef struct weir__trie_edge {
    uint32_t parent, child; /* child 0: an empty slot */
    uint32_t byte;
} weir__trie_edge;

/* Zeroed at first. Immutable after the last add: any thread. */
typedef struct weir__trie {
    weir__trie_edge *edges; /* [mask + 1] at most half full */
    size_t mask;
    int32_t *values; /* [nodes] by node, -1: no string ends here; node 0 is the root */
    size_t nodes, room;
    uint32_t first[256]; /* the root's edges, 0: none */
    uint64_t seed;
} weir__trie;

enum { WEIR__TRIE_ROOT = 0, WEIR__TRIE_MISS = UINT32_MAX };

/* Adds a string that is not empty; of equal ones the first counts. ENOMEM. */
int weir__trie_add(weir_system *s, weir__trie *t, weir__string text, int32_t value);
void weir__trie_fini(weir_system *s, weir__trie *t);
/* The node behind `node` and a byte, WEIR__TRIE_MISS: there is none. Any node of a trie without strings misses. */
uint32_t weir__trie_step(const weir__trie *t, uint32_t node, unsigned char byte);
/* Where `text` leads from `node`. */
uint32_t weir__trie_walk(const weir__trie *t, uint32_t node, weir__string text);
static inline int32_t weir__trie_value(const weir__trie *t, uint32_t node) {
    return t->values[node];
}

#endif
