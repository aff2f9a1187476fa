/* tokenizer.h: what the files of core/text share: the tokeniser's tables, the workspace of an encoding, and the table of vocabulary models. */
#ifndef WEIR_TEXT_TOKENIZER_H
#define WEIR_TEXT_TOKENIZER_H

#include "index.h"
#include "merge.h"
#include "pretokenise.h"
#include "text.h"

#define WEIR__SPACE_MARK "\xE2\x96\x81" /* U+2581, a space inside SentencePiece's pieces */
enum { WEIR__SPACE_MARK_SIZE = 3 };

typedef struct weir__encoder weir__encoder;

/* One way to make pieces of text: a row of the table in tokenizer.c. */
typedef struct weir__text_model {
    const char *name;
    bool space_prefix; /* a space may be put before the text, as add_space_prefix says */
    /* Sets t->texts, t->byte_ids and t->model_data from the pieces. On failure `free` is called for what was made. */
    int (*init)(weir__tokenizer *t, const weir__old_vocab *v, weir_error **error);
    void (*free)(weir__tokenizer *t);
    /* Encodes text without special pieces. */
    int (*encode)(weir__encoder *e, const char *text, size_t size, weir_error **error);
} weir__text_model;

extern const weir__text_model weir__bpe_model, weir__spm_model;

struct weir__tokenizer {
    weir_system *system;
    const weir__text_model *model;
    void *model_data; /* owned by the model */
    size_t size;
    weir__string *pieces; /* [size] as the vocabulary has them */
    weir__string *texts;  /* [size] the bytes they stand for; nothing for control and unknown pieces */
    uint8_t *kinds;       /* [size] */
    char *piece_bytes, *text_bytes;
    weir__index index; /* piece -> id, the first of equal ones */
    int32_t *specials; /* [n_specials] control and user-defined pieces, in order of their bytes */
    size_t n_specials;
    bool special_first[256]; /* bytes that a special piece begins with */
    int32_t *ends;           /* [n_ends] control pieces that end a turn */
    size_t n_ends;
    int32_t byte_ids[256]; /* the piece of a single byte, -1: none */
    int32_t bos, eos, unk; /* -1: none */
    bool add_bos, add_eos, add_space_prefix;
};

/* The memory of one encoding. */
struct weir__encoder {
    const weir__tokenizer *t;
    weir_system *system;
    weir__ids *ids;
    weir__merge merge;
    char *run; /* [run_size] text since the last special piece */
    size_t run_size, run_room;
    char *marked; /* SentencePiece: the run with its spaces as marks */
    size_t marked_room;
    uint32_t *starts; /* SentencePiece: [symbols + 1] where each begins */
    size_t starts_room;
    weir__pre_run *pre;
};

/* Pieces that text may be cut into; never control, user-defined, unknown or byte pieces. */
static inline bool weir__is_plain(const weir__tokenizer *t, int64_t id) {
    return id >= 0 && (t->kinds[id] == WEIR__NORMAL || t->kinds[id] == WEIR__UNUSED);
}
static inline bool weir__is_special(const weir__tokenizer *t, int64_t id) {
    return t->kinds[id] == WEIR__CONTROL || t->kinds[id] == WEIR__USER;
}

int weir__ids_push(weir_system *s, weir__ids *ids, int32_t id); /* ENOMEM */
/* The special piece that `text` begins with, the longest one; -1: none. */
int32_t weir__special_at(const weir__tokenizer *t, const char *text, size_t size);
/* Fills t->specials. ENOMEM. */
int weir__specials_init(weir__tokenizer *t);

#endif
