/* asked.c: what other threads want of an actor: that it stops, is killed, or looks whether it has room. The wishes are bits in the actor's place in the table, and places with wishes
 * stand in a list of their loop, so asking needs no memory. A word holds the bits with the generation they are meant for; a place that is listed while it
 * gets its next actor stays listed. */
#include "internal.h"

enum { ASK_BITS = 8, ASK_MASK = (1 << ASK_BITS) - 1 };

static uint64_t generation_of(weir_address a) {
    return a & ((1u << WEIR__GENERATION_BITS) - 1);
}

void weir__asked_reset(weir__slot *slot) {
    uint64_t word = atomic_load_explicit(&slot->asked, memory_order_relaxed);
    while (!atomic_compare_exchange_weak(&slot->asked, &word, (uint64_t)slot->id.next << ASK_BITS | (word & WEIR__ASK_LISTED)))
        ;
}

static void list(weir__loop *l, weir__slot *slot) {
    weir__slot *head = atomic_load_explicit(&l->asked, memory_order_relaxed);
    do
        slot->asked_next = head;
    while (!atomic_compare_exchange_weak(&l->asked, &head, slot));
    weir__wake(l);
}

int weir__ask(weir__slot *slot, weir_address a, int what) {
    weir__loop *l = weir__loop_of(slot);
    uint64_t word = atomic_load(&slot->asked);
    do {
        if (word >> ASK_BITS != generation_of(a))
            return WEIR_ENOACTOR;
    } while (!atomic_compare_exchange_weak(&slot->asked, &word, word | (uint64_t)what | WEIR__ASK_LISTED));
    if (!(word & WEIR__ASK_LISTED))
        list(l, slot);
    return WEIR_OK;
}

/* What was sent before the wish was posted before it, so it is taken from the inbox first. */
static void grant(weir__loop *l, weir__slot *slot, uint64_t word) {
    weir_address a = weir__ids_of(&slot->id);
    int wishes = (int)(word & (WEIR__ASK_STOP | WEIR__ASK_KILL | WEIR__ASK_ROOM));
    if (!wishes || generation_of(a) != word >> ASK_BITS)
        return;
    weir_actor *actor = weir__local(l, a);
    if (!actor) {
        weir__ask(slot, a, wishes);
        return;
    }
    if (word & WEIR__ASK_ROOM && weir__slot_roomy(slot))
        weir__wants_serve(actor);
    if (word & WEIR__ASK_STOP)
        weir__actor_stop(actor);
    if (word & WEIR__ASK_KILL)
        weir_kill(l->system, a);
}

void weir__asked_take(weir__loop *l) {
    if (!atomic_load_explicit(&l->asked, memory_order_relaxed))
        return;
    for (weir__slot *slot = atomic_exchange(&l->asked, NULL), *next; slot; slot = next) {
        next = slot->asked_next; /* before it may be listed again */
        uint64_t word = atomic_fetch_and(&slot->asked, ~(uint64_t)ASK_MASK);
        weir__inbox_take(l);
        grant(l, slot, word);
    }
}
