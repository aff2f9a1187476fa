/* lib_loop.c: Lua on other loops. Each loop that Lua is spawned on has a host: an actor in C that makes the loop's Lua state on first use, on the loop's thread,
 * and starts actors in it. The state's binding is attached to the system that the first state, the root, owns; the loop closes it after its actors have ended. */
#include <lualib.h>
#include <stdlib.h>
#include <string.h>

#include "binding.h"

static const char attached_key[] = "weir.attached", state_key[] = "lua";

/* What a new state is told. In the registry while it loads weir.core. */
typedef struct attaching {
    binding *root;
    weir_actor *host;
    unsigned loop;
} attaching;

/* ---- a loop's state ---- */

/* The code outside of actors of an attached state speaks in the name of the host. Called by binding_new; nothing is done in a root's state. */
bool attach(lua_State *L, binding *b) {
    lua_getfield(L, LUA_REGISTRYINDEX, attached_key);
    const attaching *a = lua_touserdata(L, -1);
    lua_pop(L, 1);
    b->root = a ? a->root : b;
    if (!a)
        return true;
    task *t = weir__alloc(a->root->system, sizeof *t);
    if (!t)
        return false;
    t->binding = b;
    t->self = a->host;
    t->address = weir_self(a->host);
    b->main = t;
    b->loop = a->loop;
    b->attached = true;
    b->number = 1;
    b->start = a->root->start;
    b->down = a->root->down;
    b->system = a->root->system;
    return true;
}

/* Before the system goes: everything that Lua objects hold goes back. */
void detach(binding *b) {
    weir_system *s = b->system;
    if (!s)
        return;
    drop_holders(b);
    weir__free(s, b->main);
    b->main = NULL;
    b->system = NULL;
}

static void state_close(weir_system *s, void *value) {
    (void)s;
    lua_close(value);
}

/* Loads the library in a new state. The error is left on the stack as Lua has it. */
static int state_open(lua_State *L) {
    luaL_openlibs(L);
    const char *const fields[] = {"path", "cpath"};
    lua_getglobal(L, "package");
    for (int i = 0; i < 2; i++) {
        lua_pushstring(L, ((const char **)lua_touserdata(L, 1))[i]);
        lua_setfield(L, -2, fields[i]);
    }
    lua_getglobal(L, "require");
    lua_pushliteral(L, "weir");
    lua_call(L, 1, 0);
    return 0;
}

static lua_State *state_new(weir_actor *self, binding *root, const char *const paths[2], weir_error **error) {
    attaching a = {root, self, weir_loop_of(root->system, weir_self(self))};
    lua_State *L = luaL_newstate();
    if (!L) {
        weir_fail(error, WEIR_ENOMEM, "no memory for a Lua state");
        return NULL;
    }
    lua_pushlightuserdata(L, &a);
    lua_setfield(L, LUA_REGISTRYINDEX, attached_key);
    int code = lua_cpcall(L, state_open, (void *)paths);
    if (code != 0)
        weir_fail(error, code == LUA_ERRMEM ? WEIR_ENOMEM : WEIR_ELUA, "a Lua state for loop %u: %s", a.loop,
                  lua_tostring(L, -1) ? lua_tostring(L, -1) : luaL_typename(L, -1));
    else if (weir__loop_attach(root->system, state_key, L, state_close) != WEIR_OK)
        code = weir_fail(error, WEIR_ENOMEM, "no memory for a Lua state");
    if (code != 0) {
        lua_close(L);
        return NULL;
    }
    lua_pushnil(L);
    lua_setfield(L, LUA_REGISTRYINDEX, attached_key);
    return L;
}

/* The binding of the host's loop, made on first use; NULL: error. */
static binding *state_of(weir_actor *self, const char *const paths[2], weir_error **error) {
    binding *root = *(binding **)weir_state(self);
    if (weir_loop_of(root->system, weir_self(self)) == 0)
        return root;
    lua_State *L = weir__loop_attached(root->system, state_key);
    if (!L && paths)
        L = state_new(self, root, paths, error);
    binding *b = L ? binding_find(L) : NULL;
    if (b) { /* an earlier host may have been killed */
        b->main->self = self;
        b->main->address = weir_self(self);
    }
    return b;
}

/* ---- the host ---- */

typedef struct request {
    binding *binding;
    const weir_body *body;
    weir_address address;
    weir_error *error;
} request;

/* weir/loops.lua has the function: it returns an address, or nil and an error. */
static int run_request(lua_State *L) {
    request *r = lua_touserdata(L, 1);
    binding_field(L, "spawn_here");
    int n = decode_arguments(L, r->binding, r->body);
    lua_call(L, n, 2);
    if (lua_isnil(L, -2))
        r->error = to_error(L, -1);
    else
        r->address = check_address(L, lua_gettop(L) - 1);
    return 0;
}

static bool read_paths(const weir_body *body, char *text[2], const char *paths[2]) {
    weir_cursor c = weir_read(body, NULL);
    for (int i = 0; i < 2; i++) {
        const char *s;
        size_t n;
        if (!weir_read_bytes(&c, &s, &n) || !(text[i] = malloc(n + 1)))
            return false;
        memcpy(text[i], s, n);
        text[i][n] = 0;
        paths[i] = text[i];
    }
    return true;
}

/* spawn [package.path, package.cpath, options, module, argument, ...] -> address */
static void on_spawn(weir_actor *self, const weir_message *m) {
    request r = {.body = weir_message_body(m)};
    char *text[2] = {NULL, NULL};
    const char *paths[2];
    if (!read_paths(r.body, text, paths))
        weir_fail(&r.error, WEIR_EINVAL, "spawn: no paths");
    else
        r.binding = state_of(self, paths, &r.error);
    if (r.binding) {
        stretch_begin(r.binding);
        bool ok = protect(r.binding, run_request, &r);
        weir_error *ended = stretch_end(r.binding);
        if (ended) {
            weir_error_free(r.error);
            r.error = ended;
        } else if (!ok && !r.error) {
            weir_fail(&r.error, WEIR_ENOMEM, "no memory to start an actor");
        }
    }
    free(text[0]);
    free(text[1]);
    if (r.error)
        weir_reply_error(self, m, r.error);
    else
        weir_reply(self, m, weir_pack(weir_system_of(self), "i", (int64_t)r.address));
}

/* model -> address: a model's actors live on the main loop, whoever asks. */
static void on_model(weir_actor *self, const weir_message *m) {
    weir_address a = 0;
    weir_error *e = NULL;
    if (model_spawn(weir_system_of(self), &a, &e) != WEIR_OK)
        weir_reply_error(self, m, e);
    else
        weir_reply(self, m, weir_pack(weir_system_of(self), "i", (int64_t)a));
}

/* stopping: the system is; its sleepers are woken. */
static void on_stopping(weir_actor *self, const weir_message *m) {
    binding *b = state_of(self, NULL, NULL);
    (void)m;
    if (b) {
        b->stopping = true;
        wake_sleepers(b);
    }
}

static void host_fini(weir_system *s, void *state) {
    weir__free(s, state);
}

/* A host that was killed leaves its state to the next one. */
static const weir_handler handlers[] = {{"spawn", on_spawn}, {"model", on_model}, {"stopping", on_stopping}, {NULL, NULL}};
static const weir_behaviour behaviour = {.name = "lua", .handlers = handlers, .fini = host_fini};

/* ---- functions ---- */

static int host_new(lua_State *L, binding *root, unsigned loop, weir_address *out) {
    weir_error *e = NULL;
    binding **state = weir__alloc(root->system, sizeof *state);
    if (!state)
        return raise_code(L, WEIR_ENOMEM, "a host for Lua actors");
    *state = root;
    weir_spawn_options options = {.loop = (int)loop + WEIR_LOOP_MAIN};
    if (weir_spawn(root->system, &behaviour, state, &options, out, &e) != WEIR_OK)
        return raise_error(L, e);
    return 0;
}

/* core.host(loop) -> address of the loop's host, counted from 0: the main loop */
static int host(lua_State *L) {
    binding *b = binding_of(L), *root = b->root;
    weir_system *s = system_of(L, b);
    double loop = luaL_checknumber(L, 1);
    if (!(loop >= 0) || loop >= weir_loops(s) || loop != (unsigned)loop)
        return raise_code(L, WEIR_EINVAL, "loop is %.14g; there are %u, counted from 0", loop, weir_loops(s));
    _Atomic weir_address *place = &root->hosts[(unsigned)loop];
    weir_address a = atomic_load(place), made;
    weir_actor_stats stats;
    if (!a || weir_actor_get_stats(s, a, &stats) != WEIR_OK) {
        host_new(L, root, (unsigned)loop, &made);
        if (atomic_compare_exchange_strong(place, &a, made))
            a = made;
        else
            weir_kill(s, made); /* another loop was faster */
    }
    push_address(L, a);
    return 1;
}

void stop_hosts(binding *b) {
    weir_verb stopping = weir_intern(b->system, "stopping");
    for (unsigned i = 1; i <= WEIR_MAX_WORKERS && stopping; i++) {
        weir_address a = atomic_load(&b->hosts[i]);
        if (a)
            weir_post(b->system, 0, a, stopping, NULL);
    }
}

/* core.loops() -> how many there are; core.loop() -> the one of this state, from 0 */
static int loops(lua_State *L) {
    lua_pushnumber(L, weir_loops(system_of(L, binding_of(L))));
    return 1;
}

static int loop_here(lua_State *L) {
    lua_pushnumber(L, binding_of(L)->loop);
    return 1;
}

/* core.next_loop() -> the workers in turn; 0 if there are none */
static int next_loop(lua_State *L) {
    binding *b = binding_of(L);
    unsigned workers = weir_loops(system_of(L, b)) - 1;
    lua_pushnumber(L, workers ? 1 + atomic_fetch_add(&b->root->turn, 1) % workers : 0);
    return 1;
}

/* core.check_arguments(...): raises if they cannot travel. */
static int check_arguments(lua_State *L) {
    binding *b = binding_of(L);
    system_of(L, b);
    weir_body_free(encode(L, b, 1));
    return 0;
}

/* core.exit_program(code): in an attached state: asks the root's program to end with this code. core.exit_code() -> what was asked for */
static int exit_program(lua_State *L) {
    binding *b = binding_of(L);
    int none = -1;
    atomic_compare_exchange_strong(&b->root->exit_code, &none, (int)luaL_checkinteger(L, 1));
    terminate_program(b->root);
    return 0;
}

static int exit_code(lua_State *L) {
    int code = atomic_load(&binding_of(L)->root->exit_code);
    if (code < 0)
        return 0;
    lua_pushinteger(L, code);
    return 1;
}

void open_loop(lua_State *L, binding *b) {
    static const luaL_Reg functions[] = {{"host", host},
                                         {"loops", loops},
                                         {"loop", loop_here},
                                         {"next_loop", next_loop},
                                         {"check_arguments", check_arguments},
                                         {"exit_program", exit_program},
                                         {"exit_code", exit_code},
                                         {NULL, NULL}};
    binding_register(L, b, functions);
    lua_pushboolean(L, b->attached);
    lua_setfield(L, -2, "attached");
}
