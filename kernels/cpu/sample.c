/* sample.c: draws a token from a row of logits: temperature, top-k, top-p, min-p, in that order (as transformers' warpers do), then one counter-based
 * random number. The same token at every level: weights are our own exp, sums are in double and in a fixed order. */
#include "vec16.h"

/* ---- the largest ---- */

/* Largest logit that is a number, -inf if there is none. */
static float largest_logit(const float *x, int n) {
    vec16 m = vec16_set1(-INFINITY);
    for (int i = 0; i < n; i += 16) {
        vec16 v = vec16_load_n(x + i, n - i);
        v = vec16_select(mask16_below(n - i), v, m);
        m = vec16_max(v, m); /* m where v is no number */
    }
    return vec16_max_lane(m);
}

/* Lowest id of the largest logit; 0 if no logit is a number. */
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

/* ---- order: greater weight first, then lower id ---- */

static bool before(candidate a, candidate b) {
    return a.weight > b.weight || (a.weight == b.weight && a.id < b.id);
}

/* Heap with the candidate that comes first, or (last) the one that comes last, at the root. */
static bool above(candidate a, candidate b, bool last) {
    return last ? before(b, a) : before(a, b);
}

static void sift(candidate *h, int n, int i, bool last) {
    candidate c = h[i];
    for (int child; child = 2 * i + 1, child < n; i = child) {
        if (child + 1 < n && above(h[child + 1], h[child], last))
            child++;
        if (!above(h[child], c, last))
            break;
        h[i] = h[child];
    }
    h[i] = c;
}

static void heapify(candidate *h, int n, bool last) {
    for (int i = n / 2 - 1; i >= 0; i--)
        sift(h, n, i, last);
}

/* ---- the steps ---- */

/* k-th largest logit that is a number: a heap of the k best seen so far. `out` has room for k. */
static float kth_largest(const float *x, int n, int k, candidate *out) {
    int kept = 0;
    for (int i = 0; i < n; i++) {
        if (!(x[i] == x[i]) || (kept == k && !(x[i] > out[0].weight)))
            continue;
        candidate c = {x[i], i};
        if (kept < k) {
            out[kept++] = c;
            if (kept == k)
                heapify(out, k, true);
        } else {
            out[0] = c;
            sift(out, k, 0, true);
        }
    }
    return kept == k ? out[0].weight : -INFINITY;
}

/* Writes the tokens whose logit is at least `least`, with weight exp((logit - largest) / temperature). */
static int collect(const float *x, int n, float largest, float least, float temperature, candidate *out) {
    int kept = 0;
    vec16 top = vec16_set1(largest), t = vec16_set1(temperature), least16 = vec16_set1(least);
    for (int i = 0; i < n; i += 16) {
        vec16 v = vec16_load_n(x + i, n - i);
        uint32_t take = mask16_bits(vec16_ge(v, least16)) & (uint32_t)(n - i >= 16 ? 0xffff : (1 << (n - i)) - 1);
        if (!take)
            continue;
        float weight[16];
        vec16 distance = vec16_select(vec16_ge(v, top), vec16_zero(), vec16_sub(v, top)); /* 0 and not NaN where both are infinite */
        vec16_store(weight, vec16_exp(vec16_div(distance, t)));
        for (; take; take &= take - 1) {
            int lane = __builtin_ctz(take);
            out[kept++] = (candidate){weight[lane], i + lane};
        }
    }
    return kept;
}

static double total(const candidate *c, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += (double)c[i].weight;
    return sum;
}

static int keep_at_least(candidate *c, int n, double least) {
    int kept = 0;
    for (int i = 0; i < n; i++)
        if ((double)c[i].weight >= least)
            c[kept++] = c[i];
    return kept;
}

/* Keeps the fewest first candidates whose weights make at least p of the total. A candidate lighter than (1 - p) / n of the total is never among them, which
 * leaves few to order. */
static int top_p(candidate *c, int n, double p) {
    double sum = total(c, n), before_it = 0;
    n = keep_at_least(c, n, (1 - p) / n * sum * 0.999);
    heapify(c, n, false);
    int left = n;
    while (left > 0 && (left == n || before_it < p * sum)) { /* the root goes to the end, behind the ones that are left */
        candidate best = c[0];
        before_it += (double)best.weight;
        c[0] = c[--left];
        sift(c, left, 0, false);
        c[left] = best;
    }
    memmove(c, c + left, (size_t)(n - left) * sizeof *c);
    return n - left;
}

int WEIR__AT(sample_keep)(const float *logits, int vocab, const weir_sample *s, candidate *out) {
    float largest = largest_logit(logits, vocab), least = -INFINITY;
    if (s->top_k > 0 && s->top_k < vocab)
        least = kth_largest(logits, vocab, s->top_k, out);
    int n = collect(logits, vocab, largest, least, s->temperature, out);
    if (n > 1 && s->top_p > 0 && s->top_p < 1)
        n = top_p(out, n, (double)s->top_p);
    if (n > 1 && s->min_p > 0)
        n = keep_at_least(out, n, s->min_p < 1 ? (double)s->min_p : 1); /* of the best one's weight, which is 1 */
    return n;
}

/* ---- the draw ---- */

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

static int32_t draw(const float *logits, int vocab, const weir_sample *s, candidate *space) {
    int n = WEIR__AT(sample_keep)(logits, vocab, s, space);
    if (!n)
        return 0;
    double target = random_number(s->seed, s->position) * total(space, n), sum = 0;
    for (int i = 0; i < n; i++) {
        sum += (double)space[i].weight;
        if (sum > target)
            return space[i].id;
    }
    return space[n - 1].id;
}

void WEIR__AT(sample)(const void *args, const weir_work *work) {
    const weir_k_sample *a = args;
    const weir_step *step = a->step;
    candidate *space = (candidate *)(void *)((uint8_t *)a->workspace + (size_t)work->worker * weir_sample_workspace(a->vocab));
    for (uint32_t c; c = weir_work_take(work), c < (uint32_t)step->out_rows;) {
        size_t output = (size_t)step->out_first + c;
        const weir_sample *s = &step->sample[output];
        const float *logits = a->logits + (size_t)c * (size_t)a->vocab;
        step->sampled[output] = s->temperature > 0 ? draw(logits, a->vocab, s, space) : greedy(logits, a->vocab);
    }
}
