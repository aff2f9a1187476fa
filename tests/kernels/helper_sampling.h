/* helper_sampling.h: a scene for the kernel `sample` (sequences with histories and biases), and its steps written literally, in double, as transformers has
 * them. */
#ifndef WEIR_HELPER_SAMPLING_H
#define WEIR_HELPER_SAMPLING_H

#include "helper_kernels.h"

enum { SCENE_SLOTS = 4, SCENE_BLOCKS = 8 }; /* sequences, and KV blocks of each */

/* Sequences whose blocks lie in no order. */
typedef struct scene {
    int32_t blocks[SCENE_SLOTS][SCENE_BLOCKS];
    int32_t history[SCENE_SLOTS * SCENE_BLOCKS * WEIR_KV_BLOCK];
    weir_bias bias[SCENE_SLOTS][WEIR_MAX_BIAS];
    weir_logprobs logprobs[SCENE_SLOTS];
    int32_t slot[SCENE_SLOTS], out_row[SCENE_SLOTS], sampled[SCENE_SLOTS];
    weir_sample sample[SCENE_SLOTS];
    weir_step step;
} scene;
void scene_begin(scene *s,
                 int outputs); /* output o belongs to slot SCENE_SLOTS - 1 - o; histories are filled with ids beyond any vocabulary */
void scene_history(scene *s, int slot, const int32_t *tokens, int n); /* positions 0..n-1 */
void scene_run(scene *s, int level, const float *logits, int vocab, unsigned workers);
/* Candidates of output 0 into `out` (room for vocab). */
int scene_keep(scene *s, int level, const float *logits, int vocab, candidate *out);

/* ---- the steps, literally; x: [vocab] logits, -inf: taken away; NaN stays ---- */

void ref_repeat_penalty(float *x, const int32_t *history, int n, float penalty);
void ref_counted_penalties(float *x, const int32_t *generated, int n, float frequency, float presence);
void ref_top_k(float *x, int vocab, int k);
void ref_top_p(float *x, int vocab, double p);
void ref_min_p(float *x, int vocab, double p);
void ref_typical(float *x, int vocab, double p);
void ref_probabilities(const float *x, int vocab, double *p); /* softmax; NaN has none */

#endif
