/* system.c: making a system, running it, stopping it, giving everything back; what other layers attach to it. */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "internal.h"

enum { PARENT_BYTES = 4096 };

static void *plain_alloc(void *data, void *p, size_t old_size, size_t new_size) {
    (void)data, (void)old_size;
    if (new_size)
        return realloc(p, new_size);
    free(p);
    return NULL;
}

/* A page that a forked child finds zeroed: the cheapest way to know that one is in a child. */
static bool parent_open(weir_system *s) {
    uint8_t *page = mmap(NULL, PARENT_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return false;
    *page = 1;
    if (madvise(page, PARENT_BYTES, MADV_WIPEONFORK) != 0)
        s->parent_pid = (int)getpid();
    s->parent = page;
    return true;
}

void weir__loop_init(weir_system *s, weir__loop *l, unsigned index, const weir__driver *driver) {
    l->system = s;
    l->driver = driver;
    l->index = index;
    l->wake_fd = l->timer_fd = l->epoll_fd = -1;
    weir__ids_init(&l->debts, sizeof(weir__debt));
    weir__ids_init(&l->calls, sizeof(weir__call));
    weir__ids_init(&l->timers, sizeof(weir__timer));
}

static const weir__driver *driver_of(const weir_system_options *o) {
    switch (o->driver) {
    case WEIR_DRIVER_TEST:
        return &weir__driver_test;
    case WEIR_DRIVER_FD:
        return &weir__driver_fd;
    default:
        return o->ev_loop ? &weir__driver_host : &weir__driver_ev;
    }
}

static weir_system *system_alloc(const weir_system_options *o) {
    weir_alloc_fn *alloc = o->alloc ? o->alloc : plain_alloc;
    weir_system *s = alloc(o->alloc_data, NULL, 0, sizeof *s);
    if (!s)
        return NULL;
    memset(s, 0, sizeof *s);
    s->alloc = alloc;
    s->alloc_data = o->alloc_data;
    s->random = o->seed;
    s->thread = weir__thread();
    s->here = &s->main_loop;
    pthread_mutex_init(&s->lock, NULL);
    weir__ids_init(&s->actors, sizeof(weir__slot));
    weir__registry_init(&s->registry);
    weir__lingers_init(&s->lingers, o->drain);
    weir__ios_init(&s->ios);
    weir__dead_init(s);
    weir__loop_init(s, &s->main_loop, 0, driver_of(o));
    s->main_loop.host = o->ev_loop;
    return s;
}

void weir__loop_release(weir__loop *l) {
    l->driver->close(l);
    weir__ids_fini(l->system, &l->debts);
    weir__pool_drain(l);
    weir__ids_fini(l->system, &l->calls);
    weir__ids_fini(l->system, &l->timers);
    weir__free(l->system, l->heap.at);
    weir__free(l->system, l->bonds.table);
}

static void system_release(weir_system *s) {
    weir__dead_fini(s);
    for (unsigned i = 1; i < s->n_loops; i++) {
        weir__loop_release(s->loops[i]);
        weir__free(s, s->loops[i]);
    }
    weir__loop_release(&s->main_loop);
    weir__free(s, s->loops);
    weir__ids_fini(s, &s->actors);
    weir__verbs_fini(s);
    weir__registry_fini(s, &s->registry);
    if (s->parent)
        munmap((void *)s->parent, PARENT_BYTES);
    weir__check(atomic_load(&s->bytes) == 0 && atomic_load(&s->blocks) == 0,
                "memory of the system was not given back before weir_system_free");
    pthread_mutex_destroy(&s->lock);
    s->alloc(s->alloc_data, s, sizeof *s, 0);
}

static void end_actors(weir_system *s);

static const weir_behaviour main_behaviour = {.name = "main"};

static int system_open(weir_system *s, const weir_system_options *o, weir_error **error) {
    int code = weir__verbs_init(s);
    if (code != WEIR_OK || !parent_open(s))
        return weir_fail(error, WEIR_ENOMEM, "no memory for a system");
    code = s->main_loop.driver->open(&s->main_loop, error);
    if (code == WEIR_OK)
        code = weir__inject_environment(s, error);
    if (code != WEIR_OK)
        return code;
    code = weir__workers_make(s, o->workers, error);
    if (code == WEIR_OK)
        code = weir__actor_new(s, &main_behaviour, NULL, NULL, &s->main_address, error);
    if (code != WEIR_OK)
        return code;
    s->main = weir__actor(s, s->main_address);
    weir_hold(s->main);
    return weir__workers_start(s, error);
}

int weir_system_new(const weir_system_options *options, weir_system **out, weir_error **error) {
    weir_system_options none = {0};
    if (!weir__check(out, "no place for the system"))
        return weir_fail(error, WEIR_EINVAL, "weir_system_new: no place for the system");
    const weir_system_options *o = options ? options : &none;
    if (o->workers > WEIR_MAX_WORKERS)
        return weir_fail(error, WEIR_EINVAL, "weir_system_new: %u worker loops; at most %d", o->workers, WEIR_MAX_WORKERS);
    if ((unsigned)o->driver > WEIR_DRIVER_FD)
        return weir_fail(error, WEIR_EINVAL, "weir_system_new: no driver %d", (int)o->driver);
    weir_system *s = system_alloc(o);
    if (!s)
        return weir_fail(error, WEIR_ENOMEM, "no memory for a system");
    int code = system_open(s, o, error);
    if (code == WEIR_OK) {
        *out = s;
        if (s->main_loop.driver->leave)
            s->main_loop.driver->leave(&s->main_loop);
        return code;
    }
    end_actors(s);
    system_release(s);
    return code;
}

/* ---- running ---- */

static int may_run(weir_system *s, const char *what, bool waits, weir_error **error) {
    if (!weir__check(s, "no system"))
        return weir_fail(error, WEIR_EINVAL, "%s: no system", what);
    if (weir__forked(s))
        return weir_fail(error, WEIR_EINVAL, "%s: this process was forked from the one that made the system, and has none of its own",
                         what);
    if (s->thread != weir__thread() || s->here != &s->main_loop)
        return weir_fail(error, WEIR_EINVAL, "%s: called on a thread that does not drive the system's main loop", what);
    if (s->main_loop.running)
        return weir_fail(error, WEIR_EBUSY, "%s inside weir_system_run (in %s): the loop is already running", what,
                         s->main_loop.current ? s->main_loop.current->name : "a callback of the loop");
    if (waits && s->main_loop.driver->busy && s->main_loop.driver->busy(&s->main_loop))
        return weir_fail(error, WEIR_EBUSY, "%s inside a callback of the host's loop, which is running already", what);
    return WEIR_OK;
}

int weir_system_step(weir_system *s, int64_t max_ns, weir_error **error) {
    int code = may_run(s, "weir_system_step", false, error);
    if (code != WEIR_OK)
        return code;
    weir__loop *l = &s->main_loop;
    if (l->driver != &weir__driver_fd || max_ns < 0)
        return weir_fail(error, WEIR_EINVAL,
                         max_ns < 0 ? "weir_system_step: negative max_ns" : "weir_system_step: the system's driver is not WEIR_DRIVER_FD");
    weir__loop_enter(l);
    l->driver->poll(l);
    weir__loop_step(l, max_ns ? max_ns : WEIR_TURN_NS);
    weir__loop_leave(l);
    return WEIR_OK;
}

int weir_system_fd(const weir_system *s) {
    return weir__forked(s) || s->main_loop.driver != &weir__driver_fd ? -1 : s->main_loop.epoll_fd;
}

int64_t weir_system_timeout(const weir_system *s) {
    const weir__loop *l = &s->main_loop;
    if (weir__forked(s) || l->driver != &weir__driver_fd)
        return -1;
    if (l->running || !atomic_load(&l->asleep))
        return 0;
    int64_t at = weir__due_next(l), now = weir_now(s);
    return !at ? -1 : at > now ? at - now : 0;
}

int weir_system_run(weir_system *s, bool (*done)(void *data), void *data, weir_error **error) {
    int code = may_run(s, "weir_system_run", true, error);
    if (code == WEIR_OK)
        code = weir__loop_run(&s->main_loop, done, data);
    if (code == WEIR_OK && weir__forked(s))
        return weir_fail(error, WEIR_EINVAL, "weir_system_run: this process was forked from the one that made the system");
    return code;
}

bool weir__was_quit(const weir_system *s) {
    return s->main_loop.was_quit;
}

bool weir__running(const weir_system *s) {
    return s->main_loop.running;
}

bool weir__on_loop(const weir_system *s) {
    return weir__here(s) != NULL;
}

int64_t weir_now(const weir_system *s) {
    return s->main_loop.driver->now(s);
}

/* ---- stopping ---- */

typedef struct patience {
    weir__due due;
    weir_system *system;
    bool over;
} patience;

static void patience_over(weir__loop *l, weir__due *d) {
    (void)l;
    weir__container(d, patience, due)->over = true;
}

static bool all_ended(void *data) {
    patience *p = data;
    return p->over || atomic_load(&p->system->unfinished) <= 1;
}

/* The actor at index i of the table, not main; 0: none. */
static weir_address other_at(weir_system *s, uint32_t i) {
    weir_address a = weir__ids_living(&s->actors, i);
    return a != s->main_address ? a : 0;
}

static void ask_all(weir_system *s) {
    uint32_t count = atomic_load(&s->actors.count);
    for (uint32_t i = 0; i < count; i++) {
        weir_address a = other_at(s, i);
        if (a)
            weir_stop(s, a);
    }
}

enum { SURVIVORS_TEXT = 512 };

static void append_name(char *names, size_t size, size_t *used, const char *name) {
    const char *comma = *used ? ", " : "";
    if (*used + strlen(comma) + strlen(name) + sizeof ", ..." < size)
        *used += (size_t)snprintf(names + *used, size - *used, "%s%s", comma, name);
    else if (*used < size && !strstr(names, ", ..."))
        snprintf(names + *used, size - *used, ", ...");
}

/* Kills who is left and writes the names; how many there were. An actor's fini may kill others. */
static size_t kill_all(weir_system *s, char *names, size_t size) {
    size_t survivors = 0, used = 0;
    uint32_t count = atomic_load(&s->actors.count);
    names[0] = 0;
    for (uint32_t i = 0; i < count; i++) {
        weir_address a = other_at(s, i);
        char name[WEIR_MAX_NAME];
        if (!a || !weir__slot_text(s, a, name))
            continue;
        survivors++;
        append_name(names, size, &used, name);
        weir_kill(s, a);
    }
    return survivors;
}

/* Runs until all have ended or patience is over. A run that weir_system_quit ended goes on: the stop was asked for. */
static int wait_for_all(weir_system *s, int64_t ns, weir_error **error) {
    patience p = {.due = {.fire = patience_over}, .system = s};
    weir__loop *l = &s->main_loop;
    if (weir__due_reserve(l) != WEIR_OK)
        return weir_fail(error, WEIR_ENOMEM, "weir_system_stop: no memory for its deadline");
    weir__due_set(l, &p.due, weir__after(s, ns));
    while (!all_ended(&p) && !weir__forked(s))
        weir__loop_run(l, all_ended, &p);
    weir__due_clear(l, &p.due);
    weir__due_unreserve(l);
    return WEIR_OK;
}

enum { KILL_PATIENCE = 1000000000 }; /* ns for the handlers of killed actors on other loops to return */

int weir_system_stop(weir_system *s, int64_t ns, weir_error **error) {
    int code = may_run(s, "weir_system_stop", ns > 0, error);
    if (code != WEIR_OK)
        return code;
    atomic_store(&s->stopping, true);
    atomic_fetch_add(&s->spawned, 0); /* orders the walk behind it: pairs with weir__actor_new, as the next one */
    ask_all(s);
    if (ns > 0)
        code = wait_for_all(s, ns, error);
    atomic_store(&s->stopped, true);
    atomic_fetch_add(&s->spawned, 0);
    char names[SURVIVORS_TEXT];
    size_t survivors = kill_all(s, names, sizeof names);
    if (code != WEIR_OK || !survivors)
        return code;
    if (atomic_load(&s->unfinished) > 1) /* on other loops, which end them between two messages */
        wait_for_all(s, KILL_PATIENCE, NULL);
    const char *still = atomic_load(&s->unfinished) > 1 ? "; the handlers of some do not return" : "";
    return weir_fail(error, WEIR_ETIMEOUT, "%zu actors did not stop in time and were killed: %s%s", survivors, names, still);
}

/* ---- giving back ---- */

static void close_values(weir__loop *l, weir__attachment **list) {
    for (weir__attachment *a; (a = *list);) {
        *list = a->next;
        if (a->close)
            a->close(l->system, a->value);
        weir__free(l->system, a);
    }
}

/* False: none was left. */
static bool kill_here(weir_system *s) {
    bool some = false;
    uint32_t count = atomic_load(&s->actors.count);
    for (uint32_t i = 0; i < count; i++) {
        weir_address a = other_at(s, i);
        if (!a || !weir__actor(s, a))
            continue;
        some = true;
        weir_kill(s, a);
    }
    return some;
}

/* The main actor lives on. */
static void empty_queue(weir__loop *l) {
    while (l->ready_count) {
        weir_actor *a = weir__ready_pop(l);
        a->ready = false;
        if (a->dead)
            weir__actor_release(a);
    }
}

/* What their ends send is handled no more. */
void weir__loop_end_actors(weir__loop *l) {
    while (kill_here(l->system))
        ;
    empty_queue(l);
    close_values(l, &l->attachments);
}

static void end_actors(weir_system *s) {
    atomic_store(&s->stopping, true);
    atomic_store(&s->stopped, true);
    weir__workers_stop(s);
    weir__loop_end_actors(&s->main_loop);
    if (s->main) {
        s->main->ending = WEIR_EEXITED;
        weir__actor_end(s->main);
        s->main = NULL;
    }
    empty_queue(&s->main_loop);
}

/* What the loops sent each other while their actors ended. */
static void empty_inboxes(weir_system *s) {
    bool some = true;
    while (some) {
        some = false;
        for (unsigned i = 0; i < s->n_loops; i++) {
            s->here = s->loops[i];
            some = some || atomic_load(&s->here->inbox);
            weir__inbox_take(s->here);
        }
    }
    s->here = &s->main_loop;
}

/* Devices may post their last notices while they close. */
static void close_attachments(weir_system *s) {
    close_values(&s->main_loop, &s->attachments);
    empty_inboxes(s);
}

void weir_system_free(weir_system *s) {
    if (!s)
        return;
    bool child = weir__forked(s); /* which has one thread, perhaps a worker's image */
    if (!weir__check((child ? weir__on_loop(s) : s->thread == weir__thread()) && !s->main_loop.running,
                     "weir_system_free inside weir_system_run, or not on the main loop's thread"))
        return;
    if (child)
        *(volatile uint8_t *)s->parent = 1, s->parent_pid = 0;
    if (child && s->n_loops > 1) {
        s->main_loop.driver->close(
            &s->main_loop); /* what the workers were doing when the process was forked is never finished: their memory stays */
        return;
    }
    weir__inbox_take(&s->main_loop);
    end_actors(s);
    close_attachments(s);
    weir__ios_fini(s);
    weir__watchdog_fini(s, child);
    if (s->main_loop.driver->part)
        s->main_loop.driver->part(&s->main_loop);
    if (s->lingers.left)
        return;
    weir__lingers_fini(s, &s->lingers);
    weir_system_stats stats;
    weir_system_get_stats(s, &stats);
    weir__check(stats.sent == stats.handled + stats.dead && stats.queued == 0, "a message was lost");
    weir__check(stats.calls == stats.calls_ended, "a call did not end");
    weir__check(atomic_load(&s->pending) == 0, "work is still pending: a notice was neither posted nor freed");
    system_release(s);
}

/* ---- attachments ---- */

static weir__attachment *find(weir__attachment *a, const char *key) {
    while (a && strcmp(a->key, key) != 0)
        a = a->next;
    return a;
}

static int attach(weir_system *s, weir__attachment **list, const char *key, void *value, void (*close)(weir_system *s, void *value)) {
    if (find(*list, key))
        return WEIR_EBUSY;
    size_t n = strlen(key) + 1;
    weir__attachment *a = weir__alloc(s, sizeof *a + n);
    if (!a)
        return WEIR_ENOMEM;
    a->value = value;
    a->close = close;
    memcpy(a->key, key, n);
    a->next = *list;
    *list = a;
    return WEIR_OK;
}

void *weir__attached(weir_system *s, const char *key) {
    pthread_mutex_lock(&s->lock);
    weir__attachment *a = find(s->attachments, key);
    void *value = a ? a->value : NULL;
    pthread_mutex_unlock(&s->lock);
    return value;
}

int weir__attach(weir_system *s, const char *key, void *value, void (*close)(weir_system *s, void *value)) {
    pthread_mutex_lock(&s->lock);
    int code = attach(s, &s->attachments, key, value, close);
    pthread_mutex_unlock(&s->lock);
    return code;
}

void *weir__loop_attached(weir_system *s, const char *key) {
    weir__loop *l = weir__here(s);
    weir__attachment *a = l ? find(l->attachments, key) : NULL;
    return a ? a->value : NULL;
}

int weir__loop_attach(weir_system *s, const char *key, void *value, void (*close)(weir_system *s, void *value)) {
    weir__loop *l = weir__here(s);
    return l ? attach(s, &l->attachments, key, value, close) : WEIR_EINVAL;
}
