/* host_libuv.c: weir in a program that runs on libuv: a 5 ms timer, an echo service of lines on 127.0.0.1, signals, and a generation, all on one thread.
 *
 *     cc host_libuv.c host.c $(pkg-config --cflags --libs weir libuv) -lpthread -o host_libuv
 *     ./host_libuv smollm2 "Once upon a time"
 *
 * What weir needs of the loop is the part marked WEIR: a uv_poll_t on its descriptor. Loading and generating are in host.c. */
#include "host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

typedef struct loop {
    host host;
    uv_loop_t uv;
    uv_poll_t weir;
    uv_timer_t timer;
    uv_signal_t interrupt, terminate;
    uv_tcp_t listener;
    int64_t due;
    int connections;
    bool idling;
} loop;

static bool failed(loop *l, const char *what, int code) {
    if (code >= 0)
        return false;
    fprintf(stderr, "%s: %s\n", what, uv_strerror(code));
    if (!l->host.status)
        l->host.status = 1;
    return true;
}

/* ---- WEIR: its descriptor is readable ---- */

static void weir_ready(uv_poll_t *p, int status, int events) {
    loop *l = p->data;
    weir_error *error = NULL;
    (void)events;
    if (failed(l, "uv_poll", status)) {
        uv_stop(&l->uv);
        return;
    }
    if (weir_system_step(l->host.system, 0, &error)) {
        host_fail(&l->host, "weir_system_step", error);
        uv_stop(&l->uv);
    }
    weir_error_free(error);
}

static bool open_weir(loop *l) {
    weir_error *error = NULL;
    weir_system_options o = {.driver = WEIR_DRIVER_FD};
    if (weir_system_new(&o, &l->host.system, &error)) {
        host_fail(&l->host, "weir", error);
        weir_error_free(error);
        return false;
    }
    l->weir.data = l;
    return !failed(l, "uv_poll", uv_poll_init(&l->uv, &l->weir, weir_system_fd(l->host.system))) &&
           !failed(l, "uv_poll", uv_poll_start(&l->weir, UV_READABLE, weir_ready));
}

/* ---- the host's timer. libuv counts whole milliseconds, from the begin of an iteration: a tick can be one too early ---- */

static void tick(uv_timer_t *t);

static void set_timer(loop *l, int64_t ns) {
    uv_update_time(&l->uv);
    l->due = host_now() + ns;
    uv_timer_start(&l->timer, tick, (uint64_t)(ns / 1000000), 0);
}

static void tick(uv_timer_t *t) {
    loop *l = t->data;
    if (l->idling) {
        host_idle_end(&l->host);
        uv_stop(&l->uv);
        return;
    }
    host_late(&l->host, host_now() - l->due);
    set_timer(l, HOST_TICK_NS);
}

/* ---- the echo service: whole lines are sent back ---- */

typedef struct connection {
    uv_tcp_t tcp;
    loop *loop;
    char bytes[4096];
    size_t size;
} connection;

typedef struct answer {
    uv_write_t request;
    char bytes[];
} answer;

static void closed(uv_handle_t *handle) {
    connection *c = handle->data;
    loop *l = c->loop;
    free(c);
    if (--l->connections || !atomic_load(&l->host.client_stop))
        return;
    host_client_gone(&l->host);
    if (l->host.idle > 0 && !l->host.status) {
        l->idling = true;
        host_idle_begin(&l->host);
        set_timer(l, (int64_t)(l->host.idle * 1e9));
    } else {
        uv_stop(&l->uv);
    }
}

static void close_connection(connection *c) {
    if (!uv_is_closing((uv_handle_t *)&c->tcp))
        uv_close((uv_handle_t *)&c->tcp, closed);
}

static void sent(uv_write_t *request, int status) {
    if (status < 0)
        close_connection(request->data);
    free(request);
}

static void send_back(connection *c, size_t size) {
    answer *a = malloc(sizeof *a + size);
    if (!a) {
        close_connection(c);
        return;
    }
    memcpy(a->bytes, c->bytes, size);
    memmove(c->bytes, c->bytes + size, c->size - size);
    c->size -= size;
    a->request.data = c;
    uv_buf_t buffer = uv_buf_init(a->bytes, (unsigned)size);
    if (uv_write(&a->request, (uv_stream_t *)&c->tcp, &buffer, 1, sent) < 0) {
        free(a);
        close_connection(c);
    }
}

static void give_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer) {
    connection *c = handle->data;
    (void)suggested;
    *buffer = uv_buf_init(c->bytes + c->size, (unsigned)(sizeof c->bytes - c->size)); /* none left: the line is too long, UV_ENOBUFS */
}

static void received(uv_stream_t *stream, ssize_t n, const uv_buf_t *buffer) {
    connection *c = stream->data;
    (void)buffer;
    if (n < 0) {
        close_connection(c);
        return;
    }
    c->size += (size_t)n;
    size_t lines = c->size;
    while (lines && c->bytes[lines - 1] != '\n')
        lines--;
    if (lines)
        send_back(c, lines);
}

static void connected(uv_stream_t *listener, int status) {
    loop *l = listener->data;
    connection *c = status < 0 ? NULL : calloc(1, sizeof *c);
    if (!c)
        return;
    c->loop = l;
    uv_tcp_init(&l->uv, &c->tcp);
    c->tcp.data = c;
    l->connections++;
    if (uv_accept(listener, (uv_stream_t *)&c->tcp) < 0 || uv_read_start((uv_stream_t *)&c->tcp, give_room, received) < 0)
        close_connection(c);
}

static bool open_echo(loop *l) {
    int fd = host_listen(&l->host);
    if (fd < 0)
        return false;
    uv_tcp_init(&l->uv, &l->listener);
    l->listener.data = l;
    return !failed(l, "uv_tcp_open", uv_tcp_open(&l->listener, fd)) &&
           !failed(l, "uv_listen", uv_listen((uv_stream_t *)&l->listener, 16, connected));
}

/* ---- signals ---- */

static void on_signal(uv_signal_t *s, int number) {
    loop *l = s->data;
    (void)number;
    if (l->idling)
        uv_stop(&l->uv);
    host_interrupt(&l->host);
}

static void open_signals(loop *l) {
    uv_signal_init(&l->uv, &l->interrupt);
    uv_signal_init(&l->uv, &l->terminate);
    l->interrupt.data = l->terminate.data = l;
    uv_signal_start(&l->interrupt, on_signal, SIGINT);
    uv_signal_start(&l->terminate, on_signal, SIGTERM);
}

/* ---- begin and end ---- */

/* A connection gives itself back; everything else is part of the loop's struct. */
static void close_handle(uv_handle_t *handle, void *data) {
    (void)data;
    if (!uv_is_closing(handle))
        uv_close(handle, handle->type == UV_TCP && handle->data != data ? closed : NULL);
}

int main(int argc, char **argv) {
    static loop l;
    int status = host_options(&l.host, argc, argv);
    if (status)
        return status;
    uv_loop_init(&l.uv);
    uv_timer_init(&l.uv, &l.timer);
    l.timer.data = &l;
    open_signals(&l);
    if (open_weir(&l) && open_echo(&l) && host_begin(&l.host) && host_client_start(&l.host)) {
        set_timer(&l, HOST_TICK_NS);
        uv_run(&l.uv, UV_RUN_DEFAULT);
    }
    uv_walk(&l.uv, close_handle, &l); /* before the system: its descriptor must be out of the loop when it is closed */
    uv_run(&l.uv, UV_RUN_DEFAULT);
    uv_loop_close(&l.uv);
    return host_end(&l.host);
}
