/* types.c: the table of weight types (numbers, names, block sizes) and the sizes of what is made from them. Knows no instruction set. */
#include "kernels.h"

enum { PANEL_ROWS = 16, ACT_BLOCK = 32, ACT_BLOCK_BYTES = 48, PACKED_ALIGN = 64 };

/* Numbers, names and block formats as the GGUF specification and ggml.h define them; panel_bytes is 0 where weir does not run the type. */
static const weir_type_info types[WEIR_TYPES] = {
    [WEIR_F32] = {"f32", 1, 4, 64, false},
    [WEIR_F16] = {"f16", 1, 2, 32, false},
    [2] = {"q4_0", 32, 18, 0, false},
    [WEIR_Q4_1] = {"q4_1", 32, 20, 320, true},
    [6] = {"q5_0", 32, 22, 0, false},
    [7] = {"q5_1", 32, 24, 0, false},
    [WEIR_Q8_0] = {"q8_0", 32, 34, 544, true},
    [9] = {"q8_1", 32, 36, 0, false},
    [10] = {"q2_k", 256, 84, 0, false},
    [11] = {"q3_k", 256, 110, 0, false},
    [12] = {"q4_k", 256, 144, 0, false},
    [13] = {"q5_k", 256, 176, 0, false},
    [14] = {"q6_k", 256, 210, 0, false},
    [15] = {"q8_k", 256, 292, 0, false},
    [16] = {"iq2_xxs", 256, 66, 0, false},
    [17] = {"iq2_xs", 256, 74, 0, false},
    [18] = {"iq3_xxs", 256, 98, 0, false},
    [19] = {"iq1_s", 256, 50, 0, false},
    [20] = {"iq4_nl", 32, 18, 0, false},
    [21] = {"iq3_s", 256, 110, 0, false},
    [22] = {"iq2_s", 256, 82, 0, false},
    [23] = {"iq4_xs", 256, 136, 0, false},
    [24] = {"i8", 1, 1, 0, false},
    [25] = {"i16", 1, 2, 0, false},
    [26] = {"i32", 1, 4, 0, false},
    [27] = {"i64", 1, 8, 0, false},
    [28] = {"f64", 1, 8, 0, false},
    [29] = {"iq1_m", 256, 56, 0, false},
    [30] = {"bf16", 1, 2, 0, false},
    [34] = {"tq1_0", 256, 54, 0, false},
    [35] = {"tq2_0", 256, 66, 0, false},
    [39] = {"mxfp4", 32, 17, 0, false},
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

size_t weir_act_size(int64_t k) {
    return (size_t)(k / ACT_BLOCK) * ACT_BLOCK_BYTES;
}
