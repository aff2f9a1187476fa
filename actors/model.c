/* model.c: the actor that stands for a loaded model: residency, policy, experts, stepper and generator are its members; it tells callers who they are, has them
 * started anew when they die (assemble.c), and ends them with itself (model.h). */
#include <stdio.h>
#include <string.h>

#include "model.h"

enum { RESTARTS = 3 }; /* borne within the period, when the load does not say */

const char *const weir__member_names[WEIR__MEMBERS] = {"residency", "policy", "experts", "stepper", "generator"};

static void stop_members(weir__model *m) {
    for (int i = WEIR__MEMBERS - 1; i >= 0; i--)
        if (m->members[i].address)
            weir_stop(m->system, m->members[i].address);
}

static bool no_member_left(const weir__model *m) {
    for (int i = 0; i < WEIR__MEMBERS; i++)
        if (m->members[i].address)
            return false;
    return true;
}

/* ---- load ---- */

void weir__model_load_failed(weir_actor *self, weir_error *error) {
    weir__model *m = weir_state(self);
    if (!m->loading) {
        weir_error_free(error);
        return;
    }
    m->loading = false;
    weir_answer_error(self, m->caller, weir__why_failed(m->device, weir__reason(error)));
    stop_members(m);
    weir__checkpoint_unref(m->checkpoint);
    m->checkpoint = NULL;
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

/* Type to which weights are quantised while they are loaded. */
static bool option_quant(weir_cursor o, int *quant, weir_error **error) {
    const char *text = NULL;
    size_t size = 0;
    char name[32], wanted[128] = "";
    *quant = -1;
    if (!weir__option_bytes(o, "quant", &text, &size, error))
        return false;
    if (!size)
        return true;
    snprintf(name, sizeof name, "%.*s", (int)size, text);
    *quant = weir_type_find(name);
    if (*quant >= 0 && weir_type_writes(*quant) && weir_type_get(*quant))
        return true;
    for (int i = 0; i < WEIR_TYPES; i++)
        if (weir_type_writes(i) && weir_type_get(i))
            weir__enumerate(wanted, sizeof wanted, weir_type_get(i)->name);
    weir_fail(error, WEIR_EINVAL, "option \"quant\" is \"%s\", wanted one of %s", name, wanted);
    return false;
}

/* The device that weights are loaded to. */
static bool option_device(weir__model *m, weir_cursor o, weir_error **error) {
    const char *text = NULL;
    size_t size = 0;
    int64_t threads = 0;
    if (!weir__option_bytes(o, "device", &text, &size, error) || !weir__option_int(o, "threads", 0, WEIR_MAX_THREADS, &threads, error))
        return false;
    snprintf(m->device_name, sizeof m->device_name, "%.*s", (int)size, text ? text : "");
    m->threads = (unsigned)threads;
    m->device = NULL;
    return true;
}

static int read_load(weir__model *m, const weir_body *body, weir_error **error) {
    weir_cursor c = weir_read(body, NULL), o = weir__options(body, 1);
    const char *name;
    size_t size;
    int64_t tile = 0, progress = 0;
    double drain = (double)WEIR_DRAIN_NS / 1e9;
    char model_name[sizeof m->path];
    if (!weir_read_bytes(&c, &name, &size) || size >= sizeof model_name || memchr(name, 0, size))
        return weir_fail(error, WEIR_EINVAL, "load: wanted the path or the name of a model");
    memcpy(model_name, name, size);
    model_name[size] = 0;
    m->context = 0;
    m->intensity = RESTARTS;
    bool ok = option_device(m, o, error) && weir__option_int(o, "context", 0, 1 << 24, &m->context, error) &&
              weir__option_int(o, "tile", 0, 1 << 20, &tile, error) && weir__option_int(o, "progress", 0, INT64_MAX, &progress, error) &&
              weir__option_int(o, "restarts", 0, WEIR__MOST_RESTARTS, &m->intensity, error) &&
              weir__option_double(o, "drain", 0, 1e6, &drain, error) &&
              option_choice(o, "activations", "int8", &m->options.activations_f32, error) &&
              option_choice(o, "kv", "f16", &m->options.kv_f32, error) && option_quant(o, &m->quant, error);
    if (!ok)
        return WEIR_EINVAL;
    m->options.tile = (uint32_t)tile;
    m->drain = (int64_t)(drain * 1e9);
    m->progress = (weir_address)progress;
    return weir__model_locate(model_name, m->path, sizeof m->path, error);
}

static void on_load(weir_actor *self, const weir_message *msg) {
    weir__model *m = weir_state(self);
    weir_error *error = NULL;
    int code = m->loading || m->loaded || m->stopping || !no_member_left(m)
                   ? weir_fail(&error, WEIR_EBUSY, "load: this actor has a model already")
                   : WEIR_OK;
    if (!code)
        code = read_load(m, weir_message_body(msg), &error);
    if (code) {
        weir_reply_error(self, msg, error ? error : weir_error_new(code, NULL, NULL, "load: %s", weir_code_text(code)));
        return;
    }
    m->loading = true;
    m->caller = weir_defer(self, msg);
    weir__model_assemble(self);
}

/* ---- info ---- */

void weir__model_answer_info(weir_actor *self) {
    weir__model *m = weir_state(self);
    while (m->waiting) {
        weir__waiting *w = m->waiting;
        m->waiting = w->next;
        weir__answer_made(self, w->to, weir__model_describe(m));
        weir__free(m->system, w);
    }
}

static void on_info(weir_actor *self, const weir_message *msg) {
    weir__model *m = weir_state(self);
    if (!m->loaded || m->stopping) {
        weir_reply_error(self, msg, weir_error_new(WEIR_ESTATE, NULL, NULL, "info: no model is loaded"));
        return;
    }
    if (weir__model_whole(m)) {
        weir__reply_made(self, msg, weir__model_describe(m));
        return;
    }
    weir__waiting *w = weir__alloc(m->system, sizeof *w);
    if (!w) {
        weir_reply_error(self, msg, weir_error_new(WEIR_ENOMEM, NULL, NULL, "info: no memory to wait for a member that restarts"));
        return;
    }
    *w = (weir__waiting){m->waiting, weir_defer(self, msg)};
    m->waiting = w;
}

/* ---- ends ---- */

static void on_down(weir_actor *self, weir_address who, const weir_error *why) {
    weir__model *m = weir_state(self);
    for (int i = 0; i < WEIR__MEMBERS; i++) {
        if (m->members[i].address != who)
            continue;
        m->members[i] = (weir__member){.dead = who};
        weir__model_broken(self, weir_error_new(WEIR_EEXITED, weir__member_names[i], why ? weir_error_ref(why) : NULL, "%s ended%s",
                                                weir__member_names[i], m->loading ? " while the model was loading" : ""));
    }
    if (m->stopping && no_member_left(m))
        weir_exit(self, NULL);
}

static void on_stop(weir_actor *self) {
    weir__model *m = weir_state(self);
    weir__model_load_failed(self, weir_error_new(WEIR_ESTOPPING, "model", NULL, "load: the model was stopped while it was loading"));
    m->stopping = true;
    stop_members(m);
    if (no_member_left(m))
        weir_exit(self, NULL);
}

static void fini(weir_system *s, void *state) {
    weir__model *m = state;
    stop_members(m);
    if (m->opening)
        weir__device_open_drop(m->opening);
    while (m->waiting) {
        weir__waiting *w = m->waiting;
        m->waiting = w->next;
        weir__free(s, w);
    }
    weir__checkpoint_unref(m->checkpoint);
    weir__free(s, m);
}

static const weir_handler handlers[] = {
    {"load", on_load}, {"info", on_info}, {"drained", weir__model_drained}, {"device_opened", weir__model_device_opened}, {NULL, NULL}};
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
    weir__model *m = weir__alloc(s, sizeof *m);
    if (!m)
        return weir_fail(error, WEIR_ENOMEM, "model: no memory");
    m->system = s;
    m->open = weir_intern(s, "open");
    m->warm = weir_intern(s, "warm");
    m->prepare = weir_intern(s, "prepare");
    m->use = weir_intern(s, "use");
    m->drained = weir_intern(s, "drained");
    m->device_opened = weir_intern(s, "device_opened");
    return weir_spawn(s, &weir__model_behaviour, m, NULL, out, error);
}
