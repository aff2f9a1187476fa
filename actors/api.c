/* api.c: the model calls of weir.h: messages to a model's actors. A loader actor of its own asks for a model; generations are asked for in the name of the
 * main actor. */
#include "api.h"

#include <string.h>

typedef struct request {
    struct request *next;
    weir_model *model;
    uint64_t handle;        /* what the caller knows it by */
    weir_address generator; /* who makes it: ids are its own */
    uint64_t id;            /* the generator's, 0: not yet known */
    bool cancelled;
    weir_body *body; /* of `generate`, until it is sent */
    weir_token_fn *token;
    weir_piece_fn *piece;
    weir_done_fn *done;
    void *data;
} request;

struct weir_model {
    weir_system *system;
    weir_address actor, generator;
    request *requests;
    uint64_t count;
    bool closed; /* by weir_model_free; given back with the last request */
    weir_verb load, info, generate, next, cancel;
};

static void release(weir_model *m) {
    if (!m->closed || m->requests)
        return;
    weir__free(m->system, m);
}

/* ---- loading: an actor of its own asks for the model, hears of its progress, and tells the host; it ends with the answer ---- */

typedef struct loader {
    weir_model *model; /* NULL: the host has been told */
    weir_ready_fn *ready;
    void *data;
    void (*progress)(void *data, uint64_t done, uint64_t total);
    void *progress_data;
} loader;

/* Tells the host, once: the model is its own from then on, or is given back when there is an error. */
static void tell(loader *l, const weir_error *error) {
    weir_model *m = l->model;
    if (!m)
        return;
    l->model = NULL;
    if (error) {
        weir_stop(m->system, m->actor);
        weir__free(m->system, m);
    }
    l->ready(l->data, error ? NULL : m, error);
}

static void on_progress(weir_actor *self, const weir_message *m) {
    loader *l = weir_state(self);
    int64_t done, total;
    weir_cursor c = weir_read(weir_message_body(m), NULL);
    if (l->progress && weir_read_int(&c, &done) && weir_read_int(&c, &total))
        l->progress(l->progress_data, (uint64_t)done, (uint64_t)total);
}

/* Ended before there was an answer: the system stops, or somebody killed it. */
static void loader_fini(weir_system *s, void *state) {
    loader *l = state;
    if (l->model) {
        weir_error *error = weir_error_new(WEIR_ESTOPPING, "loader", NULL, "the system stopped while the model was loading");
        tell(l, error);
        weir_error_free(error);
    }
    weir__free(s, l);
}

static const weir_handler loader_handlers[] = {{"progress", on_progress}, {NULL, NULL}};
static const weir_behaviour loader_behaviour = {.name = "loader", .handlers = loader_handlers, .fini = loader_fini};

/* The generator's address in the answer to `load` or `info`; 0: none. */
static weir_address generator_in(const weir_message *reply) {
    weir_cursor value;
    int64_t a = 0;
    bool named = weir_read_find(weir__options(weir_message_body(reply), 0), "generator", &value) && weir_read_int(&value, &a);
    return named ? (weir_address)a : 0;
}

static void on_loaded(weir_actor *self, void *data, const weir_message *reply, const weir_error *error) {
    loader *l = weir_state(self);
    weir_error *wrong = NULL;
    (void)data;
    if (!error)
        l->model->generator = generator_in(reply);
    if (!error && !l->model->generator)
        error = wrong = weir_error_new(WEIR_ETYPE, "model", NULL, "load: the answer names no generator");
    weir_exit(self, NULL);
    tell(l, error);
    weir_error_free(wrong);
}

static weir_body *load_body(weir_system *s, const char *name, weir_address progress, const weir_load_options *o) {
    return weir_pack(s, "s{susususussssssss}", name, "threads", (uint64_t)o->threads, "context", (uint64_t)o->context, "tile",
                     (uint64_t)o->tile, "progress", (uint64_t)progress, "activations", o->activations_f32 ? "f32" : "int8", "kv",
                     o->kv_f32 ? "f32" : "f16", "quant", o->quant ? o->quant : "", "device", o->device ? o->device : "");
}

static weir_model *model_new(weir_system *s) {
    weir_model *m = weir__alloc(s, sizeof *m);
    if (!m)
        return NULL;
    *m = (weir_model){.system = s,
                      .load = weir_intern(s, "load"),
                      .info = weir_intern(s, "info"),
                      .generate = weir_intern(s, "generate"),
                      .next = weir_intern(s, "next"),
                      .cancel = weir_intern(s, "cancel")};
    if (m->load && m->generate && m->next && m->cancel)
        return m;
    weir__free(s, m);
    return NULL;
}

/* The model's actor and the loader; on failure neither is left. */
static int spawn_both(weir_model *m, loader *l, weir_address *out, weir_error **error) {
    int code = weir__model_spawn(m->system, &m->actor, error);
    if (code) {
        weir__free(m->system, l);
        return code;
    }
    code = weir_spawn(m->system, &loader_behaviour, l, NULL, out, error);
    if (code)
        weir_kill(m->system, m->actor);
    return code;
}

/* Takes m; on failure the host is not told. */
static int load_begin(weir_model *m, const char *name, const weir_load_options *o, const loader *wanted, weir_address *out,
                      weir_error **error) {
    weir_system *s = m->system;
    loader *l = weir__alloc(s, sizeof *l);
    int code = l ? WEIR_OK : weir_fail(error, WEIR_ENOMEM, "%s: no memory", name);
    if (l)
        *l = *wanted; /* without the model: its end is nobody's business before all has begun */
    if (!code)
        code = spawn_both(m, l, out, error);
    if (code) {
        weir__free(s, m);
        return code;
    }
    weir_body *b = load_body(s, name, l->progress ? *out : 0, o);
    code = b ? weir_call(weir__actor(s, *out), m->actor, m->load, b, -1, on_loaded, NULL, NULL) : WEIR_ENOMEM;
    if (!code) {
        l->model = m;
        return WEIR_OK;
    }
    weir_kill(s, *out);
    weir_kill(s, m->actor);
    weir__free(s, m);
    return weir_fail(error, code, "%s: no memory to ask for it", name);
}

static int load(weir_system *s, const char *name, const weir_load_options *options, weir_ready_fn *ready, void *data,
                weir_address *loader_address, weir_address *actor, weir_error **error) {
    static const weir_load_options none = {0};
    const weir_load_options *o = options ? options : &none;
    weir_model *m = model_new(s);
    if (!m)
        return weir_fail(error, WEIR_ENOMEM, "%s: no memory", name);
    loader wanted = {.ready = ready, .data = data, .progress = o->progress, .progress_data = o->data};
    int code = load_begin(m, name, o, &wanted, loader_address, error);
    if (!code)
        *actor = m->actor;
    return code;
}

int weir_model_load_async(weir_system *s, const char *name, const weir_load_options *options, weir_ready_fn *ready, void *data,
                          weir_error **error) {
    weir_address loader_address, actor;
    if (!weir__check(s && name && ready, "weir_model_load_async: system, model and ready are needed"))
        return weir_fail(error, WEIR_EINVAL, "weir_model_load_async: system, model and ready are needed");
    return load(s, name, options, ready, data, &loader_address, &actor, error);
}

/* ---- the same, waited for ---- */

typedef struct waiting {
    bool over;
    weir_model *model;
    weir_error *error;
} waiting;

static void wait_ready(void *data, weir_model *m, const weir_error *error) {
    waiting *w = data;
    w->over = true;
    w->model = m;
    w->error = error ? weir_error_ref(error) : NULL;
}

static bool wait_over(void *data) {
    return ((waiting *)data)->over;
}

/* Runs the loop until the host is told, or told to quit. */
static int wait_for(weir_system *s, const char *name, waiting *w, weir_address loader_address, weir_error **error) {
    int code = weir_system_run(s, wait_over, w, error);
    if (!code && !w->over)
        code = weir_fail(error, WEIR_ESTOPPING, "%s: the loop was told to quit while the model was loading", name);
    if (!w->over)
        weir_kill(s, loader_address); /* which tells the host */
    if (!code && w->error && error)
        *error = weir_error_ref(w->error);
    return code ? code : weir_error_code(w->error);
}

typedef struct ending {
    weir_system *system;
    weir_address actor;
} ending;

static bool has_ended(void *data) {
    ending *e = data;
    weir_actor_stats stats;
    return weir_actor_get_stats(e->system, e->actor, &stats) == WEIR_ENOACTOR;
}

int weir_model_load(weir_system *s, const char *name, const weir_load_options *options, weir_model **out, weir_error **error) {
    if (!weir__check(s && name && out, "weir_model_load: system, model and out are needed"))
        return weir_fail(error, WEIR_EINVAL, "weir_model_load: system, model and out are needed");
    if (weir__running(s))
        return weir_fail(error, WEIR_EBUSY, "%s: weir_model_load runs the loop, which runs already", name);
    waiting w = {0};
    weir_address loader_address;
    ending e = {.system = s};
    int code = load(s, name, options, wait_ready, &w, &loader_address, &e.actor, error);
    if (code)
        return code;
    code = wait_for(s, name, &w, loader_address, error);
    weir_error_free(w.error);
    if (code)
        weir_system_run(s, has_ended, &e, NULL);
    else
        *out = w.model;
    return code;
}

/* ---- generating ---- */

static void request_end(request *r, const weir_finish *finish, const weir_error *error) {
    weir_model *m = r->model;
    r->done(r->data, finish, error); /* may free the model: it is kept while this request is on its list */
    for (request **at = &m->requests; *at; at = &(*at)->next)
        if (*at == r) {
            *at = r->next;
            break;
        }
    weir_body_free(r->body);
    weir__free(m->system, r);
    release(m);
}

static void ask_next(weir_actor *self, request *r);

static request *find(weir_model *m, uint64_t handle) {
    for (request *r = m->requests; r; r = r->next)
        if (r->handle == handle)
            return r;
    return NULL;
}

static bool read_finish(weir_cursor map, weir_finish *f) {
    weir_cursor value;
    bool done = false;
    const char *reason = "";
    size_t size = 0;
    int64_t n = 0;
    double seconds = 0;
    if (!weir_read_find(map, "done", &value) || !weir_read_bool(&value, &done) || !done)
        return false;
    *f = (weir_finish){.reason = "stop"};
    if (weir__option_bytes(map, "reason", &reason, &size, NULL) && size == 6 && memcmp(reason, "length", 6) == 0)
        f->reason = "length";
    else if (size == 7)
        f->reason = "context";
    if (weir__option_int(map, "prompt_tokens", 0, INT32_MAX, &n, NULL))
        f->prompt_tokens = (unsigned)n;
    if (weir__option_int(map, "generated", 0, INT32_MAX, &n, NULL))
        f->tokens = (unsigned)n;
    if (weir__option_double(map, "prefill_s", 0, 1e12, &seconds, NULL))
        f->prefill = (int64_t)(seconds * 1e9);
    if (weir__option_double(map, "decode_s", 0, 1e12, &seconds, NULL))
        f->decode = (int64_t)(seconds * 1e9);
    return true;
}

static void end_cancelled(request *r) {
    weir_error *error = weir_error_new(WEIR_ECANCELLED, NULL, NULL, "the generation was cancelled");
    request_end(r, NULL, error);
    weir_error_free(error);
}

/* The generator was gone before it could be asked: the same as if it had died with the question. */
static void end_with_error(request *r, const weir_error *error) {
    bool gone = weir_error_code(error) == WEIR_ENOACTOR;
    weir_error *e =
        gone ? weir_error_new(WEIR_EEXITED, "generator", weir_error_ref(error), "the generator ended, and the generation with it")
             : weir_error_ref(error);
    request_end(r, NULL, e);
    weir_error_free(e);
}

static void tell_tokens(request *r, weir_cursor map) {
    weir_cursor list;
    weir_token token, best[WEIR_MAX_LOGPROBS];
    uint32_t n;
    size_t n_best;
    if (!weir_read_find(map, "logprobs", &list) || !weir_read_array(&list, &n))
        return;
    while (n-- && !r->cancelled && weir__read_token(&list, &token, best, &n_best))
        r->token(r->data, &token, best, n_best);
}

static void on_piece(weir_actor *self, void *data, const weir_message *reply, const weir_error *error) {
    request *r = data;
    weir_finish finish;
    weir_cursor value;
    const char *text = "";
    size_t size = 0;
    if (error) {
        end_with_error(r, error);
        return;
    }
    weir_cursor map = weir__options(weir_message_body(reply), 0);
    if (r->token)
        tell_tokens(r, map);
    if (weir_read_find(map, "text", &value) && weir_read_bytes(&value, &text, &size) && size && r->piece && !r->cancelled)
        r->piece(r->data, text, size);
    if (read_finish(map, &finish))
        request_end(r, &finish, NULL);
    else if (r->cancelled)
        end_cancelled(r);
    else
        ask_next(self, r);
}

static void ask_next(weir_actor *self, request *r) {
    weir_model *m = r->model;
    weir_body *b = weir_pack(m->system, "u", r->id);
    int code = b ? weir_call(self, r->generator, m->next, b, -1, on_piece, r, NULL) : WEIR_ENOMEM;
    if (!code)
        return;
    weir_error *error = weir_error_new(code, NULL, NULL, "generate: the generator cannot be asked");
    request_end(r, NULL, error);
    weir_error_free(error);
}

static void on_generated(weir_actor *self, void *data, const weir_message *reply, const weir_error *error) {
    request *r = data;
    int64_t id = 0;
    if (error) {
        end_with_error(r, error);
        return;
    }
    weir_cursor c = weir_read(weir_message_body(reply), NULL);
    weir_read_int(&c, &id);
    r->id = (uint64_t)id;
    if (r->cancelled) {
        weir_send(self, r->generator, r->model->cancel, weir_pack(r->model->system, "u", r->id));
        end_cancelled(r);
        return;
    }
    ask_next(self, r);
}

/* Asks for the generation; the body is taken, whatever comes back. */
static int ask_generate(request *r) {
    weir_model *m = r->model;
    weir_body *b = r->body;
    r->body = NULL;
    r->generator = m->generator;
    return weir_call(weir_main_actor(m->system), r->generator, m->generate, b, -1, on_generated, r, NULL);
}

/* The model's generator died and was started anew: where it is now. */
static void on_located(weir_actor *self, void *data, const weir_message *reply, const weir_error *error) {
    request *r = data;
    weir_error *wrong = NULL;
    (void)self;
    if (r->cancelled) {
        end_cancelled(r);
        return;
    }
    if (!error && generator_in(reply))
        r->model->generator = generator_in(reply);
    int code = error ? weir_error_code(error) : ask_generate(r);
    if (!code)
        return;
    wrong = weir_error_new(code, "model", error ? weir_error_ref(error) : NULL, "generate: the model has no generator: %s",
                           error ? weir_error_text(error) : weir_code_text(code));
    request_end(r, NULL, wrong);
    weir_error_free(wrong);
}

/* `info` waits while the model starts parts anew. */
static int begin_generate(request *r) {
    weir_model *m = r->model;
    if (!r->body)
        return WEIR_ENOMEM;
    ending e = {m->system, m->generator};
    if (!has_ended(&e))
        return ask_generate(r);
    return weir_call(weir_main_actor(m->system), m->actor, m->info, NULL, -1, on_located, r, NULL);
}

int weir_generate(weir_model *m, const weir_generate_options *o, weir_piece_fn *piece, weir_done_fn *done, void *data, uint64_t *out,
                  weir_error **error) {
    if (!weir__check(m && o && done && (o->prompt || o->tokens), "weir_generate: a model, a prompt or tokens, and done are needed"))
        return weir_fail(error, WEIR_EINVAL, "weir_generate: a model, a prompt or tokens, and done are needed");
    request *r = weir__alloc(m->system, sizeof *r);
    if (!r)
        return weir_fail(error, WEIR_ENOMEM, "generate: no memory");
    *r = (request){.next = m->requests, .model = m, .handle = ++m->count, .token = o->token, .piece = piece, .done = done, .data = data};
    m->requests = r;
    r->body = weir__generate_body(m->system, o);
    int code = begin_generate(r);
    if (code) {
        m->requests = r->next;
        weir_body_free(r->body);
        weir__free(m->system, r);
        return weir_fail(error, code, "generate: the generator cannot be asked");
    }
    if (out)
        *out = r->handle;
    return WEIR_OK;
}

void weir_cancel(weir_model *m, uint64_t handle) {
    request *r = m ? find(m, handle) : NULL;
    if (!r || r->cancelled)
        return;
    r->cancelled = true;
    if (r->id)
        weir_send(weir_main_actor(m->system), r->generator, m->cancel, weir_pack(m->system, "u", r->id));
}

/* ---- giving back ---- */

static bool is_gone(void *data) {
    weir_model *m = data;
    ending e = {m->system, m->actor};
    return !m->requests && has_ended(&e);
}

void weir_model_free(weir_model *m) {
    if (!m || m->closed)
        return;
    weir_stop(m->system, m->actor);
    if (!weir__running(m->system))
        weir_system_run(m->system, is_gone, m, NULL);
    m->closed = true;
    release(m);
}
