/* Restarts in bad circumstances: work that lingers, wanting memory, children on other loops, every order of events. */
#include "supervised.h"

/* ---- what lingers for a dead child ---- */

typedef struct stream {
    weir_system *s;
    weir__linger linger;
    weir_address quarantined;
    int times;
} stream;

static void quarantine(void *data, weir_address owner) {
    stream *d = data;
    d->quarantined = owner;
    d->times++;
    weir__linger_end(d->s, &d->linger);
}

static void end_stream(weir_actor *self, void *data, uint64_t missed) {
    stream *d = data;
    (void)self, (void)missed;
    weir__linger_end(d->s, &d->linger);
}

static void a_restart_waits_until_nothing_lingers(void **state) {
    (void)state;
    for (enum weir_strategy strategy = WEIR_ONE_FOR_ONE; strategy <= WEIR_ONE_FOR_ALL; strategy++) {
        world w;
        kid k[2];
        weir_child c[2];
        world_open(&w, WEIR_DRIVER_TEST, 1);
        kids_init(&w, k, c, 2);
        stream d = {.s = w.f.s};
        weir__set_quarantine(w.f.s, quarantine, &d);
        weir_address a = supervise(&w, c, 2, (weir_supervisor_options){.strategy = strategy});
        weir__linger_begin(w.f.s, &d.linger, k[1].address);
        int64_t begin = weir_now(w.f.s);
        weir_timer(w.f.main, 70 * MS, WEIR_TIMER_ONCE, end_stream, &d, NULL);
        tell(&w, "b", "fail");
        assert_string_equal(w.log, strategy == WEIR_ONE_FOR_ONE ? "+a +b -b +b" : "+a +b -b -a +a +b");
        assert_int_equal(k[1].at[1] - begin, 70 * MS);
        assert_int_equal(d.times, 0);
        stop_and_run(&w, a);
        world_close(&w);
    }
}

static void work_that_lingers_too_long_is_quarantined_and_the_restart_goes_on(void **state) {
    (void)state;
    for (enum weir_strategy strategy = WEIR_ONE_FOR_ONE; strategy <= WEIR_ONE_FOR_ALL; strategy++) {
        world w;
        kid k[2];
        weir_child c[2];
        world_open(&w, WEIR_DRIVER_TEST, 1);
        kids_init(&w, k, c, 2);
        stream d = {.s = w.f.s};
        weir__set_quarantine(w.f.s, quarantine, &d);
        weir_address a = supervise(&w, c, 2, (weir_supervisor_options){.strategy = strategy, .drain = 40 * MS});
        weir_address old = k[1].address;
        weir__linger_begin(w.f.s, &d.linger, old);
        int64_t begin = weir_now(w.f.s);
        tell(&w, "b", "fail");
        assert_int_equal(k[1].at[1] - begin, 40 * MS);
        assert_int_equal(d.quarantined, old);
        assert_int_equal(d.times, 1);
        assert_int_equal(k[1].starts, 2);
        stop_and_run(&w, a);
        world_close(&w);
    }
}

/* So that whoever restarts the supervisor finds no work of its children either. */
static void a_supervisor_ends_after_what_its_children_left(void **state) {
    (void)state;
    world w;
    kid k[2];
    weir_child c[2];
    world_open(&w, WEIR_DRIVER_TEST, 1);
    kids_init(&w, k, c, 2);
    stream d = {.s = w.f.s};
    weir_address a = supervise(&w, c, 2, (weir_supervisor_options){0});
    weir__linger_begin(w.f.s, &d.linger, k[1].address);
    weir_stop(w.f.s, a);
    weir_timer(w.f.main, 70 * MS, WEIR_TIMER_ONCE, end_stream, &d, NULL);
    weir_system_run(w.f.s, NULL, NULL, NULL);
    assert_string_equal(w.log, "+a +b -b -a");
    assert_int_equal(w.downs, 1);
    world_close(&w);
}

static void a_stop_while_a_child_drains_ends_the_supervisor_without_a_restart(void **state) {
    (void)state;
    world w;
    kid k[1];
    weir_child c[1];
    world_open(&w, WEIR_DRIVER_TEST, 1);
    kids_init(&w, k, c, 1);
    stream d = {.s = w.f.s};
    weir_address a = supervise(&w, c, 1, (weir_supervisor_options){0});
    weir__linger_begin(w.f.s, &d.linger, k[0].address);
    weir_timer(w.f.main, 70 * MS, WEIR_TIMER_ONCE, end_stream, &d, NULL);
    fixture_send(&w.f, k[0].address, "fail", 1);
    weir_send(w.f.main, a, weir_intern(w.f.s, "drained"), NULL); /* nobody's: nothing happens */
    for (int i = 0; i < 3; i++)
        weir_system_run(w.f.s, flag_is_set, &(bool){true}, NULL);
    weir_stop(w.f.s, a);
    fixture_run(&w.f);
    assert_int_equal(k[0].starts, 1);
    assert_int_equal(w.downs, 1);
    assert_null(w.ended);
    world_close(&w);
}

/* The supervisor is killed while it waits: the notice becomes a dead letter, nothing is left. */
static void a_kill_while_a_child_drains_leaves_nothing(void **state) {
    (void)state;
    world w;
    kid k[1];
    weir_child c[1];
    world_open(&w, WEIR_DRIVER_TEST, 1);
    kids_init(&w, k, c, 1);
    stream d = {.s = w.f.s};
    weir_address a = supervise(&w, c, 1, (weir_supervisor_options){0});
    weir__linger_begin(w.f.s, &d.linger, k[0].address);
    fixture_send(&w.f, k[0].address, "fail", 1);
    for (int i = 0; i < 20; i++)
        weir_system_run(w.f.s, flag_is_set, &(bool){true}, NULL);
    weir_kill(w.f.s, a);
    weir__linger_end(w.f.s, &d.linger);
    fixture_run(&w.f);
    assert_int_equal(k[0].starts, 1);
    assert_int_equal(w.finis, 1);
    world_close(&w);
}

/* A start that the supervisor cannot watch has failed, and what it began meanwhile is waited for too. */
static void what_an_unwatched_start_left_is_waited_for(void **state) {
    (void)state;
    for (enum weir_strategy strategy = WEIR_ONE_FOR_ONE; strategy <= WEIR_ONE_FOR_ALL; strategy++) {
        world w;
        kid k[1];
        weir_child c[1];
        world_open(&w, WEIR_DRIVER_TEST, 1);
        kids_init(&w, k, c, 1);
        stream d = {.s = w.f.s};
        weir_address a = supervise(&w, c, 1, (weir_supervisor_options){.strategy = strategy});
        k[0].leaves = &d.linger;
        weir_timer(w.f.main, 70 * MS, WEIR_TIMER_ONCE, end_stream, &d, NULL);
        assert_int_equal(weir__inject_arm(w.f.s, "WATCH", 1, 1), WEIR_OK);
        weir_kill(w.f.s, k[0].address);
        fixture_run(&w.f);
        assert_string_equal(w.log, "+a -a +a -a +a");
        assert_int_equal(k[0].at[2] - k[0].at[1], 80 * MS); /* and 10 ms before the second restart */
        weir__linger_end(w.f.s, &d.linger);
        stop_and_run(&w, a);
        world_close(&w);
    }
}

/* ---- every order of events ---- */

static uint64_t next_random(uint64_t *x) {
    *x ^= *x << 13, *x ^= *x >> 7, *x ^= *x << 17;
    return *x;
}

/* Failures, orderly ends, kills and lingering work at random, the order of turns by the seed. Whatever happens: one life at a time, each start has its end, and
 * the supervisor ends, by itself or when it is asked to. */
static void play(uint64_t seed, enum weir_strategy strategy) {
    world w;
    kid k[KIDS];
    weir_child c[KIDS];
    uint64_t random = seed * 2654435761u + 88172645463325252u;
    world_open(&w, WEIR_DRIVER_TEST, seed);
    kids_init(&w, k, c, KIDS);
    stream d = {.s = w.f.s};
    weir__set_quarantine(w.f.s, quarantine, &d);
    for (int i = 0; i < KIDS; i++) {
        c[i].patience = 20 * MS;
        c[i].restart = (enum weir_restart)(next_random(&random) % 3);
        k[i].stubborn = next_random(&random) % 4 == 0;
        k[i].failing = next_random(&random) & next_random(&random) & ~UINT64_C(1);
    }
    weir_address a = 0;
    weir_supervisor_options o = {
        .strategy = strategy, .intensity = 6, .period = 100 * MS, .drain = 15 * MS, .fini = world_fini, .data = &w};
    assert_int_equal(weir_supervise(w.f.s, c, KIDS, &o, &a, NULL), WEIR_OK);
    watch(&w, a);
    for (int i = 0; i < 40; i++) {
        static const char *const verbs[] = {"fail", "end", "work", "work"};
        kid *it = &k[next_random(&random) % KIDS];
        uint64_t what = next_random(&random) % 8;
        if (what < 4)
            weir_send(w.f.main, it->address, weir_intern(w.f.s, verbs[what]), weir_pack(w.f.s, "i", INT64_C(1)));
        else if (what == 4)
            weir_kill(w.f.s, it->address);
        else if (what == 5 && it->alive)
            weir__linger_begin(w.f.s, &d.linger, it->address);
        else if (what == 6)
            weir__linger_end(w.f.s, &d.linger);
        weir_timer(w.f.main, (int64_t)(next_random(&random) % 8) * MS, WEIR_TIMER_ONCE, end_stream, &d, NULL);
        for (uint64_t n = next_random(&random) % 12; n > 0; n--)
            weir_system_run(w.f.s, flag_is_set, &(bool){true}, NULL);
    }
    weir_stop(w.f.s, a);
    fixture_run(&w.f);
    assert_int_equal(w.downs, 1);
    assert_int_equal(w.finis, 1);
    for (int i = 0; i < KIDS; i++) {
        assert_int_equal(k[i].alive, 0);
        assert_false(k[i].twice);
    }
    assert_int_equal(stats_of(w.f.s).timers, 0);
    world_close(&w);
}

static void whatever_the_order_each_life_is_alone_and_all_end(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 400; seed++)
        play(seed, seed % 2 ? WEIR_ONE_FOR_ONE : WEIR_ONE_FOR_ALL);
}

/* ---- want of memory ---- */

typedef struct fault {
    const char *point;
    uint64_t nth, times;
} fault;

static void arm(world *w, const fault *x) {
    assert_int_equal(weir__inject_arm(w->f.s, x->point, x->nth, x->times), WEIR_OK);
}

/* Either it has ended, or it keeps both children. */
static void one_or_the_other(world *w, const kid *k, weir_address a) {
    bool lives = a && weir__actor(w->f.s, a);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(k[i].alive, lives);
        assert_int_equal(weir_whereis(w->f.s, k[i].name), lives ? k[i].address : 0);
        assert_false(k[i].twice);
    }
    assert_int_equal(w->finis, !lives);
}

static void starve(const fault *x, enum weir_strategy strategy, bool during_start) {
    world w;
    kid k[2];
    weir_child c[2];
    weir_address a = 0;
    weir_error *e = NULL;
    world_open(&w, WEIR_DRIVER_TEST, x->nth);
    kids_init(&w, k, c, 2);
    stream d = {.s = w.f.s};
    weir__set_quarantine(w.f.s, quarantine, &d);
    weir_supervisor_options o = {.strategy = strategy, .intensity = 5, .drain = 10 * MS, .fini = world_fini, .data = &w};
    if (during_start)
        arm(&w, x);
    int code = weir_supervise(w.f.s, c, 2, &o, &a, &e);
    assert_int_equal(code, e ? WEIR_ENOMEM : WEIR_OK);
    weir_error_free(e);
    fixture_run(&w.f);
    one_or_the_other(&w, k, a);
    if (!during_start) {
        arm(&w, x);
        weir__linger_begin(w.f.s, &d.linger, k[1].address);
        for (int i = 0; i < 2; i++) {
            weir_kill(w.f.s, k[1].address);
            fixture_run(&w.f);
            one_or_the_other(&w, k, a);
        }
    }
    weir_stop(w.f.s, a);
    fixture_run(&w.f);
    one_or_the_other(&w, k, 0);
    assert_int_equal(stats_of(w.f.s).actors, 1);
    assert_int_equal(stats_of(w.f.s).timers, 0);
    world_close(&w);
}

static void every_fault_during_start_and_restart_ends_in_an_error_or_a_later_restart(void **state) {
    (void)state;
    static const char *const points[] = {"ALLOC", "SPAWN", "REGISTER", "WATCH", "SEND"};
    for (size_t p = 0; p < sizeof points / sizeof *points; p++)
        for (uint64_t n = 1; n <= 30; n++)
            for (int v = 0; v < 8; v++)
                starve(&(fault){points[p], n, v & 1 ? 1 : UINT64_C(1) << 32}, v & 2 ? WEIR_ONE_FOR_ALL : WEIR_ONE_FOR_ONE, v & 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_restart_waits_until_nothing_lingers),
        cmocka_unit_test(work_that_lingers_too_long_is_quarantined_and_the_restart_goes_on),
        cmocka_unit_test(a_supervisor_ends_after_what_its_children_left),
        cmocka_unit_test(a_stop_while_a_child_drains_ends_the_supervisor_without_a_restart),
        cmocka_unit_test(a_kill_while_a_child_drains_leaves_nothing),
        cmocka_unit_test(what_an_unwatched_start_left_is_waited_for),
        cmocka_unit_test(whatever_the_order_each_life_is_alone_and_all_end),
        cmocka_unit_test(every_fault_during_start_and_restart_ends_in_an_error_or_a_later_restart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
