// simt.h: runs a grid on one OS thread. Knows kernels and blocks, no driver.
#pragma once
#ifndef CUEMU_RUNTIME
#define CUEMU_RUNTIME
#endif
#include "cuemu.h"
#include <string>

struct simt_sm; // fibers and their stacks: one for each stream
simt_sm *simt_new();
void simt_delete(simt_sm *);
// "" or what went wrong. tok_in, tok_out: tokens that every block acquires and releases.
std::string simt_run(simt_sm *, const cuemu_kernel *, dim3 grid, dim3 block, size_t dyn, void **args, void *tok_in, void *tok_out);
// Calls fn(arg) in a context of its own for ThreadSanitizer, else plainly.
void simt_context(simt_sm *, void (*fn)(void *), void *arg);
template <class F> void simt_within(simt_sm *sm, F f) {
    simt_context(
        sm, [](void *p) { (*static_cast<F *>(p))(); }, &f);
}
extern int simt_reverse; // 1: blocks and threads in reverse order

void *simt_alloc(size_t align, size_t n); // NULL for no bytes or without memory
void simt_free(void *);
