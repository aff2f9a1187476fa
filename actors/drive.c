/* drive.c: how a pass is driven over the stream: policy.begin; per unit acquire, work, complete; finish; with the host at most WEIR_AHEAD units before the
 * device (stepper.h). Units under a standing grant are not asked for; a pass of one tile whose units are all granted is one submission. */
#include "stepper.h"

static void advance(weir_actor *self, weir__pass *p);

/* ---- failing ---- */

static void on_aborted(weir_actor *self, void *data, const weir_message *reply, const weir_error *error) {
    weir__pass *p = data;
    (void)reply, (void)error; /* abort cannot fail */
    weir_answer_error(self, p->to, p->error);
    p->error = NULL;
    weir__stepper_ended(self, p);
}

static void end_failed(weir_actor *self, weir__pass *p) {
    weir__stepper *s = weir_state(self);
    p->phase = WEIR__ABORT;
    if (p->transaction) {
        s->generation = 0; /* its copy of the base pointers may not have arrived: the next pass is granted all of them again */
        p->transaction = false;
        weir_body *b = p->lease >= 0 ? weir_pack(s->system, "i", p->lease) : weir_pack(s->system, "n");
        if (!weir_call(self, s->options.policy, s->abort, b, 0, on_aborted, p, NULL))
            return;
    }
    on_aborted(self, p, NULL, NULL);
}

static int notify(weir__stepper *s, weir__pass *p, weir_verb verb, int64_t arg);

void weir__drive_fail(weir_actor *self, weir__pass *p, weir_error *error) {
    weir__stepper *s = weir_state(self);
    error = weir__why_failed(s->device, error);
    if (p->error) {
        weir_error_free(error);
    } else {
        p->error = error;
        if (p->phase != WEIR__QUEUED) {
            weir__stream_skip(s->stream);
            /* when this notice is there, nothing of the pass is on the stream, and its failure is cleared; without one nobody could tell */
            int code = notify(s, p, s->pass_done, (int64_t)p->id);
            if (code) {
                weir_exit(self, weir_error_new(code, NULL, weir_error_ref(error), "the end of a failed pass cannot be told"));
                return;
            }
        }
    }
    /* a pass that waits for a reply of the policy, or for its notices, ends when they are there */
    if (p->notices == 0 && (p->phase == WEIR__RUNNING || p->phase == WEIR__QUEUED))
        end_failed(self, p);
}

static bool submit_failed(weir_actor *self, weir__pass *p, int code) {
    if (code)
        weir__drive_fail(self, p, weir__stream_refused(((weir__stepper *)weir_state(self))->device, "stepper", code));
    return code != 0;
}

/* True if the pass must end now that nothing it waited for is open. */
static bool failing(weir_actor *self, weir__pass *p) {
    if (!p->error)
        return false;
    if (p->notices == 0)
        end_failed(self, p);
    return true;
}

/* ---- leases: blobs that the recorded lists point at ---- */

static void set_lease(weir__stepper *s, uint32_t ordinal, weir__buffer *blob) {
    weir__buffer_ref(blob);
    weir__buffer_unref(s->leases[ordinal]);
    s->leases[ordinal] = blob;
    weir__forward_set_base(s->forward, ordinal, blob);
}

/* Work under way keeps a unit's blob even when this actor and the policy end. */
static int keep_blob(weir__stepper *s, uint32_t ordinal) {
    return weir__stream_keep(s->stream, s->leases[ordinal]);
}

static bool read_grants(weir__stepper *s, weir_cursor c) {
    uint32_t runs, fields, n;
    if (!weir_read_array(&c, &runs))
        return true; /* nil: as before */
    for (uint32_t u = 0; u <= s->units; u++)
        s->granted[u] = false;
    while (runs--) {
        int64_t first;
        void *blob;
        if (!weir_read_array(&c, &fields) || fields != 2 || !weir_read_int(&c, &first) || first < 0 || !weir_read_array(&c, &n) ||
            (uint64_t)first + n > s->units + 1)
            return false;
        for (uint32_t u = (uint32_t)first; n--; u++) {
            if (!weir_read_handle(&c, "buffer", &blob) || weir__buffer_size(blob) < weir__checkpoint_unit(s->checkpoint, u)->blob_bytes)
                return false;
            set_lease(s, u, blob);
            s->granted[u] = true;
        }
    }
    return true;
}

/* ---- submitting ---- */

/* Copies the residual stream of all rows into row block `index` of the capture. */
static int capture(weir__stepper *s, weir__pass *p, uint32_t index) {
    size_t bytes = (size_t)s->forward->step.view.rows * (size_t)weir__checkpoint_config(s->checkpoint)->width * sizeof(float);
    if (!p->hidden_out)
        return WEIR_OK;
    return weir__stream_copy(s->stream, p->hidden_out, bytes * index, s->forward->memory,
                             (size_t)((uint8_t *)s->forward->w.x - (uint8_t *)weir__buffer_pointer(s->forward->memory)), bytes);
}

static int capture_normed(weir__stepper *s, weir__pass *p) {
    weir__forward *f = s->forward;
    size_t row = (size_t)weir__checkpoint_config(s->checkpoint)->width * sizeof(float), tile = f->options.tile,
           rows = (size_t)f->step.view.rows;
    size_t from = (size_t)((uint8_t *)f->w.normed - (uint8_t *)weir__buffer_pointer(f->memory));
    int code = WEIR_OK;
    for (size_t first = 0; p->hidden_out && first < rows && !code; first += tile) {
        size_t n = rows - first < tile ? rows - first : tile;
        code = weir__forward_run(f, s->stream, f->normed, (uint32_t)(first / tile));
        if (!code)
            code = weir__stream_copy(s->stream, p->hidden_out, (s->units * rows + first) * row, f->memory, from, n * row);
    }
    return code;
}

static int submit_finish(weir__stepper *s, weir__pass *p) {
    weir__forward *f = s->forward;
    size_t row = (size_t)weir__checkpoint_config(s->checkpoint)->vocab * sizeof(float), tile = f->out_tile,
           outputs = (size_t)f->step.view.outputs;
    size_t from = (size_t)((uint8_t *)f->w.logits - (uint8_t *)weir__buffer_pointer(f->memory));
    int code = capture_normed(s, p);
    for (size_t first = 0; first < outputs && !code; first += tile) {
        size_t n = outputs - first < tile ? outputs - first : tile;
        code = weir__forward_run(f, s->stream, f->finish, (uint32_t)(first / tile));
        if (!code && p->logits_out)
            code = weir__stream_copy(s->stream, p->logits_out, first * row, f->memory, from, n * row);
    }
    return code ? code : weir__step_pull(&f->step, s->stream);
}

static int notify(weir__stepper *s, weir__pass *p, weir_verb verb, int64_t arg) {
    int code = weir__stream_notify(s->stream, s->self, verb, arg);
    if (!code)
        p->notices++;
    return code;
}

/* One submission for everything: the recorded step, which a cancel must be able to end soon. */
static bool whole_pass(const weir__stepper *s, const weir__pass *p) {
    if (!weir__device_stops_lists(s->device) && s->forward->step.view.rows > WEIR_WHOLE_ROWS)
        return false;
    for (uint32_t u = 0; u <= s->units; u++)
        if (!s->granted[u])
            return false;
    return !p->hidden_out && !p->logits_out && weir__forward_tiles(s->forward) <= 1 && weir__forward_out_tiles(s->forward) <= 1;
}

static int submit_whole(weir__stepper *s, weir__pass *p) {
    int code = weir__step_push(&s->forward->step, s->stream);
    if (!code)
        code = weir__forward_run(s->forward, s->stream, s->forward->whole, 0);
    if (!code)
        code = weir__step_pull(&s->forward->step, s->stream);
    for (uint32_t u = 0; u <= s->units && !code; u++)
        code = keep_blob(s, u);
    p->standing = s->units + 1;
    p->unit = s->units + 1;
    p->submitted = true;
    return code ? code : notify(s, p, s->pass_done, (int64_t)p->id);
}

/* ---- unit by unit ---- */

/* done: an event to record after the unit's work, or NULL. */
static int submit_unit(weir__stepper *s, weir__pass *p, uint32_t u, weir__event *done) {
    int code;
    if (u == s->units) { /* the static modules: final norm, head, sampling */
        code = submit_finish(s, p);
        p->submitted = true;
    } else {
        code = weir__forward_run_tiles(s->forward, s->stream, s->forward->units[u]);
        if (!code && u + 1 < s->units)
            code = capture(s, p, u + 1);
    }
    if (!code)
        code = keep_blob(s, u);
    if (!code && done)
        code = weir__stream_record(s->stream, done);
    return code ? code : notify(s, p, u == s->units ? s->pass_done : s->unit_done, u == s->units ? (int64_t)p->id : (int64_t)u);
}

static void on_completed(weir_actor *self, void *data, const weir_message *reply, const weir_error *error) {
    weir__pass *p = data;
    (void)reply;
    p->phase = WEIR__RUNNING;
    p->lease = -1; /* it was handed over, whatever comes back */
    if (error)
        weir__drive_fail(self, p, weir_error_ref(error));
    else if (!failing(self, p))
        advance(self, p);
}

/* Hands the unit back with the event after its work (its count is taken); the next acquire waits for the answer. */
static int complete(weir_actor *self, weir__pass *p, uint32_t u, weir__event *done) {
    weir__stepper *s = weir_state(self);
    p->phase = WEIR__COMPLETE;
    weir_body *b = weir_pack(s->system, "ih", (int64_t)u, (weir_handle){&weir__event_handle, done});
    int code = b ? weir_call(self, s->options.policy, s->complete, b, 0, on_completed, p, NULL) : WEIR_ENOMEM;
    if (code)
        p->phase = WEIR__RUNNING;
    return code;
}

static void on_acquired(weir_actor *self, void *data, const weir_message *reply, const weir_error *error) {
    weir__stepper *s = weir_state(self);
    weir__pass *p = data;
    void *blob;
    weir_cursor c = weir_read(reply ? weir_message_body(reply) : NULL, NULL);
    uint32_t u = p->unit;
    p->phase = WEIR__RUNNING;
    if (error) {
        weir__drive_fail(self, p, weir_error_ref(error));
        return;
    }
    p->lease = u;
    if (failing(self, p))
        return;
    if (!weir_read_handle(&c, "buffer", &blob) || weir__buffer_size(blob) < weir__checkpoint_unit(s->checkpoint, u)->blob_bytes) {
        weir__drive_fail(self, p, weir_error_new(WEIR_ETYPE, NULL, NULL, "policy.acquire: no buffer for unit %u", u));
        return;
    }
    set_lease(s, u, blob);
    p->unit++;
    weir__event *done = NULL;
    int code = weir__event_new(s->device, &done);
    if (!code)
        code = weir__forward_push_bases(s->forward, s->stream, u, 1);
    if (!code)
        code = submit_unit(s, p, u, done);
    if (!code)
        code = complete(self, p, u, done);
    else
        weir__event_unref(done);
    submit_failed(self, p, code);
}

static void acquire(weir_actor *self, weir__pass *p, uint32_t u) {
    weir__stepper *s = weir_state(self);
    p->phase = WEIR__ACQUIRE;
    int code = weir_call(self, s->options.policy, s->acquire, weir_pack(s->system, "iii", (int64_t)u, INT64_C(0), (int64_t)u), -1,
                         on_acquired, p, NULL);
    if (code) {
        p->phase = WEIR__RUNNING;
        submit_failed(self, p, code);
    }
}

/* Units that may be before the device. A notice clears its stream's failure: where the step block and the slots are copied, nothing may follow the first unit's notice
 * before it has said that the copies were made. */
static uint32_t ahead(const weir__stepper *s, const weir__pass *p) {
    bool copied = s->forward->slots.device != s->forward->slots.host;
    return copied && p->units_done == 0 ? 0 : WEIR_AHEAD;
}

/* A slot may be set again only when no work reads it: an acquired unit runs alone in its slot, so that only the host's lead over the device counts. */
static void advance(weir_actor *self, weir__pass *p) {
    weir__stepper *s = weir_state(self);
    while (!p->submitted && p->unit < p->units_done + 1 + ahead(s, p)) {
        uint32_t u = p->unit;
        if (!s->granted[u]) {
            acquire(self, p, u);
            return;
        }
        p->unit++;
        p->standing++;
        if (submit_failed(self, p, submit_unit(s, p, u, NULL)))
            return;
    }
}

static int submit_begin(weir__stepper *s, weir__pass *p) {
    int code = weir__step_push(&s->forward->step, s->stream);
    if (!code)
        code = weir__forward_run_tiles(s->forward, s->stream, s->forward->begin);
    return code ? code : capture(s, p, 0);
}

/* ---- the transaction ---- */

static void on_begun(weir_actor *self, void *data, const weir_message *reply, const weir_error *error) {
    weir__stepper *s = weir_state(self);
    weir__pass *p = data;
    p->phase = WEIR__RUNNING;
    if (error) {
        /* a policy that failed in begin opened nothing, yet hears of it once */
        p->transaction = true;
        weir__drive_fail(self, p, weir_error_ref(error));
        return;
    }
    p->transaction = true;
    if (failing(self, p))
        return;
    weir_cursor c = weir_read(weir_message_body(reply), NULL);
    int64_t generation = 0;
    if (!weir_read_int(&c, &generation) || !read_grants(s, c)) {
        weir__drive_fail(self, p, weir_error_new(WEIR_ETYPE, NULL, NULL, "policy.begin: wanted a generation and standing runs of buffers"));
        return;
    }
    if (generation != s->generation && submit_failed(self, p, weir__forward_push_bases(s->forward, s->stream, 0, s->units + 1)))
        return;
    s->generation = generation;
    if (!s->granted[s->units]) {
        weir__drive_fail(
            self, p, weir_error_new(WEIR_EUNSUPPORTED, NULL, NULL, "policy.begin: the static modules (unit %u) are not granted", s->units));
        return;
    }
    if (whole_pass(s, p)) {
        submit_failed(self, p, submit_whole(s, p));
        return;
    }
    if (!submit_failed(self, p, submit_begin(s, p)))
        advance(self, p);
}

void weir__drive_start(weir_actor *self, weir__pass *p) {
    weir__stepper *s = weir_state(self);
    weir_error *error = NULL;
    int code = weir__pass_fill(s, p, &error);
    if (code) {
        weir__drive_fail(self, p, error ? error : weir_error_new(code, NULL, NULL, "pass refused"));
        return;
    }
    p->phase = WEIR__BEGIN;
    weir_body *b = weir_pack(s->system, "ii", (int64_t)s->forward->step.view.rows, s->generation);
    code = weir_call(self, s->options.policy, s->begin, b, -1, on_begun, p, NULL);
    if (code) {
        p->phase = WEIR__RUNNING;
        submit_failed(self, p, code);
    }
}

static void on_finished(weir_actor *self, void *data, const weir_message *reply, const weir_error *error) {
    weir__stepper *s = weir_state(self);
    weir__pass *p = data;
    (void)reply;
    p->phase = WEIR__RUNNING;
    if (error) {
        weir__drive_fail(self, p, weir_error_ref(error));
        return;
    }
    p->transaction = false;
    if (failing(self, p))
        return;
    weir_body *b = weir__pass_reply(s, p);
    weir__answer_made(self, p->to, b);
    weir__stepper_ended(self, p);
}

/* ---- notices of the stream ---- */

static weir_error *pass_failed(weir__stepper *s, int status) {
    char why[256];
    weir__stream_why(s->stream, why, sizeof why);
    return weir_error_new(status, NULL, NULL, "%s while a pass ran on stream stepper of device %s%s", weir_code_text(status),
                          weir__device_name(s->device), why);
}

static weir__pass *noticed(weir_actor *self, int64_t status) {
    weir__stepper *s = weir_state(self);
    weir__pass *p = s->current;
    if (!p || !p->notices)
        return NULL;
    p->notices--;
    if (status && !p->error)
        weir__drive_fail(self, p, pass_failed(s, (int)status));
    else if (!p->error)
        return p;
    else if (p->phase == WEIR__RUNNING)
        failing(self, p);
    return NULL;
}

void weir__drive_unit_done(weir_actor *self, int64_t status, int64_t ordinal) {
    weir__pass *p = noticed(self, status);
    if (!p)
        return;
    p->units_done = (uint32_t)ordinal + 1;
    if (p->phase == WEIR__RUNNING)
        advance(self, p);
}

void weir__drive_pass_done(weir_actor *self, int64_t status, int64_t id) {
    weir__stepper *s = weir_state(self);
    weir__pass *p = noticed(self, status);
    if (!p || p->id != (uint64_t)id)
        return;
    p->phase = WEIR__FINISH;
    int code = weir_call(self, s->options.policy, s->finish, weir_pack(s->system, "i", (int64_t)p->standing), -1, on_finished, p, NULL);
    if (code) {
        p->phase = WEIR__RUNNING;
        submit_failed(self, p, code);
    }
}
