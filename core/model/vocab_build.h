/* vocab_build.h: what readers of vocabulary files fill before weir__tokenizer_new: a weir__vocab with memory of its own. Knows no format. */
#ifndef WEIR_MODEL_VOCAB_BUILD_H
#define WEIR_MODEL_VOCAB_BUILD_H

#include "../text/text.h"

enum {
    WEIR__MOST_PIECES = 1 << 21, /* published files have under 300,000; each costs 20 bytes before it is looked at */
    WEIR__MOST_STEPS = 48,       /* of one list; published files have under 20 */
    WEIR__MOST_BOUNDS = 64,      /* ids around a text; published files have under 4 */
};

/* What is done with a vocabulary for the time that it lives. */
typedef int weir__vocab_fn(void *data, const weir__vocab *v, weir_error **error);
/* One of them: makes a tokeniser; data is a weir__making. */
typedef struct weir__making {
    weir_system *system;
    weir__tokenizer **out;
    char warning[256]; /* result: what the vocabulary's files say that does not fit, "": nothing */
} weir__making;
int weir__make_tokenizer(void *making, const weir__vocab *v, weir_error **error);

typedef struct weir__build {
    weir_system *system;
    const char *source; /* borrowed: the file, for errors */
    weir__vocab v;      /* what was read so far; its arrays are these: */
    weir__string *pieces;
    double *scores;
    int32_t *kinds;
    weir__merge_pair *merges;
    weir__added *added;
    weir__step normaliser[WEIR__MOST_STEPS], pretokeniser[WEIR__MOST_STEPS], decoder[WEIR__MOST_STEPS];
    int32_t before[WEIR__MOST_BOUNDS], after[WEIR__MOST_BOUNDS];
    int32_t *ends;
    char warning[256]; /* v.warning, if there is one */
    void *kept;        /* a chain of all memory */
} weir__build;

/* Nothing yet; no special ids. */
void weir__build_init(weir__build *b, weir_system *s, const char *source);
void weir__build_fini(weir__build *b);
/* Zeroed memory that lives as long as the build. NULL without memory. */
void *weir__build_alloc(weir__build *b, size_t n);
/* Makes room for `size` pieces, all of them empty and unused. ENOMEM. */
int weir__build_pieces(weir__build *b, size_t size, bool scores, weir_error **error);
/* Sets piece `id`, which is in range. EFORMAT: another one has this id. */
int weir__build_piece(weir__build *b, int64_t id, weir__string piece, enum weir__piece_kind kind, weir_error **error);
/* The first piece with this text, -1: none. Linear in the vocabulary. */
int32_t weir__build_find(const weir__build *b, const char *piece, size_t size);
/* An id before or behind every text, outside of those that are there. EFORMAT: too many. */
int weir__build_before(weir__build *b, int32_t id, weir_error **error);
int weir__build_after(weir__build *b, int32_t id, weir_error **error);
/* Appends a step to one of the three lists. EFORMAT: too many. */
int weir__build_step(weir__build *b, weir__steps *list, const weir__step *step, weir_error **error);

#endif
