/* numbers.c: sieve and trapezoid: arithmetic that is spread over actors. */
#include "kinds.h"

#include <math.h>

/* ---- sieve: a chain of actors, each with some of the primes, passes on what none of them divides; a number that comes out is the next prime. An actor
 * gives credit for what it has settled, so the chain is never longer than its slowest part can bear. Result: primes up to N ---- */

typedef struct sieve {
    bench *b;
    weir_address before, next; /* next 0: the chain ends here */
    int64_t *primes;           /* (count), room for p[1] */
    int64_t *pending;          /* (BENCH_WINDOW), a ring: to be passed on */
    int64_t count, first, waiting, credit, settled;
} sieve;

static const weir_behaviour sieve_kind;

static sieve *sieve_new(bench *b, weir_address before, weir_address *out) {
    sieve *s = bench_spawn(b, &sieve_kind, sizeof *s, out);
    if (!s)
        return NULL;
    s->before = before;
    s->credit = BENCH_WINDOW;
    s->primes = calloc((size_t)b->p[1], sizeof *s->primes);
    s->pending = calloc(BENCH_WINDOW, sizeof *s->pending);
    if (s->primes && s->pending)
        return s;
    bench_fail(b, WEIR_ENOMEM, "a sieve");
    return NULL;
}

static void settle(weir_actor *self, sieve *s) {
    if (++s->settled % BENCH_GRANT == 0)
        bench_int(s->b, self, s->before, s->b->more, BENCH_GRANT);
}

static void pass_on(weir_actor *self, sieve *s) {
    for (; s->credit && s->waiting; s->credit--, s->waiting--) {
        bench_int(s->b, self, s->next, s->b->put, s->pending[s->first]);
        s->first = (s->first + 1) % BENCH_WINDOW;
        settle(self, s);
    }
}

static bool divided(const sieve *s, int64_t n) {
    for (int64_t i = 0; i < s->count && s->primes[i] * s->primes[i] <= n; i++)
        if (n % s->primes[i] == 0)
            return true;
    return false;
}

static void on_number(weir_actor *self, const weir_message *m) {
    sieve *s = weir_state(self);
    int64_t n = bench_first(s->b, m);
    if (divided(s, n)) {
        settle(self, s);
    } else if (s->count < s->b->p[1]) {
        s->primes[s->count++] = n;
        bench_add(s->b, 1);
        settle(self, s);
    } else if (s->waiting < BENCH_WINDOW && (s->next || sieve_new(s->b, weir_self(self), &s->next))) {
        s->pending[(s->first + s->waiting++) % BENCH_WINDOW] = n;
        pass_on(self, s);
    } else {
        bench_fail(s->b, WEIR_EFULL, "more numbers than were asked for");
    }
}

static void on_credit(weir_actor *self, const weir_message *m) {
    sieve *s = weir_state(self);
    s->credit += bench_first(s->b, m);
    pass_on(self, s);
}

static void sieve_fini(weir_system *system, void *state) {
    sieve *s = state;
    free(s->primes);
    free(s->pending);
    bench_fini(system, s);
}

static const weir_handler sieve_handlers[] = {{"put", on_number}, {"more", on_credit}, {NULL, NULL}};
static const weir_behaviour sieve_kind = {.name = "sieve", .handlers = sieve_handlers, .fini = sieve_fini};

typedef struct feeder {
    bench *b;
    weir_address first;
    int64_t next;
} feeder;

static void feed(weir_actor *self, const weir_message *m) {
    feeder *f = weir_state(self);
    for (int64_t n = bench_first(f->b, m); n > 0 && f->next <= f->b->p[0]; n--)
        bench_int(f->b, self, f->first, f->b->put, f->next++);
}

static const weir_handler feeder_handlers[] = {{"more", feed}, {NULL, NULL}};
static const weir_behaviour feeder_kind = {.name = "feeder", .handlers = feeder_handlers, .fini = bench_fini};

static void sieve_start(bench *b) {
    weir_address a;
    feeder *f = bench_spawn(b, &feeder_kind, sizeof *f, &a);
    if (!f || !sieve_new(b, a, &f->first))
        return;
    f->next = 2;
    bench_int(b, b->main, a, b->more, BENCH_WINDOW);
}

/* Counted by division: the chain must find as many. */
static int64_t sieve_expected(const int64_t *p) {
    int64_t count = 0;
    for (int64_t n = 2; n <= p[0]; n++) {
        int64_t d = 2;
        while (d * d <= n && n % d)
            d++;
        count += d * d > n;
    }
    return count;
}

const bench_kind bench_sieve = {"sieve", "primes", {"up to", "primes an actor"}, {2000, 50}, {100000, 1000}, sieve_start, sieve_expected};

/* ---- trapezoid: workers sum up parts of the integral of 4 / (1 + x^2) from 0 to 1, which is pi. The error of the rule with n pieces is at most
 * 4 / (6 n^2) here. Result: the integral in millionths, rounded = 3141593 ---- */

typedef struct gatherer {
    bench *b;
    double sum;
    int64_t answers;
} gatherer;

static void on_range(weir_actor *self, const weir_message *m) {
    bench *b = *(bench **)weir_state(self);
    int64_t first = 0, end = 0, n = b->p[0];
    weir_cursor c = weir_read(weir_message_body(m), NULL);
    if (!weir_read_int(&c, &first) || !weir_read_int(&c, &end))
        return;
    double sum = 0, h = 1 / (double)n;
    for (int64_t i = first; i < end; i++) {
        double x = (double)i * h, y = x + h;
        sum += h * (2 / (1 + x * x) + 2 / (1 + y * y));
    }
    weir_reply(self, m, weir_pack(b->system, "d", sum));
}

static void on_part(weir_actor *self, void *data, const weir_message *reply, const weir_error *error) {
    gatherer *g = data;
    double part;
    weir_cursor c = weir_read(reply ? weir_message_body(reply) : NULL, NULL);
    (void)self;
    if (error || !weir_read_double(&c, &part)) {
        bench_fail(g->b, WEIR_EINVAL, "a part: %s", error ? weir_error_text(error) : "no number");
        return;
    }
    g->sum += part;
    if (++g->answers == g->b->p[1])
        bench_add(g->b, llround(g->sum * 1e6));
}

static void on_divide(weir_actor *self, const weir_message *m);
static const weir_handler gatherer_handlers[] = {{"go", on_divide}, {NULL, NULL}}, ranger_handlers[] = {{"get", on_range}, {NULL, NULL}};
static const weir_behaviour gatherer_kind = {.name = "gatherer", .handlers = gatherer_handlers, .fini = bench_fini};
static const weir_behaviour ranger_kind = {.name = "ranger", .handlers = ranger_handlers, .fini = bench_fini};

static void on_divide(weir_actor *self, const weir_message *m) {
    gatherer *g = weir_state(self);
    int64_t pieces = g->b->p[0], workers = g->b->p[1];
    (void)m;
    for (int64_t i = 0; i < workers; i++) {
        weir_address a;
        if (!bench_spawn(g->b, &ranger_kind, sizeof(bench *), &a))
            return;
        weir_body *range = weir_pack(g->b->system, "ii", pieces * i / workers, pieces * (i + 1) / workers);
        if (weir_call(self, a, g->b->get, range, -1, on_part, g, NULL) != WEIR_OK)
            bench_fail(g->b, WEIR_ENOMEM, "a call");
    }
}

static void trapezoid_start(bench *b) {
    weir_address a;
    if (bench_spawn(b, &gatherer_kind, sizeof(gatherer), &a))
        bench_send(b, b->main, a, b->go, NULL);
}

static int64_t trapezoid_expected(const int64_t *p) {
    (void)p;
    return 3141593;
}

const bench_kind bench_trapezoid = {"trapezoid",     "pi in millionths", {"pieces", "workers"}, {10000, 10},
                                    {10000000, 100}, trapezoid_start,    trapezoid_expected};
