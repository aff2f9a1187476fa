// order.cpp: vector clocks. Two accesses of one byte from different streams, one of them a write, must be ordered by an event, by a wait of the host, or by a
// host function that has run. Checked when work is submitted, so that what is found does not depend on how it happens to run. The host counts as one thread: what one
// of its threads has seen complete counts for all, since how they talk to each other is not seen here.
//
// What a kernel touches is known only as far as its pointers: from each to the next known beginning of a buffer in the same allocation (a launch's pointers,
// and copies that begin at a multiple of 256 bytes), written unless the pointer is to const.
#include "state.h"
#include <algorithm>

static const size_t buffer_alignment = 256;
static const size_t tidy_above = 32; // accesses that an allocation may hold before finished ones are dropped

bool add_touch(std::vector<Touch> &touches, uint64_t p, size_t n, bool open, bool write) {
    uint64_t base;
    Alloc *a = find_memory(p, n, &base);
    if (!a)
        return false;
    const size_t lo = (size_t)((p & ~TAG) - base);
    if (open || lo % buffer_alignment == 0)
        a->starts.insert(lo);
    for (Touch &t : touches)
        if (t.base == base && t.id == a->id && t.lo == lo && t.open == open && (open || t.hi == lo + n)) {
            t.write = t.write || write;
            return true;
        }
    touches.push_back({base, a->id, lo, open ? a->size : lo + n, open, write});
    return true;
}

void join(Clock &to, const Clock &from) {
    for (auto &c : from) {
        uint64_t &number = to[c.first];
        number = std::max(number, c.second);
    }
}

Clock clock_of(CUstream s) {
    Clock c = s->clock;
    c[s->id] = s->submitted;
    return c;
}

static bool reaches(const Clock &c, int stream, uint64_t number) {
    auto i = c.find(stream);
    return i != c.end() && i->second >= number;
}

static size_t end_of(const Alloc &a, const Touch &t) {
    if (!t.open)
        return t.hi;
    auto next = a.starts.upper_bound(t.lo);
    return next == a.starts.end() ? a.size : *next;
}

static bool overlap(const Alloc &a, const Touch &x, const Touch &y) {
    return x.lo < end_of(a, y) && y.lo < end_of(a, x);
}

static bool covers(const Touch &outer, const Touch &inner) {
    return outer.open == inner.open && outer.lo <= inner.lo && (outer.open ? outer.lo == inner.lo : outer.hi >= inner.hi) &&
           (outer.write || !inner.write);
}

static void check_access(Alloc &a, CUstream s, const Access &now) {
    for (const Access &before : a.accesses) {
        if (before.stream == s->id || !(before.write || now.write) || !overlap(a, before, now))
            continue;
        if (reaches(s->clock, before.stream, before.number) || reaches(emu.host, before.stream, before.number))
            continue;
        report("unordered", string(a.pinned ? "pinned memory h#" : "memory #") + std::to_string(a.id) + ": [" + now.who + "] " +
                                (now.write ? "writes" : "reads") + " what [" + before.who + "] " + (before.write ? "writes" : "reads") +
                                ", and no event orders them");
        return; // one culprit is enough
    }
}

static void keep_access(Alloc &a, CUstream s, const Access &now) {
    auto &v = a.accesses;
    v.erase(std::remove_if(v.begin(), v.end(),
                           [&](const Access &old) {
                               if (v.size() > tidy_above && reaches(emu.host, old.stream, old.number))
                                   return true;
                               return covers(now, old) && (old.stream == s->id || reaches(s->clock, old.stream, old.number));
                           }),
            v.end());
    v.push_back(now);
}

void note_access(CUstream s, uint64_t number, const std::vector<Touch> &touches, const string &who) {
    for (const Touch &t : touches) {
        auto i = emu.memory.find(t.base);
        if (i == emu.memory.end() || i->second.id != t.id)
            continue;
        Access now{t, s->id, number, who};
        check_access(i->second, s, now);
        keep_access(i->second, s, now);
    }
}

static bool finished(const Access &a) {
    for (CUstream s : emu.streams)
        if (s->id == a.stream)
            return s->done >= a.number;
    return true;
}

const Access *pending_access(const Alloc &a, size_t lo, size_t hi, bool writes_only) {
    for (const Access &x : a.accesses)
        if ((x.write || !writes_only) && x.lo < hi && lo < end_of(a, x) && !finished(x))
            return &x;
    return nullptr;
}

static bool conflict(const Node &x, const Node &y) {
    for (const Touch &a : x.touches)
        for (const Touch &b : y.touches) {
            auto i = emu.memory.find(a.base);
            if (a.base == b.base && a.id == b.id && (a.write || b.write) && i != emu.memory.end() && overlap(i->second, a, b))
                return true;
        }
    return false;
}

// Nodes of one graph that no path connects must not touch the same bytes. Nodes are in an order in which each stands after what it depends on.
void check_graph_order(const std::vector<Node> &nodes) {
    std::vector<std::vector<bool>> before(nodes.size());
    for (size_t i = 0; i < nodes.size(); i++) {
        before[i].assign(nodes.size(), false);
        for (int d : nodes[i].deps) {
            before[i][(size_t)d] = true;
            for (size_t j = 0; j < i; j++)
                before[i][j] = before[i][j] || before[(size_t)d][j];
        }
        for (size_t j = 0; j < i; j++)
            if (!before[i][j] && conflict(nodes[i], nodes[j]))
                report("unordered",
                       "in a graph: " + nodes[i].name + " and " + nodes[j].name + " touch the same memory, and no edge orders them");
    }
}
