/* lib_inspect.c: what tools look at: actors, streams, message counts. Changes nothing but the trace it keeps. */
#include <stdlib.h>

#include "binding.h"

#define TALLIES 4096 /* different (from, to, verb, kind) that a trace tells apart; further ones are counted together */

/* ---- actors and streams ---- */

static void set_number(lua_State *L, const char *name, double value) {
    lua_pushnumber(L, value);
    lua_setfield(L, -2, name);
}

static void push_actor_stats(lua_State *L, const weir_actor_stats *stats) {
    lua_createtable(L, 0, 12);
    lua_pushstring(L, stats->name);
    lua_setfield(L, -2, "name");
    set_number(L, "handled", (double)stats->handled);
    set_number(L, "sent", (double)stats->sent);
    set_number(L, "refused", (double)stats->refused);
    set_number(L, "dead", (double)stats->dead);
    set_number(L, "queued", (double)stats->queued);
    set_number(L, "queued_peak", (double)stats->queued_peak);
    set_number(L, "queued_bytes", (double)stats->queued_bytes);
    set_number(L, "calls_open", (double)stats->calls_open);
    set_number(L, "busy", (double)stats->busy / 1e9);
    set_number(L, "loop", stats->loop);
}

static int actor_stats(lua_State *L) {
    binding *b = binding_of(L);
    weir_actor_stats stats;
    weir_address a = need_address(L, b, 1);
    int code = weir_actor_get_stats(system_of(L, b), a, &stats);
    if (code != WEIR_OK)
        return raise_code(L, code, "no actor %.0f", (double)a);
    push_actor_stats(L, &stats);
    return 1;
}

/* Lua errors must not cross the runtime's frames: rows are collected first and pushed afterwards. */
typedef struct rows {
    weir_system *system;
    char *data;
    size_t size, count, row;
} rows;

static void *rows_add(rows *r) {
    if ((r->count + 1) * r->row > r->size) {
        size_t size = r->size ? 2 * r->size : 64 * r->row;
        char *data = weir__realloc(r->system, r->data, size);
        if (!data)
            return NULL;
        r->data = data;
        r->size = size;
    }
    return r->data + r->row * r->count++;
}

typedef struct actor_row {
    weir_address address;
    weir_actor_stats stats;
} actor_row;

static void add_actor(void *data, weir_address a, const weir_actor_stats *stats) {
    actor_row *row = rows_add(data);
    if (row)
        *row = (actor_row){a, *stats};
}

static int list_actors(lua_State *L) {
    weir_system *s = system_of(L, binding_of(L));
    rows r = {.system = s, .row = sizeof(actor_row)};
    weir_actors(s, add_actor, &r);
    const actor_row *row = (const actor_row *)(void *)r.data;
    lua_createtable(L, (int)r.count, 0);
    for (size_t i = 0; i < r.count; i++) {
        push_actor_stats(L, &row[i].stats);
        push_address(L, row[i].address);
        lua_setfield(L, -2, "address");
        lua_rawseti(L, -2, (int)i + 1);
    }
    weir__free(s, r.data);
    return 1;
}

static void add_stream(void *data, const weir__stream_info *info) {
    weir__stream_info *row = rows_add(data);
    if (row)
        *row = *info;
}

static void add_device(void *data, const char *name, const char *detail, bool usable) {
    lua_State *L = data;
    lua_createtable(L, 0, 3);
    lua_pushstring(L, name);
    lua_setfield(L, -2, "name");
    lua_pushstring(L, detail);
    lua_setfield(L, -2, "detail");
    lua_pushboolean(L, usable);
    lua_setfield(L, -2, "usable");
    lua_rawseti(L, -2, (int)lua_objlen(L, -2) + 1);
}

/* core.devices() -> {{name, detail, usable}...} */
static int list_devices(lua_State *L) {
    weir_system *s = system_of(L, binding_of(L));
    lua_newtable(L);
    weir__devices(s, add_device, L);
    return 1;
}

static int list_streams(lua_State *L) {
    weir_system *s = system_of(L, binding_of(L));
    rows r = {.system = s, .row = sizeof(weir__stream_info)};
    weir__streams(s, add_stream, &r);
    const weir__stream_info *row = (const weir__stream_info *)(void *)r.data;
    lua_createtable(L, (int)r.count, 0);
    for (size_t i = 0; i < r.count; i++, row++) {
        lua_createtable(L, 0, 9);
        lua_pushstring(L, weir__stream_state_name(row->state));
        lua_setfield(L, -2, "state");
        lua_pushstring(L, row->device);
        lua_setfield(L, -2, "device");
        lua_pushstring(L, row->name);
        lua_setfield(L, -2, "name");
        push_address(L, row->owner);
        lua_setfield(L, -2, "owner");
        set_number(L, "submitted", (double)row->submitted);
        set_number(L, "completed", (double)row->completed);
        set_number(L, "busy", (double)row->busy / 1e9);
        set_number(L, "tid", row->tid);
        lua_rawseti(L, -2, (int)i + 1);
    }
    weir__free(s, r.data);
    return 1;
}

/* ---- traces ---- */

typedef struct tally {
    weir_address from, to;
    const char *verb; /* NULL: unused */
    int kind, why;
    uint64_t count, bytes;
} tally;

static void tell(tally *table, enum weir_trace kind, weir_address from, weir_address to, const char *verb, size_t bytes, int why) {
    uint64_t hash = (from * 31 + to) * 31 + (uint64_t)(uintptr_t)verb / 8 + (uint64_t)kind;
    for (size_t i = 0; i < TALLIES; i++) {
        tally *t = &table[(hash + i) % TALLIES];
        if (!t->verb)
            *t = (tally){from, to, verb ? verb : "", (int)kind, why, 0, 0};
        if (t->from == from && t->to == to && t->verb == (verb ? verb : t->verb) && t->kind == (int)kind) {
            t->count++;
            t->bytes += bytes;
            return;
        }
    }
    table[hash % TALLIES].count++;
}

/* Every loop's thread comes here, and may still do so when the trace has just been ended. */
static void on_trace(void *data, enum weir_trace kind, weir_address from, weir_address to, const char *verb, size_t bytes, int why) {
    binding *root = data;
    pthread_mutex_lock(&root->tracing);
    if (root->tally)
        tell(root->tally, kind, from, to, verb, bytes, why);
    pthread_mutex_unlock(&root->tracing);
}

static tally *exchange_tally(binding *root, tally *table) {
    pthread_mutex_lock(&root->tracing);
    tally *before = root->tally;
    root->tally = table;
    pthread_mutex_unlock(&root->tracing);
    return before;
}

void trace_free(binding *b) {
    free(b->tally);
    b->tally = NULL;
}

static void push_tallies(lua_State *L, const tally *table) {
    static const char *const kinds[] = {"send", "call", "reply", "error", "dead"};
    lua_newtable(L);
    for (int i = 0, n = 0; table && i < TALLIES; i++) {
        const tally *t = &table[i];
        if (!t->verb)
            continue;
        lua_createtable(L, 0, 6);
        push_address(L, t->from);
        lua_setfield(L, -2, "from");
        push_address(L, t->to);
        lua_setfield(L, -2, "to");
        lua_pushstring(L, t->verb);
        lua_setfield(L, -2, "verb");
        lua_pushstring(L, kinds[t->kind]);
        lua_setfield(L, -2, "kind");
        set_number(L, "count", (double)t->count);
        set_number(L, "bytes", (double)t->bytes);
        lua_rawseti(L, -2, ++n);
    }
}

/* core.trace(true) starts to count messages; core.trace(false) ends it and gives the counts. */
static int trace(lua_State *L) {
    binding *b = binding_of(L), *root = b->root;
    weir_system *s = system_of(L, b);
    if (lua_toboolean(L, 1)) {
        tally *table = calloc(TALLIES, sizeof *table);
        if (!table)
            return raise_code(L, WEIR_ENOMEM, "a trace");
        free(exchange_tally(root, table));
        weir_set_trace(s, on_trace, root);
        return 0;
    }
    weir_set_trace(s, NULL, NULL);
    tally *table = exchange_tally(root, NULL);
    push_tallies(L, table);
    free(table);
    return 1;
}

void open_inspect(lua_State *L, binding *b) {
    static const luaL_Reg functions[] = {{"devices", list_devices}, {"actor_stats", actor_stats},
                                         {"actors", list_actors},   {"streams", list_streams},
                                         {"trace", trace},          {NULL, NULL}};
    binding_register(L, b, functions);
}
