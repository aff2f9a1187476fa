/* settings_internal.h: what the parts of reading settings share: settings.c reads keys, settings_keys.c judges those that nothing reads. */
#ifndef WEIR_SETTINGS_INTERNAL_H
#define WEIR_SETTINGS_INTERNAL_H

#include "family.h"

typedef struct weir__settings {
    const weir__source *src;
    const weir__family *family;
    weir__config *config;
    bool gguf;
    char prefix[64];   /* "llama." of GGUF's keys */
    bool rope_scaling; /* config.json's rope_scaling is an object that is not empty: then rope_parameters does not count */
} weir__settings;

/* ---- settings_keys.c ---- */

/* Finds out which of config.json's two objects of rotary settings counts: one of them as a whole, as in transformers. */
void weir__settings_begin(weir__settings *r);
/* A key in the object that does not count. */
bool weir__settings_passed_over(const weir__settings *r, const char *key);
/* EUNSUPPORTED: a key that is neither read nor known to change nothing, by its name and value. */
int weir__settings_check_keys(weir__settings *r, weir_error **error);

#endif
