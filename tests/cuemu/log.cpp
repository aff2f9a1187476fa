// log.cpp: the launch log, and the list of faults of the program that were found. At the end of the process both go where the environment says.
#include "state.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

static const size_t max_reports = 1000; // a loop that is wrong reports at every turn

void report(const char *kind, const string &what) {
    if (emu.reports.size() < max_reports)
        emu.reports.push_back(string(kind) + ": " + what);
    if (getenv("CUEMU_VERBOSE"))
        fprintf(stderr, "cuemu: %s: %s\n", kind, what.c_str());
}

static FILE *log_file() {
    static FILE *file = getenv("CUEMU_LOG") ? fopen(getenv("CUEMU_LOG"), "w") : nullptr;
    return file;
}

void log_line(CUstream s, const string &what) {
    const string line = s && s->capture ? "capture " + what : what;
    if (FILE *f = log_file())
        fprintf(f, "%s\n", line.c_str());
    emu.log.push_back(line);
}

static string argument(const cuemu_param &p, const uint8_t *value) {
    char t[40] = "?";
    uint64_t u = 0;
    memcpy(&u, value, p.size < 8 ? p.size : 8);
    if (p.kind == 'p' || p.kind == 'r')
        return pointer_name(u);
    if (p.kind == 'f' && p.size == 4)
        snprintf(t, sizeof t, "%.9g", cuemu::unbits<float>(u));
    else if (p.kind == 'f' && p.size == 8)
        snprintf(t, sizeof t, "%.17g", cuemu::unbits<double>(u));
    else if (p.kind == 'i' && p.size == 4)
        snprintf(t, sizeof t, "%d", (int)u);
    else if (p.kind == 'i' && p.size == 8)
        snprintf(t, sizeof t, "%lld", (long long)u);
    else if (p.kind == 'u' || p.kind == 'i')
        snprintf(t, sizeof t, "%llu", (unsigned long long)u);
    return t;
}

static string describe_launch(const Node &n, CUstream s) {
    char head[300];
    snprintf(head, sizeof head, "launch %s s%d g%u,%u,%u b%u,%u,%u sm%u (", n.name.c_str(), s->id, n.grid.x, n.grid.y, n.grid.z, n.block.x,
             n.block.y, n.block.z, n.shared);
    string text = head;
    for (int i = 0; i < n.function->kernel->count; i++)
        text += (i ? ", " : "") + argument(n.function->kernel->params[i], n.args.data() + n.offsets[(size_t)i]);
    return text + ")";
}

string describe(const Node &n, CUstream s) {
    const string on = " s" + std::to_string(s->id);
    switch (n.kind) {
    case KERNEL:
        return describe_launch(n, s);
    case COPY:
        return "copy " + n.name + on + " " + pointer_name(n.to) + " <- " + pointer_name(n.from) + " " + std::to_string(n.bytes);
    case SET:
        return "memset" + on + " " + pointer_name(n.to) + " " + std::to_string(n.value) + " " + std::to_string(n.bytes);
    case HOST:
        return "host" + on;
    case LIBRARY:
        return "library " + n.name + on;
    case RECORD:
        return "record" + on + " " + n.name;
    case WAIT:
        return "wait" + on + " " + n.name;
    default:
        return "graph" + on + " " + n.name;
    }
}

void log_node(const Node &n, CUstream s) {
    log_line(s, describe(n, s));
}

int count_leaks(bool say) {
    int count = 0;
    for (auto &m : emu.memory) {
        count++;
        if (say)
            report("leak", string(m.second.pinned ? "pinned memory h#" : "memory #") + std::to_string(m.second.id) + ", " +
                               std::to_string(m.second.size) + " bytes");
    }
    const std::pair<const char *, size_t> kinds[] = {{"streams", emu.streams.size()},
                                                     {"events", emu.events.size()},
                                                     {"graphs", emu.graphs.size()},
                                                     {"graph execs", emu.execs.size()},
                                                     {"modules", emu.modules.size()},
                                                     {"cuBLAS handles", (size_t)emu.handles},
                                                     {"context references", (size_t)emu.context.refs}};
    for (auto &k : kinds) {
        count += (int)k.second;
        if (say && k.second)
            report("leak", std::to_string(k.second) + " " + k.first);
    }
    return count;
}

EXPORT void cuemu_log_clear(void) {
    Lock l(emu.lock);
    emu.log.clear();
}

EXPORT int cuemu_log_size(void) {
    Lock l(emu.lock);
    return (int)emu.log.size();
}

EXPORT const char *cuemu_log_line(int i) {
    Lock l(emu.lock);
    return i >= 0 && (size_t)i < emu.log.size() ? emu.log[(size_t)i].c_str() : nullptr;
}

EXPORT int cuemu_report_count(void) {
    Lock l(emu.lock);
    return (int)emu.reports.size();
}

EXPORT const char *cuemu_report(int i) {
    Lock l(emu.lock);
    return i >= 0 && (size_t)i < emu.reports.size() ? emu.reports[(size_t)i].c_str() : nullptr;
}

EXPORT void cuemu_reports_clear(void) {
    Lock l(emu.lock);
    emu.reports.clear();
}

EXPORT int cuemu_check_leaks(void) {
    Lock l(emu.lock);
    return count_leaks(true);
}

// At the end of the process: CUEMU_STRICT says what was found, and makes it the process's failure.
__attribute__((destructor)) static void at_end() {
    if (FILE *f = log_file())
        fflush(f);
    if (!getenv("CUEMU_STRICT") || !emu.initialised)
        return;
    if (!emu.lost)
        count_leaks(true);
    for (const string &r : emu.reports)
        fprintf(stderr, "cuemu: %s\n", r.c_str());
    if (!emu.reports.empty() && strcmp(getenv("CUEMU_STRICT"), "0")) {
        fflush(nullptr);
        _exit(86);
    }
}
