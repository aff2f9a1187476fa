/* rope_frequency.c: how fast the pairs of a head turn, for every scaling of the rotary embedding, in double. The formulas are those that published models
 * were made with (transformers, modeling_rope_utils); what scales attention beside them is the table's scale. Runs the same code at every level. */
#include "../kernels.h"
#include "layout.h"
#include "math64.h"

#define TWO_PI 0x1.921fb54442d18p+2

/* Wavelengths above original / low_freq are stretched whole, those below original / high_freq not at all, between them in proportion. */
static double llama3(const weir_rope *r, double frequency) {
    double rotations = r->original_context * frequency / TWO_PI;
    if (rotations < r->low_freq)
        return frequency / r->factor;
    if (rotations > r->high_freq)
        return frequency;
    double smooth = (rotations - r->low_freq) / (r->high_freq - r->low_freq);
    return (1 - smooth) * (frequency / r->factor) + smooth * frequency;
}

/* The pair, as a real number, that turns so often within the original context. */
static double yarn_pair(const weir_rope *r, double log_base, double rotations) {
    return (double)r->dim * log64(r->original_context / (rotations * TWO_PI)) / (2 * log_base);
}

typedef struct ramp {
    double low, high; /* pairs: up to low nothing is stretched, from high on everything */
} ramp;

static ramp yarn_ramp(const weir_rope *r, double log_base) {
    double low = yarn_pair(r, log_base, r->beta_fast), high = yarn_pair(r, log_base, r->beta_slow);
    if (!r->untruncated) {
        low = floor64(low);
        high = -floor64(-high);
    }
    low = low > 0 ? low : 0;
    high = high < r->dim - 1 ? high : r->dim - 1;
    return (ramp){low, low == high ? high + 0.001 : high};
}

static double yarn(const weir_rope *r, const ramp *ramp, double frequency, int pair) {
    double part = ((double)pair - ramp->low) / (ramp->high - ramp->low), kept = 1 - (part < 0 ? 0 : part > 1 ? 1 : part);
    return frequency / r->factor * (1 - kept) + frequency * kept;
}

static double scaled(const weir_rope *r, const ramp *ramp, double frequency, int pair) {
    switch (r->scaling) {
    case WEIR_ROPE_LINEAR:
        return frequency / r->factor;
    case WEIR_ROPE_LLAMA3:
        return llama3(r, frequency);
    case WEIR_ROPE_YARN:
        return yarn(r, ramp, frequency, pair);
    case WEIR_ROPE_FACTORS:
        return frequency / (double)r->factors[pair];
    default:
        return frequency;
    }
}

void weir_rope_frequencies(const weir_rope *rope, double *frequency) {
    double log_base = log64(rope->base);
    ramp ramp = yarn_ramp(rope, log_base);
    for (int i = 0; i < rope->dim / 2; i++)
        frequency[i] = scaled(rope, &ramp, exp64(-2.0 * (double)i / (double)rope->dim * log_base), i);
}
