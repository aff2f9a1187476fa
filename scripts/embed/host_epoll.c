/* host_epoll.c: weir in a program that has an event loop of its own, plain epoll: a 5 ms timer, an echo service of lines on 127.0.0.1, signals, and a
 * generation, all on one thread.
 *
 *     cc host_epoll.c host.c $(pkg-config --cflags --libs weir) -lpthread -o host_epoll
 *     ./host_epoll smollm2 "Once upon a time"
 *
 * What weir needs of the loop are the two places marked WEIR: its descriptor is added, and when it is readable weir_system_step is called. Nothing else: no
 * timeout, no second wake-up. Loading and generating are in host.c (host_begin, on_ready, on_piece, on_done). */
#include "host.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

typedef struct loop loop;

/* What an event of epoll points at. */
typedef struct source {
    int fd;
    void (*ready)(loop *l, struct source *s);
} source;

typedef struct connection {
    source source;
    echo echo;
} connection;

struct loop {
    host host;
    int epoll;
    source timer, signals, listener, weir;
    int64_t due; /* of the timer's next tick */
    int connections;
    bool idling, over;
};

static bool watch(loop *l, source *s, int fd, void (*ready)(loop *l, source *s)) {
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = s};
    s->fd = fd;
    s->ready = ready;
    if (fd >= 0 && epoll_ctl(l->epoll, EPOLL_CTL_ADD, fd, &e) == 0)
        return true;
    host_fail(&l->host, "epoll", NULL);
    return false;
}

/* ---- WEIR: its descriptor is readable ---- */

static void weir_ready(loop *l, source *s) {
    weir_error *error = NULL;
    (void)s;
    if (weir_system_step(l->host.system, 0, &error)) {
        host_fail(&l->host, "weir_system_step", error);
        l->over = true;
    }
    weir_error_free(error);
}

/* ---- the host's timer: at fixed times, so that lateness does not add up ---- */

static void set_timer(loop *l, int64_t first, int64_t every) {
    struct itimerspec t = {{every / 1000000000, every % 1000000000}, {first / 1000000000, first % 1000000000}};
    l->due = first;
    timerfd_settime(l->timer.fd, TFD_TIMER_ABSTIME, &t, NULL);
}

static void tick(loop *l, source *s) {
    uint64_t ticks = 0;
    if (read(s->fd, &ticks, sizeof ticks) != sizeof ticks)
        return;
    if (l->idling) {
        host_idle_end(&l->host);
        l->over = true;
        return;
    }
    host_late(&l->host, host_now() - l->due);
    l->due += (int64_t)ticks * HOST_TICK_NS;
}

/* ---- the echo service ---- */

static void close_connection(loop *l, connection *c) {
    close(c->source.fd); /* which takes it out of epoll */
    free(c);
    if (--l->connections || !atomic_load(&l->host.client_stop))
        return;
    host_client_gone(&l->host);
    if (l->host.idle > 0 && !l->host.status) {
        l->idling = true;
        host_idle_begin(&l->host);
        set_timer(l, host_now() + (int64_t)(l->host.idle * 1e9), 0);
    } else {
        l->over = true;
    }
}

static void connection_ready(loop *l, source *s) {
    connection *c = (connection *)s;
    enum echo_wants wants = host_echo(&c->echo);
    struct epoll_event e = {.events = wants == ECHO_WRITE ? EPOLLOUT : EPOLLIN, .data.ptr = s};
    if (wants == ECHO_CLOSE || epoll_ctl(l->epoll, EPOLL_CTL_MOD, s->fd, &e) != 0)
        close_connection(l, c);
}

static void accept_connection(loop *l, source *s) {
    int fd = accept4(s->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    connection *c = fd >= 0 ? calloc(1, sizeof *c) : NULL;
    if (c && watch(l, &c->source, fd, connection_ready)) {
        c->echo.fd = fd;
        l->connections++;
        return;
    }
    free(c);
    if (fd >= 0)
        close(fd);
}

/* ---- signals, as a descriptor ---- */

static void on_signal(loop *l, source *s) {
    struct signalfd_siginfo info;
    if (read(s->fd, &info, sizeof info) != sizeof info)
        return;
    if (l->idling)
        l->over = true;
    host_interrupt(&l->host);
}

/* Blocked before any thread is made, so that no other thread takes them. */
static int open_signals(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

/* ---- begin and end ---- */

static bool loop_open(loop *l) {
    weir_error *error = NULL;
    weir_system_options o = {.driver = WEIR_DRIVER_FD};
    l->timer.fd = l->signals.fd = l->listener.fd = -1;
    l->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (!watch(l, &l->signals, open_signals(), on_signal))
        return false;
    if (weir_system_new(&o, &l->host.system, &error)) {
        host_fail(&l->host, "weir", error);
        weir_error_free(error);
        return false;
    }
    /* WEIR: its one descriptor, watched like any other. */
    return watch(l, &l->weir, weir_system_fd(l->host.system), weir_ready) &&
           watch(l, &l->timer, timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC), tick) &&
           watch(l, &l->listener, host_listen(&l->host), accept_connection);
}

static void loop_run(loop *l) {
    struct epoll_event events[16];
    while (!l->over) {
        int n = epoll_wait(l->epoll, events, 16, -1);
        for (int i = 0; i < n && !l->over; i++) {
            source *s = events[i].data.ptr;
            s->ready(l, s);
        }
        if (n < 0 && errno != EINTR)
            return;
    }
}

static int loop_close(loop *l) {
    int status = host_end(&l->host);
    const int fds[] = {l->timer.fd, l->signals.fd, l->listener.fd, l->epoll};
    for (int i = 0; i < 4; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    return status;
}

int main(int argc, char **argv) {
    static loop l;
    int status = host_options(&l.host, argc, argv);
    if (status)
        return status;
    if (loop_open(&l) && host_begin(&l.host) && host_client_start(&l.host)) {
        set_timer(&l, host_now() + HOST_TICK_NS, HOST_TICK_NS);
        loop_run(&l);
    }
    return loop_close(&l);
}
