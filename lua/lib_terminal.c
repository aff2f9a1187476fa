/* lib_terminal.c: a terminal as the prompt needs it: keys one by one, how large it is, lines without an editor; it is left as it was found, however the program
 * ends. Knows no actors. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "binding.h"

/* Of the process, as the terminal is: how it was found, and whether it is raw now. */
static struct termios found;
static int raw_fd = -1;

/* core.is_terminal(descriptor) */
static int is_terminal(lua_State *L) {
    lua_pushboolean(L, isatty((int)luaL_checkinteger(L, 1)));
    return 1;
}

/* Whether the terminal marks what is pasted. */
static void bracket_paste(bool on) {
    ssize_t ignored = write(STDOUT_FILENO, on ? "\33[?2004h" : "\33[?2004l", 8);
    (void)ignored;
}

static void restore(void) {
    if (raw_fd < 0)
        return;
    bracket_paste(false);
    tcsetattr(raw_fd, TCSADRAIN, &found);
    raw_fd = -1;
}

/* Keys come at once and unchanged, Ctrl-C alone is still a signal: it has to reach code that does not read. */
static void make_raw(struct termios *t) {
    t->c_iflag &= ~(tcflag_t)(ICRNL | INLCR | IGNCR | IXON | ISTRIP | BRKINT);
    t->c_lflag &= ~(tcflag_t)(ECHO | ICANON | IEXTEN);
    t->c_lflag |= ISIG;
    t->c_cc[VQUIT] = t->c_cc[VSUSP] = _POSIX_VDISABLE;
    t->c_cc[VMIN] = 1;
    t->c_cc[VTIME] = 0;
}

/* core.raw_mode(descriptor): true, also when it is raw already; false if that is no terminal. core.raw_mode(): as it was found. */
static int raw_mode(lua_State *L) {
    static bool watched;
    restore();
    if (lua_isnoneornil(L, 1))
        return 0;
    int fd = (int)luaL_checkinteger(L, 1);
    bool ok = tcgetattr(fd, &found) == 0;
    if (ok) {
        struct termios raw = found;
        make_raw(&raw);
        if (!watched)
            watched = atexit(restore) == 0;
        raw_fd = fd;
        ok = tcsetattr(fd, TCSADRAIN, &raw) == 0;
        bracket_paste(ok);
    }
    lua_pushboolean(L, ok);
    return 1;
}

/* core.raw_again(): after the process was stopped and goes on, whoever watched it then may have changed the terminal. */
static int raw_again(lua_State *L) {
    (void)L;
    struct termios raw = found;
    make_raw(&raw);
    if (raw_fd >= 0) {
        tcsetattr(raw_fd, TCSADRAIN, &raw);
        bracket_paste(true);
    }
    return 0;
}

/* core.window_size(descriptor) -> columns, rows; 80 and 24 if the terminal does not say */
static int window_size(lua_State *L) {
    struct winsize size = {0};
    bool known = ioctl((int)luaL_checkinteger(L, 1), TIOCGWINSZ, &size) == 0;
    lua_pushinteger(L, known && size.ws_col ? size.ws_col : 80);
    lua_pushinteger(L, known && size.ws_row ? size.ws_row : 24);
    return 2;
}

/* core.suspend(): stops the process as Ctrl-Z does, the terminal as it was found; returns when it goes on. */
static int suspend(lua_State *L) {
    (void)L;
    int fd = raw_fd;
    restore();
    kill(0, SIGTSTP);
    raw_fd = fd;
    return raw_again(L);
}

static bool input_there(void) {
    struct pollfd input = {STDIN_FILENO, POLLIN, 0};
    return poll(&input, 1, 0) > 0;
}

/* core.read_line(): what is there of a line of standard input, and what that is: "line" (without its end), "end" (there is no more), "more" (the rest is not
 * there yet: wait for it), or why it cannot be read. Reads byte by byte: what follows the line stays for other readers. */
static int read_line(lua_State *L) {
    luaL_Buffer line;
    const char *what = "more";
    luaL_buffinit(L, &line);
    while (input_there()) {
        char c;
        ssize_t got = read(STDIN_FILENO, &c, 1);
        if (got == 1 && c != '\n') {
            luaL_addchar(&line, c);
            continue;
        }
        what = got == 1 ? "line" : got == 0 ? "end" : errno == EINTR || errno == EAGAIN ? "more" : "failed";
        break;
    }
    luaL_pushresult(&line);
    lua_pushstring(L, what);
    return 2;
}

/* Makes a wait of the main chunk return: something else than what it waits for has happened. Async-signal-safe. */
static int wake(void *data) {
    binding *b = data;
    atomic_fetch_add(&b->visitors, 1);
    weir_system *s = b->system;
    atomic_store(&b->woken, true);
    if (s)
        weir_system_quit(s);
    atomic_fetch_sub(&b->visitors, 1);
    return 0;
}

/* core.waker() -> function, argument: as core.interrupter, for signals that tell of the terminal. */
static int waker(lua_State *L) {
    int (*fn)(void *data) = wake;
    void *p;
    memcpy(&p, &fn, sizeof p);
    lua_pushlightuserdata(L, p);
    lua_pushlightuserdata(L, binding_of(L));
    return 2;
}

/* core.pid() */
static int process_id(lua_State *L) {
    lua_pushinteger(L, getpid());
    return 1;
}

void open_terminal(lua_State *L, binding *b) {
    static const luaL_Reg functions[] = {{"is_terminal", is_terminal},
                                         {"raw_mode", raw_mode},
                                         {"raw_again", raw_again},
                                         {"window_size", window_size},
                                         {"suspend", suspend},
                                         {"read_line", read_line},
                                         {"waker", waker},
                                         {"pid", process_id},
                                         {NULL, NULL}};
    binding_register(L, b, functions);
}
