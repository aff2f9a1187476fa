/* lib_actor.c: actors in Lua: a coroutine each, started, suspended and woken here; the main chunk counts as one without a coroutine. While a task waits for
 * anything but `receive`, its actor is held, so that its mail waits in the runtime's bounded mailbox. Knows nothing of what messages say. */
#include <string.h>

#include "binding.h"

static void on_receive(weir_actor *self, const weir_message *m);
static void on_down(weir_actor *self, weir_address who, const weir_error *why);
static void on_fini(weir_system *s, void *state);

static const weir_behaviour behaviour = {.name = "lua", .receive = on_receive, .down = on_down, .fini = on_fini};

void letter_clear(letter *l) {
    weir_body_free(l->body);
    weir_error_free(l->why);
    memset(l, 0, sizeof *l);
}

task *task_find(binding *b, weir_address a) {
    weir_actor *actor = b->system ? weir__actor(b->system, a) : NULL;
    if (!actor || weir__behaviour(actor) != &behaviour)
        return NULL;
    task *t = weir_state(actor);
    return t->binding == b ? t : NULL;
}

static void task_link(binding *b, task *t) {
    t->binding = b;
    t->next = b->tasks;
    if (b->tasks)
        b->tasks->previous = t;
    b->tasks = t;
}

static void task_unlink(task *t) {
    if (t->previous)
        t->previous->next = t->next;
    else
        t->binding->tasks = t->next;
    if (t->next)
        t->next->previous = t->previous;
}

static void task_free(weir_system *s, task *t) {
    if (t->co)
        luaL_unref(t->binding->aux, LUA_REGISTRYINDEX, t->ref);
    weir__free(s, t);
}

static void on_fini(weir_system *s, void *state) {
    task *t = state;
    task_unlink(t);
    await_clear(t);
    parcel_drop(t);
    io_clear(t);
    letter_clear(&t->letter);
    weir_body_free(t->reply);
    weir_error_free(t->error);
    if (t->binding->main == t)
        t->binding->main = NULL;
    t->over = true;
    if (!t->running)
        task_free(s, t);
}

/* ---- how a coroutine ends ---- */

typedef struct ending {
    task *task;
    weir_error *error;
} ending;

/* While everything is stopped, actors die of being woken and of others' ends. */
static bool excused(const binding *b, const weir_error *e) {
    int code = weir_error_code(e);
    return b->stopping && (code == WEIR_ESTOPPING || code == WEIR_EEXITED || code == WEIR_ENOACTOR);
}

/* Makes the error of a failed coroutine, with its traceback, and tells weir.uncaught if nobody else will hear of it. */
static int describe(lua_State *L) {
    ending *end = lua_touserdata(L, 1);
    task *t = end->task;
    binding_field(L, "failed");
    lua_pushthread(t->co);
    lua_xmove(t->co, L, 1);
    lua_pushvalue(t->co, -1);
    lua_xmove(t->co, L, 1);
    lua_call(L, 2, 1);
    end->error = to_error(L, -1);
    if (!weir__watched(t->self) && !excused(t->binding, end->error)) {
        atomic_fetch_add(&t->binding->root->failures, 1);
        binding_field(L, "uncaught");
        push_address(L, t->address);
        lua_pushvalue(L, -3);
        lua_call(L, 2, 0);
    }
    return 0;
}

static void task_failed(task *t) {
    ending end = {.task = t};
    if (!protect(t->binding, describe, &end) && !end.error)
        end.error = weir_error_new(WEIR_ELUA, NULL, NULL, "no memory to say which");
    weir_exit(t->self, end.error);
}

/* Tells weir.uncaught of the end of an actor that nobody watches. */
static int tell(lua_State *L) {
    ending *end = lua_touserdata(L, 1);
    binding_field(L, "uncaught");
    push_address(L, end->task->address);
    push_error(L, end->error);
    lua_call(L, 2, 0);
    return 0;
}

/* The guard ended it; its coroutine, which may have yielded anywhere, is never resumed. */
static void task_stopped(task *t, weir_error *why) {
    ending end = {.task = t, .error = why};
    if (!weir__watched(t->self)) {
        atomic_fetch_add(&t->binding->root->failures, 1);
        protect(t->binding, tell, &end);
    }
    weir_exit(t->self, why);
}

/* A call that was received and not answered gets ENOREPLY. */
static void pay_debt(task *t) {
    if (!t->owes)
        return;
    t->owes = false;
    weir_answer_error(t->self, t->debt, weir_error_new(WEIR_ENOREPLY, weir_actor_name(t->self), NULL, "the actor went on without a reply"));
}

static void task_resume(task *t, int arguments) {
    binding *b = t->binding;
    weir_system *s = b->system;
    task *before = b->current;
    b->current = t;
    t->running = true;
    stretch_begin(b);
    int status = lua_resume(t->co, arguments);
    weir_error *stopped = stretch_end(b);
    t->running = false;
    b->current = before;
    if (t->over) {
        weir_error_free(stopped);
        task_free(s, t);
        return;
    }
    if (stopped) {
        task_stopped(t, stopped);
        return;
    }
    if (status == LUA_YIELD && t->wait == WAIT_NONE) {
        lua_pushliteral(t->co, "coroutine.yield in an actor's own coroutine: nothing resumes it");
        status = LUA_ERRRUN;
    }
    if (status == LUA_YIELD) {
        lua_settop(t->co, 0);
    } else if (status == 0) {
        pay_debt(t);
        weir_exit(t->self, NULL);
    } else {
        task_failed(t);
    }
}

/* ---- waiting ---- */

static int main_new(lua_State *L, binding *b) {
    weir_system *s = system_of(L, b);
    weir_error *e = NULL;
    task *t = weir__alloc(s, sizeof *t);
    if (!t)
        return raise_code(L, WEIR_ENOMEM, "the main chunk's actor");
    task_link(b, t);
    weir_spawn_options options = {.name = "main"};
    if (weir_spawn(s, &behaviour, t, &options, &t->address, &e) != WEIR_OK)
        return raise_error(L, e);
    t->self = weir__actor(s, t->address);
    weir_hold(t->self);
    b->main = t;
    return 0;
}

task *current(lua_State *L, binding *b) {
    system_of(L, b);
    if (b->current)
        return b->current;
    if (!b->main && b->attached)
        raise_code(L, WEIR_ESTOPPING, "the Lua state of this loop is closing");
    if (!b->main)
        main_new(L, b);
    return b->main;
}

/* The gate of an actor's mail: closed in every wait but receive; the main chunk's is closed outside of receive too. */
static void gate_enter(task *t) {
    if (t->co && t->wait != WAIT_RECEIVE)
        weir_hold(t->self);
    else if (!t->co && t->wait == WAIT_RECEIVE)
        weir_unhold(t->self);
}

static void gate_leave(task *t) {
    if (t->co && t->wait != WAIT_RECEIVE)
        weir_unhold(t->self);
    else if (!t->co && t->wait == WAIT_RECEIVE)
        weir_hold(t->self);
    t->wait = WAIT_NONE;
}

void task_wake(task *t) {
    gate_leave(t);
    if (t->co)
        task_resume(t, 0);
    else
        t->ready = true;
}

void wait_check(lua_State *L, binding *b, task *t, const char *what) {
    lua_State *where;
    if (!t->co) {
        if (b->attached || weir__running(b->system))
            raise_code(L, WEIR_EBUSY, "%s would be a pump inside a pump: the loop is running, and only actors may wait in it", what);
        t->ready = false;
    } else if (!can_yield(L, t, &where)) {
        const char *culprit = blame(where);
        raise_code(L, WEIR_EYIELD, "%s cannot wait inside %s", what, culprit);
    }
}

static bool main_ready(void *data) {
    task *t = data;
    return t->ready || t->over || interrupt_waits(t->binding);
}

/* The main chunk's wait was broken off: forgets what it waited for. */
static void wait_abandon(task *t) {
    if (t->session)
        weir_call_cancel(t->self, t->session);
    if (t->timer)
        weir_timer_cancel(t->self, t->timer);
    t->session = t->timer = 0;
    await_clear(t);
    parcel_drop(t);
    io_clear(t);
    gate_leave(t);
}

int wait_here(lua_State *L, binding *b, task *t, enum wait wait) {
    t->wait = wait;
    gate_enter(t);
    if (t->co) {
        lua_pushlightuserdata(L, b);
        return lua_yield(L, 1);
    }
    weir_error *e = NULL;
    weir_system *s = b->system;
    t->running = true;
    int code = pump(b, main_ready, t, &e);
    t->running = false;
    if (t->over) {
        weir_error_free(e);
        task_free(s, t);
        return raise_code(L, WEIR_EKILLED, "somebody ended the main chunk's actor");
    }
    if (t->ready) {
        weir_error_free(e);
        return 0;
    }
    wait_abandon(t);
    return code == WEIR_OK ? raise_code(L, WEIR_ECANCELLED, "the loop was told to quit") : raise_error(L, e);
}

/* ---- what the runtime calls ---- */

static void on_receive(weir_actor *self, const weir_message *m) {
    task *t = weir_state(self);
    if (t->wait == WAIT_START) {
        t->self = self;
        t->wait = WAIT_NONE;
        task_resume(t, lua_gettop(t->co) - 1);
        return;
    }
    letter *l = &t->letter;
    l->from = weir_message_from(m);
    l->verb = weir_message_verb(m);
    l->body = weir_body_ref(weir_message_body(m));
    l->is_call = weir_message_is_call(m);
    if (l->is_call)
        l->to = weir_defer(self, m);
    t->has_letter = true;
    if (t->timer)
        weir_timer_cancel(self, t->timer);
    t->timer = 0;
    task_wake(t);
}

static void on_down(weir_actor *self, weir_address who, const weir_error *why) {
    task *t = weir_state(self);
    letter *l = &t->letter;
    l->from = l->gone = who;
    l->verb = t->binding->down;
    l->why = why ? weir_error_ref(why) : NULL;
    t->has_letter = true;
    if (t->timer)
        weir_timer_cancel(self, t->timer);
    t->timer = 0;
    task_wake(t);
}

static void on_timer(weir_actor *self, void *data, uint64_t missed) {
    task *t = data;
    (void)self;
    (void)missed;
    t->timer = 0;
    task_wake(t);
}

/* ---- functions ---- */

static task *task_new(lua_State *L, binding *b, int first) {
    weir_system *s = system_of(L, b);
    int arguments = lua_gettop(L) - first;
    lua_State *co = lua_newthread(L);
    if (!lua_checkstack(co, arguments + LUA_MINSTACK))
        raise_code(L, WEIR_ETOOBIG, "weir.spawn with %d arguments", arguments);
    lua_insert(L, first);
    lua_xmove(L, co, arguments + 1);
    int ref = luaL_ref(L, LUA_REGISTRYINDEX);
    task *t = weir__alloc(s, sizeof *t);
    if (!t) {
        luaL_unref(L, LUA_REGISTRYINDEX, ref);
        raise_code(L, WEIR_ENOMEM, "an actor");
    }
    t->co = co;
    t->ref = ref;
    t->wait = WAIT_START;
    task_link(b, t);
    return t;
}

static size_t option_size(lua_State *L, const char *name) {
    lua_getfield(L, 1, name);
    double n = lua_isnil(L, -1) ? 0 : luaL_checknumber(L, -1);
    lua_pop(L, 1);
    if (!(n >= 0) || n > 9e15)
        raise_code(L, WEIR_EINVAL, "%s is %g", name, n);
    return (size_t)n;
}

static enum weir_full option_full(lua_State *L) {
    static const char *const names[] = {"refuse", "await", "drop-oldest", "drop-newest"}; /* in the order of enum weir_full */
    lua_getfield(L, 1, "full");
    const char *name = luaL_optstring(L, -1, names[0]);
    for (int i = 0; i < 4; i++) {
        if (strcmp(name, names[i]) == 0) {
            lua_pop(L, 1);
            return (enum weir_full)i;
        }
    }
    raise_code(L, WEIR_EINVAL, "full is \"%s\", wanted \"refuse\", \"await\", \"drop-oldest\" or \"drop-newest\"", name);
    return WEIR_FULL_REFUSE;
}

/* core.spawn({name, full, mailbox_messages, mailbox_bytes}, fn, ...) -> address */
static int actor_spawn(lua_State *L) {
    binding *b = binding_of(L);
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checktype(L, 2, LUA_TFUNCTION);
    task *self = current(L, b);
    weir_spawn_options options = {.mailbox_messages = option_size(L, "mailbox_messages"), .mailbox_bytes = option_size(L, "mailbox_bytes")};
    options.full = option_full(L);
    lua_getfield(L, 1, "name");
    options.name = luaL_optstring(L, -1, NULL);
    lua_replace(L, 1);
    task *t = task_new(L, b, 2);
    weir_error *e = NULL;
    weir_address a;
    if (weir_spawn(b->system, &behaviour, t, &options, &a, &e) != WEIR_OK)
        return raise_error(L, e);
    t->address = a;
    weir__notice *start = weir__notice_new(b->system, self->address, a, b->start, NULL); /* no mailbox is too small for it, none drops it */
    if (!start) {
        weir_kill(b->system, a);
        return raise_code(L, WEIR_ENOMEM, "the actor's first message");
    }
    weir__notice_post(start);
    push_address(L, a);
    return 1;
}

/* core.receive([timeout]): waits until core.take has something, or nothing more to wait for. */
static int actor_receive(lua_State *L) {
    binding *b = binding_of(L);
    task *t = current(L, b);
    int64_t timeout = lua_isnoneornil(L, 1) ? -1 : check_seconds(L, 1);
    wait_check(L, b, t, "weir.receive");
    pay_debt(t);
    if (t->has_letter) /* there was no memory to take it */
        return 0;
    if (timeout >= 0) {
        int code = weir_timer(t->self, timeout, WEIR_TIMER_ONCE, on_timer, t, &t->timer);
        if (code != WEIR_OK)
            return raise_code(L, code, "a timer for weir.receive");
    }
    return wait_here(L, b, t, WAIT_RECEIVE);
}

static int actor_take(lua_State *L) {
    binding *b = binding_of(L);
    task *t = current(L, b);
    if (!t->has_letter)
        return 0;
    push_letter(L, b, t);
    return 1;
}

static int actor_sleep(lua_State *L) {
    binding *b = binding_of(L);
    task *t = current(L, b);
    int64_t time = check_seconds(L, 1);
    wait_check(L, b, t, "weir.sleep");
    int code = weir_timer(t->self, time, WEIR_TIMER_ONCE, on_timer, t, &t->timer);
    if (code != WEIR_OK)
        return raise_code(L, code, "a timer for weir.sleep");
    return wait_here(L, b, t, WAIT_SLEEP);
}

/* core.slept(): raises what woke the actor before its time. */
static int actor_slept(lua_State *L) {
    task *t = current(L, binding_of(L));
    weir_error *e = t->error;
    t->error = NULL;
    return e ? raise_error(L, e) : 0;
}

void wake_sleepers(binding *b) {
    for (task *t = b->tasks; t; t = t->next) {
        uint64_t timer;
        if (t->wait != WAIT_SLEEP || t->error || weir_timer(t->self, 0, WEIR_TIMER_ONCE, on_timer, t, &timer) != WEIR_OK)
            continue;
        weir_timer_cancel(t->self, t->timer);
        t->timer = timer;
        t->error = weir_error_new(WEIR_ESTOPPING, NULL, NULL, "woken from weir.sleep: the system is stopping");
    }
}

static int actor_self(lua_State *L) {
    push_address(L, current(L, binding_of(L))->address);
    return 1;
}

/* core.inside(): whether an actor runs, and not a main chunk. */
static int actor_inside(lua_State *L) {
    binding *b = binding_of(L);
    lua_pushboolean(L, b->current && b->current->co);
    return 1;
}

static int actor_exit(lua_State *L) {
    binding *b = binding_of(L);
    task *t = current(L, b);
    if (!t->co)
        return raise_code(L, WEIR_EINVAL, "weir.exit ends an actor; a main chunk ends by returning");
    wait_check(L, b, t, "weir.exit");
    if (lua_isnoneornil(L, 1))
        pay_debt(t);
    weir_exit(t->self, lua_isnoneornil(L, 1) ? NULL : to_error(L, 1));
    return wait_here(L, b, t, WAIT_FOREVER);
}

/* Stops or kills; true if there was such an actor. */
static int end_actor(lua_State *L, int (*fn)(weir_system *s, weir_address a), const char *what) {
    binding *b = binding_of(L);
    weir_address a;
    int code = find_address(L, b, 1, &a) ? fn(system_of(L, b), a) : WEIR_ENOACTOR;
    if (code != WEIR_OK && code != WEIR_ENOACTOR)
        return raise_code(L, code, "%s", what);
    lua_pushboolean(L, code == WEIR_OK);
    return 1;
}

static int actor_stop(lua_State *L) {
    return end_actor(L, weir_stop, "weir.stop");
}

/* An actor that kills itself goes no further. */
static int actor_kill(lua_State *L) {
    binding *b = binding_of(L);
    task *t = current(L, b);
    weir_address a;
    bool self = find_address(L, b, 1, &a) && t->co && a == t->address;
    if (self)
        wait_check(L, b, t, "weir.kill");
    int pushed = end_actor(L, weir_kill, "weir.kill");
    return self ? wait_here(L, b, t, WAIT_FOREVER) : pushed;
}

static int actor_monitor(lua_State *L) {
    binding *b = binding_of(L);
    task *t = current(L, b);
    weir_address a = need_address(L, b, 1);
    int code = weir_monitor(t->self, a);
    if (code != WEIR_OK)
        return raise_code(L, code, "weir.monitor of actor %.0f", (double)a);
    return 0;
}

static int actor_demonitor(lua_State *L) {
    binding *b = binding_of(L);
    task *t = current(L, b);
    int code = weir_demonitor(t->self, need_address(L, b, 1));
    return code == WEIR_OK || code == WEIR_ENOACTOR ? 0 : raise_code(L, code, "weir.demonitor");
}

static int actor_link(lua_State *L) {
    binding *b = binding_of(L);
    task *t = current(L, b);
    weir_address a = need_address(L, b, 1);
    int code = weir_link(t->self, a);
    return code == WEIR_OK ? 0 : raise_code(L, code, "weir.link with actor %.0f", (double)a);
}

static int actor_unlink(lua_State *L) {
    binding *b = binding_of(L);
    task *t = current(L, b);
    int code = weir_unlink(t->self, need_address(L, b, 1));
    return code == WEIR_OK || code == WEIR_ENOACTOR ? 0 : raise_code(L, code, "weir.unlink");
}

void open_actor(lua_State *L, binding *b) {
    static const luaL_Reg functions[] = {
        {"spawn", actor_spawn},     {"receive", actor_receive},     {"take", actor_take}, {"sleep", actor_sleep},   {"slept", actor_slept},
        {"self", actor_self},       {"inside", actor_inside},       {"exit", actor_exit}, {"stop", actor_stop},     {"kill", actor_kill},
        {"monitor", actor_monitor}, {"demonitor", actor_demonitor}, {"link", actor_link}, {"unlink", actor_unlink}, {NULL, NULL}};
    binding_register(L, b, functions);
}
