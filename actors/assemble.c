/* assemble.c: the steps from nothing, or from what is left, to a whole model (model.h). Loading takes all of them; after the end of a member the same steps start
 * it anew, prepare it and tell its neighbours where it is. What each actor does meanwhile is its own: who needs a member that is missing waits to be told. */
#include "model.h"

enum { WAITS = -1 }; /* a step: goes on when an answer is there */

#define PERIOD INT64_C(5000000000) /* ns in which restarts are counted: a member that lives longer is not in a circle of deaths */
#define SECOND_PAUSE                                                                                                                       \
    INT64_C(10000000) /* ns; the first restart comes at once, each further one within the period after twice the pause of the one before */

bool weir__model_whole(const weir__model *m) {
    for (int i = 0; i < WEIR__MEMBERS; i++)
        if (!m->members[i].address || !m->members[i].ready || m->members[i].stale)
            return false;
    return true;
}

/* ---- answers to steps ---- */

/* What was waited for is there, or will not be (error). */
static void go_on(weir_actor *self, const weir_error *error) {
    weir__model *m = weir_state(self);
    m->asked = false;
    if (error)
        weir__model_broken(self, weir_error_ref(error));
    else
        weir__model_assemble(self);
}

static void on_ready(weir_actor *self, void *data, const weir_message *reply, const weir_error *error) {
    weir__member *p = data;
    (void)reply;
    p->ready = !error;
    go_on(self, error);
}

static void on_told(weir_actor *self, void *data, const weir_message *reply, const weir_error *error) {
    weir__member *p = data;
    (void)reply;
    p->stale = error != NULL;
    go_on(self, error);
}

static void on_opened(weir_actor *self, void *data, const weir_message *reply, const weir_error *error) {
    weir__model *m = weir_state(self);
    void *checkpoint;
    weir_cursor c = weir_read(reply ? weir_message_body(reply) : NULL, NULL);
    weir_error *wrong = NULL;
    (void)data;
    if (!error && weir_read_handle(&c, "checkpoint", &checkpoint))
        m->checkpoint = weir__checkpoint_ref(checkpoint);
    else if (!error)
        error = wrong = weir_error_new(WEIR_ETYPE, NULL, NULL, "residency.open: no checkpoint");
    go_on(self, error);
    weir_error_free(wrong);
}

/* Asks a member; WAITS, or why not. body: NULL is ENOMEM, but for a verb without arguments */
static int ask(weir_actor *self, enum weir__member_name which, weir_verb verb, weir_body *body, bool empty, weir_reply_fn *done) {
    weir__model *m = weir_state(self);
    if (!body && !empty)
        return WEIR_ENOMEM;
    int code = weir_call(self, m->members[which].address, verb, body, -1, done, &m->members[which], NULL);
    m->asked = !code;
    return code ? code : WAITS;
}

/* ---- waiting for what a dead member left on the device ---- */

static void on_patience_over(weir_actor *self, void *data, uint64_t missed) {
    weir__model *m = weir_state(self);
    (void)data, (void)missed;
    m->patience = 0;
    weir__quarantine(m->system, m->members[m->draining].dead); /* which posts the notice */
}

static int wait_drained(weir_actor *self, enum weir__member_name which) {
    weir__model *m = weir_state(self);
    weir__notice *n = weir__notice_new(m->system, weir_self(self), weir_self(self), m->drained, NULL);
    if (!n)
        return WEIR_ENOMEM;
    int code = weir_timer(self, m->drain, WEIR_TIMER_ONCE, on_patience_over, NULL, &m->patience);
    if (code) {
        weir__notice_free(n);
        return code;
    }
    m->draining = which;
    m->asked = true;
    weir__when_drained(m->system, m->members[which].dead, n);
    return WAITS;
}

void weir__model_drained(weir_actor *self, const weir_message *msg) {
    weir__model *m = weir_state(self);
    if (!weir__own_notice(self, msg) || !m->asked)
        return;
    if (m->patience)
        weir_timer_cancel(self, m->patience);
    m->patience = 0;
    m->members[m->draining].dead = 0;
    go_on(self, NULL);
}

/* ---- the steps ---- */

static int spawn(weir__model *m, enum weir__member_name which, weir_address model, weir_address *out, weir_error **error) {
    const weir__member *p = m->members;
    weir__stepper_options so = {m->options, p[WEIR__POLICY].address, p[WEIR__EXPERTS].address};
    weir__generator_options go = {p[WEIR__STEPPER].address, p[WEIR__RESIDENCY].address, model, m->options.context};
    switch (which) {
    case WEIR__RESIDENCY:
        return weir__residency_spawn(m->system, m->device, m->checkpoint, out, error);
    case WEIR__POLICY:
        return weir__policy_spawn(m->system, m->device, m->checkpoint, p[WEIR__RESIDENCY].address, out, error);
    case WEIR__EXPERTS:
        return weir__experts_spawn(m->system, m->device, out, error);
    case WEIR__STEPPER:
        return weir__stepper_spawn(m->system, m->device, m->checkpoint, &so, out, error);
    default:
        return weir__generator_spawn(m->system, m->checkpoint, &go, out, error);
    }
}

static void mark_neighbours(weir__model *m, enum weir__member_name which) {
    static const bool knows[WEIR__MEMBERS][WEIR__MEMBERS] = {/* [who][whom] */
                                                             [WEIR__POLICY] = {[WEIR__RESIDENCY] = true},
                                                             [WEIR__STEPPER] = {[WEIR__POLICY] = true, [WEIR__EXPERTS] = true},
                                                             [WEIR__GENERATOR] = {[WEIR__STEPPER] = true, [WEIR__RESIDENCY] = true}};
    for (int who = 0; who < WEIR__MEMBERS; who++)
        if (knows[who][which] && m->members[who].address)
            m->members[who].stale = true;
}

/* A member that cannot be watched is not kept. */
static int have(weir_actor *self, enum weir__member_name which, weir_error **error) {
    weir__model *m = weir_state(self);
    weir__member *p = &m->members[which];
    weir_address a;
    if (p->address)
        return WEIR_OK;
    if (p->dead && weir__lingering(m->system, p->dead))
        return wait_drained(self, which);
    int code = spawn(m, which, weir_self(self), &a, error);
    if (code)
        return code;
    code = weir_monitor(self, a);
    if (code) {
        weir_kill(m->system, a);
        return weir_fail(error, code, "%s cannot be watched: %s", weir__member_names[which], weir_code_text(code));
    }
    *p = (weir__member){.address = a, .ready = which == WEIR__EXPERTS || which == WEIR__GENERATOR};
    mark_neighbours(m, which);
    return WEIR_OK;
}

static int tell(weir_actor *self, enum weir__member_name which) {
    weir__model *m = weir_state(self);
    const weir__member *p = m->members;
    weir_system *s = m->system;
    weir_body *b;
    if (!p[which].stale)
        return WEIR_OK;
    if (which == WEIR__POLICY)
        b = weir_pack(s, "{su}", "residency", p[WEIR__RESIDENCY].address);
    else if (which == WEIR__STEPPER)
        b = weir_pack(s, "{susu}", "policy", p[WEIR__POLICY].address, "experts", p[WEIR__EXPERTS].address);
    else
        b = weir_pack(s, "{susu}", "stepper", p[WEIR__STEPPER].address, "residency", p[WEIR__RESIDENCY].address);
    return ask(self, which, m->use, b, false, on_told);
}

static void choose_options(weir__model *m) {
    int64_t trained = weir__checkpoint_config(m->checkpoint)->context;
    int64_t context = m->context ? m->context : trained < WEIR_DEFAULT_CONTEXT ? trained : WEIR_DEFAULT_CONTEXT;
    m->options.context = (uint32_t)context;
    if (!m->options.tile)
        m->options.tile = WEIR_DEFAULT_TILE;
    if (m->options.tile > m->options.context)
        m->options.tile = m->options.context;
}

/* One that was lost is made anew when the streams of all who used it are gone: they have been told. */
static int have_device(weir_actor *self, weir_error **error) {
    weir__model *m = weir_state(self);
    const char *name = *m->device_name ? m->device_name : NULL;
    if (m->device && !weir__device_lost(m->device))
        return WEIR_OK;
    int code = weir__device_open_start(m->system, name, m->threads, weir_self(self), m->device_opened, &m->device, &m->opening, error);
    if (code || !m->opening)
        return code;
    m->asked = true;
    return WAITS;
}

void weir__model_device_opened(weir_actor *self, const weir_message *msg) {
    weir__model *m = weir_state(self);
    weir_error *error = NULL;
    if (!weir__own_notice(self, msg) || !m->opening)
        return;
    int code = weir__device_open_end(m->opening, &m->device, &error);
    m->opening = NULL;
    m->asked = false;
    if (code)
        weir__model_broken(self, error ? error : weir_error_new(code, NULL, NULL, "load: %s", weir_code_text(code)));
    else
        weir__model_assemble(self);
}

/* The file is opened once: a new residency is given the checkpoint that is there. */
static int have_file(weir_actor *self, weir_error **error) {
    weir__model *m = weir_state(self);
    weir__member *p = &m->members[WEIR__RESIDENCY];
    int code = have(self, WEIR__RESIDENCY, error);
    if (code)
        return code;
    if (!m->checkpoint)
        return ask(self, WEIR__RESIDENCY, m->open, weir_pack(m->system, "si", m->path, (int64_t)m->quant), false, on_opened);
    p->ready = true;
    choose_options(m);
    return WEIR_OK;
}

static int have_policy(weir_actor *self, weir_error **error) {
    int code = have(self, WEIR__POLICY, error);
    return code ? code : tell(self, WEIR__POLICY);
}

static int have_experts(weir_actor *self, weir_error **error) {
    return have(self, WEIR__EXPERTS, error);
}

/* One that is ready is told of a new policy only when that is warm. */
static int have_stepper(weir_actor *self, weir_error **error) {
    weir__model *m = weir_state(self);
    const weir__member *p = &m->members[WEIR__STEPPER];
    int code = have(self, WEIR__STEPPER, error);
    if (!code && !p->ready)
        code = tell(self, WEIR__STEPPER);
    if (!code && !p->ready)
        code = ask(self, WEIR__STEPPER, m->prepare, NULL, true, on_ready);
    return code;
}

static int have_units(weir_actor *self, weir_error **error) {
    weir__model *m = weir_state(self);
    (void)error;
    if (m->members[WEIR__POLICY].ready)
        return WEIR_OK;
    weir_body *b = weir_pack(m->system, m->progress ? "u" : "n", (uint64_t)m->progress);
    return ask(self, WEIR__POLICY, m->warm, b, false, on_ready);
}

static int tell_stepper(weir_actor *self, weir_error **error) {
    (void)error;
    return tell(self, WEIR__STEPPER);
}

static int have_generator(weir_actor *self, weir_error **error) {
    int code = have(self, WEIR__GENERATOR, error);
    return code ? code : tell(self, WEIR__GENERATOR);
}

typedef int step(weir_actor *self, weir_error **error);
/* The stepper takes its memory before the units are read: a context that does not fit is told at once. */
static step *const steps[] = {have_device, have_file, have_policy, have_experts, have_stepper, have_units, tell_stepper, have_generator};

void weir__model_assemble(weir_actor *self) {
    weir__model *m = weir_state(self);
    weir_error *error = NULL;
    int code = WEIR_OK;
    if (m->asked || m->backoff || m->stopping || !(m->loading || m->loaded))
        return;
    for (size_t i = 0; i < sizeof steps / sizeof *steps && !code; i++)
        code = steps[i](self, &error);
    if (code == WAITS)
        return;
    if (code) {
        weir__model_broken(self,
                           error ? error : weir_error_new(code, NULL, NULL, "assembling the model's actors: %s", weir_code_text(code)));
        return;
    }
    m->progress = 0; /* whoever wanted to see it has seen the load */
    if (m->loading) {
        m->loading = false;
        m->loaded = true;
        weir__answer_made(self, m->caller, weir__model_describe(m));
    }
    weir__model_answer_info(self);
}

/* ---- restarts ---- */

static void on_backoff_over(weir_actor *self, void *data, uint64_t missed) {
    weir__model *m = weir_state(self);
    (void)data, (void)missed;
    m->backoff = 0;
    weir__model_assemble(self);
}

/* Counts one more; false: there were too many. *pause: ns to wait before it */
static bool bear(weir__model *m, int64_t *pause) {
    int64_t now = weir_now(m->system);
    int kept = 0;
    for (int i = 0; i < m->n_restarts; i++)
        if (now - m->restarts[i] < PERIOD)
            m->restarts[kept++] = m->restarts[i];
    m->n_restarts = kept;
    if (kept >= m->intensity)
        return false;
    *pause = kept ? SECOND_PAUSE << (kept - 1) : 0;
    m->restarts[m->n_restarts++] = now;
    return true;
}

void weir__model_broken(weir_actor *self, weir_error *error) {
    weir__model *m = weir_state(self);
    int64_t pause;
    if (m->stopping || !m->loaded) {
        weir__model_load_failed(self, error);
        return;
    }
    if (m->backoff || m->opening) { /* several ends at once are one restart: all who used a device end when it is lost */
        weir_error_free(error);
        return;
    }
    if (!bear(m, &pause)) {
        m->members[WEIR__GENERATOR].address = 0; /* ends by itself, when it has told its requests why */
        weir_exit(self, weir_error_new(WEIR_EEXITED, "model", error, "the model's actors ended more than %lld times within %lld s: %s",
                                       (long long)m->intensity, (long long)(PERIOD / 1000000000), weir_error_text(error)));
        return;
    }
    weir_error_free(error);
    if (weir_timer(self, pause, WEIR_TIMER_ONCE, on_backoff_over, NULL, &m->backoff))
        weir__model_assemble(self); /* without memory to wait with it is tried at once */
}
