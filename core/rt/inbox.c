/* inbox.c: how what other threads send reaches a loop: a lock-free list that carries the data, and a wake-up that is only a hint and is only given
 * when the loop sleeps. */
#include <errno.h>
#include <unistd.h>

#include "internal.h"

/* The operations on inbox, asked, asleep, quit and settled are all sequentially consistent: a poster pushes and then reads `asleep`, the loop sets `asleep`
 * and then reads the inbox; one of them must see the other's store. */
void weir__inbox_push(weir__loop *l, weir__entry *e) {
    weir__entry *head = atomic_load_explicit(&l->inbox, memory_order_relaxed);
    do
        e->next = head;
    while (!atomic_compare_exchange_weak(&l->inbox, &head, e));
    weir__wake(l);
}

/* ---- sleeping ----
 * weir_system.pending counts, beside work outside of actors, the workers that run, or will by themselves: one number, so that work that goes from the one to the
 * other and back is never missed by a reader in between. A poster counts a worker before it turns it from IDLE to AWAKE, since that one may
 * have run and be asleep again, and have stopped counting itself, before the poster's next step; the worker stops counting itself only after it has seen its
 * inbox empty while it was IDLE already. So the count never falls to 0 while a worker runs or a message is under way to one that nobody woke. */

static void settle(weir_system *s);

static void wake_worker(weir__loop *l) {
    weir_system *s = l->system;
    atomic_fetch_add(&s->pending, 1);
    uint32_t how = atomic_exchange(&l->asleep, WEIR__AWAKE);
    if (how != WEIR__IDLE && atomic_fetch_sub(&s->pending, 1) == 1)
        settle(s);
    if (how)
        l->driver->wake(l);
}

void weir__wake(weir__loop *l) {
    if (l->driver->advance)
        l = &l->system->main_loop; /* its thread drives them all */
    if (!atomic_load(&l->asleep))
        return;
    if (l->index)
        wake_worker(l);
    else if (atomic_exchange(&l->asleep, WEIR__AWAKE))
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

static bool has_work(weir__loop *l) {
    weir_system *s = l->system;
    if (atomic_load(&l->inbox) || atomic_load(&l->asked))
        return true;
    return l->index ? atomic_load(&s->closing) : atomic_load(&s->quit) || atomic_exchange(&s->settled, false);
}

/* Something that a run of the main loop may wait for has come to its end. */
static void settle(weir_system *s) {
    atomic_store(&s->settled, true);
    weir__wake(&s->main_loop);
}

bool weir__sleep_begin(weir__loop *l) {
    uint32_t how = l->index && !l->heap.count ? WEIR__IDLE : WEIR__DOZING;
    weir__pool_flush(l);
    atomic_store(&l->asleep, how);
    if (has_work(l)) {
        if (atomic_exchange(&l->asleep, WEIR__AWAKE) == WEIR__AWAKE && how == WEIR__IDLE)
            atomic_fetch_sub(&l->system->pending, 1); /* a poster counted a worker that still counted itself */
        return false;
    }
    if (how == WEIR__IDLE && atomic_fetch_sub(&l->system->pending, 1) == 1)
        settle(l->system);
    return true;
}

void weir__sleep_end(weir__loop *l) {
    if (atomic_exchange(&l->asleep, WEIR__AWAKE) == WEIR__IDLE)
        atomic_fetch_add(&l->system->pending, 1);
}

void weir__pending(weir_system *s, int delta) {
    if (atomic_fetch_add(&s->pending, delta) + delta == 0)
        settle(s);
}

void weir__settled(weir_system *s) {
    settle(s);
}

/* ---- arriving ---- */

static void arrive(weir__loop *l, weir__entry *e) {
    switch (e->kind) {
    case WEIR__ANSWER:
        weir__answer_arrive(l, e);
        return;
    case WEIR__BOND:
    case WEIR__UNBOND:
    case WEIR__GONE:
        weir__bond_arrive(l, e);
        return;
    case WEIR__WANT:
        weir__want_arrive(l, e);
        return;
    case WEIR__PROBE:
        weir__cycle_probe(l, e);
        return;
    default:
        weir__message_arrive(l, weir__container(e, weir_message, entry));
    }
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
        arrive(l, oldest);
    }
}
