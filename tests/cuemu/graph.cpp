// graph.cpp: capture into graphs, and their launches. Nodes are kept in an order in which each stands after what it depends on.
#include "state.h"
#include <algorithm>

Capture::~Capture() {
    delete graph;
}

EXPORT CUresult cuStreamBeginCapture_v2(CUstream s, CUstreamCaptureMode mode) {
    ENTER(cuStreamBeginCapture, CONTEXT);
    if (int code = check_stream(s))
        return code;
    if (s->capture)
        return fail(CUDA_ERROR_INVALID_VALUE, "the stream captures already");
    s->capture = std::make_shared<Capture>();
    s->capture->graph = new CUgraph_st;
    s->capture->mode = mode;
    s->capture->origin = s;
    s->capture->thread = std::this_thread::get_id();
    s->capture->members = {s};
    s->front.clear();
    return 0;
}

// Every node leads to the stream that began the capture.
static bool joined(const CUgraph g, const std::set<int> &front) {
    std::vector<char> seen(g->nodes.size(), 0);
    std::vector<int> next(front.begin(), front.end());
    while (!next.empty()) {
        const size_t i = (size_t)next.back();
        next.pop_back();
        if (seen[i])
            continue;
        seen[i] = 1;
        next.insert(next.end(), g->nodes[i].deps.begin(), g->nodes[i].deps.end());
    }
    return std::all_of(seen.begin(), seen.end(), [](char x) { return x; });
}

static void leave_capture(const std::shared_ptr<Capture> &c) {
    for (CUstream m : c->members)
        if (emu.streams.count(m) && m->capture == c) {
            m->capture.reset();
            m->front.clear();
        }
    c->ended = true;
}

EXPORT CUresult cuStreamEndCapture(CUstream s, CUgraph *out) {
    ENTER(cuStreamEndCapture, RELEASE);
    *out = nullptr;
    if (int code = check_stream(s))
        return code;
    const std::shared_ptr<Capture> c = s->capture;
    if (!c || c->origin != s)
        return fail(c ? CUDA_ERROR_STREAM_CAPTURE_UNMATCHED : CUDA_ERROR_INVALID_VALUE, "the stream did not begin a capture");
    if (c->mode != CU_STREAM_CAPTURE_MODE_RELAXED && c->thread != std::this_thread::get_id())
        return fail(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, "the capture is ended by another thread");
    const bool whole = joined(c->graph, s->front);
    leave_capture(c);
    if (c->bad || !whole || call.pending) {
        if (call.pending)
            return call.pending;
        return c->bad ? fail(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, emu.last_error + " (the capture was invalidated)")
                      : fail(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "a stream that was forked off was not joined");
    }
    *out = c->graph;
    c->graph = nullptr;
    emu.graphs.insert(*out);
    return 0;
}

EXPORT CUresult cuStreamIsCapturing(CUstream s, CUstreamCaptureStatus *status) {
    ENTER(cuStreamIsCapturing, CONTEXT);
    if (int code = check_stream(s))
        return code;
    *status = !s->capture       ? CU_STREAM_CAPTURE_STATUS_NONE
              : s->capture->bad ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    return 0;
}

EXPORT CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) {
    ENTER(cuThreadExchangeStreamCaptureMode, DRIVER);
    std::swap(*mode, capture_mode);
    return 0;
}

static int dead_graph() {
    return misuse(CUDA_ERROR_INVALID_HANDLE, "misuse", "a graph or an executable graph that is not alive");
}

EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph g, unsigned long long) {
    ENTER(cuGraphInstantiate, CONTEXT);
    if (!emu.graphs.count(g))
        return dead_graph();
    auto x = std::make_shared<CUgraphExec_st>();
    x->id = ++emu.next_exec;
    x->nodes = g->nodes;
    check_graph_order(x->nodes);
    emu.execs[x.get()] = x;
    *out = x.get();
    return 0;
}

EXPORT CUresult cuGraphLaunch(CUgraphExec x, CUstream s) {
    ENTER(cuGraphLaunch, CONTEXT);
    if (int code = check_stream(s))
        return code;
    if (!emu.execs.count(x))
        return dead_graph();
    if (s->capture)
        return fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "a graph launched into a capture is not emulated");
    join(s->clock, x->clock);
    Node n = make_node(GRAPH, ("x" + std::to_string(x->id)).c_str());
    if (int code = submit(s, std::move(n), nullptr, emu.execs[x]))
        return code;
    for (const Node &node : x->nodes)
        note_access(s, s->submitted, node.touches, node.name + " of graph x" + std::to_string(x->id) + " s" + std::to_string(s->id));
    x->clock = clock_of(s);
    return 0;
}

EXPORT CUresult cuGraphGetNodes(CUgraph g, CUgraphNode *nodes, size_t *n) {
    ENTER(cuGraphGetNodes, CONTEXT);
    if (!emu.graphs.count(g))
        return dead_graph();
    for (size_t i = 0; nodes && i < *n; i++)
        nodes[i] = i < g->handles.size() ? g->handles[i].get() : nullptr;
    *n = nodes ? std::min(*n, g->handles.size()) : g->handles.size();
    return 0;
}

// The graph that the node came from must be alive still. No launch in flight sees half a change.
EXPORT CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec x, CUgraphNode h, const CUDA_KERNEL_NODE_PARAMS *p) {
    ENTER(cuGraphExecKernelNodeSetParams, CONTEXT);
    if (!emu.execs.count(x) || !h || !emu.graphs.count(h->graph) || h->index >= x->nodes.size())
        return dead_graph();
    Node &n = x->nodes[h->index];
    if (n.kind != KERNEL || n.function != p->func)
        return misuse(CUDA_ERROR_INVALID_VALUE, "bad argument", "the function of a node cannot change");
    const auto keep = emu.execs[x];
    const std::set<CUstream> all = emu.streams;
    for (CUstream s : all)
        if (emu.streams.count(s) && !s->capture)
            drain(call.lock, s);
    const dim3 grid{p->gridDimX, p->gridDimY, p->gridDimZ}, block{p->blockDimX, p->blockDimY, p->blockDimZ};
    Node changed = n;
    const int code = set_kernel(changed, p->func, grid, block, p->sharedMemBytes, p->kernelParams);
    if (!code)
        n = changed;
    return code;
}

EXPORT CUresult cuGraphExecDestroy(CUgraphExec x) {
    ENTER(cuGraphExecDestroy, RELEASE);
    auto i = emu.execs.find(x);
    if (i == emu.execs.end())
        return dead_graph();
    const std::shared_ptr<CUgraphExec_st> last = i->second; // launches in flight hold it too
    emu.execs.erase(i);
    return call.pending;
}

EXPORT CUresult cuGraphDestroy(CUgraph g) {
    ENTER(cuGraphDestroy, RELEASE);
    if (!emu.graphs.erase(g))
        return dead_graph();
    delete g;
    return call.pending;
}
