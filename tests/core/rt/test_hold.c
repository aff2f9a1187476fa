/* Held actors: what they get and what waits; cycles of calls; the main actor. */
#include "fixture.h"

enum { MS = 1000000 };

typedef struct node {
    weir_address to; /* whom "ask" calls */
    char log[128];
    outcome o;
    bool hold_first, asked;
} node;

static void note(node *n, const char *what) {
    strncat(n->log, what, sizeof n->log - strlen(n->log) - 1);
}

static void on_reply(weir_actor *self, void *data, const weir_message *reply, const weir_error *error) {
    node *n = weir_state(self);
    note(n, error ? "E" : "R");
    record_outcome(self, data, reply, error);
    weir_unhold(self);
}

/* Calls the next node and waits serially; the call that is being handled is answered only afterwards (never, here). */
static void on_ask(weir_actor *self, const weir_message *m) {
    node *n = weir_state(self);
    note(n, "a");
    if (weir_message_is_call(m))
        weir_defer(self, m);
    if (n->asked)
        return;
    n->asked = true;
    if (n->hold_first)
        weir_hold(self);
    weir_call(self, n->to, weir_intern(weir_system_of(self), "ask"), NULL, -1, on_reply, &n->o, NULL);
    if (!n->hold_first)
        weir_hold(self);
}

static void on_mail(weir_actor *self, const weir_message *m) {
    note(weir_state(self), "m");
    if (weir_message_is_call(m))
        weir_reply(self, m, NULL);
}

static void on_tick(weir_actor *self, void *data, uint64_t missed) {
    (void)data, (void)missed;
    note(weir_state(self), "t");
}

static void on_down(weir_actor *self, weir_address who, const weir_error *why) {
    (void)who, (void)why;
    note(weir_state(self), "d");
}

static const weir_handler handlers[] = {{"ask", on_ask}, {"mail", on_mail}, {NULL, NULL}};
static const weir_behaviour behaviour = {.name = "node", .handlers = handlers, .down = on_down};

static weir_address spawn(fixture *f, const char *name, node *n) {
    weir_address a;
    weir_spawn_options o = {.name = name};
    assert_int_equal(weir_spawn(f->s, &behaviour, n, &o, &a, NULL), WEIR_OK);
    return a;
}

static void a_held_actor_gets_replies_and_timers_out_of_turn(void **state) {
    (void)state;
    fixture f;
    node a = {0}, b = {0};
    fixture_open(&f, WEIR_DRIVER_TEST, 1);
    weir_address at = spawn(&f, "a", &a), bt = spawn(&f, "b", &b), gone = spawn(&f, "gone", &b);
    weir_actor *self = weir__actor(f.s, at);
    weir_monitor(self, gone);
    weir_hold(self);
    weir_hold(self);
    for (int i = 0; i < 3; i++)
        fixture_send(&f, at, "mail", i);
    weir_kill(f.s, gone);
    weir_stop(f.s, at);
    weir_call(self, bt, weir_intern(f.s, "mail"), NULL, 0, on_reply, &a.o, NULL);
    fixture_run(&f);
    assert_string_equal(a.log, "R");
    weir_timer(self, MS, WEIR_TIMER_ONCE, on_tick, NULL, NULL);
    fixture_run(&f);
    assert_string_equal(a.log, "Rt");
    weir_unhold(self);
    fixture_run(&f);
    assert_string_equal(a.log, "Rtmmmd");
    assert_int_equal(stats_of(f.s).actors, 2);
    fixture_close(&f);
}

static void kill_reaches_a_held_actor(void **state) {
    (void)state;
    fixture f;
    node a = {0};
    outcome o = {0};
    fixture_open(&f, WEIR_DRIVER_TEST, 1);
    weir_address at = spawn(&f, "a", &a);
    weir_hold(weir__actor(f.s, at));
    fixture_call(&f, at, "mail", 0, -1, &o);
    weir_kill(f.s, at);
    fixture_run(&f);
    assert_int_equal(o.code, WEIR_EKILLED);
    assert_string_equal(a.log, "");
    fixture_close(&f);
}

static void note_reply(weir_actor *self, void *data, const weir_message *reply, const weir_error *error) {
    (void)data, (void)reply;
    note(weir_state(self), error ? "E" : "R");
}

/* The call is refused at once; its end stands between the two messages. */
static void an_end_of_a_call_keeps_its_place_among_mail(void **state) {
    (void)state;
    fixture f;
    node a = {0};
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    weir_address at = spawn(&f, "a", &a);
    fixture_send(&f, at, "mail", 0);
    weir_call(weir__actor(f.s, at), UINT64_C(12345), weir_intern(f.s, "mail"), NULL, 0, note_reply, NULL, NULL);
    fixture_send(&f, at, "mail", 0);
    fixture_run(&f);
    assert_string_equal(a.log, "mEm");
    fixture_close(&f);
}

/* An actor that asks itself and waits; a circle of two; of three: the error names the circle, whoever closes it. */
static void circle(int size, bool hold_first, const char *wanted) {
    fixture f;
    node n[3];
    weir_address a[3];
    static const char *const names[] = {"a", "b", "c"};
    memset(n, 0, sizeof n);
    fixture_open(&f, WEIR_DRIVER_TEST, 0);
    for (int i = 0; i < size; i++) {
        n[i].hold_first = hold_first;
        a[i] = spawn(&f, names[i], &n[i]);
    }
    for (int i = 0; i < size; i++)
        n[i].to = a[(i + 1) % size];
    fixture_send(&f, a[0], "ask", 0);
    fixture_run(&f);
    assert_int_equal(n[size - 1].o.ended, 1);
    assert_int_equal(n[size - 1].o.code, WEIR_ECYCLE);
    assert_non_null(strstr(n[size - 1].o.text, wanted));
    for (int i = 0; i < size - 1; i++)
        assert_int_equal(n[i].o.ended, 0);
    fixture_close(&f);
}

static void actors_A11(void **state) {
    (void)state;
    for (int hold_first = 0; hold_first < 2; hold_first++) {
        circle(1, hold_first, "a -> a");
        circle(2, hold_first, "b -> a -> b");
        circle(3, hold_first, "c -> a -> b -> c");
    }
}

/* Not held, an actor may call itself: the call is mail like any other. */
static void a_self_call_works_when_not_held(void **state) {
    (void)state;
    fixture f;
    node a = {0};
    fixture_open(&f, WEIR_DRIVER_TEST, 0);
    weir_address at = spawn(&f, "a", &a);
    weir_call(weir__actor(f.s, at), at, weir_intern(f.s, "mail"), NULL, 0, record_outcome, &a.o, NULL);
    fixture_run(&f);
    assert_int_equal(a.o.code, WEIR_OK);
    assert_int_equal(a.o.ended, 1);
    fixture_close(&f);
}

/* Waiting for the same actor twice, or along two ways, is no circle. */
static void a_diamond_is_no_cycle(void **state) {
    (void)state;
    fixture f;
    node n[4];
    weir_address a[4];
    static const char *const names[] = {"a", "b", "c", "d"};
    memset(n, 0, sizeof n);
    fixture_open(&f, WEIR_DRIVER_TEST, 0);
    for (int i = 0; i < 4; i++)
        a[i] = spawn(&f, names[i], &n[i]);
    weir_verb mail = weir_intern(f.s, "mail");
    weir_actor *d = weir__actor(f.s, a[3]);
    weir_hold(d); /* keeps the calls open */
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 2; k++) {
            weir_hold(weir__actor(f.s, a[i]));
            weir_call(weir__actor(f.s, a[i]), i ? a[3] : a[1 + k], mail, NULL, -1, on_reply, &n[i].o, NULL);
        }
    weir_unhold(d);
    fixture_run(&f);
    for (int i = 0; i < 3; i++)
        assert_true(n[i].o.ended == 2 && n[i].o.code == WEIR_OK);
    fixture_close(&f);
}

/* 2,000 actors in one ring of calls: found without recursion, and the text stays bounded. */
static void a_long_cycle_is_found(void **state) {
    (void)state;
    enum { N = 2000 };
    fixture f;
    static node n[N];
    static weir_address a[N];
    memset(n, 0, sizeof n);
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    for (int i = 0; i < N; i++)
        a[i] = spawn(&f, "link", &n[i]);
    for (int i = 0; i < N; i++)
        n[i].to = a[(i + 1) % N];
    fixture_send(&f, a[0], "ask", 0);
    fixture_run(&f);
    assert_int_equal(n[N - 1].o.code, WEIR_ECYCLE);
    assert_true(strlen(n[N - 1].o.text) < 1000);
    fixture_close(&f);
}

static void mail_of_the_main_actor_waits_until_it_is_unheld(void **state) {
    (void)state;
    fixture f;
    node n = {0};
    outcome o = {0};
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    weir_address a = spawn(&f, "a", &n);
    weir_call(weir__actor(f.s, a), weir_self(f.main), weir_intern(f.s, "hello"), NULL, -1, record_outcome, &o, NULL);
    fixture_run(&f);
    assert_int_equal(o.ended, 0);
    assert_int_equal(stats_of(f.s).queued, 1);
    weir_unhold(f.main);
    fixture_run(&f);
    weir_hold(f.main);
    assert_int_equal(o.code, WEIR_EVERB);
    fixture_close(&f);
}

static void the_mailbox_of_the_main_actor_is_bounded(void **state) {
    (void)state;
    fixture f;
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    weir_verb v = weir_intern(f.s, "x");
    for (int i = 0; i < WEIR_MAILBOX_MESSAGES; i++)
        assert_int_equal(weir_send(f.main, weir_self(f.main), v, NULL), WEIR_OK);
    assert_int_equal(weir_send(f.main, weir_self(f.main), v, NULL), WEIR_EFULL);
    fixture_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_held_actor_gets_replies_and_timers_out_of_turn),
        cmocka_unit_test(kill_reaches_a_held_actor),
        cmocka_unit_test(an_end_of_a_call_keeps_its_place_among_mail),
        cmocka_unit_test(actors_A11),
        cmocka_unit_test(a_self_call_works_when_not_held),
        cmocka_unit_test(a_diamond_is_no_cycle),
        cmocka_unit_test(a_long_cycle_is_found),
        cmocka_unit_test(mail_of_the_main_actor_waits_until_it_is_unheld),
        cmocka_unit_test(the_mailbox_of_the_main_actor_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
