// fiber.cpp: a stack for each CUDA thread and the switch between two of them: a few instructions on x86-64, ucontext elsewhere (twenty times slower).
#include "block.h"
#include <cstdlib>
#include <sys/mman.h>
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

static const size_t stack_size = 128 << 10, guard = 4096;

#if defined(__x86_64__)
extern "C" void cuemu_swap(void **save, void *to);
asm(".text\n.globl cuemu_swap\n.hidden cuemu_swap\n.type cuemu_swap,@function\ncuemu_swap:\n"
    "pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
    "movq %rsp,(%rdi)\nmovq %rsi,%rsp\n"
    "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\nret\n"
    ".size cuemu_swap,.-cuemu_swap\n");

NOSAN static void raw_swap(Thread *from, Thread *to) {
    cuemu_swap(&from->sp, to->sp);
}

static void raw_make(Thread *t) {
    const size_t color = (size_t)(t->index * 5 & 63) * 64;   // the tops of stacks in different cache sets
    void **s = (void **)(t->stack + stack_size - color) - 2; // the return address, then rsp % 16 == 8 as after a call
    s[0] = (void *)fiber_main;
    s[1] = nullptr;
    for (int i = 0; i < 6; i++)
        *--s = nullptr;
    t->sp = s;
}
#else
static ucontext_t *context(Thread *t) {
    if (!t->sp)
        t->sp = calloc(1, sizeof(ucontext_t));
    return (ucontext_t *)t->sp;
}

static void raw_swap(Thread *from, Thread *to) {
    swapcontext(context(from), context(to));
}

static void raw_make(Thread *t) {
    ucontext_t *c = context(t);
    getcontext(c);
    c->uc_stack.ss_sp = t->stack;
    c->uc_stack.ss_size = stack_size;
    c->uc_link = nullptr;
    makecontext(c, fiber_main, 0);
}
#endif

void fiber_make(Thread *t) {
    if (!t->stack) {
        void *p = mmap(nullptr, stack_size + guard, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED)
            throw std::bad_alloc();
        mprotect(p, guard, PROT_NONE);
        t->stack = (char *)p + guard;
#ifdef CUEMU_TSAN
        t->tsan = __tsan_create_fiber(0);
#endif
    }
    raw_make(t);
}

void fiber_free(Thread *t) {
    if (t->stack) {
        munmap(t->stack - guard, stack_size + guard);
#ifdef CUEMU_TSAN
        __tsan_destroy_fiber(t->tsan);
#endif
    }
#if !defined(__x86_64__)
    free(t->sp);
#endif
}

NOSAN void fiber_switch(Thread *from, Thread *to) {
    the_block->current = to;
#ifdef CUEMU_ASAN
    __sanitizer_start_switch_fiber(&from->fake, to->stack ? to->stack : to->own_stack, to->stack ? stack_size : to->own_size);
#endif
#ifdef CUEMU_TSAN
    __tsan_switch_to_fiber(to->tsan, 1);
#endif
    raw_swap(from, to);
#ifdef CUEMU_ASAN
    const void *bottom;
    size_t size;
    __sanitizer_finish_switch_fiber(from->fake, &bottom, &size);
#endif
}
