/* bench_kernels.c: the kernels alone, at SmolLM2-135M's shapes: decode products (GB/s of weights), prefill products (GMAC/s), attention, sampling; per level,
 * 1 and 2 threads. The machine may be shared: see best_of.
 *   bench_kernels [level] */
#include "kernel_team.h"

enum { LAYERS = 30, WIDTH = 576, HEADS = 9, KV_HEADS = 3, DIM = 64, MLP = 1536, VOCAB = 49152, QKV = 960, ROWS = 256, CONTEXT = 1024 };

/* ---- the model's products ---- */

typedef struct layer {
    void *base[5];
    weir_k_matmul qkv, out, down;
    weir_k_glu glu;
} layer;

static layer layers[LAYERS];
static void *head_base;
static weir_k_matmul head;
static weir_step step;
static float *x, *y;
static void *acts, *acts_wide;
static size_t layer_bytes, head_bytes;

static weir_weight random_weight(void **base, int type, int n, int k, size_t *total) {
    size_t bytes = weir_packed_size(type, n, k), block = weir_type_get(type)->panel_bytes;
    uint8_t *p = memory(bytes);
    uint32_t r = 1;
    for (size_t i = 0; i + 4 <= bytes; i += 4) {
        r = r * 1664525 + 1013904223;
        memcpy(p + i, &r, 4);
    }
    for (size_t b = 0; b + block <= bytes; b += block)
        for (size_t i = 0; i < (type == WEIR_Q4_1 ? 32 : 16); i++)
            memcpy(p + b + 2 * i, &(uint16_t){0x1400}, 2);
    *base = p;
    *total += bytes;
    return (weir_weight){base, 0, type, n, k};
}

static void open_model(void) {
    x = memory(ROWS * MLP * sizeof *x);
    y = memory(ROWS * sizeof *y * VOCAB / 16);
    acts = memory(ROWS * weir_act_size(32, WIDTH));
    acts_wide = memory(ROWS * weir_act_size(32, MLP));
    for (int i = 0; i < ROWS * WIDTH / 32; i++)
        ((act_block *)acts)[i] = (act_block){.d = 0.01f, .s = 0.1f, .sum = 10, .off = -1280, .q = {10}};
    for (int i = 0; i < LAYERS; i++) {
        layer *l = &layers[i];
        weir_k_matmul m = {.step = &step, .acts = acts, .y = y, .ldy = QKV};
        l->qkv = l->out = l->down = m;
        l->qkv.w = random_weight(&l->base[0], WEIR_Q4_1, QKV, WIDTH, &layer_bytes);
        l->out.w = random_weight(&l->base[1], WEIR_Q4_1, WIDTH, WIDTH, &layer_bytes);
        l->down.w = random_weight(&l->base[2], WEIR_Q4_1, WIDTH, MLP, &layer_bytes);
        l->down.acts = acts_wide;
        l->out.add = l->down.add = 1;
        l->glu = (weir_k_glu){.step = &step, .acts = acts, .acts_out = acts_wide, .acts_block = 32, .ldy = MLP};
        l->glu.gate = random_weight(&l->base[3], WEIR_Q4_1, MLP, WIDTH, &layer_bytes);
        l->glu.up = random_weight(&l->base[4], WEIR_Q4_1, MLP, WIDTH, &layer_bytes);
    }
    head = (weir_k_matmul){.step = &step, .acts = acts, .y = y, .ldy = VOCAB};
    head.w = random_weight(&head_base, WEIR_Q8_0, VOCAB, WIDTH, &head_bytes);
}

static int layer_items(item *to) {
    int n = 0;
    for (int i = 0; i < LAYERS; i++) {
        to[n++] = (item){WEIR_K_matmul, &layers[i].qkv};
        to[n++] = (item){WEIR_K_matmul, &layers[i].out};
        to[n++] = (item){WEIR_K_glu, &layers[i].glu};
        to[n++] = (item){WEIR_K_matmul, &layers[i].down};
    }
    return n;
}

static void bench_decode(int level, unsigned threads) {
    item items[MOST_ITEMS];
    int n = layer_items(items);
    step = (weir_step){.tile_rows = 1, .out_rows = 1};
    double q4 = best_of(level, threads, items, n, 100);
    items[n] = (item){WEIR_K_matmul, &head};
    double all = best_of(level, threads, items, n + 1, 100), q8 = best_of(level, threads, items + n, 1, 100);
    printf("%-8s %u  decode: layers %.3f ms %.1f GB/s, head %.3f ms %.1f GB/s, all %.3f ms = %.0f tokens/s\n", weir_cpu_level_name(level),
           threads, q4 * 1e3, (double)layer_bytes / q4 / 1e9, q8 * 1e3, (double)head_bytes / q8 / 1e9, all * 1e3, 1 / all);
}

static void bench_prefill(int level, unsigned threads) {
    item items[MOST_ITEMS];
    int n = layer_items(items);
    step = (weir_step){.tile_rows = ROWS};
    n = level == WEIR_CPU_GENERIC ? n / 10 : n;
    double s = best_of(level, threads, items, n, 6), macs = (double)n / 4 * ROWS * WIDTH * (QKV + WIDTH + 3.0 * MLP);
    printf("%-8s %u  prefill: %.1f GMAC/s = %.0f tokens/s of products alone\n", weir_cpu_level_name(level), threads, macs / s / 1e9,
           macs / s / (LAYERS * WIDTH * (QKV + WIDTH + 3.0 * MLP)));
}

/* ---- attention ---- */

static int32_t blocks[CONTEXT / 32], slots[ROWS], positions[ROWS];

static void bench_attention(int level, unsigned threads) {
    static weir_k_attention a;
    static void *partial;
    size_t pool = (size_t)CONTEXT * KV_HEADS * DIM * 2;
    if (!a.kv.k) {
        a = (weir_k_attention){.step = &step,
                               .q = x,
                               .ldq = QKV,
                               .heads = HEADS,
                               .scale = 0.125f,
                               .splits = CONTEXT / 256,
                               .out = y,
                               .acts = acts,
                               .acts_block = 32};
        a.kv = (weir_kv){memory(pool), memory(pool), WEIR_F16, KV_HEADS, DIM, 0};
        a.partial = partial = memory(weir_attention_workspace(HEADS, DIM, CONTEXT / 256));
    }
    for (int i = 0; i < CONTEXT / 32; i++)
        blocks[i] = i;
    enum { REPEAT = 20 }; /* the first meets new threads with untouched stacks */
    item items[2 * REPEAT];
    for (int i = 0; i < 2 * REPEAT; i++)
        items[i] = (item){i % 2 ? WEIR_K_attention_merge : WEIR_K_attention, &a};
    for (int rows = 1; rows <= ROWS; rows += ROWS - 1) {
        step = (weir_step){
            .rows = rows, .tile_rows = rows, .blocks_per_sequence = CONTEXT / 32, .blocks = blocks, .slot = slots, .position = positions};
        for (int i = 0; i < rows; i++)
            positions[i] = 511 - (rows - 1) + i;
        int repeat = rows == 1 ? REPEAT : 2;
        double s = best_of(level, threads, items, 2 * repeat, 20) / repeat;
        printf("%-8s %u  attention: %3d rows at 512: %.1f us a layer, %.0f rows/s of %d layers\n", weir_cpu_level_name(level), threads,
               rows, s * 1e6, rows / s / LAYERS, LAYERS);
    }
}

/* ---- small kernels ---- */

static void bench_rest(int level) {
    static weir_sample sample = {.temperature = 0.8f, .top_k = 40, .top_p = 0.95f};
    static int32_t sampled;
    float *logits = memory(VOCAB * sizeof *logits), *w = memory(WIDTH * sizeof *w);
    uint32_t r = 3;
    for (int i = 0; i < VOCAB; i++)
        logits[i] = (float)((r = r * 1664525 + 1013904223) >> 16) / 5000.0f;
    void *base = w;
    static weir_logprobs best;
    static int32_t blocks[32], history[1024];
    for (int i = 0; i < 1024; i++) {
        blocks[i / 32] = i / 32;
        history[i] = i * 31 % 700;
    }
    step = (weir_step){.tile_rows = 1,
                       .outputs = 1,
                       .out_rows = 1,
                       .sample = &sample,
                       .sampled = &sampled,
                       .blocks = blocks,
                       .history = history,
                       .logprobs = &best};
    weir_k_sample a = {.step = &step, .logits = logits, .vocab = VOCAB, .workspace = memory(weir_sample_workspace(VOCAB)), .workers = 1};
    weir_k_rmsnorm norm = {
        .step = &step, .x = x, .x_rows = WEIR_ROWS_PASS, .width = WIDTH, .weight_base = &base, .eps = 1e-5f, .acts = acts};
    item one = {WEIR_K_sample, &a}, two = {WEIR_K_rmsnorm, &norm};
    double top_k = best_of(level, 1, &one, 1, 20);
    sample = (weir_sample){.temperature = 0.8f, .top_p = 0.9f};
    double top_p = best_of(level, 1, &one, 1, 20);
    sample = (weir_sample){.temperature = 0.8f, .typical = 0.9f};
    double typical = best_of(level, 1, &one, 1, 20);
    sample = (weir_sample){.repeat_penalty = 1.1f, .frequency_penalty = 0.5f, .position = 1023, .temperature = 0.8f, .top_k = 40};
    double penalties = best_of(level, 1, &one, 1, 20);
    sample = (weir_sample){.logprobs = 6};
    double logprobs = best_of(level, 1, &one, 1, 20);
    sample = (weir_sample){0};
    double greedy = best_of(level, 1, &one, 1, 20), rms = best_of(level, 1, &two, 1, 20);
    printf("%-8s 1  sample: top-k 40 %.0f us, top-p 0.9 %.0f us, typical 0.9 %.0f us, penalties and top-k 40 %.0f us, greedy %.0f us, with "
           "5 logprobs %.0f us; "
           "rmsnorm of a row %.2f us\n",
           weir_cpu_level_name(level), top_k * 1e6, top_p * 1e6, typical * 1e6, penalties * 1e6, greedy * 1e6, logprobs * 1e6, rms * 1e6);
}

int main(int argc, char **argv) {
    int only = argc > 1 ? weir_cpu_level_find(argv[1]) : -1;
    open_model();
    printf("weights: layers %.1f MB, head %.1f MB\n", (double)layer_bytes / 1e6, (double)head_bytes / 1e6);
    for (int level = WEIR_CPU_LEVELS - 1; level >= 0; level--) {
        if (!weir_cpu_level_runs(level) || (only >= 0 && level != only))
            continue;
        for (unsigned threads = 1; threads <= 2; threads++) {
            bench_decode(level, threads);
            bench_prefill(level, threads);
            bench_attention(level, threads);
        }
        bench_rest(level);
    }
    return 0;
}
