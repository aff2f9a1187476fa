/* sample_logprobs.h: log-probabilities of the model's own distribution, which no sampling step has touched. */
#ifndef WEIR_CPU_SAMPLE_LOGPROBS_H
#define WEIR_CPU_SAMPLE_LOGPROBS_H

#include "math64.h"
#include "sample_row.h"

/* Sum of exp(logit - largest) over the numbers: 16 strided partials in double and the tree. */
static double sum_of_weights(const float *x, int n, float largest) {
    double partial[16] = {0};
    vec16 top = vec16_set1(largest), none = vec16_set1(-INFINITY);
    for (int i = 0; i < n; i += 16) {
        float w[16];
        vec16 v = vec16_load_n(x + i, n - i);
        vec16 e = vec16_exp(distance_to(top, vec16_select(vec16_ge(v, none), v, none)));
        vec16_store(w, vec16_select(mask16_below(n - i), e, vec16_zero()));
        for (int lane = 0; lane < 16; lane++)
            partial[lane] += (double)w[lane];
    }
    for (int half = 8; half; half /= 2)
        for (int lane = 0; lane < half; lane++)
            partial[lane] += partial[lane + half];
    return partial[0];
}

/* Ids of the `want` largest numbers, the larger first, of equal ones the lower id. Returns how many there are. */
static int best_tokens(const float *x, int n, int want, int32_t *id) {
    int found = 0;
    for (int i = 0; i < n; i++) {
        if (!(x[i] == x[i]) || (found == want && !(want && x[i] > x[id[want - 1]])))
            continue;
        int at = found < want ? found++ : want - 1;
        for (; at > 0 && x[i] > x[id[at - 1]]; at--)
            id[at] = id[at - 1];
        id[at] = i;
    }
    return found;
}

static void log_probabilities(const float *x, int vocab, int want, int32_t chosen, weir_logprobs *out) {
    float largest = largest_logit(x, vocab);
    double log_sum = log64(sum_of_weights(x, vocab, largest));
    out->count = best_tokens(x, vocab, want, out->token);
    for (int i = -1; i < out->count; i++) {
        float v = x[i < 0 ? chosen : out->token[i]];
        double p = v >= largest ? -log_sum : v > -INFINITY ? (double)v - (double)largest - log_sum : -(double)INFINITY;
        *(i < 0 ? &out->chosen : &out->best[i]) = p;
    }
}

#endif
