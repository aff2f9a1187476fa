/* sample_keep.h: the sampling steps that take tokens away, and what is left: candidates with their weights. As transformers' warpers. Knows no logits that change. */
#ifndef WEIR_CPU_SAMPLE_KEEP_H
#define WEIR_CPU_SAMPLE_KEEP_H

#include "sample_row.h"

/* ---- order: greater weight first, then higher id: transformers takes from the end of a stable ascending order ---- */

static bool before(candidate a, candidate b) {
    return a.weight > b.weight || (a.weight == b.weight && a.id > b.id);
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

/* Takes the root of a heap of *left candidates to the place behind those that are left. */
static candidate pop(candidate *h, int *left) {
    candidate best = h[0];
    h[0] = h[--*left];
    sift(h, *left, 0, false);
    h[*left] = best;
    return best;
}

/* ---- candidates ---- */

/* Collects the tokens whose logit is at least m->least and not -inf (if any logit is more), with weight exp((logit - largest) / temperature). */
static void collect(sampling *m) {
    if (m->n >= 0)
        return;
    const float *x = m->x;
    int n = m->vocab, kept = 0;
    m->largest = largest_logit(x, n);
    float least = m->largest > -INFINITY && m->least < -FLT_MAX ? -FLT_MAX : m->least;
    vec16 top = vec16_set1(m->largest), t = vec16_set1(m->temperature), least16 = vec16_set1(least);
    for (int i = 0; i < n; i += 16) {
        vec16 v = vec16_load_n(x + i, n - i);
        uint32_t take = mask16_bits(vec16_ge(v, least16)) & (uint32_t)(n - i >= 16 ? 0xffff : (1 << (n - i)) - 1);
        if (!take)
            continue;
        float weight[16];
        vec16_store(weight, vec16_exp(vec16_div(distance_to(top, v), t)));
        for (; take; take &= take - 1) {
            int lane = __builtin_ctz(take);
            m->c[kept++] = (candidate){weight[lane], i + lane};
        }
    }
    m->n = kept;
}

static float distance_of(const sampling *m, int32_t id) {
    return m->x[id] >= m->largest ? 0 : (m->x[id] - m->largest) / m->temperature;
}

/* The weights anew, after the temperature or the set has changed. */
static void reweigh(sampling *m) {
    m->largest = -INFINITY;
    for (int i = 0; i < m->n; i++)
        m->largest = m->x[m->c[i].id] > m->largest ? m->x[m->c[i].id] : m->largest;
    for (int i = 0; i < m->n; i += 16) {
        float d[16] = {0};
        int lanes = min_int(16, m->n - i);
        for (int j = 0; j < lanes; j++)
            d[j] = distance_of(m, m->c[i + j].id);
        vec16_store(d, vec16_exp(vec16_load(d)));
        for (int j = 0; j < lanes; j++)
            m->c[i + j].weight = d[j];
    }
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

/* ---- the steps ---- */

static void set_temperature(sampling *m) {
    m->temperature = m->s->temperature;
    if (m->n >= 0)
        reweigh(m);
}

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

/* The k largest logits, and all that equal the k-th. */
static void top_k(sampling *m) {
    int k = m->s->top_k;
    if (k <= 0 || k >= m->vocab || (m->n >= 0 && k >= m->n))
        return;
    if (m->n >= 0)
        own_row(m);
    m->least = kth_largest(m->x, m->vocab, k, m->c);
}

/* The fewest first candidates whose weights make at least p of the total (Holtzman et al. 2020). A candidate lighter than (1 - p) / n of the total is never among
 * them, which leaves few to order. */
static void top_p(sampling *m) {
    double p = (double)m->s->top_p, before_it = 0;
    collect(m);
    if (m->n <= 1 || !(p > 0 && p < 1))
        return;
    double sum = total(m->c, m->n);
    int n = keep_at_least(m->c, m->n, (1 - p) / m->n * sum * 0.999), left = n;
    heapify(m->c, n, false);
    while (left > 0 && (left == n || before_it < p * sum))
        before_it += (double)pop(m->c, &left).weight;
    m->n = n - left;
    memmove(m->c, m->c + left, (size_t)m->n * sizeof *m->c);
}

/* Candidates of at least this part of the best one's weight, which is 1 (Nguyen et al. 2024). */
static void min_p(sampling *m) {
    collect(m);
    if (m->n > 1 && m->s->min_p > 0)
        m->n = keep_at_least(m->c, m->n, m->s->min_p < 1 ? (double)m->s->min_p : 1);
}

/* Puts minus the distance between surprisal and entropy in the place of each weight, and the weights to `weight`, by id; candidates without weight go. With
 * d = log weight: surprisal = log sum - d, entropy = log sum - mean of d, so their distance is |d - mean|. Returns the sum of the weights. */
static double measure_typicality(sampling *m, float *weight) {
    double sum = 0, mean = 0;
    int n = 0;
    for (int i = 0; i < m->n; i++) {
        candidate c = m->c[i];
        if (!(c.weight > 0))
            continue;
        weight[c.id] = c.weight;
        sum += (double)c.weight;
        mean += (double)c.weight * (double)distance_of(m, c.id);
        m->c[n++] = c;
    }
    mean /= sum;
    m->n = n;
    for (int i = 0; i < n; i++)
        m->c[i].weight = -(float)fabs((double)distance_of(m, m->c[i].id) - mean);
    return sum;
}

/* Locally typical (Meister et al. 2023): the fewest candidates nearest to the entropy whose weights make at least p of the total, and all that are as near as the
 * last of them. */
static void typical(sampling *m) {
    double p = (double)m->s->typical, before_it = 0;
    float *weight = (float *)(void *)m->scratch, last = 0;
    if (!(p > 0 && p < 1))
        return;
    collect(m);
    if (m->n <= 1)
        return;
    double sum = measure_typicality(m, weight);
    int left = m->n;
    heapify(m->c, m->n, false);
    while (left > 0 && (before_it < p * sum || m->c[0].weight == last)) {
        candidate nearest = pop(m->c, &left);
        before_it += (double)weight[nearest.id];
        last = nearest.weight;
    }
    m->n -= left;
    memmove(m->c, m->c + left, (size_t)m->n * sizeof *m->c);
    reweigh(m);
}

#endif
