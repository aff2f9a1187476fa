/* lib_encode.c: Lua values to message bodies. A table is an array if and only if its keys are exactly 1..n; {} is an empty array; other tables are maps with
 * string, number and boolean keys. Numbers that are integers below 2^53 in size travel as integers, all others as float64. What cannot be said in a body
 * is an error that names its place. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "binding.h"

/* Why a value cannot be encoded, and where: the place grows from the inside out. */
typedef struct trouble {
    int code;
    char what[160], place[200];
} trouble;

static bool encode_value(lua_State *L, binding *b, weir_writer *w, int index, int depth, trouble *why);

static bool __attribute__((format(printf, 3, 4))) trouble_set(trouble *why, int code, const char *format, ...) {
    va_list ap;
    va_start(ap, format);
    vsnprintf(why->what, sizeof why->what, format, ap);
    va_end(ap);
    why->code = code;
    why->place[0] = 0;
    return false;
}

/* Says that the trouble is at the key at `index` of the table around it. */
static void trouble_at(lua_State *L, int index, trouble *why) {
    char place[sizeof why->place];
    int type = lua_type(L, index);
    if (type == LUA_TSTRING)
        snprintf(place, sizeof place, ".%.40s%.150s", lua_tostring(L, index), why->place);
    else if (type == LUA_TNUMBER)
        snprintf(place, sizeof place, "[%.14g]%.150s", lua_tonumber(L, index), why->place);
    else
        snprintf(place, sizeof place, "[%s]%.150s", luaL_typename(L, index), why->place);
    memcpy(why->place, place, sizeof place);
}

static void encode_number(weir_writer *w, double n) {
    if (n == floor(n) && fabs(n) < 9007199254740992.0 && !(n == 0 && signbit(n)))
        weir_write_int(w, (int64_t)n);
    else
        weir_write_double(w, n);
}

/* int64_t and uint64_t cdata, through the library's function that takes them apart; other cdata is refused. */
static bool encode_cdata(lua_State *L, weir_writer *w, int index, trouble *why) {
    binding_field(L, "split");
    lua_pushvalue(L, index);
    if (lua_pcall(L, 1, 3, 0) != 0 || lua_isnil(L, -3)) {
        lua_settop(L, index);
        return trouble_set(why, WEIR_ETYPE, "a cdata that is no int64_t or uint64_t");
    }
    uint64_t value = (uint64_t)lua_tonumber(L, -2) << 32 | (uint64_t)lua_tonumber(L, -1);
    if (lua_toboolean(L, -3))
        weir_write_uint(w, value);
    else
        weir_write_int(w, (int64_t)value);
    lua_pop(L, 3);
    return true;
}

static bool encode_userdata(lua_State *L, weir_writer *w, int index, trouble *why) {
    weir_address a;
    weir_handle h;
    const void *p;
    size_t n;
    if (is_address(L, index, &a)) {
        weir_write_int(w, (int64_t)a);
    } else if (to_handle(L, index, &h)) {
        h.type->ref(h.object);
        weir_write_handle(w, h);
    } else if (to_bytes(L, index, &p, &n)) {
        weir_write_bin(w, p, n);
    } else {
        return trouble_set(why, WEIR_ETYPE, "a userdata cannot travel in a message");
    }
    return true;
}

typedef struct shape {
    size_t count, largest; /* keys; the largest positive integer key */
    bool positive;         /* all keys are positive integers below 2^32 */
} shape;

static shape table_shape(lua_State *L, int index) {
    shape s = {.positive = true};
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
        double key = lua_type(L, -2) == LUA_TNUMBER ? lua_tonumber(L, -2) : 0;
        s.count++;
        if (!(key >= 1) || key > 4294967295.0 || key != floor(key))
            s.positive = false;
        else if ((size_t)key > s.largest)
            s.largest = (size_t)key;
    }
    return s;
}

static bool encode_array(lua_State *L, binding *b, weir_writer *w, int index, int depth, size_t count, trouble *why) {
    weir_write_array(w);
    for (size_t i = 1; i <= count; i++) {
        lua_rawgeti(L, index, (int)i);
        if (!encode_value(L, b, w, lua_gettop(L), depth, why)) {
            lua_pushnumber(L, (double)i);
            trouble_at(L, lua_gettop(L), why);
            return false;
        }
        lua_pop(L, 1);
    }
    weir_write_close(w);
    return true;
}

static bool encode_key(lua_State *L, weir_writer *w, int index, trouble *why) {
    size_t n;
    const char *s;
    switch (lua_type(L, index)) {
    case LUA_TSTRING:
        s = lua_tolstring(L, index, &n);
        weir_write_str(w, s, n);
        return true;
    case LUA_TNUMBER:
        encode_number(w, lua_tonumber(L, index));
        return true;
    case LUA_TBOOLEAN:
        weir_write_bool(w, lua_toboolean(L, index));
        return true;
    default:
        return trouble_set(why, WEIR_ETYPE, "a key of type %s; wanted a string, a number or a boolean", luaL_typename(L, index));
    }
}

static bool encode_map(lua_State *L, binding *b, weir_writer *w, int index, int depth, trouble *why) {
    weir_write_map(w);
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
        int value = lua_gettop(L);
        if (!encode_key(L, w, value - 1, why))
            return false;
        if (!encode_value(L, b, w, value, depth, why)) {
            trouble_at(L, value - 1, why);
            return false;
        }
    }
    weir_write_close(w);
    return true;
}

/* The metatable of the table at index, for comparing; NULL if it has none. */
static const void *metatable_of(lua_State *L, int index) {
    if (!lua_getmetatable(L, index))
        return NULL;
    const void *p = lua_topointer(L, -1);
    lua_pop(L, 1);
    return p;
}

static bool encode_bin(lua_State *L, weir_writer *w, int index) {
    size_t n;
    lua_rawgeti(L, index, 1);
    const char *s = lua_tolstring(L, -1, &n);
    weir_write_bin(w, s ? s : "", s ? n : 0);
    lua_pop(L, 1);
    return true;
}

static bool encode_table(lua_State *L, binding *b, weir_writer *w, int index, int depth, trouble *why) {
    if (depth >= WEIR_MAX_DEPTH)
        return trouble_set(why, WEIR_EDEPTH, "nested deeper than %d, or a table that contains itself", WEIR_MAX_DEPTH);
    const void *meta = metatable_of(L, index);
    if (meta && meta == b->bin)
        return encode_bin(L, w, index);
    if (meta && meta == b->map)
        return encode_map(L, b, w, index, depth + 1, why);
    shape s = table_shape(L, index);
    if (s.positive && s.largest == s.count)
        return encode_array(L, b, w, index, depth + 1, s.count, why);
    if (!s.positive)
        return encode_map(L, b, w, index, depth + 1, why);
    size_t hole = 1;
    for (lua_rawgeti(L, index, 1); !lua_isnil(L, -1); lua_rawgeti(L, index, (int)++hole))
        lua_pop(L, 1);
    lua_pop(L, 1);
    return trouble_set(why, WEIR_ETYPE, "an array with a hole at %.0f (its largest index is %.0f): put weir.null there, or say weir.map",
                       (double)hole, (double)s.largest);
}

static bool encode_value(lua_State *L, binding *b, weir_writer *w, int index, int depth, trouble *why) {
    size_t n;
    const char *s;
    if (!lua_checkstack(L, 12))
        return trouble_set(why, WEIR_ENOMEM, "the Lua stack is full");
    switch (lua_type(L, index)) {
    case LUA_TNIL:
        weir_write_nil(w);
        return true;
    case LUA_TBOOLEAN:
        weir_write_bool(w, lua_toboolean(L, index));
        return true;
    case LUA_TNUMBER:
        encode_number(w, lua_tonumber(L, index));
        return true;
    case LUA_TSTRING:
        s = lua_tolstring(L, index, &n);
        weir_write_str(w, s, n);
        return true;
    case LUA_TTABLE:
        return encode_table(L, b, w, index, depth, why);
    case LUA_TUSERDATA:
        return encode_userdata(L, w, index, why);
    case LUA_TLIGHTUSERDATA:
        if (lua_touserdata(L, index) != NULL)
            break;
        weir_write_nil(w);
        return true;
    case 10: /* LuaJIT's cdata, which lua.h has no name for */
        return encode_cdata(L, w, index, why);
    default:
        break;
    }
    return trouble_set(why, WEIR_ETYPE, "a %s cannot travel in a message", luaL_typename(L, index));
}

weir_body *encode(lua_State *L, binding *b, int first) {
    int last = lua_gettop(L);
    if (first > last)
        return NULL;
    trouble why;
    weir_writer *w = weir_write_begin(b->system);
    for (int i = first; i <= last; i++) {
        if (!encode_value(L, b, w, i, 1, &why)) {
            weir_write_abort(w);
            lua_settop(L, last);
            raise_code(L, why.code, "argument %d%s: %s", i - first + 1, why.place, why.what);
        }
    }
    int code = w ? weir_write_error(w) : WEIR_ENOMEM;
    weir_body *body = weir_write_end(w);
    if (!body)
        raise_code(L, code ? code : WEIR_ENOMEM, "a message of %d arguments", last - first + 1);
    return body;
}
