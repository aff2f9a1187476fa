/* bench_actors.c: what a message costs: one-way sends within a loop, call and reply, posts from another thread; beside a bare function call and an
 * eventfd ping-pong between two threads, measured in the same run. Prints minimum and median of several rounds. Not a test. */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "../../core/rt/rt.h"

enum { ROUNDS = 9, BURST = WEIR_TURN_MESSAGES, BODY = 64, MESSAGES = 1 << 20, CALLS = 1 << 18, POSTS = 1 << 19, PONGS = 20000 };

typedef struct bench {
    weir_system *system;
    weir_actor *main;
    weir_address sink, pump;
    weir_verb hit, go;
    uint64_t seen, wanted, left;
    weir_body *shared; /* what `sends` sends; NULL: a new body each time */
    char payload[BODY];
} bench;

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static weir_body *payload(bench *b) {
    return weir_pack(b->system, "b", b->payload, sizeof b->payload);
}

static void on_hit(weir_actor *self, const weir_message *m) {
    bench *b = weir_state(self);
    weir_cursor c = weir_read(weir_message_body(m), NULL);
    const char *p;
    size_t n;
    if (weir_read_bytes(&c, &p, &n) && n == BODY)
        b->seen++;
    if (weir_message_is_call(m))
        weir_reply(self, m, NULL);
    else if (b->left && b->seen % BURST == 0)
        weir_send(self, b->pump, b->go, NULL);
}

/* Sends a burst; the sink asks for the next one when it has seen it. */
static void on_go(weir_actor *self, const weir_message *m) {
    (void)m;
    bench *b = weir_state(self);
    for (int i = 0; i < BURST && b->left; i++, b->left--)
        if (weir_send(self, b->sink, b->hit, b->shared ? weir_body_ref(b->shared) : payload(b)) != WEIR_OK)
            abort();
}

static const weir_handler sink_handlers[] = {{"hit", on_hit}, {NULL, NULL}}, pump_handlers[] = {{"go", on_go}, {NULL, NULL}};
static const weir_behaviour sink = {.name = "sink", .handlers = sink_handlers}, pump = {.name = "pump", .handlers = pump_handlers};

static bool all_seen(void *data) {
    bench *b = data;
    return b->seen >= b->wanted;
}

static void run(bench *b, uint64_t n) {
    b->wanted = b->seen + n;
    if (weir_system_run(b->system, all_seen, b, NULL) != WEIR_OK)
        abort();
}

static double sends(bench *b) {
    int64_t start = now();
    b->left = MESSAGES;
    weir_send(b->main, b->pump, b->go, NULL);
    run(b, MESSAGES);
    return (double)(now() - start) / MESSAGES;
}

static double shared_sends(bench *b) {
    b->shared = payload(b);
    double ns = sends(b);
    weir_body_free(b->shared);
    b->shared = NULL;
    return ns;
}

static void on_reply(weir_actor *self, void *data, const weir_message *reply, const weir_error *error) {
    bench *b = data;
    if (!reply || error)
        abort();
    if (b->left && --b->left)
        weir_call(self, b->sink, b->hit, payload(b), -1, on_reply, b, NULL);
}

static double calls(bench *b, int64_t timeout) {
    int64_t start = now();
    b->left = CALLS;
    weir_call(b->main, b->sink, b->hit, payload(b), timeout, on_reply, b, NULL);
    run(b, CALLS);
    return (double)(now() - start) / CALLS;
}

static double calls_forever(bench *b) {
    return calls(b, -1);
}

static double calls_timed(bench *b) {
    return calls(b, 0);
}

static void *poster(void *data) {
    bench *b = data;
    for (int i = 0; i < POSTS; i++) {
        int code;
        while ((code = weir_post(b->system, 0, b->sink, b->hit, payload(b))) == WEIR_EFULL)
            usleep(10);
        if (code != WEIR_OK)
            abort();
    }
    return NULL;
}

static double posts(bench *b) {
    pthread_t thread;
    int64_t start = now();
    if (pthread_create(&thread, NULL, poster, b) != 0)
        abort();
    run(b, POSTS);
    pthread_join(thread, NULL);
    return (double)(now() - start) / POSTS;
}

typedef struct pair {
    int there, back;
} pair;

static void pass(int from, int to) {
    uint64_t v;
    struct pollfd p = {from, POLLIN, 0};
    if (poll(&p, 1, -1) != 1 || read(from, &v, sizeof v) != sizeof v || write(to, &v, sizeof v) != sizeof v)
        abort();
}

static void *ponger(void *data) {
    pair *p = data;
    for (int i = 0; i < PONGS; i++)
        pass(p->there, p->back);
    return NULL;
}

static double eventfds(bench *b) {
    (void)b;
    pair p = {eventfd(0, 0), eventfd(0, 0)};
    pthread_t thread;
    uint64_t one = 1;
    int64_t start = now();
    if (pthread_create(&thread, NULL, ponger, &p) != 0 || write(p.there, &one, sizeof one) != sizeof one)
        abort();
    for (int i = 1; i < PONGS; i++)
        pass(p.back, p.there);
    pthread_join(thread, NULL);
    double ns = (double)(now() - start) / PONGS;
    close(p.there);
    close(p.back);
    return ns;
}

static void plain(bench *b, const char *p, size_t n) {
    b->seen += n == BODY && p == b->payload;
}

static double bare(bench *b) {
    void (*volatile f)(bench *, const char *, size_t) = plain;
    int64_t start = now();
    for (int i = 0; i < MESSAGES; i++)
        f(b, b->payload, sizeof b->payload);
    return (double)(now() - start) / MESSAGES;
}

static double packs(bench *b) {
    int64_t start = now();
    for (int i = 0; i < MESSAGES; i++)
        weir_body_free(payload(b));
    return (double)(now() - start) / MESSAGES;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(void) {
    static const struct {
        const char *name;
        double (*fn)(bench *b);
    } rows[] = {{"bare function call", bare},
                {"make and free a 64-byte body", packs},
                {"send, handle, read, same loop", sends},
                {"the same, one shared body", shared_sends},
                {"call and reply, no deadline", calls_forever},
                {"call and reply, deadline", calls_timed},
                {"post from another thread", posts},
                {"eventfd ping-pong, 2 threads", eventfds}};
    enum { ROWS = sizeof rows / sizeof rows[0] };
    double ns[ROWS][ROUNDS];
    bench b = {0};
    if (weir_system_new(NULL, &b.system, NULL) != WEIR_OK)
        return 1;
    b.main = weir_main_actor(b.system);
    b.hit = weir_intern(b.system, "hit");
    b.go = weir_intern(b.system, "go");
    weir_spawn_options wide = {.mailbox_messages = 4096};
    if (weir_spawn(b.system, &sink, &b, &wide, &b.sink, NULL) != WEIR_OK || weir_spawn(b.system, &pump, &b, NULL, &b.pump, NULL) != WEIR_OK)
        return 1;
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < ROWS; i++)
            ns[i][round] = rows[i].fn(&b);
    printf("%-32s %10s %10s %14s\n", "ns", "minimum", "median", "per s, median");
    for (int i = 0; i < ROWS; i++) {
        qsort(ns[i], ROUNDS, sizeof ns[i][0], ascending);
        printf("%-32s %10.1f %10.1f %14.0f\n", rows[i].name, ns[i][0], ns[i][ROUNDS / 2], 1e9 / ns[i][ROUNDS / 2]);
    }
    weir_system_free(b.system);
    return 0;
}
