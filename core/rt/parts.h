/* parts.h: what the structures of core/rt are made of: intrusive lists, tables of ids, counters. Nothing outside of core/rt includes it. */
#ifndef WEIR_RT_PARTS_H
#define WEIR_RT_PARTS_H

#include <stdatomic.h>

#include "rt.h"

/* ---- lists: circular, doubly linked, intrusive ---- */

typedef struct weir__link {
    struct weir__link *prev, *next;
} weir__link;

#define weir__container(pointer, type, member) ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

static inline void weir__link_init(weir__link *l) {
    l->prev = l->next = l;
}
static inline bool weir__link_alone(const weir__link *l) {
    return l->next == l;
}
static inline void weir__link_add(weir__link *head, weir__link *l) { /* at the end */
    l->prev = head->prev;
    l->next = head;
    head->prev->next = l;
    head->prev = l;
}
static inline void weir__link_remove(weir__link *l) { /* may be called again */
    l->prev->next = l->next;
    l->next->prev = l->prev;
    weir__link_init(l);
}

/* ---- id tables (ids.c): records that never move, found by ids that are never reused ---- */

enum { WEIR__ID_CHUNKS = 20, WEIR__ID_FIRST = 16, WEIR__GENERATION_BITS = 29 };

/* The head of each record. id = index << 29 | live, so ids are below 2^53 and their order is the order of the table. */
typedef struct weir__id {
    _Atomic uint32_t live; /* generation of the living record, 0 while it is free. Any thread */
    uint32_t next;         /* generation of the next life; 0: exhausted, the record stays unused */
    uint32_t index;
    struct weir__id *free;
} weir__id;

typedef struct weir__ids {
    _Atomic(char *) chunk[WEIR__ID_CHUNKS]; /* chunk k has 16 << k records. Any thread */
    _Atomic uint32_t count;                 /* records in all chunks. Any thread */
    uint32_t used;                          /* records that were taken at least once */
    size_t size;                            /* bytes of a record */
    weir__id *free;
} weir__ids;

void weir__ids_init(weir__ids *t, size_t size);
void weir__ids_fini(weir_system *s, weir__ids *t);
void *weir__ids_take(weir_system *s, weir__ids *t); /* a free record, not living yet, only its head defined; NULL without memory */
uint64_t weir__ids_next(const weir__id *r);         /* the id that it will get */
uint64_t weir__ids_live(weir__id *r);               /* gives it its id */
void weir__ids_end(weir__id *r);                    /* its id is void from now on */
void weir__ids_give(weir__ids *t, weir__id *r);     /* an ended record may be taken again */

/* Chunk k holds the indices from (16 << k) - 16 on. */
static inline unsigned weir__ids_chunk(uint32_t index, uint32_t *offset) {
    uint32_t i = index + WEIR__ID_FIRST;
    unsigned k = (unsigned)(31 - __builtin_clz(i)) - (unsigned)__builtin_ctz(WEIR__ID_FIRST);
    *offset = i - ((uint32_t)WEIR__ID_FIRST << k);
    return k;
}
/* NULL beyond the table. Any thread */
static inline void *weir__ids_at(const weir__ids *t, uint32_t index) {
    if (index >= atomic_load_explicit(&t->count, memory_order_acquire)) /* pairs with the release in grow */
        return NULL;
    uint32_t offset;
    unsigned k = weir__ids_chunk(index, &offset);
    return atomic_load_explicit(&t->chunk[k], memory_order_relaxed) + offset * t->size;
}
/* NULL if id does not live. Any thread */
static inline void *weir__ids_find(const weir__ids *t, uint64_t id) {
    if (id >> WEIR__GENERATION_BITS > UINT32_MAX)
        return NULL;
    weir__id *r = (weir__id *)weir__ids_at(t, (uint32_t)(id >> WEIR__GENERATION_BITS));
    uint32_t generation = id & ((1u << WEIR__GENERATION_BITS) - 1);
    return r && generation && atomic_load_explicit(&r->live, memory_order_acquire) == generation ? r : NULL;
}
/* The id of what lives at an index, for walks over the table; 0: nothing. Any thread */
static inline uint64_t weir__ids_living(const weir__ids *t, uint32_t index) {
    weir__id *r = (weir__id *)weir__ids_at(t, index);
    uint32_t live = r ? atomic_load_explicit(&r->live, memory_order_acquire) : 0;
    return live ? (uint64_t)index << WEIR__GENERATION_BITS | live : 0;
}
static inline uint64_t weir__ids_of(const weir__id *r) {
    return (uint64_t)r->index << WEIR__GENERATION_BITS | atomic_load_explicit(&r->live, memory_order_relaxed);
}

typedef struct weir__loop weir__loop;
typedef struct weir__watchdog weir__watchdog;

/* ---- counters: one thread writes, any may read ---- */

typedef _Atomic uint64_t weir__counter;

static inline void weir__add(weir__counter *c, uint64_t n) {
    atomic_store_explicit(c, atomic_load_explicit(c, memory_order_relaxed) + n, memory_order_relaxed);
}
static inline uint64_t weir__get(const weir__counter *c) {
    return atomic_load_explicit(c, memory_order_relaxed);
}

#endif
