/* lib_io.c: waiting until a descriptor can be read or written, and reading what is there. The loop sleeps meanwhile and the other actors go on. Descriptors stay
 * their owners'. Knows nothing of what is in them. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "binding.h"

void io_clear(task *t) {
    weir__io_stop(t->io);
    t->io = NULL;
}

static void on_timer(weir_actor *self, void *data, uint64_t missed) {
    task *t = data;
    (void)self, (void)missed;
    t->timer = 0;
    io_clear(t);
    task_wake(t);
}

/* Between turns: the task is woken from a turn of its own. Without memory for that the watcher stays and fires again. */
static void on_ready(weir_system *s, void *data, int events) {
    task *t = data;
    uint64_t timer;
    (void)s;
    bool broken = events & WEIR__IO_ERROR;
    if (broken) {
        t->io = NULL; /* it is stopped already */
        weir_error_free(t->error);
        t->error = weir_error_new(WEIR_EIO, NULL, NULL, "a descriptor was closed while core.wait_fd waited for it");
    }
    if (weir_timer(t->self, 0, WEIR_TIMER_ONCE, on_timer, t, &timer) != WEIR_OK && !broken)
        return;
    if (t->timer)
        weir_timer_cancel(t->self, t->timer);
    t->timer = timer;
    t->io_ready = true;
    io_clear(t);
}

static int events_of(lua_State *L, int index) {
    const char *mode = luaL_checkstring(L, index);
    if (strcmp(mode, "r") == 0)
        return WEIR__IO_READ;
    if (strcmp(mode, "w") == 0)
        return WEIR__IO_WRITE;
    return raise_code(L, WEIR_EINVAL, "a descriptor is waited for to be read ('r') or written ('w'), not '%s'", mode);
}

/* core.wait_fd(descriptor, "r" or "w" [, timeout]): waits until core.waited says what came of it. */
static int wait_fd(lua_State *L) {
    binding *b = binding_of(L);
    task *t = current(L, b);
    int fd = (int)luaL_checkinteger(L, 1), events = events_of(L, 2);
    int64_t timeout = lua_isnoneornil(L, 3) ? -1 : check_seconds(L, 3);
    weir_error *e = NULL;
    wait_check(L, b, t, "core.wait_fd");
    t->io_ready = false;
    if (weir__io_start(b->system, fd, events, on_ready, t, &t->io, &e) != WEIR_OK)
        return raise_error(L, e);
    if (timeout >= 0) {
        int code = weir_timer(t->self, timeout, WEIR_TIMER_ONCE, on_timer, t, &t->timer);
        if (code != WEIR_OK) {
            io_clear(t);
            return raise_code(L, code, "a timer for core.wait_fd");
        }
    }
    return wait_here(L, b, t, WAIT_FD);
}

/* core.waited() -> whether the descriptor is ready (false: the timeout passed). Raises EIO if it cannot be watched any more. */
static int waited(lua_State *L) {
    task *t = current(L, binding_of(L));
    weir_error *e = t->error;
    t->error = NULL;
    if (e)
        return raise_error(L, e);
    lua_pushboolean(L, t->io_ready);
    return 1;
}

/* core.read(descriptor, n) -> at most n bytes; nil, "end"; nil, "again": nothing there now, or a signal came; nil, reason. Waits if the descriptor does. */
static int read_bytes(lua_State *L) {
    char bytes[4096];
    int fd = (int)luaL_checkinteger(L, 1);
    lua_Integer n = luaL_checkinteger(L, 2);
    ssize_t got = read(fd, bytes, n < 1 ? 1 : n > (lua_Integer)sizeof bytes ? sizeof bytes : (size_t)n);
    if (got > 0) {
        lua_pushlstring(L, bytes, (size_t)got);
        return 1;
    }
    lua_pushnil(L);
    lua_pushstring(L, got == 0 ? "end" : errno == EINTR || errno == EAGAIN ? "again" : strerror(errno));
    return 2;
}

void open_io(lua_State *L, binding *b) {
    static const luaL_Reg functions[] = {{"wait_fd", wait_fd}, {"waited", waited}, {"read", read_bytes}, {NULL, NULL}};
    binding_register(L, b, functions);
}
