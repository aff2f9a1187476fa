/* lib_system.c: the binding of a Lua state, its one system, and the loop run from main chunks. Owns the module's entry point. Knows no messages. */
#include <math.h>
#include <sched.h>
#include <string.h>

#include "binding.h"

static const char key;

binding *binding_of(lua_State *L) {
    return lua_touserdata(L, lua_upvalueindex(1));
}

void binding_register(lua_State *L, binding *b, const luaL_Reg *functions) {
    for (; functions->name; functions++) {
        lua_pushlightuserdata(L, b);
        lua_pushcclosure(L, functions->func, 1);
        lua_setfield(L, -2, functions->name);
    }
}

void binding_metatable(lua_State *L, binding *b, const char *name, const luaL_Reg *methods) {
    luaL_newmetatable(L, name);
    lua_pushvalue(L, -1);
    lua_setfield(L, -2, "__index");
    lua_pushstring(L, name);
    lua_setfield(L, -2, "__name");
    binding_register(L, b, methods);
    lua_pushlightuserdata(L, (void *)name);
    lua_pushvalue(L, -2);
    lua_rawset(L, LUA_REGISTRYINDEX);
}

void set_metatable(lua_State *L, const char *name) {
    lua_pushlightuserdata(L, (void *)name);
    lua_rawget(L, LUA_REGISTRYINDEX);
    lua_setmetatable(L, -2);
}

void hold(binding *b, holder *h) {
    h->previous = NULL;
    h->next = b->holders;
    if (b->holders)
        b->holders->previous = h;
    b->holders = h;
}

void unhold(binding *b, holder *h) {
    if (h->previous)
        h->previous->next = h->next;
    else if (b->holders == h)
        b->holders = h->next;
    if (h->next)
        h->next->previous = h->previous;
    h->previous = h->next = NULL;
}

bool protect(binding *b, lua_CFunction fn, void *data) {
    int top = lua_gettop(b->aux);
    bool ok = lua_cpcall(b->aux, fn, data) == 0;
    lua_settop(b->aux, top);
    return ok;
}

binding *binding_find(lua_State *L) {
    binding_field(L, "binding");
    binding *b = lua_touserdata(L, -1);
    lua_pop(L, 1);
    return b;
}

/* Table of the values that the Lua half of the library gave with core.register. */
void binding_field(lua_State *L, const char *name) {
    lua_pushlightuserdata(L, (void *)&key);
    lua_rawget(L, LUA_REGISTRYINDEX);
    lua_getfield(L, -1, name);
    lua_remove(L, -2);
}

static int register_value(lua_State *L) {
    binding *b = binding_of(L);
    const char *name = luaL_checkstring(L, 1);
    lua_pushlightuserdata(L, (void *)&key);
    lua_rawget(L, LUA_REGISTRYINDEX);
    lua_pushvalue(L, 2);
    lua_setfield(L, -2, name);
    if (strcmp(name, "bin") == 0)
        b->bin = lua_topointer(L, 2);
    else if (strcmp(name, "map") == 0)
        b->map = lua_topointer(L, 2);
    else if (strcmp(name, "error") == 0)
        b->error = lua_topointer(L, 2);
    return 0;
}

static void system_make(lua_State *L, binding *b, const weir_system_options *options) {
    weir_error *e = NULL;
    if (b->closed || b->attached)
        raise_code(L, WEIR_ESTOPPING, "the Lua state is closing");
    weir_system *s = NULL;
    if (weir_system_new(options, &s, &e) != WEIR_OK)
        raise_error(L, e);
    b->start = weir_intern(s, "start");
    b->down = weir_intern(s, "down");
    if (!b->start || !b->down) {
        weir_system_free(s);
        raise_code(L, WEIR_ENOMEM, "verbs of the binding");
    }
    b->system = s;
    b->number++;
}

weir_system *system_of(lua_State *L, binding *b) {
    if (!b->system || b->closed)
        system_make(L, b, NULL);
    return b->system;
}

static int system_new(lua_State *L) {
    binding *b = binding_of(L);
    weir_system_options options = {0};
    if (b->system)
        return raise_code(L, WEIR_EBUSY, "the system of this Lua state is made already: call weir.system before anything else");
    if (lua_istable(L, 1)) {
        lua_getfield(L, 1, "driver");
        const char *driver = luaL_optstring(L, -1, "ev");
        if (strcmp(driver, "test") == 0)
            options.driver = WEIR_DRIVER_TEST;
        else if (strcmp(driver, "ev") != 0)
            return raise_code(L, WEIR_EINVAL, "driver is '%s', wanted 'ev' or 'test'", driver);
        lua_getfield(L, 1, "seed");
        options.seed = (uint64_t)luaL_optnumber(L, -1, 0);
        lua_getfield(L, 1, "workers");
        double workers = luaL_optnumber(L, -1, 0);
        if (!(workers >= 0) || workers > WEIR_MAX_WORKERS || workers != (unsigned)workers)
            return raise_code(L, WEIR_EINVAL, "workers is %.14g; wanted 0 to %d", workers, WEIR_MAX_WORKERS);
        options.workers = (unsigned)workers;
    }
    system_make(L, b, &options);
    return 0;
}

void drop_holders(binding *b) {
    while (b->holders) {
        holder *h = b->holders;
        h->drop(h);
        unhold(b, h);
    }
}

/* Takes everything back from Lua objects and tasks, then frees the system; other loops close their states meanwhile. */
static void system_close(binding *b) {
    weir_system *s = b->system;
    if (!s)
        return;
    drop_holders(b);
    b->main = NULL;
    b->current = NULL;
    b->stopping = false;
    b->system = NULL;
    while (atomic_load(&b->visitors)) /* an interrupt from another thread may have seen it still */
        sched_yield();
    weir_system_free(s);
    trace_free(b);
    watchdog_free(b);
    for (int i = 0; i <= WEIR_MAX_WORKERS; i++)
        atomic_store(&b->hosts[i], 0);
}

/* core.shutdown(for_good): ends the system; for good: none is made any more. */
static int system_shutdown(lua_State *L) {
    binding *b = binding_of(L);
    if (b->attached || (b->system && (weir__running(b->system) || (b->current && b->current->co))))
        return raise_code(L, WEIR_EBUSY, "weir.shutdown inside the running loop");
    system_close(b);
    b->closed = b->closed || lua_toboolean(L, 1);
    return 0;
}

/* Whether a run that was told to quit is to end. An interrupt that was answered before its quit came (by a hook, or by the wait before) is not meant. */
static bool quit_is_meant(binding *b) {
    bool woken = atomic_exchange(&b->woken, false);
    return woken || b->quits || interrupt_waits(b);
}

int pump(binding *b, bool (*done)(void *data), void *data, weir_error **error) {
    if (b->attached || weir__running(b->system))
        return weir_fail(error, WEIR_EBUSY, "a pump inside a pump: the loop is already running, and only actors may wait in it");
    int code;
    do
        code = weir_system_run(b->system, done, data, error);
    while (code == WEIR_OK && weir__was_quit(b->system) && !quit_is_meant(b));
    b->quits = false;
    weir_error_free(stretch_end(b));
    stretch_begin(b);
    return code == WEIR_OK ? interrupt_answer(b, error) : code;
}

/* core.run(): until nothing is left that could happen by itself. */
static int system_run(lua_State *L) {
    binding *b = binding_of(L);
    weir_error *e = NULL;
    system_of(L, b);
    return pump(b, NULL, NULL, &e) == WEIR_OK ? 0 : raise_error(L, e);
}

/* core.made(): the number of the living system, counted from 1; nil if none is there. */
static int system_made(lua_State *L) {
    binding *b = binding_of(L);
    if (!b->system)
        return 0;
    lua_pushnumber(L, b->number);
    return 1;
}

static int system_quit(lua_State *L) {
    binding *b = binding_of(L);
    system_of(L, b);
    b->quits = true;
    weir_system_quit(b->system);
    return 0;
}

/* core.stop_all(seconds): asks every actor to stop. The main chunk's own ends first: it has nothing to stop. */
static int system_stop(lua_State *L) {
    binding *b = binding_of(L);
    int64_t patience = check_seconds(L, 1);
    weir_error *e = NULL;
    if (b->attached || weir__running(system_of(L, b)))
        return raise_code(L, WEIR_EBUSY, "a pump inside a pump: the loop is already running");
    b->stopping = true;
    if (b->main)
        weir_kill(b->system, b->main->address);
    wake_sleepers(b);
    stop_hosts(b);
    int code = weir_system_stop(b->system, patience, &e);
    return code == WEIR_OK ? 0 : raise_error(L, e);
}

int64_t check_seconds(lua_State *L, int index) {
    double seconds = luaL_checknumber(L, index);
    if (!(seconds >= 0) || seconds > 9e9)
        raise_code(L, WEIR_EINVAL, "a duration of %g s; wanted 0 to 9e9", seconds);
    return (int64_t)ceil(seconds * 1e9);
}

static int system_now(lua_State *L) {
    lua_pushnumber(L, (double)weir_now(system_of(L, binding_of(L))) / 1e9);
    return 1;
}

static int system_stats(lua_State *L) {
    binding *b = binding_of(L);
    weir_system_stats stats;
    weir_system_get_stats(system_of(L, b), &stats);
    const struct {
        const char *name;
        uint64_t value;
    } fields[] = {{"sent", stats.sent},
                  {"handled", stats.handled},
                  {"dead", stats.dead},
                  {"queued", stats.queued},
                  {"refused", stats.refused},
                  {"calls", stats.calls},
                  {"calls_ended", stats.calls_ended},
                  {"late_replies", stats.late_replies},
                  {"actors", stats.actors},
                  {"spawned", stats.spawned},
                  {"timers", stats.timers},
                  {"bytes", stats.bytes},
                  {"blocks", stats.blocks},
                  {"failures", atomic_load(&b->root->failures)}};
    lua_createtable(L, 0, 16);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        lua_pushnumber(L, (double)fields[i].value);
        lua_setfield(L, -2, fields[i].name);
    }
    return 1;
}

/* core.inject(point, nth, times): injected faults, for tests. */
static int system_inject(lua_State *L) {
    binding *b = binding_of(L);
    const char *point = luaL_checkstring(L, 1);
    uint64_t nth = (uint64_t)luaL_optnumber(L, 2, 1), times = (uint64_t)luaL_optnumber(L, 3, 1);
    int code = weir__inject_arm(system_of(L, b), point, nth, times);
    return code == WEIR_OK ? 0 : raise_code(L, code, "no injection point '%s'", point);
}

/* core.closing(): the state closes; from now on nothing waits or sends in it. */
static int system_closing(lua_State *L) {
    binding_of(L)->closed = true;
    return 0;
}

static int binding_close(lua_State *L) {
    binding *b = lua_touserdata(L, 1);
    b->closed = true;
    forget_errors();
    if (b->attached) {
        detach(b);
        return 0;
    }
    system_close(b);
    pthread_mutex_destroy(&b->tracing);
    return 0;
}

void open_system(lua_State *L, binding *b) {
    static const luaL_Reg functions[] = {{"register", register_value}, {"system", system_new},    {"shutdown", system_shutdown},
                                         {"closing", system_closing},  {"run", system_run},       {"quit", system_quit},
                                         {"stop_all", system_stop},    {"made", system_made},     {"now", system_now},
                                         {"stats", system_stats},      {"inject", system_inject}, {NULL, NULL}};
    binding_register(L, b, functions);
    lua_pushstring(L, WEIR_VERSION);
    lua_setfield(L, -2, "version");
    lua_pushlightuserdata(L, NULL);
    lua_setfield(L, -2, "null");
    lua_pushlightuserdata(L, b);
    lua_setfield(L, -2, "token");
}

/* The binding lives in the registry, beside a table of values that the Lua half registers. */
static binding *binding_new(lua_State *L) {
    binding *b = lua_newuserdata(L, sizeof *b);
    memset(b, 0, sizeof *b);
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, binding_close);
    lua_setfield(L, -2, "__gc");
    lua_setmetatable(L, -2);
    lua_pushlightuserdata(L, (void *)&key);
    lua_newtable(L);
    lua_pushvalue(L, -3);
    lua_setfield(L, -2, "binding");
    b->thread = pthread_self();
    b->exit_code = -1;
    pthread_mutex_init(&b->tracing, NULL);
    b->aux = lua_newthread(L);
    lua_setfield(L, -2, "aux");
    lua_rawset(L, LUA_REGISTRYINDEX);
    lua_pop(L, 1);
    return b;
}

int luaopen_weir_core(lua_State *L);

WEIR_API int luaopen_weir_core(lua_State *L) {
    binding *b = binding_new(L);
    if (!attach(L, b))
        return luaL_error(L, "no memory for weir's binding");
    lua_newtable(L);
    open_system(L, b);
    open_error(L, b);
    open_yield(L, b);
    open_address(L, b);
    open_actor(L, b);
    open_call(L, b);
    open_await(L, b);
    open_guard(L, b);
    open_watchdog(L, b);
    open_loop(L, b);
    open_names(L, b);
    open_supervise(L, b);
    open_space(L, b);
    open_dead(L, b);
    open_message(L, b);
    open_buffer(L, b);
    open_json(L, b);
    open_unicode(L, b);
    open_inspect(L, b);
    open_terminal(L, b);
    open_io(L, b);
    open_statistics(L, b);
    open_file(L, b);
    open_convert(L, b);
    open_source(L, b);
    open_template(L, b);
    open_model(L, b);
    open_bench(L, b);
    return 1;
}
