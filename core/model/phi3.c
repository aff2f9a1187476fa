/* phi3.c: the family phi3 (Abdin et al. 2024): llama with q, k, v in one matrix, gate and up in another, and a sliding window in every layer if one is set. */
#include "family.h"

static void defaults(weir__config *c, enum weir__format format) {
    (void)format;
    c->context = 4096;
    c->norm_eps = 1e-5;
}

static int finish(const weir__source *src, weir__config *c, weir_error **error) {
    static const char *const factors[] = {"rope_factors_long.weight", "rope_factors_short.weight"};
    for (int i = 0; i < 2; i++)
        if (weir__source_find(src, factors[i]))
            return weir_fail(error, WEIR_EUNSUPPORTED, "%s: tensor \"%s\" (rotary scaling longrope) is not supported",
                             weir__source_path(src), factors[i]);
    return weir__config_layers(src, c, NULL, error);
}

/* original_max_position_embeddings belongs to longrope; at the top of config.json and without scaling it changes nothing. */
static const weir__setting settings[] = {
    WEIR__ACTIVATION("hidden_act"),
    {.gguf = "attention.sliding_window",
     .hf = "sliding_window",
     .kind = WEIR__SET_INT,
     .offset = WEIR__AT(window),
     .max = 1 << 30,
     .nullable = true},
    {.hf = "original_max_position_embeddings", .kind = WEIR__SET_REAL, .offset = WEIR__AT(rope_config.original), .max = 1e9},
};

static const weir__tensor_row tensors[] = {
    {WEIR__EMBEDDING, "token_embd.weight", "model.embed_tokens.weight"},
    {WEIR__OUTPUT_NORM, "output_norm.weight", "model.norm.weight"},
    {WEIR__HEAD, "output.weight", "lm_head.weight"},
    {WEIR__ATTN_NORM, "blk.%u.attn_norm.weight", "model.layers.%u.input_layernorm.weight"},
    {WEIR__Q, "blk.%u.attn_qkv.weight", "model.layers.%u.self_attn.qkv_proj.weight"},
    {WEIR__K, "blk.%u.attn_qkv.weight", "model.layers.%u.self_attn.qkv_proj.weight"},
    {WEIR__V, "blk.%u.attn_qkv.weight", "model.layers.%u.self_attn.qkv_proj.weight"},
    {WEIR__O, "blk.%u.attn_output.weight", "model.layers.%u.self_attn.o_proj.weight"},
    {WEIR__FFN_NORM, "blk.%u.ffn_norm.weight", "model.layers.%u.post_attention_layernorm.weight"},
    {WEIR__GATE, "blk.%u.ffn_up.weight", "model.layers.%u.mlp.gate_up_proj.weight"},
    {WEIR__UP, "blk.%u.ffn_up.weight", "model.layers.%u.mlp.gate_up_proj.weight"},
    {WEIR__DOWN, "blk.%u.ffn_down.weight", "model.layers.%u.mlp.down_proj.weight"},
};

const weir__family weir__phi3 = {.name = "phi3",
                                 .settings = settings,
                                 .n_settings = sizeof settings / sizeof *settings,
                                 .tensors = tensors,
                                 .n_tensors = sizeof tensors / sizeof *tensors,
                                 .defaults = defaults,
                                 .finish = finish};
