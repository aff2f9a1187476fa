/* tokenizer_json_tables.h: the components of a tokenizer.json that are known, with their settings, for reading and for writing. */
#ifndef WEIR_TOKENIZER_JSON_TABLES_H
#define WEIR_TOKENIZER_JSON_TABLES_H

#include "../text/text.h"

enum weir__option_kind {
    WEIR__OPTION_NOTHING,   /* changes no ids and no text: offsets, tags */
    WEIR__OPTION_BOOLEAN,   /* bool at `offset` */
    WEIR__OPTION_TEXT,      /* weir__string at `offset` */
    WEIR__OPTION_CHARACTER, /* the same, of one character */
    WEIR__OPTION_COUNT,     /* uint32_t at `offset` */
    WEIR__OPTION_PATTERN,   /* {"String": ...} or {"Regex": ...}: pattern, regex */
    WEIR__OPTION_BEHAVIOUR, /* behaviour */
    WEIR__OPTION_SCHEME,    /* prepend: "first", "never", "always" */
    WEIR__OPTION_PREFIX,    /* prepend, as a boolean: older files */
    WEIR__OPTION_CHARSMAP,  /* pattern, from base64 */
};

typedef struct weir__option {
    const char *name;
    enum weir__option_kind kind;
    size_t offset;
    bool needed;
} weir__option;

enum { WEIR__MOST_OPTIONS = 6 };
typedef struct weir__component {
    const char *name;
    weir__step defaults; /* what a file that leaves a setting out means */
    weir__option options[WEIR__MOST_OPTIONS];
} weir__component;

/* Each ends with a row that has no name. The first row of a step's kind is how it is written. */
extern const weir__component weir__normalisers[], weir__pretokenisers[], weir__decoders[];
/* Words for enum weir__behaviour and enum weir__prepend, by value; NULL ends them. */
extern const char *const weir__behaviour_words[], *const weir__scheme_words[];

/* Without a decoder the library puts a space between pieces: WordPiece's decoder with a prefix that no piece has. */
#define WEIR__SPACED_PREFIX "\xFF"

#endif
