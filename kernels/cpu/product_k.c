/* product_k.c: products of the types with super-blocks of 256. Owns what a type's codes, scales and minima are; how codes meet int8 activations is the
 * level's (product_k_*.h): per super-block the exact sum over sub-blocks of scale * (codes times activations), then acc = fma(d * d_a, sum, acc); with minima
 * also acc = fma(dmin * -d_a, sum of min * (sum of activations), acc). */
#include "product.h"

#include "../codes.h"

/* A panel of 16 rows of a super-block, d at 0: where its parts lie (layout.h). A value is d * scale * (code - offset) or d * scale * book[code], -dmin * min. */
typedef struct panel_facts {
    int size, dmin, scale, min; /* dmin, min: 0: none */
    int nibbles, pairs, bits;   /* of codes; 0: none */
    int sub;                    /* values of a sub-block: 16 or 32 */
    int offset;
    bool book, signed_scale;
} panel_facts;

#define AT(panel, member) (int)offsetof(panel, member)
INLINE panel_facts facts_of(const int type) {
    switch (type) {
    case WEIR_Q2_K:
        return (panel_facts){.size = sizeof(panel_q2_k),
                             .dmin = AT(panel_q2_k, dmin),
                             .scale = AT(panel_q2_k, scale),
                             .min = AT(panel_q2_k, min),
                             .pairs = AT(panel_q2_k, q),
                             .sub = 16};
    case WEIR_Q3_K:
        return (panel_facts){.size = sizeof(panel_q3_k),
                             .scale = AT(panel_q3_k, scale),
                             .pairs = AT(panel_q3_k, q),
                             .bits = AT(panel_q3_k, h),
                             .sub = 16,
                             .offset = 4,
                             .signed_scale = true};
    case WEIR_Q4_K:
        return (panel_facts){.size = sizeof(panel_q4_k),
                             .dmin = AT(panel_q4_k, dmin),
                             .scale = AT(panel_q4_k, scale),
                             .min = AT(panel_q4_k, min),
                             .nibbles = AT(panel_q4_k, q),
                             .sub = 32};
    case WEIR_Q5_K:
        return (panel_facts){.size = sizeof(panel_q5_k),
                             .dmin = AT(panel_q5_k, dmin),
                             .scale = AT(panel_q5_k, scale),
                             .min = AT(panel_q5_k, min),
                             .nibbles = AT(panel_q5_k, q),
                             .bits = AT(panel_q5_k, h),
                             .sub = 32};
    case WEIR_Q6_K:
        return (panel_facts){.size = sizeof(panel_q6_k),
                             .scale = AT(panel_q6_k, scale),
                             .nibbles = AT(panel_q6_k, q),
                             .pairs = AT(panel_q6_k, h),
                             .sub = 16,
                             .offset = 32,
                             .signed_scale = true};
    default:
        return (panel_facts){.size = sizeof(panel_iq4_xs),
                             .scale = AT(panel_iq4_xs, scale),
                             .nibbles = AT(panel_iq4_xs, q),
                             .sub = 32,
                             .book = true,
                             .signed_scale = true};
    }
}
#undef AT

INLINE vec16 scale_of(const uint8_t *w) {
    return vec16_load_f16((const uint16_t *)(const void *)w);
}
INLINE vec16 minimum_of(const int type, const uint8_t *w) {
    return vec16_load_f16((const uint16_t *)(const void *)(w + facts_of(type).dmin));
}
INLINE ivec16 sub_scale(const int type, const uint8_t *w, int sub) {
    const uint8_t *p = w + facts_of(type).scale + sub * PANEL;
    return facts_of(type).signed_scale ? ivec16_load_i8((const int8_t *)p) : ivec16_load_u8(p);
}
INLINE ivec16 sub_minimum(const int type, const uint8_t *w, int sub) {
    return ivec16_load_u8(w + facts_of(type).min + sub * PANEL);
}

/* The highest bits of a code lie above those of its nibble or pair. */
INLINE int upper_shift(const int type) {
    return facts_of(type).nibbles ? 4 : 2;
}

/* ---- codes at one k, for float products and plain C: what a value is before its scale ---- */

INLINE ivec16 field(const uint8_t *words, int c, int shift, int mask) {
    return ivec16_and(ivec16_right(ivec16_load(words + 64 * c), shift), ivec16_set1(mask));
}

INLINE ivec16 codes_at(const int type, const uint8_t *w, int k) {
    const panel_facts f = facts_of(type);
    int i = k / 64, c = k % 64 / 4, j = k % 4 * 8;
    ivec16 code = ivec16_set1(0), upper = code;
    if (f.nibbles)
        code = field(w + f.nibbles, 8 * i + c % 8, j + c / 8 * 4, 15);
    if (f.pairs && f.nibbles)
        upper = field(w + f.pairs, 4 * i + c % 4, j + c / 4 * 2, 3);
    else if (f.pairs)
        code = field(w + f.pairs, 4 * i + c % 4, j + c / 4 * 2, 3);
    if (f.bits)
        upper = field(w + f.bits, 2 * i + c % 2, j + c / 2, 1);
    if (f.book)
        return ivec16_lookup(ivec16_load_i8(weir__codes_iq4), code);
    return ivec16_sub(ivec16_add(code, ivec16_left(upper, upper_shift(type))), ivec16_set1(f.offset));
}

/* k = first .. first + 16 of a super-block: within a sub-block. */
INLINE void widen_16(const int type, const uint8_t *w, int first, float (*to)[PANEL]) {
    const panel_facts f = facts_of(type);
    int sub = first / f.sub;
    vec16 d = vec16_mul(scale_of(w), ivec16_float(sub_scale(type, w, sub)));
    vec16 m = f.min ? vec16_mul(minimum_of(type, w), ivec16_float(sub_minimum(type, w, sub))) : vec16_zero();
    for (int i = 0; i < 16; i++) {
        vec16 v = vec16_mul(d, ivec16_float(codes_at(type, w, first + i)));
        vec16_store(to[i], f.min ? vec16_sub(v, m) : v);
    }
}

INLINE void widen_blocks(const int type, const uint8_t *panel, int first, int count, float (*to)[PANEL]) {
    for (int k = first; k < first + count; k += 16, to += 16)
        widen_16(type, panel + (size_t)(k / SUPER) * (size_t)facts_of(type).size, k % SUPER, to);
}

/* ---- int8 activations ---- */

INLINE const act_block_k *act_of(const tile *t, int row, int block) {
    return (const act_block_k *)(const void *)(t->x + (size_t)row * t->stride) + block;
}

/* acc after a super-block: its two sums, exact, are rounded to float once. */
INLINE vec16 add_block(const int type, const uint8_t *w, const act_block_k *a, ivec16 sum, ivec16 min_sum, vec16 acc) {
    acc = vec16_fma(vec16_mul(scale_of(w), vec16_set1(a->d)), ivec16_float(sum), acc);
    if (!facts_of(type).min)
        return acc;
    return vec16_fma(vec16_mul(minimum_of(type, w), vec16_set1(-a->d)), ivec16_float(min_sum), acc);
}

/* Each level has integer_groups, for multiples of GROUP rows, and integer_few, inlined for one of the other numbers. */
#if defined(WEIR_PRODUCT_VNNI)
#include "product_k_vnni.h"
#elif defined(WEIR_VEC_AVX2) || defined(WEIR_VEC_AVX512)
#include "product_k_avx2.h"
#else
#include "product_k_generic.h"
#define integer_few integer_groups
#endif

/* groups stands alone, not once in every shape: most of what compiling these takes. */
#if defined(__clang__)
#define ALONE __attribute__((noinline))
#else
#define ALONE __attribute__((noinline, noclone))
#endif
#define SHAPE(type, name, rows)                                                                                                            \
    if (rows % GROUP == 0)                                                                                                                 \
        name##_groups(t, rows, out);                                                                                                       \
    else                                                                                                                                   \
        integer_few(type, t, rows, out);
#define ROW(type, name)                                                                                                                    \
    static void name##_widen(const uint8_t *panel, int first, int count, float(*to)[PANEL]) {                                              \
        widen_blocks(WEIR_##type, panel, first, count, to);                                                                                \
    }                                                                                                                                      \
    static ALONE void name##_groups(const tile *t, int rows, float(*out)[PANEL]) {                                                         \
        integer_groups(WEIR_##type, t, rows, out);                                                                                         \
    }                                                                                                                                      \
    PRODUCT_SHAPE(name, most, SHAPE(WEIR_##type, name, PRODUCT_ROWS))                                                                      \
    PRODUCT_SHAPE(name, rows8, SHAPE(WEIR_##type, name, 8))                                                                                \
    PRODUCT_SHAPE(name, rows4, SHAPE(WEIR_##type, name, 4))                                                                                \
    PRODUCT_SHAPE(name, rows2, SHAPE(WEIR_##type, name, 2))                                                                                \
    PRODUCT_SHAPE(name, rows1, SHAPE(WEIR_##type, name, 1))                                                                                \
    const product WEIR__AT(product_##name) = {name##_most, name##_rows8, name##_rows4, name##_rows2, name##_rows1, name##_widen, NULL};
WEIR_TYPES_K(ROW)
