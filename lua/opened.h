/* opened.h: files of models that a function of the module has open while it runs; the collector closes them if a Lua error comes between. */
#ifndef WEIR_LUA_OPENED_H
#define WEIR_LUA_OPENED_H

#include "../core/model/model.h"
#include "binding.h"

typedef struct opened {
    holder holder;
    weir__source *source;
    weir__checkpoint *checkpoint;
    weir__tokenizer *tokenizer;
} opened;

/* Nothing open yet; a value on top of the stack, which owns what is put into the fields. */
opened *opened_new(lua_State *L, binding *b);
/* The same with a source. Raises what opening says. */
opened *opened_source(lua_State *L, binding *b, const char *path);
/* Closes everything now. */
void opened_close(opened *o);
void opened_register(lua_State *L, binding *b);

#endif
