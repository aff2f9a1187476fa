// memory.cpp: memory of the device, of a chosen size, and pinned memory. Fresh memory is NaN in f32, f16 and bf16. Without ASan, which sees the exact size, bytes on
// both sides stand guard.
#include "state.h"
#include <cstring>

// Bytes on each side; a page for pinned memory, which keeps its alignment.
static size_t guard_of(bool pinned) {
#ifdef CUEMU_ASAN
    (void)pinned;
    return 0;
#else
    return pinned ? 4096 : 256;
#endif
}
static const unsigned char guard_byte = 0xc5;

Alloc *find_memory(uint64_t p, size_t n, uint64_t *base) {
    const bool device = p & TAG;
    p &= ~TAG;
    auto i = emu.memory.upper_bound(p);
    if (i == emu.memory.begin())
        return nullptr;
    --i;
    const size_t offset = (size_t)(p - i->first), size = i->second.size;
    if (offset > size || n > size - offset || (offset == size && size) || (!device && !i->second.pinned))
        return nullptr;
    if (base)
        *base = i->first;
    return &i->second;
}

string pointer_name(uint64_t p) {
    uint64_t base;
    const Alloc *a = find_memory(p, 0, &base);
    if (!p)
        return "NULL";
    if (!a)
        return p & TAG ? "freed or foreign device memory" : "host";
    return (a->pinned ? "h#" : "#") + std::to_string(a->id) + "+" + std::to_string((p & ~TAG) - base);
}

static void fill(char *p, int value, size_t n) {
    for (size_t i = 0; i < n; i++) // plain stores: memset would be intercepted by the sanitizers
        ((volatile char *)p)[i] = (char)value;
}

static uint64_t new_memory(size_t n, size_t align, bool pinned) {
    const size_t guard = guard_of(pinned);
    char *raw = (char *)simt_alloc(align, n + 2 * guard);
    if (!raw)
        return 0;
    fill(raw, guard_byte, guard);
    fill(raw + guard, 0xff, n);
    fill(raw + guard + n, guard_byte, guard);
    const uint64_t base = (uint64_t)(raw + guard);
    Alloc &a = emu.memory[base];
    a = Alloc();
    a.size = n;
    a.id = ++emu.next_alloc;
    a.pinned = pinned;
    a.raw = raw;
    return base;
}

static size_t charge(size_t n) {
    return (n + 511) & ~(size_t)511;
} // the device's granule

void check_canaries(uint64_t base, const Alloc &a, const string &after) {
    const size_t guard = a.raw ? guard_of(a.pinned) : 0;
    const unsigned char *front = (const unsigned char *)a.raw, *back = (const unsigned char *)base + a.size;
    for (size_t i = 0; i < guard; i++)
        if (front[i] != guard_byte || back[i] != guard_byte) {
            report("out of bounds", string("bytes beside ") + (a.pinned ? "pinned memory h#" : "memory #") + std::to_string(a.id) + " of " +
                                        std::to_string(a.size) + " bytes were written, seen after " + after);
            fill(a.raw, guard_byte, guard);
            fill((char *)base + a.size, guard_byte, guard);
            return;
        }
}

void release_memory(uint64_t base, const Alloc &a) {
    check_canaries(base, a, "its last use");
    if (!a.pinned)
        emu.used -= charge(a.size);
    simt_free(a.raw); // NULL: the program's own memory
}

// The real functions wait for the device too; a program that relies on it pays for it in its hot path, so it counts as a fault.
static void wait_before_free(Call &call, const Alloc &a) {
    if (const Access *x = pending_access(a, 0, a.size, false))
        report("freed in flight",
               string(call.name) + " of " + (a.pinned ? "h#" : "#") + std::to_string(a.id) + " while [" + x->who + "] has not finished");
    const std::set<CUstream> all = emu.streams;
    for (CUstream s : all)
        if (emu.streams.count(s) && s->done < s->submitted) {
            emu.counts["implicit_sync"]++;
            drain(call.lock, s);
        }
}

enum Origin { OF_DEVICE, OF_DRIVER, OF_PROGRAM };

static int free_memory(Call &call, uint64_t p, Origin origin) {
    auto i = emu.memory.find(p & ~TAG);
    if (i == emu.memory.end() || i->second.pinned != (origin != OF_DEVICE) || ((p & TAG) != 0) != (origin == OF_DEVICE) ||
        !i->second.raw != (origin == OF_PROGRAM))
        return misuse(origin == OF_PROGRAM ? CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED : CUDA_ERROR_INVALID_VALUE, "use after free",
                      string(call.name) + " of what is not such memory, or not any more");
    wait_before_free(call, i->second);
    i = emu.memory.find(p & ~TAG);
    if (i == emu.memory.end())
        return call.pending;
    release_memory(i->first, i->second);
    emu.memory.erase(i);
    return call.pending;
}

EXPORT CUresult cuMemGetInfo_v2(size_t *available, size_t *total) {
    ENTER(cuMemGetInfo, CONTEXT);
    *total = emu.total;
    *available = emu.total - emu.used;
    return 0;
}

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *p, size_t n) {
    ENTER(cuMemAlloc, UNSAFE);
    if (!n)
        return misuse(CUDA_ERROR_INVALID_VALUE, "bad argument", "cuMemAlloc of no bytes");
    if (n > emu.total || emu.used + charge(n) > emu.total)
        return fail(CUDA_ERROR_OUT_OF_MEMORY,
                    "cuMemAlloc of " + std::to_string(n) + " bytes: " + std::to_string(emu.total - emu.used) + " are left");
    const uint64_t base = new_memory(n, 256, false);
    if (!base)
        return fail(CUDA_ERROR_OUT_OF_MEMORY, "cuMemAlloc: the host has no memory");
    emu.used += charge(n);
    *p = base | TAG;
    return 0;
}

EXPORT CUresult cuMemFree_v2(CUdeviceptr p) {
    ENTER(cuMemFree, FREE);
    return p ? free_memory(call, p, OF_DEVICE) : 0;
}

EXPORT CUresult cuMemHostAlloc(void **p, size_t n, unsigned) {
    ENTER(cuMemHostAlloc, UNSAFE);
    if (!n)
        return misuse(CUDA_ERROR_INVALID_VALUE, "bad argument", "cuMemHostAlloc of no bytes");
    const uint64_t base = new_memory(n, 4096, true);
    if (!base)
        return fail(CUDA_ERROR_OUT_OF_MEMORY, "cuMemHostAlloc: the host has no memory");
    *p = (void *)base;
    return 0;
}

EXPORT CUresult cuMemFreeHost(void *p) {
    ENTER(cuMemFreeHost, FREE);
    return free_memory(call, (uint64_t)p, OF_DRIVER);
}

// The real function asks for no alignment, but pages are what it pins.
EXPORT CUresult cuMemHostRegister_v2(void *p, size_t n, unsigned) {
    ENTER(cuMemHostRegister, UNSAFE);
    const uint64_t base = (uint64_t)p;
    if (!n || base % 4096 || n % 4096)
        return misuse(CUDA_ERROR_INVALID_VALUE, "bad argument", "cuMemHostRegister of no whole pages");
    auto next = emu.memory.lower_bound(base);
    if ((next != emu.memory.end() && next->first < base + n) || find_memory(base, 0))
        return misuse(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "bad argument", "cuMemHostRegister of memory that is registered already");
    Alloc &a = emu.memory[base];
    a = Alloc();
    a.size = n;
    a.id = ++emu.next_alloc;
    a.pinned = true;
    a.raw = nullptr;
    return 0;
}

EXPORT CUresult cuMemHostUnregister(void *p) {
    ENTER(cuMemHostUnregister, FREE);
    return free_memory(call, (uint64_t)p, OF_PROGRAM);
}

EXPORT uint64_t cuemu_untag(const void *p) {
    return (uint64_t)p & ~TAG;
}

EXPORT int cuemu_is_live(const void *p, size_t bytes) {
    Lock l(emu.lock);
    return find_memory((uint64_t)p, bytes) != nullptr;
}

EXPORT void cuemu_host_access(const void *p, size_t bytes, int write) {
    Lock l(emu.lock);
    uint64_t base;
    const Alloc *a = find_memory((uint64_t)p, bytes, &base);
    if (!a)
        return;
    const size_t lo = (size_t)((uint64_t)p - base);
    if (const Access *x = pending_access(*a, lo, lo + bytes, !write))
        report("unfinished transfer", string("the host ") + (write ? "writes" : "reads") + " h#" + std::to_string(a->id) + "+" +
                                          std::to_string(lo) + " while [" + x->who + "] has not finished");
}
