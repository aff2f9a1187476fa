// control.cpp: what every call passes on its way in, injected faults, counts, and the settings.
#include "state.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

State &emu = *new State;
thread_local bool in_host_function;
thread_local CUcontext current_context;
thread_local int capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

int fail(int code, const string &why) {
    emu.last_error = why;
    if (getenv("CUEMU_VERBOSE"))
        fprintf(stderr, "cuemu: %d: %s\n", code, why.c_str());
    return code;
}

int misuse(int code, const char *kind, const string &why) {
    report(kind, why);
    return fail(code, why);
}

int take_fault(const string &what) {
    auto i = emu.faults.find(what);
    if (i == emu.faults.end() || --i->second.left > 0)
        return 0;
    const int code = i->second.code;
    emu.faults.erase(i);
    return fail(code, "injected fault in " + what);
}

void lose_device(int code, const string &why) {
    if (!emu.lost) {
        emu.lost = code;
        fail(code, why);
    }
}

static bool starts(const char *s, const char *with) {
    return strncmp(s, with, strlen(with)) == 0;
}

static const char *group_of(const char *name) {
    if (!strcmp(name, "cuMemAlloc") || !strcmp(name, "cuMemHostAlloc"))
        return "alloc";
    if (starts(name, "cuMemcpy") || starts(name, "cuMemset"))
        return "copy";
    if (!strcmp(name, "cuLaunchKernel") || !strcmp(name, "cuGraphLaunch"))
        return "launch";
    if (starts(name, "cuEvent") || !strcmp(name, "cuStreamWaitEvent"))
        return "event";
    if (strstr(name, "Captur"))
        return "capture";
    if (starts(name, "cuStream") || !strcmp(name, "cuLaunchHostFunc"))
        return "stream";
    if (starts(name, "cuGraph"))
        return "graph";
    if (starts(name, "cuModule") || starts(name, "cuFunc"))
        return "module";
    return starts(name, "cublas") ? "cublas" : "other";
}

static thread_local std::map<string, long> counts_here;

static int count_and_fault(const char *name) {
    const string keys[] = {name, group_of(name), "any"};
    for (const string &key : keys) {
        emu.counts[key]++;
        counts_here[key]++;
    }
    if (int code = take_fault("device"))
        lose_device(code, string("the device was lost in ") + name);
    if (emu.lost)
        return 0;
    for (const string &key : keys)
        if (int code = take_fault(key)) {
            emu.last_error += string(" (") + name + ")";
            return code;
        }
    return 0;
}

// Whether a capture forbids this thread calls that could wait for or order unrelated work; it is spoilt by one.
static bool capture_forbids() {
    for (CUstream s : emu.streams) {
        Capture *c = s->capture.get();
        if (!c || c->mode == CU_STREAM_CAPTURE_MODE_RELAXED || capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
            continue;
        const bool own = c->thread == std::this_thread::get_id();
        if (own || (c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL && capture_mode == CU_STREAM_CAPTURE_MODE_GLOBAL)) {
            c->bad = true;
            return true;
        }
    }
    return false;
}

int Call::enter(Needs needs) {
    if (emu.call_us) {
        lock.unlock();
        usleep((unsigned)emu.call_us);
        lock.lock();
    }
    emu.changed.wait(lock, [] { return !emu.hold; });
    const int fault = count_and_fault(name);
    if (fault && needs < RELEASE)
        return fault;
    pending = fault;
    if (in_host_function)
        return misuse(CUDA_ERROR_NOT_PERMITTED, "misuse", string(name) + " called from a host function");
    if (needs >= DRIVER && !emu.initialised)
        return misuse(CUDA_ERROR_NOT_INITIALIZED, "misuse", string(name) + " before cuInit");
    if (needs >= CONTEXT && (!current_context || !emu.context.refs))
        return misuse(CUDA_ERROR_INVALID_CONTEXT, "misuse", string(name) + ": no context is current on this thread");
    if (needs >= CONTEXT && emu.lost)
        return emu.lost;
    if ((needs == UNSAFE || needs == FREE) && capture_forbids())
        return fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, string(name) + " during stream capture");
    return 0;
}

// ---- settings ----

static bool set_value(const string &key, long value) {
    if (key == "memory")
        emu.total = (size_t)value;
    else if (key == "lazy")
        emu.lazy = value;
    else if (key == "jitter_us")
        emu.jitter_us = value;
    else if (key == "call_us")
        emu.call_us = value;
    else if (key == "hold")
        emu.hold = value;
    else if (key == "seed")
        emu.seed = value;
    else if (key == "reverse")
        simt_reverse = (int)value;
    else if (key == "cc")
        emu.cc = value;
    else
        return false;
    return true;
}

// "API:nth[:code],...": what the environment injects.
static void read_faults(const char *text) {
    for (string rest = text; !rest.empty();) {
        const size_t comma = rest.find(',');
        string one = rest.substr(0, comma);
        rest = comma == string::npos ? "" : rest.substr(comma + 1);
        int code = CUDA_ERROR_UNKNOWN, nth = 1;
        size_t colon = one.find(':');
        const string head = one.substr(0, colon);
        if (colon != string::npos && (head == "exec" || head == "launch" || head == "function") &&
            one.find(':', colon + 1) != string::npos && !strchr("0123456789", one[colon + 1]))
            colon = one.find(':', colon + 1); // the key has a colon of its own
        if (colon == string::npos || sscanf(one.c_str() + colon + 1, "%d:%d", &nth, &code) < 1 || nth < 1)
            fprintf(stderr, "cuemu: CUEMU_FAIL: not API:nth[:code]: %s\n", one.c_str());
        else
            emu.faults[one.substr(0, colon)] = {nth, code};
    }
}

void read_environment() {
    static const char *const names[][2] = {{"CUEMU_MEMORY", "memory"},   {"CUEMU_LAZY", "lazy"},       {"CUEMU_JITTER_US", "jitter_us"},
                                           {"CUEMU_SEED", "seed"},       {"CUEMU_REVERSE", "reverse"}, {"CUEMU_CC", "cc"},
                                           {"CUEMU_CALL_US", "call_us"}, {"CUEMU_HOLD", "hold"}};
    for (auto &n : names)
        if (const char *value = getenv(n[0]))
            set_value(n[1], strtol(value, nullptr, 0));
    if (const char *value = getenv("CUEMU_FAIL"))
        read_faults(value);
}

EXPORT int cuemu_set(const char *key, long value) {
    Lock l(emu.lock);
    emu.changed.notify_all();
    return set_value(key, value);
}

EXPORT void cuemu_fail(const char *what, int nth, int code) {
    Lock l(emu.lock);
    if (nth > 0)
        emu.faults[what] = {nth, code};
    else
        emu.faults.erase(what);
}

EXPORT void cuemu_fail_clear(void) {
    Lock l(emu.lock);
    emu.faults.clear();
}

EXPORT long cuemu_count(const char *what) {
    Lock l(emu.lock);
    return emu.counts[what];
}

EXPORT long cuemu_count_here(const char *what) {
    return counts_here[what];
}

EXPORT const char *cuemu_last_error(void) {
    Lock l(emu.lock);
    return emu.last_error.c_str();
}

EXPORT int cuemu_enter(const char *function, int *code) {
    Lock l(emu.lock);
    *code = count_and_fault(function);
    if (!*code)
        *code = emu.lost;
    return *code != 0;
}

EXPORT void cuemu_track_handle(int delta) {
    Lock l(emu.lock);
    emu.handles += delta;
}

EXPORT void cuemu_async_error(int code, const char *why) {
    Lock l(emu.lock);
    report("kernel failed", why);
    lose_device(code, why);
}
