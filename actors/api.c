/* api.c: the model calls of weir.h: messages to a model's actors, sent and awaited in the name of the main actor. */
#include "actors.h"

#include <string.h>

typedef struct request {
    struct request *next;
    weir_model *model;
    uint64_t handle; /* what the caller knows it by */
    uint64_t id;     /* the generator's, 0: not yet known */
    bool cancelled;
    weir_piece_fn *piece;
    weir_done_fn *done;
    void *data;
} request;

struct weir_model {
    weir_system *system;
    weir_address actor, generator, progress_actor;
    uint64_t loading; /* session of the call `load` */
    request *requests;
    uint64_t count;
    bool closed;   /* by weir_model_free; given back with the last request */
    bool answered; /* load: the reply came */
    weir_error *error;
    weir_verb load, generate, next, cancel;
    void (*progress)(void *data, uint64_t done, uint64_t total);
    void *progress_data;
};

static void release(weir_model *m) {
    if (!m->closed || m->requests)
        return;
    weir_error_free(m->error);
    weir__free(m->system, m);
}

/* ---- progress: a small actor that calls the host's function ---- */

static void on_progress(weir_actor *self, const weir_message *m) {
    weir_model *model = weir_state(self);
    int64_t done, total;
    weir_cursor c = weir_read(weir_message_body(m), NULL);
    if (weir_read_int(&c, &done) && weir_read_int(&c, &total))
        model->progress(model->progress_data, (uint64_t)done, (uint64_t)total);
}
static const weir_handler progress_handlers[] = {{"progress", on_progress}, {NULL, NULL}};
static const weir_behaviour progress_behaviour = {.name = "progress", .handlers = progress_handlers};

/* ---- loading ---- */

static void on_loaded(weir_actor *self, void *data, const weir_message *reply, const weir_error *error) {
    weir_model *m = data;
    weir_cursor value;
    int64_t a = 0;
    (void)self;
    m->answered = true;
    if (error)
        m->error = weir_error_ref(error);
    else if (weir_read_find(weir__options(weir_message_body(reply), 0), "generator", &value) && weir_read_int(&value, &a) && a)
        m->generator = (weir_address)a;
    else
        m->error = weir_error_new(WEIR_ETYPE, "model", NULL, "load: the answer names no generator");
}

static bool is_answered(void *data) {
    return ((weir_model *)data)->answered;
}

static weir_body *load_body(weir_model *m, const char *name, const weir_load_options *o) {
    return weir_pack(m->system, "s{susususussss}", name, "threads", (uint64_t)o->threads, "context", (uint64_t)o->context, "tile",
                     (uint64_t)o->tile, "progress", (uint64_t)m->progress_actor, "activations", o->activations_f32 ? "f32" : "int8", "kv",
                     o->kv_f32 ? "f32" : "f16");
}

static int start_load(weir_model *m, const char *name, const weir_load_options *o, weir_error **error) {
    int code = weir__model_spawn(m->system, &m->actor, error);
    if (!code && o->progress) {
        m->progress = o->progress;
        m->progress_data = o->data;
        code = weir_spawn(m->system, &progress_behaviour, m, NULL, &m->progress_actor, error);
    }
    if (code)
        return code;
    weir_body *b = load_body(m, name, o);
    code = b ? weir_call(weir_main_actor(m->system), m->actor, m->load, b, -1, on_loaded, m, &m->loading) : WEIR_ENOMEM;
    return code ? weir_fail(error, code, "%s: no memory to ask for it", name) : WEIR_OK;
}

int weir_model_load(weir_system *s, const char *name, const weir_load_options *options, weir_model **out, weir_error **error) {
    static const weir_load_options none = {0};
    if (!weir__check(s && name && out, "weir_model_load: system, model and out are needed"))
        return weir_fail(error, WEIR_EINVAL, "weir_model_load: system, model and out are needed");
    if (weir__running(s))
        return weir_fail(error, WEIR_EBUSY, "%s: weir_model_load runs the loop, which runs already", name);
    weir_model *m = weir__alloc(s, sizeof *m);
    if (!m)
        return weir_fail(error, WEIR_ENOMEM, "%s: no memory", name);
    *m = (weir_model){.system = s,
                      .load = weir_intern(s, "load"),
                      .generate = weir_intern(s, "generate"),
                      .next = weir_intern(s, "next"),
                      .cancel = weir_intern(s, "cancel")};
    int code = start_load(m, name, options ? options : &none, error);
    if (!code)
        code = weir_system_run(s, is_answered, m, error);
    if (m->progress_actor)
        weir_kill(s, m->progress_actor); /* the host's function is not called after this one has returned */
    if (!code && !m->answered)
        code = weir_fail(error, WEIR_ESTOPPING, "%s: the loop was told to quit while the model was loading", name);
    if (!code && m->error) {
        code = weir_error_code(m->error);
        if (error)
            *error = weir_error_ref(m->error);
    }
    if (code)
        weir_model_free(m);
    else
        *out = m;
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

static void on_piece(weir_actor *self, void *data, const weir_message *reply, const weir_error *error) {
    request *r = data;
    weir_finish finish;
    weir_cursor value;
    const char *text = "";
    size_t size = 0;
    if (error) {
        request_end(r, NULL, error);
        return;
    }
    weir_cursor map = weir__options(weir_message_body(reply), 0);
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
    int code = b ? weir_call(self, m->generator, m->next, b, -1, on_piece, r, NULL) : WEIR_ENOMEM;
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
        request_end(r, NULL, error);
        return;
    }
    weir_cursor c = weir_read(weir_message_body(reply), NULL);
    weir_read_int(&c, &id);
    r->id = (uint64_t)id;
    if (r->cancelled) {
        weir_send(self, r->model->generator, r->model->cancel, weir_pack(r->model->system, "u", r->id));
        end_cancelled(r);
        return;
    }
    ask_next(self, r);
}

static weir_body *generate_body(weir_model *m, const weir_generate_options *o) {
    const struct {
        const char *key;
        double value;
    } numbers[] = {{"temperature", o->temperature}, {"top_p", o->top_p}, {"min_p", o->min_p}};
    const struct {
        const char *key;
        int64_t value;
    } integers[] = {{"max_tokens", o->max_tokens}, {"top_k", o->top_k}, {"seed", (int64_t)o->seed}};
    weir_writer *w = weir_write_begin(m->system);
    weir_write_map(w);
    if (o->tokens) {
        weir__write_key(w, "tokens");
        weir_write_bin(w, o->tokens, o->n_tokens * 4);
    } else {
        weir__write_key(w, "prompt");
        weir_write_str(w, o->prompt, strlen(o->prompt));
    }
    for (int i = 0; i < 3; i++) {
        weir__write_key(w, numbers[i].key);
        weir_write_double(w, numbers[i].value);
        weir__write_key(w, integers[i].key);
        weir_write_int(w, integers[i].value);
    }
    weir__write_key(w, "stop");
    weir_write_array(w);
    for (size_t i = 0; i < o->n_stop; i++)
        weir_write_str(w, o->stop[i], strlen(o->stop[i]));
    weir_write_close(w);
    weir__write_key(w, "ignore_end");
    weir_write_bool(w, o->ignore_end);
    weir_write_close(w);
    return weir_write_end(w);
}

int weir_generate(weir_model *m, const weir_generate_options *o, weir_piece_fn *piece, weir_done_fn *done, void *data, uint64_t *out,
                  weir_error **error) {
    if (!weir__check(m && o && done && (o->prompt || o->tokens), "weir_generate: a model, a prompt or tokens, and done are needed"))
        return weir_fail(error, WEIR_EINVAL, "weir_generate: a model, a prompt or tokens, and done are needed");
    request *r = weir__alloc(m->system, sizeof *r);
    if (!r)
        return weir_fail(error, WEIR_ENOMEM, "generate: no memory");
    *r = (request){.next = m->requests, .model = m, .handle = ++m->count, .piece = piece, .done = done, .data = data};
    m->requests = r;
    weir_body *b = generate_body(m, o);
    int code = b ? weir_call(weir_main_actor(m->system), m->generator, m->generate, b, -1, on_generated, r, NULL) : WEIR_ENOMEM;
    if (code) {
        m->requests = r->next;
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
        weir_send(weir_main_actor(m->system), m->generator, m->cancel, weir_pack(m->system, "u", r->id));
}

/* ---- giving back ---- */

static bool ended(weir_model *m, weir_address a) {
    weir_actor_stats stats;
    return !a || weir_actor_get_stats(m->system, a, &stats) == WEIR_ENOACTOR;
}

static bool is_gone(void *data) {
    weir_model *m = data;
    return !m->requests && ended(m, m->actor);
}

void weir_model_free(weir_model *m) {
    if (!m || m->closed)
        return;
    if (m->loading && !m->answered)
        weir_call_cancel(weir_main_actor(m->system), m->loading);
    if (m->actor)
        weir_stop(m->system, m->actor);
    if (!weir__running(m->system))
        weir_system_run(m->system, is_gone, m, NULL);
    m->closed = true;
    release(m);
}
