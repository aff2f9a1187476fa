/* gguf_internal.h: what the readers of GGUF share: the growing header, and the parsed file. */
#ifndef WEIR_GGUF_INTERNAL_H
#define WEIR_GGUF_INTERNAL_H

#include "../text/index.h"
#include "file.h"
#include "gguf.h"

/* The bytes of a header that have been read so far, and the place of the parser in them. */
typedef struct weir__header {
    weir__file *file;  /* path and size, for errors and bounds; closed: all of it is in `data` */
    uint8_t *data;     /* owned */
    size_t size, room; /* read, allocated */
    size_t at;
} weir__header;

struct weir__gguf {
    weir_system *system;
    weir__file file; /* closed: made from memory. `path` is owned */
    uint8_t *header;
    weir__gguf_key *keys;
    weir__tensor *tensors;
    size_t n_keys, n_tensors;
    weir__index key_index, tensor_index;
};

/* Sees to it that the next n bytes are in memory: reads on if need be. EFORMAT (the file ends before, or the header is longer than a limit; `what` was being
 * read), EIO, ENOMEM. */
int weir__header_need(weir__header *h, uint64_t n, const char *what, weir_error **error);
/* The next number, little endian. Afterwards the place is behind it. */
int weir__header_u32(weir__header *h, const char *what, uint32_t *v, weir_error **error);
int weir__header_u64(weir__header *h, const char *what, uint64_t *v, weir_error **error);
/* A string: its length and bytes are checked; `s` points into the header as it is now. */
int weir__header_string(weir__header *h, const char *what, uint64_t most, weir__string *s, weir_error **error);

/* Parses the header of h into g->keys and g->tensors. The header's bytes go over to g. */
int weir__gguf_parse_header(weir__gguf *g, weir__header *h, weir_error **error);

/* The value of an integer key; false: it is none. `above`: it is unsigned and does not fit. */
bool weir__gguf_integer(const weir__gguf_key *key, int64_t *v, bool *above);

/* Bytes of a scalar type, 0: strings, arrays and unknown numbers. */
size_t weir__gguf_type_size(uint32_t type);
const char *weir__gguf_type_name(uint32_t type); /* "string"; "type 77" has no name: NULL */

/* vocab_embedded.c: weir__gguf_vocab for a file without a vocabulary of GGUF's own but with a whole tokenizer.json ("tokenizer.huggingface.json"). */
int weir__gguf_embedded_vocab(const weir__gguf *g, weir__vocab_fn *fn, void *data, weir_error **error);
/* vocab.c: a token id; a number outside the vocabulary means that there is none. */
int weir__gguf_id(const weir__gguf *g, const char *name, const weir__vocab *v, int32_t *id, weir_error **error);
/* eot_token_id and eom_token_id into ends[2]. */
int weir__gguf_ends(const weir__gguf *g, weir__vocab *v, int32_t *ends, weir_error **error);

/* What SentencePiece does with spaces, as GGUF says it. */
typedef struct weir__spaces {
    bool prefix, remove_extra;
    weir__string charsmap; /* size 0: none */
} weir__spaces;
/* Sets v's normaliser and decoder to that, in the memory that is given. */
void weir__gguf_spaces(weir__vocab *v, weir__step normaliser[8], weir__step decoder[4], const weir__spaces *o);
/* Whether a general.name is of a model whose turn tokens take the white space behind them, which GGUF has no key for: Phi-3; and which tokens these are. */
bool weir__gguf_phi3(weir__string name);
bool weir__gguf_takes_space(weir__string piece);

static inline uint32_t weir__le32(const uint8_t *p) {
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}
static inline uint64_t weir__le64(const uint8_t *p) {
    return weir__le32(p) | (uint64_t)weir__le32(p + 4) << 32;
}

#endif
