/* places.c: lanes and heaps of places.h. */
#include "places.h"

#include "index.h"

enum {
    LANES = 1024,     /* priorities that have a lane at a time */
    LANES_FROM = 512, /* symbols from which on lanes are used: a word's pairs fit into the cache */
    NONE = UINT32_MAX,
};

typedef struct weir__place {
    uint32_t position, next;
} entry;

int weir__places_reserve(weir_system *s, weir__places *q, size_t n) {
    if (n <= q->room)
        return WEIR_OK;
    uint64_t *heap = weir__realloc(s, q->heap, 2 * n * sizeof *heap);
    q->heap = heap ? heap : q->heap;
    entry *entries = heap && n >= LANES_FROM ? weir__realloc(s, q->entries, 2 * n * sizeof *entries) : NULL;
    q->entries = entries ? entries : q->entries;
    if (entries && !q->lanes)
        q->lanes = weir__alloc(s, LANES * sizeof *q->lanes);
    if (entries && !q->order)
        q->order = weir__alloc(s, LANES * sizeof *q->order);
    if (!heap || (n >= LANES_FROM && (!entries || !q->lanes || !q->order)))
        return WEIR_ENOMEM;
    q->room = n;
    return WEIR_OK;
}

void weir__places_fini(weir_system *s, weir__places *q) {
    weir__free(s, q->heap);
    weir__free(s, q->entries);
    weir__free(s, q->lanes);
    weir__free(s, q->order);
    *q = (weir__places){0};
}

void weir__places_start(weir__places *q, size_t n) {
    q->heap_size = q->order_size = q->n_entries = 0;
    q->free = NONE;
    q->has_lanes = n >= LANES_FROM;
    for (size_t i = 0; i < LANES && q->has_lanes; i++)
        q->lanes[i].head = NONE;
}

static void heap_push(uint64_t *heap, size_t *size, uint64_t key) {
    size_t at = (*size)++;
    for (size_t parent; at > 0 && heap[parent = (at - 1) / 2] > key; at = parent)
        heap[at] = heap[parent];
    heap[at] = key;
}

static void heap_pop(uint64_t *heap, size_t *size) {
    uint64_t last = heap[--*size];
    size_t at = 0, child;
    while ((child = 2 * at + 1) < *size) {
        if (child + 1 < *size)
            child += heap[child + 1] < heap[child];
        if (heap[child] >= last)
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = last;
}

static uint32_t take_entry(weir__places *q, uint32_t position) {
    uint32_t at = q->free;
    if (at != NONE)
        q->free = q->entries[at].next;
    else
        at = (uint32_t)q->n_entries++;
    q->entries[at] = (entry){position, NONE};
    return at;
}

/* False: the lane is another priority's, or further right already. */
static bool push_lane(weir__places *q, uint32_t priority, uint32_t position) {
    size_t i = (size_t)weir__mix(priority) % LANES;
    weir__lane *lane = &q->lanes[i];
    bool unused = lane->head == NONE;
    if (!unused && (lane->priority != priority || position < lane->last))
        return false;
    uint32_t at = take_entry(q, position);
    if (unused) {
        *lane = (weir__lane){priority, at, at, position};
        heap_push(q->order, &q->order_size, (uint64_t)priority << 32 | i);
    } else {
        q->entries[lane->tail].next = at;
        lane->tail = at;
        lane->last = position;
    }
    return true;
}

void weir__places_push(weir__places *q, uint32_t priority, uint32_t position) {
    if (!q->has_lanes || !push_lane(q, priority, position))
        heap_push(q->heap, &q->heap_size, (uint64_t)priority << 32 | position);
}

static void pop_lane(weir__places *q, weir__lane *lane) {
    uint32_t at = lane->head;
    lane->head = q->entries[at].next;
    q->entries[at].next = q->free;
    q->free = at;
    if (lane->head == NONE)
        heap_pop(q->order, &q->order_size);
}

bool weir__places_pop(weir__places *q, uint32_t *priority, uint32_t *position) {
    uint64_t key = q->heap_size > 0 ? q->heap[0] : UINT64_MAX, first = UINT64_MAX;
    weir__lane *lane = NULL;
    if (q->order_size > 0) {
        lane = &q->lanes[(uint32_t)q->order[0]];
        first = (uint64_t)lane->priority << 32 | q->entries[lane->head].position;
    }
    if (q->heap_size == 0 && !lane)
        return false;
    if (lane && first <= key) {
        key = first;
        pop_lane(q, lane);
    } else {
        heap_pop(q->heap, &q->heap_size);
    }
    *priority = (uint32_t)(key >> 32);
    *position = (uint32_t)key;
    return true;
}
