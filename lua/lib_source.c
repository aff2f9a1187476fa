/* lib_source.c: checkpoints of either format for tools: what is in one, whether weir runs it, its tokeniser, and conversion. Blocks on files: for main chunks of
 * programs, not for actors. */
#include "opened.h"

#include <time.h>

#define SHOWN 8 /* elements of a list that are shown */

static void push_string(lua_State *L, weir__string s) {
    lua_pushlstring(L, s.data, s.size);
}

static void set_string(lua_State *L, const char *key, const char *value) {
    lua_pushstring(L, value);
    lua_setfield(L, -2, key);
}

static void set_number(lua_State *L, const char *key, double value) {
    lua_pushnumber(L, value);
    lua_setfield(L, -2, key);
}

/* ---- settings ---- */

static const char *kind_name(enum weir__value_kind kind) {
    static const char *const names[] = {"absent", "null", "boolean", "integer", "real", "text", "list", "map"};
    return names[kind];
}

/* A list or a map in a list is pushed as its kind's name in brackets. */
static void push_value(lua_State *L, const weir__value *v) {
    switch (v->kind) {
    case WEIR__BOOLEAN:
        lua_pushboolean(L, v->integer != 0);
        break;
    case WEIR__INTEGER:
    case WEIR__REAL:
        lua_pushnumber(L, v->real);
        break;
    case WEIR__TEXT:
        push_string(L, v->text);
        break;
    case WEIR__NULL:
        lua_pushlightuserdata(L, NULL);
        break;
    default:
        lua_pushfstring(L, "[%s]", kind_name(v->kind));
    }
}

typedef struct listing {
    lua_State *L;
    const weir__source *source;
    int count;
} listing;

static void push_elements(listing *l, const char *key, uint64_t count) {
    lua_newtable(l->L);
    for (uint64_t i = 0; i < count && i < SHOWN; i++) {
        weir__value v;
        weir__source_element(l->source, key, i, &v);
        push_value(l->L, &v);
        lua_rawseti(l->L, -2, (int)i + 1);
    }
}

/* Appends {name, kind, value, count} to the table on top. A Lua error may pass weir__source_each, which holds nothing. */
static int push_setting(void *data, const char *key, const weir__value *v, weir_error **error) {
    (void)error;
    listing *l = data;
    lua_createtable(l->L, 0, 4);
    set_string(l->L, "name", key);
    set_string(l->L, "kind", kind_name(v->kind));
    if (v->kind == WEIR__LIST) {
        set_number(l->L, "count", (double)v->count);
        push_elements(l, key, v->count);
    } else if (v->kind == WEIR__MAP) {
        lua_newtable(l->L);
    } else {
        push_value(l->L, v);
    }
    lua_setfield(l->L, -2, "value");
    lua_rawseti(l->L, -2, ++l->count);
    return WEIR_OK;
}

/* ---- files and tensors ---- */

static void push_files(lua_State *L, const weir__source *src) {
    lua_newtable(L);
    for (uint32_t i = 0; i < weir__source_files(src); i++) {
        lua_pushstring(L, weir__source_file(src, i));
        lua_rawseti(L, -2, (int)i + 1);
    }
}

static void push_tensor(lua_State *L, const weir__tensor *t) {
    double elements = 1;
    lua_createtable(L, 0, 7);
    push_string(L, t->name);
    lua_setfield(L, -2, "name");
    set_string(L, "type", weir__tensor_type_name(t->type));
    set_number(L, "size", (double)t->size);
    set_number(L, "offset", (double)t->offset);
    set_number(L, "file", t->file + 1);
    lua_createtable(L, (int)t->n_dims, 0);
    for (unsigned i = 0; i < t->n_dims; i++) {
        elements *= (double)t->dims[i];
        lua_pushnumber(L, (double)t->dims[i]);
        lua_rawseti(L, -2, (int)i + 1);
    }
    lua_setfield(L, -2, "dims");
    set_number(L, "elements", elements);
}

static void push_tensors(lua_State *L, const weir__source *src) {
    lua_newtable(L);
    for (size_t i = 0; i < weir__source_tensor_count(src); i++) {
        push_tensor(L, weir__source_tensor_at(src, i));
        lua_rawseti(L, -2, (int)i + 1);
    }
}

/* ---- the tokeniser ---- */

static void set_piece(lua_State *L, const char *key, const weir__tokenizer *t, int32_t id) {
    if (id < 0)
        return;
    lua_createtable(L, 0, 2);
    set_number(L, "id", id);
    push_string(L, weir__tokenizer_piece(t, id));
    lua_setfield(L, -2, "piece");
    lua_setfield(L, -2, key);
}

static void push_tokenizer(lua_State *L, const weir__tokenizer *t) {
    lua_createtable(L, 0, 4);
    set_number(L, "pieces", (double)weir__tokenizer_size(t));
    set_piece(L, "bos", t, weir__tokenizer_bos(t));
    set_piece(L, "eos", t, weir__tokenizer_eos(t));
}

/* Sets tokenizer, or tokenizer_error if there is one that weir does not know. */
static void set_tokenizer(lua_State *L, opened *o) {
    weir_error *e = NULL;
    if (weir__source_tokenizer(o->source, &o->tokenizer, &e) != WEIR_OK) {
        push_error(L, e);
        weir_error_free(e);
        lua_setfield(L, -2, "tokenizer_error");
    } else if (o->tokenizer) {
        push_tokenizer(L, o->tokenizer);
        lua_setfield(L, -2, "tokenizer");
    }
}

static void push_templates(lua_State *L, const weir__source *src) {
    weir__string text, name;
    int n = 0;
    lua_newtable(L);
    if (weir__source_template(src, NULL, &text)) {
        lua_pushstring(L, "default");
        lua_rawseti(L, -2, ++n);
    }
    for (uint32_t i = 0; weir__source_template_name(src, i, &name); i++) {
        push_string(L, name);
        lua_rawseti(L, -2, ++n);
    }
}

/* ---- the whole ---- */

/* Whether weir runs it: opens it as a model; sets `error`, or `bytes`, `parameters` and `warning`. */
static void set_verdict(lua_State *L, binding *b, opened *o, const char *path) {
    weir_error *e = NULL;
    if (weir__checkpoint_open(b->system, path, -1, &o->checkpoint, &e) != WEIR_OK) {
        push_error(L, e);
        weir_error_free(e);
        lua_setfield(L, -2, "error");
        return;
    }
    set_number(L, "bytes", (double)weir__checkpoint_bytes(o->checkpoint));
    set_number(L, "parameters", (double)weir__checkpoint_parameters(o->checkpoint));
    if (weir__checkpoint_warning(o->checkpoint))
        set_string(L, "warning", weir__checkpoint_warning(o->checkpoint));
}

/* core.source_info(path) -> {path, format, family, size, files, settings, tensors, tokenizer, tokenizer_error, templates, bytes, parameters, warning, error} */
static int source_info(lua_State *L) {
    binding *b = binding_of(L);
    const char *path = luaL_checkstring(L, 1);
    opened *o = opened_source(L, b, path);
    weir__string family;
    lua_createtable(L, 0, 14);
    set_string(L, "path", path);
    set_string(L, "format", weir__source_format(o->source) == WEIR__FORMAT_GGUF ? "gguf" : "safetensors");
    set_number(L, "size", (double)weir__source_bytes(o->source));
    if (weir__source_family(o->source, &family, NULL) == WEIR_OK) {
        push_string(L, family);
        lua_setfield(L, -2, "family");
    }
    push_files(L, o->source);
    lua_setfield(L, -2, "files");
    lua_newtable(L);
    weir__source_each(o->source, push_setting, &(listing){L, o->source, 0}, NULL);
    lua_setfield(L, -2, "settings");
    push_tensors(L, o->source);
    lua_setfield(L, -2, "tensors");
    push_templates(L, o->source);
    lua_setfield(L, -2, "templates");
    set_tokenizer(L, o);
    set_verdict(L, b, o, path);
    opened_close(o);
    return 1;
}

/* The tokeniser at a path, which need not have weights; held by the value on top of the stack. */
static const weir__tokenizer *open_tokenizer(lua_State *L, binding *b, const char *path) {
    opened *o = opened_new(L, b);
    weir_error *e = NULL;
    if (weir__tokenizer_open(system_of(L, b), path, &o->tokenizer, &e) != WEIR_OK)
        raise_error(L, e);
    if (!o->tokenizer)
        raise_code(L, WEIR_EUNSUPPORTED, "%s: there is no tokenizer", path);
    return o->tokenizer;
}

/* core.source_tokenize(path, text, special, bounds) -> array of ids; a path without weights will do */
static int source_tokenize(lua_State *L) {
    binding *b = binding_of(L);
    const char *path = luaL_checkstring(L, 1);
    size_t n;
    const char *text = luaL_checklstring(L, 2, &n);
    weir__part part = {text, n, lua_toboolean(L, 3)};
    weir_error *e = NULL;
    weir__ids ids = {0};
    if (weir__tokenizer_encode(open_tokenizer(L, b, path), &part, 1, lua_toboolean(L, 4), &ids, &e) != WEIR_OK) {
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

/* Processor time of this thread: what else the machine does is not measured. */
static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* core.tokenize_times(path, texts) -> {{seconds =, tokens =}...}: each text encoded once */
static int tokenize_times(lua_State *L) {
    binding *b = binding_of(L);
    const char *path = luaL_checkstring(L, 1);
    luaL_checktype(L, 2, LUA_TTABLE);
    int n = (int)lua_objlen(L, 2);
    const weir__tokenizer *t = open_tokenizer(L, b, path);
    lua_createtable(L, n, 0);
    for (int i = 1; i <= n; i++) {
        weir_error *e = NULL;
        weir__ids ids = {0};
        weir__part part = {0};
        lua_rawgeti(L, 2, i);
        part.text = luaL_checklstring(L, -1, &part.size);
        double from = seconds();
        int code = weir__tokenizer_encode(t, &part, 1, false, &ids, &e);
        double to = seconds(), tokens = (double)ids.size;
        weir__ids_free(b->system, &ids);
        lua_pop(L, 1);
        if (code != WEIR_OK)
            return raise_error(L, e);
        lua_createtable(L, 0, 2);
        set_number(L, "seconds", to - from);
        set_number(L, "tokens", tokens);
        lua_rawseti(L, -2, i);
    }
    return 1;
}

void open_source(lua_State *L, binding *b) {
    static const luaL_Reg functions[] = {
        {"source_info", source_info}, {"source_tokenize", source_tokenize}, {"tokenize_times", tokenize_times}, {NULL, NULL}};
    binding_register(L, b, functions);
    opened_register(L, b);
}
