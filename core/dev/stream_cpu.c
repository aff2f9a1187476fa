/* stream_cpu.c: streams of the cpu device with a thread each: queue, waiting for events and for the team, and threads that are parked for the next stream.
 * Everything that a thread waits for is looked at under the device's lock and announced through its stream's condition. */
#include "cpu.h"

#include <stdio.h>
#include <unistd.h>

struct weir__cpu_stream {
    weir__stream base;
    /* under the device's lock */
    pthread_cond_t wake;
    weir__item *head, *tail;
    bool closing;
    bool parked;            /* apart from closing: a new life may be closed before the thread has woken up to it */
    weir__cpu_stream *next; /* in the team's queue or among the parked */
};

static weir__cpu *cpu_of(weir__cpu_stream *st) {
    return (weir__cpu *)st->base.device;
}
static void lock(weir__cpu_stream *st) {
    pthread_mutex_lock(&st->base.device->lock);
}
static void unlock(weir__cpu_stream *st) {
    pthread_mutex_unlock(&st->base.device->lock);
}
static void stand(weir__cpu_stream *st) {
    pthread_cond_wait(&st->wake, &st->base.device->lock);
}

/* ---- the stream's thread ---- */

/* The next item; NULL: the stream is closed and drained. */
static weir__item *take(weir__cpu_stream *st) {
    lock(st);
    while (!st->head && !st->closing)
        stand(st);
    weir__item *item = st->head;
    if (item)
        st->head = item->next;
    unlock(st);
    return item;
}

static int wait_event(weir__cpu_stream *st, const weir__item *item) {
    weir__event *e = item->event;
    lock(st);
    int status = weir__event_status(e);
    if (status == WEIR_EBUSY) {
        weir__event_join(e, &st->base);
        while ((status = weir__event_status(e)) == WEIR_EBUSY && !weir__item_skipped(&st->base, item))
            stand(st);
        weir__event_leave(e, &st->base);
    }
    unlock(st);
    return status == WEIR_EBUSY ? WEIR_ECANCELLED : status;
}

static void leave_team_queue(weir__cpu_stream *st) {
    weir__cpu *cpu = cpu_of(st);
    weir__cpu_stream **p = &cpu->team_queue;
    while (*p != st)
        p = &(*p)->next;
    *p = st->next;
    st->next = NULL;
    if (cpu->team_queue)
        pthread_cond_signal(&cpu->team_queue->wake);
}

/* Waits until this stream owns the team; false: the item was skipped meanwhile. */
static bool enter_team(weir__cpu_stream *st, const weir__item *item) {
    weir__cpu *cpu = cpu_of(st);
    lock(st);
    weir__cpu_stream **p = &cpu->team_queue;
    while (*p)
        p = &(*p)->next;
    *p = st;
    while (cpu->team_queue != st && !weir__item_skipped(&st->base, item))
        stand(st);
    bool owner = !weir__item_skipped(&st->base, item);
    if (!owner)
        leave_team_queue(st);
    unlock(st);
    return owner;
}

static int run_list(weir__cpu_stream *st, const weir__item *item, int64_t *busy) {
    if (!enter_team(st, item))
        return WEIR_ECANCELLED;
    int64_t begin = weir__dev_clock();
    int status = weir__cpu_run_list(cpu_of(st), &st->base, item);
    *busy = weir__dev_clock() - begin;
    lock(st);
    leave_team_queue(st);
    unlock(st);
    return status;
}

static int run_item(weir__cpu_stream *st, const weir__item *item, int64_t *busy) {
    int verdict = weir__item_verdict(&st->base, item);
    if (verdict)
        return verdict;
    if (item->kind == WEIR__ITEM_WAIT)
        return wait_event(st, item);
    if (item->kind == WEIR__ITEM_LIST)
        return run_list(st, item, busy);
    int64_t begin = weir__dev_clock();
    int status = weir__cpu_execute(item);
    *busy = weir__dev_clock() - begin;
    return status;
}

/* Gives the stream back and waits for a new life; false: the thread is to leave. */
static bool park(weir__cpu_stream *st) {
    weir__cpu *cpu = cpu_of(st);
    weir__stream_drained(&st->base);
    lock(st);
    bool room = !cpu->quit && cpu->parked_count < WEIR_PARKED_STREAMS;
    if (room) {
        st->next = cpu->parked;
        cpu->parked = st;
        cpu->parked_count++;
        st->parked = true;
        while (st->parked && !cpu->quit)
            stand(st);
    }
    bool again = room && !st->parked;
    unlock(st);
    return again;
}

void weir__cpu_stream_release(weir__stream *base) {
    weir__cpu_stream *st = (weir__cpu_stream *)base;
    pthread_cond_destroy(&st->wake);
    weir__free(base->device->system, st);
}

static void *stream_main(void *data) {
    weir__cpu_stream *st = data;
    weir_cpu_set_mxcsr();
    atomic_store_explicit(&st->base.tid, gettid(), memory_order_relaxed);
    do {
        for (weir__item *item; (item = take(st));) {
            int64_t busy = 0;
            int status = run_item(st, item, &busy);
            weir__item_done(&st->base, item, status, busy);
        }
    } while (park(st));
    weir__threads_leave(&cpu_of(st)->threads, &st->base);
    return NULL;
}

/* ---- the loop's thread ---- */

/* A parked stream begins anew. The device's lock is held. */
static void revive(weir__cpu_stream *st) {
    weir__stream *base = &st->base;
    base->submitted = base->completed = 0;
    atomic_store_explicit(&base->skipped, 0, memory_order_relaxed);
    base->failure = 0;
    base->busy = 0;
    st->next = NULL;
    st->closing = st->parked = false;
    pthread_cond_signal(&st->wake);
}

static weir__cpu_stream *unpark(weir__cpu *cpu) {
    pthread_mutex_lock(&cpu->base.lock);
    weir__cpu_stream *st = cpu->parked;
    if (st) {
        cpu->parked = st->next;
        cpu->parked_count--;
        revive(st);
    }
    pthread_mutex_unlock(&cpu->base.lock);
    return st;
}

static void name_thread(weir__cpu_stream *st, const char *name) {
    char cut[16];
    snprintf(cut, sizeof cut, "%s", name);
    pthread_setname_np(st->base.thread, cut);
}

int weir__cpu_stream_open(weir__device *d, const char *name, weir__stream **out, weir_error **error) {
    weir__cpu *cpu = (weir__cpu *)d;
    weir__cpu_stream *st = unpark(cpu);
    if (st) {
        name_thread(st, name);
        *out = &st->base;
        return WEIR_OK;
    }
    st = weir__alloc(d->system, sizeof *st);
    if (!st)
        return weir_fail(error, WEIR_ENOMEM, "device cpu: no memory for stream %s", name);
    st->base.device = d;
    pthread_cond_init(&st->wake, NULL);
    weir__threads_enter(&cpu->threads);
    int failure = weir__thread_start(&st->base.thread, name, stream_main, st);
    if (failure) {
        weir__threads_drop(&cpu->threads);
        weir__cpu_stream_release(&st->base);
        return weir_fail(error, WEIR_EIO, "device cpu: no thread for stream %s: error %d", name, failure);
    }
    *out = &st->base;
    return WEIR_OK;
}

void weir__cpu_stream_submit(weir__stream *base, weir__item *item) {
    weir__cpu_stream *st = (weir__cpu_stream *)base;
    item->next = NULL;
    lock(st);
    if (st->head)
        st->tail->next = item;
    else
        st->head = item;
    st->tail = item;
    unlock(st);
    pthread_cond_signal(
        &st->wake); /* outside of the lock, so that the woken thread does not run into it; only this thread can close the stream */
}

void weir__cpu_stream_wake(weir__stream *base) {
    pthread_cond_signal(&((weir__cpu_stream *)base)->wake);
}

void weir__cpu_stream_close(weir__stream *base) {
    weir__cpu_stream *st = (weir__cpu_stream *)base;
    weir__device *d = base->device;
    pthread_mutex_lock(&d->lock);
    st->closing = true;
    pthread_cond_signal(&st->wake); /* inside: afterwards the stream may be gone */
    pthread_mutex_unlock(&d->lock);
}

bool weir__cpu_streams_end(weir__cpu *cpu) {
    pthread_mutex_lock(&cpu->base.lock);
    cpu->quit = true;
    for (weir__cpu_stream *st = cpu->parked; st; st = st->next)
        pthread_cond_signal(&st->wake);
    pthread_mutex_unlock(&cpu->base.lock);
    return weir__threads_end(&cpu->threads);
}
