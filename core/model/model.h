/* model.h: an opened checkpoint and how its family turns weights into a graph of units. Knows devices' lists and kernels; knows no actors.
 *
 * A checkpoint is immutable and counted; any thread may read it. */
#ifndef WEIR_MODEL_H
#define WEIR_MODEL_H

#include "../dev/device.h"
#include "family.h"

typedef struct weir__checkpoint weir__checkpoint;

/* One tensor of a unit: where it is in the file and where its packed form lies in the unit's blob. */
typedef struct weir__tensor_plan {
    const weir__tensor *source;
    uint64_t source_offset, source_bytes; /* the part of its data: a fused tensor has several */
    uint64_t offset;                      /* in the blob, multiple of 64 */
    int32_t type;                         /* packed: the source's, or what it is quantised to while loading */
    int32_t n, k;                         /* outputs, inputs; a vector has n = 1 */
    int32_t rope_heads;                   /* > 0: rows are reordered while packing (weir_k_pack) */
    bool vector, norm;                    /* norm: weir__config.norm_add is added */
} weir__tensor_plan;

#define WEIR__UNIT_TENSORS 24

/* One loadable piece. The static modules (embedding, final norm, head) are the last one, ordinal = units. */
typedef struct weir__unit_plan {
    char path[32]; /* "layers.12", "static" */
    uint32_t count;
    weir__tensor_plan tensors[WEIR__UNIT_TENSORS];
    int8_t index[WEIR__ROLES]; /* of the tensor with a role; -1: there is none */
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

/* ---- checkpoints ---- */

extern const weir_handle_type weir__checkpoint_handle; /* name "checkpoint" */

/* Opens a model (weir__source_open), its tokeniser and its plan. Every tensor must be used by a unit, else EUNSUPPORTED. quant: type to which matrices of floats
 * are quantised while they are loaded (one that weir_type_writes; rows that are no multiple of its block stay as they are), -1: none. Blocks on files and
 * computes for tens of milliseconds: call it on a stream's thread. */
WEIR_API int weir__checkpoint_open(weir_system *s, const char *path, int quant, weir__checkpoint **out, weir_error **error);
weir__checkpoint *weir__checkpoint_ref(weir__checkpoint *c);
WEIR_API void weir__checkpoint_unref(weir__checkpoint *c);
weir_system *weir__checkpoint_system(const weir__checkpoint *c);
const weir__source *weir__checkpoint_source(const weir__checkpoint *c);
const weir__config *weir__checkpoint_config(const weir__checkpoint *c);
const weir__family *weir__checkpoint_family(const weir__checkpoint *c);
const weir__graph *weir__checkpoint_graph(const weir__checkpoint *c);
const weir__unit_plan *weir__checkpoint_unit(const weir__checkpoint *c, uint32_t ordinal); /* 0..units; units: the static modules */
WEIR_API uint64_t weir__checkpoint_bytes(const weir__checkpoint *c);                       /* all blobs */
WEIR_API uint64_t weir__checkpoint_parameters(const weir__checkpoint *c);
/* What is odd about the files and does no harm ("..., tied embeddings are used"); NULL: nothing. */
WEIR_API const char *weir__checkpoint_warning(const weir__checkpoint *c);
/* The tokeniser, or NULL and, if the file has one that weir does not know, the reason in *why (borrowed). */
const weir__tokenizer *weir__checkpoint_tokenizer(const weir__checkpoint *c, const weir_error **why);

/* ---- plans: decoder.c, plan.c ---- */

/* Lists the tensors of a unit (ordinal = layers: the static modules). EFORMAT: missing or of another shape (names the tensor, found, wanted); EUNSUPPORTED: a
 * type that weir does not run. */
int weir__decoder_plan(const weir__checkpoint *c, uint32_t ordinal, weir__unit_plan *plan, weir_error **error);
/* Adds rows [row, row + want->n) of a matrix [rows][want->k], or a vector of want->k values. */
int weir__plan_add(const weir__checkpoint *c, weir__unit_plan *p, const weir__tensor_plan *want, int32_t row, int32_t rows,
                   const char *name, weir_error **error);
/* The tensor with a role; NULL: the unit has none. */
static inline const weir__tensor_plan *weir__plan_role(const weir__unit_plan *p, enum weir__role role) {
    return p->index[role] >= 0 ? &p->tensors[p->index[role]] : NULL;
}
/* The weight that a recorded kernel gets for a tensor of the unit whose base is in *slot. */
weir_weight weir__plan_weight(const weir__tensor_plan *t, void *const *slot);
int weir__checkpoint_quant(const weir__checkpoint *c);
/* Returns code. EUNSUPPORTED of work that was recorded for a tensor: the error gets the file, the tensor and its type in front. */
int weir__plan_refused(const weir__checkpoint *c, const weir__tensor_plan *t, int code, weir_error **error);

/* Reads a unit's tensors from the file one after another into `staging` (plan->source_bytes). Blocks: on a stream's thread. */
int weir__unit_read(const weir__checkpoint *c, uint32_t ordinal, void *staging, weir_error **error);
/* Records the packing of what weir__unit_read put into `staging` into the blob whose address is in *slot. */
int weir__unit_pack(const weir__checkpoint *c, uint32_t ordinal, const void *staging, void *const *slot, weir__list *list,
                    weir_error **error);

/* ---- where models are ---- */

/* Writes the path of a model argument: a file or folder that exists, or a name kept by `weir fetch`. ENOENT says where it looked. */
WEIR_API int weir__model_locate(const char *model, char *path, size_t size, weir_error **error);

#endif
