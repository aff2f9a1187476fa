/* main.c: the program weir: a Lua state whose modules lie beside the program (../share/lua/5.1 and ../lib/lua/5.1), Ctrl-C, SIGTERM, and weir.cli, which does the
 * rest. Knows nothing of weir but that module's name. */
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int stop_fn(void *data); /* 1: asked for before, and nobody has noticed */

/* What the signal handler needs: a program has one of each. */
static pthread_t the_thread;
static stop_fn *_Atomic interrupt, *_Atomic terminate, *_Atomic wake;
static void *stop_data;
static atomic_bool attentive, changed; /* somebody waits for keys of the terminal; the terminal has changed and nobody has looked */

/* Ctrl-C breaks off what the main chunk does, SIGTERM the whole program; a second one before anybody took notice of the first ends the process. */
static void on_signal(int number) {
    if (!pthread_equal(pthread_self(), the_thread)) {
        pthread_kill(the_thread, number);
        return;
    }
    stop_fn *fn = number == SIGINT ? atomic_load(&interrupt) : atomic_load(&terminate);
    if (!fn || fn(stop_data))
        _exit(128 + number);
}

/* The terminal has another size, the process goes on after it was stopped: whoever edits on the terminal has to look. */
static void on_change(int number) {
    stop_fn *fn = atomic_load(&wake);
    if (!pthread_equal(pthread_self(), the_thread)) {
        pthread_kill(the_thread, number);
        return;
    }
    atomic_store(&changed, true);
    if (atomic_load(&attentive) && fn)
        fn(stop_data);
}

static stop_fn *to_function(lua_State *L, int index) {
    void *p = lua_touserdata(L, index);
    stop_fn *fn;
    memcpy(&fn, &p, sizeof fn);
    return fn;
}

/* program.interrupts(interrupt, terminate, argument): whom Ctrl-C and SIGTERM tell; nil: they end the process. */
static int set_interrupts(lua_State *L) {
    atomic_store(&interrupt, NULL);
    atomic_store(&terminate, NULL);
    stop_data = lua_touserdata(L, 3);
    atomic_store(&interrupt, to_function(L, 1));
    atomic_store(&terminate, to_function(L, 2));
    return 0;
}

static void watch(int number, void (*handler)(int number)) {
    struct sigaction action = {0};
    action.sa_handler = handler;
    sigemptyset(&action.sa_mask);
    sigaddset(&action.sa_mask, SIGINT);
    sigaddset(&action.sa_mask, SIGTERM);
    sigaddset(&action.sa_mask, SIGHUP);
    sigaction(number, &action, NULL);
}

/* program.attend(function): what is told of changes of the terminal, while program.attentive(true) holds; that returns whether there was one since it was last
 * called. From now on the end of the terminal is as SIGTERM. */
static int attend(lua_State *L) {
    struct sigaction before;
    atomic_store(&wake, to_function(L, 1));
    watch(SIGWINCH, on_change);
    watch(SIGCONT, on_change);
    if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
        watch(SIGHUP, on_signal);
    return 0;
}

static int set_attentive(lua_State *L) {
    atomic_store(&attentive, lua_toboolean(L, 1));
    lua_pushboolean(L, atomic_exchange(&changed, false));
    return 1;
}

static void catch_signals(void) {
    the_thread = pthread_self();
    watch(SIGINT, on_signal);
    watch(SIGTERM, on_signal);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_IGN); /* writing beyond a limit is an error like any other */
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
    static const luaL_Reg functions[] = {{"interrupts", set_interrupts}, {"attend", attend}, {"attentive", set_attentive}, {NULL, NULL}};
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
    catch_signals();
    lua_pushcfunction(L, start);
    lua_pushlightuserdata(L, argv);
    int code = 1;
    if (lua_pcall(L, 1, 1, 0) == 0)
        code = (int)lua_tointeger(L, -1);
    else
        fprintf(stderr, "weir: %s\n", lua_tostring(L, -1) ? lua_tostring(L, -1) : "error");
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGWINCH, SIG_IGN);
    signal(SIGCONT, SIG_DFL);
    lua_close(L);
    if (fflush(stdout) != 0)
        code = code ? code : 1;
    return code;
}
