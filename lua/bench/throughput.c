/* throughput.c: fork-join throughput: one actor sends many messages to each of many, in turn, as each gives credit. Result: messages handled by all =
 * messages x actors. */
#include "kinds.h"

typedef struct lane {
    weir_address to;
    int64_t left, credit;
} lane;

typedef struct source {
    bench *b;
    lane *lanes; /* (actors) */
} source;

typedef struct worker {
    bench *b;
    int64_t index, handled;
    double value;
} worker;

static void on_put(weir_actor *self, const weir_message *m) {
    worker *w = weir_state(self);
    w->value += 37.2 / (1 + w->value * w->value);
    if (++w->handled % BENCH_GRANT == 0)
        bench_int(w->b, self, weir_message_from(m), w->b->more, w->index);
    if (w->handled == w->b->p[0])
        bench_add(w->b, w->handled);
}

/* One message down a lane; whether it can take another. */
static bool offer(weir_actor *self, source *s, lane *l) {
    if (!l->left || !l->credit)
        return false;
    bench_send(s->b, self, l->to, s->b->put, NULL);
    l->left--;
    l->credit--;
    return l->left && l->credit;
}

static void fill(weir_actor *self, source *s) {
    for (bool more = true; more && !s->b->failed;) {
        more = false;
        for (lane *l = s->lanes; l < s->lanes + s->b->p[1]; l++)
            more = offer(self, s, l) || more;
    }
}

static void on_go(weir_actor *self, const weir_message *m) {
    (void)m;
    fill(self, weir_state(self));
}

static void on_more(weir_actor *self, const weir_message *m) {
    source *s = weir_state(self);
    lane *l = &s->lanes[bench_first(s->b, m)];
    l->credit += BENCH_GRANT;
    while (offer(self, s, l))
        ;
}

static void source_fini(weir_system *system, void *state) {
    source *s = state;
    free(s->lanes);
    bench_fini(system, s);
}

static const weir_handler worker_handlers[] = {{"put", on_put}, {NULL, NULL}};
static const weir_handler source_handlers[] = {{"go", on_go}, {"more", on_more}, {NULL, NULL}};
static const weir_behaviour worker_kind = {.name = "worker", .handlers = worker_handlers, .fini = bench_fini};
static const weir_behaviour source_kind = {.name = "source", .handlers = source_handlers, .fini = source_fini};

static void start(bench *b) {
    weir_address a;
    source *s = bench_spawn(b, &source_kind, sizeof *s, &a);
    if (!s)
        return;
    s->lanes = calloc((size_t)b->p[1], sizeof *s->lanes);
    if (!s->lanes) {
        bench_fail(b, WEIR_ENOMEM, "lanes");
        return;
    }
    for (int64_t i = 0; i < b->p[1]; i++) {
        s->lanes[i] = (lane){0, b->p[0], BENCH_WINDOW};
        worker *w = bench_spawn(b, &worker_kind, sizeof *w, &s->lanes[i].to);
        if (!w)
            return;
        w->index = i;
    }
    bench_send(b, b->main, a, b->go, NULL);
}

static int64_t expected(const int64_t *p) {
    return p[0] * p[1];
}

const bench_kind bench_throughput = {"throughput", "messages handled", {"messages", "actors"}, {2000, 5}, {10000, 60}, start, expected};
