/* stream.c: streams of the cuda device. Each has a thread that gives items to the driver in order and ends them in order, and beside the stream of work one for
 * notices: a host function there, behind a point of the work, notes how far the work has come and writes the thread's eventfd. So the loop's thread never calls what
 * could wait, and a host function never stands in a stream of work. Knows no kernel. */
#include "cuda.h"

#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* A context that is lost calls no host function: while work is in flight the thread also looks for itself, so seldom. */
enum { LOOK_MS = 50 };

struct weir__cuda_stream {
    weir__stream base;
    int wake;                 /* eventfd: something has changed */
    _Atomic uint64_t reached; /* the device has done all work up to this item */
    weir__item *head, *tail;  /* submitted; device's lock */
    bool closing;             /* device's lock */
    /* the thread's alone */
    weir__cuda_queue queue;
    CUstream notices;
    CUevent mark;
    weir__item *issued, *last; /* given to the driver, not ended */
    uint64_t marked;           /* up to this item a host function will tell */
    int failure;               /* why what follows is not given to the driver, until a notice has been issued */
};

static weir__cuda *cuda_of(const weir__cuda_stream *st) {
    return (weir__cuda *)st->base.device;
}
static void lock(weir__cuda_stream *st) {
    pthread_mutex_lock(&st->base.device->lock);
}
static void unlock(weir__cuda_stream *st) {
    pthread_mutex_unlock(&st->base.device->lock);
}

static void wake(weir__cuda_stream *st) {
    uint64_t one = 1;
    ssize_t ignored = write(st->wake, &one, sizeof one); /* full: awake already */
    (void)ignored;
}

/* ---- how far the device has come ---- */

/* On a thread of the driver, which must not be called from here. The item is ended by nobody but this stream's thread, after `reached` says so. */
static void tell(void *data) {
    weir__item *item = data;
    weir__cuda_stream *st = (weir__cuda_stream *)item->stream;
    atomic_store_explicit(&st->reached, item->number, memory_order_release);
    wake(st);
}

static void end_item(weir__cuda_stream *st, int status) {
    weir__item *item = st->issued;
    st->issued = item->next;
    if (!st->issued)
        st->last = NULL;
    weir__item_done(&st->base, item, item->status ? item->status : status, item->status ? 0 : weir__dev_clock() - item->begun);
}

static void end_reached(weir__cuda_stream *st) {
    uint64_t reached = atomic_load_explicit(&st->reached, memory_order_acquire);
    while (st->issued && st->issued->number <= reached)
        end_item(st, WEIR_OK);
    st->queue.ended = reached;
}

static void keep_failure(weir__cuda_stream *st, int status) {
    st->failure = status;
    lock(st);
    snprintf(st->base.why, sizeof st->base.why, "%s", st->queue.why);
    unlock(st);
    *st->queue.why = 0;
}

static const char *lost(const weir__cuda_stream *st) {
    return weir__device_lost(st->base.device);
}

static void say_lost(weir__cuda_stream *st) {
    snprintf(st->queue.why, WEIR__CUDA_WHY, "the device is lost: %s", lost(st));
}

/* Nobody will tell how far the work has come: this thread waits for it. What cannot even be waited for is lost, and the context with it. */
static void settle(weir__cuda_stream *st) {
    weir__cuda *c = cuda_of(st);
    CUresult code = CUDA_SUCCESS;
    for (int tries = 0; tries < 2 && !lost(st); tries++) {
        code = c->driver.StreamSynchronize(st->queue.stream);
        if (!code) {
            c->driver.StreamSynchronize(st->notices); /* what was asked for earlier is told before its items end */
            if (st->last)
                atomic_store_explicit(&st->reached, st->last->number, memory_order_release);
            return;
        }
        weir__cuda_note(c, code);
    }
    if (code)
        weir__device_lose(&c->base, weir__cuda_error_text(code));
    if (!st->failure) {
        say_lost(st);
        keep_failure(st, WEIR_EDEVICE);
    }
    while (st->issued)
        end_item(st, WEIR_EDEVICE);
}

/* Asks to be told when the device has done all that was issued. */
static void mark(weir__cuda_stream *st) {
    const weir__cuda_driver *d = &cuda_of(st)->driver;
    if (!st->last || st->last->number == st->marked)
        return;
    uint64_t number = st->last->number;
    CUresult code = d->EventRecord(st->mark, st->queue.stream);
    if (!code)
        code = d->StreamWaitEvent(st->notices, st->mark, 0);
    if (!code)
        code = d->LaunchHostFunc(st->notices, tell, st->last);
    st->marked = number;
    if (code)
        settle(st);
}

/* Whether the driver has lost the work, which then tells nobody. */
static void look(weir__cuda_stream *st) {
    weir__cuda *c = cuda_of(st);
    CUresult code = c->driver.StreamQuery(st->queue.stream);
    if (lost(st) || (code != CUDA_SUCCESS && code != CUDA_ERROR_NOT_READY))
        settle(st);
}

/* ---- giving an item to the driver ---- */

static int status_of(CUresult code) {
    return code == CUDA_SUCCESS ? WEIR_OK : code == CUDA_ERROR_OUT_OF_MEMORY ? WEIR_ENOMEM : WEIR_EDEVICE;
}

/* An event of the driver's that is not in use. */
static CUresult take_event(weir__cuda *c, CUevent *out) {
    pthread_mutex_lock(&c->base.lock);
    bool some = c->event_count > 0;
    if (some)
        *out = c->events[--c->event_count];
    pthread_mutex_unlock(&c->base.lock);
    return some ? CUDA_SUCCESS : c->driver.EventCreate(out, CU_EVENT_DISABLE_TIMING);
}

static CUresult record(weir__cuda_stream *st, weir__event *e) {
    CUevent event = NULL;
    CUresult code = weir__cuda_said(&st->queue, "cuEventCreate", take_event(cuda_of(st), &event));
    if (!code)
        code = weir__cuda_said(&st->queue, "cuEventRecord", cuda_of(st)->driver.EventRecord(event, st->queue.stream));
    lock(st);
    e->native = event;
    e->issued = !code;
    for (weir__stream *w = e->waiters; w; w = w->next_waiter)
        wake((weir__cuda_stream *)w);
    unlock(st);
    return code;
}

/* Sets *later: the event's record has not been given to the driver yet. */
static int wait_for(weir__cuda_stream *st, const weir__item *item, bool *later) {
    weir__event *e = item->event;
    CUevent event = NULL;
    lock(st);
    int status = weir__event_status(e);
    if (status == WEIR_EBUSY && e->issued)
        event = e->native;
    *later = status == WEIR_EBUSY && !event;
    if (*later && !st->base.waiting)
        weir__event_join(e, &st->base);
    if (!*later && st->base.waiting)
        weir__event_leave(e, &st->base);
    st->base.waiting = *later;
    unlock(st);
    if (event)
        return status_of(weir__cuda_said(&st->queue, "cuStreamWaitEvent", cuda_of(st)->driver.StreamWaitEvent(st->queue.stream, event, 0)));
    return *later ? WEIR_OK : status;
}

/* After all earlier work, on this thread. */
static int run_host(weir__cuda_stream *st, const weir__item *item) {
    CUresult code = weir__cuda_said(&st->queue, "cuStreamSynchronize", cuda_of(st)->driver.StreamSynchronize(st->queue.stream));
    return code ? WEIR_EDEVICE : item->host.fn(item->host.data);
}

static int issue(weir__cuda_stream *st, weir__item *item, bool *later) {
    switch (item->kind) {
    case WEIR__ITEM_LIST:
        if (weir__inject(st->base.device->system, WEIR__INJECT_KERNEL))
            return WEIR_EDEVICE;
        return status_of(weir__cuda_issue_list(&st->queue, item));
    case WEIR__ITEM_COPY:
        return status_of(weir__cuda_issue_copy(&st->queue, item));
    case WEIR__ITEM_HOST:
        return run_host(st, item);
    case WEIR__ITEM_PREPARE:
        return status_of(weir__cuda_blas_prepare(&st->queue));
    case WEIR__ITEM_RECORD:
        return status_of(record(st, item->event));
    case WEIR__ITEM_WAIT:
        return wait_for(st, item, later);
    default:
        return WEIR_OK;
    }
}

/* Why the item is not given to the driver; 0: it is. */
static int verdict(weir__cuda_stream *st, const weir__item *item) {
    if (weir__item_skipped(&st->base, item))
        return WEIR_ECANCELLED;
    if (item->kind == WEIR__ITEM_NOTIFY)
        return WEIR_OK;
    if (!st->failure && lost(st)) {
        say_lost(st);
        return WEIR_EDEVICE;
    }
    return st->failure;
}

static weir__item *peek(weir__cuda_stream *st, bool *closing) {
    lock(st);
    weir__item *item = st->head;
    *closing = st->closing;
    unlock(st);
    return item;
}

static void stop_waiting(weir__cuda_stream *st, const weir__item *item) {
    lock(st);
    if (st->base.waiting && item->kind == WEIR__ITEM_WAIT)
        weir__event_leave(item->event, &st->base);
    st->base.waiting = false;
    unlock(st);
}

static void take(weir__cuda_stream *st, weir__item *item) {
    lock(st);
    st->head = item->next;
    if (!st->head)
        st->tail = NULL;
    unlock(st);
    item->next = NULL;
    if (st->last)
        st->last->next = item;
    else
        st->issued = item;
    st->last = item;
}

/* One item of the queue; false: its turn has not come. */
static bool step(weir__cuda_stream *st, weir__item *item) {
    bool later = false;
    item->stream = &st->base;
    item->begun = weir__dev_clock();
    item->status = verdict(st, item);
    if (item->status)
        stop_waiting(st, item);
    else
        item->status = issue(st, item, &later);
    if (later)
        return false;
    take(st, item);
    if (item->status && !st->failure)
        keep_failure(st, item->status);
    if (item->kind == WEIR__ITEM_NOTIFY)
        st->failure = 0;
    if (item->kind == WEIR__ITEM_NOTIFY || item->kind == WEIR__ITEM_RECORD)
        mark(st);
    return true;
}

/* ---- the thread ---- */

static void rest(weir__cuda_stream *st) {
    struct pollfd p = {.fd = st->wake, .events = POLLIN};
    uint64_t n;
    bool some = st->issued != NULL;
    mark(st);
    end_reached(st);
    if (some && lost(st))
        settle(st);
    if (some && !st->issued)
        return;
    if (lost(st))
        weir__stream_tell_lost(&st->base);
    if (poll(&p, 1, some ? LOOK_MS : -1) == 0)
        look(st);
    ssize_t ignored = read(st->wake, &n, sizeof n);
    (void)ignored;
}

/* Until the stream is closed and all its items have ended. */
static void serve(weir__cuda_stream *st) {
    for (bool closing = false;;) {
        end_reached(st);
        weir__item *item = peek(st, &closing);
        if (closing && !item && !st->issued)
            return;
        if (!item || !step(st, item))
            rest(st);
    }
}

static void give_back(weir__cuda_stream *st) {
    weir__cuda *c = cuda_of(st);
    if (st->notices) {
        c->driver.StreamSynchronize(st->notices); /* the last host function has returned */
        c->driver.StreamDestroy(st->notices);
    }
    if (st->mark)
        c->driver.EventDestroy(st->mark);
    weir__cuda_queue_fini(&st->queue);
    if (st->wake >= 0)
        close(st->wake);
}

void weir__cuda_stream_release(weir__stream *st) {
    weir__free(st->device->system, st);
}

static void *stream_main(void *data) {
    weir__cuda_stream *st = data;
    weir__cuda *c = cuda_of(st);
    atomic_store_explicit(&st->base.tid, gettid(), memory_order_relaxed);
    weir__cuda_enter(c);
    serve(st);
    give_back(st);
    weir__stream_drained(&st->base);
    weir__threads_leave(&c->threads, &st->base);
    return NULL;
}

/* ---- the loop's thread ---- */

static int make(weir__cuda *c, weir__cuda_stream *st, weir_error **error) {
    weir__cuda_scope scope = {0};
    st->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (st->wake < 0)
        return weir_fail(error, WEIR_EIO, "device cuda: no descriptor for a stream");
    scope = weir__cuda_enter(c);
    int code = weir__cuda_queue_init(c, &st->queue, error);
    CUresult failed = code ? CUDA_SUCCESS : c->driver.StreamCreate(&st->notices, CU_STREAM_NON_BLOCKING);
    if (!code && !failed)
        failed = c->driver.EventCreate(&st->mark, CU_EVENT_DISABLE_TIMING);
    weir__cuda_leave(c, scope);
    weir__cuda_note(c, failed);
    return failed ? weir_fail(error, WEIR_EIO, "device cuda: a stream for notices: %s", weir__cuda_error_text(failed)) : code;
}

static void unmake(weir__cuda_stream *st) {
    weir__cuda *c = cuda_of(st);
    weir__cuda_scope scope = {0};
    scope = weir__cuda_enter(c);
    give_back(st);
    weir__cuda_leave(c, scope);
    weir__free(c->base.system, st);
}

int weir__cuda_stream_open(weir__device *d, const char *name, weir__stream **out, weir_error **error) {
    weir__cuda *c = weir__cuda_of(d);
    weir__cuda_stream *st = weir__alloc(d->system, sizeof *st);
    if (!st)
        return weir_fail(error, WEIR_ENOMEM, "device cuda: no memory for stream %s", name);
    st->base.device = d;
    st->queue.device = c;
    if (!weir__threads_enter(&c->threads)) {
        weir__free(d->system, st);
        return weir_fail(error, WEIR_EDEVICE, "device cuda: it is lost, and takes no stream %s", name);
    }
    int code = make(c, st, error);
    int failure = code ? 0 : weir__thread_start(&st->base.thread, name, stream_main, st);
    if (failure)
        code = weir_fail(error, WEIR_EIO, "device cuda: no thread for stream %s: error %d", name, failure);
    if (code) {
        unmake(st);
        weir__threads_drop(&c->threads);
        return code;
    }
    *out = &st->base;
    return WEIR_OK;
}

void weir__cuda_stream_submit(weir__stream *base, weir__item *item) {
    weir__cuda_stream *st = (weir__cuda_stream *)base;
    item->next = NULL;
    lock(st);
    if (st->head)
        st->tail->next = item;
    else
        st->head = item;
    st->tail = item;
    unlock(st);
    wake(st); /* only this thread can close the stream */
}

void weir__cuda_stream_wake(weir__stream *base) {
    wake((weir__cuda_stream *)base);
}

void weir__cuda_stream_close(weir__stream *base) {
    weir__cuda_stream *st = (weir__cuda_stream *)base;
    lock(st);
    st->closing = true;
    wake(st); /* inside: afterwards the stream may be gone */
    unlock(st);
}
