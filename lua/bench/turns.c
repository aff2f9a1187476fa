/* turns.c: dining philosophers and cigarette smokers: actors that take turns as another decides. */
#include "kinds.h"

/* ---- dining philosophers: an arbiter has the forks; who is refused asks again. Result: meals = philosophers x rounds ---- */

typedef struct table {
    bench *b;
    bool taken[]; /* (philosophers), forks: philosopher i needs i and i + 1 */
} table;

typedef struct philosopher {
    bench *b;
    weir_address table;
    int64_t index, meals;
} philosopher;

static void on_hungry(weir_actor *self, const weir_message *m) {
    table *t = weir_state(self);
    int64_t left = bench_first(t->b, m), right = (left + 1) % t->b->p[0];
    bool free_forks = !t->taken[left] && !t->taken[right];
    if (free_forks)
        t->taken[left] = t->taken[right] = true;
    bench_send(t->b, self, weir_message_from(m), free_forks ? t->b->take : t->b->full, NULL);
}

static void on_eaten(weir_actor *self, const weir_message *m) {
    table *t = weir_state(self);
    int64_t left = bench_first(t->b, m), right = (left + 1) % t->b->p[0];
    if (!t->taken[left] || !t->taken[right])
        bench_fail(t->b, WEIR_EINVAL, "philosopher %lld had no forks", (long long)left);
    t->taken[left] = t->taken[right] = false;
}

static void ask_forks(weir_actor *self, const weir_message *m) {
    philosopher *p = weir_state(self);
    (void)m;
    bench_int(p->b, self, p->table, p->b->get, p->index);
}

static void on_eat(weir_actor *self, const weir_message *m) {
    philosopher *p = weir_state(self);
    bench_int(p->b, self, p->table, p->b->done, p->index);
    if (++p->meals < p->b->p[1])
        ask_forks(self, m);
    else
        bench_add(p->b, p->meals);
}

static const weir_handler table_handlers[] = {{"get", on_hungry}, {"done", on_eaten}, {NULL, NULL}};
static const weir_handler philosopher_handlers[] = {{"go", ask_forks}, {"full", ask_forks}, {"take", on_eat}, {NULL, NULL}};
static const weir_behaviour table_kind = {.name = "table", .handlers = table_handlers, .fini = bench_fini};
static const weir_behaviour philosopher_kind = {.name = "philosopher", .handlers = philosopher_handlers, .fini = bench_fini};

static void philosophers_start(bench *b) {
    weir_address forks, a;
    if (!bench_spawn(b, &table_kind, sizeof(table) + (size_t)b->p[0], &forks))
        return;
    for (int64_t i = 0; i < b->p[0]; i++) {
        philosopher *p = bench_spawn(b, &philosopher_kind, sizeof *p, &a);
        if (!p)
            return;
        p->table = forks;
        p->index = i;
        bench_send(b, b->main, a, b->go, NULL);
    }
}

static int64_t product_expected(const int64_t *p) {
    return p[0] * p[1];
}

const bench_kind bench_philosophers = {"philosophers",     "meals",         {"philosophers", "rounds"}, {5, 40}, {20, 10000},
                                       philosophers_start, product_expected};

/* ---- cigarette smokers: an arbiter puts on the table what one of them, chosen at random, lacks, and goes on when that one smokes.
 * Result: smokes = rounds ---- */

typedef struct arbiter {
    bench *b;
    int64_t left;
    uint64_t random;
    weir_address smokers[]; /* (smokers) */
} arbiter;

static void choose(weir_actor *self, const weir_message *m) {
    arbiter *a = weir_state(self);
    (void)m;
    if (a->left-- > 0)
        bench_send(a->b, self, a->smokers[bench_random(&a->random) % (uint64_t)a->b->p[1]], a->b->put, NULL);
}

static void smoke(weir_actor *self, const weir_message *m) {
    bench **b = weir_state(self);
    bench_send(*b, self, weir_message_from(m), (*b)->take, NULL);
    bench_add(*b, 1);
}

static const weir_handler arbiter_handlers[] = {{"go", choose}, {"take", choose}, {NULL, NULL}};
static const weir_handler smoker_handlers[] = {{"put", smoke}, {NULL, NULL}};
static const weir_behaviour arbiter_kind = {.name = "arbiter", .handlers = arbiter_handlers, .fini = bench_fini};
static const weir_behaviour smoker_kind = {.name = "smoker", .handlers = smoker_handlers, .fini = bench_fini};

static void smokers_start(bench *b) {
    weir_address middle;
    arbiter *a = bench_spawn(b, &arbiter_kind, sizeof *a + (size_t)b->p[1] * sizeof a->smokers[0], &middle);
    if (!a)
        return;
    a->left = b->p[0];
    a->random = 1;
    for (int64_t i = 0; i < b->p[1]; i++)
        if (!bench_spawn(b, &smoker_kind, sizeof b, &a->smokers[i]))
            return;
    bench_send(b, b->main, middle, b->go, NULL);
}

static int64_t smokers_expected(const int64_t *p) {
    return p[0];
}

const bench_kind bench_smokers = {"smokers", "smokes", {"rounds", "smokers"}, {50, 10}, {1000, 200}, smokers_start, smokers_expected};
