/* monitor.c: who wants to know of whose end. The notice is part of the monitor, so it cannot fail for want of memory. */
#include "internal.h"

/* Looks through both lists in step: as cheap as the shorter one. */
static weir__monitor *find(weir_actor *self, weir_address address) {
    weir__slot *slot = weir__ids_find(&self->system->actors, address);
    weir__link *others = slot ? &slot->actor->watchers : &self->watching;
    weir__link *mine = self->watching.next, *its = others->next;
    while (mine != &self->watching && (its != others || !slot)) {
        weir__monitor *m = weir__container(mine, weir__monitor, by_watcher);
        if (m->target == address)
            return m;
        mine = mine->next;
        if (!slot)
            continue;
        m = weir__container(its, weir__monitor, by_target);
        if (m->watcher == self)
            return m;
        its = its->next;
    }
    return NULL;
}

static void queue(weir__monitor *m, weir_error *why) {
    m->queued = true;
    m->why = why;
    weir__link_remove(&m->by_target);
    weir__mail_push(m->watcher, &m->entry);
}

int weir_monitor(weir_actor *self, weir_address a) {
    if (!weir__check(self, "no actor") || !weir__usable_by(self))
        return WEIR_EINVAL;
    if (find(self, a))
        return WEIR_OK;
    weir_system *s = self->system;
    weir__monitor *m = weir__pool_take(s, sizeof *m, NULL);
    if (!m)
        return WEIR_ENOMEM;
    *m = (weir__monitor){.entry = {NULL, 0, WEIR__DOWN}, .watcher = self, .target = a};
    weir__link_init(&m->by_target);
    weir__link_add(&self->watching, &m->by_watcher);
    weir__slot *slot = weir__ids_find(&s->actors, a);
    if (slot)
        weir__link_add(&slot->actor->watchers, &m->by_target);
    else
        queue(m, weir_error_new(WEIR_ENOACTOR, NULL, NULL, "the monitored actor had ended already"));
    return WEIR_OK;
}

int weir_demonitor(weir_actor *self, weir_address a) {
    if (!weir__check(self, "no actor") || !weir__usable_by(self))
        return WEIR_EINVAL;
    weir__monitor *m = find(self, a);
    if (!m)
        return WEIR_ENOACTOR;
    weir__monitor_free(self->system, m);
    return WEIR_OK;
}

/* While its entry is queued the record stays and is given back there. */
void weir__monitor_free(weir_system *s, weir__monitor *m) {
    m->forgotten = true;
    weir__link_remove(&m->by_watcher);
    weir__link_remove(&m->by_target);
    if (m->queued)
        return;
    weir_error_free(m->why);
    weir__pool_give(s, m, sizeof *m);
}

void weir__monitor_report(weir_actor *self, weir__monitor *m) {
    const weir_behaviour *b = self->compiled->behaviour;
    bool forgotten = m->forgotten;
    m->queued = false;
    weir__link_remove(&m->by_watcher);
    if (!forgotten && b->down)
        b->down(self, m->target, m->why);
    weir__monitor_free(self->system, m);
}

void weir__monitors_end(weir_actor *a, const weir_error *why) {
    while (!weir__link_alone(&a->watching))
        weir__monitor_free(a->system, weir__container(a->watching.next, weir__monitor, by_watcher));
    while (!weir__link_alone(&a->watchers))
        queue(weir__container(a->watchers.next, weir__monitor, by_target), weir_error_ref(why));
}
