/* convert_internal.h: what the parts of a conversion share: the list of tensors to write, and where they go. */
#ifndef WEIR_CONVERT_INTERNAL_H
#define WEIR_CONVERT_INTERNAL_H

#include "convert.h"
#include "family.h"

/* One tensor of the result. */
typedef struct weir__item {
    char *name;               /* owned */
    const weir__tensor *from; /* NULL: `values` */
    float *values;            /* owned; f32, for tensors that the source has not */
    int type;                 /* to write */
    int32_t heads, rope_dim;  /* > 0: rows of so many heads are reordered */
    bool to_pairs;            /* from half split to adjacent rotary pairs, else back */
    float add;                /* to every value */
    unsigned n_dims;
    int64_t dims[WEIR_MAX_DIMS];
} weir__item;

typedef struct weir__conversion {
    weir_system *system;
    weir__convert_options *options;
    weir__source *source;
    const weir__family *family; /* NULL: formats are the same */
    weir__config config;
    weir__item *items; /* [n] owned */
    size_t n, room;
    uint64_t done, total;
} weir__conversion;

/* Where bytes go. */
typedef int weir__sink_fn(void *sink, const void *bytes, size_t size, weir_error **error);

/* convert_items.c: fills the list for a result of that format. */
int weir__convert_list(weir__conversion *c, enum weir__format to, weir_error **error);
/* convert_data.c: the bytes of one tensor, piece by piece, in order. */
int weir__convert_data(weir__conversion *c, const weir__item *item, weir__sink_fn *put, void *sink, weir_error **error);
/* convert.c: adds to the options' warning; "" adds nothing. */
void weir__convert_warn(weir__conversion *c, const char *text);
/* convert.c: calls fn with the source's vocabulary, if it has one; one that weir does not run, or that fn has no place for (EUNSUPPORTED), is a warning. */
int weir__convert_vocab(weir__conversion *c, weir__vocab_fn *fn, void *data, weir_error **error);
/* convert_text.c: the tokeniser's files into a folder; translated, or with config.json byte for byte as another folder has them. */
struct weir__safetensors_writer;
int weir__convert_text(weir__conversion *c, struct weir__safetensors_writer *to, weir_error **error);
int weir__convert_copy_text(weir__conversion *c, struct weir__safetensors_writer *to, weir_error **error);
/* convert_gguf.c, convert_folder.c: the whole result. */
int weir__convert_to_gguf(weir__conversion *c, const char *out, weir_error **error);
int weir__convert_to_folder(weir__conversion *c, const char *out, weir_error **error);

#endif
