/* device.c: the front of a device: what it is, what it can do, whether it is lost, and what its streams do. Knows no work items. */
#include "private.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

int64_t weir__dev_clock(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
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
bool weir__device_stops_lists(const weir__device *d) {
    return d->table->stops_lists;
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

/* ---- loss ---- */

const char *weir__device_lost(const weir__device *d) {
    return atomic_load_explicit(&d->lost, memory_order_relaxed); /* static text: nothing else is read because of it */
}

void weir__device_lose(weir__device *d, const char *why) {
    const char *none = NULL;
    if (!atomic_compare_exchange_strong(&d->lost, &none, why))
        return;
    pthread_mutex_lock(&d->lock);
    for (weir__stream *st = d->streams; st; st = st->next)
        d->table->wake(st);
    pthread_mutex_unlock(&d->lock);
}

/* ---- its streams ---- */

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

void weir__device_streams(weir__device *d, void (*fn)(void *data, const weir__stream_info *info), void *data) {
    pthread_mutex_lock(&d->lock);
    for (const weir__stream *st = d->streams; st; st = st->next) {
        weir__stream_info info;
        describe(st, &info);
        fn(data, &info);
    }
    pthread_mutex_unlock(&d->lock);
}
