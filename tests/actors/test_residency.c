/* test_residency.c: work of residency that is refused after a part of it was accepted: the fetch ends with that, and what the accepted part comes to is told to nobody, the
 * next fetch last of all. */
#include "pass_fixture.h"

typedef struct bench {
    weir_system *system;
    weir__device *device;
    weir_address residency;
} bench;

static void bench_open(bench *b) {
    b->system = new_system(WEIR_DRIVER_TEST, 1);
    assert_int_equal(weir__device_open(b->system, "cpu", 1, &b->device, NULL), WEIR_OK);
    assert_int_equal(weir__residency_spawn(b->system, b->device, NULL, &b->residency, NULL), WEIR_OK);
    answer a = ask(b->system, b->residency, "open", weir_pack(b->system, "s", LLAMA));
    assert_int_equal(a.code, 0);
    weir_body_free(a.body);
}

static answer fetch(bench *b) {
    return ask(b->system, b->residency, "fetch", weir_pack(b->system, "i", INT64_C(0)));
}

/* The nth submission of a fetch is refused, and what was accepted before it fails at `point`. */
static void refused_and_failed(enum weir__point point, uint64_t nth) {
    bench b;
    bench_open(&b);
    weir__inject_arm(b.system, "SUBMIT", nth, 1);
    weir__inject_arm(b.system, weir__inject_name(point, NULL), 1, 1);
    answer a = fetch(&b);
    assert_int_equal(a.code, WEIR_EDEVICE);
    assert_non_null(strstr(a.error, "work was refused by stream residency"));
    for (int i = 0; i < 2; i++) {
        a = fetch(&b);
        if (a.code)
            fail_msg("the next fetch: %s", a.error);
        weir_body_free(a.body);
    }
    assert_true(weir__inject_passed(b.system, point) > 1);
    weir_system_free(b.system);
}

enum { READING, NOTICE_OF_READING, PACKING, NOTICE_OF_PACKING }; /* the submissions of a fetch, in their order */

static void a_read_that_fails_after_its_fetch_was_refused_is_not_the_next_ones(void **state) {
    (void)state;
    refused_and_failed(WEIR__INJECT_READ, 1 + NOTICE_OF_READING);
}

static void packing_that_fails_after_its_fetch_was_refused_is_not_the_next_ones(void **state) {
    (void)state;
    refused_and_failed(WEIR__INJECT_KERNEL, 1 + NOTICE_OF_PACKING);
}

/* What clears the stream may be refused too: the fetch is refused, and the one after it is right. */
static void a_fetch_that_is_refused_where_the_stream_would_be_cleared_is_not_the_next_ones_either(void **state) {
    (void)state;
    bench b;
    bench_open(&b);
    weir__inject_arm(b.system, "SUBMIT", 1 + NOTICE_OF_READING, 2);
    weir__inject_arm(b.system, "READ", 1, 1);
    for (int i = 0; i < 2; i++)
        assert_int_equal(fetch(&b).code, WEIR_EDEVICE);
    answer a = fetch(&b);
    assert_int_equal(a.code, 0);
    weir_body_free(a.body);
    weir_system_free(b.system);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_read_that_fails_after_its_fetch_was_refused_is_not_the_next_ones),
        cmocka_unit_test(packing_that_fails_after_its_fetch_was_refused_is_not_the_next_ones),
        cmocka_unit_test(a_fetch_that_is_refused_where_the_stream_would_be_cleared_is_not_the_next_ones_either),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
