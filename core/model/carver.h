/* carver.h: parts of one block of memory, 64-byte aligned. The same calls are made twice: with no base to measure, then to assign. */
#ifndef WEIR_MODEL_CARVER_H
#define WEIR_MODEL_CARVER_H

#include <stddef.h>
#include <stdint.h>

typedef struct weir__carver {
    uint8_t *base; /* NULL while measuring */
    size_t used;
} weir__carver;

static inline void *weir__carve(weir__carver *c, size_t bytes) {
    size_t at = c->used;
    c->used += (bytes + 63) / 64 * 64;
    return c->base ? c->base + at : NULL;
}

#endif
