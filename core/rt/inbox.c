/* inbox.c: how messages of other threads reach the loop: a lock-free list that carries the data, and an eventfd that is only a hint and is only
 * written when the loop sleeps. */
#include <errno.h>
#include <unistd.h>

#include "internal.h"

/* The operations on inbox, asleep and quit are all sequentially consistent: a poster pushes and then reads `asleep`, the loop sets `asleep` and
 * then reads the inbox; one of them must see the other's store. */
void weir__inbox_push(weir_system *s, weir_message *m) {
    atomic_fetch_add_explicit(&s->inflight, 1, memory_order_relaxed);
    weir_message *head = atomic_load_explicit(&s->inbox, memory_order_relaxed);
    do
        m->entry.next = head ? &head->entry : NULL;
    while (!atomic_compare_exchange_weak(&s->inbox, &head, m));
    weir__wake(s);
}

void weir__wake(weir_system *s) {
    if (!atomic_load(&s->asleep) || !atomic_exchange(&s->asleep, false))
        return;
    int saved = errno;
    uint64_t one = 1;
    ssize_t n;
    do
        n = write(s->wake_fd, &one, sizeof one);
    while (n < 0 && errno == EINTR); /* EAGAIN: the counter is full, so the fd is readable */
    errno = saved;
}

void weir__drain_fd(int fd) {
    uint64_t count;
    while (read(fd, &count, sizeof count) < 0 && errno == EINTR)
        ;
}

bool weir__sleep_begin(weir_system *s) {
    atomic_store(&s->asleep, true);
    if (!atomic_load(&s->inbox) && !atomic_load(&s->quit) && !atomic_exchange(&s->settled, false))
        return true;
    atomic_store(&s->asleep, false);
    return false;
}

void weir__sleep_end(weir_system *s) {
    atomic_store_explicit(&s->asleep, false, memory_order_relaxed);
}

static void deliver(weir_system *s, weir_message *m) {
    weir__slot *slot = weir__ids_find(&s->actors, m->to);
    atomic_fetch_sub_explicit(&s->inflight, 1, memory_order_relaxed);
    s->queued++;
    if (!slot) {
        weir__message_dead(s, m, WEIR_ENOACTOR);
        return;
    }
    weir__trace(s, WEIR_TRACE_SEND, m->from, m->to, m->verb, weir__body_size(m->body), WEIR_OK);
    weir__mail_push(slot->actor, &m->entry);
}

void weir__inbox_take(weir_system *s) {
    if (!atomic_load_explicit(&s->inbox, memory_order_relaxed))
        return;
    weir_message *m = atomic_exchange(&s->inbox, NULL);
    weir__entry *oldest = NULL;
    for (weir__entry *e = &m->entry, *next; e; e = next) {
        next = e->next;
        e->next = oldest;
        oldest = e;
    }
    for (weir__entry *next; oldest; oldest = next) {
        next = oldest->next;
        m = weir__container(oldest, weir_message, entry);
        bool reserved = m->flags & WEIR__RESERVED;
        deliver(s, m);
        if (reserved)
            atomic_fetch_sub(&s->pending, 1);
    }
}

void weir__pending(weir_system *s, int delta) {
    if (atomic_fetch_add(&s->pending, delta) + delta != 0)
        return;
    atomic_store(&s->settled, true);
    weir__wake(s);
}
