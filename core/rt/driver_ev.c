/* driver_ev.c: the loop on libev: an own loop on epoll, an own eventfd for posted work, an own timerfd for the next due time (libev's own timers
 * wait in whole milliseconds). Actors run between its iterations. Never the default loop, which would take over the host's children. */
#include <errno.h>
#include <ev.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"

#ifndef EVFLAG_NOTIMERFD
#define EVFLAG_NOTIMERFD 0
#endif

typedef struct weir__ev {
    struct ev_loop *loop;
    ev_io wake, timer;
} weir__ev;

static void woken(struct ev_loop *loop, ev_io *w, int events) {
    (void)loop, (void)events;
    weir__drain_fd(w->fd);
}

/* The next sleep sets it again. */
static void timer_due(struct ev_loop *loop, ev_io *w, int events) {
    (void)loop, (void)events;
    weir__drain_fd(w->fd);
    ((weir__loop *)w->data)->timer_set = 0;
}

static void ev_close(weir__loop *l) {
    weir__ev *e = l->watchers;
    if (e && e->loop)
        ev_loop_destroy(e->loop);
    if (l->timer_fd >= 0)
        close(l->timer_fd);
    if (l->wake_fd >= 0)
        close(l->wake_fd);
    weir__free(l->system, e);
}

static int ev_open(weir__loop *l, weir_error **error) {
    weir__ev *e = weir__alloc(l->system, sizeof *e);
    l->watchers = e;
    if (!e)
        return weir_fail(error, WEIR_ENOMEM, "no memory for the loop");
    l->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (l->wake_fd < 0)
        return weir_fail(error, WEIR_EIO, "eventfd: %s", strerror(errno));
    l->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (l->timer_fd < 0)
        return weir_fail(error, WEIR_EIO, "timerfd_create: %s", strerror(errno));
    e->loop = ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV | EVFLAG_NOTIMERFD);
    if (!e->loop)
        return weir_fail(error, WEIR_EIO, "libev cannot make a loop on epoll: %s", strerror(errno));
    ev_io_init(&e->wake, woken, l->wake_fd, EV_READ);
    ev_io_init(&e->timer, timer_due, l->timer_fd, EV_READ);
    e->timer.data = l;
    ev_io_start(e->loop, &e->wake);
    ev_io_start(e->loop, &e->timer);
    return WEIR_OK;
}

static int64_t ev_clock(const weir_system *s) {
    (void)s;
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static size_t ev_choose(weir__loop *l) {
    (void)l;
    return 0;
}

static void ev_poll(weir__loop *l) {
    ev_run(((weir__ev *)l->watchers)->loop, EVRUN_NOWAIT);
}

/* Only when about to sleep, and only if it is set to something else; no due time: disarmed, so that an idle loop sleeps for good. */
static void set_timer(weir__loop *l) {
    int64_t at = weir__due_next(l);
    if (at == l->timer_set)
        return;
    struct itimerspec t = {{0, 0}, {at / 1000000000, at % 1000000000}};
    timerfd_settime(l->timer_fd, TFD_TIMER_ABSTIME, &t, NULL);
    l->timer_set = at;
}

static void ev_wait(weir__loop *l) {
    set_timer(l);
    if (!weir__sleep_begin(l))
        return;
    ev_run(((weir__ev *)l->watchers)->loop, EVRUN_ONCE);
    weir__sleep_end(l);
}

static bool ev_advance(weir__loop *l) {
    (void)l;
    return false;
}

const weir__driver weir__driver_ev = {WEIR_TURN_MESSAGES, ev_open,      ev_close, ev_clock, ev_choose, ev_poll, ev_wait,
                                      ev_advance,         weir__wake_fd};
