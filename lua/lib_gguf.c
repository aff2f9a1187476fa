/* lib_gguf.c: GGUF files for tools: what is in a file, whether weir runs it, its tokeniser, and conversion into it. Blocks on files: for main chunks of
 * programs, not for actors. */
#include <string.h>

#include "../core/model/llama2c.h"
#include "../core/model/model.h"
#include "binding.h"

#define SHOWN 8 /* elements of an array of metadata that are shown */

static const char *const type_names[WEIR__GGUF_TYPES] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                                         "bool", "string", "array", "u64", "i64", "f64"};
static const uint8_t type_sizes[WEIR__GGUF_TYPES] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

static void push_string(lua_State *L, weir__string s) {
    lua_pushlstring(L, s.data, s.size);
}

/* Pushes the scalar at p as a number or a boolean. */
static void push_scalar(lua_State *L, enum weir__gguf_type type, const uint8_t *p) {
    union {
        int8_t i8;
        int16_t i16;
        int32_t i32;
        int64_t i64;
        uint16_t u16;
        uint32_t u32;
        uint64_t u64;
        float f32;
        double f64;
    } v;
    memcpy(&v, p, type_sizes[type]);
    switch (type) {
    case WEIR__GGUF_BOOL:
        lua_pushboolean(L, *p);
        return;
    case WEIR__GGUF_F32:
        lua_pushnumber(L, v.f32);
        return;
    case WEIR__GGUF_F64:
        lua_pushnumber(L, v.f64);
        return;
    case WEIR__GGUF_I8:
        lua_pushnumber(L, v.i8);
        return;
    case WEIR__GGUF_I16:
        lua_pushnumber(L, v.i16);
        return;
    case WEIR__GGUF_I32:
        lua_pushnumber(L, v.i32);
        return;
    case WEIR__GGUF_I64:
        lua_pushnumber(L, (double)v.i64);
        return;
    case WEIR__GGUF_U16:
        lua_pushnumber(L, v.u16);
        return;
    case WEIR__GGUF_U32:
        lua_pushnumber(L, v.u32);
        return;
    case WEIR__GGUF_U64:
        lua_pushnumber(L, (double)v.u64);
        return;
    default:
        lua_pushnumber(L, *p);
    }
}

/* The first elements of an array. */
static void push_array(lua_State *L, const weir__gguf_key *key) {
    uint64_t n = key->count < SHOWN ? key->count : SHOWN;
    const uint8_t *at = key->data;
    lua_newtable(L);
    for (uint64_t i = 0; i < n && key->element != WEIR__GGUF_ARRAY; i++) {
        if (key->element == WEIR__GGUF_STRING) {
            push_string(L, weir__gguf_next_string(&at));
        } else {
            push_scalar(L, key->element, at);
            at += type_sizes[key->element];
        }
        lua_rawseti(L, -2, (int)i + 1);
    }
}

static void push_key(lua_State *L, const weir__gguf_key *key) {
    lua_createtable(L, 0, 5);
    push_string(L, key->name);
    lua_setfield(L, -2, "name");
    lua_pushstring(L, type_names[key->type]);
    lua_setfield(L, -2, "type");
    const uint8_t *at = key->data;
    if (key->type == WEIR__GGUF_ARRAY) {
        lua_pushstring(L, type_names[key->element]);
        lua_setfield(L, -2, "element");
        lua_pushnumber(L, (double)key->count);
        lua_setfield(L, -2, "count");
        push_array(L, key);
    } else if (key->type == WEIR__GGUF_STRING) {
        push_string(L, weir__gguf_next_string(&at));
    } else {
        push_scalar(L, key->type, at);
    }
    lua_setfield(L, -2, "value");
}

static void push_tensor(lua_State *L, const weir__tensor *t) {
    const weir_type_info *type = weir_type_any(t->type);
    lua_createtable(L, 0, 6);
    push_string(L, t->name);
    lua_setfield(L, -2, "name");
    if (type)
        lua_pushstring(L, type->name);
    else
        lua_pushfstring(L, "type %d", t->type);
    lua_setfield(L, -2, "type");
    lua_pushnumber(L, (double)t->size);
    lua_setfield(L, -2, "size");
    lua_pushnumber(L, (double)t->offset);
    lua_setfield(L, -2, "offset");
    lua_createtable(L, (int)t->n_dims, 0);
    for (unsigned i = 0; i < t->n_dims; i++) {
        lua_pushnumber(L, (double)t->dims[i]);
        lua_rawseti(L, -2, (int)i + 1);
    }
    lua_setfield(L, -2, "dims");
}

/* What the collector gives back if a Lua error comes between. */
typedef struct opened {
    holder holder;
    weir__gguf *file;
    weir__tokenizer *tokenizer;
} opened;

static const char metatable[] = "weir.gguf";

static void opened_drop(holder *h) {
    opened *o = (opened *)h;
    weir__tokenizer_free(o->tokenizer);
    weir__gguf_free(o->file);
    o->tokenizer = NULL;
    o->file = NULL;
}

static int opened_gc(lua_State *L) {
    opened *o = lua_touserdata(L, 1);
    unhold(binding_of(L), &o->holder);
    opened_drop(&o->holder);
    return 0;
}

static opened *opened_new(lua_State *L, binding *b, const char *path) {
    weir_error *e = NULL;
    opened *o = lua_newuserdata(L, sizeof *o);
    memset(o, 0, sizeof *o);
    o->holder.drop = opened_drop;
    hold(b, &o->holder);
    luaL_getmetatable(L, metatable);
    lua_setmetatable(L, -2);
    if (weir__gguf_open(system_of(L, b), path, &o->file, &e) != WEIR_OK)
        raise_error(L, e);
    return o;
}

/* Whether weir runs the file: opens it as a model; sets `error`, or `bytes` and `parameters`. */
static void push_verdict(lua_State *L, binding *b, const char *path) {
    weir__checkpoint *c = NULL;
    weir_error *e = NULL;
    if (weir__checkpoint_open(b->system, path, -1, &c, &e) != WEIR_OK) {
        push_error(L, e);
        weir_error_free(e);
        lua_setfield(L, -2, "error");
        return;
    }
    double bytes = (double)weir__checkpoint_bytes(c), parameters = (double)weir__checkpoint_parameters(c);
    weir__checkpoint_unref(c);
    lua_pushnumber(L, bytes);
    lua_setfield(L, -2, "bytes");
    lua_pushnumber(L, parameters);
    lua_setfield(L, -2, "parameters");
}

/* core.gguf_info(path) -> {path, size, keys = {..}, tensors = {..}, bytes, parameters, error} */
static int gguf_info(lua_State *L) {
    binding *b = binding_of(L);
    const char *path = luaL_checkstring(L, 1);
    opened *o = opened_new(L, b, path);
    lua_createtable(L, 0, 8);
    lua_pushstring(L, path);
    lua_setfield(L, -2, "path");
    lua_pushnumber(L, (double)weir__gguf_file_size(o->file));
    lua_setfield(L, -2, "size");
    lua_newtable(L);
    for (size_t i = 0; i < weir__gguf_key_count(o->file); i++) {
        push_key(L, weir__gguf_key_at(o->file, i));
        lua_rawseti(L, -2, (int)i + 1);
    }
    lua_setfield(L, -2, "keys");
    lua_newtable(L);
    for (size_t i = 0; i < weir__gguf_tensor_count(o->file); i++) {
        push_tensor(L, weir__gguf_tensor_at(o->file, i));
        lua_rawseti(L, -2, (int)i + 1);
    }
    lua_setfield(L, -2, "tensors");
    opened_drop(&o->holder);
    push_verdict(L, b, path);
    return 1;
}

/* core.gguf_tokenize(path, text, special, bounds) -> array of ids */
static int gguf_tokenize(lua_State *L) {
    binding *b = binding_of(L);
    const char *path = luaL_checkstring(L, 1);
    size_t n;
    const char *text = luaL_checklstring(L, 2, &n);
    weir__part part = {text, n, lua_toboolean(L, 3)};
    opened *o = opened_new(L, b, path);
    weir_error *e = NULL;
    weir__ids ids = {0};
    if (weir__gguf_tokenizer(o->file, &o->tokenizer, &e) != WEIR_OK)
        return raise_error(L, e);
    if (!o->tokenizer)
        return raise_code(L, WEIR_EUNSUPPORTED, "%s: the file has no tokenizer", path);
    if (weir__tokenizer_encode(o->tokenizer, &part, 1, lua_toboolean(L, 4), &ids, &e) != WEIR_OK) {
        weir__ids_free(b->system, &ids);
        return raise_error(L, e);
    }
    lua_createtable(L, (int)ids.size, 0);
    for (size_t i = 0; i < ids.size; i++) {
        lua_pushinteger(L, ids.data[i]);
        lua_rawseti(L, -2, (int)i + 1);
    }
    weir__ids_free(b->system, &ids);
    return 1;
}

/* core.llama2c_convert(checkpoint, tokenizer or nil, out) */
static int llama2c_convert(lua_State *L) {
    binding *b = binding_of(L);
    weir_error *e = NULL;
    const char *in = luaL_checkstring(L, 1), *tokenizer = luaL_optstring(L, 2, NULL), *out = luaL_checkstring(L, 3);
    return weir__llama2c_convert(system_of(L, b), in, tokenizer, out, &e) == WEIR_OK ? 0 : raise_error(L, e);
}

void open_gguf(lua_State *L, binding *b) {
    static const luaL_Reg functions[] = {
        {"gguf_info", gguf_info}, {"gguf_tokenize", gguf_tokenize}, {"llama2c_convert", llama2c_convert}, {NULL, NULL}};
    static const luaL_Reg methods[] = {{"__gc", opened_gc}, {NULL, NULL}};
    binding_register(L, b, functions);
    binding_metatable(L, b, metatable, methods);
    lua_pop(L, 1);
}
