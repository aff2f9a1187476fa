/* model.h: an opened checkpoint and how its architecture turns weights into a graph of units. Knows devices' lists and kernels; knows no actors.
 *
 * A checkpoint is immutable and counted; any thread may read it. */
#ifndef WEIR_MODEL_H
#define WEIR_MODEL_H

#include "../dev/device.h"
#include "gguf.h"

typedef struct weir__arch weir__arch;
typedef struct weir__checkpoint weir__checkpoint;

/* What a decoder's file says about its sizes. H: width, D: head size. */
typedef struct weir__config {
    int32_t layers, width, heads, kv_heads, head_dim, ffn, vocab, context;
    int32_t rope_dim; /* leading dimensions of a head that are rotated */
    double rope_base;
    float norm_eps;
    bool tied; /* the head is the embedding table */
} weir__config;

/* One tensor of a unit: where it is in the file and where its packed form lies in the unit's blob. */
typedef struct weir__tensor_plan {
    const weir__tensor *source;
    uint64_t offset;    /* in the blob, multiple of 64 */
    int32_t n, k;       /* outputs, inputs; a vector has n = 1 */
    int32_t rope_heads; /* > 0: rows are reordered while packing (weir_k_pack) */
    bool vector;
} weir__tensor_plan;

#define WEIR__UNIT_TENSORS 16

/* One loadable piece. The static modules (embedding, final norm, head) are the last one, ordinal = units. */
typedef struct weir__unit_plan {
    char path[32]; /* "layers.12", "static" */
    uint32_t count;
    weir__tensor_plan tensors[WEIR__UNIT_TENSORS];
    uint64_t blob_bytes, source_bytes;
} weir__unit_plan;

/* A named, ordered list of units. `ordinal` of a unit = first + index. */
typedef struct weir__group {
    const char *name;
    uint32_t first, units;
} weir__group;

typedef struct weir__graph {
    uint32_t n_groups, output; /* output: the group whose result goes on to the head */
    const weir__group *groups;
    uint32_t units; /* of all groups */
} weir__graph;

/* ---- architectures: one file and one row in arch.c each ---- */

struct weir__forward;

struct weir__arch {
    const char *name; /* general.architecture */
    /* Reads and checks the config; every value is bounded before it is used. EFORMAT, EUNSUPPORTED. */
    int (*configure)(const weir__gguf *g, weir__config *c, weir_error **error);
    /* Lists the tensors of a unit (ordinal = layers: the static modules) with weir__plan_add. */
    int (*plan)(const weir__checkpoint *c, uint32_t ordinal, weir__unit_plan *plan, weir_error **error);
    /* Records one unit's work over the current tile. */
    int (*record)(const struct weir__forward *f, uint32_t ordinal, weir__list *list, weir_error **error);
};
const weir__arch *weir__arch_find(weir__string name);
const char *weir__arch_names(void); /* "llama, ..." for messages */
extern const weir__arch weir__arch_llama;

/* Adds a matrix [n][k] or, with n = 0, a vector of k values, checking name, dimensions and type. EFORMAT: missing or of another
 * shape (names the tensor, found, wanted); EUNSUPPORTED: a type that weir does not run. */
int weir__plan_add(const weir__checkpoint *c, weir__unit_plan *p, const char *name, int64_t n, int64_t k, int rope_heads,
                   weir_error **error);

/* ---- checkpoints ---- */

extern const weir_handle_type weir__checkpoint_handle; /* name "checkpoint" */

/* Opens a GGUF file, its tokeniser and its plan. Every tensor of the file must be used by a unit, else EUNSUPPORTED. Blocks on the file and computes for
 * tens of milliseconds: call it on a stream's thread. */
WEIR_API int weir__checkpoint_open(weir_system *s, const char *path, weir__checkpoint **out, weir_error **error);
weir__checkpoint *weir__checkpoint_ref(weir__checkpoint *c);
WEIR_API void weir__checkpoint_unref(weir__checkpoint *c);
weir_system *weir__checkpoint_system(const weir__checkpoint *c);
const weir__gguf *weir__checkpoint_gguf(const weir__checkpoint *c);
const weir__config *weir__checkpoint_config(const weir__checkpoint *c);
const weir__arch *weir__checkpoint_arch(const weir__checkpoint *c);
const weir__graph *weir__checkpoint_graph(const weir__checkpoint *c);
const weir__unit_plan *weir__checkpoint_unit(const weir__checkpoint *c, uint32_t ordinal); /* 0..units; units: the static modules */
WEIR_API uint64_t weir__checkpoint_bytes(const weir__checkpoint *c);                       /* all blobs */
WEIR_API uint64_t weir__checkpoint_parameters(const weir__checkpoint *c);
/* The tokeniser, or NULL and, if the file has one that weir does not know, the reason in *why (borrowed). */
const weir__tokenizer *weir__checkpoint_tokenizer(const weir__checkpoint *c, const weir_error **why);
/* The weight that a recorded kernel gets for tensor `index` of a unit whose base is in *slot. */
weir_weight weir__plan_weight(const weir__unit_plan *p, uint32_t index, void *const *slot);

/* Reads a unit's tensors from the file one after another into `staging` (plan->source_bytes). Blocks: on a stream's thread. */
int weir__unit_read(const weir__checkpoint *c, uint32_t ordinal, void *staging, weir_error **error);
/* Records the packing of what weir__unit_read put into `staging` into the blob whose address is in *slot. */
int weir__unit_pack(const weir__checkpoint *c, uint32_t ordinal, const void *staging, void *const *slot, weir__list *list,
                    weir_error **error);

/* ---- where models are ---- */

/* Writes the path of a model argument: a file that exists, or a name kept by `weir fetch`. ENOENT says where it looked. */
WEIR_API int weir__model_locate(const char *model, char *path, size_t size, weir_error **error);

#endif
