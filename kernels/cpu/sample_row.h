/* sample_row.h: what is known of an output while the sampling steps are applied to it: a row of logits, or the candidates that were collected from it. Knows no
 * step. */
#ifndef WEIR_CPU_SAMPLE_ROW_H
#define WEIR_CPU_SAMPLE_ROW_H

#include "vec16.h"

#include <float.h>

/* Steps that change logits want the row, those that take tokens away (but top-k) the candidates. Going from one to the other and back costs a pass over the
 * vocabulary; in the default order no request goes back. */
typedef struct sampling {
    const weir_sample *s;
    const weir_step *step;
    int32_t slot; /* of the sequence */
    int vocab;
    const float *x; /* [vocab] the logits: the model's own, or `row` */
    float *row;     /* [vocab padded to 16], -inf: taken away */
    float least;    /* logits below it are taken away */
    float temperature;
    float largest;     /* logit of the candidates, whose weight is 1 */
    candidate *c;      /* [vocab padded to 16] */
    int n;             /* candidates; < 0: none were collected, the row counts */
    uint32_t *scratch; /* [vocab padded to 16] counts, or the bits of weights, by id */
} sampling;

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

/* Distance to the largest logit: 0 and not NaN where both are infinite. */
INLINE vec16 distance_to(vec16 top, vec16 v) {
    return vec16_select(vec16_ge(v, top), vec16_zero(), vec16_sub(v, top));
}

static void row_of_candidates(sampling *m) {
    for (int i = 0; i < m->n; i++)
        m->c[i].weight = m->x[m->c[i].id] / m->temperature;
    for (int i = 0; i < m->vocab; i++)
        m->row[i] = -INFINITY;
    for (int i = 0; i < m->n; i++)
        m->row[m->c[i].id] = m->c[i].weight;
}

/* The logits as they are after the steps so far, to be changed. */
static float *own_row(sampling *m) {
    if (m->n >= 0)
        row_of_candidates(m);
    else if (m->x != m->row || m->temperature != 1 || m->least > -INFINITY)
        for (int i = 0; i < m->vocab; i++)
            m->row[i] = m->x[i] < m->least ? -INFINITY : m->x[i] / m->temperature;
    m->x = m->row;
    m->least = -INFINITY;
    m->temperature = 1;
    m->n = -1;
    return m->row;
}

#endif
