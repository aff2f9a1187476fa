/* sample_change.h: the sampling steps that change logits: penalties for tokens of the sequence's history, and biases. Knows no candidates. */
#ifndef WEIR_CPU_SAMPLE_CHANGE_H
#define WEIR_CPU_SAMPLE_CHANGE_H

#include "sample_row.h"

/* Whether a step that changes logits has anything to do. */
static bool changes(const weir_sample *s, enum weir_sampler step) {
    switch (step) {
    case WEIR_S_repeat_penalty:
        return s->repeat_penalty > 0 && s->repeat_penalty != 1;
    case WEIR_S_frequency_penalty:
        return s->frequency_penalty != 0;
    case WEIR_S_presence_penalty:
        return s->presence_penalty != 0;
    default:
        return step == WEIR_S_logit_bias && s->biases > 0;
    }
}

static bool changes_any(const weir_sample *s) {
    return changes(s, WEIR_S_repeat_penalty) || changes(s, WEIR_S_frequency_penalty) || changes(s, WEIR_S_presence_penalty) ||
           changes(s, WEIR_S_logit_bias);
}

/* First position in the window of `penalty_last`, not before `from`. */
static int64_t window_from(const weir_sample *s, int64_t from) {
    int64_t first = s->penalty_last > 0 ? s->position + 1 - s->penalty_last : 0;
    return first > from ? first : from;
}

/* Count of the token at a position; one that the vocabulary does not have has none. */
static uint32_t *count_at(const sampling *m, int64_t position) {
    const int32_t *blocks = m->step->blocks + (size_t)m->slot * (size_t)m->step->blocks_per_sequence;
    int32_t token = m->step->history[(size_t)blocks[position / KV_BLOCK] * KV_BLOCK + (size_t)(position % KV_BLOCK)];
    return (uint32_t)token < (uint32_t)m->vocab ? &m->scratch[token] : NULL;
}

/* Counts the tokens from `first` on; counts of other tokens are left as they were. */
static void count_tokens(const sampling *m, int64_t first) {
    uint32_t *count;
    for (int64_t p = first; p <= m->s->position; p++)
        if ((count = count_at(m, p)))
            *count = 0;
    for (int64_t p = first; p <= m->s->position; p++)
        if ((count = count_at(m, p)))
            ++*count;
}

static float penalised(const weir_sample *s, enum weir_sampler step, float x, uint32_t count) {
    switch (step) {
    case WEIR_S_repeat_penalty:
        return x < 0 ? x * s->repeat_penalty : x / s->repeat_penalty;
    case WEIR_S_frequency_penalty:
        return x - (float)count * s->frequency_penalty;
    default:
        return x - s->presence_penalty;
    }
}

/* repeat_penalty (Keskar et al. 2019, as transformers has it): each token of the window once. frequency_penalty, presence_penalty (OpenAI's API): generated tokens
 * of the window, by their count and once. */
static void penalise(sampling *m, enum weir_sampler step) {
    int64_t first = window_from(m->s, step == WEIR_S_repeat_penalty ? 0 : m->s->generated_from);
    float *row = own_row(m);
    count_tokens(m, first);
    for (int64_t p = first; p <= m->s->position; p++) {
        uint32_t *count = count_at(m, p);
        if (!count || !*count)
            continue;
        float *x = &row[count - m->scratch];
        *x = penalised(m->s, step, *x, *count);
        *count = 0;
    }
}

static void add_biases(sampling *m) {
    const weir_bias *bias = m->step->bias + (size_t)m->slot * WEIR_MAX_BIAS;
    float *row = own_row(m);
    for (int32_t i = 0; i < m->s->biases; i++)
        row[bias[i].token] += bias[i].addend;
}

static void change_logits(sampling *m, enum weir_sampler step) {
    if (!changes(m->s, step))
        return;
    if (step == WEIR_S_logit_bias)
        add_biases(m);
    else
        penalise(m, step);
}

#endif
