/* lib_space.c: sends and calls that wait for room in a mailbox whose policy is "await". What could not be delivered is kept as the task's parcel and offered again
 * in the task's own turn. The waiting task is held and gets no mail, so an actor of the binding's, the keeper, asks for room in its stead. */
#include <string.h>

#include "binding.h"

static void retry(weir_actor *self, void *data, uint64_t missed);

static const char *name_of(const task *t) {
    return weir_verb_name(t->binding->system, t->parcel.verb);
}

/* ---- parcels ---- */

static void parcel_unlink(task *t) {
    parcel *p = &t->parcel;
    if (!p->waits)
        return;
    p->waits = false;
    if (p->previous)
        p->previous->parcel.next = p->next;
    else
        t->binding->waiting = p->next;
    if (p->next)
        p->next->parcel.previous = p->previous;
    p->previous = p->next = NULL;
}

static void parcel_link(task *t) {
    parcel *p = &t->parcel;
    p->waits = true;
    p->previous = NULL;
    p->next = t->binding->waiting;
    if (p->next)
        p->next->parcel.previous = t;
    t->binding->waiting = t;
}

void parcel_drop(task *t) {
    parcel_unlink(t);
    weir_body_free(t->parcel.body);
    memset(&t->parcel, 0, sizeof t->parcel);
}

static void parcel_keep(task *t, weir_address to, weir_verb verb, weir_body *body, int64_t until) {
    parcel_drop(t);
    t->parcel = (parcel){.to = to, .verb = verb, .body = body, .until = until};
}

static void timer_clear(task *t) {
    if (t->timer)
        weir_timer_cancel(t->self, t->timer);
    t->timer = 0;
}

/* The wait is over, with an error (taken) or NULL. */
static void over(task *t, weir_error *e) {
    timer_clear(t);
    parcel_drop(t);
    if (t->error)
        weir_error_free(t->error);
    t->error = e;
    task_wake(t);
}

static weir_error *failure(const task *t, int code) {
    return weir_error_new(code, NULL, NULL, "%s to actor %.0f: %s", name_of(t), (double)t->parcel.to, weir_code_text(code));
}

static void late(weir_actor *self, void *data, uint64_t missed) {
    task *t = data;
    (void)self, (void)missed;
    t->timer = 0;
    over(t, weir_error_new(WEIR_ETIMEOUT, NULL, NULL, "%s to actor %.0f: its mailbox stayed full until the deadline", name_of(t),
                           (double)t->parcel.to));
}

/* ---- the keeper ---- */

/* Offers the parcel in its task's turn. Without memory for that the task waits until its deadline. */
static void offer(task *t) {
    uint64_t timer;
    if (weir_timer(t->self, 0, WEIR_TIMER_ONCE, retry, t, &timer) != WEIR_OK)
        return;
    parcel_unlink(t);
    timer_clear(t);
    t->timer = timer;
}

static void offer_all(binding *b, weir_address to) { /* 0: everything */
    for (task *t = b->waiting, *next; t; t = next) {
        next = t->parcel.next;
        if (!to || t->parcel.to == to)
            offer(t);
    }
}

static void on_space(weir_actor *self, const weir_message *m) {
    int64_t to = 0;
    weir_cursor c = weir_read(weir_message_body(m), NULL);
    if (weir_read_int(&c, &to) && to > 0)
        offer_all(weir_state(self), (weir_address)to);
}

static void on_fini(weir_system *s, void *state) {
    binding *b = state;
    (void)s;
    b->keeper = NULL;
    if (b->system)
        offer_all(b, 0);
}

static const weir_handler handlers[] = {{"space", on_space}, {NULL, NULL}};
static const weir_behaviour behaviour = {.name = "space", .handlers = handlers, .fini = on_fini};

/* The task waits for room, until the deadline. */
static int ask(task *t) {
    binding *b = t->binding;
    weir_address a;
    int code = WEIR_OK;
    if (!b->keeper && (code = weir_spawn(b->system, &behaviour, b, NULL, &a, NULL)) == WEIR_OK)
        b->keeper = weir__actor(b->system, a);
    if (code == WEIR_OK)
        code = weir_want_space(b->keeper, t->parcel.to);
    if (code != WEIR_OK)
        return code;
    if (t->parcel.until != INT64_MAX) {
        int64_t left = t->parcel.until - weir_now(b->system);
        code = weir_timer(t->self, left > 0 ? left : 0, WEIR_TIMER_ONCE, late, t, &t->timer);
    }
    if (code == WEIR_OK)
        parcel_link(t);
    return code;
}

/* ---- sends ---- */

bool space_awaits(weir_system *s, weir_address to) {
    return weir__full_of(s, to) == WEIR_FULL_AWAIT;
}

/* For the body (taken) of a send that was refused with EFULL: waits; core.sent then says how it went. */
int space_send(lua_State *L, binding *b, task *t, weir_address to, weir_verb verb, weir_body *body) {
    parcel_keep(t, to, verb, body, weir_now(b->system) + WEIR_CALL_TIMEOUT);
    wait_check(L, b, t, "weir.send to a full mailbox");
    int code = ask(t);
    if (code == WEIR_OK)
        return wait_here(L, b, t, WAIT_SPACE);
    weir_error *e = failure(t, code);
    parcel_drop(t);
    return raise_error(L, e);
}

static void retry_send(task *t) {
    parcel *p = &t->parcel;
    int code = weir_send(t->self, p->to, p->verb, weir_body_ref(p->body));
    if (code == WEIR_EFULL)
        code = ask(t);
    else if (code == WEIR_OK) {
        over(t, NULL);
        return;
    }
    if (code != WEIR_OK)
        over(t, failure(t, code));
}

/* core.sent(): how the send came out that waited: true, or raises. */
static int sent(lua_State *L) {
    task *t = current(L, binding_of(L));
    weir_error *e = t->error;
    t->error = NULL;
    if (e)
        return raise_error(L, e);
    lua_pushboolean(L, 1);
    return 1;
}

/* ---- calls ---- */

static uint64_t sent_by(const task *t) {
    weir_actor_stats stats;
    return weir_actor_get_stats(t->binding->system, t->address, &stats) == WEIR_OK ? stats.sent : 0;
}

/* Calls with the parcel. A call that was refused did not count as sent; it ends with EFULL, and space_refused decides. */
static int call(task *t, weir_reply_fn *done) {
    parcel *p = &t->parcel;
    uint64_t before = sent_by(t);
    int64_t left = p->until == INT64_MAX ? -1 : p->until - weir_now(t->binding->system);
    p->done = done;
    if (p->until != INT64_MAX && left <= 0)
        left = 1;
    int code = weir_call(t->self, p->to, p->verb, weir_body_ref(p->body), left, done, t, &t->session);
    p->refused = sent_by(t) == before;
    if (code == WEIR_OK && !p->refused)
        parcel_drop(t);
    return code;
}

int space_call(task *t, weir_address to, weir_verb verb, weir_body *body, int64_t timeout, weir_reply_fn *done) {
    int64_t wait = timeout ? timeout : WEIR_CALL_TIMEOUT, now = weir_now(t->binding->system);
    parcel_keep(t, to, verb, body, wait < 0 || wait > INT64_MAX - now ? INT64_MAX : now + wait);
    int code = call(t, done);
    if (code != WEIR_OK)
        parcel_drop(t);
    return code;
}

bool space_refused(task *t, const weir_error *e) {
    if (!t->parcel.refused)
        return false;
    t->parcel.refused = false;
    if (weir_error_code(e) == WEIR_EFULL && ask(t) == WEIR_OK)
        return true;
    timer_clear(t);
    parcel_drop(t);
    return false;
}

static void retry_call(task *t) {
    int code = call(t, t->parcel.done);
    if (code != WEIR_OK)
        over(t, failure(t, code));
}

/* In the task's turn. */
static void retry(weir_actor *self, void *data, uint64_t missed) {
    task *t = data;
    (void)self, (void)missed;
    t->timer = 0;
    if (t->parcel.done)
        retry_call(t);
    else
        retry_send(t);
}

void open_space(lua_State *L, binding *b) {
    static const luaL_Reg functions[] = {{"sent", sent}, {NULL, NULL}};
    binding_register(L, b, functions);
}
