/* internal.h: what the files of core/rt know of each other: functions by file, pools of small blocks. Nothing outside of core/rt includes it. */
#ifndef WEIR_RT_INTERNAL_H
#define WEIR_RT_INTERNAL_H

#include <stdlib.h>
#include <string.h>

#include "structures.h"

#if defined(__SANITIZE_ADDRESS__)
#define WEIR__POISON 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WEIR__POISON 1
#endif
#endif
#ifdef WEIR__POISON
#include <sanitizer/asan_interface.h> /* what lies in a pool must not be touched */
#else
#define ASAN_POISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#endif

/* alloc.c */
void *weir__alloc_raw(weir_system *s, size_t n); /* not zeroed */
void weir__pool_drain(weir__loop *l);
void weir__pool_away(weir__loop *l, weir__header *h); /* frees a block of another loop's pools */
bool weir__pool_fetch(weir__loop *l);                 /* takes back what others freed; false: nothing */
void weir__pool_flush(weir__loop *l);                 /* sends home what is kept for others */

/* ---- pools, inline: each message takes and gives three blocks, mostly of sizes known here ---- */

/* The pool of blocks that n bytes fit into, and their size; -1: too large for any. */
static inline int weir__pool_of(size_t n, size_t *room) {
    if (n > WEIR__POOL_LARGEST) {
        *room = n;
        return -1;
    }
    if (n <= WEIR__POOL_SMALL) {
        size_t i = n ? (n - 1) / WEIR__POOL_STEP : 0;
        *room = (i + 1) * WEIR__POOL_STEP;
        return (int)i;
    }
    int bits = 64 - __builtin_clzll(n - 1); /* 9 for 257 .. 512 */
    *room = (size_t)1 << bits;
    return bits - 9 + WEIR__POOL_SMALL / WEIR__POOL_STEP;
}
static inline void *weir__pool_pop(weir__loop *l, int i, size_t size) { /* NULL: empty */
    weir__pool *pool = &l->pools[i];
    if (!pool->free && (!weir__pool_fetch(l) || !pool->free))
        return NULL;
    weir__pooled *p = pool->free;
    ASAN_UNPOISON_MEMORY_REGION(p + 1, size - sizeof *p);
    pool->free = p->next;
    pool->count--;
    return p;
}
static inline bool weir__pool_push(weir__loop *l, int i, size_t size, void *block) {
    weir__pool *pool = &l->pools[i];
    if (pool->count * size >= WEIR__POOL_KEEP)
        return false;
    weir__pooled *p = (weir__pooled *)block;
    p->next = pool->free;
    pool->free = p;
    pool->count++;
    ASAN_POISON_MEMORY_REGION(p + 1, size - sizeof *p); /* the link stays readable: leak checkers follow it */
    return true;
}
/* At least n bytes, not zeroed; room (may be NULL): how many there are. NULL without memory. Any thread */
static inline void *weir__pool_take(weir_system *s, size_t n, size_t *room) {
    size_t size;
    int i = weir__pool_of(n, &size);
    if (room)
        *room = size;
    weir__loop *l = weir__here(s);
    void *p = i >= 0 && l ? weir__pool_pop(l, i, size) : NULL;
    if (p)
        return p;
    p = weir__alloc_raw(s, size);
    if (p && l)
        ((weir__header *)p - 1)->owner = l->index + 1;
    return p;
}
/* n: as asked for, or its room. Any thread */
static inline void weir__pool_give(weir_system *s, void *p, size_t n) {
    size_t size;
    int i = weir__pool_of(n, &size);
    weir__loop *l = weir__here(s);
    weir__header *h = (weir__header *)p - 1;
    if (i >= 0 && l && h->owner && h->owner != l->index + 1)
        weir__pool_away(l, h);
    else if (i < 0 || !l || !weir__pool_push(l, i, size, p))
        weir__free(s, p);
}

/* mailbox.c */
int weir__slot_reserve(weir__slot *slot, size_t bytes); /* EFULL; ETOOBIG: even an empty one would not take it. Any thread */
/* For WEIR_FULL_DROP_OLDEST: as much again as the bounds, until the receiver's loop has dropped. Any thread */
int weir__slot_reserve_more(weir__slot *slot, size_t bytes);
bool weir__slot_over(const weir__slot *slot);  /* holds more than its bounds */
bool weir__slot_roomy(const weir__slot *slot); /* is at most half full */
void weir__mailbox_trim(weir_actor *a);        /* drops the oldest messages until it is within its bounds */
void weir__slot_release(weir__slot *slot, size_t bytes);
void weir__slot_load(const weir__slot *slot, uint64_t *messages, uint64_t *bytes); /* any thread */
void weir__queue_push(weir__queue *q, weir__entry *e);
weir__entry *weir__queue_pop(weir__queue *q);        /* NULL: empty */
void weir__mail_push(weir_actor *a, weir__entry *e); /* behind everything that came before; makes the actor ready */
void weir__own_push(weir_actor *a, weir__entry *e);
weir__entry *weir__mailbox_next(weir_actor *a); /* what the actor may get now; NULL: nothing */
bool weir__mailbox_ready(const weir_actor *a);

/* message.c */
weir_message *weir__message_new(weir_system *s, weir_address from, weir_address to, weir_verb verb,
                                weir_body *body); /* body is not taken */
void weir__message_free(weir_system *s, weir_message *m);
void weir__message_dead(weir__loop *l, weir_message *m, int why); /* frees it */
void weir__message_drop(weir_actor *a, weir_message *m);          /* out of its full mailbox; a call ends with EFULL. Frees it */
int weir__message_accept(weir_actor *self, weir_address to, weir_verb verb, weir_body *body, uint64_t session, int64_t deadline,
                         weir__carrier *carrier);             /* body is taken; carrier: of a call to another loop */
void weir__message_handle(weir_actor *self, weir_message *m); /* frees it */
void weir__trace(weir_system *s, enum weir_trace kind, weir_address from, weir_address to, weir_verb verb, size_t bytes, int why);

void weir__message_arrive(weir__loop *l, weir_message *m);                                /* from another thread, on the receiver's loop */
int weir__answer(weir_actor *self, weir_reply_to to, weir_body *body, weir_error *error); /* both taken */
static inline weir_reply_to weir__reply_to(const weir_message *m) {
    return (weir_reply_to){m->from, m->session, m->flags & WEIR__DEBT ? m->ticket : 0};
}

/* dead.c */
void weir__dead_letter(weir__loop *l, const weir_message *m, int why); /* counts it, and: */
void weir__bury(weir_system *s, const weir_message *m, int why);       /* traces and keeps it. Any thread */
void weir__dead_init(weir_system *s);
void weir__dead_fini(weir_system *s);

/* call.c */
void weir__call_report(weir_actor *self, weir__call *c);
void weir__call_end(weir__loop *l, weir__call *c, weir_body *reply, weir_error *error); /* both taken; one of them may be given */
void weir__call_forget(weir__loop *l, weir__call *c);                                   /* its caller ends */
void weir__calls_fail(weir_actor *callee, const weir_error *error);                     /* ends what it would have answered */

/* cycle.c: each ends the call that closes a cycle */
bool weir__cycle_closed(weir__call *c, weir_actor *callee); /* a call of a held actor is about to be asked; true: it was ended */
void weir__cycle_check(weir_actor *self);                   /* became held */
void weir__cycle_follow(const weir__carrier *carrier, weir_actor *callee); /* a call of a held actor has come from another loop */
void weir__cycle_probe(weir__loop *l, weir__entry *e);                     /* a search goes on here */

/* remote.c: calls between loops */
int weir__call_away(weir_actor *self, weir__call *c, weir_body *body); /* asks; body is taken. What weir_send says */
int weir__debt_arrive(weir__loop *l, weir_message *m,
                      weir_actor *callee); /* callee NULL: ENOACTOR. ENOMEM. Then it is answered, a dead letter */
int weir__debt_pay(weir_actor *self, weir_reply_to to, weir_body *body, weir_error *error); /* both taken */
void weir__debts_fail(weir_actor *callee, const weir_error *error);
void weir__debt_revoke(weir_actor *callee, weir_address caller, uint64_t session);
bool weir__debt_revoked(weir_actor *callee, const weir_message *m);
void weir__answer_arrive(weir__loop *l, weir__entry *e);

/* timer.c */
void weir__timer_tick(weir_actor *self, weir__timer *t);
void weir__timer_free(weir__loop *l, weir__timer *t);

/* bond.c */
void weir__bond_report(weir_actor *self, weir__bond *w);
void weir__bond_drop(weir__bond *w);                        /* its entry was in the mail of an actor that ends */
void weir__bonds_end(weir_actor *a, const weir_error *why); /* tells its watchers, forgets whom it watched; why NULL: orderly */
void weir__bond_arrive(weir__loop *l, weir__entry *e);      /* BOND, UNBOND, GONE */

/* space.c */
void weir__wants_serve(weir_actor *a); /* its mailbox is roomy, or it ends */
void weir__want_arrive(weir__loop *l, weir__entry *e);

/* asked.c: what other threads want of an actor, without memory */
enum { WEIR__ASK_STOP = 1, WEIR__ASK_KILL = 2, WEIR__ASK_LISTED = 4, WEIR__ASK_ROOM = 8 };
void weir__asked_reset(weir__slot *slot);                  /* for the slot's next actor, before it lives */
int weir__ask(weir__slot *slot, weir_address a, int what); /* ENOACTOR. Any thread */
void weir__asked_take(weir__loop *l);                      /* between two messages */

/* worker.c */
int weir__workers_make(weir_system *s, unsigned workers, weir_error **error);
int weir__workers_start(weir_system *s, weir_error **error);
void weir__workers_stop(weir_system *s); /* ends their actors and joins them */

/* actor.c */
int weir__actor_new(weir_system *s, const weir_behaviour *b, void *state, const weir_spawn_options *options, weir_address *out,
                    weir_error **error);
void weir__actor_end(weir_actor *a);                                /* a->ending says how; its code is not on the stack */
void weir__actor_end_with(weir_actor *a, int how, weir_error *why); /* marks it, to be ended before its next message; why is taken */
void weir__actor_stop(weir_actor *a);                               /* on its own loop */
void weir__actor_release(weir_actor *a);                            /* frees the struct of a dead one */

/* behaviour.c */
weir__compiled *weir__behaviour_take(weir_system *s, const weir_behaviour *b);
void weir__behaviour_give(weir_system *s, weir__compiled *c);
weir_receive_fn *weir__behaviour_find(const weir__compiled *c, weir_verb verb); /* NULL if nobody handles it */

/* verb.c */
int weir__verbs_init(weir_system *s);
void weir__verbs_fini(weir_system *s);

/* registry.c, linger.c */
void weir__registry_init(weir__registry *r);
void weir__registry_fini(weir_system *s, weir__registry *r);
void weir__lingers_init(weir__lingers *l, int64_t drain);  /* ns, 0: WEIR_DRAIN_NS */
void weir__lingers_fini(weir_system *s, weir__lingers *l); /* frees the notices that still wait */

/* slot.c */
void weir__slot_name(weir__slot *slot, const char *name);               /* before it lives */
bool weir__slot_text(const weir_system *s, weir_address a, char *name); /* WEIR_MAX_NAME bytes; false: no such actor. Any thread */

/* inbox.c */
void weir__inbox_push(weir__loop *l, weir__entry *e); /* any thread */
void weir__inbox_take(weir__loop *l);
void weir__wake(weir__loop *l);        /* any thread, async-signal-safe */
void weir__wake_fd(weir__loop *l);     /* writes to wake_fd */
void weir__drain_fd(int fd);           /* an eventfd or timerfd is not readable any more */
bool weir__sleep_begin(weir__loop *l); /* false: there is work after all */
void weir__sleep_end(weir__loop *l);
void weir__settled(weir_system *s); /* the main loop looks whether its run is over. Any thread */

/* driver_test.c */
uint64_t weir__seeded(weir_system *s); /* the next number of the seed */

/* loop.c */
void weir__ready_push(weir_actor *a);
weir_actor *weir__ready_pop(weir__loop *l);
void weir__loop_enter(weir__loop *l); /* around everything that the loop's thread does for it */
void weir__loop_leave(weir__loop *l);
int weir__loop_run(weir__loop *l, bool (*done)(void *data), void *data);
void weir__loop_step(weir__loop *l, int64_t ns); /* what there is to do, but no more turns after ns. Between enter and leave */

/* wait.c: what the drivers on epoll share */
int weir__wait_open(weir__loop *l, weir_error **error); /* eventfd and timerfd */
void weir__wait_close(weir__loop *l);
void weir__wait_timer(weir__loop *l); /* sets the timerfd to the next due time, if it is set to something else */
void weir__wait_leave(weir__loop *l); /* weir__driver.leave: the eventfd is readable if there is work, or becomes so with the next */
/* Sleeps until somebody wakes the loop, or until the next due time: an absolute one, so it cannot be early. */
void weir__wait_futex(weir__loop *l);
void weir__wake_futex(weir__loop *l); /* any thread, async-signal-safe */
int64_t weir__wait_clock(const weir_system *s);
size_t weir__wait_choose(weir__loop *l); /* the first */

/* io.c */
void weir__ios_init(weir__ios *ios);
void weir__ios_fini(weir_system *s);  /* tells the watchers that are left, and gives them back */
bool weir__ios_settle(weir__loop *l); /* before the loop sleeps: finds what was closed behind its back; true: functions were called */
void weir__io_fail(weir__io *io);     /* stops it and tells its owner */

/* watchdog.c */
void weir__watch_awake(weir__loop *l, bool awake);
void weir__watch_begin(weir__loop *l, const weir_actor *a, enum weir__entry_kind kind, weir_verb verb);
void weir__watch_end(weir__loop *l);
void weir__watchdog_fini(weir_system *s, bool forked);
void weir__loop_init(weir_system *s, weir__loop *l, unsigned index, const weir__driver *driver);
void weir__loop_end_actors(weir__loop *l); /* kills those that live there, on its thread */
void weir__loop_release(weir__loop *l);

/* verify.c */
void weir__verify_small(weir_system *s); /* weir__verify where it is affordable: in small systems */

/* inject.c */
int weir__inject_environment(weir_system *s, weir_error **error);

#endif
