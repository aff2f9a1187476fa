/* lib_bench.c: what `weir bench` measures in C: the memory's bandwidth, by threads that read a buffer from end to end, and the benchmarks of bench/. Knows no
 * benchmark by name. */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "../core/dev/measure.h"
#include "bench/bench.h"
#include "binding.h"

/* STREAMS: a reader walks as many parts of its share side by side, so that several pages are fetched ahead. HUGE: bytes of a huge page. */
enum { MAX_READERS = 256, STREAMS = 4, HUGE = 2 << 20 };

typedef uint64_t lane __attribute__((vector_size(16))); /* what every x86-64 has a register for */
typedef struct line {
    lane at[4];
} line; /* a cache line */

/* Readers are made first and let go together, so that making them is not measured. */
typedef struct gate {
    _Atomic int waiting, open; /* open: 1 read, -1 a reader could not be made */
} gate;

typedef struct reader {
    pthread_t thread;
    gate *gate;
    const line *data;
    size_t lines; /* of each of the STREAMS parts, which lie one after another */
    lane sum;
    double end; /* seconds of the clock */
} reader;

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static inline lane folded(const line *l) {
    return (l->at[0] ^ l->at[1]) ^ (l->at[2] ^ l->at[3]);
}

static void *read_share(void *data) {
    reader *r = data;
    atomic_fetch_add(&r->gate->waiting, 1);
    int open;
    while (!(open = atomic_load(&r->gate->open)))
        sched_yield();
    if (open < 0)
        return NULL;
    const line *a = r->data, *b = a + r->lines, *c = b + r->lines, *d = c + r->lines;
    lane sum_a = {0}, sum_b = {0}, sum_c = {0}, sum_d = {0};
    for (size_t i = 0; i < r->lines; i++) {
        sum_a ^= folded(a + i);
        sum_b ^= folded(b + i);
        sum_c ^= folded(c + i);
        sum_d ^= folded(d + i);
    }
    r->sum = sum_a ^ sum_b ^ sum_c ^ sum_d;
    r->end = seconds();
    return NULL;
}

/* One pass of `n` threads over the buffer; the time it took, < 0 if a thread could not be made. */
static double read_once(const line *data, size_t lines, int n) {
    reader readers[MAX_READERS];
    gate gate = {0};
    size_t part = lines / ((size_t)n * STREAMS);
    int made = 0;
    for (; made < n; made++) {
        readers[made] = (reader){.gate = &gate, .data = data + part * STREAMS * (size_t)made, .lines = part};
        if (pthread_create(&readers[made].thread, NULL, read_share, &readers[made]) != 0)
            break;
    }
    while (made == n && atomic_load(&gate.waiting) < n)
        sched_yield();
    double start = seconds(), end = start;
    atomic_store(&gate.open, made == n ? 1 : -1);
    for (int i = 0; i < made; i++) {
        pthread_join(readers[i].thread, NULL);
        end = made == n && readers[i].end > end ? readers[i].end : end;
    }
    return made == n ? end - start : -1;
}

/* core.bandwidth(bytes, threads, rounds) -> bytes per second, the best round */
static int bandwidth(lua_State *L) {
    double wanted = luaL_checknumber(L, 1);
    int threads = (int)luaL_checkinteger(L, 2), rounds = (int)luaL_checkinteger(L, 3);
    if (threads < 1 || threads > MAX_READERS || !(wanted >= 32768))
        return raise_code(L, WEIR_EINVAL, "%d threads over %.0f bytes", threads, wanted);
    size_t step = (size_t)threads * STREAMS, lines = ((size_t)wanted / sizeof(line) + step - 1) / step * step;
    size_t size = (lines * sizeof(line) + HUGE - 1) / HUGE * HUGE;
    line *data = aligned_alloc(HUGE, size);
    if (!data)
        return raise_code(L, WEIR_ENOMEM, "a buffer of %zu bytes", size);
    madvise(data, size, MADV_HUGEPAGE); /* small pages measure the page walks; without huge ones the figure is lower */
    memset(data, 1, size);
    double best = -1;
    for (int i = 0; i < rounds; i++) {
        double time = read_once(data, lines, threads);
        if (time > 0 && (best < 0 || time < best))
            best = time;
    }
    free(data);
    if (best < 0)
        return raise_code(L, WEIR_EIO, "no threads");
    lua_pushnumber(L, (double)lines * sizeof(line) / best);
    return 1;
}

/* ---- benchmarks of actors: each has a system of its own ---- */

static void push_parameters(lua_State *L, const bench_kind *kind) {
    lua_newtable(L);
    for (int i = 0; i < BENCH_PARAMETERS && kind->parameters[i]; i++) {
        lua_createtable(L, 0, 3);
        lua_pushstring(L, kind->parameters[i]);
        lua_setfield(L, -2, "name");
        lua_pushnumber(L, (double)kind->few[i]);
        lua_setfield(L, -2, "few");
        lua_pushnumber(L, (double)kind->full[i]);
        lua_setfield(L, -2, "full");
        lua_rawseti(L, -2, i + 1);
    }
}

/* core.bench_kinds() -> array of {name, counts, parameters = array of {name, few, full}} */
static int kinds(lua_State *L) {
    lua_newtable(L);
    for (int i = 0; bench_kinds[i]; i++) {
        lua_createtable(L, 0, 3);
        lua_pushstring(L, bench_kinds[i]->name);
        lua_setfield(L, -2, "name");
        lua_pushstring(L, bench_kinds[i]->counts);
        lua_setfield(L, -2, "counts");
        push_parameters(L, bench_kinds[i]);
        lua_setfield(L, -2, "parameters");
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

static void set_number(lua_State *L, const char *name, double value) {
    lua_pushnumber(L, value);
    lua_setfield(L, -2, name);
}

/* core.bench_run(name, few, workers, seed or nil) -> {value, expected, messages, refused, seconds, failure}; seed: under the test driver */
static int run_bench(lua_State *L) {
    const char *name = luaL_checkstring(L, 1);
    bench_options o = {.few = lua_toboolean(L, 2), .workers = (unsigned)luaL_optinteger(L, 3, 0)};
    if (!lua_isnoneornil(L, 4)) {
        o.driver = WEIR_DRIVER_TEST;
        o.seed = (uint64_t)luaL_checknumber(L, 4);
    }
    const bench_kind *kind = bench_find(name);
    if (!kind)
        return raise_code(L, WEIR_EINVAL, "no benchmark is called %s", name);
    bench_result r;
    int code = bench_run(kind, &o, &r);
    lua_createtable(L, 0, 6);
    set_number(L, "value", (double)r.value);
    set_number(L, "expected", (double)r.expected);
    set_number(L, "messages", (double)r.messages);
    set_number(L, "refused", (double)r.refused);
    set_number(L, "seconds", (double)r.ns / 1e9);
    if (code != WEIR_OK) {
        lua_pushstring(L, r.failure);
        lua_setfield(L, -2, "failure");
    }
    return 1;
}

/* core.bench_rates() -> array of {name, text} */
static int rates(lua_State *L) {
    lua_newtable(L);
    for (int i = 0; bench_rates[i].name; i++) {
        lua_createtable(L, 0, 2);
        lua_pushstring(L, bench_rates[i].name);
        lua_setfield(L, -2, "name");
        lua_pushstring(L, bench_rates[i].text);
        lua_setfield(L, -2, "text");
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

/* core.bench_rate(number) -> ns of one of what bench_rates()[number] is about, measured once */
static int rate(lua_State *L) {
    lua_Integer wanted = luaL_checkinteger(L, 1), n = 0;
    while (bench_rates[n].name)
        n++;
    if (wanted < 1 || wanted > n)
        return raise_code(L, WEIR_EINVAL, "no rate has the number %d", (int)wanted);
    char failure[BENCH_TEXT];
    double ns = bench_rate_measure(&bench_rates[wanted - 1], failure);
    if (ns < 0)
        return raise_code(L, WEIR_EIO, "%s: %s", bench_rates[wanted - 1].text, failure);
    lua_pushnumber(L, ns);
    return 1;
}

/* core.bench_device(name, bytes, rounds) -> {copy, upload, download, launch, replay, work, sending, both}: bytes per second and ns (core/dev/measure.h) */
static int bench_device(lua_State *L) {
    const char *name = luaL_checkstring(L, 1);
    double bytes = luaL_checknumber(L, 2);
    int rounds = (int)luaL_checkinteger(L, 3);
    weir__measures m;
    weir_system *s = NULL;
    weir_error *error = NULL;
    int code = weir_system_new(NULL, &s, &error);
    if (!code)
        code = weir__device_measure(s, name, (size_t)bytes, rounds, &m, &error);
    weir_system_free(s);
    if (code)
        return raise_error(L, error);
    const struct {
        const char *name;
        double value;
    } figures[] = {{"copy", m.copy},     {"upload", m.upload}, {"download", m.download}, {"launch", m.launch},
                   {"replay", m.replay}, {"work", m.work},     {"sending", m.sending},   {"both", m.both}};
    lua_createtable(L, 0, 8);
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        set_number(L, figures[i].name, figures[i].value);
    return 1;
}

void open_bench(lua_State *L, binding *b) {
    static const luaL_Reg functions[] = {{"bandwidth", bandwidth},
                                         {"bench_kinds", kinds},
                                         {"bench_run", run_bench},
                                         {"bench_rates", rates},
                                         {"bench_rate", rate},
                                         {"bench_device", bench_device},
                                         {NULL, NULL}};
    binding_register(L, b, functions);
}
