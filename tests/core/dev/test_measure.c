/* test_measure.c: measuring a device gives every figure, and everything back. */
#include "../../../core/dev/measure.h"
#include "helper_dev.h"

static void measuring_gives_every_figure(void **state) {
    (void)state;
    dev_test t;
    weir__measures m;
    dev_open(&t, 2);
    assert_int_equal(weir__device_measure(t.s, "cpu", 1 << 20, 2, &m, NULL), WEIR_OK);
    const double figures[] = {m.copy, m.upload, m.download, m.launch, m.replay, m.work, m.sending, m.both};
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        assert_true(figures[i] > 0);
    dev_close(&t);
}

static void measuring_nothing_is_refused(void **state) {
    (void)state;
    dev_test t;
    weir__measures m;
    dev_open(&t, 1);
    assert_int_equal(weir__device_measure(t.s, "cpu", 1000, 2, &m, NULL), WEIR_EINVAL);
    assert_int_equal(weir__device_measure(t.s, "cpu", 1 << 20, 0, &m, NULL), WEIR_EINVAL);
    assert_int_equal(weir__device_measure(t.s, "gpu", 1 << 20, 1, &m, NULL), WEIR_EINVAL);
    dev_close(&t);
}

static void a_failure_while_measuring_is_told(void **state) {
    (void)state;
    dev_test t;
    weir__measures m;
    dev_open(&t, 1);
    assert_int_equal(weir__inject_arm(t.s, "KERNEL", 5, 1), WEIR_OK);
    assert_int_equal(weir__device_measure(t.s, "cpu", 1 << 20, 2, &m, NULL), WEIR_EDEVICE);
    dev_close(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(measuring_gives_every_figure),
        cmocka_unit_test(measuring_nothing_is_refused),
        cmocka_unit_test(a_failure_while_measuring_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
