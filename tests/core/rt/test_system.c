/* Systems: many of them, running, stopping, forks, idling, attachments, injected faults, replay. */
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "fixture.h"

enum { MS = 1000000 };

static void on_work(weir_actor *self, const weir_message *m) {
    int *n = weir_state(self);
    ++*n;
    if (weir_message_is_call(m))
        weir_reply(self, m, NULL);
}

static int stops_seen;

static void stop_never(weir_actor *self) {
    (void)self;
    stops_seen++;
}

static void end_now(weir_actor *self, void *data, uint64_t missed) {
    (void)data, (void)missed;
    weir_exit(self, NULL);
}

static void stop_later(weir_actor *self) {
    weir_timer(self, 10 * MS, WEIR_TIMER_ONCE, end_now, NULL, NULL);
}

static int nested_code;
static char nested_text[256];

static void on_nest(weir_actor *self, const weir_message *m) {
    (void)m;
    weir_error *e = NULL;
    nested_code = weir_system_run(weir_system_of(self), NULL, NULL, &e);
    snprintf(nested_text, sizeof nested_text, "%s", weir_error_text(e));
    weir_error_free(e);
}

static const weir_handler handlers[] = {{"work", on_work}, {"nest", on_nest}, {NULL, NULL}};
static const weir_behaviour worker = {.name = "worker", .handlers = handlers};
static const weir_behaviour stubborn = {.name = "stubborn", .handlers = handlers, .stop = stop_never};
static const weir_behaviour slow = {.name = "slow", .handlers = handlers, .stop = stop_later};

static void a_run_inside_a_run_is_an_error(void **state) {
    (void)state;
    fixture f;
    int n = 0;
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    assert_false(weir__running(f.s));
    fixture_send(&f, fixture_spawn(&f, &worker, &n), "nest", 0);
    fixture_run(&f);
    assert_int_equal(nested_code, WEIR_EBUSY);
    assert_non_null(strstr(nested_text, "worker"));
    fixture_close(&f);
}

static void stop_waits_for_those_who_need_time(void **state) {
    (void)state;
    fixture f;
    int n = 0;
    fixture_open(&f, WEIR_DRIVER_TEST, 0);
    weir_address a = fixture_spawn(&f, &slow, &n);
    fixture_send(&f, a, "work", 0);
    assert_int_equal(weir_system_stop(f.s, 1000 * MS, NULL), WEIR_OK);
    assert_int_equal(n, 1);
    assert_int_equal(weir_now(f.s), 10 * MS);
    weir_address b;
    weir_error *e = NULL;
    assert_int_equal(weir_spawn(f.s, &worker, &n, NULL, &b, &e), WEIR_ESTOPPING);
    assert_non_null(strstr(weir_error_text(e), "worker"));
    weir_error_free(e);
    assert_int_equal(weir_send(f.main, a, weir_intern(f.s, "work"), NULL), WEIR_ESTOPPING);
    outcome o = {0};
    fixture_call(&f, a, "work", 0, 0, &o);
    fixture_run(&f);
    assert_int_equal(o.code, WEIR_ESTOPPING);
    fixture_close(&f);
}

static void stop_names_the_survivors(void **state) {
    (void)state;
    for (int driver = 0; driver < 2; driver++) {
        fixture f;
        int n = 0;
        weir_error *e = NULL;
        fixture_open(&f, driver ? WEIR_DRIVER_TEST : WEIR_DRIVER_EV, 0);
        stops_seen = 0;
        fixture_spawn(&f, &stubborn, &n);
        fixture_spawn(&f, &worker, &n);
        weir_address held = fixture_spawn(&f, &slow, &n);
        weir_hold(weir__actor(f.s, held));
        assert_int_equal(weir_system_stop(f.s, 20 * MS, &e), WEIR_ETIMEOUT);
        assert_int_equal(stops_seen, 1);
        assert_non_null(strstr(weir_error_text(e), "stubborn, slow"));
        assert_null(strstr(weir_error_text(e), "worker"));
        weir_error_free(e);
        assert_int_equal(stats_of(f.s).actors, 1);
        fixture_close(&f);
    }
}

static void stop_without_patience_kills(void **state) {
    (void)state;
    fixture f;
    int n = 0;
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    for (int i = 0; i < 100; i++)
        fixture_spawn(&f, &stubborn, &n);
    assert_int_equal(weir_system_stop(f.s, 0, NULL), WEIR_ETIMEOUT);
    assert_int_equal(stats_of(f.s).actors, 1);
    fixture_close(&f);
}

static void a_thousand_systems_leave_nothing(void **state) {
    (void)state;
    int open_before = dup(0);
    close(open_before);
    for (int i = 0; i < 1000; i++) {
        fixture f;
        int n = 0;
        fixture_open(&f, i % 2 ? WEIR_DRIVER_EV : WEIR_DRIVER_TEST, (uint64_t)i);
        fixture_send(&f, fixture_spawn(&f, &worker, &n), "work", i);
        if (i % 3)
            fixture_run(&f);
        fixture_close(&f);
    }
    int open_after = dup(0);
    close(open_after);
    assert_int_equal(open_before, open_after);
}

static void several_systems_live_side_by_side(void **state) {
    (void)state;
    fixture f[3];
    int n[3] = {0, 0, 0};
    for (int i = 0; i < 3; i++) {
        fixture_open(&f[i], WEIR_DRIVER_EV, 0);
        weir_address a = fixture_spawn(&f[i], &worker, &n[i]);
        for (int k = 0; k <= i; k++)
            fixture_send(&f[i], a, "work", k);
    }
    for (int i = 2; i >= 0; i--)
        fixture_run(&f[i]);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(n[i], i + 1);
        fixture_close(&f[i]);
    }
}

/* ---- idling ---- */

static long switches(void) {
    struct rusage u;
    getrusage(RUSAGE_THREAD, &u);
    return u.ru_nvcsw;
}

static bool over(void *data) {
    return *(bool *)data;
}

static void set_over(weir_actor *self, void *data, uint64_t missed) {
    (void)self, (void)missed;
    *(bool *)data = true;
}

/* 300 ms with nothing to do but one timer: the thread sleeps once, not every millisecond, and uses no processor. */
static void an_idle_loop_sleeps(void **state) {
    (void)state;
    fixture f;
    bool done = false;
    struct timespec cpu[2];
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    weir_timer(f.main, 300 * MS, WEIR_TIMER_ONCE, set_over, &done, NULL);
    long before = switches();
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu[0]);
    assert_int_equal(weir_system_run(f.s, over, &done, NULL), WEIR_OK);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu[1]);
    assert_true(switches() - before <= 10);
    assert_true((cpu[1].tv_sec - cpu[0].tv_sec) * 1000000000 + cpu[1].tv_nsec - cpu[0].tv_nsec < 50 * MS);
    fixture_close(&f);
}

/* ---- forks ---- */

static void ticked(weir_actor *self, void *data, uint64_t missed) {
    (void)self, (void)missed;
    ++*(int *)data;
}

static void no_reply(weir_actor *self, void *data, const weir_message *reply, const weir_error *error) {
    (void)self, (void)data, (void)reply, (void)error;
}

/* In the child: nothing happens, calls say why. The exit status counts what went wrong. */
static int in_child(fixture *f, weir_address a, const int *ticks) {
    weir_error *e = NULL;
    int wrong = 0;
    nanosleep(&(struct timespec){0, 30 * MS}, NULL);
    wrong += weir_system_run(f->s, NULL, NULL, &e) != WEIR_EINVAL;
    wrong += !e || !strstr(weir_error_text(e), "forked");
    weir_error_free(e);
    wrong += weir_send(f->main, a, 1, NULL) != WEIR_EINVAL;
    wrong += weir_post(f->s, 0, a, 1, NULL) != WEIR_EINVAL;
    wrong += weir_call(f->main, a, 1, NULL, 0, no_reply, NULL, NULL) != WEIR_EINVAL;
    wrong += weir_timer(f->main, 1, WEIR_TIMER_ONCE, ticked, NULL, NULL) != WEIR_EINVAL;
    wrong += weir_spawn(f->s, &worker, NULL, NULL, &a, NULL) != WEIR_EINVAL;
    wrong += weir_system_stop(f->s, MS, NULL) != WEIR_EINVAL;
    wrong += *ticks != 0;
    weir_system_free(f->s);
    wrong += f->memory.blocks != 0;
    return wrong;
}

static void loop_E17(void **state) {
    (void)state;
    fixture f;
    int n = 0, ticks = 0, status;
    bool done = false;
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    weir_address a = fixture_spawn(&f, &worker, &n);
    weir_timer(f.main, 10 * MS, WEIR_TIMER_RATE, ticked, &ticks, NULL);
    fixture_send(&f, a, "work", 0);
    pid_t child = fork();
    if (child == 0)
        _exit(in_child(&f, a, &ticks));
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    weir_timer(f.main, 50 * MS, WEIR_TIMER_ONCE, set_over, &done, NULL);
    assert_int_equal(weir_system_run(f.s, over, &done, NULL), WEIR_OK);
    assert_int_equal(n, 1);
    assert_true(ticks > 0);
    fixture_close(&f);
}

static pid_t forked;

static void on_fork(weir_actor *self, const weir_message *m) {
    (void)self, (void)m;
    forked = fork();
}

static const weir_handler fork_handlers[] = {{"fork", on_fork}, {"work", on_work}, {NULL, NULL}};
static const weir_behaviour forker = {.name = "forker", .handlers = fork_handlers};

/* A handler forks: in the child the run ends behind that handler. */
static void a_fork_in_a_handler_ends_the_run_in_the_child(void **state) {
    (void)state;
    fixture f;
    int n = 0, status;
    weir_error *e = NULL;
    fixture_open(&f, WEIR_DRIVER_TEST, 0);
    weir_address a = fixture_spawn(&f, &forker, &n);
    fixture_send(&f, a, "fork", 0);
    fixture_send(&f, a, "work", 0);
    int code = weir_system_run(f.s, NULL, NULL, &e);
    if (forked == 0)
        _exit(code == WEIR_EINVAL && n == 0 ? 0 : 1);
    assert_int_equal(code, WEIR_OK);
    assert_int_equal(waitpid(forked, &status, 0), forked);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(n, 1);
    fixture_close(&f);
}

/* ---- attachments, faults ---- */

static char closed[8];

static void close_value(weir_system *s, void *value) {
    (void)s;
    strncat(closed, value, 1);
}

static void attachments_close_in_reverse(void **state) {
    (void)state;
    fixture f;
    closed[0] = 0;
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    assert_null(weir__attached(f.s, "a"));
    assert_int_equal(weir__attach(f.s, "a", "1", close_value), WEIR_OK);
    assert_int_equal(weir__attach(f.s, "b", "2", close_value), WEIR_OK);
    assert_int_equal(weir__attach(f.s, "a", "3", close_value), WEIR_EBUSY);
    assert_string_equal(weir__attached(f.s, "b"), "2");
    fixture_close(&f);
    assert_string_equal(closed, "21");
}

static void faults_fire_when_they_are_due(void **state) {
    (void)state;
    fixture f;
    int n = 0;
    const char *text;
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    weir_address a = fixture_spawn(&f, &worker, &n);
    weir_verb work = weir_intern(f.s, "work");
    assert_int_equal(weir__inject_arm(f.s, "NONSENSE", 1, 1), WEIR_EINVAL);
    assert_int_equal(weir__inject_arm(f.s, "SEND", 2, 2), WEIR_OK);
    const int wanted[] = {WEIR_OK, WEIR_ENOMEM, WEIR_ENOMEM, WEIR_OK};
    for (int i = 0; i < 4; i++)
        assert_int_equal(weir_send(f.main, a, work, weir_pack(f.s, "i", INT64_C(1))), wanted[i]);
    assert_int_equal(weir__inject_arm(f.s, "SEND", 1, 1), WEIR_OK);
    assert_int_equal(weir__inject_arm(f.s, "SEND", 0, 0), WEIR_OK);
    assert_int_equal(weir_send(f.main, a, work, NULL), WEIR_OK);
    assert_int_equal(weir__inject_arm(f.s, "PAGES", 1, 1), WEIR_OK);
    assert_null(weir__pages(f.s, 100));
    fixture_run(&f);
    assert_int_equal(n, 3);
    assert_string_equal(weir__inject_name(WEIR__INJECT_ALLOC, &text), "ALLOC");
    assert_non_null(text);
    assert_null(weir__inject_name(WEIR__INJECT_POINTS, NULL));
    fixture_close(&f);
}

static void pages_are_aligned_zeroed_and_counted(void **state) {
    (void)state;
    fixture f;
    const size_t sizes[] = {1, 64, 32767, 32768, 100000, (2 << 20) - 1, 2 << 20, (5 << 20) + 3};
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    uint64_t before = stats_of(f.s).bytes;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        unsigned char *p = weir__pages(f.s, sizes[i]);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % (sizes[i] >= 2 << 20 ? 2 << 20 : 64), 0);
        for (size_t k = 0; k < sizes[i]; k++)
            if (p[k])
                fail_msg("byte %zu is not zero", k);
        memset(p, 1, sizes[i]);
        assert_true(stats_of(f.s).bytes >= before + sizes[i]);
        weir__pages_free(f.s, p, sizes[i]);
        assert_int_equal(stats_of(f.s).bytes, before);
    }
    fixture_close(&f);
}

/* ---- replay ---- */

typedef struct chatter {
    weir_address peers[5];
    uint32_t random, left;
} chatter;

static void chat_more(weir_actor *self, void *data, uint64_t missed);

static void chat_reply(weir_actor *self, void *data, const weir_message *reply, const weir_error *error) {
    (void)reply, (void)error;
    chat_more(self, data, 0);
}

static void chat_more(weir_actor *self, void *data, uint64_t missed) {
    chatter *c = weir_state(self);
    (void)data, (void)missed;
    weir_system *s = weir_system_of(self);
    if (!c->left)
        return;
    c->left--;
    c->random = c->random * 1664525u + 1013904223u;
    weir_address to = c->peers[(c->random >> 16) % 5];
    weir_send(self, to, weir_intern(s, "note"), weir_pack(s, "u", (uint64_t)c->random));
    if (c->random >> 31)
        weir_call(self, to, weir_intern(s, "ask"), NULL, 3000, chat_reply, NULL, NULL);
    else
        weir_timer(self, c->random % 5000, WEIR_TIMER_ONCE, chat_more, NULL, NULL);
}

static void on_note(weir_actor *self, const weir_message *m) {
    (void)self, (void)m;
}

static void on_ask(weir_actor *self, const weir_message *m) {
    chatter *c = weir_state(self);
    if (c->random & 256)
        weir_reply(self, m, NULL);
    else
        weir_defer(self, m);
}

static const weir_handler chat_handlers[] = {{"note", on_note}, {"ask", on_ask}, {NULL, NULL}};
static const weir_behaviour chatting = {.name = "chatter", .handlers = chat_handlers};

typedef struct hash {
    weir_system *s;
    uint64_t value;
} hash;

static void mix(void *data, enum weir_trace kind, weir_address from, weir_address to, const char *verb, size_t bytes, int why) {
    hash *h = data;
    const uint64_t parts[] = {(uint64_t)kind, from, to, (uint64_t)verb[0], bytes, (uint64_t)why, (uint64_t)weir_now(h->s)};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        h->value = (h->value ^ parts[i]) * UINT64_C(1099511628211);
}

static uint64_t chat(uint64_t seed) {
    fixture f;
    chatter c[5];
    weir_address a[5];
    fixture_open(&f, WEIR_DRIVER_TEST, seed);
    hash h = {f.s, UINT64_C(14695981039346656037)};
    weir_set_trace(f.s, mix, &h);
    for (int i = 0; i < 5; i++)
        a[i] = fixture_spawn(&f, &chatting, &c[i]);
    for (int i = 0; i < 5; i++) {
        c[i].random = (uint32_t)i;
        c[i].left = 200;
        memcpy(c[i].peers, a, sizeof a);
        weir_timer(weir__actor(f.s, a[i]), 1, WEIR_TIMER_ONCE, chat_more, NULL, NULL);
    }
    fixture_run(&f);
    fixture_close(&f);
    return h.value;
}

static void the_test_driver_replays_exactly(void **state) {
    (void)state;
    uint64_t first = chat(1);
    assert_true(first == chat(1));
    assert_true(chat(2) == chat(2));
    assert_true(first != chat(2));
}

static int drained;

static bool drain(void *data, uint64_t random) {
    fixture *f = data;
    (void)random;
    if (drained == 3)
        return false;
    drained++;
    weir_post(f->s, 0, weir_self(f->main), weir_intern(f->s, "done"), NULL);
    weir__pending(f->s, -1);
    return true;
}

/* Work of streams is drained inline, before the clock moves. */
static void the_test_driver_drains_streams_before_time_passes(void **state) {
    (void)state;
    fixture f;
    bool done = false;
    drained = 0;
    fixture_open(&f, WEIR_DRIVER_TEST, 0);
    assert_true(weir__system_inline(f.s));
    weir__set_drain(f.s, drain, &f);
    weir__pending(f.s, 3);
    weir_timer(f.main, MS, WEIR_TIMER_ONCE, set_over, &done, NULL);
    assert_int_equal(weir_system_run(f.s, over, &done, NULL), WEIR_OK);
    assert_int_equal(drained, 3);
    assert_int_equal(stats_of(f.s).queued, 3);
    fixture_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_inside_a_run_is_an_error),
        cmocka_unit_test(stop_waits_for_those_who_need_time),
        cmocka_unit_test(stop_names_the_survivors),
        cmocka_unit_test(stop_without_patience_kills),
        cmocka_unit_test(a_thousand_systems_leave_nothing),
        cmocka_unit_test(several_systems_live_side_by_side),
        cmocka_unit_test(an_idle_loop_sleeps),
        cmocka_unit_test(loop_E17),
        cmocka_unit_test(a_fork_in_a_handler_ends_the_run_in_the_child),
        cmocka_unit_test(attachments_close_in_reverse),
        cmocka_unit_test(faults_fire_when_they_are_due),
        cmocka_unit_test(pages_are_aligned_zeroed_and_counted),
        cmocka_unit_test(the_test_driver_replays_exactly),
        cmocka_unit_test(the_test_driver_drains_streams_before_time_passes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
