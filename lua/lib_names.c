/* lib_names.c: names of actors in Lua: giving, taking back, looking up. Where an address is wanted a name does as well (lib_address.c). */
#include <string.h>

#include "binding.h"

/* core.name(name, address) */
static int name_give(lua_State *L) {
    binding *b = binding_of(L);
    const char *name = luaL_checkstring(L, 1);
    weir_error *e = NULL;
    weir_address a = lua_isnoneornil(L, 2) ? current(L, b)->address : need_address(L, b, 2);
    return weir__register(system_of(L, b), name, a, &e) == WEIR_OK ? 0 : raise_error(L, e);
}

/* core.unname(name): whether somebody had it. */
static int name_take(lua_State *L) {
    const char *name = luaL_checkstring(L, 1);
    lua_pushboolean(L, weir_unregister(system_of(L, binding_of(L)), name) == WEIR_OK);
    return 1;
}

static int name_find(lua_State *L) {
    const char *name = luaL_checkstring(L, 1);
    weir_address a = weir_whereis(system_of(L, binding_of(L)), name);
    if (!a)
        return 0;
    push_address(L, a);
    return 1;
}

/* Lua errors must not cross the runtime's frames: names are collected first and pushed afterwards. */
typedef struct named {
    weir_address actor;
    char name[WEIR_MAX_NAME];
} named;

typedef struct listing {
    named *rows;
    size_t count, room;
} listing;

static void add_name(void *data, const char *name, weir_address a) {
    listing *l = data;
    if (l->count < l->room) {
        l->rows[l->count].actor = a;
        strncpy(l->rows[l->count].name, name, WEIR_MAX_NAME - 1);
        l->rows[l->count].name[WEIR_MAX_NAME - 1] = 0;
    }
    l->count++;
}

/* core.names(): name -> address. */
static int name_list(lua_State *L) {
    weir_system *s = system_of(L, binding_of(L));
    listing l = {NULL, 0, 0};
    weir_names(s, add_name, &l);
    while (l.count > l.room) { /* other threads may have added some */
        l.room = l.count + 8;
        l.rows = lua_newuserdata(L, l.room * sizeof *l.rows);
        l.count = 0;
        weir_names(s, add_name, &l);
    }
    lua_createtable(L, 0, (int)l.count);
    for (size_t i = 0; i < l.count; i++) {
        push_address(L, l.rows[i].actor);
        lua_setfield(L, -2, l.rows[i].name);
    }
    return 1;
}

void open_names(lua_State *L, binding *b) {
    static const luaL_Reg functions[] = {
        {"name", name_give}, {"unname", name_take}, {"whereis", name_find}, {"names", name_list}, {NULL, NULL}};
    binding_register(L, b, functions);
}
