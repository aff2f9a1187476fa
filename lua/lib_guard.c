/* lib_guard.c: stops Lua code that does not pause: on an interrupt (Ctrl-C, or any thread), and in guard mode when one stretch runs for too long. Other
 * threads and signal handlers only set a flag; a count hook on the state's own thread looks at it. Knows nothing of what the code does. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "binding.h"

/* VM instructions between two looks: some microseconds of interpreted code. */
enum { LOOK_STEPS = 1000 };
/* ns that an actor may go on after an interrupt, which is meant for the main chunk that waits for it. */
#define GRACE INT64_C(100000000)

static void on_count(lua_State *L, lua_Debug *frame);

static int64_t clock_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static bool in_loop(const binding *b) {
    return b->system && (b->attached || weir__running(b->system));
}

/* ---- stretches ---- */

static void look_again(binding *b) {
    if (atomic_load_explicit(&b->guard.on, memory_order_relaxed))
        lua_sethook(b->aux, on_count, LUA_MASKCOUNT, LOOK_STEPS);
}

void stretch_begin(binding *b) {
    guard *g = &b->guard;
    if (!atomic_load_explicit(&g->on, memory_order_relaxed))
        return;
    g->since = clock_now();
    g->told = false;
    if (lua_gethook(b->aux) != on_count)
        look_again(b);
}

weir_error *stretch_end(binding *b) {
    weir_error *e = b->guard.ending;
    if (!e)
        return NULL;
    b->guard.ending = NULL;
    lua_sethook(b->aux, NULL, 0, 0);
    look_again(b);
    return e;
}

/* ---- ending one ---- */

/* The traceback of the running coroutine and of those that resumed it; left on the stack. */
static const char *trace_back(lua_State *L) {
    int top = lua_gettop(L);
    luaL_traceback(L, L, NULL, 0);
    for (lua_State *co = coroutine_parent(L, L); co && lua_gettop(L) < top + 8; co = coroutine_parent(L, co)) {
        lua_pushliteral(L, "\n");
        luaL_traceback(L, co, NULL, 0);
    }
    lua_concat(L, lua_gettop(L) - top);
    return lua_tostring(L, -1);
}

static const char *verb_of(const binding *b) {
    const task *t = b->current;
    const char *verb = t && t->verb ? weir_verb_name(b->system, t->verb) : NULL;
    return verb ? verb : "start";
}

/* 'actor 5 (worker) ran "verb"', or 'the main chunk ran'. */
static void who(const binding *b, char *text, size_t size) {
    const task *t = b->current;
    if (t && t->co)
        snprintf(text, size, "actor %.0f (%s) ran \"%s\"", (double)t->address, t->self ? weir_actor_name(t->self) : "?", verb_of(b));
    else
        snprintf(text, size, "the main chunk ran");
}

/* Leaves the running code for good: what can be suspended is, and is never resumed; across C functions that cannot, an error does it, again at every
 * instruction until nobody is left who could catch it. Does not return. */
static void leave(lua_State *L, binding *b) {
    lua_sethook(L, on_count, LUA_MASKCOUNT, 1);
    if ((b->current ? b->current->co != NULL : b->guard.chunk != NULL) && lua_isyieldable(L)) {
        lua_yield(L, 0);
        return;
    }
    push_error(L, b->guard.ending);
    lua_error(L);
}

/* The traceback stands behind the text (lib_error.c takes it apart again). */
static void end_stretch(lua_State *L, binding *b, int code, const char *text) {
    b->guard.ending = weir_error_new(code, NULL, NULL, "%s\n%s", text, trace_back(L));
    lua_pop(L, 1);
    leave(L, b);
}

/* ---- too long ---- */

typedef struct slowness {
    const task *task;
    const char *verb, *traceback;
    double elapsed; /* seconds */
} slowness;

static int tell_slow(lua_State *L) {
    const slowness *s = lua_touserdata(L, 1);
    binding_field(L, "slow");
    if (s->task) {
        push_address(L, s->task->address);
        lua_pushstring(L, s->verb);
    } else {
        lua_pushnil(L);
        lua_pushnil(L);
    }
    lua_pushnumber(L, s->elapsed);
    lua_pushstring(L, s->traceback);
    lua_call(L, 4, 0);
    return 0;
}

static void too_long(lua_State *L, binding *b, int64_t elapsed) {
    guard *g = &b->guard;
    char what[200], text[320];
    if (!g->told) {
        g->told = true;
        slowness s = {b->current && b->current->co ? b->current : NULL, verb_of(b), trace_back(L), (double)elapsed / 1e9};
        protect(b, tell_slow, &s);
        lua_pop(L, 1);
    }
    if (!g->kill)
        return;
    who(b, what, sizeof what);
    snprintf(text, sizeof text, "%s for %.3f s without a pause; it may take %.3f s (weir.guard)", what, (double)elapsed / 1e9,
             (double)g->limit / 1e9);
    end_stretch(L, b, WEIR_EKILLED, text);
}

/* ---- interrupts ---- */

static const char *interrupt_text(const binding *b) {
    return atomic_load(&b->terminated) ? "terminated" : "interrupted";
}

bool interrupt_waits(binding *b) {
    return atomic_load(&b->interrupted) || (atomic_load(&b->terminated) && !b->last_words);
}

/* Whether code that is broken off may not catch that. Only core.guarded can end it for good. */
static bool stubborn(binding *b) {
    return b->guard.chunk && (atomic_load(&b->guard.on) || (atomic_load(&b->terminated) && !b->last_words));
}

int interrupt_answer(binding *b, weir_error **error) {
    b->guard.noticed = 0;
    if (!interrupt_waits(b))
        return WEIR_OK;
    atomic_store(&b->interrupted, CALM);
    b->answered = true;
    int code = weir_fail(error, WEIR_ECANCELLED, "%s", interrupt_text(b));
    if (stubborn(b)) { /* code that catches this goes no further than its next instruction */
        weir_error_free(b->guard.ending);
        b->guard.ending = weir_error_new(WEIR_ECANCELLED, NULL, NULL, "%s", interrupt_text(b));
        lua_sethook(b->aux, on_count, LUA_MASKCOUNT, 1);
    }
    return code;
}

/* The main chunk's code is broken off. */
static void break_off(lua_State *L, binding *b) {
    atomic_store(&b->interrupted, CALM);
    b->answered = true;
    if (stubborn(b)) {
        end_stretch(L, b, WEIR_ECANCELLED, interrupt_text(b));
        return;
    }
    lua_sethook(L, NULL, 0, 0);
    look_again(b);
    raise_code(L, WEIR_ECANCELLED, "%s", interrupt_text(b));
}

/* An interrupt that finds the loop running ends the main chunk's wait, after this turn. An actor that does not end its turn is ended. */
static void hurry(lua_State *L, binding *b) {
    int64_t now = clock_now();
    if (!b->guard.noticed)
        b->guard.noticed = now;
    else if (now - b->guard.noticed > GRACE)
        end_stretch(L, b, WEIR_ECANCELLED, interrupt_text(b));
}

static void on_count(lua_State *L, lua_Debug *frame) {
    (void)frame;
    binding *b = binding_find(L);
    guard *g = &b->guard;
    if (!lua_checkstack(L, LUA_MINSTACK))
        return;
    if (g->ending) {
        leave(L, b);
        return;
    }
    bool interrupted = interrupt_waits(b);
    if (interrupted && in_loop(b))
        hurry(L, b);
    else if (interrupted)
        break_off(L, b);
    else if (!atomic_load(&g->on))
        lua_sethook(L, NULL, 0, 0);
    if (atomic_load(&g->on) && g->limit) {
        int64_t elapsed = clock_now() - g->since;
        if (elapsed > g->limit)
            too_long(L, b, elapsed);
    }
}

/* Asks for the main chunk to be broken off; 1: it was asked before and nobody has noticed yet. Any thread; async-signal-safe. Without guard mode the state's own
 * thread sets the hook, which Lua allows in a signal handler; from another thread waits end, and code that does not wait goes on. */
static int ask(binding *b, int what) {
    atomic_fetch_add(&b->visitors, 1);
    int before = atomic_exchange(&b->interrupted, what);
    weir_system *s = b->system;
    if (s)
        weir_system_quit(s);
    atomic_fetch_sub(&b->visitors, 1);
    bool guarded = atomic_load(&b->guard.on);
    if (!guarded && pthread_equal(pthread_self(), b->thread))
        lua_sethook(b->aux, on_count, LUA_MASKCOUNT, LOOK_STEPS);
    return before && !guarded;
}

static int interrupt(void *data) {
    return ask(data, INTERRUPT);
}

static int terminate(void *data) {
    binding *b = data;
    atomic_store(&b->terminated, true);
    return ask(b, TERMINATE);
}

void terminate_program(binding *b) {
    terminate(b);
}

static int push_function(lua_State *L, int (*fn)(void *data)) {
    void *p;
    memcpy(&p, &fn, sizeof p);
    lua_pushlightuserdata(L, p);
    lua_pushlightuserdata(L, binding_of(L));
    return 2;
}

/* core.interrupter() -> function, argument: what a signal handler, or any thread of the host's, calls while the state lives: int fn(void *argument). */
static int interrupter(lua_State *L) {
    return push_function(L, interrupt);
}

/* core.terminator() -> function, argument: the same for the end of the program: from then on every wait of main chunks is broken off. */
static int terminator(lua_State *L) {
    return push_function(L, terminate);
}

/* core.interrupted() -> whether an interrupt is unanswered; forgets it. */
static int interrupted(lua_State *L) {
    binding *b = binding_of(L);
    bool was = atomic_exchange(&b->interrupted, CALM) != CALM;
    lua_pushboolean(L, was);
    return 1;
}

/* core.calm() -> whether an interrupt came since the last time, answered or not; it counts as answered then. */
static int calm(lua_State *L) {
    binding *b = binding_of(L);
    bool unanswered = atomic_exchange(&b->interrupted, CALM) != CALM, was = unanswered || b->answered;
    b->answered = false;
    lua_pushboolean(L, was);
    return 1;
}

/* core.terminated() -> whether the end of the program was asked for. core.terminated(true): as if it had been. */
static int terminated(lua_State *L) {
    binding *b = binding_of(L);
    if (lua_toboolean(L, 1))
        terminate(b);
    lua_pushboolean(L, atomic_load(&b->terminated));
    return 1;
}

/* core.last_words(): the program ends: waits are possible again. */
static int last_words(lua_State *L) {
    binding *b = binding_of(L);
    b->last_words = true;
    atomic_store(&b->interrupted, CALM);
    return 0;
}

/* ---- functions ---- */

/* core.guard(limit, kill): guard mode on, limit in seconds (0: no limit, interrupts only); core.guard(nil): off. The compiler is the caller's to switch. */
static int set_guard(lua_State *L) {
    binding *b = binding_of(L);
    guard *g = &b->guard;
    if (lua_isnoneornil(L, 1)) {
        atomic_store(&g->on, false);
        lua_sethook(L, NULL, 0, 0);
        return 0;
    }
    g->limit = check_seconds(L, 1);
    g->kill = lua_toboolean(L, 2);
    g->since = clock_now();
    g->told = false;
    atomic_store(&g->on, true);
    look_again(b);
    return 0;
}

/* The outcome of a chunk's coroutine: true and its results; or false, the error and, if there is one to trace back, the coroutine. */
static int chunk_over(lua_State *L, lua_State *co, int status, weir_error *stopped) {
    if (stopped) {
        lua_pushboolean(L, 0);
        push_taken(L, stopped);
        return 2;
    }
    if (status == 0) {
        int n = lua_gettop(co);
        luaL_checkstack(L, n + 1, "too many results");
        lua_pushboolean(L, 1);
        lua_xmove(co, L, n);
        return n + 1;
    }
    lua_pushboolean(L, 0);
    if (status == LUA_YIELD)
        lua_pushliteral(L, "coroutine.yield outside of a coroutine: nothing resumes it");
    else
        lua_xmove(co, L, 1);
    lua_pushvalue(L, 1);
    return 3;
}

/* core.guarded(fn, ...): as pcall, for a whole evaluation of a main chunk: here ends what an interrupt or the guard ends, and no pcall inside holds it up. */
static int guarded(lua_State *L) {
    binding *b = binding_of(L);
    luaL_checktype(L, 1, LUA_TFUNCTION);
    if (b->current || in_loop(b))
        return raise_code(L, WEIR_EBUSY, "weir.guarded is for main chunks; an actor is guarded as it is");
    int n = lua_gettop(L);
    lua_State *co = lua_newthread(L);
    luaL_checkstack(co, n, "too many arguments");
    lua_insert(L, 1); /* stays at 1 while it runs */
    lua_xmove(L, co, n);
    lua_State *before = b->guard.chunk;
    b->guard.chunk = co;
    stretch_begin(b);
    int status = lua_resume(co, n - 1);
    weir_error *stopped = stretch_end(b);
    b->guard.chunk = before;
    stretch_begin(b);
    return chunk_over(L, co, status, stopped);
}

void open_guard(lua_State *L, binding *b) {
    static const luaL_Reg functions[] = {
        {"interrupter", interrupter}, {"terminator", terminator}, {"interrupted", interrupted}, {"calm", calm}, {"terminated", terminated},
        {"last_words", last_words},   {"guard", set_guard},       {"guarded", guarded},         {NULL, NULL}};
    binding_register(L, b, functions);
}
