/* merge.c: the merging loop of merge.h. */
#include "merge.h"

int weir__merge_reserve(weir_system *s, weir__merge *m, size_t n) {
    if (n <= m->room)
        return WEIR_OK;
    size_t room = n < 64 ? 64 : n;
    weir__symbol *symbols = weir__realloc(s, m->symbols, room * sizeof *symbols);
    if (!symbols)
        return WEIR_ENOMEM;
    m->symbols = symbols;
    /* One entry a neighbouring pair; a merge takes one out and puts two in at most. */
    uint64_t *heap = weir__realloc(s, m->heap, 2 * room * sizeof *heap);
    if (!heap)
        return WEIR_ENOMEM;
    m->heap = heap;
    m->room = room;
    return WEIR_OK;
}

void weir__merge_fini(weir_system *s, weir__merge *m) {
    weir__free(s, m->symbols);
    weir__free(s, m->heap);
    *m = (weir__merge){0};
}

static void push(weir__merge *m, uint64_t key) {
    size_t at = m->heap_size++;
    for (size_t parent; at > 0 && m->heap[parent = (at - 1) / 2] > key; at = parent)
        m->heap[at] = m->heap[parent];
    m->heap[at] = key;
}

static uint64_t pop(weir__merge *m) {
    uint64_t top = m->heap[0], last = m->heap[--m->heap_size];
    size_t at = 0, child;
    while ((child = 2 * at + 1) < m->heap_size) {
        if (child + 1 < m->heap_size)
            child += m->heap[child + 1] < m->heap[child];
        if (m->heap[child] >= last)
            break;
        m->heap[at] = m->heap[child];
        at = child;
    }
    m->heap[at] = last;
    return top;
}

static uint64_t priority(const weir__merge_rules *rules, uint32_t rule) {
    return rules->priority ? rules->priority[rule] : rule;
}

/* Looks again at what the symbol and the one after it make. */
static void refresh(weir__merge *m, const weir__merge_rules *rules, uint32_t at) {
    weir__symbol *symbol = &m->symbols[at];
    symbol->pair = symbol->next < m->count ? rules->pair(rules->data, m, at, symbol->next) : WEIR__NONE;
    if (symbol->pair != WEIR__NONE)
        push(m, priority(rules, symbol->pair) << 32 | at);
}

static void join(weir__merge *m, const weir__merge_rules *rules, uint32_t at) {
    weir__symbol *left = &m->symbols[at], *right = &m->symbols[left->next];
    left->id = rules->result ? rules->result[left->pair] : (int32_t)left->pair;
    left->next = right->next;
    right->pair = WEIR__NONE;
    if (left->next < m->count)
        m->symbols[left->next].prev = at;
    refresh(m, rules, at);
    if (left->prev != WEIR__NONE)
        refresh(m, rules, left->prev);
}

void weir__merge_run(weir__merge *m, const weir__merge_rules *rules) {
    m->heap_size = 0;
    for (uint32_t i = 0; i < m->count; i++) {
        m->symbols[i].next = i + 1;
        m->symbols[i].prev = i > 0 ? i - 1 : WEIR__NONE;
    }
    for (uint32_t i = 0; i < m->count; i++)
        refresh(m, rules, i);
    while (m->heap_size > 0) {
        uint64_t key = pop(m);
        uint32_t at = (uint32_t)key, rule = m->symbols[at].pair;
        /* An entry whose pair has changed since is passed over; the new pair has an entry of its own. */
        if (rule != WEIR__NONE && priority(rules, rule) == key >> 32)
            join(m, rules, at);
    }
}
