/* workload.c: a random program of actors. A fixed number of seats; in each sits an actor that, for each message it gets, does one or two things drawn
 * from its own generator: sends, fans out, calls, answers, defers, sets timers, holds, watches, links, ends itself or others. A keeper fills seats that became free. Threads
 * outside post. Every message carries its sender's running number, so a receiver sees what is doubled or out of order. */
#include "workload.h"

#include <inttypes.h>
#include <time.h>

enum { SEATS = 40, PEERS = 256, DEFERRED = 8, CALLS = 16, PAD = 48, MICROSECOND = 1000 };
static const int64_t patience = INT64_C(120000000000);

typedef struct workload {
    fixture f;
    workload_options o;
    ledger books;
    _Atomic int64_t left;                  /* messages that may still be sent */
    _Atomic uint64_t refused, handled;     /* sends and posts that were not accepted; messages that were booked */
    _Atomic uint64_t starts, lives, finis; /* start messages accepted; states made and given back */
    _Atomic weir_address seats[SEATS];
    weir_verb mail, ask, start;
    _Atomic uint64_t wishes; /* for room in a mailbox; each brings one message */
} workload;

/* What a receiver knows of a sender, or a sender of a receiver: a small table that forgets nothing it needs, as lines find themselves again. */
typedef struct peer {
    weir_address address;
    uint64_t last; /* number of its last message here */
    ledger_line *lines[LEDGER_KINDS];
} peer;

typedef struct peers {
    peer *at;
    size_t room, count;
} peers;

typedef struct token {
    weir_reply_to to;
    uint64_t number; /* of the question */
} token;

struct life;
typedef struct question {
    struct life *life;
    uint64_t number, session;
    bool open, holds;
} question;

typedef struct life {
    workload *w;
    unsigned seat;
    uint64_t random, number;
    peers sources, targets;
    token deferred[DEFERRED];
    unsigned n_deferred, held;
    question questions[CALLS];
    uint64_t pump;                  /* a timer */
    int64_t pump_next, pump_period; /* when it may tick at the earliest */
    bool rate;                      /* fixed rate, else fixed delay */
    bool once;                      /* a single timer is set, for once_due at the earliest */
    int64_t once_due;
    pthread_t thread;
    bool started;
} life;

static uint64_t draw(uint64_t *random) {
    return ledger_mix(*random += UINT64_C(0x9e3779b97f4a7c15));
}

static unsigned below(life *l, unsigned n) {
    return (unsigned)(draw(&l->random) % n);
}

/* ---- peers ---- */

static peer *peer_place(peer *at, size_t room, weir_address a) {
    size_t i = ledger_mix(a) & (room - 1);
    while (at[i].address && at[i].address != a)
        i = (i + 1) & (room - 1);
    return &at[i];
}

static peer *peer_of(peers *t, weir_address a) {
    if (t->count * 2 >= t->room) {
        size_t room = t->room ? t->room * 2 : PEERS;
        peer *wider = calloc(room, sizeof *wider);
        assert_non_null(wider);
        for (size_t i = 0; i < t->room; i++)
            if (t->at[i].address)
                *peer_place(wider, room, t->at[i].address) = t->at[i];
        free(t->at);
        *t = (peers){wider, room, t->count};
    }
    peer *p = peer_place(t->at, t->room, a);
    t->count += !p->address;
    p->address = a;
    return p;
}

static ledger_line *line_to(life *l, weir_actor *self, weir_address to, enum ledger_kind kind) {
    peer *p = peer_of(&l->targets, to);
    if (!p->lines[kind])
        p->lines[kind] = ledger_find(&l->w->books, weir_self(self), to, kind);
    return p->lines[kind];
}

/* ---- sending ---- */

/* The last one wakes the main loop, which may have nobody of its own. */
static bool spend(workload *w) {
    int64_t left = atomic_load_explicit(&w->left, memory_order_relaxed);
    if (left > 0)
        left = atomic_fetch_sub_explicit(&w->left, 1, memory_order_relaxed);
    if (left == 1)
        weir_system_quit(w->f.s);
    return left > 0;
}

static weir_body *body_of(workload *w, uint64_t number) {
    static const char pad[PAD];
    return weir_pack(w->f.s, "ub", number, pad, (size_t)(ledger_mix(number) % PAD));
}

static size_t size_of(const weir_body *b) {
    size_t n = 0;
    if (b)
        weir_body_bytes(b, &n);
    return n;
}

static weir_address somebody(life *l) {
    return atomic_load_explicit(&l->w->seats[below(l, SEATS)], memory_order_relaxed);
}

static void book(workload *w, int code, ledger_line *line, uint64_t number, size_t bytes) {
    if (code == WEIR_OK)
        ledger_add(&line->accepted, number, bytes);
    else if (code == WEIR_EFULL || code == WEIR_ENOACTOR || code == WEIR_ESTOPPING) {
        atomic_fetch_add_explicit(&w->refused, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&w->left, 1, memory_order_relaxed);
    } else
        ledger_violation(&w->books, "a send says %s", weir_code_name(code));
}

/* One body, one number, n receivers: none of them gets it twice. */
static void send_to(weir_actor *self, life *l, unsigned n) {
    workload *w = l->w;
    uint64_t number = ++l->number;
    weir_body *body = body_of(w, number);
    while (n-- && spend(w)) {
        weir_address to = somebody(l);
        if (!to || peer_of(&l->targets, to)->last == number)
            continue;
        peer_of(&l->targets, to)->last = number;
        ledger_line *line = line_to(l, self, to, LEDGER_MAIL);
        int code = weir_send(self, to, w->mail, weir_body_ref(body));
        book(w, code, line, number, size_of(body));
        if (code == WEIR_EFULL && below(l, 8) == 0 && weir_want_space(self, to) == WEIR_OK)
            atomic_fetch_add_explicit(&w->wishes, 1, memory_order_relaxed);
    }
    weir_body_free(body);
}

/* ---- calls ---- */

static bool expected(int code) {
    return code == WEIR_ETIMEOUT || code == WEIR_EEXITED || code == WEIR_EKILLED || code == WEIR_ENOACTOR || code == WEIR_EFULL ||
           code == WEIR_ENOREPLY || code == WEIR_ECYCLE || code == WEIR_ESTOPPING || code == WEIR_EBUSY || code == WEIR_EVERB;
}

static int64_t answer_to(uint64_t number) {
    return (int64_t)(number * 3 + 1);
}

static void close_question(weir_actor *self, question *q) {
    q->open = false;
    if (!q->holds)
        return;
    q->life->held--;
    weir_unhold(self);
}

static void on_answer(weir_actor *self, void *data, const weir_message *reply, const weir_error *error) {
    question *q = data;
    life *l = q->life;
    if (!q->open)
        ledger_violation(&l->w->books, "call %" PRIu64 " of %" PRIu64 " ended twice", q->number, weir_self(self));
    if (reply ? first_int(reply) != answer_to(q->number) : !expected(weir_error_code(error)))
        ledger_violation(&l->w->books, "call %" PRIu64 " of %" PRIu64 ": %s", q->number, weir_self(self),
                         error ? weir_error_text(error) : "another call's reply");
    close_question(self, q);
}

static void cancel_some(weir_actor *self, life *l) {
    question *q = &l->questions[below(l, CALLS)];
    if (!q->open)
        return;
    weir_call_cancel(self, q->session);
    close_question(self, q);
}

static void ask(weir_actor *self, life *l) {
    static const int64_t timeouts[] = {0, -1, MICROSECOND, 100 * MICROSECOND, 3000 * MICROSECOND};
    workload *w = l->w;
    question *q = l->questions;
    while (q < l->questions + CALLS && q->open)
        q++;
    weir_address to = somebody(l);
    if (!to || q == l->questions + CALLS || !spend(w))
        return;
    *q = (question){l, ++l->number, 0, true, below(l, 4) == 0};
    if (q->holds) {
        l->held++;
        weir_hold(self);
    }
    weir_body *body = body_of(w, q->number);
    ledger_add(&line_to(l, self, to, LEDGER_ASK)->accepted, q->number, size_of(body));
    int code = weir_call(self, to, w->ask, body, timeouts[below(l, 5)], on_answer, q, &q->session);
    if (code != WEIR_OK)
        ledger_violation(&w->books, "a call says %s", weir_code_name(code));
}

static void answer_later(weir_actor *self, life *l) {
    if (!l->n_deferred)
        return;
    unsigned i = below(l, l->n_deferred);
    token t = l->deferred[i];
    l->deferred[i] = l->deferred[--l->n_deferred];
    int code = weir_answer(self, t.to, weir_pack(l->w->f.s, "i", answer_to(t.number)));
    if (code != WEIR_OK && code != WEIR_ENOACTOR)
        ledger_violation(&l->w->books, "a deferred answer says %s", weir_code_name(code));
}

static void answer_now(weir_actor *self, life *l, const weir_message *m, uint64_t number) {
    weir_system *s = l->w->f.s;
    unsigned kind = below(l, 20);
    if (kind < 4 && l->n_deferred < DEFERRED)
        l->deferred[l->n_deferred++] = (token){weir_defer(self, m), number};
    else if (kind < 6)
        weir_reply_error(self, m, weir_error_new(WEIR_EBUSY, NULL, NULL, "not now"));
    else if (kind > 6) /* 6: forgotten */
        weir_reply(self, m, weir_pack(s, "i", answer_to(number)));
    if (kind == 19 && weir_reply(self, m, NULL) != WEIR_EINVAL)
        ledger_violation(&l->w->books, "a second answer was taken");
}

/* ---- timers ---- */

static void on_once(weir_actor *self, void *data, uint64_t missed) {
    life *l = data;
    (void)missed;
    if (weir_now(l->w->f.s) < l->once_due)
        ledger_violation(&l->w->books, "a timer of %" PRIu64 " is early", weir_self(self));
    l->once = false;
    send_to(self, l, 2);
}

static void set_once(weir_actor *self, life *l) {
    int64_t period = (int64_t)below(l, 2000) * MICROSECOND;
    if (l->once)
        return;
    l->once = true;
    l->once_due = weir_now(l->w->f.s) + period;
    if (weir_timer(self, period, WEIR_TIMER_ONCE, on_once, l, NULL) != WEIR_OK)
        ledger_violation(&l->w->books, "a timer cannot be set");
}

/* What keeps the program going when its messages have run out. */
static void on_pump(weir_actor *self, void *data, uint64_t missed) {
    life *l = data;
    workload *w = l->w;
    if (weir_now(w->f.s) < l->pump_next)
        ledger_violation(&w->books, "a pump of %" PRIu64 " ticks early", weir_self(self));
    if (atomic_load(&w->left) <= 0)
        weir_timer_cancel(self, l->pump);
    for (unsigned i = below(l, 8); i--;)
        send_to(self, l, 1);
    answer_later(self, l);
    l->pump_next = l->rate ? l->pump_next + (int64_t)(missed + 1) * l->pump_period : weir_now(w->f.s) + l->pump_period;
}

static void on_start(weir_actor *self, const weir_message *m) {
    life *l = weir_state(self);
    (void)m;
    l->rate = below(l, 2);
    l->pump_period = (int64_t)(200 + below(l, 2000)) * MICROSECOND;
    l->pump_next = weir_now(l->w->f.s) + l->pump_period;
    if (weir_timer(self, l->pump_period, l->rate ? WEIR_TIMER_RATE : WEIR_TIMER_DELAY, on_pump, l, &l->pump) != WEIR_OK)
        ledger_violation(&l->w->books, "a pump cannot be set");
}

/* ---- ends ---- */

static void end_somebody(weir_actor *self, life *l) {
    weir_system *s = l->w->f.s;
    switch (below(l, 4)) {
    case 0:
        weir_exit(self, NULL);
        return;
    case 1:
        weir_exit(self, weir_error_new(WEIR_EIO, NULL, NULL, "on purpose"));
        return;
    case 2:
        weir_stop(s, somebody(l));
        return;
    case 3:
        weir_kill(s, somebody(l));
    }
}

/* ---- what a message leads to ---- */

static void tie_somebody(weir_actor *self, life *l) {
    weir_address a = somebody(l);
    switch (below(l, 8)) {
    case 0:
        weir_link(self, a);
        return;
    case 1:
        weir_unlink(self, a);
        return;
    case 2:
    case 3:
    case 4:
        weir_monitor(self, a);
        return;
    default:
        weir_demonitor(self, a);
    }
}

static void act(weir_actor *self, life *l) {
    unsigned kind = below(l, 1000);
    if (kind < 500)
        send_to(self, l, 1);
    else if (kind < 680)
        send_to(self, l, 1), send_to(self, l, 1);
    else if (kind < 710)
        send_to(self, l, 2 + below(l, 7));
    else if (kind < 790)
        ask(self, l);
    else if (kind < 800)
        set_once(self, l);
    else if (kind < 820)
        tie_somebody(self, l);
    else if (kind < 830)
        cancel_some(self, l);
    else if (kind < 831)
        end_somebody(self, l);
    if (kind % 4 == 0)
        answer_later(self, l);
}

/* The number must be larger than all that came from this sender; the books get the message. */
static uint64_t receive(weir_actor *self, life *l, const weir_message *m, enum ledger_kind kind) {
    workload *w = l->w;
    weir_address from = weir_message_from(m);
    peer *p = peer_of(&l->sources, from);
    weir_cursor c = weir_read(weir_message_body(m), NULL);
    int64_t number = 0;
    if (!weir_read_int(&c, &number) || (uint64_t)number <= p->last)
        ledger_violation(&w->books, "%" PRIu64 " got number %" PRId64 " of %" PRIu64 " after %" PRIu64, weir_self(self), number, from,
                         p->last);
    if (w->books.hashing)
        ledger_read(&w->books, w->f.s, false);
    if (l->held)
        ledger_violation(&w->books, "%" PRIu64 " got mail while held", weir_self(self));
    if (!l->started)
        l->thread = pthread_self(), l->started = true;
    else if (!pthread_equal(l->thread, pthread_self()))
        ledger_violation(&w->books, "%" PRIu64 " runs on two threads", weir_self(self));
    p->last = (uint64_t)number;
    if (!p->lines[kind])
        p->lines[kind] = ledger_find(&w->books, from, weir_self(self), kind);
    if (atomic_fetch_add_explicit(&w->handled, 1, memory_order_relaxed) + 1 != w->o.plant)
        ledger_add(&p->lines[kind]->handled, (uint64_t)number, size_of(weir_message_body(m)));
    else
        p->last += UINT64_C(1) << 32; /* the fault on purpose: all that follow from this sender seem late */
    return (uint64_t)number;
}

static void on_mail(weir_actor *self, const weir_message *m) {
    life *l = weir_state(self);
    receive(self, l, m, LEDGER_MAIL);
    act(self, l);
}

static void on_ask(weir_actor *self, const weir_message *m) {
    life *l = weir_state(self);
    answer_now(self, l, m, receive(self, l, m, LEDGER_ASK));
    act(self, l);
}

/* There is room again: as good a reason to send as any. */
static void on_space(weir_actor *self, const weir_message *m) {
    (void)m;
    send_to(self, weir_state(self), 1);
}

static void on_down(weir_actor *self, weir_address who, const weir_error *why) {
    life *l = weir_state(self);
    (void)who, (void)why;
    send_to(self, l, 1);
}

static void on_fini(weir_system *s, void *state) {
    life *l = state;
    (void)s;
    atomic_fetch_add(&l->w->finis, 1);
    free(l->sources.at);
    free(l->targets.at);
    free(l);
}

static const weir_handler life_handlers[] = {{"mail", on_mail}, {"ask", on_ask}, {"start", on_start}, {"space", on_space}, {NULL, NULL}};
static const weir_behaviour life_behaviour = {.name = "life", .handlers = life_handlers, .down = on_down, .fini = on_fini};

/* ---- the keeper ---- */

typedef struct keeper {
    workload *w;
    uint64_t random;
} keeper;

static void seat_fill(weir_actor *self, keeper *k, unsigned seat) {
    static const size_t rooms[] = {1, 4, 16, 64, 64, 64};
    workload *w = k->w;
    life *l = calloc(1, sizeof *l);
    assert_non_null(l);
    l->w = w;
    l->seat = seat;
    l->random = draw(&k->random);
    weir_spawn_options o = {.loop = w->o.workers ? WEIR_LOOP_MAIN + (int)(draw(&k->random) % (w->o.workers + 1)) : WEIR_LOOP_HERE,
                            .full = (enum weir_full)(draw(&k->random) % 4),
                            .mailbox_messages = rooms[draw(&k->random) % 6],
                            .mailbox_bytes = draw(&k->random) % 8 ? 0 : 200};
    weir_address a = 0;
    atomic_fetch_add(&w->lives, 1);
    if (weir_spawn(w->f.s, &life_behaviour, l, &o, &a, NULL) != WEIR_OK)
        return;
    weir_monitor(self, a);
    int code = weir_send(self, a, w->start, NULL);
    if (code == WEIR_OK)
        atomic_fetch_add(&w->starts, 1);
    else if (code != WEIR_EFULL) /* mail of the one before, still on its way, counts in the place of both */
        ledger_violation(&w->books, "an actor cannot be started: %s", weir_code_name(code));
    atomic_store(&w->seats[seat], a);
}

static void keeper_down(weir_actor *self, weir_address who, const weir_error *why) {
    keeper *k = weir_state(self);
    unsigned seat = 0;
    (void)why;
    while (seat < SEATS && atomic_load(&k->w->seats[seat]) != who)
        seat++;
    if (seat == SEATS) {
        ledger_violation(&k->w->books, "the end of %" PRIu64 " is told twice", who);
        return;
    }
    atomic_store(&k->w->seats[seat], 0);
    seat_fill(self, k, seat);
}

static void keeper_start(weir_actor *self, const weir_message *m) {
    (void)m;
    for (unsigned i = 0; i < SEATS; i++)
        seat_fill(self, weir_state(self), i);
}

static const weir_handler keeper_handlers[] = {{"start", keeper_start}, {NULL, NULL}};
static const weir_behaviour keeper_behaviour = {.name = "keeper", .handlers = keeper_handlers, .down = keeper_down};

/* ---- threads ---- */

typedef struct poster {
    workload *w;
    pthread_t thread;
    weir_address envoy;
    uint64_t random, number;
} poster;

static void post_one(poster *p) {
    workload *w = p->w;
    weir_address to = atomic_load(&w->seats[draw(&p->random) % SEATS]);
    if (!to || !spend(w))
        return;
    ledger_line *line = ledger_find(&w->books, p->envoy, to, LEDGER_MAIL);
    weir_body *body = body_of(w, ++p->number);
    size_t bytes = size_of(body);
    book(w, weir_post(w->f.s, p->envoy, to, w->mail, body), line, p->number, bytes);
}

static void *post_all(void *data) {
    poster *p = data;
    while (atomic_load(&p->w->left) > 0) {
        for (int i = 0; i < 64; i++)
            post_one(p);
        nanosleep(&(struct timespec){0, 50 * MICROSECOND}, NULL);
    }
    return NULL;
}

/* ---- the run ---- */

static bool spent(void *data) {
    return atomic_load_explicit(&((workload *)data)->left, memory_order_relaxed) <= 0;
}

static void fixture_open_workers(fixture *f, enum weir_driver driver, uint64_t seed, unsigned workers) {
    memset(f, 0, sizeof *f);
    weir_system_options o = {.driver = driver, .seed = seed, .workers = workers, .alloc = counter_alloc, .alloc_data = &f->memory};
    assert_int_equal(weir_system_new(&o, &f->s, NULL), WEIR_OK);
    f->main = weir_main_actor(f->s);
}

static void open(workload *w, const workload_options *o) {
    memset(w, 0, sizeof *w);
    w->o = *o;
    if (o->workers)
        fixture_open_workers(&w->f, o->driver, o->seed, o->workers);
    else
        fixture_open(&w->f, o->driver, o->seed);
    ledger_init(&w->books, o->driver == WEIR_DRIVER_TEST);
    weir_set_trace(w->f.s, ledger_trace, &w->books);
    w->mail = weir_intern(w->f.s, "mail");
    w->ask = weir_intern(w->f.s, "ask");
    w->start = weir_intern(w->f.s, "start");
    w->left = (int64_t)o->messages;
}

static void law(workload *w, bool holds, const char *text) {
    if (!holds)
        ledger_violation(&w->books, "law: %s", text);
}

static void check_stats(workload *w, const weir_system_stats *s, uint64_t mail, uint64_t asks) {
    uint64_t starts = atomic_load(&w->starts) + 1;
    law(w, s->sent == s->handled + s->dead + s->queued, "sent = handled + dead + queued");
    law(w, s->queued <= atomic_load(&w->wishes), "only news of room may still be on its way");
    law(w, s->calls == s->calls_ended && s->calls == asks, "calls = calls made = calls ended");
    law(w, s->sent >= mail + starts && s->sent <= mail + starts + asks + atomic_load(&w->wishes), "sent = accepted");
    law(w, s->dropped <= s->dead, "what was dropped is dead");
    law(w, s->dead <= w->books.dead && w->books.dead <= s->dead + s->queued, "dead letters = those traced");
    law(w, s->refused >= atomic_load(&w->refused), "refused = those told");
    law(w, s->actors == 1 && atomic_load(&w->lives) == atomic_load(&w->finis), "every state is given back");
    law(w, s->timers == 0, "no timer is left");
}

static void play(workload *w, weir_system_stats *stats) {
    keeper k = {w, w->o.seed};
    poster posters[8];
    static const weir_behaviour envoy = {.name = "envoy"};
    weir_address a = fixture_spawn(&w->f, &keeper_behaviour, &k);
    fixture_send(&w->f, a, "start", 0);
    for (unsigned i = 0; i < w->o.threads; i++) {
        posters[i] = (poster){w, 0, fixture_spawn(&w->f, &envoy, NULL), ledger_mix(w->o.seed + i), 0};
        assert_int_equal(pthread_create(&posters[i].thread, NULL, post_all, &posters[i]), 0);
    }
    assert_int_equal(weir_system_run(w->f.s, spent, w, NULL), WEIR_OK);
    for (unsigned i = 0; i < w->o.threads; i++)
        pthread_join(posters[i].thread, NULL);
    weir_error *e = NULL;
    if (weir_system_stop(w->f.s, patience, &e) != WEIR_OK)
        ledger_violation(&w->books, "stop: %s", weir_error_text(e));
    weir_error_free(e);
    weir_system_get_stats(w->f.s, stats);
    if (w->books.hashing)
        ledger_read(&w->books, w->f.s, true);
}

static void print_result(const workload_options *o, const workload_result *r) {
    const weir_system_stats *s = &r->stats;
    printf("seed %" PRIu64 ": %" PRIu64 " sent = %" PRIu64 " handled + %" PRIu64 " dead (%" PRIu64 " dropped, %" PRIu64 " read); %" PRIu64
           " refused, %" PRIu64 " calls, %" PRIu64 " late replies, %" PRIu64 " lives%s%s\n",
           o->seed, s->sent, s->handled, s->dead, s->dropped, r->read, s->refused, s->calls, s->late_replies, r->lives,
           r->violation[0] ? "; BROKEN " : "", r->violation);
}

void workload_run(const workload_options *o, workload_result *r) {
    static workload w;
    ledger_flow mail = {0, 0, 0}, asks = {0, 0, 0};
    memset(r, 0, sizeof *r);
    open(&w, o);
    play(&w, &r->stats);
    fixture_close(&w.f);
    ledger_close(&w.books, &mail, &asks);
    check_stats(&w, &r->stats, mail.count, asks.count);
    r->events = w.books.events;
    r->hash = w.books.hash;
    r->mail = mail.count;
    r->asks = asks.count;
    r->read = w.books.read;
    r->lives = atomic_load(&w.lives);
    snprintf(r->violation, sizeof r->violation, "%s", w.books.violation);
    ledger_fini(&w.books);
    print_result(o, r);
}
