/* trie.c: the trie of trie.h: one open-addressing table of (parent, byte) -> child. */
#include "trie.h"

#include "index.h"

static size_t start(const weir__trie *t, uint32_t parent, uint32_t byte) {
    return (size_t)weir__mix(t->seed ^ ((uint64_t)parent << 8 | byte)) & t->mask;
}

static weir__trie_edge *edge(const weir__trie *t, uint32_t parent, uint32_t byte) {
    for (size_t at = start(t, parent, byte);; at = (at + 1) & t->mask) {
        weir__trie_edge *e = &t->edges[at];
        if (e->child == 0 || (e->parent == parent && e->byte == byte))
            return e;
    }
}

/* Room for one more node. */
static int reserve(weir_system *s, weir__trie *t) {
    if (t->nodes > 0 && t->nodes + 1 < t->room)
        return WEIR_OK;
    size_t room = t->room ? 2 * t->room : 256, slots = 2 * room;
    if (room > UINT32_MAX / 2)
        return WEIR_ENOMEM;
    int32_t *values = weir__realloc(s, t->values, room * sizeof *values);
    if (!values)
        return WEIR_ENOMEM;
    t->values = values;
    weir__trie_edge *old = t->edges, *edges = weir__alloc(s, slots * sizeof *edges);
    size_t n = old ? t->mask + 1 : 0;
    if (!edges)
        return WEIR_ENOMEM;
    t->seed = weir__mix((uintptr_t)edges);
    t->edges = edges;
    t->mask = slots - 1;
    t->room = room;
    for (size_t i = 0; i < n; i++) {
        if (old[i].child)
            *edge(t, old[i].parent, old[i].byte) = old[i];
    }
    weir__free(s, old);
    if (t->nodes == 0)
        t->values[t->nodes++] = -1;
    return WEIR_OK;
}

int weir__trie_add(weir_system *s, weir__trie *t, weir__string text, int32_t value) {
    uint32_t node = WEIR__TRIE_ROOT;
    for (size_t i = 0; i < text.size; i++) {
        unsigned char byte = (unsigned char)text.data[i];
        if (reserve(s, t))
            return WEIR_ENOMEM;
        weir__trie_edge *e = edge(t, node, byte);
        if (e->child == 0) {
            *e = (weir__trie_edge){node, (uint32_t)t->nodes, byte};
            t->values[t->nodes++] = -1;
            if (node == WEIR__TRIE_ROOT)
                t->first[byte] = e->child;
        }
        node = e->child;
    }
    if (text.size > 0 && t->values[node] < 0)
        t->values[node] = value;
    return WEIR_OK;
}

void weir__trie_fini(weir_system *s, weir__trie *t) {
    weir__free(s, t->edges);
    weir__free(s, t->values);
    *t = (weir__trie){0};
}

uint32_t weir__trie_step(const weir__trie *t, uint32_t node, unsigned char byte) {
    uint32_t child = node == WEIR__TRIE_ROOT ? t->first[byte] : edge(t, node, byte)->child;
    return child ? child : WEIR__TRIE_MISS;
}

uint32_t weir__trie_walk(const weir__trie *t, uint32_t node, weir__string text) {
    for (size_t i = 0; i < text.size && node != WEIR__TRIE_MISS; i++)
        node = weir__trie_step(t, node, (unsigned char)text.data[i]);
    return node;
}
