/* mailbox.c: the bounds of mailboxes and the two queues of an actor. One arrival counter per actor orders both, so the actor sees one queue;
 * while it is held, what its own calls and timers bring is found at once, however much mail waits.
 * Knows nothing of what the entries mean. */
#include "internal.h"

enum { LOAD_MESSAGE_BITS = 24, MESSAGE_MASK = (1 << LOAD_MESSAGE_BITS) - 1 };

/* One word holds both counts, so that a bound is exact whoever reserves at the same time. */
static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static int reserve(weir__slot *slot, size_t bytes, unsigned times) {
    uint64_t max_messages = least(times * atomic_load_explicit(&slot->max_messages, memory_order_relaxed), MESSAGE_MASK);
    uint64_t max_bytes = least(times * atomic_load_explicit(&slot->max_bytes, memory_order_relaxed), UINT64_MAX >> LOAD_MESSAGE_BITS);
    uint64_t add = (uint64_t)bytes << LOAD_MESSAGE_BITS | 1, load = atomic_load_explicit(&slot->load, memory_order_relaxed);
    if (bytes > atomic_load_explicit(&slot->max_bytes, memory_order_relaxed))
        return WEIR_ETOOBIG;
    do {
        if ((load & MESSAGE_MASK) >= max_messages || (load >> LOAD_MESSAGE_BITS) + bytes > max_bytes)
            return WEIR_EFULL;
    } while (!atomic_compare_exchange_weak_explicit(&slot->load, &load, load + add, memory_order_relaxed, memory_order_relaxed));
    return WEIR_OK;
}

int weir__slot_reserve(weir__slot *slot, size_t bytes) {
    return reserve(slot, bytes, 1);
}

int weir__slot_reserve_more(weir__slot *slot, size_t bytes) {
    return reserve(slot, bytes, 2);
}

static bool within(const weir__slot *slot, unsigned parts) {
    uint64_t messages, bytes;
    weir__slot_load(slot, &messages, &bytes);
    return messages * parts <= atomic_load_explicit(&slot->max_messages, memory_order_relaxed) &&
           bytes * parts <= atomic_load_explicit(&slot->max_bytes, memory_order_relaxed);
}

bool weir__slot_over(const weir__slot *slot) {
    return !within(slot, 1);
}

bool weir__slot_roomy(const weir__slot *slot) {
    return within(slot, 2);
}

void weir__slot_release(weir__slot *slot, size_t bytes) {
    atomic_fetch_sub_explicit(&slot->load, (uint64_t)bytes << LOAD_MESSAGE_BITS | 1, memory_order_relaxed);
}

void weir__slot_load(const weir__slot *slot, uint64_t *messages, uint64_t *bytes) {
    uint64_t load = atomic_load_explicit(&slot->load, memory_order_relaxed);
    *messages = load & MESSAGE_MASK;
    *bytes = load >> LOAD_MESSAGE_BITS;
}

void weir__queue_push(weir__queue *q, weir__entry *e) {
    e->next = NULL;
    if (q->last)
        q->last->next = e;
    else
        q->first = e;
    q->last = e;
}

weir__entry *weir__queue_pop(weir__queue *q) {
    weir__entry *e = q->first;
    if (e && !(q->first = e->next))
        q->last = NULL;
    return e;
}

void weir__mail_push(weir_actor *a, weir__entry *e) {
    e->arrival = a->arrivals++;
    weir__queue_push(&a->mail, e);
    uint64_t messages = atomic_load_explicit(&a->slot->load, memory_order_relaxed) & MESSAGE_MASK;
    if (messages > weir__get(&a->slot->peak))
        atomic_store_explicit(&a->slot->peak, messages, memory_order_relaxed);
    if (!a->ready && !a->held)
        weir__ready_push(a);
}

void weir__own_push(weir_actor *a, weir__entry *e) {
    e->arrival = a->arrivals++;
    weir__queue_push(&a->own, e);
    if (!a->ready)
        weir__ready_push(a);
}

/* Takes out the oldest message that counts; NULL: none. */
static weir_message *oldest(weir_actor *a) {
    weir__entry *before = NULL;
    for (weir__entry *e = a->mail.first; e; before = e, e = e->next) {
        weir_message *m = weir__container(e, weir_message, entry);
        if (e->kind != WEIR__MAIL || m->flags & WEIR__RESERVED)
            continue;
        *(before ? &before->next : &a->mail.first) = e->next;
        if (a->mail.last == e)
            a->mail.last = before;
        return m;
    }
    return NULL;
}

void weir__mailbox_trim(weir_actor *a) {
    while (weir__slot_over(a->slot)) {
        weir_message *m = oldest(a);
        if (!m)
            return; /* what is over stands in the inbox still */
        weir__message_drop(a, m);
    }
}

bool weir__mailbox_ready(const weir_actor *a) {
    return a->own.first || (a->mail.first && !a->held);
}

weir__entry *weir__mailbox_next(weir_actor *a) {
    weir__entry *own = a->own.first, *mail = a->held ? NULL : a->mail.first;
    if (own && (!mail || own->arrival < mail->arrival))
        return weir__queue_pop(&a->own);
    return mail ? weir__queue_pop(&a->mail) : NULL;
}
