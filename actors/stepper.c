/* stepper.c: the actor that runs passes: one in flight, the others wait in order; sequences belong to who opened them (stepper.h). */
#include "stepper.h"

#define MAX_QUEUED 64 /* passes that wait; a caller beyond that is told EBUSY */

static void start_next(weir_actor *self);

static void reply_error(weir_actor *self, const weir_message *m, int code, weir_error *error) {
    weir_reply_error(self, m,
                     error ? error
                           : weir_error_new(code, NULL, NULL, "stepper.%s: %s", weir_verb_name(weir_system_of(self), weir_message_verb(m)),
                                            weir_code_text(code)));
}

/* ---- prepare ---- */

static void unprepare(weir__stepper *s) {
    for (uint32_t u = 0; s->leases && u <= s->units; u++)
        weir__buffer_unref(s->leases[u]);
    weir__forward_free(s->forward);
    weir__kv_free(s->kv);
    weir__free(s->system, s->granted);
    weir__free(s->system, s->leases);
    s->forward = NULL;
    s->kv = NULL;
    s->granted = NULL;
    s->leases = NULL;
}

/* Nothing is on the stream: it may be asked for again. */
static void prepare_failed(weir_actor *self, weir_error *error) {
    weir__stepper *s = weir_state(self);
    unprepare(s);
    weir_answer_error(self, s->preparing, error);
}

static void on_banks(weir_actor *self, void *data, const weir_message *reply, const weir_error *error) {
    weir__stepper *s = data;
    int64_t banks = 0;
    weir_cursor c = weir_read(reply ? weir_message_body(reply) : NULL, NULL);
    if (error)
        prepare_failed(self, weir_error_ref(error));
    else if (!weir_read_int(&c, &banks) || banks != 0)
        prepare_failed(
            self, weir_error_new(WEIR_EUNSUPPORTED, NULL, NULL, "the expert provider has %lld banks, the model none", (long long)banks));
    else
        weir_answer(self, s->preparing, NULL);
}

static int prepare(weir_actor *self, weir_error **error) {
    weir__stepper *s = weir_state(self);
    const weir__forward_options *o = &s->options.forward;
    int32_t limit = weir__checkpoint_config(s->checkpoint)->context;
    int code = weir__forward_check(s->checkpoint, s->device, o, error);
    if (!code)
        code = weir__kv_new(s->system, o->context, (uint32_t)limit, &s->kv, error);
    if (!code)
        code = weir__forward_new(s->checkpoint, s->device, o, &s->forward, error);
    s->granted = weir__alloc(s->system, sizeof *s->granted * (s->units + 1));
    s->leases = weir__alloc(s->system, sizeof *s->leases * (s->units + 1));
    if (!code && (!s->granted || !s->leases))
        code = weir_fail(error, WEIR_ENOMEM, "stepper: no memory");
    if (!code)
        code = weir_monitor(self, s->options.policy);
    if (code)
        return code;
    code = weir__forward_prepare(s->forward, s->stream);
    if (!code)
        code = weir__stream_notify(s->stream, s->self, s->tables_done, 0);
    if (code && error)
        *error = weir__stream_refused(s->device, "stepper", code);
    return code;
}

static void on_prepare(weir_actor *self, const weir_message *m) {
    weir__stepper *s = weir_state(self);
    weir_error *error = NULL;
    if (s->forward) {
        reply_error(self, m, WEIR_EBUSY, NULL);
        return;
    }
    int code = prepare(self, &error);
    if (code) {
        unprepare(s);
        reply_error(self, m, code, error);
        return;
    }
    s->preparing = weir_defer(self, m);
}

static bool read_notice(const weir_actor *self, const weir_message *m, int64_t *status, int64_t *arg) {
    weir_cursor c = weir_read(weir_message_body(m), NULL);
    return weir__own_notice(self, m) && weir_read_int(&c, status) && weir_read_int(&c, arg);
}

static void on_tables_done(weir_actor *self, const weir_message *m) {
    weir__stepper *s = weir_state(self);
    int64_t status, arg;
    if (!read_notice(self, m, &status, &arg))
        return;
    char why[256] = "";
    if (status)
        weir__stream_why(s->stream, why, sizeof why);
    int code = status ? (int)status : weir_call(self, s->options.experts, s->banks, NULL, 0, on_banks, s, NULL);
    if (code)
        prepare_failed(self, weir_error_new(code, NULL, NULL, "preparing on stream stepper of device %s: %s%s",
                                            weir__device_name(s->device), weir_code_text(code), why));
}

/* ---- sequences ---- */

static bool owns_other(const weir__stepper *s, weir_address who) {
    for (int i = 0; i < WEIR_MAX_SEQUENCES; i++)
        if (s->sequences[i] && s->owners[i] == who)
            return true;
    return false;
}

static void close_slot(weir_actor *self, int32_t slot) {
    weir__stepper *s = weir_state(self);
    weir__kv_close(s->kv, s->sequences[slot]);
    s->sequences[slot] = 0;
    if (!owns_other(s, s->owners[slot]))
        weir_demonitor(self, s->owners[slot]);
}

static void on_open(weir_actor *self, const weir_message *m) {
    weir__stepper *s = weir_state(self);
    weir_error *error = NULL;
    weir_address who = weir_message_from(m);
    uint64_t id;
    int code = s->kv ? weir__kv_open(s->kv, &id, &error) : WEIR_ESTATE;
    if (!code && !owns_other(s, who) && (code = weir__monitor_quietly(self, who)))
        weir__kv_close(s->kv, id);
    if (code) {
        reply_error(self, m, code, error);
        return;
    }
    int32_t slot = weir__kv_slot(s->kv, id);
    s->owners[slot] = who;
    s->sequences[slot] = id;
    weir_body *b = weir_pack(s->system, "u", id);
    if (!b)
        close_slot(self, slot);
    weir__reply_made(self, m, b);
}

static void on_close(weir_actor *self, const weir_message *m) {
    weir__stepper *s = weir_state(self);
    int64_t id = 0;
    weir_cursor c = weir_read(weir_message_body(m), NULL);
    int32_t slot = weir_read_int(&c, &id) && s->kv ? weir__kv_slot(s->kv, (uint64_t)id) : -1;
    if (slot < 0) {
        weir_reply_error(self, m, weir_error_new(WEIR_ESTATE, NULL, NULL, "close: no sequence %lld", (long long)id));
        return;
    }
    close_slot(self, slot);
    weir_reply(self, m, NULL);
}

/* Answers and frees the waiting passes of a caller: those with `tag`, or all if it is NULL. */
static void drop_queued(weir_actor *self, weir_address who, const int64_t *tag) {
    weir__stepper *s = weir_state(self);
    for (weir__pass **at = &s->queue; *at;) {
        weir__pass *p = *at;
        if (p->caller != who || (tag && p->tag != *tag)) {
            at = &p->next;
            continue;
        }
        *at = p->next;
        weir_answer_error(self, p->to, weir_error_new(WEIR_ECANCELLED, NULL, NULL, "the pass was cancelled before it began"));
        weir__pass_free(s, p);
    }
}

/* ---- who is asked for units ---- */

/* What another policy granted is not to be run any more, nor kept. */
static void drop_grants(weir__stepper *s) {
    for (uint32_t u = 0; s->leases && u <= s->units; u++) {
        weir__buffer_unref(s->leases[u]);
        s->leases[u] = NULL;
        s->granted[u] = false;
    }
    s->generation = 0;
}

/* Between two passes. */
static void take_neighbours(weir_actor *self) {
    weir__stepper *s = weir_state(self);
    if (s->policy_gone || s->next_policy)
        drop_grants(s);
    if (s->next_policy) {
        weir_demonitor(self, s->options.policy);
        s->options.policy = s->next_policy;
        s->policy_gone = false;
    }
    if (s->next_experts)
        s->options.experts = s->next_experts;
    s->next_policy = s->next_experts = 0;
}

static void on_use(weir_actor *self, const weir_message *m) {
    weir__stepper *s = weir_state(self);
    weir_address policy, experts;
    if (!weir__read_neighbour(self, m, "policy", &policy) || !weir__read_neighbour(self, m, "experts", &experts))
        return;
    if (policy && policy != s->options.policy) {
        if (weir_monitor(self, policy)) {
            reply_error(self, m, WEIR_ENOMEM, NULL);
            return;
        }
        if (s->next_policy && s->next_policy != policy)
            weir_demonitor(self, s->next_policy);
        s->next_policy = policy;
    }
    s->next_experts = experts;
    weir_reply(self, m, NULL);
    start_next(self);
}

static void policy_down(weir_actor *self, const weir_error *why) {
    weir__stepper *s = weir_state(self);
    s->policy_gone = true;
    if (s->current)
        weir__drive_fail(self, s->current,
                         weir__reason(weir_error_new(WEIR_EEXITED, "policy", why ? weir_error_ref(why) : NULL,
                                                     "the policy ended while a pass was under way")));
    else
        take_neighbours(self);
}

static void on_down(weir_actor *self, weir_address who, const weir_error *why) {
    weir__stepper *s = weir_state(self);
    if (who == s->next_policy)
        s->next_policy = 0;
    if (who == s->options.policy)
        policy_down(self, why);
    for (int32_t i = 0; i < WEIR_MAX_SEQUENCES; i++)
        if (s->sequences[i] && s->owners[i] == who)
            close_slot(self, i);
    drop_queued(self, who, NULL);
    if (s->current && s->current->caller == who)
        weir__drive_fail(self, s->current, weir_error_new(WEIR_ECANCELLED, NULL, NULL, "the caller of the pass ended"));
}

/* ---- passes ---- */

static void start_next(weir_actor *self) {
    weir__stepper *s = weir_state(self);
    if (s->current)
        return;
    take_neighbours(self);
    if (!s->queue || s->policy_gone)
        return;
    s->current = s->queue;
    s->queue = s->queue->next;
    s->current->next = NULL;
    weir__drive_start(self, s->current);
}

/* Who asked for a pass is told of the loss, not that this actor ended. What the passes hold is given back with it. */
static void exit_lost(weir_actor *self) {
    weir__stepper *s = weir_state(self);
    weir__pass *c = s->current;
    if (c)
        weir_answer_error(self, c->to, c->error ? weir_error_ref(c->error) : weir__lost_error(s->device));
    for (const weir__pass *p = s->queue; p; p = p->next)
        weir_answer_error(self, p->to, weir__lost_error(s->device));
    weir__exit_lost(self, s->device);
}

void weir__stepper_ended(weir_actor *self, weir__pass *p) {
    weir__stepper *s = weir_state(self);
    s->current = NULL;
    weir__pass_free(s, p);
    if (weir__device_lost(s->device)) /* before anybody asks for another one */
        exit_lost(self);
    else
        start_next(self);
}

static void on_pass(weir_actor *self, const weir_message *m) {
    weir__stepper *s = weir_state(self);
    weir_error *error = NULL;
    weir__pass *p, **at = &s->queue;
    int queued = 0;
    for (; *at; at = &(*at)->next)
        queued++;
    int code = !s->forward            ? weir_fail(&error, WEIR_ESTATE, "pass: the model is not loaded")
               : queued >= MAX_QUEUED ? weir_fail(&error, WEIR_EBUSY, "pass: %d passes wait already", queued)
                                      : weir__pass_new(s, weir_message_body(m), &p, &error);
    if (code) {
        reply_error(self, m, code, error);
        return;
    }
    p->caller = weir_message_from(m);
    p->to = weir_defer(self, m);
    *at = p;
    start_next(self);
}

static void on_cancel(weir_actor *self, const weir_message *m) {
    weir__stepper *s = weir_state(self);
    int64_t tag = 0;
    weir_address from = weir_message_from(m);
    weir_cursor c = weir_read(weir_message_body(m), NULL);
    bool wanted = weir_read_int(&c, &tag);
    weir_reply(self, m, NULL);
    if (!wanted)
        return;
    drop_queued(self, from, &tag);
    if (s->current && s->current->caller == from && s->current->tag == tag)
        weir__drive_fail(self, s->current, weir_error_new(WEIR_ECANCELLED, NULL, NULL, "the pass was cancelled"));
}

static void on_unit_done(weir_actor *self, const weir_message *m) {
    int64_t status, ordinal;
    if (read_notice(self, m, &status, &ordinal))
        weir__drive_unit_done(self, status, ordinal);
}

static void on_pass_done(weir_actor *self, const weir_message *m) {
    int64_t status, id;
    if (read_notice(self, m, &status, &id))
        weir__drive_pass_done(self, status, id);
}

/* ---- the actor ---- */

static void on_device_lost(weir_actor *self, const weir_message *m) {
    if (weir__own_notice(self, m) && weir__device_lost(((weir__stepper *)weir_state(self))->device))
        exit_lost(self);
}

static void fini(weir_system *system, void *state) {
    weir__stepper *s = state;
    weir__stream_close(s->stream);
    if (s->current)
        weir__pass_free(s, s->current);
    while (s->queue) {
        weir__pass *p = s->queue;
        s->queue = p->next;
        weir__pass_free(s, p);
    }
    unprepare(s);
    weir__checkpoint_unref(s->checkpoint);
    weir__free(system, s);
}

static const weir_handler handlers[] = {{"prepare", on_prepare},
                                        {"open", on_open},
                                        {"close", on_close},
                                        {"pass", on_pass},
                                        {"cancel", on_cancel},
                                        {"use", on_use},
                                        {"unit_done", on_unit_done},
                                        {"pass_done", on_pass_done},
                                        {"tables_done", on_tables_done},
                                        {"device_lost", on_device_lost},
                                        {NULL, NULL}};
const weir_behaviour weir__stepper_behaviour = {.name = "stepper", .handlers = handlers, .down = on_down, .fini = fini};

int weir__stepper_spawn(weir_system *system, weir__device *d, weir__checkpoint *c, const weir__stepper_options *o, weir_address *out,
                        weir_error **error) {
    weir__stepper *s = weir__alloc(system, sizeof *s);
    if (!s)
        return weir_fail(error, WEIR_ENOMEM, "stepper: no memory");
    *s = (weir__stepper){
        .system = system, .options = *o, .device = d, .checkpoint = weir__checkpoint_ref(c), .units = weir__checkpoint_graph(c)->units};
    const struct {
        weir_verb *verb;
        const char *name;
    } verbs[] = {{&s->begin, "begin"},         {&s->acquire, "acquire"},     {&s->complete, "complete"},
                 {&s->finish, "finish"},       {&s->abort, "abort"},         {&s->banks, "banks"},
                 {&s->unit_done, "unit_done"}, {&s->pass_done, "pass_done"}, {&s->tables_done, "tables_done"}};
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        *verbs[i].verb = weir_intern(system, verbs[i].name);
    int code = weir_spawn(system, &weir__stepper_behaviour, s, NULL, out, error);
    if (code)
        return code;
    s->self = *out;
    return weir__actor_stream(system, *out, d, "stepper", &s->stream, error);
}
