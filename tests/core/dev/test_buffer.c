/* test_buffer.c: device memory: what it is like, what happens without it, and that it comes back. */
#include "helper_dev.h"

static void buffer_is_aligned_and_zero(void **state) {
    (void)state;
    dev_test t;
    dev_open(&t, 1);
    size_t sizes[] = {0, 1, 63, 4096, 3 << 20};
    for (size_t i = 0; i < 5; i++) {
        weir__buffer *b = dev_buffer(&t, sizes[i]);
        const unsigned char *p = weir__buffer_pointer(b);
        assert_int_equal((uintptr_t)p % 64, 0);
        assert_int_equal(weir__buffer_size(b), sizes[i]);
        for (size_t j = 0; j < sizes[i]; j++)
            assert_int_equal(p[j], 0);
        weir__buffer_unref(b);
    }
    dev_close(&t);
}

static void buffer_bytes_are_counted_and_come_back(void **state) {
    (void)state;
    dev_test t;
    dev_open(&t, 1);
    uint64_t before = dev_bytes(&t);
    weir__buffer *b = dev_buffer(&t, 5 << 20);
    assert_true(dev_bytes(&t) >= before + (5 << 20));
    weir__buffer_ref(b);
    weir__buffer_unref(b);
    assert_true(dev_bytes(&t) >= before + (5 << 20));
    weir__buffer_unref(b);
    weir__buffer_unref(NULL);
    assert_int_equal(dev_bytes(&t), before);
    dev_close(&t);
}

static void buffer_without_memory_says_how_many_bytes_for_what(void **state) {
    (void)state;
    dev_test t;
    dev_open(&t, 1);
    const char *points[] = {"ALLOC", "PAGES"};
    for (int i = 0; i < 2; i++) {
        uint64_t before = dev_bytes(&t);
        weir__buffer *b = NULL;
        weir_error *error = NULL;
        assert_int_equal(weir__inject_arm(t.s, points[i], 1, 1), WEIR_OK);
        assert_int_equal(weir__buffer_new(t.d, 12345, "the cache", &b, &error), WEIR_ENOMEM);
        assert_null(b);
        assert_non_null(strstr(weir_error_text(error), "the cache"));
        weir_error_free(error);
        assert_int_equal(weir__inject_arm(t.s, points[i], 1, 0), WEIR_OK);
        assert_int_equal(dev_bytes(&t), before);
    }
    weir_error *error = NULL;
    weir__buffer *b = NULL;
    assert_int_equal(weir__buffer_new(t.d, SIZE_MAX - 10, "the cache", &b, &error), WEIR_ENOMEM);
    weir_error_free(error);
    error = NULL;
    assert_int_equal(weir__buffer_new(t.d, (size_t)1 << 60, "the cache", &b, &error), WEIR_ENOMEM);
    assert_non_null(strstr(weir_error_text(error), "1152921504606846976 bytes"));
    weir_error_free(error);
    dev_close(&t);
}

static void on_buffer(weir_actor *self, const weir_message *m) {
    void *object = NULL;
    weir_cursor c = weir_read(weir_message_body(m), NULL);
    assert_true(weir_read_handle(&c, "buffer", &object));
    *(weir__buffer **)weir_state(self) = weir__buffer_ref(object);
}

static void buffer_travels_in_a_message(void **state) {
    (void)state;
    static const weir_handler handlers[] = {{"take", on_buffer}, {NULL, NULL}};
    static const weir_behaviour taker = {.name = "taker", .handlers = handlers};
    dev_test t;
    dev_open(&t, 1);
    uint64_t before = dev_bytes(&t);
    weir__buffer *b = dev_buffer(&t, 1000), *taken = NULL;
    weir_address a;
    assert_int_equal(weir_spawn(t.s, &taker, &taken, NULL, &a, NULL), WEIR_OK);
    weir_handle h = {&weir__buffer_handle, b};
    assert_int_equal(weir_post(t.s, 0, a, weir_intern(t.s, "take"), weir_pack(t.s, "h", h)), WEIR_OK);
    dev_settle(&t);
    assert_ptr_equal(taken, b);
    weir__buffer_unref(taken); /* the message's count is gone already */
    assert_int_equal(weir_stop(t.s, a), WEIR_OK);
    dev_settle(&t);
    assert_true(dev_bytes(&t) < before + 1000);
    dev_close(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buffer_is_aligned_and_zero),
        cmocka_unit_test(buffer_bytes_are_counted_and_come_back),
        cmocka_unit_test(buffer_without_memory_says_how_many_bytes_for_what),
        cmocka_unit_test(buffer_travels_in_a_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
