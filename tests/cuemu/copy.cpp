// copy.cpp: copies and fills. Of pageable memory, a copy to the device takes its bytes at the call and a copy to the host is over when the call returns, as on the real
// driver. Of pinned memory both run later: a source must stay as it is, and a target is NaN until its copy has run.
#include "state.h"
#include <cstring>

static int check_range(const char *name, uint64_t to, uint64_t from, size_t n) {
    const bool to_bad = (to & TAG) && !find_memory(to, n), from_bad = (from & TAG) && !find_memory(from, n);
    if (!to_bad && !from_bad)
        return 0;
    return misuse(CUDA_ERROR_INVALID_VALUE, find_memory(to_bad ? to : from, 0) ? "out of bounds" : "use after free",
                  string(name) + ": " + pointer_name(to) + " <- " + pointer_name(from) + ", " + std::to_string(n) +
                      " bytes, leaves its allocation");
}

static int check_device(const char *name, uint64_t p) {
    return p & TAG ? 0 : misuse(CUDA_ERROR_INVALID_VALUE, "bad argument", string(name) + ": not an address of the device");
}

// The host memory of the copy is pinned. What earlier work will still do to it is not judged.
static void watch_pinned(Node &n) {
    const bool to_host = !(n.to & TAG);
    const uint64_t host = to_host ? n.to : n.from;
    uint64_t base;
    const Alloc *a = find_memory(host, n.bytes, &base);
    const size_t lo = (size_t)(host - base);
    if (pending_access(*a, lo, lo + n.bytes, !to_host))
        return;
    if (!to_host) {
        n.sum = sum_bytes((const void *)host, n.bytes);
        n.summed = true;
        return;
    }
    for (size_t i = 0; i < n.bytes; i++)
        ((volatile char *)host)[i] = (char)0xff;
}

static int copy_async(Call &call, uint64_t to, uint64_t from, size_t bytes, CUstream s, const char *name) {
    if (int code = check_stream(s))
        return code;
    if (int code = check_range(call.name, to, from, bytes))
        return code;
    Node n = make_node(COPY, name);
    n.to = to;
    n.from = from;
    n.bytes = bytes;
    const bool to_host = !(to & TAG), from_host = !(from & TAG);
    const bool pinned = (!to_host || find_memory(to, bytes)) && (!from_host || find_memory(from, bytes));
    if (!s->capture && (to_host || from_host) && bytes) {
        if (pinned)
            watch_pinned(n);
        else
            emu.counts["pageable_async"]++;
        if (!pinned && from_host)
            n.staged.assign((const uint8_t *)from, (const uint8_t *)from + bytes);
    }
    add_touch(n.touches, from, bytes, false, false);
    add_touch(n.touches, to, bytes, false, true);
    const bool wait = !pinned && to_host && !s->capture;
    if (int code = submit(s, std::move(n)))
        return code;
    if (wait)
        drain(call.lock, s);
    return wait ? emu.lost : 0;
}

EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t n, CUstream s) {
    ENTER(cuMemcpyHtoDAsync, CONTEXT);
    if (int code = check_device(call.name, to))
        return code;
    return copy_async(call, to, (uint64_t)from, n, s, "HtoD");
}

EXPORT CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t n, CUstream s) {
    ENTER(cuMemcpyDtoHAsync, CONTEXT);
    if (int code = check_device(call.name, from))
        return code;
    return copy_async(call, (uint64_t)to, from, n, s, "DtoH");
}

EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s) {
    ENTER(cuMemcpyDtoDAsync, CONTEXT);
    if (int code = check_device(call.name, to))
        return code;
    if (int code = check_device(call.name, from))
        return code;
    return copy_async(call, to, from, n, s, "DtoD");
}

EXPORT CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t n, CUstream s) {
    ENTER(cuMemsetD8Async, CONTEXT);
    if (int code = check_stream(s))
        return code;
    if (int code = check_device(call.name, to))
        return code;
    if (int code = check_range(call.name, to, 0, n))
        return code;
    Node node = make_node(SET, "memset");
    node.to = to;
    node.value = value;
    node.bytes = n;
    add_touch(node.touches, to, n, false, true);
    return submit(s, std::move(node));
}

// Waits for blocking streams only, as the legacy stream does.
static int copy_now(Call &call, uint64_t to, uint64_t from, size_t n) {
    for (CUstream s : emu.streams)
        if (s->capture) {
            s->capture->bad = true;
            return fail(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, string(call.name) + " during stream capture");
        }
    if (int code = check_range(call.name, to, from, n))
        return code;
    log_line(nullptr, string("copy ") + (call.name + 8) + " " + pointer_name(to) + " <- " + pointer_name(from) + " " + std::to_string(n));
    const std::set<CUstream> all = emu.streams;
    for (CUstream s : all)
        if (emu.streams.count(s) && !(s->flags & CU_STREAM_NON_BLOCKING))
            drain(call.lock, s);
    if (emu.lost)
        return emu.lost;
    uint64_t base;
    const uint64_t device = to & TAG ? to : from;
    const Alloc *a = find_memory(device, n, &base);
    const size_t lo = (size_t)((device & ~TAG) - base);
    if (const Access *x = a ? pending_access(*a, lo, lo + n, device == from) : nullptr)
        report("unordered", string(call.name) + " touches " + pointer_name(device) + " while [" + x->who + "] has not finished");
    call.lock.unlock();
    memmove((void *)(to & ~TAG), (const void *)(from & ~TAG), n);
    return 0;
}

EXPORT CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t n) {
    ENTER(cuMemcpyHtoD, CONTEXT);
    if (int code = check_device(call.name, to))
        return code;
    return copy_now(call, to, (uint64_t)from, n);
}

EXPORT CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t n) {
    ENTER(cuMemcpyDtoH, CONTEXT);
    if (int code = check_device(call.name, from))
        return code;
    return copy_now(call, (uint64_t)to, from, n);
}
