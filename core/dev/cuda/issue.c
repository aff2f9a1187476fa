/* issue.c: lists and copies as calls of the driver, on one stream. A failure says which call, which kernel, which shape. Knows no queue and no event. */
#include "cuda.h"

#include <stdio.h>

bool weir__cuda_is_loss(CUresult code) {
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
        return true;
    default:
        return false;
    }
}

bool weir__cuda_note(weir__cuda *c, CUresult code) {
    bool lost = weir__cuda_is_loss(code);
    if (lost)
        weir__device_lose(&c->base, weir__cuda_error_text(code));
    return lost;
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

CUresult weir__cuda_order(weir__cuda_queue *q) {
    return weir__cuda_said(q, "cuStreamWaitEvent", weir__cuda_memory_order(q->device, q->stream, &q->seen));
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
                code = op->work[k].is_gemm ? weir__cuda_blas_run(q, &op->work[k].gemm, shape) : run_launch(q, &op->work[k].launch, shape);
    }
    return code;
}

CUresult weir__cuda_issue_list(weir__cuda_queue *q, const weir__item *item) {
    bool done = false;
    CUresult code = weir__cuda_order(q);
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
    CUresult code = weir__cuda_order(q);
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
    weir__cuda_blas_end(q);
    if (q->stream)
        c->driver.StreamDestroy(q->stream);
    weir__free(c->base.system, q->why);
}
