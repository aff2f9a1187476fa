/* qwen.h: what the families qwen2 and qwen3 share: which layers are local. */
#ifndef WEIR_QWEN_H
#define WEIR_QWEN_H

#include "family.h"

enum { WEIR__QWEN_SETTINGS = 5 };
extern const weir__setting weir__qwen_settings[WEIR__QWEN_SETTINGS];
/* Layers from max_window_layers on are local if use_sliding_window is set. */
int weir__qwen_layers(const weir__source *src, weir__config *c, weir_error **error);

#endif
