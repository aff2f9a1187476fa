/* lib_buffer.c: memory that Lua sees and does not own: device buffers that came as handles, and long byte strings inside message bodies; other handles as
 * opaque objects. The userdata keeps the memory alive; closing the system empties it. */
#include <string.h>

#include "binding.h"

static const char metatable[] = "weir.buffer", handle_metatable[] = "weir.handle";

typedef struct memory {
    holder holder;
    weir_handle handle; /* counted; type NULL: none */
    weir_body *body;    /* counted; NULL: none */
    const char *data;   /* NULL after the system was closed */
    size_t size;
} memory;

static void memory_drop(holder *h) {
    memory *m = (memory *)h;
    if (m->handle.type)
        m->handle.type->unref(m->handle.object);
    weir_body_free(m->body);
    m->handle.type = NULL;
    m->body = NULL;
    m->data = NULL;
    m->size = 0;
}

static memory *memory_new(lua_State *L, binding *b, const char *name) {
    memory *m = lua_newuserdata(L, sizeof *m);
    memset(m, 0, sizeof *m);
    m->holder.drop = memory_drop;
    hold(b, &m->holder);
    luaL_getmetatable(L, name);
    lua_setmetatable(L, -2);
    return m;
}

void push_handle(lua_State *L, binding *b, weir_handle h) {
    bool buffer = h.type == &weir__buffer_handle;
    memory *m = memory_new(L, b, buffer ? metatable : handle_metatable);
    h.type->ref(h.object);
    m->handle = h;
    if (buffer) {
        m->data = weir__buffer_host(h.object);
        m->size = m->data ? weir__buffer_size(h.object) : 0; /* memory that only kernels may touch shows as empty */
    }
}

void push_body_bytes(lua_State *L, binding *b, const weir_body *body, const void *p, size_t n) {
    memory *m = memory_new(L, b, metatable);
    m->body = weir_body_ref((weir_body *)body);
    m->data = p;
    m->size = n;
}

static memory *test_memory(lua_State *L, int index) {
    memory *m = lua_touserdata(L, index);
    if (!m || !lua_getmetatable(L, index))
        return NULL;
    luaL_getmetatable(L, metatable);
    luaL_getmetatable(L, handle_metatable);
    bool is = lua_rawequal(L, -3, -2) || lua_rawequal(L, -3, -1);
    lua_pop(L, 3);
    return is ? m : NULL;
}

bool to_handle(lua_State *L, int index, weir_handle *h) {
    const memory *m = test_memory(L, index);
    if (!m || !m->handle.type)
        return false;
    *h = m->handle;
    return true;
}

bool to_bytes(lua_State *L, int index, const void **p, size_t *n) {
    if (lua_type(L, index) == LUA_TSTRING) {
        *p = lua_tolstring(L, index, n);
        return true;
    }
    const memory *m = test_memory(L, index);
    if (!m || !m->data)
        return false;
    *p = m->data;
    *n = m->size;
    return true;
}

static memory *check_memory(lua_State *L) {
    memory *m = luaL_checkudata(L, 1, metatable);
    if (!m->data)
        raise_code(L, WEIR_ESTOPPING, "this buffer went with its system");
    return m;
}

static int memory_gc(lua_State *L) {
    memory *m = lua_touserdata(L, 1);
    unhold(binding_of(L), &m->holder);
    memory_drop(&m->holder);
    return 0;
}

static int memory_size(lua_State *L) {
    lua_pushnumber(L, (double)check_memory(L)->size);
    return 1;
}

static int memory_address(lua_State *L) {
    lua_pushlightuserdata(L, (void *)check_memory(L)->data);
    return 1;
}

/* b:string([offset [, size]]): a copy; offset counts bytes from 0. */
static int memory_string(lua_State *L) {
    const memory *m = check_memory(L);
    double offset = luaL_optnumber(L, 2, 0), size = luaL_optnumber(L, 3, (double)m->size - offset);
    if (!(offset >= 0) || !(size >= 0) || offset + size > (double)m->size)
        return raise_code(L, WEIR_EINVAL, "bytes %.0f to %.0f of a buffer of %.0f", offset, offset + size, (double)m->size);
    lua_pushlstring(L, m->data + (size_t)offset, (size_t)size);
    return 1;
}

static int memory_tostring(lua_State *L) {
    const memory *m = luaL_checkudata(L, 1, metatable);
    lua_pushfstring(L, "buffer of %f bytes", (double)m->size);
    return 1;
}

void open_buffer(lua_State *L, binding *b) {
    static const luaL_Reg methods[] = {{"size", memory_size},
                                       {"__len", memory_size},
                                       {"address", memory_address},
                                       {"string", memory_string},
                                       {"__tostring", memory_tostring},
                                       {"__gc", memory_gc},
                                       {NULL, NULL}};
    static const luaL_Reg opaque[] = {{"__gc", memory_gc}, {NULL, NULL}};
    binding_metatable(L, b, metatable, methods);
    lua_setfield(L, -2, "buffer");
    binding_metatable(L, b, handle_metatable, opaque);
    lua_pop(L, 1);
}
