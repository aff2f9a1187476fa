/* step_block.h: the step block of a model, on the host and on the device. Rows and outputs of a pass are gathered in the host's arrays; one copy takes those that are
 * used to the device, packed behind the header; results come back with another. Knows no lists and no actors. Belongs to one thread. */
#ifndef WEIR_STEP_BLOCK_H
#define WEIR_STEP_BLOCK_H

#include "../dev/device.h"
#include "kv.h"

typedef struct weir__step_block {
    weir_system *system;
    weir_step view;           /* the pass that is gathered, or under way: counts, and the host's arrays */
    void *arrays;             /* memory of the view's token, slot, position, out_row, sample */
    weir__mirror image;       /* what kernels read: the header, then the arrays of this pass */
    weir__mirror sequences;   /* blocks and biases, a row a slot */
    weir__mirror results;     /* sampled, log-probabilities */
    weir__buffer *history;    /* the device's alone */
    uint32_t rows;            /* most rows of a pass */
    uint64_t touched, biased; /* slots of this pass; those of them with biases */
    int32_t positions;        /* 1 + the largest position of this pass */
} weir__step_block;
_Static_assert(WEIR_MAX_SEQUENCES <= 64, "a bit a slot");

/* rows: most of a pass, and positions of the KV pool. ENOMEM. A zeroed step may be given to weir__step_fini, also after a failure. */
int weir__step_init(weir_system *s, weir__device *d, uint32_t rows, uint32_t tile, uint32_t out_tile, weir__step_block *step,
                    weir_error **error);
void weir__step_nowhere(weir__step_block *step, weir__buffer *nowhere); /* for lists that are never run */
void weir__step_fini(weir__step_block *step);                           /* work under way keeps what it needs */
weir_step *weir__step_device(const weir__step_block *step);             /* the address that kernels know */
/* The buffers that kernels use through it. */
enum { WEIR__STEP_BUFFERS = 4 };
void weir__step_buffers(const weir__step_block *step, weir__buffer *to[WEIR__STEP_BUFFERS]);

/* ---- one pass ---- */

void weir__step_clear(weir__step_block *step);
/* Adds rows of a sequence. `want` is 0 (no logits), 1 (last row), 2 (every row). The caller has reserved the positions. ETOKEN: outside the vocabulary, ECONTEXT:
 * more rows than a pass holds. */
int weir__step_rows(weir__step_block *step, int32_t slot, int32_t first, const int32_t *tokens, uint32_t count, int32_t vocab, int want,
                    const weir_sample *sample, weir_error **error);
void weir__step_table(weir__step_block *step, const weir__kv *kv, int32_t slot); /* copies a sequence's row of the block table */
weir_bias *weir__step_bias(const weir__step_block *step, int32_t slot);          /* a sequence's biases: room for WEIR_MAX_BIAS */
/* Submits the copies of what was gathered; afterwards nothing is added until the pass has ended. As weir__stream_copy. */
int weir__step_push(weir__step_block *step, weir__stream *st);
/* Submits the copies of the results, which are in the view when the work is done. */
int weir__step_pull(weir__step_block *step, weir__stream *st);

#endif
