/* recorder.c: see recorder.h. */
#include "recorder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HANDLES = 256 };

static struct {
    CUfunction handles[HANDLES]; /* of each of entries[] */
    recording *to;
} recorder;

static call *more(void) {
    recording *r = recorder.to;
    if (r->count == r->room) {
        r->room = r->room ? 2 * r->room : 64;
        r->calls = realloc(r->calls, r->room * sizeof *r->calls);
        if (!r->calls)
            abort();
    }
    call *c = &r->calls[r->count++];
    memset(c, 0, sizeof *c);
    return c;
}

static CUresult launch_kernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                              CUstream st, void **parameters, void **extra) {
    size_t i = 0;
    (void)st;
    while (entries[i].name && recorder.handles[i] != f)
        i++;
    if (!entries[i].name || extra)
        return CUDA_ERROR_INVALID_HANDLE;
    call *c = more();
    *c = (call){.entry = &entries[i], .grid = {gx, gy, gz}, .block = {bx, by, bz}, .shared = shared};
    for (size_t k = 0; entries[i].parameters[k].key; k++)
        memcpy(&c->values[k], parameters[k], entries[i].parameters[k].size);
    return CUDA_SUCCESS;
}

static uint64_t bits(const void *p) {
    uint32_t u;
    memcpy(&u, p, sizeof u);
    return u;
}

static cublasStatus_t gemm(cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const void *alpha,
                           const void *A, cudaDataType at, int lda, const void *B, cudaDataType bt, int ldb, const void *beta, void *C,
                           cudaDataType ct, int ldc, cublasComputeType_t compute, cublasGemmAlgo_t algo) {
    call *c = more();
    (void)handle;
    const uint64_t values[] = {(uint32_t)ta, (uint32_t)tb, (uint32_t)m,   (uint32_t)n,   (uint32_t)k,       bits(alpha),
                               (uintptr_t)A, (uint32_t)at, (uint32_t)lda, (uintptr_t)B,  (uint32_t)bt,      (uint32_t)ldb,
                               bits(beta),   (uintptr_t)C, (uint32_t)ct,  (uint32_t)ldc, (uint32_t)compute, (uint32_t)algo};
    c->entry = &entry_gemm;
    memcpy(c->values, values, sizeof values);
    return CUBLAS_STATUS_SUCCESS;
}

void recorder_install(weir__cuda *c) {
    for (size_t i = 0; entries[i].name; i++)
        if (i == HANDLES || c->driver.ModuleGetFunction(&recorder.handles[i], c->module, entries[i].name))
            abort();
    c->driver.LaunchKernel = launch_kernel;
    c->blas.GemmEx = gemm;
}

void recorder_into(recording *r) {
    recorder.to = r;
}

void recording_clear(recording *r) {
    r->count = 0;
}

void recording_free(recording *r) {
    free(r->calls);
    *r = (recording){0};
}

/* ---- comparison ---- */

static bool same_shape(const call *a, const call *b, char *why, size_t size) {
    if (memcmp(a->grid, b->grid, sizeof a->grid) == 0 && memcmp(a->block, b->block, sizeof a->block) == 0 && a->shared == b->shared)
        return true;
    snprintf(why, size, "grid %u,%u,%u, block %u,%u,%u, %u bytes shared; wanted grid %u,%u,%u, block %u,%u,%u, %u bytes", a->grid[0],
             a->grid[1], a->grid[2], a->block[0], a->block[1], a->block[2], a->shared, b->grid[0], b->grid[1], b->grid[2], b->block[0],
             b->block[1], b->block[2], b->shared);
    return false;
}

static bool same_call(const call *a, const call *b, char *why, size_t size) {
    if (a->entry != b->entry) {
        snprintf(why, size, "wanted %s", b->entry->name);
        return false;
    }
    if (!same_shape(a, b, why, size))
        return false;
    for (size_t i = 0; a->entry->parameters[i].key; i++)
        if (a->values[i] != b->values[i]) {
            snprintf(why, size, "%s is %llx, wanted %llx", a->entry->parameters[i].key, (unsigned long long)a->values[i],
                     (unsigned long long)b->values[i]);
            return false;
        }
    return true;
}

bool recordings_equal(const recording *got, const recording *wanted, char *why, size_t size) {
    char what[300];
    *why = 0;
    for (size_t i = 0; i < got->count && i < wanted->count; i++)
        if (!same_call(&got->calls[i], &wanted->calls[i], what, sizeof what)) {
            snprintf(why, size, "call %zu, %s: %s", i, got->calls[i].entry->name, what);
            return false;
        }
    if (got->count != wanted->count)
        snprintf(why, size, "%zu calls, wanted %zu", got->count, wanted->count);
    return got->count == wanted->count;
}
