/* rates.c: what single things cost: messages within a loop and across loops, calls, and beside them what they are compared with: a bare function call, and two
 * threads that wake each other through eventfds. Bodies are 64 bytes. */
#include "bench.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

/* How many of each are measured, after an eighth as many that are not. BURST: sends before the sink says that it has seen them.
 * WINDOW: that may be under way, a default mailbox full: what an idle processor takes to wake up is hidden by it. */
enum { BODY = 64, CALLS_PLAIN = 1 << 22, SENDS = 1 << 19, CALLS = 1 << 17, TRIPS = 1 << 14, BURST = 256, WINDOW = 4 * BURST };

typedef struct pump {
    bench *b;
    weir_address sink;
    int64_t left, credit;
    weir_body *shared; /* what is sent; NULL: a new body each time */
} pump;

typedef struct sink {
    bench *b;
    int64_t seen;
    weir_address pump;
} sink;

static const char payload[BODY] = "sixty-four bytes";

static double clock_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static weir_body *body_new(bench *b) {
    return weir_pack(b->system, "b", (const void *)payload, sizeof payload);
}

static bool whole(const weir_message *m) {
    const char *p;
    size_t n;
    weir_cursor c = weir_read(weir_message_body(m), NULL);
    return weir_read_bytes(&c, &p, &n) && n == BODY;
}

/* ---- actors: a pump that sends or calls, and a sink that reads and says when it has seen a burst ---- */

static void on_put(weir_actor *self, const weir_message *m) {
    sink *s = weir_state(self);
    if (!whole(m))
        bench_fail(s->b, WEIR_ETYPE, "a body of another size");
    if (++s->seen % BURST == 0)
        bench_send(s->b, self, s->pump, s->b->more, NULL);
}

static void on_get(weir_actor *self, const weir_message *m) {
    sink *s = weir_state(self);
    weir_reply(self, m, whole(m) ? NULL : body_new(s->b));
}

static void send_some(weir_actor *self, pump *p) {
    for (; p->left && p->credit; p->left--, p->credit--)
        bench_send(p->b, self, p->sink, p->b->put, p->shared ? weir_body_ref(p->shared) : body_new(p->b));
}

static void on_more(weir_actor *self, const weir_message *m) {
    pump *p = weir_state(self);
    (void)m;
    p->credit += BURST;
    send_some(self, p);
}

/* [n]: n sends. */
static void on_go(weir_actor *self, const weir_message *m) {
    pump *p = weir_state(self);
    p->left = bench_first(p->b, m);
    send_some(self, p);
}

static void call_once(weir_actor *self, pump *p);

static void on_reply(weir_actor *self, void *data, const weir_message *reply, const weir_error *error) {
    pump *p = data;
    if (error || weir_message_body(reply))
        bench_fail(p->b, WEIR_EINVAL, "a call: %s", error ? weir_error_text(error) : "another reply");
    else if (--p->left)
        call_once(self, p);
}

static void call_once(weir_actor *self, pump *p) {
    if (weir_call(self, p->sink, p->b->get, body_new(p->b), 0, on_reply, p, NULL) != WEIR_OK)
        bench_fail(p->b, WEIR_ENOMEM, "a call");
}

/* [n]: n calls, one after another. */
static void on_ask(weir_actor *self, const weir_message *m) {
    pump *p = weir_state(self);
    p->left = bench_first(p->b, m);
    call_once(self, p);
}

static void pump_fini(weir_system *s, void *state) {
    pump *p = state;
    weir_body_free(p->shared);
    bench_fini(s, p);
}

static const weir_handler pump_handlers[] = {{"go", on_go}, {"ping", on_ask}, {"more", on_more}, {NULL, NULL}};
static const weir_handler sink_handlers[] = {{"put", on_put}, {"get", on_get}, {NULL, NULL}};
static const weir_behaviour pump_kind = {.name = "pump", .handlers = pump_handlers, .fini = pump_fini};
static const weir_behaviour sink_kind = {.name = "sink", .handlers = sink_handlers, .fini = bench_fini};

/* ---- measuring with them ---- */

/* ns for each of `n` after [n] was sent; < 0 after a failure. */
static double timed(bench *b, weir_address to, weir_verb verb, int64_t n) {
    weir_error *e = NULL;
    double start = clock_ns();
    bench_int(b, b->main, to, verb, n);
    if (weir_system_run(b->system, NULL, NULL, &e) != WEIR_OK)
        bench_fail(b, weir_error_code(e), "%s", weir_error_text(e));
    weir_error_free(e);
    return b->failed ? -1 : (clock_ns() - start) / (double)n;
}

/* The pump is on the main loop, the sink where b->loop says. The sink counts from 0 in the warm-up, so both parts are whole bursts. */
static double pumped(bench *b, weir_verb verb, int64_t n, bool shared) {
    weir_address from, to;
    pump *p = bench_spawn_here(b, &pump_kind, sizeof *p, &from);
    sink *s = p ? bench_spawn(b, &sink_kind, sizeof *s, &to) : NULL;
    if (!s)
        return -1;
    p->sink = to;
    p->credit = WINDOW;
    p->shared = shared ? body_new(b) : NULL;
    s->pump = from;
    return timed(b, from, verb, n / 8) < 0 ? -1 : timed(b, from, verb, n);
}

static double sends(bench *b) {
    return pumped(b, b->go, SENDS, false);
}

static double shared_sends(bench *b) {
    return pumped(b, b->go, SENDS, true);
}

static double calls(bench *b) {
    return pumped(b, b->ping, CALLS, false);
}

static double trips(bench *b) {
    return pumped(b, b->ping, TRIPS, false);
}

/* ---- what they are compared with ---- */

static void plain(int64_t *seen, const char *p, size_t n) {
    *seen += n == BODY && p == payload;
}

static double bare(bench *b) {
    void (*volatile f)(int64_t *, const char *, size_t) = plain;
    int64_t seen = 0;
    double start = clock_ns();
    for (int i = 0; i < CALLS_PLAIN; i++)
        f(&seen, payload, sizeof payload);
    if (seen != CALLS_PLAIN)
        bench_fail(b, WEIR_EINVAL, "function calls were lost");
    return (clock_ns() - start) / CALLS_PLAIN;
}

static double packs(bench *b) {
    double start = clock_ns();
    for (int i = 0; i < SENDS; i++)
        weir_body_free(body_new(b));
    return (clock_ns() - start) / SENDS;
}

typedef struct pair {
    int there, back;
} pair;

static bool pass(int from, int to) {
    uint64_t v;
    return read(from, &v, sizeof v) == sizeof v && write(to, &v, sizeof v) == sizeof v;
}

static void *echo(void *data) {
    pair *p = data;
    for (int i = 0; i < TRIPS && pass(p->there, p->back); i++)
        ;
    return NULL;
}

static bool ping(const pair *p) {
    uint64_t v = 1;
    return write(p->there, &v, sizeof v) == sizeof v && read(p->back, &v, sizeof v) == sizeof v;
}

static double eventfds(bench *b) {
    pair p = {eventfd(0, 0), eventfd(0, 0)};
    pthread_t thread;
    double ns = -1, start = clock_ns();
    if (p.there >= 0 && p.back >= 0 && pthread_create(&thread, NULL, echo, &p) == 0) {
        for (int i = 0; i < TRIPS && ping(&p); i++)
            ;
        ns = (clock_ns() - start) / TRIPS;
        pthread_join(thread, NULL);
    } else {
        bench_fail(b, WEIR_EIO, "no eventfds or no thread");
    }
    close(p.there);
    close(p.back);
    return ns;
}

/* ---- posts from a thread that drives no loop ---- */

typedef struct poster {
    bench *b;
    weir_address to;
    int code;
} poster;

static void post(poster *p, weir_verb verb) {
    while ((p->code = weir_post(p->b->system, 0, p->to, verb, body_new(p->b))) == WEIR_EFULL)
        usleep(10);
}

static void *post_all(void *data) {
    poster *p = data;
    for (int i = 0; i < SENDS && p->code == WEIR_OK; i++)
        post(p, p->b->put);
    post(p, p->b->done);
    return NULL;
}

static void on_posted(weir_actor *self, const weir_message *m) {
    bench *b = *(bench **)weir_state(self);
    bench_add(b, whole(m));
}

static void on_last(weir_actor *self, const weir_message *m) {
    (void)m;
    weir_exit(self, NULL);
    weir_system_quit(weir_system_of(self));
}

static const weir_handler posted_handlers[] = {{"put", on_posted}, {"done", on_last}, {NULL, NULL}};
static const weir_behaviour posted_kind = {.name = "posted", .handlers = posted_handlers, .fini = bench_fini};

static bool never(void *data) {
    (void)data;
    return false;
}

static double posts(bench *b) {
    poster p = {.b = b};
    pthread_t thread;
    if (!bench_spawn_here(b, &posted_kind, sizeof b, &p.to))
        return -1;
    double start = clock_ns();
    if (pthread_create(&thread, NULL, post_all, &p) != 0) {
        bench_fail(b, WEIR_EIO, "no thread");
        return -1;
    }
    weir_system_run(b->system, never, NULL, NULL);
    double ns = (clock_ns() - start) / SENDS;
    pthread_join(thread, NULL);
    if (b->result != SENDS)
        bench_fail(b, WEIR_EINVAL, "%lld of %d posts arrived", (long long)b->result, SENDS);
    return ns;
}

const bench_rate bench_rates[] = {{"bare", "bare C function call", bare, 0},
                                  {"body", "make and free a body", packs, 0},
                                  {"send", "send, same loop, new body each", sends, 0},
                                  {"shared", "send, same loop, one shared body", shared_sends, 0},
                                  {"call", "call and reply, same loop", calls, 0},
                                  {"across", "send across loops, new body each", sends, 1},
                                  {"across_shared", "send across loops, one shared body", shared_sends, 1},
                                  {"post", "post from another thread", posts, 0},
                                  {"trip", "call and reply across loops", trips, 1},
                                  {"eventfd", "eventfd ping-pong of two threads", eventfds, 0},
                                  {NULL, NULL, NULL, 0}};

double bench_rate_measure(const bench_rate *rate, char *failure) {
    bench b = {0};
    double ns = bench_open(&b, &(bench_options){.workers = rate->workers}) == WEIR_OK ? rate->measure(&b) : -1;
    bench_close(&b);
    memcpy(failure, b.failure, BENCH_TEXT);
    return b.failed ? -1 : ns;
}
