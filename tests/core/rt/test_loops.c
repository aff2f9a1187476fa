/* Worker loops: messages, calls, ends, monitors, links, room and cycles between loops, on threads and by the test driver's choice. Run under TSan too. */
#include "../../../core/rt/internal.h"
#include "fixture.h"

enum { SEEDS = 40, COUNT = 2000 };

/* An actor for all of it; what it saw is read after the run, when every loop rests. */
typedef struct seen {
    int64_t count, last, disorder, downs, spaces, finis;
    int down_code;
    weir_address other; /* whom "forward" and "watch" are about */
    weir_reply_to owed;
    outcome outcome;
    unsigned loop;
} seen;

static void on_number(weir_actor *self, const weir_message *m) {
    seen *s = weir_state(self);
    int64_t n = first_int(m);
    s->disorder += s->count && n != s->last + 1;
    s->last = n;
    s->count++;
    s->loop = weir_loop_of(weir_system_of(self), weir_self(self));
}

static void on_echo(weir_actor *self, const weir_message *m) {
    weir_reply(self, m, weir_body_ref(weir_message_body(m)));
}

static void on_defer(weir_actor *self, const weir_message *m) {
    ((seen *)weir_state(self))->owed = weir_defer(self, m);
}

static void on_pay(weir_actor *self, const weir_message *m) {
    seen *s = weir_state(self);
    (void)m;
    weir_answer(self, s->owed, weir_pack(weir_system_of(self), "i", (int64_t)7));
}

/* Calls the other, waiting serially, keeps how it ended and hands it on. */
static void on_outcome(weir_actor *self, void *data, const weir_message *reply, const weir_error *error) {
    seen *s = weir_state(self);
    record_outcome(self, data, reply, error);
    weir_unhold(self);
    weir_answer_error(self, s->owed, weir_error_new(WEIR_EIO, NULL, weir_error_ref(error), "no answer"));
}

static void on_ask(weir_actor *self, const weir_message *m) {
    seen *s = weir_state(self);
    weir_system *system = weir_system_of(self);
    s->owed = weir_defer(self, m);
    weir_hold(self);
    assert_int_equal(weir_call(self, s->other, weir_intern(system, "ask"), NULL, 0, on_outcome, &s->outcome, NULL), WEIR_OK);
}

static void on_watch(weir_actor *self, const weir_message *m) {
    seen *s = weir_state(self);
    (void)m;
    assert_int_equal(weir_monitor(self, s->other), WEIR_OK);
}

static void on_unwatch(weir_actor *self, const weir_message *m) {
    (void)m;
    weir_demonitor(self, ((seen *)weir_state(self))->other);
}

static void on_link(weir_actor *self, const weir_message *m) {
    (void)m;
    assert_int_equal(weir_link(self, ((seen *)weir_state(self))->other), WEIR_OK);
}

static void on_fail(weir_actor *self, const weir_message *m) {
    (void)m;
    weir_exit(self, weir_error_new(WEIR_EIO, "failing", NULL, "no disk"));
}

static void on_space(weir_actor *self, const weir_message *m) {
    seen *s = weir_state(self);
    s->spaces += weir_message_from(m) == s->other;
}

static void on_down(weir_actor *self, weir_address who, const weir_error *why) {
    seen *s = weir_state(self);
    s->downs += who == s->other;
    s->down_code = weir_error_code(why);
}

static void on_fini(weir_system *system, void *state) {
    (void)system;
    ((seen *)state)->finis++;
}

static const weir_handler handlers[] = {
    {"number", on_number},   {"echo", on_echo}, {"defer", on_defer}, {"pay", on_pay},     {"ask", on_ask}, {"watch", on_watch},
    {"unwatch", on_unwatch}, {"link", on_link}, {"fail", on_fail},   {"space", on_space}, {NULL, NULL}};
static const weir_behaviour behaviour = {.name = "actor", .handlers = handlers, .down = on_down, .fini = on_fini};

static void open_with(fixture *f, enum weir_driver driver, uint64_t seed, unsigned workers) {
    memset(f, 0, sizeof *f);
    weir_system_options o = {.driver = driver, .seed = seed, .workers = workers, .alloc = counter_alloc, .alloc_data = &f->memory};
    assert_int_equal(weir_system_new(&o, &f->s, NULL), WEIR_OK);
    f->main = weir_main_actor(f->s);
}

static weir_address spawn_on(fixture *f, int loop, const char *name, seen *s, const weir_spawn_options *more) {
    weir_spawn_options o = more ? *more : (weir_spawn_options){0};
    weir_address a = 0;
    o.loop = loop;
    o.name = name;
    memset(s, 0, sizeof *s);
    assert_int_equal(weir_spawn(f->s, &behaviour, s, &o, &a, NULL), WEIR_OK);
    return a;
}

static void tell(fixture *f, weir_address a, const char *verb) {
    assert_int_equal(weir_send(f->main, a, weir_intern(f->s, verb), NULL), WEIR_OK);
}

/* Runs the scene on two threads, then on one by many seeds; the laws hold at the end of each that leaves the loops at rest. */
static void with_loops_left(void (*scene)(fixture *f), bool at_rest) {
    for (uint64_t seed = 0; seed <= SEEDS; seed++) {
        fixture f;
        open_with(&f, seed ? WEIR_DRIVER_TEST : WEIR_DRIVER_EV, seed, 2);
        scene(&f);
        weir_system_stats s = stats_of(f.s);
        if (at_rest)
            assert_int_equal(s.sent, s.handled + s.dead + s.queued);
        fixture_close(&f);
    }
}

static void with_loops(void (*scene)(fixture *f)) {
    with_loops_left(scene, true);
}

static void order(fixture *f) {
    static seen s;
    weir_address a = spawn_on(f, WEIR_LOOP_MAIN + 1, "far", &s, NULL);
    for (int64_t i = 1; i <= COUNT;) {
        int code = weir_send(f->main, a, weir_intern(f->s, "number"), weir_pack(f->s, "i", i));
        if (code == WEIR_EFULL)
            fixture_run(f);
        else
            i++;
    }
    fixture_run(f);
    assert_int_equal(s.count, COUNT);
    assert_int_equal(s.disorder, 0);
    assert_int_equal(s.loop, 1);
}

static void messages_to_another_loop_arrive_in_order_and_a_run_ends_when_all_rest(void **state) {
    (void)state;
    with_loops(order);
}

static void calls(fixture *f) {
    static seen s;
    outcome echo = {0}, defer = {0}, never = {0}, unknown = {0};
    weir_address a = spawn_on(f, WEIR_LOOP_MAIN + 1, "far", &s, NULL);
    fixture_call(f, a, "echo", 5, 0, &echo);
    fixture_call(f, a, "defer", 0, 0, &defer);
    fixture_call(f, a, "pay", 0, 0, &never);
    fixture_call(f, a, "what", 0, 0, &unknown);
    fixture_run(f);
    assert_int_equal(echo.value, 5);
    assert_int_equal(defer.value, 7);
    assert_int_equal(never.code, WEIR_ENOREPLY);
    assert_int_equal(unknown.code, WEIR_EVERB);
    assert_string_equal(unknown.actor, "far");
}

static void calls_to_another_loop_are_answered_at_once_later_or_with_an_error(void **state) {
    (void)state;
    with_loops(calls);
}

static void late(fixture *f) {
    static seen s;
    outcome slow = {0}, dead = {0}, gone = {0};
    weir_address a = spawn_on(f, WEIR_LOOP_MAIN + 1, "far", &s, NULL);
    fixture_call(f, a, "defer", 0, 1000000, &slow);
    fixture_run(f);
    assert_int_equal(slow.code, WEIR_ETIMEOUT);
    tell(f, a, "pay");
    fixture_run(f);
    assert_int_equal(stats_of(f->s).late_replies, 1);
    fixture_call(f, a, "defer", 0, 0, &dead);
    assert_int_equal(weir_stop(f->s, a), WEIR_OK);
    fixture_run(f);
    assert_int_equal(dead.code, WEIR_EEXITED);
    fixture_call(f, a, "echo", 0, 0, &gone);
    fixture_run(f);
    assert_int_equal(gone.code, WEIR_ENOACTOR);
    assert_int_equal(s.finis, 1);
}

static void calls_end_by_deadline_or_with_the_other_loops_actor_and_late_replies_are_counted(void **state) {
    (void)state;
    with_loops(late);
}

static void stopped(fixture *f) {
    static seen s;
    weir_address a = spawn_on(f, WEIR_LOOP_MAIN + 2, "far", &s, NULL);
    for (int64_t i = 1; i <= 500; i++)
        fixture_send(f, a, "number", i);
    assert_int_equal(weir_stop(f->s, a), WEIR_OK);
    weir_stop(f->s, a);
    fixture_run(f);
    assert_int_equal(s.count, 500);
    assert_int_equal(s.finis, 1);
    assert_int_equal(weir_stop(f->s, a), WEIR_ENOACTOR);
    assert_int_equal(weir_kill(f->s, a), WEIR_ENOACTOR);
}

static void a_stop_to_another_loop_comes_behind_what_was_sent_before(void **state) {
    (void)state;
    with_loops(stopped);
}

static void killed(fixture *f) {
    static seen s;
    weir_address a = spawn_on(f, WEIR_LOOP_MAIN + 1, "far", &s, NULL);
    for (int64_t i = 1; i <= 500; i++)
        fixture_send(f, a, "number", i);
    assert_int_equal(weir_kill(f->s, a), WEIR_OK);
    fixture_run(f);
    assert_int_equal(s.finis, 1);
    assert_int_equal(s.count + (int64_t)stats_of(f->s).dead, 500);
}

static void a_kill_overtakes_and_accounts_for_every_message(void **state) {
    (void)state;
    with_loops(killed);
}

static void monitored(fixture *f) {
    static seen near, far;
    weir_address a = spawn_on(f, WEIR_LOOP_MAIN, "near", &near, NULL), b = spawn_on(f, WEIR_LOOP_MAIN + 1, "far", &far, NULL);
    near.other = b;
    tell(f, a, "watch");
    fixture_run(f);
    tell(f, a, "unwatch");
    tell(f, a, "watch");
    fixture_run(f);
    tell(f, b, "fail");
    fixture_run(f);
    assert_int_equal(near.downs, 1);
    assert_int_equal(near.down_code, WEIR_EIO);
    tell(f, a, "watch");
    fixture_run(f);
    assert_int_equal(near.downs, 2);
    assert_int_equal(near.down_code, WEIR_ENOACTOR);
}

static void a_monitor_on_another_loops_actor_is_told_once_and_can_be_taken_back(void **state) {
    (void)state;
    with_loops(monitored);
}

/* Watcher and target end at any moment, with the watch, its taking back and the news under way. */
static void crossing(fixture *f) {
    static seen near, far;
    weir_address a = spawn_on(f, WEIR_LOOP_MAIN + 2, "near", &near, NULL), b = spawn_on(f, WEIR_LOOP_MAIN + 1, "far", &far, NULL);
    near.other = b;
    far.other = a;
    tell(f, a, "watch");
    tell(f, b, "link");
    tell(f, a, "unwatch");
    tell(f, a, "watch");
    tell(f, b, "fail");
    weir_stop(f->s, a);
    fixture_run(f);
    assert_int_equal(near.finis, 1);
    assert_int_equal(far.finis, 1);
}

static void watches_that_cross_ends_give_everything_back(void **state) {
    (void)state;
    with_loops(crossing);
}

static void linked(fixture *f) {
    static seen s[4];
    weir_address a[4];
    for (int i = 0; i < 4; i++)
        a[i] = spawn_on(f, WEIR_LOOP_MAIN + i % 3, "linked", &s[i], NULL);
    for (int i = 0; i < 3; i++) {
        s[i].other = a[i + 1];
        tell(f, a[i], "link");
    }
    fixture_run(f);
    tell(f, a[1], "fail");
    fixture_run(f);
    for (int i = 0; i < 4; i++)
        assert_int_equal(s[i].finis, 1);
}

static void links_end_all_that_they_join_in_both_directions(void **state) {
    (void)state;
    with_loops(linked);
}

static void unlinked(fixture *f) {
    static seen s[2], t;
    weir_address a = spawn_on(f, WEIR_LOOP_MAIN, "a", &s[0], NULL), b = spawn_on(f, WEIR_LOOP_MAIN + 1, "b", &s[1], NULL);
    s[0].other = b;
    tell(f, a, "link");
    fixture_run(f);
    weir_stop(f->s, b);
    fixture_run(f);
    assert_int_equal(s[1].finis, 1);
    assert_int_equal(s[0].finis, 0);
    weir_address c = spawn_on(f, WEIR_LOOP_MAIN, "c", &t, NULL);
    t.other = b;
    tell(f, c, "link");
    fixture_run(f);
    assert_int_equal(t.finis, 1);
}

static void an_orderly_end_breaks_a_link_and_a_link_to_nobody_ends_its_maker(void **state) {
    (void)state;
    with_loops(unlinked);
}

/* "ask" around three loops: whoever closes the circle is told. */
static void cycle(fixture *f) {
    static seen s[3];
    weir_address a[3];
    static const char *const names[3] = {"ann", "bob", "cid"};
    for (int i = 0; i < 3; i++)
        a[i] = spawn_on(f, WEIR_LOOP_MAIN + i, names[i], &s[i], NULL);
    for (int i = 0; i < 3; i++)
        s[i].other = a[(i + 1) % 3];
    tell(f, a[0], "ask");
    fixture_run(f);
    int told = 0;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(s[i].outcome.ended, 1);
        if (s[i].outcome.code != WEIR_ECYCLE)
            continue;
        told++;
        for (int k = 0; k < 3; k++)
            assert_non_null(strstr(s[i].outcome.text, names[k]));
    }
    assert_int_equal(told, 1);
}

static void actors_A11_a_cycle_of_calls_over_three_loops_is_named(void **state) {
    (void)state;
    with_loops(cycle);
}

static void room(fixture *f) {
    static seen near, far;
    weir_spawn_options small = {.mailbox_messages = 8};
    weir_address b = spawn_on(f, WEIR_LOOP_MAIN + 1, "far", &far, &small), a = spawn_on(f, WEIR_LOOP_MAIN, "near", &near, NULL);
    near.other = b;
    weir_hold(f->main);
    int code = WEIR_OK;
    for (int64_t i = 1; i <= 100000 && code == WEIR_OK; i++)
        code = weir_send(f->main, b, weir_intern(f->s, "number"), weir_pack(f->s, "i", i));
    weir_actor *self = weir__actor(f->s, a);
    assert_int_equal(weir_want_space(self, b), WEIR_OK);
    fixture_run(f);
    weir_unhold(f->main);
    assert_int_equal(near.spaces, 1);
    assert_int_equal(weir_want_space(self, b), WEIR_OK);
    fixture_run(f);
    assert_int_equal(near.spaces, 2);
}

static void a_wish_for_room_is_granted_once(void **state) {
    (void)state;
    with_loops(room);
}

static void dropping(fixture *f) {
    for (int full = WEIR_FULL_DROP_OLDEST; full <= WEIR_FULL_DROP_NEWEST; full++) {
        seen s;
        weir_spawn_options o = {.mailbox_messages = 4, .full = (enum weir_full)full};
        weir_address a = spawn_on(f, WEIR_LOOP_MAIN, "dropping", &s, &o);
        weir_system_stats before = stats_of(f->s);
        for (int64_t i = 1; i <= 10; i++)
            fixture_send(f, a, "number", i);
        fixture_run(f);
        weir_system_stats after = stats_of(f->s);
        assert_int_equal(s.count, 4);
        assert_int_equal(s.last, full == WEIR_FULL_DROP_OLDEST ? 10 : 4);
        assert_int_equal(after.dropped - before.dropped, 6);
        assert_int_equal(after.dead - before.dead, 6);
        assert_int_equal(after.sent - before.sent, 10);
    }
}

static void a_full_mailbox_drops_its_oldest_or_its_newest_as_told(void **state) {
    (void)state;
    with_loops(dropping);
}

static void dropped_call(fixture *f) {
    static seen s;
    outcome first = {0}, newest = {0};
    weir_spawn_options o = {.mailbox_messages = 1, .full = WEIR_FULL_DROP_OLDEST};
    weir_address a = spawn_on(f, WEIR_LOOP_MAIN, "dropping", &s, &o);
    fixture_call(f, a, "echo", 1, 0, &first);
    fixture_call(f, a, "echo", 2, 0, &newest);
    fixture_run(f);
    assert_int_equal(first.code, WEIR_EFULL);
    assert_string_equal(first.actor, "dropping");
    assert_int_equal(newest.value, 2);
}

static void a_dropped_call_is_answered_with_an_error(void **state) {
    (void)state;
    with_loops(dropped_call);
}

/* A flood from elsewhere, too: accounted for, and bounded. */
static void flooded(fixture *f) {
    static seen s;
    weir_spawn_options o = {.mailbox_messages = 16, .full = WEIR_FULL_DROP_OLDEST};
    weir_address a = spawn_on(f, WEIR_LOOP_MAIN + 1, "flooded", &s, &o);
    uint64_t refused = 0;
    for (int64_t i = 1; i <= COUNT; i++)
        refused += weir_send(f->main, a, weir_intern(f->s, "number"), weir_pack(f->s, "i", i)) == WEIR_EFULL;
    fixture_run(f);
    weir_system_stats after = stats_of(f->s);
    assert_int_equal((uint64_t)s.count + after.dead + refused, COUNT);
    assert_int_equal(after.refused, refused);
}

static void a_flood_of_a_dropping_mailbox_on_another_loop_is_accounted_for(void **state) {
    (void)state;
    with_loops(flooded);
}

static void letter_seen(void *data, const weir_dead_letter *letter) {
    int64_t *last = data, v = -1;
    weir_cursor c = weir_read(letter->body, NULL);
    weir_read_int(&c, &v);
    last[0]++;
    last[1] = v;
    last[2] = letter->why;
    assert_string_equal(letter->verb, "nobody handles this");
}

static void letters(fixture *f) {
    static seen s;
    int64_t last[3] = {0};
    weir_address a = spawn_on(f, WEIR_LOOP_MAIN + 1, "deaf", &s, NULL);
    for (int64_t i = 1; i <= 300; i++)
        fixture_send(f, a, "nobody handles this", i);
    fixture_run(f);
    weir_dead_letters(f->s, letter_seen, last);
    assert_int_equal(last[0], WEIR_DEAD_LETTERS);
    assert_int_equal(last[1], 300);
    assert_int_equal(last[2], WEIR_EVERB);
}

static void the_last_dead_letters_can_be_read(void **state) {
    (void)state;
    with_loops(letters);
}

static void stop_all(fixture *f) {
    static seen s[30];
    for (int i = 0; i < 30; i++)
        spawn_on(f, WEIR_LOOP_ANY, "any", &s[i], NULL);
    assert_int_equal(weir_system_stop(f->s, 5000000000, NULL), WEIR_OK);
    for (int i = 0; i < 30; i++)
        assert_int_equal(s[i].finis, 1);
}

static void a_system_stops_the_actors_of_all_its_loops(void **state) {
    (void)state;
    with_loops(stop_all);
}

static void left_alone(fixture *f) {
    static seen s[30];
    for (int i = 0; i < 30; i++) {
        weir_address a = spawn_on(f, WEIR_LOOP_ANY, "any", &s[i], NULL);
        fixture_send(f, a, "number", 1);
        fixture_send(f, a, "defer", 1);
    }
}

static void a_system_is_freed_with_everything_under_way(void **state) {
    (void)state;
    with_loops_left(left_alone, false);
}

static void no_such_loop_is_an_error(void **state) {
    (void)state;
    fixture f;
    static seen s = {0};
    weir_error *e = NULL;
    weir_spawn_options o = {.loop = 9};
    open_with(&f, WEIR_DRIVER_EV, 0, 1);
    assert_int_equal(weir_loops(f.s), 2);
    assert_int_equal(weir_spawn(f.s, &behaviour, &s, &o, NULL, &e), WEIR_EINVAL);
    assert_non_null(strstr(weir_error_text(e), "1 workers"));
    assert_int_equal(s.finis, 1);
    weir_error_free(e);
    e = NULL;
    o = (weir_spawn_options){.full = (enum weir_full)9};
    assert_int_equal(weir_spawn(f.s, &behaviour, &s, &o, NULL, &e), WEIR_EINVAL);
    assert_non_null(strstr(weir_error_text(e), "policy 9"));
    weir_error_free(e);
    fixture_close(&f);
}

static void a_system_with_impossible_options_is_refused(void **state) {
    (void)state;
    weir_system_options wrong[] = {{.workers = WEIR_MAX_WORKERS + 1}, {.driver = (enum weir_driver)7}};
    for (int i = 0; i < 2; i++) {
        weir_system *s = NULL;
        weir_error *e = NULL;
        assert_int_equal(weir_system_new(&wrong[i], &s, &e), WEIR_EINVAL);
        assert_non_null(strstr(weir_error_text(e), i ? "driver 7" : "64 worker loops"));
        weir_error_free(e);
    }
}

/* Mail that was under way when its receiver ended takes room in the mailbox of the next actor in its place, as if a thread had been late with its post. */
static void who_waits_for_room_hears_of_it_when_an_earlier_actors_mail_is_gone(void **state) {
    (void)state;
    fixture f;
    static seen first, heir, near;
    open_with(&f, WEIR_DRIVER_EV, 0, 0);
    weir_spawn_options one = {.mailbox_messages = 1};
    weir_address a = spawn_on(&f, WEIR_LOOP_MAIN, "first", &first, &one);
    weir__slot *slot = weir__ids_find(&f.s->actors, a);
    weir_message *late = weir__message_new(f.s, 0, a, weir_intern(f.s, "number"), NULL);
    assert_int_equal(weir__slot_reserve(slot, 0), WEIR_OK);
    assert_int_equal(weir_kill(f.s, a), WEIR_OK);
    weir_address b = spawn_on(&f, WEIR_LOOP_MAIN, "heir", &heir, &one), w = spawn_on(&f, WEIR_LOOP_MAIN, "near", &near, NULL);
    assert_ptr_equal(weir__ids_find(&f.s->actors, b), slot);
    near.other = b;
    assert_int_equal(weir_send(f.main, b, weir_intern(f.s, "number"), NULL), WEIR_EFULL);
    assert_int_equal(weir_want_space(weir__actor(f.s, w), b), WEIR_OK);
    fixture_run(&f);
    assert_int_equal(near.spaces, 0);
    atomic_fetch_add(&f.s->posted, 1);
    weir__inbox_push(&f.s->main_loop, &late->entry);
    fixture_run(&f);
    assert_int_equal(near.spaces, 1);
    fixture_close(&f);
}

static void threads_that_cannot_be_made_fail_the_system(void **state) {
    (void)state;
    counter memory = {0};
    for (int64_t n = 1; n < 200; n++) {
        weir_system_options o = {.workers = 2, .alloc = counter_alloc, .alloc_data = &memory};
        weir_system *s = NULL;
        memory.fail = n;
        memory.failed = false;
        int code = weir_system_new(&o, &s, NULL);
        if (code == WEIR_OK)
            weir_system_free(s);
        assert_int_equal(memory.bytes, 0);
        if (!memory.failed)
            return;
        assert_int_equal(code, WEIR_ENOMEM);
    }
    fail_msg("memory never sufficed");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_to_another_loop_arrive_in_order_and_a_run_ends_when_all_rest),
        cmocka_unit_test(calls_to_another_loop_are_answered_at_once_later_or_with_an_error),
        cmocka_unit_test(calls_end_by_deadline_or_with_the_other_loops_actor_and_late_replies_are_counted),
        cmocka_unit_test(a_stop_to_another_loop_comes_behind_what_was_sent_before),
        cmocka_unit_test(a_kill_overtakes_and_accounts_for_every_message),
        cmocka_unit_test(a_monitor_on_another_loops_actor_is_told_once_and_can_be_taken_back),
        cmocka_unit_test(watches_that_cross_ends_give_everything_back),
        cmocka_unit_test(links_end_all_that_they_join_in_both_directions),
        cmocka_unit_test(an_orderly_end_breaks_a_link_and_a_link_to_nobody_ends_its_maker),
        cmocka_unit_test(actors_A11_a_cycle_of_calls_over_three_loops_is_named),
        cmocka_unit_test(a_wish_for_room_is_granted_once),
        cmocka_unit_test(a_full_mailbox_drops_its_oldest_or_its_newest_as_told),
        cmocka_unit_test(a_dropped_call_is_answered_with_an_error),
        cmocka_unit_test(a_flood_of_a_dropping_mailbox_on_another_loop_is_accounted_for),
        cmocka_unit_test(the_last_dead_letters_can_be_read),
        cmocka_unit_test(a_system_stops_the_actors_of_all_its_loops),
        cmocka_unit_test(a_system_is_freed_with_everything_under_way),
        cmocka_unit_test(no_such_loop_is_an_error),
        cmocka_unit_test(a_system_with_impossible_options_is_refused),
        cmocka_unit_test(who_waits_for_room_hears_of_it_when_an_earlier_actors_mail_is_gone),
        cmocka_unit_test(threads_that_cannot_be_made_fail_the_system),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
