/* Timers: never early, in order, fixed rate and fixed delay, what is missed; the virtual clock. */
#include <sys/resource.h>

#include "fixture.h"

enum { MS = 1000000 };

typedef struct clocked {
    int fired, early;
} clocked;

typedef struct one {
    clocked *all;
    int64_t wanted;
} one;

static void check_time(weir_actor *self, void *data, uint64_t missed) {
    one *o = data;
    (void)missed;
    o->all->fired++;
    o->all->early += weir_now(weir_system_of(self)) < o->wanted;
}

/* 1,000 timers of 1 ms at random phases. */
static void loop_E9(void **state) {
    (void)state;
    fixture f;
    clocked all = {0};
    static one o[1000];
    uint32_t random = 9;
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    for (int i = 0; i < 1000; i++) {
        random = random * 1664525u + 1013904223u;
        int64_t until = weir_now(f.s) + random % 50000;
        while (weir_now(f.s) < until)
            ;
        o[i] = (one){&all, weir_now(f.s) + MS};
        assert_int_equal(weir_timer(f.main, MS, WEIR_TIMER_ONCE, check_time, &o[i], NULL), WEIR_OK);
        if (i % 100 == 99)
            fixture_run(&f);
    }
    fixture_run(&f);
    assert_int_equal(all.fired, 1000);
    assert_int_equal(all.early, 0);
    fixture_close(&f);
}

typedef struct ticks {
    int count, last;
    int64_t at[64];
    uint64_t missed[64];
    uint64_t id;
    int64_t busy; /* ns that its first callback takes */
} ticks;

static void tick(weir_actor *self, void *data, uint64_t missed) {
    ticks *t = data;
    t->at[t->count] = weir_now(weir_system_of(self));
    t->missed[t->count] = missed;
    if (++t->count == t->last)
        weir_timer_cancel(self, t->id);
}

static void a_fixed_rate_keeps_its_phase(void **state) {
    (void)state;
    fixture f;
    ticks t = {.last = 5};
    fixture_open(&f, WEIR_DRIVER_TEST, 0);
    weir_timer(f.main, 10 * MS, WEIR_TIMER_RATE, tick, &t, &t.id);
    fixture_run(&f);
    assert_int_equal(t.count, 5);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(t.at[i], (i + 1) * 10 * MS);
        assert_int_equal(t.missed[i], 0);
    }
    assert_int_equal(stats_of(f.s).timers, 0);
    fixture_close(&f);
}

static void busy_tick(weir_actor *self, void *data, uint64_t missed) {
    ticks *t = data;
    tick(self, data, missed);
    int64_t until = weir_now(weir_system_of(self)) + t->busy;
    while (t->count == 1 && weir_now(weir_system_of(self)) < until)
        ;
}

/* The first callback takes 3.5 periods: the next tick says that it missed some, and the phase is kept. */
static void a_late_tick_says_how_many_were_missed(void **state) {
    (void)state;
    fixture f;
    ticks t = {.last = 3, .busy = 35 * MS};
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    int64_t start = weir_now(f.s);
    weir_timer(f.main, 10 * MS, WEIR_TIMER_RATE, busy_tick, &t, &t.id);
    fixture_run(&f);
    assert_int_equal(t.missed[0], (t.at[0] - start) / (10 * MS) - 1);
    assert_true(t.missed[1] >= 2);
    uint64_t periods = 3 + t.missed[0] + t.missed[1] + t.missed[2];
    assert_true(t.at[2] >= start + (int64_t)periods * 10 * MS);
    fixture_close(&f);
}

/* At least the period lies between the end of a tick and the next one. */
static void loop_E11(void **state) {
    (void)state;
    fixture f;
    ticks t = {.last = 4, .busy = 20 * MS};
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    weir_timer(f.main, 5 * MS, WEIR_TIMER_DELAY, busy_tick, &t, &t.id);
    fixture_run(&f);
    assert_int_equal(t.count, 4);
    assert_true(t.at[1] - t.at[0] >= 25 * MS);
    assert_true(t.at[2] - t.at[1] >= 5 * MS);
    assert_true(t.at[3] - t.at[2] >= 5 * MS);
    fixture_close(&f);
}

static char timer_log[64];

static void append(weir_actor *self, void *data, uint64_t missed) {
    (void)self, (void)missed;
    strncat(timer_log, data, 2);
}

static void equal_times_fire_in_the_order_they_were_set(void **state) {
    (void)state;
    fixture f;
    timer_log[0] = 0;
    fixture_open(&f, WEIR_DRIVER_TEST, 5);
    weir_timer(f.main, 2 * MS, WEIR_TIMER_ONCE, append, "c", NULL);
    weir_timer(f.main, 1 * MS, WEIR_TIMER_ONCE, append, "a", NULL);
    weir_timer(f.main, 1 * MS, WEIR_TIMER_ONCE, append, "b", NULL);
    weir_timer(f.main, 2 * MS, WEIR_TIMER_ONCE, append, "d", NULL);
    fixture_run(&f);
    assert_string_equal(timer_log, "abcd");
    assert_int_equal(weir_now(f.s), 2 * MS);
    fixture_close(&f);
}

/* Many timers set and cancelled at random: those that remain fire in order, whatever the heap went through. */
typedef struct order {
    int64_t last;
    int fired;
} order;

static void in_order(weir_actor *self, void *data, uint64_t missed) {
    order *o = data;
    (void)missed;
    int64_t now = weir_now(weir_system_of(self));
    assert_true(now >= o->last);
    o->last = now;
    o->fired++;
}

static void cancelled_timers_do_not_fire(void **state) {
    (void)state;
    fixture f;
    order o = {0, 0};
    static uint64_t id[3000];
    uint32_t random = 77;
    int cancelled = 0;
    fixture_open(&f, WEIR_DRIVER_TEST, 0);
    for (int i = 0; i < 3000; i++) {
        random = random * 1664525u + 1013904223u;
        weir_timer(f.main, random % 1000000, WEIR_TIMER_ONCE, in_order, &o, &id[i]);
        if (i % 3 == 2) {
            weir_timer_cancel(f.main, id[i - (int)(random >> 8) % 3]);
            cancelled++;
        }
        if (i % 100 == 0)
            weir__verify(f.s);
    }
    assert_int_equal(stats_of(f.s).timers, 3000 - cancelled);
    fixture_run(&f);
    assert_int_equal(o.fired, 3000 - cancelled);
    for (int i = 0; i < 3000; i++)
        weir_timer_cancel(f.main, id[i]);
    fixture_close(&f);
}

static void wrong_periods_are_refused(void **state) {
    (void)state;
    fixture f;
    order o = {0, 0};
    fixture_open(&f, WEIR_DRIVER_TEST, 0);
    assert_int_equal(weir_timer(f.main, -1, WEIR_TIMER_ONCE, in_order, &o, NULL), WEIR_EINVAL);
    assert_int_equal(weir_timer(f.main, 0, WEIR_TIMER_RATE, in_order, &o, NULL), WEIR_EINVAL);
    assert_int_equal(weir_timer(f.main, 0, WEIR_TIMER_DELAY, in_order, &o, NULL), WEIR_EINVAL);
    assert_int_equal(weir_timer(f.main, 0, WEIR_TIMER_ONCE, in_order, &o, NULL), WEIR_OK);
    assert_int_equal(weir_timer(f.main, INT64_MAX, WEIR_TIMER_ONCE, in_order, &o, NULL), WEIR_OK);
    fixture_run(&f);
    assert_int_equal(o.fired, 2);
    fixture_close(&f);
}

typedef struct full {
    int mail, ticks;
} full;

static void on_mail(weir_actor *self, const weir_message *m) {
    (void)m;
    ((full *)weir_state(self))->mail++;
}

static void full_tick(weir_actor *self, void *data, uint64_t missed) {
    (void)self, (void)missed;
    ((full *)data)->ticks++;
}

static const weir_handler handlers[] = {{"mail", on_mail}, {NULL, NULL}};
static const weir_behaviour behaviour = {.name = "full", .handlers = handlers};

/* Timers fire into an actor whose mailbox is full, and nothing waits for it. */
static void actors_A13(void **state) {
    (void)state;
    fixture f;
    full u = {0, 0};
    weir_spawn_options o = {.mailbox_messages = 2};
    weir_address a;
    fixture_open(&f, WEIR_DRIVER_TEST, 0);
    assert_int_equal(weir_spawn(f.s, &behaviour, &u, &o, &a, NULL), WEIR_OK);
    weir_actor *self = weir__actor(f.s, a);
    weir_hold(self);
    for (int i = 0; i < 3; i++)
        weir_send(f.main, a, weir_intern(f.s, "mail"), NULL);
    for (int i = 1; i <= 10; i++)
        weir_timer(self, i * MS, WEIR_TIMER_ONCE, full_tick, &u, NULL);
    fixture_run(&f);
    assert_int_equal(u.ticks, 10);
    assert_int_equal(u.mail, 0);
    weir_unhold(self);
    fixture_run(&f);
    assert_int_equal(u.mail, 2);
    fixture_close(&f);
}

/* The virtual clock only goes forward, and only when nothing else can happen. */
typedef struct clock_watch {
    int64_t last;
    int left;
} clock_watch;

static void on_step(weir_actor *self, const weir_message *m) {
    clock_watch *w = weir_state(self);
    int64_t now = weir_now(weir_system_of(self));
    assert_true(now == w->last);
    if (w->left-- > 0)
        weir_send(self, weir_self(self), weir_message_verb(m), NULL);
}

static void never(weir_actor *self, void *data, uint64_t missed) {
    (void)missed;
    clock_watch *w = data;
    assert_int_equal(w->left, -1);
    assert_true(weir_now(weir_system_of(self)) >= w->last);
}

static const weir_handler step_handlers[] = {{"step", on_step}, {NULL, NULL}};
static const weir_behaviour stepping = {.name = "stepping", .handlers = step_handlers};

static void loop_E13(void **state) {
    (void)state;
    fixture f;
    clock_watch w = {0, 500};
    fixture_open(&f, WEIR_DRIVER_TEST, 0);
    weir_address a = fixture_spawn(&f, &stepping, &w);
    weir_timer(f.main, 1, WEIR_TIMER_ONCE, never, &w, NULL);
    weir_send(f.main, a, weir_intern(f.s, "step"), NULL);
    fixture_run(&f);
    assert_int_equal(w.left, -1);
    assert_int_equal(weir_now(f.s), 1);
    fixture_close(&f);
}

/* No file descriptor is left: timers need none. */
static void loop_E15(void **state) {
    (void)state;
    fixture f;
    static int taken[4096];
    int n = 0;
    struct rlimit old, few = {256, 256};
    order o = {0, 0};
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    few.rlim_max = old.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    while (n < 4096 && (taken[n] = dup(0)) >= 0)
        n++;
    for (int i = 0; i < 20; i++)
        weir_timer(f.main, MS, WEIR_TIMER_ONCE, in_order, &o, NULL);
    fixture_run(&f);
    while (n)
        close(taken[--n]);
    setrlimit(RLIMIT_NOFILE, &old);
    assert_int_equal(o.fired, 20);
    fixture_close(&f);
}

/* An actor sleeps for an hour when the system stops: it does not keep it. */
static void shutdown_S5(void **state) {
    (void)state;
    fixture f;
    order o = {0, 0};
    full u = {0, 0};
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    weir_address a = fixture_spawn(&f, &behaviour, &u);
    weir_timer(weir__actor(f.s, a), INT64_C(3600) * 1000 * MS, WEIR_TIMER_ONCE, in_order, &o, NULL);
    assert_int_equal(weir_system_stop(f.s, 1000 * MS, NULL), WEIR_OK);
    assert_int_equal(o.fired, 0);
    assert_int_equal(stats_of(f.s).timers, 0);
    fixture_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loop_E9),
        cmocka_unit_test(a_fixed_rate_keeps_its_phase),
        cmocka_unit_test(a_late_tick_says_how_many_were_missed),
        cmocka_unit_test(loop_E11),
        cmocka_unit_test(equal_times_fire_in_the_order_they_were_set),
        cmocka_unit_test(cancelled_timers_do_not_fire),
        cmocka_unit_test(wrong_periods_are_refused),
        cmocka_unit_test(actors_A13),
        cmocka_unit_test(loop_E13),
        cmocka_unit_test(loop_E15),
        cmocka_unit_test(shutdown_S5),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
