/* registry.c: names of actors, for any thread. A name belongs to an id, and ids are never reused: an entry whose actor has ended is free, so an actor's end
 * has nothing to do here and an actor without a name pays nothing. What ended actors leave goes when the table grows. Knows nothing of what actors do. */
#include <stdio.h>

#include "internal.h"

enum { REGISTRY_FIRST = 32 };

#define UNREGISTERED UINT64_MAX /* in place of an actor: an entry that was taken back; no id is that large */

void weir__registry_init(weir__registry *r) {
    pthread_mutex_init(&r->lock, NULL);
}

void weir__registry_fini(weir_system *s, weir__registry *r) {
    weir__free(s, r->table);
    pthread_mutex_destroy(&r->lock);
}

static bool living(const weir_system *s, const weir__named *n) {
    return n->actor && weir__ids_find(&s->actors, n->actor);
}

/* FNV-1a, as in verb.c */
static uint32_t hash(const char *name) {
    uint32_t h = 2166136261u;
    for (; *name; name++)
        h = (h ^ (uint8_t)*name) * 16777619u;
    return h;
}

/* The entry of a living actor with this name, else where it would go (`used` counts it if its actor is 0), else NULL: no table. */
static weir__named *probe(weir_system *s, weir__named *table, size_t size, const char *name) {
    weir__named *free = NULL;
    for (size_t i = hash(name), n = 0; n < size; i++, n++) {
        weir__named *e = &table[i & (size - 1)];
        bool lives = living(s, e);
        if (lives && strcmp(e->name, name) == 0)
            return e;
        if (!lives && !free)
            free = e;
        if (!e->actor)
            break;
    }
    return free;
}

/* A table for one more, without those that ended. */
static int make_room(weir_system *s, weir__registry *r) {
    if (r->size && (r->used + 1) * 4 <= r->size * 3)
        return WEIR_OK;
    size_t count = 1, size = REGISTRY_FIRST;
    for (size_t i = 0; i < r->size; i++)
        count += living(s, &r->table[i]);
    while (size < count * 2)
        size *= 2;
    weir__named *table = weir__alloc(s, size * sizeof *table);
    if (!table)
        return WEIR_ENOMEM;
    r->used = 0;
    for (size_t i = 0; i < r->size; i++) {
        if (!living(s, &r->table[i]))
            continue;
        *probe(s, table, size, r->table[i].name) = r->table[i];
        r->used++;
    }
    weir__free(s, r->table);
    r->table = table;
    r->size = size;
    return WEIR_OK;
}

/* *holder: who has the name, for EBUSY. */
static int add(weir_system *s, const char *name, weir_address a, weir_address *holder) {
    weir__registry *r = &s->registry;
    if (!weir__ids_find(&s->actors, a))
        return WEIR_ENOACTOR;
    if (weir__inject(s, WEIR__INJECT_REGISTER) || make_room(s, r) != WEIR_OK)
        return WEIR_ENOMEM;
    weir__named *e = probe(s, r->table, r->size, name);
    if (living(s, e)) {
        *holder = e->actor;
        return e->actor == a ? WEIR_OK : WEIR_EBUSY;
    }
    r->used += !e->actor;
    e->actor = a;
    snprintf(e->name, sizeof e->name, "%s", name);
    return WEIR_OK;
}

static bool is_name(const char *name) {
    return name && *name && strnlen(name, WEIR_MAX_NAME) < WEIR_MAX_NAME;
}

/* "3435973836 (worker)"; without the name once it has ended. */
static const char *describe(weir_system *s, weir_address a, char *text, size_t size) {
    weir_actor_stats stats;
    if (weir_actor_get_stats(s, a, &stats) == WEIR_OK)
        snprintf(text, size, "%llu (%s)", (unsigned long long)a, stats.name);
    else
        snprintf(text, size, "%llu", (unsigned long long)a);
    return text;
}

static int refuse(weir_system *s, int code, const char *name, weir_address a, weir_address holder, weir_error **error) {
    enum { DESCRIPTION = WEIR_MAX_NAME + 32 };
    char it[DESCRIPTION], other[DESCRIPTION];
    if (!error)
        return code;
    describe(s, a, it, sizeof it);
    if (code == WEIR_EBUSY)
        return weir_fail(error, code, "the name \"%s\" cannot be given to actor %s: actor %s has it", name, it,
                         describe(s, holder, other, sizeof other));
    return weir_fail(error, code, "the name \"%s\" cannot be given to actor %s: %s", name, it, weir_code_text(code));
}

int weir__register(weir_system *s, const char *name, weir_address a, weir_error **error) {
    if (!weir__check(s, "no system") || weir__forked(s))
        return weir_fail(error, WEIR_EINVAL, "weir_register: no system, or in a forked child");
    if (!is_name(name))
        return weir_fail(error, WEIR_EINVAL, "the name \"%.70s\" of an actor: wanted 1 to %d bytes", name ? name : "", WEIR_MAX_NAME - 1);
    weir_address holder = 0;
    pthread_mutex_lock(&s->registry.lock);
    int code = add(s, name, a, &holder);
    pthread_mutex_unlock(&s->registry.lock);
    return code == WEIR_OK ? WEIR_OK : refuse(s, code, name, a, holder, error);
}

int weir_register(weir_system *s, const char *name, weir_address a) {
    return weir__register(s, name, a, NULL);
}

int weir_unregister(weir_system *s, const char *name) {
    if (!weir__check(s, "no system") || weir__forked(s) || !is_name(name))
        return WEIR_EINVAL;
    weir__registry *r = &s->registry;
    pthread_mutex_lock(&r->lock);
    weir__named *e = probe(s, r->table, r->size, name);
    bool found = e && living(s, e);
    if (found)
        e->actor = UNREGISTERED;
    pthread_mutex_unlock(&r->lock);
    return found ? WEIR_OK : WEIR_ENOENT;
}

weir_address weir_whereis(weir_system *s, const char *name) {
    if (!weir__check(s, "no system") || weir__forked(s) || !is_name(name))
        return 0;
    weir__registry *r = &s->registry;
    pthread_mutex_lock(&r->lock);
    weir__named *e = probe(s, r->table, r->size, name);
    weir_address a = e && living(s, e) ? e->actor : 0;
    pthread_mutex_unlock(&r->lock);
    return a;
}

void weir_names(weir_system *s, void (*fn)(void *data, const char *name, weir_address a), void *data) {
    if (!weir__check(s && fn, "no system or no function") || weir__forked(s))
        return;
    weir__registry *r = &s->registry;
    pthread_mutex_lock(&r->lock);
    for (size_t i = 0; i < r->size; i++)
        if (living(s, &r->table[i]))
            fn(data, r->table[i].name, r->table[i].actor);
    pthread_mutex_unlock(&r->lock);
}
