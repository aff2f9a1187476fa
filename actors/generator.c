/* generator.c: the actor that generates: takes requests, gets them their ids and a sequence, answers readers, ends them. Knows tokens and texts; of units and
 * devices nothing (generator.h). */
#include "generator.h"

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

void weir__generator_deliver(weir_actor *self, weir__request *r) {
    if (weir__request_deliver(self, r))
        end_request(self, r);
}

/* A request that fails before `generate` was answered is told there. */
void weir__generator_fail(weir_actor *self, weir__request *r, weir_error *error) {
    if (weir__request_unopened(r)) {
        weir_answer_error(self, r->opening, error);
        end_request(self, r);
        return;
    }
    weir__request_fail(r, error);
    weir__generator_deliver(self, r);
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

/* What a sequence held is gone with its stepper: the requests that have one end. */
static void fail_sequences(weir_actor *self, const weir_error *why) {
    weir__generator *g = weir_state(self);
    for (weir__request *r = g->requests, *next; r; r = next) {
        next = r->next;
        if (r->sequence && r->state != WEIR__ENDED)
            weir__generator_fail(
                self, r,
                weir__reason(weir_error_new(WEIR_EEXITED, "stepper", why ? weir_error_ref(why) : NULL,
                                            "the stepper ended, and with it what request %llu had written", (unsigned long long)r->id)));
    }
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
    if (error && (!weir__stepper_there(g) || weir__is_gone(weir_error_code(error)))) {
        r->state = WEIR__WAITING;
        return;
    }
    r->sequence = (uint64_t)sequence;
    weir_body *b = error ? NULL : weir_pack(g->system, "u", r->id);
    if (!b || !sequence) {
        weir_body_free(b);
        weir__generator_fail(self, r, error ? weir_error_ref(error) : weir_error_new(WEIR_ENOMEM, NULL, NULL, "generate: no sequence"));
        return;
    }
    r->state = WEIR__READY;
    weir_answer(self, r->opening, b);
    weir__generator_schedule(self);
}

static void ask_sequence(weir_actor *self, weir__request *r) {
    weir__generator *g = weir_state(self);
    r->state = weir__stepper_there(g) ? WEIR__OPENING : WEIR__WAITING;
    if (r->state == WEIR__WAITING)
        return;
    int code = weir_call(self, g->options.stepper, g->open, NULL, 0, on_opened, (void *)(uintptr_t)r->id, NULL);
    if (weir__is_gone(code))
        r->state = WEIR__WAITING;
    else if (code)
        weir__generator_fail(self, r, weir_error_new(code, NULL, NULL, "generate: a sequence cannot be asked for"));
}

static void open_sequence(weir_actor *self, weir__request *r) {
    weir__generator *g = weir_state(self);
    r->prompt_tokens = (uint32_t)r->prompt.size;
    r->sample.generated_from = (int32_t)r->prompt_tokens;
    if (!r->prompt.size) {
        weir__generator_fail(self, r, weir_error_new(WEIR_EINVAL, NULL, NULL, "generate: the prompt has no tokens"));
        return;
    }
    if (r->prompt.size > g->options.context) {
        weir__generator_fail(self, r,
                             weir_error_new(WEIR_ECONTEXT, NULL, NULL, "context full: the prompt has %zu tokens, the context holds %u",
                                            r->prompt.size, g->options.context));
        return;
    }
    weir_error *error = NULL;
    if (g->tokenizer && weir__decoder_context(&r->decoder, r->prompt.data, r->prompt.size, &error)) {
        weir__generator_fail(self, r, error ? error : weir_error_new(WEIR_ENOMEM, NULL, NULL, "generate: no memory"));
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
        e = weir__reason(weir_error_ref(error));
    else
        weir__read_ids(g->system, weir_read(weir_message_body(reply), NULL), weir__checkpoint_config(g->checkpoint)->vocab, &r->prompt, &e);
    if (e)
        weir__generator_fail(self, r, e);
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
    if (!known && (code = weir__monitor_quietly(self, r->owner)))
        weir_fail(&error, code, "generate: the caller cannot be watched");
    if (error || !read_prompt(self, r, &asked, &error))
        weir__generator_fail(self, r, error ? error : weir_error_new(WEIR_ENOMEM, NULL, NULL, "generate: no memory"));
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
    weir__generator_deliver(self, r);
    weir__generator_schedule(self);
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

static weir_error *model_ended(const weir_error *why) {
    return weir_error_new(WEIR_EEXITED, "model", why ? weir_error_ref(why) : NULL, "the model ended");
}

static void model_down(weir_actor *self, const weir_error *why) {
    weir__generator *g = weir_state(self);
    g->stepper_gone = true;
    for (weir__request *r = g->requests, *next; r; r = next) {
        next = r->next;
        if (r->state != WEIR__ENDED)
            weir__generator_fail(self, r, weir__reason(model_ended(why)));
    }
    weir_exit(self, model_ended(why));
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
