/* The fd driver: hosts that wait for the descriptor only, for the timeout only, or for both; steps; what wakes a host that waits; idling. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <time.h>

#include "fixture.h"

enum { MS = 1000000, HANG_MS = 20000 };

/* ---- actors ---- */

typedef struct echo {
    int handled;
    bool done;
} echo;

static void on_work(weir_actor *self, const weir_message *m) {
    echo *e = weir_state(self);
    e->handled++;
    if (weir_message_is_call(m))
        weir_reply(self, m, weir_pack(weir_system_of(self), "i", first_int(m)));
}

/* Sends itself the next number, down to 0. */
static void on_count(weir_actor *self, const weir_message *m) {
    echo *e = weir_state(self);
    int64_t n = first_int(m);
    e->handled++;
    e->done = n == 0;
    if (n > 0)
        weir_send(self, weir_self(self), weir_message_verb(m), weir_pack(weir_system_of(self), "i", n - 1));
}

static int64_t real_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void on_busy(weir_actor *self, const weir_message *m) {
    for (int64_t until = real_now() + first_int(m); real_now() < until;)
        ;
    on_work(self, m);
}

static const weir_handler handlers[] = {{"work", on_work}, {"count", on_count}, {"busy", on_busy}, {NULL, NULL}};
static const weir_behaviour behaviour = {.name = "echo", .handlers = handlers};

static void set_flag(weir_actor *self, void *data, uint64_t missed) {
    (void)self, (void)missed;
    *(bool *)data = true;
}

/* ---- hosts ---- */

static bool readable(weir_system *s, int ms) {
    struct pollfd p = {weir_system_fd(s), POLLIN, 0};
    int n;
    do
        n = poll(&p, 1, ms);
    while (n < 0 && errno == EINTR);
    return n > 0;
}

static void step(fixture *f) {
    weir_error *e = NULL;
    if (weir_system_step(f->s, 0, &e))
        fail_msg("%s", weir_error_text(e));
}

/* Waits for the descriptor and for nothing else. */
static void host_of_fd(fixture *f, const bool *done) {
    while (!*done) {
        if (!readable(f->s, HANG_MS))
            fail_msg("the descriptor tells nothing");
        step(f);
    }
}

/* Never looks at the descriptor; where the timeout says that only the descriptor will tell, it naps. */
static void host_of_timeout(fixture *f, const bool *done) {
    int64_t hang = real_now() + (int64_t)HANG_MS * MS;
    while (!*done) {
        int64_t ns = weir_system_timeout(f->s);
        if (ns < 0 || ns > MS)
            ns = MS;
        nanosleep(&(struct timespec){0, ns}, NULL);
        step(f);
        assert_true(real_now() < hang);
    }
}

/* What most programs do: the descriptor, with the timeout rounded up to milliseconds. */
static void host_of_both(fixture *f, const bool *done) {
    while (!*done) {
        int64_t ns = weir_system_timeout(f->s);
        readable(f->s, ns < 0 ? HANG_MS : (int)((ns + MS - 1) / MS));
        step(f);
    }
}

typedef void host_fn(fixture *f, const bool *done);
static host_fn *const hosts[] = {host_of_fd, host_of_timeout, host_of_both};
enum { HOSTS = sizeof hosts / sizeof hosts[0] };

/* Work from outside of a step, while the host sleeps: a send, a call with its reply, a timer, a stop. */
static void a_host_hears_of_what_it_does_itself(void **state) {
    (void)state;
    for (int h = 0; h < HOSTS; h++) {
        fixture f;
        echo e = {0}, counts = {0};
        bool due = false;
        fixture_open(&f, WEIR_DRIVER_FD, 0);
        weir_address a = fixture_spawn(&f, &behaviour, &counts);
        fixture_send(&f, a, "count", 1000);
        hosts[h](&f, &counts.done);
        assert_int_equal(counts.handled, 1001);
        assert_int_equal(weir_timer(f.main, 3 * MS, WEIR_TIMER_ONCE, set_flag, &due, NULL), WEIR_OK);
        hosts[h](&f, &due);
        weir_address b = fixture_spawn(&f, &behaviour, &e);
        outcome o = {0};
        fixture_call(&f, b, "work", 42, 0, &o);
        while (!o.ended) {
            assert_true(h == 1 || readable(f.s, HANG_MS));
            step(&f);
        }
        assert_int_equal(o.value, 42);
        assert_int_equal(weir_stop(f.s, b), WEIR_OK);
        assert_int_equal(weir_system_timeout(f.s), 0);
        assert_true(readable(f.s, HANG_MS));
        step(&f);
        weir_actor_stats stats;
        assert_int_equal(weir_actor_get_stats(f.s, b, &stats), WEIR_ENOACTOR);
        fixture_close(&f);
    }
}

typedef struct poster {
    weir_system *s;
    weir_address to;
    int posts;
} poster;

/* At random moments, some while the host sleeps and some while it wakes. */
static void *post_slowly(void *data) {
    poster *p = data;
    weir_verb verb = weir_intern(p->s, "count");
    uint32_t random = 7;
    for (int i = p->posts; i > 0; i--) {
        random = random * 1664525u + 1013904223u;
        for (volatile uint32_t spin = random >> 19; spin; spin--)
            ;
        while (weir_post(p->s, 0, p->to, verb, weir_pack(p->s, "i", INT64_C(-1))) == WEIR_EFULL)
            nanosleep(&(struct timespec){0, 1000}, NULL);
    }
    weir_post(p->s, 0, p->to, verb, weir_pack(p->s, "i", INT64_C(0)));
    return NULL;
}

static void a_host_hears_of_every_post_of_other_threads(void **state) {
    (void)state;
    for (int h = 0; h < HOSTS; h++) {
        fixture f;
        echo e = {0};
        pthread_t t;
        fixture_open(&f, WEIR_DRIVER_FD, 0);
        poster p = {f.s, fixture_spawn(&f, &behaviour, &e), h == 1 ? 500 : 20000};
        assert_int_equal(pthread_create(&t, NULL, post_slowly, &p), 0);
        hosts[h](&f, &e.done);
        pthread_join(t, NULL);
        assert_int_equal(e.handled, p.posts + 1);
        fixture_close(&f);
    }
}

typedef struct resetting {
    weir_system *s;
    weir_address a;
    _Atomic int handled;
    uint64_t timer;
    bool done;
} resetting;

static void never_due(weir_actor *self, void *data, uint64_t missed) {
    (void)self, (void)data, (void)missed;
}

/* Moves a timer that is far away, so that going to sleep takes a system call: a post may come in just then. */
static void on_reset(weir_actor *self, const weir_message *m) {
    resetting *r = weir_state(self);
    r->handled++;
    r->done = first_int(m) == 0;
    weir_timer_cancel(self, r->timer);
    weir_timer(self, INT64_C(3600000000000) + r->handled, WEIR_TIMER_ONCE, never_due, NULL, &r->timer);
}
static const weir_handler reset_handlers[] = {{"count", on_reset}, {NULL, NULL}};
static const weir_behaviour reset_behaviour = {.name = "resetting", .handlers = reset_handlers};

/* Each post waits until the one before was handled, and comes some moments later: while the loop goes to sleep. */
static void *post_one_by_one(void *data) {
    resetting *r = data;
    weir_verb verb = weir_intern(r->s, "count");
    uint32_t random = 11;
    for (int i = 0; i < 30000; i++) {
        weir_post(r->s, 0, r->a, verb, weir_pack(r->s, "i", (int64_t)(29999 - i)));
        while (atomic_load(&r->handled) <= i)
            sched_yield();
        random = random * 1664525u + 1013904223u;
        for (volatile uint32_t spin = random >> 18; spin; spin--)
            ;
    }
    return NULL;
}

static void no_post_is_slept_over_between_a_step_and_the_wait(void **state) {
    (void)state;
    fixture f;
    resetting r = {.s = NULL};
    pthread_t t;
    fixture_open(&f, WEIR_DRIVER_FD, 0);
    r.s = f.s;
    r.a = fixture_spawn(&f, &reset_behaviour, &r);
    assert_int_equal(pthread_create(&t, NULL, post_one_by_one, &r), 0);
    host_of_fd(&f, &r.done);
    pthread_join(t, NULL);
    assert_int_equal(r.handled, 30000);
    fixture_close(&f);
}

/* ---- steps ---- */

/* A handler makes work and starts a timer; after the step the descriptor is readable and the timeout is 0, so that no kind of host waits. */
static void loop_E1_the_timeout_is_0_and_the_descriptor_readable_when_work_is_left(void **state) {
    (void)state;
    fixture f;
    echo e = {0};
    fixture_open(&f, WEIR_DRIVER_FD, 0);
    weir_address a = fixture_spawn(&f, &behaviour, &e);
    fixture_send(&f, a, "busy", MS);
    fixture_send(&f, a, "busy", MS);
    assert_int_equal(weir_system_timeout(f.s), 0);
    assert_int_equal(weir_system_step(f.s, 1, NULL), WEIR_OK);
    assert_int_equal(e.handled, 1);
    assert_int_equal(weir_system_timeout(f.s), 0);
    assert_true(readable(f.s, 0));
    step(&f);
    assert_int_equal(e.handled, 2);
    assert_int_equal(weir_system_timeout(f.s), -1);
    assert_false(readable(f.s, 0));
    fixture_close(&f);
}

static void loop_E3_taking_the_work_away_again_leaves_nothing_to_wait_for(void **state) {
    (void)state;
    fixture f;
    echo e = {0};
    uint64_t id;
    bool due = false;
    fixture_open(&f, WEIR_DRIVER_FD, 0);
    weir_address a = fixture_spawn(&f, &behaviour, &e);
    fixture_send(&f, a, "work", 0);
    assert_int_equal(weir_timer(f.main, 30 * MS, WEIR_TIMER_ONCE, set_flag, &due, &id), WEIR_OK);
    weir_kill(f.s, a);
    weir_timer_cancel(f.main, id);
    assert_true(readable(f.s, 0)); /* what was announced may be nothing */
    step(&f);
    assert_int_equal(weir_system_timeout(f.s), -1);
    assert_false(readable(f.s, 60));
    assert_false(due);
    assert_int_equal(e.handled, 0);
    fixture_close(&f);
}

static void a_step_begins_no_turn_after_its_time(void **state) {
    (void)state;
    fixture f;
    echo e[10] = {0};
    fixture_open(&f, WEIR_DRIVER_FD, 0);
    for (int i = 0; i < 10; i++)
        fixture_send(&f, fixture_spawn(&f, &behaviour, &e[i]), "busy", 2 * MS);
    int handled = 0, steps = 0;
    while (handled < 10) {
        assert_int_equal(weir_system_step(f.s, MS, NULL), WEIR_OK);
        steps++;
        handled = 0;
        for (int i = 0; i < 10; i++)
            handled += e[i].handled;
        assert_true(handled <= steps);
    }
    assert_int_equal(steps, 10);
    fixture_close(&f);
}

static int nested_code, nested_run;

static void on_nest(weir_actor *self, const weir_message *m) {
    (void)m;
    nested_code = weir_system_step(weir_system_of(self), 0, NULL);
    nested_run = weir_system_run(weir_system_of(self), NULL, NULL, NULL);
}
static const weir_handler nest_handlers[] = {{"nest", on_nest}, {NULL, NULL}};
static const weir_behaviour nesting = {.name = "nesting", .handlers = nest_handlers};

static void a_step_inside_a_step_is_EBUSY(void **state) {
    (void)state;
    fixture f;
    fixture_open(&f, WEIR_DRIVER_FD, 0);
    fixture_send(&f, fixture_spawn(&f, &nesting, NULL), "nest", 0);
    assert_false(weir__running(f.s));
    step(&f);
    assert_int_equal(nested_code, WEIR_EBUSY);
    assert_int_equal(nested_run, WEIR_EBUSY);
    fixture_close(&f);
}

static void other_drivers_have_neither_descriptor_nor_steps(void **state) {
    (void)state;
    const enum weir_driver others[] = {WEIR_DRIVER_EV, WEIR_DRIVER_TEST};
    for (int i = 0; i < 2; i++) {
        weir_system_options o = {.driver = others[i]};
        weir_system *s;
        weir_error *e = NULL;
        assert_int_equal(weir_system_new(&o, &s, NULL), WEIR_OK);
        assert_int_equal(weir_system_fd(s), -1);
        assert_int_equal(weir_system_step(s, 0, &e), WEIR_EINVAL);
        assert_non_null(strstr(weir_error_text(e), "WEIR_DRIVER_FD"));
        weir_error_free(e);
        weir_system_free(s);
    }
    fixture f;
    fixture_open(&f, WEIR_DRIVER_FD, 0);
    assert_int_equal(weir_system_step(f.s, -1, NULL), WEIR_EINVAL);
    fixture_close(&f);
}

/* A quit is for the next run; steps go on and do not spin. */
static void a_quit_between_steps_is_kept_for_the_next_run(void **state) {
    (void)state;
    fixture f;
    echo e = {0};
    fixture_open(&f, WEIR_DRIVER_FD, 0);
    weir_address a = fixture_spawn(&f, &behaviour, &e);
    weir_system_quit(f.s);
    step(&f);
    assert_false(readable(f.s, 0));
    fixture_send(&f, a, "count", 10);
    while (!e.done)
        step(&f);
    fixture_send(&f, a, "work", 0);
    fixture_run(&f); /* returns at once */
    assert_int_equal(e.handled, 11);
    assert_true(readable(f.s, 0));
    step(&f);
    assert_int_equal(e.handled, 12);
    fixture_close(&f);
}

static void runs_and_steps_take_turns(void **state) {
    (void)state;
    fixture f;
    echo e = {0};
    bool due = false;
    fixture_open(&f, WEIR_DRIVER_FD, 0);
    weir_address a = fixture_spawn(&f, &behaviour, &e);
    for (int i = 0; i < 20; i++) {
        fixture_send(&f, a, "count", 100);
        if (i % 2)
            fixture_run(&f);
        else
            while (e.handled < (i + 1) * 101)
                step(&f);
        assert_int_equal(e.handled, (i + 1) * 101);
    }
    weir_timer(f.main, 5 * MS, WEIR_TIMER_ONCE, set_flag, &due, NULL);
    assert_int_equal(weir_system_run(f.s, flag_is_set, &due, NULL), WEIR_OK);
    due = false;
    weir_timer(f.main, 5 * MS, WEIR_TIMER_ONCE, set_flag, &due, NULL);
    host_of_fd(&f, &due);
    fixture_close(&f);
}

/* ---- timers ---- */

typedef struct one {
    int64_t wanted;
    bool fired, early;
} one;

static void check_time(weir_actor *self, void *data, uint64_t missed) {
    one *o = data;
    (void)missed;
    o->fired = true;
    o->early = weir_now(weir_system_of(self)) < o->wanted;
}

static void no_timer_is_early_and_none_is_missed(void **state) {
    (void)state;
    for (int h = 0; h < HOSTS; h++) {
        fixture f;
        uint32_t random = 3;
        fixture_open(&f, WEIR_DRIVER_FD, 0);
        for (int i = 0; i < 60; i++) {
            random = random * 1664525u + 1013904223u;
            int64_t period = random % (3 * MS);
            one o = {.wanted = weir_now(f.s) + period};
            assert_int_equal(weir_timer(f.main, period, WEIR_TIMER_ONCE, check_time, &o, NULL), WEIR_OK);
            int64_t ns = weir_system_timeout(f.s);
            assert_true(ns <= period);
            hosts[h](&f, &o.fired);
            assert_false(o.early);
        }
        fixture_close(&f);
    }
}

/* A later timer is set first; the host sleeps for it when an earlier one comes. */
static void an_earlier_timer_wakes_a_host_that_waits_for_a_later_one(void **state) {
    (void)state;
    fixture f;
    bool late = false, early = false;
    fixture_open(&f, WEIR_DRIVER_FD, 0);
    weir_timer(f.main, INT64_C(3600000000000), WEIR_TIMER_ONCE, set_flag, &late, NULL);
    step(&f);
    assert_true(weir_system_timeout(f.s) > INT64_C(3500000000000));
    weir_timer(f.main, 5 * MS, WEIR_TIMER_ONCE, set_flag, &early, NULL);
    host_of_fd(&f, &early);
    assert_false(late);
    fixture_close(&f);
}

/* ---- idling ---- */

static long switches(void) {
    struct rusage u;
    getrusage(RUSAGE_THREAD, &u);
    return u.ru_nvcsw;
}

static void an_idle_host_is_woken_once_by_its_timer(void **state) {
    (void)state;
    fixture f;
    echo e = {0};
    bool due = false;
    fixture_open(&f, WEIR_DRIVER_FD, 0);
    fixture_send(&f, fixture_spawn(&f, &behaviour, &e), "work", 0);
    step(&f);
    weir_timer(f.main, 200 * MS, WEIR_TIMER_ONCE, set_flag, &due, NULL);
    long before = switches();
    int steps = 0;
    while (!due) {
        assert_true(readable(f.s, HANG_MS));
        step(&f);
        steps++;
    }
    assert_true(steps <= 3); /* one for setting the timer, one when it is due */
    assert_true(switches() - before <= 10);
    assert_false(readable(f.s, 50));
    fixture_close(&f);
}

/* ---- descriptors used up ---- */

static void loop_E15_timers_go_on_when_descriptors_are_used_up(void **state) {
    (void)state;
    struct rlimit old, low;
    const enum weir_driver drivers[] = {WEIR_DRIVER_FD, WEIR_DRIVER_EV};
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    for (int d = 0; d < 2; d++) {
        fixture f;
        int fds[64], n = 0, ticks = 0;
        fixture_open(&f, drivers[d], 0);
        low = old;
        low.rlim_cur = 48;
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
        while (n < 64 && (fds[n] = dup(0)) >= 0)
            n++;
        assert_true(n < 64);
        while (ticks < 20) {
            bool due = false;
            assert_int_equal(weir_timer(f.main, MS, WEIR_TIMER_ONCE, set_flag, &due, NULL), WEIR_OK);
            if (drivers[d] == WEIR_DRIVER_FD && ticks % 2)
                host_of_fd(&f, &due);
            else
                assert_int_equal(weir_system_run(f.s, flag_is_set, &due, NULL), WEIR_OK);
            ticks++;
        }
        weir_system *none;
        weir_error *e = NULL;
        weir_system_options o = {.driver = drivers[d]};
        assert_int_equal(weir_system_new(&o, &none, &e), WEIR_EIO);
        assert_true(strlen(weir_error_text(e)) > 0);
        weir_error_free(e);
        while (n--)
            close(fds[n]);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
        fixture_close(&f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_host_hears_of_what_it_does_itself),
        cmocka_unit_test(a_host_hears_of_every_post_of_other_threads),
        cmocka_unit_test(no_post_is_slept_over_between_a_step_and_the_wait),
        cmocka_unit_test(loop_E1_the_timeout_is_0_and_the_descriptor_readable_when_work_is_left),
        cmocka_unit_test(loop_E3_taking_the_work_away_again_leaves_nothing_to_wait_for),
        cmocka_unit_test(a_step_begins_no_turn_after_its_time),
        cmocka_unit_test(a_step_inside_a_step_is_EBUSY),
        cmocka_unit_test(other_drivers_have_neither_descriptor_nor_steps),
        cmocka_unit_test(a_quit_between_steps_is_kept_for_the_next_run),
        cmocka_unit_test(runs_and_steps_take_turns),
        cmocka_unit_test(no_timer_is_early_and_none_is_missed),
        cmocka_unit_test(an_earlier_timer_wakes_a_host_that_waits_for_a_later_one),
        cmocka_unit_test(an_idle_host_is_woken_once_by_its_timer),
        cmocka_unit_test(loop_E15_timers_go_on_when_descriptors_are_used_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
