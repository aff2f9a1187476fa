/* mistral.c: the family mistral (Jiang et al. 2023): llama with a sliding window in every layer. GGUF knows it as llama. */
#include "family.h"

static void defaults(weir__config *c, enum weir__format format) {
    c->kv_heads = format == WEIR__FORMAT_SAFETENSORS ? 8 : 0;
    c->context = 131072;
    c->window = 4096;
}

static int finish(const weir__source *src, weir__config *c, weir_error **error) {
    return weir__config_layers(src, c, NULL, error);
}

static const weir__setting settings[] = {
    WEIR__ACTIVATION("hidden_act"),
    {.gguf = "attention.sliding_window",
     .hf = "sliding_window",
     .kind = WEIR__SET_INT,
     .offset = WEIR__AT(window),
     .max = 1 << 30,
     .nullable = true},
};

const weir__family weir__mistral = {.name = "mistral",
                                    .gguf = "llama",
                                    .settings = settings,
                                    .n_settings = sizeof settings / sizeof *settings,
                                    .tensors = weir__decoder_tensors,
                                    .n_tensors = WEIR__DECODER_TENSORS,
                                    .gguf_pairs = true,
                                    .defaults = defaults,
                                    .finish = finish};
