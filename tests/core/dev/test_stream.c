/* test_stream.c: one stream: order, copies, host functions, notices, failures that stick, skipping and closing. */
#include "helper_dev.h"

/* ---- order ---- */

typedef struct step {
    int number;
    int *next; /* only the stream's thread touches it while work is queued */
} step;

static int in_order(void *data) {
    step *s = data;
    return s->number == (*s->next)++ ? WEIR_OK : WEIR_ESTATE;
}

static void stream_runs_in_order(void **state) {
    (void)state;
    dev_test t;
    dev_open(&t, 1);
    weir__stream *st = dev_stream(&t, "st");
    enum { N = 2000 };
    static step steps[N];
    int next = 0;
    for (int i = 0; i < N; i++) {
        steps[i] = (step){i, &next};
        assert_int_equal(weir__stream_host(st, in_order, NULL, &steps[i]), WEIR_OK);
        dev_notify(&t, st, i);
    }
    dev_run_until(&t, N);
    for (int i = 0; i < N; i++) {
        assert_int_equal(t.notice[i].status, WEIR_OK);
        assert_int_equal(t.notice[i].arg, i);
    }
    weir__stream_close(st);
    dev_close(&t);
}

/* ---- copies ---- */

static void stream_copies_bytes(void **state) {
    (void)state;
    dev_test t;
    dev_open(&t, 1);
    weir__stream *st = dev_stream(&t, "st");
    weir__buffer *a = dev_buffer(&t, 100), *b = dev_buffer(&t, 100);
    unsigned char *pa = weir__buffer_pointer(a), *pb = weir__buffer_pointer(b);
    for (int i = 0; i < 100; i++)
        pa[i] = (unsigned char)i;
    assert_int_equal(weir__stream_copy(st, b, 10, a, 20, 30), WEIR_OK);
    assert_int_equal(weir__stream_copy(st, a, 1, a, 0, 99), WEIR_OK); /* overlapping */
    assert_int_equal(weir__stream_copy(st, b, 100, a, 100, 0), WEIR_OK);
    dev_notify(&t, st, 0);
    dev_run_until(&t, 1);
    for (int i = 0; i < 30; i++)
        assert_int_equal(pb[10 + i], 20 + i);
    assert_int_equal(pb[9] + pb[40], 0);
    for (int i = 1; i < 100; i++)
        assert_int_equal(pa[i], i - 1);
    weir__buffer_unref(a);
    weir__buffer_unref(b);
    weir__stream_close(st);
    dev_close(&t);
}

static void stream_copy_out_of_bounds_is_refused(void **state) {
    (void)state;
    dev_test t;
    dev_open(&t, 1);
    weir__stream *st = dev_stream(&t, "st");
    weir__buffer *a = dev_buffer(&t, 100), *b = dev_buffer(&t, 50);
    assert_int_equal(weir__stream_copy(st, b, 0, a, 0, 51), WEIR_EINVAL);
    assert_int_equal(weir__stream_copy(st, b, 51, a, 0, 0), WEIR_EINVAL);
    assert_int_equal(weir__stream_copy(st, a, 0, b, 1, 50), WEIR_EINVAL);
    assert_int_equal(weir__stream_copy(st, a, 1, a, 0, SIZE_MAX), WEIR_EINVAL);
    assert_int_equal(weir__stream_copy(st, a, SIZE_MAX, b, 0, 2), WEIR_EINVAL);
    assert_int_equal(weir__stream_copy(st, NULL, 0, b, 0, 1), WEIR_EINVAL);
    weir__buffer_unref(a);
    weir__buffer_unref(b);
    weir__stream_close(st);
    dev_close(&t);
}

/* ---- notices and failures ---- */

static void stream_failure_sticks_until_the_next_notify(void **state) {
    (void)state;
    dev_test t;
    dev_open(&t, 1);
    weir__stream *st = dev_stream(&t, "st");
    dev_gate fails = {.open = true, .result = WEIR_EIO}, later = {.open = true, .result = WEIR_ENOENT}, after = {.open = true};
    dev_gate_submit(st, &fails);
    dev_gate_submit(st, &later);
    dev_notify(&t, st, -7);
    dev_gate_submit(st, &after);
    dev_notify(&t, st, INT64_MAX);
    dev_notify(&t, st, INT64_MIN);
    dev_run_until(&t, 3);
    assert_int_equal(t.notice[0].status, WEIR_EIO);
    assert_int_equal(t.notice[0].arg, -7);
    assert_int_equal(t.notice[1].status, WEIR_OK);
    assert_true(t.notice[1].arg == INT64_MAX);
    assert_true(t.notice[2].arg == INT64_MIN);
    assert_int_equal(fails.ran, 1);
    assert_int_equal(later.ran, 0); /* not run after a failure, but released */
    assert_int_equal(after.ran, 1);
    assert_int_equal(fails.released + later.released + after.released, 3);
    weir__stream_close(st);
    dev_close(&t);
}

static void stream_failed_list_reaches_the_notice(void **state) {
    (void)state;
    dev_test t;
    dev_open(&t, 2);
    weir__stream *st = dev_stream(&t, "st");
    dev_work w;
    dev_adder(&t, &w, 64, 4, false);
    assert_int_equal(weir__inject_arm(t.s, "KERNEL", 2, 1), WEIR_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(weir__stream_run(st, w.list, NULL), WEIR_OK);
        dev_notify(&t, st, i);
    }
    dev_run_until(&t, 3);
    assert_int_equal(t.notice[0].status, WEIR_OK);
    assert_int_equal(t.notice[1].status, WEIR_EDEVICE);
    assert_int_equal(t.notice[2].status, WEIR_OK);
    assert_float_equal(w.y[0], 8, 0);
    dev_work_free(&w);
    weir__stream_close(st);
    dev_close(&t);
}

static void stream_refused_submission_leaves_nothing(void **state) {
    (void)state;
    dev_test t;
    dev_open(&t, 1);
    weir__stream *st = dev_stream(&t, "st");
    dev_gate g = {.open = true};
    weir__event *e = NULL;
    assert_int_equal(weir__event_new(t.d, &e), WEIR_OK);
    weir__buffer *b = dev_buffer(&t, 64);
    dev_work w;
    dev_adder(&t, &w, 64, 1, false);
    assert_int_equal(weir__inject_arm(t.s, "SUBMIT", 1, 5), WEIR_OK);
    assert_int_equal(weir__stream_run(st, w.list, NULL), WEIR_EDEVICE);
    assert_int_equal(weir__stream_copy(st, b, 0, b, 0, 64), WEIR_EDEVICE);
    assert_int_equal(weir__stream_host(st, dev_gate_fn, dev_gate_release, &g), WEIR_EDEVICE);
    assert_int_equal(weir__stream_record(st, e), WEIR_EDEVICE);
    assert_int_equal(weir__stream_notify(st, t.inbox, t.verb, 0), WEIR_EDEVICE);
    dev_settle(&t);
    assert_int_equal(t.count, 0);
    assert_int_equal(g.ran + g.released, 0);
    assert_int_equal(weir__event_status(e), WEIR_EBUSY);
    assert_int_equal(weir__stream_record(st, e), WEIR_OK); /* a refused record can be tried again */
    assert_int_equal(weir__list_own(w.list, b), WEIR_OK);  /* not queued */
    dev_settle(&t);
    assert_int_equal(weir__event_status(e), WEIR_OK);
    weir__event_unref(e);
    weir__buffer_unref(b);
    dev_work_free(&w);
    weir__stream_close(st);
    dev_close(&t);
}

static void stream_wrong_arguments_are_refused(void **state) {
    (void)state;
    dev_test t, other;
    dev_open(&t, 1);
    dev_open(&other, 1);
    weir__stream *st = dev_stream(&t, "st");
    weir__buffer *mine = dev_buffer(&t, 64), *foreign = dev_buffer(&other, 64);
    dev_work w;
    dev_adder(&other, &w, 64, 1, false);
    weir__event *e = NULL;
    assert_int_equal(weir__event_new(other.d, &e), WEIR_OK);
    assert_int_equal(weir__stream_run(st, w.list, NULL), WEIR_EINVAL);
    assert_int_equal(weir__stream_run(st, NULL, NULL), WEIR_EINVAL);
    assert_int_equal(weir__stream_run(NULL, w.list, NULL), WEIR_EINVAL);
    assert_int_equal(weir__stream_copy(st, mine, 0, foreign, 0, 1), WEIR_EINVAL);
    assert_int_equal(weir__stream_copy(st, foreign, 0, mine, 0, 1), WEIR_EINVAL);
    assert_int_equal(weir__stream_host(st, NULL, NULL, NULL), WEIR_EINVAL);
    assert_int_equal(weir__stream_record(st, e), WEIR_EINVAL);
    assert_int_equal(weir__stream_record(st, NULL), WEIR_EINVAL);
    assert_int_equal(weir__stream_wait(st, e), WEIR_EINVAL);
    assert_int_equal(weir__stream_notify(NULL, t.inbox, t.verb, 0), WEIR_EINVAL);
    weir__event_unref(e);
    dev_work_free(&w);
    weir__buffer_unref(mine);
    weir__buffer_unref(foreign);
    weir__stream_close(st);
    dev_close(&t);
    dev_close(&other);
}

static void stream_that_cannot_be_made_is_an_error(void **state) {
    (void)state;
    dev_test t;
    dev_open(&t, 1);
    uint64_t before = dev_bytes(&t);
    weir__stream *st = NULL;
    weir_error *error = NULL;
    assert_int_equal(weir__inject_arm(t.s, "STREAM", 1, 1), WEIR_OK);
    assert_int_equal(weir__stream_new(t.d, t.inbox, "weights", &st, &error), WEIR_EIO);
    assert_null(st);
    assert_non_null(strstr(weir_error_text(error), "stream weights"));
    weir_error_free(error);
    error = NULL;
    assert_int_equal(weir__inject_arm(t.s, "ALLOC", 1, 1), WEIR_OK);
    assert_int_equal(weir__stream_new(t.d, t.inbox, "weights", &st, &error), WEIR_ENOMEM);
    weir_error_free(error);
    assert_int_equal(dev_bytes(&t), before);
    weir__stream_close(NULL);
    dev_close(&t);
}

/* ---- skipping ---- */

static void stream_skip_drops_what_has_not_started(void **state) {
    (void)state;
    dev_test t;
    dev_open(&t, 2);
    weir__stream *st = dev_stream(&t, "st");
    dev_gate running = {0}, waiting = {.open = true}, fresh = {.open = true};
    dev_work w;
    dev_adder(&t, &w, 64, 1, false);
    weir__buffer *b = dev_buffer(&t, 64 * sizeof(float));
    dev_gate_submit(st, &running);
    dev_gate_submit(st, &waiting);
    assert_int_equal(weir__stream_run(st, w.list, NULL), WEIR_OK);
    assert_int_equal(weir__stream_copy(st, b, 0, w.memory, 0, 64), WEIR_OK);
    dev_notify(&t, st, 1);
    dev_gate_entered(&running);
    weir__stream_skip(st);
    dev_gate_submit(st, &fresh); /* not skipped: submitted later */
    dev_notify(&t, st, 2);
    atomic_store(&running.open, true);
    dev_run_until(&t, 2);
    assert_int_equal(t.notice[0].status, WEIR_ECANCELLED);
    assert_int_equal(t.notice[1].status, WEIR_OK);
    assert_int_equal(running.ran, 1);
    assert_int_equal(waiting.ran, 0);
    assert_int_equal(fresh.ran, 1);
    assert_int_equal(running.released + waiting.released + fresh.released, 3);
    assert_float_equal(w.y[0], 0, 0);
    weir__buffer_unref(b);
    dev_work_free(&w);
    weir__stream_close(st);
    dev_close(&t);
}

static void skip_in_the_middle(unsigned threads, bool close) {
    dev_test t;
    dev_open(&t, threads);
    weir__stream *st = dev_stream(&t, "st");
    dev_gate begun = {.open = true};
    dev_work w;
    enum { ITEMS = 20000 };
    dev_adder(&t, &w, 512, ITEMS, false);
    dev_gate_submit(st, &begun);
    assert_int_equal(weir__stream_run(st, w.list, NULL), WEIR_OK);
    dev_notify(&t, st, 1);
    dev_gate_entered(&begun);
    dev_nap(2000000);
    if (close)
        weir__stream_close(st);
    else
        weir__stream_skip(st);
    dev_run_until(&t, 1);
    assert_int_equal(t.notice[0].status, WEIR_ECANCELLED);
    assert_true(w.y[0] < ITEMS);
    for (int j = 0; j < 512; j++) /* it stopped between items, everywhere behind the same one */
        assert_float_equal(w.y[j], w.y[0], 0);
    if (!close) {
        float before = w.y[0];
        assert_int_equal(weir__stream_run(st, w.list, NULL), WEIR_OK);
        assert_int_equal(weir__stream_run(st, w.list, NULL), WEIR_OK);
        dev_gate_submit(st, &begun);
        weir__stream_skip(st);
        dev_notify(&t, st, 2);
        dev_run_until(&t, 2);
        assert_int_equal(t.notice[1].status, WEIR_ECANCELLED);
        assert_true(w.y[0] < before + 2 * ITEMS);
        weir__stream_close(st);
    }
    dev_work_free(&w);
    dev_close(&t);
}

static void stream_skip_stops_a_list_in_the_middle(void **state) {
    (void)state;
    skip_in_the_middle(1, false);
    skip_in_the_middle(2, false);
    skip_in_the_middle(3, false);
}

/* ---- closing ---- */

static void stream_close_stops_a_list_in_the_middle(void **state) {
    (void)state;
    skip_in_the_middle(1, true);
    skip_in_the_middle(2, true);
}

static void stream_close_with_work_in_flight(void **state) {
    (void)state;
    dev_test t;
    dev_open(&t, 2);
    uint64_t before = dev_bytes(&t);
    weir__stream *st = dev_stream(&t, "st");
    dev_gate running = {0}, waiting[20] = {0};
    dev_work w;
    dev_adder(&t, &w, 64, 1, false);
    weir__event *e = NULL;
    assert_int_equal(weir__event_new(t.d, &e), WEIR_OK);
    dev_gate_submit(st, &running);
    for (int i = 0; i < 20; i++) {
        dev_gate_submit(st, &waiting[i]);
        assert_int_equal(weir__stream_run(st, w.list, NULL), WEIR_OK);
        assert_int_equal(weir__stream_copy(st, w.memory, 0, w.memory, 64, 4), WEIR_OK);
        dev_notify(&t, st, i);
    }
    assert_int_equal(weir__stream_record(st, e), WEIR_OK);
    dev_work_free(&w);
    dev_gate_entered(&running);
    weir__stream_close(st); /* returns although the function stands still */
    assert_int_equal(running.ran, 0);
    atomic_store(&running.open, true);
    dev_run_until(&t, 20);
    dev_settle(&t);
    assert_int_equal(running.ran, 1);
    assert_int_equal(running.released, 1);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(waiting[i].ran, 0);
        assert_int_equal(waiting[i].released, 1);
        assert_int_equal(t.notice[i].status, WEIR_ECANCELLED);
        assert_int_equal(t.notice[i].arg, i);
    }
    assert_int_equal(weir__event_status(e), WEIR_ECANCELLED);
    weir__event_unref(e);
    assert_true(dev_bytes(&t) < before + 65536);
    dev_close(&t);
}

static void stream_left_open_is_ended_by_the_system(void **state) {
    (void)state;
    dev_test t;
    dev_open(&t, 2);
    dev_gate running = {0}, waiting = {0};
    for (int i = 0; i < 3; i++)
        dev_stream(&t, "left");
    weir__stream *st = dev_stream(&t, "st");
    dev_work w;
    dev_adder(&t, &w, 64, 1, false);
    dev_gate_submit(st, &running);
    dev_gate_submit(st, &waiting);
    assert_int_equal(weir__stream_run(st, w.list, NULL), WEIR_OK);
    dev_notify(&t, st, 0);
    dev_work_free(&w);
    atomic_store(&running.open, true);
    atomic_store(&waiting.open, true);
    weir_system_free(t.s); /* nobody ran the loop */
    assert_int_equal(running.released + waiting.released, 2);
    assert_int_equal(atomic_load(&t.bytes), 0);
}

/* ---- what can be seen, what it costs ---- */

typedef struct seen {
    int count;
    weir__stream_info info[8];
} seen;

static void see(void *data, const weir__stream_info *info) {
    seen *s = data;
    s->info[s->count++] = *info;
}

static void streams_are_listed_with_their_work(void **state) {
    (void)state;
    dev_test t;
    dev_open(&t, 2);
    seen s = {0};
    weir__streams(t.s, see, &s);
    assert_int_equal(s.count, 0);
    weir__stream *a = dev_stream(&t, "alpha"), *b = dev_stream(&t, "beta");
    dev_work w;
    dev_adder(&t, &w, 256, 100, false);
    assert_int_equal(weir__stream_run(b, w.list, NULL), WEIR_OK);
    dev_notify(&t, b, 0);
    dev_settle(&t);
    weir__streams(t.s, see, &s);
    assert_int_equal(s.count, 2);
    const weir__stream_info *of_b = strcmp(s.info[0].name, "beta") == 0 ? &s.info[0] : &s.info[1];
    assert_string_equal(of_b->name, "beta");
    assert_string_equal(of_b->device, "cpu");
    assert_true(of_b->owner == t.inbox);
    assert_int_equal(of_b->submitted, 2);
    assert_int_equal(of_b->completed, 2);
    assert_true(of_b->busy > 0);
    char path[64], name[32] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/comm", of_b->tid);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    assert_non_null(fgets(name, sizeof name, f));
    fclose(f);
    assert_string_equal(name, "beta\n");
    weir__stream_close(a);
    weir__stream_close(b);
    dev_settle(&t);
    s.count = 0;
    weir__streams(t.s, see, &s);
    assert_int_equal(s.count, 0);
    dev_work_free(&w);
    dev_close(&t);
}

static void stream_allocates_nothing_once_warm(void **state) {
    (void)state;
    dev_test t;
    dev_open(&t, 2);
    weir__stream *st = dev_stream(&t, "st");
    dev_work w;
    dev_adder(&t, &w, 64, 2, false);
    for (int round = 0; round < 20; round++) {
        if (round == 1) /* from now on every allocation fails */
            assert_int_equal(weir__inject_arm(t.s, "ALLOC", 1, UINT32_MAX), WEIR_OK);
        dev_gate g = {0};
        for (int i = 0; i < 10; i++) { /* all are queued before the first one ends */
            dev_gate_submit(st, &g);
            assert_int_equal(weir__stream_run(st, w.list, NULL), WEIR_OK);
            assert_int_equal(weir__stream_copy(st, w.memory, 0, w.memory, 0, 8), WEIR_OK);
        }
        atomic_store(&g.open, true);
        dev_settle(&t);
    }
    assert_int_equal(weir__inject_arm(t.s, "ALLOC", 1, 0), WEIR_OK);
    assert_float_equal(w.y[0], 400, 0);
    dev_work_free(&w);
    weir__stream_close(st);
    dev_close(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stream_runs_in_order),
        cmocka_unit_test(stream_copies_bytes),
        cmocka_unit_test(stream_copy_out_of_bounds_is_refused),
        cmocka_unit_test(stream_failure_sticks_until_the_next_notify),
        cmocka_unit_test(stream_failed_list_reaches_the_notice),
        cmocka_unit_test(stream_refused_submission_leaves_nothing),
        cmocka_unit_test(stream_wrong_arguments_are_refused),
        cmocka_unit_test(stream_that_cannot_be_made_is_an_error),
        cmocka_unit_test(stream_skip_drops_what_has_not_started),
        cmocka_unit_test(stream_skip_stops_a_list_in_the_middle),
        cmocka_unit_test(stream_close_stops_a_list_in_the_middle),
        cmocka_unit_test(stream_close_with_work_in_flight),
        cmocka_unit_test(stream_left_open_is_ended_by_the_system),
        cmocka_unit_test(streams_are_listed_with_their_work),
        cmocka_unit_test(stream_allocates_nothing_once_warm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
