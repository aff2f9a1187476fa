/* lib_await.c: calls that are begun now and waited for later: pending objects, alone or many at once. A pending object belongs to the actor that made it; what
 * came of its call is kept in it, so it can be asked for again. Knows nothing of what messages say. */
#include <string.h>

#include "binding.h"

static const char metatable[] = "weir.pending";

struct pending {
    holder holder;
    binding *binding;
    weir_address owner;
    uint64_t session;     /* of the open call; 0: it has ended */
    uint64_t order;       /* counts the ends of the binding's calls; 0: open */
    bool gone;            /* the system was closed */
    weir_body *reply;     /* owned; NULL with error NULL: a reply without values */
    weir_error *error;    /* owned */
    task *waiter;         /* who waits for its end; always the owner's task */
    struct pending *next; /* in waiter->awaited */
};

/* ---- who waits for what ---- */

static void await_unlink(pending *p) {
    if (!p->waiter)
        return;
    pending **at = &p->waiter->awaited;
    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    p->waiter = NULL;
}

void await_clear(task *t) {
    while (t->awaited)
        await_unlink(t->awaited);
    t->await_left = 0;
}

/* One of the calls that t waits for has ended; whether its wait is over. */
static bool await_reached(task *t) {
    return t->await_any || t->await_left == 1;
}

static void await_over(task *t) {
    await_clear(t);
    if (t->timer)
        weir_timer_cancel(t->self, t->timer);
    t->timer = 0;
}

static void ended(pending *p, weir_body *reply, weir_error *error) {
    p->session = 0;
    p->order = ++p->binding->ends;
    p->reply = reply;
    p->error = error;
}

static void on_end(weir_actor *self, void *data, const weir_message *reply, const weir_error *error) {
    pending *p = data;
    task *t = p->waiter;
    (void)self;
    ended(p, error ? NULL : weir_body_ref(weir_message_body(reply)), error ? weir_error_ref(error) : NULL);
    if (!t)
        return;
    if (await_reached(t)) {
        await_over(t);
        task_wake(t);
    } else {
        await_unlink(p);
        t->await_left--;
    }
}

static void on_wake(weir_actor *self, void *data, uint64_t missed) {
    task *t = data;
    (void)self, (void)missed;
    t->timer = 0;
    await_clear(t);
    task_wake(t);
}

/* ---- pending objects ---- */

static void pending_drop(holder *h) {
    pending *p = (pending *)h;
    await_unlink(p);
    weir_body_free(p->reply);
    weir_error_free(p->error);
    p->reply = NULL;
    p->error = NULL;
    p->session = 0;
    p->gone = true;
}

static pending *pending_new(lua_State *L, binding *b, task *t) {
    pending *p = lua_newuserdata(L, sizeof *p);
    memset(p, 0, sizeof *p);
    p->binding = b;
    p->owner = t->address;
    p->holder.drop = pending_drop;
    hold(b, &p->holder);
    luaL_getmetatable(L, metatable);
    lua_setmetatable(L, -2);
    return p;
}

static void forget_call(pending *p) {
    weir_actor *self = p->session && p->binding->system ? weir__actor(p->binding->system, p->owner) : NULL;
    if (self)
        weir_call_cancel(self, p->session);
    p->session = 0;
}

static int pending_gc(lua_State *L) {
    pending *p = lua_touserdata(L, 1);
    unhold(p->binding, &p->holder);
    forget_call(p);
    pending_drop(&p->holder);
    return 0;
}

/* core.start(timeout, to, verb, ...) -> pending */
static int start(lua_State *L) {
    binding *b = binding_of(L);
    task *t = current(L, b);
    int64_t timeout = call_timeout(L, 1);
    weir_address to = need_address(L, b, 2);
    const char *name = luaL_checkstring(L, 3);
    pending *p = pending_new(L, b, t);
    lua_replace(L, 1);
    weir_body *body = encode(L, b, 4);
    weir_verb verb = intern_verb(b, name);
    if (!verb) {
        weir_body_free(body);
        return raise_code(L, WEIR_ENOMEM, "the verb %s", name);
    }
    int code = weir_call(t->self, to, verb, body, timeout, on_end, p, &p->session);
    if (code != WEIR_OK) {
        p->session = 0;
        return raise_code(L, code, "weir.start %s to actor %.0f", name, (double)to);
    }
    lua_settop(L, 1);
    return 1;
}

/* ---- waiting ---- */

static pending *check_pending(lua_State *L, int index) {
    pending *p = lua_touserdata(L, index);
    if (p && lua_getmetatable(L, index)) {
        luaL_getmetatable(L, metatable);
        bool is = lua_rawequal(L, -1, -2);
        lua_pop(L, 2);
        if (is)
            return p;
    }
    raise_code(L, WEIR_ETYPE, "a %s, wanted what weir.start returns", luaL_typename(L, index));
    return NULL;
}

/* The pending object at place i of the list at index 1, if `t` may wait for it. */
static pending *list_at(lua_State *L, task *t, int i) {
    lua_rawgeti(L, 1, i);
    pending *p = check_pending(L, -1);
    lua_pop(L, 1);
    if (p->gone)
        raise_code(L, WEIR_ESTOPPING, "this call went with its system");
    if (p->waiter)
        raise_code(L, WEIR_EBUSY, "busy: actor %.0f waits for this call already", (double)p->owner);
    if (!p->order && p->owner != t->address)
        raise_code(L, WEIR_EINVAL, "this call was begun by actor %.0f; only that one can wait for it", (double)p->owner);
    return p;
}

static void await_link(task *t, pending *p) {
    if (p->order || p->waiter)
        return; /* ended, or twice in the list */
    p->waiter = t;
    p->next = t->awaited;
    t->awaited = p;
    t->await_left++;
}

/* core.await(list, n, any, timeout, what): waits until all, or any, of the n calls in list have ended, or the timeout has passed. `what` names the
 * function in errors. The list must not change meanwhile. */
static int await(lua_State *L) {
    binding *b = binding_of(L);
    task *t = current(L, b);
    luaL_checktype(L, 1, LUA_TTABLE);
    int n = (int)luaL_checkinteger(L, 2), over = 0;
    bool any = lua_toboolean(L, 3);
    int64_t timeout = lua_isnoneornil(L, 4) ? -1 : check_seconds(L, 4);
    for (int i = 1; i <= n; i++)
        over += list_at(L, t, i)->order != 0;
    wait_check(L, b, t, luaL_checkstring(L, 5));
    if (over == n || (any && over))
        return 0;
    if (timeout >= 0) {
        int code = weir_timer(t->self, timeout, WEIR_TIMER_ONCE, on_wake, t, &t->timer);
        if (code != WEIR_OK)
            return raise_code(L, code, "a timer for %s", lua_tostring(L, 5));
    }
    t->await_any = any;
    for (int i = 1; i <= n; i++) {
        lua_rawgeti(L, 1, i);
        await_link(t, lua_touserdata(L, -1));
        lua_pop(L, 1);
    }
    return wait_here(L, b, t, WAIT_AWAIT);
}

/* core.outcome(pending): nothing while the call is open; true and the values; false and the error. */
static int outcome(lua_State *L) {
    pending *p = check_pending(L, 1);
    if (p->gone)
        return raise_code(L, WEIR_ESTOPPING, "this call went with its system");
    if (!p->order)
        return 0;
    lua_pushboolean(L, !p->error);
    if (!p->error)
        return 1 + decode_arguments(L, p->binding, p->reply);
    push_error(L, p->error);
    return 2;
}

/* core.order(pending): the how-manieth call to end it was; nil while it is open. */
static int order(lua_State *L) {
    const pending *p = check_pending(L, 1);
    if (!p->order)
        return 0;
    lua_pushnumber(L, (double)p->order);
    return 1;
}

/* The waiter sleeps in its own turn's coroutine: it is woken from its own next turn. */
static int wake_later(task *t) {
    uint64_t timer;
    int code = weir_timer(t->self, 0, WEIR_TIMER_ONCE, on_wake, t, &timer);
    if (code != WEIR_OK)
        return code;
    await_over(t);
    t->timer = timer;
    return WEIR_OK;
}

/* p:cancel(): true if the call was open. */
static int pending_cancel(lua_State *L) {
    pending *p = check_pending(L, 1);
    bool open = !p->order && !p->gone;
    lua_pushboolean(L, open);
    if (!open)
        return 1;
    task *t = p->waiter;
    if (t && await_reached(t)) {
        int code = wake_later(t);
        if (code != WEIR_OK)
            return raise_code(L, code, "a timer for cancel");
    } else if (t) {
        await_unlink(p);
        t->await_left--;
    }
    forget_call(p);
    ended(p, NULL, weir_error_new(WEIR_ECANCELLED, NULL, NULL, "the call was cancelled"));
    return 1;
}

/* p:ended(): whether its call has ended. */
static int pending_ended(lua_State *L) {
    const pending *p = check_pending(L, 1);
    lua_pushboolean(L, p->order != 0 || p->gone);
    return 1;
}

static int pending_tostring(lua_State *L) {
    const pending *p = check_pending(L, 1);
    lua_pushfstring(L, "pending call: %s", p->order ? (p->error ? "failed" : "answered") : p->gone ? "gone" : "open");
    return 1;
}

void open_await(lua_State *L, binding *b) {
    static const luaL_Reg functions[] = {{"start", start}, {"await", await}, {"outcome", outcome}, {"order", order}, {NULL, NULL}};
    static const luaL_Reg methods[] = {
        {"cancel", pending_cancel}, {"ended", pending_ended}, {"__tostring", pending_tostring}, {"__gc", pending_gc}, {NULL, NULL}};
    binding_register(L, b, functions);
    binding_metatable(L, b, metatable, methods);
    lua_pop(L, 1);
}
