/* residency.c: the actor that owns the file: opens it, reads and packs units, and encodes long texts, all on its transfer stream, so that the loop never
 * blocks on a disk. Knows nothing of who keeps what: that is the policy's. */
#include "actors.h"

typedef struct job {
    struct job *next;
    uint64_t id;
    weir_reply_to to;
    weir_error *error; /* set on the stream's thread, read after the notice */
    int (*upload)(struct job *j,
                  weir_actor *self); /* on the loop, after the host's part: submits the device's. NULL: there is none, or it is submitted */
    int (*finish)(struct job *j, weir_actor *self); /* on the loop, after success: answers */
    /* open */
    char *path;
    int quant; /* type, -1: none */
    weir__checkpoint *checkpoint;
    /* fetch */
    uint32_t ordinal;
    weir__device *device;
    weir__buffer *blob;
    weir__mirror staging, slot; /* the file's bytes; where the blob is, for kernels */
    /* encode */
    weir_body *text;
    bool special, bounds;
    weir__ids ids;
    weir_system *system;
    int refs; /* the actor's list and the stream's work; touched on the loop and in release: atomic */
} job;

typedef struct residency {
    weir_system *system;
    weir__device *device;
    weir__stream *stream;
    weir__checkpoint *checkpoint;
    job *jobs;
    uint64_t count;
    bool left; /* on the stream: a part of a job whose rest was refused */
    weir_verb work_done;
} residency;

static void job_release(void *data) {
    job *j = data;
    /* acq_rel: whoever is last sees what the other wrote */
    if (__atomic_sub_fetch(&j->refs, 1, __ATOMIC_ACQ_REL))
        return;
    weir_system *s = j->system;
    weir_error_free(j->error);
    weir__free(s, j->path);
    weir__checkpoint_unref(j->checkpoint);
    weir__buffer_unref(j->blob);
    weir__mirror_free(&j->staging);
    weir__mirror_free(&j->slot);
    weir_body_free(j->text);
    weir__ids_free(s, &j->ids);
    weir__free(s, j);
}

/* A job that is on the list and answers `m` later; NULL (answered with ENOMEM) without memory. */
static job *job_new(weir_actor *self, const weir_message *m, int (*finish)(job *, weir_actor *)) {
    residency *r = weir_state(self);
    job *j = weir__alloc(r->system, sizeof *j);
    if (!j) {
        weir_reply_error(self, m, weir_error_new(WEIR_ENOMEM, NULL, NULL, "no memory for a job"));
        return NULL;
    }
    *j = (job){.system = r->system, .id = ++r->count, .to = weir_defer(self, m), .finish = finish, .refs = 1};
    job **at = &r->jobs;
    while (*at)
        at = &(*at)->next;
    *at = j;
    return j;
}

static job *job_find(residency *r, uint64_t id) {
    job *j = r->jobs;
    while (j && j->id != id)
        j = j->next;
    return j;
}

static void job_take(residency *r, const job *j) {
    job **at = &r->jobs;
    while (*at != j)
        at = &(*at)->next;
    *at = j->next;
}

static void job_fail(weir_actor *self, job *j, weir_error *error) {
    weir_answer_error(self, j->to, error);
    job_take(weir_state(self), j);
    job_release(j);
}

/* What was left fails for itself: behind it a notice that no job waits for, so that the next work does not. */
static int part_from_left(weir_actor *self) {
    residency *r = weir_state(self);
    int code = r->left ? weir__stream_notify(r->stream, weir_self(self), r->work_done, 0) : WEIR_OK;
    r->left = r->left && code;
    return code;
}

static int job_host(weir_actor *self, job *j, int (*fn)(void *)) {
    int code = part_from_left(self);
    if (code)
        return code;
    j->refs++;
    code = weir__stream_host(((residency *)weir_state(self))->stream, fn, job_release, j);
    if (code)
        j->refs--;
    return code;
}

/* The last item of a job: tells the actor. */
static void job_submit(weir_actor *self, job *j, int code) {
    residency *r = weir_state(self);
    if (!code)
        code = weir__stream_notify(r->stream, weir_self(self), r->work_done, (int64_t)j->id);
    if (code) {
        r->left = true;
        job_fail(self, j, weir__stream_refused(r->device, "residency", code));
    }
}

static weir_error *work_failed(residency *r, int status) {
    char why[256];
    weir__stream_why(r->stream, why, sizeof why);
    return weir_error_new(status, NULL, NULL, "%s on stream residency of device %s%s", weir_code_text(status), weir__device_name(r->device),
                          why);
}

static void job_upload(weir_actor *self, job *j) {
    int (*upload)(job *, weir_actor *) = j->upload;
    j->upload = NULL;
    int code = part_from_left(self);
    if (!code)
        code = upload(j, self);
    if (j->error) {
        weir_error *error = j->error;
        j->error = NULL;
        job_fail(self, j, error);
    } else {
        job_submit(self, j, code);
    }
}

static void on_work_done(weir_actor *self, const weir_message *m) {
    residency *r = weir_state(self);
    int64_t status = 0, id = 0;
    weir_cursor c = weir_read(weir_message_body(m), NULL);
    if (!weir__own_notice(self, m) || !weir_read_int(&c, &status) || !weir_read_int(&c, &id))
        return;
    job *j = job_find(r, (uint64_t)id);
    if (!j)
        return;
    if (status && !j->error)
        j->error = work_failed(r, (int)status);
    if (!j->error && j->upload) {
        job_upload(self, j);
        return;
    }
    job_take(r, j);
    if (j->error) {
        weir_answer_error(self, j->to, j->error);
        j->error = NULL;
    } else if (j->finish(j, self)) {
        weir_answer_error(self, j->to, weir_error_new(WEIR_ENOMEM, NULL, NULL, "no memory for a reply"));
    }
    job_release(j);
}

/* ---- open ---- */

static int open_work(void *data) {
    job *j = data;
    return weir__checkpoint_open(j->system, j->path, j->quant, &j->checkpoint, &j->error);
}

static int open_finish(job *j, weir_actor *self) {
    residency *r = weir_state(self);
    weir__checkpoint_unref(r->checkpoint);
    r->checkpoint = weir__checkpoint_ref(j->checkpoint);
    weir_handle h = {&weir__checkpoint_handle, weir__checkpoint_ref(j->checkpoint)};
    weir_body *b = weir_pack(r->system, "h", h);
    return b ? weir_answer(self, j->to, b) : WEIR_ENOMEM;
}

static void on_open(weir_actor *self, const weir_message *m) {
    residency *r = weir_state(self);
    const char *path;
    size_t size;
    int64_t quant = -1;
    weir_cursor c = weir_read(weir_message_body(m), NULL);
    if (!weir_read_bytes(&c, &path, &size)) {
        weir_reply_error(self, m, weir_error_new(WEIR_ETYPE, NULL, NULL, "open: wanted a path"));
        return;
    }
    job *j = job_new(self, m, open_finish);
    if (!j)
        return;
    weir_read_int(&c, &quant);
    j->quant = (int)quant;
    j->path = weir__alloc(r->system, size + 1);
    if (j->path)
        __builtin_memcpy(j->path, path, size);
    job_submit(self, j, j->path ? job_host(self, j, open_work) : WEIR_ENOMEM);
}

/* ---- fetch ---- */

static int make_buffers(job *j, weir_error **error) {
    const weir__unit_plan *p = weir__checkpoint_unit(j->checkpoint, j->ordinal);
    int code = weir__buffer_new(j->device, p->blob_bytes, p->path, &j->blob, error);
    if (!code)
        code = weir__mirror_new(j->device, p->source_bytes, "reading a unit", &j->staging, error);
    if (!code)
        code = weir__mirror_new(j->device, sizeof(void *), "a base pointer", &j->slot, error);
    if (!code)
        *(void **)weir__buffer_host(j->slot.host) = weir__buffer_pointer(j->blob);
    return code;
}

/* Memory is taken here too: a driver may take its time to give and to pin it. */
static int read_work(void *data) {
    job *j = data;
    int code = make_buffers(j, &j->error);
    return code ? code : weir__unit_read(j->checkpoint, j->ordinal, weir__buffer_host(j->staging.host), &j->error);
}

static int fetch_finish(job *j, weir_actor *self) {
    weir_handle h = {&weir__buffer_handle, weir__buffer_ref(j->blob)};
    weir_body *b = weir_pack(j->system, "h", h);
    return b ? weir_answer(self, j->to, b) : WEIR_ENOMEM;
}

static int pack_list(job *j, weir__list **list, weir_error **error) {
    int code = weir__list_new(j->device, "pack", list, error);
    weir__buffer *const owned[] = {j->blob, j->staging.device, j->slot.device};
    for (int i = 0; i < 3 && !code; i++)
        code = weir__list_own(*list, owned[i]);
    return code ? code
                : weir__unit_pack(j->checkpoint, j->ordinal, weir__buffer_pointer(j->staging.device),
                                  (void *const *)weir__buffer_pointer(j->slot.device), *list, error);
}

static int fetch_upload(job *j, weir_actor *self) {
    residency *r = weir_state(self);
    weir__list *list = NULL;
    int code = pack_list(j, &list, &j->error);
    if (!code)
        code = weir__mirror_push(r->stream, &j->staging, 0, weir__buffer_size(j->staging.host));
    if (!code)
        code = weir__mirror_push(r->stream, &j->slot, 0, sizeof(void *));
    if (!code)
        code = weir__stream_run(r->stream, list, NULL);
    weir__list_unref(list);
    return code;
}

static void on_fetch(weir_actor *self, const weir_message *m) {
    residency *r = weir_state(self);
    int64_t ordinal = -1;
    weir_cursor c = weir_read(weir_message_body(m), NULL);
    if (!r->checkpoint || !weir_read_int(&c, &ordinal) || ordinal < 0 || ordinal > (int64_t)weir__checkpoint_graph(r->checkpoint)->units) {
        weir_reply_error(self, m,
                         weir_error_new(r->checkpoint ? WEIR_EINVAL : WEIR_ESTATE, NULL, NULL,
                                        r->checkpoint ? "fetch: no unit %lld" : "fetch: no file is open (unit %lld)", (long long)ordinal));
        return;
    }
    job *j = job_new(self, m, fetch_finish);
    if (!j)
        return;
    j->ordinal = (uint32_t)ordinal;
    j->device = r->device;
    j->checkpoint = weir__checkpoint_ref(r->checkpoint);
    j->upload = fetch_upload;
    job_submit(self, j, job_host(self, j, read_work));
}

/* ---- encode ---- */

static int encode_work(void *data) {
    job *j = data;
    const weir__tokenizer *t = weir__checkpoint_tokenizer(j->checkpoint, NULL);
    return weir__encode_value(j->system, t, weir_read(j->text, NULL), j->special, j->bounds, &j->ids, &j->error);
}

static int encode_finish(job *j, weir_actor *self) {
    weir_body *b = weir_pack(j->system, "b", j->ids.data, j->ids.size * sizeof *j->ids.data);
    return b ? weir_answer(self, j->to, b) : WEIR_ENOMEM;
}

static void on_encode(weir_actor *self, const weir_message *m) {
    residency *r = weir_state(self);
    if (!r->checkpoint || !weir__checkpoint_tokenizer(r->checkpoint, NULL)) {
        weir_reply_error(self, m, weir_error_new(WEIR_EUNSUPPORTED, NULL, NULL, "encode: the model has no tokeniser that weir knows"));
        return;
    }
    weir_cursor options = weir__options(weir_message_body(m), 1);
    weir_error *error = NULL;
    bool special = false, bounds = false;
    if (!weir__option_bool(options, "special", &special, &error) || !weir__option_bool(options, "bounds", &bounds, &error)) {
        weir_reply_error(self, m, error);
        return;
    }
    job *j = job_new(self, m, encode_finish);
    if (!j)
        return;
    j->special = special;
    j->bounds = bounds;
    j->checkpoint = weir__checkpoint_ref(r->checkpoint);
    j->text = weir_body_ref(weir_message_body(m));
    job_submit(self, j, job_host(self, j, encode_work));
}

/* ---- the actor ---- */

static void on_device_lost(weir_actor *self, const weir_message *m) {
    weir__on_device_lost(self, m, ((residency *)weir_state(self))->device);
}

static void fini(weir_system *s, void *state) {
    residency *r = state;
    weir__stream_close(r->stream);
    while (r->jobs) {
        job *j = r->jobs;
        r->jobs = j->next;
        job_release(j);
    }
    weir__checkpoint_unref(r->checkpoint);
    weir__free(s, r);
}

static const weir_handler handlers[] = {
    {"open", on_open}, {"fetch", on_fetch}, {"encode", on_encode}, {"work_done", on_work_done}, {"device_lost", on_device_lost},
    {NULL, NULL}};
const weir_behaviour weir__residency_behaviour = {.name = "residency", .handlers = handlers, .fini = fini};

int weir__residency_spawn(weir_system *s, weir__device *d, weir__checkpoint *c, weir_address *out, weir_error **error) {
    residency *r = weir__alloc(s, sizeof *r);
    if (!r)
        return weir_fail(error, WEIR_ENOMEM, "residency: no memory");
    *r = (residency){.system = s, .device = d, .checkpoint = c ? weir__checkpoint_ref(c) : NULL, .work_done = weir_intern(s, "work_done")};
    int code = weir_spawn(s, &weir__residency_behaviour, r, NULL, out, error);
    return code ? code : weir__actor_stream(s, *out, d, "residency", &r->stream, error);
}
