/* lib_template.c: the chat templates in a model's file, and the texts of its beginning and end tokens, without loading the model. Blocks on files: for main chunks of
 * programs, not for actors. */
#include "opened.h"

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
    opened *o = opened_source(L, b, luaL_checkstring(L, 1));
    weir__string text;
    weir_error *e = NULL;
    if (weir__source_tokenizer(o->source, &o->tokenizer, &e) != WEIR_OK)
        return raise_error(L, e);
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
    opened_close(o);
    return 1;
}

void open_template(lua_State *L, binding *b) {
    static const luaL_Reg functions[] = {{"template_info", template_info}, {NULL, NULL}};
    binding_register(L, b, functions);
}
