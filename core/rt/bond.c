/* bond.c: monitors and links: who is told of whose end. The news is part of the record, so it cannot fail for want of memory. Between loops the record
 * travels; the watcher holds it once, the target's loop once, and what is under way keeps its holder's count. */
#include "internal.h"

/* ---- the bonds of a loop's watchers, by who watches whom: chains in a table that grows with them ---- */

enum { TABLE_FIRST = 32 };

static weir__bond **chain(const weir__bonds *t, weir_address watcher, weir_address target) {
    uint64_t mixed = (watcher * UINT64_C(0x9e3779b97f4a7c15) ^ target) * UINT64_C(0xbf58476d1ce4e5b9); /* odd: no bit is lost */
    return &t->table[(mixed >> 32) & (t->size - 1)];
}

static weir__bond *find(weir_actor *self, weir_address address, bool link) {
    const weir__bonds *t = &self->loop->bonds;
    weir__bond *w = t->size ? *chain(t, self->address, address) : NULL;
    while (w && (w->watcher_address != self->address || w->target != address || w->link != link))
        w = w->chained;
    return w;
}

/* False: no table. One that could not grow has longer chains. */
static bool make_room(weir_system *s, weir__bonds *t) {
    size_t size = t->size ? t->size * 2 : TABLE_FIRST;
    weir__bond **table = t->count < t->size ? NULL : weir__alloc(s, size * sizeof *table);
    if (!table)
        return t->size != 0;
    weir__bonds grown = {table, size, t->count};
    for (size_t i = 0; i < t->size; i++)
        for (weir__bond *w = t->table[i], *next; w; w = next) {
            next = w->chained;
            weir__bond **head = chain(&grown, w->watcher_address, w->target);
            w->chained = *head;
            *head = w;
        }
    weir__free(s, t->table);
    *t = grown;
    return true;
}

static void enter(weir__bond *w) {
    weir__bonds *t = &w->home->bonds;
    weir__bond **head = chain(t, w->watcher_address, w->target);
    w->chained = *head;
    *head = w;
    t->count++;
    weir__link_add(&w->watcher->watching, &w->by_watcher);
}

/* The watcher has it no more; may be called again. */
static void leave(weir__bond *w) {
    weir__bonds *t = &w->home->bonds;
    if (weir__link_alone(&w->by_watcher))
        return;
    weir__bond **at = chain(t, w->watcher_address, w->target);
    while (*at != w)
        at = &(*at)->chained;
    *at = w->chained;
    t->count--;
    weir__link_remove(&w->by_watcher);
}

/* ---- its holders ---- */

static bool far(const weir__bond *w) {
    return w->home != w->there;
}

static void release(weir__bond *w) {
    if (far(w) && atomic_fetch_sub(&w->holders, 1) != 1)
        return;
    weir_error_free(w->why);
    weir_error_free(w->cause);
    weir__pool_give(w->home->system, w, sizeof *w);
}

/* ---- the news of an end ---- */

static weir_error *linked_error(const weir_error *why) {
    const char *name = weir_error_actor(why);
    return weir_error_new(WEIR_EEXITED, name, weir_error_ref(why), "the linked actor %s has ended", name ? name : "");
}

/* The target has ended; on the watcher's loop. */
static void tell(weir__bond *w) {
    if (!w->link) {
        w->queued = true;
        w->entry.kind = WEIR__DOWN;
        weir__mail_push(w->watcher, &w->entry);
        return;
    }
    leave(w);
    if (w->why)
        weir__actor_end_with(w->watcher, WEIR_EEXITED, linked_error(w->why));
    release(w);
}

/* Taken by the watcher's side. */
static void gone(weir__bond *w) {
    bool forgotten = w->forgotten;
    if (!forgotten && far(w))
        atomic_fetch_sub(&w->holders, 1); /* the target's */
    if (forgotten)
        release(w);
    else
        tell(w);
}

/* The target's side lets go of it. */
static void target_ended(weir__bond *w, const weir_error *why) {
    weir__link_remove(&w->by_target);
    w->why = weir_error_ref(why);
    if (far(w))
        weir__inbox_push(w->home, &w->entry);
    else
        tell(w);
}

void weir__bond_report(weir_actor *self, weir__bond *w) {
    const weir_behaviour *b = self->compiled->behaviour;
    bool forgotten = w->forgotten;
    w->queued = false;
    leave(w);
    if (!forgotten && b->down)
        b->down(self, w->target, w->why);
    release(w);
}

void weir__bond_drop(weir__bond *w) {
    leave(w);
    release(w);
}

/* ---- making and taking back ---- */

static weir__bond *bond_new(weir_actor *self, weir_address a, bool link, bool quiet, weir__loop *there) {
    weir_system *s = self->system;
    bool room = !weir__inject(s, WEIR__INJECT_WATCH) && make_room(s, &self->loop->bonds);
    weir__bond *w = room ? weir__pool_take(s, sizeof *w, NULL) : NULL;
    if (!w)
        return NULL;
    *w = (weir__bond){.entry = {NULL, 0, WEIR__GONE}, .out = {NULL, 0, WEIR__BOND}, .cancel = {NULL, 0, WEIR__UNBOND}};
    w->watcher = self;
    w->watcher_address = self->address;
    w->target = a;
    w->home = self->loop;
    w->there = there;
    w->link = link;
    w->quiet = quiet;
    atomic_init(&w->holders, 2);
    weir__link_init(&w->by_target);
    enter(w);
    return w;
}

static weir_error *gone_error(void) {
    return weir_error_new(WEIR_ENOACTOR, NULL, NULL, "the watched actor had ended already");
}

static void begin(weir_system *s, weir__bond *w) {
    weir__slot *slot = weir__ids_find(&s->actors, w->target);
    if (slot) {
        weir__link_add(&slot->actor->watchers, &w->by_target);
        return;
    }
    weir_error *e = gone_error();
    target_ended(w, e);
    weir_error_free(e);
}

static int watch(weir_actor *self, weir_address a, bool link, bool quiet) {
    if (find(self, a, link))
        return WEIR_OK;
    weir__slot *slot = weir__ids_find(&self->system->actors, a);
    weir__bond *w = bond_new(self, a, link, quiet, slot ? weir__loop_of(slot) : self->loop);
    if (!w)
        return WEIR_ENOMEM;
    if (far(w))
        weir__inbox_push(w->there, &w->out);
    else
        begin(self->system, w);
    return WEIR_OK;
}

/* By the watcher; cause: how the watcher of a link ended, taken. */
static void take_back(weir__bond *w, weir_error *cause) {
    w->forgotten = true;
    leave(w);
    if (w->queued) { /* its entry is in the mail and frees it */
        weir_error_free(cause);
        return;
    }
    w->cause = cause;
    if (far(w)) {
        weir__inbox_push(w->there, &w->cancel);
        return;
    }
    weir__link_remove(&w->by_target);
    release(w);
}

/* ---- between loops ---- */

/* Had the target ended before, its own count went home with the news. */
static void taken_back(weir__loop *l, weir__bond *w) {
    if (!weir__link_alone(&w->by_target)) {
        weir__slot *slot = w->cause ? weir__ids_find(&l->system->actors, w->target) : NULL;
        if (slot)
            weir__actor_end_with(slot->actor, WEIR_EEXITED, linked_error(w->cause));
        weir__link_remove(&w->by_target);
        atomic_fetch_sub(&w->holders, 1);
    }
    release(w);
}

void weir__bond_arrive(weir__loop *l, weir__entry *e) {
    if (e->kind == WEIR__BOND)
        begin(l->system, weir__container(e, weir__bond, out));
    else if (e->kind == WEIR__UNBOND)
        taken_back(l, weir__container(e, weir__bond, cancel));
    else
        gone(weir__container(e, weir__bond, entry));
}

/* ---- the end of an actor ---- */

static void watcher_ended(weir__bond *w, const weir_error *why) {
    if (w->link && why && !far(w)) {
        weir_actor *target = weir__actor(w->home->system, w->target);
        if (target)
            weir__actor_end_with(target, WEIR_EEXITED, linked_error(why));
    }
    take_back(w, w->link && why && far(w) ? weir_error_ref(why) : NULL);
}

void weir__bonds_end(weir_actor *a, const weir_error *why) {
    while (!weir__link_alone(&a->watching))
        watcher_ended(weir__container(a->watching.next, weir__bond, by_watcher), why);
    while (!weir__link_alone(&a->watchers))
        target_ended(weir__container(a->watchers.next, weir__bond, by_target), why);
}

/* ---- public ---- */

int weir_monitor(weir_actor *self, weir_address a) {
    if (!weir__check(self, "no actor") || !weir__usable_by(self))
        return WEIR_EINVAL;
    return watch(self, a, false, false);
}

int weir__monitor_quietly(weir_actor *self, weir_address a) {
    return watch(self, a, false, true);
}

int weir_link(weir_actor *self, weir_address a) {
    if (!weir__check(self, "no actor") || !weir__usable_by(self) || self == self->system->main || a == self->system->main_address ||
        a == self->address)
        return WEIR_EINVAL;
    return watch(self, a, true, false);
}

static int unwatch(weir_actor *self, weir_address a, bool link) {
    if (!weir__check(self, "no actor") || !weir__usable_by(self))
        return WEIR_EINVAL;
    weir__bond *w = find(self, a, link);
    if (!w)
        return WEIR_ENOACTOR;
    take_back(w, NULL);
    return WEIR_OK;
}

int weir_demonitor(weir_actor *self, weir_address a) {
    return unwatch(self, a, false);
}

int weir_unlink(weir_actor *self, weir_address a) {
    return unwatch(self, a, true);
}

bool weir__watched(const weir_actor *a) {
    for (const weir__link *at = a->watchers.next; at != &a->watchers; at = at->next)
        if (!weir__container(at, const weir__bond, by_target)->quiet)
            return true;
    return false;
}
