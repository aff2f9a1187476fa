/* tokenizer_slow.h: tokenisers in the forms from before tokenizer.json: GPT-2's vocab.json and merges.txt, SentencePiece's tokenizer.model. */
#ifndef WEIR_TOKENIZER_SLOW_H
#define WEIR_TOKENIZER_SLOW_H

#include "tokenizer_settings.h"

/* The files' bytes may be written and must outlive the build. `added`: the file added_tokens.json, data NULL: none. EFORMAT, EUNSUPPORTED, ENOMEM. */
int weir__gpt2_read(weir__build *b, const weir__text_file *vocab, const weir__text_file *merges, const weir__text_file *added,
                    const weir__tokenizer_settings *t, weir_error **error);
int weir__sentencepiece_read(weir__build *b, const weir__text_file *model, const weir__text_file *added, const weir__tokenizer_settings *t,
                             weir_error **error);

/* tokenizer_slow.c: added tokens of tokenizer_config.json's added_tokens_decoder and of added_tokens.json, as a list without pieces; *highest is raised to their
 * highest id. */
int weir__slow_added(weir__build *b, const weir__text_file *file, const weir__tokenizer_settings *t, int64_t *highest, weir_error **error);
/* Gives each of them its piece, when the pieces are there. */
int weir__slow_place(weir__build *b, weir_error **error);
/* Appends to the list of added tokens, unless it has that id. ENOMEM. */
int weir__slow_add(weir__build *b, const weir__added *a, weir_error **error);

#endif
