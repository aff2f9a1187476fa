/* test_detection.c: faults of a program that the emulator finds in every build: each planted here is reported, and what is right beside it is not. */
#include "helper.h"

typedef struct fixture {
    CUstream a, b;
    CUevent e;
    CUdeviceptr x, y; /* 1024 floats each */
    float *pinned;    /* 1024 floats */
} fixture;

static fixture f;

static int make(void **state) {
    f = (fixture){new_stream(), new_stream(), new_event(), new_memory(4096), new_memory(4096), new_pinned(4096)};
    memset(f.pinned, 0, 4096);
    return clean(state);
}

static int unmake(void **state) {
    (void)state;
    EMU(cuemu_set)("lazy", 0);
    EMU(cuemu_fail_clear)();
    if (cu.CtxSynchronize()) { /* lost by the test */
        OK(cu.PrimaryCtxReset(0));
        OK(cu.ModuleLoadData(&the_module, no_image));
        return 0;
    }
    OK(cu.StreamDestroy(f.a));
    OK(cu.StreamDestroy(f.b));
    OK(cu.EventDestroy(f.e));
    OK(cu.MemFree(f.x));
    OK(cu.MemFree(f.y));
    OK(cu.MemFreeHost(f.pinned));
    return 0;
}

static void a_missing_event_wait_is_reported(void **state) {
    (void)state;
    OK(fill(f.x, 1, 1024, f.a));
    OK(fill(f.y, 1, 1024, f.b));
    OK(add(f.y, f.x, 1024, f.b));
    assert_int_equal(reports("unordered"), 1);
    assert_non_null(strstr(EMU(cuemu_report)(0), "weir_test_add"));
    assert_non_null(strstr(EMU(cuemu_report)(0), "weir_test_fill"));
}

static void streams_that_an_event_orders_are_not_reported(void **state) {
    (void)state;
    OK(fill(f.x, 1, 1024, f.a));
    OK(cu.EventRecord(f.e, f.a));
    OK(fill(f.y, 1, 1024, f.b));
    OK(cu.StreamWaitEvent(f.b, f.e, 0));
    OK(add(f.y, f.x, 1024, f.b));
    no_reports();
}

static void an_event_orders_only_what_was_recorded_before_it(void **state) {
    (void)state;
    OK(cu.EventRecord(f.e, f.a));
    OK(fill(f.x, 1, 1024, f.a));
    OK(cu.StreamWaitEvent(f.b, f.e, 0));
    OK(add(f.y, f.x, 1024, f.b));
    assert_int_equal(reports("unordered"), 1);
}

static void two_readers_need_no_order(void **state) {
    (void)state;
    OK(fill(f.x, 1, 1024, f.a));
    OK(cu.StreamSynchronize(f.a));
    OK(add(f.y, f.x, 1024, f.a));
    OK(cu.MemcpyDtoHAsync(f.pinned, f.x, 4096, f.b));
    no_reports();
}

static void a_wait_of_the_host_orders_streams(void **state) {
    (void)state;
    OK(fill(f.x, 1, 1024, f.a));
    OK(cu.StreamSynchronize(f.a));
    OK(fill(f.x, 2, 1024, f.b));
    no_reports();
}

static void tell(void *data) {
    __atomic_store_n((int *)data, 1, __ATOMIC_RELEASE);
}

static void a_host_function_that_has_run_orders_streams(void **state) {
    (void)state;
    int told = 0;
    EMU(cuemu_set)("lazy", 1);
    OK(fill(f.x, 1, 1024, f.a));
    OK(cu.LaunchHostFunc(f.a, tell, &told));
    while (!__atomic_load_n(&told, __ATOMIC_ACQUIRE))
        usleep(100);
    OK(fill(f.x, 2, 1024, f.b));
    no_reports();
}

static void copies_to_disjoint_parts_need_no_order(void **state) {
    (void)state;
    OK(cu.MemcpyHtoDAsync(f.x, f.pinned, 2048, f.a));
    OK(cu.MemcpyHtoDAsync(f.x + 2048, f.pinned + 512, 2048, f.b));
    no_reports();
}

static void a_kernel_on_one_buffer_of_an_allocation_leaves_the_next_one_alone(void **state) {
    (void)state;
    OK(fill(f.x, 1, 512, f.a));
    OK(cu.MemcpyHtoDAsync(f.x + 2048, f.pinned, 2048, f.b));
    no_reports();
}

static void a_copy_into_the_midst_of_what_a_kernel_reads_is_reported(void **state) {
    (void)state;
    OK(add(f.y, f.x, 1024, f.a));
    OK(cu.MemcpyHtoDAsync(f.x + 100, f.pinned, 200, f.b));
    assert_int_equal(reports("unordered"), 1);
}

static void a_buffer_freed_in_flight_is_reported(void **state) {
    (void)state;
    EMU(cuemu_set)("lazy", 1);
    CUdeviceptr p = new_memory(4096);
    OK(fill(p, 1, 1024, f.a));
    OK(cu.MemFree(p));
    assert_int_equal(reports("freed in flight"), 1);
    assert_non_null(strstr(EMU(cuemu_report)(0), "weir_test_fill"));
}

static void a_buffer_freed_after_its_work_is_not_reported(void **state) {
    (void)state;
    EMU(cuemu_set)("lazy", 1);
    CUdeviceptr p = new_memory(4096);
    OK(fill(p, 1, 1024, f.a));
    OK(cu.StreamSynchronize(f.a));
    OK(cu.MemFree(p));
    no_reports();
}

static void a_freed_buffer_as_an_argument_is_refused(void **state) {
    (void)state;
    CUdeviceptr p = new_memory(4096);
    OK(cu.MemFree(p));
    assert_int_equal(fill(p, 1, 1024, f.a), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(reports("bad argument"), 1);
    assert_int_equal(cu.MemFree(p), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(reports("use after free"), 1);
}

static void a_buffer_freed_before_a_graph_is_replayed_loses_the_device(void **state) {
    (void)state;
    CUdeviceptr p = new_memory(4096);
    CUgraph g;
    CUgraphExec x;
    OK(cu.StreamBeginCapture(f.a, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(fill(p, 1, 1024, f.a));
    OK(cu.StreamEndCapture(f.a, &g));
    OK(cu.GraphInstantiate(&x, g, 0));
    OK(cu.MemFree(p));
    OK(cu.GraphLaunch(x, f.a));
    assert_int_equal(cu.StreamSynchronize(f.a), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(reports("use after free"), 1);
}

static void an_unfinished_transfer_that_the_host_reads_is_reported(void **state) {
    (void)state;
    EMU(cuemu_set)("lazy", 1);
    OK(fill(f.x, 7, 1024, f.a));
    OK(cu.MemcpyDtoHAsync(f.pinned, f.x, 2048, f.a));
    assert_true(f.pinned[0] != f.pinned[0]); /* NaN: what a program without the wait would see */
    EMU(cuemu_host_access)(f.pinned + 512, 4, 0);
    no_reports();
    EMU(cuemu_host_access)(f.pinned, 4, 0);
    assert_int_equal(reports("unfinished transfer"), 1);
    OK(cu.StreamSynchronize(f.a));
    EMU(cuemu_host_access)(f.pinned, 4, 0);
    assert_int_equal(reports("unfinished transfer"), 1);
    assert_true(f.pinned[0] == 7);
}

static void pinned_memory_changed_before_its_copy_is_reported(void **state) {
    (void)state;
    EMU(cuemu_set)("lazy", 1);
    f.pinned[0] = 1;
    OK(cu.MemcpyHtoDAsync(f.x, f.pinned, 4096, f.a));
    f.pinned[0] = 2;
    OK(cu.StreamSynchronize(f.a));
    assert_int_equal(reports("pinned memory changed"), 1);
}

static void a_copy_beyond_its_allocation_is_refused(void **state) {
    (void)state;
    assert_int_equal(cu.MemcpyHtoDAsync(f.x + 4, f.pinned, 4096, f.a), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(reports("out of bounds"), 1);
}

#ifndef CUEMU_ASAN
static void a_store_beyond_a_buffer_is_reported(void **state) { /* ASan stops the program instead */
    (void)state;
    int n = 1024;
    void *params[] = {&f.x, &n};
    OK(launch("weir_test_beyond", 32, 0, f.a, params));
    OK(cu.StreamSynchronize(f.a));
    assert_int_equal(reports("out of bounds"), 1);
}
#endif

static void swapped_arguments_are_refused(void **state) {
    (void)state;
    float value = 1;
    int n = 1024;
    void *swapped[] = {&f.x, &n, &value}, *no_pointer[] = {&f.pinned, &value, &n}, *missing[] = {&f.x, &value, NULL};
    assert_int_equal(launch("weir_test_fill", 32, 0, f.a, swapped), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(launch("weir_test_fill", 32, 0, f.a, missing), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(reports("bad argument"), 2);
    OK(launch("weir_test_fill", 32, 0, f.a, no_pointer)); /* pinned memory is the device's too */
    float *host = malloc(4096);
    void *pageable[] = {&host, &value, &n};
    assert_int_equal(launch("weir_test_fill", 32, 0, f.a, pageable), CUDA_ERROR_INVALID_VALUE);
    free(host);
    assert_int_equal(reports("bad argument"), 3);
}

static void expect_failure(const char *kernel, const char *text) {
    void *params[] = {&f.x};
    OK(launch(kernel, 32, 0, f.a, params));
    assert_int_equal(cu.StreamSynchronize(f.a), CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(reports("kernel failed"), 1);
    assert_non_null(strstr(EMU(cuemu_report)(0), text));
}

static void a_divergent_barrier_fails_the_kernel(void **state) {
    (void)state;
    expect_failure("weir_test_diverge", "divergent __syncthreads");
}

static void a_shuffle_with_absent_lanes_fails_the_kernel(void **state) {
    (void)state;
    expect_failure("weir_test_absent", "deadlock");
}

static void a_lane_outside_its_own_mask_fails_the_kernel(void **state) {
    (void)state;
    expect_failure("weir_test_mask", "not in its own mask");
}

static void shared_memory_that_was_not_written_is_nan(void **state) {
    (void)state;
    void *params[] = {&f.x};
    OK(launch("weir_test_stale", 32, 0, f.a, params));
    OK(cu.StreamSynchronize(f.a));
    const float value = first(f.x);
    assert_true(value != value);
}

static void graph_branches_without_an_edge_are_reported(void **state) {
    (void)state;
    CUgraph g;
    CUgraphExec x;
    OK(cu.StreamBeginCapture(f.a, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(cu.EventRecord(f.e, f.a));
    OK(cu.StreamWaitEvent(f.b, f.e, 0));
    OK(fill(f.x, 1, 1024, f.a));
    OK(add(f.y, f.x, 1024, f.b));
    OK(cu.EventRecord(f.e, f.b));
    OK(cu.StreamWaitEvent(f.a, f.e, 0));
    OK(cu.StreamEndCapture(f.a, &g));
    OK(cu.GraphInstantiate(&x, g, 0));
    assert_int_equal(reports("unordered"), 1);
    OK(cu.GraphExecDestroy(x));
    OK(cu.GraphDestroy(g));
}

static void everything_alive_is_a_leak(void **state) {
    (void)state;
    CUgraph g;
    CUgraphExec x;
    EMU(cuemu_check_leaks)();
    EMU(cuemu_reports_clear)();
    const int before = EMU(cuemu_check_leaks)();
    OK(cu.StreamBeginCapture(f.a, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(fill(f.x, 1, 1024, f.a));
    OK(cu.StreamEndCapture(f.a, &g));
    OK(cu.GraphInstantiate(&x, g, 0));
    CUstream s = new_stream();
    CUdeviceptr p = new_memory(4);
    assert_int_equal(EMU(cuemu_check_leaks)() - before, 4);
    assert_true(reports("leak: 1 graphs") == 1 && reports("leak: 1 graph execs") == 1 && reports("leak: 3 streams") == 1);
    OK(cu.GraphExecDestroy(x));
    OK(cu.GraphDestroy(g));
    OK(cu.StreamDestroy(s));
    OK(cu.MemFree(p));
    assert_int_equal(EMU(cuemu_check_leaks)(), before);
}

#define T(name) cmocka_unit_test_setup_teardown(name, make, unmake)
int main(void) {
    const struct CMUnitTest tests[] = {
        T(a_missing_event_wait_is_reported),
        T(streams_that_an_event_orders_are_not_reported),
        T(an_event_orders_only_what_was_recorded_before_it),
        T(two_readers_need_no_order),
        T(a_wait_of_the_host_orders_streams),
        T(a_host_function_that_has_run_orders_streams),
        T(copies_to_disjoint_parts_need_no_order),
        T(a_kernel_on_one_buffer_of_an_allocation_leaves_the_next_one_alone),
        T(a_copy_into_the_midst_of_what_a_kernel_reads_is_reported),
        T(a_buffer_freed_in_flight_is_reported),
        T(a_buffer_freed_after_its_work_is_not_reported),
        T(a_freed_buffer_as_an_argument_is_refused),
        T(a_buffer_freed_before_a_graph_is_replayed_loses_the_device),
        T(an_unfinished_transfer_that_the_host_reads_is_reported),
        T(pinned_memory_changed_before_its_copy_is_reported),
        T(a_copy_beyond_its_allocation_is_refused),
#ifndef CUEMU_ASAN
        T(a_store_beyond_a_buffer_is_reported),
#endif
        T(swapped_arguments_are_refused),
        T(a_divergent_barrier_fails_the_kernel),
        T(a_shuffle_with_absent_lanes_fails_the_kernel),
        T(a_lane_outside_its_own_mask_fails_the_kernel),
        T(shared_memory_that_was_not_written_is_nan),
        T(graph_branches_without_an_edge_are_reported),
        T(everything_alive_is_a_leak),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
