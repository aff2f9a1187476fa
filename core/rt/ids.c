/* ids.c: tables of records with ids that are never reused: an index and a generation; a record whose generations are used up is never taken
 * again. Records do not move and chunks live as long as the table, so that other threads may look into them. */
#include "internal.h"

void weir__ids_init(weir__ids *t, size_t size) {
    memset(t, 0, sizeof *t);
    t->size = size;
}

void weir__ids_fini(weir_system *s, weir__ids *t) {
    for (int k = 0; k < WEIR__ID_CHUNKS; k++)
        weir__free(s, atomic_load_explicit(&t->chunk[k], memory_order_relaxed));
    weir__ids_init(t, t->size);
}

static bool grow(weir_system *s, weir__ids *t) {
    uint32_t count = atomic_load_explicit(&t->count, memory_order_relaxed);
    uint32_t offset;
    unsigned k = weir__ids_chunk(count, &offset);
    if (k >= WEIR__ID_CHUNKS)
        return false;
    char *chunk = weir__alloc(s, ((size_t)WEIR__ID_FIRST << k) * t->size);
    if (!chunk)
        return false;
    atomic_store_explicit(&t->chunk[k], chunk, memory_order_relaxed);
    atomic_store_explicit(&t->count, count + ((uint32_t)WEIR__ID_FIRST << k), memory_order_release);
    return true;
}

void *weir__ids_take(weir_system *s, weir__ids *t) {
    weir__id *r = t->free;
    if (r) {
        t->free = r->free;
        return r;
    }
    if (t->used >= atomic_load_explicit(&t->count, memory_order_relaxed) && !grow(s, t))
        return NULL;
    r = weir__ids_at(t, t->used);
    r->index = t->used++;
    r->next = 1;
    return r;
}

uint64_t weir__ids_next(const weir__id *r) {
    return (uint64_t)r->index << WEIR__GENERATION_BITS | r->next;
}

/* Living, it may be ended and given back by another thread at once: nothing of it is touched afterwards. */
uint64_t weir__ids_live(weir__id *r) {
    uint32_t generation = r->next;
    uint64_t id = weir__ids_next(r);
    r->next = (generation + 1) & ((1u << WEIR__GENERATION_BITS) - 1);
    atomic_store_explicit(&r->live, generation, memory_order_release); /* pairs with the acquire in weir__ids_find */
    return id;
}

void weir__ids_end(weir__id *r) {
    atomic_store_explicit(&r->live, 0, memory_order_release);
}

void weir__ids_give(weir__ids *t, weir__id *r) {
    if (!r->next)
        return;
    r->free = t->free;
    t->free = r;
}
