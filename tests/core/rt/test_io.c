/* Watched descriptors, on libev, in a host's libev loop and on the fd driver: readiness, stopping, what is closed behind the loop's back, what is left. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>

#include "fixture.h"

enum { MS = 1000000 };

static const char *const drivers[] = {"ev", "host", "fd"};
enum { DRIVERS = 3 };

static void open_on(fixture *f, int driver) {
    setenv("WEIR_TEST_DRIVER", drivers[driver], 1);
    fixture_open(f, WEIR_DRIVER_EV, 0);
}

/* A watcher of one end of a socket pair. */
typedef struct watcher {
    weir__io *io;
    int fd, other;
    int reads, writes, errors, wanted;
    char text[64];
    size_t size;
    bool done, stop;
    struct watcher *stops; /* another one, stopped by the first event */
    weir_address to;       /* told with "work" at each event */
} watcher;

static void ready(weir_system *s, void *data, int events) {
    watcher *w = data;
    w->reads += (events & WEIR__IO_READ) != 0;
    w->writes += (events & WEIR__IO_WRITE) != 0;
    w->errors += (events & WEIR__IO_ERROR) != 0;
    if (events & WEIR__IO_READ) {
        ssize_t n = read(w->fd, w->text + w->size, sizeof w->text - w->size);
        w->size += n > 0 ? (size_t)n : 0;
    }
    if (w->stops && w->stops->io) {
        weir__io_stop(w->stops->io);
        w->stops->io = NULL;
    }
    if (w->to)
        weir_post(s, 0, w->to, weir_intern(s, "work"), NULL);
    w->done = w->errors || w->reads + w->writes >= w->wanted;
    if (w->stop && w->done) {
        weir__io_stop(w->io);
        w->io = NULL;
    }
}

static void watch_pair(fixture *f, watcher *w, int events) {
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    w->fd = fds[0];
    w->other = fds[1];
    assert_int_equal(weir__io_start(f->s, w->fd, events, ready, w, &w->io, NULL), WEIR_OK);
}

static void close_pair(watcher *w) {
    weir__io_stop(w->io);
    if (w->fd >= 0)
        close(w->fd);
    close(w->other);
}

static void run_until(fixture *f, const bool *done) {
    assert_int_equal(weir_system_run(f->s, flag_is_set, (void *)done, NULL), WEIR_OK);
}

static void *write_later(void *data) {
    watcher *w = data;
    nanosleep(&(struct timespec){0, 10 * MS}, NULL);
    assert_int_equal(write(w->other, "hello", 5), 5);
    return NULL;
}

static void a_watcher_wakes_the_loop_and_a_run_waits_for_it(void **state) {
    (void)state;
    for (int d = 0; d < DRIVERS; d++) {
        fixture f;
        watcher w = {.wanted = 1, .stop = true};
        pthread_t t;
        open_on(&f, d);
        watch_pair(&f, &w, WEIR__IO_READ);
        assert_int_equal(pthread_create(&t, NULL, write_later, &w), 0);
        fixture_run(&f); /* until the watcher is stopped */
        pthread_join(t, NULL);
        assert_int_equal(w.reads, 1);
        assert_int_equal(w.writes, 0);
        assert_memory_equal(w.text, "hello", 5);
        close_pair(&w);
        fixture_close(&f);
    }
}

static void readiness_is_a_level(void **state) {
    (void)state;
    for (int d = 0; d < DRIVERS; d++) {
        fixture f;
        watcher w = {.wanted = 5};
        open_on(&f, d);
        watch_pair(&f, &w, WEIR__IO_WRITE);
        run_until(&f, &w.done);
        assert_int_equal(w.writes, 5);
        assert_int_equal(w.reads, 0);
        close_pair(&w);
        fixture_close(&f);
    }
}

static void two_watchers_of_one_descriptor_get_what_they_asked_for(void **state) {
    (void)state;
    for (int d = 0; d < DRIVERS; d++) {
        fixture f;
        watcher r = {.wanted = 1}, w = {.wanted = 3, .stop = true};
        open_on(&f, d);
        watch_pair(&f, &r, WEIR__IO_READ);
        w.fd = r.fd;
        assert_int_equal(weir__io_start(f.s, w.fd, WEIR__IO_WRITE, ready, &w, &w.io, NULL), WEIR_OK);
        run_until(&f, &w.done);
        assert_int_equal(w.writes, 3);
        assert_int_equal(r.reads, 0);
        assert_int_equal(write(r.other, "x", 1), 1);
        run_until(&f, &r.done);
        assert_int_equal(r.reads, 1);
        assert_int_equal(w.writes, 3);
        close_pair(&r);
        fixture_close(&f);
    }
}

static bool either_is_done(void *data) {
    watcher **w = data;
    return w[0]->done || w[1]->done;
}

/* Both are readable; whichever is told first stops the other, which then is told nothing. */
static void a_function_may_stop_any_watcher(void **state) {
    (void)state;
    for (int d = 0; d < DRIVERS; d++) {
        fixture f;
        watcher a = {.wanted = 1}, b = {.wanted = 1};
        open_on(&f, d);
        watch_pair(&f, &a, WEIR__IO_READ);
        watch_pair(&f, &b, WEIR__IO_READ);
        a.stops = &b;
        b.stops = &a;
        assert_int_equal(write(a.other, "x", 1), 1);
        assert_int_equal(write(b.other, "x", 1), 1);
        watcher *both[] = {&a, &b};
        assert_int_equal(weir_system_run(f.s, either_is_done, both, NULL), WEIR_OK);
        assert_int_equal(a.reads + b.reads, 1);
        close_pair(&a);
        close_pair(&b);
        fixture_close(&f);
    }
}

static void on_work(weir_actor *self, const weir_message *m) {
    (void)m;
    ++*(int *)weir_state(self);
}
static const weir_handler handlers[] = {{"work", on_work}, {NULL, NULL}};
static const weir_behaviour behaviour = {.name = "worker", .handlers = handlers};

static bool is_positive(void *data) {
    return *(int *)data > 0;
}

static void set_flag(weir_actor *self, void *data, uint64_t missed) {
    (void)self, (void)missed;
    *(bool *)data = true;
}

/* Whichever of two readable watchers is told first gives the other's number to a pipe with nothing in it, and watches that. */
typedef struct swap {
    watcher *w[2];
    watcher fresh;
    int told, pipe[2];
} swap;

static void swap_other(weir_system *s, void *data, int events) {
    swap *x = data;
    (void)events;
    if (x->told++)
        return;
    for (int i = 0; i < 2; i++) {
        struct pollfd p = {x->w[i]->fd, POLLIN, 0};
        assert_int_equal(poll(&p, 1, 0), 1);
        weir__io_stop(x->w[i]->io);
        x->w[i]->io = NULL;
    }
    assert_int_equal(pipe(x->pipe), 0);
    for (int i = 0; i < 2; i++) { /* both numbers: which one was told is not known */
        assert_int_equal(dup2(x->pipe[0], x->w[i]->fd), x->w[i]->fd);
        assert_int_equal(weir__io_start(s, x->w[i]->fd, WEIR__IO_READ, ready, &x->fresh, &x->w[i]->io, NULL), WEIR_OK);
    }
}

static void what_happened_to_an_old_descriptor_is_not_told_to_a_new_one(void **state) {
    (void)state;
    for (int d = 0; d < DRIVERS; d++) {
        fixture f;
        watcher a = {.wanted = 1}, b = {.wanted = 1};
        swap x = {.w = {&a, &b}, .fresh = {.wanted = 1, .fd = -1}};
        bool due = false;
        open_on(&f, d);
        watch_pair(&f, &a, WEIR__IO_READ);
        watch_pair(&f, &b, WEIR__IO_READ);
        for (int i = 0; i < 2; i++) {
            weir__io_stop(x.w[i]->io);
            assert_int_equal(weir__io_start(f.s, x.w[i]->fd, WEIR__IO_READ, swap_other, &x, &x.w[i]->io, NULL), WEIR_OK);
            assert_int_equal(write(x.w[i]->other, "x", 1), 1);
        }
        weir_timer(f.main, 20 * MS, WEIR_TIMER_ONCE, set_flag, &due, NULL);
        run_until(&f, &due);
        assert_int_equal(x.told, 1);
        assert_int_equal(x.fresh.reads, 0);
        close_pair(&a);
        close_pair(&b);
        close(x.pipe[0]);
        close(x.pipe[1]);
        fixture_close(&f);
    }
}

/* In a host's loop, and in steps, the messages that a function sends are handled with nobody's help. */
static void what_a_function_sends_is_handled(void **state) {
    (void)state;
    for (int d = 0; d < DRIVERS; d++) {
        fixture f;
        watcher w = {.wanted = 1};
        int handled = 0;
        open_on(&f, d);
        watch_pair(&f, &w, WEIR__IO_READ);
        w.to = fixture_spawn(&f, &behaviour, &handled);
        assert_int_equal(write(w.other, "x", 1), 1);
        while (handled < 1) {
            struct pollfd p = {weir_system_fd(f.s), POLLIN, 0};
            if (d == 0) {
                assert_int_equal(weir_system_run(f.s, is_positive, &handled, NULL), WEIR_OK);
            } else if (d == 1) {
                ev_run(f.host, EVRUN_ONCE);
            } else {
                assert_int_equal(poll(&p, 1, 20000), 1);
                assert_int_equal(weir_system_step(f.s, 0, NULL), WEIR_OK);
            }
        }
        assert_int_equal(handled, 1);
        close_pair(&w);
        fixture_close(&f);
    }
}

/* ---- files that are always ready ---- */

static void a_regular_file_is_always_ready(void **state) {
    (void)state;
    for (int d = 0; d < DRIVERS; d++) {
        fixture f;
        watcher w = {.wanted = 3, .stop = true};
        open_on(&f, d);
        w.fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
        assert_true(w.fd >= 0);
        assert_int_equal(weir__io_start(f.s, w.fd, WEIR__IO_READ, ready, &w, &w.io, NULL), WEIR_OK);
        if (d == 2) { /* a host of the descriptor only */
            while (!w.done) {
                struct pollfd p = {weir_system_fd(f.s), POLLIN, 0};
                assert_int_equal(weir_system_timeout(f.s), 0);
                assert_int_equal(poll(&p, 1, 20000), 1);
                assert_int_equal(weir_system_step(f.s, 0, NULL), WEIR_OK);
            }
            assert_int_equal(weir_system_step(f.s, 0, NULL), WEIR_OK);
            assert_int_equal(weir_system_timeout(f.s), -1);
        } else {
            fixture_run(&f);
        }
        assert_int_equal(w.reads, 3);
        close(w.fd);
        fixture_close(&f);
    }
}

/* ---- closed behind the loop's back ---- */

static void close_in_timer(weir_actor *self, void *data, uint64_t missed) {
    watcher *w = data;
    (void)self, (void)missed;
    close(w->fd);
    w->fd = -1;
}

/* One of three watched descriptors is closed in a handler: its watcher is told ERROR once, the others and the timers go on. */
static void loop_E19_a_closed_descriptor_is_its_watchers_error_only(void **state) {
    (void)state;
    for (int d = 0; d < DRIVERS; d++) {
        fixture f;
        watcher w[3] = {{.wanted = 1}, {.wanted = 1}, {.wanted = 1}};
        bool due = false;
        open_on(&f, d);
        for (int i = 0; i < 3; i++)
            watch_pair(&f, &w[i], WEIR__IO_READ);
        weir_timer(f.main, MS, WEIR_TIMER_ONCE, close_in_timer, &w[1], NULL);
        run_until(&f, &w[1].done);
        assert_int_equal(w[1].errors, 1);
        weir_timer(f.main, 150 * MS, WEIR_TIMER_ONCE, set_flag, &due, NULL);
        run_until(&f, &due);
        assert_int_equal(w[1].errors, 1);
        for (int i = 0; i < 3; i += 2) {
            assert_int_equal(write(w[i].other, "x", 1), 1);
            run_until(&f, &w[i].done);
            assert_int_equal(w[i].reads, 1);
            assert_int_equal(w[i].errors, 0);
        }
        for (int i = 0; i < 3; i++)
            close_pair(&w[i]);
        fixture_close(&f);
    }
}

static void replace_in_timer(weir_actor *self, void *data, uint64_t missed) {
    watcher *w = data;
    int fds[2];
    (void)self, (void)missed;
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(dup2(fds[0], w->fd), w->fd); /* the number lives on, as another file */
    close(fds[0]);
    close(fds[1]);
}

static void a_number_that_became_another_file_is_an_error_too(void **state) {
    (void)state;
    for (int d = 0; d < DRIVERS; d++) {
        fixture f;
        watcher w = {.wanted = 1}, again = {.wanted = 1};
        open_on(&f, d);
        watch_pair(&f, &w, WEIR__IO_READ);
        weir_timer(f.main, MS, WEIR_TIMER_ONCE, replace_in_timer, &w, NULL);
        run_until(&f, &w.done);
        assert_int_equal(w.errors, 1);
        weir__io_stop(w.io);
        w.io = NULL;
        again.fd = w.fd; /* at its end: readable */
        assert_int_equal(weir__io_start(f.s, again.fd, WEIR__IO_READ, ready, &again, &again.io, NULL), WEIR_OK);
        run_until(&f, &again.done);
        assert_int_equal(again.reads, 1);
        weir__io_stop(again.io);
        close_pair(&w);
        fixture_close(&f);
    }
}

static void a_host_that_closes_a_descriptor_is_told_at_its_next_steps(void **state) {
    (void)state;
    fixture f;
    int handled = 0;
    watcher w = {.wanted = 1};
    open_on(&f, 2);
    watch_pair(&f, &w, WEIR__IO_READ);
    weir_address a = fixture_spawn(&f, &behaviour, &handled);
    close(w.fd);
    w.fd = -1;
    fixture_send(&f, a, "work", 0);
    while (!w.done) {
        struct pollfd p = {weir_system_fd(f.s), POLLIN, 0};
        assert_int_equal(poll(&p, 1, 20000), 1);
        assert_int_equal(weir_system_step(f.s, 0, NULL), WEIR_OK);
    }
    assert_int_equal(w.errors, 1);
    assert_int_equal(handled, 1);
    close_pair(&w);
    fixture_close(&f);
}

static long switches(void) {
    struct rusage u;
    getrusage(RUSAGE_THREAD, &u);
    return u.ru_nvcsw;
}

/* The check for closed descriptors does not become a clock. */
static void an_idle_loop_with_watchers_sleeps(void **state) {
    (void)state;
    for (int d = 0; d < DRIVERS; d++) {
        fixture f;
        watcher w = {.wanted = 1};
        bool due = false;
        open_on(&f, d);
        watch_pair(&f, &w, WEIR__IO_READ);
        weir_timer(f.main, MS, WEIR_TIMER_ONCE, set_flag, &due, NULL);
        run_until(&f, &due);
        due = false;
        weir_timer(f.main, 1500 * (int64_t)MS, WEIR_TIMER_ONCE, set_flag, &due, NULL);
        long before = switches();
        run_until(&f, &due);
        assert_true(switches() - before <= 8);
        close_pair(&w);
        fixture_close(&f);
    }
}

/* ---- misuse, faults, ends ---- */

static int start_code(weir_system *s, int fd, int events, const char *wanted) {
    weir__io *io = NULL;
    watcher w = {.wanted = 1};
    weir_error *e = NULL;
    int code = weir__io_start(s, fd, events, ready, &w, &io, &e);
    assert_null(io);
    if (!strstr(weir_error_text(e), wanted))
        fail_msg("%s", weir_error_text(e));
    weir_error_free(e);
    return code;
}

static void what_cannot_be_watched_is_named(void **state) {
    (void)state;
    for (int d = 0; d < DRIVERS; d++) {
        fixture f;
        open_on(&f, d);
        assert_int_equal(start_code(f.s, 987, WEIR__IO_READ, "987"), WEIR_EIO);
        assert_int_equal(start_code(f.s, -1, WEIR__IO_READ, "-1"), WEIR_EIO);
        assert_int_equal(start_code(f.s, 0, 0, "events 0"), WEIR_EINVAL);
        assert_int_equal(start_code(f.s, 0, WEIR__IO_ERROR, "events 4"), WEIR_EINVAL);
        assert_int_equal(weir__inject_arm(f.s, "IO", 1, 1), WEIR_OK);
        assert_int_equal(start_code(f.s, 0, WEIR__IO_READ, "injected"), WEIR_EIO);
        for (int nth = 1; nth <= 3; nth++) {
            weir__io *io = NULL;
            watcher w = {.wanted = 1};
            assert_int_equal(weir__inject_arm(f.s, "ALLOC", (uint64_t)nth, 1), WEIR_OK);
            int code = weir__io_start(f.s, 0, WEIR__IO_READ, ready, &w, &io, NULL);
            assert_true(code == WEIR_OK || code == WEIR_ENOMEM);
            assert_true((code == WEIR_OK) == (io != NULL));
            weir__io_stop(io);
        }
        assert_int_equal(weir__inject_arm(f.s, "ALLOC", 0, 0), WEIR_OK);
        fixture_run(&f); /* nothing is pending */
        fixture_close(&f);
    }
    fixture f;
    fixture_open(&f, WEIR_DRIVER_TEST, 0);
    assert_int_equal(start_code(f.s, 0, WEIR__IO_READ, "test driver"), WEIR_EUNSUPPORTED);
    fixture_close(&f);
    weir__io_stop(NULL);
}

static void *start_elsewhere(void *data) {
    weir__io *io = NULL;
    return (void *)(intptr_t)weir__io_start(data, 0, WEIR__IO_READ, ready, NULL, &io, NULL);
}

static void another_thread_cannot_watch(void **state) {
    (void)state;
    fixture f;
    pthread_t t;
    void *code;
    open_on(&f, 0);
    assert_int_equal(pthread_create(&t, NULL, start_elsewhere, f.s), 0);
    pthread_join(t, &code);
    assert_int_equal((intptr_t)code, WEIR_EINVAL);
    fixture_close(&f);
}

static void stop_at_error(weir_system *s, void *data, int events) {
    watcher *w = data;
    ready(s, data, events);
    if (events & WEIR__IO_ERROR) {
        weir__io_stop(w->io);
        w->io = NULL;
    }
}

/* Watchers left open when the system is freed are told, and given back, whether they stop themselves then or not; the descriptors stay the host's. */
static void shutdown_S9_watchers_that_are_left_are_told_and_given_back(void **state) {
    (void)state;
    for (int d = 0; d < DRIVERS; d++) {
        fixture f;
        watcher w[4] = {{.wanted = 9}, {.wanted = 9}, {.wanted = 9}, {.wanted = 9}};
        open_on(&f, d);
        for (int i = 0; i < 4; i++) {
            watch_pair(&f, &w[i], WEIR__IO_READ);
            if (i % 2) {
                weir__io_stop(w[i].io);
                assert_int_equal(weir__io_start(f.s, w[i].fd, WEIR__IO_READ, stop_at_error, &w[i], &w[i].io, NULL), WEIR_OK);
            }
        }
        fixture_close(&f);
        for (int i = 0; i < 4; i++) {
            assert_int_equal(w[i].errors, 1);
            assert_int_equal(w[i].reads + w[i].writes, 0);
            assert_true(fcntl(w[i].fd, F_GETFD) >= 0);
            w[i].io = NULL;
            close_pair(&w[i]);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_watcher_wakes_the_loop_and_a_run_waits_for_it),
        cmocka_unit_test(readiness_is_a_level),
        cmocka_unit_test(two_watchers_of_one_descriptor_get_what_they_asked_for),
        cmocka_unit_test(a_function_may_stop_any_watcher),
        cmocka_unit_test(what_happened_to_an_old_descriptor_is_not_told_to_a_new_one),
        cmocka_unit_test(what_a_function_sends_is_handled),
        cmocka_unit_test(a_regular_file_is_always_ready),
        cmocka_unit_test(loop_E19_a_closed_descriptor_is_its_watchers_error_only),
        cmocka_unit_test(a_number_that_became_another_file_is_an_error_too),
        cmocka_unit_test(a_host_that_closes_a_descriptor_is_told_at_its_next_steps),
        cmocka_unit_test(an_idle_loop_with_watchers_sleeps),
        cmocka_unit_test(what_cannot_be_watched_is_named),
        cmocka_unit_test(another_thread_cannot_watch),
        cmocka_unit_test(shutdown_S9_watchers_that_are_left_are_told_and_given_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
