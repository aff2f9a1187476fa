/* main.c: the program weir: a Lua state whose modules lie beside the program (../share/lua/5.1 and ../lib/lua/5.1), Ctrl-C, and weir.cli, which does the
 * rest. Knows nothing of weir but that module's name. */
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    INTERRUPTED_STEPS = 1000000
}; /* VM instructions that Lua code may still run after Ctrl-C before it is stopped: an answer to the signal's waiter goes first */

/* What the signal handler needs: a program has one of each. */
static lua_State *the_state;
static pthread_t the_thread;
static void (*_Atomic interrupt)(void *data);
static void *interrupt_data;
static _Atomic int pending, stopped; /* Ctrl-C came; a hook answered it */

static void stop_hook(lua_State *L, lua_Debug *frame) {
    (void)frame;
    lua_sethook(L, NULL, 0, 0);
    if (atomic_exchange(&pending, 0)) {
        atomic_store(&stopped, 1);
        luaL_error(L, "interrupted");
    }
}

/* Ctrl-C ends the main chunk's wait; Lua code that goes on is stopped by a hook; a second one before either took notice ends the program. */
static void on_signal(int number) {
    if (!pthread_equal(pthread_self(), the_thread)) {
        pthread_kill(the_thread, number);
        return;
    }
    if (atomic_exchange(&pending, 1))
        _exit(130);
    void (*fn)(void *) = atomic_load(&interrupt);
    if (fn)
        fn(interrupt_data);
    lua_sethook(the_state, stop_hook, LUA_MASKCOUNT, INTERRUPTED_STEPS);
}

/* program.interrupts(function, argument): whom Ctrl-C tells; program.calm(): whether Ctrl-C came; it counts as answered then. */
static int set_interrupt(lua_State *L) {
    void *p = lua_touserdata(L, 1);
    void (*fn)(void *);
    memcpy(&fn, &p, sizeof fn);
    atomic_store(&interrupt, NULL);
    interrupt_data = lua_touserdata(L, 2);
    atomic_store(&interrupt, fn);
    return 0;
}

static int calm(lua_State *L) {
    lua_sethook(L, NULL, 0, 0);
    int was = atomic_exchange(&pending, 0) | atomic_exchange(&stopped, 0);
    lua_pushboolean(L, was);
    return 1;
}

static void catch_signals(void) {
    struct sigaction action = {0};
    action.sa_handler = on_signal;
    sigemptyset(&action.sa_mask);
    the_thread = pthread_self();
    sigaction(SIGINT, &action, NULL);
    signal(SIGPIPE, SIG_DFL);
}

/* The folder above the one that the program lies in; false if /proc does not say. */
static int find_prefix(char *prefix, size_t size) {
    ssize_t n = readlink("/proc/self/exe", prefix, size - 1);
    if (n <= 0)
        return 0;
    prefix[n] = 0;
    for (int up = 0; up < 2; up++) {
        char *slash = strrchr(prefix, '/');
        if (!slash)
            return 0;
        *slash = 0;
    }
    return 1;
}

/* Puts `add` before package[field]. */
static void prepend(lua_State *L, const char *field, const char *add) {
    lua_getglobal(L, "package");
    lua_pushstring(L, add);
    lua_getfield(L, -2, field);
    lua_concat(L, 2);
    lua_setfield(L, -2, field);
    lua_pop(L, 1);
}

static int start(lua_State *L) {
    char **argv = lua_touserdata(L, 1);
    char prefix[4096];
    luaL_openlibs(L);
    if (!find_prefix(prefix, sizeof prefix))
        return luaL_error(L, "/proc/self/exe does not say where weir is");
    lua_pushfstring(L, "%s/" WEIR_LUA_SHARE "/?.lua;%s/" WEIR_LUA_SHARE "/?/init.lua;", prefix, prefix);
    prepend(L, "path", lua_tostring(L, -1));
    lua_pushfstring(L, "%s/" WEIR_LUA_LIB "/?.so;", prefix);
    prepend(L, "cpath", lua_tostring(L, -1));
    static const luaL_Reg functions[] = {{"interrupts", set_interrupt}, {"calm", calm}, {NULL, NULL}};
    lua_newtable(L);
    luaL_setfuncs(L, functions, 0);
    lua_pushstring(L, prefix);
    lua_setfield(L, -2, "prefix");
    lua_setfield(L, LUA_REGISTRYINDEX, "weir.program");
    lua_getglobal(L, "require");
    lua_pushliteral(L, "weir.cli");
    lua_call(L, 1, 1);
    lua_getfield(L, LUA_REGISTRYINDEX, "weir.program");
    lua_newtable(L);
    for (int i = 1; argv[i]; i++) {
        lua_pushstring(L, argv[i]);
        lua_rawseti(L, -2, i);
    }
    lua_call(L, 2, 1);
    return 1;
}

int main(int argc, char **argv) {
    (void)argc;
    lua_State *L = luaL_newstate();
    if (!L) {
        fprintf(stderr, "weir: no memory\n");
        return 1;
    }
    the_state = L;
    catch_signals();
    lua_pushcfunction(L, start);
    lua_pushlightuserdata(L, argv);
    int code = 1;
    if (lua_pcall(L, 1, 1, 0) == 0)
        code = (int)lua_tointeger(L, -1);
    else
        fprintf(stderr, "weir: %s\n", lua_tostring(L, -1) ? lua_tostring(L, -1) : "error");
    signal(SIGINT, SIG_IGN);
    lua_close(L);
    if (fflush(stdout) != 0)
        code = code ? code : 1;
    return code;
}
