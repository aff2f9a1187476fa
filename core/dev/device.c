/* device.c: the front of devices: finding or making a device of the system by its name, their names, and the list of streams. Knows no work items. */
#include "private.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define ATTACHED "devices"

/* What a system has made so far. */
typedef struct devices {
    weir_system *system;
    pthread_mutex_t lock; /* the list; devices stay until the system ends */
    weir__device *first;
} devices;

static const weir__backend *const backends[] = {&weir__cpu_backend, &weir__cuda_backend};

int64_t weir__dev_clock(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

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

/* What is left behind is still listed. */
static void close_devices(weir_system *s, void *data) {
    devices *all = data;
    weir__device **at = &all->first;
    for (weir__device *d; (d = *at);) {
        weir__device *next = d->next;
        if (d->table->close(d))
            *at = next;
        else
            at = &d->next;
    }
    if (all->first)
        return;
    weir__set_quarantine(s, NULL, NULL);
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
    pthread_mutex_init(&all->lock, NULL);
    weir__set_quarantine(s, quarantine, all);
    return all;
}

/* "cuda" is the first of them, "cuda:0". False: no backend of this name. */
static bool parse(const char *name, const weir__backend **backend, unsigned *index) {
    for (size_t i = 0; i < sizeof backends / sizeof *backends; i++) {
        size_t n = strlen(backends[i]->name);
        int used = 0;
        if (strncmp(name, backends[i]->name, n) != 0)
            continue;
        *backend = backends[i];
        *index = 0;
        if (!name[n])
            return true;
        return backends[i]->many && sscanf(name + n, ":%3u%n", index, &used) == 1 && !name[n + (size_t)used];
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

static weir__device *find(devices *all, const weir__backend *backend, unsigned index) {
    weir__device *d = first_of(all);
    while (d && (d->backend != backend || d->index != index))
        d = d->next;
    return d;
}

static int add(weir_system *s, weir__device *d, const weir__backend *backend, unsigned index, weir_error **error) {
    devices *all = devices_of(s);
    if (!all) {
        d->table->close(d);
        return weir_fail(error, WEIR_ENOMEM, "device %s: no memory", backend->name);
    }
    d->backend = backend;
    d->index = index;
    if (backend->many)
        snprintf(d->name, sizeof d->name, "%s:%u", backend->name, index);
    else
        snprintf(d->name, sizeof d->name, "%s", backend->name);
    pthread_mutex_lock(&all->lock);
    d->next = all->first;
    all->first = d;
    pthread_mutex_unlock(&all->lock);
    return WEIR_OK;
}

int weir__device_open(weir_system *s, const char *name, unsigned threads, weir__device **out, weir_error **error) {
    const weir__backend *backend = NULL;
    unsigned index = 0;
    if (!parse(name ? name : "cpu", &backend, &index))
        return no_such_device(name, error);
    if (threads > WEIR_MAX_THREADS)
        return weir_fail(error, WEIR_EINVAL, "device %s: %u threads wanted, at most %d", backend->name, threads, WEIR_MAX_THREADS);
    weir__device *d = find(weir__attached(s, ATTACHED), backend, index);
    if (d && backend->threads && threads && threads != d->threads)
        return weir_fail(error, WEIR_EBUSY, "device %s: made with %u threads, %u wanted", d->name, d->threads, threads);
    int code = d ? WEIR_OK : backend->make(s, index, threads, &d, error);
    if (!code && !d->backend)
        code = add(s, d, backend, index, error);
    if (!code)
        *out = d;
    return code;
}

void weir__devices(weir_system *s, weir__device_fn *fn, void *data) {
    for (size_t i = 0; i < sizeof backends / sizeof *backends; i++)
        backends[i]->list(s, fn, data);
}

/* ---- what a device is ---- */

weir_system *weir__device_system(weir__device *d) {
    return d->system;
}
const char *weir__device_name(const weir__device *d) {
    return d->name;
}
const char *weir__device_detail(const weir__device *d) {
    return d->detail;
}
unsigned weir__device_threads(const weir__device *d) {
    return d->threads;
}
bool weir__device_has_int8(const weir__device *d) {
    return d->table->int8;
}
size_t weir__device_product_workspace(const weir__device *d, int32_t rows, int32_t n, int32_t k) {
    return d->table->product_workspace(d, rows, n, k);
}
size_t weir__device_attention_workspace(const weir__device *d, int32_t rows, int32_t heads, int32_t dim, int32_t splits) {
    return d->table->attention_workspace(d, rows, heads, dim, splits);
}
size_t weir__device_sample_workspace(const weir__device *d, int32_t rows, int32_t vocab) {
    return d->table->sample_workspace(d, rows, vocab);
}

int weir__device_check_sample(const weir__device *d, const weir_sample *s, weir_error **error) {
    const char *what = d->table->check_sample ? d->table->check_sample(s) : NULL;
    return what ? weir_fail(error, WEIR_EUNSUPPORTED, "device %s: sampling with \"%s\" is not on this device", d->name, what) : WEIR_OK;
}

/* The device's lock is held. */
static void describe(const weir__stream *st, weir__stream_info *info) {
    memset(info, 0, sizeof *info);
    snprintf(info->device, sizeof info->device, "%s", st->device->name);
    snprintf(info->name, sizeof info->name, "%s", st->name);
    info->owner = st->owner;
    info->state = atomic_load_explicit(&st->state, memory_order_relaxed);
    info->submitted = st->submitted;
    info->tid = atomic_load_explicit(&st->tid, memory_order_relaxed);
    info->completed = st->completed;
    info->busy = st->busy;
}

const char *weir__stream_state_name(int state) {
    static const char *const names[] = {"open", "draining", "quarantined"};
    return names[state];
}

static void each_stream(weir__device *d, void (*fn)(void *data, const weir__stream_info *info), void *data) {
    pthread_mutex_lock(&d->lock);
    for (const weir__stream *st = d->streams; st; st = st->next) {
        weir__stream_info info;
        describe(st, &info);
        fn(data, &info);
    }
    pthread_mutex_unlock(&d->lock);
}

void weir__streams(weir_system *s, void (*fn)(void *data, const weir__stream_info *info), void *data) {
    devices *all = weir__attached(s, ATTACHED);
    for (weir__device *d = first_of(all); d; d = d->next)
        each_stream(d, fn, data);
}
