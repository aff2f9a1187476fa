/* Systems in a host's libev loop: the host's watchers have their turns, nothing is missed, the loop is left as it was; several systems and drivers at once. */
#include <dirent.h>
#include <pthread.h>
#include <time.h>

#include "fixture.h"

enum { MS = 1000000 };

static int64_t real_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

typedef struct counted {
    int handled;
    int64_t last;
} counted;

/* Sends itself the next number, down to 0; each takes 100 us. */
static void on_count(weir_actor *self, const weir_message *m) {
    counted *c = weir_state(self);
    c->handled++;
    c->last = first_int(m);
    for (int64_t until = real_now() + MS / 10; real_now() < until;)
        ;
    if (c->last > 0)
        weir_send(self, weir_self(self), weir_message_verb(m), weir_pack(weir_system_of(self), "i", c->last - 1));
}

static const weir_handler handlers[] = {{"count", on_count}, {NULL, NULL}};
static const weir_behaviour behaviour = {.name = "counter", .handlers = handlers};

static weir_system *host_system(struct ev_loop *loop) {
    weir_system_options o = {.ev_loop = loop};
    weir_system *s = NULL;
    assert_int_equal(weir_system_new(&o, &s, NULL), WEIR_OK);
    return s;
}

static void send(weir_system *s, weir_address a, int64_t n) {
    assert_int_equal(weir_send(weir_main_actor(s), a, weir_intern(s, "count"), weir_pack(s, "i", n)), WEIR_OK);
}

static weir_address spawn(weir_system *s, counted *c) {
    weir_address a;
    assert_int_equal(weir_spawn(s, &behaviour, c, NULL, &a, NULL), WEIR_OK);
    return a;
}

/* A watcher of the host's that ends the host's loop when the count is down, and counts how often it got its turn. */
typedef struct watcher {
    ev_prepare prepare;
    counted *c;
    int turns;
} watcher;

static void look(struct ev_loop *loop, ev_prepare *w, int events) {
    watcher *at = w->data;
    (void)events;
    at->turns++;
    if (at->c->handled && at->c->last == 0)
        ev_break(loop, EVBREAK_ALL);
}

static void run_host(struct ev_loop *loop, watcher *w, counted *c) {
    *w = (watcher){.c = c};
    ev_prepare_init(&w->prepare, look);
    w->prepare.data = w;
    ev_prepare_start(loop, &w->prepare);
    ev_run(loop, 0);
    ev_prepare_stop(loop, &w->prepare);
}

static void actors_run_in_the_hosts_loop_which_has_its_turns(void **state) {
    (void)state;
    struct ev_loop *loop = ev_loop_new(EVFLAG_NOENV);
    weir_system *s = host_system(loop);
    counted c = {0};
    watcher w;
    send(s, spawn(s, &c), 200);
    run_host(loop, &w, &c);
    assert_int_equal(c.handled, 201);
    assert_true(w.turns >= 5); /* 20 ms of handlers, 2 ms at a time */
    weir_system_free(s);
    ev_loop_destroy(loop);
}

static void *post_later(void *data) {
    weir_system *s = ((void **)data)[0];
    for (int i = 20; i >= 0; i--) {
        nanosleep(&(struct timespec){0, MS}, NULL);
        weir_post(s, 0, *(weir_address *)((void **)data)[1], weir_intern(s, "count"), weir_pack(s, "i", i ? INT64_C(-1) : INT64_C(0)));
    }
    return NULL;
}

static void posts_of_other_threads_wake_the_hosts_loop(void **state) {
    (void)state;
    struct ev_loop *loop = ev_loop_new(EVFLAG_NOENV);
    weir_system *s = host_system(loop);
    counted c = {0};
    watcher w;
    weir_address a = spawn(s, &c);
    void *data[] = {s, &a};
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, post_later, data), 0);
    run_host(loop, &w, &c);
    pthread_join(t, NULL);
    assert_int_equal(c.handled, 21);
    weir_system_free(s);
    ev_loop_destroy(loop);
}

/* ---- callbacks of the host ---- */

typedef struct callback {
    ev_timer timer;
    weir_system *s;
    weir_address a;
    int run, stop;
    char text[256];
    bool free;
} callback;

static void in_callback(struct ev_loop *loop, ev_timer *w, int events) {
    callback *c = w->data;
    weir_error *e = NULL;
    (void)loop, (void)events;
    send(c->s, c->a, 3);
    c->run = weir_system_run(c->s, NULL, NULL, &e);
    snprintf(c->text, sizeof c->text, "%s", weir_error_text(e));
    weir_error_free(e);
    c->stop = weir_system_stop(c->s, MS, NULL);
    if (c->free)
        weir_system_free(c->s);
}

static void set_timer(struct ev_loop *loop, callback *c) {
    ev_timer_init(&c->timer, in_callback, 0.002, 0);
    c->timer.data = c;
    ev_timer_start(loop, &c->timer);
}

static void a_callback_of_the_host_may_send_but_not_run(void **state) {
    (void)state;
    struct ev_loop *loop = ev_loop_new(EVFLAG_NOENV);
    weir_system *s = host_system(loop);
    counted c = {0};
    watcher w;
    callback b = {.s = s, .a = spawn(s, &c)};
    set_timer(loop, &b);
    run_host(loop, &w, &c);
    assert_int_equal(c.handled, 4);
    assert_int_equal(b.run, WEIR_EBUSY);
    assert_non_null(strstr(b.text, "host"));
    assert_int_equal(b.stop, WEIR_EBUSY);
    weir_system_free(s);
    ev_loop_destroy(loop);
}

static void a_system_may_be_freed_in_a_callback_of_the_host(void **state) {
    (void)state;
    struct ev_loop *loop = ev_loop_new(EVFLAG_NOENV);
    weir_system *s = host_system(loop);
    counted c = {0};
    callback b = {.s = s, .a = spawn(s, &c), .free = true};
    set_timer(loop, &b);
    ev_run(loop, 0); /* returns: nothing is left in it */
    assert_int_equal(c.handled, 0);
    ev_loop_destroy(loop);
}

static void freeing_a_system_leaves_nothing_in_the_hosts_loop(void **state) {
    (void)state;
    struct ev_loop *loop = ev_loop_new(EVFLAG_NOENV);
    for (int i = 0; i < 50; i++) {
        weir_system *s = host_system(loop);
        counted c = {0};
        send(s, spawn(s, &c), 2);
        if (i % 2)
            assert_int_equal(weir_system_run(s, NULL, NULL, NULL), WEIR_OK);
        weir_system_free(s);
        assert_int_equal(ev_pending_count(loop), 0);
        ev_run(loop, 0); /* would not return with a watcher in it */
    }
    ev_loop_destroy(loop);
}

/* ---- weir_system_run runs the host's loop ---- */

static void tick(struct ev_loop *loop, ev_timer *w, int events) {
    (void)loop, (void)events;
    ++*(int *)w->data;
}

static bool count_is_down(void *data) {
    counted *c = data;
    return c->handled && c->last == 0;
}

static void a_run_runs_the_hosts_watchers(void **state) {
    (void)state;
    struct ev_loop *loop = ev_loop_new(EVFLAG_NOENV);
    weir_system *s = host_system(loop);
    counted c = {0};
    ev_timer t;
    int ticks = 0;
    ev_timer_init(&t, tick, 0.001, 0.001);
    t.data = &ticks;
    ev_timer_start(loop, &t);
    send(s, spawn(s, &c), 300);
    assert_int_equal(weir_system_run(s, count_is_down, &c, NULL), WEIR_OK);
    assert_int_equal(c.handled, 301);
    assert_true(ticks >= 3); /* 30 ms of handlers */
    weir_system_free(s);
    ev_timer_stop(loop, &t);
    ev_run(loop, 0);
    ev_loop_destroy(loop);
}

/* Two systems in one host's loop, one of each other driver beside them; a run of one runs the other in the same loop. */
static void systems_of_all_drivers_live_side_by_side(void **state) {
    (void)state;
    struct ev_loop *loop = ev_loop_new(EVFLAG_NOENV);
    weir_system *s[5] = {host_system(loop), host_system(loop)};
    counted c[5] = {{0}};
    for (int i = 2; i < 5; i++) {
        weir_system_options o = {.driver = (enum weir_driver[]){WEIR_DRIVER_EV, WEIR_DRIVER_FD, WEIR_DRIVER_TEST}[i - 2]};
        assert_int_equal(weir_system_new(&o, &s[i], NULL), WEIR_OK);
    }
    for (int round = 1; round <= 3; round++) {
        for (int i = 0; i < 5; i++) {
            c[i] = (counted){0};
            send(s[i], spawn(s[i], &c[i]), 40);
        }
        assert_int_equal(weir_system_run(s[0], count_is_down, &c[0], NULL), WEIR_OK);
        while (!count_is_down(&c[1]))
            ev_run(loop, EVRUN_ONCE);
        while (!count_is_down(&c[3])) {
            assert_int_equal(weir_system_timeout(s[3]), 0);
            assert_int_equal(weir_system_step(s[3], 0, NULL), WEIR_OK);
        }
        assert_int_equal(weir_system_run(s[2], NULL, NULL, NULL), WEIR_OK);
        assert_int_equal(weir_system_run(s[4], NULL, NULL, NULL), WEIR_OK);
        for (int i = 0; i < 5; i++)
            assert_int_equal(c[i].handled, 41);
    }
    for (int i = 0; i < 5; i++)
        weir_system_free(s[i]);
    ev_run(loop, 0);
    ev_loop_destroy(loop);
}

/* ---- a thousand of each ---- */

static int entries(const char *folder) {
    DIR *d = opendir(folder);
    int n = 0;
    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

static void slow(void *data, weir_address a, const char *name, const char *verb, int64_t elapsed) {
    (void)data, (void)a, (void)name, (void)verb, (void)elapsed;
}

static void ignore(weir_system *s, void *data, int events) {
    (void)s, (void)data, (void)events;
}

static void one_life(enum weir_driver driver, struct ev_loop *loop, int i, counter *memory) {
    weir_system_options o = {.driver = driver, .ev_loop = loop, .alloc = counter_alloc, .alloc_data = memory};
    weir_system *s;
    counted c = {0};
    weir__io *io = NULL;
    assert_int_equal(weir_system_new(&o, &s, NULL), WEIR_OK);
    send(s, spawn(s, &c), 0);
    if (i % 7 == 0)
        assert_int_equal(weir_set_watchdog(s, 1000 * (int64_t)MS, slow, NULL), WEIR_OK);
    if (i % 3)
        assert_int_equal(weir_system_run(s, NULL, NULL, NULL), WEIR_OK);
    if (driver != WEIR_DRIVER_TEST && i % 5 == 0)
        assert_int_equal(weir__io_start(s, 0, WEIR__IO_READ, ignore, NULL, &io, NULL), WEIR_OK);
    weir__io_stop(io);
    weir_system_free(s);
}

static void a_thousand_systems_of_each_driver_leave_nothing(void **state) {
    (void)state;
    struct ev_loop *loop = ev_loop_new(EVFLAG_NOENV);
    counter memory = {0};
    const enum weir_driver drivers[] = {WEIR_DRIVER_EV, WEIR_DRIVER_EV, WEIR_DRIVER_FD, WEIR_DRIVER_TEST};
    ev_run(loop, EVRUN_NOWAIT);
    for (int d = 0; d < 4; d++) {
        int fds = entries("/proc/self/fd"), threads = entries("/proc/self/task");
        for (int i = 0; i < 1000; i++)
            one_life(drivers[d], d == 1 ? loop : NULL, i, &memory);
        assert_int_equal(entries("/proc/self/fd"), fds);
        assert_int_equal(entries("/proc/self/task"), threads);
        assert_int_equal(memory.bytes, 0);
        assert_int_equal(memory.blocks, 0);
    }
    ev_run(loop, 0);
    ev_loop_destroy(loop);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(actors_run_in_the_hosts_loop_which_has_its_turns),
        cmocka_unit_test(posts_of_other_threads_wake_the_hosts_loop),
        cmocka_unit_test(a_callback_of_the_host_may_send_but_not_run),
        cmocka_unit_test(a_system_may_be_freed_in_a_callback_of_the_host),
        cmocka_unit_test(freeing_a_system_leaves_nothing_in_the_hosts_loop),
        cmocka_unit_test(a_run_runs_the_hosts_watchers),
        cmocka_unit_test(systems_of_all_drivers_live_side_by_side),
        cmocka_unit_test(a_thousand_systems_of_each_driver_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
