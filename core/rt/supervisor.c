/* supervisor.c: an actor that starts children, waits for their ends and starts them anew: how many restarts it bears, how long it waits before each, when it
 * gives up. Children may live on other loops, so nothing is over here before `down` has come. Knows of devices only that something may linger for a dead child.
 *
 * A failure needs no memory but for the error's text: notices are made with the child, and a timer that cannot be made is taken as run out. */
#include <stdio.h>

#include "internal.h"

enum { DEFAULT_INTENSITY = 3, MOST_INTENSITY = 10000 }; /* the times of that many restarts are kept: 80 KB at most */
#define MS INT64_C(1000000)
#define DEFAULT_PERIOD (5000 * MS)
#define DEFAULT_PATIENCE (5000 * MS)
#define DEFAULT_DRAIN (10000 * MS)
#define DEFAULT_BACKOFF_MOST (10000 * MS)
#define SECOND_BACKOFF (10 * MS) /* where the first restart comes at once */

enum phase { IDLE, RUNNING, STOPPING, DRAINING, WAITING };
static const char *const phase_names[] = {"ended", "running", "stopping", "draining", "waiting"};

typedef struct child {
    struct supervisor *owner;
    weir_child spec;
    enum phase phase;
    weir_address address; /* its last life; 0: it had none */
    uint64_t restarts;    /* starts after the first */
    uint64_t timer;       /* STOPPING: patience; DRAINING: drain; WAITING: backoff */
    weir__notice *notice; /* of the drain of this life; NULL once it is used */
    char name[WEIR_MAX_NAME];
} child;

/* STARTING: all children, in order. STEADY: each on its own. CLEARING: all are stopped to start anew. PAUSED: before that start. ENDING: all are stopped. */
enum mode { STARTING, STEADY, CLEARING, PAUSED, ENDING };

typedef struct supervisor {
    weir_system *system;
    weir_actor *self;
    weir_supervisor_options options; /* with the defaults filled in */
    weir_verb drained;
    enum mode mode;
    bool started;   /* every child was started once */
    uint64_t timer; /* STARTING: the first turn; PAUSED: backoff */
    weir_error *why;
    int64_t *times; /* of the last restarts, a ring of options.intensity places */
    unsigned first, kept;
    size_t count;
    char name[WEIR_MAX_NAME];
    child children[];
} supervisor;

/* ---- timers ---- */

/* False: there is nothing to wait for, or no memory to wait with. */
static bool wait_for(supervisor *v, int64_t ns, weir_timer_fn *fn, void *data, uint64_t *id) {
    return ns > 0 && weir_timer(v->self, ns, WEIR_TIMER_ONCE, fn, data, id) == WEIR_OK;
}

static void cancel(supervisor *v, uint64_t *id) {
    if (*id)
        weir_timer_cancel(v->self, *id);
    *id = 0;
}

/* ---- how often and how soon ---- */

/* Notes a restart; false: one too many within the period. */
static bool bears(supervisor *v) {
    int64_t now = weir_now(v->system);
    unsigned n = v->options.intensity;
    while (v->kept && v->times[v->first] <= now - v->options.period) {
        v->first = (v->first + 1) % n;
        v->kept--;
    }
    if (v->kept == n)
        return false;
    v->times[(v->first + v->kept++) % n] = now;
    return true;
}

/* ns before the restart noted last. */
static int64_t backoff(const supervisor *v) {
    int64_t ns = v->options.backoff;
    unsigned doublings = v->kept - 1;
    if (!ns && doublings) {
        ns = SECOND_BACKOFF;
        doublings--;
    }
    while (doublings-- && ns < v->options.backoff_most)
        ns = weir__later(ns, ns);
    return ns < v->options.backoff_most ? ns : v->options.backoff_most;
}

/* ---- notices of drains: reserved, so they must not count as pending work before something drains ---- */

static bool notice_reserve(child *c) {
    supervisor *v = c->owner;
    if (!c->notice) {
        c->notice = weir__notice_new(v->system, 0, weir_self(v->self), v->drained, NULL);
        if (c->notice)
            weir__pending(v->system, -1);
    }
    return c->notice != NULL;
}

static weir__notice *notice_take(child *c) {
    weir__notice *n = c->notice;
    c->notice = NULL;
    if (n)
        weir__pending(c->owner->system, 1);
    return n;
}

/* ---- starting one ---- */

static child *find(supervisor *v, weir_address a) {
    for (size_t i = 0; i < v->count; i++)
        if (v->children[i].address == a && v->children[i].phase != IDLE)
            return &v->children[i];
    return NULL;
}

static int monitor(child *c, weir_address a, weir_error **error) {
    supervisor *v = c->owner;
    if (!a || a == weir_self(v->self) || a == weir_self(weir_main_actor(v->system)) || find(v, a))
        return weir_fail(error, WEIR_EINVAL, "its start gave %llu, which is no actor of its own", (unsigned long long)a);
    c->address = a;
    c->notice->message.from = a;
    if (weir_monitor(v->self, a) == WEIR_OK)
        return WEIR_OK;
    weir_kill(v->system, a);
    return weir_fail(error, WEIR_ENOMEM, "no memory to watch it");
}

static int start(child *c, weir_error **error) {
    supervisor *v = c->owner;
    weir_address a = 0;
    weir_error *e = NULL;
    c->phase = IDLE;
    c->restarts += v->started;
    if (!notice_reserve(c))
        return weir_fail(error, WEIR_ENOMEM, "no memory to watch it");
    int code = c->spec.start(v->system, c->spec.data, &a, &e);
    if (code != WEIR_OK && !e)
        weir_fail(&e, code, "%s", weir_code_text(code));
    if (code == WEIR_OK)
        code = monitor(c, a, &e);
    if (code == WEIR_OK)
        c->phase = RUNNING;
    else
        *error = e;
    return code;
}

/* ---- stopping one ---- */

static void patience_over(weir_actor *self, void *data, uint64_t missed) {
    child *c = data;
    (void)self, (void)missed;
    c->timer = 0;
    weir_kill(c->owner->system, c->address);
}

/* Its `down` tells when it has ended, also if it has already. */
static void stop(child *c) {
    supervisor *v = c->owner;
    c->phase = STOPPING;
    if (c->spec.patience > 0) {
        weir_stop(v->system, c->address);
        if (wait_for(v, c->spec.patience, patience_over, c, &c->timer))
            return;
    }
    weir_kill(v->system, c->address);
}

static void drain_over(weir_actor *self, void *data, uint64_t missed) {
    child *c = data;
    (void)self, (void)missed;
    c->timer = 0;
    weir__quarantine(c->owner->system, c->address);
}

/* True: nothing lingers for it. Else `drained` will come, at the latest when its streams are quarantined. */
static bool drain(child *c) {
    supervisor *v = c->owner;
    if (!c->address || !weir__lingering(v->system, c->address)) {
        c->phase = IDLE;
        return true;
    }
    weir__notice *notice = notice_take(c);
    c->phase = DRAINING;
    weir__when_drained(v->system, c->address, notice);
    if (!wait_for(v, v->options.drain, drain_over, c, &c->timer))
        weir__quarantine(v->system, c->address);
    return false;
}

/* ---- all of them ---- */

static void restart(child *c);
static void proceed(supervisor *v);

static void pause_over(weir_actor *self, void *data, uint64_t missed) {
    supervisor *v = data;
    (void)self, (void)missed;
    v->timer = 0;
    v->mode = STARTING;
    proceed(v);
}

/* From now on everything is stopped, and then the supervisor ends with `why` (taken). */
static void give_up(supervisor *v, weir_error *why) {
    cancel(v, &v->timer);
    for (size_t i = 0; i < v->count; i++) {
        child *c = &v->children[i];
        if (c->phase != WAITING)
            continue;
        cancel(v, &c->timer);
        c->phase = IDLE;
    }
    v->mode = ENDING;
    v->why = why;
}

/* A child has failed (error is taken) and will be started anew; false: no more, the supervisor ends. */
static bool bear(child *c, weir_error *error) {
    supervisor *v = c->owner;
    if (bears(v)) {
        weir_error_free(error);
        return true;
    }
    give_up(v, weir_error_new(WEIR_EEXITED, v->name, error, "\"%s\" failed, and %u restarts within %g s are all that is borne", c->name,
                              v->options.intensity, (double)v->options.period / 1e9));
    return false;
}

/* A start failed (error is taken): of the first it ends the supervisor. False: no more starts. */
static bool bear_start(child *c, weir_error *error) {
    supervisor *v = c->owner;
    int code = weir_error_code(error);
    if (v->started && code != WEIR_ESTOPPING)
        return bear(c, weir_error_new(code, v->name, error, "\"%s\" did not start again", c->name));
    if (v->started) {
        weir_error_free(error);
        give_up(v, NULL);
    } else
        give_up(v, weir_error_new(code, v->name, error, "\"%s\" did not start: %s", c->name, weir_error_text(error)));
    return false;
}

/* Starts those that are to run. False: one failed, and the mode says what is next. */
static bool start_all(supervisor *v) {
    for (size_t i = 0; i < v->count; i++) {
        child *c = &v->children[i];
        weir_error *e = NULL;
        if (v->started && c->spec.restart == WEIR_RESTART_NEVER)
            continue;
        if (start(c, &e) == WEIR_OK)
            continue;
        if (bear_start(c, e)) {
            v->mode = CLEARING;
            drain(c);
        }
        return false;
    }
    v->mode = STEADY;
    return v->started = true;
}

/* Stops the last that runs; true: all have ended and drained. */
static bool clear(supervisor *v) {
    bool draining = false;
    for (size_t i = v->count; i-- > 0;) {
        child *c = &v->children[i];
        if (c->phase == RUNNING)
            stop(c);
        if (c->phase == STOPPING)
            return false;
        draining |= c->phase == DRAINING;
    }
    return !draining;
}

/* Goes on until something has to be waited for. */
static void proceed(supervisor *v) {
    for (;;) {
        if (v->mode == STARTING && start_all(v))
            return;
        if (v->mode == STEADY || v->mode == PAUSED || !clear(v))
            return;
        if (v->mode == ENDING) {
            weir_exit(v->self, v->why);
            v->why = NULL;
            return;
        }
        v->mode = PAUSED;
        if (wait_for(v, backoff(v), pause_over, v, &v->timer))
            return;
        v->mode = STARTING;
    }
}

/* ---- one of them, where each is on its own ---- */

static void backoff_over(weir_actor *self, void *data, uint64_t missed) {
    child *c = data;
    (void)self, (void)missed;
    c->timer = 0;
    restart(c);
}

/* A dead child that has drained starts, now or later. True: now. */
static bool due_now(child *c) {
    if (wait_for(c->owner, backoff(c->owner), backoff_over, c, &c->timer)) {
        c->phase = WAITING;
        return false;
    }
    return true;
}

static void restart(child *c) {
    weir_error *e = NULL;
    while (start(c, &e) != WEIR_OK) {
        if (!bear_start(c, e)) {
            proceed(c->owner);
            return;
        }
        if (!drain(c) || !due_now(c))
            return;
    }
}

static bool is_final(const child *c, const weir_error *why) {
    return c->spec.restart == WEIR_RESTART_NEVER || (c->spec.restart == WEIR_RESTART_ON_ERROR && !why);
}

static weir_error *end_of(const child *c, const weir_error *why) {
    return why ? weir_error_ref(why) : weir_error_new(WEIR_EEXITED, c->name, NULL, "%s ended without an error", c->name);
}

/* One ended while nobody had asked it to. */
static void failed(child *c, const weir_error *why) {
    supervisor *v = c->owner;
    bool all = v->options.strategy == WEIR_ONE_FOR_ALL;
    if (is_final(c, why)) {
        c->phase = IDLE;
        return;
    }
    if (bear(c, end_of(c, why)) && all)
        v->mode = CLEARING;
    bool clean = drain(c);
    if (v->mode != STEADY)
        proceed(v);
    else if (clean && due_now(c))
        restart(c);
}

/* ---- what the runtime calls ---- */

static void on_first_turn(weir_actor *self, void *data, uint64_t missed) {
    supervisor *v = data;
    (void)self, (void)missed;
    v->timer = 0;
    proceed(v);
}

static void on_down(weir_actor *self, weir_address who, const weir_error *why) {
    supervisor *v = weir_state(self);
    child *c = find(v, who);
    if (!c || (c->phase != RUNNING && c->phase != STOPPING))
        return;
    cancel(v, &c->timer);
    if (v->mode == STEADY) {
        failed(c, why);
        return;
    }
    drain(c);
    proceed(v);
}

static void on_drained(weir_actor *self, const weir_message *m) {
    supervisor *v = weir_state(self);
    child *c = find(v, weir_message_from(m));
    if (!c || c->phase != DRAINING)
        return;
    cancel(v, &c->timer);
    c->phase = IDLE;
    if (v->mode != STEADY)
        proceed(v);
    else if (due_now(c))
        restart(c);
}

static void on_stop(weir_actor *self) {
    supervisor *v = weir_state(self);
    if (v->mode == ENDING)
        return;
    give_up(v, NULL);
    proceed(v);
}

static void on_children(weir_actor *self, const weir_message *m) {
    supervisor *v = weir_state(self);
    weir_writer *w = weir_write_begin(v->system);
    weir_write_array(w);
    for (size_t i = 0; i < v->count; i++) {
        const child *c = &v->children[i];
        bool lives = c->phase == RUNNING || c->phase == STOPPING;
        weir_write_array(w);
        weir_write_str(w, c->name, strlen(c->name));
        weir_write_uint(w, lives ? c->address : 0);
        weir_write_uint(w, c->restarts);
        weir_write_str(w, phase_names[c->phase], strlen(phase_names[c->phase]));
        weir_write_close(w);
    }
    weir_write_close(w);
    weir_body *b = weir_write_end(w);
    if (b)
        weir_reply(self, m, b);
    else
        weir_reply_error(self, m, weir_error_new(WEIR_ENOMEM, v->name, NULL, "no memory for the list of children"));
}

/* Children do not outlive it: after an orderly end there are none, after a kill they are killed. */
static void on_fini(weir_system *s, void *state) {
    supervisor *v = state;
    for (size_t i = v->count; i-- > 0;) {
        child *c = &v->children[i];
        if (c->phase == RUNNING || c->phase == STOPPING)
            weir_kill(s, c->address);
        weir__notice_free(notice_take(c));
    }
    if (v->options.fini)
        v->options.fini(v->options.data);
    weir_error_free(v->why);
    weir__free(s, v->times);
    weir__free(s, v);
}

static const weir_handler handlers[] = {{"children", on_children}, {"drained", on_drained}, {NULL, NULL}};
static const weir_behaviour behaviour = {.name = "supervisor", .handlers = handlers, .down = on_down, .stop = on_stop, .fini = on_fini};

/* ---- making one ---- */

static int check_child(const weir_child *c, size_t i, weir_error **error) {
    if (!c->name || !*c->name || !c->start)
        return weir_fail(error, WEIR_EINVAL, "child %zu has no %s", i, c->start ? "name" : "start");
    if ((unsigned)c->restart > WEIR_RESTART_NEVER)
        return weir_fail(error, WEIR_EINVAL, "child \"%s\": %d is no restart policy", c->name, (int)c->restart);
    return WEIR_OK;
}

static int check(weir_system *s, const weir_child *children, size_t n, const weir_supervisor_options *o, weir_error **error) {
    if (!weir__check(s && (children || !n), "no system or no children") || !weir__usable(s))
        return weir_fail(error, WEIR_EINVAL, "weir_supervise: no system, no children, or a thread that drives no loop");
    if ((unsigned)o->strategy > WEIR_ONE_FOR_ALL)
        return weir_fail(error, WEIR_EINVAL, "a supervisor's strategy is %d", (int)o->strategy);
    if (o->intensity > MOST_INTENSITY)
        return weir_fail(error, WEIR_EINVAL, "a supervisor's intensity is %u, at most %d", o->intensity, MOST_INTENSITY);
    if (o->period < 0 || o->backoff < 0 || o->backoff_most < 0 || o->drain < 0)
        return weir_fail(error, WEIR_EINVAL, "a supervisor's period, backoff or drain is negative");
    for (size_t i = 0; i < n; i++) {
        int code = check_child(&children[i], i, error);
        if (code != WEIR_OK)
            return code;
    }
    return WEIR_OK;
}

static void fill_options(weir_supervisor_options *o) {
    o->intensity = o->intensity ? o->intensity : DEFAULT_INTENSITY;
    o->period = o->period ? o->period : DEFAULT_PERIOD;
    o->backoff_most = o->backoff_most ? o->backoff_most : DEFAULT_BACKOFF_MOST;
    o->drain = o->drain ? o->drain : DEFAULT_DRAIN;
}

/* Without options.fini: as long as making it fails, that is the caller's. */
static supervisor *make(weir_system *s, const weir_child *children, size_t n, const weir_supervisor_options *o) {
    size_t bytes;
    supervisor *v = __builtin_mul_overflow(n, sizeof(child), &bytes) || bytes > PTRDIFF_MAX ? NULL : weir__alloc(s, sizeof *v + bytes);
    if (!v)
        return NULL;
    v->system = s;
    v->options = *o;
    fill_options(&v->options);
    snprintf(v->name, sizeof v->name, "%s", o->name ? o->name : behaviour.name);
    v->options.name = v->name;
    v->count = n;
    for (size_t i = 0; i < n; i++) {
        child *c = &v->children[i];
        c->owner = v;
        c->spec = children[i];
        snprintf(c->name, sizeof c->name, "%s", children[i].name);
        c->spec.name = c->name;
        c->spec.patience = c->spec.patience ? c->spec.patience : DEFAULT_PATIENCE;
    }
    v->times = weir__alloc(s, v->options.intensity * sizeof *v->times);
    v->drained = weir_intern(s, "drained");
    if (v->times && v->drained)
        return v;
    weir__free(s, v->times);
    weir__free(s, v);
    return NULL;
}

int weir_supervise(weir_system *s, const weir_child *children, size_t n, const weir_supervisor_options *options, weir_address *out,
                   weir_error **error) {
    weir_supervisor_options o = options ? *options : (weir_supervisor_options){0};
    weir_address a = 0;
    int code = check(s, children, n, &o, error);
    supervisor *v = code == WEIR_OK ? make(s, children, n, &o) : NULL;
    if (!v) {
        if (o.fini)
            o.fini(o.data);
        return code != WEIR_OK ? code
                               : weir_fail(error, WEIR_ENOMEM, "no memory for the supervisor \"%s\"", o.name ? o.name : behaviour.name);
    }
    weir_spawn_options spawn = {.name = v->name};
    code = weir_spawn(s, &behaviour, v, &spawn, &a, error);
    if (code != WEIR_OK)
        return code;
    v->self = weir__actor(s, a);
    if (weir_timer(v->self, 0, WEIR_TIMER_ONCE, on_first_turn, v, &v->timer) != WEIR_OK) {
        weir_kill(s, a);
        return weir_fail(error, WEIR_ENOMEM, "no memory to start the supervisor \"%s\"", o.name ? o.name : behaviour.name);
    }
    if (out)
        *out = a;
    return WEIR_OK;
}
