/* threads.c: how threads of streams are counted, leave, and are waited for at a device's end (threads.h). */
#include "threads.h"

#define QUARANTINED_NS                                                                                                                     \
    INT64_C(100000000) /* for streams with which somebody has lost patience already: just enough to see an end that is there */

void weir__threads_init(weir__threads *t, weir__device *d, void (*release)(weir__stream *st)) {
    pthread_condattr_t a;
    *t = (weir__threads){.device = d, .release = release};
    pthread_condattr_init(&a);
    pthread_condattr_setclock(&a, CLOCK_MONOTONIC);
    pthread_cond_init(&t->empty, &a);
    pthread_condattr_destroy(&a);
}

void weir__threads_fini(weir__threads *t) {
    pthread_cond_destroy(&t->empty);
}

bool weir__threads_enter(weir__threads *t) {
    pthread_mutex_lock(&t->device->lock);
    bool open = !t->closed;
    t->live += open;
    pthread_mutex_unlock(&t->device->lock);
    return open;
}

/* The device's lock is held. */
static void count_off(weir__threads *t) {
    if (--t->live == 0)
        pthread_cond_broadcast(&t->empty);
}

void weir__threads_drop(weir__threads *t) {
    pthread_mutex_lock(&t->device->lock);
    count_off(t);
    pthread_mutex_unlock(&t->device->lock);
}

static void join(weir__threads *t, weir__stream *st) {
    pthread_join(st->thread, NULL);
    t->release(st);
}

/* A thread cannot free itself: each one that leaves joins the one before, the last is joined when the device ends. One that was left behind joins nobody. */
void weir__threads_leave(weir__threads *t, weir__stream *st) {
    pthread_mutex_lock(&t->device->lock);
    bool abandoned = t->abandoned;
    weir__stream *before = t->left;
    if (!abandoned) {
        t->left = st;
        count_off(t);
    }
    pthread_mutex_unlock(&t->device->lock);
    if (abandoned) {
        pthread_detach(pthread_self());
        t->release(st);
    } else if (before)
        join(t, before);
}

/* The device's lock is held. */
static bool all_quarantined(const weir__device *d) {
    for (const weir__stream *st = d->streams; st; st = st->next)
        if (atomic_load_explicit(&st->state, memory_order_relaxed) != WEIR__STREAM_QUARANTINED)
            return false;
    return d->streams != NULL;
}

/* Waits until every thread has left; false: work that does not end kept one. The device's lock is held. */
static bool wait_empty(weir__threads *t) {
    weir__device *d = t->device;
    int64_t begin = weir__dev_clock();
    while (t->live) {
        int64_t end = weir__dev_clock() + QUARANTINED_NS;
        struct timespec until = {end / 1000000000, end % 1000000000};
        bool late = pthread_cond_timedwait(&t->empty, &d->lock, &until) != 0;
        /* with no stream left, who is still there is on its way out */
        if (late && d->streams && (all_quarantined(d) || weir__dev_clock() - begin >= weir__drain(d->system)))
            return false;
    }
    return true;
}

bool weir__threads_end(weir__threads *t) {
    for (weir__stream *st; (st = weir__stream_any_open(t->device));)
        weir__stream_close(st);
    pthread_mutex_lock(&t->device->lock);
    bool empty = wait_empty(t);
    weir__stream *left = t->left;
    t->left = NULL;
    t->abandoned = !empty;
    pthread_mutex_unlock(&t->device->lock);
    if (left)
        join(t, left);
    return empty;
}

bool weir__threads_gone(weir__threads *t, int64_t patience) {
    int64_t end = weir__dev_clock() + patience;
    struct timespec until = {end / 1000000000, end % 1000000000};
    pthread_mutex_lock(&t->device->lock);
    while (t->live && !pthread_cond_timedwait(&t->empty, &t->device->lock, &until))
        ;
    bool gone = t->closed = !t->live;
    pthread_mutex_unlock(&t->device->lock);
    return gone;
}
