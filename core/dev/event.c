/* event.c: points in streams that the host can ask for and streams can wait for. Knows no threads: a backend decides how a stream stands still. */
#include "private.h"

int weir__event_new(weir__device *d, weir__event **out) {
    weir__event *e = weir__alloc(d->system, sizeof *e);
    if (!e)
        return WEIR_ENOMEM;
    e->device = d;
    atomic_init(&e->refs, 1);
    atomic_init(&e->status, WEIR_EBUSY);
    *out = e;
    return WEIR_OK;
}

weir__event *weir__event_ref(weir__event *e) {
    atomic_fetch_add_explicit(&e->refs, 1, memory_order_relaxed);
    return e;
}

void weir__event_unref(weir__event *e) {
    /* acq_rel: every owner's last use comes before the decrement that frees */
    if (!e || atomic_fetch_sub_explicit(&e->refs, 1, memory_order_acq_rel) != 1)
        return;
    if (e->device->table->event_free)
        e->device->table->event_free(e);
    weir__free(e->device->system, e);
}

int weir__event_status(const weir__event *e) {
    return atomic_load_explicit(&e->status, memory_order_acquire);
}

void weir__event_finish(weir__event *e, int status) {
    atomic_store_explicit(&e->status, status, memory_order_release);
    for (weir__stream *st = e->waiters; st; st = st->next_waiter)
        st->device->table->wake(st);
}

void weir__event_join(weir__event *e, weir__stream *st) {
    st->next_waiter = e->waiters;
    e->waiters = st;
}

void weir__event_leave(weir__event *e, weir__stream *st) {
    for (weir__stream **p = &e->waiters; *p; p = &(*p)->next_waiter)
        if (*p == st) {
            *p = st->next_waiter;
            return;
        }
}

static void handle_ref(void *e) {
    weir__event_ref(e);
}
static void handle_unref(void *e) {
    weir__event_unref(e);
}
const weir_handle_type weir__event_handle = {"event", handle_ref, handle_unref};
