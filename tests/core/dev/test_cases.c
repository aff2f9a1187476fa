/* test_cases.c: whole-device behaviour: the stream cases G1, G3 and G5, no memory at any point of a submission (J1), nothing spins when idle, and the loop
 * goes on while the team computes. */
#include "helper_dev.h"

#include <pthread.h>
#include <sched.h>

/* ---- G1: work completes while the loop's thread stands still inside a handler, holding a lock ---- */

enum { G1_NOTICES = 500 };

typedef struct blocked {
    dev_test *t;
    pthread_mutex_t interpreter; /* stands for an interpreter's lock */
    int handled;
} blocked;

static void look(void *data, const weir__stream_info *info) {
    *(uint64_t *)data = info->completed;
}

static void on_blocked(weir_actor *self, const weir_message *m) {
    (void)m;
    blocked *b = weir_state(self);
    pthread_mutex_lock(&b->interpreter);
    uint64_t completed = 0;
    while (completed < G1_NOTICES) { /* needs every completion, and no completion may need this thread */
        weir__streams(b->t->s, look, &completed);
        dev_nap(100000);
    }
    b->handled++;
    pthread_mutex_unlock(&b->interpreter);
}

static void streams_G1(void **state) {
    (void)state;
    static const weir_handler handlers[] = {{"done", on_blocked}, {NULL, NULL}};
    static const weir_behaviour behaviour = {.name = "blocked", .handlers = handlers};
    dev_test t;
    dev_open(&t, 1);
    blocked b = {.t = &t, .interpreter = PTHREAD_MUTEX_INITIALIZER};
    weir_address a;
    assert_int_equal(weir_spawn(t.s, &behaviour, &b, NULL, &a, NULL), WEIR_OK);
    weir__stream *st = dev_stream(&t, "st");
    for (int i = 0; i < G1_NOTICES; i++)
        assert_int_equal(weir__stream_notify(st, a, weir_intern(t.s, "done"), i), WEIR_OK);
    dev_settle(&t);
    assert_int_equal(b.handled, G1_NOTICES);
    weir__stream_close(st);
    assert_int_equal(weir_stop(t.s, a), WEIR_OK);
    dev_close(&t);
}

/* ---- a run without a condition ends with the last work, also when that ends just as the loop goes to sleep ---- */

typedef struct flag {
    _Atomic bool entered, open;
} flag;

static int spin_on_flag(void *data) {
    flag *f = data;
    atomic_store(&f->entered, true);
    while (!atomic_load(&f->open)) /* spins, so that it ends within a microsecond */
        ;
    return WEIR_OK;
}

static void run_ends_with_the_last_work(void **state) {
    (void)state;
    dev_test t;
    dev_open(&t, 1);
    weir__stream *st = dev_stream(&t, "st");
    for (int i = 0; i < 2000; i++) {
        flag f = {0};
        assert_int_equal(weir__stream_host(st, spin_on_flag, NULL, &f), WEIR_OK);
        while (!atomic_load(&f.entered))
            sched_yield();
        atomic_store(&f.open, true);
        dev_settle(&t);
    }
    weir__stream_close(st);
    dev_close(&t);
}

/* ---- G3: device memory is freed on the loop's thread while completions pend ---- */

static void streams_G3(void **state) {
    (void)state;
    dev_test t;
    dev_open(&t, 2);
    weir__stream *st = dev_stream(&t, "st"), *other = dev_stream(&t, "other");
    weir__buffer *sum = dev_buffer(&t, 1000);
    uint64_t before = dev_bytes(&t);
    for (int i = 0; i < 1000; i++) {
        weir__buffer *b = dev_buffer(&t, 5000);
        *(unsigned char *)weir__buffer_pointer(b) = (unsigned char)i;
        assert_int_equal(weir__stream_copy(st, sum, (size_t)i, b, 0, 1), WEIR_OK);
        dev_notify(&t, st, i);
        weir__buffer_unref(b); /* the queued copy counts it */
        weir__buffer *unused = dev_buffer(&t, 3 << 20);
        dev_notify(&t, other, i);
        weir__buffer_unref(unused);
    }
    dev_run_until(&t, 2000);
    dev_settle(&t);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(((unsigned char *)weir__buffer_pointer(sum))[i], (unsigned char)i);
    assert_true(dev_bytes(&t) < before + 1000 * 1000); /* items stay in the pools, no buffer does */
    weir__buffer_unref(sum);
    weir__stream_close(st);
    weir__stream_close(other);
    dev_close(&t);
}

/* ---- G5: 10,000 streams made, used and closed; 200 at a time ---- */

static void use_and_close(dev_test *t, weir__list *l, const char *name) {
    weir__stream *st = dev_stream(t, name);
    assert_int_equal(weir__stream_run(st, l, NULL), WEIR_OK);
    weir__stream_close(st);
}

static void streams_G5(void **state) {
    (void)state;
    dev_test t;
    dev_open(&t, 2);
    int bare = dev_threads();
    uint64_t before = dev_bytes(&t);
    dev_work w;
    dev_adder(&t, &w, 64, 1, false);
    for (int i = 0; i < 10000; i++) {
        use_and_close(&t, w.list, "one");
        if (i % 100 == 99)
            dev_settle(&t);
    }
    enum { MANY = 200 };
    weir__stream *st[MANY];
    for (int i = 0; i < MANY; i++) {
        st[i] = dev_stream(&t, "many");
        dev_notify(&t, st[i], i);
    }
    assert_true(dev_threads() >= bare + MANY);
    dev_run_until(&t, MANY);
    for (int i = 0; i < MANY; i++)
        weir__stream_close(st[i]);
    dev_settle(&t);
    dev_threads_settle(bare + WEIR_PARKED_STREAMS);
    dev_work_free(&w);
    assert_true(dev_bytes(&t) < before + 65536);
    dev_close(&t);
    dev_threads_settle(bare - 1);
}

/* ---- J1: an allocation fails, at every point of every submission ---- */

/* Submits one of everything; the first failure's code. What was queued before it stays queued. */
static int submit_all(dev_test *t, dev_gate *g, weir__stream **st, weir__event **e, weir__list *l) {
    int code = WEIR_OK;
    if (!*st && (code = weir__stream_new(t->d, t->inbox, "st", st, NULL)))
        return code;
    if (!*e && (code = weir__event_new(t->d, e)))
        return code;
    weir__buffer *b = NULL;
    if ((code = weir__buffer_new(t->d, 1000, "test", &b, NULL)))
        return code;
    if ((code = weir__stream_host(*st, dev_gate_fn, dev_gate_release, g)) == WEIR_OK)
        if ((code = weir__stream_run(*st, l, NULL)) == WEIR_OK)
            if ((code = weir__stream_copy(*st, b, 0, b, 0, 10)) == WEIR_OK)
                if ((code = weir__stream_record(*st, *e)) == WEIR_OK)
                    if ((code = weir__stream_wait(*st, *e)) == WEIR_OK)
                        code = weir__stream_notify(*st, t->inbox, t->verb, 0);
    weir__buffer_unref(b);
    return code;
}

static void streams_J1_no_memory_at_any_point(void **state) {
    (void)state;
    for (int inline_mode = 0; inline_mode < 2; inline_mode++)
        for (uint64_t nth = 1, going = 1; going; nth++) {
            dev_test t;
            if (inline_mode)
                dev_open_inline(&t, 2, nth);
            else
                dev_open(&t, 2);
            dev_work w;
            dev_adder(&t, &w, 64, 1, false);
            dev_gate g = {0};
            weir__stream *st = NULL;
            weir__event *e = NULL;
            atomic_store(&g.open, inline_mode == 1);
            assert_int_equal(weir__inject_arm(t.s, "ALLOC", nth, 1), WEIR_OK);
            int code = submit_all(&t, &g, &st, &e, w.list);
            assert_int_equal(weir__inject_arm(t.s, "ALLOC", 1, 0), WEIR_OK);
            assert_true(code == WEIR_OK || code == WEIR_ENOMEM);
            going = code != WEIR_OK;
            atomic_store(&g.open, true);
            dev_settle(&t);
            assert_int_equal(t.count, code == WEIR_OK);
            assert_int_equal(g.ran, g.released);
            weir__event_unref(e);
            weir__stream_close(st);
            dev_work_free(&w);
            dev_close(&t);
            assert_true(nth < 100);
        }
}

/* ---- idle, and not in the loop's way ---- */

static void idle_device_uses_no_processor(void **state) {
    (void)state;
    dev_test t;
    dev_open(&t, 3);
    weir__stream *st = dev_stream(&t, "st"), *waits = dev_stream(&t, "waits"), *closed = dev_stream(&t, "closed");
    dev_work w;
    dev_adder(&t, &w, 256, 100, false);
    assert_int_equal(weir__stream_run(st, w.list, NULL), WEIR_OK);
    assert_int_equal(weir__stream_run(closed, w.list, NULL), WEIR_OK);
    dev_notify(&t, st, 0);
    dev_notify(&t, waits, 0);
    dev_run_until(&t, 2);
    weir__stream_close(closed);
    dev_settle(&t);
    dev_nap(50000000);
    int64_t before = dev_cpu_ticks();
    dev_nap(1000000000);
    assert_in_range(dev_cpu_ticks() - before, 0, 4); /* in 1/100 s; reading them costs a little */
    dev_work_free(&w);
    weir__stream_close(st);
    weir__stream_close(waits);
    dev_close(&t);
}

static void on_tick(weir_actor *self, void *data, uint64_t missed) {
    (void)self;
    (void)missed;
    (*(int *)data)++;
}

static void loop_goes_on_while_the_team_computes(void **state) {
    (void)state;
    dev_test t;
    dev_open(&t, 2);
    weir__stream *st = dev_stream(&t, "st");
    dev_work w;
    dev_adder(&t, &w, 1024, 2000, false);
    int ticks = 0;
    uint64_t id;
    assert_int_equal(weir_timer(weir_main_actor(t.s), 5000000, WEIR_TIMER_RATE, on_tick, &ticks, &id), WEIR_OK);
    int64_t begin = weir_now(t.s);
    int rounds = 0;
    do { /* about two seconds of work, whatever the machine */
        for (int i = 0; i < 2; i++)
            assert_int_equal(weir__stream_run(st, w.list, NULL), WEIR_OK);
        dev_notify(&t, st, ++rounds);
        int64_t submitted = weir_now(t.s);
        ticks = 0;
        dev_run_until(&t, rounds);
        int64_t took = weir_now(t.s) - submitted;
        if (took > 100000000) /* a tick is due every 5 ms: a loop that was blocked by the list would have had at most one */
            assert_true(ticks >= 5);
    } while (weir_now(t.s) - begin < 2000000000);
    weir_timer_cancel(weir_main_actor(t.s), id);
    dev_work_free(&w);
    weir__stream_close(st);
    dev_close(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_G1),
        cmocka_unit_test(run_ends_with_the_last_work),
        cmocka_unit_test(streams_G3),
        cmocka_unit_test(streams_G5),
        cmocka_unit_test(streams_J1_no_memory_at_any_point),
        cmocka_unit_test(idle_device_uses_no_processor),
        cmocka_unit_test(loop_goes_on_while_the_team_computes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
