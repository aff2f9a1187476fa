/* generator_pass.c: the generator's turns: one pass of all requests that may go on (prompts to prefill, rows to decode), and every sampled token to its request
 * (generator.h). Knows nothing of readers. */
#include "generator.h"

/* ---- asking ---- */

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

/* ---- what came back ---- */

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
        weir__generator_deliver(self, r);
        return;
    }
    weir_error_free(e);
    weir__generator_fail(self, r, error);
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
    weir__generator_deliver(self, r);
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
    if (id < 0)
        return weir_error_new(WEIR_EFORMAT, NULL, NULL,
                              "generate: the logits are not numbers; the model's weights, or what they make of this text, are not finite");
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
            run_failed(self, r, weir__reason(weir_error_ref(error)));
    }
    weir__generator_schedule(self);
}

/* ---- turns ---- */

/* The pass was not asked for. A stepper that has ended is told of by its `down`, as the requests that it had are. */
static void not_asked(weir_actor *self, int code) {
    weir__generator *g = weir_state(self);
    uint32_t n = g->n_in_pass;
    g->n_in_pass = 0;
    g->tag = 0;
    for (uint32_t i = 0; i < n; i++) {
        weir__request *r = weir__request_find(g, g->in_pass[i]);
        if (r && weir__is_gone(code))
            r->state = WEIR__READY;
        else if (r)
            weir__generator_fail(self, r, weir_error_new(code, NULL, NULL, "generate: the pass cannot be asked for"));
    }
}

void weir__generator_schedule(weir_actor *self) {
    weir__generator *g = weir_state(self);
    if (g->tag || !weir__stepper_there(g))
        return;
    choose(g);
    if (!g->n_in_pass)
        return;
    g->tag = (int64_t)++g->tags;
    weir_body *b = pass_body(g);
    int code = b ? weir_call(self, g->options.stepper, g->pass, b, -1, on_pass, NULL, NULL) : WEIR_ENOMEM;
    if (code)
        not_asked(self, code);
}
