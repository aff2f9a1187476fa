/* types.c: the table of weight types (numbers, names, block sizes) and the sizes of what is made from them. Knows no instruction set. */
#include "kernels.h"

#include <string.h>

enum { PANEL_ROWS = 16, ACT_BLOCK_BYTES = 48, ACT_BLOCK_K_BYTES = 304, PACKED_ALIGN = 64 };

/* Numbers, names and block formats as the GGUF specification and ggml.h define them; panel_bytes is 0 where weir does not run the type. */
static const weir_type_info types[WEIR_TYPES] = {
    [WEIR_F32] = {"f32", 1, 4, 64, 0},
    [WEIR_F16] = {"f16", 1, 2, 32, 0},
    [WEIR_Q4_0] = {"q4_0", 32, 18, 288, 32},
    [WEIR_Q4_1] = {"q4_1", 32, 20, 320, 32},
    [WEIR_Q5_0] = {"q5_0", 32, 22, 352, 32},
    [WEIR_Q5_1] = {"q5_1", 32, 24, 384, 32},
    [WEIR_Q8_0] = {"q8_0", 32, 34, 544, 32},
    [9] = {"q8_1", 32, 36, 0, 0},
    [WEIR_Q2_K] = {"q2_k", 256, 84, 1600, 256},
    [WEIR_Q3_K] = {"q3_k", 256, 110, 1824, 256},
    [WEIR_Q4_K] = {"q4_k", 256, 144, 2368, 256},
    [WEIR_Q5_K] = {"q5_k", 256, 176, 2880, 256},
    [WEIR_Q6_K] = {"q6_k", 256, 210, 3360, 256},
    [15] = {"q8_k", 256, 292, 0, 0},
    [16] = {"iq2_xxs", 256, 66, 0, 0},
    [17] = {"iq2_xs", 256, 74, 0, 0},
    [18] = {"iq3_xxs", 256, 98, 0, 0},
    [19] = {"iq1_s", 256, 50, 0, 0},
    [WEIR_IQ4_NL] = {"iq4_nl", 32, 18, 288, 32},
    [21] = {"iq3_s", 256, 110, 0, 0},
    [22] = {"iq2_s", 256, 82, 0, 0},
    [WEIR_IQ4_XS] = {"iq4_xs", 256, 136, 2208, 256},
    [24] = {"i8", 1, 1, 0, 0},
    [25] = {"i16", 1, 2, 0, 0},
    [26] = {"i32", 1, 4, 0, 0},
    [27] = {"i64", 1, 8, 0, 0},
    [28] = {"f64", 1, 8, 0, 0},
    [29] = {"iq1_m", 256, 56, 0, 0},
    [WEIR_BF16] = {"bf16", 1, 2, 32, 0},
    [34] = {"tq1_0", 256, 54, 0, 0},
    [35] = {"tq2_0", 256, 66, 0, 0},
    [WEIR_MXFP4] = {"mxfp4", 32, 17, 272, 32},
};

const weir_type_info *weir_type_any(int type) {
    if (type < 0 || type >= WEIR_TYPES || !types[type].name)
        return NULL;
    return &types[type];
}

const weir_type_info *weir_type_get(int type) {
    const weir_type_info *info = weir_type_any(type);
    return info && info->panel_bytes ? info : NULL;
}

int weir_type_find(const char *name) {
    for (int i = 0; i < WEIR_TYPES; i++)
        if (types[i].name && strcmp(types[i].name, name) == 0)
            return i;
    return -1;
}

size_t weir_packed_size(int type, int64_t n, int64_t k) {
    const weir_type_info *info = weir_type_get(type);
    if (!info || n <= 0 || k <= 0 || k % info->block || n > INT64_MAX - PANEL_ROWS)
        return 0;
    size_t panels = (size_t)(n + PANEL_ROWS - 1) / PANEL_ROWS, size;
    if (__builtin_mul_overflow(panels, (size_t)(k / info->block), &size) ||
        __builtin_mul_overflow(size, (size_t)info->panel_bytes, &size) || size > SIZE_MAX - PACKED_ALIGN)
        return 0;
    return (size + PACKED_ALIGN - 1) / PACKED_ALIGN * PACKED_ALIGN;
}

size_t weir_act_size(int block, int64_t k) {
    return (size_t)(k / block) * (block == 256 ? ACT_BLOCK_K_BYTES : ACT_BLOCK_BYTES);
}
