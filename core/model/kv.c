/* kv.c: blocks and sequences of the KV cache (kv.h). */
#include "kv.h"

#include "../../kernels/kernels.h"

typedef struct {
    uint64_t id; /* 0: closed */
    uint32_t length, blocks;
} sequence;

struct weir__kv {
    weir_system *system;
    uint32_t blocks, free_count, per_sequence, limit;
    uint64_t opened;
    int32_t *table;       /* [WEIR_MAX_SEQUENCES][per_sequence] */
    int32_t *free_blocks; /* a stack of free_count block numbers */
    sequence sequences[WEIR_MAX_SEQUENCES];
};

static uint32_t blocks_for(uint32_t positions) {
    return (positions + WEIR_KV_BLOCK - 1) / WEIR_KV_BLOCK;
}

int weir__kv_new(weir_system *s, uint32_t positions, uint32_t limit, weir__kv **out, weir_error **error) {
    weir__kv *kv = weir__alloc(s, sizeof *kv);
    if (!kv)
        return weir_fail(error, WEIR_ENOMEM, "KV cache: no memory");
    kv->system = s;
    kv->blocks = kv->free_count = blocks_for(positions);
    kv->limit = limit < positions ? limit : positions;
    kv->per_sequence = blocks_for(kv->limit);
    kv->table = weir__alloc(s, sizeof(int32_t) * WEIR_MAX_SEQUENCES * kv->per_sequence);
    kv->free_blocks = weir__alloc(s, sizeof(int32_t) * kv->blocks);
    if (!kv->table || !kv->free_blocks) {
        weir_fail(error, WEIR_ENOMEM, "KV cache: no memory for a table of %u blocks", kv->blocks);
        weir__kv_free(kv);
        return WEIR_ENOMEM;
    }
    for (uint32_t i = 0; i < kv->blocks; i++)
        kv->free_blocks[i] = (int32_t)(kv->blocks - 1 - i);
    *out = kv;
    return WEIR_OK;
}

void weir__kv_free(weir__kv *kv) {
    if (!kv)
        return;
    weir__free(kv->system, kv->table);
    weir__free(kv->system, kv->free_blocks);
    weir__free(kv->system, kv);
}

uint32_t weir__kv_blocks(const weir__kv *kv) {
    return kv->blocks;
}
uint32_t weir__kv_free_blocks(const weir__kv *kv) {
    return kv->free_count;
}
uint32_t weir__kv_blocks_per_sequence(const weir__kv *kv) {
    return kv->per_sequence;
}
const int32_t *weir__kv_table(const weir__kv *kv) {
    return kv->table;
}

int32_t weir__kv_slot(const weir__kv *kv, uint64_t id) {
    int32_t slot = (int32_t)(id % WEIR_MAX_SEQUENCES);
    return id && kv->sequences[slot].id == id ? slot : -1;
}

uint32_t weir__kv_length(const weir__kv *kv, uint64_t id) {
    int32_t slot = weir__kv_slot(kv, id);
    return slot < 0 ? 0 : kv->sequences[slot].length;
}

int weir__kv_open(weir__kv *kv, uint64_t *id, weir_error **error) {
    for (uint32_t slot = 0; slot < WEIR_MAX_SEQUENCES; slot++) {
        if (kv->sequences[slot].id)
            continue;
        *id = ++kv->opened * WEIR_MAX_SEQUENCES + slot;
        kv->sequences[slot] = (sequence){.id = *id};
        return WEIR_OK;
    }
    return weir_fail(error, WEIR_EBUSY, "all %d sequences of this model are open", WEIR_MAX_SEQUENCES);
}

static void give_back(weir__kv *kv, int32_t slot, uint32_t keep) {
    sequence *q = &kv->sequences[slot];
    while (q->blocks > keep)
        kv->free_blocks[kv->free_count++] = kv->table[(uint32_t)slot * kv->per_sequence + --q->blocks];
}

int weir__kv_close(weir__kv *kv, uint64_t id) {
    int32_t slot = weir__kv_slot(kv, id);
    if (slot < 0)
        return WEIR_ESTATE;
    give_back(kv, slot, 0);
    kv->sequences[slot].id = 0;
    return WEIR_OK;
}

int weir__kv_reserve(weir__kv *kv, uint64_t id, uint32_t first, uint32_t count, weir_error **error) {
    int32_t slot = weir__kv_slot(kv, id);
    if (slot < 0)
        return weir_fail(error, WEIR_ESTATE, "no sequence %llu", (unsigned long long)id);
    sequence *q = &kv->sequences[slot];
    if (first > q->length)
        return weir_fail(error, WEIR_ESTATE, "sequence %llu: pass starts at position %u, but only %u are written", (unsigned long long)id,
                         first, q->length);
    if (count > kv->limit || first > kv->limit - count)
        return weir_fail(error, WEIR_ECONTEXT, "context full: %llu positions wanted, the context holds %u",
                         (unsigned long long)first + count, kv->limit);
    uint32_t want = blocks_for(first + count);
    if (want > q->blocks && want - q->blocks > kv->free_count)
        return weir_fail(error, WEIR_ECONTEXT, "context full: the KV pool has %u of %u blocks of %d positions free, %u more wanted",
                         kv->free_count, kv->blocks, WEIR_KV_BLOCK, want - q->blocks);
    while (q->blocks < want)
        kv->table[(uint32_t)slot * kv->per_sequence + q->blocks++] = kv->free_blocks[--kv->free_count];
    return WEIR_OK;
}

void weir__kv_commit(weir__kv *kv, uint64_t id, uint32_t length) {
    int32_t slot = weir__kv_slot(kv, id);
    if (slot < 0)
        return;
    kv->sequences[slot].length = length;
    give_back(kv, slot, blocks_for(length));
}
