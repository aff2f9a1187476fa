/* test_failures.c: what a failed call of the driver or of cuBLAS leaves: the stream's text names it, and the next pass is right. Needs the emulated driver. */
#include "rig.h"

enum { UNKNOWN = 999 }; /* CUDA_ERROR_UNKNOWN: no code that says that the context is lost */

static rig r;

/* What the first run of a shape makes, cuBLAS for one, is not there if that run failed: so the next one is a first run again, and no capture. */
static void a_first_run_that_fails_is_followed_by_another(void **state) {
    (void)state;
    rig_open_narrow(&r);
    long captures = rig_calls("cuStreamBeginCapture");
    EMU(cuemu_fail)("cuLaunchKernel", 1, UNKNOWN);
    assert_int_equal(rig_pass(&r, 0, 17, 1), WEIR_EDEVICE);
    EMU(cuemu_fail_clear)();
    assert_int_equal(rig_pass(&r, 0, 17, 1), WEIR_OK);
    assert_int_equal(rig_calls("cuStreamBeginCapture"), captures);
    assert_int_equal(rig_pass(&r, 0, 17, 1), WEIR_OK);
    assert_int_equal(rig_calls("cuStreamBeginCapture"), captures + 1);
    rig_close_clean(&r);
}

static void says(int status, int wanted, const char *words) {
    char why[256];
    weir__stream_why(r.st, why, sizeof why);
    if (status != wanted || !strstr(why, words))
        fail_msg("status %d (%s), wanted %d (%s)", status, why, wanted, words);
}

static void a_library_that_cannot_be_set_up_is_told_by_its_call(void **state) {
    static const char *const setup[] = {"cublasSetStream", "cublasSetWorkspace"};
    (void)state;
    rig_open(&r);
    for (size_t i = 0; i < sizeof setup / sizeof *setup; i++) {
        EMU(cuemu_fail)(setup[i], 1, UNKNOWN);
        assert_int_equal(weir__stream_prepare(r.st), WEIR_OK);
        says(rig_wait(&r, r.st), WEIR_EDEVICE, setup[i]);
    }
    assert_int_equal(weir__stream_prepare(r.st), WEIR_OK);
    assert_int_equal(rig_wait(&r, r.st), WEIR_OK);
    rig_close_clean(&r);
}

static void a_library_that_makes_no_handle_is_as_good_as_none(void **state) {
    (void)state;
    EMU(cuemu_fail)("cublasCreate", 1, UNKNOWN);
    long products = rig_calls("cublasGemmEx");
    rig_open_narrow(&r);
    assert_null(r.c->blas.library);
    assert_non_null(strstr(r.c->no_blas, "cublasCreate"));
    assert_int_equal(rig_pass(&r, 0, 17, 1), WEIR_OK);
    assert_int_equal(rig_calls("cublasGemmEx"), products);
    rig_close_clean(&r);
}

/* So no step takes any. */
static void a_workspace_of_the_library_is_taken_before_passes(void **state) {
    (void)state;
    rig_open(&r);
    size_t budget = r.c->device_pool.budget;
    r.c->device_pool.budget = r.c->device_pool.used_bytes;
    assert_int_equal(weir__stream_prepare(r.st), WEIR_OK);
    says(rig_wait(&r, r.st), WEIR_ENOMEM, "workspace of cuBLAS: 33554432 bytes");
    r.c->device_pool.budget = budget;
    rig_load_narrow(&r);
    r.c->device_pool.budget = r.c->device_pool.used_bytes;
    assert_int_equal(rig_pass(&r, 0, 17, 1), WEIR_OK);
    rig_close_clean(&r);
}

static void a_failure_in_a_capture_names_its_call(void **state) {
    (void)state;
    rig_open_narrow(&r);
    assert_int_equal(rig_pass(&r, 0, 2, 1), WEIR_OK);
    EMU(cuemu_fail)("cuLaunchKernel", 1, UNKNOWN);
    says(rig_pass(&r, 0, 2, 1), WEIR_EDEVICE, "list whole: capturing: weir_tile: cuLaunchKernel: CUDA_ERROR_UNKNOWN");
    rig_close_clean(&r);
}

static void an_event_that_is_not_recorded_is_told_by_its_call(void **state) {
    weir__event *e;
    (void)state;
    rig_open_narrow(&r);
    assert_int_equal(weir__event_new(r.t.d, &e), WEIR_OK);
    EMU(cuemu_fail)("cuEventRecord", 1, UNKNOWN);
    assert_int_equal(weir__stream_record(r.st, e), WEIR_OK);
    says(rig_wait(&r, r.st), WEIR_EDEVICE, "cuEventRecord: CUDA_ERROR_UNKNOWN");
    weir__event_unref(e);
    rig_close_clean(&r);
}

#define T(name) cmocka_unit_test_setup(name, rig_setup)
int main(void) {
    const struct CMUnitTest tests[] = {
        T(a_first_run_that_fails_is_followed_by_another),
        T(a_library_that_cannot_be_set_up_is_told_by_its_call),
        T(a_library_that_makes_no_handle_is_as_good_as_none),
        T(a_workspace_of_the_library_is_taken_before_passes),
        T(a_failure_in_a_capture_names_its_call),
        T(an_event_that_is_not_recorded_is_told_by_its_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
