/* issue.c: lists and copies as calls of the driver, on one stream. A failure says which call, which kernel, which shape. Knows no queue and no event. */
#include "cuda.h"

#include <stdio.h>

enum { BLAS_BYTES = 32 << 20 }; /* what cuBLAS is advised to have on the largest devices */

bool weir__cuda_note(weir__cuda *c, CUresult code) {
    switch (code) {
    case CUDA_ERROR_INVALID_CONTEXT:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
        weir__device_lose(&c->base, weir__cuda_error_text(code));
        return true;
    default:
        return false;
    }
}

static CUresult failed(weir__cuda_queue *q, const char *call, CUresult code, const char *what, const weir__shape *shape) {
    if (code) {
        snprintf(q->why, WEIR__CUDA_WHY, "%s: %s: %s (%d rows, %d outputs, %d positions)", what, call, weir__cuda_error_text(code),
                 shape->rows, shape->outputs, shape->positions);
        weir__cuda_note(q->device, code);
    }
    return code;
}

CUresult weir__cuda_said(weir__cuda_queue *q, const char *call, CUresult code) {
    if (code) {
        snprintf(q->why, WEIR__CUDA_WHY, "%s: %s", call, weir__cuda_error_text(code));
        weir__cuda_note(q->device, code);
    }
    return code;
}

/* The queue's work comes after the zeroing of all memory that there is. */
static CUresult order(weir__cuda_queue *q) {
    return weir__cuda_said(q, "cuStreamWaitEvent", weir__cuda_memory_order(q->device, q->stream, &q->seen));
}

/* ---- cuBLAS ---- */

/* A code of the driver's that stands for a failed call of cuBLAS; of a context that is lost the next call of the driver tells. */
static CUresult blas_failed(weir__cuda_queue *q, const char *call, cublasStatus_t status) {
    if (!status)
        return CUDA_SUCCESS;
    snprintf(q->why, WEIR__CUDA_WHY, "%s: %s", call, weir__cublas_error_text(status));
    return CUDA_ERROR_UNKNOWN;
}

static CUresult blas_workspace(weir__cuda_queue *q) {
    if (!q->blas_space) {
        q->blas_space = (uint64_t)(uintptr_t)weir__cuda_memory(&q->device->base, BLAS_BYTES, false);
        q->blas_bytes = q->blas_space ? BLAS_BYTES : 0;
    }
    if (q->blas_space)
        return order(q);
    snprintf(q->why, WEIR__CUDA_WHY, "no memory for the workspace of cuBLAS: %d bytes", BLAS_BYTES);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult open_blas(weir__cuda_queue *q) {
    weir__cublas *b = &q->device->blas;
    CUresult code = q->blas ? CUDA_SUCCESS : blas_workspace(q);
    if (q->blas || code)
        return code;
    code = blas_failed(q, "cublasCreate", b->Create(&q->blas));
    if (code) {
        q->blas = NULL;
        return code;
    }
    code = blas_failed(q, "cublasSetStream", b->SetStream(q->blas, q->stream));
    if (!code) /* its own would be allocated, also during a capture; setting a stream resets it */
        code = blas_failed(q, "cublasSetWorkspace", b->SetWorkspace(q->blas, (void *)(uintptr_t)q->blas_space, q->blas_bytes));
    if (code) {
        b->Destroy(q->blas);
        q->blas = NULL;
    }
    return code;
}

static CUresult run_gemm(weir__cuda_queue *q, const weir__cuda_gemm *g, const weir__shape *shape) {
    static const float one = 1, zero = 0;
    cudaDataType type = g->f16 ? CUDA_R_16F : CUDA_R_32F;
    CUresult code = open_blas(q);
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
    return blas_failed(q, call, status);
}

/* ---- lists ---- */

static CUresult run_launch(weir__cuda_queue *q, const weir__cuda_launch *l, const weir__shape *shape) {
    void *parameters[WEIR__CUDA_MAX_PARAMETERS];
    uint32_t x = weir__cuda_size(l->grid[0], shape), y = weir__cuda_size(l->grid[1], shape), z = weir__cuda_size(l->grid[2], shape);
    if (!x || !y || !z)
        return CUDA_SUCCESS;
    weir__cuda_parameters(l->function, (void *)(uintptr_t)l->args, parameters);
    CUresult code = q->device->driver.LaunchKernel(q->device->functions[l->function], x, y, z, l->threads, 1, 1, l->shared, q->stream,
                                                   parameters, NULL);
    return failed(q, "cuLaunchKernel", code, weir__cuda_signatures[l->function].name, shape);
}

CUresult weir__cuda_launch_all(weir__cuda_queue *q, const weir__list *l, const weir__shape *shape) {
    CUresult code = CUDA_SUCCESS;
    for (size_t i = 0; i < l->length && !code; i++) {
        const weir__cuda_op *op = (const weir__cuda_op *)l->items[i].entry;
        for (uint32_t k = 0; k < op->count && !code; k++)
            if (weir__cuda_taken(&op->work[k], shape))
                code = op->work[k].is_gemm ? run_gemm(q, &op->work[k].gemm, shape) : run_launch(q, &op->work[k].launch, shape);
    }
    return code;
}

CUresult weir__cuda_issue_list(weir__cuda_queue *q, const weir__item *item) {
    bool done = false;
    CUresult code = order(q);
    if (!code && !q->device->eager)
        code = weir__cuda_replay(q, item->run.list, &item->run.shape, item->number, &done);
    if (code || done)
        return code;
    code = weir__cuda_launch_all(q, item->run.list, &item->run.shape);
    if (!code && !q->device->eager)
        weir__cuda_ran(q, item->run.list, &item->run.shape);
    return code;
}

CUresult weir__cuda_issue_copy(weir__cuda_queue *q, const weir__item *item) {
    const weir__cuda_driver *d = &q->device->driver;
    uint64_t to = (uint64_t)(uintptr_t)item->copy.to->pointer + item->copy.to_offset;
    uint64_t from = (uint64_t)(uintptr_t)item->copy.from->pointer + item->copy.from_offset;
    size_t bytes = item->copy.bytes;
    bool to_host = item->copy.to->host, from_host = item->copy.from->host;
    CUresult code = order(q);
    if (code || !bytes)
        return code;
    if (from_host)
        code = d->MemcpyHtoDAsync((CUdeviceptr)to, (const void *)(uintptr_t)from, bytes, q->stream);
    else if (to_host)
        code = d->MemcpyDtoHAsync((void *)(uintptr_t)to, (CUdeviceptr)from, bytes, q->stream);
    else
        code = d->MemcpyDtoDAsync((CUdeviceptr)to, (CUdeviceptr)from, bytes, q->stream);
    if (code) {
        snprintf(q->why, WEIR__CUDA_WHY, "copy of %zu bytes %s: %s", bytes,
                 from_host ? "to the device"
                 : to_host ? "to the host"
                           : "on the device",
                 weir__cuda_error_text(code));
        weir__cuda_note(q->device, code);
    }
    return code;
}

/* ---- the queue ---- */

int weir__cuda_queue_init(weir__cuda *c, weir__cuda_queue *q, weir_error **error) {
    *q = (weir__cuda_queue){.device = c, .why = weir__alloc(c->base.system, WEIR__CUDA_WHY)};
    if (!q->why)
        return weir_fail(error, WEIR_ENOMEM, "device cuda: no memory for a stream");
    CUresult code = c->driver.StreamCreate(&q->stream, CU_STREAM_NON_BLOCKING);
    weir__cuda_note(c, code);
    if (code)
        return weir_fail(error, WEIR_EIO, "device cuda: cuStreamCreate: %s", weir__cuda_error_text(code));
    return WEIR_OK;
}

void weir__cuda_queue_fini(weir__cuda_queue *q) {
    weir__cuda *c = q->device;
    if (q->blas)
        c->blas.Destroy(q->blas);
    if (q->blas_space)
        weir__cuda_memory_free(&c->base, (void *)(uintptr_t)q->blas_space, q->blas_bytes, false);
    if (q->stream)
        c->driver.StreamDestroy(q->stream);
    weir__free(c->base.system, q->why);
}
