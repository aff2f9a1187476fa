/* kv.h: the KV cache's bookkeeping: a bounded pool of blocks of 32 positions, a block table per sequence. The same block number serves every layer, each
 * with pools of its own. Owns no device memory and runs nothing; belongs to one thread (the stepper's). */
#ifndef WEIR_KV_H
#define WEIR_KV_H

#include "../rt/rt.h"

typedef struct weir__kv weir__kv;

/* `positions` in all (rounded up to whole blocks), `limit`: the most that one sequence may have. ENOMEM. */
int weir__kv_new(weir_system *s, uint32_t positions, uint32_t limit, weir__kv **out, weir_error **error);
void weir__kv_free(weir__kv *kv);
uint32_t weir__kv_blocks(const weir__kv *kv); /* blocks of the pool */
uint32_t weir__kv_free_blocks(const weir__kv *kv);
uint32_t weir__kv_blocks_per_sequence(const weir__kv *kv); /* row length of the table */
const int32_t *weir__kv_table(const weir__kv *kv);         /* [WEIR_MAX_SEQUENCES][blocks_per_sequence] */

/* A new, empty sequence: an id that is never reused, > 0. EBUSY: all WEIR_MAX_SEQUENCES are open. */
int weir__kv_open(weir__kv *kv, uint64_t *sequence, weir_error **error);
int weir__kv_close(weir__kv *kv, uint64_t sequence);             /* ESTATE: no such sequence */
int32_t weir__kv_slot(const weir__kv *kv, uint64_t sequence);    /* row of the table, -1: no such sequence */
uint32_t weir__kv_length(const weir__kv *kv, uint64_t sequence); /* positions written */

/* Makes room for positions [first, first + count): first must not lie beyond what is written (ESTATE). The length does not change until commit.
 * ECONTEXT: beyond the limit, or the pool has too few free blocks; then nothing has changed. */
int weir__kv_reserve(weir__kv *kv, uint64_t sequence, uint32_t first, uint32_t count, weir_error **error);
void weir__kv_commit(weir__kv *kv, uint64_t sequence,
                     uint32_t length); /* now `length` positions are written; blocks beyond are given back */

#endif
