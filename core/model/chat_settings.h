/* chat_settings.h: what a folder of safetensors says about chats: its templates, and whether decoded text is to be tidied up. Knows no tokeniser and no Jinja: a template is
 * a text. */
#ifndef WEIR_CHAT_SETTINGS_H
#define WEIR_CHAT_SETTINGS_H

#include "../text/text.h"

typedef struct weir__chat_template {
    weir__string name; /* "default": the one that is used if none is asked for */
    weir__string text; /* UTF-8 */
} weir__chat_template;

/* Owns all that it points to. */
typedef struct weir__chat_settings {
    weir_system *system;
    weir__chat_template *templates; /* [n_templates], names differ; in order of their names */
    size_t n_templates;
    bool
        clean_up_spaces; /* clean_up_tokenization_spaces of tokenizer_config.json: shown, not followed: it changes texts that are decoded in pieces */
} weir__chat_settings;

/* Reads these; of two templates of one name the later counts: tokenizer_config.json's chat_template (a string, or a list of {name, template}), chat_template.json's, chat_template.jinja,
 * additional_chat_templates/NAME.jinja. No such file: no template, no failure. EFORMAT (no UTF-8, wrong kinds), ETOOBIG, EIO, ENOMEM; then there is nothing to give back. */
WEIR_API int weir__chat_settings_read(weir_system *s, const char *folder, weir__chat_settings *chat, weir_error **error);
WEIR_API void weir__chat_settings_fini(weir__chat_settings *chat); /* a zeroed one: nothing */
/* The template of a name (NULL: "default"); NULL: there is none. */
WEIR_API const weir__string *weir__chat_template_find(const weir__chat_settings *chat, const char *name);

#endif
