/* Random arguments for chains of kernels, as a model's layer runs them, at odd sizes: every level, number of threads and tile must leave the same bytes in every
 * buffer as the generic level with one thread and one tile. What is right is said by the other tests; this one looks for what they did not think of. A failure
 * names its seed. */
#include "helper_reference.h"
#include "helper_reference_k.h"

#include <math.h>

/* How a pass is run. */
typedef struct way {
    int level;
    unsigned workers;
    int tile; /* most rows of a tile */
} way;

enum { MOST_BUFFERS = 24, MOST_KEPT = 24 };

/* What a chain wrote, and what it must free. Buffers are exactly as long as asked, so that sanitizers see a byte too many. */
typedef struct trace {
    struct {
        const char *name;
        uint8_t *bytes;
        size_t size;
    } buffers[MOST_BUFFERS];
    void *kept[MOST_KEPT];
    int count, kept_count;
} trace;
typedef void chain_fn(rng *r, const way *w, trace *t);

static void *buffer(trace *t, const char *name, size_t size) {
    void *p = NULL;
    if (t->count == MOST_BUFFERS || posix_memalign(&p, 64, size ? size : 1))
        fail_msg("no room for %s", name);
    memset(p, 0xff, size);
    t->buffers[t->count].name = name;
    t->buffers[t->count].bytes = p;
    t->buffers[t->count++].size = size;
    return p;
}

static float *normal_buffer(trace *t, rng *r, const char *name, size_t n) {
    float *p = buffer(t, name, n * sizeof *p);
    for (size_t i = 0; i < n; i++)
        p[i] = rng_normal(r);
    return p;
}

static void *kept(trace *t, void *p) {
    assert_true(t->kept_count < MOST_KEPT);
    t->kept[t->kept_count++] = p;
    return p;
}

static void trace_close(trace *t) {
    for (int i = 0; i < t->count; i++)
        free(t->buffers[i].bytes);
    for (int i = 0; i < t->kept_count; i++)
        free(t->kept[i]);
}

static void assert_same_trace(const trace *got, const trace *want, const way *w, uint64_t seed) {
    assert_int_equal(got->count, want->count);
    for (int i = 0; i < got->count; i++) {
        size_t size = got->buffers[i].size, at = 0;
        assert_int_equal(size, want->buffers[i].size);
        while (at < size && got->buffers[i].bytes[at] == want->buffers[i].bytes[at])
            at++;
        if (at < size)
            fail_msg("seed %llu, %u threads, tiles of %d: %s differs at byte %zu of %zu", (unsigned long long)seed, w->workers, w->tile,
                     got->buffers[i].name, at, size);
    }
}

static void compare_ways(int level, chain_fn *chain, int seeds) {
    for (uint64_t seed = 1; seed <= (uint64_t)seeds; seed++) {
        rng first = {seed}, choice = {seed * 77 + (uint64_t)level};
        trace want = {0};
        chain(&first, &(way){WEIR_CPU_GENERIC, 1, 1000}, &want);
        for (int i = 0; i < 3; i++) {
            way w = {level, 1 + (unsigned)rng_below(&choice, 4), i ? 1 + rng_below(&choice, 12) : 1000};
            rng again = {seed};
            trace got = {0};
            chain(&again, &w, &got);
            assert_same_trace(&got, &want, &w, seed);
            trace_close(&got);
        }
        trace_close(&want);
    }
}

/* ---- a layer: embedding, norm, product, gated product, norm that is added, head, sample ---- */

/* A runnable type whose blocks fit rows of k. */
static int random_type(rng *r, int k) {
    for (;;) {
        int type = rng_below(r, WEIR_TYPES);
        const weir_type_info *info = weir_type_get(type);
        if (info && k % (int)info->block == 0 && (!info->acts || k % (int)info->acts == 0))
            return type;
    }
}

/* Random blocks whose values are of a size that overflows nowhere: NaNs may differ. */
static uint8_t *random_blocks(rng *r, int type, int n, int k) {
    uint8_t *w = ref_random_weights(r, type, n, k);
    const weir_type_info *info = weir_type_get(type);
    for (size_t b = 0; info->block == 256 && b < (size_t)n * (size_t)k / 256; b++)
        ref_put_scales_k(type, w + b * info->bytes, ref_to_f16(0.002f * rng_float(r)), ref_to_f16(0.002f * rng_float(r)));
    return w;
}

/* A packed matrix with a vector of n floats behind it; *base is where a weight looks for it. */
static weir_weight random_matrix(trace *t, rng *r, const way *w, const char *name, int n, int k, uint64_t *vector) {
    int type = random_type(r, k);
    size_t size = weir_packed_size(type, n, k);
    uint8_t *blob = buffer(t, name, size + (size_t)n * sizeof(float)), *source = kept(t, random_blocks(r, type, n, k));
    void **base = kept(t, zeroed(sizeof *base));
    *base = blob;
    weir_weight weight = {base, 0, type, n, k};
    memset(blob, 0, size); /* what fills the last panels up to 64 bytes is nobody's */
    weir_k_pack pack = {source, weight, 0, 0, type, 0};
    run_kernel(w->level, WEIR_K_pack, &pack, w->workers);
    for (int i = 0; i < n; i++)
        ((float *)(void *)(blob + size))[i] = rng_normal(r);
    *vector = size;
    return weight;
}

static int random_width(rng *r) {
    switch (rng_below(r, 3)) {
    case 0:
        return 256 * (1 + rng_below(r, 2));
    case 1:
        return 32 * (1 + rng_below(r, 7));
    default:
        return 1 + rng_below(r, 90);
    }
}

static int random_rows(rng *r) {
    return rng_below(r, 3) ? 1 + rng_below(r, 20) : 1 + rng_below(r, 80);
}

enum { ROWS = 80, VOCAB = 203 };

typedef struct layer {
    int width, mlp, rows;
    weir_step step;
    int32_t token[ROWS], zero[ROWS], out_row[ROWS], sampled[ROWS];
    weir_sample sample[ROWS];
    weir_weight table, mix, gate, up, down;
    uint64_t table_end, mix_bias, gate_bias, up_bias, down_end;
    float *x, *normed, *mixed, *hidden, *back, *final, *logits;
    uint8_t *acts, *acts_k, *hidden_acts, *final_acts, *final_acts_k;
    int hidden_block, add, bias, activation;
    float scale, cap;
} layer;

static void layer_open(layer *l, rng *r, const way *w, trace *t) {
    int rows = random_rows(r), width = random_width(r), mlp = random_width(r);
    *l = (layer){.width = width, .mlp = mlp, .rows = rows};
    l->step = (weir_step){.rows = rows, .tile = w->tile, .tile_rows = rows, .out_tile = w->tile, .token = l->token, .slot = l->zero};
    l->step.position = l->zero;
    l->step.out_row = l->out_row;
    l->step.sample = l->sample;
    l->step.sampled = l->sampled;
    for (int i = 0; i < rows; i++) {
        l->token[i] = rng_below(r, VOCAB + 3);
        if (rng_below(r, 3) == 0)
            l->out_row[l->step.outputs++] = i;
        l->sample[i] =
            (weir_sample){.temperature = 0.7f * (float)rng_below(r, 3), .top_k = rng_below(r, 50), .seed = rng_next(r), .position = i};
    }
    l->step.out_rows = l->step.outputs;
    l->table = random_matrix(t, r, w, "table", VOCAB, width, &l->table_end);
    l->mix = random_matrix(t, r, w, "mix", width, width, &l->mix_bias);
    l->gate = random_matrix(t, r, w, "gate", mlp, width, &l->gate_bias);
    l->up = random_matrix(t, r, w, "up", mlp, width, &l->up_bias);
    l->down = random_matrix(t, r, w, "down", width, mlp, &l->down_end);
    l->add = rng_below(r, 2);
    l->bias = rng_below(r, 2);
    l->activation = rng_below(r, 2);
    l->scale = rng_below(r, 2) ? 1.7f : 0;
    l->cap = 3;
}

static void layer_buffers(layer *l, trace *t) {
    size_t rows = (size_t)l->rows, width = (size_t)l->width, mlp = (size_t)l->mlp, outputs = (size_t)l->step.outputs;
    int down = (int)weir_type_get(l->down.type)->acts;
    l->hidden_block = down ? down : 32;
    l->x = buffer(t, "x", rows * width * 4);
    l->normed = buffer(t, "normed", rows * width * 4);
    l->mixed = buffer(t, "mixed", rows * width * 4);
    memset(l->mixed, 0, rows * width * 4);
    l->hidden = buffer(t, "hidden", rows * mlp * 4);
    l->back = buffer(t, "back", rows * width * 4);
    l->final = buffer(t, "final", outputs * width * 4);
    l->logits = buffer(t, "logits", outputs * VOCAB * 4);
    l->acts = width % 32 ? NULL : buffer(t, "acts", rows * weir_act_size(32, l->width));
    l->acts_k = width % 256 ? NULL : buffer(t, "acts_k", rows * weir_act_size(256, l->width));
    l->final_acts = width % 32 ? NULL : buffer(t, "final acts", outputs * weir_act_size(32, l->width));
    l->final_acts_k = width % 256 ? NULL : buffer(t, "final acts_k", outputs * weir_act_size(256, l->width));
    l->hidden_acts = l->mlp % l->hidden_block ? NULL : buffer(t, "hidden acts", rows * weir_act_size(l->hidden_block, l->mlp));
}

static uint8_t *act_rows(uint8_t *acts, int row, int block, int k) {
    return acts ? acts + (size_t)row * weir_act_size(block, k) : NULL;
}

/* The activations that a weight takes. */
static const void *acts_for(const weir_weight *w, const uint8_t *acts, const uint8_t *acts_k) {
    return weir_type_get(w->type)->acts == 256 ? acts_k : weir_type_get(w->type)->acts == 32 ? acts : NULL;
}

static void layer_tile(layer *l, const way *w, int done) {
    size_t x_at = (size_t)done * (size_t)l->width, h_at = (size_t)done * (size_t)l->mlp;
    weir_step *s = &l->step;
    uint8_t *acts = act_rows(l->acts, done, 32, l->width), *acts_k = act_rows(l->acts_k, done, 256, l->width);
    uint8_t *hidden_acts = act_rows(l->hidden_acts, done, l->hidden_block, l->mlp);
    weir_k_embed embed = {s, l->table, l->x, l->scale};
    run_kernel(w->level, WEIR_K_embed, &embed, w->workers);
    weir_k_rmsnorm norm = {s,    l->x,  WEIR_ROWS_PASS, l->width, l->mix.base, l->mix_bias, 1e-6f, WEIR_ROWS_TILE, 0, l->normed + x_at,
                           acts, acts_k};
    run_kernel(w->level, WEIR_K_rmsnorm, &norm, w->workers);
    weir_k_matmul mix = {s,
                         l->mix,
                         l->normed + x_at,
                         acts_for(&l->mix, acts, acts_k),
                         l->width,
                         WEIR_ROWS_TILE,
                         l->mixed,
                         l->width,
                         WEIR_ROWS_PASS,
                         l->add,
                         l->bias,
                         l->mix_bias,
                         NULL,
                         0,
                         0};
    run_kernel(w->level, WEIR_K_matmul, &mix, w->workers);
    weir_k_glu glu = {
        .step = s, .gate = l->gate, .up = l->up, .x = l->normed + x_at, .ldx = l->width, .ldy = l->mlp, .y = l->hidden + h_at};
    glu.acts = weir_type_get(l->gate.type)->acts == weir_type_get(l->up.type)->acts ? acts_for(&l->gate, acts, acts_k) : NULL;
    glu.acts_out = hidden_acts;
    glu.acts_block = l->hidden_block;
    glu.activation = l->activation;
    glu.bias = l->bias;
    glu.gate_bias = l->gate_bias;
    glu.up_bias = l->up_bias;
    run_kernel(w->level, WEIR_K_glu, &glu, w->workers);
    weir_k_matmul down = {
        s, l->down, l->hidden + h_at, hidden_acts, l->mlp, WEIR_ROWS_TILE, l->back + x_at, l->width, WEIR_ROWS_TILE, 0, 0, 0, NULL, 0, 0};
    run_kernel(w->level, WEIR_K_matmul, &down, w->workers);
    weir_k_softcap cap = {s, l->back + x_at, l->width, WEIR_ROWS_TILE, l->cap};
    run_kernel(w->level, WEIR_K_softcap, &cap, w->workers);
    weir_k_rmsnorm sandwich = {s, l->back + x_at, WEIR_ROWS_TILE, l->width, l->mix.base, l->mix_bias, 1e-6f, WEIR_ROWS_PASS,
                               1, l->x,           NULL,           NULL};
    run_kernel(w->level, WEIR_K_rmsnorm, &sandwich, w->workers);
}

static void head_tile(layer *l, const way *w, int done) {
    size_t at = (size_t)done * (size_t)l->width;
    weir_step *s = &l->step;
    uint8_t *acts = act_rows(l->final_acts, done, 32, l->width), *acts_k = act_rows(l->final_acts_k, done, 256, l->width);
    weir_k_rmsnorm norm = {s,    l->x,  WEIR_ROWS_GATHER, l->width, l->mix.base, l->mix_bias, 1e-6f, WEIR_ROWS_OUT, 0, l->final + at,
                           acts, acts_k};
    run_kernel(w->level, WEIR_K_rmsnorm, &norm, w->workers);
    float *logits = l->logits + (size_t)done * VOCAB;
    weir_k_matmul head = {
        s, l->table, l->final + at, acts_for(&l->table, acts, acts_k), l->width, WEIR_ROWS_OUT, logits, VOCAB, WEIR_ROWS_OUT, 0, 0, 0, NULL,
        0, 0};
    run_kernel(w->level, WEIR_K_matmul, &head, w->workers);
    weir_k_softcap cap = {s, logits, VOCAB, WEIR_ROWS_OUT, l->cap};
    run_kernel(w->level, WEIR_K_softcap, &cap, w->workers);
    void *workspace = poisoned(weir_sample_workspace(VOCAB) * w->workers);
    weir_k_sample sample = {.step = s, .logits = logits, .vocab = VOCAB, .workspace = workspace, .workers = (int32_t)w->workers};
    run_kernel(w->level, WEIR_K_sample, &sample, w->workers);
    free(workspace);
}

static void layer_chain(rng *r, const way *w, trace *t) {
    layer *l = kept(t, zeroed(sizeof *l));
    layer_open(l, r, w, t);
    layer_buffers(l, t);
    weir_step *s = &l->step;
    weir_k_tile rows = {s, 0}, outputs = {s, 1};
    for (int done = 0; done < s->rows; done += s->tile_rows) {
        run_kernel(w->level, WEIR_K_tile, &rows, w->workers);
        layer_tile(l, w, done);
    }
    for (int done = 0; done < s->outputs; done += s->out_rows) {
        run_kernel(w->level, WEIR_K_tile, &outputs, w->workers);
        head_tile(l, w, done);
    }
    for (int i = 0; i < l->rows * l->width; i++)
        assert_true(isfinite(l->x[i]));
    memcpy(buffer(t, "sampled", sizeof l->sampled), l->sampled, sizeof l->sampled);
}

static void a_layer_leaves_the_same_bytes(void **state) {
    need_level(state);
    compare_ways(level_of(state), layer_chain, 24 / case_step(6));
}

/* ---- attention: norms of heads, rotation, storing, windows, caps ---- */

enum { SEQUENCES = 3, CONTEXT = 352, PER_SEQUENCE = CONTEXT / 32 };

typedef struct scene {
    weir_step step;
    int32_t blocks[SEQUENCES * PER_SEQUENCE], slot[ROWS], position[ROWS];
    int ld, q_floats, k_floats, width;
    float *qkv, *out, *table, *norms, *partial;
    uint8_t *acts;
    void *norm_base;
    weir_k_rope_store rope;
    weir_k_attention attention;
} scene;

/* Each sequence has a few rows, mostly one after another, now and then with a gap. */
static void scene_rows(scene *s, rng *r, int tile) {
    int rows = 0;
    for (int q = 0; q < SEQUENCES; q++) {
        int position = rng_below(r, 2) ? rng_below(r, 300) : 250 + rng_below(r, 12), count = rng_below(r, 26);
        for (int i = 0; i < count && position < CONTEXT; i++, rows++) {
            s->slot[rows] = q;
            s->position[rows] = position;
            position += rng_below(r, 9) ? 1 : 1 + rng_below(r, 40);
        }
    }
    if (!rows)
        s->position[rows++] = 0;
    for (int i = 0; i < SEQUENCES * PER_SEQUENCE; i++)
        s->blocks[i] = (i * 7 + 3) % (SEQUENCES * PER_SEQUENCE);
    s->step = (weir_step){.rows = rows, .tile = tile, .tile_rows = rows, .blocks_per_sequence = PER_SEQUENCE};
    s->step.slot = s->slot;
    s->step.position = s->position;
    s->step.blocks = s->blocks;
}

/* Everything before the pass is there, with some value. */
static void *random_pool(trace *t, rng *r, const char *name, int type, size_t n) {
    if (type == WEIR_F32)
        return normal_buffer(t, r, name, n);
    uint16_t *p = buffer(t, name, n * sizeof *p);
    for (size_t i = 0; i < n; i++)
        p[i] = (uint16_t)((rng_next(r) & 0x83ff) | (uint32_t)(11 + rng_below(r, 6)) << 10);
    return p;
}

static weir_kv random_kv(trace *t, rng *r) {
    static const int dims[] = {4, 8, 16, 20, 32, 40, 64, 96, 256};
    int type = rng_below(r, 2) ? WEIR_F16 : WEIR_F32, heads = 1 + rng_below(r, 3), dim = dims[rng_below(r, 9)];
    heads = dim > 64 ? 1 : heads;
    size_t cells = (size_t)(SEQUENCES * PER_SEQUENCE * heads * 32);
    void *k = random_pool(t, r, "K", type, cells * (size_t)dim);
    return (weir_kv){k, random_pool(t, r, "V", type, cells * pad16((size_t)dim)), type, heads, dim, 0};
}

static void scene_open(scene *s, rng *r, const way *w, trace *t) {
    scene_rows(s, r, w->tile);
    weir_kv kv = random_kv(t, r);
    int heads = kv.kv_heads * (1 + rng_below(r, 4)), rope_dim = rng_below(r, 3) ? kv.dim : kv.dim / 4 * 2;
    s->q_floats = heads * kv.dim;
    s->k_floats = kv.kv_heads * kv.dim;
    s->width = s->q_floats;
    s->ld = s->q_floats + 2 * s->k_floats + rng_below(r, 7);
    double *frequency = kept(t, zeroed(128 * sizeof *frequency));
    weir_rope rope = {.base = 10000, .dim = rope_dim, .scaling = rng_below(r, 4), .factor = 4, .original_context = 64};
    rope.low_freq = rope.beta_slow = 1;
    rope.high_freq = rope.beta_fast = 4;
    weir_rope_frequencies(&rope, frequency);
    s->table = buffer(t, "table", (size_t)(CONTEXT * rope_dim) * 4);
    weir_k_rope_table table = {s->table, CONTEXT, rope_dim, frequency, 1.1};
    run_kernel(w->level, WEIR_K_rope_table, &table, w->workers);
    s->norm_base = normal_buffer(t, r, "norms", 2 * (size_t)kv.dim);
    s->qkv = normal_buffer(t, r, "qkv", (size_t)(s->step.rows * s->ld));
    s->out = buffer(t, "out", (size_t)(s->step.rows * s->width) * 4);
    s->partial = kept(t, poisoned(weir_attention_workspace(heads, kv.dim, 2)));
    int block = s->width % 256 || rng_below(r, 2) ? 32 : 256;
    s->acts = s->width % block ? NULL : buffer(t, "acts", (size_t)s->step.rows * weir_act_size(block, s->width));
    s->rope = (weir_k_rope_store){&s->step,
                                  NULL,
                                  s->ld,
                                  s->q_floats,
                                  s->q_floats + s->k_floats,
                                  heads,
                                  rope_dim,
                                  CONTEXT,
                                  s->table,
                                  kv,
                                  rng_below(r, 2) ? &s->norm_base : NULL,
                                  0,
                                  (uint64_t)kv.dim * 4,
                                  1e-6f,
                                  0};
    s->attention = (weir_k_attention){&s->step, NULL, s->ld, heads, 0.2f, 2, kv, s->partial, NULL, NULL, block, 0, 0, 0};
    s->attention.window = rng_below(r, 3) ? 1 + rng_below(r, rng_below(r, 2) ? 40 : 300) : 0;
    s->attention.softcap = rng_below(r, 2) ? 5 : 0;
}

static void attention_chain(rng *r, const way *w, trace *t) {
    scene *s = kept(t, zeroed(sizeof *s));
    scene_open(s, r, w, t);
    weir_k_tile next = {&s->step, 0};
    for (int done = 0; done < s->step.rows; done += s->step.tile_rows) {
        run_kernel(w->level, WEIR_K_tile, &next, w->workers);
        s->rope.qkv = s->qkv + done * s->ld;
        s->attention.q = s->rope.qkv;
        s->attention.out = s->out + done * s->width;
        s->attention.acts = act_rows(s->acts, done, s->attention.acts_block, s->width);
        run_kernel(w->level, WEIR_K_rope_store, &s->rope, w->workers);
        run_kernel(w->level, WEIR_K_attention, &s->attention, w->workers);
        run_kernel(w->level, WEIR_K_attention_merge, &s->attention, w->workers);
    }
}

static void attention_leaves_the_same_bytes(void **state) {
    need_level(state);
    compare_ways(level_of(state), attention_chain, 24 / case_step(6));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        EACH_LEVEL(a_layer_leaves_the_same_bytes),
        EACH_LEVEL(attention_leaves_the_same_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
