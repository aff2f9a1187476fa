// launch.cpp: the emulator's blocks and threads without its driver: kernels register here, pointers are what they are.
#include "simt.h"

#include <string.h>

static cuemu_kernel *kernels;
static std::string error;

extern "C" __attribute__((visibility("default"))) void cuemu_register(cuemu_kernel *k) {
    k->next = kernels;
    kernels = k;
}

extern "C" __attribute__((visibility("default"))) uint64_t cuemu_untag(const void *p) {
    return reinterpret_cast<uint64_t>(p);
}

extern "C" const char *launch_error(const char *name, const unsigned *grid, unsigned threads, size_t shared, void **args, int count) {
    static simt_sm *sm = simt_new();
    cuemu_kernel *k = kernels;
    while (k && strcmp(k->name, name) != 0)
        k = k->next;
    if (!k)
        return "no such kernel";
    if (k->count != count)
        return "another number of parameters";
    static char token[2];
    dim3 g, b;
    g.x = grid[0], g.y = grid[1], g.z = grid[2], b.x = threads;
    error = simt_run(sm, k, g, b, shared, args, &token[0], &token[1]);
    return error.empty() ? nullptr : error.c_str();
}

extern "C" int launch_reverse(int on) {
    const int was = simt_reverse;
    simt_reverse = on;
    return was;
}
