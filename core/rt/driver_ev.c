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
    ((weir_system *)w->data)->timer_set = 0;
}

static void ev_close(weir_system *s) {
    weir__ev *e = s->loop;
    if (e && e->loop)
        ev_loop_destroy(e->loop);
    if (s->timer_fd >= 0)
        close(s->timer_fd);
    if (s->wake_fd >= 0)
        close(s->wake_fd);
    weir__free(s, e);
}

static int ev_open(weir_system *s, weir_error **error) {
    weir__ev *e = weir__alloc(s, sizeof *e);
    s->loop = e;
    if (!e)
        return weir_fail(error, WEIR_ENOMEM, "no memory for the loop");
    s->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (s->wake_fd < 0)
        return weir_fail(error, WEIR_EIO, "eventfd: %s", strerror(errno));
    s->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (s->timer_fd < 0)
        return weir_fail(error, WEIR_EIO, "timerfd_create: %s", strerror(errno));
    e->loop = ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV | EVFLAG_NOTIMERFD);
    if (!e->loop)
        return weir_fail(error, WEIR_EIO, "libev cannot make a loop on epoll: %s", strerror(errno));
    ev_io_init(&e->wake, woken, s->wake_fd, EV_READ);
    ev_io_init(&e->timer, timer_due, s->timer_fd, EV_READ);
    e->timer.data = s;
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

static size_t ev_choose(weir_system *s) {
    (void)s;
    return 0;
}

static void ev_poll(weir_system *s) {
    ev_run(((weir__ev *)s->loop)->loop, EVRUN_NOWAIT);
}

/* Only when about to sleep, and only if it is set to something else; no due time: disarmed, so that an idle loop sleeps for good. */
static void set_timer(weir_system *s) {
    int64_t at = s->heap.count ? s->heap.at[1]->at : 0;
    if (at == s->timer_set)
        return;
    struct itimerspec t = {{0, 0}, {at / 1000000000, at % 1000000000}};
    timerfd_settime(s->timer_fd, TFD_TIMER_ABSTIME, &t, NULL);
    s->timer_set = at;
}

static void ev_wait(weir_system *s) {
    set_timer(s);
    if (!weir__sleep_begin(s))
        return;
    ev_run(((weir__ev *)s->loop)->loop, EVRUN_ONCE);
    weir__sleep_end(s);
}

static bool ev_advance(weir_system *s) {
    (void)s;
    return false;
}

const weir__driver weir__driver_ev = {WEIR_TURN_MESSAGES, ev_open, ev_close, ev_clock, ev_choose, ev_poll, ev_wait, ev_advance};
