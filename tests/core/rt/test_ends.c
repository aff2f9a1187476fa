/* The end of actors: exit, stop, kill, monitors, what becomes of what they owned. */
#include <sys/resource.h>

#include "fixture.h"

enum { MS = 1000000 };

typedef struct life {
    int handled, downs, stops, finis, ticks;
    int down_code;
    char down_text[256];
    weir_address down_who;
    bool linger; /* does not end when asked to stop */
} life;

static void on_work(weir_actor *self, const weir_message *m) {
    life *l = weir_state(self);
    l->handled++;
    if (weir_message_is_call(m))
        weir_reply(self, m, NULL);
}

static void on_quit(weir_actor *self, const weir_message *m) {
    (void)m;
    life *l = weir_state(self);
    l->handled++;
    weir_exit(self, weir_error_new(WEIR_EIO, NULL, NULL, "worn out"));
    weir_exit(self, weir_error_new(WEIR_EIO, NULL, NULL, "a second reason does not count"));
}

static void on_end(weir_actor *self, const weir_message *m) {
    (void)m;
    weir_exit(self, NULL);
}

static void down(weir_actor *self, weir_address who, const weir_error *why) {
    life *l = weir_state(self);
    l->downs++;
    l->down_who = who;
    l->down_code = weir_error_code(why);
    snprintf(l->down_text, sizeof l->down_text, "%s", why ? weir_error_text(why) : "");
}

static void stop(weir_actor *self) {
    life *l = weir_state(self);
    l->stops++;
    if (!l->linger)
        weir_exit(self, NULL);
}

static void fini(weir_system *s, void *state) {
    (void)s;
    ((life *)state)->finis++;
}

static const weir_handler handlers[] = {{"work", on_work}, {"quit", on_quit}, {"end", on_end}, {NULL, NULL}};
static const weir_behaviour behaviour = {.name = "worker", .handlers = handlers, .down = down, .stop = stop, .fini = fini};
static const weir_behaviour plain = {.name = "plain", .handlers = handlers, .fini = fini};

static void tick(weir_actor *self, void *data, uint64_t missed) {
    (void)self, (void)missed;
    ((life *)data)->ticks++;
}

static void set_flag(weir_actor *self, void *data, uint64_t missed) {
    (void)self, (void)missed;
    *(bool *)data = true;
}

/* send(x), then stop: x is not lost. What comes behind the stop is. */
static void stop_keeps_the_order_of_arrival(void **state) {
    (void)state;
    fixture f;
    life l = {0}, p = {0};
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    weir_address a[2] = {fixture_spawn(&f, &behaviour, &l), fixture_spawn(&f, &plain, &p)};
    for (int i = 0; i < 2; i++) {
        fixture_send(&f, a[i], "work", 1);
        assert_int_equal(weir_stop(f.s, a[i]), WEIR_OK);
        assert_int_equal(weir_stop(f.s, a[i]), WEIR_OK);
        fixture_send(&f, a[i], "work", 2);
    }
    fixture_run(&f);
    assert_int_equal(l.handled, 1);
    assert_int_equal(l.stops, 1);
    assert_int_equal(l.finis, 1);
    assert_int_equal(p.handled, 1);
    assert_int_equal(p.finis, 1);
    assert_int_equal(stats_of(f.s).dead, 2);
    assert_int_equal(weir_stop(f.s, a[0]), WEIR_ENOACTOR);
    fixture_close(&f);
}

static void kill_overtakes_everything(void **state) {
    (void)state;
    fixture f;
    life l = {0};
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    weir_address a = fixture_spawn(&f, &behaviour, &l);
    fixture_send(&f, a, "work", 1);
    assert_int_equal(weir_kill(f.s, a), WEIR_OK);
    fixture_run(&f);
    assert_int_equal(l.handled, 0);
    assert_int_equal(l.finis, 1);
    assert_int_equal(stats_of(f.s).dead, 1);
    fixture_close(&f);
}

static void a_monitor_tells_how_an_actor_ended(void **state) {
    (void)state;
    static const struct {
        const char *verb;
        int code;
    } ends[] = {{"end", WEIR_OK}, {"quit", WEIR_EIO}, {NULL, WEIR_EKILLED}};
    for (int i = 0; i < 3; i++) {
        fixture f;
        life w = {0}, l = {0};
        fixture_open(&f, WEIR_DRIVER_EV, 0);
        weir_address watcher = fixture_spawn(&f, &behaviour, &w), a = fixture_spawn(&f, &behaviour, &l);
        assert_int_equal(weir_monitor(weir__actor(f.s, watcher), a), WEIR_OK);
        assert_int_equal(weir_monitor(weir__actor(f.s, watcher), a), WEIR_OK);
        if (ends[i].verb)
            fixture_send(&f, a, ends[i].verb, 0);
        else
            weir_kill(f.s, a);
        fixture_run(&f);
        assert_int_equal(w.downs, 1);
        assert_int_equal(w.down_who, a);
        assert_int_equal(w.down_code, ends[i].code);
        assert_int_equal(l.finis, 1);
        fixture_close(&f);
    }
}

static void the_reason_of_an_exit_is_the_first(void **state) {
    (void)state;
    fixture f;
    life w = {0}, l = {0};
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    weir_address watcher = fixture_spawn(&f, &behaviour, &w), a = fixture_spawn(&f, &behaviour, &l);
    weir_monitor(weir__actor(f.s, watcher), a);
    fixture_send(&f, a, "quit", 0);
    fixture_send(&f, a, "work", 0);
    fixture_run(&f);
    assert_string_equal(w.down_text, "worn out");
    assert_int_equal(l.handled, 1);
    fixture_close(&f);
}

static void monitoring_an_ended_actor_tells_at_once(void **state) {
    (void)state;
    fixture f;
    life w = {0}, l = {0};
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    weir_address watcher = fixture_spawn(&f, &behaviour, &w), a = fixture_spawn(&f, &behaviour, &l);
    weir_kill(f.s, a);
    assert_int_equal(weir_monitor(weir__actor(f.s, watcher), a), WEIR_OK);
    assert_int_equal(w.downs, 0);
    fixture_run(&f);
    assert_int_equal(w.downs, 1);
    assert_int_equal(w.down_code, WEIR_ENOACTOR);
    fixture_close(&f);
}

static void demonitor_takes_back_even_what_is_queued(void **state) {
    (void)state;
    fixture f;
    life w = {0}, l[2] = {{0}, {0}};
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    weir_address watcher = fixture_spawn(&f, &behaviour, &w);
    weir_actor *self = weir__actor(f.s, watcher);
    for (int i = 0; i < 2; i++) {
        weir_address a = fixture_spawn(&f, &behaviour, &l[i]);
        assert_int_equal(weir_demonitor(self, a), WEIR_ENOACTOR);
        weir_monitor(self, a);
        if (i)
            weir_kill(f.s, a);
        assert_int_equal(weir_demonitor(self, a), WEIR_OK);
        if (!i)
            weir_kill(f.s, a);
    }
    fixture_run(&f);
    assert_int_equal(w.downs, 0);
    fixture_close(&f);
}

/* Two that watch each other, one that watches itself: any order of ends leaves nothing behind. */
static void monitors_may_form_circles(void **state) {
    (void)state;
    fixture f;
    life l[2] = {{0}, {0}};
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    weir_address a = fixture_spawn(&f, &behaviour, &l[0]), b = fixture_spawn(&f, &behaviour, &l[1]);
    weir_monitor(weir__actor(f.s, a), b);
    weir_monitor(weir__actor(f.s, b), a);
    weir_monitor(weir__actor(f.s, a), a);
    weir_kill(f.s, a);
    weir_kill(f.s, b);
    fixture_run(&f);
    assert_int_equal(l[0].finis + l[1].finis, 2);
    fixture_close(&f);
}

static void many_watchers_are_all_told(void **state) {
    (void)state;
    fixture f;
    static life w[500];
    life l = {0};
    memset(w, 0, sizeof w);
    fixture_open(&f, WEIR_DRIVER_TEST, 3);
    weir_address a = fixture_spawn(&f, &behaviour, &l), watchers[500];
    for (int i = 0; i < 500; i++) {
        watchers[i] = fixture_spawn(&f, &behaviour, &w[i]);
        weir_monitor(weir__actor(f.s, watchers[i]), a);
    }
    weir_kill(f.s, watchers[7]);
    fixture_send(&f, a, "end", 0);
    fixture_run(&f);
    for (int i = 0; i < 500; i++)
        assert_int_equal(w[i].downs, i != 7);
    fixture_close(&f);
}

/* Sleeping actors are killed in a loop: their timers go first. */
static void actors_A41(void **state) {
    (void)state;
    fixture f;
    life l = {0};
    fixture_open(&f, WEIR_DRIVER_TEST, 0);
    for (int i = 0; i < 1000; i++) {
        weir_address a = fixture_spawn(&f, &behaviour, &l);
        for (int k = 0; k < 3; k++)
            weir_timer(weir__actor(f.s, a), (i % 10) * MS + k, (enum weir_timer_kind)(i % 10 ? k : 0), tick, &l, NULL);
        weir_hold(weir__actor(f.s, a));
        bool over = false;
        weir_timer(f.main, 3 * MS, WEIR_TIMER_ONCE, set_flag, &over, NULL);
        if (i % 2)
            assert_int_equal(weir_system_run(f.s, flag_is_set, &over, NULL), WEIR_OK);
        weir_kill(f.s, a);
        if (!over)
            assert_int_equal(weir_system_run(f.s, flag_is_set, &over, NULL), WEIR_OK);
    }
    assert_int_equal(stats_of(f.s).timers, 0);
    fixture_run(&f);
    assert_int_equal(l.finis, 1000);
    fixture_close(&f);
}

/* An idle actor is destroyed, alone and with the system. */
static void actors_A47(void **state) {
    (void)state;
    fixture f;
    life l[2] = {{0}, {0}};
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    weir_address a = fixture_spawn(&f, &behaviour, &l[0]);
    fixture_spawn(&f, &behaviour, &l[1]);
    fixture_run(&f);
    weir_stop(f.s, a);
    fixture_run(&f);
    assert_int_equal(l[0].finis, 1);
    fixture_close(&f);
    assert_int_equal(l[1].finis, 1);
}

/* A message at the instant of a stop: handled or a dead letter, never neither, never both. */
static void actors_A17(void **state) {
    (void)state;
    fixture f;
    uint32_t random = 12345;
    uint64_t accepted = 0;
    life l = {0};
    fixture_open(&f, WEIR_DRIVER_TEST, 17);
    weir_verb work = weir_intern(f.s, "work"), quit = weir_intern(f.s, "quit");
    for (int trial = 0; trial < 100000; trial++) {
        weir_address a = fixture_spawn(&f, &behaviour, &l);
        for (int i = 0; i < 4; i++) {
            random = random * 1664525u + 1013904223u;
            switch (random >> 29) {
            case 0:
                weir_stop(f.s, a);
                break;
            case 1:
                weir_kill(f.s, a);
                break;
            case 2:
                accepted += weir_send(f.main, a, quit, NULL) == WEIR_OK;
                break;
            default:
                accepted += weir_send(f.main, a, work, NULL) == WEIR_OK;
            }
        }
        weir_stop(f.s, a);
        if (trial % 3 == 0)
            fixture_run(&f);
    }
    fixture_run(&f);
    weir_system_stats s = stats_of(f.s);
    assert_int_equal(s.sent, accepted);
    assert_int_equal(s.handled + s.dead, accepted);
    assert_int_equal(s.handled, l.handled);
    assert_int_equal(s.queued, 0);
    assert_int_equal(s.actors, 1);
    assert_int_equal(l.finis, 100000);
    fixture_close(&f);
}

/* 10,000 actors come and go: live blocks return to where they were. */
static void actors_A31(void **state) {
    (void)state;
    fixture f;
    static life l[1000];
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    int64_t blocks[2] = {0, 0};
    for (int round = 0; round < 10; round++) {
        weir_address a[1000];
        for (int i = 0; i < 1000; i++) {
            a[i] = fixture_spawn(&f, &behaviour, &l[i]);
            weir_monitor(f.main, a[i]);
            weir_timer(weir__actor(f.s, a[i]), 1000 * MS, WEIR_TIMER_ONCE, tick, &l[i], NULL);
            fixture_send(&f, a[i], "work", i);
            fixture_send(&f, a[i], "quit", i);
        }
        fixture_run(&f);
        for (int i = 0; i < 1000; i++)
            weir_demonitor(f.main, a[i]);
        weir_unhold(f.main);
        fixture_run(&f);
        weir_hold(f.main);
        blocks[round > 0] = f.memory.blocks;
        if (round)
            assert_int_equal(blocks[0], blocks[1]);
        blocks[0] = f.memory.blocks;
    }
    fixture_close(&f);
}

static int fini_order;

static void fini_that_kills(weir_system *s, void *state) {
    weir_address *other = state;
    fini_order++;
    weir_kill(s, *other);
}

static const weir_behaviour killer = {.name = "killer", .fini = fini_that_kills};

static void a_fini_may_kill_others(void **state) {
    (void)state;
    fixture f;
    weir_address a[3];
    fini_order = 0;
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    for (int i = 0; i < 3; i++)
        a[i] = fixture_spawn(&f, &killer, &a[(i + 1) % 3]);
    assert_int_equal(weir_kill(f.s, a[0]), WEIR_OK);
    assert_int_equal(fini_order, 3);
    assert_int_equal(stats_of(f.s).actors, 1);
    fixture_close(&f);
}

static void the_main_actor_cannot_be_ended(void **state) {
    (void)state;
    fixture f;
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    assert_int_equal(weir_kill(f.s, weir_self(f.main)), WEIR_EINVAL);
    assert_int_equal(weir_stop(f.s, weir_self(f.main)), WEIR_EINVAL);
    assert_string_equal(weir_actor_name(f.main), "main");
    fixture_close(&f);
}

static void a_failed_spawn_gives_the_state_back(void **state) {
    (void)state;
    fixture f;
    life l = {0};
    weir_error *e = NULL;
    weir_address a;
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    assert_int_equal(weir__inject_arm(f.s, "SPAWN", 1, 1), WEIR_OK);
    assert_int_equal(weir_spawn(f.s, &behaviour, &l, NULL, &a, &e), WEIR_ENOMEM);
    assert_non_null(strstr(weir_error_text(e), "worker"));
    weir_error_free(e);
    assert_int_equal(l.finis, 1);
    fixture_spawn(&f, &behaviour, &l);
    fixture_close(&f);
    assert_int_equal(l.finis, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stop_keeps_the_order_of_arrival),
        cmocka_unit_test(kill_overtakes_everything),
        cmocka_unit_test(a_monitor_tells_how_an_actor_ended),
        cmocka_unit_test(the_reason_of_an_exit_is_the_first),
        cmocka_unit_test(monitoring_an_ended_actor_tells_at_once),
        cmocka_unit_test(demonitor_takes_back_even_what_is_queued),
        cmocka_unit_test(monitors_may_form_circles),
        cmocka_unit_test(many_watchers_are_all_told),
        cmocka_unit_test(actors_A41),
        cmocka_unit_test(actors_A47),
        cmocka_unit_test(actors_A17),
        cmocka_unit_test(actors_A31),
        cmocka_unit_test(a_fini_may_kill_others),
        cmocka_unit_test(the_main_actor_cannot_be_ended),
        cmocka_unit_test(a_failed_spawn_gives_the_state_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
