/* generator.c: the actor that generates: each turn it makes one pass of all requests that may go on (prompts to prefill, rows to decode), gives every sampled
 * token to its request, and answers readers. Knows tokens and texts; of units and devices nothing (generator.h). */
#include "generator.h"

static void schedule(weir_actor *self);

/* ---- ends ---- */

/* Without memory to say so the sequence stays until this actor ends. */
static void close_sequence(weir_actor *self, uint64_t sequence) {
    weir__generator *g = weir_state(self);
    weir_body *b = weir_pack(g->system, "u", sequence);
    if (b)
        weir_send(self, g->options.stepper, g->close, b);
}

static void end_request(weir_actor *self, weir__request *r) {
    weir__generator *g = weir_state(self);
    weir_address owner = r->owner;
    if (r->sequence)
        close_sequence(self, r->sequence);
    weir__request_free(g, r);
    if (!weir__request_owner(g, owner))
        weir_demonitor(self, owner);
}

static void deliver(weir_actor *self, weir__request *r) {
    if (weir__request_deliver(self, r))
        end_request(self, r);
}

/* A request that fails before `generate` was answered is told there. */
static void fail_request(weir_actor *self, weir__request *r, weir_error *error) {
    if (weir__request_unopened(r)) {
        weir_answer_error(self, r->opening, error);
        end_request(self, r);
        return;
    }
    weir__request_fail(r, error);
    deliver(self, r);
}

static void cancel_request(weir_actor *self, weir__request *r) {
    weir__generator *g = weir_state(self);
    weir_body *b = r->state == WEIR__IN_PASS ? weir_pack(g->system, "i", g->tag) : NULL;
    if (b && !weir_send(self, g->options.stepper, g->cancel, b)) /* if it cannot be told, the pass ends by itself, without this request */
        g->cancelled = g->tag;
    weir_error *error = weir_error_new(WEIR_ECANCELLED, NULL, NULL, "request %llu was cancelled", (unsigned long long)r->id);
    if (weir__request_unopened(r))
        weir_answer_error(self, r->opening, error);
    else if (r->reading)
        weir_answer_error(self, r->reader, error);
    else
        weir_error_free(error);
    end_request(self, r);
}

/* ---- the stepper may be gone ---- */

/* Asked before its `down` may have come. */
static bool stepper_there(const weir__generator *g) {
    return !g->stepper_gone && weir__actor(g->system, g->options.stepper);
}

/* What a sequence held is gone with its stepper: the requests that have one end. */
static void fail_sequences(weir_actor *self, const weir_error *why) {
    weir__generator *g = weir_state(self);
    for (weir__request *r = g->requests, *next; r; r = next) {
        next = r->next;
        if (r->sequence && r->state != WEIR__ENDED)
            fail_request(self, r,
                         weir_error_new(WEIR_EEXITED, "stepper", why ? weir_error_ref(why) : NULL,
                                        "the stepper ended, and with it what request %llu had written", (unsigned long long)r->id));
    }
}

/* ---- the pass ---- */

static void write_run(weir_writer *w, const weir__request *r) {
    weir_write_array(w);
    weir_write_uint(w, r->sequence);
    weir_write_uint(w, r->position);
    if (r->prompt.size)
        weir_write_bin(w, r->prompt.data, r->prompt.size * 4);
    else
        weir_write_bin(w, &r->token, 4);
    weir_write_map(w);
    weir__write_key(w, "sample");
    weir__sampling_write(w, &r->sample, r->bias);
    weir_write_close(w);
    weir_write_close(w);
}

static size_t rows_of(const weir__request *r) {
    return r->prompt.size ? r->prompt.size : 1;
}

/* Marks the requests of the next pass; the pass holds at most the context's rows. */
static void choose(weir__generator *g) {
    size_t rows = 0;
    g->n_in_pass = 0;
    for (weir__request *r = g->requests; r && g->n_in_pass < WEIR_MAX_SEQUENCES; r = r->next) {
        if (r->state != WEIR__READY || rows + rows_of(r) > g->options.context)
            continue;
        rows += rows_of(r);
        r->state = WEIR__IN_PASS;
        g->in_pass[g->n_in_pass++] = r->id;
    }
}

static weir_body *pass_body(weir__generator *g) {
    weir_writer *w = weir_write_begin(g->system);
    weir_write_map(w);
    weir__write_key(w, "tag");
    weir_write_int(w, g->tag);
    weir__write_key(w, "runs");
    weir_write_array(w);
    for (uint32_t i = 0; i < g->n_in_pass; i++)
        write_run(w, weir__request_find(g, g->in_pass[i]));
    weir_write_close(w);
    weir_write_close(w);
    return weir_write_end(w);
}

/* The error of run i in a reply's list of errors, NULL: it was part. */
static weir_error *run_error(weir_cursor errors, uint32_t i) {
    uint32_t n, fields;
    int64_t run, code;
    const char *text;
    size_t size;
    if (!weir_read_array(&errors, &n))
        return NULL;
    while (n--) {
        if (!weir_read_array(&errors, &fields) || !weir_read_int(&errors, &run) || !weir_read_int(&errors, &code) ||
            !weir_read_bytes(&errors, &text, &size))
            return NULL;
        if (run == i)
            return weir_error_new((int)code, NULL, NULL, "%.*s", (int)size, text);
    }
    return NULL;
}

/* A full context ends a generation that has given text; a prompt that does not fit is an error. */
static void run_failed(weir_actor *self, weir__request *r, weir_error *error) {
    weir_error *e = NULL;
    if (weir_error_code(error) == WEIR_ECONTEXT && r->generated && !weir__request_finish(weir_state(self), r, "context", &e)) {
        weir_error_free(error);
        deliver(self, r);
        return;
    }
    weir_error_free(e);
    fail_request(self, r, error);
}

static void take_token(weir_actor *self, weir__request *r, int32_t token, const weir_logprobs *logprobs) {
    weir__generator *g = weir_state(self);
    weir_error *error = NULL;
    r->position += (uint32_t)rows_of(r);
    weir__ids_free(g->system, &r->prompt);
    r->prompt = (weir__ids){0};
    int code = weir__request_token(g, r, token, logprobs, &error);
    if (code)
        weir__request_fail(r, error ? error : weir_error_new(code, NULL, NULL, "generate: no memory for text"));
    deliver(self, r);
}

/* What a pass's reply has for its runs, in their order. */
typedef struct answers {
    weir_cursor errors, sampled, logprobs;
    uint32_t tokens;   /* left in sampled */
    bool has_logprobs; /* as many as tokens */
} answers;

static answers answers_in(const weir_message *reply) {
    weir_cursor map = weir__options(weir_message_body(reply), 0), none = weir_read(NULL, NULL);
    answers a = {none, none, none, 0, false};
    uint32_t n = 0;
    weir_read_find(map, "errors", &a.errors);
    if (weir_read_find(map, "sampled", &a.sampled))
        weir_read_array(&a.sampled, &a.tokens);
    a.has_logprobs = weir_read_find(map, "logprobs", &a.logprobs) && weir_read_array(&a.logprobs, &n) && n == a.tokens;
    return a;
}

/* The token of run i and, if they were asked for, its log-probabilities. NULL, or why there is none. */
static weir_error *next_token(answers *a, uint32_t i, int32_t *token, weir_logprobs *l, bool *has) {
    int64_t id = 0;
    weir_error *error = run_error(a->errors, i);
    *has = false;
    if (error)
        return error;
    if (!a->tokens || !weir_read_int(&a->sampled, &id))
        return weir_error_new(WEIR_ETYPE, NULL, NULL, "stepper.pass: no token for run %u", i);
    a->tokens--;
    *token = (int32_t)id;
    if (!a->has_logprobs)
        return NULL;
    weir_cursor at = a->logprobs;
    *has = weir__logprobs_read(&at, l);
    weir_read_skip(&a->logprobs);
    return NULL;
}

static void pass_succeeded(weir_actor *self, const weir_message *reply, const uint64_t *ids, uint32_t n) {
    answers a = answers_in(reply);
    for (uint32_t i = 0; i < n; i++) {
        int32_t token = 0;
        weir_logprobs l;
        bool has;
        weir_error *error = next_token(&a, i, &token, &l, &has);
        weir__request *r = weir__request_find(weir_state(self), ids[i]);
        if (r && !error && r->sample.logprobs && !has)
            error = weir_error_new(WEIR_ETYPE, NULL, NULL, "stepper.pass: no log-probabilities for run %u", i);
        if (!r)
            weir_error_free(error);
        else if (error)
            run_failed(self, r, error);
        else
            take_token(self, r, token, has ? &l : NULL);
    }
}

static void on_pass(weir_actor *self, void *data, const weir_message *reply, const weir_error *error) {
    weir__generator *g = weir_state(self);
    uint64_t ids[WEIR_MAX_SEQUENCES];
    uint32_t n = g->n_in_pass;
    bool again = error && weir_error_code(error) == WEIR_ECANCELLED && g->cancelled == g->tag;
    (void)data;
    for (uint32_t i = 0; i < n; i++)
        ids[i] = g->in_pass[i];
    g->n_in_pass = 0;
    g->tag = 0;
    if (reply)
        pass_succeeded(self, reply, ids, n);
    for (uint32_t i = 0; i < n && error; i++) {
        weir__request *r = weir__request_find(g, ids[i]);
        if (!r)
            continue;
        if (again)
            r->state = WEIR__READY; /* another request of the pass was cancelled: nothing of this one was written */
        else
            run_failed(self, r, weir_error_ref(error));
    }
    schedule(self);
}

static void schedule(weir_actor *self) {
    weir__generator *g = weir_state(self);
    if (g->tag || !stepper_there(g))
        return;
    choose(g);
    if (!g->n_in_pass)
        return;
    g->tag = (int64_t)++g->tags;
    weir_body *b = pass_body(g);
    int code = b ? weir_call(self, g->options.stepper, g->pass, b, -1, on_pass, NULL, NULL) : WEIR_ENOMEM;
    if (!code)
        return;
    weir_error *error = weir_error_new(code, NULL, NULL, "generate: the pass cannot be asked for");
    uint32_t n = g->n_in_pass;
    g->n_in_pass = 0;
    g->tag = 0;
    for (uint32_t i = 0; i < n; i++) {
        weir__request *r = weir__request_find(g, g->in_pass[i]);
        if (r)
            fail_request(self, r, weir_error_ref(error));
    }
    weir_error_free(error);
}

/* ---- a new request: ids, then a sequence ---- */

static void on_opened(weir_actor *self, void *data, const weir_message *reply, const weir_error *error) {
    weir__generator *g = weir_state(self);
    weir__request *r = weir__request_find(g, (uint64_t)(uintptr_t)data);
    weir_cursor c = weir_read(reply ? weir_message_body(reply) : NULL, NULL);
    int64_t sequence = 0;
    weir_read_int(&c, &sequence);
    if (!r) {
        if (sequence)
            close_sequence(self, (uint64_t)sequence);
        return;
    }
    if (error && !stepper_there(g)) {
        r->state = WEIR__WAITING;
        return;
    }
    r->sequence = (uint64_t)sequence;
    weir_body *b = error ? NULL : weir_pack(g->system, "u", r->id);
    if (!b || !sequence) {
        weir_body_free(b);
        fail_request(self, r, error ? weir_error_ref(error) : weir_error_new(WEIR_ENOMEM, NULL, NULL, "generate: no sequence"));
        return;
    }
    r->state = WEIR__READY;
    weir_answer(self, r->opening, b);
    schedule(self);
}

static void ask_sequence(weir_actor *self, weir__request *r) {
    weir__generator *g = weir_state(self);
    r->state = stepper_there(g) ? WEIR__OPENING : WEIR__WAITING;
    if (r->state == WEIR__WAITING)
        return;
    int code = weir_call(self, g->options.stepper, g->open, NULL, 0, on_opened, (void *)(uintptr_t)r->id, NULL);
    if (code)
        fail_request(self, r, weir_error_new(code, NULL, NULL, "generate: a sequence cannot be asked for"));
}

static void open_sequence(weir_actor *self, weir__request *r) {
    weir__generator *g = weir_state(self);
    r->prompt_tokens = (uint32_t)r->prompt.size;
    r->sample.generated_from = (int32_t)r->prompt_tokens;
    if (!r->prompt.size) {
        fail_request(self, r, weir_error_new(WEIR_EINVAL, NULL, NULL, "generate: the prompt has no tokens"));
        return;
    }
    if (r->prompt.size > g->options.context) {
        fail_request(self, r,
                     weir_error_new(WEIR_ECONTEXT, NULL, NULL, "context full: the prompt has %zu tokens, the context holds %u",
                                    r->prompt.size, g->options.context));
        return;
    }
    weir_error *error = NULL;
    if (g->tokenizer && weir__decoder_context(&r->decoder, r->prompt.data, r->prompt.size, &error)) {
        fail_request(self, r, error ? error : weir_error_new(WEIR_ENOMEM, NULL, NULL, "generate: no memory"));
        return;
    }
    ask_sequence(self, r);
}

static void on_encoded(weir_actor *self, void *data, const weir_message *reply, const weir_error *error) {
    weir__generator *g = weir_state(self);
    weir__request *r = weir__request_find(g, (uint64_t)(uintptr_t)data);
    weir_error *e = NULL;
    if (!r)
        return;
    if (error)
        e = weir_error_ref(error);
    else
        weir__read_ids(g->system, weir_read(weir_message_body(reply), NULL), weir__checkpoint_config(g->checkpoint)->vocab, &r->prompt, &e);
    if (e)
        fail_request(self, r, e);
    else
        open_sequence(self, r);
}

/* A long text is encoded on a stream: the loop does not compute. */
static int encode_elsewhere(weir_actor *self, weir__request *r, weir_cursor prompt) {
    weir__generator *g = weir_state(self);
    weir_writer *w = weir_write_begin(g->system);
    uint32_t n;
    weir__part part;
    if (weir_read_bytes(&prompt, &part.text, &part.size)) {
        weir_write_str(w, part.text, part.size);
    } else {
        weir_write_array(w);
        weir_read_array(&prompt, &n);
        while (n--) {
            uint32_t fields = 0;
            part.special = false;
            bool pair = weir_read_array(&prompt, &fields);
            if (!weir_read_bytes(&prompt, &part.text, &part.size) || (pair && (fields != 2 || !weir_read_bool(&prompt, &part.special)))) {
                weir_write_abort(w);
                return WEIR_ETYPE;
            }
            weir_write_array(w);
            weir_write_str(w, part.text, part.size);
            weir_write_bool(w, part.special);
            weir_write_close(w);
        }
        weir_write_close(w);
    }
    weir_write_map(w);
    weir__write_key(w, "bounds");
    weir_write_bool(w, true);
    weir_write_close(w);
    weir_body *b = weir_write_end(w);
    return b ? weir_call(self, g->options.residency, g->encode, b, -1, on_encoded, (void *)(uintptr_t)r->id, NULL) : WEIR_ENOMEM;
}

/* Fills r->prompt, or asks for it. False with *error: the request is wrong. */
static bool read_prompt(weir_actor *self, weir__request *r, bool *asked, weir_error **error) {
    weir__generator *g = weir_state(self);
    weir_cursor options = weir__options(r->body, 0), value;
    if (weir_read_find(options, "tokens", &value))
        return !weir__read_ids(g->system, value, weir__checkpoint_config(g->checkpoint)->vocab, &r->prompt, error);
    if (!weir_read_find(options, "prompt", &value)) {
        weir_fail(error, WEIR_EINVAL, "generate: wanted option \"prompt\" or \"tokens\"");
        return false;
    }
    if (!g->tokenizer) {
        const weir_error *why;
        weir__checkpoint_tokenizer(g->checkpoint, &why);
        weir_fail(error, WEIR_EUNSUPPORTED, "generate: %s; give token ids",
                  why ? weir_error_text(why) : "the model's file has no tokeniser");
        return false;
    }
    if (weir__encode_size(value) <= WEIR_TOKENIZE_INLINE)
        return !weir__encode_value(g->system, g->tokenizer, value, false, true, &r->prompt, error);
    if (!weir__residency_there(g, error))
        return false;
    *asked = true;
    int code = encode_elsewhere(self, r, value);
    if (code)
        weir_fail(error, code, "generate: the prompt cannot be encoded");
    return !code;
}

static void on_generate(weir_actor *self, const weir_message *m) {
    weir__generator *g = weir_state(self);
    weir_error *error = NULL;
    weir__request *r;
    bool asked = false, known = weir__request_owner(g, weir_message_from(m));
    int code = weir__request_new(g, m, &r, &error);
    if (code) {
        weir_reply_error(self, m, error ? error : weir_error_new(code, NULL, NULL, "generate refused"));
        return;
    }
    r->opening = weir_defer(self, m);
    if (!known && (code = weir_monitor(self, r->owner)))
        weir_fail(&error, code, "generate: the caller cannot be watched");
    if (error || !read_prompt(self, r, &asked, &error))
        fail_request(self, r, error ? error : weir_error_new(WEIR_ENOMEM, NULL, NULL, "generate: no memory"));
    else if (!asked)
        open_sequence(self, r);
}

/* ---- readers ---- */

static weir__request *asked_request(weir_actor *self, const weir_message *m) {
    int64_t id = 0;
    weir_cursor c = weir_read(weir_message_body(m), NULL);
    return weir_read_int(&c, &id) ? weir__request_find(weir_state(self), (uint64_t)id) : NULL;
}

static void on_next(weir_actor *self, const weir_message *m) {
    weir__request *r = asked_request(self, m);
    if (!r || r->reading || weir__request_unopened(r)) {
        weir_reply_error(
            self, m,
            weir_error_new(r ? WEIR_EBUSY : WEIR_ENOENT, NULL, NULL, r ? "next: somebody waits already" : "next: no such request"));
        return;
    }
    r->reading = true;
    r->reader = weir_defer(self, m);
    deliver(self, r);
    schedule(self);
}

static void on_cancel(weir_actor *self, const weir_message *m) {
    weir__request *r = asked_request(self, m);
    weir_reply(self, m, NULL);
    if (r)
        cancel_request(self, r);
}

/* ---- neighbours ---- */

static void on_use(weir_actor *self, const weir_message *m) {
    weir__generator *g = weir_state(self);
    weir_address stepper, residency;
    if (!weir__read_neighbour(self, m, "stepper", &stepper) || !weir__read_neighbour(self, m, "residency", &residency))
        return;
    if (stepper && stepper != g->options.stepper) {
        if (weir_monitor(self, stepper)) {
            weir_reply_error(self, m, weir_error_new(WEIR_ENOMEM, NULL, NULL, "use: the stepper cannot be watched"));
            return;
        }
        fail_sequences(self, NULL); /* which still belong to the one before */
        weir_demonitor(self, g->options.stepper);
        g->options.stepper = stepper;
        g->stepper_gone = false;
    }
    g->options.residency = residency ? residency : g->options.residency;
    weir_reply(self, m, NULL);
    for (weir__request *r = g->requests, *next; r; r = next) {
        next = r->next;
        if (r->state == WEIR__WAITING)
            ask_sequence(self, r);
    }
}

static void model_down(weir_actor *self, const weir_error *why) {
    weir__generator *g = weir_state(self);
    g->stepper_gone = true;
    for (weir__request *r = g->requests, *next; r; r = next) {
        next = r->next;
        if (r->state != WEIR__ENDED)
            fail_request(self, r, weir_error_new(WEIR_EEXITED, "model", why ? weir_error_ref(why) : NULL, "the model ended"));
    }
}

static void on_down(weir_actor *self, weir_address who, const weir_error *why) {
    weir__generator *g = weir_state(self);
    if (who == g->options.model)
        model_down(self, why);
    if (who == g->options.stepper) {
        g->stepper_gone = true;
        fail_sequences(self, why);
    }
    for (weir__request *r = g->requests, *next; r; r = next) {
        next = r->next;
        if (r->owner == who)
            cancel_request(self, r);
    }
}

static void fini(weir_system *s, void *state) {
    weir__generator *g = state;
    while (g->requests)
        weir__request_free(g, g->requests);
    while (g->forwarded) {
        weir__forwarded *f = g->forwarded;
        g->forwarded = f->next;
        weir__free(s, f);
    }
    weir__checkpoint_unref(g->checkpoint);
    weir__free(s, g);
}

static const weir_handler handlers[] = {
    {"generate", on_generate},           {"use", on_use}, {"next", on_next}, {"cancel", on_cancel}, {"tokenize", weir__on_tokenize},
    {"detokenize", weir__on_detokenize}, {NULL, NULL}};
const weir_behaviour weir__generator_behaviour = {.name = "generator", .handlers = handlers, .down = on_down, .fini = fini};

int weir__generator_spawn(weir_system *s, weir__checkpoint *c, const weir__generator_options *o, weir_address *out, weir_error **error) {
    weir__generator *g = weir__alloc(s, sizeof *g);
    if (!g)
        return weir_fail(error, WEIR_ENOMEM, "generator: no memory");
    *g = (weir__generator){.system = s,
                           .checkpoint = weir__checkpoint_ref(c),
                           .tokenizer = weir__checkpoint_tokenizer(c, NULL),
                           .options = *o,
                           .open = weir_intern(s, "open"),
                           .close = weir_intern(s, "close"),
                           .pass = weir_intern(s, "pass"),
                           .cancel = weir_intern(s, "cancel"),
                           .encode = weir_intern(s, "encode")};
    int code = weir_spawn(s, &weir__generator_behaviour, g, NULL, out, error);
    if (code)
        return code;
    weir_actor *self = weir__actor(s, *out);
    code = weir_monitor(self, o->stepper);
    if (!code && o->model)
        code = weir_monitor(self, o->model);
    if (code)
        weir_kill(s, *out);
    return code ? weir_fail(error, code, "generator: no memory to watch the stepper") : WEIR_OK;
}
