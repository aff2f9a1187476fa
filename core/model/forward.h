/* forward.h: the recorded work of a model on a device: workspaces, KV pools, the step block, one list per unit. Filled once at load; a pass writes the step
 * block and submits lists. Knows no actors: the stepper drives it. Belongs to one thread; the device work itself runs elsewhere. */
#ifndef WEIR_FORWARD_H
#define WEIR_FORWARD_H

#include "model.h"
#include "step_block.h"

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
    float *partial;            /* weir_attention_workspace */
    float *rope;               /* [context][rope_dim / 2][2] */
    float *logits;             /* [out_tile][vocab] */
    void *sampling, *products; /* what the device asks for */
} weir__workspace;

typedef struct weir__forward {
    weir__checkpoint *checkpoint;
    weir__device *device;
    weir__forward_options options;
    uint32_t out_tile;
    int32_t q_width, k_width, qkv_width;
    weir__buffer *memory;    /* the workspace */
    weir__buffer *kv_memory; /* all layers' pools */
    weir__step_block step;
    weir__mirror slots;       /* void *[units + 1]: base pointers */
    weir__mirror frequencies; /* double [rope_dim / 2] */
    weir__workspace w;
    weir_kv *kv;        /* [layers] */
    weir__list **units; /* [units] over one tile */
    weir__list *tables; /* computes the rotary table, run once */
    weir__list *begin;  /* embeds one tile */
    weir__list *normed; /* final norm of one tile of all rows, into w.normed as floats: for captures */
    weir__list *finish; /* norm, head, sampling of one output tile */
    weir__list *whole;  /* begin, all units, finish: a pass of one tile whose units are all granted */
} weir__forward;

/* Whether the device has every kernel that packs the model's units and that its passes run, before any memory is taken for them or a unit is read. EUNSUPPORTED names
 * the kernel and what it is needed for; ENOMEM. */
int weir__forward_check(weir__checkpoint *c, weir__device *d, const weir__forward_options *o, weir_error **error);
/* Makes everything and records every list. ENOMEM (names what), EUNSUPPORTED (a shape that the device refuses). */
int weir__forward_new(weir__checkpoint *c, weir__device *d, const weir__forward_options *o, weir__forward **out, weir_error **error);
void weir__forward_free(weir__forward *f);       /* work under way keeps what it needs. NULL does nothing */
bool weir__forward_int8(const weir__forward *f); /* products take int8 activations */
/* A unit's blob, from the next push on: only while no work reads its place. */
void weir__forward_set_base(weir__forward *f, uint32_t ordinal, weir__buffer *blob);
void *const *weir__forward_slot(const weir__forward *f, uint32_t ordinal);

/* ---- recording: record.c ---- */

int weir__record_unit(const weir__forward *f, uint32_t ordinal, weir__list *l, weir_error **error);
int weir__record_embedding(const weir__forward *f, weir__list *l, weir_error **error);
/* Final norm of the tile's rows into w.normed, as floats. */
int weir__record_final_norm(const weir__forward *f, weir__list *l, weir_error **error);
/* Final norm of the rows that want logits, and the logits. */
int weir__record_head(const weir__forward *f, weir__list *l, weir_error **error);

/* ---- submitting: each as weir__stream_run ---- */

/* Once, before everything else: what is computed from the config. */
int weir__forward_prepare(weir__forward *f, weir__stream *st);
/* The base pointers of `count` units as they were set. */
int weir__forward_push_bases(weir__forward *f, weir__stream *st, uint32_t first, uint32_t count);
uint32_t weir__forward_tiles(const weir__forward *f); /* of the step block as it is filled */
uint32_t weir__forward_out_tiles(const weir__forward *f);
/* A list over tile i, or output tile i. */
int weir__forward_run(weir__forward *f, weir__stream *st, weir__list *l, uint32_t i);
int weir__forward_run_tiles(weir__forward *f, weir__stream *st, weir__list *l); /* over all tiles */

#endif
