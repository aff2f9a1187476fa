/* space.c: wishes for room in a mailbox: one message "space" [address] when it is at most half full, or its actor has ended. The message is made with the
 * wish, so it cannot fail later. */
#include "internal.h"

static void fulfil(weir_system *s, weir__want *w) {
    weir__slot *slot = weir__ids_find(&s->actors, w->message->to);
    atomic_fetch_add_explicit(&s->posted, 1, memory_order_relaxed);
    weir__inbox_push(slot ? weir__loop_of(slot) : &s->main_loop, &w->message->entry);
    weir__pool_give(s, w, sizeof *w);
}

static void drop(weir_system *s, weir__want *w) {
    weir__message_free(s, w->message);
    weir__pool_give(s, w, sizeof *w);
}

void weir__wants_serve(weir_actor *a) {
    while (!weir__link_alone(&a->wants)) {
        weir__want *w = weir__container(a->wants.next, weir__want, link);
        weir__link_remove(&w->link);
        fulfil(a->system, w);
    }
}

static bool asked_before(const weir_actor *a, weir_address who) {
    for (weir__link *l = a->wants.next; l != &a->wants; l = l->next)
        if (weir__container(l, weir__want, link)->message->to == who)
            return true;
    return false;
}

/* On the target's loop. */
static void begin(weir_system *s, weir__want *w) {
    weir__slot *slot = weir__ids_find(&s->actors, w->target);
    if (!slot || weir__slot_roomy(slot))
        fulfil(s, w);
    else if (asked_before(slot->actor, w->message->to))
        drop(s, w);
    else
        weir__link_add(&slot->actor->wants, &w->link);
}

void weir__want_arrive(weir__loop *l, weir__entry *e) {
    begin(l->system, weir__container(e, weir__want, entry));
}

static weir__want *want_new(weir_actor *self, weir_address a) {
    weir_system *s = self->system;
    weir_body *body = weir_pack(s, "i", (int64_t)a);
    weir_verb verb = weir_intern(s, "space");
    weir_message *m = body && verb ? weir__message_new(s, a, self->address, verb, body) : NULL;
    weir__want *w = m && !weir__inject(s, WEIR__INJECT_WATCH) ? weir__pool_take(s, sizeof *w, NULL) : NULL;
    if (w) {
        m->flags = WEIR__RESERVED;
        *w = (weir__want){{NULL, 0, WEIR__WANT}, {NULL, NULL}, m, a};
        weir__link_init(&w->link);
    } else if (m) {
        weir__message_free(s, m);
    } else {
        weir_body_free(body);
    }
    return w;
}

int weir_want_space(weir_actor *self, weir_address a) {
    if (!weir__check(self, "no actor") || !weir__usable_by(self))
        return WEIR_EINVAL;
    weir__slot *slot = weir__ids_find(&self->system->actors, a);
    if (!slot)
        return WEIR_ENOACTOR;
    weir__want *w = want_new(self, a);
    if (!w)
        return WEIR_ENOMEM;
    if (weir__loop_of(slot) == self->loop)
        begin(self->system, w);
    else
        weir__inbox_push(weir__loop_of(slot), &w->entry);
    return WEIR_OK;
}
