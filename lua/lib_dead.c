/* lib_dead.c: dead letters as Lua tables. */
#include <string.h>

#include "binding.h"

static const char metatable[] = "weir.dead_letters";

/* Lua errors must not cross the runtime's frames: letters are collected first and pushed afterwards. */
typedef struct collection {
    size_t count;
    weir_dead_letter letters[WEIR_DEAD_LETTERS]; /* each owns its body */
} collection;

static void collect(void *data, const weir_dead_letter *letter) {
    collection *c = data;
    if (c->count == WEIR_DEAD_LETTERS)
        return;
    c->letters[c->count] = *letter;
    weir_body_ref(letter->body);
    c->count++;
}

static int release(lua_State *L) {
    collection *c = lua_touserdata(L, 1);
    for (size_t i = 0; i < c->count; i++)
        weir_body_free(c->letters[i].body);
    c->count = 0;
    return 0;
}

static void set_address(lua_State *L, const char *name, weir_address a) {
    if (!a)
        return;
    push_address(L, a);
    lua_setfield(L, -2, name);
}

/* Without args where the body was not kept. */
static void push_dead(lua_State *L, binding *b, const weir_dead_letter *d) {
    lua_createtable(L, 0, 7);
    lua_pushnumber(L, (double)d->at / 1e9);
    lua_setfield(L, -2, "at");
    set_address(L, "from", d->from);
    set_address(L, "to", d->to);
    lua_pushstring(L, d->verb);
    lua_setfield(L, -2, "verb");
    lua_pushstring(L, weir_code_name(d->why));
    lua_setfield(L, -2, "why");
    lua_pushnumber(L, (double)d->bytes);
    lua_setfield(L, -2, "bytes");
    if (d->bytes && !d->body)
        return;
    lua_newtable(L);
    int args = lua_gettop(L), n = decode_arguments(L, b, d->body);
    for (int i = n; i > 0; i--) {
        if (lua_isnil(L, -1)) {
            lua_pop(L, 1);
            lua_pushlightuserdata(L, NULL); /* weir.null */
        }
        lua_rawseti(L, args, i);
    }
    lua_setfield(L, -2, "args");
}

/* core.dead_letters(): an array of {at, from, to, verb, why, bytes, args}, oldest first. */
static int dead_letters(lua_State *L) {
    binding *b = binding_of(L);
    weir_system *s = system_of(L, b);
    collection *c = lua_newuserdata(L, sizeof *c);
    c->count = 0;
    luaL_getmetatable(L, metatable);
    lua_setmetatable(L, -2);
    weir_dead_letters(s, collect, c);
    lua_createtable(L, (int)c->count, 0);
    for (size_t i = 0; i < c->count; i++) {
        push_dead(L, b, &c->letters[i]);
        lua_rawseti(L, -2, (int)i + 1);
    }
    lua_pushcfunction(L, release);
    lua_pushvalue(L, -3);
    lua_call(L, 1, 0);
    return 1;
}

void open_dead(lua_State *L, binding *b) {
    static const luaL_Reg functions[] = {{"dead_letters", dead_letters}, {NULL, NULL}};
    binding_register(L, b, functions);
    luaL_newmetatable(L, metatable);
    lua_pushcfunction(L, release);
    lua_setfield(L, -2, "__gc");
    lua_pop(L, 1);
}
