/* helper_sampling.c: see the header. */
#include "helper_sampling.h"

#include <math.h>

/* ---- the scene ---- */

void scene_begin(scene *s, int outputs) {
    memset(s, 0, sizeof *s);
    for (int i = 0; i < SCENE_SLOTS * SCENE_BLOCKS; i++)
        s->blocks[i / SCENE_BLOCKS][i % SCENE_BLOCKS] = (i * 13 + 5) % (SCENE_SLOTS * SCENE_BLOCKS);
    for (int i = 0; i < SCENE_SLOTS * SCENE_BLOCKS * WEIR_KV_BLOCK; i++)
        s->history[i] = i % 2 ? INT32_MAX : -1 - i;
    for (int i = 0; i < SCENE_SLOTS; i++) {
        s->slot[i] = SCENE_SLOTS - 1 - i;
        s->out_row[i] = i;
        s->sampled[i] = -1;
    }
    s->step = (weir_step){.rows = outputs,
                          .outputs = outputs,
                          .out_rows = outputs,
                          .blocks_per_sequence = SCENE_BLOCKS,
                          .slot = s->slot,
                          .out_row = s->out_row,
                          .blocks = s->blocks[0],
                          .sample = s->sample,
                          .sampled = s->sampled,
                          .bias = s->bias[0],
                          .history = s->history,
                          .logprobs = s->logprobs};
}

void scene_history(scene *s, int slot, const int32_t *tokens, int n) {
    for (int p = 0; p < n; p++)
        s->history[s->blocks[slot][p / WEIR_KV_BLOCK] * WEIR_KV_BLOCK + p % WEIR_KV_BLOCK] = tokens[p];
}

static weir_k_sample arguments(scene *s, const float *logits, int vocab, unsigned workers) {
    return (weir_k_sample){.step = &s->step,
                           .logits = logits,
                           .vocab = vocab,
                           .workspace = poisoned(workers * weir_sample_workspace(vocab)),
                           .workers = (int32_t)workers};
}

void scene_run(scene *s, int level, const float *logits, int vocab, unsigned workers) {
    weir_k_sample a = arguments(s, logits, vocab, workers);
    run_kernel(level, WEIR_K_sample, &a, workers);
    free(a.workspace);
}

int scene_keep(scene *s, int level, const float *logits, int vocab, candidate *out) {
    weir__sample_keep_fn *const keep[] = AT_LEVELS(weir__sample_keep);
    const candidate *kept;
    weir_k_sample a = arguments(s, logits, vocab, 1);
    int n = keep[level](&a, 0, &kept);
    memcpy(out, kept, (size_t)n * sizeof *out);
    free(a.workspace);
    return n;
}

/* ---- the steps ---- */

static bool seen_before(const int32_t *tokens, int i) {
    for (int j = 0; j < i; j++)
        if (tokens[j] == tokens[i])
            return true;
    return false;
}

void ref_repeat_penalty(float *x, const int32_t *history, int n, float penalty) {
    for (int i = 0; i < n; i++)
        if (!seen_before(history, i))
            x[history[i]] = x[history[i]] < 0 ? x[history[i]] * penalty : x[history[i]] / penalty;
}

void ref_counted_penalties(float *x, const int32_t *generated, int n, float frequency, float presence) {
    for (int i = 0; i < n; i++) {
        int count = 0;
        for (int j = 0; j < n; j++)
            count += generated[j] == generated[i];
        if (!seen_before(generated, i))
            x[generated[i]] = x[generated[i]] - (float)count * frequency - presence;
    }
}

/* Ids of the numbers in ascending order of key; a stable order. */
typedef struct keyed {
    double key;
    int id;
} keyed;
static int by_key(const void *a, const void *b) {
    const keyed *l = a, *r = b;
    return l->key < r->key ? -1 : l->key > r->key ? 1 : l->id - r->id;
}

void ref_probabilities(const float *x, int vocab, double *p) {
    double largest = -(double)INFINITY, sum = 0;
    for (int i = 0; i < vocab; i++)
        largest = (double)x[i] > largest ? (double)x[i] : largest;
    for (int i = 0; i < vocab; i++) {
        p[i] = isnan(x[i]) ? 0 : (double)x[i] == largest ? 1 : exp((double)x[i] - largest);
        sum += p[i];
    }
    for (int i = 0; i < vocab; i++)
        p[i] /= sum;
}

void ref_top_k(float *x, int vocab, int k) {
    float kth = INFINITY;
    int above = 0;
    while (above < k) { /* the next smaller value, until k logits are at least that */
        float next = -INFINITY;
        for (int i = 0; i < vocab; i++)
            if (x[i] < kth && x[i] > next)
                next = x[i];
        if (next == -INFINITY)
            return;
        kth = next;
        above = 0;
        for (int i = 0; i < vocab; i++)
            above += x[i] >= kth;
    }
    for (int i = 0; i < vocab; i++)
        if (x[i] < kth)
            x[i] = -INFINITY;
}

/* From the end of a stable ascending order: a token goes if it and all before it have at most 1 - p; the last one stays. */
void ref_top_p(float *x, int vocab, double p) {
    double *q = calloc((size_t)vocab, sizeof *q), sum = 0;
    keyed *order = calloc((size_t)vocab, sizeof *order);
    ref_probabilities(x, vocab, q);
    for (int i = 0; i < vocab; i++)
        order[i] = (keyed){isnan(x[i]) ? -(double)INFINITY : (double)x[i], i};
    qsort(order, (size_t)vocab, sizeof *order, by_key);
    for (int i = 0; i < vocab - 1; i++) {
        sum += q[order[i].id];
        if (sum <= 1 - p)
            x[order[i].id] = -INFINITY;
    }
    free(q);
    free(order);
}

void ref_min_p(float *x, int vocab, double p) {
    double *q = calloc((size_t)vocab, sizeof *q), largest = 0;
    ref_probabilities(x, vocab, q);
    for (int i = 0; i < vocab; i++)
        largest = q[i] > largest ? q[i] : largest;
    for (int i = 0; i < vocab; i++)
        if (q[i] < p * largest)
            x[i] = -INFINITY;
    free(q);
}

void ref_typical(float *x, int vocab, double p) {
    double *q = calloc((size_t)vocab, sizeof *q), entropy = 0, sum = 0;
    keyed *order = calloc((size_t)vocab, sizeof *order);
    int last = 0;
    ref_probabilities(x, vocab, q);
    for (int i = 0; i < vocab; i++)
        entropy -= q[i] > 0 ? q[i] * log(q[i]) : 0;
    for (int i = 0; i < vocab; i++)
        order[i] = (keyed){q[i] > 0 ? fabs(-log(q[i]) - entropy) : (double)INFINITY, i};
    qsort(order, (size_t)vocab, sizeof *order, by_key);
    for (int i = 0; i < vocab; i++) {
        sum += q[order[i].id];
        last += sum < p;
    }
    last = last < vocab ? last : vocab - 1;
    for (int i = last + 1; i < vocab; i++)
        if (order[i].key > order[last].key * (1 + 1e-7)) /* equal ones are equal in the kernel's precision */
            x[order[i].id] = -INFINITY;
    free(q);
    free(order);
}
