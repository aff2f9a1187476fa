/* rig.c: see rig.h. */
#include "rig.h"

#include "../../core/model/gguf.h"

#include <dlfcn.h>

/* ---- system and device ---- */

void rig_open(rig *r) {
    weir_error *error = NULL;
    memset(r, 0, sizeof *r);
    dev_open_system(&r->t, NULL);
    rig_must(weir__device_open(r->t.s, "cuda", 0, &r->t.d, &error), error);
    r->c = weir__cuda_of(r->t.d);
    r->st = dev_stream(&r->t, "work");
}

void rig_close(rig *r) {
    rig_unload(r);
    if (r->st)
        weir__stream_close(r->st);
    dev_close(&r->t);
}

int rig_wait(rig *r, weir__stream *st) {
    int n = r->t.count;
    dev_notify(&r->t, st, 0);
    dev_run_until(&r->t, n + 1);
    return r->t.notice[n].status;
}

/* ---- a model ---- */

void rig_record(rig *r, const char *path, const weir__forward_options *o) {
    weir_error *error = NULL;
    rig_must(weir__checkpoint_open(r->t.s, path, -1, &r->checkpoint, &error), error);
    rig_must(weir__forward_new(r->checkpoint, r->t.d, o, &r->f, &error), error);
    r->units = weir__checkpoint_graph(r->checkpoint)->units;
}

void rig_unit_read(rig *r, uint32_t ordinal, bool counts, rig_unit *u) {
    const weir__unit_plan *p = weir__checkpoint_unit(r->checkpoint, ordinal);
    weir_error *error = NULL;
    weir__device *d = r->t.d;
    *u = (rig_unit){0};
    rig_must(weir__buffer_new(d, p->blob_bytes, "a unit", &u->blob, &error), error);
    rig_must(weir__mirror_new(d, p->source_bytes, "a unit's file bytes", &u->staging, &error), error);
    rig_must(weir__mirror_new(d, sizeof(void *), "a slot", &u->slot, &error), error);
    *(void **)weir__buffer_host(u->slot.host) = weir__buffer_pointer(u->blob);
    rig_must(weir__unit_read(r->checkpoint, ordinal, weir__buffer_host(u->staging.host), &error), error);
    rig_must(weir__list_new(d, "pack", &u->pack, &error), error);
    weir__buffer *const touched[] = {u->blob, u->staging.device, u->slot.device};
    for (int i = 0; i < 3 && counts; i++)
        assert_int_equal(weir__list_own(u->pack, touched[i]), WEIR_OK);
    rig_must(weir__unit_pack(r->checkpoint, ordinal, weir__buffer_pointer(u->staging.device),
                             (void *const *)weir__buffer_pointer(u->slot.device), u->pack, &error),
             error);
}

int rig_unit_submit(rig_unit *u, weir__stream *st) {
    int code = weir__mirror_push(st, &u->staging, 0, weir__buffer_size(u->staging.host));
    if (!code)
        code = weir__mirror_push(st, &u->slot, 0, sizeof(void *));
    return code ? code : weir__stream_run(st, u->pack, NULL);
}

void rig_unit_drop(rig_unit *u) {
    weir__list_unref(u->pack);
    weir__buffer_unref(u->blob);
    weir__mirror_free(&u->staging);
    weir__mirror_free(&u->slot);
    *u = (rig_unit){0};
}

void rig_load(rig *r, const char *path, const weir__forward_options *o) {
    rig_record(r, path, o);
    r->blobs = calloc(r->units + 1, sizeof *r->blobs);
    for (uint32_t i = 0; i <= r->units; i++) {
        rig_unit u;
        rig_unit_read(r, i, true, &u);
        assert_int_equal(rig_unit_submit(&u, r->st), WEIR_OK);
        r->blobs[i] = weir__buffer_ref(u.blob);
        weir__forward_set_base(r->f, i, u.blob);
        rig_unit_drop(&u);
    }
    const weir__config *config = weir__checkpoint_config(r->checkpoint);
    assert_int_equal(weir__forward_prepare(r->f, r->st), WEIR_OK);
    assert_int_equal(weir__forward_push_bases(r->f, r->st, 0, r->units + 1), WEIR_OK);
    assert_int_equal(weir__buffer_new_host(r->t.d, r->f->out_tile * (size_t)config->vocab * sizeof(float), "logits", &r->logits, NULL),
                     WEIR_OK);
    assert_int_equal(rig_wait(r, r->st), WEIR_OK);
}

void rig_unload(rig *r) {
    weir__forward_free(r->f);
    for (uint32_t i = 0; r->blobs && i <= r->units; i++)
        weir__buffer_unref(r->blobs[i]);
    free(r->blobs);
    weir__buffer_unref(r->logits);
    weir__checkpoint_unref(r->checkpoint);
    r->f = NULL;
    r->blobs = NULL;
    r->logits = NULL;
    r->checkpoint = NULL;
}

/* ---- a narrow model ---- */

enum { WIDTH = 32, HEADS = 2, KV_WIDTH = 16, FFN = 64, VOCAB = 64, CONTEXT = 512 };

static const struct {
    const char *name;
    int64_t k, n; /* n 0: a vector */
} tensors[] = {
    {"token_embd.weight", WIDTH, VOCAB},        {"output_norm.weight", WIDTH, 0},         {"blk.0.attn_norm.weight", WIDTH, 0},
    {"blk.0.attn_q.weight", WIDTH, WIDTH},      {"blk.0.attn_k.weight", WIDTH, KV_WIDTH}, {"blk.0.attn_v.weight", WIDTH, KV_WIDTH},
    {"blk.0.attn_output.weight", WIDTH, WIDTH}, {"blk.0.ffn_norm.weight", WIDTH, 0},      {"blk.0.ffn_gate.weight", WIDTH, FFN},
    {"blk.0.ffn_up.weight", WIDTH, FFN},        {"blk.0.ffn_down.weight", FFN, WIDTH}};

static void put_keys(weir__gguf_writer *w) {
    weir__gguf_put_string(w, "general.architecture", "llama");
    weir__gguf_put_u32(w, "llama.block_count", 1);
    weir__gguf_put_u32(w, "llama.embedding_length", WIDTH);
    weir__gguf_put_u32(w, "llama.feed_forward_length", FFN);
    weir__gguf_put_u32(w, "llama.attention.head_count", HEADS);
    weir__gguf_put_u32(w, "llama.attention.head_count_kv", HEADS * KV_WIDTH / WIDTH);
    weir__gguf_put_u32(w, "llama.context_length", CONTEXT);
    weir__gguf_put_f32(w, "llama.attention.layer_norm_rms_epsilon", 1e-5f);
}

static void write_narrow(weir_system *s, const char *path) {
    weir__gguf_writer *w = NULL;
    size_t count = 0;
    uint32_t random = 1;
    assert_int_equal(weir__gguf_create(s, path, &w, NULL), WEIR_OK);
    put_keys(w);
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
        int64_t dims[2] = {tensors[i].k, tensors[i].n};
        weir__gguf_put_tensor(w, tensors[i].name, WEIR_F32, dims[1] ? 2 : 1, dims);
        count += (size_t)(dims[0] * (dims[1] ? dims[1] : 1));
    }
    float *values = malloc(count * sizeof *values);
    for (size_t i = 0; i < count; i++) {
        random = random * 1664525 + 1013904223;
        values[i] = (float)(random >> 8) / (1 << 24) - 0.5f;
    }
    assert_int_equal(weir__gguf_put_data(w, values, count * sizeof *values, NULL), WEIR_OK);
    free(values);
    assert_int_equal(weir__gguf_finish(w, NULL), WEIR_OK);
}

static char narrow[] = "/tmp/weir-test-XXXXXX.gguf";

static void remove_narrow(void) {
    unlink(narrow);
}

const char *rig_narrow(void) {
    static bool made;
    weir_system *s = NULL;
    if (made)
        return narrow;
    close(mkstemps(narrow, 5));
    atexit(remove_narrow);
    made = true;
    assert_int_equal(weir_system_new(NULL, &s, NULL), WEIR_OK);
    write_narrow(s, narrow);
    weir_system_free(s);
    return narrow;
}

void rig_load_narrow(rig *r) {
    static const weir__forward_options options = {.tile = 64, .context = CONTEXT};
    rig_load(r, rig_narrow(), &options);
}

void rig_open_narrow(rig *r) {
    rig_open(r);
    rig_load_narrow(r);
}

/* ---- passes ---- */

/* Every sequence has the pool's blocks from `sequence` * its share on. */
static void blocks_of(rig *r, int32_t slot, int32_t share) {
    weir_step *v = &r->f->step.view;
    int32_t *row = (int32_t *)v->blocks + (size_t)slot * (size_t)v->blocks_per_sequence;
    for (int32_t i = 0; i < v->blocks_per_sequence; i++)
        row[i] = (slot * share + i) % v->blocks_per_sequence;
}

void rig_rows(rig *r, int sequences, int32_t first, uint32_t count, int want) {
    weir_error *error = NULL;
    int32_t vocab = weir__checkpoint_config(r->checkpoint)->vocab, *tokens = malloc(count * sizeof *tokens);
    weir__step_clear(&r->f->step);
    for (int32_t slot = 0; slot < sequences; slot++) {
        for (uint32_t i = 0; i < count; i++)
            tokens[i] = (7 * (first + (int32_t)i) + 11 * slot + 3) % vocab;
        blocks_of(r, slot, r->f->step.view.blocks_per_sequence / sequences);
        rig_must(weir__step_rows(&r->f->step, slot, first, tokens, count, vocab, want, NULL, &error), error);
    }
    free(tokens);
}

int rig_submit(rig *r) {
    weir__forward *f = r->f;
    size_t from = (size_t)((uint8_t *)f->w.logits - (uint8_t *)weir__buffer_pointer(f->memory));
    int code = weir__step_push(&f->step, r->st);
    if (!code)
        code = weir__forward_run(f, r->st, f->whole, 0);
    if (!code)
        code = weir__stream_copy(r->st, r->logits, 0, f->memory, from, rig_logits_size(r));
    return code ? code : weir__step_pull(&f->step, r->st);
}

int rig_pass(rig *r, int32_t first, uint32_t count, int want) {
    rig_rows(r, 1, first, count, want);
    int code = rig_submit(r);
    return code ? code : rig_wait(r, r->st);
}

size_t rig_logits_size(const rig *r) {
    return (size_t)r->f->step.view.outputs * (size_t)weir__checkpoint_config(r->checkpoint)->vocab * sizeof(float);
}

const float *rig_logits(const rig *r) {
    return weir__buffer_host(r->logits);
}

/* ---- the emulated driver ---- */

void *rig_emulated(const char *name) {
    static void *library;
    if (!library)
        library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    void *p = library ? dlsym(library, name) : NULL;
    assert_non_null(p);
    return p;
}

int rig_reports(const char *kind) {
    int count = 0;
    for (int i = 0; EMU(cuemu_report)(i); i++)
        count += strncmp(EMU(cuemu_report)(i), kind, strlen(kind)) == 0;
    return count;
}

void rig_no_reports(void) {
    if (EMU(cuemu_report_count)())
        fail_msg("%s", EMU(cuemu_report)(0));
}

void rig_close_clean(rig *r) {
    rig_close(r);
    rig_no_reports();
}

long rig_calls(const char *function) {
    return EMU(cuemu_count)(function);
}

int rig_setup(void **state) {
    (void)state;
    EMU(cuemu_reports_clear)();
    EMU(cuemu_log_clear)();
    EMU(cuemu_fail_clear)();
    return 0;
}
