// block.h: the state of the block that an OS thread runs: shared by fiber.cpp, simt.cpp and warp.cpp.
#pragma once
#include "sanitizer.h"
#include "simt.h"
#undef threadIdx
#undef blockIdx
#undef blockDim
#undef gridDim

// Functions that run on a fiber's stack between two contexts of a sanitizer.
#define NOSAN __attribute__((no_sanitize("thread"), no_sanitize("address")))

enum State : uint8_t { READY, AT_BARRIER, AT_WARP, DONE };

struct Thread : cuemu_thread {
    void *sp;    // of a fiber that is not running
    char *stack; // NULL: the OS thread's own, in own_stack
    const void *own_stack;
    size_t own_size;
    void *tsan, *fake; // the sanitizers' handles
    int index, lane, warp;
    State state;
    uint32_t generation; // of the barrier it stands at
    int line;
    uint64_t value, result; // of a warp operation
    int source;
};

struct Collective { // one for each lowest lane of a mask
    uint32_t mask, arrived, generation;
    int op, line;
    uint64_t (*join)(uint64_t, uint64_t); // of a butterfly
    char token[2];
};

struct Warp {
    Collective collective[32];
    uint32_t live;
};

struct simt_sm {
    Thread thread[1024];
    Warp warp[32];
    Thread main, *current;
    int n, alive; // threads of a block; those that have not returned
    int bar_arrived, bar_line;
    uint32_t bar_generation;
    char bar_token[2], block_token[2];
    unsigned turn; // blocks run
    dim3 block, grid;
    uint3 id;
    const cuemu_kernel *kernel;
    void **args;
    void *tok_in, *tok_out;
    std::string error;
    void *context; // ThreadSanitizer's, of simt_context
};

extern thread_local simt_sm *the_block __attribute__((tls_model("initial-exec"))); // 8 bytes of the static TLS reserve

void fiber_make(Thread *t); // starts at fiber_main; makes its stack when it has none
void fiber_free(Thread *t);
NOSAN void fiber_switch(Thread *from, Thread *to);
NOSAN void fiber_main();
NOSAN void block_wait(Thread *t);                     // gives the CPU to somebody else until t is runnable
void block_fail(simt_sm *b, const std::string &what); // the first failure is kept
