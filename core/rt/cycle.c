/* cycle.c: cycles of actors that wait for each other: an actor waits for another if it is held and has an open call to it. Only a held actor's call, or its
 * becoming held, can close a cycle; the search starts there and goes along open calls, with its marks in the actors. Where a call leads to another loop a
 * probe goes on there (edge chasing after Chandy, Misra and Haas, 1983); without memory for one the deadlines end the calls. */
#include "internal.h"

enum { CYCLE_TEXT = 512, CYCLE_HOPS = 32 }; /* of names; of loops that one search passes */

/* Who asks: whether its call `session` leads back to it. */
typedef struct quest {
    weir__loop *home;
    weir_address initiator;
    uint64_t session;
    uint64_t search; /* tells it from what the initiator asked before; 0: it travels with the call */
    unsigned hops;
    char path[CYCLE_TEXT]; /* names up to here: "a -> b" */
} quest;

typedef struct weir__probe {
    weir__entry entry;
    weir_address at; /* where to go on; whose question is void */
    bool found;      /* the cycle is told: the question that closed it, which waits at the callee, is not to be handled */
    quest quest;
} weir__probe;

static void append(char *path, const char *name) {
    size_t used = strlen(path), n = strlen(name), m = used ? strlen(" -> ") : 0;
    if (used + m + n >= CYCLE_TEXT)
        return; /* a cycle that is too long for the text keeps its beginning */
    memcpy(path + used, " -> ", m);
    memcpy(path + used + m, name, n + 1);
}

/* The names from the start of the search on this loop to `a`, as visit_from leads there backwards; turns those links round and back. */
static void append_chain(char *path, weir_actor *a) {
    weir_actor *before = NULL, *next;
    for (; a; before = a, a = next) {
        next = a->visit_from;
        a->visit_from = before;
    }
    weir_actor *from = before;
    for (a = NULL; from; a = from, from = next) {
        append(path, from->name);
        next = from->visit_from;
        from->visit_from = a;
    }
}

/* The search goes on at a call's callee on another loop. */
static void send_probe(weir_system *s, const quest *q, weir_actor *last, weir__call *c, weir__slot *callee) {
    weir__probe *p = q->hops < CYCLE_HOPS ? weir__pool_take(s, sizeof *p, NULL) : NULL;
    if (!p)
        return;
    p->entry = (weir__entry){NULL, 0, WEIR__PROBE};
    p->at = c->callee;
    p->found = false;
    p->quest = *q;
    p->quest.hops++;
    append_chain(p->quest.path, last);
    weir__inbox_push(weir__loop_of(callee), &p->entry);
}

/* The next actor here that `a` waits for and that was not looked at yet; the actors carry the state of the search, so it needs no memory. */
static weir_actor *visit_next(weir__loop *l, const quest *q, weir_actor *a) {
    while (a->held && a->visit_call != &a->calls) {
        weir__call *c = weir__container(a->visit_call, weir__call, by_caller);
        weir__slot *slot = c->open ? weir__ids_find(&l->system->actors, c->callee) : NULL;
        weir_actor *near = slot ? weir__local(l, c->callee) : NULL;
        a->visit_call = a->visit_call->next;
        if (slot && !near)
            send_probe(l->system, q, a, c, slot);
        else if (near && near->visit != l->visit)
            return near;
    }
    return NULL;
}

/* Whether `from` waits for the initiator, as far as this loop knows. Then visit_from leads back from it to `from`. */
static weir_actor *search(weir__loop *l, const quest *q, weir_actor *from) {
    l->visit++;
    weir_actor *at = from, *before = NULL;
    while (at) {
        if (at->visit != l->visit) {
            at->visit = l->visit;
            at->visit_from = before;
            at->visit_call = at->calls.next;
        }
        if (at->address == q->initiator)
            return at;
        weir_actor *next = visit_next(l, q, at);
        before = at;
        at = next ? next : at->visit_from;
    }
    return NULL;
}

/* The callee on another loop has the question already; handled, it would go round again. */
static void withdraw(weir_system *s, const quest *q, const weir__call *c) {
    weir__slot *slot = weir__ids_find(&s->actors, c->callee);
    weir__probe *p = slot && weir__loop_of(slot) != q->home ? weir__pool_take(s, sizeof *p, NULL) : NULL;
    if (!p)
        return;
    p->entry = (weir__entry){NULL, 0, WEIR__PROBE};
    p->at = c->callee;
    p->found = true;
    p->quest = *q;
    weir__inbox_push(weir__loop_of(slot), &p->entry);
}

/* True: the cycle is closed, and the call that closed it is ended. */
static bool follow(weir__loop *l, quest *q, weir_actor *from) {
    weir_actor *initiator = search(l, q, from);
    weir__call *c = initiator ? weir__ids_find(&l->calls, q->session) : NULL;
    if (!c || !c->open || c->caller != initiator || !initiator->held)
        return false;
    append_chain(q->path, initiator);
    withdraw(l->system, q, c);
    weir__call_end(l, c, NULL, weir_error_new(WEIR_ECYCLE, initiator->name, NULL, "cycle of calls: %s", q->path));
    return true;
}

static quest quest_of(const weir__call *c) {
    weir__loop *home = c->caller->loop;
    quest q = {home, c->caller->address, weir__ids_of(&c->id), ++home->searches, 0, ""};
    append(q.path, c->caller->name);
    return q;
}

bool weir__cycle_closed(weir__call *c, weir_actor *callee) {
    if (!callee->held && callee != c->caller)
        return false;
    quest q = quest_of(c);
    return follow(callee->loop, &q, callee);
}

void weir__cycle_check(weir_actor *self) {
    weir__loop *loop = self->loop;
    for (weir__link *l = self->calls.next, *next; l != &self->calls; l = next) {
        next = l->next;
        weir__call *c = weir__container(l, weir__call, by_caller);
        weir__slot *slot = c->open ? weir__ids_find(&loop->system->actors, c->callee) : NULL;
        weir_actor *near = slot ? weir__local(loop, c->callee) : NULL;
        if (near) {
            weir__cycle_closed(c, near);
        } else if (slot) {
            quest q = quest_of(c);
            send_probe(loop->system, &q, NULL, c, slot);
        }
    }
}

void weir__cycle_follow(const weir__carrier *carrier, weir_actor *callee) {
    if (!callee->held)
        return;
    quest q = {carrier->home, carrier->message.to, carrier->message.session, 0, 0, ""};
    char name[WEIR_MAX_NAME];
    append(q.path, weir__slot_text(callee->system, q.initiator, name) ? name : "?");
    follow(callee->loop, &q, callee);
}

void weir__cycle_probe(weir__loop *l, weir__entry *e) {
    weir__probe *p = weir__container(e, weir__probe, entry);
    weir_actor *at = weir__local(l, p->at);
    bool seen = !at || p->found ||
                (at->probed_by == p->quest.initiator && at->probed_session == p->quest.session && at->probed_search == p->quest.search);
    if (at && p->found)
        weir__debt_revoke(at, p->quest.initiator, p->quest.session);
    if (!seen) {
        at->probed_by = p->quest.initiator;
        at->probed_session = p->quest.session;
        at->probed_search = p->quest.search;
        follow(l, &p->quest, at);
    }
    weir__pool_give(l->system, p, sizeof *p);
}
