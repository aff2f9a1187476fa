/* tokenizer_json.h: a tokeniser from the files that stand beside safetensors: tokenizer.json, or vocab.json and merges.txt, or tokenizer.model; with what
 * tokenizer_config.json, special_tokens_map.json, added_tokens.json, generation_config.json and config.json say about special tokens. Knows no source and no family.
 * Chat templates: chat_settings.h. */
#ifndef WEIR_TOKENIZER_JSON_H
#define WEIR_TOKENIZER_JSON_H

#include "vocab_build.h"

/* `path`: a folder, or one of its tokenizer.json, vocab.json, tokenizer.model, or a file of the first one's form under any other name ending in .json; that one is
 * read alone. fn is called with the vocabulary, which lives for the time of the call; not called, and *out NULL: the folder has no tokeniser. EUNSUPPORTED: a component, setting or tokenizer class that is not run, by its name; EFORMAT, ETOOBIG,
 * EDEPTH, ENOENT, EIO, ENOMEM: the file by its name, the place in it. Blocks on files and computes: up to a second for the largest published ones. */
WEIR_API int weir__tokenizer_json_vocab(weir_system *s, const char *path, weir__vocab_fn *fn, void *data, weir_error **error);
/* The same, made into a tokeniser. */
WEIR_API int weir__tokenizer_json_open(weir_system *s, const char *path, weir__tokenizer **out, weir_error **error);

#endif
