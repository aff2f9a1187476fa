/* test_event.c: events: order across streams, failures that reach who waits, and waits that are given up. */
#include "helper_dev.h"

static weir__event *new_event(dev_test *t) {
    weir__event *e = NULL;
    assert_int_equal(weir__event_new(t->d, &e), WEIR_OK);
    return e;
}

static void event_orders_two_streams(void **state) {
    (void)state;
    dev_test t;
    dev_open(&t, 1);
    weir__stream *a = dev_stream(&t, "a"), *b = dev_stream(&t, "b");
    weir__buffer *x = dev_buffer(&t, 4), *y = dev_buffer(&t, 4), *z = dev_buffer(&t, 4);
    memcpy(weir__buffer_pointer(x), "abcd", 4);
    dev_gate g = {0};
    weir__event *e = new_event(&t);
    dev_gate_submit(a, &g);
    assert_int_equal(weir__stream_copy(a, y, 0, x, 0, 4), WEIR_OK);
    assert_int_equal(weir__stream_record(a, e), WEIR_OK);
    assert_int_equal(weir__stream_wait(b, e), WEIR_OK);
    assert_int_equal(weir__stream_copy(b, z, 0, y, 0, 4), WEIR_OK);
    dev_notify(&t, b, 0);
    dev_nap(3000000);
    assert_int_equal(weir__event_status(e), WEIR_EBUSY);
    atomic_store(&g.open, true);
    dev_run_until(&t, 1);
    assert_int_equal(weir__event_status(e), WEIR_OK);
    assert_int_equal(t.notice[0].status, WEIR_OK);
    assert_memory_equal(weir__buffer_pointer(z), "abcd", 4);
    weir__event_unref(e);
    weir__buffer_unref(x);
    weir__buffer_unref(y);
    weir__buffer_unref(z);
    weir__stream_close(a);
    weir__stream_close(b);
    dev_close(&t);
}

/* Two streams copy in turns from x to y and back, each waiting for the other's last event; a copy that is too early or too late loses a byte. */
static void event_ping_pong_keeps_order(void **state) {
    (void)state;
    dev_test t;
    dev_open(&t, 1);
    weir__stream *st[2] = {dev_stream(&t, "ping"), dev_stream(&t, "pong")};
    enum { N = 500 };
    weir__buffer *b = dev_buffer(&t, N + 1);
    *(char *)weir__buffer_pointer(b) = 77;
    weir__event *last = NULL;
    for (size_t i = 0; i < N; i++) {
        weir__stream *now = st[i % 2];
        weir__event *e = new_event(&t);
        if (last)
            assert_int_equal(weir__stream_wait(now, last), WEIR_OK);
        assert_int_equal(weir__stream_copy(now, b, i + 1, b, i, 1), WEIR_OK);
        assert_int_equal(weir__stream_record(now, e), WEIR_OK);
        weir__event_unref(last); /* dropping the handle changes nothing in flight */
        last = e;
    }
    dev_notify(&t, st[1], 0);
    dev_run_until(&t, 1);
    assert_int_equal(((char *)weir__buffer_pointer(b))[N], 77);
    weir__event_unref(last);
    weir__buffer_unref(b);
    weir__stream_close(st[0]);
    weir__stream_close(st[1]);
    dev_close(&t);
}

static void event_failed_fails_whoever_waits_each_time(void **state) {
    (void)state;
    dev_test t;
    dev_open(&t, 1);
    weir__stream *a = dev_stream(&t, "a"), *b = dev_stream(&t, "b");
    weir__event *e = new_event(&t);
    dev_gate fails = {.open = true, .result = WEIR_EIO}, work = {.open = true}, fine = {.open = true};
    dev_gate_submit(a, &fails);
    assert_int_equal(weir__stream_record(a, e), WEIR_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(weir__stream_wait(b, e), WEIR_OK);
        dev_gate_submit(b, &work);
        dev_notify(&t, b, i);
    }
    dev_gate_submit(b, &fine);
    dev_notify(&t, b, 3);
    dev_run_until(&t, 4);
    for (int i = 0; i < 3; i++)
        assert_int_equal(t.notice[i].status, WEIR_EIO);
    assert_int_equal(t.notice[3].status, WEIR_OK);
    assert_int_equal(weir__event_status(e), WEIR_EIO);
    assert_int_equal(work.ran, 0);
    assert_int_equal(work.released, 3);
    assert_int_equal(fine.ran, 1);
    weir__event_unref(e);
    weir__stream_close(a);
    weir__stream_close(b);
    dev_close(&t);
}

static void event_of_a_closed_stream_is_cancelled(void **state) {
    (void)state;
    dev_test t;
    dev_open(&t, 1);
    weir__stream *a = dev_stream(&t, "a"), *b = dev_stream(&t, "b");
    weir__event *e = new_event(&t);
    dev_gate g = {0};
    dev_gate_submit(a, &g);
    assert_int_equal(weir__stream_record(a, e), WEIR_OK);
    assert_int_equal(weir__stream_wait(b, e), WEIR_OK);
    dev_notify(&t, b, 0);
    dev_gate_entered(&g);
    weir__stream_close(a);
    atomic_store(&g.open, true);
    dev_run_until(&t, 1);
    assert_int_equal(t.notice[0].status, WEIR_ECANCELLED);
    weir__event_unref(e);
    weir__stream_close(b);
    dev_close(&t);
}

static void event_wait_is_given_up(bool close) {
    dev_test t;
    dev_open(&t, 1);
    weir__stream *a = dev_stream(&t, "a"), *b = dev_stream(&t, "b"), *c = dev_stream(&t, "c");
    weir__event *e = new_event(&t);
    dev_gate g = {0};
    dev_gate_submit(a, &g);
    assert_int_equal(weir__stream_record(a, e), WEIR_OK);
    assert_int_equal(weir__stream_wait(b, e), WEIR_OK);
    dev_notify(&t, b, 1);
    assert_int_equal(weir__stream_wait(c, e), WEIR_OK);
    dev_notify(&t, c, 2);
    dev_nap(3000000);
    if (close)
        weir__stream_close(b);
    else
        weir__stream_skip(b);
    dev_run_until(&t, 1);
    assert_int_equal(t.notice[0].status, WEIR_ECANCELLED);
    assert_int_equal(t.notice[0].arg, 1);
    assert_int_equal(weir__event_status(e), WEIR_EBUSY);
    atomic_store(&g.open, true);
    dev_run_until(&t, 2);
    assert_int_equal(t.notice[1].status, WEIR_OK); /* the other one went on waiting */
    weir__event_unref(e);
    weir__stream_close(a);
    if (!close)
        weir__stream_close(b);
    weir__stream_close(c);
    dev_close(&t);
}

static void event_wait_ends_with_skip(void **state) {
    (void)state;
    event_wait_is_given_up(false);
}

static void event_wait_ends_with_close(void **state) {
    (void)state;
    event_wait_is_given_up(true);
}

static void event_is_recorded_once_and_before_it_is_waited_for(void **state) {
    (void)state;
    dev_test t;
    dev_open(&t, 1);
    weir__stream *a = dev_stream(&t, "a");
    weir__event *e = new_event(&t);
    assert_int_equal(weir__stream_wait(a, e), WEIR_EINVAL);
    assert_int_equal(weir__stream_record(a, e), WEIR_OK);
    assert_int_equal(weir__stream_record(a, e), WEIR_EINVAL);
    assert_int_equal(weir__stream_wait(a, e), WEIR_OK); /* of the own stream: done by then */
    dev_notify(&t, a, 0);
    dev_run_until(&t, 1);
    assert_int_equal(t.notice[0].status, WEIR_OK);
    weir__event_unref(e);
    weir__event_unref(NULL);
    assert_int_equal(weir__inject_arm(t.s, "ALLOC", 1, 1), WEIR_OK);
    assert_int_equal(weir__event_new(t.d, &e), WEIR_ENOMEM);
    weir__stream_close(a);
    dev_close(&t);
}

static void on_event(weir_actor *self, const weir_message *m) {
    void *object = NULL;
    weir_cursor c = weir_read(weir_message_body(m), NULL);
    assert_true(weir_read_handle(&c, "event", &object));
    *(int *)weir_state(self) = weir__event_status(object);
}

static void event_travels_in_a_message(void **state) {
    (void)state;
    static const weir_handler handlers[] = {{"look", on_event}, {NULL, NULL}};
    static const weir_behaviour looker = {.name = "looker", .handlers = handlers};
    dev_test t;
    dev_open(&t, 1);
    int seen = -1;
    weir_address a;
    assert_int_equal(weir_spawn(t.s, &looker, &seen, NULL, &a, NULL), WEIR_OK);
    weir_handle h = {&weir__event_handle, new_event(&t)};
    assert_int_equal(weir_post(t.s, 0, a, weir_intern(t.s, "look"), weir_pack(t.s, "h", h)), WEIR_OK);
    dev_settle(&t);
    assert_int_equal(seen, WEIR_EBUSY);
    assert_int_equal(weir_stop(t.s, a), WEIR_OK);
    dev_close(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(event_orders_two_streams),
        cmocka_unit_test(event_ping_pong_keeps_order),
        cmocka_unit_test(event_failed_fails_whoever_waits_each_time),
        cmocka_unit_test(event_of_a_closed_stream_is_cancelled),
        cmocka_unit_test(event_wait_ends_with_skip),
        cmocka_unit_test(event_wait_ends_with_close),
        cmocka_unit_test(event_is_recorded_once_and_before_it_is_waited_for),
        cmocka_unit_test(event_travels_in_a_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
