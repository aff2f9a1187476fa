/* Cases of the reference folder (cases/loop.md) that no other test shows: signals and file descriptors of the process are the host's. The others stand in test_threads (E7),
 * test_timers (E9 E11 E13 E15), test_system (E17). */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

#include "fixture.h"

enum { MS = 1000000, SIGNALS = 65 };

/* ---- E21: signals ---- */

typedef struct signals {
    struct sigaction actions[SIGNALS];
    sigset_t mask;
} signals;

static void read_signals(signals *s) {
    memset(s, 0, sizeof *s);
    for (int i = 1; i < SIGNALS; i++)
        sigaction(i, NULL, &s->actions[i]);
    pthread_sigmask(SIG_SETMASK, NULL, &s->mask);
}

static bool same_signals(const signals *a, const signals *b) {
    for (int i = 1; i < SIGNALS; i++)
        if (a->actions[i].sa_handler != b->actions[i].sa_handler || a->actions[i].sa_flags != b->actions[i].sa_flags ||
            sigismember(&a->mask, i) != sigismember(&b->mask, i))
            return false;
    return true;
}

static void on_work(weir_actor *self, const weir_message *m) {
    (void)m;
    ++*(int *)weir_state(self);
}

static const weir_handler handlers[] = {{"work", on_work}, {NULL, NULL}};
static const weir_behaviour behaviour = {.name = "worker", .handlers = handlers};

static void over(weir_actor *self, void *data, uint64_t missed) {
    (void)self, (void)missed;
    *(bool *)data = true;
}

static void *post(void *data) {
    fixture *f = data;
    for (int i = 0; i < 100; i++)
        weir_system_quit(f->s);
    return NULL;
}

/* All that a loop writes to is its own (an eventfd): no write of its can raise SIGPIPE; what the host had set is as it was, during a run and after it. */
static void loop_E21_signals_stay_as_the_host_set_them(void **state) {
    (void)state;
    fixture f;
    signals before, during, after;
    int n = 0;
    bool done = false;
    pthread_t t;
    read_signals(&before);
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    fixture_send(&f, fixture_spawn(&f, &behaviour, &n), "work", 0);
    weir_timer(f.main, 20 * MS, WEIR_TIMER_ONCE, over, &done, NULL);
    assert_int_equal(pthread_create(&t, NULL, post, &f), 0);
    while (!done)
        assert_int_equal(weir_system_run(f.s, flag_is_set, &done, NULL), WEIR_OK);
    pthread_join(t, NULL);
    read_signals(&during);
    fixture_close(&f);
    read_signals(&after);
    assert_int_equal(n, 1);
    assert_true(same_signals(&before, &during));
    assert_true(same_signals(&before, &after));
}

/* ---- E25: no file descriptors ---- */

static int take_all(int *taken, int room) {
    int n = 0;
    while (n < room && (taken[n] = dup(0)) >= 0)
        n++;
    return n;
}

static void *storm(void *data) {
    int *wrong = data;
    for (int i = 0; i < 50; i++) {
        weir_system *s = NULL;
        weir_error *e = NULL;
        int code = weir_system_new(NULL, &s, &e);
        *wrong += code != WEIR_EIO || s || !e || !strstr(weir_error_text(e), "Too many open files");
        weir_error_free(e);
    }
    return NULL;
}

/* Four threads ask for systems where no descriptor is left, while one that was made before goes on. */
static void loop_E25_without_descriptors_nothing_crashes_and_what_runs_goes_on(void **state) {
    (void)state;
    fixture f;
    static int taken[4096];
    int n = 0, wrong[4] = {0, 0, 0, 0};
    struct rlimit old, few = {256, 256};
    pthread_t t[4];
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    weir_address a = fixture_spawn(&f, &behaviour, &n);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    few.rlim_max = old.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    int count = take_all(taken, 4096);
    for (int i = 0; i < 4; i++)
        pthread_create(&t[i], NULL, storm, &wrong[i]);
    for (int i = 0; i < 100; i++) {
        fixture_send(&f, a, "work", i);
        fixture_run(&f);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    while (count)
        close(taken[--count]);
    setrlimit(RLIMIT_NOFILE, &old);
    for (int i = 0; i < 4; i++)
        assert_int_equal(wrong[i], 0);
    assert_int_equal(n, 100);
    fixture_close(&f);
}

/* What a system opens it closes, and nothing else: the host's descriptors are the same ones afterwards. */
static void loop_the_descriptors_of_the_host_stay(void **state) {
    (void)state;
    enum { MANY = 256 };
    bool before[MANY];
    fixture f;
    for (int i = 0; i < MANY; i++)
        before[i] = fcntl(i, F_GETFD) >= 0;
    for (int i = 0; i < 10; i++) {
        fixture_open(&f, WEIR_DRIVER_EV, 0);
        fixture_run(&f);
        fixture_close(&f);
    }
    for (int i = 0; i < MANY; i++)
        assert_int_equal(before[i], fcntl(i, F_GETFD) >= 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loop_E21_signals_stay_as_the_host_set_them),
        cmocka_unit_test(loop_E25_without_descriptors_nothing_crashes_and_what_runs_goes_on),
        cmocka_unit_test(loop_the_descriptors_of_the_host_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
