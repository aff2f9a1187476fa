/* calls.c: logistic map and banking: calls and their replies, in actors that wait serially. */
#include "kinds.h"

/* ---- logistic map: each series asks its own computer for the next of x -> r x (1 - x), one call a term. Result: terms of all = terms x series; the last
 * term of each must be what a plain loop gives ---- */

typedef struct computer {
    bench *b;
    double rate;
} computer;

typedef struct series {
    bench *b;
    weir_address computer;
    double rate, x;
    int64_t terms;
} series;

#define FIRST_TERM 0.01

static double next_term(double rate, double x) {
    return rate * x * (1 - x);
}

static void on_compute(weir_actor *self, const weir_message *m) {
    computer *c = weir_state(self);
    double x;
    weir_cursor at = weir_read(weir_message_body(m), NULL);
    if (weir_read_double(&at, &x))
        weir_reply(self, m, weir_pack(c->b->system, "d", next_term(c->rate, x)));
}

static void ask_term(weir_actor *self, series *s);

static void finish_series(series *s) {
    double x = FIRST_TERM;
    for (int64_t i = 0; i < s->terms; i++)
        x = next_term(s->rate, x);
    if (x == s->x)
        bench_add(s->b, s->terms);
    else
        bench_fail(s->b, WEIR_EINVAL, "the last term of r = %g is %.17g, wanted %.17g", s->rate, s->x, x);
}

static void on_term(weir_actor *self, void *data, const weir_message *reply, const weir_error *error) {
    series *s = data;
    weir_cursor at = weir_read(reply ? weir_message_body(reply) : NULL, NULL);
    if (error || !weir_read_double(&at, &s->x))
        bench_fail(s->b, WEIR_EINVAL, "a term: %s", error ? weir_error_text(error) : "no number");
    else if (++s->terms < s->b->p[0])
        ask_term(self, s);
    else
        finish_series(s);
}

static void ask_term(weir_actor *self, series *s) {
    if (weir_call(self, s->computer, s->b->get, weir_pack(s->b->system, "d", s->x), 0, on_term, s, NULL) != WEIR_OK)
        bench_fail(s->b, WEIR_ENOMEM, "a call");
}

static void on_go(weir_actor *self, const weir_message *m) {
    (void)m;
    ask_term(self, weir_state(self));
}

static const weir_handler computer_handlers[] = {{"get", on_compute}, {NULL, NULL}};
static const weir_handler series_handlers[] = {{"go", on_go}, {NULL, NULL}};
static const weir_behaviour computer_kind = {.name = "computer", .handlers = computer_handlers, .fini = bench_fini};
static const weir_behaviour series_kind = {.name = "series", .handlers = series_handlers, .fini = bench_fini};

static void logistic_start(bench *b) {
    for (int64_t i = 0; i < b->p[1]; i++) {
        weir_address a, to;
        computer *c = bench_spawn(b, &computer_kind, sizeof *c, &to);
        series *s = c ? bench_spawn(b, &series_kind, sizeof *s, &a) : NULL;
        if (!s)
            return;
        c->rate = s->rate = 3.46 + 0.0025 * (double)i;
        s->computer = to;
        s->x = FIRST_TERM;
        bench_send(b, b->main, a, b->go, NULL);
    }
}

static int64_t logistic_expected(const int64_t *p) {
    return p[0] * p[1];
}

const bench_kind bench_logistic = {"logistic", "terms", {"terms", "series"}, {50, 4}, {25000, 10}, logistic_start, logistic_expected};

/* ---- banking: a teller orders transfers, from an account with a lower number to one with a higher, so that calls make no cycle. An account that sends
 * money waits for the other's answer. Result: the sum of all balances, which transfers leave alone, and the transfers made = accounts x OPENING + transfers.
 * The teller has at most BENCH_WINDOW transfers under way. ---- */

enum { OPENING = 1000000, AMOUNT = 100 };

typedef struct account {
    bench *b;
    int64_t balance;
    weir_reply_to teller;
} account;

typedef struct teller {
    bench *b;
    uint64_t random;
    int64_t left, open, asked, sum;
    weir_address accounts[]; /* (accounts) */
} teller;

static void on_credit(weir_actor *self, const weir_message *m) {
    account *a = weir_state(self);
    a->balance += bench_first(a->b, m);
    weir_reply(self, m, NULL);
}

static void on_credited(weir_actor *self, void *data, const weir_message *reply, const weir_error *error) {
    account *a = data;
    (void)reply;
    if (error)
        bench_fail(a->b, weir_error_code(error), "%s", weir_error_text(error));
    weir_unhold(self);
    weir_answer(self, a->teller, NULL);
}

/* A transfer: [to, amount]. */
static void on_debit(weir_actor *self, const weir_message *m) {
    account *a = weir_state(self);
    int64_t to = 0, amount = 0;
    weir_cursor c = weir_read(weir_message_body(m), NULL);
    if (!weir_read_int(&c, &to) || !weir_read_int(&c, &amount))
        return;
    a->balance -= amount;
    a->teller = weir_defer(self, m);
    weir_hold(self);
    if (weir_call(self, (weir_address)to, a->b->put, weir_pack(a->b->system, "i", amount), 0, on_credited, a, NULL) != WEIR_OK)
        bench_fail(a->b, WEIR_ENOMEM, "a call");
}

static void on_balance(weir_actor *self, const weir_message *m) {
    account *a = weir_state(self);
    weir_reply(self, m, weir_pack(a->b->system, "i", a->balance));
}

static void on_told(weir_actor *self, void *data, const weir_message *reply, const weir_error *error);

static void audit(weir_actor *self, teller *t) {
    if (t->asked == t->b->p[0])
        bench_add(t->b, t->sum);
    else if (weir_call(self, t->accounts[t->asked++], t->b->get, NULL, 0, on_told, t, NULL) != WEIR_OK)
        bench_fail(t->b, WEIR_ENOMEM, "a call");
}

static void on_told(weir_actor *self, void *data, const weir_message *reply, const weir_error *error) {
    teller *t = data;
    if (error) {
        bench_fail(t->b, weir_error_code(error), "%s", weir_error_text(error));
        return;
    }
    t->sum += bench_first(t->b, reply);
    audit(self, t);
}

static void on_transferred(weir_actor *self, void *data, const weir_message *reply, const weir_error *error);

/* Accounts are chosen as in the suite: from the lower eight tenths, to one above it. */
static void transfer(weir_actor *self, teller *t) {
    uint64_t n = (uint64_t)t->b->p[0], from = bench_random(&t->random) % (n / 10 * 8),
             to = from + 1 + bench_random(&t->random) % (n - from - 1);
    t->left--;
    t->open++;
    weir_body *body = weir_pack(t->b->system, "ii", (int64_t)t->accounts[to], (int64_t)AMOUNT);
    if (weir_call(self, t->accounts[from], t->b->take, body, -1, on_transferred, t, NULL) != WEIR_OK)
        bench_fail(t->b, WEIR_ENOMEM, "a call");
}

static void on_transferred(weir_actor *self, void *data, const weir_message *reply, const weir_error *error) {
    teller *t = data;
    (void)reply;
    if (error)
        bench_fail(t->b, weir_error_code(error), "%s", weir_error_text(error));
    bench_add(t->b, 1);
    t->open--;
    if (t->left > 0)
        transfer(self, t);
    else if (t->open == 0)
        audit(self, t);
}

static void on_opened(weir_actor *self, const weir_message *m) {
    teller *t = weir_state(self);
    (void)m;
    for (int i = 0; i < BENCH_WINDOW && t->left > 0; i++)
        transfer(self, t);
}

static const weir_handler account_handlers[] = {{"put", on_credit}, {"take", on_debit}, {"get", on_balance}, {NULL, NULL}};
static const weir_handler teller_handlers[] = {{"go", on_opened}, {NULL, NULL}};
static const weir_behaviour account_kind = {.name = "account", .handlers = account_handlers, .fini = bench_fini};
static const weir_behaviour teller_kind = {.name = "teller", .handlers = teller_handlers, .fini = bench_fini};

static void banking_start(bench *b) {
    weir_address desk;
    teller *t = bench_spawn(b, &teller_kind, sizeof *t + (size_t)b->p[0] * sizeof t->accounts[0], &desk);
    if (!t)
        return;
    t->random = 1;
    t->left = b->p[1];
    for (int64_t i = 0; i < b->p[0]; i++) {
        account *a = bench_spawn(b, &account_kind, sizeof *a, &t->accounts[i]);
        if (!a)
            return;
        a->balance = OPENING;
    }
    bench_send(b, b->main, desk, b->go, NULL);
}

static int64_t banking_expected(const int64_t *p) {
    return p[0] * OPENING + p[1];
}

const bench_kind bench_banking = {"banking",     "balances and transfers", {"accounts", "transfers"}, {20, 200}, {1000, 50000},
                                  banking_start, banking_expected};
