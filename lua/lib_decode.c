/* lib_decode.c: message bodies to Lua values. str and bin become strings, a bin of 4 KiB or more a weir.buffer on the body; integers of 2^53 and more
 * become int64_t or uint64_t cdata; nil inside arrays and maps becomes weir.null; handles become userdata. Reads bodies, makes none. */
#include <math.h>

#include "binding.h"

#define INLINE_BIN 4096 /* bytes of a bin from which on it stays in the body */

static bool exact(const weir_value *v) {
    return v->kind == WEIR_INT && v->i > -INT64_C(9007199254740992) && v->i < INT64_C(9007199254740992);
}

static void push_integer(lua_State *L, const weir_value *v) {
    if (exact(v)) {
        lua_pushnumber(L, (double)v->i);
        return;
    }
    binding_field(L, "join");
    lua_pushboolean(L, v->kind == WEIR_UINT);
    lua_pushnumber(L, (double)(v->u >> 32));
    lua_pushnumber(L, (double)(v->u & UINT32_MAX));
    lua_call(L, 3, 1);
}

static void decode_array(lua_State *L, binding *b, weir_cursor *c, uint32_t count) {
    lua_createtable(L, count < 65536 ? (int)count : 65536, 0);
    for (uint32_t i = 1; i <= count; i++) {
        decode_value(L, b, c, false);
        lua_rawseti(L, -2, (int)i);
    }
}

static void decode_key(lua_State *L, binding *b, weir_cursor *c) {
    weir_cursor at = *c;
    weir_value v = weir_read_value(&at);
    bool usable = v.kind == WEIR_STR || v.kind == WEIR_BIN || v.kind == WEIR_BOOL || (v.kind == WEIR_DOUBLE && !isnan(v.d)) || exact(&v);
    if (!usable)
        raise_code(L, WEIR_ETYPE, "a map whose key is nil, NaN, a container or an integer beyond 2^53 has no place in a Lua table");
    decode_value(L, b, c, false);
}

/* A map that would be an array to encode() is marked with weir.map's metatable, so that it stays a map when it is sent on. */
static void mark_map(lua_State *L, weir_cursor first, uint32_t count) {
    weir_value key = weir_read_value(&first);
    if (count > 0 && key.kind != WEIR_INT)
        return;
    binding_field(L, "map");
    lua_setmetatable(L, -2);
}

static void decode_map(lua_State *L, binding *b, weir_cursor *c, uint32_t count) {
    lua_createtable(L, 0, count < 65536 ? (int)count : 65536);
    mark_map(L, *c, count);
    for (uint32_t i = 0; i < count; i++) {
        decode_key(L, b, c);
        decode_value(L, b, c, false);
        lua_rawset(L, -3);
    }
}

static void decode_bytes(lua_State *L, binding *b, weir_cursor *c, const weir_value *v) {
    if (v->kind == WEIR_BIN && v->s.size >= INLINE_BIN)
        push_body_bytes(L, b, c->body, v->s.data, v->s.size);
    else
        lua_pushlstring(L, v->s.data, v->s.size);
}

void decode_value(lua_State *L, binding *b, weir_cursor *c, bool top) {
    weir_value v = weir_read_value(c);
    luaL_checkstack(L, 8, "message nested too deeply");
    switch (v.kind) {
    case WEIR_NIL:
        if (top)
            lua_pushnil(L);
        else
            lua_pushlightuserdata(L, NULL);
        break;
    case WEIR_BOOL:
        lua_pushboolean(L, v.b);
        break;
    case WEIR_INT:
    case WEIR_UINT:
        push_integer(L, &v);
        break;
    case WEIR_DOUBLE:
        lua_pushnumber(L, v.d);
        break;
    case WEIR_STR:
    case WEIR_BIN:
        decode_bytes(L, b, c, &v);
        break;
    case WEIR_ARRAY:
        decode_array(L, b, c, v.count);
        break;
    case WEIR_MAP:
        decode_map(L, b, c, v.count);
        break;
    case WEIR_HANDLE:
        push_handle(L, b, v.handle);
        break;
    case WEIR_EXT:
        raise_code(L, WEIR_ETYPE, "a message with ext type %d, which has no place in Lua", v.ext_type);
        break;
    case WEIR_END:
        raise_code(L, WEIR_EMSGPACK, "a message that ends early");
    }
}

int decode_all(lua_State *L, binding *b, weir_cursor c, uint32_t count) {
    if (count > 4096)
        return raise_code(L, WEIR_ETOOBIG, "a message of %u arguments; at most 4096 can be unpacked", (unsigned)count);
    luaL_checkstack(L, (int)count + 8, "message with too many arguments");
    for (uint32_t i = 0; i < count; i++)
        decode_value(L, b, &c, true);
    return (int)count;
}

int decode_arguments(lua_State *L, binding *b, const weir_body *body) {
    uint32_t count;
    weir_cursor c = weir_read(body, &count);
    return decode_all(L, b, c, count);
}
