/* verify.c: debug builds walk every structure of the system and stop at the first broken invariant. */
#include "internal.h"

#ifdef NDEBUG
void weir__verify(weir_system *s) {
    (void)s;
}

void weir__verify_small(weir_system *s) {
    (void)s;
}
#else
static uint64_t verify_queue(const weir__queue *q, bool own, uint64_t *mail, uint64_t *bounded) {
    uint64_t n = 0, arrival = 0;
    const weir__entry *last = NULL;
    for (const weir__entry *e = q->first; e; last = e, e = e->next, n++) {
        weir__check((e->kind == WEIR__REPLY || e->kind == WEIR__TIMER) == own, "an entry is in the wrong queue");
        weir__check(!n || e->arrival > arrival, "a queue is out of order");
        arrival = e->arrival;
        if (e->kind != WEIR__MAIL)
            continue;
        ++*mail;
        *bounded += !(weir__container(e, weir_message, entry)->flags & WEIR__RESERVED);
    }
    weir__check(q->last == last, "the end of a queue is not its last entry");
    return n;
}

static void verify_links(const weir_actor *a) {
    uint64_t open = 0;
    for (weir__link *l = a->calls.next; l != &a->calls; l = l->next) {
        weir__check(l->next->prev == l && weir__container(l, weir__call, by_caller)->caller == a, "a call is in a foreign list");
        open++;
    }
    weir__check(open == weir__get(&a->slot->calls_open), "the open calls of an actor are miscounted");
    for (weir__link *l = a->incoming.next; l != &a->incoming; l = l->next) {
        weir__call *c = weir__container(l, weir__call, by_callee);
        weir__check(c->open && c->callee == a->address, "a call that is not open waits for an answer");
    }
    for (weir__link *l = a->debts.next; l != &a->debts; l = l->next)
        weir__check(weir__container(l, weir__debt, link)->callee == a->address, "a debt of another actor");
    for (weir__link *l = a->timers.next; l != &a->timers; l = l->next) {
        weir__timer *t = weir__container(l, weir__timer, link);
        weir__check(t->actor == a && (t->queued || t->running || t->due.place), "a timer that nothing will fire");
    }
}

/* Mail in its queues; s->current may have been taken out of a queue already. */
static uint64_t verify_actor(const weir_actor *a) {
    uint64_t mail = 0, bounded = 0, messages, bytes;
    uint64_t own = verify_queue(&a->own, true, &mail, &bounded);
    verify_queue(&a->mail, false, &mail, &bounded);
    weir__slot_load(a->slot, &messages, &bytes);
    weir__check(messages >= bounded, "a mailbox counts less than it holds"); /* more: posted, still in the inbox */
    weir__check(a->ready || a->ending || (!own && (a->held || !a->mail.first)), "an actor with something to do is not ready");
    verify_links(a);
    return mail;
}

static void verify_heap(const weir__heap *h) {
    weir__check(h->count <= h->reserved && (!h->reserved || h->reserved < h->capacity), "due times without a reservation");
    for (size_t i = 1; i <= h->count; i++) {
        const weir__due *d = h->at[i], *parent = i > 1 ? h->at[(i - 2) / 4 + 1] : d;
        weir__check(d->place == i, "a due time does not know its place");
        weir__check(parent->at < d->at || (parent->at == d->at && parent->order <= d->order), "the heap is out of order");
    }
}

void weir__verify(weir_system *s) {
    uint64_t mail = 0, living = 0;
    uint32_t count = atomic_load(&s->actors.count);
    for (uint32_t i = 0; i < count; i++) {
        weir_address a = weir__ids_living(&s->actors, i);
        weir_actor *actor = a ? weir__local(&s->main_loop, a) : NULL;
        if (!actor)
            continue;
        weir__check(actor->address == a && actor->slot->actor == actor && !actor->dead, "the table holds a dead actor");
        living++;
        mail += verify_actor(actor);
    }
    weir__check(s->n_loops > 1 || living == atomic_load(&s->living), "the living actors are miscounted");
    weir__check(mail == weir__get(&s->main_loop.queued), "the queued messages are miscounted");
    verify_heap(&s->main_loop.heap);
}

enum { SMALL = 64 };

void weir__verify_small(weir_system *s) {
    if (weir__here(s) == &s->main_loop && atomic_load(&s->living) + weir__get(&s->main_loop.queued) + s->main_loop.heap.count <= SMALL)
        weir__verify(s);
}
#endif
