/* kernels.h: weight types, the step block, and the argument struct of every kernel. Plain C, shared by all devices and by core. Knows
 * nothing of actors, files or models. Every pointer in an argument struct is device memory that exists before the list is recorded;
 * what varies from step to step is read from the step block.
 *
 * Shapes are written row-major, [rows][columns]. T: rows of the current tile, H: width of the model, K: inner dimension of a product. */
#ifndef WEIR_KERNELS_H
#define WEIR_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_TYPES_API __attribute__((visibility("default"))) /* what tools above the library ask about types */

/* ---- what the layouts and the results of every device agree on ---- */

#define WEIR_KV_BLOCK 32         /* positions in a KV block: two vectors of 16 lanes */
#define WEIR_ATTENTION_SPLIT 256 /* positions after which a softmax may be split: 8 blocks; part of the result's bits */

/* ---- weight types: numbers and block formats are GGUF's ---- */

enum weir_type {
    WEIR_F32 = 0,
    WEIR_F16 = 1,
    WEIR_Q4_0 = 2,
    WEIR_Q4_1 = 3,
    WEIR_Q5_0 = 6,
    WEIR_Q5_1 = 7,
    WEIR_Q8_0 = 8,
    WEIR_Q2_K = 10,
    WEIR_Q3_K = 11,
    WEIR_Q4_K = 12,
    WEIR_Q5_K = 13,
    WEIR_Q6_K = 14,
    WEIR_IQ4_NL = 20,
    WEIR_IQ4_XS = 23,
    WEIR_BF16 = 30,
    WEIR_MXFP4 = 39,
    WEIR_TYPES = 40
};

typedef struct weir_type_info {
    const char *name;     /* "q4_1"; NULL: a number that weir does not run */
    uint32_t block;       /* values in a block along a row */
    uint32_t bytes;       /* bytes of a block in a file */
    uint32_t panel_bytes; /* bytes of 16 rows of one block, packed (kernels/README.md) */
    uint32_t
        acts; /* values in a block of the int8 activations that products take (unless the model asks for f32): 32 or 256; 0: floats only */
} weir_type_info;
WEIR_TYPES_API const weir_type_info *weir_type_get(int type); /* NULL: unknown */
/* Name of any GGUF type number, known to weir or not ("q6_k", "iq2_xxs"), with block and bytes for size checks; NULL: no such type. */
WEIR_TYPES_API const weir_type_info *weir_type_any(int type);

/* The number of a type by its name, "q8_0"; -1: no such type. */
WEIR_TYPES_API int weir_type_find(const char *name);

/* Bytes of an [n][k] matrix packed in panels of 16 rows, n padded to 16; 0: k is no multiple of the block, or overflow. Multiple of 64. */
size_t weir_packed_size(int type, int64_t n, int64_t k);
/* Bytes of one row of k activations in int8 blocks of 32 (scale, integer sum, scale * sum, values) or 256 (scale, sums of 16, values). k a multiple of
 * `block`. */
size_t weir_act_size(int block, int64_t k);

/* Values of k weights, a multiple of the type's block, from a file's blocks at any alignment: exactly what every kernel takes them for. Types: those
 * that weir_type_reads. */
void weir_dequantise(int type, const void *blocks, int64_t k, float *values);
/* A file's blocks of k values, a multiple of the type's block: the bytes that gguf-py (the reference of GGUF) makes. Types: f32, f16, bf16, q4_0, q4_1, q5_0,
 * q5_1, q8_0 (weir_type_writes). */
void weir_quantise(int type, const float *values, int64_t k, void *blocks);
WEIR_TYPES_API bool weir_type_reads(int type);
WEIR_TYPES_API bool weir_type_writes(int type);

/* ---- the step block: all that varies from step to step, in device memory, written by the host before the step is submitted ---- */

/* The steps between a row of logits and a token, in their default order. The first four change logits, temperature scales them, the others take tokens away. */
#define WEIR_SAMPLERS(S)                                                                                                                   \
    S(repeat_penalty) S(frequency_penalty) S(presence_penalty) S(logit_bias) S(temperature) S(top_k) S(typical) S(top_p) S(min_p)

enum weir_sampler {
    WEIR_S_END,
#define S(name) WEIR_S_##name,
    WEIR_SAMPLERS(S)
#undef S
        WEIR_SAMPLER_END
};
#define WEIR_SAMPLER_COUNT (WEIR_SAMPLER_END - 1)

/* How a token is drawn from a row of logits. All zero: greedy. */
typedef struct weir_sample {
    float temperature;    /* <= 0: greedy (lowest id of equal logits): only what changes logits is applied, nothing is drawn */
    float top_p, min_p;   /* <= 0 or >= 1: off (min_p: only <= 0) */
    int32_t top_k;        /* <= 0: off */
    uint64_t seed;        /* with `position` the only source of randomness: counter-based, so batch and order do not matter */
    int64_t position;     /* of the row that is sampled from */
    float typical;        /* <= 0 or >= 1: off */
    float repeat_penalty; /* <= 0 or 1: off */
    float frequency_penalty, presence_penalty; /* 0: off */
    int32_t penalty_last;                      /* positions, up to `position`, whose tokens the penalties look at; <= 0: all */
    int32_t generated_from;                    /* first position whose token counts for frequency and presence */
    int32_t biases;                            /* entries of the sequence's row of `bias` */
    int32_t logprobs;                          /* 0: none; n + 1: the token's log-probability and the n best tokens' */
    uint8_t order[WEIR_SAMPLER_COUNT];         /* enum weir_sampler, WEIR_S_END after the last; none: the default order */
} weir_sample;

#define WEIR_MAX_BIAS 1024   /* biased tokens of a sequence: clients of OpenAI's API give up to some hundreds */
#define WEIR_MAX_LOGPROBS 20 /* best tokens told beside the chosen one: OpenAI's bound */

typedef struct weir_bias {
    int32_t token;
    float addend;
} weir_bias;

/* Log-probabilities of the model's own distribution: the softmax of the logits before any step. -inf: no number, or none of the probability. */
typedef struct weir_logprobs {
    double chosen;
    double best[WEIR_MAX_LOGPROBS]; /* [count], descending; of equal ones the lower id first */
    int32_t token[WEIR_MAX_LOGPROBS];
    int32_t count;
    int32_t reserved;
} weir_logprobs;

typedef struct weir_step {
    int32_t rows;                  /* rows of this pass */
    int32_t tile;                  /* most rows of a tile */
    int32_t tile_first, tile_rows; /* the current tile; moved by the kernel `tile` */
    int32_t outputs;               /* rows that want logits */
    int32_t out_tile;              /* most rows of an output tile */
    int32_t out_first, out_rows;   /* the current output tile; moved by the kernel `tile` */
    int32_t blocks_per_sequence;   /* row length of `blocks` */
    int32_t reserved;
    const int32_t *token;      /* [rows] */
    const int32_t *slot;       /* [rows] row of the sequence in `blocks` */
    const int32_t *position;   /* [rows] absolute; rows of one sequence stand together, ascending */
    const int32_t *out_row;    /* [outputs] row of the pass */
    const int32_t *blocks;     /* [slots][blocks_per_sequence] KV block of each 32 positions */
    const weir_sample *sample; /* [outputs] */
    int32_t *sampled;          /* [outputs] result; -1: no logit was a number */
    const weir_bias *bias;     /* [slots][WEIR_MAX_BIAS], read where an output's sample has biases */
    int32_t *history; /* [KV blocks][WEIR_KV_BLOCK] the token of each position: `embed` writes it, penalties read it; NULL: not kept */
    weir_logprobs *logprobs; /* [slots] result, for the outputs that ask; one output a sequence then */
} weir_step;

/* ---- kernels ---- */

/* Weights: *base + offset at run time; base is a slot that the runtime sets when the unit is acquired. */
typedef struct weir_weight {
    void *const *base;
    uint64_t offset;
    int32_t type; /* enum weir_type */
    int32_t n, k; /* outputs, inputs */
} weir_weight;

/* How rows of a buffer are addressed. */
enum weir_rows {
    WEIR_ROWS_TILE,  /* row r of the tile is row r of the buffer */
    WEIR_ROWS_PASS,  /* row r of the tile is row tile_first + r */
    WEIR_ROWS_OUT,   /* output r of the output tile is row r; the kernel runs over out_rows rows */
    WEIR_ROWS_GATHER /* output r of the output tile is row out_row[out_first + r]; runs over out_rows rows */
};

/* Moves to the next tile (outputs = 0) or the next output tile (1): first += rows, wrapping to 0 after the last; rows = what is left, at
 * most the tile. Before the first call first + rows = total. One thread. */
typedef struct weir_k_tile {
    weir_step *step;
    int32_t outputs;
} weir_k_tile;

/* x[tile_first + r][0..k) = row token[r] of the table, as float, times `scale`; notes the token in the step's history. */
typedef struct weir_k_embed {
    const weir_step *step;
    weir_weight table; /* n: vocabulary, k: H */
    float *x;          /* [rows][H] */
    float scale;       /* 0: none */
} weir_k_embed;

/* y (+)= x / sqrt(mean(x^2) + eps) * w, row by row (RMSNorm, Zhang & Sennrich 2019). */
typedef struct weir_k_rmsnorm {
    const weir_step *step;
    const float *x;
    int32_t x_rows; /* WEIR_ROWS_TILE, PASS or GATHER */
    int32_t width;
    void *const *weight_base;
    uint64_t weight_offset; /* float[width] */
    float eps;
    int32_t y_rows; /* rows of y: as x_rows TILE or PASS: TILE or PASS; GATHER: OUT */
    int32_t add;    /* 1: y = y + norm, without activations */
    float *y;       /* NULL: not wanted */
    void *acts;     /* [T] int8 activation rows of weir_act_size(32, width); NULL: not wanted */
    void *acts_k;   /* [T] the same in blocks of 256; NULL: not wanted */
} weir_k_rmsnorm;

/* y[r][j] (+)= (sum over k of x[r][k] * W[j][k]) (+ bias[j]). Takes `acts` if the type has a product with int8 activations and acts is not NULL, else x. */
typedef struct weir_k_matmul {
    const weir_step *step;
    weir_weight w;
    const float *x;   /* [T][ldx] */
    const void *acts; /* [T] rows of weir_act_size(type's acts, w.k) */
    int32_t ldx;
    int32_t rows; /* WEIR_ROWS_TILE or WEIR_ROWS_OUT: how many rows, and how x and acts are addressed */
    float *y;     /* [..][ldy] */
    int32_t ldy;
    int32_t y_rows; /* TILE, PASS or OUT */
    int32_t add;    /* 1: y = y + product */
    int32_t bias;   /* 1: float[w.n] at *w.base + bias_offset is added to the product first */
    uint64_t bias_offset;
    void *workspace;   /* what the device asks for (cpu: nothing) for `most_rows` rows */
    int32_t most_rows; /* of a tile, or of an output tile */
    int32_t f32;       /* 1: x is not rounded to a smaller float, where the device would */
} weir_k_matmul;

enum weir_activation {
    WEIR_SILU,
    WEIR_GELU_TANH /* x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) */
};

/* h = activation(gate product) * (up product): the gated half of an MLP; out as floats and/or int8 activations of the next product. */
typedef struct weir_k_glu {
    const weir_step *step;
    weir_weight gate, up; /* same n, k */
    const float *x;
    const void *acts, *acts_k; /* [T] in blocks of 32 and of 256; each matrix takes what its type wants, x if that is NULL */
    int32_t ldx;
    int32_t ldy;
    float *y;           /* [T][ldy]; NULL: not wanted. With acts_block 256 it is needed: blocks are made from it */
    void *acts_out;     /* [T] rows of weir_act_size(acts_block, n); NULL: not wanted */
    int32_t acts_block; /* of acts_out: 32 or 256 */
    int32_t activation; /* enum weir_activation */
    int32_t bias;       /* 1: float[n] at *gate.base + gate_bias and *up.base + up_bias are added to the products */
    int32_t f32;        /* as in weir_k_matmul, with the next two */
    uint64_t gate_bias, up_bias;
    void *workspace;
    int32_t most_rows;
    int32_t reserved;
} weir_k_glu;

/* How fast the pairs of a head turn (Su et al. 2021), and how that is stretched beyond the context that a model was trained with. */
enum weir_rope_scaling {
    WEIR_ROPE_PLAIN,  /* base^(-2 i / dim) */
    WEIR_ROPE_LINEAR, /* divided by factor (position interpolation, Chen et al. 2023) */
    WEIR_ROPE_LLAMA3, /* Llama 3.1: by wavelength, between low_freq and high_freq smoothly */
    WEIR_ROPE_YARN,   /* Peng et al. 2023: a ramp between beta_fast and beta_slow rotations over the original context */
    WEIR_ROPE_FACTORS /* each divided by its own factor (longrope; GGUF's rope_freqs) */
};
typedef struct weir_rope {
    double base;
    int32_t dim;     /* rotated dimensions of a head, even */
    int32_t scaling; /* enum weir_rope_scaling */
    double factor;
    double original_context;
    double low_freq, high_freq;  /* llama3 */
    double beta_fast, beta_slow; /* yarn */
    bool untruncated;            /* yarn: the ramp's ends are not rounded outwards to whole dimensions */
    const float *factors;        /* factors: [dim / 2] */
} weir_rope;
/* frequency[dim / 2], radians a position, in double with our own functions: the same bits everywhere. */
double weir_log(double x); /* natural logarithm of a normal x > 0, in double: the same bits everywhere */
void weir_rope_frequencies(const weir_rope *rope, double *frequency);

/* Rotary tables: scale * cosine and scale * sine of position * frequency[i], computed in double with our own functions, rounded once. out:
 * [positions][dim / 2][2]. */
typedef struct weir_k_rope_table {
    float *out;
    int32_t positions, dim;
    const double *frequency; /* [dim / 2] */
    double scale;            /* 1: none (yarn's attention factor) */
} weir_k_rope_table;

/* KV pools of one layer: K [block][kv_head][dim][32], V [block][kv_head][32][dim_padded], dim_padded = dim rounded up to 16. */
typedef struct weir_kv {
    void *k, *v;
    int32_t type; /* WEIR_F16 or WEIR_F32 */
    int32_t kv_heads, dim;
    int32_t reserved;
} weir_kv;

/* Norms (if wanted) and rotates q and k (half split: i with i + rope_dim/2) and stores k and v of the tile's rows in the pools. q, k, v lie in one buffer. */
typedef struct weir_k_rope_store {
    const weir_step *step;
    float *qkv; /* [T][ld]: q at 0, k at k_offset, v at v_offset (floats) */
    int32_t ld, k_offset, v_offset;
    int32_t heads;
    int32_t rope_dim;  /* leading dimensions of a head that are rotated, even */
    int32_t positions; /* rows of the table */
    const float *table;
    weir_kv kv;
    void *const *norm_base;  /* NULL: no norms; else each head of q and k goes through RMSNorm first */
    uint64_t q_norm, k_norm; /* offsets of float[dim] */
    float norm_eps;
    int32_t reserved;
} weir_k_rope_store;

/* Causal attention of the tile's rows over their sequences' positions (position - window, position], or all up to position, split at absolute multiples of
 * 256, merged ascending. A score is softcap * tanh(q.k * scale / softcap) where there is a cap. */
typedef struct weir_k_attention {
    const weir_step *step;
    const float *q; /* [T][ldq], heads * dim used */
    int32_t ldq;
    int32_t heads;
    float scale;
    int32_t splits; /* most splits of a row: ceil(context / 256) */
    weir_kv kv;
    float *partial; /* workspace of weir_attention_workspace() bytes */
    float *out;     /* [T][heads * dim] */
    void *acts;     /* the same as int8 activations, weir_act_size(acts_block, heads * dim); NULL: not wanted. Written by attention_merge */
    int32_t acts_block; /* 32 or 256 */
    int32_t window;     /* positions that a row sees, itself included; 0: all */
    float softcap;      /* 0: none */
    int32_t reserved;
} weir_k_attention;
size_t weir_attention_workspace(int heads, int dim, int splits); /* bytes */

/* Copies or quantises nothing by itself: second half of attention (same arguments). Merges partial results and makes `acts`. */
typedef weir_k_attention weir_k_attention_merge;

/* x = cap * tanh(x / cap), in place. */
typedef struct weir_k_softcap {
    const weir_step *step;
    float *x; /* [..][width] */
    int32_t width;
    int32_t rows; /* WEIR_ROWS_TILE or WEIR_ROWS_OUT */
    float cap;
} weir_k_softcap;

/* sampled[o] = a token drawn from logits[o] under sample[o], -1 if none of them is a number; logprobs where it asks; runs over the current output tile. */
typedef struct weir_k_sample {
    const weir_step *step;
    const float *logits; /* [out_rows][vocab] */
    int32_t vocab;
    int32_t reserved;
    void *workspace; /* weir_sample_workspace(vocab) bytes per worker */
    int32_t workers, reserved2;
} weir_k_sample;
size_t weir_sample_workspace(int vocab); /* bytes per worker */

/* Packs an [n][k] matrix in a file's row-major blocks into panels of 16 rows at *base + offset; rows beyond n are zero. A source of another type is quantised
 * (or widened) on the way, as weir_quantise does.
 * rope_heads > 0: rows are that many heads of adjacent rotary pairs (GGUF's llama order) and become half split; rope_dim as above. */
typedef struct weir_k_pack {
    const void *source;
    weir_weight w;
    int32_t rope_heads, rope_dim;
    int32_t source_type; /* enum weir_type */
    int32_t reserved;
} weir_k_pack;

/* Widens or copies n values of a vector (norm weights) to float at *base + offset, plus `add`. rope_heads, rope_dim: as pack, for the bias of such rows. */
typedef struct weir_k_pack_vector {
    const void *source;
    weir_weight w; /* n: 1, k: values; type: of the source, f32, f16 or bf16 */
    int32_t rope_heads, rope_dim;
    float add;
} weir_k_pack_vector;

#define WEIR_KERNELS(K)                                                                                                                    \
    K(tile)                                                                                                                                \
    K(embed)                                                                                                                               \
    K(rmsnorm) K(matmul) K(glu) K(rope_table) K(rope_store) K(attention) K(attention_merge) K(softcap) K(sample) K(pack) K(pack_vector)

enum weir_kernel {
#define K(name) WEIR_K_##name,
    WEIR_KERNELS(K)
#undef K
        WEIR_KERNEL_COUNT
};
#define WEIR_KERNEL_MAX_ARGS 192 /* bytes; checked at compile time against every struct above */
const char *weir_kernel_name(int kernel);
size_t weir_kernel_args_size(int kernel);

#endif
