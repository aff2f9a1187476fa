/* opened.c: what opened.h says. Blocks on files. */
#include "opened.h"

#include <string.h>

static const char metatable[] = "weir.opened";

static void drop(holder *h) {
    opened_close((opened *)h);
}

void opened_close(opened *o) {
    weir__tokenizer_free(o->tokenizer);
    weir__source_free(o->source);
    weir__checkpoint_unref(o->checkpoint);
    o->tokenizer = NULL;
    o->source = NULL;
    o->checkpoint = NULL;
}

static int collect(lua_State *L) {
    opened *o = lua_touserdata(L, 1);
    unhold(binding_of(L), &o->holder);
    opened_close(o);
    return 0;
}

opened *opened_new(lua_State *L, binding *b) {
    opened *o = lua_newuserdata(L, sizeof *o);
    memset(o, 0, sizeof *o);
    o->holder.drop = drop;
    hold(b, &o->holder);
    luaL_getmetatable(L, metatable);
    lua_setmetatable(L, -2);
    return o;
}

opened *opened_source(lua_State *L, binding *b, const char *path) {
    weir_error *e = NULL;
    opened *o = opened_new(L, b);
    if (weir__source_open(system_of(L, b), path, &o->source, &e) != WEIR_OK)
        raise_error(L, e);
    return o;
}

void opened_register(lua_State *L, binding *b) {
    static const luaL_Reg methods[] = {{"__gc", collect}, {NULL, NULL}};
    binding_metatable(L, b, metatable, methods);
    lua_pop(L, 1);
}
