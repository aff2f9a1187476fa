/* config.h: what a decoder's file says about its sizes and settings, whatever the format. Filled by settings.c and the family; read by everybody. */
#ifndef WEIR_CONFIG_H
#define WEIR_CONFIG_H

#include "../../kernels/kernels.h"
#include "../limits.h"

/* The rotary embedding as files describe it; rope.c makes a weir_rope of it. 0: not said. */
typedef struct weir__rope_config {
    int32_t type;     /* enum weir_rope_scaling; -1: not said */
    int32_t dim;      /* rotated dimensions of a head */
    double base;      /* of the frequencies */
    double partial;   /* dim as a part of a head, where dim is not said */
    double factor;    /* how far beyond the original context */
    double linear;    /* GGUF's older key for linear scaling */
    double original;  /* positions that the model was trained with before scaling */
    double low, high; /* llama3 */
    double beta_fast, beta_slow;
    double attention;              /* yarn: factor of cosines and sines */
    double mscale, mscale_all_dim; /* yarn: what that factor is made of, where it is not said */
    bool truncate;                 /* yarn: the ramp ends on whole dimensions */
} weir__rope_config;

/* H: width, D: head size. */
typedef struct weir__config {
    int32_t layers, width, heads, kv_heads, head_dim, value_dim, ffn, vocab, context;
    double norm_eps;
    float norm_add;     /* norms are stored less this */
    int32_t activation; /* of the MLP, enum weir_activation */
    bool tied;          /* the head is the embedding table */
    bool own_head;      /* config.json says tied, and the head is another one */

    bool attention_bias, mlp_bias; /* as config.json says it */
    bool qkv_bias, out_bias, ffn_bias;

    weir__rope_config rope_config;
    weir_rope rope;                       /* dim 0: no rotation */
    double rope_scale;                    /* of the rotary table */
    float *rope_factors;                  /* [dim / 2], the checkpoint's; NULL: none */
    int32_t window;                       /* positions that a row of a local layer sees, itself included; 0: all */
    bool use_window;                      /* qwen: without it the window is not used */
    int32_t window_first;                 /* qwen: the first local layer, where no list of layers says it */
    int32_t window_pattern;               /* every that many-th layer is global; 0: none is */
    uint64_t local[WEIR_MAX_LAYERS / 64]; /* bits: layers whose attention is local */

    double query_scalar;                     /* gemma2: scores are divided by its root; 0: by the root of D */
    double attention_scale;                  /* what scores are multiplied with */
    double attention_softcap, logit_softcap; /* 0: none */
    double embedding_scale;                  /* 0: none */
} weir__config;

static inline bool weir__config_local(const weir__config *c, uint32_t layer) {
    return c->local[layer / 64] >> layer % 64 & 1;
}

#endif
