// state.h: what the files of the emulated driver share: its objects, its one lock, and the path of a call. Work is submitted under the lock and runs on the
// stream's thread without it. Knows kernels only through simt.h.
#pragma once
#include "core/dev/cuda/abi.h"
#include "cubin.h"
#include "cuemu_ctl.h"
#include "sanitizer.h"
#include "simt.h"
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default")))
typedef std::unique_lock<std::mutex> Lock;
using std::string;

static const uint64_t TAG = 1ull << 60; // addresses of the device are not canonical: a host access traps

// ---- memory and its accesses ----

typedef std::map<int, uint64_t> Clock; // stream -> its work up to this number is ordered before

struct Touch { // bytes [lo, hi) of an allocation; open: from lo to the next known beginning of a buffer
    uint64_t base;
    int id;
    size_t lo, hi;
    bool open, write;
};

struct Access : Touch {
    int stream;
    uint64_t number; // of the work in its stream
    string who;
};

struct Alloc {
    size_t size;
    int id;
    bool pinned;
    char *raw; // what was allocated; the memory itself begins at the key in State::memory
    std::vector<Access> accesses;
    std::set<size_t> starts; // where buffers inside it begin, as far as launches and copies have shown
};

// ---- work ----

enum Kind { KERNEL, COPY, SET, HOST, LIBRARY, RECORD, WAIT, GRAPH };

struct Node { // what runs; copied into graphs
    Kind kind = KERNEL;
    string name;
    CUfunction function = nullptr;
    dim3 grid, block;
    unsigned shared = 0;
    std::vector<uint8_t> args; // values, each at its offset; LIBRARY: the data
    std::vector<size_t> offsets;
    uint64_t to = 0, from = 0;
    size_t bytes = 0;
    int value = 0;
    uint64_t sum = 0; // of the pinned source when it was submitted
    bool summed = false;
    std::vector<uint8_t> staged; // the source, when it was pageable
    CUhostFn host = nullptr;
    void *data = nullptr;
    void (*library)(void *) = nullptr;
    std::vector<Touch> touches;
    std::vector<int> deps;
    int origin = 0; // the stream it was captured from
    char token = 0, token_in = 0, token_out = 0;
};

struct Record { // one cuEventRecord
    bool done = false;
    CUstream stream = nullptr;
    uint64_t number = 0;
    double time = 0;
    Clock clock;
    char token = 0;
};

struct Op { // a node in a stream's queue
    Node node;
    std::shared_ptr<Record> record;
    std::shared_ptr<CUgraphExec_st> exec;
    Clock clock; // HOST: what the host knows once the function runs
    char token = 0;
};

// ---- objects ----

struct Capture {
    CUgraph graph; // its own, until the capture ends well
    int mode;
    CUstream origin;
    std::thread::id thread;
    bool bad = false, ended = false;
    std::set<CUstream> members;
    ~Capture();
};

struct CUstream_st {
    int id;
    unsigned flags;
    std::thread thread;
    std::deque<std::unique_ptr<Op>> queue;
    uint64_t submitted = 0, done = 0, wanted = 0; // numbers of work; wanted: somebody waits for it
    unsigned polls = 0;
    bool quit = false;
    simt_sm *sm;
    std::map<int, simt_sm *> branches; // what nodes of graphs run on, by the stream that they were captured from
    std::shared_ptr<Capture> capture;
    std::set<int> front; // nodes that the next captured one depends on
    Clock clock;         // other streams' work that it has waited for
    char token = 0;
    std::minstd_rand random;
};

struct CUevent_st {
    int id;
    std::shared_ptr<Record> record;
    std::shared_ptr<Capture> capture;
    std::set<int> front;
};

struct CUgraphNode_st {
    CUgraph graph;
    size_t index;
};
struct CUgraph_st {
    std::vector<Node> nodes;
    std::vector<std::unique_ptr<CUgraphNode_st>> handles;
};
struct CUgraphExec_st {
    int id;
    std::vector<Node> nodes;
    std::mutex running;
    Clock clock; // launches of one exec are ordered
    char token = 0;
};

struct CUfunc_st {
    const cuemu_kernel *kernel;
    Resources resources;
    int max_dynamic;
};
struct CUmod_st {
    bool parsed; // false: an image without code that can be read here, so nothing is compared with it
    Cubin cubin;
    std::map<string, std::unique_ptr<CUfunc_st>> functions;
};
struct CUctx_st {
    int refs;
};

struct Fault {
    int left, code;
};

// Immortal: workers may still run while the process exits.
struct State {
    std::mutex lock;
    std::condition_variable changed;
    std::map<uint64_t, Alloc> memory; // by untagged address
    std::set<CUstream> streams;
    std::set<CUevent> events;
    std::set<CUgraph> graphs;
    std::map<CUgraphExec, std::shared_ptr<CUgraphExec_st>> execs;
    std::set<CUmodule> modules;
    long handles = 0; // cuBLAS
    Clock host;       // what the host has seen complete
    std::map<string, long> counts;
    std::map<string, Fault> faults;
    std::deque<string> log, reports;
    string last_error;
    int lost = 0;      // the code that every function returns
    bool skip = false; // queued work is dropped, not run
    bool initialised = false;
    CUctx_st context{0};
    int next_alloc = 0, next_stream = 0, next_event = 0, next_exec = 0;
    size_t total = (size_t)1 << 30, used = 0;
    long lazy = 0, jitter_us = 0, call_us = 0, hold = 0, seed = 1, cc = 90;
};
extern State &emu;
extern thread_local bool in_host_function;
extern thread_local CUcontext current_context;
extern thread_local int capture_mode;

// ---- calls (control.cpp) ----

// A call of the driver's interface: holds the lock while it lives. UNSAFE and FREE: not while a capture forbids it. RELEASE and FREE: an injected fault is
// returned after the object is gone, so that it is not reported as a leak.
enum Needs { NOTHING, DRIVER, CONTEXT, UNSAFE, RELEASE, FREE };
struct Call {
    Lock lock;
    const char *name;
    int pending = 0; // the injected fault of a RELEASE
    explicit Call(const char *function) : lock(emu.lock), name(function) {}
    int enter(Needs needs);
};
#define ENTER(name, needs)                                                                                                                 \
    Call call(#name);                                                                                                                      \
    if (int code_ = call.enter(needs))                                                                                                     \
    return code_

int fail(int code, const string &why);                     // remembers why, returns code
int misuse(int code, const char *kind, const string &why); // and reports it
int take_fault(const string &what);
void lose_device(int code, const string &why);
void read_environment();

// ---- log and reports (log.cpp) ----

void report(const char *kind, const string &what);
void log_node(const Node &n, CUstream s);
void log_line(CUstream s, const string &what);
int count_leaks(bool say);
string describe(const Node &n, CUstream s);

// ---- memory (memory.cpp) ----

// The live allocation that holds [p, p + n), or NULL. An address of the host finds pinned memory only.
Alloc *find_memory(uint64_t p, size_t n, uint64_t *base = nullptr);
string pointer_name(uint64_t p);
void check_canaries(uint64_t base, const Alloc &a, const string &after);
void release_memory(uint64_t base, const Alloc &a);

// ---- order (order.cpp) ----

bool add_touch(std::vector<Touch> &touches, uint64_t p, size_t n, bool open, bool write); // false: no live memory, nothing added
void note_access(CUstream s, uint64_t number, const std::vector<Touch> &touches, const string &who);
void join(Clock &to, const Clock &from);
Clock clock_of(CUstream s); // everything that is submitted to it so far
// The first unfinished access of [lo, hi) of an allocation, writes only or all; NULL: none.
const Access *pending_access(const Alloc &a, size_t lo, size_t hi, bool writes_only);
void check_graph_order(const std::vector<Node> &nodes);

// ---- streams (stream.cpp) and what they run (work.cpp) ----

int check_stream(CUstream s);
int submit(CUstream s, Node &&n, std::shared_ptr<Record> record = nullptr, std::shared_ptr<CUgraphExec_st> exec = nullptr);
void demand(CUstream s, uint64_t number); // lazy work up to this number has a reason to run
void drain(Lock &l, CUstream s);          // waits until all that is submitted now has run; the host has seen it
void stop_stream(Lock &l, CUstream s);
void run_op(CUstream s, Op &op);
Node make_node(Kind kind, const char *name);

uint64_t sum_bytes(const void *p, size_t n);                                                  // work.cpp
int set_kernel(Node &n, CUfunction f, dim3 grid, dim3 block, unsigned shared, void **params); // launch.cpp
int shared_limit();                                                                           // device.cpp
