/* test_cublas.c: products by cuBLAS as weir asks for them: row-major Y[T,O] = X[T,I] W[O,I]^T is column-major with m = O, n = T, k = I. */
#include "helper.h"

static weir__cublas blas;
static cublasHandle_t handle;
static CUstream stream;
static CUdeviceptr workspace;

enum { WORKSPACE = 65536 };

static int set_up(void **state) {
    char why[256];
    if (open_device(state) || !weir__cublas_open(&blas, why, sizeof why))
        return -1;
    stream = new_stream();
    workspace = new_memory(WORKSPACE);
    return blas.Create(&handle) || blas.SetStream(handle, stream) || blas.SetWorkspace(handle, (void *)(uintptr_t)workspace, WORKSPACE) ? -1
                                                                                                                                        : 0;
}

static int tear_down(void **state) {
    OK(cu.StreamSynchronize(stream));
    OK(blas.Destroy(handle));
    OK(cu.MemFree(workspace));
    OK(cu.StreamDestroy(stream));
    return close_device(state);
}

static CUdeviceptr upload(const float *values, size_t n) {
    CUdeviceptr p = new_memory(n * sizeof *values);
    OK(cu.MemcpyHtoD(p, values, n * sizeof *values));
    return p;
}

static const float x[2 * 3] = {1, 2, 3, 4, 5, 6}, w[2 * 3] = {1, 0, 1, 2, 1, 0}, y[2 * 2] = {4, 4, 10, 13};

static int product(CUdeviceptr to, CUdeviceptr from, CUdeviceptr weights, float beta) {
    const float alpha = 1;
    return blas.GemmEx(handle, CUBLAS_OP_T, CUBLAS_OP_N, 2, 2, 3, &alpha, (void *)(uintptr_t)weights, CUDA_R_32F, 3,
                       (void *)(uintptr_t)from, CUDA_R_32F, 3, &beta, (void *)(uintptr_t)to, CUDA_R_32F, 2, CUBLAS_COMPUTE_32F,
                       CUBLAS_GEMM_DEFAULT);
}

static void rows_times_transposed_weights(void **state) {
    (void)state;
    float out[4];
    CUdeviceptr dx = upload(x, 6), dw = upload(w, 6), dy = new_memory(sizeof out);
    OK(product(dy, dx, dw, 0));
    OK(product(dy, dx, dw, 1));
    OK(cu.StreamSynchronize(stream));
    OK(cu.MemcpyDtoH(out, dy, sizeof out));
    for (int i = 0; i < 4; i++)
        assert_true(out[i] == 2 * y[i]);
    OK(cu.MemFree(dx));
    OK(cu.MemFree(dw));
    OK(cu.MemFree(dy));
}

static void halves_are_summed_as_floats(void **state) {
    (void)state;
    const uint16_t a[2] = {0x3c00, 0x4000}, b[2] = {0x4200, 0x3800}; /* 1 2, 3 0.5 */
    const float alpha = 1, beta = 0;
    CUdeviceptr da = new_memory(sizeof a), db = new_memory(sizeof b), dc = new_memory(4);
    OK(cu.MemcpyHtoD(da, a, sizeof a));
    OK(cu.MemcpyHtoD(db, b, sizeof b));
    OK(blas.GemmEx(handle, CUBLAS_OP_T, CUBLAS_OP_N, 1, 1, 2, &alpha, (void *)(uintptr_t)da, CUDA_R_16F, 2, (void *)(uintptr_t)db,
                   CUDA_R_16F, 2, &beta, (void *)(uintptr_t)dc, CUDA_R_32F, 1, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
    OK(cu.StreamSynchronize(stream));
    assert_true(first(dc) == 4);
    OK(cu.MemFree(da));
    OK(cu.MemFree(db));
    OK(cu.MemFree(dc));
}

static void products_are_captured_and_replayed(void **state) {
    (void)state;
    CUgraph g;
    CUgraphExec exec;
    float out[4];
    CUdeviceptr dx = upload(x, 6), dw = upload(w, 6), dy = new_memory(sizeof out);
    OK(cu.StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    OK(product(dy, dx, dw, 0));
    OK(cu.StreamEndCapture(stream, &g));
    OK(cu.GraphInstantiate(&exec, g, 0));
    OK(cu.GraphLaunch(exec, stream));
    OK(cu.StreamSynchronize(stream));
    OK(cu.MemcpyDtoH(out, dy, sizeof out));
    assert_memory_equal(out, y, sizeof out);
    OK(cu.GraphExecDestroy(exec));
    OK(cu.GraphDestroy(g));
    OK(cu.MemFree(dx));
    OK(cu.MemFree(dw));
    OK(cu.MemFree(dy));
}

static void a_leading_dimension_that_is_too_small_is_refused(void **state) {
    (void)state;
    const float one = 1;
    assert_int_equal(blas.GemmEx(handle, CUBLAS_OP_T, CUBLAS_OP_N, 2, 2, 3, &one, NULL, CUDA_R_32F, 2, NULL, CUDA_R_32F, 3, &one, NULL,
                                 CUDA_R_32F, 2, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
                     CUBLAS_STATUS_INVALID_VALUE);
}

static void a_workspace_must_be_aligned(void **state) {
    (void)state;
    assert_int_equal(blas.SetWorkspace(handle, (void *)(uintptr_t)(workspace + 16), 1024), CUBLAS_STATUS_INVALID_VALUE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_times_transposed_weights),      cmocka_unit_test(halves_are_summed_as_floats),
        cmocka_unit_test(products_are_captured_and_replayed), cmocka_unit_test(a_leading_dimension_that_is_too_small_is_refused),
        cmocka_unit_test(a_workspace_must_be_aligned),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
