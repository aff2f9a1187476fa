/* The watchdog: slow handlers are named once, with their verb and time; quick ones and idle loops are left alone; its thread. */
#include <dirent.h>
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>

#include "fixture.h"

enum { MS = 1000000, KEPT = 16 };

typedef struct report {
    weir_address actor;
    char name[64], verb[64];
    int64_t elapsed;
} report;

/* What the watchdog told, and what a handler waits for. A machine that takes the processor away in a quick handler makes that one slow, and rightly told of:
 * `quick` counts those apart. */
typedef struct kennel {
    pthread_mutex_t lock;
    pthread_cond_t told;
    int count, quick;
    report reports[KEPT];
    bool same_thread;
    pthread_t loop;
} kennel;

static void on_slow(void *data, weir_address actor, const char *name, const char *verb, int64_t elapsed) {
    kennel *k = data;
    pthread_mutex_lock(&k->lock);
    k->same_thread |= pthread_equal(pthread_self(), k->loop) != 0;
    if (!strcmp(verb, "quick")) {
        k->quick++;
        pthread_mutex_unlock(&k->lock);
        return;
    }
    if (k->count < KEPT) {
        report *r = &k->reports[k->count];
        r->actor = actor;
        r->elapsed = elapsed;
        snprintf(r->name, sizeof r->name, "%s", name);
        snprintf(r->verb, sizeof r->verb, "%s", verb);
    }
    k->count++;
    pthread_cond_broadcast(&k->told);
    pthread_mutex_unlock(&k->lock);
}

static void kennel_open(kennel *k) {
    memset(k, 0, sizeof *k);
    pthread_mutex_init(&k->lock, NULL);
    pthread_cond_init(&k->told, NULL);
    k->loop = pthread_self();
}

static int kennel_count(kennel *k) {
    pthread_mutex_lock(&k->lock);
    int n = k->count;
    pthread_mutex_unlock(&k->lock);
    return n;
}

/* What a slow handler does: it goes on until it has been told of. */
static void wait_until_told(kennel *k, int count) {
    pthread_mutex_lock(&k->lock);
    while (k->count < count)
        pthread_cond_wait(&k->told, &k->lock);
    pthread_mutex_unlock(&k->lock);
}

static void nap(int64_t ns) {
    nanosleep(&(struct timespec){ns / 1000000000, ns % 1000000000}, NULL);
}

static void on_crawl(weir_actor *self, const weir_message *m) {
    kennel *k = weir_state(self);
    (void)m;
    wait_until_told(k, kennel_count(k) + 1);
    nap(30 * MS); /* still the same handler: not told again */
}
static void on_quick(weir_actor *self, const weir_message *m) {
    (void)self, (void)m;
}
static void on_limit(weir_actor *self, const weir_message *m) {
    (void)m;
    assert_int_equal(weir_set_watchdog(weir_system_of(self), MS, on_slow, weir_state(self)), WEIR_OK);
}
static void crawl_at_stop(weir_actor *self) {
    kennel *k = weir_state(self);
    wait_until_told(k, kennel_count(k) + 1);
    weir_exit(self, NULL);
}

static const weir_handler handlers[] = {{"crawl", on_crawl}, {"quick", on_quick}, {"limit", on_limit}, {NULL, NULL}};
static const weir_behaviour behaviour = {.name = "snail", .handlers = handlers, .stop = crawl_at_stop};

static const enum weir_driver drivers[] = {WEIR_DRIVER_EV, WEIR_DRIVER_FD, WEIR_DRIVER_TEST};

static void a_slow_handler_is_named_once_with_its_verb(void **state) {
    (void)state;
    for (int d = 0; d < 3; d++) {
        fixture f;
        kennel k;
        kennel_open(&k);
        fixture_open(&f, drivers[d], 1);
        assert_int_equal(weir_set_watchdog(f.s, 5 * MS, on_slow, &k), WEIR_OK);
        weir_address a = fixture_spawn(&f, &behaviour, &k);
        const char *verbs[] = {"quick", "crawl", "quick", "crawl"};
        for (int i = 0; i < 4; i++)
            fixture_send(&f, a, verbs[i], 0);
        fixture_run(&f);
        assert_int_equal(weir_set_watchdog(f.s, 0, NULL, NULL), WEIR_OK);
        assert_int_equal(k.count, 2);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(k.reports[i].actor, a);
            assert_string_equal(k.reports[i].name, "snail");
            assert_string_equal(k.reports[i].verb, "crawl");
            assert_true(k.reports[i].elapsed >= 5 * MS);
        }
        assert_false(k.same_thread);
        weir_kill(f.s, a);
        fixture_close(&f);
    }
}

static void crawl_in_timer(weir_actor *self, void *data, uint64_t missed) {
    (void)self, (void)missed;
    kennel *k = data;
    wait_until_told(k, kennel_count(k) + 1);
}

static void timers_replies_and_stops_are_watched_too(void **state) {
    (void)state;
    fixture f;
    kennel k;
    kennel_open(&k);
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    assert_int_equal(weir_set_watchdog(f.s, 2 * MS, on_slow, &k), WEIR_OK);
    weir_address a = fixture_spawn(&f, &behaviour, &k);
    weir_timer(f.main, MS, WEIR_TIMER_ONCE, crawl_in_timer, &k, NULL);
    fixture_run(&f);
    weir_stop(f.s, a);
    fixture_run(&f);
    assert_int_equal(k.count, 2);
    assert_string_equal(k.reports[0].name, "main");
    assert_string_equal(k.reports[0].verb, "(timer)");
    assert_string_equal(k.reports[1].name, "snail");
    assert_string_equal(k.reports[1].verb, "(stop)");
    fixture_close(&f);
}

/* The handlers of worker loops are watched by the same thread. */
static void handlers_of_worker_loops_are_watched(void **state) {
    (void)state;
    weir_system *s;
    kennel k;
    weir_address a[2];
    weir_system_options o = {.workers = 2};
    kennel_open(&k);
    assert_int_equal(weir_system_new(&o, &s, NULL), WEIR_OK);
    assert_int_equal(weir_set_watchdog(s, 2 * MS, on_slow, &k), WEIR_OK);
    for (int i = 0; i < 2; i++) {
        weir_spawn_options so = {.loop = WEIR_LOOP_MAIN + 1 + i};
        assert_int_equal(weir_spawn(s, &behaviour, &k, &so, &a[i], NULL), WEIR_OK);
        assert_int_equal(weir_send(weir_main_actor(s), a[i], weir_intern(s, "crawl"), NULL), WEIR_OK);
        wait_until_told(&k, i + 1);
        assert_int_equal(k.reports[i].actor, a[i]);
    }
    assert_int_equal(weir_system_run(s, NULL, NULL, NULL), WEIR_OK);
    assert_int_equal(kennel_count(&k), 2);
    assert_int_equal(weir_set_watchdog(s, 0, NULL, NULL), WEIR_OK);
    weir_system_free(s);
}

/* A loop that slept for long when the handler begins, and one that was busy with quick handlers. */
static void a_handler_after_a_long_sleep_is_seen(void **state) {
    (void)state;
    fixture f;
    kennel k;
    kennel_open(&k);
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    assert_int_equal(weir_set_watchdog(f.s, 2 * MS, on_slow, &k), WEIR_OK);
    weir_address a = fixture_spawn(&f, &behaviour, &k);
    for (int i = 1; i <= 5; i++) {
        nap(10 * MS);
        for (int n = 0; n < 500; n++)
            fixture_send(&f, a, "quick", 0);
        fixture_send(&f, a, "crawl", 0);
        fixture_run(&f);
        assert_int_equal(kennel_count(&k), i);
    }
    weir_kill(f.s, a);
    fixture_close(&f);
}

static void quick_handlers_are_not_told_of(void **state) {
    (void)state;
    fixture f;
    kennel k;
    kennel_open(&k);
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    assert_int_equal(weir_set_watchdog(f.s, 10000 * (int64_t)MS, on_slow, &k), WEIR_OK);
    weir_address a = fixture_spawn(&f, &behaviour, &k);
    for (int i = 0; i < 1000; i++) {
        fixture_send(&f, a, "quick", 0);
        if (i % 10 == 0)
            fixture_run(&f);
    }
    fixture_run(&f);
    assert_int_equal(kennel_count(&k) + k.quick, 0);
    weir_kill(f.s, a);
    fixture_close(&f);
}

static void a_limit_set_in_a_handler_counts_from_the_next(void **state) {
    (void)state;
    fixture f;
    kennel k;
    kennel_open(&k);
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    weir_address a = fixture_spawn(&f, &behaviour, &k);
    fixture_send(&f, a, "limit", 0);
    fixture_send(&f, a, "crawl", 0);
    fixture_run(&f);
    assert_int_equal(kennel_count(&k), 1);
    weir_kill(f.s, a);
    fixture_close(&f);
}

/* ---- the thread ---- */

static int threads(void) {
    DIR *d = opendir("/proc/self/task");
    int n = 0;
    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

/* Times that threads other than this one gave up the processor. */
static long switches_of_others(void) {
    DIR *d = opendir("/proc/self/task");
    long sum = 0;
    for (struct dirent *e; (e = readdir(d));) {
        char path[300], line[256];
        long n;
        if (e->d_name[0] == '.' || atoi(e->d_name) == getpid())
            continue;
        snprintf(path, sizeof path, "/proc/self/task/%s/status", e->d_name);
        FILE *f = fopen(path, "r");
        while (f && fgets(line, sizeof line, f))
            if (sscanf(line, "voluntary_ctxt_switches: %ld", &n) == 1)
                sum += n;
        if (f)
            fclose(f);
    }
    closedir(d);
    return sum;
}

static void it_has_a_thread_only_while_a_limit_is_set(void **state) {
    (void)state;
    fixture f;
    kennel k;
    kennel_open(&k);
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    int before = threads();
    assert_int_equal(weir_set_watchdog(f.s, MS, on_slow, &k), WEIR_OK);
    assert_int_equal(threads(), before + 1);
    assert_int_equal(weir_set_watchdog(f.s, 2 * MS, on_slow, &k), WEIR_OK);
    assert_int_equal(threads(), before + 1);
    assert_int_equal(weir_set_watchdog(f.s, 0, NULL, NULL), WEIR_OK);
    assert_int_equal(threads(), before);
    assert_int_equal(weir_set_watchdog(f.s, MS, on_slow, &k), WEIR_OK);
    fixture_close(&f);
    assert_int_equal(threads(), before);
}

static void set_flag(weir_actor *self, void *data, uint64_t missed) {
    (void)self, (void)missed;
    *(bool *)data = true;
}

/* A limit of 1 ms and 300 ms of sleep, in a run and between runs: its thread is not woken every millisecond. */
static void it_sleeps_while_every_loop_sleeps(void **state) {
    (void)state;
    for (int d = 0; d < 2; d++) {
        fixture f;
        kennel k;
        bool due = false;
        kennel_open(&k);
        fixture_open(&f, drivers[d], 0);
        assert_int_equal(weir_set_watchdog(f.s, MS, on_slow, &k), WEIR_OK);
        weir_timer(f.main, 200 * MS, WEIR_TIMER_ONCE, set_flag, &due, NULL);
        long before = switches_of_others();
        assert_int_equal(weir_system_run(f.s, flag_is_set, &due, NULL), WEIR_OK);
        nap(100 * MS);
        assert_true(switches_of_others() - before <= 20);
        fixture_close(&f);
    }
}

static void without_a_thread_or_memory_nothing_changes(void **state) {
    (void)state;
    fixture f;
    kennel k;
    kennel_open(&k);
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    int before = threads();
    assert_int_equal(weir__inject_arm(f.s, "ALLOC", 1, 1), WEIR_OK);
    assert_int_equal(weir_set_watchdog(f.s, MS, on_slow, &k), WEIR_ENOMEM);
    assert_int_equal(weir__inject_arm(f.s, "THREAD", 1, 1), WEIR_OK);
    assert_int_equal(weir_set_watchdog(f.s, MS, on_slow, &k), WEIR_EIO);
    assert_int_equal(threads(), before);
    weir_address a = fixture_spawn(&f, &behaviour, &k);
    fixture_send(&f, a, "quick", 0);
    fixture_run(&f);
    assert_int_equal(weir_set_watchdog(f.s, MS, on_slow, &k), WEIR_OK);
    fixture_send(&f, a, "crawl", 0);
    fixture_run(&f);
    assert_int_equal(kennel_count(&k), 1);
    weir_kill(f.s, a);
    fixture_close(&f);
}

static void a_forked_child_gives_it_back_without_its_thread(void **state) {
    (void)state;
    fixture f;
    kennel k;
    int status;
    kennel_open(&k);
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    assert_int_equal(weir_set_watchdog(f.s, MS, on_slow, &k), WEIR_OK);
    pid_t child = fork();
    if (child == 0) {
        int wrong = weir_set_watchdog(f.s, 0, NULL, NULL) != WEIR_EINVAL;
        weir_system_free(f.s);
        _exit(wrong || f.memory.blocks != 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    fixture_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slow_handler_is_named_once_with_its_verb),
        cmocka_unit_test(timers_replies_and_stops_are_watched_too),
        cmocka_unit_test(handlers_of_worker_loops_are_watched),
        cmocka_unit_test(a_handler_after_a_long_sleep_is_seen),
        cmocka_unit_test(quick_handlers_are_not_told_of),
        cmocka_unit_test(a_limit_set_in_a_handler_counts_from_the_next),
        cmocka_unit_test(it_has_a_thread_only_while_a_limit_is_set),
        cmocka_unit_test(it_sleeps_while_every_loop_sleeps),
        cmocka_unit_test(without_a_thread_or_memory_nothing_changes),
        cmocka_unit_test(a_forked_child_gives_it_back_without_its_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
