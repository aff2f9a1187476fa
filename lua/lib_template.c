/* lib_template.c: the chat templates in a model's file, and the texts of its beginning and end tokens, without loading the model. Blocks on files: for main chunks of
 * programs, not for actors. */
#include <string.h>

#include "../core/model/source.h"
#include "binding.h"

/* What the collector gives back if a Lua error comes between. */
typedef struct opened {
    holder holder;
    weir__source *source;
    weir__tokenizer *tokenizer;
} opened;

static const char metatable[] = "weir.template";

static void opened_drop(holder *h) {
    opened *o = (opened *)h;
    weir__tokenizer_free(o->tokenizer);
    weir__source_free(o->source);
    o->tokenizer = NULL;
    o->source = NULL;
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
    if (weir__source_open(system_of(L, b), path, &o->source, &e) != WEIR_OK ||
        weir__source_tokenizer(o->source, &o->tokenizer, &e) != WEIR_OK)
        raise_error(L, e);
    return o;
}

/* Sets a field of the table on top to a string. */
static void set_string(lua_State *L, const char *key, weir__string s) {
    lua_pushlstring(L, s.data, s.size);
    lua_setfield(L, -2, key);
}

static void set_named(lua_State *L, const weir__source *src) {
    weir__string name, text;
    lua_newtable(L);
    for (uint32_t i = 0; weir__source_template_name(src, i, &name); i++) {
        lua_pushlstring(L, name.data, name.size);
        if (weir__source_template(src, lua_tostring(L, -1), &text)) {
            lua_pushlstring(L, text.data, text.size);
            lua_rawset(L, -3);
        } else {
            lua_pop(L, 1);
        }
    }
    lua_setfield(L, -2, "templates");
}

/* core.template_info(path) -> {template, templates = {name = text}, bos, eos}: texts, nil for what the file does not have */
static int template_info(lua_State *L) {
    binding *b = binding_of(L);
    opened *o = opened_new(L, b, luaL_checkstring(L, 1));
    weir__string text;
    lua_createtable(L, 0, 4);
    if (weir__source_template(o->source, NULL, &text))
        set_string(L, "template", text);
    set_named(L, o->source);
    if (o->tokenizer) {
        int32_t bos = weir__tokenizer_bos(o->tokenizer), eos = weir__tokenizer_eos(o->tokenizer);
        if (bos >= 0)
            set_string(L, "bos", weir__tokenizer_piece(o->tokenizer, bos));
        if (eos >= 0)
            set_string(L, "eos", weir__tokenizer_piece(o->tokenizer, eos));
    }
    opened_drop(&o->holder);
    return 1;
}

void open_template(lua_State *L, binding *b) {
    static const luaL_Reg functions[] = {{"template_info", template_info}, {NULL, NULL}};
    static const luaL_Reg methods[] = {{"__gc", opened_gc}, {NULL, NULL}};
    binding_register(L, b, functions);
    binding_metatable(L, b, metatable, methods);
    lua_pop(L, 1);
}
