/* test_ahead.c: the host is at most WEIR_AHEAD units before the device, so a cancel takes effect within WEIR_AHEAD + 1 units; and one slow reader does not hold
 * the others up. Seen by a policy that counts the leases whose work is not done. */
#include <unistd.h>

#include "stories_fixture.h"
#include "verbs_fixture.h"

enum { MOST_UNITS = 64, ROWS = 24, TILE = 8, CANCELLED = 5 };

typedef struct counting {
    weir__buffer *blobs[MOST_UNITS + 1];
    int64_t units;
    weir__event *events[MOST_UNITS]; /* of the units handed back in this pass */
    int64_t acquired, most;          /* leases in this pass; most of them whose work was not done, the new one included */
    int64_t cancel_at;               /* lease at which the pass is cancelled, -1: never */
    weir_address stepper, caller;
} counting;

static int64_t outstanding(const counting *p) {
    int64_t n = p->acquired;
    for (int64_t u = 0; u < p->acquired; u++)
        n -= p->events[u] && weir__event_status(p->events[u]) != WEIR_EBUSY;
    return n;
}

static void forget_pass(counting *p) {
    for (int u = 0; u < MOST_UNITS; u++) {
        weir__event_unref(p->events[u]);
        p->events[u] = NULL;
    }
    p->acquired = p->most = 0;
}

static weir_handle blob(counting *p, int64_t unit) {
    return (weir_handle){&weir__buffer_handle, weir__buffer_ref(p->blobs[unit])};
}

static void on_begin(weir_actor *self, const weir_message *m) {
    counting *p = weir_state(self);
    forget_pass(p);
    weir_reply(self, m, weir_pack(weir_system_of(self), "i[[i[h]]]", INT64_C(1), p->units, blob(p, p->units)));
}

static void on_acquire(weir_actor *self, const weir_message *m) {
    counting *p = weir_state(self);
    weir_cursor c = weir_read(weir_message_body(m), NULL);
    int64_t unit = -1;
    weir_system *s = weir_system_of(self);
    assert_true(weir_read_int(&c, &unit));
    assert_int_equal(unit, p->acquired);
    p->acquired++;
    if (outstanding(p) > p->most)
        p->most = outstanding(p);
    if (unit == p->cancel_at)
        assert_int_equal(weir_post(s, p->caller, p->stepper, weir_intern(s, "cancel"), weir_pack(s, "i", (int64_t)CANCELLED)), WEIR_OK);
    weir_reply(self, m, weir_pack(s, "h", blob(p, unit)));
}

static void on_complete(weir_actor *self, const weir_message *m) {
    counting *p = weir_state(self);
    weir_cursor c = weir_read(weir_message_body(m), NULL);
    int64_t unit = -1;
    void *event = NULL;
    assert_true(weir_read_int(&c, &unit) && weir_read_handle(&c, "event", &event));
    p->events[unit] = weir__event_ref(event);
    weir_reply(self, m, NULL);
}

static void on_end(weir_actor *self, const weir_message *m) {
    weir_reply(self, m, NULL);
}

static const weir_handler handlers[] = {{"begin", on_begin}, {"acquire", on_acquire}, {"complete", on_complete},
                                        {"finish", on_end},  {"abort", on_end},       {NULL, NULL}};
static const weir_behaviour counting_behaviour = {.name = "counting", .handlers = handlers};

typedef struct bench {
    weir_system *system;
    weir__device *device;
    weir__checkpoint *checkpoint;
    weir_address residency, policy, experts, stepper;
    uint64_t sequence;
    counting counting;
} bench;

static void *handle_of(const answer *a, const char *type) {
    void *object = NULL;
    weir_cursor c = weir_read(a->body, NULL);
    if (a->code)
        fail_msg("%s", a->error);
    assert_true(weir_read_handle(&c, type, &object));
    return object;
}

static void bench_open(bench *b, enum weir_driver driver, uint64_t seed) {
    *b = (bench){.system = new_system(driver, seed), .counting = {.cancel_at = -1}};
    weir_system *s = b->system;
    counting *p = &b->counting;
    assert_int_equal(weir__device_open(s, "cpu", 1, &b->device, NULL), WEIR_OK);
    assert_int_equal(weir__residency_spawn(s, b->device, NULL, &b->residency, NULL), WEIR_OK);
    answer a = ask(s, b->residency, "open", weir_pack(s, "s", stories()));
    b->checkpoint = weir__checkpoint_ref(handle_of(&a, "checkpoint"));
    weir_body_free(a.body);
    p->units = (int64_t)weir__checkpoint_graph(b->checkpoint)->units;
    assert_true(p->units < MOST_UNITS);
    for (int64_t u = 0; u <= p->units; u++) {
        a = ask(s, b->residency, "fetch", weir_pack(s, "i", u));
        p->blobs[u] = weir__buffer_ref(handle_of(&a, "buffer"));
        weir_body_free(a.body);
    }
    assert_int_equal(weir_spawn(s, &counting_behaviour, p, NULL, &b->policy, NULL), WEIR_OK);
    assert_int_equal(weir__experts_spawn(s, b->device, &b->experts, NULL), WEIR_OK);
    weir__stepper_options o = {{.tile = TILE, .context = 64}, b->policy, b->experts};
    assert_int_equal(weir__stepper_spawn(s, b->device, b->checkpoint, &o, &b->stepper, NULL), WEIR_OK);
    a = ask(s, b->stepper, "prepare", NULL);
    assert_int_equal(a.code, 0);
    p->stepper = b->stepper;
    p->caller = weir_self(weir_main_actor(s));
    b->sequence = open_sequence(s, b->stepper);
}

static void bench_close(bench *b) {
    forget_pass(&b->counting);
    weir__checkpoint_unref(b->checkpoint);
    for (int64_t u = 0; u <= b->counting.units; u++)
        weir__buffer_unref(b->counting.blobs[u]);
    weir_system_free(b->system);
}

/* A prefill of several tiles with a tag; its answer comes into *a. */
static void begin_pass(bench *b, answer *a) {
    static const int32_t tokens[ROWS] = {1, 20, 30, 40, 50, 60, 70};
    weir_system *s = b->system;
    weir_body *body =
        weir_pack(s, "{sis[[uib]]}", "tag", (int64_t)CANCELLED, "runs", b->sequence, INT64_C(0), (const void *)tokens, sizeof tokens);
    *a = (answer){.code = 0};
    assert_non_null(body);
    assert_int_equal(weir_call(weir_main_actor(s), b->stepper, weir_intern(s, "pass"), body, -1, on_answer, a, NULL), WEIR_OK);
}

static void need_units(const bench *b) {
    if (b->counting.units < 5)
        weir_test_skip("stories260K, a model of five layers, is not there");
}

/* ---- how far ahead ---- */

static void the_host_is_at_most_WEIR_AHEAD_units_before_the_device(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        bench b;
        answer a;
        bench_open(&b, WEIR_DRIVER_TEST, seed); /* work is done when no actor has anything to do: as far ahead as can be */
        need_units(&b);
        begin_pass(&b, &a);
        assert_int_equal(weir_system_run(b.system, answer_ended, &a, NULL), WEIR_OK);
        assert_int_equal(a.code, 0);
        assert_int_equal(b.counting.acquired, b.counting.units);
        assert_int_equal(b.counting.most, WEIR_AHEAD + 1); /* the one that runs, and those before which the host is */
        weir_body_free(a.body);
        bench_close(&b);
    }
}

typedef struct until {
    const int64_t *value;
    int64_t wanted;
} until;
static bool has_come(void *data) {
    until *u = data;
    return *u->value >= u->wanted;
}

static void tick(weir_actor *self, void *data, uint64_t missed) {
    (void)self, (void)missed;
    ++*(int64_t *)data;
}

/* Every actor has had its turn many times. */
static void run_a_while(weir_system *s) {
    int64_t ticks = 0;
    uint64_t id;
    until u = {&ticks, 20};
    assert_int_equal(weir_timer(weir_main_actor(s), 1000000, WEIR_TIMER_RATE, tick, &ticks, &id), WEIR_OK);
    assert_int_equal(weir_system_run(s, has_come, &u, NULL), WEIR_OK);
    weir_timer_cancel(weir_main_actor(s), id);
}

static void a_device_that_stands_still_holds_the_host(void **state) {
    (void)state;
    bench b;
    answer a;
    gate g = {0};
    bench_open(&b, WEIR_DRIVER_EV, 0);
    need_units(&b);
    gate_close(&g, stepper_stream(b.system, b.stepper));
    begin_pass(&b, &a);
    until u = {&b.counting.acquired, WEIR_AHEAD + 1};
    assert_int_equal(weir_system_run(b.system, has_come, &u, NULL), WEIR_OK);
    run_a_while(b.system);
    assert_int_equal(b.counting.acquired, WEIR_AHEAD + 1);
    g.open = true;
    assert_int_equal(weir_system_run(b.system, answer_ended, &a, NULL), WEIR_OK);
    assert_int_equal(a.code, 0);
    assert_true(b.counting.most <= WEIR_AHEAD + 1);
    weir_body_free(a.body);
    bench_close(&b);
}

/* ---- cancel ---- */

static int64_t units_run(const counting *p) {
    int64_t n = 0;
    for (int64_t u = 0; u < p->acquired; u++)
        n += p->events[u] && weir__event_status(p->events[u]) == WEIR_OK;
    return n;
}

static void library_J3_a_cancel_takes_effect_between_units(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++)
        for (int64_t at = 0; at < 3; at++) {
            bench b;
            answer a;
            bench_open(&b, seed % 4 ? WEIR_DRIVER_TEST : WEIR_DRIVER_EV, seed);
            need_units(&b);
            b.counting.cancel_at = at;
            begin_pass(&b, &a);
            assert_int_equal(weir_system_run(b.system, answer_ended, &a, NULL), WEIR_OK);
            assert_int_equal(a.code, WEIR_ECANCELLED);
            assert_true(b.counting.acquired - (at + 1) <= WEIR_AHEAD + 1); /* asked for after the cancel */
            assert_true(units_run(&b.counting) <= at + 1 + WEIR_AHEAD);
            b.counting.cancel_at = -1;
            begin_pass(&b, &a);
            assert_int_equal(weir_system_run(b.system, answer_ended, &a, NULL), WEIR_OK);
            assert_int_equal(a.code, 0);
            weir_body_free(a.body);
            bench_close(&b);
        }
}

/* What was before the device when the cancel came is skipped. */
static void library_J3_what_the_device_has_not_begun_does_not_run(void **state) {
    (void)state;
    bench b;
    answer a;
    gate g = {0};
    bench_open(&b, WEIR_DRIVER_EV, 0);
    need_units(&b);
    gate_close(&g, stepper_stream(b.system, b.stepper));
    begin_pass(&b, &a);
    until u = {&b.counting.acquired, WEIR_AHEAD + 1};
    assert_int_equal(weir_system_run(b.system, has_come, &u, NULL), WEIR_OK);
    assert_int_equal(ask(b.system, b.stepper, "cancel", weir_pack(b.system, "i", (int64_t)CANCELLED)).code, 0);
    g.open = true;
    assert_int_equal(weir_system_run(b.system, answer_ended, &a, NULL), WEIR_OK);
    assert_int_equal(a.code, WEIR_ECANCELLED);
    assert_int_equal(units_run(&b.counting), 0);
    assert_int_equal(b.counting.acquired, WEIR_AHEAD + 1);
    bench_close(&b);
}

/* ---- readers ---- */

enum { READERS = 4 };

static void actors_A45_a_slow_reader_of_a_generation_does_not_delay_the_others(void **state) {
    (void)state;
    weir_system *s = new_system(WEIR_DRIVER_TEST, 3);
    members m = load_members(s, stories(), 3, 10);
    static char right[1 << 16], text[READERS][1 << 16];
    uint64_t id[READERS];
    int code;
    bool ended;
    assert_int_equal(whole_text(s, m.generator, 60, right), 0);
    for (int i = 0; i < READERS; i++) {
        id[i] = begin_text(s, m.generator, 60, &code);
        assert_int_equal(code, 0);
        text[i][0] = 0;
    }
    for (int i = 1; i < READERS; i++) { /* the first one is not read */
        assert_int_equal(read_text(s, m.generator, id[i], text[i], 1 << 15, &ended), 0);
        assert_true(ended);
        assert_string_equal(text[i], right);
    }
    assert_int_equal(read_text(s, m.generator, id[0], text[0], 1 << 15, &ended), 0);
    assert_string_equal(text[0], right);
    weir_system_free(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_host_is_at_most_WEIR_AHEAD_units_before_the_device),
        cmocka_unit_test(a_device_that_stands_still_holds_the_host),
        cmocka_unit_test(library_J3_a_cancel_takes_effect_between_units),
        cmocka_unit_test(library_J3_what_the_device_has_not_begun_does_not_run),
        cmocka_unit_test(actors_A45_a_slow_reader_of_a_generation_does_not_delay_the_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
