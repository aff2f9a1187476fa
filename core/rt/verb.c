/* verb.c: interned names. A verb is a number as long as the system lives; names may be asked for on any thread without a lock. */
#include "internal.h"

enum { TABLE_FIRST = 128 };

/* As in ids.c: chunk k holds the verbs from 16 << k on, less 16. */
static const char **place(const weir__verbs *v, uint32_t verb, unsigned *chunk) {
    uint32_t i = verb - 1 + WEIR__ID_FIRST;
    *chunk = (unsigned)(31 - __builtin_clz(i)) - (unsigned)__builtin_ctz(WEIR__ID_FIRST);
    const char **c = atomic_load_explicit(&v->chunk[*chunk], memory_order_relaxed);
    return c ? c + (i - ((uint32_t)WEIR__ID_FIRST << *chunk)) : NULL;
}

const char *weir_verb_name(const weir_system *s, weir_verb verb) {
    unsigned chunk;
    if (verb == 0 || verb > atomic_load_explicit(&s->verbs.count, memory_order_acquire)) /* pairs with the release in add */
        return "?";
    return *place(&s->verbs, verb, &chunk);
}

/* FNV-1a, http://www.isthe.com/chongo/tech/comp/fnv/ */
static uint32_t hash(const char *name) {
    uint32_t h = 2166136261u;
    for (; *name; name++)
        h = (h ^ (uint8_t)*name) * 16777619u;
    return h;
}

/* The place of `name` in the table: its verb, or 0 where it would go. */
static uint32_t *probe(const weir_system *s, uint32_t *table, uint32_t size, const char *name) {
    uint32_t i = hash(name) & (size - 1);
    while (table[i] && strcmp(weir_verb_name(s, table[i]), name) != 0)
        i = (i + 1) & (size - 1);
    return &table[i];
}

static bool enlarge(weir_system *s, uint32_t size) {
    weir__verbs *v = &s->verbs;
    uint32_t *table = weir__alloc(s, size * sizeof *table);
    if (!table)
        return false;
    uint32_t count = atomic_load_explicit(&v->count, memory_order_relaxed);
    for (uint32_t verb = 1; verb <= count; verb++)
        *probe(s, table, size, weir_verb_name(s, verb)) = verb;
    weir__free(s, v->table);
    v->table = table;
    v->table_size = size;
    return true;
}

static weir_verb add(weir_system *s, const char *name) {
    weir__verbs *v = &s->verbs;
    uint32_t verb = atomic_load_explicit(&v->count, memory_order_relaxed) + 1;
    unsigned k;
    const char **at = place(v, verb, &k);
    if (k >= WEIR__ID_CHUNKS || (verb * 2 > v->table_size && !enlarge(s, v->table_size * 2)))
        return 0;
    if (!at) {
        const char **chunk = weir__alloc(s, ((size_t)WEIR__ID_FIRST << k) * sizeof *chunk);
        if (!chunk)
            return 0;
        atomic_store_explicit(&v->chunk[k], chunk, memory_order_relaxed);
        at = place(v, verb, &k);
    }
    *at = weir__strdup(s, name);
    if (!*at)
        return 0;
    *probe(s, v->table, v->table_size, name) = verb;
    atomic_store_explicit(&v->count, verb, memory_order_release);
    return verb;
}

weir_verb weir_intern(weir_system *s, const char *name) {
    if (!name || !*name || strnlen(name, WEIR_MAX_NAME) == WEIR_MAX_NAME)
        return 0;
    pthread_mutex_lock(&s->verbs.lock);
    weir_verb verb = *probe(s, s->verbs.table, s->verbs.table_size, name);
    if (!verb)
        verb = add(s, name);
    pthread_mutex_unlock(&s->verbs.lock);
    return verb;
}

int weir__verbs_init(weir_system *s) {
    pthread_mutex_init(&s->verbs.lock, NULL);
    return enlarge(s, TABLE_FIRST) ? WEIR_OK : WEIR_ENOMEM;
}

void weir__verbs_fini(weir_system *s) {
    unsigned k;
    for (uint32_t verb = atomic_load(&s->verbs.count); verb; verb--)
        weir__free(s, (void *)*place(&s->verbs, verb, &k));
    for (k = 0; k < WEIR__ID_CHUNKS; k++)
        weir__free(s, atomic_load(&s->verbs.chunk[k]));
    weir__free(s, s->verbs.table);
    pthread_mutex_destroy(&s->verbs.lock);
}
