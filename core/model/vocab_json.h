/* vocab_json.h: a vocabulary as the files that stand beside safetensors. What cannot be said exactly is refused. */
#ifndef WEIR_VOCAB_JSON_H
#define WEIR_VOCAB_JSON_H

#include "../text/json_write.h"
#include "source.h"

/* tokenizer.json. EUNSUPPORTED: v has something that no component of the tokenizers library does; the error says what. ENOMEM. */
int weir__vocab_write_json(weir_system *s, const weir__vocab *v, weir__json_writer *w, weir_error **error);
/* tokenizer_config.json: special tokens, and the chat templates of `src` (NULL: none); generation_config.json: ids that end a text. Failures stick to the writer. */
void weir__vocab_write_config(const weir__vocab *v, const weir__source *src, weir__json_writer *w);
void weir__vocab_write_generation(const weir__vocab *v, weir__json_writer *w);

#endif
