/* blas.c: products of many rows by cuBLAS. A stream takes a handle and a workspace when a model is prepared on it, so that no step takes memory. A library that cannot
 * make its first handle is as good as none: own kernels are bound then. */
#include "cuda.h"

#include <stdio.h>

/* ---- the device's ---- */

void weir__cuda_blas_open(weir__cuda *c) {
    if (!weir__cublas_open(&c->blas, c->no_blas, sizeof c->no_blas)) {
        snprintf(c->no_blas, sizeof c->no_blas, "there is no cuBLAS");
        return;
    }
    cublasStatus_t status = c->blas.Create(&c->spare_blas);
    if (!status)
        return;
    c->spare_blas = NULL;
    snprintf(c->no_blas, sizeof c->no_blas, "cublasCreate: %s", weir__cublas_error_text(status));
    weir__cublas_close(&c->blas);
}

void weir__cuda_blas_close(weir__cuda *c) {
    if (c->spare_blas)
        c->blas.Destroy(c->spare_blas);
    c->spare_blas = NULL;
}

/* ---- a stream's ---- */

/* A code of the driver's that stands for a failed call of cuBLAS; of a context that is lost the next call of the driver tells. */
static CUresult failed(weir__cuda_queue *q, const char *call, cublasStatus_t status) {
    if (!status)
        return CUDA_SUCCESS;
    snprintf(q->why, WEIR__CUDA_WHY, "%s: %s", call, weir__cublas_error_text(status));
    return CUDA_ERROR_UNKNOWN;
}

/* What NVIDIA advises in the description of cublasSetWorkspace. */
static size_t advised(const weir__cuda *c) {
    return c->capability < 90 ? 4 << 20 : 32 << 20;
}

static CUresult take_workspace(weir__cuda_queue *q) {
    size_t bytes = advised(q->device);
    if (!q->blas_space) {
        q->blas_space = (uint64_t)(uintptr_t)weir__cuda_memory(&q->device->base, bytes, false);
        q->blas_bytes = q->blas_space ? bytes : 0;
    }
    if (q->blas_space)
        return weir__cuda_order(q);
    snprintf(q->why, WEIR__CUDA_WHY, "no memory for the workspace of cuBLAS: %zu bytes", bytes);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult take_handle(weir__cuda_queue *q) {
    weir__cuda *c = q->device;
    pthread_mutex_lock(&c->base.lock);
    q->blas = c->spare_blas;
    c->spare_blas = NULL;
    pthread_mutex_unlock(&c->base.lock);
    CUresult code = q->blas ? CUDA_SUCCESS : failed(q, "cublasCreate", c->blas.Create(&q->blas));
    if (code)
        q->blas = NULL;
    return code;
}

CUresult weir__cuda_blas_prepare(weir__cuda_queue *q) {
    weir__cublas *b = &q->device->blas;
    if (!b->library || q->blas)
        return CUDA_SUCCESS;
    CUresult code = take_workspace(q);
    if (!code)
        code = take_handle(q);
    if (code)
        return code;
    code = failed(q, "cublasSetStream", b->SetStream(q->blas, q->stream));
    if (!code) /* its own would be allocated, also during a capture; setting a stream resets it */
        code = failed(q, "cublasSetWorkspace", b->SetWorkspace(q->blas, (void *)(uintptr_t)q->blas_space, q->blas_bytes));
    if (code) {
        b->Destroy(q->blas);
        q->blas = NULL;
    }
    return code;
}

CUresult weir__cuda_blas_run(weir__cuda_queue *q, const weir__cuda_gemm *g, const weir__shape *shape) {
    static const float one = 1, zero = 0;
    cudaDataType type = g->f16 ? CUDA_R_16F : CUDA_R_32F;
    CUresult code = weir__cuda_blas_prepare(q);
    if (code)
        return code;
    /* row-major y[m][n] = x[m][k] w[n][k]^T is column-major y^T: m = n, n = m, A = w, transposed */
    cublasStatus_t status =
        q->device->blas.GemmEx(q->blas, CUBLAS_OP_T, CUBLAS_OP_N, g->n, weir__cuda_counted(g->m, shape), g->k, &one,
                               (const void *)(uintptr_t)g->w, type, g->k, (const void *)(uintptr_t)g->x, type, g->ldx,
                               g->add ? &one : &zero, (void *)(uintptr_t)g->y, CUDA_R_32F, g->ldy, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
    if (!status)
        return CUDA_SUCCESS;
    char call[80];
    snprintf(call, sizeof call, "cublasGemmEx of %d x %d x %d", weir__cuda_counted(g->m, shape), g->n, g->k);
    return failed(q, call, status);
}

void weir__cuda_blas_end(weir__cuda_queue *q) {
    weir__cuda *c = q->device;
    if (q->blas)
        c->blas.Destroy(q->blas);
    if (q->blas_space)
        weir__cuda_memory_free(&c->base, (void *)(uintptr_t)q->blas_space, q->blas_bytes, false);
}
