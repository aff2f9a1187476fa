// work.cpp: runs one piece of work on its stream's thread, without the lock but where it looks at shared state. What it touches is checked again: memory may have been
// freed since it was submitted.
#include "state.h"
#include <algorithm>
#include <cstring>
#include <ctime>

static double now() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

uint64_t sum_bytes(const void *p, size_t n) { // FNV-1a over words
    uint64_t h = 0xcbf29ce484222325, w;
    const char *c = (const char *)p;
    for (; n >= 8; n -= 8, c += 8) {
        memcpy(&w, c, 8);
        h = (h ^ w) * 0x100000001b3;
    }
    for (; n; n--, c++)
        h = (h ^ (unsigned char)*c) * 0x100000001b3;
    return h;
}

static string dead_argument(const Node &n, int i, uint64_t p) {
    return n.name + ": argument " + std::to_string(i) + " (" + pointer_name(p) + ") points to no live memory";
}

// Untagged addresses of the arguments, or what is wrong with them.
static string resolve_arguments(Node &n, std::vector<uint8_t> &values, std::vector<void *> &pointers) {
    Lock l(emu.lock);
    values = n.args;
    for (int i = 0; i < n.function->kernel->count; i++) {
        void *at = values.data() + n.offsets[(size_t)i];
        pointers.push_back(at);
        const char kind = n.function->kernel->params[i].kind;
        if (kind != 'p' && kind != 'r')
            continue;
        uint64_t p;
        memcpy(&p, at, 8);
        if (p && !find_memory(p, 1))
            return dead_argument(n, i, p);
        p &= ~TAG;
        memcpy(at, &p, 8);
    }
    return "";
}

static void check_neighbours(const Node &n) {
    Lock l(emu.lock);
    for (const Touch &t : n.touches) {
        auto i = emu.memory.find(t.base);
        if (t.write && i != emu.memory.end() && i->second.id == t.id)
            check_canaries(t.base, i->second, n.name);
    }
}

static string run_kernel(Node &n, simt_sm *sm, int *code) {
    std::vector<uint8_t> values;
    std::vector<void *> pointers;
    string error = resolve_arguments(n, values, pointers);
    if (!error.empty()) {
        *code = CUDA_ERROR_ILLEGAL_ADDRESS;
        return error;
    }
    error = simt_run(sm, n.function->kernel, n.grid, n.block, n.shared, pointers.data(), &n.token_in, &n.token_out);
    check_neighbours(n);
    return error;
}

static void copy_bytes(Node &n) {
    void *to = (void *)(n.to & ~TAG);
    const void *from = n.staged.empty() ? (const void *)(n.from & ~TAG) : n.staged.data();
    if (n.summed && sum_bytes(from, n.bytes) != n.sum) {
        Lock l(emu.lock);
        report("pinned memory changed", pointer_name(n.from) + " was written between the submission of a copy from it and the copy");
    }
    memmove(to, from, n.bytes);
}

static void run_simple(Node &n) {
    switch (n.kind) {
    case COPY:
        copy_bytes(n);
        break;
    case SET:
        memset((void *)(n.to & ~TAG), n.value, n.bytes);
        break;
    case HOST:
        in_host_function = true;
        n.host(n.data);
        in_host_function = false;
        break;
    case LIBRARY:
        n.library(n.args.data());
        break;
    default:
        break;
    }
}

// What keeps the node from running, or "".
static string refuse(const Node &n, int *code) {
    if (int fault = take_fault("exec:" + n.name)) {
        *code = fault;
        return n.name + ": injected";
    }
    *code = CUDA_ERROR_ILLEGAL_ADDRESS;
    const bool to_dead = (n.to & TAG) && !find_memory(n.to, n.bytes), from_dead = (n.from & TAG) && !find_memory(n.from, n.bytes);
    if ((n.kind == COPY || n.kind == SET) && (to_dead || from_dead))
        return n.name + " touches memory that was freed";
    *code = CUDA_ERROR_LAUNCH_FAILED;
    return "";
}

static void run_node(Node &n, simt_sm *sm, const std::vector<char *> &acquire, char *release) {
    int code;
    string error;
    {
        Lock l(emu.lock);
        if (emu.lost || emu.skip)
            return;
        error = refuse(n, &code);
    }
    const bool ok = error.empty();
    simt_within(sm, [&] {
        for (char *token : acquire)
            token_acquire(token);
        if (n.kind == KERNEL)
            token_release(&n.token_in);
        else if (ok)
            run_simple(n);
    });
    if (ok && n.kind == KERNEL)
        error = run_kernel(n, sm, &code);
    simt_within(sm, [&] {
        if (n.kind == KERNEL)
            token_acquire(&n.token_out);
        token_release(release);
    });
    if (!error.empty()) {
        Lock l(emu.lock);
        report(code == CUDA_ERROR_ILLEGAL_ADDRESS ? "use after free" : "kernel failed", error);
        lose_device(code, error);
    }
}

// Any order that respects the edges is legal: forwards, backwards, or by chance.
static size_t choose(const std::vector<size_t> &ready, CUstream s) {
    if (simt_reverse)
        return ready.back();
    return emu.jitter_us ? ready[s->random() % ready.size()] : ready.front();
}

static void run_graph(CUgraphExec x, CUstream s, Op &op) {
    std::lock_guard<std::mutex> one(x->running);
    std::vector<char> done(x->nodes.size(), 0);
    for (size_t left = x->nodes.size(); left; left--) {
        std::vector<size_t> ready;
        for (size_t i = 0; i < x->nodes.size(); i++) {
            const auto &deps = x->nodes[i].deps;
            if (!done[i] && std::all_of(deps.begin(), deps.end(), [&](int d) { return done[(size_t)d]; }))
                ready.push_back(i);
        }
        const size_t i = choose(ready, s);
        Node &n = x->nodes[i];
        std::vector<char *> acquire{&op.token, &s->token, &x->token};
        for (int d : n.deps)
            acquire.push_back(&x->nodes[(size_t)d].token);
        simt_sm *&sm = s->branches[n.origin];
        if (!sm)
            sm = simt_new();
        run_node(n, sm, acquire, &n.token);
        done[i] = 1;
    }
    simt_within(s->sm, [&] {
        for (Node &n : x->nodes)
            token_acquire(&n.token);
        token_release(&s->token);
        token_release(&x->token);
    });
}

static void run_wait(CUstream s, Record &r) {
    Lock l(emu.lock);
    if (!r.done && emu.streams.count(r.stream))
        demand(r.stream, r.number);
    emu.changed.wait(l, [&] { return r.done; });
    l.unlock();
    simt_within(s->sm, [&] {
        token_acquire(&r.token);
        token_release(&s->token);
    });
}

static void run_record(CUstream s, Record &r) {
    simt_within(s->sm, [&] {
        token_acquire(&s->token);
        token_release(&r.token);
    });
    Lock l(emu.lock);
    r.time = now();
    r.done = true;
}

static void reveal(const Op &op) { // what the host may know as soon as its function runs
    Lock l(emu.lock);
    if (!emu.lost && !emu.skip)
        join(emu.host, op.clock);
}

void run_op(CUstream s, Op &op) {
    switch (op.node.kind) {
    case WAIT:
        run_wait(s, *op.record);
        break;
    case RECORD:
        run_record(s, *op.record);
        break;
    case GRAPH:
        run_graph(op.exec.get(), s, op);
        break;
    default:
        if (op.node.kind == HOST)
            reveal(op);
        run_node(op.node, s->sm, {&op.token, &s->token}, &s->token);
    }
}
