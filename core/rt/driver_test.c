/* driver_test.c: a run that replays exactly: the next actor and the next piece of stream work are chosen by a seeded generator, one message a turn,
 * and the clock is a number that jumps to the next due time when nothing else can happen. */
#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "internal.h"

/* splitmix64, https://prng.di.unimi.it/splitmix64.c (public domain): any seed is a good one. */
uint64_t weir__seeded(weir_system *s) {
    uint64_t z = s->random += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static int test_open(weir__loop *l, weir_error **error) {
    l->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (l->wake_fd < 0)
        return weir_fail(error, WEIR_EIO, "eventfd: %s", strerror(errno));
    return WEIR_OK;
}

static void test_close(weir__loop *l) {
    if (l->wake_fd >= 0)
        close(l->wake_fd);
}

static int64_t test_clock(const weir_system *s) {
    return atomic_load_explicit(&s->clock, memory_order_relaxed);
}

enum { CHOICES = 64 }; /* as far into the run queue as a choice goes: finding it costs its distance */

static size_t test_choose(weir__loop *l) {
    return weir__seeded(l->system) % (l->ready_count < CHOICES ? l->ready_count : CHOICES);
}

static bool workers_have_work(weir_system *s) {
    for (unsigned i = 1; i < s->n_loops; i++)
        if (atomic_load(&s->loops[i]->inbox) || atomic_load(&s->loops[i]->asked))
            return true;
    return false;
}

/* Work of other threads is all that can come; for a worker loop too it wakes the main loop. */
static void test_wait(weir__loop *l) {
    if (!weir__sleep_begin(l))
        return;
    struct pollfd p = {l->wake_fd, POLLIN, 0};
    if (!workers_have_work(l->system) && poll(&p, 1, -1) > 0)
        weir__drain_fd(l->wake_fd);
    weir__sleep_end(l);
}

static bool test_advance(weir__loop *l) {
    weir_system *s = l->system;
    if (s->drain && s->drain(s->drain_data, weir__seeded(s)))
        return true;
    int64_t at = 0;
    for (unsigned i = 0; i < s->n_loops; i++) {
        int64_t next = weir__due_next(s->loops[i]);
        at = next && (!at || next < at) ? next : at;
    }
    if (at > test_clock(s))
        atomic_store_explicit(&s->clock, at, memory_order_relaxed);
    return at != 0;
}

const weir__driver weir__driver_test = {.turn = 1,
                                        .open = test_open,
                                        .close = test_close,
                                        .now = test_clock,
                                        .choose = test_choose,
                                        .wait = test_wait,
                                        .advance = test_advance,
                                        .wake = weir__wake_fd};

bool weir__system_inline(const weir_system *s) {
    return s->main_loop.driver == &weir__driver_test;
}

void weir__set_drain(weir_system *s, weir__drain_fn *fn, void *data) {
    s->drain = fn;
    s->drain_data = data;
}
