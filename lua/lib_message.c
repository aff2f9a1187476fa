/* lib_message.c: a received message as a Lua object: verb, sender, arguments (decoded when asked for) and its answer. Knows nothing of waiting. */
#include <stdio.h>
#include <string.h>

#include "binding.h"

static const char metatable[] = "weir.message", light_metatable[] = "weir.message.light";

/* LIGHT: bytes of a body up to which it is copied into the message; FIXEXT4: the byte that a handle in a body begins with. */
enum { LIGHT = 256, FIXEXT4 = 0xd6 };

/* Most messages own nothing: a small body is copied, the collector needs no finalizer for them, which costs more than the rest of the message. */
typedef struct message {
    holder holder;      /* light ones are in no list */
    letter letter;      /* of a light one: body and why are NULL */
    weir_address owner; /* the actor that received it and may answer */
    bool answered, deferred;
    unsigned system; /* binding.number: a light one is empty when that system has gone, as the others are */
    uint32_t size;   /* of a light one's body; 0: none */
    uint8_t bytes[];
} message;

static void message_drop(holder *h) {
    letter_clear(&((message *)h)->letter);
}

/* Pushes an empty message with room for `size` bytes. */
static message *message_push(lua_State *L, const char *meta, size_t size) {
    message *m = lua_newuserdata(L, sizeof *m + size);
    memset(m, 0, sizeof *m);
    m->holder.drop = message_drop;
    m->size = (uint32_t)size;
    set_metatable(L, meta);
    return m;
}

/* One that may own a body, which the collector clears. */
static message *message_new(lua_State *L, binding *b) {
    message *m = message_push(L, metatable, 0);
    hold(b, &m->holder);
    return m;
}

/* Whether the letter needs nothing but a copy of its body. */
static bool is_light(const letter *l, const void **bytes, size_t *size) {
    *size = 0;
    if (l->why || !l->body)
        return !l->why;
    *bytes = weir_body_bytes(l->body, size);
    return *size <= LIGHT && !memchr(*bytes, FIXEXT4, *size);
}

/* A message that has all of l but what l owns. */
static message *message_light(lua_State *L, const binding *b, const letter *l, const void *bytes, size_t size) {
    message *m = message_push(L, light_metatable, size);
    m->letter = *l;
    m->letter.body = NULL;
    m->system = b->number;
    if (size)
        memcpy(m->bytes, bytes, size);
    return m;
}

void push_letter(lua_State *L, binding *b, task *t) {
    const void *bytes;
    size_t size;
    message *m;
    if (is_light(&t->letter, &bytes, &size)) {
        m = message_light(L, b, &t->letter, bytes, size);
        letter_clear(&t->letter);
    } else {
        m = message_new(L, b);
        m->letter = t->letter;
        memset(&t->letter, 0, sizeof t->letter);
    }
    m->owner = t->address;
    t->has_letter = false;
    t->verb = m->letter.verb;
    if (m->letter.is_call) {
        t->owes = true;
        t->debt = m->letter.to;
    }
}

/* Told by its size and its function. */
static message *check_message(lua_State *L) {
    message *m = lua_touserdata(L, 1);
    return m && lua_objlen(L, 1) >= sizeof *m && m->holder.drop == message_drop ? m : luaL_checkudata(L, 1, metatable);
}

/* At the first argument. */
static weir_cursor read_message(const binding *b, const message *m, uint32_t *count) {
    weir_cursor c = {m->bytes, m->bytes + m->size, NULL};
    if (!m->size || !b->system || b->number != m->system)
        return weir_read(m->letter.body, count);
    *count = 0;
    weir_read_array(&c, count);
    return c;
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
    if (m->letter.gone)
        return down_arguments(L, m);
    binding *b = binding_of(L);
    uint32_t count;
    weir_cursor c = read_message(b, m, &count);
    return decode_all(L, b, c, count);
}

static int push_argument(lua_State *L, binding *b, const message *m, double n) {
    if (m->letter.gone) {
        down_arguments(L, m);
        lua_pushvalue(L, n == 1 ? -2 : -1);
        return n == 1 || n == 2;
    }
    uint32_t count;
    weir_cursor c = read_message(b, m, &count);
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
        lua_pushvalue(L, 2);
        lua_rawget(L, -2);
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
    static const luaL_Reg methods[] = {
        {"args", message_args},   {"is_call", message_is_call},     {"reply", message_reply},   {"error", message_error},
        {"defer", message_defer}, {"__tostring", message_tostring}, {"__index", message_index}, {NULL, NULL}};
    static const luaL_Reg owning[] = {{"__gc", message_gc}, {NULL, NULL}};
    binding_register(L, b, functions);
    binding_metatable(L, b, light_metatable, methods);
    lua_pop(L, 1);
    binding_metatable(L, b, metatable, methods);
    binding_register(L, b, owning);
    lua_pop(L, 1);
}
