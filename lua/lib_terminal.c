/* lib_terminal.c: what a program in a terminal needs: lines that a signal may break off, whether a descriptor is a terminal. Knows no actors. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "binding.h"

/* core.is_terminal(descriptor) */
static int is_terminal(lua_State *L) {
    lua_pushboolean(L, isatty((int)luaL_checkinteger(L, 1)));
    return 1;
}

/* Waits for a byte of standard input; false when Ctrl-C came, also if it came just before: the signal is held off between the look and the wait. */
static bool wait_input(binding *b) {
    sigset_t interrupt, before;
    struct pollfd input = {STDIN_FILENO, POLLIN, 0};
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    pthread_sigmask(SIG_BLOCK, &interrupt, &before);
    bool calm = !atomic_load(&b->interrupted) && (ppoll(&input, 1, NULL, &before) >= 0 || errno != EINTR);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return calm;
}

/* core.read_line(): a line of standard input without its end; nil, "end" at its end; nil, "interrupted" when Ctrl-C came. Reads byte by byte: what
 * follows the line stays for other readers. */
static int read_line(lua_State *L) {
    binding *b = binding_of(L);
    luaL_Buffer line;
    luaL_buffinit(L, &line);
    for (size_t n = 0;; n++) {
        char c;
        bool calm = wait_input(b);
        ssize_t got = calm ? read(STDIN_FILENO, &c, 1) : -1;
        if (got == 1 && c != '\n') {
            luaL_addchar(&line, c);
            continue;
        }
        if (got == 1 || (got == 0 && n > 0)) {
            luaL_pushresult(&line);
            return 1;
        }
        lua_pushnil(L);
        lua_pushstring(L, !calm || (got < 0 && errno == EINTR) ? "interrupted" : "end");
        return 2;
    }
}

/* core.pid() */
static int process_id(lua_State *L) {
    lua_pushinteger(L, getpid());
    return 1;
}

void open_terminal(lua_State *L, binding *b) {
    static const luaL_Reg functions[] = {{"is_terminal", is_terminal}, {"read_line", read_line}, {"pid", process_id}, {NULL, NULL}};
    binding_register(L, b, functions);
}
