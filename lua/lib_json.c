/* lib_json.c: JSON through jansson: strict UTF-8, exact integers (cdata int64_t beyond 2^53), null is weir.null. Knows no messages. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "binding.h"

static const char metatable[] = "weir.json";

/* A document on its way, given back by the collector if a Lua error comes between. */
static json_t **root_new(lua_State *L) {
    json_t **root = lua_newuserdata(L, sizeof *root);
    *root = NULL;
    luaL_getmetatable(L, metatable);
    lua_setmetatable(L, -2);
    return root;
}

static int root_gc(lua_State *L) {
    json_t **root = lua_touserdata(L, 1);
    json_decref(*root);
    *root = NULL;
    return 0;
}

static void push_integer(lua_State *L, json_int_t n) {
    if (n > -(INT64_C(1) << 53) && n < (INT64_C(1) << 53)) {
        lua_pushnumber(L, (double)n);
        return;
    }
    binding_field(L, "join");
    lua_pushboolean(L, 0);
    lua_pushnumber(L, (double)((uint64_t)n >> 32));
    lua_pushnumber(L, (double)((uint64_t)n & UINT32_MAX));
    lua_call(L, 3, 1);
}

static void push_json(lua_State *L, json_t *v, bool exact);

/* Gives the object on top a metatable {keys = array of its keys in order}. */
static void push_keys(lua_State *L, json_t *v) {
    int n = 0;
    lua_createtable(L, 0, 1);
    lua_createtable(L, (int)json_object_size(v), 0);
    for (void *at = json_object_iter(v); at; at = json_object_iter_next(v, at)) {
        lua_pushlstring(L, json_object_iter_key(at), json_object_iter_key_len(at));
        lua_rawseti(L, -2, ++n);
    }
    lua_setfield(L, -2, "keys");
    lua_setmetatable(L, -2);
}

static void push_container(lua_State *L, json_t *v, bool exact) {
    if (json_is_array(v)) {
        lua_createtable(L, (int)json_array_size(v), 0);
        for (size_t i = 0; i < json_array_size(v); i++) {
            push_json(L, json_array_get(v, i), exact);
            lua_rawseti(L, -2, (int)i + 1);
        }
        return;
    }
    lua_createtable(L, 0, (int)json_object_size(v));
    for (void *at = json_object_iter(v); at; at = json_object_iter_next(v, at)) {
        lua_pushlstring(L, json_object_iter_key(at), json_object_iter_key_len(at));
        push_json(L, json_object_iter_value(at), exact);
        lua_rawset(L, -3);
    }
    if (exact)
        push_keys(L, v);
}

/* A real with the value of an integer is a cdata double where the difference is wanted. */
static void push_real(lua_State *L, double n, bool exact) {
    if (!exact || n != floor(n)) {
        lua_pushnumber(L, n);
        return;
    }
    binding_field(L, "real");
    lua_pushnumber(L, n);
    lua_call(L, 1, 1);
}

static void push_json(lua_State *L, json_t *v, bool exact) {
    luaL_checkstack(L, 8, "JSON nested too deeply");
    switch (json_typeof(v)) {
    case JSON_OBJECT:
    case JSON_ARRAY:
        push_container(L, v, exact);
        break;
    case JSON_STRING:
        lua_pushlstring(L, json_string_value(v), json_string_length(v));
        break;
    case JSON_INTEGER:
        push_integer(L, json_integer_value(v));
        break;
    case JSON_REAL:
        push_real(L, json_real_value(v), exact);
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        lua_pushboolean(L, json_is_true(v));
        break;
    case JSON_NULL:
        lua_pushlightuserdata(L, NULL);
        break;
    }
}

/* json.decode(text [, exact]): exact: an object's metatable has its keys in order (`keys`), and 1.0 is another value than 1 (a cdata double). */
static int json_decode(lua_State *L) {
    size_t n;
    bool exact = lua_toboolean(L, 2);
    const char *text = luaL_checklstring(L, 1, &n);
    json_error_t error;
    json_t **root = root_new(L);
    *root = json_loadb(text, n, JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &error);
    if (!*root)
        return raise_code(L, WEIR_EFORMAT, "JSON, line %d, column %d: %s", error.line, error.column, error.text);
    push_json(L, *root, exact);
    return 1;
}

static json_t *to_json(lua_State *L, binding *b, int index, int depth);

static json_t *number_to_json(lua_State *L, double n) {
    if (n == floor(n) && fabs(n) < 9007199254740992.0)
        return json_integer((json_int_t)n);
    if (isnan(n) || isinf(n))
        raise_code(L, WEIR_ETYPE, "JSON has no number for %f", n);
    return json_real(n);
}

static json_t *checked(lua_State *L, json_t *v, const char *what) {
    if (!v)
        raise_code(L, WEIR_ETYPE, "%s", what);
    return v;
}

static json_t *cdata_to_json(lua_State *L, int index) {
    binding_field(L, "split");
    lua_pushvalue(L, index);
    lua_call(L, 1, 3);
    uint64_t n = (uint64_t)lua_tonumber(L, -2) << 32 | (uint64_t)lua_tonumber(L, -1);
    if (lua_isnil(L, -3) || (lua_toboolean(L, -3) && n > INT64_MAX))
        raise_code(L, WEIR_ETYPE, "JSON takes no cdata but 64-bit integers below 2^63");
    lua_pop(L, 3);
    return json_integer((json_int_t)n);
}

/* The new container is put into `into` (counted there) before its elements are made, so that an error loses nothing. */
static void fill_array(lua_State *L, binding *b, json_t *array, int index, int depth) {
    int n = (int)lua_objlen(L, index);
    for (int i = 1; i <= n; i++) {
        lua_rawgeti(L, index, i);
        json_t *v = checked(L, to_json(L, b, lua_gettop(L), depth), "no memory for JSON");
        json_array_append_new(array, v);
        lua_pop(L, 1);
    }
}

static void fill_object(lua_State *L, binding *b, json_t *object, int index, int depth) {
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
        if (lua_type(L, -2) != LUA_TSTRING)
            raise_code(L, WEIR_ETYPE, "a JSON object's key is a %s, wanted a string", luaL_typename(L, -2));
        json_t *v = to_json(L, b, lua_gettop(L), depth);
        if (json_object_set_new(object, lua_tostring(L, -2), v) != 0)
            raise_code(L, WEIR_ETYPE, "JSON key or value is no UTF-8");
    }
}

static bool is_array(lua_State *L, int index) {
    size_t count = 0;
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
        count++;
        if (lua_type(L, -2) != LUA_TNUMBER) {
            lua_pop(L, 2);
            return false;
        }
    }
    if (count != lua_objlen(L, index))
        raise_code(L, WEIR_ETYPE, "a JSON array with holes or foreign keys: put weir.null there");
    return true;
}

static json_t *table_to_json(lua_State *L, binding *b, int index, int depth) {
    if (depth > WEIR_MAX_DEPTH)
        raise_code(L, WEIR_EDEPTH, "JSON nested deeper than %d, or a table that contains itself", WEIR_MAX_DEPTH);
    bool map = false;
    if (lua_getmetatable(L, index)) {
        map = lua_topointer(L, -1) == b->map;
        lua_pop(L, 1);
    }
    bool array = !map && is_array(L, index);
    json_t **holder = root_new(L);
    *holder = array ? json_array() : json_object();
    if (array)
        fill_array(L, b, *holder, index, depth + 1);
    else
        fill_object(L, b, *holder, index, depth + 1);
    json_t *v = json_incref(*holder);
    lua_pop(L, 1);
    return v;
}

static json_t *to_json(lua_State *L, binding *b, int index, int depth) {
    size_t n;
    const char *s;
    luaL_checkstack(L, 12, "JSON nested too deeply");
    switch (lua_type(L, index)) {
    case LUA_TNIL:
        return json_null();
    case LUA_TBOOLEAN:
        return json_boolean(lua_toboolean(L, index));
    case LUA_TNUMBER:
        return number_to_json(L, lua_tonumber(L, index));
    case LUA_TSTRING:
        s = lua_tolstring(L, index, &n);
        return checked(L, json_stringn(s, n), "a JSON string is no UTF-8");
    case LUA_TTABLE:
        return table_to_json(L, b, index, depth);
    case 10: /* LuaJIT's cdata */
        return cdata_to_json(L, index);
    case LUA_TLIGHTUSERDATA:
        if (lua_touserdata(L, index) == NULL)
            return json_null();
        break;
    default:
        break;
    }
    raise_code(L, WEIR_ETYPE, "a %s has no place in JSON", luaL_typename(L, index));
    return NULL;
}

static int add_text(const char *text, size_t size, void *data) {
    luaL_addlstring(data, text, size);
    return 0;
}

static int digits_of(double n) {
    char text[32];
    for (int digits = 15; digits < 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, n);
        if (strtod(text, NULL) == n)
            return digits;
    }
    return 17;
}

/* The fewest digits with which every number of a document is read back as it was: 15 to 17. 0.1 is then written as 0.1. */
static int digits_needed(json_t *v) {
    int most = json_is_real(v) ? digits_of(json_real_value(v)) : 15;
    for (size_t i = 0; i < json_array_size(v) && most < 17; i++) {
        int digits = digits_needed(json_array_get(v, i));
        most = digits > most ? digits : most;
    }
    for (void *at = json_object_iter(v); at && most < 17; at = json_object_iter_next(v, at)) {
        int digits = digits_needed(json_object_iter_value(at));
        most = digits > most ? digits : most;
    }
    return most;
}

/* json.encode(value [, indent]) */
static int json_encode(lua_State *L) {
    int indent = (int)luaL_optinteger(L, 2, 0);
    lua_settop(L, 1);
    json_t *v = to_json(L, binding_of(L), 1, 1);
    *root_new(L) = v;
    luaL_Buffer buffer;
    luaL_buffinit(L, &buffer);
    size_t flags = JSON_ENCODE_ANY | JSON_SORT_KEYS | (indent > 0 ? JSON_INDENT((size_t)indent) : JSON_COMPACT) |
                   JSON_REAL_PRECISION((size_t)digits_needed(v));
    json_dump_callback(v, add_text, &buffer, flags);
    luaL_pushresult(&buffer);
    return 1;
}

void open_json(lua_State *L, binding *b) {
    static const luaL_Reg functions[] = {{"decode", json_decode}, {"encode", json_encode}, {NULL, NULL}};
    luaL_newmetatable(L, metatable);
    lua_pushcfunction(L, root_gc);
    lua_setfield(L, -2, "__gc");
    lua_pop(L, 1);
    lua_newtable(L);
    binding_register(L, b, functions);
    lua_setfield(L, -2, "json");
}
