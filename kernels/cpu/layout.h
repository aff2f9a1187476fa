/* layout.h: how weights, activations, KV blocks and workspaces lie in memory on cpu, and how a kernel finds its rows and its share of the work.
 * Pictures are in kernels/README.md. Knows no instruction set and no arithmetic. */
#ifndef WEIR_CPU_LAYOUT_H
#define WEIR_CPU_LAYOUT_H

#include "cpu.h"

enum {
    PANEL = 16,  /* rows of a weight panel: one vector of outputs */
    BLOCK = 32,  /* values of a quantised block and of an activation block */
    SUPER = 256, /* values of a super-block (K types) and of its activation block */
    KV_BLOCK = WEIR_KV_BLOCK,
    SPLIT = WEIR_ATTENTION_SPLIT, /* positions of one softmax */
    MAX_HEAD = 256,               /* dimensions of a head: what the attention kernel keeps on its stack */
    PARTIAL_ROWS = 4              /* rows up to which the splits of a row are spread over threads; more rows are enough work as they are */
};

/* The types that have kernels here, by the file with their products: T(number, name). Each has a panel_name below, a row in types.c, weir__pack_name and
 * weir__gather_name (block.h), and a product (product.h). */
#define WEIR_TYPES_FLOAT(T) T(F32, f32) T(F16, f16) T(BF16, bf16)
#define WEIR_TYPES_32(T) T(Q4_0, q4_0) T(Q4_1, q4_1) T(Q5_0, q5_0) T(Q5_1, q5_1) T(Q8_0, q8_0) T(IQ4_NL, iq4_nl) T(MXFP4, mxfp4)
#define WEIR_TYPES_K(T) T(Q2_K, q2_k) T(Q3_K, q3_k) T(Q4_K, q4_k) T(Q5_K, q5_k) T(Q6_K, q6_k) T(IQ4_XS, iq4_xs)
#define WEIR_TYPES_BLOCKS(T) WEIR_TYPES_32(T) WEIR_TYPES_K(T)

/* 16 rows of one block. */
typedef struct panel_q4_0 {
    uint16_t d[PANEL];
    uint8_t q[BLOCK / 8][PANEL][4]; /* as q4_1; the value is d * (q - 8) */
} panel_q4_0;
typedef struct panel_q4_1 {
    uint16_t d[PANEL], m[PANEL];
    uint8_t q[BLOCK / 8][PANEL][4]; /* [c][row][j]: low nibble is k = 4 c + j, high nibble k = 16 + 4 c + j */
} panel_q4_1;
typedef struct panel_q8_0 {
    uint16_t d[PANEL];
    int8_t q[BLOCK / 4][PANEL][4]; /* [c][row][j]: k = 4 c + j */
} panel_q8_0;

typedef struct panel_q5_0 {
    uint16_t d[PANEL];
    uint8_t h[4][PANEL];            /* fifth bits: byte (b, row), bit i is k = 8 b + i */
    uint8_t q[BLOCK / 8][PANEL][4]; /* low four bits, as q4_1; the value is d * (q - 16) */
} panel_q5_0;
typedef struct panel_q5_1 {
    uint16_t d[PANEL], m[PANEL];
    uint8_t h[4][PANEL];
    uint8_t q[BLOCK / 8][PANEL][4];
} panel_q5_1;
typedef struct panel_iq4_nl {
    uint16_t d[PANEL];
    uint8_t q[BLOCK / 8][PANEL][4]; /* as q4_1; indices of the code book */
} panel_iq4_nl;
typedef struct panel_mxfp4 {
    uint8_t e[PANEL];               /* powers of two, biased by 127: f16 cannot hold them */
    uint8_t q[BLOCK / 8][PANEL][4]; /* as q4_1; indices of the code book */
} panel_mxfp4;

/* 16 rows of one super-block of 256, k = 64 i + 4 c + j, c 0..15; scales and minima of sub-blocks are widened to bytes. Codes, or parts of them:
 *   nibbles    [8 i + c % 8][row][j], the high one from c = 8 on
 *   two bits   [4 i + c % 4][row][j], bits 2 (c / 4)
 *   one bit    [2 i + c % 2][row][j], bit c / 2
 * so that where they lie in a byte does not depend on i. */
typedef struct panel_q4_k {
    uint16_t d[PANEL], dmin[PANEL];
    uint8_t scale[8][PANEL], min[8][PANEL]; /* of sub-blocks of 32 */
    uint8_t q[SUPER / 8][PANEL][4];
} panel_q4_k;
typedef struct panel_q5_k {
    uint16_t d[PANEL], dmin[PANEL];
    uint8_t scale[8][PANEL], min[8][PANEL];
    uint8_t h[SUPER / 32][PANEL][4]; /* fifth bits */
    uint8_t q[SUPER / 8][PANEL][4];
} panel_q5_k;
typedef struct panel_q6_k {
    uint16_t d[PANEL];
    int8_t scale[16][PANEL];         /* of sub-blocks of 16; the value is d * scale * (q - 32) */
    uint8_t h[SUPER / 16][PANEL][4]; /* upper two bits */
    uint8_t q[SUPER / 8][PANEL][4];
} panel_q6_k;
typedef struct panel_q3_k {
    uint16_t d[PANEL];
    int8_t scale[16][PANEL];         /* of sub-blocks of 16, 32 taken off; the value is d * scale * (q - 4) */
    uint8_t h[SUPER / 32][PANEL][4]; /* third bits */
    uint8_t q[SUPER / 16][PANEL][4]; /* lower two bits */
} panel_q3_k;
typedef struct panel_q2_k {
    uint16_t d[PANEL], dmin[PANEL];
    uint8_t scale[16][PANEL], min[16][PANEL];
    uint8_t q[SUPER / 16][PANEL][4];
} panel_q2_k;
typedef struct panel_iq4_xs {
    uint16_t d[PANEL];
    int8_t scale[8][PANEL];         /* of sub-blocks of 32, 32 taken off */
    uint8_t q[SUPER / 8][PANEL][4]; /* indices of iq4_nl's code book */
} panel_iq4_xs;

/* 32 activations: x ~ d * q; sum is of q; s = d * sum; off = -128 * sum, what codes that are 128 too large add too much. q is in -127..127, never -128. */
typedef struct act_block {
    float d, s;
    int32_t sum, off;
    int8_t q[BLOCK];
} act_block;

/* 256 activations: x ~ d * q; sums of 16 each. */
typedef struct act_block_k {
    float d;
    int32_t reserved[3];
    int16_t sums[SUPER / 16];
    int8_t q[SUPER];
} act_block_k;

_Static_assert(sizeof(panel_q4_k) == 2368 && sizeof(panel_q5_k) == 2880 && sizeof(panel_q6_k) == 3360 && sizeof(panel_q3_k) == 1824 &&
                   sizeof(panel_q2_k) == 1600 && sizeof(panel_iq4_xs) == 2208 && sizeof(act_block_k) == 304,
               "layouts have no padding");
_Static_assert(sizeof(panel_q4_0) == 288 && sizeof(panel_q5_0) == 352 && sizeof(panel_q5_1) == 384 && sizeof(panel_iq4_nl) == 288 &&
                   sizeof(panel_mxfp4) == 272,
               "layouts have no padding");
_Static_assert(sizeof(panel_q4_1) == 320 && sizeof(panel_q8_0) == 544 && sizeof(act_block) == 48, "layouts have no padding");

/* A token that may be drawn: its weight is exp of its logit's distance to the best. */
typedef struct candidate {
    float weight;
    int32_t id;
} candidate;

static inline size_t pad16(size_t n) {
    return (n + 15) / 16 * 16;
}
static inline int min_int(int a, int b) {
    return a < b ? a : b;
}
static inline int max_int(int a, int b) {
    return a > b ? a : b;
}

/* A partial attention result of one (row, head, split): [dim padded to 16] sums, then the largest score and the sum of weights. */
static inline size_t partial_floats(int dim) {
    return pad16((size_t)dim) + 16;
}

static inline uint8_t *weight_at(const weir_weight *w) {
    return (uint8_t *)*w->base + w->offset;
}
/* A vector of floats in a unit's blob: a norm's weights, a bias. */
static inline const float *floats_at(void *const *base, uint64_t offset) {
    return (const float *)(const void *)((const uint8_t *)*base + offset);
}
static inline int panels_of(int n) {
    return (n + PANEL - 1) / PANEL;
}

/* The form of the activations that a matrix of glu takes, by its type. */
static inline const void *glu_acts(const weir_k_glu *a, const weir_weight *w) {
    const weir_type_info *type = weir_type_get(w->type);
    return type && type->acts == SUPER ? a->acts_k : a->acts;
}

/* How many rows a kernel runs over, and which row of a buffer its row r is. */
static inline int rows_count(const weir_step *s, int rows) {
    return rows == WEIR_ROWS_OUT || rows == WEIR_ROWS_GATHER ? s->out_rows : s->tile_rows;
}
static inline size_t rows_index(const weir_step *s, int rows, int r) {
    if (rows == WEIR_ROWS_PASS)
        return (size_t)(s->tile_first + r);
    return (size_t)(rows == WEIR_ROWS_GATHER ? s->out_row[s->out_first + r] : r);
}

/* Units of equal work in chunks: one large chunk for every worker, then small ones that level what the large ones left uneven. */
typedef struct share {
    uint32_t units, workers, large, small;
} share;
static inline share share_of(int units, const weir_work *work) {
    uint32_t n = (uint32_t)units, w = work->workers, large = w == 1 ? n : n * 5 / (8 * w), small = n / (16 * w);
    return (share){n, w, large, small ? small : 1};
}
/* The next chunk: false when all are taken, else units [*first, *end). */
static inline bool share_take(const share *s, const weir_work *work, int *first, int *end) {
    uint32_t c = weir_work_take(work), f, e;
    if (c < s->workers) {
        f = c * s->large;
        e = f + s->large;
    } else {
        uint64_t start = (uint64_t)s->workers * s->large + (uint64_t)(c - s->workers) * s->small;
        if (start >= s->units)
            return false;
        f = (uint32_t)start;
        e = s->units - f < s->small ? s->units : f + s->small;
    }
    *first = (int)f;
    *end = (int)e;
    return true;
}

#endif
