/* tokenizer_settings.h: what the small files beside a tokeniser say: tokenizer_config.json, special_tokens_map.json, generation_config.json, config.json.
 * All are optional. */
#ifndef WEIR_TOKENIZER_SETTINGS_H
#define WEIR_TOKENIZER_SETTINGS_H

#include "../text/json.h"
#include "text_file.h"
#include "vocab_build.h"

enum {
    WEIR__MOST_SETTINGS = 16 << 20, /* bytes of one of these files; published ones have under 2 MiB */
    WEIR__MOST_TOKENIZER =
        128 << 20 /* bytes of a tokenizer.json, vocab.json, merges.txt, tokenizer.model; published ones have under 40 MiB */
};

typedef struct weir__tokenizer_settings {
    weir__string bos, eos, pad; /* as text; data NULL: not said */
    weir__string class;         /* tokenizer_class */
    int add_bos, add_eos;       /* 1, 0; -1: not said */
    bool add_prefix_space;      /* GPT-2's own files */
    int64_t bos_id;             /* of generation_config.json or config.json; -1: none */
    weir__json added;           /* added_tokens_decoder; text NULL: none. Lies in `config` */
    weir__text_file config;     /* tokenizer_config.json */
    int32_t *ends;              /* ids that end a text, the first is the main one */
    size_t n_ends;
    int64_t outside; /* the first that no vocabulary can have; 0: none */
    bool generation; /* `ends` are generation_config.json's */
} weir__tokenizer_settings;

/* Reads them; strings and lists live as long as the build, `added` until _fini. */
int weir__tokenizer_settings_read(weir__build *b, const char *folder, weir__tokenizer_settings *t, weir_error **error);
void weir__tokenizer_settings_fini(weir__tokenizer_settings *t);
/* Sets special ids of the build's vocabulary, and what stands around a text where the settings say so. */
int weir__tokenizer_settings_apply(weir__build *b, const weir__tokenizer_settings *t, weir_error **error);

#endif
