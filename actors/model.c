/* model.c: the actor that stands for a loaded model: it starts residency, policy, experts, stepper and generator in order, tells the caller who they are, and ends
 * them with itself. */
#include "actors.h"

#include <stdio.h>
#include <string.h>

enum child { GENERATOR, STEPPER, POLICY, EXPERTS, RESIDENCY, CHILDREN }; /* in the order in which they are stopped */
static const char *const child_names[CHILDREN] = {"generator", "stepper", "policy", "experts", "residency"};

typedef struct {
    weir_system *system;
    weir__device *device;
    weir__checkpoint *checkpoint;
    weir_address children[CHILDREN]; /* 0: not started, or ended */
    weir__forward_options options;
    int64_t context; /* asked for, 0: default */
    weir_address progress;
    char path[4096];
    bool loading, loaded, stopping;
    weir_reply_to caller;
    weir_verb open, warm, prepare;
} model;

/* ---- the description of a loaded model ---- */

static void put_str(weir_writer *w, const char *key, const char *value, size_t size) {
    weir__write_key(w, key);
    weir_write_str(w, value, size);
}

static void put_int(weir_writer *w, const char *key, uint64_t value) {
    weir__write_key(w, key);
    weir_write_uint(w, value);
}

static void put_gguf_string(weir_writer *w, const char *key, const weir__gguf *g, const char *from) {
    weir__string s;
    if (weir__gguf_find(g, from) && !weir__gguf_get_string(g, from, true, &s, NULL))
        put_str(w, key, s.data, s.size);
}

static void put_tokenizer(weir_writer *w, const weir__tokenizer *t) {
    weir__write_key(w, "tokenizer");
    weir_write_bool(w, t != NULL);
    if (!t)
        return;
    weir__write_key(w, "bos");
    weir_write_int(w, weir__tokenizer_bos(t));
    weir__write_key(w, "eos");
    weir_write_int(w, weir__tokenizer_eos(t));
}

static weir_body *describe(model *m) {
    const weir__config *c = weir__checkpoint_config(m->checkpoint);
    const weir__gguf *g = weir__checkpoint_gguf(m->checkpoint);
    weir_writer *w = weir_write_begin(m->system);
    weir_write_map(w);
    for (int i = 0; i < CHILDREN; i++)
        put_int(w, child_names[i], m->children[i]);
    const struct {
        const char *key;
        uint64_t value;
    } numbers[] = {{"layers", (uint64_t)c->layers},
                   {"width", (uint64_t)c->width},
                   {"heads", (uint64_t)c->heads},
                   {"kv_heads", (uint64_t)c->kv_heads},
                   {"head_dim", (uint64_t)c->head_dim},
                   {"ffn", (uint64_t)c->ffn},
                   {"vocab", (uint64_t)c->vocab},
                   {"context", m->options.context},
                   {"tile", m->options.tile},
                   {"threads", weir__device_threads(m->device)},
                   {"bytes", weir__checkpoint_bytes(m->checkpoint)},
                   {"parameters", weir__checkpoint_parameters(m->checkpoint)}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        put_int(w, numbers[i].key, numbers[i].value);
    put_str(w, "path", m->path, strlen(m->path));
    put_str(w, "device", weir__device_detail(m->device), strlen(weir__device_detail(m->device)));
    put_str(w, "activations", m->options.activations_f32 ? "f32" : "int8", m->options.activations_f32 ? 3 : 4);
    put_str(w, "kv", m->options.kv_f32 ? "f32" : "f16", 3);
    put_gguf_string(w, "architecture", g, "general.architecture");
    put_gguf_string(w, "name", g, "general.name");
    put_gguf_string(w, "template", g, "tokenizer.chat_template");
    put_tokenizer(w, weir__checkpoint_tokenizer(m->checkpoint, NULL));
    weir_write_close(w);
    return weir_write_end(w);
}

/* ---- loading ---- */

static void stop_children(weir_actor *self) {
    model *m = weir_state(self);
    for (int i = 0; i < CHILDREN; i++)
        if (m->children[i])
            weir_stop(m->system, m->children[i]);
}

static void load_failed(weir_actor *self, weir_error *error) {
    model *m = weir_state(self);
    if (!m->loading) {
        weir_error_free(error);
        return;
    }
    m->loading = false;
    weir_answer_error(self, m->caller, error);
    stop_children(self);
    weir__checkpoint_unref(m->checkpoint);
    m->checkpoint = NULL;
}

static bool failed(weir_actor *self, int code, weir_error *error, const char *what) {
    if (code)
        load_failed(self, error ? error : weir_error_new(code, NULL, NULL, "%s: %s", what, weir_code_text(code)));
    return code != 0;
}

/* A child that cannot be watched is not kept. */
static int adopt(weir_actor *self, enum child which, weir_address a) {
    model *m = weir_state(self);
    int code = weir_monitor(self, a);
    if (code)
        weir_stop(m->system, a);
    else
        m->children[which] = a;
    return code;
}

static void on_warm(weir_actor *self, void *data, const weir_message *reply, const weir_error *error) {
    model *m = weir_state(self);
    weir_error *e = NULL;
    weir_address a;
    (void)data, (void)reply;
    if (!m->loading)
        return;
    if (error) {
        load_failed(self, weir_error_ref(error));
        return;
    }
    weir__generator_options o = {m->children[STEPPER], m->children[RESIDENCY], m->options.context};
    int code = weir__generator_spawn(m->system, m->checkpoint, &o, &a, &e);
    if (!code)
        code = adopt(self, GENERATOR, a);
    if (failed(self, code, e, "generator"))
        return;
    m->loading = false;
    m->loaded = true;
    weir__answer_made(self, m->caller, describe(m));
}

static void on_prepared(weir_actor *self, void *data, const weir_message *reply, const weir_error *error) {
    model *m = weir_state(self);
    (void)data, (void)reply;
    if (!m->loading)
        return;
    if (error) {
        load_failed(self, weir_error_ref(error));
        return;
    }
    weir_body *b = weir_pack(m->system, m->progress ? "u" : "n", (uint64_t)m->progress);
    int code = b ? weir_call(self, m->children[POLICY], m->warm, b, -1, on_warm, NULL, NULL) : WEIR_ENOMEM;
    failed(self, code, NULL, "policy.warm");
}

static void choose_options(model *m) {
    int64_t trained = weir__checkpoint_config(m->checkpoint)->context;
    int64_t context = m->context ? m->context : trained < WEIR_DEFAULT_CONTEXT ? trained : WEIR_DEFAULT_CONTEXT;
    m->options.context = (uint32_t)context;
    if (!m->options.tile)
        m->options.tile = WEIR_DEFAULT_TILE;
    if (m->options.tile > m->options.context)
        m->options.tile = m->options.context;
}

static int start_others(weir_actor *self, weir_error **error) {
    model *m = weir_state(self);
    weir_address a;
    int code = weir__policy_spawn(m->system, m->device, m->checkpoint, m->children[RESIDENCY], &a, error);
    if (!code)
        code = adopt(self, POLICY, a);
    if (!code)
        code = weir__experts_spawn(m->system, m->device, &a, error);
    if (!code)
        code = adopt(self, EXPERTS, a);
    weir__stepper_options o = {m->options, m->children[POLICY], m->children[EXPERTS]};
    if (!code)
        code = weir__stepper_spawn(m->system, m->device, m->checkpoint, &o, &a, error);
    if (!code)
        code = adopt(self, STEPPER, a);
    return code ? code : weir_call(self, a, m->prepare, NULL, -1, on_prepared, NULL, NULL);
}

static void on_opened(weir_actor *self, void *data, const weir_message *reply, const weir_error *error) {
    model *m = weir_state(self);
    weir_error *e = NULL;
    void *checkpoint;
    (void)data;
    if (!m->loading)
        return;
    if (error) {
        load_failed(self, weir_error_ref(error));
        return;
    }
    weir_cursor c = weir_read(weir_message_body(reply), NULL);
    if (!weir_read_handle(&c, "checkpoint", &checkpoint)) {
        load_failed(self, weir_error_new(WEIR_ETYPE, NULL, NULL, "residency.open: no checkpoint"));
        return;
    }
    m->checkpoint = weir__checkpoint_ref(checkpoint);
    choose_options(m);
    int code = start_others(self, &e);
    failed(self, code, e, "starting the model's actors");
}

/* "int8" or "f32" for activations, "f16" or "f32" for kv. */
static bool option_choice(weir_cursor o, const char *key, const char *normal, bool *f32, weir_error **error) {
    const char *text = normal;
    size_t size = strlen(normal);
    if (!weir__option_bytes(o, key, &text, &size, error))
        return false;
    *f32 = size == 3 && memcmp(text, "f32", 3) == 0;
    if (*f32 || (size == strlen(normal) && memcmp(text, normal, size) == 0))
        return true;
    weir_fail(error, WEIR_EINVAL, "option \"%s\" is \"%.*s\", wanted %s or f32", key, (int)(size < 32 ? size : 32), text, normal);
    return false;
}

static int read_load(model *m, const weir_body *body, int64_t *threads, weir_error **error) {
    weir_cursor c = weir_read(body, NULL), o = weir__options(body, 1);
    const char *name;
    size_t size;
    int64_t tile = 0, progress = 0;
    char model_name[sizeof m->path];
    if (!weir_read_bytes(&c, &name, &size) || size >= sizeof model_name || memchr(name, 0, size))
        return weir_fail(error, WEIR_EINVAL, "load: wanted the path or the name of a model");
    memcpy(model_name, name, size);
    model_name[size] = 0;
    m->context = 0;
    bool ok = weir__option_int(o, "threads", 0, WEIR_MAX_THREADS, threads, error) &&
              weir__option_int(o, "context", 0, 1 << 24, &m->context, error) && weir__option_int(o, "tile", 0, 1 << 20, &tile, error) &&
              weir__option_int(o, "progress", 0, INT64_MAX, &progress, error) &&
              option_choice(o, "activations", "int8", &m->options.activations_f32, error) &&
              option_choice(o, "kv", "f16", &m->options.kv_f32, error);
    if (!ok)
        return WEIR_EINVAL;
    m->options.tile = (uint32_t)tile;
    m->progress = (weir_address)progress;
    return weir__model_locate(model_name, m->path, sizeof m->path, error);
}

static bool childless(const model *m) {
    for (int i = 0; i < CHILDREN; i++)
        if (m->children[i])
            return false;
    return true;
}

static void on_load(weir_actor *self, const weir_message *msg) {
    model *m = weir_state(self);
    weir_error *error = NULL;
    int64_t threads = 0;
    weir_address a;
    int code = m->loading || m->loaded || m->stopping || !childless(m)
                   ? weir_fail(&error, WEIR_EBUSY, "load: this actor has a model already")
                   : WEIR_OK;
    if (!code)
        code = read_load(m, weir_message_body(msg), &threads, &error);
    if (!code)
        code = weir__device_cpu(m->system, (unsigned)threads, &m->device, &error);
    if (!code)
        code = weir__residency_spawn(m->system, m->device, &a, &error);
    if (!code)
        code = adopt(self, RESIDENCY, a);
    if (code) {
        weir_reply_error(self, msg, error ? error : weir_error_new(code, NULL, NULL, "load: %s", weir_code_text(code)));
        return;
    }
    m->loading = true;
    m->caller = weir_defer(self, msg);
    weir_body *b = weir_pack(m->system, "s", m->path);
    code = b ? weir_call(self, a, m->open, b, -1, on_opened, NULL, NULL) : WEIR_ENOMEM;
    failed(self, code, NULL, "residency.open");
}

static void on_info(weir_actor *self, const weir_message *msg) {
    model *m = weir_state(self);
    if (m->loaded)
        weir__reply_made(self, msg, describe(m));
    else
        weir_reply_error(self, msg, weir_error_new(WEIR_ESTATE, NULL, NULL, "info: no model is loaded"));
}

/* ---- ends ---- */

static void on_down(weir_actor *self, weir_address who, const weir_error *why) {
    model *m = weir_state(self);
    for (int i = 0; i < CHILDREN; i++) {
        if (m->children[i] != who)
            continue;
        m->children[i] = 0;
        if (m->loading)
            load_failed(self, weir_error_new(WEIR_EEXITED, child_names[i], why ? weir_error_ref(why) : NULL,
                                             "%s ended while the model was loading", child_names[i]));
    }
    if (m->stopping && childless(m))
        weir_exit(self, NULL);
}

static void on_stop(weir_actor *self) {
    model *m = weir_state(self);
    m->stopping = true;
    load_failed(self, weir_error_new(WEIR_ESTOPPING, "model", NULL, "load: the model was stopped while it was loading"));
    stop_children(self);
    if (childless(m))
        weir_exit(self, NULL);
}

static void fini(weir_system *s, void *state) {
    model *m = state;
    for (int i = 0; i < CHILDREN; i++)
        if (m->children[i])
            weir_stop(s, m->children[i]);
    weir__checkpoint_unref(m->checkpoint);
    weir__free(s, m);
}

static const weir_handler handlers[] = {{"load", on_load}, {"info", on_info}, {NULL, NULL}};
const weir_behaviour weir__model_behaviour = {.name = "model", .handlers = handlers, .down = on_down, .stop = on_stop, .fini = fini};

/* Once here, later look-ups of these names cannot fail. */
static bool intern_verbs(weir_system *s) {
    static const char *const names[] = {
#define WEIR_VERB(actor, verb, arguments, reply, errors) #verb,
#include "verbs.def"
#undef WEIR_VERB
        "progress"};
    bool ok = true;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        ok = weir_intern(s, names[i]) && ok;
    return ok;
}

int weir__model_spawn(weir_system *s, weir_address *out, weir_error **error) {
    if (!intern_verbs(s))
        return weir_fail(error, WEIR_ENOMEM, "model: no memory for verbs");
    model *m = weir__alloc(s, sizeof *m);
    if (!m)
        return weir_fail(error, WEIR_ENOMEM, "model: no memory");
    *m = (model){.system = s, .open = weir_intern(s, "open"), .warm = weir_intern(s, "warm"), .prepare = weir_intern(s, "prepare")};
    return weir_spawn(s, &weir__model_behaviour, m, NULL, out, error);
}
