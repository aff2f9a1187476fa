/* lib_convert.c: files that are made of other files, or of nothing: conversion and random models, with progress told to a Lua function. Blocks for as long as
 * it takes: for main chunks of programs, not for actors. */
#include "../core/model/convert.h"
#include "../core/model/llama2c.h"
#include "../core/model/make.h"
#include "binding.h"

/* A Lua function that is told of progress; what it raises ends the work and is raised again when that has cleaned up. */
typedef struct listener {
    lua_State *L;
    int function; /* stack index, 0: none */
    bool failed;  /* the error is on the stack */
} listener;

static bool tell(void *data, uint64_t done, uint64_t total) {
    listener *l = data;
    if (interrupt_waits(binding_of(l->L)))
        return false;
    if (!l->function)
        return true;
    lua_pushvalue(l->L, l->function);
    lua_pushnumber(l->L, (double)done);
    lua_pushnumber(l->L, (double)total);
    l->failed = lua_pcall(l->L, 2, 0, 0) != 0;
    return !l->failed;
}

static int finish(lua_State *L, const listener *l, int code, weir_error *e) {
    if (l->failed) {
        weir_error_free(e);
        return lua_error(L);
    }
    return code == WEIR_OK ? 0 : raise_error(L, e);
}

static listener listener_at(lua_State *L, int index) {
    bool is = lua_isfunction(L, index);
    return (listener){.L = L, .function = is ? index : 0};
}

static int32_t int_field(lua_State *L, const char *name) {
    lua_getfield(L, 1, name);
    double n = lua_tonumber(L, -1);
    lua_pop(L, 1);
    return n >= 0 && n < INT32_MAX ? (int32_t)n : 0;
}

/* core.make_model({family, type, layers, width, heads, kv_heads, head_dim, ffn, vocab, context, tied, seed}, path, progress or nil) */
static int make_model(lua_State *L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    listener l = listener_at(L, 3);
    weir_error *e = NULL;
    const char *path = luaL_checkstring(L, 2);
    lua_getfield(L, 1, "type");
    const char *type = luaL_checkstring(L, -1);
    lua_getfield(L, 1, "family");
    lua_getfield(L, 1, "tied");
    lua_getfield(L, 1, "seed");
    weir__make_options o = {.family = luaL_checkstring(L, -3),
                            .layers = int_field(L, "layers"),
                            .width = int_field(L, "width"),
                            .heads = int_field(L, "heads"),
                            .kv_heads = int_field(L, "kv_heads"),
                            .head_dim = int_field(L, "head_dim"),
                            .ffn = int_field(L, "ffn"),
                            .vocab = int_field(L, "vocab"),
                            .context = int_field(L, "context"),
                            .type = weir_type_find(type),
                            .tied = lua_toboolean(L, -2),
                            .seed = (uint64_t)lua_tonumber(L, -1),
                            .progress = tell,
                            .data = &l};
    int code = weir__make(system_of(L, binding_of(L)), &o, path, &e);
    return finish(L, &l, code, e);
}

/* core.convert(in, out, type or nil, progress or nil, most bytes of weights in a file or nil) -> matrices that keep their type because their rows are no whole blocks, a warning ("": none) */
static int convert(lua_State *L) {
    listener l = listener_at(L, 4);
    weir_error *e = NULL;
    const char *in = luaL_checkstring(L, 1), *out = luaL_checkstring(L, 2), *type = luaL_optstring(L, 3, NULL);
    weir__convert_options o = {
        .type = type ? weir_type_find(type) : -1, .shard_bytes = (uint64_t)luaL_optnumber(L, 5, 0), .progress = tell, .data = &l};
    int code = weir__convert(system_of(L, binding_of(L)), in, out, &o, &e);
    if (code || l.failed)
        return finish(L, &l, code, e);
    lua_pushnumber(L, (double)o.kept);
    lua_pushstring(L, o.warning);
    return 2;
}

/* core.llama2c_convert(checkpoint, tokenizer or nil, out) */
static int llama2c_convert(lua_State *L) {
    binding *b = binding_of(L);
    weir_error *e = NULL;
    const char *in = luaL_checkstring(L, 1), *tokenizer = luaL_optstring(L, 2, NULL), *out = luaL_checkstring(L, 3);
    return weir__llama2c_convert(system_of(L, b), in, tokenizer, out, &e) == WEIR_OK ? 0 : raise_error(L, e);
}

/* core.weight_types(): names of the types that weir runs, and a table of those that it can quantise to */
static int weight_types(lua_State *L) {
    lua_newtable(L);
    lua_newtable(L);
    for (int type = 0, n = 0; type < WEIR_TYPES; type++) {
        if (!weir_type_get(type))
            continue;
        lua_pushstring(L, weir_type_get(type)->name);
        lua_rawseti(L, -3, ++n);
        lua_pushboolean(L, weir_type_writes(type));
        lua_setfield(L, -2, weir_type_get(type)->name);
    }
    return 2;
}

void open_convert(lua_State *L, binding *b) {
    static const luaL_Reg functions[] = {{"make_model", make_model},
                                         {"convert", convert},
                                         {"llama2c_convert", llama2c_convert},
                                         {"weight_types", weight_types},
                                         {NULL, NULL}};
    binding_register(L, b, functions);
}
