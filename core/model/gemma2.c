/* gemma2.c: the family gemma2 (Gemma Team 2024): norms before and behind attention and MLP, local and global layers in turn, soft caps, scaled embeddings,
 * GELU-gated MLP. Published checkpoints store norms less one; GGUF stores them whole. */
#include "family.h"

#include <math.h>

enum {
    LAYERS_27B = 46
}; /* GGUF does not say how scores are scaled: only the published model of so many layers divides by the root of width / heads */

static void defaults(weir__config *c, enum weir__format format) {
    bool hf = format == WEIR__FORMAT_SAFETENSORS;
    c->context = 8192;
    c->window = 4096;
    c->window_pattern = 2;
    c->tied = true;
    c->activation = WEIR_GELU_TANH;
    c->attention_softcap = 50;
    c->logit_softcap = 30;
    c->norm_add = hf ? 1 : 0;
    c->kv_heads = hf ? 4 : 0;
    c->head_dim = hf ? 256 : 0;
    c->query_scalar = hf ? 256 : 0;
}

/* Layers 0, 2, 4, ... are local. */
static bool alternate(const weir__config *c, int32_t layer) {
    return c->window > 0 && (c->window_pattern == 0 || (layer + 1) % c->window_pattern != 0);
}

static int finish(const weir__source *src, weir__config *c, weir_error **error) {
    c->embedding_scale = sqrt((double)c->width);
    if (weir__source_format(src) == WEIR__FORMAT_GGUF && c->query_scalar == 0 && c->layers == LAYERS_27B)
        c->query_scalar = (double)c->width / (double)c->heads;
    c->qkv_bias = c->out_bias = c->attention_bias;
    return weir__config_layers(src, c, alternate, error);
}

static const weir__setting settings[] = {
    WEIR__ACTIVATION("hidden_activation"),
    {.hf = "hidden_act", .kind = WEIR__SET_ELSEWHERE}, /* published files have it beside the one that counts */
    {.gguf = "attention.sliding_window",
     .hf = "sliding_window",
     .kind = WEIR__SET_INT,
     .offset = WEIR__AT(window),
     .max = 1 << 30,
     .nullable = true},
    {.gguf = "attention.sliding_window_pattern",
     .hf = "sliding_window_pattern",
     .kind = WEIR__SET_INT,
     .offset = WEIR__AT(window_pattern),
     .max = WEIR_MAX_LAYERS},
    {.gguf = "attn_logit_softcapping",
     .hf = "attn_logit_softcapping",
     .kind = WEIR__SET_REAL,
     .offset = WEIR__AT(attention_softcap),
     .max = 1e6,
     .nullable = true},
    {.gguf = "final_logit_softcapping",
     .hf = "final_logit_softcapping",
     .kind = WEIR__SET_REAL,
     .offset = WEIR__AT(logit_softcap),
     .max = 1e6,
     .nullable = true},
    {.gguf = "attention.query_pre_attn_scalar",
     .hf = "query_pre_attn_scalar",
     .kind = WEIR__SET_REAL,
     .offset = WEIR__AT(query_scalar),
     .min = 1e-6,
     .max = 1e9},
    {.hf = "attention_bias", .kind = WEIR__SET_FLAG, .offset = WEIR__AT(attention_bias)},
};

static const weir__tensor_row tensors[] = {
    {WEIR__EMBEDDING, "token_embd.weight", "model.embed_tokens.weight"},
    {WEIR__OUTPUT_NORM, "output_norm.weight", "model.norm.weight"},
    {WEIR__HEAD, "output.weight", "lm_head.weight"},
    WEIR__ATTENTION_ROWS,
    {WEIR__POST_ATTN_NORM, "blk.%u.post_attention_norm.weight", "model.layers.%u.post_attention_layernorm.weight"},
    {WEIR__FFN_NORM, "blk.%u.ffn_norm.weight", "model.layers.%u.pre_feedforward_layernorm.weight"},
    WEIR__MLP_ROWS,
    {WEIR__POST_FFN_NORM, "blk.%u.post_ffw_norm.weight", "model.layers.%u.post_feedforward_layernorm.weight"},
};

const weir__family weir__gemma2 = {.name = "gemma2",
                                   .settings = settings,
                                   .n_settings = sizeof settings / sizeof *settings,
                                   .tensors = tensors,
                                   .n_tensors = sizeof tensors / sizeof *tensors,
                                   .defaults = defaults,
                                   .finish = finish};
