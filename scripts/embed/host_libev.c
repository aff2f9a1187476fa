/* host_libev.c: weir in a program that runs on libev: a 5 ms timer, an echo service of lines on 127.0.0.1, signals, and a generation, all on one thread.
 *
 *     cc host_libev.c host.c $(pkg-config --cflags --libs weir) -lev -lpthread -o host_libev
 *     ./host_libev smollm2 "Once upon a time"
 *
 * What weir needs of the loop is one line, marked WEIR: it is told which loop to live in, and starts watchers of its own there. Loading and generating are in
 * host.c. */
#include "host.h"

#include <ev.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

typedef struct loop {
    host host;
    struct ev_loop *ev;
    ev_timer timer;
    ev_signal interrupt, terminate;
    ev_io listener;
    int64_t due;
    int connections;
    bool idling;
} loop;

static void stop(loop *l) {
    ev_break(l->ev, EVBREAK_ALL);
}

/* ---- the host's timer ---- */

static void tick(struct ev_loop *ev, ev_timer *w, int events);

static void set_timer(loop *l, int64_t ns) {
    ev_now_update(l->ev);
    l->due = host_now() + ns;
    ev_timer_init(&l->timer, tick, (double)ns / 1e9, 0);
    l->timer.data = l;
    ev_timer_start(l->ev, &l->timer);
}

static void tick(struct ev_loop *ev, ev_timer *w, int events) {
    loop *l = w->data;
    (void)ev, (void)events;
    if (l->idling) {
        host_idle_end(&l->host);
        stop(l);
        return;
    }
    host_late(&l->host, host_now() - l->due);
    set_timer(l, HOST_TICK_NS);
}

/* ---- the echo service ---- */

typedef struct connection {
    ev_io io;
    echo echo;
} connection;

static void close_connection(loop *l, connection *c) {
    ev_io_stop(l->ev, &c->io);
    close(c->echo.fd);
    free(c);
    if (--l->connections || !atomic_load(&l->host.client_stop))
        return;
    host_client_gone(&l->host);
    ev_timer_stop(l->ev, &l->timer);
    if (l->host.idle > 0 && !l->host.status) {
        l->idling = true;
        host_idle_begin(&l->host);
        set_timer(l, (int64_t)(l->host.idle * 1e9));
    } else {
        stop(l);
    }
}

static void connection_ready(struct ev_loop *ev, ev_io *w, int events) {
    connection *c = (connection *)w;
    (void)events;
    enum echo_wants wants = host_echo(&c->echo);
    if (wants == ECHO_CLOSE) {
        close_connection(w->data, c);
        return;
    }
    ev_io_stop(ev, w);
    ev_io_set(w, c->echo.fd, wants == ECHO_WRITE ? EV_WRITE : EV_READ);
    ev_io_start(ev, w);
}

static void accept_connection(struct ev_loop *ev, ev_io *w, int events) {
    loop *l = w->data;
    (void)events;
    int fd = accept4(w->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    connection *c = fd >= 0 ? calloc(1, sizeof *c) : NULL;
    if (!c) {
        if (fd >= 0)
            close(fd);
        return;
    }
    c->echo.fd = fd;
    ev_io_init(&c->io, connection_ready, fd, EV_READ);
    c->io.data = l;
    ev_io_start(ev, &c->io);
    l->connections++;
}

/* ---- signals ---- */

static void on_signal(struct ev_loop *ev, ev_signal *w, int events) {
    loop *l = w->data;
    (void)ev, (void)events;
    if (l->idling)
        stop(l);
    host_interrupt(&l->host);
}

static void watch_signal(loop *l, ev_signal *w, int number) {
    ev_signal_init(w, on_signal, number);
    w->data = l;
    ev_signal_start(l->ev, w);
}

/* ---- begin and end ---- */

static bool loop_open(loop *l) {
    weir_error *error = NULL;
    l->ev = ev_loop_new(EVFLAG_AUTO);
    weir_system_options o = {.ev_loop = l->ev}; /* WEIR: in this loop */
    if (!l->ev || weir_system_new(&o, &l->host.system, &error)) {
        host_fail(&l->host, "weir", error);
        weir_error_free(error);
        return false;
    }
    watch_signal(l, &l->interrupt, SIGINT);
    watch_signal(l, &l->terminate, SIGTERM);
    int fd = host_listen(&l->host);
    if (fd < 0)
        return false;
    ev_io_init(&l->listener, accept_connection, fd, EV_READ);
    l->listener.data = l;
    ev_io_start(l->ev, &l->listener);
    return true;
}

int main(int argc, char **argv) {
    static loop l;
    int status = host_options(&l.host, argc, argv);
    if (status)
        return status;
    if (loop_open(&l) && host_begin(&l.host) && host_client_start(&l.host)) {
        set_timer(&l, HOST_TICK_NS);
        ev_run(l.ev, 0);
    }
    status = host_end(&l.host); /* the system's watchers leave the loop */
    if (l.listener.fd > 0)
        close(l.listener.fd);
    if (l.ev)
        ev_loop_destroy(l.ev);
    return status;
}
