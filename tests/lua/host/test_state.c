/* test_state.c: a Lua state in a host's hands: interrupts from other threads, memory that runs out at any allocation, ends while others work. The state's program
 * is this one, as weir_core brings no LuaJIT of its own. */
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

typedef int stop_fn(void *data);

static void paths(lua_State *L) {
    lua_getglobal(L, "package");
    lua_pushliteral(L, WEIR_TEST_BUILD "/share/lua/5.1/?.lua");
    lua_setfield(L, -2, "path");
    lua_pushliteral(L, WEIR_TEST_BUILD "/lib/lua/5.1/?.so");
    lua_setfield(L, -2, "cpath");
    lua_pop(L, 1);
}

static lua_State *state_new(void) {
    lua_State *L = luaL_newstate();
    assert_non_null(L);
    luaL_openlibs(L);
    paths(L);
    return L;
}

static void run(lua_State *L, const char *code) {
    if (luaL_dostring(L, code) == 0)
        return;
    lua_getglobal(L, "tostring");
    lua_insert(L, -2);
    lua_call(L, 1, 1);
    fail_msg("%s", lua_tostring(L, -1));
}

/* ---- interrupts ---- */

enum { POKES = 100000, SEEN = 10 };

typedef struct poker {
    stop_fn *fn;
    void *data;
    _Atomic unsigned seen; /* interrupts that broke something off */
    _Atomic bool over;
} poker;

/* At least POKES, and as many as it takes for SEEN to be noticed. */
static void *poke(void *data) {
    poker *p = data;
    for (unsigned i = 0; i < POKES || atomic_load(&p->seen) < SEEN; i++) {
        p->fn(p->data);
        if (i % 64 == 0)
            sched_yield();
    }
    atomic_store(&p->over, true);
    return NULL;
}

static void poker_find(lua_State *L, poker *p) {
    run(L, "return require 'weir.core'.interrupter()");
    void *fn = lua_touserdata(L, -2);
    memcpy(&p->fn, &fn, sizeof p->fn);
    p->data = lua_touserdata(L, -1);
    lua_pop(L, 2);
}

/* Runs code again and again while another thread interrupts; it returns whether it was broken off, or raises ECANCELLED. */
static void interrupted(lua_State *L, const char *code) {
    poker p = {.seen = 0};
    poker_find(L, &p);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, poke, &p), 0);
    while (!atomic_load(&p.over)) {
        assert_int_equal(luaL_loadstring(L, code), 0);
        bool raised = lua_pcall(L, 0, 1, 0) != 0;
        if (raised) {
            lua_getfield(L, -1, "text");
            assert_string_equal(lua_tostring(L, -1), "interrupted");
        }
        atomic_fetch_add(&p.seen, raised || lua_toboolean(L, -1));
        lua_settop(L, 0);
    }
    pthread_join(thread, NULL);
    while (luaL_dostring(L, "require 'weir.core'.calm()") != 0)
        lua_settop(L, 0);
    lua_settop(L, 0);
}

static void lua_L21_interrupts_from_another_thread_during_loops_and_waits(void **unused) {
    (void)unused;
    lua_State *L = state_new();
    run(L, "weir = require 'weir' weir.guard {limit = 0} sum = 0");
    interrupted(L, "return not weir.guarded(function() for i = 1, 3000 do sum = sum + i % 3 end weir.sleep(0.00001) end)");
    run(L, "local a = weir.spawn(function() weir.receive():reply 'well' end) assert(weir.call(a, 'x') == 'well')");
    lua_close(L);
}

static void shutdown_S11_an_interrupt_from_another_thread_while_the_system_goes(void **unused) {
    (void)unused;
    lua_State *L = state_new();
    run(L, "weir = require 'weir' weir.guard {limit = 0}");
    interrupted(L, "local ok = weir.guarded(function() weir.spawn(function() weir.receive() end) weir.sleep(0) end)\n"
                   "local closed = weir.guarded(weir.shutdown)\n"
                   "return not (ok and closed)");
    lua_close(L);
}

/* ---- memory ---- */

typedef struct purse {
    long left;   /* allocations that still succeed; < 0: all */
    long asked;  /* allocations since it was set */
    size_t held; /* bytes */
} purse;

static void *take(void *data, void *p, size_t old, size_t size) {
    purse *u = data;
    if (!size) {
        u->held -= p ? old : 0;
        free(p);
        return NULL;
    }
    if (size > (p ? old : 0)) {
        u->asked++;
        if (u->left == 0)
            return NULL;
        u->left -= u->left > 0;
    }
    void *q = realloc(p, size);
    if (q)
        u->held += size - (p ? old : 0);
    return q;
}

static const char work[] = "local peer = weir.spawn(function() while true do local m = weir.receive() m:reply(m:args()) end end)\n"
                           "weir.monitor(peer)\n"
                           "local t = weir.call(peer, 'q', 'text', {1, {a = true}}, ('long'):rep(500))\n"
                           "local p = weir.start(peer, 'q', 1, 2, 3)\n"
                           "assert(weir.await(p) == 1)\n"
                           "weir.sleep(0.00001)\n"
                           "pcall(weir.call, 4242, 'x')\n"
                           "weir.kill(peer)\n"
                           "assert(weir.receive().verb == 'down')\n"
                           "assert(t == 'text')";

/* The chunk, with memory for n allocations; how many it asked for. It ends well or with a proper error, and the state works afterwards. */
static long starve(lua_State *L, purse *u, long n, bool *failed) {
    lua_settop(L, 0);
    assert_int_equal(luaL_loadstring(L, work), 0);
    u->asked = 0;
    u->left = n;
    int status = lua_pcall(L, 0, 0, 0);
    u->left = -1;
    *failed = status != 0;
    if (status != 0 && status != LUA_ERRMEM) {
        lua_getglobal(L, "tostring");
        lua_insert(L, -2);
        assert_int_equal(lua_pcall(L, 1, 1, 0), 0);
        assert_non_null(lua_tostring(L, -1));
    }
    lua_settop(L, 0);
    return u->asked;
}

static void lua_L35_every_allocation_of_the_state_may_fail(void **unused) {
    (void)unused;
    purse u = {.left = -1};
    lua_State *L = lua_newstate(take, &u);
    if (!L)
        skip();
    luaL_openlibs(L);
    paths(L);
    run(L, "jit.off() weir = require 'weir' weir.uncaught = function() end");
    bool failed = false;
    starve(L, &u, -1, &failed);
    assert_false(failed);
    unsigned failures = 0;
    for (long n = 0;; n++) {
        long asked = starve(L, &u, n, &failed);
        failures += failed;
        run(L,
            "weir.run() local a = weir.spawn(function() weir.receive():reply 'well' end) assert(weir.call(a, 'x') == 'well') weir.run()");
        if (!failed && asked <= n)
            break;
        assert_true(n < 5000);
    }
    assert_true(failures > 20);
    run(L, "weir.shutdown()");
    lua_close(L);
    assert_int_equal(u.held, 0);
}

/* The compiler's memory too. */
static void lua_L35_with_the_compiler_and_the_collector_at_work(void **unused) {
    (void)unused;
    purse u = {.left = -1};
    lua_State *L = lua_newstate(take, &u);
    if (!L)
        skip();
    luaL_openlibs(L);
    paths(L);
    run(L, "require 'jit.opt'.start 'hotloop=2' weir = require 'weir' weir.uncaught = function() end collectgarbage('setpause', 10)");
    bool failed;
    for (long n = 0; n < 400; n += 3) {
        starve(L, &u, n, &failed);
        run(L, "weir.run() local a = weir.spawn(function() weir.receive():reply 'well' end) assert(weir.call(a, 'x') == 'well')");
    }
    run(L, "weir.shutdown()");
    lua_close(L);
    assert_int_equal(u.held, 0);
}

/* ---- ends ---- */

static void shutdown_S1_fifty_states_with_work_under_way(void **unused) {
    (void)unused;
    for (int i = 0; i < 50; i++) {
        lua_State *L = state_new();
        run(L, "local weir = require 'weir'\n"
               "local a = weir.spawn(function() while true do weir.receive() weir.sleep(10) end end)\n"
               "for i = 1, 5 do weir.send(a, 'x') end\n"
               "kept = {weir.start(a, 'y')}\n"
               "weir.sleep(0)");
        lua_close(L);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lua_L21_interrupts_from_another_thread_during_loops_and_waits),
        cmocka_unit_test(shutdown_S11_an_interrupt_from_another_thread_while_the_system_goes),
        cmocka_unit_test(lua_L35_every_allocation_of_the_state_may_fail),
        cmocka_unit_test(lua_L35_with_the_compiler_and_the_collector_at_work),
        cmocka_unit_test(shutdown_S1_fifty_states_with_work_under_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
