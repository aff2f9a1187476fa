/* What a review of worker loops looked for: ends at inconvenient moments, records that outlive their calls, waits that begin again, threads that meet a stop. Run
 * under ASan and TSan too. */
#include <pthread.h>
#include <sys/wait.h>

#include "fixture.h"

static void open_with(fixture *f, enum weir_driver driver, uint64_t seed, unsigned workers) {
    memset(f, 0, sizeof *f);
    weir_system_options o = {.driver = driver, .seed = seed, .workers = workers, .alloc = counter_alloc, .alloc_data = &f->memory};
    assert_int_equal(weir_system_new(&o, &f->s, NULL), WEIR_OK);
    f->main = weir_main_actor(f->s);
}

static weir_address spawn_on(fixture *f, int loop, const weir_behaviour *b, void *state) {
    weir_spawn_options o = {.loop = loop};
    weir_address a = 0;
    assert_int_equal(weir_spawn(f->s, b, state, &o, &a, NULL), WEIR_OK);
    return a;
}

static void tell(fixture *f, weir_address a, const char *verb) {
    assert_int_equal(weir_send(f->main, a, weir_intern(f->s, verb), NULL), WEIR_OK);
}

static void on_nothing(weir_actor *self, const weir_message *m) {
    (void)self, (void)m;
}

static void no_answer(weir_actor *self, void *data, const weir_message *reply, const weir_error *error) {
    (void)self, (void)reply, (void)error;
    ++*(int64_t *)data;
}

/* ---- ends ---- */

static void on_keep(weir_actor *self, const weir_message *m) {
    weir_reply_to to = weir_defer(self, m);
    weir_reply_to *kept = weir_state(self);
    if (kept)
        *kept = to;
}

static const weir_handler keeper_handlers[] = {{"ask", on_keep}, {NULL, NULL}};
static const weir_behaviour keeper = {.name = "keeper", .handlers = keeper_handlers};

/* A program's calls end while its system is freed: nobody reports them any more. */
static void calls_of_a_program_that_end_as_its_system_is_freed_are_given_back(void **state) {
    (void)state;
    for (unsigned workers = 0; workers < 2; workers++) {
        fixture f;
        int64_t ends = 0;
        open_with(&f, WEIR_DRIVER_EV, 0, workers);
        weir_address near = spawn_on(&f, WEIR_LOOP_HERE, &keeper, NULL), far = spawn_on(&f, WEIR_LOOP_ANY, &keeper, NULL);
        for (int i = 0; i < 3; i++) {
            assert_int_equal(weir_call(f.main, near, weir_intern(f.s, "ask"), NULL, 0, no_answer, &ends, NULL), WEIR_OK);
            assert_int_equal(weir_call(f.main, far, weir_intern(f.s, "ask"), NULL, 0, no_answer, &ends, NULL), WEIR_OK);
        }
        fixture_close(&f);
        assert_int_equal(ends, 0);
    }
}

/* ---- what fini does with its actor ---- */

typedef struct busy {
    weir_actor *self;
    weir_address peer;
    int64_t runs;
} busy;

static void tick(weir_actor *self, void *data, uint64_t missed) {
    (void)self, (void)missed;
    ++*(int64_t *)data;
}

static void busy_fini(weir_system *s, void *state) {
    busy *b = state;
    weir_verb ask = weir_intern(s, "ask");
    weir_call(b->self, b->peer, ask, NULL, 0, no_answer, &b->runs, NULL);
    weir_call(b->self, 0, ask, NULL, 0, no_answer, &b->runs, NULL);
    weir_timer(b->self, 1000, WEIR_TIMER_RATE, tick, &b->runs, NULL);
    weir_monitor(b->self, b->peer);
    weir_want_space(b->self, b->peer);
    weir_send(b->self, b->peer, ask, NULL);
}

static void on_self(weir_actor *self, const weir_message *m) {
    (void)m;
    ((busy *)weir_state(self))->self = self;
}

static const weir_handler busy_handlers[] = {{"self", on_self}, {NULL, NULL}};
static const weir_behaviour busy_behaviour = {.name = "busy", .handlers = busy_handlers, .fini = busy_fini};

static void what_fini_begins_ends_with_its_actor_and_runs_nothing(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        fixture f;
        busy b = {0};
        open_with(&f, seed ? WEIR_DRIVER_TEST : WEIR_DRIVER_EV, seed, 1);
        weir_address far = spawn_on(&f, WEIR_LOOP_MAIN + 1, &keeper, NULL), a = spawn_on(&f, WEIR_LOOP_MAIN, &busy_behaviour, &b);
        b.peer = far;
        tell(&f, a, "self");
        fixture_run(&f);
        weir_kill(f.s, a);
        fixture_run(&f);
        assert_int_equal(b.runs, 0);
        assert_int_equal(stats_of(f.s).timers, 0);
        assert_int_equal(stats_of(f.s).calls, stats_of(f.s).calls_ended);
        fixture_close(&f);
    }
}

/* ---- a deferred call whose caller ends ---- */

static void on_ask_other(weir_actor *self, const weir_message *m) {
    static int64_t ends;
    weir_call(self, *(weir_address *)weir_state(self), weir_message_verb(m), NULL, -1, no_answer, &ends, NULL);
}

static const weir_handler asker_handlers[] = {{"ask", on_ask_other}, {NULL, NULL}};
static const weir_behaviour asker = {.name = "asker", .handlers = asker_handlers};

static void an_answer_to_a_caller_that_ended_gives_the_calls_record_back(void **state) {
    (void)state;
    fixture f;
    weir_reply_to kept = {0, 0, 0};
    int64_t warm = 0;
    open_with(&f, WEIR_DRIVER_EV, 0, 1);
    weir_address callee = spawn_on(&f, WEIR_LOOP_MAIN, &keeper, &kept);
    for (int i = 0; i < 3000; i++) {
        weir_address a = spawn_on(&f, WEIR_LOOP_MAIN + 1, &asker, &callee);
        tell(&f, a, "ask");
        fixture_run(&f);
        assert_int_equal(kept.caller, a);
        weir_kill(f.s, a);
        fixture_run(&f);
        assert_int_equal(weir_answer(weir__actor(f.s, callee), kept, weir_pack(f.s, "i", (int64_t)1)), WEIR_ENOACTOR);
        if (i == 1000)
            warm = f.memory.bytes;
    }
    assert_true(f.memory.bytes <= warm + 64 * 1024);
    fixture_close(&f);
}

/* ---- memory runs out where a call arrives ---- */

typedef struct tally {
    _Atomic int64_t handled;
} tally;

static void on_count(weir_actor *self, const weir_message *m) {
    atomic_fetch_add(&((tally *)weir_state(self))->handled, 1);
    weir_reply(self, m, NULL);
}

static const weir_handler tally_handlers[] = {{"ask", on_count}, {NULL, NULL}};
static const weir_behaviour tally_behaviour = {.name = "tally", .handlers = tally_handlers};

static void a_call_that_ends_for_want_of_memory_is_not_handled(void **state) {
    (void)state;
    bool refused = false;
    for (int64_t n = 1; n < 30; n++) {
        fixture f;
        tally t = {0};
        outcome o = {0};
        open_with(&f, WEIR_DRIVER_TEST, 1, 1);
        weir_address a = spawn_on(&f, WEIR_LOOP_MAIN + 1, &tally_behaviour, &t);
        weir_verb ask = weir_intern(f.s, "ask");
        weir__inject_arm(f.s, "ALLOC", (uint64_t)n, 1);
        int code = weir_call(f.main, a, ask, NULL, 0, record_outcome, &o, NULL);
        fixture_run(&f);
        weir__inject_arm(f.s, "ALLOC", 1, 0);
        assert_int_equal(o.ended, code == WEIR_OK);
        assert_int_equal(atomic_load(&t.handled), code == WEIR_OK && o.code == WEIR_OK);
        refused = refused || (code == WEIR_OK && o.code == WEIR_ENOMEM);
        fixture_close(&f);
    }
    assert_true(refused);
}

/* ---- cycles ---- */

typedef struct waiter {
    weir_address other;
    outcome outcome;
} waiter;

static void on_call(weir_actor *self, const weir_message *m) {
    waiter *w = weir_state(self);
    (void)m;
    assert_int_equal(weir_call(self, w->other, weir_intern(weir_system_of(self), "ask"), NULL, -1, record_outcome, &w->outcome, NULL),
                     WEIR_OK);
}

static void wake_up(weir_actor *self, void *data, uint64_t missed) {
    (void)data, (void)missed;
    weir_unhold(self);
}

/* Waits for a short while, as for the first of several answers. */
static void on_wait_a_bit(weir_actor *self, const weir_message *m) {
    (void)m;
    weir_hold(self);
    weir_timer(self, 1000000, WEIR_TIMER_ONCE, wake_up, NULL, NULL);
}

static void on_wait(weir_actor *self, const weir_message *m) {
    (void)m;
    weir_hold(self);
}

static void on_keep_nothing(weir_actor *self, const weir_message *m) {
    weir_defer(self, m);
}

static const weir_handler waiter_handlers[] = {
    {"ask", on_keep_nothing}, {"call", on_call}, {"wait a bit", on_wait_a_bit}, {"wait", on_wait}, {NULL, NULL}};
static const weir_behaviour waiter_behaviour = {.name = "waiter", .handlers = waiter_handlers};

/* An actor that waits once more for a call it has waited for before: meanwhile the other has begun to wait for it. */
static void a_cycle_that_closes_when_a_wait_begins_again_is_named(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        fixture f;
        waiter a = {0}, b = {0};
        open_with(&f, seed ? WEIR_DRIVER_TEST : WEIR_DRIVER_EV, seed, 2);
        weir_address at_a = spawn_on(&f, WEIR_LOOP_MAIN + 1, &waiter_behaviour, &a),
                     at_b = spawn_on(&f, WEIR_LOOP_MAIN + 2, &waiter_behaviour, &b);
        a.other = at_b;
        b.other = at_a;
        static const char *const steps[] = {"a call", "a wait a bit", "b call", "b wait", "a wait"};
        for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
            tell(&f, steps[i][0] == 'a' ? at_a : at_b, steps[i] + 2);
            fixture_run(&f);
        }
        assert_int_equal(a.outcome.ended + b.outcome.ended, 1);
        assert_int_equal(a.outcome.ended ? a.outcome.code : b.outcome.code, WEIR_ECYCLE);
        fixture_close(&f);
    }
}

/* ---- the test driver and threads ---- */

typedef struct poster {
    weir_system *s;
    weir_address to;
    _Atomic bool waits;
} poster;

static void *post_later(void *data) {
    poster *p = data;
    usleep(50000); /* the loop sleeps by then; if not, the test shows nothing but passes */
    assert_int_equal(weir_post(p->s, 0, p->to, weir_intern(p->s, "ask"), NULL), WEIR_OK);
    return NULL;
}

static bool handled_once(void *data) {
    return atomic_load(&((tally *)data)->handled) == 1;
}

static void a_post_from_a_thread_wakes_the_test_driver_whatever_loop_it_is_for(void **state) {
    (void)state;
    for (int loop = 0; loop < 3; loop++) {
        fixture f;
        tally t = {0};
        pthread_t thread;
        open_with(&f, WEIR_DRIVER_TEST, 1, 2);
        poster p = {.s = f.s, .to = spawn_on(&f, WEIR_LOOP_MAIN + loop, &tally_behaviour, &t)};
        assert_int_equal(pthread_create(&thread, NULL, post_later, &p), 0);
        alarm(60);
        assert_int_equal(weir_system_run(f.s, handled_once, &t, NULL), WEIR_OK);
        alarm(0);
        pthread_join(thread, NULL);
        fixture_close(&f);
    }
}

/* ---- spawning while the system stops ---- */

static weir_behaviour breeder_behaviour;

static void on_breed(weir_actor *self, const weir_message *m) {
    weir_system *s = weir_system_of(self);
    for (int i = 0; i < 20; i++) {
        weir_spawn_options o = {.loop = WEIR_LOOP_ANY};
        weir_spawn(s, &breeder_behaviour, weir_state(self), &o, NULL, NULL);
    }
    weir_send(self, weir_self(self), weir_message_verb(m), NULL);
    if (stats_of(s).actors > 5000)
        weir_exit(self, NULL);
}

static void count_fini(weir_system *s, void *state) {
    (void)s;
    atomic_fetch_sub((_Atomic int64_t *)state, 1);
}

static const weir_handler breeder_handlers[] = {{"breed", on_breed}, {NULL, NULL}};
static weir_behaviour breeder_behaviour = {.name = "breeder", .handlers = breeder_handlers, .fini = count_fini};

static void actors_that_are_spawned_while_the_system_stops_are_stopped_too(void **state) {
    (void)state;
    for (int round = 0; round < 30; round++) {
        fixture f;
        _Atomic int64_t finis = 0;
        weir_error *e = NULL;
        open_with(&f, WEIR_DRIVER_EV, 0, 3);
        for (int i = 0; i < 3; i++)
            tell(&f, spawn_on(&f, WEIR_LOOP_MAIN + 1 + i, &breeder_behaviour, (void *)&finis), "breed");
        usleep((useconds_t)(round * 200));
        alarm(120);
        int code = weir_system_stop(f.s, INT64_C(60000000000), &e);
        alarm(0);
        if (code)
            fail_msg("%s", weir_error_text(e));
        assert_int_equal(stats_of(f.s).actors, 1);
        fixture_close(&f);
    }
}

/* ---- addresses of ended actors, with places that are taken again at once ---- */

typedef struct churn {
    _Atomic weir_address latest;
    _Atomic bool over;
    _Atomic int64_t strangers;
    weir_system *s;
} churn;

static void on_strange(weir_actor *self, const weir_message *m) {
    int64_t meant = first_int(m);
    churn *c = weir_state(self);
    if ((weir_address)meant != weir_self(self))
        atomic_fetch_add(&c->strangers, 1);
}

static const weir_handler churned_handlers[] = {{"ask", on_strange}, {NULL, NULL}};
static const weir_behaviour churned = {.name = "churned", .handlers = churned_handlers};

static void *churning(void *data) {
    churn *c = data;
    weir_address last;
    while (!atomic_load(&c->over)) {
        last = atomic_load(&c->latest);
        if (last)
            weir_kill(c->s, last);
    }
    return NULL;
}

/* Starts actors on all loops and ends them, so that places go to and fro. */
static void on_churn(weir_actor *self, const weir_message *m) {
    churn *c = weir_state(self);
    weir_system *s = weir_system_of(self);
    static const int loops[] = {WEIR_LOOP_MAIN, WEIR_LOOP_MAIN + 1, WEIR_LOOP_MAIN + 2};
    for (int i = 0; i < 6; i++) {
        weir_spawn_options o = {.loop = loops[i % 3]};
        weir_address a = 0;
        if (weir_spawn(s, &churned, c, &o, &a, NULL) != WEIR_OK)
            continue;
        weir_send(self, a, weir_intern(s, "ask"), weir_pack(s, "i", (int64_t)a));
        atomic_store(&c->latest, a);
        weir_monitor(self, a);
        if (i & 1)
            weir_kill(s, a);
        else
            weir_stop(s, a);
    }
    if (!atomic_load(&c->over))
        weir_send(self, weir_self(self), weir_message_verb(m), NULL);
}

static const weir_handler churner_handlers[] = {{"churn", on_churn}, {NULL, NULL}};
static const weir_behaviour churner = {.name = "churner", .handlers = churner_handlers};

static void poke(weir_actor *self, void *data, uint64_t missed) {
    churn *c = data;
    weir_system *s = weir_system_of(self);
    (void)missed;
    for (int i = 0; i < 200; i++) {
        weir_address a = atomic_load(&c->latest);
        if (!a)
            return;
        weir_send(self, a, weir_intern(s, "ask"), weir_pack(s, "i", (int64_t)a));
        weir_stop(s, a);
        weir_kill(s, a);
        weir_monitor(self, a);
        weir_demonitor(self, a);
    }
}

enum { CHURN_NS = 700000000 };

static void end_of_churn(weir_actor *self, void *data, uint64_t missed) {
    (void)self, (void)missed;
    atomic_store(&((churn *)data)->over, true);
}

static void what_was_meant_for_an_ended_actor_never_reaches_the_next_one_in_its_place(void **state) {
    (void)state;
    fixture f;
    churn c = {0};
    pthread_t thread;
    uint64_t timer;
    open_with(&f, WEIR_DRIVER_EV, 0, 3);
    c.s = f.s;
    for (int i = 0; i < 3; i++)
        tell(&f, spawn_on(&f, WEIR_LOOP_MAIN + 1 + i, &churner, &c), "churn");
    assert_int_equal(pthread_create(&thread, NULL, churning, &c), 0);
    assert_int_equal(weir_timer(f.main, 100000, WEIR_TIMER_DELAY, poke, &c, &timer), WEIR_OK);
    assert_int_equal(weir_timer(f.main, CHURN_NS, WEIR_TIMER_ONCE, end_of_churn, &c, NULL), WEIR_OK);
    alarm(200);
    while (!atomic_load(&c.over))
        assert_int_equal(weir_system_run(f.s, flag_is_set, (void *)&c.over, NULL), WEIR_OK);
    weir_timer_cancel(f.main, timer);
    fixture_run(&f);
    alarm(0);
    pthread_join(thread, NULL);
    assert_int_equal(atomic_load(&c.strangers), 0);
    fixture_close(&f);
}

/* ---- a long chain of links ---- */

enum { CHAIN = 100000 };

typedef struct chained {
    weir_address next;
} chained;

static void on_link(weir_actor *self, const weir_message *m) {
    (void)m;
    assert_int_equal(weir_link(self, ((chained *)weir_state(self))->next), WEIR_OK);
}

static const weir_handler chained_handlers[] = {{"link", on_link}, {"ask", on_nothing}, {NULL, NULL}};
static const weir_behaviour chained_behaviour = {.name = "chained", .handlers = chained_handlers};

static void a_chain_of_100000_links_over_loops_ends_as_a_whole(void **state) {
    (void)state;
    static chained chain[CHAIN];
    static weir_address at[CHAIN];
    fixture f;
    open_with(&f, WEIR_DRIVER_EV, 0, 2);
    for (int i = 0; i < CHAIN; i++)
        at[i] = spawn_on(&f, WEIR_LOOP_MAIN + (i / 1000) % 3, &chained_behaviour, &chain[i]);
    for (int i = 0; i + 1 < CHAIN; i++) {
        chain[i].next = at[i + 1];
        tell(&f, at[i], "link");
    }
    fixture_run(&f);
    weir_kill(f.s, at[CHAIN / 2]);
    fixture_run(&f);
    assert_int_equal(stats_of(f.s).actors, 1);
    fixture_close(&f);
}

/* ---- bodies that no mailbox of theirs will ever take ---- */

/* Not EFULL: there is nothing to wait for. */
static void a_body_larger_than_its_mailbox_is_refused_for_good_whatever_the_policy(void **state) {
    (void)state;
    static const char text[200] = "";
    for (int i = 0; i < 8; i++) {
        fixture f;
        tally t = {0};
        outcome o = {0};
        weir_address a = 0;
        open_with(&f, WEIR_DRIVER_EV, 0, 1);
        weir_spawn_options options = {.loop = WEIR_LOOP_MAIN + i / 4, .full = (enum weir_full)(i % 4), .mailbox_bytes = 100};
        assert_int_equal(weir_spawn(f.s, &tally_behaviour, &t, &options, &a, NULL), WEIR_OK);
        weir_verb ask = weir_intern(f.s, "ask");
        assert_int_equal(weir_send(f.main, a, ask, weir_pack(f.s, "b", text, sizeof text)), WEIR_ETOOBIG);
        assert_int_equal(weir_post(f.s, 0, a, ask, weir_pack(f.s, "b", text, sizeof text)), WEIR_ETOOBIG);
        assert_int_equal(weir_call(f.main, a, ask, weir_pack(f.s, "b", text, sizeof text), 0, record_outcome, &o, NULL), WEIR_OK);
        fixture_run(&f);
        assert_int_equal(o.code, WEIR_ETOOBIG);
        assert_int_equal(atomic_load(&t.handled), 0);
        assert_int_equal(stats_of(f.s).refused, 3);
        fixture_close(&f);
    }
}

/* ---- many monitors ---- */

enum { WATCHED = 60000 };

typedef struct watcher {
    weir_address *at;
    int64_t downs;
} watcher;

/* Twice each, and every third taken back: one `down` for the others. */
static void on_watch_all(weir_actor *self, const weir_message *m) {
    watcher *w = weir_state(self);
    (void)m;
    for (int i = 0; i < 2 * WATCHED; i++)
        assert_int_equal(weir_monitor(self, w->at[i % WATCHED]), WEIR_OK);
    for (int i = 0; i < WATCHED; i += 3)
        assert_int_equal(weir_demonitor(self, w->at[i]), WEIR_OK);
    assert_int_equal(weir_demonitor(self, w->at[0]), WEIR_ENOACTOR);
}

static void count_down(weir_actor *self, weir_address who, const weir_error *why) {
    (void)who, (void)why;
    ((watcher *)weir_state(self))->downs++;
}

static const weir_handler watcher_handlers[] = {{"watch", on_watch_all}, {NULL, NULL}};
static const weir_behaviour watcher_behaviour = {.name = "watcher", .handlers = watcher_handlers, .down = count_down};

static void one_actor_watches_60000_on_all_loops_and_takes_some_back(void **state) {
    (void)state;
    static weir_address at[WATCHED];
    fixture f;
    watcher w = {at, 0};
    open_with(&f, WEIR_DRIVER_EV, 0, 2);
    for (int i = 0; i < WATCHED; i++)
        at[i] = spawn_on(&f, WEIR_LOOP_MAIN + i % 3, &chained_behaviour, NULL);
    tell(&f, spawn_on(&f, WEIR_LOOP_MAIN + 1, &watcher_behaviour, &w), "watch");
    fixture_run(&f);
    for (int i = 0; i < WATCHED; i++)
        assert_int_equal(weir_kill(f.s, at[i]), WEIR_OK);
    fixture_run(&f);
    assert_int_equal(w.downs, WATCHED - WATCHED / 3);
    fixture_close(&f);
}

/* ---- posts while the system stops ---- */

typedef struct flood {
    weir_system *s;
    weir_address to[4];
    _Atomic bool over;
} flood;

static void *flooding(void *data) {
    flood *p = data;
    weir_verb ask = weir_intern(p->s, "ask");
    for (unsigned i = 0; !atomic_load(&p->over); i++) {
        weir_post(p->s, 0, p->to[i % 4], ask, weir_pack(p->s, "i", (int64_t)i));
        if (i % 64 == 0)
            weir_stop(p->s, p->to[(i / 64) % 3]);
    }
    return NULL;
}

static void posts_of_threads_while_a_system_stops_are_all_accounted_for(void **state) {
    (void)state;
    for (int round = 0; round < 20; round++) {
        fixture f;
        tally t = {0};
        pthread_t threads[2];
        open_with(&f, WEIR_DRIVER_EV, 0, 2);
        flood p = {.s = f.s};
        for (int i = 0; i < 4; i++)
            p.to[i] = spawn_on(&f, WEIR_LOOP_MAIN + i % 3, &tally_behaviour, &t);
        for (int i = 0; i < 2; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, flooding, &p), 0);
        usleep((useconds_t)(round * 300));
        alarm(100);
        assert_int_equal(weir_system_stop(f.s, INT64_C(60000000000), NULL), WEIR_OK);
        alarm(0);
        atomic_store(&p.over, true);
        for (int i = 0; i < 2; i++)
            pthread_join(threads[i], NULL);
        fixture_close(&f);
    }
}

/* ---- replay ---- */

typedef struct trace {
    uint64_t hash, events;
} trace;

static void record(void *data, enum weir_trace kind, weir_address from, weir_address to, const char *verb, size_t bytes, int why) {
    trace *t = data;
    uint64_t values[] = {kind, from, to, bytes, (uint64_t)why, (uint64_t)verb[0]};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        t->hash = (t->hash ^ values[i]) * UINT64_C(1099511628211);
    t->events++;
}

static trace traced(uint64_t seed) {
    fixture f;
    trace t = {0, 0};
    waiter w[12] = {0};
    weir_address at[12];
    open_with(&f, WEIR_DRIVER_TEST, seed, 3);
    weir_set_trace(f.s, record, &t);
    for (int i = 0; i < 12; i++)
        at[i] = spawn_on(&f, WEIR_LOOP_ANY, &waiter_behaviour, &w[i]);
    for (int i = 0; i < 12; i++)
        w[i].other = at[(i * 5 + 1) % 12];
    static const char *const steps[] = {"call", "wait a bit", "call", "ask", "what", "wait"};
    for (int i = 0; i < 120; i++)
        weir_send(f.main, at[(i * 7) % 12], weir_intern(f.s, steps[i % 6]), weir_pack(f.s, "i", (int64_t)i));
    for (int i = 0; i < 4; i++)
        weir_stop(f.s, at[i]);
    fixture_run(&f);
    weir_kill(f.s, at[5]);
    fixture_run(&f);
    fixture_close(&f);
    return t;
}

static void a_run_on_three_worker_loops_replays_exactly(void **state) {
    (void)state;
    bool differ = false;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        trace a = traced(seed), b = traced(seed);
        assert_int_equal(a.hash, b.hash);
        assert_int_equal(a.events, b.events);
        differ = differ || a.hash != traced(seed + 1).hash;
    }
    assert_true(differ);
}

/* ---- counters while everything runs ---- */

static void on_bounce(weir_actor *self, const weir_message *m) {
    weir_address *other = weir_state(self);
    weir_send(self, *other, weir_message_verb(m), NULL);
}

static const weir_handler bouncer_handlers[] = {{"bounce", on_bounce}, {NULL, NULL}};
static const weir_behaviour bouncer = {.name = "bouncer", .handlers = bouncer_handlers};

static void counters_that_are_read_while_loops_work_stay_sensible(void **state) {
    (void)state;
    fixture f;
    weir_address at[2];
    open_with(&f, WEIR_DRIVER_EV, 0, 2);
    at[0] = spawn_on(&f, WEIR_LOOP_MAIN + 1, &bouncer, &at[1]);
    at[1] = spawn_on(&f, WEIR_LOOP_MAIN + 2, &bouncer, &at[0]);
    for (int i = 0; i < 50; i++)
        tell(&f, at[i % 2], "bounce");
    for (int i = 0; i < 200000; i++) {
        weir_system_stats s = stats_of(f.s);
        assert_true(s.queued < 1000000);
    }
    weir_kill(f.s, at[0]);
    fixture_run(&f);
    weir_system_stats s = stats_of(f.s);
    assert_int_equal(s.queued, 0);
    assert_int_equal(s.sent, s.handled + s.dead);
    fixture_close(&f);
}

/* ---- runs end when all is quiet, not before ---- */

enum { HOPS = 300, HOP_ROUNDS = 30, HOP_THREADS = 2048 };

typedef struct relay {
    weir_address next;
    weir_system *s;
    tally *tally;
    pthread_t *threads;
    _Atomic int *n;
} relay;

static void *hop(void *data) {
    weir__notice_post(data);
    return NULL;
}

/* Work goes from an actor to a thread that posts a notice to the next actor, on another loop, and so on. */
static void on_hop(weir_actor *self, const weir_message *m) {
    relay *r = weir_state(self);
    int64_t left = first_int(m);
    atomic_fetch_add(&r->tally->handled, 1);
    if (!left)
        return;
    weir__notice *n = weir__notice_new(r->s, weir_self(self), r->next, weir_message_verb(m), weir_pack(r->s, "i", left - 1));
    assert_non_null(n);
    if (left % 8)
        weir__notice_post(n);
    else
        assert_int_equal(pthread_create(&r->threads[atomic_fetch_add(r->n, 1)], NULL, hop, n), 0);
}

static const weir_handler hopper_handlers[] = {{"hop", on_hop}, {NULL, NULL}};
static const weir_behaviour hopper = {.name = "hopper", .handlers = hopper_handlers};

static void a_run_waits_for_work_that_goes_to_and_fro_between_threads_and_loops(void **state) {
    (void)state;
    fixture f;
    tally t = {0};
    relay r[3];
    static pthread_t threads[HOP_THREADS];
    _Atomic int n = 0;
    open_with(&f, WEIR_DRIVER_EV, 0, 2);
    weir_address at[3];
    for (int i = 0; i < 3; i++)
        at[i] = spawn_on(&f, WEIR_LOOP_MAIN + i, &hopper, &r[i]);
    for (int i = 0; i < 3; i++)
        r[i] = (relay){at[(i + 1) % 3], f.s, &t, threads, &n};
    for (int64_t i = 1; i <= HOP_ROUNDS; i++) {
        assert_int_equal(weir_send(f.main, at[1], weir_intern(f.s, "hop"), weir_pack(f.s, "i", (int64_t)HOPS)), WEIR_OK);
        alarm(100);
        fixture_run(&f);
        alarm(0);
        assert_int_equal(atomic_load(&t.handled), i * (HOPS + 1));
    }
    while (atomic_load(&n))
        pthread_join(threads[atomic_fetch_sub(&n, 1) - 1], NULL);
    fixture_close(&f);
}

/* ---- forks ---- */

static void a_forked_child_gives_a_system_with_workers_back(void **state) {
    (void)state;
    fixture f;
    tally t = {0};
    open_with(&f, WEIR_DRIVER_EV, 0, 2);
    weir_address a = spawn_on(&f, WEIR_LOOP_MAIN + 1, &tally_behaviour, &t);
    tell(&f, a, "ask");
    fixture_run(&f);
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        int wrong = weir_system_run(f.s, NULL, NULL, NULL) != WEIR_EINVAL;
        wrong += weir_post(f.s, 0, a, 1, NULL) != WEIR_EINVAL;
        wrong += weir_kill(f.s, a) != WEIR_EINVAL;
        weir_system_free(f.s);
        _exit(wrong);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    tell(&f, a, "ask");
    fixture_run(&f);
    assert_int_equal(atomic_load(&t.handled), 2);
    fixture_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_of_a_program_that_end_as_its_system_is_freed_are_given_back),
        cmocka_unit_test(what_fini_begins_ends_with_its_actor_and_runs_nothing),
        cmocka_unit_test(an_answer_to_a_caller_that_ended_gives_the_calls_record_back),
        cmocka_unit_test(a_call_that_ends_for_want_of_memory_is_not_handled),
        cmocka_unit_test(a_cycle_that_closes_when_a_wait_begins_again_is_named),
        cmocka_unit_test(a_post_from_a_thread_wakes_the_test_driver_whatever_loop_it_is_for),
        cmocka_unit_test(actors_that_are_spawned_while_the_system_stops_are_stopped_too),
        cmocka_unit_test(what_was_meant_for_an_ended_actor_never_reaches_the_next_one_in_its_place),
        cmocka_unit_test(a_chain_of_100000_links_over_loops_ends_as_a_whole),
        cmocka_unit_test(a_body_larger_than_its_mailbox_is_refused_for_good_whatever_the_policy),
        cmocka_unit_test(one_actor_watches_60000_on_all_loops_and_takes_some_back),
        cmocka_unit_test(posts_of_threads_while_a_system_stops_are_all_accounted_for),
        cmocka_unit_test(a_run_on_three_worker_loops_replays_exactly),
        cmocka_unit_test(counters_that_are_read_while_loops_work_stay_sensible),
        cmocka_unit_test(a_run_waits_for_work_that_goes_to_and_fro_between_threads_and_loops),
        cmocka_unit_test(a_forked_child_gives_a_system_with_workers_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
