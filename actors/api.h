/* api.h: what weir_generate asks for and is told, as messages. Knows no request. */
#ifndef WEIR_API_H
#define WEIR_API_H

#include "actors.h"

weir_body *weir__generate_body(weir_system *s, const weir_generate_options *o); /* of `generate`; NULL: no memory */
/* The next element of a piece's logprobs; best has room for WEIR_MAX_LOGPROBS. False: malformed. */
bool weir__read_token(weir_cursor *c, weir_token *token, weir_token *best, size_t *n_best);

#endif
