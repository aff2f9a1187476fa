/* test_list.c: recording lists: what is copied, what is refused, what a list owns, and that it can be run again and again. */
#include "helper_dev.h"

static weir_k_tile tile_args(weir__buffer *b) {
    return (weir_k_tile){.step = weir__buffer_pointer(b), .outputs = 0};
}

static weir__list *new_list(dev_test *t) {
    weir__list *l = NULL;
    assert_int_equal(weir__list_new(t->d, "list", &l, NULL), WEIR_OK);
    return l;
}

static void list_arguments_are_copied(void **state) {
    (void)state;
    dev_test t;
    dev_open(&t, 2);
    weir__stream *st = dev_stream(&t, "st");
    weir__buffer *b = dev_buffer(&t, sizeof(weir_step));
    weir_step *step = weir__buffer_pointer(b);
    *step = (weir_step){.rows = 5, .tile = 2, .tile_first = 5};
    weir__list *l = new_list(&t);
    weir_k_tile args = tile_args(b);
    assert_int_equal(weir__list_add(l, WEIR_K_tile, &args, true, NULL), WEIR_OK);
    memset(&args, 0xff, sizeof args);
    assert_int_equal(weir__list_length(l), 1);
    assert_int_equal(weir__stream_run(st, l, NULL), WEIR_OK);
    dev_notify(&t, st, 0);
    dev_run_until(&t, 1);
    assert_int_equal(t.notice[0].status, WEIR_OK);
    assert_int_equal(step->tile_first, 0);
    assert_int_equal(step->tile_rows, 2);
    weir__list_unref(l);
    weir__buffer_unref(b);
    weir__stream_close(st);
    dev_close(&t);
}

static void list_runs_again_and_again(void **state) {
    (void)state;
    dev_test t;
    dev_open(&t, 2);
    weir__stream *st = dev_stream(&t, "st");
    dev_work w;
    dev_adder(&t, &w, 64, 3, false);
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < 4; i++)
            assert_int_equal(weir__stream_run(st, w.list, NULL), WEIR_OK);
        dev_notify(&t, st, round);
        if (round % 10 == 9)
            dev_run_until(&t, round + 1);
    }
    for (int j = 0; j < 64; j++)
        assert_float_equal(w.y[j], 50 * 4 * 3, 0);
    dev_work_free(&w);
    weir__stream_close(st);
    dev_close(&t);
}

static void list_queued_is_busy(void **state) {
    (void)state;
    dev_test t;
    dev_open(&t, 1);
    weir__stream *st = dev_stream(&t, "st");
    weir__buffer *b = dev_buffer(&t, sizeof(weir_step));
    weir_k_tile args = tile_args(b);
    weir__list *l = new_list(&t), *other = new_list(&t);
    dev_gate g = {0};
    dev_gate_submit(st, &g);
    assert_int_equal(weir__stream_run(st, l, NULL), WEIR_OK);
    weir_error *error = NULL;
    assert_int_equal(weir__list_add(l, WEIR_K_tile, &args, true, &error), WEIR_EBUSY);
    assert_non_null(strstr(weir_error_text(error), "list list"));
    weir_error_free(error);
    assert_int_equal(weir__list_append(l, other, NULL), WEIR_EBUSY);
    assert_int_equal(weir__list_append(other, l, NULL), WEIR_OK); /* reading it is allowed */
    assert_int_equal(weir__list_own(l, b), WEIR_EBUSY);
    atomic_store(&g.open, true);
    dev_settle(&t);
    assert_int_equal(weir__list_add(l, WEIR_K_tile, &args, true, NULL), WEIR_OK);
    assert_int_equal(weir__list_length(l), 1);
    weir__list_unref(l);
    weir__list_unref(other);
    weir__buffer_unref(b);
    weir__stream_close(st);
    dev_close(&t);
}

static void list_shape_without_kernel_is_refused_and_named(void **state) {
    (void)state;
    dev_test t;
    dev_open(&t, 1);
    weir__list *l = new_list(&t);
    weir_k_matmul args = {.w = {.type = 39, .n = 16, .k = 32}, .rows = WEIR_ROWS_TILE};
    weir_error *error = NULL;
    assert_int_equal(weir__list_add(l, WEIR_K_matmul, &args, true, &error), WEIR_EUNSUPPORTED);
    assert_non_null(strstr(weir_error_text(error), "kernel matmul"));
    weir_error_free(error);
    error = NULL;
    assert_int_equal(weir__list_add(l, WEIR_KERNEL_COUNT, &args, true, &error), WEIR_EINVAL);
    weir_error_free(error);
    assert_int_equal(weir__list_length(l), 0);
    weir__list_unref(l);
    dev_close(&t);
}

static void list_append_takes_items_and_buffers(void **state) {
    (void)state;
    dev_test t;
    dev_open(&t, 2);
    weir__stream *st = dev_stream(&t, "st");
    dev_work a, b;
    dev_adder(&t, &a, 64, 2, false);
    dev_adder(&t, &b, 64, 3, true);
    weir__list *all = new_list(&t);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(weir__list_append(all, a.list, NULL), WEIR_OK);
        assert_int_equal(weir__list_append(all, b.list, NULL), WEIR_OK);
    }
    assert_int_equal(weir__list_length(all), 50);
    assert_int_equal(weir__list_append(all, all, NULL), WEIR_OK);
    assert_int_equal(weir__list_length(all), 100);
    dev_work_free(&a); /* the joined list counts the buffers itself */
    dev_work_free(&b);
    assert_int_equal(weir__stream_run(st, all, NULL), WEIR_OK);
    dev_notify(&t, st, 0);
    dev_run_until(&t, 1);
    for (int j = 0; j < 64; j++) {
        assert_float_equal(a.y[j], 40, 0);
        assert_float_equal(b.y[j], 40, 0);
        assert_float_equal(b.z[j], 20, 0);
    }
    weir__list_unref(all);
    weir__stream_close(st);
    dev_close(&t);
}

static void list_dropped_while_queued_runs_and_is_given_back(void **state) {
    (void)state;
    dev_test t;
    dev_open(&t, 2);
    weir__stream *st = dev_stream(&t, "st");
    uint64_t before = dev_bytes(&t);
    dev_gate g = {0};
    dev_work w;
    dev_adder(&t, &w, 64, 2, false);
    weir__buffer *result = dev_buffer(&t, 64 * sizeof(float));
    dev_gate_submit(st, &g);
    assert_int_equal(weir__stream_run(st, w.list, NULL), WEIR_OK);
    size_t at = (size_t)((char *)w.y - (char *)weir__buffer_pointer(w.memory));
    assert_int_equal(weir__stream_copy(st, result, 0, w.memory, at, 64 * sizeof(float)), WEIR_OK);
    dev_work_free(&w);
    atomic_store(&g.open, true);
    dev_settle(&t);
    for (int j = 0; j < 64; j++)
        assert_float_equal(((float *)weir__buffer_pointer(result))[j], 2, 0);
    weir__buffer_unref(result);
    weir__stream_close(st);
    dev_settle(&t);
    assert_true(dev_bytes(&t) <= before + 4096); /* a stream's pool of ended items at most */
    dev_close(&t);
}

static void list_without_memory_stays_as_it_was(void **state) {
    (void)state;
    dev_test t;
    dev_open(&t, 1);
    weir__list *l = NULL;
    weir__buffer *b = dev_buffer(&t, sizeof(weir_step));
    weir_k_tile args = tile_args(b);
    assert_int_equal(weir__inject_arm(t.s, "ALLOC", 1, 1), WEIR_OK);
    assert_int_equal(weir__list_new(t.d, "list", &l, NULL), WEIR_ENOMEM);
    l = new_list(&t);
    size_t failures = 0;
    for (size_t length = 0; length < 100;) {
        assert_int_equal(weir__inject_arm(t.s, "ALLOC", 1 + failures % 2, 1), WEIR_OK);
        int code = weir__list_add(l, WEIR_K_tile, &args, true, NULL);
        assert_int_equal(weir__inject_arm(t.s, "ALLOC", 1, 0), WEIR_OK);
        failures += code != WEIR_OK;
        length += code == WEIR_OK;
        if (code)
            assert_int_equal(code, WEIR_ENOMEM);
        assert_int_equal(weir__list_length(l), length);
        if (code && failures > 8)
            assert_int_equal(weir__list_add(l, WEIR_K_tile, &args, true, NULL), WEIR_OK), length++;
    }
    assert_true(failures > 0);
    assert_int_equal(weir__inject_arm(t.s, "ALLOC", 1, 1), WEIR_OK);
    assert_int_equal(weir__list_own(l, b), WEIR_ENOMEM);
    assert_int_equal(weir__inject_arm(t.s, "ALLOC", 1, 0), WEIR_OK);
    weir__list_unref(l);
    weir__buffer_unref(b);
    dev_close(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(list_arguments_are_copied),
        cmocka_unit_test(list_runs_again_and_again),
        cmocka_unit_test(list_queued_is_busy),
        cmocka_unit_test(list_shape_without_kernel_is_refused_and_named),
        cmocka_unit_test(list_append_takes_items_and_buffers),
        cmocka_unit_test(list_dropped_while_queued_runs_and_is_given_back),
        cmocka_unit_test(list_without_memory_stays_as_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
