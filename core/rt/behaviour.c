/* behaviour.c: behaviours with their verbs interned, one compiled table for all actors of a behaviour, gone with the last of them (a host
 * may make another behaviour at the same address afterwards). */
#include "internal.h"

static weir__compiled *take(weir_system *s, const weir_behaviour *b) {
    for (weir__compiled *c = s->behaviours; c; c = c->next)
        if (c->behaviour == b) {
            c->actors++;
            return c;
        }
    size_t count = 0;
    for (const weir_handler *h = b->handlers; h && h->verb; h++)
        count++;
    weir__compiled *c = weir__alloc(s, sizeof *c + count * sizeof c->handlers[0]);
    if (!c)
        return NULL;
    for (; c->count < count; c->count++) {
        const weir_handler *h = &b->handlers[c->count];
        c->handlers[c->count].verb = weir_intern(s, h->verb);
        c->handlers[c->count].handle = h->handle;
        if (!c->handlers[c->count].verb) {
            weir__free(s, c);
            return NULL;
        }
    }
    c->behaviour = b;
    c->actors = 1;
    c->next = s->behaviours;
    s->behaviours = c;
    return c;
}

weir__compiled *weir__behaviour_take(weir_system *s, const weir_behaviour *b) {
    pthread_mutex_lock(&s->lock);
    weir__compiled *c = take(s, b);
    pthread_mutex_unlock(&s->lock);
    return c;
}

void weir__behaviour_give(weir_system *s, weir__compiled *c) {
    pthread_mutex_lock(&s->lock);
    bool last = --c->actors == 0;
    weir__compiled **at = &s->behaviours;
    while (last && *at != c)
        at = &(*at)->next;
    if (last)
        *at = c->next;
    pthread_mutex_unlock(&s->lock);
    if (last)
        weir__free(s, c);
}

weir_receive_fn *weir__behaviour_find(const weir__compiled *c, weir_verb verb) {
    for (size_t i = 0; i < c->count; i++)
        if (c->handlers[i].verb == verb)
            return c->handlers[i].handle;
    return c->behaviour->receive;
}
