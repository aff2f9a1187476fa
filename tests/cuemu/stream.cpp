// stream.cpp: each stream is a thread that runs its queue in order. A lazy stream runs only what somebody waits for: what is missing a wait is then wrong every
// time.
#include "state.h"
#include <unistd.h>

void demand(CUstream s, uint64_t number) {
    if (s->wanted < number) {
        s->wanted = number;
        emu.changed.notify_all();
    }
}

void drain(Lock &l, CUstream s) {
    const uint64_t number = s->submitted;
    const Clock seen = clock_of(s);
    demand(s, number);
    emu.changed.wait(l, [&] { return !emu.streams.count(s) || s->done >= number; });
    if (emu.streams.count(s))
        token_acquire(&s->token);
    join(emu.host, seen);
}

static bool may_run(CUstream s) {
    return !s->queue.empty() && (!emu.lazy || s->quit || s->done < s->wanted);
}

static void work(CUstream s) {
    UncheckedThread unchecked;
    Lock l(emu.lock);
    for (;;) {
        emu.changed.wait(l, [&] { return may_run(s) || (s->quit && s->queue.empty()); });
        if (s->queue.empty())
            return;
        Op &op = *s->queue.front();
        const unsigned pause = emu.jitter_us ? (unsigned)(s->random() % (unsigned long)(2 * emu.jitter_us)) : 0;
        l.unlock();
        if (pause)
            usleep(pause);
        run_op(s, op);
        l.lock();
        s->queue.pop_front();
        s->done++;
        emu.changed.notify_all();
    }
}

void stop_stream(Lock &l, CUstream s) {
    if (s->capture)
        s->capture->bad = true;
    s->quit = true;
    emu.changed.notify_all();
    l.unlock();
    s->thread.join();
    l.lock();
    UncheckedThread unchecked; // what its fibers have left in the runtime's own memory
    emu.streams.erase(s);
    for (CUevent e : emu.events)
        if (e->record && e->record->stream == s)
            e->record->stream = nullptr;
    simt_delete(s->sm);
    for (auto &b : s->branches)
        simt_delete(b.second);
    delete s;
    emu.changed.notify_all();
}

int check_stream(CUstream s) {
    if (emu.streams.count(s))
        return 0;
    return misuse(CUDA_ERROR_INVALID_HANDLE, "misuse",
                  s ? "a stream that is not alive" : "the NULL stream, which orders all others and is not emulated");
}

Node make_node(Kind kind, const char *name) {
    Node n;
    n.kind = kind;
    n.name = name;
    return n;
}

static int capture_node(CUstream s, Node &&n) {
    if (s->capture->bad)
        return fail(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "the capture was invalidated");
    CUgraph g = s->capture->graph;
    n.deps.assign(s->front.begin(), s->front.end());
    s->front = {(int)g->nodes.size()};
    g->handles.emplace_back(new CUgraphNode_st{g, g->nodes.size()});
    g->nodes.push_back(std::move(n));
    return 0;
}

int submit(CUstream s, Node &&n, std::shared_ptr<Record> record, std::shared_ptr<CUgraphExec_st> exec) {
    n.origin = s->id;
    log_node(n, s);
    if (s->capture)
        return capture_node(s, std::move(n));
    s->submitted++;
    note_access(s, s->submitted, n.touches, n.touches.empty() ? "" : describe(n, s));
    std::unique_ptr<Op> op(new Op);
    op->node = std::move(n);
    op->record = record;
    op->exec = exec;
    if (op->node.kind == RECORD) {
        record->stream = s;
        record->number = s->submitted;
        record->clock = clock_of(s);
    }
    if (op->node.kind == WAIT)
        join(s->clock, record->clock);
    if (op->node.kind == HOST) { // the host may wait for it by means that are not seen here
        op->clock = clock_of(s);
        demand(s, s->submitted);
    }
    token_release(&op->token);
    s->queue.push_back(std::move(op));
    emu.changed.notify_all();
    return 0;
}

// ---- the driver's functions ----

EXPORT CUresult cuStreamCreate(CUstream *out, unsigned flags) {
    ENTER(cuStreamCreate, CONTEXT);
    CUstream s = new CUstream_st;
    s->id = ++emu.next_stream;
    s->flags = flags;
    s->sm = simt_new();
    s->random.seed((unsigned)(emu.seed * 7919 + s->id));
    emu.streams.insert(s);
    s->thread = std::thread(work, s);
    *out = s;
    return 0;
}

EXPORT CUresult cuStreamDestroy_v2(CUstream s) { // the real one returns at once and lets the work go on
    ENTER(cuStreamDestroy, RELEASE);
    if (int code = check_stream(s))
        return code;
    stop_stream(call.lock, s);
    return call.pending;
}

static int refuse_capturing(CUstream s, const char *name) {
    if (!s->capture)
        return 0;
    s->capture->bad = true;
    return fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, string(name) + " of a stream that captures");
}

EXPORT CUresult cuStreamSynchronize(CUstream s) {
    ENTER(cuStreamSynchronize, CONTEXT);
    if (int code = check_stream(s))
        return code;
    if (int code = refuse_capturing(s, call.name))
        return code;
    drain(call.lock, s);
    return emu.lost;
}

EXPORT CUresult cuStreamQuery(CUstream s) {
    ENTER(cuStreamQuery, CONTEXT);
    if (int code = check_stream(s))
        return code;
    if (int code = refuse_capturing(s, call.name))
        return code;
    if (s->done < s->submitted) {
        if (++s->polls % 4 == 0) // a lazy stream gives way to who polls
            demand(s, s->done + 1);
        return CUDA_ERROR_NOT_READY;
    }
    token_acquire(&s->token);
    join(emu.host, clock_of(s));
    return 0;
}

EXPORT CUresult cuLaunchHostFunc(CUstream s, CUhostFn fn, void *data) {
    ENTER(cuLaunchHostFunc, CONTEXT);
    if (int code = check_stream(s))
        return code;
    if (!fn)
        return misuse(CUDA_ERROR_INVALID_VALUE, "bad argument", "cuLaunchHostFunc of NULL");
    Node n = make_node(HOST, "host");
    n.host = fn;
    n.data = data;
    return submit(s, std::move(n));
}

EXPORT int cuemu_enqueue(CUstream s, const char *name, void (*fn)(void *), const void *data, size_t size, const cuemu_operand *operands,
                         int count) {
    Lock l(emu.lock);
    if (emu.lost)
        return emu.lost;
    if (int code = check_stream(s))
        return code;
    Node n = make_node(LIBRARY, name);
    n.library = fn;
    n.args.assign((const uint8_t *)data, (const uint8_t *)data + size);
    for (int i = 0; i < count; i++)
        add_touch(n.touches, (uint64_t)operands[i].pointer, operands[i].bytes, false, operands[i].write);
    return submit(s, std::move(n));
}

EXPORT int cuemu_is_capturing(CUstream s) {
    Lock l(emu.lock);
    return emu.streams.count(s) && s->capture;
}
