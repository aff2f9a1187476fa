// simt.cpp: the blocks of a grid one after the other, and the turns of a block's threads. Static __shared__ memory is the thread-local storage of the kernel
// library; it and the dynamic part are filled with NaN before every block.
#include "block.h"
#include <cstdio>
#include <cstdlib>
#include <link.h>
#include <pthread.h>

int simt_reverse;
thread_local simt_sm *the_block __attribute__((tls_model("initial-exec")));

extern "C" cuemu_thread *cuemu_me(void) {
    return the_block->current;
}
extern "C" unsigned cuemu_lane(void) {
    return (unsigned)the_block->current->lane;
}
extern "C" uint32_t cuemu_livemask(void) {
    return the_block->warp[the_block->current->warp].live;
}

void *simt_alloc(size_t align, size_t n) {
    UnownedMemory unowned;
    void *p = nullptr;
    return n && !posix_memalign(&p, align, n) ? p : nullptr;
}

void simt_free(void *p) {
    UnownedMemory unowned;
    free(p);
}

void block_fail(simt_sm *b, const std::string &what) {
    UnownedMemory unowned;
    char where[200];
    snprintf(where, sizeof where, "%s block (%u,%u,%u): ", b->kernel->name, b->id.x, b->id.y, b->id.z);
    if (b->error.empty())
        b->error = where + what;
}

extern "C" void cuemu_trap(const char *what, int line) {
    block_fail(the_block, std::string(what) + " at line " + std::to_string(line));
    block_wait(the_block->current);
}

NOSAN static bool runnable(const simt_sm *b, const Thread *t) {
    return t->state == READY || (t->state == AT_BARRIER && t->generation != b->bar_generation);
}

NOSAN static int warp_size(const simt_sm *b, int warp) {
    return b->n - warp * 32 < 32 ? b->n - warp * 32 : 32;
}

// The next lane of c's warp, then the other warps; NULL: nobody can run.
NOSAN static Thread *pick(simt_sm *b, Thread *c) {
    const int base = c->warp * 32, lanes = warp_size(b, c->warp), warps = (b->n + 31) / 32, step = simt_reverse ? -1 : 1;
    for (int k = 1; k < lanes; k++) {
        Thread *t = &b->thread[base + (c->lane + step * k + lanes) % lanes];
        if (runnable(b, t))
            return t;
    }
    for (int k = 1; k < warps; k++) {
        const int w = (c->warp + step * k + warps) % warps, m = warp_size(b, w);
        for (int l = 0; l < m; l++) {
            Thread *t = &b->thread[w * 32 + (simt_reverse ? m - 1 - l : l)];
            if (runnable(b, t))
                return t;
        }
    }
    return runnable(b, c) ? c : nullptr;
}

static void report_deadlock(simt_sm *b) {
    int barrier = 0, barrier_line = 0, warp = 0, warp_line = 0;
    for (int i = 0; i < b->n; i++) {
        const Thread &t = b->thread[i];
        if (t.state == AT_BARRIER)
            barrier++, barrier_line = t.line;
        if (t.state == AT_WARP)
            warp++, warp_line = t.line;
    }
    char s[200];
    snprintf(s, sizeof s, "deadlock: %d threads at __syncthreads (line %d), %d at a warp operation (line %d), %d have returned", barrier,
             barrier_line, warp, warp_line, b->n - b->alive);
    block_fail(b, s);
}

NOSAN void block_wait(Thread *t) {
    simt_sm *b = the_block;
    Thread *other = b->error.empty() ? pick(b, t) : nullptr;
    if (other != t) {
        if (!other && b->error.empty())
            report_deadlock(b);
        fiber_switch(t, other ? other : &b->main);
    }
    t->state = READY;
}

NOSAN void fiber_main() {
    Thread *t = the_block->current;
#ifdef CUEMU_ASAN
    const void *bottom;
    size_t size;
    __sanitizer_finish_switch_fiber(nullptr, &bottom, &size);
#endif
    for (;;) {
        simt_sm *b = the_block;
        token_acquire(b->tok_in);
        token_acquire(&b->block_token[~b->turn & 1]); // shared memory is used again: each block after the one before it
        b->kernel->call(b->args);
        token_release(b->tok_out);
        token_release(&b->block_token[b->turn & 1]);
        t->state = DONE;
        b->alive--;
        b->warp[t->warp].live &= ~(1u << t->lane);
        if (b->bar_arrived && b->bar_arrived == b->alive) { // from Volta on, threads that have returned do not count
            b->bar_arrived = 0;
            b->bar_generation++;
        }
        if (b->alive == 0)
            fiber_switch(t, &b->main);
        else
            block_wait(t);
    }
}

extern "C" NOSAN void cuemu_syncthreads(int line) {
    simt_sm *b = the_block;
    Thread *t = b->current;
    if (b->bar_arrived == 0)
        b->bar_line = line;
    else if (b->bar_line != line)
        block_fail(b, "divergent __syncthreads: line " + std::to_string(b->bar_line) + " and line " + std::to_string(line));
    const uint32_t generation = b->bar_generation;
    token_release(&b->bar_token[generation & 1]);
    if (++b->bar_arrived == b->alive) {
        b->bar_arrived = 0;
        b->bar_generation++;
    } else {
        t->state = AT_BARRIER;
        t->generation = generation;
        t->line = line;
        block_wait(t);
    }
    token_acquire(&b->bar_token[generation & 1]);
}

simt_sm *simt_new() {
    simt_sm *b = new simt_sm();
    for (int i = 0; i < 1024; i++) {
        b->thread[i].index = i;
        b->thread[i].lane = i & 31;
        b->thread[i].warp = i >> 5;
    }
    return b;
}

void simt_delete(simt_sm *b) {
    UncheckedThread unchecked;
    for (Thread &t : b->thread)
        fiber_free(&t);
    fiber_free(&b->main);
#ifdef CUEMU_TSAN
    if (b->context)
        __tsan_destroy_fiber(b->context);
#endif
    delete b;
}

struct TlsBlock {
    const void *anchor;
    void *p;
    size_t n;
};

static bool holds(const dl_phdr_info *info, const void *anchor) {
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) &p = info->dlpi_phdr[i];
        const uintptr_t from = info->dlpi_addr + p.p_vaddr;
        if (p.p_type == PT_LOAD && (uintptr_t)anchor >= from && (uintptr_t)anchor < from + p.p_memsz)
            return true;
    }
    return false;
}

static int find_tls(dl_phdr_info *info, size_t, void *arg) {
    TlsBlock *t = (TlsBlock *)arg;
    if (!holds(info, t->anchor))
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_TLS) {
            t->p = info->dlpi_tls_data;
            t->n = info->dlpi_phdr[i].p_memsz;
        }
    return 1;
}

// Plain stores: memset would be intercepted by the sanitizers.
static void fill_nan(void *p, size_t n) {
    unsigned char *at = (unsigned char *)p, *const end = at + n;
    while (at < end && (uintptr_t)at & 7)
        *(volatile unsigned char *)at++ = 0xff;
    for (; end - at >= 8; at += 8)
        *(volatile uint64_t *)at = ~(uint64_t)0;
    while (at < end)
        *(volatile unsigned char *)at++ = 0xff;
}

static void find_own_stack(Thread *t) {
    pthread_attr_t attributes;
    void *stack;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &stack, &t->own_size);
    pthread_attr_destroy(&attributes);
    t->own_stack = stack;
}

static void prepare_threads(simt_sm *b) {
    const dim3 d = b->block;
    for (int i = 0; i < b->n; i++) {
        Thread &t = b->thread[i];
        const unsigned u = (unsigned)i;
        t.tid = {u % d.x, u / d.x % d.y, u / (d.x * d.y)};
        t.bdim = &b->block;
        t.gdim = &b->grid;
        t.bid = &b->id;
        if (!t.stack)
            fiber_make(&t);
    }
#ifdef CUEMU_TSAN
    b->main.tsan = __tsan_get_current_fiber();
#endif
#ifdef CUEMU_ASAN
    find_own_stack(&b->main);
#else
    (void)find_own_stack;
#endif
}

static void run_block(simt_sm *b, uint64_t i, void *dyn) {
    const uint64_t x = b->grid.x, y = b->grid.y;
    b->id = {(unsigned)(i % x), (unsigned)(i / x % y), (unsigned)(i / (x * y))};
    for (int w = 0; w * 32 < b->n; w++) {
        const int lanes = warp_size(b, w);
        b->warp[w].live = lanes == 32 ? ~0u : (1u << lanes) - 1;
        for (Collective &c : b->warp[w].collective)
            c.arrived = 0;
    }
    for (int t = 0; t < b->n; t++) {
        b->thread[t].state = READY;
        b->thread[t].dyn = dyn;
    }
    b->alive = b->n;
    b->bar_arrived = 0;
    b->turn++;
    fiber_switch(&b->main, &b->thread[simt_reverse ? b->n - 1 : 0]);
}

std::string simt_run(simt_sm *b, const cuemu_kernel *kernel, dim3 grid, dim3 block, size_t dyn, void **args, void *tok_in, void *tok_out) {
    the_block = b;
    b->n = (int)(block.x * block.y * block.z);
    b->grid = grid;
    b->block = block;
    b->kernel = kernel;
    b->args = args;
    b->tok_in = tok_in;
    b->tok_out = tok_out;
    b->error.clear();
    TlsBlock tls{kernel->module, nullptr, 0};
    kernel->touch();
    dl_iterate_phdr(find_tls, &tls);
    prepare_threads(b);
    const uint64_t blocks = (uint64_t)grid.x * grid.y * grid.z;
    void *shared = simt_alloc(128, dyn); // its exact size: ASan sees overruns
    for (uint64_t i = 0; i < blocks && b->error.empty(); i++) {
        fill_nan(shared, dyn);
        fill_nan(tls.p, tls.n);
        run_block(b, simt_reverse ? blocks - 1 - i : i, shared);
    }
    simt_free(shared);
    for (int i = 0; i < b->n && !b->error.empty(); i++) // abandoned fibers start afresh
        fiber_make(&b->thread[i]);
    return b->error;
}

void simt_context(simt_sm *sm, void (*fn)(void *), void *arg) {
#ifdef CUEMU_TSAN
    void *me = __tsan_get_current_fiber();
    if (!sm->context)
        sm->context = __tsan_create_fiber(0);
    __tsan_switch_to_fiber(sm->context, 1);
    fn(arg);
    __tsan_switch_to_fiber(me, 1);
#else
    (void)sm;
    fn(arg);
#endif
}
