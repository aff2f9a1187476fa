/* lib_yield.c: whether a wait can suspend the running coroutine and all that resumed it, and if not, which call is to blame. LuaJIT cannot yield across
 * C functions that call back (string.gsub), nor in hooks, finalizers and error handlers. Looks only; changes nothing. */
#include <string.h>

#include "binding.h"

/* As the library's coroutine.resume noted it. */
lua_State *coroutine_parent(lua_State *L, lua_State *co) {
    binding_field(L, "parents");
    lua_pushthread(co);
    if (co != L)
        lua_xmove(co, L, 1);
    lua_rawget(L, -2);
    lua_State *resumer = lua_tothread(L, -1);
    lua_pop(L, 2);
    return resumer;
}

bool can_yield(lua_State *L, const task *t, lua_State **where) {
    for (lua_State *co = L; co; co = coroutine_parent(L, co)) {
        *where = co;
        if (!lua_isyieldable(co))
            return false;
        if (co == t->co)
            return true;
    }
    return false;
}

/* Pushes the name of the C function on top of `co`'s stack instead of it. The table of names is the library's: a name, or false for what lets a yield
 * pass; the name is NULL for those, and "?" for what is not in the table. */
static const char *name_function(lua_State *co) {
    binding_field(co, "names");
    lua_insert(co, -2);
    lua_rawget(co, -2);
    lua_remove(co, -2);
    if (lua_isboolean(co, -1))
        return NULL;
    const char *name = lua_tostring(co, -1);
    return name ? name : "?";
}

/* What to say for one C function; NULL: look further out. */
static const char *accuse(lua_State *co, const char *name, const lua_Debug *frame, bool *handler) {
    if (!name)
        return NULL;
    if (strcmp(name, "xpcall") == 0) {
        *handler = true;
        return NULL;
    }
    if (strcmp(name, "error") == 0)
        return "an error handler (xpcall)";
    if (strcmp(name, "collectgarbage") == 0)
        return "a finalizer (__gc)";
    return *name == '?' ? lua_pushfstring(co, "the C function '%s'", frame->name ? frame->name : "?") : name;
}

const char *blame(lua_State *co) {
    lua_Debug frame;
    bool handler = false;
    if (!lua_checkstack(co, LUA_MINSTACK))
        return "this call";
    for (int level = 0; lua_getstack(co, level, &frame); level++) {
        lua_getinfo(co, "Sfn", &frame);
        if (strcmp(frame.what, "C") == 0) {
            const char *culprit = accuse(co, name_function(co), &frame, &handler);
            if (culprit)
                return culprit;
        }
        lua_pop(co, 1);
    }
    if (lua_isyieldable(co))
        return "a coroutine that was resumed by a function taken before weir was loaded";
    return handler ? "an error handler (xpcall)" : "a finalizer (__gc) or a hook";
}

/* core.yieldable(): whether a wait could suspend here. */
static int yieldable(lua_State *L) {
    binding *b = binding_of(L);
    task *t = current(L, b);
    lua_State *where;
    lua_pushboolean(L, t->co ? can_yield(L, t, &where) : !b->attached && !weir__running(b->system));
    return 1;
}

void open_yield(lua_State *L, binding *b) {
    static const luaL_Reg functions[] = {{"yieldable", yieldable}, {NULL, NULL}};
    binding_register(L, b, functions);
}
