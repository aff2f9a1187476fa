/* Calls: each ends exactly once: by a reply, an error, a deadline or the end of either side. */
#include "fixture.h"

enum { MS = 1000000 };

typedef struct server {
    weir_reply_to kept[8];
    int n_kept, second;
    weir_actor *self;
} server;

static void on_add(weir_actor *self, const weir_message *m) {
    weir_reply(self, m, weir_pack(weir_system_of(self), "i", first_int(m) + 1));
}

static void on_refuse(weir_actor *self, const weir_message *m) {
    weir_error *cause = weir_error_new(WEIR_ENOENT, NULL, NULL, "no file \"x\"");
    weir_reply_error(self, m, weir_error_new(WEIR_EFORMAT, NULL, cause, "cannot load"));
}

static void on_forget(weir_actor *self, const weir_message *m) {
    (void)self, (void)m;
}

static void on_keep(weir_actor *self, const weir_message *m) {
    server *k = weir_state(self);
    k->self = self;
    k->kept[k->n_kept++] = weir_defer(self, m);
}

static void on_twice(weir_actor *self, const weir_message *m) {
    server *k = weir_state(self);
    weir_reply(self, m, weir_pack(weir_system_of(self), "i", INT64_C(1)));
    k->second = weir_reply(self, m, weir_pack(weir_system_of(self), "i", INT64_C(2)));
}

static void on_leave(weir_actor *self, const weir_message *m) {
    (void)m;
    weir_exit(self, weir_error_new(WEIR_EIO, NULL, NULL, "the disk is gone"));
}

static void on_close(weir_actor *self, const weir_message *m) {
    (void)m;
    weir_exit(self, NULL);
}

static void on_suicide(weir_actor *self, const weir_message *m) {
    (void)m;
    assert_int_equal(weir_kill(weir_system_of(self), weir_self(self)), WEIR_OK);
}

/* Releases what was kept, after 10 ms. */
static void release(weir_actor *self, void *data, uint64_t missed) {
    server *k = data;
    (void)missed;
    for (int i = 0; i < k->n_kept; i++)
        assert_int_equal(weir_answer(self, k->kept[i], weir_pack(weir_system_of(self), "i", (int64_t)i)), WEIR_OK);
    k->n_kept = 0;
}

static void on_later(weir_actor *self, const weir_message *m) {
    on_keep(self, m);
    weir_timer(self, 10 * MS, WEIR_TIMER_ONCE, release, weir_state(self), NULL);
}

static const weir_handler handlers[] = {{"add", on_add},     {"refuse", on_refuse}, {"forget", on_forget}, {"keep", on_keep},
                                        {"twice", on_twice}, {"leave", on_leave},   {"close", on_close},   {"suicide", on_suicide},
                                        {"later", on_later}, {NULL, NULL}};
static const weir_behaviour behaviour = {.name = "server", .handlers = handlers};

static void open_with_server(fixture *f, enum weir_driver driver, server *k, weir_address *a) {
    memset(k, 0, sizeof *k);
    fixture_open(f, driver, 1);
    *a = fixture_spawn(f, &behaviour, k);
}

static void a_call_ends_with_the_reply(void **state) {
    (void)state;
    fixture f;
    server k;
    weir_address a;
    outcome o = {0};
    open_with_server(&f, WEIR_DRIVER_EV, &k, &a);
    fixture_call(&f, a, "add", 41, 0, &o);
    assert_int_equal(o.ended, 0);
    fixture_run(&f);
    assert_int_equal(o.ended, 1);
    assert_int_equal(o.value, 42);
    weir_system_stats s = stats_of(f.s);
    assert_int_equal(s.calls, 1);
    assert_int_equal(s.calls_ended, 1);
    fixture_close(&f);
}

static void an_error_reply_names_the_actor_and_its_cause(void **state) {
    (void)state;
    fixture f;
    server k;
    weir_address a;
    outcome o = {0};
    open_with_server(&f, WEIR_DRIVER_EV, &k, &a);
    fixture_call(&f, a, "refuse", 0, 0, &o);
    fixture_run(&f);
    assert_int_equal(o.code, WEIR_EFORMAT);
    assert_string_equal(o.text, "cannot load");
    assert_string_equal(o.actor, "server");
    assert_string_equal(o.cause, "no file \"x\"");
    fixture_close(&f);
}

static void an_unknown_verb_is_an_error(void **state) {
    (void)state;
    fixture f;
    server k;
    weir_address a;
    outcome o = {0};
    open_with_server(&f, WEIR_DRIVER_EV, &k, &a);
    fixture_call(&f, a, "dance", 0, 0, &o);
    fixture_run(&f);
    assert_int_equal(o.code, WEIR_EVERB);
    assert_non_null(strstr(o.text, "dance"));
    assert_string_equal(o.actor, "server");
    fixture_close(&f);
}

/* A handler that forgets to reply. */
static void actors_A5(void **state) {
    (void)state;
    fixture f;
    server k;
    weir_address a;
    outcome o = {0};
    open_with_server(&f, WEIR_DRIVER_EV, &k, &a);
    fixture_call(&f, a, "forget", 0, -1, &o);
    fixture_run(&f);
    assert_int_equal(o.ended, 1);
    assert_int_equal(o.code, WEIR_ENOREPLY);
    assert_non_null(strstr(o.text, "forget"));
    fixture_close(&f);
}

static void a_second_answer_is_an_error(void **state) {
    (void)state;
    fixture f;
    server k;
    weir_address a;
    outcome o = {0};
    open_with_server(&f, WEIR_DRIVER_EV, &k, &a);
    fixture_call(&f, a, "twice", 0, 0, &o);
    fixture_run(&f);
    assert_int_equal(o.value, 1);
    assert_int_equal(o.ended, 1);
    assert_int_equal(k.second, WEIR_EINVAL);
    fixture_close(&f);
}

static void a_deferred_call_is_answered_later(void **state) {
    (void)state;
    fixture f;
    server k;
    weir_address a;
    outcome o = {0};
    open_with_server(&f, WEIR_DRIVER_TEST, &k, &a);
    fixture_call(&f, a, "later", 0, 0, &o);
    fixture_run(&f);
    assert_int_equal(o.ended, 1);
    assert_int_equal(o.value, 0);
    assert_int_equal(weir_now(f.s), 10 * MS);
    fixture_close(&f);
}

/* A deadline of 2 ms, the reply after 10: dropped and counted, nothing in the mailbox. */
static void actors_A9(void **state) {
    (void)state;
    fixture f;
    server k;
    weir_address a;
    outcome o = {0};
    open_with_server(&f, WEIR_DRIVER_TEST, &k, &a);
    fixture_call(&f, a, "later", 0, 2 * MS, &o);
    fixture_run(&f);
    assert_int_equal(o.ended, 1);
    assert_int_equal(o.code, WEIR_ETIMEOUT);
    assert_string_equal(o.actor, "server");
    weir_system_stats s = stats_of(f.s);
    assert_int_equal(s.late_replies, 1);
    assert_int_equal(s.queued, 0);
    assert_int_equal(s.timers, 0);
    fixture_close(&f);
}

/* send "close", then call: the call is behind what ends the actor. */
static void actors_A1(void **state) {
    (void)state;
    fixture f;
    server k;
    weir_address a;
    outcome o = {0};
    open_with_server(&f, WEIR_DRIVER_EV, &k, &a);
    fixture_send(&f, a, "close", 0);
    fixture_call(&f, a, "add", 1, -1, &o);
    fixture_run(&f);
    assert_int_equal(o.ended, 1);
    assert_int_equal(o.code, WEIR_EEXITED);
    assert_string_equal(o.actor, "server");
    fixture_close(&f);
}

/* A flood, the wish to end, a call: what is drained at the end answers with an error. */
static void actors_A3(void **state) {
    (void)state;
    fixture f;
    server k = {0};
    weir_address a;
    outcome o[100];
    weir_spawn_options wide = {.mailbox_messages = 200000};
    memset(o, 0, sizeof o);
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    assert_int_equal(weir_spawn(f.s, &behaviour, &k, &wide, &a, NULL), WEIR_OK);
    for (int i = 0; i < 100000; i++)
        weir_send(f.main, a, weir_intern(f.s, "forget"), NULL);
    assert_int_equal(weir_stop(f.s, a), WEIR_OK);
    for (int i = 0; i < 100; i++)
        fixture_call(&f, a, "add", i, -1, &o[i]);
    fixture_run(&f);
    for (int i = 0; i < 100; i++)
        assert_true(o[i].ended == 1 && o[i].code == WEIR_EEXITED);
    weir_system_stats s = stats_of(f.s);
    assert_int_equal(s.handled, 100000);
    assert_int_equal(s.dead, 100);
    fixture_close(&f);
}

static void an_exit_reason_reaches_the_callers(void **state) {
    (void)state;
    fixture f;
    server k;
    weir_address a;
    outcome o[3] = {{0}, {0}, {0}};
    open_with_server(&f, WEIR_DRIVER_EV, &k, &a);
    fixture_call(&f, a, "keep", 0, -1, &o[0]);
    fixture_call(&f, a, "leave", 0, -1, &o[1]);
    fixture_call(&f, a, "add", 0, -1, &o[2]);
    fixture_run(&f);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(o[i].ended, 1);
        assert_int_equal(o[i].code, WEIR_EEXITED);
        assert_string_equal(o[i].actor, "server");
        assert_string_equal(o[i].cause, "the disk is gone");
    }
    fixture_close(&f);
}

static void a_killed_callee_answers_queued_and_taken_calls(void **state) {
    (void)state;
    fixture f;
    server k;
    weir_address a;
    outcome o[2] = {{0}, {0}};
    open_with_server(&f, WEIR_DRIVER_TEST, &k, &a);
    fixture_call(&f, a, "keep", 0, -1, &o[0]);
    fixture_run(&f);
    assert_int_equal(k.n_kept, 1);
    fixture_call(&f, a, "add", 0, -1, &o[1]);
    weir_kill(f.s, a);
    assert_int_equal(o[0].ended, 0);
    fixture_run(&f);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(o[i].code, WEIR_EKILLED);
        assert_non_null(strstr(o[i].text, "server"));
    }
    assert_int_equal(weir_kill(f.s, a), WEIR_ENOACTOR);
    fixture_close(&f);
}

static void an_actor_may_kill_itself(void **state) {
    (void)state;
    fixture f;
    server k;
    weir_address a;
    outcome o = {0};
    open_with_server(&f, WEIR_DRIVER_EV, &k, &a);
    fixture_call(&f, a, "suicide", 0, -1, &o);
    fixture_run(&f);
    assert_int_equal(o.code, WEIR_EKILLED);
    fixture_close(&f);
}

static void calls_to_nobody_end_too(void **state) {
    (void)state;
    fixture f;
    server k;
    weir_address a;
    outcome o = {0};
    open_with_server(&f, WEIR_DRIVER_EV, &k, &a);
    weir_kill(f.s, a);
    fixture_call(&f, a, "add", 0, 0, &o);
    assert_int_equal(o.ended, 0);
    fixture_run(&f);
    assert_int_equal(o.code, WEIR_ENOACTOR);
    assert_non_null(strstr(o.text, "add"));
    fixture_close(&f);
}

static void calls_to_a_full_mailbox_end_too(void **state) {
    (void)state;
    fixture f;
    server k = {0};
    weir_address a;
    outcome o[2] = {{0}, {0}};
    weir_spawn_options one = {.mailbox_messages = 1};
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    assert_int_equal(weir_spawn(f.s, &behaviour, &k, &one, &a, NULL), WEIR_OK);
    fixture_call(&f, a, "add", 0, 0, &o[0]);
    fixture_call(&f, a, "add", 0, 0, &o[1]);
    fixture_run(&f);
    assert_int_equal(o[0].code, WEIR_OK);
    assert_int_equal(o[1].code, WEIR_EFULL);
    fixture_close(&f);
}

/* A token that is used after the caller has ended does nothing and says so. */
static void actors_A27(void **state) {
    (void)state;
    fixture f;
    server k, other;
    weir_address a, b;
    outcome o = {0};
    open_with_server(&f, WEIR_DRIVER_TEST, &k, &a);
    memset(&other, 0, sizeof other);
    b = fixture_spawn(&f, &behaviour, &other);
    assert_int_equal(weir_call(weir__actor(f.s, b), a, weir_intern(f.s, "keep"), NULL, -1, record_outcome, &o, NULL), WEIR_OK);
    fixture_run(&f);
    weir_kill(f.s, b);
    assert_int_equal(weir_answer(k.self, k.kept[0], weir_pack(f.s, "i", INT64_C(1))), WEIR_ENOACTOR);
    assert_int_equal(weir_answer_error(k.self, k.kept[0], weir_error_new(WEIR_EIO, NULL, NULL, "x")), WEIR_ENOACTOR);
    fixture_run(&f);
    assert_int_equal(o.ended, 0);
    fixture_close(&f);
}

static void a_token_belongs_to_its_actor(void **state) {
    (void)state;
    fixture f;
    server k;
    weir_address a;
    outcome o = {0};
    open_with_server(&f, WEIR_DRIVER_TEST, &k, &a);
    fixture_call(&f, a, "keep", 0, -1, &o);
    fixture_run(&f);
    assert_int_equal(weir_answer(f.main, k.kept[0], NULL), WEIR_EINVAL);
    assert_int_equal(weir_answer(k.self, k.kept[0], weir_pack(f.s, "i", INT64_C(5))), WEIR_OK);
    assert_int_equal(weir_answer(k.self, k.kept[0], weir_pack(f.s, "i", INT64_C(6))), WEIR_OK);
    fixture_run(&f);
    assert_int_equal(o.ended, 1);
    assert_int_equal(o.value, 5);
    assert_int_equal(stats_of(f.s).late_replies, 1);
    fixture_close(&f);
}

static void a_cancelled_call_reports_nothing(void **state) {
    (void)state;
    fixture f;
    server k;
    weir_address a;
    outcome o = {0};
    uint64_t session;
    open_with_server(&f, WEIR_DRIVER_EV, &k, &a);
    weir_verb add = weir_intern(f.s, "add");
    weir_call(f.main, a, add, NULL, 0, record_outcome, &o, &session);
    weir_call_cancel(f.main, session);
    weir_call_cancel(f.main, session);
    fixture_run(&f);
    assert_int_equal(o.ended, 0);
    assert_int_equal(stats_of(f.s).late_replies, 1);
    assert_int_equal(stats_of(f.s).calls_ended, 1);
    fixture_close(&f);
}

typedef struct caller {
    weir_address server;
    uint64_t session;
    outcome o;
} caller;

static bool replied(void *data) {
    weir_system_stats stats;
    weir_system_get_stats(data, &stats);
    return stats.calls_ended == 1;
}

/* Between the answer and the caller's turn: the answer is there already, and is dropped. */
static void a_call_may_be_cancelled_when_its_answer_is_under_way(void **state) {
    (void)state;
    fixture f;
    server k;
    weir_address a;
    caller c = {0};
    open_with_server(&f, WEIR_DRIVER_EV, &k, &a);
    weir_call(f.main, a, weir_intern(f.s, "add"), NULL, 0, record_outcome, &c.o, &c.session);
    assert_int_equal(weir_system_run(f.s, replied, f.s, NULL), WEIR_OK);
    assert_int_equal(c.o.ended, 0);
    weir_call_cancel(f.main, c.session);
    fixture_run(&f);
    assert_int_equal(c.o.ended, 0);
    assert_int_equal(stats_of(f.s).late_replies, 1);
    fixture_close(&f);
}

static int64_t seen_deadline;

static void on_deadline(weir_actor *self, const weir_message *m) {
    seen_deadline = weir_message_deadline(m);
    if (weir_message_is_call(m))
        weir_reply(self, m, NULL);
}

static const weir_handler deadline_handlers[] = {{"deadline", on_deadline}, {NULL, NULL}};
static const weir_behaviour deadline_behaviour = {.name = "deadline", .handlers = deadline_handlers};

static void the_deadline_travels_in_the_message(void **state) {
    (void)state;
    fixture f;
    outcome o = {0};
    fixture_open(&f, WEIR_DRIVER_TEST, 0);
    weir_address a = fixture_spawn(&f, &deadline_behaviour, NULL);
    fixture_call(&f, a, "deadline", 0, 5 * MS, &o);
    fixture_run(&f);
    assert_int_equal(seen_deadline, 5 * MS);
    fixture_call(&f, a, "deadline", 0, 0, &o);
    fixture_run(&f);
    assert_int_equal(seen_deadline, WEIR_CALL_TIMEOUT);
    fixture_call(&f, a, "deadline", 0, -1, &o);
    fixture_run(&f);
    assert_int_equal(seen_deadline, 0);
    fixture_send(&f, a, "deadline", 0);
    fixture_run(&f);
    assert_int_equal(seen_deadline, 0);
    assert_int_equal(weir_now(f.s), 0);
    fixture_close(&f);
}

/* The caller is killed with calls open, one of them answered already. */
static void a_dead_caller_ends_its_calls(void **state) {
    (void)state;
    fixture f;
    server k, other;
    weir_address a, b;
    outcome o = {0};
    open_with_server(&f, WEIR_DRIVER_TEST, &k, &a);
    memset(&other, 0, sizeof other);
    b = fixture_spawn(&f, &behaviour, &other);
    for (int i = 0; i < 3; i++)
        weir_call(weir__actor(f.s, b), a, weir_intern(f.s, i ? "add" : "keep"), NULL, i == 2 ? -1 : 0, record_outcome, &o, NULL);
    weir_kill(f.s, b);
    fixture_run(&f);
    weir_system_stats s = stats_of(f.s);
    assert_int_equal(o.ended, 0);
    assert_int_equal(s.calls, 3);
    assert_int_equal(s.calls_ended, 3);
    assert_int_equal(s.late_replies, 2);
    fixture_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_ends_with_the_reply),
        cmocka_unit_test(an_error_reply_names_the_actor_and_its_cause),
        cmocka_unit_test(an_unknown_verb_is_an_error),
        cmocka_unit_test(actors_A5),
        cmocka_unit_test(a_second_answer_is_an_error),
        cmocka_unit_test(a_deferred_call_is_answered_later),
        cmocka_unit_test(actors_A9),
        cmocka_unit_test(actors_A1),
        cmocka_unit_test(actors_A3),
        cmocka_unit_test(an_exit_reason_reaches_the_callers),
        cmocka_unit_test(a_killed_callee_answers_queued_and_taken_calls),
        cmocka_unit_test(an_actor_may_kill_itself),
        cmocka_unit_test(calls_to_nobody_end_too),
        cmocka_unit_test(calls_to_a_full_mailbox_end_too),
        cmocka_unit_test(actors_A27),
        cmocka_unit_test(a_token_belongs_to_its_actor),
        cmocka_unit_test(a_cancelled_call_reports_nothing),
        cmocka_unit_test(a_call_may_be_cancelled_when_its_answer_is_under_way),
        cmocka_unit_test(the_deadline_travels_in_the_message),
        cmocka_unit_test(a_dead_caller_ends_its_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
