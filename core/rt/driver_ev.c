/* driver_ev.c: loops on libev. weir__driver_ev: a loop of its own on epoll, actors run between its iterations; while no
 * descriptor is watched it sleeps on a futex instead. weir__driver_host: watchers in a host's loop, in
 * whose callbacks actors run, WEIR_TURN_NS at a time, so that the host's watchers have their turns in between. Never the default loop, which would take over the
 * host's children. */
#include <errno.h>
#include <ev.h>

#include "internal.h"

#ifndef EVFLAG_NOTIMERFD
#define EVFLAG_NOTIMERFD 0
#endif

typedef struct weir__ev {
    struct ev_loop *loop;
    ev_io wake, timer;
} weir__ev;

static struct ev_loop *loop_of(const weir__loop *l) {
    return ((weir__ev *)l->watchers)->loop;
}

/* The next sleep sets the timerfd again. */
static void drain(weir__loop *l, ev_io *w) {
    weir__drain_fd(w->fd);
    if (w->fd == l->timer_fd)
        l->timer_set = 0;
}

static void woken(struct ev_loop *loop, ev_io *w, int events) {
    (void)loop, (void)events;
    drain(w->data, w);
}

/* ---- a loop of its own ---- */

static int watch(weir__loop *l, struct ev_loop *loop, void (*fn)(struct ev_loop *loop, ev_io *w, int events)) {
    weir__ev *e = l->watchers;
    e->loop = loop;
    ev_io_init(&e->wake, fn, l->wake_fd, EV_READ);
    ev_io_init(&e->timer, fn, l->timer_fd, EV_READ);
    e->wake.data = e->timer.data = l;
    ev_io_start(loop, &e->wake);
    ev_io_start(loop, &e->timer);
    return WEIR_OK;
}

static int ev_prepare_open(weir__loop *l, weir_error **error) {
    l->watchers = weir__alloc(l->system, sizeof(weir__ev));
    return l->watchers ? weir__wait_open(l, error) : weir_fail(error, WEIR_ENOMEM, "no memory for the loop");
}

static int ev_open(weir__loop *l, weir_error **error) {
    int code = ev_prepare_open(l, error);
    if (code)
        return code;
    struct ev_loop *loop = ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV | EVFLAG_NOTIMERFD);
    return loop ? watch(l, loop, woken) : weir_fail(error, WEIR_EIO, "libev cannot make a loop on epoll: %s", strerror(errno));
}

static void ev_close(weir__loop *l) {
    weir__ev *e = l->watchers;
    if (e && e->loop)
        ev_loop_destroy(e->loop);
    weir__wait_close(l);
    weir__free(l->system, e);
}

/* With no descriptor to watch there is nothing to do for libev: a futex is the cheaper bed, and needs no timerfd. */
static bool alone(const weir__loop *l) {
    return weir__link_alone(&l->system->ios.living);
}

static void ev_poll(weir__loop *l) {
    if (!alone(l))
        ev_run(loop_of(l), EVRUN_NOWAIT);
}

static void loop_wait(weir__loop *l) {
    weir__wait_timer(l);
    if (!weir__sleep_begin(l))
        return;
    ev_run(loop_of(l), EVRUN_ONCE);
    weir__sleep_end(l);
}

/* A wake-up that is too late for one sleep is harmless to the next, of whatever kind. */
static void ev_wait(weir__loop *l) {
    bool futex = alone(l);
    atomic_store(&l->on_futex, futex);
    if (futex)
        weir__wait_futex(l);
    else
        loop_wait(l);
}

static void ev_wake(weir__loop *l) {
    if (atomic_load(&l->on_futex))
        weir__wake_futex(l);
    else
        weir__wake_fd(l);
}

/* ---- the host's loop ---- */

static void host_poll(weir__loop *l) {
    ev_run(loop_of(l), EVRUN_NOWAIT);
}

static void host_part(weir__loop *l) {
    weir__ev *e = l->watchers;
    ev_io_stop(e->loop, &e->wake);
    ev_io_stop(e->loop, &e->timer);
}

/* In weir_system_run the turns come after the iteration. A forked child has the host's watchers, but no system. */
static void host_woken(struct ev_loop *loop, ev_io *w, int events) {
    weir__loop *l = w->data;
    (void)loop, (void)events;
    if (weir__forked(l->system)) {
        host_part(l);
        return;
    }
    drain(l, w);
    if (l->running)
        return;
    weir__loop_enter(l);
    weir__loop_step(l, WEIR_TURN_NS);
    weir__loop_leave(l);
}

static int host_open(weir__loop *l, weir_error **error) {
    int code = ev_prepare_open(l, error);
    return code ? code : watch(l, l->host, host_woken);
}

static void host_close(weir__loop *l) {
    weir__ev *e = l->watchers;
    if (e && e->loop)
        host_part(l);
    weir__wait_close(l);
    weir__free(l->system, e);
}

static bool host_busy(const weir__loop *l) {
    return ev_depth(loop_of(l)) > 0;
}

/* ---- watched descriptors: libev takes files that epoll refuses as always ready ---- */

static void io_ready(struct ev_loop *loop, ev_io *w, int events) {
    weir__io *io = w->data;
    weir_system *s = io->system;
    weir__loop *l = &s->main_loop;
    if (weir__forked(s)) {
        ev_io_stop(loop, w);
        return;
    }
    bool outside = !l->running;
    if (outside)
        weir__loop_enter(l);
    s->ios.dirty = true;
    if (events & EV_ERROR)
        weir__io_fail(io);
    else
        io->fn(s, io->data, (events & EV_READ ? WEIR__IO_READ : 0) | (events & EV_WRITE ? WEIR__IO_WRITE : 0));
    if (!outside)
        return;
    weir__loop_step(l, WEIR_TURN_NS);
    weir__loop_leave(l);
}

static int ev_io_begin(weir__loop *l, weir__io *io, weir_error **error) {
    ev_io *w = io->watcher = weir__alloc(l->system, sizeof *w);
    if (!w)
        return weir_fail(error, WEIR_ENOMEM, "descriptor %d cannot be watched: no memory", io->fd);
    ev_io_init(w, io_ready, io->fd, (io->events & WEIR__IO_READ ? EV_READ : 0) | (io->events & WEIR__IO_WRITE ? EV_WRITE : 0));
    w->data = io;
    ev_io_start(loop_of(l), w);
    return WEIR_OK;
}

static void ev_io_end(weir__loop *l, weir__io *io) {
    ev_io_stop(loop_of(l), io->watcher);
    weir__free(l->system, io->watcher);
    io->watcher = NULL;
}

const weir__driver weir__driver_ev = {.turn = WEIR_TURN_MESSAGES,
                                      .open = ev_open,
                                      .close = ev_close,
                                      .now = weir__wait_clock,
                                      .choose = weir__wait_choose,
                                      .poll = ev_poll,
                                      .wait = ev_wait,
                                      .wake = ev_wake,
                                      .io_start = ev_io_begin,
                                      .io_stop = ev_io_end};

const weir__driver weir__driver_host = {.turn = WEIR_TURN_MESSAGES,
                                        .open = host_open,
                                        .close = host_close,
                                        .now = weir__wait_clock,
                                        .choose = weir__wait_choose,
                                        .poll = host_poll,
                                        .wait = loop_wait,
                                        .wake = weir__wake_fd,
                                        .leave = weir__wait_leave,
                                        .part = host_part,
                                        .busy = host_busy,
                                        .io_start = ev_io_begin,
                                        .io_stop = ev_io_end};
