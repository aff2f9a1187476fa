/* tokenizer_json_internal.h: what the readers of tokenizer.json's parts share. Each reads one part from a bookmark into the build. */
#ifndef WEIR_TOKENIZER_JSON_INTERNAL_H
#define WEIR_TOKENIZER_JSON_INTERNAL_H

#include "../text/json.h"
#include "vocab_build.h"

/* A tokenizer.json while it is read. Its text is the caller's, may be written, and must outlive the build, which points into it. */
typedef struct weir__tokenizer_file {
    weir__build *build;
    char *text;
    size_t size;
} weir__tokenizer_file;

/* A string with its escapes resolved in place: nothing may read this part of the text as JSON again. For what there are hundreds of thousands of. */
weir__string weir__take(const weir__tokenizer_file *f, weir__json_text s);
/* The same in memory of the build; the text stays as it is. ENOMEM. */
int weir__keep_text(const weir__tokenizer_file *f, weir__json_text s, weir__string *to, weir_error **error);

/* Reading from a bookmark without moving it. A bookmark of nothing (text NULL) leaves *to as it is. Return the code. */
int weir__at_bool(weir__json at, bool *to);
int weir__at_text(weir__json at, weir__json_text *to);
int weir__at_range(weir__json at, int64_t least, int64_t most, int64_t *to); /* EFORMAT: outside of least..most */

/* tokenizer_json.c: a whole file, all but weir__tokenizer_new. */
int weir__tokenizer_json_read(const weir__tokenizer_file *f, weir_error **error);
/* tokenizer_json_added.c. `count` and `*highest` first, then the tokens, when the pieces have room. */
int weir__added_count(weir__json at, size_t *count, int64_t *highest);
int weir__added_read(const weir__tokenizer_file *f, weir__json at, size_t count, weir_error **error);
/* tokenizer_json_model.c: model, pieces and merges; added tokens at `added`. */
int weir__model_read(const weir__tokenizer_file *f, weir__json at, weir__json added, weir_error **error);
/* Pieces alone: an object of ids, or with `scores` an array of [piece, score]. Makes room for `highest` too, the highest id of `others` added tokens; -1: none. */
int weir__pieces_read(const weir__tokenizer_file *f, weir__json at, bool scores, size_t others, int64_t highest, weir_error **error);
/* "left right". False: not exactly two pieces. */
bool weir__merge_split(weir__string line, weir__merge_pair *merge);
/* How many merges there may be: the ways to cut the pieces in two. */
size_t weir__merges_most(const weir__build *b);
/* tokenizer_json_steps.c: normalizer, pre_tokenizer and decoder into the build's lists. */
int weir__normaliser_read(const weir__tokenizer_file *f, weir__json at, weir_error **error);
int weir__pretokeniser_read(const weir__tokenizer_file *f, weir__json at, weir_error **error);
int weir__decoder_read(const weir__tokenizer_file *f, weir__json at, weir_error **error);
/* tokenizer_json_post.c: post_processor into ids before and behind. */
int weir__post_read(const weir__tokenizer_file *f, weir__json at, weir_error **error);
/* Flattens a component that may be a Sequence: calls fn with every component that is none, in order, and its type. `list`: the key of a Sequence's list. `what` names
 * the kind in errors. */
typedef int weir__component_fn(void *data, weir__json at, weir__json_text type, weir_error **error);
int weir__components(weir__json at, const char *what, const char *list, weir__component_fn *fn, void *data, weir_error **error);

#endif
