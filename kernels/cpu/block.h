/* block.h: how one block of a file becomes one row of a packed block, and what that row's values are. By weight type. */
#ifndef WEIR_CPU_BLOCK_H
#define WEIR_CPU_BLOCK_H

#include "layout.h"

/* A file's block, at any alignment, into row `lane` of a packed block. Moves bits, changes none. */
typedef void weir_block_pack(const uint8_t *block, int lane, uint8_t *packed);
/* The values of row `lane` of a packed block. */
typedef void weir_block_gather(const uint8_t *packed, int lane, float *values);

typedef struct weir_block_codec {
    weir_block_pack *pack;
    weir_block_gather *gather;
} weir_block_codec;

#define ROW(type, name)                                                                                                                    \
    weir_block_pack weir__pack_##name;                                                                                                     \
    weir_block_gather weir__gather_##name;
WEIR_TYPES_BLOCKS(ROW)
#undef ROW

const weir_block_codec *weir_block_codec_of(int type); /* NULL: a type without blocks */

#endif
