/* message.c: sending, posting, answering; what becomes of a message when it is handled or cannot be. Knows calls as sessions only. */
#include "internal.h"

void weir__trace(weir_system *s, enum weir_trace kind, weir_address from, weir_address to, weir_verb verb, size_t bytes, int why) {
    if (__builtin_expect(s->trace != NULL, 0))
        s->trace(s->trace_data, kind, from, to, weir_verb_name(s, verb), bytes, why);
}

weir_message *weir__message_new(weir_system *s, weir_address from, weir_address to, weir_verb verb, weir_body *body) {
    weir_message *m = weir__pool_take(s, sizeof *m, NULL);
    if (m)
        *m = (weir_message){{NULL, 0, WEIR__MAIL}, s, from, to, verb, 0, 0, 0, body};
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

/* After it has left. */
static void dead_letter(weir__loop *l, weir_message *m, int why) {
    weir__add(&l->dead, 1);
    weir__trace(l->system, WEIR_TRACE_DEAD, m->from, m->to, m->verb, weir__body_size(m->body), why);
}

void weir__message_dead(weir__loop *l, weir_message *m, int why) {
    leave(l, m);
    dead_letter(l, m, why);
    weir__message_free(l->system, m);
}

/* ---- sending ---- */

static int refuse(weir_system *s, int why, weir_body *body) {
    atomic_fetch_add_explicit(&s->refused, 1, memory_order_relaxed);
    weir_body_free(body);
    return why;
}

/* A place in the receiver's mailbox and a message for it; body is taken. Any thread. */
static int reserve(weir_system *s, weir_address from, weir_address to, weir_verb verb, weir_body *body, weir_message **out) {
    if (atomic_load_explicit(&s->stopped, memory_order_relaxed))
        return refuse(s, WEIR_ESTOPPING, body);
    weir__slot *slot = weir__ids_find(&s->actors, to);
    if (!slot)
        return refuse(s, WEIR_ENOACTOR, body);
    if (weir__slot_reserve(slot, weir__body_size(body)) != WEIR_OK)
        return refuse(s, WEIR_EFULL, body);
    *out = weir__inject(s, WEIR__INJECT_SEND) ? NULL : weir__message_new(s, from, to, verb, body);
    if (*out)
        return WEIR_OK;
    weir__slot_release(slot, weir__body_size(body));
    return refuse(s, WEIR_ENOMEM, body);
}

/* On the loop's thread: straight into the mailbox, behind what this thread may have posted before. */
static void enqueue(weir__loop *l, weir_message *m) {
    weir_system *s = l->system;
    weir__inbox_take(l);
    weir__slot *slot = weir__ids_find(&s->actors, m->to);
    weir__add(&l->sent, 1);
    weir__add(&l->queued, 1);
    weir__trace(s, m->session ? WEIR_TRACE_CALL : WEIR_TRACE_SEND, m->from, m->to, m->verb, weir__body_size(m->body), WEIR_OK);
    weir__mail_push(slot->actor, &m->entry);
}

int weir__message_accept(weir_actor *self, weir_address to, weir_verb verb, weir_body *body, uint64_t session, int64_t deadline) {
    weir_message *m;
    int code = reserve(self->system, self->address, to, verb, body, &m);
    if (code != WEIR_OK)
        return code;
    m->session = session;
    m->deadline = deadline;
    weir__add(&self->slot->sent, 1);
    enqueue(self->loop, m);
    return WEIR_OK;
}

int weir_send(weir_actor *self, weir_address to, weir_verb verb, weir_body *body) {
    if (!weir__check(self, "no actor") || !weir__usable_by(self) || !verb) {
        weir_body_free(body);
        return WEIR_EINVAL;
    }
    return weir__message_accept(self, to, verb, body, 0, 0);
}

int weir_post(weir_system *s, weir_address from, weir_address to, weir_verb verb, weir_body *body) {
    if (!weir__check(s, "no system") || weir__forked(s) || !verb) {
        weir_body_free(body);
        return WEIR_EINVAL;
    }
    weir_message *m;
    int code = reserve(s, from, to, verb, body, &m);
    if (code != WEIR_OK)
        return code;
    weir__loop *here = weir__here(s);
    if (here) {
        enqueue(here, m);
        return WEIR_OK;
    }
    atomic_fetch_add_explicit(&s->posted, 1, memory_order_relaxed);
    weir__inbox_push(&s->main_loop, &m->entry);
    return WEIR_OK;
}

/* ---- notices ---- */

weir__notice *weir__notice_new(weir_system *s, weir_address from, weir_address to, weir_verb verb, weir_body *body) {
    weir_message *m = weir__message_new(s, from, to, verb, body);
    if (!m) {
        weir_body_free(body);
        return NULL;
    }
    m->flags = WEIR__RESERVED;
    weir__pending(s, 1);
    return weir__container(m, weir__notice, message);
}

void weir__notice_post(weir__notice *n) {
    weir_system *s = n->message.system;
    atomic_fetch_add_explicit(&s->posted, 1, memory_order_relaxed);
    weir__inbox_push(&s->main_loop, &n->message.entry);
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
    if (!handle && !m->session) {
        weir__add(&self->slot->lost, 1);
        dead_letter(self->loop, m, WEIR_EVERB);
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

/* Ends the open call `session` that self is to answer; both values are taken. A call that is not open any more: late, nothing happens. */
static int answer(weir_actor *self, uint64_t session, weir_body *body, weir_error *error) {
    weir__loop *l = self->loop;
    weir_system *s = l->system;
    weir__call *c = weir__ids_find(&l->calls, session);
    if (c && c->open && c->callee == self->address) {
        weir__trace(s, error ? WEIR_TRACE_ERROR_REPLY : WEIR_TRACE_REPLY, self->address, c->caller->address, c->reply.verb,
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
    answer(self, m->session, NULL, e);
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
        return answer(self, m->session, body, NULL);
    weir_body_free(body);
    return code;
}

int weir_reply_error(weir_actor *self, const weir_message *m, weir_error *error) {
    int code = weir__check(error, "no error") ? take_duty(self, m) : WEIR_EINVAL;
    if (code == WEIR_OK && m->session)
        return answer(self, m->session, NULL, name_actor(self, error));
    weir_error_free(error);
    return code;
}

weir_reply_to weir_defer(weir_actor *self, const weir_message *m) {
    if (take_duty(self, m) != WEIR_OK || !m->session)
        return (weir_reply_to){0, 0, 0};
    return (weir_reply_to){m->from, m->session, 0};
}

/* A caller that has ended makes the token inert, with ENOACTOR. */
static int token(weir_actor *self, weir_reply_to to) {
    if (!weir__check(self, "no actor") || !weir__usable_by(self))
        return WEIR_EINVAL;
    return !to.session || weir__ids_find(&self->system->actors, to.caller) ? WEIR_OK : WEIR_ENOACTOR;
}

int weir_answer(weir_actor *self, weir_reply_to to, weir_body *body) {
    int code = token(self, to);
    if (code == WEIR_OK && to.session)
        return answer(self, to.session, body, NULL);
    weir_body_free(body);
    return code;
}

int weir_answer_error(weir_actor *self, weir_reply_to to, weir_error *error) {
    int code = weir__check(error, "no error") ? token(self, to) : WEIR_EINVAL;
    if (code == WEIR_OK && to.session)
        return answer(self, to.session, NULL, name_actor(self, error));
    weir_error_free(error);
    return code;
}
