/* test_contract.c: what any CUDA driver does with memory, streams, events, host functions and launches, as far as weir relies on it. Only the driver's own
 * functions are called (kernels are those of kernels_test.cu). */
#include "helper.h"

static void memory_copied_there_and_back_is_the_same(void **state) {
    (void)state;
    int in[64], out[64] = {0};
    for (int i = 0; i < 64; i++)
        in[i] = i * 7;
    CUdeviceptr p = new_memory(sizeof in);
    OK(cu.MemcpyHtoD(p, in, sizeof in));
    OK(cu.MemcpyDtoH(out, p, sizeof out));
    assert_memory_equal(in, out, sizeof in);
    OK(cu.MemFree(p));
}

static void memory_info_counts_what_is_allocated(void **state) {
    (void)state;
    size_t before, during, after, total;
    OK(cu.MemGetInfo(&before, &total));
    CUdeviceptr p = new_memory(64 << 20);
    OK(cu.MemGetInfo(&during, &total));
    OK(cu.MemFree(p));
    OK(cu.MemGetInfo(&after, &total));
    assert_true(before - during >= (size_t)64 << 20);
    assert_int_equal(before, after);
}

static void more_memory_than_there_is_is_refused(void **state) {
    (void)state;
    size_t available, total;
    CUdeviceptr p = 0;
    OK(cu.MemGetInfo(&available, &total));
    assert_int_equal(cu.MemAlloc(&p, total + 1), CUDA_ERROR_OUT_OF_MEMORY);
}

static void work_of_one_stream_runs_in_order(void **state) {
    (void)state;
    CUstream s = new_stream();
    CUdeviceptr x = new_memory(4 * 256), y = new_memory(4 * 256);
    float *out = new_pinned(4 * 256);
    OK(fill(x, 2, 256, s));
    OK(fill(y, 1, 256, s));
    OK(add(y, x, 256, s));
    OK(add(y, x, 256, s));
    OK(cu.MemcpyDtoHAsync(out, y, 4 * 256, s));
    OK(cu.StreamSynchronize(s));
    for (int i = 0; i < 256; i++)
        assert_true(out[i] == 5);
    OK(cu.MemFreeHost(out));
    OK(cu.MemFree(x));
    OK(cu.MemFree(y));
    OK(cu.StreamDestroy(s));
}

static void an_event_orders_two_streams(void **state) {
    (void)state;
    CUstream a = new_stream(), b = new_stream();
    CUevent e = new_event();
    CUdeviceptr x = new_memory(4096), y = new_memory(4096);
    OK(fill(x, 3, 1024, a));
    OK(cu.EventRecord(e, a));
    OK(cu.StreamWaitEvent(b, e, 0));
    OK(fill(y, 1, 1024, b));
    OK(add(y, x, 1024, b));
    OK(cu.StreamSynchronize(b));
    assert_true(first(y) == 4);
    OK(cu.EventDestroy(e));
    OK(cu.MemFree(x));
    OK(cu.MemFree(y));
    OK(cu.StreamDestroy(a));
    OK(cu.StreamDestroy(b));
}

static void an_event_is_done_when_the_work_before_it_is(void **state) {
    (void)state;
    CUstream s = new_stream();
    CUevent e = new_event();
    CUdeviceptr x = new_memory(4);
    OK(fill(x, 3, 1, s));
    OK(cu.EventRecord(e, s));
    int code;
    while ((code = cu.EventQuery(e)) == CUDA_ERROR_NOT_READY)
        usleep(100);
    OK(code);
    assert_true(first(x) == 3);
    OK(cu.EventSynchronize(e));
    OK(cu.EventDestroy(e));
    OK(cu.MemFree(x));
    OK(cu.StreamDestroy(s));
}

static void add_one(void *data) {
    ++*(int *)data;
}

static void host_functions_run_once_each_in_order(void **state) {
    (void)state;
    CUstream s = new_stream();
    int count = 0;
    for (int i = 0; i < 10; i++)
        OK(cu.LaunchHostFunc(s, add_one, &count));
    OK(cu.StreamSynchronize(s));
    assert_int_equal(count, 10);
    OK(cu.StreamDestroy(s));
}

static int asked;
static void call_the_driver(void *data) {
    (void)data;
    CUdeviceptr p = 0;
    asked = cu.MemAlloc(&p, 4);
}

static void a_host_function_must_not_call_the_driver(void **state) {
    (void)state;
    CUstream s = new_stream();
    OK(cu.LaunchHostFunc(s, call_the_driver, NULL));
    OK(cu.StreamSynchronize(s));
    assert_int_equal(asked, CUDA_ERROR_NOT_PERMITTED);
    OK(cu.StreamDestroy(s));
}

static void a_block_sums_through_shared_memory_and_shuffles(void **state) {
    (void)state;
    CUstream s = new_stream();
    CUdeviceptr x = new_memory(4 * 1000), y = new_memory(4);
    int n = 1000;
    void *params[] = {&y, &x, &n};
    OK(fill(x, 1, n, s));
    OK(launch("weir_test_sum", 256, 0, s, params));
    OK(cu.StreamSynchronize(s));
    assert_true(first(y) == 1000);
    OK(cu.MemFree(x));
    OK(cu.MemFree(y));
    OK(cu.StreamDestroy(s));
}

static void dynamic_shared_memory_is_as_large_as_asked(void **state) {
    (void)state;
    CUstream s = new_stream();
    int in[100], out[100];
    for (int i = 0; i < 100; i++)
        in[i] = i;
    CUdeviceptr x = new_memory(sizeof in), y = new_memory(sizeof in);
    void *params[] = {&y, &x};
    OK(cu.MemcpyHtoD(x, in, sizeof in));
    OK(launch("weir_test_reverse", 100, sizeof in, s, params));
    OK(cu.StreamSynchronize(s));
    OK(cu.MemcpyDtoH(out, y, sizeof out));
    for (int i = 0; i < 100; i++)
        assert_int_equal(out[i], 99 - i);
    OK(cu.MemFree(x));
    OK(cu.MemFree(y));
    OK(cu.StreamDestroy(s));
}

static void atomics_of_all_threads_add_up(void **state) {
    (void)state;
    CUstream s = new_stream();
    CUdeviceptr y = new_memory(4);
    void *params[] = {&y};
    int out;
    OK(cu.MemsetD8Async(y, 0, 4, s));
    OK(cu.LaunchKernel(function("weir_test_count"), 5, 2, 1, 64, 2, 1, 0, s, params, NULL));
    OK(cu.StreamSynchronize(s));
    OK(cu.MemcpyDtoH(&out, y, 4));
    assert_int_equal(out, 5 * 2 * 64 * 2);
    OK(cu.MemFree(y));
    OK(cu.StreamDestroy(s));
}

static void a_kernel_follows_pointers_in_device_memory(void **state) {
    (void)state;
    CUstream s = new_stream();
    CUdeviceptr x = new_memory(128), slots = new_memory(16), table[2] = {0, x};
    int i = 1;
    float value = 9;
    void *params[] = {&slots, &i, &value};
    OK(cu.MemcpyHtoD(slots, table, sizeof table));
    OK(launch("weir_test_through", 32, 0, s, params));
    OK(cu.StreamSynchronize(s));
    assert_true(first(x) == 9);
    OK(cu.MemFree(x));
    OK(cu.MemFree(slots));
    OK(cu.StreamDestroy(s));
}

static void a_pageable_source_may_change_after_the_call(void **state) {
    (void)state;
    CUstream s = new_stream();
    CUdeviceptr x = new_memory(4);
    float value = 5;
    OK(cu.MemcpyHtoDAsync(x, &value, 4, s));
    value = 6;
    OK(cu.StreamSynchronize(s));
    assert_true(first(x) == 5);
    OK(cu.MemFree(x));
    OK(cu.StreamDestroy(s));
}

static void a_copy_to_pageable_memory_is_over_at_once(void **state) {
    (void)state;
    CUstream s = new_stream();
    CUdeviceptr x = new_memory(4);
    float value = 0;
    OK(fill(x, 4, 1, s));
    OK(cu.MemcpyDtoHAsync(&value, x, 4, s));
    assert_true(value == 4);
    OK(cu.MemFree(x));
    OK(cu.StreamDestroy(s));
}

static void a_kernel_that_is_not_there_is_not_found(void **state) {
    (void)state;
    CUfunction f;
    assert_int_equal(cu.ModuleGetFunction(&f, the_module, "weir_test_nothing"), CUDA_ERROR_NOT_FOUND);
}

static void a_block_that_is_too_large_is_refused(void **state) {
    (void)state;
    CUstream s = new_stream();
    CUdeviceptr y = new_memory(4);
    void *params[] = {&y};
    assert_int_equal(cu.LaunchKernel(function("weir_test_count"), 1, 1, 1, 2048, 1, 1, 0, s, params, NULL), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cu.LaunchKernel(function("weir_test_count"), 0, 1, 1, 32, 1, 1, 0, s, params, NULL), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(launch("weir_test_count", 32, 100000, s, params), CUDA_ERROR_INVALID_VALUE);
    OK(cu.MemFree(y));
    OK(cu.StreamDestroy(s));
}

static void parameters_have_natural_offsets(void **state) {
    (void)state;
    size_t offset, size;
    OK(cu.FuncGetParamInfo(function("weir_test_through"), 2, &offset, &size));
    assert_int_equal(offset, 12);
    assert_int_equal(size, 4);
    assert_int_equal(cu.FuncGetParamInfo(function("weir_test_through"), 3, &offset, &size), CUDA_ERROR_INVALID_VALUE);
}

static void a_reset_takes_everything_and_the_context_works_again(void **state) {
    (void)state;
    CUcontext context;
    CUdeviceptr p = new_memory(4096);
    CUstream s = new_stream();
    OK(fill(p, 1, 1024, s));
    OK(cu.PrimaryCtxReset(0));
    OK(cu.PrimaryCtxRetain(&context, 0));
    OK(cu.PrimaryCtxRelease(0));
    OK(cu.CtxSetCurrent(context));
    OK(cu.ModuleLoadData(&the_module, test_image()));
    s = new_stream();
    p = new_memory(4096);
    OK(fill(p, 2, 1024, s));
    OK(cu.StreamSynchronize(s));
    assert_true(first(p) == 2);
    OK(cu.StreamDestroy(s));
    OK(cu.MemFree(p));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_copied_there_and_back_is_the_same),
        cmocka_unit_test(memory_info_counts_what_is_allocated),
        cmocka_unit_test(more_memory_than_there_is_is_refused),
        cmocka_unit_test(work_of_one_stream_runs_in_order),
        cmocka_unit_test(an_event_orders_two_streams),
        cmocka_unit_test(an_event_is_done_when_the_work_before_it_is),
        cmocka_unit_test(host_functions_run_once_each_in_order),
        cmocka_unit_test(a_host_function_must_not_call_the_driver),
        cmocka_unit_test(a_block_sums_through_shared_memory_and_shuffles),
        cmocka_unit_test(dynamic_shared_memory_is_as_large_as_asked),
        cmocka_unit_test(atomics_of_all_threads_add_up),
        cmocka_unit_test(a_kernel_follows_pointers_in_device_memory),
        cmocka_unit_test(a_pageable_source_may_change_after_the_call),
        cmocka_unit_test(a_copy_to_pageable_memory_is_over_at_once),
        cmocka_unit_test(a_kernel_that_is_not_there_is_not_found),
        cmocka_unit_test(a_block_that_is_too_large_is_refused),
        cmocka_unit_test(parameters_have_natural_offsets),
        cmocka_unit_test(a_reset_takes_everything_and_the_context_works_again),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
