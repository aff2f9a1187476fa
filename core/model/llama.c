/* llama.c: the family llama (Touvron et al. 2023; Grattafiori et al. 2024): pre-norm decoder, rotary positions, grouped-query attention, SiLU-gated MLP. */
#include "family.h"

static void defaults(weir__config *c, enum weir__format format) {
    (void)format;
    c->context = 2048;
}

static int finish(const weir__source *src, weir__config *c, weir_error **error) {
    c->qkv_bias = c->attention_bias || weir__gguf_has(src, "attn_q.bias");
    c->out_bias = c->attention_bias || weir__gguf_has(src, "attn_output.bias");
    c->ffn_bias = c->mlp_bias || weir__gguf_has(src, "ffn_gate.bias");
    c->attention_bias = c->qkv_bias;
    c->mlp_bias = c->ffn_bias;
    return weir__config_layers(src, c, NULL, error);
}

static const weir__setting settings[] = {
    WEIR__ACTIVATION("hidden_act"),
    {.gguf = "attention.sliding_window", .kind = WEIR__SET_INT, .offset = WEIR__AT(window), .max = 1 << 30},
    {.hf = "attention_bias", .kind = WEIR__SET_FLAG, .offset = WEIR__AT(attention_bias)},
    {.hf = "mlp_bias", .kind = WEIR__SET_FLAG, .offset = WEIR__AT(mlp_bias)},
};

const weir__family weir__llama = {.name = "llama",
                                  .settings = settings,
                                  .n_settings = sizeof settings / sizeof *settings,
                                  .tensors = weir__decoder_tensors,
                                  .n_tensors = WEIR__DECODER_TENSORS,
                                  .gguf_pairs = true,
                                  .defaults = defaults,
                                  .finish = finish};
