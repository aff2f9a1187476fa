/* timer.c: due times in a heap, and the timers of actors. A due time is reserved before it is set, so that setting it cannot fail. */
#include "internal.h"

enum { HEAP_FIRST = 32, HEAP_WAYS = 4 };

int64_t weir__later(int64_t at, int64_t ns) {
    int64_t sum;
    return __builtin_add_overflow(at, ns, &sum) ? INT64_MAX : sum;
}

int64_t weir__after(weir_system *s, int64_t ns) {
    return weir__later(weir_now(s), ns);
}

/* ---- the heap: children of i are 4(i-1)+2 .. 4(i-1)+5, from 1 ---- */

int weir__due_reserve(weir__loop *l) {
    weir__heap *h = &l->heap;
    if (h->reserved + 2 > h->capacity) {
        size_t capacity = h->capacity ? h->capacity * 2 : HEAP_FIRST;
        weir__due **at = weir__realloc(l->system, h->at, capacity * sizeof *at);
        if (!at)
            return WEIR_ENOMEM;
        h->at = at;
        h->capacity = capacity;
    }
    h->reserved++;
    return WEIR_OK;
}

void weir__due_unreserve(weir__loop *l) {
    l->heap.reserved--;
}

static bool before(const weir__due *a, const weir__due *b) {
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void put(weir__heap *h, size_t i, weir__due *d) {
    h->at[i] = d;
    d->place = i;
}

static void rise(weir__heap *h, size_t i, weir__due *d) {
    while (i > 1) {
        size_t parent = (i - 2) / HEAP_WAYS + 1;
        if (!before(d, h->at[parent]))
            break;
        put(h, i, h->at[parent]);
        i = parent;
    }
    put(h, i, d);
}

static void sink(weir__heap *h, size_t i, weir__due *d) {
    for (;;) {
        size_t child = HEAP_WAYS * (i - 1) + 2, best = child;
        if (child > h->count)
            break;
        for (size_t k = child + 1; k < child + HEAP_WAYS && k <= h->count; k++)
            if (before(h->at[k], h->at[best]))
                best = k;
        if (!before(h->at[best], d))
            break;
        put(h, i, h->at[best]);
        i = best;
    }
    put(h, i, d);
}

void weir__due_set(weir__loop *l, weir__due *d, int64_t at) {
    d->at = at > 0 ? at : 1; /* 0 would say that nothing is due */
    d->order = l->heap.order++;
    rise(&l->heap, ++l->heap.count, d);
    if (!l->running && d->place == 1)
        weir__wake(l); /* a host waits for what was the earliest */
}

void weir__due_clear(weir__loop *l, weir__due *d) {
    weir__heap *h = &l->heap;
    size_t i = d->place;
    if (!i)
        return;
    d->place = 0;
    weir__due *last = h->at[h->count--];
    if (last == d)
        return;
    if (before(last, d))
        rise(h, i, last);
    else
        sink(h, i, last);
}

void weir__due_fire(weir__loop *l, int64_t now) {
    while (l->heap.count && l->heap.at[1]->at <= now) {
        weir__due *d = l->heap.at[1];
        weir__due_clear(l, d);
        d->fire(l, d);
    }
}

int64_t weir__due_next(const weir__loop *l) {
    return l->heap.count ? l->heap.at[1]->at : 0;
}

/* ---- timers of actors ---- */

static void due(weir__loop *l, weir__due *d) {
    (void)l;
    weir__timer *t = weir__container(d, weir__timer, due);
    t->queued = true;
    weir__own_push(t->actor, &t->entry);
}

int weir_timer(weir_actor *self, int64_t period, enum weir_timer_kind kind, weir_timer_fn *fn, void *data, uint64_t *id) {
    if (!weir__check(self && fn, "no actor or no function") || !weir__usable_by(self))
        return WEIR_EINVAL;
    if (period < 0 || (period == 0 && kind != WEIR_TIMER_ONCE))
        return WEIR_EINVAL;
    weir__loop *l = self->loop;
    weir__timer *t = weir__ids_take(l->system, &l->timers);
    if (!t)
        return WEIR_ENOMEM;
    if (weir__due_reserve(l) != WEIR_OK) {
        weir__ids_give(&l->timers, &t->id);
        return WEIR_ENOMEM;
    }
    t->entry = (weir__entry){NULL, 0, WEIR__TIMER};
    t->due = (weir__due){0, 0, 0, due};
    t->actor = self;
    t->kind = kind;
    t->queued = t->running = t->forgotten = false;
    t->period = period;
    t->fn = fn;
    t->data = data;
    weir__link_add(&self->timers, &t->link);
    weir__add(&l->timers_live, 1);
    uint64_t made = weir__ids_live(&t->id);
    if (id)
        *id = made;
    weir__due_set(l, &t->due, weir__after(l->system, period));
    return WEIR_OK;
}

/* While its entry is queued or its function runs, the record stays and is given back there. */
void weir__timer_free(weir__loop *l, weir__timer *t) {
    if (!t->forgotten) {
        t->forgotten = true;
        weir__due_clear(l, &t->due);
        weir__due_unreserve(l);
        weir__link_remove(&t->link);
        weir__ids_end(&t->id);
        weir__add(&l->timers_live, (uint64_t)-1);
    }
    if (!t->queued && !t->running)
        weir__ids_give(&l->timers, &t->id);
}

void weir_timer_cancel(weir_actor *self, uint64_t id) {
    if (!weir__check(self, "no actor") || !weir__usable_by(self))
        return;
    weir__timer *t = weir__ids_find(&self->loop->timers, id);
    if (t && t->actor == self)
        weir__timer_free(self->loop, t);
    weir__verify_small(self->system);
}

void weir__timer_tick(weir_actor *self, weir__timer *t) {
    weir__loop *l = self->loop;
    t->queued = false;
    if (t->forgotten) {
        weir__timer_free(l, t);
        return;
    }
    uint64_t missed = 0;
    int64_t next = 0;
    if (t->kind == WEIR_TIMER_RATE) {
        missed = (uint64_t)((weir_now(l->system) - t->due.at) / t->period);
        next = weir__later(t->due.at, (int64_t)(missed + 1) * t->period);
    }
    t->running = true;
    t->fn(self, t->data, missed);
    t->running = false;
    if (t->forgotten || t->kind == WEIR_TIMER_ONCE)
        weir__timer_free(l, t);
    else
        weir__due_set(l, &t->due, t->kind == WEIR_TIMER_RATE ? next : weir__after(l->system, t->period));
}
