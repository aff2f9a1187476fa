/* lib_supervise.c: supervisors whose children are started by Lua functions. The functions are references of the Lua state, freed when the supervisor has ended.
 * Knows nothing of what a supervisor decides (core/rt/supervisor.c). */
#include "binding.h"

typedef struct lua_child {
    struct supervised *owner;
    int ref; /* the start function in the registry */
} lua_child;

typedef struct supervised {
    binding *binding;
    weir_system *system;
    size_t count;
    lua_child children[];
} supervised;

/* ---- what the runtime calls ---- */

typedef struct starting {
    const lua_child *child;
    weir_address address;
    weir_error *error;
} starting;

/* The function returns true and an address, or false and an error (weir/supervise.lua). */
static int run_start(lua_State *L) {
    starting *st = lua_touserdata(L, 1);
    lua_rawgeti(L, LUA_REGISTRYINDEX, st->child->ref);
    lua_call(L, 0, 2);
    if (!lua_toboolean(L, -2))
        st->error = to_error(L, -1);
    else
        st->address = check_address(L, lua_gettop(L));
    return 0;
}

static int start(weir_system *s, void *data, weir_address *out, weir_error **error) {
    starting st = {.child = data};
    binding *b = st.child->owner->binding;
    (void)s;
    stretch_begin(b);
    bool ok = protect(b, run_start, &st);
    weir_error *ended = stretch_end(b);
    if (ok && !ended && !st.error) {
        *out = st.address;
        return WEIR_OK;
    }
    if (ended) {
        weir_error_free(st.error);
        st.error = ended;
    }
    *error = st.error ? st.error : weir_error_new(WEIR_ENOMEM, NULL, NULL, "no memory to run its start");
    return weir_error_code(*error);
}

static void forget(void *data) {
    supervised *v = data;
    for (size_t i = 0; i < v->count; i++)
        luaL_unref(v->binding->aux, LUA_REGISTRYINDEX, v->children[i].ref);
    weir__free(v->system, v);
}

/* ---- making one ---- */

/* The field of the table on top; 0 if it is nil. */
static double number_field(lua_State *L, const char *name) {
    lua_getfield(L, -1, name);
    double n = lua_tonumber(L, -1);
    lua_pop(L, 1);
    return n;
}

static const char *name_field(lua_State *L) { /* stays in the table */
    lua_getfield(L, -1, "name");
    const char *name = lua_tostring(L, -1);
    lua_pop(L, 1);
    return name;
}

static void read_options(lua_State *L, weir_supervisor_options *o) {
    lua_pushvalue(L, 1);
    o->name = name_field(L);
    o->strategy = (enum weir_strategy)number_field(L, "strategy");
    o->intensity = (unsigned)number_field(L, "intensity");
    o->period = (int64_t)number_field(L, "period");
    o->backoff = (int64_t)number_field(L, "backoff");
    o->backoff_most = (int64_t)number_field(L, "backoff_most");
    o->drain = (int64_t)number_field(L, "drain");
    lua_pop(L, 1);
}

static void read_children(lua_State *L, supervised *v, weir_child *c) {
    for (size_t i = 0; i < v->count; i++) {
        lua_rawgeti(L, 2, (int)i + 1);
        c[i] = (weir_child){.name = name_field(L),
                            .start = start,
                            .data = &v->children[i],
                            .restart = (enum weir_restart)number_field(L, "restart"),
                            .patience = (int64_t)number_field(L, "patience")};
        lua_getfield(L, -1, "start");
        v->children[i].owner = v;
        v->children[i].ref = luaL_ref(L, LUA_REGISTRYINDEX);
        lua_pop(L, 1);
    }
}

/* core.supervise({name, strategy, intensity, period, ...}, {{name, start, restart, patience}, ...}) -> address. Checked by weir/supervise.lua: times are in ns,
 * enumerations their numbers, start a function without arguments. */
static int supervise(lua_State *L) {
    binding *b = binding_of(L);
    weir_system *s = system_of(L, b);
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checktype(L, 2, LUA_TTABLE);
    size_t n = lua_objlen(L, 2);
    weir_child *children = lua_newuserdata(L, (n + 1) * sizeof *children);
    supervised *v = weir__alloc(s, sizeof *v + n * sizeof *v->children);
    if (!v)
        return raise_code(L, WEIR_ENOMEM, "a supervisor");
    v->binding = b;
    v->system = s;
    v->count = n;
    weir_supervisor_options o = {.fini = forget, .data = v};
    weir_address a;
    weir_error *e = NULL;
    read_options(L, &o);
    read_children(L, v, children);
    if (weir_supervise(s, children, n, &o, &a, &e) != WEIR_OK)
        return raise_error(L, e);
    push_address(L, a);
    return 1;
}

void open_supervise(lua_State *L, binding *b) {
    static const luaL_Reg functions[] = {{"supervise", supervise}, {NULL, NULL}};
    binding_register(L, b, functions);
}
