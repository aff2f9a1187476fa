/* product_32.c: products of the types with blocks of 32. Owns what a type's codes, scale and minimum are; how codes meet int8 activations is the level's
 * (product_32_*.h). */
#include "product.h"

#include "../codes.h"

/* A panel of 16 rows of a block: bytes, and where its parts lie. A value is scale * (code - offset) or scale * book[code], + minimum. */
typedef struct panel_facts {
    int size, q;
    int fifth, min; /* fifth bits, minima; 0: none */
    int offset;
} panel_facts;

INLINE panel_facts facts_of(const int type) {
    switch (type) {
    case WEIR_Q4_0:
        return (panel_facts){sizeof(panel_q4_0), offsetof(panel_q4_0, q), 0, 0, 8};
    case WEIR_Q4_1:
        return (panel_facts){sizeof(panel_q4_1), offsetof(panel_q4_1, q), 0, offsetof(panel_q4_1, m), 0};
    case WEIR_Q5_0:
        return (panel_facts){sizeof(panel_q5_0), offsetof(panel_q5_0, q), offsetof(panel_q5_0, h), 0, 16};
    case WEIR_Q5_1:
        return (panel_facts){sizeof(panel_q5_1), offsetof(panel_q5_1, q), offsetof(panel_q5_1, h), offsetof(panel_q5_1, m), 0};
    case WEIR_Q8_0:
        return (panel_facts){sizeof(panel_q8_0), offsetof(panel_q8_0, q), 0, 0, 0};
    case WEIR_IQ4_NL:
        return (panel_facts){sizeof(panel_iq4_nl), offsetof(panel_iq4_nl, q), 0, 0, 0};
    default:
        return (panel_facts){sizeof(panel_mxfp4), offsetof(panel_mxfp4, q), 0, 0, 0};
    }
}

INLINE vec16 minimum_of(const int type, const uint8_t *w) {
    return vec16_load_f16((const uint16_t *)(const void *)(w + facts_of(type).min));
}

/* f16, in mxfp4 2^(e - 128): the bits (e - 1) << 23, but of e = 0 and 1, whose powers are denormal, 2^21 << e. */
INLINE vec16 scale_of(const int type, const uint8_t *w) {
    if (type != WEIR_MXFP4)
        return vec16_load_f16((const uint16_t *)(const void *)w);
    ivec16 e = ivec16_load_u8(w), least = ivec16_set1(1 << 21);
    ivec16 denormal = ivec16_and(ivec16_right(ivec16_sub(e, ivec16_set1(2)), 31), ivec16_add(least, ivec16_left(e, 21)));
    ivec16 normal = ivec16_left(ivec16_max(ivec16_sub(e, ivec16_set1(1)), ivec16_set1(0)), 23);
    return ivec16_as_float(ivec16_add(normal, denormal));
}

/* ---- codes at one k, for float products and plain C: what a value is before scale and minimum ---- */

INLINE ivec16 book_of(const int type) {
    return ivec16_load_i8(type == WEIR_IQ4_NL ? weir__codes_iq4 : weir__codes_mxfp4);
}

INLINE ivec16 codes_at(const int type, const uint8_t *w, int k) {
    const panel_facts f = facts_of(type);
    const uint8_t(*q)[PANEL][4] = (const uint8_t(*)[PANEL][4])(w + f.q);
    if (type == WEIR_Q8_0)
        return ivec16_right(ivec16_left(ivec16_load(q[k / 4]), 24 - k % 4 * 8), 24);
    ivec16 code = ivec16_and(ivec16_right(ivec16_load(q[k % 16 / 4]), k % 4 * 8 + k / 16 * 4), ivec16_set1(15));
    if (type == WEIR_IQ4_NL || type == WEIR_MXFP4)
        return ivec16_lookup(book_of(type), code);
    if (f.fifth) {
        ivec16 bits = ivec16_load_u8(w + f.fifth + k / 8 * PANEL);
        code = ivec16_add(code, ivec16_left(ivec16_and(ivec16_right(bits, k % 8), ivec16_set1(1)), 4));
    }
    return ivec16_sub(code, ivec16_set1(f.offset));
}

INLINE void widen_blocks(const int type, const uint8_t *panel, int first, int count, float (*to)[PANEL]) {
    const panel_facts f = facts_of(type);
    const uint8_t *w = panel + (size_t)(first / BLOCK) * (size_t)f.size;
    for (int b = 0; b < count / BLOCK; b++, w += f.size, to += BLOCK) {
        vec16 d = scale_of(type, w), m = f.min ? minimum_of(type, w) : vec16_zero();
        for (int k = 0; k < BLOCK; k++) {
            vec16 v = vec16_mul(d, ivec16_float(codes_at(type, w, k)));
            vec16_store(to[k], f.min ? vec16_add(v, m) : v);
        }
    }
}

/* ---- int8 activations ---- */

INLINE const act_block *act_of(const tile *t, int row, int block) {
    return (const act_block *)(const void *)(t->x + (size_t)row * t->stride) + block;
}

#if defined(WEIR_PRODUCT_VNNI)
#include "product_32_vnni.h"
#elif defined(WEIR_VEC_AVX2) || defined(WEIR_VEC_AVX512)
#include "product_32_avx2.h"
#else
#include "product_32_generic.h"
#endif

#define ROW(type, name)                                                                                                                    \
    static void name##_widen(const uint8_t *panel, int first, int count, float(*to)[PANEL]) {                                              \
        widen_blocks(WEIR_##type, panel, first, count, to);                                                                                \
    }                                                                                                                                      \
    PRODUCT_OF_BLOCKS(integer_product, WEIR_##type, name, name##_widen)
WEIR_TYPES_32(ROW)
