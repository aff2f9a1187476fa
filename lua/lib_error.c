/* lib_error.c: errors as Lua tables {code, text, actor, cause, traceback} and as weir_error, both ways. A traceback travels inside the text of an ELUA
 * error, behind the message, and is taken apart again on arrival. */
#include <stdio.h>
#include <string.h>

#include "binding.h"

static const char traceback_mark[] = "\nstack traceback:\n";

static void set_text(lua_State *L, int table, const char *text) {
    const char *mark = strstr(text, traceback_mark);
    if (!mark) {
        lua_pushstring(L, text);
        lua_setfield(L, table, "text");
        return;
    }
    lua_pushlstring(L, text, (size_t)(mark - text));
    lua_setfield(L, table, "text");
    lua_pushstring(L, mark + 1);
    lua_setfield(L, table, "traceback");
}

/* An error table without its fields but the code. */
static void push_table(lua_State *L, int code) {
    lua_createtable(L, 0, 4);
    lua_pushstring(L, weir_code_name(code));
    lua_setfield(L, -2, "code");
    binding_field(L, "error");
    lua_setmetatable(L, -2);
}

void push_error(lua_State *L, const weir_error *e) {
    luaL_checkstack(L, 8, "error");
    push_table(L, weir_error_code(e));
    int table = lua_gettop(L);
    set_text(L, table, weir_error_text(e));
    if (weir_error_actor(e)) {
        lua_pushstring(L, weir_error_actor(e));
        lua_setfield(L, table, "actor");
    }
    if (weir_error_cause(e)) {
        push_error(L, weir_error_cause(e));
        lua_setfield(L, table, "cause");
    }
}

/* An error that is being pushed: if Lua has no memory for that, it stays here until the next one comes or the state closes. */
static _Thread_local weir_error *limbo
    __attribute__((tls_model("initial-exec"))); /* cheaper, and leak checkers lose their way in the other models */

void forget_errors(void) {
    weir_error_free(limbo);
    limbo = NULL;
}

void push_taken(lua_State *L, weir_error *e) {
    forget_errors();
    limbo = e;
    push_error(L, e);
    forget_errors();
}

int raise_error(lua_State *L, weir_error *e) {
    push_taken(L, e);
    return lua_error(L);
}

int fail_or_raise(lua_State *L, bool quiet, weir_error *e) {
    if (!quiet)
        return raise_error(L, e);
    lua_pushnil(L);
    push_taken(L, e);
    return 2;
}

int raise_code(lua_State *L, int code, const char *format, ...) {
    push_table(L, code);
    va_list ap;
    va_start(ap, format);
    char text[512];
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    set_text(L, lua_gettop(L), text);
    return lua_error(L);
}

static int code_of(const char *name) {
    for (int code = 0; name && code < WEIR_CODES; code++) {
        if (strcmp(name, weir_code_name(code)) == 0)
            return code;
    }
    return WEIR_ELUA;
}

static const char *field(lua_State *L, int table, const char *name) {
    lua_getfield(L, table, name);
    return lua_tostring(L, -1);
}

/* Of an error table. Depth bounds a chain that runs in a circle. */
static weir_error *table_to_error(lua_State *L, int table, int depth) {
    luaL_checkstack(L, 8, "error");
    weir_error *cause = NULL;
    int top = lua_gettop(L);
    lua_getfield(L, table, "cause");
    if (lua_istable(L, -1) && depth < 16)
        cause = table_to_error(L, lua_gettop(L), depth + 1);
    const char *text = field(L, table, "text"), *actor = field(L, table, "actor"), *traceback = field(L, table, "traceback");
    bool traced = traceback && strncmp(traceback, traceback_mark + 1, sizeof traceback_mark - 2) == 0;
    weir_error *e = weir_error_new(code_of(field(L, table, "code")), actor, cause, "%s%s%s", text ? text : "", traced ? "\n" : "",
                                   traced ? traceback : "");
    lua_settop(L, top);
    return e;
}

/* Values that are no error tables become ELUA with the text that weir.describe makes of them. */
weir_error *to_error(lua_State *L, int index) {
    if (index < 0)
        index = lua_gettop(L) + index + 1;
    if (lua_istable(L, index)) {
        lua_getfield(L, index, "code");
        bool is_error = lua_type(L, -1) == LUA_TSTRING;
        lua_pop(L, 1);
        if (is_error)
            return table_to_error(L, index, 0);
    }
    if (lua_type(L, index) == LUA_TSTRING)
        return weir_error_new(WEIR_ELUA, NULL, NULL, "%s", lua_tostring(L, index));
    return weir_error_new(WEIR_ELUA, NULL, NULL, "error value of type %s", luaL_typename(L, index));
}

/* core.codes: name -> {number, text, http, retry} */
void open_error(lua_State *L, binding *b) {
    (void)b;
    lua_createtable(L, 0, WEIR_CODES);
    for (int code = 1; code < WEIR_CODES; code++) {
        lua_createtable(L, 0, 4);
        lua_pushinteger(L, code);
        lua_setfield(L, -2, "number");
        lua_pushstring(L, weir_code_text(code));
        lua_setfield(L, -2, "text");
        lua_pushinteger(L, weir_code_http(code));
        lua_setfield(L, -2, "http");
        lua_pushboolean(L, weir_code_retry(code));
        lua_setfield(L, -2, "retry");
        lua_setfield(L, -2, weir_code_name(code));
    }
    lua_setfield(L, -2, "codes");
}
