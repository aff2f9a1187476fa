/* lib_message.c: a received message as a Lua object: verb, sender, arguments (decoded when asked for) and its answer. Knows nothing of waiting. */
#include <stdio.h>
#include <string.h>

#include "binding.h"

static const char metatable[] = "weir.message";

typedef struct message {
    holder holder;
    letter letter;
    weir_address owner; /* the actor that received it and may answer */
    bool answered, deferred;
} message;

static void message_drop(holder *h) {
    letter_clear(&((message *)h)->letter);
}

/* Pushes an empty message, which the collector clears. */
static message *message_new(lua_State *L, binding *b) {
    message *m = lua_newuserdata(L, sizeof *m);
    memset(m, 0, sizeof *m);
    m->holder.drop = message_drop;
    hold(b, &m->holder);
    luaL_getmetatable(L, metatable);
    lua_setmetatable(L, -2);
    return m;
}

void push_letter(lua_State *L, binding *b, task *t) {
    message *m = message_new(L, b);
    m->letter = t->letter;
    m->owner = t->address;
    memset(&t->letter, 0, sizeof t->letter);
    t->has_letter = false;
    t->verb = m->letter.verb;
    if (m->letter.is_call) {
        t->owes = true;
        t->debt = m->letter.to;
    }
}

static message *check_message(lua_State *L) {
    return luaL_checkudata(L, 1, metatable);
}

static int message_gc(lua_State *L) {
    message *m = check_message(L);
    unhold(binding_of(L), &m->holder);
    letter_clear(&m->letter);
    return 0;
}

/* A "down": the address that ended, and why (nil after an orderly end). */
static int down_arguments(lua_State *L, const message *m) {
    push_address(L, m->letter.gone);
    if (m->letter.why)
        push_error(L, m->letter.why);
    else
        lua_pushnil(L);
    return 2;
}

static int message_args(lua_State *L) {
    message *m = check_message(L);
    return m->letter.gone ? down_arguments(L, m) : decode_arguments(L, binding_of(L), m->letter.body);
}

static int push_argument(lua_State *L, binding *b, const message *m, double n) {
    if (m->letter.gone) {
        down_arguments(L, m);
        lua_pushvalue(L, n == 1 ? -2 : -1);
        return n == 1 || n == 2;
    }
    uint32_t count;
    weir_cursor c = weir_read(m->letter.body, &count);
    if (!(n >= 1) || n > count || n != (uint32_t)n)
        return 0;
    for (uint32_t i = 1; i < (uint32_t)n; i++)
        weir_read_skip(&c);
    decode_value(L, b, &c, true);
    return 1;
}

static int message_index(lua_State *L) {
    binding *b = binding_of(L);
    message *m = check_message(L);
    if (lua_type(L, 2) == LUA_TNUMBER)
        return push_argument(L, b, m, lua_tonumber(L, 2));
    const char *name = luaL_checkstring(L, 2);
    if (strcmp(name, "verb") == 0) {
        const char *verb = b->system && m->letter.verb ? weir_verb_name(b->system, m->letter.verb) : NULL;
        lua_pushstring(L, verb);
    } else if (strcmp(name, "from") == 0) {
        push_address(L, m->letter.from);
    } else {
        lua_getmetatable(L, 1);
        lua_getfield(L, -1, name);
    }
    return 1;
}

static int message_is_call(lua_State *L) {
    lua_pushboolean(L, check_message(L)->letter.is_call);
    return 1;
}

/* The task that still has the duty to answer this call by its next receive; NULL if it passed on or was paid. */
static task *debtor(binding *b, const message *m) {
    task *t = m->letter.is_call ? task_find(b, m->owner) : NULL;
    bool owes = t && t->owes && t->debt.session == m->letter.to.session && t->debt.caller == m->letter.to.caller;
    return owes ? t : NULL;
}

/* The actor that may answer; NULL if it is no call, or the actor or the system ended: then an answer goes nowhere. Raises if the call has its answer. */
static weir_actor *answerer(lua_State *L, binding *b, const message *m) {
    weir_actor *self = m->letter.is_call && b->system ? weir__actor(b->system, m->owner) : NULL;
    if (self && (m->answered || (!m->deferred && !debtor(b, m))))
        raise_code(L, WEIR_EINVAL, "this call has its answer already");
    return self;
}

/* The answer is certain: the task owes it no more. */
static void settle(binding *b, message *m) {
    task *t = debtor(b, m);
    if (t)
        t->owes = false;
    m->answered = true;
}

static int message_reply(lua_State *L) {
    binding *b = binding_of(L);
    message *m = check_message(L);
    weir_actor *self = answerer(L, b, m);
    if (!self)
        return 0;
    weir_body *body = encode(L, b, 2);
    settle(b, m);
    weir_answer(self, m->letter.to, body);
    return 0;
}

static int message_error(lua_State *L) {
    binding *b = binding_of(L);
    message *m = check_message(L);
    luaL_checkany(L, 2);
    weir_actor *self = answerer(L, b, m);
    if (!self)
        return 0;
    settle(b, m);
    weir_answer_error(self, m->letter.to, to_error(L, 2));
    return 0;
}

static int message_defer(lua_State *L) {
    message *m = check_message(L);
    task *t = debtor(binding_of(L), m);
    if (t) {
        t->owes = false;
        m->deferred = true;
    }
    lua_settop(L, 1);
    return 1;
}

static int message_tostring(lua_State *L) {
    binding *b = binding_of(L);
    message *m = check_message(L);
    const char *verb = b->system && m->letter.verb ? weir_verb_name(b->system, m->letter.verb) : "?";
    char number[24];
    snprintf(number, sizeof number, "%llu", (unsigned long long)m->letter.from);
    lua_pushfstring(L, "%s %s from actor %s", m->letter.is_call ? "call" : "message", verb, number);
    return 1;
}

/* core.pack(...): the bytes of a message body with these arguments. */
static int pack(lua_State *L) {
    binding *b = binding_of(L);
    system_of(L, b);
    weir_body *body = encode(L, b, 1);
    size_t n = 1;
    const void *p = body ? weir_body_bytes(body, &n) : "\x90";
    lua_pushlstring(L, p, n);
    weir_body_free(body);
    return 1;
}

/* core.unpack(bytes): the arguments of a body from outside, checked. EMSGPACK, EDEPTH. */
static int unpack(lua_State *L) {
    binding *b = binding_of(L);
    size_t n;
    const char *bytes = luaL_checklstring(L, 1, &n);
    weir_error *e = NULL;
    message *m = message_new(L, b); /* holds the body if decoding raises */
    if (weir_body_from_bytes(system_of(L, b), bytes, n, &m->letter.body, &e) != WEIR_OK)
        return raise_error(L, e);
    return decode_arguments(L, b, m->letter.body);
}

void open_message(lua_State *L, binding *b) {
    static const luaL_Reg functions[] = {{"pack", pack}, {"unpack", unpack}, {NULL, NULL}};
    static const luaL_Reg methods[] = {{"args", message_args},   {"is_call", message_is_call}, {"reply", message_reply},
                                       {"error", message_error}, {"defer", message_defer},     {"__tostring", message_tostring},
                                       {"__gc", message_gc},     {"__index", message_index},   {NULL, NULL}};
    binding_register(L, b, functions);
    binding_metatable(L, b, metatable, methods);
    lua_pop(L, 1);
}
