/* forward.c: memory of a model's forward work and its recorded lists (forward.h). */
#include "forward.h"
#include "carver.h"

#include <string.h>

#define OUT_TILE 32 /* rows of logits at a time: 32 x vocabulary floats */

/* ---- memory: one buffer, carved twice: once to measure, once to assign ---- */

/* Room for rows of activations; blocks of 32 take more than blocks of 256. */
static void *carve_acts(const weir__forward *f, weir__carver *m, size_t block, size_t rows, size_t width) {
    return !weir__forward_int8(f) || width % block ? NULL : weir__carve(m, rows * weir_act_size((int)block, (int64_t)width));
}

/* The largest that a product of the model asks for. */
static size_t products_space(const weir__forward *f) {
    size_t most = 0;
    uint32_t units = weir__checkpoint_graph(f->checkpoint)->units;
    for (uint32_t u = 0; u <= units; u++) {
        const weir__unit_plan *p = weir__checkpoint_unit(f->checkpoint, u);
        int32_t rows = u == units ? (int32_t)f->out_tile : (int32_t)f->options.tile;
        for (size_t i = 0; i < p->count; i++) {
            const weir__tensor_plan *t = &p->tensors[i];
            size_t bytes = t->vector ? 0 : weir__device_product_workspace(f->device, rows, t->n, t->k);
            most = bytes > most ? bytes : most;
        }
    }
    return most;
}

static void carve_workspace(weir__forward *f, weir__carver *m) {
    const weir__config *c = weir__checkpoint_config(f->checkpoint);
    size_t T = f->options.tile, P = f->options.context, H = (size_t)c->width, A = (size_t)f->q_width, splits;
    size_t rows = T > f->out_tile ? T : f->out_tile; /* the head's norm uses the same space */
    weir__workspace *w = &f->w;
    splits = (P + WEIR_ATTENTION_SPLIT - 1) / WEIR_ATTENTION_SPLIT;
    w->x = weir__carve(m, P * H * sizeof(float));
    w->normed = weir__carve(m, rows * H * sizeof(float));
    w->normed_acts = carve_acts(f, m, 32, rows, H);
    w->normed_acts_k = carve_acts(f, m, 256, rows, H);
    w->qkv = weir__carve(m, T * (size_t)f->qkv_width * sizeof(float));
    w->attention = weir__carve(m, T * A * sizeof(float));
    w->attention_acts = carve_acts(f, m, 32, T, A);
    w->hidden = weir__carve(m, T * (size_t)c->ffn * sizeof(float));
    w->hidden_acts = carve_acts(f, m, 32, T, (size_t)c->ffn);
    w->partial = weir__carve(m, weir__device_attention_workspace(f->device, (int32_t)T, c->heads, c->head_dim, (int32_t)splits));
    w->rope = weir__carve(m, P * (size_t)c->rope.dim * sizeof(float));
    w->logits = weir__carve(m, f->out_tile * (size_t)c->vocab * sizeof(float));
    w->sampling = weir__carve(m, weir__device_sample_workspace(f->device, (int32_t)f->out_tile, c->vocab));
    w->products = weir__carve(m, products_space(f));
}

static int make_workspace(weir__forward *f, weir_error **error) {
    weir__carver m = {0};
    carve_workspace(f, &m);
    int code = weir__buffer_new(f->device, m.used, "the workspace", &f->memory, error);
    if (code)
        return code;
    m = (weir__carver){weir__buffer_pointer(f->memory), 0};
    carve_workspace(f, &m);
    return WEIR_OK;
}

/* memory: where all of it lies; NULL: it is made. */
static int set_kv(weir__forward *f, weir__buffer *memory, weir_error **error) {
    const weir__config *c = weir__checkpoint_config(f->checkpoint);
    int type = f->options.kv_f32 ? WEIR_F32 : WEIR_F16;
    size_t element = f->options.kv_f32 ? 4 : 2, blocks = (f->options.context + WEIR_KV_BLOCK - 1) / WEIR_KV_BLOCK;
    size_t padded = ((size_t)c->head_dim + 15) / 16 * 16, heads = (size_t)c->kv_heads;
    size_t k_bytes = blocks * heads * (size_t)c->head_dim * WEIR_KV_BLOCK * element,
           v_bytes = blocks * heads * padded * WEIR_KV_BLOCK * element;
    k_bytes = (k_bytes + 63) / 64 * 64;
    v_bytes = (v_bytes + 63) / 64 * 64;
    int code = WEIR_OK;
    if (memory)
        f->kv_memory = weir__buffer_ref(memory);
    else
        code = weir__buffer_new(f->device, (k_bytes + v_bytes) * (size_t)c->layers, "the KV cache", &f->kv_memory, error);
    if (code)
        return code;
    f->kv = weir__alloc(weir__checkpoint_system(f->checkpoint), sizeof *f->kv * (size_t)c->layers);
    if (!f->kv)
        return weir_fail(error, WEIR_ENOMEM, "no memory for the KV cache's table");
    uint8_t *at = weir__buffer_pointer(f->kv_memory);
    for (int32_t i = 0; i < c->layers; i++, at += k_bytes + v_bytes)
        f->kv[i] = (weir_kv){at, at + k_bytes, type, c->kv_heads, c->head_dim, 0};
    return WEIR_OK;
}

static int make_kv(weir__forward *f, weir_error **error) {
    return set_kv(f, NULL, error);
}

static int make_step(weir__forward *f, weir_error **error) {
    const weir__config *c = weir__checkpoint_config(f->checkpoint);
    int code = weir__step_init(weir__checkpoint_system(f->checkpoint), f->device, f->options.context, f->options.tile, f->out_tile,
                               &f->step, error);
    if (!code)
        code = weir__mirror_new(f->device, sizeof(void *) * (weir__checkpoint_graph(f->checkpoint)->units + 1), "base pointers", &f->slots,
                                error);
    if (!code)
        code = weir__mirror_new(f->device, sizeof(double) * (size_t)c->rope.dim / 2, "rotary frequencies", &f->frequencies, error);
    if (!code)
        weir_rope_frequencies(&c->rope, weir__buffer_host(f->frequencies.host));
    return code;
}

/* All of it at an address where nothing is. */
static int make_nowhere(weir__forward *f, weir_error **error) {
    weir__carver m = {0};
    int code = weir__buffer_new_nowhere(f->device, &f->memory, error);
    if (code)
        return code;
    m.base = weir__buffer_pointer(f->memory);
    carve_workspace(f, &m);
    weir__step_nowhere(&f->step, f->memory);
    f->slots.device = weir__buffer_ref(f->memory);
    f->frequencies.device = weir__buffer_ref(f->memory);
    return set_kv(f, f->memory, error);
}

/* ---- lists ---- */

static int new_list(weir__forward *f, const char *name, weir__list **out, weir_error **error) {
    weir__buffer *owned[4 + WEIR__STEP_BUFFERS] = {f->memory, f->kv_memory, f->slots.device, f->frequencies.device};
    weir__step_buffers(&f->step, owned + 4);
    int code = weir__list_new(f->device, name, out, error);
    for (size_t i = 0; i < sizeof owned / sizeof *owned && !code; i++)
        code = weir__list_own(*out, owned[i]);
    return code;
}

/* A list that begins with moving to the next tile, or output tile (1). */
static int tiled_list(weir__forward *f, const char *name, int32_t outputs, weir__list **out, weir_error **error) {
    weir_k_tile tile = {weir__step_device(&f->step), outputs};
    int code = new_list(f, name, out, error);
    return code ? code : weir__list_add(*out, WEIR_K_tile, &tile, true, error);
}

static int record_tables(weir__forward *f, weir_error **error) {
    const weir__config *c = weir__checkpoint_config(f->checkpoint);
    weir_k_rope_table table = {f->w.rope, (int32_t)f->options.context, c->rope.dim, weir__buffer_pointer(f->frequencies.device),
                               c->rope_scale};
    int code = new_list(f, "tables", &f->tables, error);
    if (code || c->rope.dim == 0)
        return code;
    return weir__list_add(f->tables, WEIR_K_rope_table, &table, true, error);
}

static int record_begin(weir__forward *f, weir_error **error) {
    int code = tiled_list(f, "begin", 0, &f->begin, error);
    return code ? code : weir__record_embedding(f, f->begin, error);
}

static int record_normed(weir__forward *f, weir_error **error) {
    int code = tiled_list(f, "normed", 0, &f->normed, error);
    return code ? code : weir__record_final_norm(f, f->normed, error);
}

static int record_units(weir__forward *f, weir_error **error) {
    uint32_t units = weir__checkpoint_graph(f->checkpoint)->units;
    f->units = weir__alloc(weir__checkpoint_system(f->checkpoint), sizeof *f->units * units);
    if (!f->units)
        return weir_fail(error, WEIR_ENOMEM, "no memory for %u lists", units);
    for (uint32_t u = 0; u < units; u++) {
        int code = tiled_list(f, weir__checkpoint_unit(f->checkpoint, u)->path, 0, &f->units[u], error);
        if (!code)
            code = weir__record_unit(f, u, f->units[u], error);
        if (code)
            return code;
    }
    return WEIR_OK;
}

static int record_finish(weir__forward *f, weir_error **error) {
    const weir__config *c = weir__checkpoint_config(f->checkpoint);
    int code = tiled_list(f, "finish", 1, &f->finish, error);
    if (!code)
        code = weir__record_head(f, f->finish, error);
    weir_k_sample sample = {
        weir__step_device(&f->step), f->w.logits, c->vocab, 0, f->w.sampling, (int32_t)weir__device_threads(f->device), 0};
    return code ? code : weir__list_add(f->finish, WEIR_K_sample, &sample, true, error);
}

static int record_whole(weir__forward *f, weir_error **error) {
    int code = new_list(f, "whole", &f->whole, error);
    if (!code)
        code = weir__list_append(f->whole, f->begin, error);
    for (uint32_t u = 0; u < weir__checkpoint_graph(f->checkpoint)->units && !code; u++)
        code = weir__list_append(f->whole, f->units[u], error);
    return code ? code : weir__list_append(f->whole, f->finish, error);
}

bool weir__forward_int8(const weir__forward *f) {
    return !f->options.activations_f32 && weir__device_has_int8(f->device);
}

/* ---- making and giving back ---- */

typedef int making(weir__forward *, weir_error **);

/* Made by the first n of the steps, then recorded. */
static int make(weir__checkpoint *c, weir__device *d, const weir__forward_options *o, making *const *steps, size_t n, weir__forward **out,
                weir_error **error) {
    static making *const records[] = {record_tables, record_begin, record_units, record_finish, record_normed, record_whole};
    const weir__config *config = weir__checkpoint_config(c);
    weir__forward *f = weir__alloc(weir__checkpoint_system(c), sizeof *f);
    if (!f)
        return weir_fail(error, WEIR_ENOMEM, "no memory");
    f->checkpoint = weir__checkpoint_ref(c);
    f->device = d;
    f->options = *o;
    f->out_tile = o->context < OUT_TILE ? o->context : OUT_TILE;
    f->q_width = config->heads * config->head_dim;
    f->k_width = config->kv_heads * config->head_dim;
    f->qkv_width = f->q_width + 2 * f->k_width;
    int code = WEIR_OK;
    for (size_t i = 0; i < n && !code; i++)
        code = steps[i](f, error);
    for (size_t i = 0; i < sizeof records / sizeof *records && !code; i++)
        code = records[i](f, error);
    if (code)
        weir__forward_free(f);
    else
        *out = f;
    return code;
}

int weir__forward_new(weir__checkpoint *c, weir__device *d, const weir__forward_options *o, weir__forward **out, weir_error **error) {
    static making *const steps[] = {make_workspace, make_kv, make_step};
    return make(c, d, o, steps, sizeof steps / sizeof *steps, out, error);
}

/* The packing of unit u. */
static int check_pack(const weir__forward *f, uint32_t u, weir_error **error) {
    weir__list *l = NULL;
    int code = weir__list_new(f->device, "pack", &l, error);
    if (!code)
        code = weir__unit_pack(f->checkpoint, u, weir__buffer_pointer(f->memory), weir__forward_slot(f, u), l, error);
    weir__list_unref(l);
    return code;
}

int weir__forward_check(weir__checkpoint *c, weir__device *d, const weir__forward_options *o, weir_error **error) {
    static making *const steps[] = {make_nowhere};
    weir__forward *f = NULL;
    int code = make(c, d, o, steps, 1, &f, error);
    for (uint32_t u = 0; !code && u <= weir__checkpoint_graph(c)->units; u++)
        code = check_pack(f, u, error);
    weir__forward_free(f);
    return code;
}

void weir__forward_free(weir__forward *f) {
    if (!f)
        return;
    weir_system *s = weir__checkpoint_system(f->checkpoint);
    for (uint32_t u = 0; f->units && u < weir__checkpoint_graph(f->checkpoint)->units; u++)
        weir__list_unref(f->units[u]);
    weir__list *const lists[] = {f->tables, f->begin, f->normed, f->finish, f->whole};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        weir__list_unref(lists[i]);
    weir__buffer *const buffers[] = {f->memory, f->kv_memory};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        weir__buffer_unref(buffers[i]);
    weir__step_fini(&f->step);
    weir__mirror_free(&f->slots);
    weir__mirror_free(&f->frequencies);
    weir__free(s, f->units);
    weir__free(s, f->kv);
    weir__checkpoint_unref(f->checkpoint);
    weir__free(s, f);
}

void *const *weir__forward_slot(const weir__forward *f, uint32_t ordinal) {
    return (void **)weir__buffer_pointer(f->slots.device) + ordinal;
}

void weir__forward_set_base(weir__forward *f, uint32_t ordinal, weir__buffer *blob) {
    ((void **)weir__buffer_host(f->slots.host))[ordinal] = weir__buffer_pointer(blob);
}

int weir__forward_push_bases(weir__forward *f, weir__stream *st, uint32_t first, uint32_t count) {
    return weir__mirror_push(st, &f->slots, first * sizeof(void *), count * sizeof(void *));
}

/* ---- submitting ---- */

int weir__forward_prepare(weir__forward *f, weir__stream *st) {
    int code = weir__stream_prepare(st);
    if (!code)
        code = weir__mirror_push(st, &f->frequencies, 0, weir__buffer_size(f->frequencies.host));
    return code ? code : weir__stream_run(st, f->tables, NULL);
}

static uint32_t parts(int32_t n, uint32_t tile) {
    return ((uint32_t)n + tile - 1) / tile;
}
uint32_t weir__forward_tiles(const weir__forward *f) {
    return parts(f->step.view.rows, f->options.tile);
}
uint32_t weir__forward_out_tiles(const weir__forward *f) {
    return parts(f->step.view.outputs, f->out_tile);
}

/* Few different sizes, so that what a device keeps for a shape is used again: exact up to 16, then powers of two, at most the tile. */
static int32_t part(int32_t all, uint32_t tile, uint32_t i) {
    int32_t left = all - (int32_t)(i * tile), n = 16;
    if (left <= n)
        return left < 0 ? 0 : left;
    while (n < left && n < (int32_t)tile)
        n *= 2;
    return n < (int32_t)tile ? n : (int32_t)tile;
}

/* In whole splits of attention, their number a power of two. */
static int32_t rounded_positions(const weir__forward *f) {
    int32_t n = WEIR_ATTENTION_SPLIT;
    while (n < f->step.positions)
        n *= 2;
    return n < (int32_t)f->options.context ? n : (int32_t)f->options.context;
}

int weir__forward_run(weir__forward *f, weir__stream *st, weir__list *l, uint32_t i) {
    weir__shape shape = {part(f->step.view.rows, f->options.tile, i), part(f->step.view.outputs, f->out_tile, i), rounded_positions(f)};
    return weir__stream_run(st, l, &shape);
}

int weir__forward_run_tiles(weir__forward *f, weir__stream *st, weir__list *l) {
    int code = WEIR_OK;
    for (uint32_t i = 0; i < weir__forward_tiles(f) && !code; i++)
        code = weir__forward_run(f, st, l, i);
    return code;
}
