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
    if (weir__places_reserve(s, &m->places, room))
        return WEIR_ENOMEM;
    m->room = room;
    return WEIR_OK;
}

void weir__merge_fini(weir_system *s, weir__merge *m) {
    weir__free(s, m->symbols);
    weir__places_fini(s, &m->places);
    *m = (weir__merge){0};
}

static uint32_t priority(const weir__merge_rules *rules, uint32_t rule) {
    return rules->priority ? rules->priority[rule] : rule;
}

/* Looks again at what the symbol and the one after it make. */
static void refresh(weir__merge *m, const weir__merge_rules *rules, uint32_t at) {
    weir__symbol *symbol = &m->symbols[at];
    symbol->pair = symbol->next < m->count ? rules->pair(rules->data, m, at, symbol->next) : WEIR__NONE;
    if (symbol->pair != WEIR__NONE)
        weir__places_push(&m->places, priority(rules, symbol->pair), at);
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
    uint32_t first, at;
    weir__places_start(&m->places, m->count);
    for (uint32_t i = 0; i < m->count; i++) {
        m->symbols[i].next = i + 1;
        m->symbols[i].prev = i > 0 ? i - 1 : WEIR__NONE;
    }
    for (uint32_t i = 0; i < m->count; i++)
        refresh(m, rules, i);
    while (weir__places_pop(&m->places, &first, &at)) {
        uint32_t rule = m->symbols[at].pair;
        /* An entry whose pair has changed since is passed over; the new pair has an entry of its own. */
        if (rule != WEIR__NONE && priority(rules, rule) == first)
            join(m, rules, at);
    }
}
