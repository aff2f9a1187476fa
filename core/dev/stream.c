/* stream.c: the front of a stream: submissions are checked and become items, and an item's end is accounted for. Knows no thread and no kernel: a backend
 * queues the items and runs them. */
#include "private.h"

#include <stdio.h>
#include <string.h>

/* ---- opening and closing ---- */

static void set_state(weir__stream *st, int state) {
    atomic_store_explicit(&st->state, state, memory_order_relaxed);
}

static bool is_open(const weir__stream *st) {
    return atomic_load_explicit(&st->state, memory_order_relaxed) == WEIR__STREAM_OPEN;
}

/* Reserved, so it must not count as pending work before the device is lost. */
static int reserve_lost(weir__device *d, weir_address owner, weir__notice **out) {
    weir_verb verb = owner && d->table->can_be_lost ? weir_intern(d->system, "device_lost") : 0;
    if (!owner || !d->table->can_be_lost)
        return WEIR_OK;
    *out = verb ? weir__notice_new(d->system, owner, owner, verb, NULL) : NULL;
    if (!*out)
        return WEIR_ENOMEM;
    weir__pending(d->system, -1);
    return WEIR_OK;
}

static weir__notice *take_lost(weir__stream *st) {
    pthread_mutex_lock(&st->device->lock);
    weir__notice *n = st->lost;
    st->lost = NULL;
    pthread_mutex_unlock(&st->device->lock);
    return n;
}

static void give_back_lost(weir__device *d, weir__notice *n) {
    if (!n)
        return;
    weir__pending(d->system, 1);
    weir__notice_free(n);
}

void weir__stream_tell_lost(weir__stream *st) {
    weir__notice *n = take_lost(st);
    if (!n)
        return;
    weir__pending(st->device->system, 1);
    weir__notice_post(n);
}

int weir__stream_new(weir__device *d, weir_address owner, const char *name, weir__stream **out, weir_error **error) {
    if (weir__inject(d->system, WEIR__INJECT_STREAM))
        return weir_fail(error, WEIR_EIO, "device %s: stream %s cannot be made (injected)", d->name, name);
    if (weir__device_lost(d))
        return weir_fail(error, WEIR_EDEVICE, "device %s is lost (%s): stream %s cannot be made", d->name, weir__device_lost(d), name);
    weir__stream *st = NULL;
    weir__notice *lost = NULL;
    if (reserve_lost(d, owner, &lost))
        return weir_fail(error, WEIR_ENOMEM, "device %s: no memory for stream %s", d->name, name);
    int code = d->table->stream_open(d, name, &st, error);
    if (code) {
        give_back_lost(d, lost);
        return code;
    }
    pthread_mutex_lock(&d->lock);
    st->lost = lost;
    snprintf(st->name, sizeof st->name, "%s", name);
    st->owner = owner;
    *st->why = 0;
    set_state(st, WEIR__STREAM_OPEN);
    st->next = d->streams;
    if (st->next)
        st->next->prev = st;
    d->streams = st;
    pthread_mutex_unlock(&d->lock);
    *out = st;
    return WEIR_OK;
}

static void mark_skipped(weir__stream *st) {
    atomic_store_explicit(&st->skipped, st->submitted, memory_order_relaxed);
}

void weir__stream_why(weir__stream *st, char *to, size_t size) {
    pthread_mutex_lock(&st->device->lock);
    snprintf(to, size, "%s%s", *st->why ? ": " : "", st->why);
    pthread_mutex_unlock(&st->device->lock);
}

void weir__stream_skip(weir__stream *st) {
    weir__device *d = st->device;
    mark_skipped(st);
    pthread_mutex_lock(&d->lock);
    d->table->wake(st);
    pthread_mutex_unlock(&d->lock);
}

void weir__stream_close(weir__stream *st) {
    if (!st || !weir__check(is_open(st), "stream is closed already"))
        return;
    weir__device *d = st->device;
    if (st->owner)
        weir__linger_begin(d->system, &st->linger, st->owner);
    weir__pending(d->system, 1); /* until it is given back */
    pthread_mutex_lock(&d->lock);
    set_state(st, WEIR__STREAM_DRAINING);
    pthread_mutex_unlock(&d->lock);
    mark_skipped(st);
    d->table->stream_close(st);
}

static void pool_free(weir__stream *st) {
    weir__item *item = st->pool;
    st->pool = NULL;
    while (item) {
        weir__item *next = item->next;
        weir__free(st->device->system, item);
        item = next;
    }
}

static void unlink_stream(weir__stream *st) {
    if (st->prev)
        st->prev->next = st->next;
    else
        st->device->streams = st->next;
    if (st->next)
        st->next->prev = st->prev;
    st->next = st->prev = NULL;
}

void weir__stream_drained(weir__stream *st) {
    weir__device *d = st->device;
    pool_free(st);
    give_back_lost(d, take_lost(st));
    pthread_mutex_lock(&d->lock);
    unlink_stream(st);
    pthread_mutex_unlock(&d->lock);
    weir__linger_end(d->system, &st->linger);
    weir__pending(d->system, -1);
}

void weir__streams_quarantine(weir__device *d, weir_address owner) {
    pthread_mutex_lock(&d->lock);
    for (weir__stream *st = d->streams; st; st = st->next)
        if (st->owner == owner && !is_open(st))
            set_state(st, WEIR__STREAM_QUARANTINED);
    pthread_mutex_unlock(&d->lock);
}

weir__stream *weir__stream_any_open(weir__device *d) {
    pthread_mutex_lock(&d->lock);
    weir__stream *st = d->streams;
    while (st && !is_open(st))
        st = st->next;
    pthread_mutex_unlock(&d->lock);
    return st;
}

/* ---- submitting ---- */

static int item_new(weir__stream *st, enum weir__item_kind kind, weir__item **out) {
    if (!st || !weir__check(is_open(st), "stream is closed"))
        return WEIR_EINVAL;
    weir__device *d = st->device;
    if (weir__inject(d->system, WEIR__INJECT_SUBMIT))
        return WEIR_EDEVICE;
    pthread_mutex_lock(&d->lock);
    weir__item *item = st->pool;
    if (item)
        st->pool = item->next;
    pthread_mutex_unlock(&d->lock);
    if (!item)
        item = weir__alloc(d->system, sizeof *item);
    if (!item)
        return WEIR_ENOMEM;
    memset(item, 0, sizeof *item);
    item->kind = kind;
    *out = item;
    return WEIR_OK;
}

static void item_free(weir__stream *st, weir__item *item) {
    pthread_mutex_lock(&st->device->lock);
    item->next = st->pool;
    st->pool = item;
    pthread_mutex_unlock(&st->device->lock);
}

static int submit(weir__stream *st, weir__item *item) {
    item->number = ++st->submitted;
    weir__pending(st->device->system, 1);
    st->device->table->submit(st, item);
    return WEIR_OK;
}

int weir__stream_run(weir__stream *st, weir__list *l, const weir__shape *shape) {
    weir__item *item = NULL;
    if (!st || !l || l->device != st->device)
        return WEIR_EINVAL;
    int code = item_new(st, WEIR__ITEM_LIST, &item);
    if (code)
        return code;
    item->run.list = weir__list_ref(l);
    item->run.shape = shape ? *shape : (weir__shape){0};
    atomic_fetch_add_explicit(&l->queued, 1, memory_order_relaxed);
    return submit(st, item);
}

static bool inside(const weir__buffer *b, size_t offset, size_t bytes) {
    return offset <= b->size && bytes <= b->size - offset;
}

int weir__stream_copy(weir__stream *st, weir__buffer *to, size_t to_offset, weir__buffer *from, size_t from_offset, size_t bytes) {
    weir__item *item = NULL;
    if (!st || !to || !from || to->device != st->device || from->device != st->device)
        return WEIR_EINVAL;
    if (!inside(to, to_offset, bytes) || !inside(from, from_offset, bytes))
        return WEIR_EINVAL;
    int code = item_new(st, WEIR__ITEM_COPY, &item);
    if (code)
        return code;
    item->copy.to = weir__buffer_ref(to);
    item->copy.from = weir__buffer_ref(from);
    item->copy.to_offset = to_offset;
    item->copy.from_offset = from_offset;
    item->copy.bytes = bytes;
    return submit(st, item);
}

int weir__stream_host(weir__stream *st, int (*fn)(void *data), void (*release)(void *data), void *data) {
    weir__item *item = NULL;
    if (!fn)
        return WEIR_EINVAL;
    int code = item_new(st, WEIR__ITEM_HOST, &item);
    if (code)
        return code;
    item->host.fn = fn;
    item->host.release = release;
    item->host.data = data;
    return submit(st, item);
}

int weir__stream_prepare(weir__stream *st) {
    weir__item *item = NULL;
    int code = item_new(st, WEIR__ITEM_PREPARE, &item);
    return code ? code : submit(st, item);
}

int weir__stream_keep(weir__stream *st, weir__buffer *b) {
    weir__item *item = NULL;
    if (!b)
        return WEIR_EINVAL;
    int code = item_new(st, WEIR__ITEM_KEEP, &item);
    if (code)
        return code;
    item->kept = weir__buffer_ref(b);
    return submit(st, item);
}

int weir__stream_record(weir__stream *st, weir__event *e) {
    weir__item *item = NULL;
    if (!st || !e || e->device != st->device || e->recorded)
        return WEIR_EINVAL;
    int code = item_new(st, WEIR__ITEM_RECORD, &item);
    if (code)
        return code;
    e->recorded = true;
    item->event = weir__event_ref(e);
    return submit(st, item);
}

int weir__stream_wait(weir__stream *st, weir__event *e) {
    weir__item *item = NULL;
    if (!st || !e || e->device != st->device || !e->recorded)
        return WEIR_EINVAL;
    int code = item_new(st, WEIR__ITEM_WAIT, &item);
    if (code)
        return code;
    item->event = weir__event_ref(e);
    return submit(st, item);
}

/* The status of a notice is known only when it is posted, and posting must not fail. So its body is made now with the status 0, which msgpack writes as one
 * byte behind the array's head, as it does every code below 128; nobody else has seen that body when the byte is replaced. */
enum { STATUS_AT = 1 };
_Static_assert(WEIR_CODES < 128, "a status is one byte of msgpack");

static void write_status(weir_body *body, int status) {
    size_t size = 0;
    uint8_t *bytes = (uint8_t *)(uintptr_t)weir_body_bytes(body, &size);
    bytes[STATUS_AT] = (uint8_t)status;
}

int weir__stream_notify(weir__stream *st, weir_address to, weir_verb verb, int64_t arg) {
    weir__item *item = NULL;
    int code = item_new(st, WEIR__ITEM_NOTIFY, &item);
    if (code)
        return code;
    weir_system *s = st->device->system;
    weir_body *body = weir_pack(s, "ii", (int64_t)0, arg);
    if (!body) {
        item_free(st, item);
        return WEIR_ENOMEM;
    }
    item->notify.body = weir_body_ref(body);
    item->notify.notice = weir__notice_new(s, st->owner, to, verb, body);
    if (!item->notify.notice) {
        weir_body_free(item->notify.body);
        item_free(st, item);
        return WEIR_ENOMEM;
    }
    return submit(st, item);
}

/* ---- the end of an item ---- */

int weir__item_verdict(const weir__stream *st, const weir__item *item) {
    if (weir__item_skipped(st, item))
        return WEIR_ECANCELLED;
    return item->kind == WEIR__ITEM_NOTIFY ? WEIR_OK : st->failure;
}

static void give_back(const weir__item *item, int failure) {
    switch (item->kind) {
    case WEIR__ITEM_LIST:
        /* release: pairs with the acquire of whoever changes the list because it is not queued */
        atomic_fetch_sub_explicit(&item->run.list->queued, 1, memory_order_release);
        weir__list_unref(item->run.list);
        break;
    case WEIR__ITEM_KEEP:
        weir__buffer_unref(item->kept);
        break;
    case WEIR__ITEM_COPY:
        weir__buffer_unref(item->copy.to);
        weir__buffer_unref(item->copy.from);
        break;
    case WEIR__ITEM_HOST:
        if (item->host.release)
            item->host.release(item->host.data);
        break;
    case WEIR__ITEM_PREPARE:
        break;
    case WEIR__ITEM_RECORD:
    case WEIR__ITEM_WAIT:
        weir__event_unref(item->event);
        break;
    case WEIR__ITEM_NOTIFY:
        write_status(item->notify.body, failure);
        weir_body_free(item->notify.body);
        weir__notice_post(item->notify.notice);
        break;
    }
}

void weir__item_done(weir__stream *st, weir__item *item, int status, int64_t busy) {
    weir__device *d = st->device;
    const weir__item ended = *item;
    if (status && !st->failure)
        st->failure = status;
    int failure = st->failure;
    if (ended.kind == WEIR__ITEM_NOTIFY)
        st->failure = 0;
    pthread_mutex_lock(&d->lock);
    st->completed++;
    st->busy += busy;
    item->next = st->pool;
    st->pool = item;
    if (ended.kind == WEIR__ITEM_RECORD)
        weir__event_finish(ended.event, failure);
    pthread_mutex_unlock(&d->lock);
    give_back(&ended, failure);
    weir__pending(d->system, -1);
}
