/* throughput.c: fork-join throughput: one actor sends many messages to each of many, in turn. It sends until a mailbox is full and goes on when that one
 * has space again. Result: messages handled by all = messages x actors. */
#include "kinds.h"

typedef struct lane {
    weir_address to;
    int64_t left;
    bool full;
} lane;

typedef struct source {
    bench *b;
    lane *lanes; /* (actors) */
} source;

typedef struct worker {
    bench *b;
    int64_t handled;
    double value;
} worker;

static void on_put(weir_actor *self, const weir_message *m) {
    worker *w = weir_state(self);
    (void)m;
    w->value += 37.2 / (1 + w->value * w->value);
    if (++w->handled == w->b->p[0])
        bench_add(w->b, w->handled);
}

/* One message down a lane; a refused one is sent again after "space". */
static bool offer(weir_actor *self, source *s, lane *l) {
    bench *b = s->b;
    int code = weir_send(self, l->to, b->put, NULL);
    if (code == WEIR_OK)
        l->left--;
    l->full = code == WEIR_EFULL;
    if (l->full)
        code = weir_want_space(self, l->to);
    if (code != WEIR_OK)
        bench_fail(b, code, "sending to a worker: %s", weir_code_text(code));
    return code == WEIR_OK;
}

static void fill(weir_actor *self, source *s) {
    for (bool more = true; more;) {
        more = false;
        for (lane *l = s->lanes; l < s->lanes + s->b->p[1]; l++) {
            if (l->left && !l->full && !offer(self, s, l))
                return;
            more = more || (l->left && !l->full);
        }
    }
}

static void on_go(weir_actor *self, const weir_message *m) {
    (void)m;
    fill(self, weir_state(self));
}

static void on_space(weir_actor *self, const weir_message *m) {
    source *s = weir_state(self);
    weir_address to = (weir_address)bench_first(s->b, m);
    for (lane *l = s->lanes; l < s->lanes + s->b->p[1]; l++)
        if (l->to == to)
            l->full = false;
    fill(self, s);
}

static void source_fini(weir_system *system, void *state) {
    source *s = state;
    free(s->lanes);
    bench_fini(system, s);
}

static const weir_handler worker_handlers[] = {{"put", on_put}, {NULL, NULL}};
static const weir_handler source_handlers[] = {{"go", on_go}, {"space", on_space}, {NULL, NULL}};
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
        s->lanes[i].left = b->p[0];
        if (!bench_spawn(b, &worker_kind, sizeof(worker), &s->lanes[i].to))
            return;
    }
    bench_send(b, b->main, a, b->go, NULL);
}

static int64_t expected(const int64_t *p) {
    return p[0] * p[1];
}

const bench_kind bench_throughput = {"throughput", "messages handled", {"messages", "actors"}, {2000, 5}, {10000, 60}, start, expected};
