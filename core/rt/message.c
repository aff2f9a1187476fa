/* message.c: sending, posting, answering; what becomes of a message when it is handled or cannot be. Knows calls as sessions only. */
#include "internal.h"

void weir__trace(weir_system *s, enum weir_trace kind, weir_address from, weir_address to, weir_verb verb, size_t bytes, int why) {
    weir_trace_fn *fn = atomic_load_explicit(&s->trace, memory_order_acquire);
    if (__builtin_expect(fn != NULL, 0))
        fn(atomic_load_explicit(&s->trace_data, memory_order_relaxed), kind, from, to, weir_verb_name(s, verb), bytes, why);
}

weir_message *weir__message_new(weir_system *s, weir_address from, weir_address to, weir_verb verb, weir_body *body) {
    weir_message *m = weir__pool_take(s, sizeof *m, NULL);
    if (m)
        *m = (weir_message){{NULL, 0, WEIR__MAIL}, s, from, to, verb, 0, 0, 0, body, {NULL}};
    return m;
}

void weir__message_free(weir_system *s, weir_message *m) {
    weir_body_free(m->body);
    weir__pool_give(s, m, sizeof *m);
}

/* Mail leaves its queue: its place in the mailbox is free again. */
static void leave(weir__loop *l, const weir_message *m) {
    weir__add(&l->queued, (uint64_t)-1);
    if (!(m->flags & WEIR__RESERVED))
        weir__slot_release(weir__ids_at(&l->system->actors, (uint32_t)(m->to >> WEIR__GENERATION_BITS)), weir__body_size(m->body));
}

/* A message that was under way when its receiver ended counted in the place's next actor too, where somebody may wait for room. */
static void tell_heir(weir__loop *l, const weir_message *m) {
    uint32_t index = (uint32_t)(m->to >> WEIR__GENERATION_BITS);
    weir_address heir = weir__ids_living(&l->system->actors, index);
    if (heir && heir != m->to)
        weir__ask(weir__ids_at(&l->system->actors, index), heir, WEIR__ASK_ROOM);
}

void weir__message_dead(weir__loop *l, weir_message *m, int why) {
    leave(l, m);
    tell_heir(l, m);
    weir__dead_letter(l, m, why);
    weir__message_free(l->system, m);
}

static weir_error *full_error(const weir_actor *a, weir_verb verb) {
    return weir_error_new(WEIR_EFULL, a->name, NULL, "\"%s\" was dropped: the mailbox of %s is full", weir_verb_name(a->system, verb),
                          a->name);
}

void weir__message_drop(weir_actor *a, weir_message *m) {
    if (m->session)
        weir__answer(a, weir__reply_to(m), NULL, full_error(a, m->verb));
    weir__add(&a->loop->dropped, 1);
    weir__add(&a->slot->lost, 1);
    weir__message_dead(a->loop, m, WEIR_EFULL);
}

/* ---- sending ---- */

typedef struct envelope {
    weir_address from, to;
    weir_verb verb;
    uint64_t session; /* 0: no call */
    int64_t deadline;
    weir_body *body;
    weir__carrier *carrier;
    bool held; /* the caller waits for the answer */
} envelope;

/* A place in the receiver's mailbox and a message for it. Any thread. */
static int reserve(weir_system *s, const envelope *e, weir__slot **slot, weir_message **out) {
    if (atomic_load_explicit(&s->stopped, memory_order_relaxed))
        return WEIR_ESTOPPING;
    *slot = weir__ids_find(&s->actors, e->to);
    if (!*slot)
        return WEIR_ENOACTOR;
    size_t bytes = weir__body_size(e->body);
    bool drops = atomic_load_explicit(&(*slot)->full, memory_order_relaxed) == WEIR_FULL_DROP_OLDEST;
    int code = weir__slot_reserve(*slot, bytes);
    if (code == WEIR_EFULL && drops)
        code = weir__slot_reserve_more(*slot, bytes);
    if (code != WEIR_OK)
        return code;
    *out = weir__inject(s, WEIR__INJECT_SEND) ? NULL : weir__message_new(s, e->from, e->to, e->verb, e->body);
    if (*out)
        return WEIR_OK;
    weir__slot_release(*slot, bytes);
    return WEIR_ENOMEM;
}

static int refuse(weir_system *s, weir__slot *slot, const envelope *e, int why) {
    atomic_fetch_add_explicit(&s->refused, 1, memory_order_relaxed);
    if (slot)
        atomic_fetch_add_explicit(&slot->refused, 1, memory_order_relaxed);
    weir_body_free(e->body);
    return why;
}

/* The newest of a full mailbox that drops it: as if accepted and lost at once. */
static int spill(weir_system *s, weir__slot *slot, const envelope *e) {
    weir_message m = {{NULL, 0, WEIR__MAIL}, s, e->from, e->to, e->verb, 0, 0, 0, e->body, {NULL}};
    atomic_fetch_add_explicit(&s->spilled, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&slot->refused, 1, memory_order_relaxed);
    weir__bury(s, &m, WEIR_EFULL);
    weir_body_free(e->body);
    return WEIR_OK;
}

/* Into the mailbox of an actor on this loop. */
static void push(weir__loop *l, weir_actor *a, weir_message *m) {
    weir__trace(l->system, m->session ? WEIR_TRACE_CALL : WEIR_TRACE_SEND, m->from, m->to, m->verb, weir__body_size(m->body), WEIR_OK);
    weir__mail_push(a, &m->entry);
    if (atomic_load_explicit(&a->slot->full, memory_order_relaxed) == WEIR_FULL_DROP_OLDEST)
        weir__mailbox_trim(a);
}

/* To the receiver's loop: its own mail straight into the mailbox, behind what this thread may have posted before. here: NULL: a thread that drives none. */
static void hand_over(weir_system *s, weir__loop *here, weir__slot *slot, weir_message *m) {
    weir__loop *there = weir__loop_of(slot);
    if (!here) {
        atomic_fetch_add_explicit(&s->posted, 1, memory_order_relaxed);
        weir__inbox_push(there, &m->entry);
        return;
    }
    weir__add(&here->sent, 1);
    if (here != there || !weir__slot_still(slot, m->to)) {
        weir__add(&here->away_sent, 1);
        weir__inbox_push(there, &m->entry);
        return;
    }
    weir__inbox_take(here);
    weir__add(&here->queued, 1);
    push(here, slot->actor, m);
}

void weir__message_arrive(weir__loop *l, weir_message *m) {
    weir_system *s = l->system;
    weir__slot *slot = weir__ids_find(&s->actors, m->to);
    bool pending = m->flags & WEIR__PENDING;
    int code = slot ? WEIR_OK : WEIR_ENOACTOR;
    atomic_store_explicit(&l->arrived, weir__get(&l->arrived) + 1,
                          memory_order_release); /* pairs with the acquire in weir_system_get_stats */
    weir__add(&l->queued, 1);
    if (m->flags & WEIR__AWAY)
        code = weir__debt_arrive(l, m, slot ? slot->actor : NULL);
    if (code == WEIR_OK)
        push(l, slot->actor, m);
    else
        weir__message_dead(l, m, code);
    if (pending)
        atomic_fetch_sub(&s->pending, 1);
}

/* Any thread; the body is taken. */
static int post(weir_system *s, const envelope *e) {
    weir__slot *slot = NULL;
    weir_message *m;
    int code = reserve(s, e, &slot, &m);
    if (code == WEIR_EFULL && !e->session && atomic_load_explicit(&slot->full, memory_order_relaxed) == WEIR_FULL_DROP_NEWEST)
        return spill(s, slot, e);
    if (code != WEIR_OK)
        return refuse(s, slot, e, code);
    m->session = e->session;
    m->deadline = e->deadline;
    if (e->carrier) {
        m->carrier = e->carrier;
        m->flags = WEIR__AWAY | (e->held ? WEIR__HELD : 0);
    }
    hand_over(s, weir__here(s), slot, m);
    return WEIR_OK;
}

int weir__message_accept(weir_actor *self, weir_address to, weir_verb verb, weir_body *body, uint64_t session, int64_t deadline,
                         weir__carrier *carrier) {
    envelope e = {self->address, to, verb, session, deadline, body, carrier, self->held != 0};
    int code = post(self->system, &e);
    if (code == WEIR_OK)
        weir__add(&self->slot->sent, 1);
    return code;
}

int weir_send(weir_actor *self, weir_address to, weir_verb verb, weir_body *body) {
    if (!weir__check(self, "no actor") || !weir__usable_by(self) || !verb) {
        weir_body_free(body);
        return WEIR_EINVAL;
    }
    return weir__message_accept(self, to, verb, body, 0, 0, NULL);
}

int weir_post(weir_system *s, weir_address from, weir_address to, weir_verb verb, weir_body *body) {
    if (!weir__check(s, "no system") || weir__forked(s) || !verb) {
        weir_body_free(body);
        return WEIR_EINVAL;
    }
    envelope e = {from, to, verb, 0, 0, body, NULL, false};
    return post(s, &e);
}

/* ---- notices ---- */

weir__notice *weir__notice_new(weir_system *s, weir_address from, weir_address to, weir_verb verb, weir_body *body) {
    weir_message *m = weir__message_new(s, from, to, verb, body);
    if (!m) {
        weir_body_free(body);
        return NULL;
    }
    m->flags = WEIR__RESERVED | WEIR__PENDING;
    weir__pending(s, 1);
    return weir__container(m, weir__notice, message);
}

void weir__notice_post(weir__notice *n) {
    weir_system *s = n->message.system;
    weir__slot *slot = weir__ids_find(&s->actors, n->message.to);
    atomic_fetch_add_explicit(&s->posted, 1, memory_order_relaxed);
    weir__inbox_push(slot ? weir__loop_of(slot) : &s->main_loop, &n->message.entry);
}

void weir__notice_free(weir__notice *n) {
    if (!n)
        return;
    weir_system *s = n->message.system;
    weir__message_free(s, &n->message);
    weir__pending(s, -1);
}

/* ---- handling ---- */

static void unanswered(weir_actor *self, const weir_message *m, bool handled);

void weir__message_handle(weir_actor *self, weir_message *m) {
    weir_system *s = self->system;
    weir_receive_fn *handle = weir__behaviour_find(self->compiled, m->verb);
    leave(self->loop, m);
    if (!weir__link_alone(&self->wants) && weir__slot_roomy(self->slot))
        weir__wants_serve(self);
    int dead = weir__debt_revoked(self, m) ? WEIR_ECYCLE : !handle && !m->session ? WEIR_EVERB : WEIR_OK;
    if (dead) {
        if (m->session)
            weir__answer(self, weir__reply_to(m), NULL, weir_error_new(dead, self->name, NULL, "a cycle of calls"));
        weir__add(&self->slot->lost, 1);
        weir__dead_letter(self->loop, m, dead);
        weir__message_free(s, m);
        return;
    }
    weir__add(&self->loop->handled, 1);
    weir__add(&self->slot->handled, 1);
    self->current = m;
    self->answered = !m->session;
    if (handle)
        handle(self, m);
    if (!self->answered && !self->ending)
        unanswered(self, m, handle != NULL);
    self->current = NULL;
    weir__message_free(s, m);
}

weir_address weir_message_from(const weir_message *m) {
    return m->from;
}

weir_verb weir_message_verb(const weir_message *m) {
    return m->verb;
}

bool weir_message_is_call(const weir_message *m) {
    return m->session != 0;
}

int64_t weir_message_deadline(const weir_message *m) {
    return m->deadline;
}

weir_body *weir_message_body(const weir_message *m) {
    return m->body;
}

/* ---- answering ---- */

/* Ends the open call that self is to answer. A call that is not open any more: late, nothing happens. */
int weir__answer(weir_actor *self, weir_reply_to to, weir_body *body, weir_error *error) {
    if (to.ticket)
        return weir__debt_pay(self, to, body, error);
    weir__loop *l = self->loop;
    weir__call *c = weir__ids_find(&l->calls, to.session);
    if (c && c->open && c->callee == self->address) {
        weir__trace(l->system, error ? WEIR_TRACE_ERROR_REPLY : WEIR_TRACE_REPLY, self->address, c->caller->address, c->reply.verb,
                    weir__body_size(body), weir_error_code(error));
        weir__call_end(l, c, body, error);
        return WEIR_OK;
    }
    int code = c && c->open ? WEIR_EINVAL : WEIR_OK;
    weir__add(&l->late, code == WEIR_OK);
    weir_body_free(body);
    weir_error_free(error);
    return code;
}

/* An error that names no actor gets self's name: it is where the caller's chain of causes begins. */
static weir_error *name_actor(weir_actor *self, weir_error *e) {
    if (weir_error_actor(e))
        return e;
    weir_error *named = weir_error_new(weir_error_code(e), self->name, weir_error_ref(weir_error_cause(e)), "%s", weir_error_text(e));
    weir_error_free(e);
    return named;
}

static void unanswered(weir_actor *self, const weir_message *m, bool handled) {
    const char *verb = weir_verb_name(self->system, m->verb);
    weir_error *e = handled ? weir_error_new(WEIR_ENOREPLY, self->name, NULL, "the handler of \"%s\" returned without a reply", verb)
                            : weir_error_new(WEIR_EVERB, self->name, NULL, "verb \"%s\" is not understood", verb);
    weir__answer(self, weir__reply_to(m), NULL, e);
}

/* Whether self may answer m now; if so m counts as answered. */
static int take_duty(weir_actor *self, const weir_message *m) {
    if (!weir__check(self && m, "no actor or no message"))
        return WEIR_EINVAL;
    if (!m->session)
        return WEIR_OK;
    if (!weir__check(self->current == m, "answers a message that it is not handling") || self->answered)
        return WEIR_EINVAL;
    self->answered = true;
    return WEIR_OK;
}

int weir_reply(weir_actor *self, const weir_message *m, weir_body *body) {
    int code = take_duty(self, m);
    if (code == WEIR_OK && m->session)
        return weir__answer(self, weir__reply_to(m), body, NULL);
    weir_body_free(body);
    return code;
}

int weir_reply_error(weir_actor *self, const weir_message *m, weir_error *error) {
    int code = weir__check(error, "no error") ? take_duty(self, m) : WEIR_EINVAL;
    if (code == WEIR_OK && m->session)
        return weir__answer(self, weir__reply_to(m), NULL, name_actor(self, error));
    weir_error_free(error);
    return code;
}

weir_reply_to weir_defer(weir_actor *self, const weir_message *m) {
    if (take_duty(self, m) != WEIR_OK || !m->session)
        return (weir_reply_to){0, 0, 0};
    return weir__reply_to(m);
}

/* A caller that has ended makes the token inert, with ENOACTOR; what stands for a call from another loop is given back all the same. */
static int use_token(weir_actor *self, weir_reply_to to, weir_body *body, weir_error *error) {
    int code = !weir__check(self, "no actor") || !weir__usable_by(self) ? WEIR_EINVAL : WEIR_OK;
    bool ended = !code && to.session && !weir__ids_find(&self->system->actors, to.caller);
    if (!code && to.session && (!ended || to.ticket))
        code = weir__answer(self, to, body, error);
    else
        weir_body_free(body), weir_error_free(error);
    return ended ? WEIR_ENOACTOR : code;
}

int weir_answer(weir_actor *self, weir_reply_to to, weir_body *body) {
    return use_token(self, to, body, NULL);
}

int weir_answer_error(weir_actor *self, weir_reply_to to, weir_error *error) {
    if (!weir__check(error && self, "no error or no actor"))
        return weir_error_free(error), WEIR_EINVAL;
    return use_token(self, to, NULL, name_actor(self, error));
}
