/* call.c: calls: a record from the moment a call is made until its end is reported, with all that the end needs reserved in it, so that it
 * cannot fail. */
#include "internal.h"

static void close_call(weir__loop *l, weir__call *c) {
    c->open = false;
    weir__link_remove(&c->by_callee);
    weir__due_clear(l, &c->due);
    weir__add(&l->calls_ended, 1);
}

static void free_call(weir__loop *l, weir__call *c) {
    if (c->timed)
        weir__due_unreserve(l);
    weir_body_free(c->reply.body);
    weir_error_free(c->error);
    weir__ids_give(&l->calls, &c->id);
}

/* Its id is void from now on: nobody finds it again. */
static void detach(weir__call *c) {
    weir__link_remove(&c->by_caller);
    weir__add(&c->caller->slot->calls_open, (uint64_t)-1);
    weir__ids_end(&c->id);
}

void weir__call_end(weir__loop *l, weir__call *c, weir_body *reply, weir_error *error) {
    close_call(l, c);
    c->reply.body = reply;
    c->error = error;
    weir__own_push(c->caller, &c->reply.entry);
}

void weir__call_report(weir_actor *self, weir__call *c) {
    if (!c->forgotten) {
        detach(c);
        c->done(self, c->data, c->error ? NULL : &c->reply, c->error);
    }
    free_call(self->loop, c);
}

void weir__call_forget(weir__loop *l, weir__call *c) {
    bool queued = !c->open;
    if (c->open)
        close_call(l, c);
    detach(c);
    c->forgotten = true;
    if (!queued)
        free_call(l, c);
}

void weir_call_cancel(weir_actor *self, uint64_t session) {
    if (!weir__check(self, "no actor") || !weir__usable_by(self))
        return;
    weir__loop *l = self->loop;
    weir__call *c = weir__ids_find(&l->calls, session);
    if (!c || c->caller != self)
        return;
    weir__add(&l->late, !c->open && !c->error);
    weir__call_forget(l, c);
    weir__verify_small(l->system);
}

void weir__calls_fail(weir_actor *callee, const weir_error *error) {
    while (!weir__link_alone(&callee->incoming)) {
        weir__call *c = weir__container(callee->incoming.next, weir__call, by_callee);
        weir__trace(callee->system, WEIR_TRACE_ERROR_REPLY, callee->address, c->caller->address, c->reply.verb, 0, weir_error_code(error));
        weir__call_end(callee->loop, c, NULL, weir_error_ref(error));
    }
    weir__debts_fail(callee, error);
}

static void time_out(weir__loop *l, weir__due *d) {
    weir_system *s = l->system;
    weir__call *c = weir__container(d, weir__call, due);
    char text[WEIR_MAX_NAME];
    const char *name = weir__slot_text(s, c->callee, text) ? text : NULL;
    weir__call_end(l, c, NULL,
                   weir_error_new(WEIR_ETIMEOUT, name, NULL, "the call of \"%s\" to %s was not answered in time",
                                  weir_verb_name(s, c->reply.verb), name ? name : "?"));
}

/* ---- making a call ---- */

static weir__call *call_new(weir_actor *self, weir_address to, weir_verb verb, bool timed) {
    weir__loop *l = self->loop;
    weir_system *s = l->system;
    weir__call *c = weir__ids_take(s, &l->calls);
    if (!c)
        return NULL;
    if (timed && weir__due_reserve(l) != WEIR_OK) {
        weir__ids_give(&l->calls, &c->id);
        return NULL;
    }
    c->reply = (weir_message){{NULL, 0, WEIR__REPLY}, s, to, self->address, verb, WEIR__RESERVED, 0, 0, NULL, {NULL}};
    c->due = (weir__due){0, 0, 0, time_out};
    c->caller = self;
    c->callee = to;
    c->open = true;
    c->forgotten = false;
    c->timed = timed;
    c->error = NULL;
    weir__link_init(&c->by_callee);
    weir__link_add(&self->calls, &c->by_caller);
    weir__add(&self->slot->calls_open, 1);
    weir__add(&l->calls_made, 1);
    weir__ids_live(&c->id);
    return c;
}

/* Hands the question over; body is taken. A refusal is the end of the call. */
static void ask(weir_actor *self, weir__call *c, weir_body *body) {
    weir_system *s = self->system;
    weir_actor *near = weir__local(self->loop, c->callee);
    bool far = !near && weir__ids_find(&s->actors, c->callee);
    if (near && self->held && weir__cycle_closed(c, near)) {
        weir_body_free(body);
        return;
    }
    char name[WEIR_MAX_NAME];
    int code = far ? weir__call_away(self, c, body)
                   : weir__message_accept(self, c->callee, c->reply.verb, body, weir__ids_of(&c->id), c->due.at, NULL);
    if (code == WEIR_OK && far)
        return;
    if (code == WEIR_OK) {
        if (c->open) /* a full mailbox may have dropped the question again */
            weir__link_add(&near->incoming, &c->by_callee);
        return;
    }
    weir__call_end(self->loop, c, NULL,
                   weir_error_new(code, weir__slot_text(s, c->callee, name) ? name : NULL, NULL, "the call of \"%s\" was not accepted: %s",
                                  weir_verb_name(s, c->reply.verb), weir_code_text(code)));
}

int weir_call(weir_actor *self, weir_address to, weir_verb verb, weir_body *body, int64_t timeout, weir_reply_fn *done, void *data,
              uint64_t *session) {
    int code = WEIR_EINVAL;
    if (!weir__check(self, "no actor") || !weir__usable_by(self) || !verb || !weir__check(done, "no callback"))
        goto refused;
    code = WEIR_ENOMEM;
    weir__call *c = call_new(self, to, verb, timeout >= 0);
    if (!c)
        goto refused;
    c->done = done;
    c->data = data;
    if (timeout >= 0)
        weir__due_set(self->loop, &c->due, weir__after(self->system, timeout ? timeout : WEIR_CALL_TIMEOUT));
    if (session)
        *session = weir__ids_of(&c->id);
    ask(self, c, body);
    weir__verify_small(self->system);
    return WEIR_OK;
refused:
    weir_body_free(body);
    return code;
}
