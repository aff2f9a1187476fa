/* test_team.c: the worker team: each chunk runs once, barriers hold, streams take turns; with fewer, as many and more threads than processors. */
#include "helper_dev.h"

static const unsigned counts[] = {1, 2, 3, 8};

#if defined(__SANITIZE_THREAD__)
enum { SHORT = 20 }; /* times fewer items under a sanitizer that makes each one that much slower */
#else
enum { SHORT = 1 };
#endif

static void run_many(dev_test *t, weir__list *l, int times) {
    weir__stream *st = dev_stream(t, "st");
    for (int i = 0; i < times; i++)
        assert_int_equal(weir__stream_run(st, l, NULL), WEIR_OK);
    dev_notify(t, st, 0);
    dev_run_until(t, 1);
    assert_int_equal(t->notice[0].status, WEIR_OK);
    weir__stream_close(st);
}

/* 10^5 items in lists of 200, for each number of threads. */
static void team_runs_each_chunk_once(void **state) {
    (void)state;
    for (size_t c = 0; c < 4; c++) {
        dev_test t;
        dev_open(&t, counts[c]);
        dev_work w;
        dev_adder(&t, &w, 128, 200, false);
        int times = (counts[c] > 2 ? 100 : 500) / SHORT;
        run_many(&t, w.list, times);
        for (int j = 0; j < 128; j++)
            assert_float_equal(w.y[j], (float)(200 * times), 0);
        dev_work_free(&w);
        dev_close(&t);
    }
}

static void team_items_that_are_not_joined_run_once_too(void **state) {
    (void)state;
    for (size_t c = 0; c < 4; c++) {
        dev_test t;
        dev_open(&t, counts[c]);
        dev_work w;
        dev_adder(&t, &w, 128, 200, true);
        int times = 100 / SHORT;
        run_many(&t, w.list, times);
        for (int j = 0; j < 128; j++) {
            assert_float_equal(w.y[j], (float)(100 * times), 0);
            assert_float_equal(w.z[j], (float)(100 * times), 0);
        }
        dev_work_free(&w);
        dev_close(&t);
    }
}

static void team_barriers_hold(void **state) {
    (void)state;
    for (size_t c = 0; c < 4; c++) {
        dev_test t;
        dev_open(&t, counts[c]);
        dev_work w;
        enum { N = 256, ITEMS = 202 };
        dev_shifter(&t, &w, N, ITEMS);
        int times = 50 / SHORT;
        run_many(&t, w.list, times);
        for (int j = 0; j < N; j++)
            assert_float_equal(w.x[j], (float)((j + 16 * ITEMS * times) % N), 0);
        dev_work_free(&w);
        dev_close(&t);
    }
}

/* Lists of one item: the start and the end of a list are its only meeting points. */
static void team_starts_and_ends_many_lists(void **state) {
    (void)state;
    for (size_t c = 0; c < 4; c++) {
        dev_test t;
        dev_open(&t, counts[c]);
        dev_work w;
        dev_adder(&t, &w, 128, 1, false);
        int times = 5000 / SHORT;
        run_many(&t, w.list, times);
        for (int j = 0; j < 128; j++)
            assert_float_equal(w.y[j], (float)times, 0);
        dev_work_free(&w);
        dev_close(&t);
    }
}

/* Lists of three streams write the same vector: only one may own the team at a time. */
static void team_belongs_to_one_list_at_a_time(void **state) {
    (void)state;
    dev_test t;
    dev_open(&t, 3);
    dev_work w;
    dev_adder(&t, &w, 128, 5, false);
    weir__stream *st[3] = {dev_stream(&t, "a"), dev_stream(&t, "b"), dev_stream(&t, "c")};
    int times = 400 / SHORT;
    for (int i = 0; i < times; i++)
        for (int k = 0; k < 3; k++)
            assert_int_equal(weir__stream_run(st[k], w.list, NULL), WEIR_OK);
    for (int k = 0; k < 3; k++)
        dev_notify(&t, st[k], k);
    dev_run_until(&t, 3);
    for (int j = 0; j < 128; j++)
        assert_float_equal(w.y[j], (float)(3 * 5 * times), 0);
    for (int k = 0; k < 3; k++)
        weir__stream_close(st[k]);
    dev_work_free(&w);
    dev_close(&t);
}

/* Streams that wait for the team are skipped and closed without ever having had it. */
static void team_queue_can_be_left(void **state) {
    (void)state;
    dev_test t;
    dev_open(&t, 2);
    dev_work w, other;
    dev_adder(&t, &w, 512, 5000, false);
    dev_adder(&t, &other, 64, 1, false);
    weir__stream *owner = dev_stream(&t, "owner"), *skips = dev_stream(&t, "skips"), *closes = dev_stream(&t, "closes"),
                 *stays = dev_stream(&t, "stays");
    dev_gate g = {.open = true};
    dev_gate_submit(owner, &g);
    assert_int_equal(weir__stream_run(owner, w.list, NULL), WEIR_OK);
    dev_notify(&t, owner, 0);
    dev_gate_entered(&g);
    dev_nap(1000000);
    weir__stream *waiting[3] = {skips, closes, stays};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(weir__stream_run(waiting[i], other.list, NULL), WEIR_OK);
        dev_notify(&t, waiting[i], 1 + i);
    }
    dev_nap(1000000);
    weir__stream_skip(skips);
    weir__stream_close(closes);
    dev_run_until(&t, 4);
    for (int i = 0; i < 4; i++)
        assert_true(t.notice[i].status == WEIR_OK || t.notice[i].status == WEIR_ECANCELLED);
    assert_float_equal(w.y[0], 5000, 0);
    assert_in_range((int)other.y[0], 1, 3);
    weir__stream_close(owner);
    weir__stream_close(skips);
    weir__stream_close(stays);
    dev_work_free(&w);
    dev_work_free(&other);
    dev_close(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(team_runs_each_chunk_once),
        cmocka_unit_test(team_items_that_are_not_joined_run_once_too),
        cmocka_unit_test(team_barriers_hold),
        cmocka_unit_test(team_starts_and_ends_many_lists),
        cmocka_unit_test(team_belongs_to_one_list_at_a_time),
        cmocka_unit_test(team_queue_can_be_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
