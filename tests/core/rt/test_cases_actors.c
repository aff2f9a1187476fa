/* Cases of the reference folder (cases/actors.md) that no other test shows: serial actors, bounded mailboxes under floods, cycles under pressure, ends in disorder. The other
 * cases stand in test_calls (A1 A3 A5 A9 A27), test_ends (A17 A31 A41 A47), test_hold (A11), test_messages (A15 A43), test_timers (A13). */
#include <pthread.h>
#include <sched.h>

#include "fixture.h"

enum { MS = 1000000 };

/* ---- A7: read, call, write ---- */

typedef struct account {
    int64_t value, seen;
    weir_address clerk;
    bool serial;
    int interleaved;
} account;

static void on_told(weir_actor *self, void *data, const weir_message *reply, const weir_error *error) {
    account *a = weir_state(self);
    (void)data, (void)reply;
    assert_null(error);
    a->interleaved += a->value != a->seen;
    a->value = a->seen + 1;
    if (a->serial)
        weir_unhold(self);
}

/* What it read before the call must still be true after it, if it waits serially. */
static void on_increment(weir_actor *self, const weir_message *m) {
    account *a = weir_state(self);
    (void)m;
    if (a->serial)
        weir_hold(self);
    a->seen = a->value;
    assert_int_equal(weir_call(self, a->clerk, weir_intern(weir_system_of(self), "add"), NULL, 0, on_told, NULL, NULL), WEIR_OK);
}

static void on_add(weir_actor *self, const weir_message *m) {
    if (weir_message_is_call(m))
        weir_reply(self, m, NULL);
}

static const weir_handler account_handlers[] = {{"increment", on_increment}, {NULL, NULL}};
static const weir_behaviour account_behaviour = {.name = "account", .handlers = account_handlers};
static const weir_handler clerk_handlers[] = {{"add", on_add}, {NULL, NULL}};
static const weir_behaviour clerk_behaviour = {.name = "clerk", .handlers = clerk_handlers};

static int64_t increments(bool serial, uint64_t seed) {
    fixture f;
    account a = {.serial = serial};
    fixture_open(&f, WEIR_DRIVER_TEST, seed);
    a.clerk = fixture_spawn(&f, &clerk_behaviour, NULL);
    weir_address to = fixture_spawn(&f, &account_behaviour, &a);
    for (int i = 0; i < 100; i++)
        fixture_send(&f, to, "increment", 0);
    fixture_run(&f);
    assert_int_equal(a.interleaved == 0, serial);
    fixture_close(&f);
    return a.value;
}

static void actors_A7_a_held_actor_sees_no_other_message_between_call_and_reply(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 5; seed++) {
        assert_int_equal(increments(true, seed), 100);
        assert_true(increments(false, seed) < 100); /* without hold the documented re-entrancy */
    }
}

/* ---- A19: a producer that is faster ---- */

typedef struct source {
    weir_address to;
    int64_t made, told_full;
} source;

static void on_produce(weir_actor *self, void *data, uint64_t missed) {
    source *p = data;
    (void)missed;
    for (int i = 0; i < 10; i++)
        p->told_full += weir_send(self, p->to, weir_intern(weir_system_of(self), "item"), NULL) == WEIR_EFULL;
    p->made += 10;
}

typedef struct sink {
    int64_t taken;
} sink;

static void on_unhold(weir_actor *self, void *data, uint64_t missed) {
    (void)data, (void)missed;
    weir_unhold(self);
}

/* One item a millisecond of the virtual clock. */
static void on_item(weir_actor *self, const weir_message *m) {
    (void)m;
    ((sink *)weir_state(self))->taken++;
    weir_hold(self);
    assert_int_equal(weir_timer(self, MS, WEIR_TIMER_ONCE, on_unhold, NULL, NULL), WEIR_OK);
}

static const weir_handler sink_handlers[] = {{"item", on_item}, {NULL, NULL}};
static const weir_behaviour sink_behaviour = {.name = "sink", .handlers = sink_handlers};
static const weir_behaviour source_behaviour = {.name = "source"};

static bool enough(void *data) {
    return ((source *)data)->made >= 100000;
}

static void actors_A19_a_faster_producer_meets_the_default_bound(void **state) {
    (void)state;
    fixture f;
    source p = {0, 0, 0};
    sink k = {0};
    weir_actor_stats s;
    fixture_open(&f, WEIR_DRIVER_TEST, 0);
    p.to = fixture_spawn(&f, &sink_behaviour, &k);
    weir_address a = fixture_spawn(&f, &source_behaviour, &p);
    weir_timer(weir__actor(f.s, a), MS, WEIR_TIMER_RATE, on_produce, &p, NULL);
    assert_int_equal(weir_system_run(f.s, enough, &p, NULL), WEIR_OK);
    assert_int_equal(weir_actor_get_stats(f.s, p.to, &s), WEIR_OK);
    assert_int_equal(s.queued_peak, WEIR_MAILBOX_MESSAGES);
    assert_int_equal(s.refused, p.told_full);
    assert_int_equal(p.made, k.taken + p.told_full + (int64_t)s.queued);
    assert_true(p.told_full > 80000);
    fixture_close(&f);
}

/* ---- A21: a cycle under pressure ---- */

typedef struct end {
    weir_address other;
    int64_t got, full, asked, answered;
} end;

static void on_end_reply(weir_actor *self, void *data, const weir_message *reply, const weir_error *error) {
    (void)self, (void)reply, (void)error;
    ((end *)data)->answered++;
}

/* Two for each one: both mailboxes are full most of the time; calls go on beside. */
static void on_ball(weir_actor *self, const weir_message *m) {
    end *e = weir_state(self);
    e->got++;
    if (weir_message_is_call(m))
        weir_reply(self, m, NULL);
    if (e->got >= 20000)
        return;
    for (int i = 0; i < 2; i++)
        e->full += weir_send(self, e->other, weir_message_verb(m), NULL) == WEIR_EFULL;
    if (e->got % 16 == 0) {
        e->asked++;
        weir_call(self, e->other, weir_message_verb(m), NULL, -1, on_end_reply, e, NULL);
    }
}

static const weir_handler end_handlers[] = {{"ball", on_ball}, {NULL, NULL}};
static const weir_behaviour end_behaviour = {.name = "end", .handlers = end_handlers};

static void actors_A21_a_cycle_under_pressure_goes_on(void **state) {
    (void)state;
    fixture f;
    end e[2] = {{0}, {0}};
    weir_spawn_options o = {.mailbox_messages = 8};
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    assert_int_equal(weir_spawn(f.s, &end_behaviour, &e[0], &o, &e[1].other, NULL), WEIR_OK);
    assert_int_equal(weir_spawn(f.s, &end_behaviour, &e[1], &o, &e[0].other, NULL), WEIR_OK);
    fixture_send(&f, e[0].other, "ball", 0);
    fixture_run(&f);
    for (int i = 0; i < 2; i++) {
        assert_true(e[i].got >= 10000 && e[i].full > 0 && e[i].asked > 0);
        assert_int_equal(e[i].answered, e[i].asked);
    }
    fixture_close(&f);
}

/* ---- A25: the logger stops first ---- */

typedef struct writer {
    weir_address log;
    int64_t refused, written;
} writer;

static void write_some(weir_actor *self, writer *w) {
    for (int i = 0; i < 10; i++) {
        int code = weir_send(self, w->log, weir_intern(weir_system_of(self), "line"), NULL);
        assert_true(code == WEIR_OK || code == WEIR_EFULL || code == WEIR_ENOACTOR);
        w->refused += code != WEIR_OK;
        w->written += code == WEIR_OK;
    }
}

static void on_tick(weir_actor *self, void *data, uint64_t missed) {
    (void)missed;
    write_some(self, data);
}

static void on_last_words(weir_actor *self) {
    write_some(self, weir_state(self));
    weir_exit(self, NULL);
}

static void on_line(weir_actor *self, const weir_message *m) {
    (void)m;
    weir_exit(self, weir_error_new(WEIR_EIO, NULL, NULL, "the disk is full"));
}

static const weir_handler log_handlers[] = {{"line", on_line}, {NULL, NULL}};
static const weir_behaviour log_behaviour = {.name = "log", .handlers = log_handlers};
static const weir_behaviour writer_behaviour = {.name = "writer", .stop = on_last_words};

static bool somebody_wrote(void *data) {
    const writer *w = data;
    return w[0].written + w[0].refused > 0;
}

static void actors_A25_writers_outlive_their_logger(void **state) {
    (void)state;
    fixture f;
    writer w[20];
    weir_spawn_options narrow = {.mailbox_messages = 4};
    weir_address log;
    int64_t written = 0, refused = 0;
    fixture_open(&f, WEIR_DRIVER_TEST, 25);
    assert_int_equal(weir_spawn(f.s, &log_behaviour, NULL, &narrow, &log, NULL), WEIR_OK);
    for (int i = 0; i < 20; i++) {
        w[i] = (writer){log, 0, 0};
        weir_timer(weir__actor(f.s, fixture_spawn(&f, &writer_behaviour, &w[i])), MS, WEIR_TIMER_RATE, on_tick, &w[i], NULL);
    }
    assert_int_equal(weir_system_run(f.s, somebody_wrote, &w[0], NULL), WEIR_OK);
    assert_int_equal(weir_system_stop(f.s, 1000 * MS, NULL), WEIR_OK);
    for (int i = 0; i < 20; i++)
        written += w[i].written, refused += w[i].refused;
    weir_system_stats s = stats_of(f.s);
    assert_int_equal(s.sent, written);
    assert_int_equal(s.handled + s.dead, written);
    assert_true(written > 0 && refused > 0);
    assert_int_equal(s.actors, 1);
    fixture_close(&f);
}

/* ---- A33: of those who wait for one callee, one ends with an error ---- */

typedef struct waiter {
    weir_address callee;
    outcome o;
} waiter;

static void on_wait(weir_actor *self, const weir_message *m) {
    waiter *w = weir_state(self);
    weir_hold(self);
    weir_call(self, w->callee, weir_message_verb(m), NULL, -1, record_outcome, &w->o, NULL);
}

typedef struct queue {
    weir_reply_to waiting[8];
    size_t n;
} queue;

static void on_queued(weir_actor *self, const weir_message *m) {
    queue *q = weir_state(self);
    if (weir_message_is_call(m))
        q->waiting[q->n++] = weir_defer(self, m);
}

static const weir_handler waiter_handlers[] = {{"wait", on_wait}, {NULL, NULL}};
static const weir_behaviour waiter_behaviour = {.name = "waiter", .handlers = waiter_handlers};
static const weir_handler queue_handlers[] = {{"wait", on_queued}, {NULL, NULL}};
static const weir_behaviour queue_behaviour = {.name = "queue", .handlers = queue_handlers};

static void actors_A33_an_ended_waiter_leaves_the_others_in_order(void **state) {
    (void)state;
    fixture f;
    queue q = {.n = 0};
    waiter w[4];
    weir_address a[4];
    memset(w, 0, sizeof w);
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    weir_address callee = fixture_spawn(&f, &queue_behaviour, &q);
    for (int i = 0; i < 4; i++) {
        w[i].callee = callee;
        a[i] = fixture_spawn(&f, &waiter_behaviour, &w[i]);
        fixture_send(&f, a[i], "wait", 0);
        fixture_run(&f);
    }
    assert_int_equal(q.n, 4);
    weir_exit(weir__actor(f.s, a[0]), weir_error_new(WEIR_EIO, NULL, NULL, "raised while it waits"));
    assert_int_equal(weir_kill(f.s, a[2]), WEIR_OK);
    fixture_run(&f);
    weir_actor *self = weir__actor(f.s, callee);
    for (size_t i = 0; i < q.n; i++)
        assert_int_equal(weir_answer(self, q.waiting[i], weir_pack(f.s, "i", (int64_t)i)), i % 2 ? WEIR_OK : WEIR_ENOACTOR);
    fixture_run(&f);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(w[i].o.ended, i % 2);
        assert_int_equal(w[i].o.value, i % 2 ? i : 0);
    }
    fixture_close(&f);
}

/* ---- A45: one slow subscriber ---- */

typedef struct subscriber {
    int64_t got;
} subscriber;

static void on_news(weir_actor *self, const weir_message *m) {
    subscriber *s = weir_state(self);
    assert_int_equal(first_int(m), s->got);
    s->got++;
}

static const weir_handler subscriber_handlers[] = {{"news", on_news}, {NULL, NULL}};
static const weir_behaviour subscriber_behaviour = {.name = "subscriber", .handlers = subscriber_handlers};

/* The slow one takes nothing at all; each item reaches the others before the next one is sent. */
static void actors_A45_a_slow_subscriber_delays_nobody(void **state) {
    (void)state;
    fixture f;
    subscriber s[5];
    weir_address a[5];
    weir_spawn_options o = {.mailbox_messages = 10};
    memset(s, 0, sizeof s);
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    weir_verb news = weir_intern(f.s, "news");
    for (int i = 0; i < 5; i++)
        assert_int_equal(weir_spawn(f.s, &subscriber_behaviour, &s[i], &o, &a[i], NULL), WEIR_OK);
    weir_hold(weir__actor(f.s, a[2]));
    for (int64_t n = 0; n < 1000; n++) {
        weir_body *b = weir_pack(f.s, "i", n);
        for (int i = 0; i < 5; i++)
            assert_int_equal(weir_send(f.main, a[i], news, weir_body_ref(b)), i == 2 && n >= 10 ? WEIR_EFULL : WEIR_OK);
        weir_body_free(b);
        fixture_run(&f);
        for (int i = 0; i < 5; i++)
            assert_int_equal(s[i].got, i == 2 ? 0 : n + 1);
    }
    weir_unhold(weir__actor(f.s, a[2]));
    fixture_run(&f);
    assert_int_equal(s[2].got, 10);
    fixture_close(&f);
}

/* ---- A23: the end of a run while messages are on their way between loops ---- */

enum { LOOPS = 3, IN_FLIGHT = 100000, HOPS = 1 };

typedef struct stage {
    weir_address next;
    _Atomic int64_t handled;
} stage;

/* Goes on to the next loop; the last hop keeps it. Room is there for all. */
static void on_parcel(weir_actor *self, const weir_message *m) {
    stage *s = weir_state(self);
    int64_t left = first_int(m);
    atomic_fetch_add(&s->handled, 1);
    if (left > 0)
        assert_int_equal(weir_send(self, s->next, weir_message_verb(m), weir_pack(weir_system_of(self), "i", left - 1)), WEIR_OK);
}

static const weir_handler stage_handlers[] = {{"parcel", on_parcel}, {NULL, NULL}};
static const weir_behaviour stage_behaviour = {.name = "stage", .handlers = stage_handlers};

static int64_t parcels(enum weir_driver driver, uint64_t seed) {
    fixture f = {.s = NULL};
    stage st[LOOPS];
    weir_address a[LOOPS];
    weir_system_options o = {.driver = driver, .seed = seed, .workers = LOOPS - 1, .alloc = counter_alloc, .alloc_data = &f.memory};
    int64_t handled = 0;
    memset(st, 0, sizeof st);
    assert_int_equal(weir_system_new(&o, &f.s, NULL), WEIR_OK);
    f.main = weir_main_actor(f.s);
    for (int i = 0; i < LOOPS; i++) {
        weir_spawn_options wide = {.loop = WEIR_LOOP_MAIN + i, .mailbox_messages = (HOPS + 1) * IN_FLIGHT};
        assert_int_equal(weir_spawn(f.s, &stage_behaviour, &st[i], &wide, &a[i], NULL), WEIR_OK);
    }
    for (int i = 0; i < LOOPS; i++)
        st[i].next = a[(i + 1) % LOOPS];
    for (int i = 0; i < IN_FLIGHT; i++)
        fixture_send(&f, a[i % LOOPS], "parcel", HOPS);
    fixture_run(&f);
    for (int i = 0; i < LOOPS; i++)
        handled += atomic_load(&st[i].handled);
    weir_system_stats s = stats_of(f.s);
    assert_int_equal(s.sent, handled);
    assert_int_equal(s.handled, handled);
    fixture_close(&f);
    return handled;
}

static void actors_A23_a_run_ends_only_when_no_message_is_under_way(void **state) {
    (void)state;
    for (int i = 0; i < 3; i++)
        assert_int_equal(parcels(WEIR_DRIVER_EV, 0), (int64_t)IN_FLIGHT * (HOPS + 1));
    assert_int_equal(parcels(WEIR_DRIVER_TEST, 23), (int64_t)IN_FLIGHT * (HOPS + 1));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(actors_A7_a_held_actor_sees_no_other_message_between_call_and_reply),
        cmocka_unit_test(actors_A19_a_faster_producer_meets_the_default_bound),
        cmocka_unit_test(actors_A21_a_cycle_under_pressure_goes_on),
        cmocka_unit_test(actors_A23_a_run_ends_only_when_no_message_is_under_way),
        cmocka_unit_test(actors_A25_writers_outlive_their_logger),
        cmocka_unit_test(actors_A33_an_ended_waiter_leaves_the_others_in_order),
        cmocka_unit_test(actors_A45_a_slow_subscriber_delays_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
