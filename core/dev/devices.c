/* devices.c: the devices of a system: one is found by its name or made, on a thread of its own where a driver takes its time, and made anew when it is lost; and their
 * end. Knows no work. */
#include "private.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define ATTACHED "devices"

static const weir__backend *const backends[] = {&weir__cpu_backend, &weir__cuda_backend};
enum { BACKENDS = sizeof backends / sizeof *backends };

/* What a system has made so far. */
typedef struct devices {
    weir_system *system;
    pthread_mutex_t lock;             /* the lists; held for a few instructions */
    weir__device *first;              /* devices stay until the system ends, lost ones too */
    pthread_mutex_t making[BACKENDS]; /* of a backend: held while one is looked for and made, so while a driver is waited for */
    weir__opening *openings;          /* whose threads have not been joined; lock */
    weir__opening *gone;              /* done, and nobody waited for it: its thread is joined by the next one of these; lock */
    pthread_cond_t ended;             /* an opening is done */
    bool closing;                     /* openings stay on their lists; lock */
    bool left;                        /* a driver was not waited for any longer: nobody joins a thread; lock */
} devices;

typedef struct wanted {
    const weir__backend *backend;
    unsigned index, threads;
} wanted;

struct weir__opening {
    weir__opening *next;
    devices *all;
    wanted wanted;
    pthread_t thread;
    weir__notice *notice;
    bool dropped; /* lock */
    bool done;    /* its thread does nothing more but post the notice; lock */
    /* the thread's, until it has posted the notice */
    weir__device *device;
    int code;
    weir_error *error;
};

/* ---- the devices of a system ---- */

static weir__device *first_of(devices *all) {
    if (!all)
        return NULL;
    pthread_mutex_lock(&all->lock);
    weir__device *d = all->first;
    pthread_mutex_unlock(&all->lock);
    return d;
}

static void quarantine(void *data, weir_address owner) {
    for (weir__device *d = first_of(data); d; d = d->next)
        weir__streams_quarantine(d, owner);
}

static void opening_free(weir__opening *o) {
    weir_error_free(o->error);
    weir__free(o->all->system, o);
}

/* The lock is held. */
static void unlink_opening(weir__opening *o) {
    weir__opening **at = &o->all->openings;
    while (*at != o)
        at = &(*at)->next;
    *at = o->next;
}

static void leave_opening(const weir__opening *o) {
    char text[160];
    snprintf(text, sizeof text, "device %s:%u, which is being made, was left behind: its driver does not come back",
             o->wanted.backend->name, o->wanted.index);
    weir__leave_behind(o->all->system, text);
}

/* False: its driver has not come back. */
static bool wait_done(weir__opening *o, const struct timespec *until) {
    devices *all = o->all;
    bool late = false;
    pthread_mutex_lock(&all->lock);
    while (!o->done && !late)
        late = pthread_cond_timedwait(&all->ended, &all->lock, until) != 0;
    bool done = o->done;
    all->left = !done;
    pthread_mutex_unlock(&all->lock);
    return done;
}

/* NULL, or the backend whose driver has not come back. From now on nobody but this thread takes an opening off its list. */
static const weir__backend *join_openings(devices *all) {
    int64_t end = weir__dev_clock() + weir__drain(all->system);
    struct timespec until = {end / 1000000000, end % 1000000000};
    pthread_mutex_lock(&all->lock);
    all->closing = true;
    weir__opening **const lists[] = {&all->gone, &all->openings};
    pthread_mutex_unlock(&all->lock);
    for (int i = 0; i < 2; i++)
        for (weir__opening *o; (o = *lists[i]);) {
            if (!wait_done(o, &until)) {
                leave_opening(o);
                return o->wanted.backend;
            }
            *lists[i] = o->next;
            pthread_join(o->thread, NULL);
            opening_free(o);
        }
    return NULL;
}

static void put(devices *all, weir__device *d) {
    pthread_mutex_lock(&all->lock);
    d->next = all->first;
    all->first = d;
    pthread_mutex_unlock(&all->lock);
}

/* One that is not of the backend, taken off the list; NULL: there is none. */
static weir__device *take_other(devices *all, const weir__backend *than) {
    pthread_mutex_lock(&all->lock);
    weir__device **at = &all->first;
    while (*at && (*at)->backend == than)
        at = &(*at)->next;
    weir__device *d = *at;
    if (d)
        *at = d->next;
    pthread_mutex_unlock(&all->lock);
    return d;
}

/* What is left behind is listed still: a device that does not end, and those that a driver may still ask for. */
static void close_devices(weir_system *s, void *data) {
    devices *all = data;
    weir__device *stay = NULL;
    const weir__backend *left = join_openings(all);
    for (weir__device *d; (d = take_other(all, left));)
        if (!d->table->close(d)) {
            d->next = stay;
            stay = d;
        }
    for (weir__device *d; (d = stay);) {
        stay = d->next;
        put(all, d);
    }
    if (left || all->first)
        return;
    weir__set_quarantine(s, NULL, NULL);
    pthread_cond_destroy(&all->ended);
    for (int i = 0; i < BACKENDS; i++)
        pthread_mutex_destroy(&all->making[i]);
    pthread_mutex_destroy(&all->lock);
    weir__free(s, all);
}

/* NULL: no memory. */
static devices *devices_of(weir_system *s) {
    devices *all = weir__attached(s, ATTACHED);
    if (all)
        return all;
    all = weir__alloc(s, sizeof *all);
    if (!all || weir__attach(s, ATTACHED, all, close_devices)) {
        weir__free(s, all);
        return NULL;
    }
    all->system = s;
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&all->ended, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&all->lock, NULL);
    for (int i = 0; i < BACKENDS; i++)
        pthread_mutex_init(&all->making[i], NULL);
    weir__set_quarantine(s, quarantine, all);
    return all;
}

static weir__device *find(devices *all, const wanted *w) {
    pthread_mutex_lock(&all->lock);
    weir__device *d = all->first;
    while (d && (d->backend != w->backend || d->index != w->index || d->retired))
        d = d->next;
    pthread_mutex_unlock(&all->lock);
    return d;
}

static void add(devices *all, weir__device *d, const wanted *w) {
    d->backend = w->backend;
    d->index = w->index;
    if (w->backend->many)
        snprintf(d->name, sizeof d->name, "%s:%u", w->backend->name, w->index);
    else
        snprintf(d->name, sizeof d->name, "%s", w->backend->name);
    put(all, d);
}

/* ---- names ---- */

/* "cuda" is the first of them, "cuda:0". False: no backend of this name. */
static bool parse(const char *name, wanted *w) {
    for (size_t i = 0; i < sizeof backends / sizeof *backends; i++) {
        size_t n = strlen(backends[i]->name);
        int used = 0;
        if (strncmp(name, backends[i]->name, n) != 0)
            continue;
        w->backend = backends[i];
        w->index = 0;
        if (!name[n])
            return true;
        return backends[i]->many && isdigit((unsigned char)name[n + (name[n] == ':')]) &&
               sscanf(name + n, ":%3u%n", &w->index, &used) == 1 && !name[n + (size_t)used] && (name[n + 1] != '0' || used == 2);
    }
    return false;
}

static int no_such_device(const char *name, weir_error **error) {
    char shown[64], known[128] = "";
    for (size_t i = 0; i < sizeof backends / sizeof *backends; i++)
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i ? ", " : "", backends[i]->name);
    snprintf(shown, sizeof shown, "%s", name);
    return weir_fail(error, WEIR_EINVAL, "device \"%s\": there is none of this name (there are %s)", shown, known);
}

static int read_wanted(const char *name, unsigned threads, wanted *w, weir_error **error) {
    if (!parse(name ? name : "cpu", w))
        return no_such_device(name, error);
    if (threads > WEIR_MAX_THREADS)
        return weir_fail(error, WEIR_EINVAL, "device %s: %u threads wanted, at most %d", w->backend->name, threads, WEIR_MAX_THREADS);
    w->threads = threads;
    return WEIR_OK;
}

/* ---- opening ---- */

/* It is there already: whether as it is wanted. */
static int as_wanted(const weir__device *d, const wanted *w, weir_error **error) {
    if (d->backend->threads && w->threads && w->threads != d->threads)
        return weir_fail(error, WEIR_EBUSY, "device %s: made with %u threads, %u wanted", d->name, d->threads, w->threads);
    return WEIR_OK;
}

/* patience: ns to wait for the streams of one that is lost. */
static int retire(devices *all, weir__device *d, int64_t patience, weir_error **error) {
    if (!d->table->retire(d, patience))
        return weir_fail(error, WEIR_EDEVICE, "device %s is lost (%s), and its streams have not ended", d->name, weir__device_lost(d));
    pthread_mutex_lock(&all->lock);
    d->retired = true;
    pthread_mutex_unlock(&all->lock);
    return WEIR_OK;
}

/* The backend's lock is held. */
static int find_or_make(devices *all, const wanted *w, int64_t patience, weir__device **out, weir_error **error) {
    weir__device *d = find(all, w);
    int code = WEIR_OK;
    if (d && !weir__device_lost(d)) {
        *out = d;
        return as_wanted(d, w, error);
    }
    if (d)
        code = retire(all, d, patience, error);
    if (!code)
        code = w->backend->make(all->system, w->index, w->threads, &d, error);
    if (code)
        return code;
    add(all, d, w);
    *out = d;
    return WEIR_OK;
}

static pthread_mutex_t *making(devices *all, const wanted *w) {
    int i = 0;
    while (backends[i] != w->backend)
        i++;
    return &all->making[i];
}

static int open_wanted(devices *all, const wanted *w, int64_t patience, weir__device **out, weir_error **error) {
    pthread_mutex_lock(making(all, w));
    int code = find_or_make(all, w, patience, out, error);
    pthread_mutex_unlock(making(all, w));
    return code;
}

int weir__device_open(weir_system *s, const char *name, unsigned threads, weir__device **out, weir_error **error) {
    wanted w;
    int code = read_wanted(name, threads, &w, error);
    if (code)
        return code;
    devices *all = devices_of(s);
    return all ? open_wanted(all, &w, 0, out, error) : weir_fail(error, WEIR_ENOMEM, "device %s: no memory", w.backend->name);
}

/* Takes the place of the last one that nobody waited for, which it returns; NULL: there is none. The lock is held. */
static weir__opening *go(weir__opening *o) {
    weir__opening *before = o->all->gone;
    unlink_opening(o);
    o->next = NULL;
    o->all->gone = o;
    return before;
}

static void *opening_main(void *data) {
    weir__opening *o = data, *before = NULL;
    weir__notice *notice = o->notice;
    o->code = open_wanted(o->all, &o->wanted, WEIR_DRAIN_NS, &o->device, &o->error);
    pthread_mutex_lock(&o->all->lock);
    bool dropped = o->dropped, left = o->all->left;
    o->done = true;
    pthread_cond_signal(&o->all->ended); /* at the end one thread waits */
    if (dropped && !o->all->closing)
        before = go(o);
    pthread_mutex_unlock(&o->all->lock);
    if (left)
        pthread_detach(pthread_self());
    /* o may be given back by who joins this thread */
    if (before) {
        pthread_join(before->thread, NULL);
        opening_free(before);
    }
    if (dropped)
        weir__notice_free(notice);
    else
        weir__notice_post(notice);
    return NULL;
}

static int start_thread(devices *all, const wanted *w, weir_address who, weir_verb verb, weir__opening **out, weir_error **error) {
    weir__opening *o = weir__alloc(all->system, sizeof *o);
    weir__notice *n = o ? weir__notice_new(all->system, who, who, verb, NULL) : NULL;
    if (!n) {
        weir__free(all->system, o);
        return weir_fail(error, WEIR_ENOMEM, "device %s: no memory", w->backend->name);
    }
    *o = (weir__opening){.all = all, .wanted = *w, .notice = n};
    pthread_mutex_lock(&all->lock); /* the thread looks for itself on the list */
    int failure = weir__thread_start(&o->thread, "device", opening_main, o);
    if (!failure) {
        o->next = all->openings;
        all->openings = o;
    }
    pthread_mutex_unlock(&all->lock);
    if (failure) {
        weir__notice_free(n);
        weir__free(all->system, o);
        return weir_fail(error, WEIR_EIO, "device %s: no thread to make it: error %d", w->backend->name, failure);
    }
    *out = o;
    return WEIR_OK;
}

int weir__device_open_start(weir_system *s, const char *name, unsigned threads, weir_address who, weir_verb verb, weir__device **device,
                            weir__opening **opening, weir_error **error) {
    wanted w;
    int code = read_wanted(name, threads, &w, error);
    if (code)
        return code;
    devices *all = devices_of(s);
    if (!all)
        return weir_fail(error, WEIR_ENOMEM, "device %s: no memory", w.backend->name);
    if (!w.backend->slow || weir__system_inline(s))
        return open_wanted(all, &w, 0, device, error);
    weir__device *d = find(all, &w);
    if (!d || weir__device_lost(d))
        return start_thread(all, &w, who, verb, opening, error);
    *device = d;
    return as_wanted(d, &w, error);
}

/* It has posted its notice, or is about to. */
static void join_opening(weir__opening *o) {
    pthread_join(o->thread, NULL);
    pthread_mutex_lock(&o->all->lock);
    unlink_opening(o);
    pthread_mutex_unlock(&o->all->lock);
}

void weir__device_open_drop(weir__opening *o) {
    pthread_mutex_lock(&o->all->lock);
    bool done = o->done;
    o->dropped = true;
    pthread_mutex_unlock(&o->all->lock);
    if (!done)
        return;
    join_opening(o);
    opening_free(o);
}

int weir__device_open_end(weir__opening *o, weir__device **out, weir_error **error) {
    join_opening(o);
    int code = o->code;
    if (!code)
        *out = o->device;
    if (error) {
        *error = o->error;
        o->error = NULL;
    }
    opening_free(o);
    return code;
}

/* ---- listing ---- */

void weir__devices(weir_system *s, weir__device_fn *fn, void *data) {
    for (size_t i = 0; i < sizeof backends / sizeof *backends; i++)
        backends[i]->list(s, fn, data);
}

void weir__streams(weir_system *s, void (*fn)(void *data, const weir__stream_info *info), void *data) {
    devices *all = weir__attached(s, ATTACHED);
    for (weir__device *d = first_of(all); d; d = d->next)
        weir__device_streams(d, fn, data);
}
