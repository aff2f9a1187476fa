/* sample.c: draws a token from a row of logits: the steps in their order, then one counter-based random number. The same token at every level: weights are our own
 * exp, sums are in double and in a fixed order. */
#include "sample_change.h"
#include "sample_keep.h"
#include "sample_logprobs.h"

/* ---- the steps in order ---- */

static void apply(sampling *m, enum weir_sampler step) {
    switch (step) {
    case WEIR_S_temperature:
        set_temperature(m);
        return;
    case WEIR_S_top_k:
        top_k(m);
        return;
    case WEIR_S_typical:
        typical(m);
        return;
    case WEIR_S_top_p:
        top_p(m);
        return;
    case WEIR_S_min_p:
        min_p(m);
        return;
    default:
        change_logits(m, step);
    }
}

/* Greedy takes the steps that change logits only. */
static void apply_all(sampling *m) {
    bool greedy = !(m->s->temperature > 0), given = m->s->order[0] != WEIR_S_END;
    for (int i = 0; i < WEIR_SAMPLER_COUNT; i++) {
        enum weir_sampler step = given ? m->s->order[i] : (enum weir_sampler)(i + 1);
        if (step == WEIR_S_END)
            return;
        if (!greedy || step < WEIR_S_temperature)
            apply(m, step);
    }
}

static sampling begin(const weir_k_sample *a, int c, uint32_t worker) {
    const weir_step *step = a->step;
    int32_t output = step->out_first + c;
    size_t padded = pad16((size_t)a->vocab);
    uint8_t *space = (uint8_t *)a->workspace + (size_t)worker * weir_sample_workspace(a->vocab);
    sampling m = {.s = &step->sample[output],
                  .step = step,
                  .slot = step->slot ? step->slot[step->out_row[output]] : 0,
                  .vocab = a->vocab,
                  .x = a->logits + (size_t)c * (size_t)a->vocab,
                  .least = -INFINITY,
                  .temperature = 1,
                  .n = -1};
    m.c = (candidate *)(void *)space;
    m.row = (float *)(void *)(m.c + padded);
    m.scratch = (uint32_t *)(void *)(m.row + padded);
    return m;
}

int WEIR__AT(sample_keep)(const weir_k_sample *a, int c, const candidate **kept) {
    sampling m = begin(a, c, 0);
    apply_all(&m);
    collect(&m);
    *kept = m.c;
    return m.n;
}

/* ---- the choice ---- */

/* Lowest id of the largest logit; 0, whose logit is no number, if none is. */
static int32_t greedy(const float *x, int n) {
    float m = largest_logit(x, n);
    vec16 m16 = vec16_set1(m);
    for (int i = 0; i < n; i += 16) {
        uint32_t found = mask16_bits(vec16_ge(vec16_load_n(x + i, n - i), m16)) & (uint32_t)(n - i >= 16 ? 0xffff : (1 << (n - i)) - 1);
        if (found)
            return i + __builtin_ctz(found);
    }
    return 0;
}

/* splitmix64's finaliser (Steele, Lea & Flood 2014) over seed and position: a number in [0, 1). */
static uint64_t mix(uint64_t x) {
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}
static double random_number(uint64_t seed, int64_t position) {
    const uint64_t golden = UINT64_C(0x9e3779b97f4a7c15);
    uint64_t x = mix(mix(seed + golden) + ((uint64_t)position + 1) * golden);
    return (double)(x >> 11) * 0x1p-53;
}

static int32_t draw(const weir_sample *s, const candidate *c, int n) {
    if (!n)
        return 0;
    double target = random_number(s->seed, s->position) * total(c, n), sum = 0;
    for (int i = 0; i < n; i++) {
        sum += (double)c[i].weight;
        if (sum > target)
            return c[i].id;
    }
    return c[n - 1].id;
}

static int32_t choose(sampling *m) {
    bool drawn = m->s->temperature > 0;
    if (drawn || changes_any(m->s))
        apply_all(m);
    if (!drawn)
        return greedy(m->x, m->vocab);
    collect(m);
    return draw(m->s, m->c, m->n);
}

void WEIR__AT(sample)(const void *args, const weir_work *work) {
    const weir_k_sample *a = args;
    const weir_step *step = a->step;
    for (uint32_t c; c = weir_work_take(work), c < (uint32_t)step->out_rows;) {
        sampling m = begin(a, (int)c, work->worker);
        const float *logits = m.x;
        int32_t token = choose(&m);
        step->sampled[step->out_first + (int32_t)c] = isnan(logits[token]) ? -1 : token;
        if (m.s->logprobs)
            log_probabilities(logits, m.vocab, m.s->logprobs - 1, token, &step->logprobs[m.slot]);
    }
}
