/* test_graphs.c: capture, graphs and their launches, as any CUDA driver does them. Only the driver's own functions are called. */
#include "helper.h"

static CUgraphExec instantiate(CUgraph g) {
    CUgraphExec x = NULL;
    OK(cu.GraphInstantiate(&x, g, 0));
    return x;
}

static void begin(CUstream s) {
    OK(cu.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
}

static CUgraph end(CUstream s) {
    CUgraph g = NULL;
    OK(cu.StreamEndCapture(s, &g));
    assert_non_null(g);
    return g;
}

static void drop(CUgraph g, CUgraphExec x) {
    OK(cu.GraphExecDestroy(x));
    OK(cu.GraphDestroy(g));
}

static void captured_work_runs_at_each_launch_and_not_before(void **state) {
    (void)state;
    CUstream s = new_stream();
    CUdeviceptr x = new_memory(4), y = new_memory(4);
    OK(fill(x, 2, 1, s));
    OK(fill(y, 1, 1, s));
    begin(s);
    OK(add(y, x, 1, s));
    CUgraph g = end(s);
    CUgraphExec exec = instantiate(g);
    OK(cu.StreamSynchronize(s));
    assert_true(first(y) == 1);
    for (int i = 0; i < 3; i++)
        OK(cu.GraphLaunch(exec, s));
    OK(cu.StreamSynchronize(s));
    assert_true(first(y) == 7);
    drop(g, exec);
    OK(cu.MemFree(x));
    OK(cu.MemFree(y));
    OK(cu.StreamDestroy(s));
}

static void a_fork_and_join_by_events_is_captured(void **state) {
    (void)state;
    CUstream a = new_stream(), b = new_stream();
    CUevent fork = new_event(), join = new_event();
    CUdeviceptr x = new_memory(4), y = new_memory(4);
    begin(a);
    OK(fill(x, 2, 1, a));
    OK(cu.EventRecord(fork, a));
    OK(cu.StreamWaitEvent(b, fork, 0));
    OK(fill(y, 3, 1, b));
    OK(cu.EventRecord(join, b));
    OK(cu.StreamWaitEvent(a, join, 0));
    OK(add(x, y, 1, a));
    CUgraph g = end(a);
    CUgraphExec exec = instantiate(g);
    OK(cu.GraphLaunch(exec, a));
    OK(cu.StreamSynchronize(a));
    assert_true(first(x) == 5);
    drop(g, exec);
    OK(cu.EventDestroy(fork));
    OK(cu.EventDestroy(join));
    OK(cu.MemFree(x));
    OK(cu.MemFree(y));
    OK(cu.StreamDestroy(a));
    OK(cu.StreamDestroy(b));
}

static void a_fork_that_is_not_joined_is_refused(void **state) {
    (void)state;
    CUstream a = new_stream(), b = new_stream();
    CUevent fork = new_event();
    CUdeviceptr x = new_memory(4);
    CUgraph g;
    begin(a);
    OK(cu.EventRecord(fork, a));
    OK(cu.StreamWaitEvent(b, fork, 0));
    OK(fill(x, 1, 1, b));
    assert_int_equal(cu.StreamEndCapture(a, &g), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    assert_null(g);
    OK(fill(x, 1, 1, b)); /* both streams are usable again */
    OK(cu.StreamSynchronize(b));
    OK(cu.EventDestroy(fork));
    OK(cu.MemFree(x));
    OK(cu.StreamDestroy(a));
    OK(cu.StreamDestroy(b));
}

static void an_allocation_in_a_capture_spoils_it(void **state) {
    (void)state;
    CUstream s = new_stream();
    CUdeviceptr p = 0;
    CUgraph g;
    CUstreamCaptureStatus status;
    begin(s);
    assert_int_equal(cu.MemAlloc(&p, 4), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    OK(cu.StreamIsCapturing(s, &status));
    assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    assert_int_equal(cu.StreamEndCapture(s, &g), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    OK(cu.StreamIsCapturing(s, &status));
    assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_NONE);
    OK(cu.StreamDestroy(s));
}

static void a_thread_in_relaxed_mode_may_allocate_in_a_capture(void **state) {
    (void)state;
    CUstream s = new_stream();
    CUdeviceptr p;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    begin(s);
    OK(cu.ThreadExchangeStreamCaptureMode(&mode));
    p = new_memory(4);
    OK(cu.ThreadExchangeStreamCaptureMode(&mode));
    assert_int_equal(mode, CU_STREAM_CAPTURE_MODE_RELAXED);
    OK(cu.GraphDestroy(end(s)));
    OK(cu.MemFree(p));
    OK(cu.StreamDestroy(s));
}

static void synchronising_in_a_capture_is_refused(void **state) {
    (void)state;
    CUstream s = new_stream();
    CUgraph g;
    begin(s);
    assert_int_equal(cu.StreamSynchronize(s), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    assert_int_equal(cu.StreamEndCapture(s, &g), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    OK(cu.StreamDestroy(s));
}

static void a_capture_does_not_wait_for_work_outside_it(void **state) {
    (void)state;
    CUstream a = new_stream(), b = new_stream();
    CUevent e = new_event();
    CUgraph g;
    OK(cu.EventRecord(e, b));
    begin(a);
    assert_int_equal(cu.StreamWaitEvent(a, e, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    assert_int_equal(cu.StreamEndCapture(a, &g), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    OK(cu.EventDestroy(e));
    OK(cu.StreamDestroy(a));
    OK(cu.StreamDestroy(b));
}

static void the_parameters_of_a_node_can_change(void **state) {
    (void)state;
    CUstream s = new_stream();
    CUdeviceptr x = new_memory(4 * 100);
    begin(s);
    OK(fill(x, 1, 100, s));
    CUgraph g = end(s);
    CUgraphExec exec = instantiate(g);
    CUgraphNode node;
    size_t count = 1;
    OK(cu.GraphGetNodes(g, &node, &count));
    assert_int_equal(count, 1);
    float value = 8;
    int n = 100;
    void *params[] = {&x, &value, &n};
    CUDA_KERNEL_NODE_PARAMS p = {.func = function("weir_test_fill"),
                                 .gridDimX = 2,
                                 .gridDimY = 1,
                                 .gridDimZ = 1,
                                 .blockDimX = 64,
                                 .blockDimY = 1,
                                 .blockDimZ = 1,
                                 .kernelParams = params};
    OK(cu.GraphExecKernelNodeSetParams(exec, node, &p));
    OK(cu.GraphLaunch(exec, s));
    OK(cu.StreamSynchronize(s));
    assert_true(first(x) == 8);
    drop(g, exec);
    OK(cu.MemFree(x));
    OK(cu.StreamDestroy(s));
}

static void arguments_are_copied_when_they_are_captured(void **state) {
    (void)state;
    CUstream s = new_stream();
    CUdeviceptr x = new_memory(4);
    float value = 3;
    int n = 1;
    void *params[] = {&x, &value, &n};
    begin(s);
    OK(launch("weir_test_fill", 32, 0, s, params));
    CUgraph g = end(s);
    value = 4;
    CUgraphExec exec = instantiate(g);
    OK(cu.GraphDestroy(g)); /* an executable graph does not need it */
    OK(cu.GraphLaunch(exec, s));
    OK(cu.GraphExecDestroy(exec)); /* nor does a launch in flight need that */
    OK(cu.StreamSynchronize(s));
    assert_true(first(x) == 3);
    OK(cu.MemFree(x));
    OK(cu.StreamDestroy(s));
}

static void an_event_of_a_capture_cannot_be_waited_for_by_the_host(void **state) {
    (void)state;
    CUstream s = new_stream();
    CUevent e = new_event();
    begin(s);
    OK(cu.EventRecord(e, s));
    assert_int_equal(cu.EventQuery(e), CUDA_ERROR_CAPTURED_EVENT);
    OK(cu.GraphDestroy(end(s)));
    OK(cu.EventDestroy(e));
    OK(cu.StreamDestroy(s));
}

static void count_call(void *data) {
    ++*(int *)data;
}

static void copies_and_host_functions_are_captured(void **state) {
    (void)state;
    CUstream s = new_stream();
    CUdeviceptr x = new_memory(4);
    float *pinned = new_pinned(8);
    int calls = 0;
    begin(s);
    OK(cu.MemcpyHtoDAsync(x, pinned, 4, s));
    OK(add(x, x, 1, s));
    OK(cu.MemcpyDtoHAsync(pinned + 1, x, 4, s));
    OK(cu.LaunchHostFunc(s, count_call, &calls));
    CUgraph g = end(s);
    CUgraphExec exec = instantiate(g);
    for (int i = 1; i < 4; i++) {
        pinned[0] = (float)i;
        OK(cu.GraphLaunch(exec, s));
        OK(cu.StreamSynchronize(s));
        assert_true(pinned[1] == (float)(2 * i));
        assert_int_equal(calls, i);
    }
    drop(g, exec);
    OK(cu.MemFree(x));
    OK(cu.MemFreeHost(pinned));
    OK(cu.StreamDestroy(s));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(captured_work_runs_at_each_launch_and_not_before),
        cmocka_unit_test(a_fork_and_join_by_events_is_captured),
        cmocka_unit_test(a_fork_that_is_not_joined_is_refused),
        cmocka_unit_test(an_allocation_in_a_capture_spoils_it),
        cmocka_unit_test(a_thread_in_relaxed_mode_may_allocate_in_a_capture),
        cmocka_unit_test(synchronising_in_a_capture_is_refused),
        cmocka_unit_test(a_capture_does_not_wait_for_work_outside_it),
        cmocka_unit_test(the_parameters_of_a_node_can_change),
        cmocka_unit_test(arguments_are_copied_when_they_are_captured),
        cmocka_unit_test(an_event_of_a_capture_cannot_be_waited_for_by_the_host),
        cmocka_unit_test(copies_and_host_functions_are_captured),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
