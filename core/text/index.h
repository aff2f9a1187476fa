/* index.h: finds things by name: a hash table from byte strings to positions in an array of the caller. Owns its slots only; knows nothing of what it
 * indexes. And the one way in which buffers grow. */
#ifndef WEIR_TEXT_INDEX_H
#define WEIR_TEXT_INDEX_H

#include "text.h"

/* Items are structs of `stride` bytes that begin with a weir__string; they must stay where they are. */
typedef struct weir__index {
    uint64_t *slots; /* [mask + 1] upper half of the hash, then position + 1; 0: empty. At most half full */
    size_t mask;
    uint64_t seed; /* differs between tables, so that colliding names cannot be prepared in a file */
    const char *items;
    size_t stride;
} weir__index;

/* An index with room for n < 2^32 - 1 items. ENOMEM. */
int weir__index_init(weir_system *s, weir__index *x, const void *items, size_t stride, size_t n);
void weir__index_fini(weir_system *s, weir__index *x);
/* Adds item i. False, and nothing changed: an item of the same name is there. */
bool weir__index_add(weir__index *x, uint32_t i);
/* Position of the item with this name, -1 if none. */
int64_t weir__index_find(const weir__index *x, const char *name, size_t size);

/* Grows a buffer of weir__realloc to `need` elements at least, in larger steps. ENOMEM: nothing has changed. */
int weir__grow(weir_system *s, void *buffer, size_t *room, size_t need, size_t width);

/* Mixes a number into a hash. */
static inline uint64_t weir__mix(uint64_t h) {
    h *= UINT64_C(0x9E3779B97F4A7C15);
    h ^= h >> 32;
    h *= UINT64_C(0xD6E8FEB86659FD93);
    return h ^ h >> 29;
}

#endif
