/* Want of memory: one scenario that uses everything, run again and again with the n-th allocation failing: an error or the end, nothing lost. */
#include "fixture.h"

enum { MS = 1000000 };

typedef struct party {
    weir_system *s;
    weir_address peer;
    int finis, handled, ended, ticks, downs;
} party;

static void on_reply(weir_actor *self, void *data, const weir_message *reply, const weir_error *error) {
    (void)data, (void)reply, (void)error;
    ((party *)weir_state(self))->ended++;
}

static void on_tick(weir_actor *self, void *data, uint64_t missed) {
    (void)data, (void)missed;
    party *p = weir_state(self);
    weir_system *s = weir_system_of(self);
    p->ticks++;
    weir_send(self, p->peer, weir_intern(s, "item"), weir_pack(s, "isb", INT64_C(1), "text", "0123456789", (size_t)10));
}

static void on_begin(weir_actor *self, const weir_message *m) {
    party *p = weir_state(self);
    weir_system *s = weir_system_of(self);
    (void)m;
    p->handled++;
    weir_monitor(self, p->peer);
    weir_timer(self, MS, WEIR_TIMER_ONCE, on_tick, NULL, NULL);
    weir_timer(self, 2 * MS, WEIR_TIMER_ONCE, on_tick, NULL, NULL);
    for (int i = 0; i < 20; i++)
        weir_call(self, p->peer, weir_intern(s, i % 2 ? "item" : "nothing"), weir_pack(s, "[iii]", INT64_C(1), INT64_C(2), INT64_C(3)),
                  i % 3 ? 5 * MS : -1, on_reply, NULL, NULL);
}

static void on_item(weir_actor *self, const weir_message *m) {
    party *p = weir_state(self);
    p->handled++;
    if (!weir_message_is_call(m))
        return;
    if (p->handled % 4 == 0)
        weir_reply_error(self, m, weir_error_new(WEIR_EBUSY, NULL, NULL, "not now"));
    else
        weir_reply(self, m, weir_pack(weir_system_of(self), "i", INT64_C(7)));
}

static void on_down(weir_actor *self, weir_address who, const weir_error *why) {
    (void)who, (void)why;
    ((party *)weir_state(self))->downs++;
}

static void on_fini(weir_system *s, void *state) {
    (void)s;
    ((party *)state)->finis++;
}

static const weir_handler handlers[] = {{"begin", on_begin}, {"item", on_item}, {NULL, NULL}};
static const weir_behaviour behaviour = {.name = "party", .handlers = handlers, .down = on_down, .fini = on_fini};

static void use(weir_system *s, int *spawned) {
    party p[2];
    weir_address a[2] = {0, 0};
    memset(p, 0, sizeof p);
    for (int i = 0; i < 2; i++)
        if (weir_spawn(s, &behaviour, &p[i], NULL, &a[i], NULL) == WEIR_OK)
            ++*spawned;
    p[0].peer = a[1];
    p[1].peer = a[0];
    weir_verb begin = weir_intern(s, "begin");
    for (int i = 0; i < 40; i++)
        weir_send(weir_main_actor(s), a[i % 2], begin, NULL);
    weir__notice *n = weir__notice_new(s, 0, a[0], begin, weir_pack(s, "n"));
    if (n)
        weir__notice_post(n);
    weir_body *b = NULL;
    weir_body_from_bytes(s, "\x92\x01\xa1x", 4, &b, NULL);
    weir_body_free(b);
    weir_system_run(s, NULL, NULL, NULL);
    weir_kill(s, a[1]);
    weir_system_run(s, NULL, NULL, NULL);
    weir_system_stop(s, MS, NULL);
    assert_int_equal(p[0].finis, 1);
    assert_int_equal(p[1].finis, 1);
}

static void every_failed_allocation_is_survived(void **state) {
    (void)state;
    int64_t n = 0;
    counter memory;
    do {
        memset(&memory, 0, sizeof memory);
        memory.fail = ++n;
        weir_system_options o = {.driver = n % 2 ? WEIR_DRIVER_TEST : WEIR_DRIVER_EV, .alloc = counter_alloc, .alloc_data = &memory};
        weir_system *s = NULL;
        weir_error *e = NULL;
        int code = weir_system_new(&o, &s, &e), spawned = 0;
        if (code == WEIR_OK) {
            use(s, &spawned);
            weir_system_free(s);
        } else {
            assert_int_equal(code, WEIR_ENOMEM);
            assert_int_equal(weir_error_code(e), WEIR_ENOMEM);
            weir_error_free(e);
        }
        assert_int_equal(memory.blocks, 0);
        assert_int_equal(memory.bytes, 0);
    } while (memory.failed || n % 2);
    assert_true(n > 30);
}

/* The same with every allocation failing from the n-th on. */
static void memory_that_never_comes_back_is_survived(void **state) {
    (void)state;
    for (uint64_t n = 1; n < 120; n++) {
        fixture f;
        int spawned = 0;
        fixture_open(&f, WEIR_DRIVER_TEST, n);
        assert_int_equal(weir__inject_arm(f.s, "ALLOC", n, UINT64_C(1) << 32), WEIR_OK);
        use(f.s, &spawned);
        fixture_close(&f);
    }
}

/* A receiver that is not there for want of memory refuses with ENOMEM, and the mailbox counts stay right. */
static void a_message_without_memory_is_refused(void **state) {
    (void)state;
    fixture f;
    party p = {0};
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    weir_address a = fixture_spawn(&f, &behaviour, &p);
    weir_verb item = weir_intern(f.s, "item");
    assert_int_equal(weir__inject_arm(f.s, "SEND", 1, 1), WEIR_OK);
    assert_int_equal(weir_send(f.main, a, item, weir_pack(f.s, "i", INT64_C(1))), WEIR_ENOMEM);
    weir_actor_stats stats;
    weir_actor_get_stats(f.s, a, &stats);
    assert_int_equal(stats.queued, 0);
    assert_int_equal(stats.queued_bytes, 0);
    outcome o = {0};
    assert_int_equal(weir__inject_arm(f.s, "SEND", 1, 1), WEIR_OK);
    fixture_call(&f, a, "item", 1, 0, &o);
    fixture_run(&f);
    assert_int_equal(o.code, WEIR_ENOMEM);
    fixture_close(&f);
}

#ifndef NDEBUG
static void the_environment_arms_faults_in_debug_builds(void **state) {
    (void)state;
    weir_system *s;
    weir_error *e = NULL;
    party p = {0};
    weir_address a;
    setenv("WEIR_INJECT", "PAGES:3,SPAWN:2:1", 1);
    assert_int_equal(weir_system_new(NULL, &s, NULL), WEIR_OK);
    assert_int_equal(weir_spawn(s, &behaviour, &p, NULL, &a, NULL), WEIR_ENOMEM);
    weir_system_free(s);
    setenv("WEIR_INJECT", "SPAWM:1", 1);
    assert_int_equal(weir_system_new(NULL, &s, &e), WEIR_EINVAL);
    assert_non_null(strstr(weir_error_text(e), "SPAWM"));
    weir_error_free(e);
    unsetenv("WEIR_INJECT");
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_failed_allocation_is_survived),
        cmocka_unit_test(memory_that_never_comes_back_is_survived),
        cmocka_unit_test(a_message_without_memory_is_refused),
#ifndef NDEBUG
        cmocka_unit_test(the_environment_arms_faults_in_debug_builds),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
