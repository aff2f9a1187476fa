/* lib_watchdog.c: the runtime's watchdog for Lua: what it reports, on a thread of its own where no Lua may run, is written to standard error and kept to be
 * asked for. Knows nothing of what handlers do. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "binding.h"

enum { KEPT = 64 }; /* reports until they are asked for; later ones push out the oldest */

typedef struct report {
    weir_address actor;
    double elapsed; /* seconds */
    char name[WEIR_MAX_NAME], verb[WEIR_MAX_NAME];
} report;

struct watchdog {
    pthread_mutex_t lock;
    bool quiet;
    unsigned first, count;
    report kept[KEPT];
};

static void on_slow(void *data, weir_address actor, const char *name, const char *verb, int64_t elapsed) {
    watchdog *w = data;
    pthread_mutex_lock(&w->lock);
    report *r = &w->kept[(w->first + w->count) % KEPT];
    if (w->count == KEPT)
        w->first = (w->first + 1) % KEPT;
    else
        w->count++;
    *r = (report){.actor = actor, .elapsed = (double)elapsed / 1e9};
    snprintf(r->name, sizeof r->name, "%s", name ? name : "?");
    snprintf(r->verb, sizeof r->verb, "%s", verb ? verb : "?");
    bool quiet = w->quiet;
    pthread_mutex_unlock(&w->lock);
    if (!quiet)
        fprintf(stderr, "weir: actor %llu (%s) has been handling \"%s\" for %.1f s\n", (unsigned long long)actor, name ? name : "?",
                verb ? verb : "?", (double)elapsed / 1e9);
}

static watchdog *watchdog_of(lua_State *L, binding *b) {
    if (b->watchdog)
        return b->watchdog;
    watchdog *w = calloc(1, sizeof *w);
    if (!w || pthread_mutex_init(&w->lock, NULL) != 0) {
        free(w);
        raise_code(L, WEIR_ENOMEM, "a watchdog");
        return NULL;
    }
    return b->watchdog = w;
}

void watchdog_free(binding *b) {
    if (!b->watchdog)
        return;
    pthread_mutex_destroy(&b->watchdog->lock);
    free(b->watchdog);
    b->watchdog = NULL;
}

/* core.watchdog(seconds, quiet): on, with reports to standard error unless quiet; 0 seconds: off. */
static int watchdog_set(lua_State *L) {
    binding *b = binding_of(L);
    weir_system *s = system_of(L, b);
    int64_t limit = check_seconds(L, 1);
    if (b->attached)
        return raise_code(L, WEIR_EINVAL, "weir.watchdog belongs to the main loop's Lua state");
    watchdog *w = watchdog_of(L, b);
    pthread_mutex_lock(&w->lock);
    w->quiet = lua_toboolean(L, 2);
    pthread_mutex_unlock(&w->lock);
    int code = weir_set_watchdog(s, limit, limit ? on_slow : NULL, w);
    return code == WEIR_OK ? 0 : raise_code(L, code, "weir.watchdog: %s", weir_code_text(code));
}

static void push_report(lua_State *L, const report *r) {
    lua_createtable(L, 0, 4);
    push_address(L, r->actor);
    lua_setfield(L, -2, "address");
    lua_pushstring(L, r->name);
    lua_setfield(L, -2, "name");
    lua_pushstring(L, r->verb);
    lua_setfield(L, -2, "verb");
    lua_pushnumber(L, r->elapsed);
    lua_setfield(L, -2, "elapsed");
}

/* core.watchdog_reports(): an array of {address, name, verb, elapsed}, oldest first; forgets them. */
static int watchdog_reports(lua_State *L) {
    binding *b = binding_of(L);
    watchdog *w = b->watchdog;
    lua_newtable(L);
    for (int n = 1; w; n++) {
        pthread_mutex_lock(&w->lock);
        bool any = w->count > 0;
        report r = w->kept[w->first];
        if (any) {
            w->first = (w->first + 1) % KEPT;
            w->count--;
        }
        pthread_mutex_unlock(&w->lock);
        if (!any)
            break;
        push_report(L, &r);
        lua_rawseti(L, -2, n);
    }
    return 1;
}

void open_watchdog(lua_State *L, binding *b) {
    static const luaL_Reg functions[] = {{"watchdog", watchdog_set}, {"watchdog_reports", watchdog_reports}, {NULL, NULL}};
    binding_register(L, b, functions);
}
