/* qwen2.c: the family qwen2 (Yang et al. 2024): llama with biases of q, k and v; a sliding window in upper layers where it is switched on. */
#include "family.h"

#include "qwen.h"

static void defaults(weir__config *c, enum weir__format format) {
    c->kv_heads = format == WEIR__FORMAT_SAFETENSORS ? 32 : 0;
    c->context = 32768;
    c->window = 4096;
    c->window_first = 28;
}

static int finish(const weir__source *src, weir__config *c, weir_error **error) {
    c->qkv_bias = true;
    return weir__qwen_layers(src, c, error);
}

const weir__family weir__qwen2 = {.name = "qwen2",
                                  .settings = weir__qwen_settings,
                                  .n_settings = WEIR__QWEN_SETTINGS,
                                  .tensors = weir__decoder_tensors,
                                  .n_tensors = WEIR__DECODER_TENSORS,
                                  .defaults = defaults,
                                  .finish = finish};
