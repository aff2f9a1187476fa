/* loop.c: the run queue and the turns. Which ready actor is next, what time it is and how to wait is the driver's. */
#include "internal.h"

/* ---- run queue: links in the actors, so that becoming ready needs no memory ---- */

void weir__ready_push(weir_actor *a) {
    weir__loop *l = a->loop;
    a->ready = true;
    a->ready_next = NULL;
    if (l->ready_count++)
        l->ready_last->ready_next = a;
    else
        l->ready_first = a;
    l->ready_last = a;
    if (!l->running)
        weir__wake(l); /* a host that waits for it hears of work from outside of its turns */
}

/* Takes out the one that the driver chooses; finding it costs its distance from the front. */
weir_actor *weir__ready_pop(weir__loop *l) {
    weir_actor **at = &l->ready_first, *before = NULL;
    for (size_t n = l->driver->choose(l); n; n--) {
        before = *at;
        at = &(*at)->ready_next;
    }
    weir_actor *a = *at;
    *at = a->ready_next;
    if (l->ready_last == a)
        l->ready_last = before;
    l->ready_count--;
    return a;
}

/* ---- turns ---- */

static void stop_asked(weir_actor *a) {
    if (a->compiled->behaviour->stop)
        a->compiled->behaviour->stop(a);
    else
        weir_exit(a, NULL);
}

static void dispatch_kind(weir_actor *a, weir__entry *e) {
    switch (e->kind) {
    case WEIR__MAIL:
        weir__message_handle(a, weir__container(e, weir_message, entry));
        return;
    case WEIR__REPLY:
        weir__call_report(a, weir__container(e, weir__call, reply.entry));
        return;
    case WEIR__TIMER:
        weir__timer_tick(a, weir__container(e, weir__timer, entry));
        return;
    case WEIR__DOWN:
        weir__bond_report(a, weir__container(e, weir__bond, entry));
        return;
    case WEIR__STOP:
        stop_asked(a);
        return;
    default:
        weir__check(false, "an entry that belongs between loops is in a mailbox");
    }
}

static void dispatch(weir_actor *a, weir__entry *e) {
    weir__loop *l = a->loop;
    if (!atomic_load_explicit(&l->system->watched, memory_order_relaxed)) {
        dispatch_kind(a, e);
        return;
    }
    weir__watch_begin(l, a, e->kind, e->kind == WEIR__MAIL ? weir__container(e, weir_message, entry)->verb : 0);
    dispatch_kind(a, e);
    weir__watch_end(l);
}

/* Handles what the actor may get, up to the driver's count. The clock is read after 1, 2, 4, ... messages: slow handlers end their turn soon,
 * and 64 fast ones cost seven readings. */
static void handle_some(weir_actor *a, int64_t until) {
    weir__loop *l = a->loop;
    for (unsigned n = 1; n <= l->driver->turn && !a->ending && !atomic_load_explicit(&l->asked, memory_order_relaxed); n++) {
        weir__entry *e = weir__mailbox_next(a);
        if (!e)
            return;
        dispatch(a, e);
        if ((n & (n - 1)) == 0 && weir__mailbox_ready(a) && weir_now(l->system) >= until)
            return;
    }
}

static void turn(weir_actor *a, int64_t until) {
    weir__loop *l = a->loop;
    l->current = a;
    handle_some(a, until);
    l->current = NULL;
    int64_t now = weir_now(l->system);
    weir__add(&a->slot->busy, (uint64_t)(now - l->now));
    l->now = now;
    a->ready = false;
    if (a->ending)
        weir__actor_end(a);
    else if (weir__mailbox_ready(a))
        weir__ready_push(a);
}

static bool finished(weir__loop *l, bool (*done)(void *data), void *data) {
    weir_system *s = l->system;
    return (!l->index && atomic_load_explicit(&s->quit, memory_order_relaxed)) || weir__forked(s) || (done && done(data));
}

static bool forked(weir__loop *l, bool (*done)(void *data), void *data) {
    (void)done, (void)data;
    return weir__forked(l->system);
}

/* Turns until no actor is ready or it is time to look at the outside. True: the run is over. */
static bool turns(weir__loop *l, int64_t until, bool (*over)(weir__loop *l, bool (*done)(void *data), void *data), bool (*done)(void *data),
                  void *data) {
    while (l->ready_count) {
        weir_actor *a = weir__ready_pop(l);
        if (a->dead) {
            weir__actor_release(a);
            continue;
        }
        turn(a, until);
        if (!l->index)
            l->system->ios.dirty = true;
        if (over(l, done, data))
            return true;
        weir__inbox_take(l);
        weir__asked_take(l);
        if (l->now >= until)
            break;
    }
    return false;
}

/* Pending work and workers post before they stop counting, so the count is read first. */
static bool nothing_left(weir__loop *l) {
    return atomic_load(&l->system->pending) == 0 && !atomic_load(&l->inbox) && !atomic_load(&l->asked) && l->ready_count == 0 &&
           l->heap.count == 0;
}

/* What came from outside and what is due. */
static void look(weir__loop *l) {
    weir__inbox_take(l);
    weir__asked_take(l);
    l->now = weir_now(l->system);
    if (!weir__forked(l->system))
        weir__due_fire(l, l->now);
}

static void iterate(weir__loop *l, bool (*done)(void *data), void *data) {
    for (;;) {
        look(l);
        if (finished(l, done, data) || turns(l, weir__later(l->now, WEIR_TURN_NS), finished, done, data))
            return;
        weir__verify_small(l->system);
        if (l->ready_count)
            l->driver->poll(l);
        else if (!done && nothing_left(l))
            return;
        else if (l->index || !weir__ios_settle(l)) {
            weir__watch_awake(l, false);
            l->driver->wait(l);
            weir__watch_awake(l, true);
        }
    }
}

void weir__loop_enter(weir__loop *l) {
    l->running = true;
    weir__sleep_end(l);
    weir__watch_awake(l, true);
}

void weir__loop_leave(weir__loop *l) {
    weir__watch_awake(l, false);
    weir__pool_flush(l);
    l->running = false;
    if (l->driver->leave && !weir__forked(l->system))
        l->driver->leave(l);
}

void weir__loop_step(weir__loop *l, int64_t ns) {
    int64_t until = weir__later(weir_now(l->system), ns);
    do {
        look(l);
        if (turns(l, until, forked, NULL, NULL))
            return;
        weir__verify_small(l->system);
    } while ((l->ready_count || atomic_load(&l->inbox) || weir__ios_settle(l)) && l->now < until);
}

/* ---- all loops on one thread, by the test driver's choice ---- */

static bool has_something(weir__loop *l, int64_t now) {
    int64_t at = weir__due_next(l);
    return l->ready_count || atomic_load(&l->inbox) || atomic_load(&l->asked) || (at && at <= now);
}

/* One message of one loop. False: no loop has anything to do. */
static bool step_seeded(weir_system *s) {
    weir__loop *able[WEIR_MAX_WORKERS + 1];
    unsigned n = 0;
    for (unsigned i = 0; i < s->n_loops; i++)
        if (has_something(s->loops[i], weir_now(s)))
            able[n++] = s->loops[i];
    if (!n)
        return false;
    weir__loop *l = s->here = able[n == 1 ? 0 : weir__seeded(s) % n];
    look(l);
    if (l->ready_count) {
        weir_actor *a = weir__ready_pop(l);
        if (a->dead)
            weir__actor_release(a);
        else
            turn(a, INT64_MAX);
    }
    s->here = &s->main_loop;
    return true;
}

static bool nothing_seeded(weir_system *s) {
    for (unsigned i = 0; i < s->n_loops; i++)
        if (s->loops[i]->heap.count)
            return false;
    return atomic_load(&s->pending) == 0 && !atomic_load(&s->main_loop.inbox);
}

static void iterate_seeded(weir__loop *l, bool (*done)(void *data), void *data) {
    weir_system *s = l->system;
    while (!finished(l, done, data)) {
        weir__verify_small(s);
        if (step_seeded(s) || l->driver->advance(l))
            continue;
        if (!done && nothing_seeded(s))
            return;
        l->driver->wait(l);
    }
}

int weir__loop_run(weir__loop *l, bool (*done)(void *data), void *data) {
    weir__loop_enter(l);
    if (l->driver->advance)
        iterate_seeded(l, done, data);
    else
        iterate(l, done, data);
    weir__loop_leave(l);
    if (!l->index)
        l->was_quit = atomic_exchange(&l->system->quit, false);
    return WEIR_OK;
}

void weir_system_quit(weir_system *s) {
    atomic_store(&s->quit, true);
    weir__wake(&s->main_loop);
}
