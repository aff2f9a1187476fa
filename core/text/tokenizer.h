/* tokenizer.h: what the files of core/text share: the tokeniser's tables, the workspace of an encoding, and the table of vocabulary models. */
#ifndef WEIR_TEXT_TOKENIZER_H
#define WEIR_TEXT_TOKENIZER_H

#include "bytes.h"
#include "index.h"
#include "merge.h"
#include "steps.h"
#include "text.h"
#include "trie.h"

#define WEIR__SPACE_MARK "\xE2\x96\x81" /* U+2581, a space inside SentencePiece's pieces */
enum { WEIR__SPACE_MARK_SIZE = 3 };

typedef struct weir__encoder weir__encoder;

/* One way to make pieces of text: a row of the table in tokenizer.c. */
typedef struct weir__text_model {
    enum weir__model_kind kind;
    /* Sets t->model_data from the vocabulary. On failure `free` is called for what was made. */
    int (*init)(weir__tokenizer *t, const weir__vocab *v, weir_error **error);
    void (*free)(weir__tokenizer *t);
    /* Encodes one piece of pre-tokenised text, which is not empty. */
    int (*encode)(weir__encoder *e, weir__string chunk, weir_error **error);
} weir__text_model;

extern const weir__text_model weir__bpe_model, weir__spm_model, weir__unigram_model, weir__wordpiece_model, weir__wordlevel_model;

struct weir__tokenizer {
    weir_system *system;
    const weir__text_model *model;
    void *model_data; /* owned by the model */
    size_t size;
    weir__string *pieces; /* [size] as the vocabulary has them */
    weir__string *texts;  /* [size] the bytes they stand for inside of a text; nothing for control and unknown pieces */
    weir__string *firsts; /* [size] the same at the beginning of a text; NULL: as `texts`, but for `strip` */
    uint8_t *kinds;       /* [size] */
    char *piece_bytes;
    weir__buffer text_bytes;
    weir__index index; /* piece -> id, the first of equal ones */
    weir__added *added;
    size_t n_added;
    char *added_bytes;
    weir__trie raw, normalized; /* added tokens as they stand in the raw and in the normalised text: positions in `added` */
    weir__ops normaliser, pretokeniser;
    int32_t *ends; /* [n_ends] ids that end a turn */
    size_t n_ends;
    int32_t *before, *after; /* [n_before], [n_after] */
    size_t n_before, n_after;
    int32_t byte_ids[256]; /* the piece of a single byte, -1: none */
    int32_t bos, eos, unk; /* -1: none */
    weir__string strip;    /* what is taken off the beginning of a decoded text, up to `strip_most` times; in `text_bytes` */
    uint32_t strip_most;
    weir__string suffix; /* BPEDecoder: a piece that ends so has a space behind it, before the next one; in `text_bytes` */
    bool repeats;        /* CTC: a token that follows itself is the same one */
    bool byte_level, byte_fallback, fuse_unk;
    bool cuts_at_mark; /* no piece has a mark behind another character: a chunk may be cut before such marks without changing the result */
    size_t longest;    /* bytes of the longest piece */
};

/* The memory of one encoding. */
struct weir__encoder {
    const weir__tokenizer *t;
    weir_system *system;
    weir__ids *ids;
    weir__merge merge;
    weir__work work;
    char *joined;     /* several parts as one text */
    uint32_t *starts; /* SentencePiece: [symbols + 1] where each begins */
    size_t starts_room;
    void *cells; /* Unigram */
    size_t cells_room;
};

/* In t->kinds beside enum weir__piece_kind: an added token, not special, that the model does not have. */
enum { WEIR__OUTSIDE = 7 };

/* Pieces that a model may cut text into; never control, unknown or byte pieces, nor added tokens that it does not have. */
static inline bool weir__is_plain(const weir__tokenizer *t, int64_t id) {
    return id >= 0 && (t->kinds[id] == WEIR__NORMAL || t->kinds[id] == WEIR__UNUSED || t->kinds[id] == WEIR__USER);
}

int weir__ids_push(weir_system *s, weir__ids *ids, int32_t id); /* ENOMEM */
int weir__push(weir__encoder *e, int32_t id, weir_error **error);
/* Text that is no piece: byte pieces if the vocabulary falls back to them and has them all, else one unknown piece. EINVAL: neither. ENOMEM. */
int weir__push_unknown(weir__encoder *e, weir__string text, weir_error **error);
/* How much of the chunk may be encoded for itself: up to the first mark behind another character. All of it unless t->cuts_at_mark. */
size_t weir__mark_cut(const weir__tokenizer *t, weir__string chunk);

/* added.c. `special` may be found up to `special_end`, others anywhere. */
typedef struct weir__found {
    const weir__added *added; /* NULL: none */
    size_t begin, end;        /* with the white space that it takes */
} weir__found;
int weir__added_init(weir__tokenizer *t, const weir__vocab *v, weir_error **error);
void weir__added_fini(weir__tokenizer *t);
/* The longest one at text[at]; `from`: white space before that is another's. */
weir__found weir__added_at(const weir__tokenizer *t, const weir__trie *trie, weir__string text, size_t from, size_t at, size_t special_end);

/* detokenise.c: sets t->texts, t->firsts, t->strip. EUNSUPPORTED, ENOMEM. */
int weir__detokenise_init(weir__tokenizer *t, const weir__vocab *v, weir_error **error);

#endif
