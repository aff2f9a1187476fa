/* test_inline.c: streams under the test driver: no threads, an order that depends on the seed only, and the same promises as with threads. */
#include "helper_dev.h"

typedef struct mark {
    char *text; /* where the next mark is written */
    size_t *length;
    char letter;
} mark;

static int write_mark(void *data) {
    mark *m = data;
    m->text[(*m->length)++] = m->letter;
    return WEIR_OK;
}

enum { STREAMS = 4, STEPS = 12 };

/* Which stream ran when, as letters. */
static void trace(uint64_t seed, char *text) {
    dev_test t;
    dev_open_inline(&t, 2, seed);
    size_t length = 0;
    mark marks[STREAMS];
    weir__stream *st[STREAMS];
    for (int i = 0; i < STREAMS; i++) {
        marks[i] = (mark){text, &length, (char)('a' + i)};
        st[i] = dev_stream(&t, "st");
    }
    for (int step = 0; step < STEPS; step++)
        for (int i = 0; i < STREAMS; i++)
            assert_int_equal(weir__stream_host(st[i], write_mark, NULL, &marks[i]), WEIR_OK);
    dev_settle(&t);
    assert_int_equal(length, STREAMS * STEPS);
    text[length] = 0;
    for (int i = 0; i < STREAMS; i++)
        weir__stream_close(st[i]);
    dev_close(&t);
}

static void inline_replays_by_seed(void **state) {
    (void)state;
    char first[STREAMS * STEPS + 1], again[STREAMS * STEPS + 1];
    int different = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        trace(seed, first);
        trace(seed, again);
        assert_string_equal(first, again);
        char other[STREAMS * STEPS + 1];
        trace(seed + 1, other);
        different += strcmp(first, other) != 0;
    }
    assert_true(different >= 15);
}

static void inline_starts_no_thread(void **state) {
    (void)state;
    int before = dev_threads();
    dev_test t;
    dev_open_inline(&t, 8, 1);
    weir__stream *st = dev_stream(&t, "st");
    dev_work w;
    dev_adder(&t, &w, 256, 10, false);
    assert_int_equal(weir__stream_run(st, w.list, NULL), WEIR_OK);
    dev_notify(&t, st, 5);
    dev_run_until(&t, 1);
    assert_int_equal(dev_threads(), before);
    assert_int_equal(weir__device_threads(t.d), 8);
    assert_int_equal(t.notice[0].status, WEIR_OK);
    for (int j = 0; j < 256; j++)
        assert_float_equal(w.y[j], 10, 0);
    dev_work_free(&w);
    weir__stream_close(st);
    dev_close(&t);
}

static void inline_waits_for_events_in_any_order(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 30; seed++) {
        dev_test t;
        dev_open_inline(&t, 1, seed);
        weir__stream *a = dev_stream(&t, "a"), *b = dev_stream(&t, "b");
        weir__buffer *buffer = dev_buffer(&t, 64);
        char *p = weir__buffer_pointer(buffer);
        p[0] = 9;
        weir__event *e = NULL;
        assert_int_equal(weir__event_new(t.d, &e), WEIR_OK);
        for (size_t i = 0; i < 5; i++)
            assert_int_equal(weir__stream_copy(a, buffer, i + 1, buffer, i, 1), WEIR_OK);
        assert_int_equal(weir__stream_record(a, e), WEIR_OK);
        assert_int_equal(weir__stream_wait(b, e), WEIR_OK);
        assert_int_equal(weir__stream_copy(b, buffer, 6, buffer, 5, 1), WEIR_OK);
        dev_notify(&t, b, 0);
        assert_int_equal(weir__event_status(e), WEIR_EBUSY);
        dev_run_until(&t, 1);
        assert_int_equal(weir__event_status(e), WEIR_OK);
        assert_int_equal(p[6], 9);
        weir__event_unref(e);
        weir__buffer_unref(buffer);
        weir__stream_close(a);
        weir__stream_close(b);
        dev_close(&t);
    }
}

static void inline_skip_and_close_release_everything(void **state) {
    (void)state;
    for (int close = 0; close < 2; close++) {
        dev_test t;
        dev_open_inline(&t, 2, 3);
        weir__stream *st = dev_stream(&t, "st"), *late = dev_stream(&t, "late");
        dev_gate g[5] = {{.open = true}, {.open = true}, {.open = true}, {.open = true}, {.open = true}};
        weir__event *e = NULL;
        assert_int_equal(weir__event_new(t.d, &e), WEIR_OK);
        for (int i = 0; i < 5; i++)
            dev_gate_submit(st, &g[i]);
        assert_int_equal(weir__stream_record(st, e), WEIR_OK);
        dev_notify(&t, st, 1);
        assert_int_equal(weir__stream_wait(late, e), WEIR_OK);
        dev_notify(&t, late, 2);
        if (close)
            weir__stream_close(st);
        else
            weir__stream_skip(st);
        dev_run_until(&t, 2);
        assert_int_equal(t.notice[0].status, WEIR_ECANCELLED);
        assert_int_equal(t.notice[1].status, WEIR_ECANCELLED);
        for (int i = 0; i < 5; i++) {
            assert_int_equal(g[i].ran, 0);
            assert_int_equal(g[i].released, 1);
        }
        if (!close)
            weir__stream_close(st);
        weir__event_unref(e);
        weir__stream_close(late);
        dev_close(&t);
    }
}

static void inline_system_ends_with_work_queued(void **state) {
    (void)state;
    dev_test t;
    dev_open_inline(&t, 2, 3);
    weir__stream *st = dev_stream(&t, "st"), *waits = dev_stream(&t, "waits");
    dev_gate g = {.open = true};
    weir__event *e = NULL;
    assert_int_equal(weir__event_new(t.d, &e), WEIR_OK);
    dev_gate_submit(st, &g);
    assert_int_equal(weir__stream_record(st, e), WEIR_OK);
    assert_int_equal(weir__stream_wait(waits, e), WEIR_OK);
    dev_notify(&t, waits, 0);
    weir__event_unref(e);
    weir_system_free(t.s);
    assert_int_equal(g.ran, 0);
    assert_int_equal(g.released, 1);
    assert_int_equal(atomic_load(&t.bytes), 0);
}

static void inline_failed_list_reaches_the_notice(void **state) {
    (void)state;
    dev_test t;
    dev_open_inline(&t, 2, 3);
    weir__stream *st = dev_stream(&t, "st");
    dev_work w;
    dev_adder(&t, &w, 64, 2, false);
    assert_int_equal(weir__inject_arm(t.s, "KERNEL", 1, 1), WEIR_OK);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(weir__stream_run(st, w.list, NULL), WEIR_OK);
        dev_notify(&t, st, i);
    }
    dev_run_until(&t, 2);
    assert_int_equal(t.notice[0].status, WEIR_EDEVICE);
    assert_int_equal(t.notice[1].status, WEIR_OK);
    assert_float_equal(w.y[0], 2, 0);
    dev_work_free(&w);
    weir__stream_close(st);
    dev_close(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inline_replays_by_seed),
        cmocka_unit_test(inline_starts_no_thread),
        cmocka_unit_test(inline_waits_for_events_in_any_order),
        cmocka_unit_test(inline_skip_and_close_release_everything),
        cmocka_unit_test(inline_system_ends_with_work_queued),
        cmocka_unit_test(inline_failed_list_reaches_the_notice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
