/* memory.c: memory of the cuda device, kept for the next of the same size: the driver's own calls wait for the device. That for kernels is the driver's; that for the
 * host is weir's own, which the driver has pinned, so that it stays whatever becomes of the context. What is given back is not in use by any work, so that another
 * stream may have it at once. Bounded by a budget. Knows no stream of work. */
#include "cuda.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

/* Granules: of sizes below 1 MiB, for kernels and for the host, and of those above. What is pinned are whole pages. */
enum { SMALL = 512, SMALL_HOST = 32 << 10, LARGE = 2 << 20 };

static size_t rounded(size_t bytes, bool host) {
    size_t granule = bytes >= (1 << 20) ? LARGE : host ? SMALL_HOST : SMALL;
    return (bytes + granule - 1) / granule * granule;
}

/* ---- the driver's calls; the context is made current for them ---- */

/* Without a context nothing can be done, not even undone: a driver that refuses is asked again. */
static CUresult set_current(weir__cuda *c, CUcontext context) {
    CUresult code = c->driver.CtxSetCurrent(context);
    for (int tries = 0; tries < 2 && code; tries++)
        code = c->driver.CtxSetCurrent(context);
    return code;
}

weir__cuda_scope weir__cuda_enter(weir__cuda *c) {
    weir__cuda_scope scope = {0};
    CUresult code = c->driver.CtxGetCurrent(&scope.before);
    if (code)
        code = c->driver.CtxGetCurrent(&scope.before);
    scope.restore = !code && scope.before != c->context;
    set_current(c, c->context);
    return scope;
}

void weir__cuda_leave(weir__cuda *c, weir__cuda_scope scope) {
    if (scope.restore)
        set_current(c, scope.before);
}

static CUresult take_host(weir__cuda *c, size_t bytes, uint64_t *address) {
    void *p = weir__pages(c->base.system, bytes);
    CUresult code = p ? c->driver.MemHostRegister(p, bytes, 0) : CUDA_ERROR_OUT_OF_MEMORY;
    if (code)
        weir__pages_free(c->base.system, p, bytes);
    *address = (uint64_t)(uintptr_t)p;
    return code;
}

static CUresult take(weir__cuda *c, const weir__cuda_pool *pool, size_t bytes, uint64_t *address) {
    weir__cuda_scope scope = weir__cuda_enter(c);
    CUresult code;
    if (pool->host) {
        code = take_host(c, bytes, address);
    } else {
        CUdeviceptr p = 0;
        code = c->driver.MemAlloc(&p, bytes);
        *address = p;
    }
    weir__cuda_leave(c, scope);
    return code;
}

/* Of a context that is gone: memory for kernels went with it, memory for the host is not pinned any more. */
static void give(weir__cuda *c, const weir__cuda_pool *pool, const weir__cuda_block *b) {
    void *host = pool->host ? (void *)(uintptr_t)b->address : NULL;
    if (!c->gone) {
        weir__cuda_scope scope = weir__cuda_enter(c);
        if (host)
            c->driver.MemHostUnregister(host);
        else
            c->driver.MemFree((CUdeviceptr)b->address);
        weir__cuda_leave(c, scope);
    }
    if (host)
        weir__pages_free(c->base.system, host, b->bytes);
}

/* New memory for kernels is zero for every stream's work that is submitted from now on: weir__cuda_memory_order. */
static CUresult clear(weir__cuda *c, uint64_t address, size_t bytes) {
    weir__cuda_scope scope = weir__cuda_enter(c);
    CUresult code = c->driver.MemsetD8Async((CUdeviceptr)address, 0, bytes, c->clearing);
    if (!code)
        code = c->driver.EventRecord(c->cleared, c->clearing);
    weir__cuda_leave(c, scope);
    weir__cuda_note(c, code);
    if (!code)
        atomic_fetch_add(&c->clearings, 1);
    return code;
}

CUresult weir__cuda_memory_order(weir__cuda *c, CUstream stream, uint64_t *seen) {
    uint64_t now = atomic_load(&c->clearings);
    if (*seen == now)
        return CUDA_SUCCESS;
    pthread_mutex_lock(&c->memory);
    now = atomic_load(&c->clearings);
    CUresult code = c->driver.StreamWaitEvent(stream, c->cleared, 0);
    pthread_mutex_unlock(&c->memory);
    if (!code)
        *seen = now;
    return code;
}

/* ---- the pools; c->memory is held ---- */

/* What was never used may be in the midst of being zeroed. */
static void end_clearing(weir__cuda *c) {
    weir__cuda_scope scope = weir__cuda_enter(c);
    c->driver.StreamSynchronize(c->clearing);
    weir__cuda_leave(c, scope);
}

static void trim(weir__cuda *c, weir__cuda_pool *pool) {
    if (pool->free && !pool->host && !c->gone)
        end_clearing(c);
    for (weir__cuda_block *b; (b = pool->free);) {
        pool->free = b->next;
        pool->free_bytes -= b->bytes;
        give(c, pool, b);
        weir__free(c->base.system, b);
    }
}

static weir__cuda_block *kept(weir__cuda_pool *pool, size_t bytes) {
    for (weir__cuda_block **at = &pool->free; *at; at = &(*at)->next) {
        weir__cuda_block *b = *at;
        if (b->bytes != bytes)
            continue;
        *at = b->next;
        pool->free_bytes -= bytes;
        return b;
    }
    return NULL;
}

static weir__cuda_block *taken(weir__cuda *c, weir__cuda_pool *pool, size_t bytes) {
    if (bytes > pool->budget - pool->used_bytes)
        return NULL;
    if (bytes > pool->budget - pool->used_bytes - pool->free_bytes)
        trim(c, pool);
    weir__cuda_block *b = weir__alloc(c->base.system, sizeof *b);
    if (!b)
        return NULL;
    b->bytes = bytes;
    CUresult code = take(c, pool, bytes, &b->address);
    if (code == CUDA_ERROR_OUT_OF_MEMORY && pool->free) {
        trim(c, pool);
        code = take(c, pool, bytes, &b->address);
    }
    if (!code)
        return b;
    weir__cuda_note(c, code);
    weir__free(c->base.system, b);
    return NULL;
}

static void keep(weir__cuda_pool *pool, weir__cuda_block *b) {
    b->next = pool->free;
    pool->free = b;
    pool->free_bytes += b->bytes;
}

static weir__cuda_pool *pool_of(weir__cuda *c, bool host) {
    return host ? &c->host_pool : &c->device_pool;
}

void *weir__cuda_memory(weir__device *d, size_t bytes, bool host) {
    weir__cuda *c = weir__cuda_of(d);
    weir__cuda_pool *pool = pool_of(c, host);
    size_t size = rounded(bytes, host);
    if (weir__inject(d->system, WEIR__INJECT_PAGES))
        return NULL;
    pthread_mutex_lock(&c->memory);
    weir__cuda_block *b = kept(pool, size);
    if (!b && !c->gone)
        b = taken(c, pool, size);
    if (b && !host && clear(c, b->address, size)) {
        keep(pool, b);
        b = NULL;
    }
    if (b) {
        b->next = pool->used;
        pool->used = b;
        pool->used_bytes += size;
    }
    pthread_mutex_unlock(&c->memory);
    if (b && host)
        __builtin_memset((void *)(uintptr_t)b->address, 0, size);
    return b ? (void *)(uintptr_t)b->address : NULL;
}

void weir__cuda_memory_free(weir__device *d, void *p, size_t bytes, bool host) {
    weir__cuda *c = weir__cuda_of(d);
    weir__cuda_pool *pool = pool_of(c, host);
    (void)bytes;
    pthread_mutex_lock(&c->memory);
    for (weir__cuda_block **at = &pool->used; *at; at = &(*at)->next) {
        weir__cuda_block *b = *at;
        if (b->address != (uint64_t)(uintptr_t)p)
            continue;
        *at = b->next;
        pool->used_bytes -= b->bytes;
        keep(pool, b);
        break;
    }
    if (c->gone)
        trim(c, pool);
    pthread_mutex_unlock(&c->memory);
}

void weir__cuda_memory_gone(weir__cuda *c) {
    pthread_mutex_lock(&c->memory);
    trim(c, &c->device_pool);
    trim(c, &c->host_pool);
    pthread_mutex_unlock(&c->memory);
}

/* WEIR_CUDA_MEMORY: bytes that this process may take of the device, else nine tenths of what is free now. */
static int set_budget(weir__cuda *c, weir_error **error) {
    size_t available = 0, total = 0;
    const char *said = getenv("WEIR_CUDA_MEMORY");
    char *end = NULL;
    if (said && *said) {
        errno = 0;
        unsigned long long bytes = strtoull(said, &end, 10);
        c->device_pool.budget = (size_t)bytes;
        if (*end || errno || !isdigit((unsigned char)*said))
            return weir_fail(error, WEIR_EINVAL, "device cuda: WEIR_CUDA_MEMORY is \"%.40s\", wanted a number of bytes", said);
        return WEIR_OK;
    }
    CUresult code = c->driver.MemGetInfo(&available, &total);
    c->device_pool.budget = available / 10 * 9;
    return code ? weir_fail(error, WEIR_EDEVICE, "device cuda: cuMemGetInfo: %s", weir__cuda_error_text(code)) : WEIR_OK;
}

int weir__cuda_memory_init(weir__cuda *c, weir_error **error) {
    pthread_mutex_init(&c->memory, NULL);
    c->host_pool = (weir__cuda_pool){.host = true, .budget = SIZE_MAX};
    int failed = set_budget(c, error);
    if (failed)
        return failed;
    CUresult code = c->driver.StreamCreate(&c->clearing, CU_STREAM_NON_BLOCKING);
    if (!code)
        code = c->driver.EventCreate(&c->cleared, CU_EVENT_DISABLE_TIMING);
    return code ? weir_fail(error, WEIR_EDEVICE, "device cuda: its memory cannot be managed: %s", weir__cuda_error_text(code)) : WEIR_OK;
}

/* No stream has work any more. */
void weir__cuda_memory_fini(weir__cuda *c) {
    weir__check(!c->device_pool.used && !c->host_pool.used, "memory of a cuda device was not given back");
    trim(c, &c->device_pool);
    trim(c, &c->host_pool);
    if (c->cleared && !c->gone)
        c->driver.EventDestroy(c->cleared);
    if (c->clearing && !c->gone)
        c->driver.StreamDestroy(c->clearing);
    pthread_mutex_destroy(&c->memory);
}
