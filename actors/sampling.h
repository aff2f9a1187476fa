/* sampling.h: how tokens are chosen, between messages and the step block: the same options in `generate` of the generator and in the runs of the stepper's `pass`.
 * verbs.def names them, lua/README.md says what they mean. */
#ifndef WEIR_SAMPLING_H
#define WEIR_SAMPLING_H

#include "actors.h"

/* Reads and checks every option but the values of the biases, whose number is in s->biases. False: *error names the option, what was found and what is wanted. */
bool weir__sampling_read(weir_cursor map, weir_sample *s, weir_error **error);
/* Reads the s->biases entries of "logit_bias". EINVAL: no pairs, or an addend out of range; ETOKEN: outside the vocabulary. */
int weir__sampling_biases(weir_cursor map, int32_t vocab, const weir_sample *s, weir_bias *out, weir_error **error);
/* Writes the map that weir__sampling_read reads; what is off is left out. */
void weir__sampling_write(weir_writer *w, const weir_sample *s, const weir_bias *bias);

/* Log-probabilities in the reply of a pass: [log-probability, [[token, log-probability], ...]]. */
void weir__logprobs_write(weir_writer *w, const weir_logprobs *l);
bool weir__logprobs_read(weir_cursor *c, weir_logprobs *l);

#endif
