/* device.c: the front of a device: finding or making the system's cpu device, its names, and the list of streams. Knows no work items. */
#include "cpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ATTACHED_CPU "device.cpu"

int64_t weir__dev_clock(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void levels_that_run(char *text, size_t size) {
    size_t at = 0;
    text[0] = 0;
    for (int level = 0; level < WEIR_CPU_LEVELS; level++)
        if (weir_cpu_level_runs(level) && at < size)
            at += (size_t)snprintf(text + at, size - at, "%s%s", at ? ", " : "", weir_cpu_level_name(level));
}

static int choose_level(int *level, weir_error **error) {
    const char *wanted = getenv("WEIR_CPU");
    if (!wanted || !*wanted) {
        *level = weir_cpu_level_best();
        return WEIR_OK;
    }
    *level = weir_cpu_level_find(wanted);
    if (*level >= 0 && weir_cpu_level_runs(*level))
        return WEIR_OK;
    char running[128];
    levels_that_run(running, sizeof running);
    return weir_fail(error, WEIR_EINVAL, "WEIR_CPU=%.32s: %s; this processor runs %s", wanted,
                     *level < 0 ? "no such level" : "this level does not run here", running);
}

static void close_device(weir_system *s, void *device) {
    (void)s;
    weir__device *d = device;
    d->table->close(d);
}

static int make_cpu(weir_system *s, unsigned threads, weir__device **out, weir_error **error) {
    int level = 0;
    int code = choose_level(&level, error);
    if (code)
        return code;
    if (threads == 0)
        threads = weir__processors();
    code = weir__cpu_new(s, threads < WEIR_MAX_THREADS ? threads : WEIR_MAX_THREADS, level, out, error);
    if (code)
        return code;
    code = weir__attach(s, ATTACHED_CPU, *out, close_device);
    if (code) {
        close_device(s, *out);
        *out = NULL;
        return weir_fail(error, code, "device cpu: cannot be attached to the system");
    }
    return WEIR_OK;
}

int weir__device_cpu(weir_system *s, unsigned threads, weir__device **out, weir_error **error) {
    if (threads > WEIR_MAX_THREADS)
        return weir_fail(error, WEIR_EINVAL, "device cpu: %u threads wanted, at most %d", threads, WEIR_MAX_THREADS);
    weir__device *d = weir__attached(s, ATTACHED_CPU);
    if (!d)
        return make_cpu(s, threads, out, error);
    if (threads && threads != d->threads)
        return weir_fail(error, WEIR_EBUSY, "device cpu: made with %u threads, %u wanted", d->threads, threads);
    *out = d;
    return WEIR_OK;
}

weir_system *weir__device_system(weir__device *d) {
    return d->system;
}
const char *weir__device_name(const weir__device *d) {
    return d->table->name;
}
const char *weir__device_detail(const weir__device *d) {
    return d->detail;
}
unsigned weir__device_threads(const weir__device *d) {
    return d->threads;
}

/* The device's lock is held. */
static void describe(const weir__stream *st, weir__stream_info *info) {
    memset(info, 0, sizeof *info);
    snprintf(info->device, sizeof info->device, "%s", st->device->table->name);
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

void weir__streams(weir_system *s, void (*fn)(void *data, const weir__stream_info *info), void *data) {
    weir__device *d = weir__attached(s, ATTACHED_CPU);
    if (!d)
        return;
    pthread_mutex_lock(&d->lock);
    for (const weir__stream *st = d->streams; st; st = st->next) {
        weir__stream_info info;
        describe(st, &info);
        fn(data, &info);
    }
    pthread_mutex_unlock(&d->lock);
}
