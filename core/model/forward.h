/* forward.h: the recorded work of a model on a device: workspaces, KV pools, the step block, one list per unit. Filled once at load; a pass writes the step
 * block and submits lists. Knows no actors: the stepper drives it. Belongs to one thread; the device work itself runs elsewhere. */
#ifndef WEIR_FORWARD_H
#define WEIR_FORWARD_H

#include "kv.h"
#include "model.h"

typedef struct weir__forward_options {
    uint32_t tile;    /* rows through a unit together */
    uint32_t context; /* positions of the KV pool, and most rows of a pass */
    bool activations_f32, kv_f32;
} weir__forward_options;

/* Workspaces of one tile, all float [tile][..] or int8 activation rows; T: tile. */
typedef struct weir__workspace {
    float *x;                          /* [context][H]: the residual stream of all rows of the pass */
    float *normed;                     /* [T][H] */
    void *normed_acts, *normed_acts_k; /* [T] in blocks of 32, of 256; NULL: H is no multiple */
    float *qkv;                        /* [T][qkv_width] */
    float *attention;                  /* [T][heads * D] */
    void *attention_acts;              /* in whichever blocks the product takes that reads them */
    float *hidden;                     /* [T][ffn] */
    void *hidden_acts;
    float *partial;    /* weir_attention_workspace */
    double *frequency; /* [rope_dim / 2] */
    float *rope;       /* [context][rope_dim / 2][2] */
    float *logits;     /* [out_tile][vocab] */
    void *sampling;
} weir__workspace;

typedef struct weir__forward {
    weir__checkpoint *checkpoint;
    weir__device *device;
    weir__forward_options options;
    uint32_t out_tile;
    int32_t q_width, k_width, qkv_width;
    weir__buffer *memory;      /* the workspace */
    weir__buffer *kv_memory;   /* all layers' pools */
    weir__buffer *step_memory; /* the step block and its arrays */
    weir__buffer *slots;       /* void *[units + 1]: base pointers */
    weir__workspace w;
    weir_kv *kv;        /* [layers] */
    weir_step *step;    /* in step_memory; host and device see the same on cpu */
    weir__list **units; /* [units] over one tile */
    weir__list *tables; /* computes the rotary table, run once */
    weir__list *begin;  /* embeds one tile */
    weir__list *normed; /* final norm of one tile of all rows, into w.normed as floats: for captures */
    weir__list *finish; /* norm, head, sampling of one output tile */
    weir__list *whole;  /* begin, all units, finish: a pass of one tile whose units are all granted */
} weir__forward;

/* Makes everything and records every list. ENOMEM (names what), EUNSUPPORTED (a shape that the device refuses). */
int weir__forward_new(weir__checkpoint *c, weir__device *d, const weir__forward_options *o, weir__forward **out, weir_error **error);
void weir__forward_free(weir__forward *f); /* work under way keeps what it needs. NULL does nothing */
void weir__forward_set_base(weir__forward *f, uint32_t ordinal, weir__buffer *blob); /* only while no work reads it */
void *const *weir__forward_slot(const weir__forward *f, uint32_t ordinal);

/* ---- recording: record.c ---- */

int weir__record_unit(const weir__forward *f, uint32_t ordinal, weir__list *l, weir_error **error);
int weir__record_embedding(const weir__forward *f, weir__list *l, weir_error **error);
/* Final norm of the tile's rows into w.normed, as floats. */
int weir__record_final_norm(const weir__forward *f, weir__list *l, weir_error **error);
/* Final norm of the rows that want logits, and the logits. */
int weir__record_head(const weir__forward *f, weir__list *l, weir_error **error);

/* ---- one pass ---- */

/* Adds rows to the step block that is being filled. `want` is 0 (no logits), 1 (last row), 2 (every row). The caller has reserved the positions. */
void weir__forward_clear(weir__forward *f);
int weir__forward_rows(weir__forward *f, int32_t slot, int32_t first, const int32_t *tokens, uint32_t count, int want,
                       const weir_sample *sample,
                       weir_error **error); /* ETOKEN: outside the vocabulary, ECONTEXT: more rows than a pass holds */
void weir__forward_table(weir__forward *f, const weir__kv *kv,
                         int32_t slot);                              /* copies a sequence's row of the block table into the step block */
weir_bias *weir__forward_bias(const weir__forward *f, int32_t slot); /* a sequence's biases in the step block: room for WEIR_MAX_BIAS */
uint32_t weir__forward_tiles(const weir__forward *f);
uint32_t weir__forward_out_tiles(const weir__forward *f);

#endif
