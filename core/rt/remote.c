/* remote.c: calls between loops. The question brings a carrier along, which takes the answer home; on the callee's loop a debt with an id, the ticket, stands
 * for it until it is paid. Deadlines, cancels and the end of the caller are the caller's loop's alone: what comes too late is counted there. */
#include "internal.h"

/* ---- on the caller's loop ---- */

static weir__carrier *carrier_new(weir_actor *self, const weir__call *c) {
    weir_system *s = self->system;
    weir__carrier *carrier = weir__pool_take(s, sizeof *carrier, NULL);
    if (!carrier)
        return NULL;
    *carrier = (weir__carrier){.message = {{NULL, 0, WEIR__ANSWER}, s, c->callee, self->address, c->reply.verb, 0, 0, 0, NULL, {NULL}}};
    carrier->message.session = weir__ids_of(&c->id);
    carrier->home = self->loop;
    return carrier;
}

int weir__call_away(weir_actor *self, weir__call *c, weir_body *body) {
    weir__carrier *carrier = carrier_new(self, c);
    if (!carrier) {
        weir_body_free(body);
        return WEIR_ENOMEM;
    }
    int code = weir__message_accept(self, c->callee, c->reply.verb, body, weir__ids_of(&c->id), c->due.at, carrier);
    if (code != WEIR_OK)
        weir__pool_give(self->system, carrier, sizeof *carrier);
    return code;
}

void weir__answer_arrive(weir__loop *l, weir__entry *e) {
    weir_message *m = weir__container(e, weir_message, entry);
    weir__carrier *carrier = weir__container(m, weir__carrier, message);
    weir__call *c = weir__ids_find(&l->calls, m->session);
    if (c && c->open && c->callee == m->from) {
        weir__call_end(l, c, m->body, carrier->error);
    } else {
        weir__add(&l->late, 1);
        weir_body_free(m->body);
        weir_error_free(carrier->error);
    }
    weir__pool_give(l->system, carrier, sizeof *carrier);
}

/* ---- on the callee's loop ---- */

static void send_home(weir__carrier *carrier, weir_body *body, weir_error *error) {
    weir_message *m = &carrier->message;
    weir__trace(m->system, error ? WEIR_TRACE_ERROR_REPLY : WEIR_TRACE_REPLY, m->from, m->to, m->verb, weir__body_size(body),
                weir_error_code(error));
    m->body = body;
    carrier->error = error;
    weir__inbox_push(carrier->home, &m->entry);
}

int weir__debt_arrive(weir__loop *l, weir_message *m, weir_actor *callee) {
    weir__carrier *carrier = m->carrier;
    weir__debt *d = callee ? weir__ids_take(l->system, &l->debts) : NULL;
    m->flags &= ~(uint32_t)WEIR__AWAY;
    if (!d) {
        int code = callee ? WEIR_ENOMEM : WEIR_ENOACTOR;
        m->session = 0; /* it is answered */
        send_home(carrier, NULL,
                  weir_error_new(code, callee ? callee->name : NULL, NULL, "the call of \"%s\" was not accepted: %s",
                                 weir_verb_name(l->system, m->verb), weir_code_text(code)));
        return code;
    }
    d->callee = callee->address;
    d->carrier = carrier;
    d->revoked = false;
    weir__link_add(&callee->debts, &d->link);
    m->flags |= WEIR__DEBT;
    m->ticket = weir__ids_live(&d->id);
    if (m->flags & WEIR__HELD)
        weir__cycle_follow(carrier, callee);
    return WEIR_OK;
}

static void pay(weir__loop *l, weir__debt *d, weir_body *body, weir_error *error) {
    weir__carrier *carrier = d->carrier;
    weir__link_remove(&d->link);
    weir__ids_end(&d->id);
    weir__ids_give(&l->debts, &d->id);
    send_home(carrier, body, error);
}

int weir__debt_pay(weir_actor *self, weir_reply_to to, weir_body *body, weir_error *error) {
    weir__loop *l = self->loop;
    weir__debt *d = weir__ids_find(&l->debts, to.ticket);
    if (d && d->callee == self->address && d->carrier->message.session == to.session) {
        pay(l, d, body, error);
        return WEIR_OK;
    }
    weir__add(&l->late, !d);
    weir_body_free(body);
    weir_error_free(error);
    return d ? WEIR_EINVAL : WEIR_OK;
}

void weir__debts_fail(weir_actor *callee, const weir_error *error) {
    while (!weir__link_alone(&callee->debts))
        pay(callee->loop, weir__container(callee->debts.next, weir__debt, link), NULL, weir_error_ref(error));
}

void weir__debt_revoke(weir_actor *callee, weir_address caller, uint64_t session) {
    for (weir__link *l = callee->debts.next; l != &callee->debts; l = l->next) {
        weir__debt *d = weir__container(l, weir__debt, link);
        if (d->carrier->message.to == caller && d->carrier->message.session == session)
            d->revoked = true;
    }
}

bool weir__debt_revoked(weir_actor *callee, const weir_message *m) {
    weir__debt *d = m->flags & WEIR__DEBT ? weir__ids_find(&callee->loop->debts, m->ticket) : NULL;
    return d && d->revoked;
}
