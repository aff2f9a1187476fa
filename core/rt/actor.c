/* actor.c: the life of an actor: its place in the table, its start, its end in all forms, holding. */
#include "internal.h"

enum { LIMIT_MESSAGES = (1 << 24) - 1 }; /* what the mailbox's counters hold (mailbox.c); larger wishes get this much */
#define LIMIT_BYTES ((UINT64_C(1) << 40) - 1)

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static void slot_fill(weir__slot *slot, weir_actor *a, const char *name, const weir_spawn_options *o) {
    uint64_t messages = o && o->mailbox_messages ? o->mailbox_messages : WEIR_MAILBOX_MESSAGES;
    uint64_t bytes = o && o->mailbox_bytes ? o->mailbox_bytes : WEIR_MAILBOX_BYTES;
    slot->actor = a;
    atomic_store_explicit(&slot->max_messages, least(messages, LIMIT_MESSAGES), memory_order_relaxed);
    atomic_store_explicit(&slot->max_bytes, least(bytes, LIMIT_BYTES), memory_order_relaxed);
    atomic_store_explicit(&slot->loop, a->loop, memory_order_release);
    weir__counter *counters[] = {&slot->refused, &slot->handled, &slot->sent, &slot->lost, &slot->peak, &slot->calls_open, &slot->busy};
    for (size_t i = 0; i < sizeof counters / sizeof *counters; i++)
        atomic_store_explicit(counters[i], 0, memory_order_relaxed);
    atomic_store_explicit(&slot->full, (uint8_t)(o ? o->full : WEIR_FULL_REFUSE), memory_order_relaxed);
    weir__slot_name(slot, name);
    weir__asked_reset(slot);
}

static void actor_fill(weir_actor *a, weir__loop *l, weir__compiled *c, void *state, const char *name) {
    memset(a, 0, sizeof *a);
    a->system = l->system;
    a->loop = l;
    a->compiled = c;
    a->state = state;
    a->stop.kind = WEIR__STOP;
    weir__link_init(&a->calls);
    weir__link_init(&a->incoming);
    weir__link_init(&a->debts);
    weir__link_init(&a->wants);
    weir__link_init(&a->timers);
    weir__link_init(&a->watching);
    weir__link_init(&a->watchers);
    strncpy(a->name, name ? name : "actor", sizeof a->name - 1);
}

static weir__slot *slot_take(weir_system *s) {
    pthread_mutex_lock(&s->lock);
    weir__slot *slot = weir__ids_take(s, &s->actors);
    pthread_mutex_unlock(&s->lock);
    return slot;
}

static void slot_give(weir_system *s, weir__slot *slot) {
    pthread_mutex_lock(&s->lock);
    weir__ids_give(&s->actors, &slot->id);
    pthread_mutex_unlock(&s->lock);
}

/* Where it is to live; NULL: no such loop. */
static weir__loop *choose_loop(weir_system *s, const weir_spawn_options *o) {
    int wish = o ? o->loop : WEIR_LOOP_HERE;
    if (wish == WEIR_LOOP_HERE)
        return weir__here(s);
    if (wish == WEIR_LOOP_ANY && s->n_loops == 1)
        return &s->main_loop;
    if (wish == WEIR_LOOP_ANY)
        return s->loops[1 + atomic_fetch_add_explicit(&s->next_worker, 1, memory_order_relaxed) % (s->n_loops - 1)];
    return wish >= WEIR_LOOP_MAIN && (unsigned)(wish - WEIR_LOOP_MAIN) < s->n_loops ? s->loops[wish - WEIR_LOOP_MAIN] : NULL;
}

/* Does not take `state`. Once its address lives, any thread may find it and its loop may end it. */
int weir__actor_new(weir_system *s, const weir_behaviour *b, void *state, const weir_spawn_options *options, weir_address *out,
                    weir_error **error) {
    const char *name = options && options->name ? options->name : b->name;
    weir_actor *a = NULL;
    weir__slot *slot = NULL;
    weir__compiled *c = NULL;
    weir__loop *l = choose_loop(s, options);
    if (!l)
        return weir_fail(error, WEIR_EINVAL, "no loop %d for the actor \"%s\": the system has a main loop and %u workers", options->loop,
                         name ? name : "actor", s->n_loops - 1);
    if (options && (unsigned)options->full > WEIR_FULL_DROP_NEWEST)
        return weir_fail(error, WEIR_EINVAL, "no mailbox policy %d for the actor \"%s\"", (int)options->full, name ? name : "actor");
    if (weir__inject(s, WEIR__INJECT_SPAWN))
        goto fail;
    c = weir__behaviour_take(s, b);
    a = weir__pool_take(s, sizeof *a, NULL);
    if (!c || !a || !(slot = slot_take(s)))
        goto fail;
    actor_fill(a, l, c, state, name);
    slot_fill(slot, a, name, options);
    a->slot = slot;
    *out = a->address = weir__ids_next(&slot->id);
    atomic_fetch_add_explicit(&s->living, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&s->unfinished, 1, memory_order_relaxed);
    weir__ids_live(&slot->id);
    atomic_fetch_add(&s->spawned, 1); /* pairs with the ones in weir_system_stop */
    return WEIR_OK;
fail:
    if (c)
        weir__behaviour_give(s, c);
    if (a)
        weir__pool_give(s, a, sizeof *a);
    return weir_fail(error, WEIR_ENOMEM, "no memory for the actor \"%s\"", name ? name : "actor");
}

static int may_spawn(weir_system *s, const weir_behaviour *b, weir_error **error) {
    if (!weir__check(s && b, "no system or no behaviour"))
        return weir_fail(error, WEIR_EINVAL, "weir_spawn: no system or no behaviour");
    if (!weir__usable(s))
        return weir_fail(error, WEIR_EINVAL, "weir_spawn: in a forked child, or on a thread that does not drive the system's loop");
    if (atomic_load(&s->stopping))
        return weir_fail(error, WEIR_ESTOPPING, "the system is stopping: no new actor \"%s\"", b->name ? b->name : "actor");
    return WEIR_OK;
}

/* The system began to stop meanwhile. Who asks all to stop says so first and looks at the table then; here it is the other way round. Both add to `spawned`
 * in between, so one of the two sees the other. */
static void stop_too(weir_system *s, weir_address a) {
    if (atomic_load(&s->stopped))
        weir_kill(s, a);
    else if (atomic_load(&s->stopping))
        weir_stop(s, a);
}

int weir_spawn(weir_system *s, const weir_behaviour *b, void *state, const weir_spawn_options *options, weir_address *out,
               weir_error **error) {
    weir_address a;
    int code = may_spawn(s, b, error);
    if (code == WEIR_OK)
        code = weir__actor_new(s, b, state, options, &a, error);
    if (code != WEIR_OK) {
        if (b && b->fini)
            b->fini(s, state);
        return code;
    }
    if (out)
        *out = a;
    stop_too(s, a);
    return WEIR_OK;
}

/* ---- the end ---- */

static void drop_entry(weir_actor *a, weir__entry *e) {
    weir__loop *l = a->loop;
    switch (e->kind) {
    case WEIR__MAIL:
        weir__message_dead(l, weir__container(e, weir_message, entry), a->ending);
        return;
    case WEIR__DOWN:
        weir__bond_drop(weir__container(e, weir__bond, entry));
        return;
    case WEIR__REPLY:
        weir__call_report(a, weir__container(e, weir__call, reply.entry));
        return;
    case WEIR__TIMER: {
        weir__timer *t = weir__container(e, weir__timer, entry);
        t->queued = false;
        weir__timer_free(l, t);
        return;
    }
    default:
        return;
    }
}

/* Timers and calls first: from then on nothing can reach the actor but what is queued. */
static void drop_own(weir_actor *a) {
    weir__loop *l = a->loop;
    while (!weir__link_alone(&a->timers))
        weir__timer_free(l, weir__container(a->timers.next, weir__timer, link));
    while (!weir__link_alone(&a->calls))
        weir__call_forget(l, weir__container(a->calls.next, weir__call, by_caller));
}

static weir_error *end_error(const weir_actor *a) {
    if (a->ending == WEIR_EKILLED)
        return weir_error_new(WEIR_EKILLED, a->name, NULL, "%s was killed", a->name);
    return weir_error_new(WEIR_EEXITED, a->name, weir_error_ref(a->why), "%s has exited", a->name);
}

void weir__actor_end(weir_actor *a) {
    weir_system *s = a->system;
    weir__inbox_take(a->loop);
    weir__ids_end(&a->slot->id);
    a->dead = true;
    atomic_fetch_sub_explicit(&s->living, 1, memory_order_relaxed);
    drop_own(a);
    weir__compiled *c = a->compiled;
    if (c->behaviour->fini)
        c->behaviour->fini(s, a->state); /* who hears of the end, on whatever loop, finds nothing left of it */
    drop_own(a);                         /* what fini began */
    weir_error *error = end_error(a);
    weir__calls_fail(a, error);
    for (weir__entry *e; (e = weir__queue_pop(&a->mail));)
        drop_entry(a, e);
    for (weir__entry *e; (e = weir__queue_pop(&a->own));)
        drop_entry(a, e);
    weir__wants_serve(a);
    weir__bonds_end(a, a->ending == WEIR_EKILLED ? error : a->why);
    weir_error_free(error);
    weir_error_free(a->why);
    a->why = NULL;
    slot_give(s, a->slot);
    if (atomic_fetch_sub(&s->unfinished, 1) == 2)
        weir__settled(s); /* weir_system_stop waits for it */
    weir__behaviour_give(s, c);
    if (!a->ready)
        weir__actor_release(a);
}

void weir__actor_release(weir_actor *a) {
    weir__pool_give(a->system, a, sizeof *a);
}

void weir__actor_end_with(weir_actor *a, int how, weir_error *why) {
    if (a->ending) {
        weir_error_free(why);
        return;
    }
    a->ending = how;
    a->why = why;
    if (!a->ready)
        weir__ready_push(a);
}

void weir_exit(weir_actor *self, weir_error *why) {
    if (!weir__check(self, "no actor") || !weir__usable_by(self) ||
        !weir__check(self != self->system->main, "the main actor lives as long as its system"))
        weir_error_free(why);
    else
        weir__actor_end_with(self, WEIR_EEXITED, why);
}

/* The actor that may be stopped or killed. *slot: its place; *near: the actor, if it lives on the calling thread's loop, else NULL. */
static int find_mortal(weir_system *s, weir_address a, weir__slot **slot, weir_actor **near) {
    if (!weir__check(s, "no system") || weir__forked(s))
        return WEIR_EINVAL;
    *slot = weir__ids_find(&s->actors, a);
    if (!*slot)
        return WEIR_ENOACTOR;
    *near = weir__actor(s, a);
    return a == s->main_address ? WEIR_EINVAL : WEIR_OK;
}

int weir_kill(weir_system *s, weir_address address) {
    weir__slot *slot;
    weir_actor *a;
    int code = find_mortal(s, address, &slot, &a);
    if (code != WEIR_OK)
        return code;
    if (!a)
        return weir__ask(slot, address, WEIR__ASK_KILL);
    weir_error_free(a->why);
    a->why = NULL;
    a->ending = WEIR_EKILLED;
    if (a != a->loop->current)
        weir__actor_end(a);
    weir__verify_small(s);
    return WEIR_OK;
}

void weir__actor_stop(weir_actor *a) {
    if (a->stopping)
        return;
    weir__inbox_take(a->loop);
    a->stopping = true;
    weir__mail_push(a, &a->stop);
}

int weir_stop(weir_system *s, weir_address address) {
    weir__slot *slot;
    weir_actor *a;
    int code = find_mortal(s, address, &slot, &a);
    if (code != WEIR_OK)
        return code;
    if (!a)
        return weir__ask(slot, address, WEIR__ASK_STOP);
    weir__actor_stop(a);
    return WEIR_OK;
}

/* ---- holding ---- */

void weir_hold(weir_actor *self) {
    if (!weir__check(self, "no actor") || !weir__usable_by(self))
        return;
    if (self->held++ == 0)
        weir__cycle_check(self);
}

void weir_unhold(weir_actor *self) {
    if (!weir__check(self, "no actor") || !weir__usable_by(self) || !weir__check(self->held, "weir_unhold without weir_hold"))
        return;
    if (--self->held == 0 && !self->ready && weir__mailbox_ready(self))
        weir__ready_push(self);
    weir__verify_small(self->system);
}

/* ---- looking at actors ---- */

weir_actor *weir__actor(weir_system *s, weir_address a) {
    weir__loop *here = weir__here(s);
    return here ? weir__local(here, a) : NULL;
}

const weir_behaviour *weir__behaviour(const weir_actor *self) {
    return self->compiled->behaviour;
}

enum weir_full weir__full_of(weir_system *s, weir_address a) {
    weir__slot *slot = weir__ids_find(&s->actors, a);
    return slot ? (enum weir_full)atomic_load_explicit(&slot->full, memory_order_relaxed) : WEIR_FULL_REFUSE;
}

void *weir_state(const weir_actor *self) {
    return self->state;
}

weir_system *weir_system_of(const weir_actor *self) {
    return self->system;
}

weir_address weir_self(const weir_actor *self) {
    return self->address;
}

const char *weir_actor_name(const weir_actor *self) {
    return self->name;
}

weir_actor *weir_main_actor(weir_system *s) {
    return s->main;
}
