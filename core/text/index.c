/* index.c: the hash table of index.h: open addressing, linear probing. */
#include "index.h"

#include <string.h>

static uint64_t hash(const weir__index *x, const char *name, size_t size) {
    uint64_t h = x->seed ^ size, word;
    for (; size >= 8; name += 8, size -= 8) {
        memcpy(&word, name, 8);
        h = weir__mix(h ^ word);
    }
    word = 0;
    if (size > 0)
        memcpy(&word, name, size);
    return weir__mix(h ^ word);
}

static const weir__string *item(const weir__index *x, uint32_t i) {
    return (const weir__string *)(const void *)(x->items + i * x->stride);
}

/* The slot that holds the name, or the empty one where it belongs. */
static uint64_t *slot(const weir__index *x, const char *name, size_t size, uint64_t h) {
    for (size_t at = h & x->mask;; at = (at + 1) & x->mask) {
        uint64_t *s = &x->slots[at];
        if (*s == 0)
            return s;
        if (*s >> 32 != h >> 32)
            continue;
        const weir__string *other = item(x, (uint32_t)*s - 1);
        if (other->size == size && memcmp(other->data, name, size) == 0)
            return s;
    }
}

int weir__index_init(weir_system *s, weir__index *x, const void *items, size_t stride, size_t n) {
    size_t room = 16;
    while (room < 2 * n)
        room *= 2;
    *x = (weir__index){.mask = room - 1, .items = items, .stride = stride};
    x->slots = weir__alloc(s, room * sizeof *x->slots);
    if (!x->slots)
        return WEIR_ENOMEM;
    x->seed = weir__mix((uintptr_t)x->slots);
    return WEIR_OK;
}

void weir__index_fini(weir_system *s, weir__index *x) {
    weir__free(s, x->slots);
    x->slots = NULL;
}

bool weir__index_add(weir__index *x, uint32_t i) {
    const weir__string *name = item(x, i);
    uint64_t h = hash(x, name->data, name->size);
    uint64_t *s = slot(x, name->data, name->size, h);
    if (*s != 0)
        return false;
    *s = (h >> 32 << 32) | (i + 1);
    return true;
}

int64_t weir__index_find(const weir__index *x, const char *name, size_t size) {
    if (!x->slots)
        return -1;
    return (int64_t)(uint32_t)*slot(x, name, size, hash(x, name, size)) - 1;
}

int weir__grow(weir_system *s, void *buffer, size_t *room, size_t need, size_t width) {
    if (need <= *room)
        return WEIR_OK;
    size_t wanted = *room + *room / 2 > need ? *room + *room / 2 : need;
    if (wanted < 64)
        wanted = 64;
    void *old, *grown;
    memcpy(&old, buffer, sizeof old);
    grown = weir__realloc(s, old, wanted * width);
    if (!grown)
        return WEIR_ENOMEM;
    memcpy(buffer, &grown, sizeof grown);
    *room = wanted;
    return WEIR_OK;
}
