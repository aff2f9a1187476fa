/* lib_address.c: addresses as Lua objects: one object a number, so that equal addresses are the same object and work as keys of tables. On the wire an
 * address is its integer; every function that takes an address takes the number too, and those that do something with the actor its registered name. */
#include <stdio.h>

#include "binding.h"

static const char metatable[] = "weir.address", cache; /* cache: where in the registry the objects are */

/* Told from other userdata by its size and its tag. */
typedef struct address {
    weir_address id;
    const char *tag; /* metatable */
} address;

bool is_address(lua_State *L, int index, weir_address *a) {
    const address *p = lua_touserdata(L, index);
    if (!p || lua_objlen(L, index) != sizeof *p || p->tag != metatable)
        return false;
    *a = p->id;
    return true;
}

weir_address check_address(lua_State *L, int index) {
    weir_address a;
    if (is_address(L, index, &a))
        return a;
    double n = lua_type(L, index) == LUA_TNUMBER ? lua_tonumber(L, index) : -1;
    if (!(n >= 0) || n >= 9007199254740992.0 || n != (double)(weir_address)n)
        raise_code(L, WEIR_ETYPE, "argument %d is a %s, wanted an address", index, luaL_typename(L, index));
    return (weir_address)n;
}

bool find_address(lua_State *L, binding *b, int index, weir_address *a) {
    if (lua_type(L, index) != LUA_TSTRING)
        *a = check_address(L, index);
    else
        *a = weir_whereis(system_of(L, b), lua_tostring(L, index));
    return *a || lua_type(L, index) != LUA_TSTRING;
}

weir_error *unregistered(lua_State *L, int index) {
    return weir_error_new(WEIR_ENOACTOR, NULL, NULL, "no actor is registered as \"%s\"", lua_tostring(L, index));
}

weir_address need_address(lua_State *L, binding *b, int index) {
    weir_address a;
    if (!find_address(L, b, index, &a))
        raise_error(L, unregistered(L, index));
    return a;
}

void push_address(lua_State *L, weir_address a) {
    luaL_checkstack(L, 6, "address");
    lua_pushlightuserdata(L, (void *)&cache);
    lua_rawget(L, LUA_REGISTRYINDEX);
    lua_pushnumber(L, (double)a);
    lua_rawget(L, -2);
    if (lua_isnil(L, -1)) {
        lua_pop(L, 1);
        *(address *)lua_newuserdata(L, sizeof(address)) = (address){a, metatable};
        set_metatable(L, metatable);
        lua_pushnumber(L, (double)a);
        lua_pushvalue(L, -2);
        lua_rawset(L, -4);
    }
    lua_remove(L, -2);
}

static int address_new(lua_State *L) {
    push_address(L, check_address(L, 1));
    return 1;
}

static int address_id(lua_State *L) {
    lua_pushnumber(L, (double)check_address(L, 1));
    return 1;
}

static int address_tostring(lua_State *L) {
    binding *b = binding_of(L);
    weir_address a = check_address(L, 1);
    weir_actor_stats stats;
    char number[24];
    snprintf(number, sizeof number, "%llu", (unsigned long long)a);
    if (b->system && weir_actor_get_stats(b->system, a, &stats) == WEIR_OK)
        lua_pushfstring(L, "actor %s (%s)", number, stats.name);
    else
        lua_pushfstring(L, "actor %s", number);
    return 1;
}

void open_address(lua_State *L, binding *b) {
    static const luaL_Reg functions[] = {{"address", address_new}, {"id", address_id}, {NULL, NULL}};
    static const luaL_Reg methods[] = {{"id", address_id}, {"__tostring", address_tostring}, {NULL, NULL}};
    binding_register(L, b, functions);
    binding_metatable(L, b, metatable, methods);
    lua_pop(L, 1);
    lua_pushlightuserdata(L, (void *)&cache);
    lua_newtable(L);
    lua_createtable(L, 0, 1);
    lua_pushliteral(L, "v");
    lua_setfield(L, -2, "__mode");
    lua_setmetatable(L, -2);
    lua_rawset(L, LUA_REGISTRYINDEX);
}
