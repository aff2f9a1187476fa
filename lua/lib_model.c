/* lib_model.c: starts the actor that loads models, and finds model files. All else about models is messages, spoken by weir/model.lua. */
#include "../actors/actors.h"
#include "binding.h"

int model_spawn(weir_system *s, weir_address *out, weir_error **error) {
    return weir__model_spawn(s, out, error);
}

/* core.model_spawn() -> address */
static int spawn(lua_State *L) {
    binding *b = binding_of(L);
    weir_address a = 0;
    weir_error *e = NULL;
    if (model_spawn(system_of(L, b), &a, &e) != WEIR_OK)
        return raise_error(L, e);
    push_address(L, a);
    return 1;
}

/* core.model_locate(path or name) -> path */
static int model_locate(lua_State *L) {
    char path[4096];
    weir_error *e = NULL;
    system_of(L, binding_of(L));
    if (weir__model_locate(luaL_checkstring(L, 1), path, sizeof path, &e) != WEIR_OK)
        return raise_error(L, e);
    lua_pushstring(L, path);
    return 1;
}

void open_model(lua_State *L, binding *b) {
    static const luaL_Reg functions[] = {{"model_spawn", spawn}, {"model_locate", model_locate}, {NULL, NULL}};
    binding_register(L, b, functions);
}
