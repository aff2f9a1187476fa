/* supervised.h: children for tests of supervisors: each keeps account of its lives; what happens is written to a log, "+a" for a start, "-a" for an end. */
#ifndef WEIR_RT_SUPERVISED_H
#define WEIR_RT_SUPERVISED_H

#include "fixture.h"

enum { MS = 1000000, KIDS = 4, MOST_STARTS = 64 };

typedef struct world {
    fixture f;
    char log[1024];
    int finis;         /* of supervisors */
    int downs;         /* that the watcher got */
    weir_error *ended; /* why the supervisor ended */
} world;

typedef struct kid {
    world *w;
    char name[8];
    uint64_t failing;     /* bit n: start n fails */
    bool stubborn;        /* does not end when asked to stop */
    int refusal;          /* the code of a start that fails; 0: ENOENT */
    weir__linger *leaves; /* begins to linger for each life but the first */
    int loop;             /* weir_spawn_options.loop */
    int starts, alive, handled;
    bool twice; /* two lives at a time were seen */
    weir_address address;
    int64_t at[MOST_STARTS]; /* when start n was */
} kid;

static inline void note(world *w, char sign, const char *name) {
    size_t n = strlen(w->log);
    snprintf(w->log + n, sizeof w->log - n, "%s%c%s", n ? " " : "", sign, name);
}

static inline void kid_fail(weir_actor *self, const weir_message *m) {
    kid *k = weir_state(self);
    k->handled++;
    weir_exit(self, weir_error_new(WEIR_EIO, k->name, NULL, "%s broke at %d", k->name, (int)first_int(m)));
}

static inline void kid_end(weir_actor *self, const weir_message *m) {
    (void)m;
    weir_exit(self, NULL);
}

static inline void kid_work(weir_actor *self, const weir_message *m) {
    kid *k = weir_state(self);
    k->handled++;
    if (weir_message_is_call(m))
        weir_reply(self, m, weir_pack(weir_system_of(self), "i", (int64_t)k->starts));
}

static inline void kid_stop(weir_actor *self) {
    kid *k = weir_state(self);
    if (!k->stubborn)
        weir_exit(self, NULL);
}

static inline void kid_fini(weir_system *s, void *state) {
    kid *k = state;
    (void)s;
    k->alive--;
    note(k->w, '-', k->name);
}

static const weir_handler kid_handlers[] = {{"fail", kid_fail}, {"end", kid_end}, {"work", kid_work}, {NULL, NULL}};
static const weir_behaviour kid_behaviour = {.name = "kid", .handlers = kid_handlers, .stop = kid_stop, .fini = kid_fini};

static inline int kid_start(weir_system *s, void *data, weir_address *out, weir_error **error) {
    kid *k = data;
    int n = k->starts++;
    weir_spawn_options o = {.name = k->name, .loop = k->loop};
    if (n < MOST_STARTS)
        k->at[n] = weir_now(s);
    if (n < MOST_STARTS && k->failing >> n & 1)
        return weir_fail(error, k->refusal ? k->refusal : WEIR_ENOENT, "%s has nothing to start with", k->name);
    k->twice |= k->alive++ != 0;
    note(k->w, '+', k->name);
    int code = weir_spawn(s, &kid_behaviour, k, &o, out, error);
    if (code != WEIR_OK)
        return code;
    k->address = *out;
    if (k->leaves && n)
        weir__linger_begin(s, k->leaves, *out);
    code = weir__register(s, k->name, *out, error);
    if (code != WEIR_OK)
        weir_kill(s, *out);
    return code;
}

static inline void world_fini(void *data) {
    ((world *)data)->finis++;
}

static inline void watcher_down(weir_actor *self, weir_address who, const weir_error *why) {
    world *w = weir_state(self);
    (void)who;
    w->downs++;
    weir_error_free(w->ended);
    w->ended = why ? weir_error_ref(why) : NULL;
}

static const weir_behaviour watcher_behaviour = {.name = "watcher", .down = watcher_down};

static inline void world_open(world *w, enum weir_driver driver, uint64_t seed) {
    memset(w, 0, sizeof *w);
    fixture_open(&w->f, driver, seed);
}

static inline void world_close(world *w) {
    fixture_close(&w->f);
    weir_error_free(w->ended);
}

static inline void kids_init(world *w, kid *k, weir_child *c, int n) {
    memset(k, 0, (size_t)n * sizeof *k);
    memset(c, 0, (size_t)n * sizeof *c);
    for (int i = 0; i < n; i++) {
        k[i].w = w;
        snprintf(k[i].name, sizeof k[i].name, "%c", 'a' + i);
        c[i] = (weir_child){.name = k[i].name, .start = kid_start, .data = &k[i]};
    }
}

static inline void watch(world *w, weir_address a) {
    weir_address watcher = fixture_spawn(&w->f, &watcher_behaviour, w);
    assert_int_equal(weir_monitor(weir__actor(w->f.s, watcher), a), WEIR_OK);
}

/* Starts a supervisor, watched, and runs until nothing happens. */
static inline weir_address supervise(world *w, const weir_child *c, int n, weir_supervisor_options o) {
    weir_address a = 0;
    weir_error *e = NULL;
    o.fini = world_fini;
    o.data = w;
    if (weir_supervise(w->f.s, c, (size_t)n, &o, &a, &e) != WEIR_OK)
        fail_msg("%s", weir_error_text(e));
    watch(w, a);
    fixture_run(&w->f);
    return a;
}

static inline void tell(world *w, const char *name, const char *verb) {
    fixture_send(&w->f, weir_whereis(w->f.s, name), verb, 1);
    fixture_run(&w->f);
}

static inline void stop_and_run(world *w, weir_address a) {
    assert_int_equal(weir_stop(w->f.s, a), WEIR_OK);
    fixture_run(&w->f);
}

#endif
