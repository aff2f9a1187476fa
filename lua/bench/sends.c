/* sends.c: ping-pong, counting, fork-join throughput, thread ring: what plain messages cost. */
#include "kinds.h"

/* ---- ping-pong: one message goes to and fro. Result: pongs = N ---- */

typedef struct player {
    bench *b;
    weir_address other;
    int64_t left;
} player;

static void serve(weir_actor *self, const weir_message *m) {
    player *p = weir_state(self);
    (void)m;
    bench_send(p->b, self, p->other, p->b->ping, NULL);
}

static void on_ping(weir_actor *self, const weir_message *m) {
    player *p = weir_state(self);
    bench_send(p->b, self, weir_message_from(m), p->b->pong, NULL);
}

static void on_pong(weir_actor *self, const weir_message *m) {
    player *p = weir_state(self);
    bench_add(p->b, 1);
    if (--p->left)
        serve(self, m);
}

static const weir_handler player_handlers[] = {{"go", serve}, {"ping", on_ping}, {"pong", on_pong}, {NULL, NULL}};
static const weir_behaviour player_kind = {.name = "player", .handlers = player_handlers, .fini = bench_fini};

static void pingpong_start(bench *b) {
    weir_address a, other;
    player *p = bench_spawn(b, &player_kind, sizeof *p, &a);
    if (!p || !bench_spawn(b, &player_kind, sizeof *p, &other))
        return;
    p->other = other;
    p->left = b->p[0];
    bench_send(b, b->main, a, b->go, NULL);
}

static int64_t first_parameter(const int64_t *p) {
    return p[0];
}

const bench_kind bench_pingpong = {"pingpong", "pongs", {"messages"}, {100}, {40000}, pingpong_start, first_parameter};

/* ---- counting: one actor sends N messages to one that counts them, and asks for the count every BENCH_WINDOW. Result: the count = N ---- */

typedef struct producer {
    bench *b;
    weir_address counter;
    int64_t left;
} producer;

typedef struct counter {
    bench *b;
    int64_t count;
} counter;

static void on_put(weir_actor *self, const weir_message *m) {
    counter *c = weir_state(self);
    (void)m;
    c->count++;
}

static void on_get(weir_actor *self, const weir_message *m) {
    counter *c = weir_state(self);
    weir_reply(self, m, weir_pack(c->b->system, "i", c->count));
}

static void on_count(weir_actor *self, void *data, const weir_message *reply, const weir_error *error);

static void count_some(weir_actor *self) {
    producer *p = weir_state(self);
    for (int i = 0; i < BENCH_WINDOW && p->left; i++, p->left--)
        bench_send(p->b, self, p->counter, p->b->put, NULL);
    if (weir_call(self, p->counter, p->b->get, NULL, 0, on_count, p, NULL) != WEIR_OK)
        bench_fail(p->b, WEIR_ENOMEM, "a call");
}

static void on_count(weir_actor *self, void *data, const weir_message *reply, const weir_error *error) {
    producer *p = data;
    if (error)
        bench_fail(p->b, weir_error_code(error), "%s", weir_error_text(error));
    else if (p->left)
        count_some(self);
    else
        bench_add(p->b, bench_first(p->b, reply));
}

static void count_go(weir_actor *self, const weir_message *m) {
    (void)m;
    count_some(self);
}

static const weir_handler producer_handlers[] = {{"go", count_go}, {NULL, NULL}};
static const weir_handler counter_handlers[] = {{"put", on_put}, {"get", on_get}, {NULL, NULL}};
static const weir_behaviour producer_kind = {.name = "producer", .handlers = producer_handlers, .fini = bench_fini};
static const weir_behaviour counter_kind = {.name = "counter", .handlers = counter_handlers, .fini = bench_fini};

static void counting_start(bench *b) {
    weir_address a, to;
    producer *p = bench_spawn(b, &producer_kind, sizeof *p, &a);
    if (!p || !bench_spawn(b, &counter_kind, sizeof(counter), &to))
        return;
    p->counter = to;
    p->left = b->p[0];
    bench_send(b, b->main, a, b->go, NULL);
}

const bench_kind bench_counting = {"counting", "messages counted", {"messages"}, {2000}, {1000000}, counting_start, first_parameter};

/* ---- thread ring: one token, carrying how many hops are left, goes round. Result: hops; the token must end at actor hops mod actors ---- */

typedef struct node {
    bench *b;
    weir_address next;
    int64_t index;
} node;

static void on_token(weir_actor *self, const weir_message *m) {
    node *n = weir_state(self);
    int64_t left = bench_first(n->b, m), actors = n->b->p[0], hops = n->b->p[1];
    if (left)
        bench_int(n->b, self, n->next, n->b->put, left - 1);
    else if (n->index != hops % actors)
        bench_fail(n->b, WEIR_EINVAL, "the token ended at %lld", (long long)n->index);
    bench_add(n->b, left != 0);
}

static const weir_handler node_handlers[] = {{"put", on_token}, {NULL, NULL}};
static const weir_behaviour node_kind = {.name = "node", .handlers = node_handlers, .fini = bench_fini};

static void ring_start(bench *b) {
    weir_address first = 0, next = 0;
    node *last = NULL;
    for (int64_t i = b->p[0]; i-- > 0; next = first) {
        node *n = bench_spawn(b, &node_kind, sizeof *n, &first);
        if (!n)
            return;
        n->index = i;
        n->next = next;
        last = last ? last : n;
    }
    last->next = first;
    bench_int(b, b->main, first, b->put, b->p[1]);
}

static int64_t ring_expected(const int64_t *p) {
    return p[1];
}

const bench_kind bench_ring = {"ring", "hops", {"actors", "hops"}, {7, 100}, {100, 100000}, ring_start, ring_expected};
