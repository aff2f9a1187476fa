/* linger.c: what still works for actors that may have ended, as records of those who do the work; who waits for its end. A closed stream that drains is such
 * work; this file does not know that. Nothing here needs memory, so nothing can fail. */
#include <stdio.h>

#include "internal.h"

void weir__lingers_init(weir__lingers *t, int64_t drain) {
    pthread_mutex_init(&t->lock, NULL);
    t->drain = drain > 0 ? drain : WEIR_DRAIN_NS;
}

/* A notice that waits: its link and its owner are in fields that matter only once it is posted. */
static weir_message *pop_all(weir__lingers *t) {
    weir_message *all = t->waiting;
    t->waiting = NULL;
    return all;
}

static weir_message *next_of(weir_message *m) {
    return m->entry.next ? weir__container(m->entry.next, weir_message, entry) : NULL;
}

static void push(weir_message **list, weir_message *m) {
    m->entry.next = *list ? &(*list)->entry : NULL;
    *list = m;
}

void weir__lingers_fini(weir_system *s, weir__lingers *t) {
    (void)s;
    for (weir_message *m = pop_all(t), *next; m; m = next) {
        next = next_of(m);
        weir__notice_free(weir__container(m, weir__notice, message));
    }
    pthread_mutex_destroy(&t->lock);
}

static int count(const weir__lingers *t, weir_address owner) {
    int n = 0;
    for (const weir__linger *l = t->first; l; l = l->next)
        n += l->owner == owner;
    return n;
}

/* Takes out the notices that wait for owner, if nothing lingers for it. The newest first. */
static weir_message *take_drained(weir__lingers *t, weir_address owner) {
    if (count(t, owner))
        return NULL;
    weir_message *drained = NULL;
    for (weir_message *m = pop_all(t), *next; m; m = next) {
        next = next_of(m);
        push(m->deadline == (int64_t)owner ? &drained : &t->waiting, m);
    }
    return drained;
}

static void post_all(weir_message *m) {
    for (weir_message *next; m; m = next) {
        next = next_of(m);
        m->entry.next = NULL;
        m->deadline = 0;
        weir__notice_post(weir__container(m, weir__notice, message));
    }
}

void weir__linger_begin(weir_system *s, weir__linger *l, weir_address owner) {
    weir__lingers *t = &s->lingers;
    if (!weir__check(owner, "work lingers for nobody"))
        return;
    pthread_mutex_lock(&t->lock);
    if (!l->owner) {
        *l = (weir__linger){owner, NULL, t->first};
        if (t->first)
            t->first->prev = l;
        t->first = l;
    }
    pthread_mutex_unlock(&t->lock);
}

static void detach(weir__lingers *t, weir__linger *l) {
    if (l->prev)
        l->prev->next = l->next;
    else
        t->first = l->next;
    if (l->next)
        l->next->prev = l->prev;
    *l = (weir__linger){0, NULL, NULL};
}

void weir__linger_end(weir_system *s, weir__linger *l) {
    weir__lingers *t = &s->lingers;
    pthread_mutex_lock(&t->lock);
    weir_address owner = l->owner;
    if (owner)
        detach(t, l);
    weir_message *drained = owner ? take_drained(t, owner) : NULL;
    pthread_mutex_unlock(&t->lock);
    post_all(drained);
}

int weir__lingering(weir_system *s, weir_address owner) {
    pthread_mutex_lock(&s->lingers.lock);
    int n = count(&s->lingers, owner);
    pthread_mutex_unlock(&s->lingers.lock);
    return n;
}

void weir__when_drained(weir_system *s, weir_address owner, weir__notice *notice) {
    weir__lingers *t = &s->lingers;
    weir_message *m = &notice->message;
    m->deadline = (int64_t)owner;
    pthread_mutex_lock(&t->lock);
    push(&t->waiting, m);
    weir_message *drained = take_drained(t, owner);
    pthread_mutex_unlock(&t->lock);
    post_all(drained);
}

void weir__set_quarantine(weir_system *s, weir__quarantine_fn *fn, void *data) {
    pthread_mutex_lock(&s->lingers.lock);
    s->lingers.quarantine = fn;
    s->lingers.quarantine_data = data;
    pthread_mutex_unlock(&s->lingers.lock);
}

void weir__quarantine(weir_system *s, weir_address owner) {
    weir__lingers *t = &s->lingers;
    pthread_mutex_lock(&t->lock);
    weir__quarantine_fn *fn = t->quarantine;
    void *data = t->quarantine_data;
    pthread_mutex_unlock(&t->lock);
    if (fn)
        fn(data, owner);
    pthread_mutex_lock(&t->lock);
    for (weir__linger *l = t->first, *next; l; l = next) {
        next = l->next;
        if (l->owner == owner)
            detach(t, l);
    }
    weir_message *drained = take_drained(t, owner);
    pthread_mutex_unlock(&t->lock);
    post_all(drained);
}

void weir__leave_behind(weir_system *s, const char *what) {
    s->lingers.left = true;
    fprintf(stderr, "weir_system_free: %s\n", what);
}

int64_t weir__drain(const weir_system *s) {
    return s->lingers.drain;
}
