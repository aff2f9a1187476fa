/* vec16_avx2.h: the 16 lanes as two registers of AVX2 with FMA and F16C. Included by vec16.h alone. */
#include <immintrin.h>

typedef struct vec16 {
    __m256 a, b; /* lanes 0..7, 8..15 */
} vec16;
typedef struct ivec16 {
    __m256i a, b;
} ivec16;
typedef vec16 mask16; /* all bits of a lane or none */

#define BOTH(op, x, y)                                                                                                                     \
    { op((x).a, (y).a), op((x).b, (y).b) }

INLINE vec16 vec16_set1(float x) {
    return (vec16){_mm256_set1_ps(x), _mm256_set1_ps(x)};
}
INLINE vec16 vec16_load(const float *p) {
    return (vec16){_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}
INLINE void vec16_store(float *p, vec16 x) {
    _mm256_storeu_ps(p, x.a);
    _mm256_storeu_ps(p + 8, x.b);
}
INLINE vec16 vec16_load_f16(const uint16_t *p) {
    return (vec16){_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p)), _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(p + 8)))};
}
INLINE __m256 vec16_half_bf16(const uint16_t *p) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p)), 16));
}
INLINE vec16 vec16_load_bf16(const uint16_t *p) {
    return (vec16){vec16_half_bf16(p), vec16_half_bf16(p + 8)};
}
INLINE void vec16_store_f16(uint16_t *p, vec16 x) {
    _mm_storeu_si128((__m128i *)p, _mm256_cvtps_ph(x.a, _MM_FROUND_TO_NEAREST_INT));
    _mm_storeu_si128((__m128i *)(p + 8), _mm256_cvtps_ph(x.b, _MM_FROUND_TO_NEAREST_INT));
}
INLINE vec16 vec16_add(vec16 x, vec16 y) {
    return (vec16)BOTH(_mm256_add_ps, x, y);
}
INLINE vec16 vec16_sub(vec16 x, vec16 y) {
    return (vec16)BOTH(_mm256_sub_ps, x, y);
}
INLINE vec16 vec16_mul(vec16 x, vec16 y) {
    return (vec16)BOTH(_mm256_mul_ps, x, y);
}
INLINE vec16 vec16_div(vec16 x, vec16 y) {
    return (vec16)BOTH(_mm256_div_ps, x, y);
}
INLINE vec16 vec16_fma(vec16 x, vec16 y, vec16 z) {
    return (vec16){_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)};
}
INLINE vec16 vec16_max(vec16 x, vec16 y) {
    return (vec16)BOTH(_mm256_max_ps, x, y);
}
INLINE vec16 vec16_min(vec16 x, vec16 y) {
    return (vec16)BOTH(_mm256_min_ps, x, y);
}

INLINE mask16 vec16_ge(vec16 x, vec16 y) {
    return (mask16){_mm256_cmp_ps(x.a, y.a, _CMP_GE_OQ), _mm256_cmp_ps(x.b, y.b, _CMP_GE_OQ)};
}
INLINE uint32_t mask16_bits(mask16 m) {
    return (uint32_t)_mm256_movemask_ps(m.a) | (uint32_t)_mm256_movemask_ps(m.b) << 8;
}
INLINE mask16 mask16_below(int n) {
    __m256i v = _mm256_set1_epi32(n);
    return (mask16){_mm256_castsi256_ps(_mm256_cmpgt_epi32(v, _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))),
                    _mm256_castsi256_ps(_mm256_cmpgt_epi32(v, _mm256_setr_epi32(8, 9, 10, 11, 12, 13, 14, 15)))};
}
INLINE vec16 vec16_select(mask16 m, vec16 x, vec16 y) {
    return (vec16){_mm256_blendv_ps(y.a, x.a, m.a), _mm256_blendv_ps(y.b, x.b, m.b)};
}

INLINE ivec16 vec16_bits(vec16 x) {
    return (ivec16){_mm256_castps_si256(x.a), _mm256_castps_si256(x.b)};
}
INLINE vec16 ivec16_as_float(ivec16 x) {
    return (vec16){_mm256_castsi256_ps(x.a), _mm256_castsi256_ps(x.b)};
}
INLINE ivec16 ivec16_set1(int32_t x) {
    return (ivec16){_mm256_set1_epi32(x), _mm256_set1_epi32(x)};
}
INLINE ivec16 ivec16_add(ivec16 x, ivec16 y) {
    return (ivec16)BOTH(_mm256_add_epi32, x, y);
}
INLINE ivec16 ivec16_sub(ivec16 x, ivec16 y) {
    return (ivec16)BOTH(_mm256_sub_epi32, x, y);
}
INLINE ivec16 ivec16_and(ivec16 x, ivec16 y) {
    return (ivec16)BOTH(_mm256_and_si256, x, y);
}
INLINE ivec16 ivec16_max(ivec16 x, ivec16 y) {
    return (ivec16)BOTH(_mm256_max_epi32, x, y);
}
INLINE ivec16 ivec16_left(ivec16 x, int n) {
    return (ivec16){_mm256_slli_epi32(x.a, n), _mm256_slli_epi32(x.b, n)};
}
INLINE ivec16 ivec16_right(ivec16 x, int n) {
    return (ivec16){_mm256_srai_epi32(x.a, n), _mm256_srai_epi32(x.b, n)};
}
INLINE vec16 ivec16_float(ivec16 x) {
    return (vec16){_mm256_cvtepi32_ps(x.a), _mm256_cvtepi32_ps(x.b)};
}
INLINE ivec16 ivec16_load(const void *p) {
    return (ivec16){_mm256_loadu_si256((const __m256i *)p), _mm256_loadu_si256((const __m256i *)p + 1)};
}
INLINE ivec16 ivec16_load_u8(const uint8_t *p) {
    return (ivec16){_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p)),
                    _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(p + 8)))};
}
INLINE ivec16 ivec16_load_i8(const int8_t *p) {
    return (ivec16){_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)p)),
                    _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(p + 8)))};
}
/* The upper half of the table where bit 3 of the index, moved to the sign, is set. */
INLINE __m256i ivec16_half_lookup(ivec16 table, __m256i index) {
    __m256 low = _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(table.a, index));
    __m256 high = _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(table.b, index));
    return _mm256_castps_si256(_mm256_blendv_ps(low, high, _mm256_castsi256_ps(_mm256_slli_epi32(index, 28))));
}
INLINE ivec16 ivec16_lookup(ivec16 table, ivec16 index) {
    return (ivec16){ivec16_half_lookup(table, index.a), ivec16_half_lookup(table, index.b)};
}
INLINE void ivec16_store_i8(int8_t *p, ivec16 x) {
    __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(x.a, x.b), 0xd8);
    _mm_storeu_si128((__m128i *)p, _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1)));
}

INLINE float vec16_sum(vec16 x) {
    __m256 s = _mm256_add_ps(x.a, x.b);
    __m128 t = _mm_add_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
    t = _mm_add_ps(t, _mm_movehl_ps(t, t));
    return _mm_cvtss_f32(_mm_add_ss(t, _mm_movehdup_ps(t)));
}

INLINE float vec16_max_lane(vec16 x) {
    __m256 s = _mm256_max_ps(x.a, x.b);
    __m128 t = _mm_max_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
    t = _mm_max_ps(t, _mm_movehl_ps(t, t));
    return _mm_cvtss_f32(_mm_max_ss(t, _mm_movehdup_ps(t)));
}

INLINE int32_t ivec16_sum(ivec16 x) {
    __m256i s = _mm256_add_epi32(x.a, x.b);
    __m128i t = _mm_add_epi32(_mm256_castsi256_si128(s), _mm256_extracti128_si256(s, 1));
    t = _mm_add_epi32(t, _mm_shuffle_epi32(t, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(t, _mm_shuffle_epi32(t, 0xb1)));
}

INLINE int32_t ivec16_max_lane(ivec16 x) {
    __m256i s = _mm256_max_epi32(x.a, x.b);
    __m128i t = _mm_max_epi32(_mm256_castsi256_si128(s), _mm256_extracti128_si256(s, 1));
    t = _mm_max_epi32(t, _mm_shuffle_epi32(t, 0x4e));
    return _mm_cvtsi128_si32(_mm_max_epi32(t, _mm_shuffle_epi32(t, 0xb1)));
}
#undef BOTH
