/* inbox.c: how what other threads send reaches a loop: a lock-free list that carries the data, and a wake-up that is only a hint and is only given
 * when the loop sleeps. */
#include <errno.h>
#include <unistd.h>

#include "internal.h"

/* The operations on inbox, asleep and quit are all sequentially consistent: a poster pushes and then reads `asleep`, the loop sets `asleep` and
 * then reads the inbox; one of them must see the other's store. */
void weir__inbox_push(weir__loop *l, weir__entry *e) {
    weir__entry *head = atomic_load_explicit(&l->inbox, memory_order_relaxed);
    do
        e->next = head;
    while (!atomic_compare_exchange_weak(&l->inbox, &head, e));
    weir__wake(l);
}

void weir__wake(weir__loop *l) {
    if (atomic_load(&l->asleep) && atomic_exchange(&l->asleep, false))
        l->driver->wake(l);
}

void weir__wake_fd(weir__loop *l) {
    int saved = errno;
    uint64_t one = 1;
    ssize_t n;
    do
        n = write(l->wake_fd, &one, sizeof one);
    while (n < 0 && errno == EINTR); /* EAGAIN: the counter is full, so the fd is readable */
    errno = saved;
}

void weir__drain_fd(int fd) {
    uint64_t count;
    while (read(fd, &count, sizeof count) < 0 && errno == EINTR)
        ;
}

bool weir__sleep_begin(weir__loop *l) {
    weir_system *s = l->system;
    atomic_store(&l->asleep, true);
    if (!atomic_load(&l->inbox) && !atomic_load(&s->quit) && !atomic_exchange(&s->settled, false))
        return true;
    atomic_store(&l->asleep, false);
    return false;
}

void weir__sleep_end(weir__loop *l) {
    atomic_store_explicit(&l->asleep, false, memory_order_relaxed);
}

static void deliver(weir__loop *l, weir_message *m) {
    weir_system *s = l->system;
    weir__slot *slot = weir__ids_find(&s->actors, m->to);
    weir__add(&l->arrived, 1);
    weir__add(&l->queued, 1);
    if (!slot) {
        weir__message_dead(l, m, WEIR_ENOACTOR);
        return;
    }
    weir__trace(s, WEIR_TRACE_SEND, m->from, m->to, m->verb, weir__body_size(m->body), WEIR_OK);
    weir__mail_push(slot->actor, &m->entry);
}

void weir__inbox_take(weir__loop *l) {
    if (!atomic_load_explicit(&l->inbox, memory_order_relaxed))
        return;
    weir__entry *oldest = NULL;
    for (weir__entry *e = atomic_exchange(&l->inbox, NULL), *next; e; e = next) {
        next = e->next;
        e->next = oldest;
        oldest = e;
    }
    for (weir__entry *next; oldest; oldest = next) {
        next = oldest->next;
        weir_message *m = weir__container(oldest, weir_message, entry);
        bool reserved = m->flags & WEIR__RESERVED;
        deliver(l, m);
        if (reserved)
            atomic_fetch_sub(&l->system->pending, 1);
    }
}

void weir__pending(weir_system *s, int delta) {
    if (atomic_fetch_add(&s->pending, delta) + delta != 0)
        return;
    atomic_store(&s->settled, true);
    weir__wake(&s->main_loop);
}
