/* policy.c: the resident policy: every unit is fetched once and stays; one standing run of all units is granted until the generation changes. It counts what the
 * stepper reports, as if it had been asked for each unit. */
#include "actors.h"

#define IN_FLIGHT 4 /* fetches at a time: the next file read overlaps the packing before it */

typedef struct {
    weir_system *system;
    weir__device *device;
    weir__stream *stream;
    weir__checkpoint *checkpoint;
    weir_address residency, stepper; /* stepper: whose transaction is open, 0: none */
    weir_address progress;
    weir__buffer **blobs; /* [units + 1], NULL: not there yet */
    uint32_t total, asked, there;
    uint64_t bytes;
    int64_t generation;
    int64_t leased; /* ordinal of the active lease, -1: none */
    bool warming;
    weir_reply_to warm_to;
    weir_error *failed;
    uint64_t passes, acquired, completed, aborted;
    weir_verb fetch, progress_verb;
} policy;

static weir_error *state_error(const char *text) {
    return weir_error_new(WEIR_ESTATE, NULL, NULL, "%s", text);
}

/* ---- warm: fetch all units, a few at a time ---- */

static void warm_next(weir_actor *self);

static void drop_blobs(policy *p) {
    for (uint32_t i = 0; p->blobs && i < p->total; i++) {
        weir__buffer_unref(p->blobs[i]);
        p->blobs[i] = NULL;
    }
    p->asked = p->there = 0;
    p->bytes = 0;
}

/* After a failure it may be asked for again. */
static void warm_end(weir_actor *self) {
    policy *p = weir_state(self);
    p->warming = false;
    if (p->failed) {
        drop_blobs(p);
        weir_answer_error(self, p->warm_to, p->failed);
    } else
        weir__answer_made(self, p->warm_to, weir_pack(p->system, "u", p->bytes));
    p->failed = NULL;
}

static void on_fetched(weir_actor *self, void *data, const weir_message *reply, const weir_error *error) {
    policy *p = weir_state(self);
    uint32_t ordinal = (uint32_t)(uintptr_t)data;
    weir_cursor c = weir_read(reply ? weir_message_body(reply) : NULL, NULL);
    void *blob;
    if (error && !p->failed)
        p->failed = weir_error_ref(error);
    if (!error && weir_read_handle(&c, "buffer", &blob)) {
        p->blobs[ordinal] = weir__buffer_ref(blob);
        p->bytes += weir__checkpoint_unit(p->checkpoint, ordinal)->blob_bytes;
    } else if (!p->failed) {
        p->failed = weir_error_new(WEIR_ETYPE, NULL, NULL, "residency.fetch: no buffer for unit %u", ordinal);
    }
    p->there++;
    if (p->progress)
        weir_send(self, p->progress, p->progress_verb, weir_pack(p->system, "uu", p->bytes, weir__checkpoint_bytes(p->checkpoint)));
    warm_next(self);
}

static void warm_next(weir_actor *self) {
    policy *p = weir_state(self);
    while (!p->failed && p->asked < p->total && p->asked - p->there < IN_FLIGHT) {
        uint32_t ordinal = p->asked;
        int code = weir_call(self, p->residency, p->fetch, weir_pack(p->system, "i", (int64_t)ordinal), -1, on_fetched,
                             (void *)(uintptr_t)ordinal, NULL);
        if (code)
            p->failed = weir_error_new(code, NULL, NULL, "unit %u cannot be asked for", ordinal);
        else
            p->asked++;
    }
    if (p->there == p->asked && (p->failed || p->there == p->total))
        warm_end(self);
}

static void on_warm(weir_actor *self, const weir_message *m) {
    policy *p = weir_state(self);
    int64_t progress = 0;
    if (p->warming || p->there) {
        weir_reply_error(self, m, state_error("the units are being fetched already"));
        return;
    }
    weir_cursor c = weir_read(weir_message_body(m), NULL);
    weir_read_int(&c, &progress);
    p->progress = (weir_address)progress;
    p->warming = true;
    p->warm_to = weir_defer(self, m);
    warm_next(self);
}

/* Where to ask from now on. */
static void on_use(weir_actor *self, const weir_message *m) {
    policy *p = weir_state(self);
    weir_address residency;
    if (!weir__read_neighbour(self, m, "residency", &residency))
        return;
    p->residency = residency ? residency : p->residency;
    weir_reply(self, m, NULL);
}

/* ---- the transaction of a pass ---- */

static weir_body *grant(policy *p, int64_t known) {
    weir_writer *w = weir_write_begin(p->system);
    weir_write_int(w, p->generation);
    if (known == p->generation) {
        weir_write_nil(w);
        return weir_write_end(w);
    }
    weir_write_array(w);
    weir_write_array(w);
    weir_write_int(w, 0);
    weir_write_array(w);
    for (uint32_t i = 0; i < p->total; i++)
        weir_write_handle(w, (weir_handle){&weir__buffer_handle, weir__buffer_ref(p->blobs[i])});
    weir_write_close(w);
    weir_write_close(w);
    weir_write_close(w);
    return weir_write_end(w);
}

static void end_transaction(weir_actor *self) {
    policy *p = weir_state(self);
    if (p->stepper)
        weir_demonitor(self, p->stepper);
    p->stepper = 0;
    p->leased = -1;
}

static void on_begin(weir_actor *self, const weir_message *m) {
    policy *p = weir_state(self);
    int64_t rows = 0, known = 0;
    weir_cursor c = weir_read(weir_message_body(m), NULL);
    if (p->stepper == weir_message_from(m)) { /* there was no memory to send it the abort of that one */
        p->aborted++;
        end_transaction(self);
    }
    if (p->there < p->total || p->warming || p->stepper) {
        weir_reply_error(self, m, state_error(p->stepper ? "begin: a transaction is open" : "begin: the units are not there yet"));
        return;
    }
    if (weir_read_int(&c, &rows))
        weir_read_int(&c, &known);
    weir_body *b = grant(p, known);
    if (!b || weir_monitor(self, weir_message_from(m))) {
        weir_body_free(b);
        weir_reply_error(self, m, weir_error_new(WEIR_ENOMEM, NULL, NULL, "policy.begin: no memory"));
        return;
    }
    p->stepper = weir_message_from(m);
    p->passes++;
    weir_reply(self, m, b);
}

static void on_acquire(weir_actor *self, const weir_message *m) {
    policy *p = weir_state(self);
    int64_t ordinal = -1;
    weir_cursor c = weir_read(weir_message_body(m), NULL);
    if (!p->stepper || p->leased >= 0 || !weir_read_int(&c, &ordinal) || ordinal < 0 || ordinal >= p->total) {
        weir_reply_error(self, m,
                         state_error(!p->stepper      ? "acquire: no transaction is open"
                                     : p->leased >= 0 ? "acquire: a lease is active"
                                                      : "acquire: no such unit"));
        return;
    }
    p->leased = ordinal;
    p->acquired++;
    weir__reply_made(self, m, weir_pack(p->system, "h", (weir_handle){&weir__buffer_handle, weir__buffer_ref(p->blobs[ordinal])}));
}

static void on_complete(weir_actor *self, const weir_message *m) {
    policy *p = weir_state(self);
    int64_t ordinal = -1;
    weir_cursor c = weir_read(weir_message_body(m), NULL);
    if (!weir_read_int(&c, &ordinal) || p->leased < 0 || ordinal != p->leased) {
        weir_reply_error(self, m, state_error("complete: this unit is not leased"));
        return;
    }
    p->leased = -1;
    p->completed++;
    weir_reply(self, m, NULL);
}

static void on_finish(weir_actor *self, const weir_message *m) {
    policy *p = weir_state(self);
    int64_t standing = 0;
    weir_cursor c = weir_read(weir_message_body(m), NULL);
    if (!p->stepper || p->leased >= 0) {
        weir_reply_error(self, m, state_error(p->stepper ? "finish: a lease is active" : "finish: no transaction is open"));
        return;
    }
    weir_read_int(&c, &standing);
    p->acquired += (uint64_t)standing;
    p->completed += (uint64_t)standing;
    end_transaction(self);
    weir_reply(self, m, NULL);
}

static void on_abort(weir_actor *self, const weir_message *m) {
    policy *p = weir_state(self);
    if (p->stepper)
        p->aborted++;
    end_transaction(self);
    weir_reply(self, m, NULL);
}

static void on_down(weir_actor *self, weir_address who, const weir_error *why) {
    policy *p = weir_state(self);
    (void)why;
    if (who != p->stepper)
        return;
    p->aborted++;
    p->stepper = 0;
    p->leased = -1;
}

static void on_stats(weir_actor *self, const weir_message *m) {
    policy *p = weir_state(self);
    weir__reply_made(self, m,
                     weir_pack(p->system, "{sssusususususu}", "name", "resident", "units", (uint64_t)p->there, "bytes", p->bytes, "passes",
                               p->passes, "acquired", p->acquired, "completed", p->completed, "aborted", p->aborted));
}

static void on_device_lost(weir_actor *self, const weir_message *m) {
    weir__on_device_lost(self, m, ((policy *)weir_state(self))->device);
}

static void fini(weir_system *s, void *state) {
    policy *p = state;
    weir__stream_close(p->stream);
    drop_blobs(p);
    weir__free(s, p->blobs);
    weir_error_free(p->failed);
    weir__checkpoint_unref(p->checkpoint);
    weir__free(s, p);
}

static const weir_handler handlers[] = {
    {"warm", on_warm},     {"use", on_use},     {"begin", on_begin}, {"acquire", on_acquire},         {"complete", on_complete},
    {"finish", on_finish}, {"abort", on_abort}, {"stats", on_stats}, {"device_lost", on_device_lost}, {NULL, NULL}};
const weir_behaviour weir__policy_behaviour = {.name = "policy", .handlers = handlers, .down = on_down, .fini = fini};

int weir__policy_spawn(weir_system *s, weir__device *d, weir__checkpoint *c, weir_address residency, weir_address *out,
                       weir_error **error) {
    policy *p = weir__alloc(s, sizeof *p);
    if (!p)
        return weir_fail(error, WEIR_ENOMEM, "policy: no memory");
    *p = (policy){.system = s,
                  .device = d,
                  .checkpoint = weir__checkpoint_ref(c),
                  .residency = residency,
                  .total = weir__checkpoint_graph(c)->units + 1,
                  .generation = 1,
                  .leased = -1,
                  .fetch = weir_intern(s, "fetch"),
                  .progress_verb = weir_intern(s, "progress")};
    p->blobs = weir__alloc(s, sizeof *p->blobs * p->total);
    if (!p->blobs) {
        weir_fail(error, WEIR_ENOMEM, "policy: no memory for %u units", p->total);
        fini(s, p);
        return WEIR_ENOMEM;
    }
    int code = weir_spawn(s, &weir__policy_behaviour, p, NULL, out, error);
    return code ? code : weir__actor_stream(s, *out, d, "policy", &p->stream, error);
}
