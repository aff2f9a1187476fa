/* vocab_json_internal.h: what the writers of tokenizer.json's parts share. */
#ifndef WEIR_VOCAB_JSON_INTERNAL_H
#define WEIR_VOCAB_JSON_INTERNAL_H

#include "../text/index.h"
#include "vocab_json.h"

/* A tokenizer.json while it is written. */
typedef struct vocab_file {
    weir_system *system;
    const weir__vocab *v;
    weir__json_writer *json;
    uint8_t *kinds;        /* [v->size] */
    weir__string *written; /* [v->size] pieces as the file has them; empty: left out */
    char *bytes;           /* of those that differ from v's */
    weir__index index;     /* of `written` */
} vocab_file;

enum weir__list { WEIR__LIST_NORMALISER, WEIR__LIST_PRETOKENISER, WEIR__LIST_DECODER };

/* vocab_json_steps.c: one of the three pipelines, key and value. EUNSUPPORTED, ENOMEM. */
int weir__put_steps(vocab_file *f, enum weir__list list, weir__steps steps, weir_error **error);

void weir__put_key(weir__json_writer *w, const char *key);
void weir__put_text(weir__json_writer *w, const char *key, weir__string text);
void weir__put_flag(weir__json_writer *w, const char *key, bool flag);
void weir__put_null(weir__json_writer *w, const char *key);

#endif
