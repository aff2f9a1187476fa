/* loop.c: the run queue and the turns. Which ready actor is next, what time it is and how to wait is the driver's. */
#include "internal.h"

/* ---- run queue: a ring, so that a driver may choose any place in it ---- */

bool weir__ready_reserve(weir_system *s, size_t actors) {
    if (actors <= s->ready_room)
        return true;
    size_t room = s->ready_room ? s->ready_room * 2 : 64;
    while (room < actors)
        room *= 2;
    weir_actor **ring = weir__alloc_raw(s, room * sizeof *ring);
    if (!ring)
        return false;
    for (size_t i = 0; i < s->ready_count; i++)
        ring[i] = s->ready[(s->ready_first + i) & (s->ready_room - 1)];
    weir__free(s, s->ready);
    s->ready = ring;
    s->ready_room = room;
    s->ready_first = 0;
    return true;
}

void weir__ready_push(weir_actor *a) {
    weir_system *s = a->system;
    a->ready = true;
    s->ready[(s->ready_first + s->ready_count++) & (s->ready_room - 1)] = a;
}

weir_actor *weir__ready_pop(weir_system *s) {
    size_t mask = s->ready_room - 1, at = s->driver->choose(s);
    weir_actor **first = &s->ready[s->ready_first], **chosen = &s->ready[(s->ready_first + at) & mask], *a = *chosen;
    *chosen = *first;
    s->ready_first = (s->ready_first + 1) & mask;
    s->ready_count--;
    return a;
}

/* ---- turns ---- */

static void stop_asked(weir_actor *a) {
    if (a->compiled->behaviour->stop)
        a->compiled->behaviour->stop(a);
    else
        weir_exit(a, NULL);
}

static void dispatch(weir_actor *a, weir__entry *e) {
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
        weir__monitor_report(a, weir__container(e, weir__monitor, entry));
        return;
    case WEIR__STOP:
        stop_asked(a);
        return;
    }
}

/* Handles what the actor may get, up to the driver's count. The clock is read after 1, 2, 4, ... messages: slow handlers end their turn soon,
 * and 64 fast ones cost seven readings. */
static void handle_some(weir_actor *a, int64_t until) {
    weir_system *s = a->system;
    for (unsigned n = 1; n <= s->driver->turn && !a->ending; n++) {
        weir__entry *e = weir__mailbox_next(a);
        if (!e)
            return;
        dispatch(a, e);
        if ((n & (n - 1)) == 0 && weir__mailbox_ready(a) && weir_now(s) >= until)
            return;
    }
}

static void turn(weir_actor *a, int64_t until) {
    weir_system *s = a->system;
    s->current = a;
    handle_some(a, until);
    s->current = NULL;
    int64_t now = weir_now(s);
    a->busy += now - s->now;
    s->now = now;
    a->ready = false;
    if (a->ending)
        weir__actor_end(a);
    else if (weir__mailbox_ready(a))
        weir__ready_push(a);
}

static bool finished(weir_system *s, bool (*done)(void *data), void *data) {
    return atomic_load_explicit(&s->quit, memory_order_relaxed) || weir__forked(s) || (done && done(data));
}

/* Turns until no actor is ready or it is time to look at the outside. True: the run is over. */
static bool turns(weir_system *s, bool (*done)(void *data), void *data) {
    int64_t until = weir__later(s->now, WEIR_TURN_NS);
    while (s->ready_count) {
        weir_actor *a = weir__ready_pop(s);
        if (a->dead) {
            weir__actor_release(a);
            continue;
        }
        turn(a, until);
        if (finished(s, done, data))
            return true;
        weir__inbox_take(s);
        if (s->now >= until)
            break;
    }
    return false;
}

/* Pending work posts before it stops counting, so the count is read first. */
static bool nothing_left(weir_system *s) {
    return atomic_load(&s->pending) == 0 && !atomic_load(&s->inbox) && s->ready_count == 0 && s->heap.count == 0;
}

static void iterate(weir_system *s, bool (*done)(void *data), void *data) {
    for (;;) {
        weir__inbox_take(s);
        s->now = weir_now(s);
        if (!weir__forked(s))
            weir__due_fire(s, s->now);
        if (finished(s, done, data) || turns(s, done, data))
            return;
        weir__verify_small(s);
        if (s->ready_count)
            s->driver->poll(s);
        else if (s->driver->advance(s))
            continue;
        else if (!done && nothing_left(s))
            return;
        else
            s->driver->wait(s);
    }
}

int weir__loop_run(weir_system *s, bool (*done)(void *data), void *data) {
    s->running = true;
    iterate(s, done, data);
    s->running = false;
    atomic_store(&s->quit, false);
    return WEIR_OK;
}

void weir_system_quit(weir_system *s) {
    atomic_store(&s->quit, true);
    weir__wake(s);
}
