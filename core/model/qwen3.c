/* qwen3.c: the family qwen3 (Yang et al. 2025): llama with norms of each head of q and k. And what it shares with qwen2. */
#include "qwen.h"

const weir__setting weir__qwen_settings[WEIR__QWEN_SETTINGS] = {
    WEIR__ACTIVATION("hidden_act"),
    {.hf = "sliding_window", .kind = WEIR__SET_INT, .offset = WEIR__AT(window), .max = 1 << 30, .nullable = true},
    {.hf = "use_sliding_window", .kind = WEIR__SET_FLAG, .offset = WEIR__AT(use_window)},
    {.hf = "max_window_layers", .kind = WEIR__SET_INT, .offset = WEIR__AT(window_first), .max = 1 << 30},
    {.hf = "attention_bias", .kind = WEIR__SET_FLAG, .offset = WEIR__AT(attention_bias)},
};

static bool upper(const weir__config *c, int32_t layer) {
    return c->use_window && c->window > 0 && layer >= c->window_first;
}

int weir__qwen_layers(const weir__source *src, weir__config *c, weir_error **error) {
    if (!c->use_window)
        c->window = 0;
    return weir__config_layers(src, c, upper, error);
}

static void defaults(weir__config *c, enum weir__format format) {
    c->kv_heads = format == WEIR__FORMAT_SAFETENSORS ? 32 : 0;
    c->context = 32768;
    c->window = 4096;
    c->window_first = 28;
    c->head_dim = format == WEIR__FORMAT_SAFETENSORS ? 128 : 0;
}

static int finish(const weir__source *src, weir__config *c, weir_error **error) {
    c->qkv_bias = c->out_bias = c->attention_bias;
    return weir__qwen_layers(src, c, error);
}

static const weir__tensor_row tensors[] = {
    WEIR__DECODER_ROWS,
    {WEIR__Q_NORM, "blk.%u.attn_q_norm.weight", "model.layers.%u.self_attn.q_norm.weight"},
    {WEIR__K_NORM, "blk.%u.attn_k_norm.weight", "model.layers.%u.self_attn.k_norm.weight"},
};

const weir__family weir__qwen3 = {.name = "qwen3",
                                  .settings = weir__qwen_settings,
                                  .n_settings = WEIR__QWEN_SETTINGS,
                                  .tensors = tensors,
                                  .n_tensors = sizeof tensors / sizeof *tensors,
                                  .defaults = defaults,
                                  .finish = finish};
