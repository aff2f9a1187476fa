/* test_faults.c: injected faults, loss of the device, counts, and the launch log. */
#include "helper.h"

static CUstream s;
static CUdeviceptr x;

static int make(void **state) {
    s = new_stream();
    x = new_memory(4096);
    return clean(state);
}

static int unmake(void **state) {
    (void)state;
    EMU(cuemu_fail_clear)();
    if (cu.CtxSynchronize()) {
        OK(cu.PrimaryCtxReset(0));
        OK(cu.ModuleLoadData(&the_module, no_image));
        return 0;
    }
    OK(cu.MemFree(x));
    OK(cu.StreamDestroy(s));
    return 0;
}

static void the_nth_call_of_a_function_fails_once(void **state) {
    (void)state;
    CUdeviceptr p[3];
    EMU(cuemu_fail)("cuMemAlloc", 2, CUDA_ERROR_OUT_OF_MEMORY);
    OK(cu.MemAlloc(&p[0], 4));
    assert_int_equal(cu.MemAlloc(&p[1], 4), CUDA_ERROR_OUT_OF_MEMORY);
    OK(cu.MemAlloc(&p[2], 4));
    OK(cu.MemFree(p[0]));
    OK(cu.MemFree(p[2]));
}

static void a_group_of_functions_fails_too(void **state) {
    (void)state;
    float value = 1;
    EMU(cuemu_fail)("copy", 2, CUDA_ERROR_UNKNOWN);
    OK(cu.MemsetD8Async(x, 0, 4, s));
    assert_int_equal(cu.MemcpyHtoDAsync(x, &value, 4, s), CUDA_ERROR_UNKNOWN);
    EMU(cuemu_fail)("launch", 1, CUDA_ERROR_UNKNOWN);
    assert_int_equal(fill(x, 1, 1, s), CUDA_ERROR_UNKNOWN);
    OK(fill(x, 1, 1, s));
}

static void a_release_that_fails_has_released(void **state) {
    (void)state;
    CUdeviceptr p = new_memory(4);
    EMU(cuemu_fail)("cuMemFree", 1, CUDA_ERROR_UNKNOWN);
    assert_int_equal(cu.MemFree(p), CUDA_ERROR_UNKNOWN);
    assert_int_equal(cu.MemFree(p), CUDA_ERROR_INVALID_VALUE);
}

static void a_kernel_that_fails_late_loses_the_device(void **state) {
    (void)state;
    CUdeviceptr p;
    EMU(cuemu_fail)("exec:weir_test_fill", 1, CUDA_ERROR_ILLEGAL_ADDRESS);
    OK(fill(x, 1, 1, s));
    assert_int_equal(cu.StreamSynchronize(s), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(cu.MemAlloc(&p, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(cu.MemsetD8Async(x, 0, 4, s), CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void a_lost_device_works_again_after_a_reset(void **state) {
    (void)state;
    EMU(cuemu_fail)("device", 2, CUDA_ERROR_LAUNCH_FAILED);
    OK(cu.MemsetD8Async(x, 0, 4, s));
    assert_int_equal(cu.StreamQuery(s), CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(cu.StreamSynchronize(s), CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(cu.MemFree(x), CUDA_ERROR_LAUNCH_FAILED);
    OK(cu.PrimaryCtxReset(0));
    OK(cu.ModuleLoadData(&the_module, no_image));
    s = new_stream();
    x = new_memory(4096);
    OK(fill(x, 6, 1, s));
    OK(cu.StreamSynchronize(s));
    assert_true(first(x) == 6);
}

static void set_flag(void *data) {
    *(int *)data = 1;
}
static void host_functions_do_not_run_once_the_device_is_lost(void **state) {
    (void)state;
    int ran = 0;
    EMU(cuemu_fail)("exec:weir_test_fill", 1, CUDA_ERROR_LAUNCH_FAILED);
    OK(fill(x, 1, 1, s));
    cu.LaunchHostFunc(s, set_flag, &ran);
    assert_int_equal(cu.StreamSynchronize(s), CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(ran, 0);
}

static void every_function_is_counted(void **state) {
    (void)state;
    const long before = EMU(cuemu_count)("cuLaunchKernel"), launches = EMU(cuemu_count)("launch");
    OK(fill(x, 1, 1, s));
    assert_int_equal(EMU(cuemu_count)("cuLaunchKernel") - before, 1);
    assert_int_equal(EMU(cuemu_count)("launch") - launches, 1);
}

static void the_log_has_every_argument(void **state) {
    (void)state;
    char expected[200], id[40];
    OK(cu.MemsetD8Async(x + 256, 7, 16, s));
    OK(fill(x + 256, 1.5f, 64, s));
    assert_int_equal(EMU(cuemu_log_size)(), 2);
    assert_int_equal(sscanf(EMU(cuemu_log_line)(0), "memset %39s", id), 1);
    const char *where = strchr(EMU(cuemu_log_line)(0), '#');
    assert_non_null(where);
    snprintf(expected, sizeof expected, "launch weir_test_fill %s g1,1,1 b64,1,1 sm0 (%.*s, 1.5, 64)", id, (int)strcspn(where, " "), where);
    assert_string_equal(EMU(cuemu_log_line)(1), expected);
    assert_null(EMU(cuemu_log_line)(2));
}

static void the_log_shows_where_streams_meet(void **state) {
    (void)state;
    CUstream other = new_stream();
    CUevent e = new_event();
    OK(cu.EventRecord(e, s));
    OK(cu.StreamWaitEvent(other, e, 0));
    assert_int_equal(EMU(cuemu_log_size)(), 2);
    assert_memory_equal(EMU(cuemu_log_line)(0), "record s", 8);
    assert_memory_equal(EMU(cuemu_log_line)(1), "wait s", 6);
    assert_string_equal(strrchr(EMU(cuemu_log_line)(0), ' '), strrchr(EMU(cuemu_log_line)(1), ' '));
    OK(cu.EventDestroy(e));
    OK(cu.StreamDestroy(other));
}

static void memory_is_as_large_as_asked(void **state) {
    (void)state;
    CUdeviceptr p, q;
    size_t available, total;
    EMU(cuemu_set)("memory", 1 << 20);
    OK(cu.MemGetInfo(&available, &total));
    assert_int_equal(total, 1 << 20);
    OK(cu.MemAlloc(&p, available - 1000));
    assert_int_equal(cu.MemAlloc(&q, 2000), CUDA_ERROR_OUT_OF_MEMORY);
    OK(cu.MemFree(p));
    EMU(cuemu_set)("memory", 1 << 30);
}

#define T(name) cmocka_unit_test_setup_teardown(name, make, unmake)
int main(void) {
    const struct CMUnitTest tests[] = {
        T(the_nth_call_of_a_function_fails_once),
        T(a_group_of_functions_fails_too),
        T(a_release_that_fails_has_released),
        T(a_kernel_that_fails_late_loses_the_device),
        T(a_lost_device_works_again_after_a_reset),
        T(host_functions_do_not_run_once_the_device_is_lost),
        T(every_function_is_counted),
        T(the_log_has_every_argument),
        T(the_log_shows_where_streams_meet),
        T(memory_is_as_large_as_asked),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
