/* call.c: calls: a record from the moment a call is made until its end is reported, with all that the end needs reserved in it, so that it
 * cannot fail. Finds cycles of actors that wait for each other. */
#include <stdio.h>

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
}

static const char *callee_name(const weir_system *s, const weir__call *c) {
    weir__slot *slot = weir__ids_find(&s->actors, c->callee);
    return slot ? slot->actor->name : NULL;
}

static void time_out(weir__loop *l, weir__due *d) {
    weir_system *s = l->system;
    weir__call *c = weir__container(d, weir__call, due);
    const char *name = callee_name(s, c);
    weir__call_end(l, c, NULL,
                   weir_error_new(WEIR_ETIMEOUT, name, NULL, "the call of \"%s\" to %s was not answered in time",
                                  weir_verb_name(s, c->reply.verb), name ? name : "?"));
}

/* ---- cycles: an actor waits for another if it is held and has an open call to it ---- */

static weir_actor *callee_of(weir_system *s, weir__link *l) {
    weir__call *c = weir__container(l, weir__call, by_caller);
    weir__slot *slot = c->open ? weir__ids_find(&s->actors, c->callee) : NULL;
    return slot ? slot->actor : NULL;
}

/* The next actor that `a` waits for and that was not looked at yet; the actors carry the state of the search, so it needs no memory. */
static weir_actor *visit_next(weir__loop *l, weir_actor *a) {
    while (a->held && a->visit_call != &a->calls) {
        weir_actor *to = callee_of(l->system, a->visit_call);
        a->visit_call = a->visit_call->next;
        if (to && to->visit != l->visit)
            return to;
    }
    return NULL;
}

/* Whether `from` waits for `target`, directly or through others. Then visit_from leads back from target to `from`. */
static bool waits_for(weir__loop *l, weir_actor *from, weir_actor *target) {
    l->visit++;
    weir_actor *at = from, *before = NULL;
    while (at) {
        if (at->visit != l->visit) {
            at->visit = l->visit;
            at->visit_from = before;
            at->visit_call = at->calls.next;
        }
        if (at == target)
            return true;
        weir_actor *next = visit_next(l, at);
        before = at;
        at = next ? next : at->visit_from;
    }
    return false;
}

enum { CYCLE_TEXT = 512 };

/* "a -> b -> a", from its end on, as visit_from leads there; a cycle that is too long for the text keeps its end. */
static weir_error *cycle_error(weir_actor *self) {
    char text[CYCLE_TEXT];
    size_t start = sizeof text - 1;
    text[start] = 0;
    const char *arrow = "";
    for (weir_actor *a = self; a; a = a->visit_from) {
        size_t n = strlen(a->name), m = strlen(arrow);
        if (n + m > start)
            break;
        start -= m;
        memcpy(text + start, arrow, m);
        start -= n;
        memcpy(text + start, a->name, n);
        arrow = " -> ";
    }
    return weir_error_new(WEIR_ECYCLE, self->name, NULL, "cycle of calls: %s -> %s", self->name, text + start);
}

void weir__cycle_check(weir_actor *self) {
    weir__loop *loop = self->loop;
    for (weir__link *l = self->calls.next, *next; l != &self->calls; l = next) {
        next = l->next;
        weir_actor *callee = callee_of(loop->system, l);
        if (callee && waits_for(loop, callee, self))
            weir__call_end(loop, weir__container(l, weir__call, by_caller), NULL, cycle_error(self));
    }
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
    c->reply = (weir_message){{NULL, 0, WEIR__REPLY}, s, to, self->address, verb, WEIR__RESERVED, 0, 0, NULL};
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
    weir__slot *slot = weir__ids_find(&s->actors, c->callee);
    if (slot && self->held && waits_for(self->loop, slot->actor, self)) {
        weir_body_free(body);
        weir__call_end(self->loop, c, NULL, cycle_error(self));
        return;
    }
    int code = weir__message_accept(self, c->callee, c->reply.verb, body, weir__ids_of(&c->id), c->due.at);
    if (code == WEIR_OK) {
        weir__link_add(&slot->actor->incoming, &c->by_callee);
        return;
    }
    weir__call_end(self->loop, c, NULL,
                   weir_error_new(code, slot ? slot->actor->name : NULL, NULL, "the call of \"%s\" was not accepted: %s",
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
