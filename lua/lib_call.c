/* lib_call.c: sends and calls of Lua code, and what a call came to. Knows nothing of what messages say. */
#include <string.h>

#include "binding.h"

/* Equal Lua strings are one object, so its address finds the verb; the collector may give the address to another string, so the name is compared. */
weir_verb intern_verb(binding *b, const char *name) {
    known_verb *k = &b->verbs[(uintptr_t)name / 16 % KNOWN_VERBS];
    if (k->name == name && k->system == b->number && strcmp(weir_verb_name(b->system, k->verb), name) == 0)
        return k->verb;
    weir_verb verb = weir_intern(b->system, name);
    if (verb)
        *k = (known_verb){name, b->number, verb};
    return verb;
}

/* core.send(quiet, to, verb, ...): true; or nil, error if quiet. May wait, and then core.sent has the outcome. */
static int call_send(lua_State *L) {
    binding *b = binding_of(L);
    task *t = current(L, b);
    bool quiet = lua_toboolean(L, 1);
    weir_address to;
    const char *name = luaL_checkstring(L, 3);
    if (!find_address(L, b, 2, &to))
        return fail_or_raise(L, quiet, unregistered(L, 2));
    weir_body *body = encode(L, b, 4);
    weir_verb verb = intern_verb(b, name);
    if (!verb) {
        weir_body_free(body);
        return raise_code(L, WEIR_ENOMEM, "the verb %s", name);
    }
    bool awaits = !quiet && space_awaits(b->system, to);
    int code = weir_send(t->self, to, verb, awaits ? weir_body_ref(body) : body);
    if (awaits && code == WEIR_EFULL)
        return space_send(L, b, t, to, verb, body);
    if (awaits)
        weir_body_free(body);
    if (code == WEIR_OK) {
        lua_pushboolean(L, 1);
        return 1;
    }
    return fail_or_raise(L, quiet, weir_error_new(code, NULL, NULL, "%s to actor %.0f: %s", name, (double)to, weir_code_text(code)));
}

static void on_reply(weir_actor *self, void *data, const weir_message *reply, const weir_error *error) {
    task *t = data;
    (void)self;
    t->session = 0;
    if (error && space_refused(t, error))
        return;
    if (error)
        t->error = weir_error_ref(error);
    else
        t->reply = weir_body_ref(weir_message_body(reply));
    task_wake(t);
}

int64_t call_timeout(lua_State *L, int index) {
    if (lua_isnoneornil(L, index))
        return 0;
    if (lua_isboolean(L, index) && !lua_toboolean(L, index))
        return -1;
    int64_t timeout = check_seconds(L, index);
    return timeout > 0 ? timeout : 1;
}

static void forget_result(task *t) {
    weir_body_free(t->reply);
    weir_error_free(t->error);
    t->reply = NULL;
    t->error = NULL;
}

/* core.call(what, timeout, to, verb, ...): waits until core.result has the answer. `what` names the function in errors. */
static int call_start(lua_State *L) {
    binding *b = binding_of(L);
    task *t = current(L, b);
    const char *what = luaL_checkstring(L, 1);
    int64_t timeout = call_timeout(L, 2);
    weir_address to;
    const char *name = luaL_checkstring(L, 4);
    bool found = find_address(L, b, 3, &to);
    wait_check(L, b, t, what);
    forget_result(t);
    if (!found) {
        t->error = unregistered(L, 3);
        return 0;
    }
    weir_body *body = encode(L, b, 5);
    weir_verb verb = intern_verb(b, name);
    if (!verb) {
        weir_body_free(body);
        return raise_code(L, WEIR_ENOMEM, "the verb %s", name);
    }
    int code = space_awaits(b->system, to) ? space_call(t, to, verb, body, timeout, on_reply)
                                           : weir_call(t->self, to, verb, body, timeout, on_reply, t, &t->session);
    if (code != WEIR_OK)
        return raise_code(L, code, "%s %s to actor %.0f", what, name, (double)to);
    return wait_here(L, b, t, WAIT_CALL);
}

/* core.result(quiet): the values of the reply, or the error, raised or as nil, error. */
static int call_result(lua_State *L) {
    binding *b = binding_of(L);
    task *t = current(L, b);
    if (t->error) {
        weir_error *e = t->error;
        t->error = NULL;
        return fail_or_raise(L, lua_toboolean(L, 1), e);
    }
    lua_settop(L, 0);
    int n = decode_arguments(L, b, t->reply);
    forget_result(t);
    return n;
}

void open_call(lua_State *L, binding *b) {
    static const luaL_Reg functions[] = {{"send", call_send}, {"call", call_start}, {"result", call_result}, {NULL, NULL}};
    binding_register(L, b, functions);
}
