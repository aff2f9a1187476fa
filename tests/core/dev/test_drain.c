/* test_drain.c: what a closed stream leaves: it lingers for its owner, is listed until it is given back, can be quarantined, and never keeps weir_system_free
 * for ever; owners and streams by the thousand. */
#include "helper_dev.h"

/* ---- what is listed ---- */

typedef struct listed {
    int count[3]; /* by state */
    char name[64];
    weir_address owner;
} listed;

static void list_one(void *data, const weir__stream_info *info) {
    listed *l = data;
    l->count[info->state]++;
    snprintf(l->name, sizeof l->name, "%s", info->name);
    l->owner = info->owner;
}

static listed list_all(weir_system *s) {
    listed l = {{0}, "", 0};
    weir__streams(s, list_one, &l);
    return l;
}

static void states_have_names(void **state) {
    (void)state;
    assert_string_equal(weir__stream_state_name(WEIR__STREAM_OPEN), "open");
    assert_string_equal(weir__stream_state_name(WEIR__STREAM_DRAINING), "draining");
    assert_string_equal(weir__stream_state_name(WEIR__STREAM_QUARANTINED), "quarantined");
}

static void a_closed_stream_lingers_until_its_work_has_ended(void **state) {
    (void)state;
    dev_test t;
    dev_open(&t, 1);
    weir__stream *st = dev_stream(&t, "slow");
    dev_gate g = {0};
    dev_gate_submit(st, &g);
    dev_gate_entered(&g);
    assert_int_equal(weir__lingering(t.s, t.inbox), 0);
    weir__stream_close(st);
    assert_int_equal(weir__lingering(t.s, t.inbox), 1);
    listed l = list_all(t.s);
    assert_int_equal(l.count[WEIR__STREAM_DRAINING], 1);
    assert_string_equal(l.name, "slow");
    assert_true(l.owner == t.inbox);
    weir__when_drained(t.s, t.inbox, weir__notice_new(t.s, t.inbox, t.inbox, t.verb, weir_pack(t.s, "ii", INT64_C(0), INT64_C(7))));
    assert_int_equal(t.count, 0);
    atomic_store(&g.open, true);
    dev_run_until(&t, 1);
    assert_int_equal(t.notice[0].arg, 7);
    assert_int_equal(g.released, 1); /* everything is back when the notice comes */
    assert_int_equal(weir__lingering(t.s, t.inbox), 0);
    l = list_all(t.s);
    assert_int_equal(l.count[0] + l.count[1] + l.count[2], 0);
    dev_close(&t);
}

static void an_idle_stream_that_is_closed_drains_by_itself(void **state) {
    (void)state;
    for (int inline_mode = 0; inline_mode < 2; inline_mode++) {
        dev_test t;
        if (inline_mode)
            dev_open_inline(&t, 1, 1);
        else
            dev_open(&t, 1);
        weir__stream_close(dev_stream(&t, "idle"));
        dev_settle(&t); /* a drain is pending work */
        assert_int_equal(weir__lingering(t.s, t.inbox), 0);
        assert_int_equal(list_all(t.s).count[WEIR__STREAM_DRAINING], 0);
        dev_close(&t);
    }
}

/* ---- quarantine ---- */

static void a_quarantined_stream_is_named_and_no_longer_waited_for(void **state) {
    (void)state;
    dev_test t;
    dev_open(&t, 1);
    weir__stream *st = dev_stream(&t, "stuck"), *other = dev_stream(&t, "other");
    dev_gate g = {0};
    dev_gate_submit(st, &g);
    dev_gate_entered(&g);
    weir__stream_close(st);
    weir__when_drained(t.s, t.inbox, weir__notice_new(t.s, t.inbox, t.inbox, t.verb, weir_pack(t.s, "ii", INT64_C(0), INT64_C(1))));
    weir__quarantine(t.s, t.inbox);
    dev_run_until(&t, 1);
    assert_int_equal(weir__lingering(t.s, t.inbox), 0);
    listed l = list_all(t.s);
    assert_int_equal(l.count[WEIR__STREAM_QUARANTINED], 1);
    assert_int_equal(l.count[WEIR__STREAM_OPEN], 1); /* only what was closed */
    atomic_store(&g.open, true);
    weir__stream_close(other);
    dev_settle(&t);
    l = list_all(t.s);
    assert_int_equal(l.count[WEIR__STREAM_QUARANTINED], 0); /* it ended after all, and is given back like any other */
    assert_int_equal(g.released, 1);
    weir__stream *again = dev_stream(&t, "again"); /* its thread serves the next stream */
    assert_int_equal(list_all(t.s).count[WEIR__STREAM_OPEN], 1);
    weir__stream_close(again);
    dev_close(&t);
}

/* What is left behind outlives the test's frame. */
static dev_test left;
static dev_gate left_gate;

static void a_system_is_freed_though_work_does_not_end(void **state) {
    (void)state;
    int bare = dev_threads();
    dev_open(&left, 2);
    weir__stream *st = dev_stream(&left, "endless"), *fine = dev_stream(&left, "fine");
    dev_gate_submit(st, &left_gate);
    dev_gate_entered(&left_gate);
    dev_notify(&left, fine, 0);
    dev_run_until(&left, 1);
    weir__stream_close(st);
    weir__quarantine(left.s, left.inbox);
    weir_system_free(left.s); /* closes the other one too, and returns */
    assert_int_equal(left_gate.released, 0);
    atomic_store(&left_gate.open, true); /* what the work uses is still there */
    for (int i = 0; i < 5000 && !atomic_load(&left_gate.released); i++)
        dev_nap(2000000);
    assert_int_equal(left_gate.released, 1);
    dev_threads_settle(bare + 1); /* the team's second thread sleeps on */
}

/* ---- G5: owners and streams by the thousand ---- */

typedef struct owner {
    dev_test *t;
    weir__stream *stream;
} owner;

static void on_work(weir_actor *self, const weir_message *m) {
    owner *o = weir_state(self);
    (void)m;
    if (weir_message_from(m) == weir_self(self))
        o->t->count++;
    else
        assert_int_equal(weir__stream_notify(o->stream, weir_self(self), weir_message_verb(m), 0), WEIR_OK);
}

static void owner_fini(weir_system *s, void *state) {
    owner *o = state;
    weir__stream_close(o->stream);
    weir__free(s, o);
}

static const weir_handler owner_handlers[] = {{"note", on_work}, {NULL, NULL}};
static const weir_behaviour owner_behaviour = {.name = "owner", .handlers = owner_handlers, .fini = owner_fini};

static weir_address owner_new(dev_test *t) {
    weir_address a = 0;
    owner *o = weir__alloc(t->s, sizeof *o);
    assert_non_null(o);
    o->t = t;
    assert_int_equal(weir_spawn(t->s, &owner_behaviour, o, NULL, &a, NULL), WEIR_OK);
    assert_int_equal(weir__stream_new(t->d, a, "owned", &o->stream, NULL), WEIR_OK);
    return a;
}

enum { OWNERS = 10000, ALIVE = 20 };

/* Every other one is killed with its work under way. */
static void streams_G5_ten_thousand_owners_leave_no_stream(void **state) {
    (void)state;
    dev_test t;
    dev_open(&t, 1);
    int bare = dev_threads();
    weir_address a[ALIVE];
    uint64_t before = 0;
    for (int round = 0; round < OWNERS / ALIVE; round++) {
        for (int i = 0; i < ALIVE; i++) {
            a[i] = owner_new(&t);
            assert_int_equal(weir_post(t.s, 0, a[i], t.verb, NULL), WEIR_OK);
        }
        t.count = 0;
        dev_run_until(&t, round % 2 ? ALIVE : 1);
        for (int i = 0; i < ALIVE; i++)
            assert_int_equal(weir_kill(t.s, a[i]), WEIR_OK);
        dev_settle(&t);
        for (int i = 0; i < ALIVE; i++)
            assert_int_equal(weir__lingering(t.s, a[i]), 0);
        if (round == 10)
            before = dev_bytes(&t);
    }
    listed l = list_all(t.s);
    assert_int_equal(l.count[0] + l.count[1] + l.count[2], 0);
    assert_true(dev_bytes(&t) <= before + (2 << 20)); /* pools and tables of ids are kept; the streams would be ten times as much */
    dev_threads_settle(bare + WEIR_PARKED_STREAMS);
    dev_close(&t);
}

/* ---- G7: the system is freed with streams open and work under way ---- */

static void open_and_busy(dev_test *t, dev_gate *g, bool inline_mode) {
    if (inline_mode)
        dev_open_inline(t, 2, 3);
    else
        dev_open(t, 2);
    atomic_store(&g->open, true);
    weir__stream *a = dev_stream(t, "a"), *b = dev_stream(t, "b");
    weir__event *e = NULL;
    assert_int_equal(weir__event_new(t->d, &e), WEIR_OK);
    for (int i = 0; i < 50; i++) {
        dev_gate_submit(a, g);
        dev_notify(t, a, i);
        dev_notify(t, b, i);
    }
    assert_int_equal(weir__stream_record(a, e), WEIR_OK);
    assert_int_equal(weir__stream_wait(b, e), WEIR_OK);
    weir__event_unref(e);
}

static void streams_G7_a_system_is_freed_with_streams_open(void **state) {
    (void)state;
    for (int i = 0; i < 20; i++) {
        dev_test t;
        dev_gate g = {0};
        open_and_busy(&t, &g, i % 2);
        weir_system_free(t.s);
        assert_int_equal(g.released, 50);
        assert_int_equal(atomic_load(&t.bytes), 0);
    }
}

typedef struct inner {
    dev_test t;
    dev_gate g;
    bool freed;
} inner;

static void free_other(weir_actor *self, const weir_message *m) {
    inner *in = weir_state(self);
    (void)m;
    weir_system_free(in->t.s);
    in->freed = true;
}

static void streams_G7_a_system_is_freed_inside_a_callback_of_another(void **state) {
    (void)state;
    static const weir_handler handlers[] = {{"note", free_other}, {NULL, NULL}};
    static const weir_behaviour behaviour = {.name = "freer", .handlers = handlers};
    dev_test outer;
    dev_open(&outer, 1);
    inner in = {.freed = false};
    open_and_busy(&in.t, &in.g, false);
    weir_address a;
    assert_int_equal(weir_spawn(outer.s, &behaviour, &in, NULL, &a, NULL), WEIR_OK);
    weir__stream *st = dev_stream(&outer, "st");
    assert_int_equal(weir__stream_notify(st, a, outer.verb, 0), WEIR_OK);
    dev_settle(&outer);
    assert_true(in.freed);
    assert_int_equal(in.g.released, 50);
    assert_int_equal(atomic_load(&in.t.bytes), 0);
    weir__stream_close(st);
    dev_close(&outer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states_have_names),
        cmocka_unit_test(a_closed_stream_lingers_until_its_work_has_ended),
        cmocka_unit_test(an_idle_stream_that_is_closed_drains_by_itself),
        cmocka_unit_test(a_quarantined_stream_is_named_and_no_longer_waited_for),
        cmocka_unit_test(a_system_is_freed_though_work_does_not_end),
        cmocka_unit_test(streams_G5_ten_thousand_owners_leave_no_stream),
        cmocka_unit_test(streams_G7_a_system_is_freed_with_streams_open),
        cmocka_unit_test(streams_G7_a_system_is_freed_inside_a_callback_of_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
