/* text.h: tokenisers and the streaming decoder. Knows no file format and no model: a vocabulary comes in as arrays.
 *
 * Threads: a tokeniser is immutable after it is made; any number of threads may use it at once (each encode has its own memory). */
#ifndef WEIR_TEXT_H
#define WEIR_TEXT_H

#include "vocab.h"

typedef struct weir__tokenizer weir__tokenizer;

/* Copies all that it keeps. EUNSUPPORTED (a step or a pattern that is not run), EFORMAT (a merge of pieces that are not there, ...), ENOMEM. */
int weir__tokenizer_new(weir_system *s, const weir__vocab *v, weir__tokenizer **out, weir_error **error);
WEIR_API void weir__tokenizer_free(weir__tokenizer *t);
WEIR_API size_t weir__tokenizer_size(const weir__tokenizer *t);
WEIR_API int32_t weir__tokenizer_bos(const weir__tokenizer *t);
WEIR_API int32_t weir__tokenizer_eos(const weir__tokenizer *t);
bool weir__tokenizer_add_bos(const weir__tokenizer *t); /* a text with bounds begins with bos */
bool weir__tokenizer_is_end(const weir__tokenizer *t,
                            int32_t id); /* eos, an id of `ends`, or a control piece that published chat models end a turn with */
/* The id of a piece by its exact text, -1 if none. */
int32_t weir__tokenizer_find(const weir__tokenizer *t, const char *piece, size_t size);

/* A part of a prompt. Special added tokens, and those that look like a chat's turns whatever their file calls them, are recognised in a part only if `special`;
 * other added tokens are text and recognised everywhere. Between added tokens all parts are one text to the tokeniser. */
typedef struct weir__part {
    const char *text;
    size_t size;
    bool special;
} weir__part;

typedef struct weir__ids {
    int32_t *data; /* owned: weir__ids_free */
    size_t size, room;
} weir__ids;
WEIR_API void weir__ids_free(weir_system *s, weir__ids *ids);

/* Appends the ids of the parts. `bounds`: adds beginning and end tokens as the vocabulary says. Linear or n log n in the input's length, no recursion;
 * bytes that are no UTF-8 are encoded as bytes. ENOMEM, EINVAL (no encoding possible). On error `ids` keeps what it had before. */
WEIR_API int weir__tokenizer_encode(const weir__tokenizer *t, const weir__part *parts, size_t n, bool bounds, weir__ids *ids,
                                    weir_error **error);

/* The bytes of a token inside of a text, by the decoder's steps; control and unknown pieces are empty
 * unless `special`. *size may be 0. The pointer lives as long as the tokeniser. */
const char *weir__tokenizer_bytes(const weir__tokenizer *t, int32_t id, bool special, size_t *size);
/* The piece as the vocabulary has it. */
WEIR_API weir__string weir__tokenizer_piece(const weir__tokenizer *t, int32_t id);

/* Streaming decoder: whole UTF-8 characters only; bytes that can never become one are given out as U+FFFD. Optional stop strings: no byte of a stop string, nor of a
 * proper prefix that may still become one, is given out. A plain struct on the caller's memory. */
typedef struct weir__decoder {
    weir_system *system;
    const weir__tokenizer *tokenizer;
    char *held; /* bytes not given out yet */
    size_t held_size, held_room;
    const weir__string *stops; /* borrowed; must outlive the decoder */
    size_t n_stops;
    size_t safe;             /* leading bytes of `held` that may be given out */
    bool first;              /* nothing was given out yet: what encode put before the text is left out */
    bool gap;                /* a space stands before the next token's text */
    int32_t last;            /* the last token that is text + 1; 0: none */
    bool continued;          /* `held` begins with an incomplete character of the context: dropped, not replaced, if it stays one */
    const weir__string *met; /* the stop string that was met, NULL: none */
    bool stopped;            /* a stop string was met: `safe` ends before it, all later input is ignored */
} weir__decoder;
void weir__decoder_init(weir__decoder *d, weir_system *s, const weir__tokenizer *t, const weir__string *stops, size_t n_stops);
void weir__decoder_fini(weir__decoder *d);
/* Tells the decoder what came before the text it will give out (a prompt): nothing of it is given out or matched with stop strings, but a character that it
 * leaves incomplete is completed by what follows. Before the first feed. ENOMEM. */
int weir__decoder_context(weir__decoder *d, const int32_t *ids, size_t n, weir_error **error);
/* Takes a token; afterwards `held[0..safe)` is text to give out. ENOMEM, ETOKEN (outside the vocabulary). On failure nothing has changed. */
int weir__decoder_feed(weir__decoder *d, int32_t id, weir_error **error);
int weir__decoder_feed_bytes(weir__decoder *d, const char *bytes, size_t size, weir_error **error);
/* No more tokens: everything held becomes safe (incomplete characters as U+FFFD). */
int weir__decoder_finish(weir__decoder *d, weir_error **error);
void weir__decoder_take(weir__decoder *d); /* drops held[0..safe) after it was given out */

/* UTF-8: length of the valid character at p (1..4), 0 if invalid, -1 if it is a proper prefix of one. */
int weir__utf8_step(const char *p, size_t n);
/* How many leading bytes of `text` are whole valid characters. */
size_t weir__utf8_valid(const char *text, size_t n);
/* Writes a name from a file into `to` (room >= 8) so that it may stand in an error: control characters and invalid bytes as \xNN, a long one cut with "...".
 * Returns `to`, zero-ended. */
char *weir__quote(char *to, size_t room, const char *text, size_t n);
/* Adds a word to a list for an error, "a, b, c". What does not fit into `room` bytes is left off. */
void weir__enumerate(char *to, size_t room, const char *word);

#endif
