/* alloc.c: counted memory: blocks through the host's allocator, pools of small blocks that the loop's thread gives and takes without it, pages
 * from the kernel. Knows nothing of what is stored in them. */
#include <sys/mman.h>

#include "internal.h"

enum {
    PAGE_BYTES = 4096,
    HUGE_BYTES = 2 << 20,
    PAGES_LEAST = 32 << 10, /* smaller requests for pages come from the allocator: a mapping each would waste half a page on average */
    PAGES_ALIGN = 64
};

static void count(weir_system *s, size_t bytes, int64_t blocks) {
    atomic_fetch_add_explicit(&s->bytes, (uint64_t)bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&s->blocks, (uint64_t)blocks, memory_order_relaxed);
}

void *weir__alloc_raw(weir_system *s, size_t n) {
    if (n > SIZE_MAX / 2 || weir__inject(s, WEIR__INJECT_ALLOC))
        return NULL;
    size_t size = n + sizeof(weir__header);
    weir__header *h = s->alloc(s->alloc_data, NULL, 0, size);
    if (!h)
        return NULL;
    *h = (weir__header){size, 0, 0};
    count(s, size, 1);
    return h + 1;
}

void *weir__alloc(weir_system *s, size_t n) {
    void *p = weir__alloc_raw(s, n);
    return p ? memset(p, 0, n) : NULL;
}

void *weir__realloc(weir_system *s, void *p, size_t n) {
    if (!p)
        return weir__alloc_raw(s, n);
    if (n > SIZE_MAX / 2 || weir__inject(s, WEIR__INJECT_ALLOC))
        return NULL;
    weir__header *h = (weir__header *)p - 1;
    size_t old = h->size, size = n + sizeof(weir__header);
    h = s->alloc(s->alloc_data, h, old, size);
    if (!h)
        return NULL;
    h->size = size;
    count(s, size - old, 0);
    return h + 1;
}

void weir__free(weir_system *s, void *p) {
    if (!p)
        return;
    weir__header *h = (weir__header *)p - 1;
    size_t size = h->size;
    s->alloc(s->alloc_data, h, size, 0);
    count(s, (size_t)0 - size, -1);
}

char *weir__strdup(weir_system *s, const char *text) {
    size_t n = strlen(text) + 1;
    char *copy = weir__alloc_raw(s, n);
    return copy ? memcpy(copy, text, n) : NULL;
}

/* ---- pools ---- */

enum { CHAIN_LENGTH = 32 }; /* blocks that go home together: one write to a foreign line of cache for all */

static size_t block_size(const weir__header *h) {
    return h->size - sizeof(weir__header);
}

static void push_chain(weir__loop *owner, weir__chain *c) {
    weir__pooled *head = atomic_load_explicit(&owner->returned, memory_order_relaxed);
    do
        c->last->next = head;
    while (!atomic_compare_exchange_weak_explicit(&owner->returned, &head, c->first, memory_order_release, memory_order_relaxed));
    *c = (weir__chain){NULL, NULL, 0};
}

void weir__pool_away(weir__loop *l, weir__header *h) {
    weir__chain *c = &l->away[h->owner - 1];
    weir__pooled *p = (weir__pooled *)(h + 1);
    ASAN_POISON_MEMORY_REGION(p + 1, block_size(h) - sizeof *p);
    p->next = c->first;
    c->first = p;
    if (!c->count++)
        c->last = p;
    if (c->count == CHAIN_LENGTH)
        push_chain(l->system->loops[h->owner - 1], c);
}

void weir__pool_flush(weir__loop *l) {
    for (unsigned i = 0; i < l->system->n_loops; i++)
        if (l->away[i].count)
            push_chain(l->system->loops[i], &l->away[i]);
}

static void unpoison(weir__pooled *p) {
    ASAN_UNPOISON_MEMORY_REGION(p + 1, block_size((weir__header *)p - 1) - sizeof *p);
}

bool weir__pool_fetch(weir__loop *l) {
    if (!atomic_load_explicit(&l->returned, memory_order_relaxed))
        return false;
    for (weir__pooled *p = atomic_exchange_explicit(&l->returned, NULL, memory_order_acquire), *next; p; p = next) {
        next = p->next;
        unpoison(p);
        size_t size, n = block_size((weir__header *)p - 1);
        int i = weir__pool_of(n, &size);
        if (!weir__pool_push(l, i, size, p))
            weir__free(l->system, p);
    }
    return true;
}

static void free_all(weir_system *s, weir__pooled *p) {
    for (weir__pooled *next; p; p = next) {
        next = p->next;
        unpoison(p);
        weir__free(s, p);
    }
}

void weir__pool_drain(weir__loop *l) {
    for (int i = 0; i < WEIR__POOLS; i++) {
        free_all(l->system, l->pools[i].free);
        l->pools[i] = (weir__pool){NULL, 0};
    }
    for (unsigned i = 0; i <= WEIR_MAX_WORKERS; i++) {
        free_all(l->system, l->away[i].first);
        l->away[i] = (weir__chain){NULL, NULL, 0};
    }
    free_all(l->system, atomic_exchange(&l->returned, NULL));
}

/* ---- pages ---- */

static size_t pages_size(size_t n) {
    size_t unit = n >= HUGE_BYTES ? HUGE_BYTES : PAGE_BYTES;
    return (n + unit - 1) / unit * unit;
}

/* A mapping is cut out of a larger one to get the alignment that huge pages need. */
static void *map_aligned(size_t size) {
    size_t slack = size >= HUGE_BYTES ? HUGE_BYTES - PAGE_BYTES : 0;
    char *p = mmap(NULL, size + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    if (!slack)
        return p;
    char *start = (char *)(((uintptr_t)p + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES);
    if (start > p)
        munmap(p, (size_t)(start - p));
    size_t behind = (size_t)(p + size + slack - (start + size));
    if (behind)
        munmap(start + size, behind);
    madvise(start, size, MADV_HUGEPAGE);
    return start;
}

/* Aligned by hand inside a larger block, whose start is kept in front of what is handed out. */
static void *small_pages(weir_system *s, size_t n) {
    char *block = weir__alloc(s, n + PAGES_ALIGN + sizeof(void *));
    if (!block)
        return NULL;
    uintptr_t p = ((uintptr_t)block + sizeof(void *) + PAGES_ALIGN - 1) / PAGES_ALIGN * PAGES_ALIGN;
    ((void **)p)[-1] = block;
    return (void *)p;
}

void *weir__pages(weir_system *s, size_t n) {
    if (n > SIZE_MAX / 2 || weir__inject(s, WEIR__INJECT_PAGES))
        return NULL;
    if (n < PAGES_LEAST)
        return small_pages(s, n);
    size_t size = pages_size(n);
    void *p = map_aligned(size);
    if (p)
        count(s, size, 1);
    return p;
}

void weir__pages_free(weir_system *s, void *p, size_t n) {
    if (!p)
        return;
    if (n < PAGES_LEAST) {
        weir__free(s, ((void **)p)[-1]);
        return;
    }
    munmap(p, pages_size(n));
    count(s, (size_t)0 - pages_size(n), -1);
}
