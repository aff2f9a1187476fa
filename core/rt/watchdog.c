/* watchdog.c: a thread that names handlers that run too long. It exists while a limit is set, and sleeps for good while every loop sleeps. It knows of loops
 * only what they publish in weir__watch.
 *
 * A loop that wakes stores `awake` and then reads the dog's `asleep`; the dog stores `asleep` and then reads each loop's `awake`; all four in sequentially
 * consistent order, so one of the two sees the other. A handler costs two stores, one reading of the clock and, for the first of an actor, its name. */
#include <time.h>

#include "internal.h"

struct weir__watchdog {
    weir_system *system;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    _Atomic bool asleep; /* every loop was seen asleep: whoever wakes signals */

    /* under the lock */
    bool runs, stop;
    int64_t limit;
    weir_slow_fn *fn;
    void *data;
};

/* Real time, whatever the driver's clock says: a virtual clock stands still in a handler. */
static int64_t real_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- what a loop publishes: its thread writes, the dog reads. Data is written while `serial` is even, so a reader that finds the same odd number before
 * and after has read one handler's. ---- */

static void show_actor(weir__watch *w, const weir_actor *a) {
    uint64_t words[WEIR_MAX_NAME / 8];
    memcpy(words, a->name, sizeof words);
    for (size_t i = 0; i < WEIR_MAX_NAME / 8; i++)
        atomic_store_explicit(&w->name[i], words[i], memory_order_release);
    atomic_store_explicit(&w->actor, a->address, memory_order_release);
}

void weir__watch_begin(weir__loop *l, const weir_actor *a, enum weir__entry_kind kind, weir_verb verb) {
    weir__watch *w = &l->watch;
    if (atomic_load_explicit(&w->actor, memory_order_relaxed) != a->address)
        show_actor(w, a);
    atomic_store_explicit(&w->what, (uint64_t)kind << 32 | verb, memory_order_release);
    atomic_store_explicit(&w->since, real_now(), memory_order_release);
    atomic_store_explicit(&w->serial, (w->handlers += 2) + 1, memory_order_release);
}

void weir__watch_end(weir__loop *l) {
    atomic_store_explicit(&l->watch.serial, l->watch.handlers, memory_order_release);
}

void weir__watch_awake(weir__loop *l, bool awake) {
    atomic_store(&l->watch.awake, awake);
    weir__watchdog *d = atomic_load_explicit(&l->system->watchdog, memory_order_acquire);
    if (!awake || !d || !atomic_load(&d->asleep))
        return;
    pthread_mutex_lock(&d->lock);
    atomic_store(&d->asleep, false);
    pthread_cond_signal(&d->changed);
    pthread_mutex_unlock(&d->lock);
}

/* ---- the thread ---- */

static const char *verb_of(weir_system *s, uint64_t what) {
    switch ((enum weir__entry_kind)(what >> 32)) {
    case WEIR__REPLY:
        return "(reply)";
    case WEIR__DOWN:
        return "(down)";
    case WEIR__STOP:
        return "(stop)";
    case WEIR__TIMER:
        return "(timer)";
    default:
        return weir_verb_name(s, (weir_verb)what);
    }
}

/* Tells of the loop's handler if it is over the limit; when to look at the loop again. */
static int64_t look(weir_system *s, weir__watchdog *d, weir__watch *w, int64_t now) {
    uint64_t serial = atomic_load_explicit(&w->serial, memory_order_acquire), words[WEIR_MAX_NAME / 8];
    if (!(serial & 1) || serial == w->told)
        return now + d->limit;
    for (size_t i = 0; i < WEIR_MAX_NAME / 8; i++)
        words[i] = atomic_load_explicit(&w->name[i], memory_order_acquire);
    weir_address actor = atomic_load_explicit(&w->actor, memory_order_acquire);
    uint64_t what = atomic_load_explicit(&w->what, memory_order_acquire);
    int64_t since = atomic_load_explicit(&w->since, memory_order_acquire);
    if (atomic_load_explicit(&w->serial, memory_order_relaxed) != serial)
        return now + d->limit;
    if (now - since < d->limit)
        return since + d->limit;
    w->told = serial;
    d->fn(d->data, actor, (const char *)words, verb_of(s, what), now - since);
    return now + d->limit;
}

/* Until when nothing needs a look; 0: every loop sleeps. */
static int64_t look_at_all(weir_system *s, weir__watchdog *d) {
    int64_t now = real_now(), next = 0;
    weir__loop *l;
    for (unsigned i = 0; (l = weir__loop_at(s, i)); i++) {
        weir__watch *w = &l->watch;
        if (!atomic_load(&w->awake))
            continue;
        int64_t at = look(s, d, w, now);
        next = next && next < at ? next : at;
    }
    return next;
}

static void *watch(void *data) {
    weir__watchdog *d = data;
    weir_system *s = d->system;
    pthread_mutex_lock(&d->lock);
    while (!d->stop) {
        int64_t next = look_at_all(s, d);
        if (next) {
            struct timespec t = {next / 1000000000, next % 1000000000};
            pthread_cond_timedwait(&d->changed, &d->lock, &t);
            continue;
        }
        atomic_store(&d->asleep, true);
        if (!look_at_all(s, d))
            pthread_cond_wait(&d->changed, &d->lock);
        atomic_store(&d->asleep, false);
    }
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

/* ---- setting it ---- */

static weir__watchdog *watchdog_new(weir_system *s) {
    weir__watchdog *d = weir__alloc(s, sizeof *d);
    pthread_condattr_t monotonic;
    if (!d)
        return NULL;
    d->system = s;
    pthread_mutex_init(&d->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&d->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    atomic_store_explicit(&s->watchdog, d, memory_order_release);
    return d;
}

static int start(weir_system *s, weir__watchdog *d) {
    if (weir__inject(s, WEIR__INJECT_THREAD) || pthread_create(&d->thread, NULL, watch, d) != 0)
        return WEIR_EIO;
    d->runs = true;
    return WEIR_OK;
}

static void stop(weir_system *s, weir__watchdog *d) {
    atomic_store(&s->watched, false);
    if (!d->runs)
        return;
    pthread_mutex_lock(&d->lock);
    d->stop = true;
    pthread_cond_signal(&d->changed);
    pthread_mutex_unlock(&d->lock);
    pthread_join(d->thread, NULL);
    d->runs = d->stop = false;
}

int weir_set_watchdog(weir_system *s, int64_t limit, weir_slow_fn *fn, void *data) {
    if (!weir__check(s && limit >= 0 && (fn || !limit), "weir_set_watchdog: a system, a limit and a function are needed"))
        return WEIR_EINVAL;
    if (weir__forked(s) || s->thread != weir__thread())
        return WEIR_EINVAL;
    weir__watchdog *d = atomic_load(&s->watchdog);
    if (!limit) {
        if (d)
            stop(s, d);
        return WEIR_OK;
    }
    if (!d)
        d = watchdog_new(s);
    if (!d)
        return WEIR_ENOMEM;
    pthread_mutex_lock(&d->lock); /* never while fn runs */
    int code = d->runs ? WEIR_OK : start(s, d);
    if (!code) {
        d->limit = limit;
        d->fn = fn;
        d->data = data;
        atomic_store(&s->watched, true);
        pthread_cond_signal(&d->changed);
    }
    pthread_mutex_unlock(&d->lock);
    return code;
}

/* A forked child has no such thread; the lock may have been held at the fork. */
void weir__watchdog_fini(weir_system *s, bool forked) {
    weir__watchdog *d = atomic_exchange(&s->watchdog, NULL);
    if (!d)
        return;
    if (!forked) {
        stop(s, d);
        pthread_cond_destroy(&d->changed);
        pthread_mutex_destroy(&d->lock);
    }
    weir__free(s, d);
}
