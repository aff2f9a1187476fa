/* vec16_avx512.h: the 16 lanes as one register of AVX-512 (F, BW, VL, DQ). Included by vec16.h alone. */
#include <immintrin.h>

typedef __m512 vec16;
typedef __m512i ivec16;
typedef __mmask16 mask16;

INLINE vec16 vec16_set1(float x) {
    return _mm512_set1_ps(x);
}
INLINE vec16 vec16_load(const float *p) {
    return _mm512_loadu_ps(p);
}
INLINE void vec16_store(float *p, vec16 x) {
    _mm512_storeu_ps(p, x);
}
INLINE vec16 vec16_load_f16(const uint16_t *p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
}
INLINE vec16 vec16_load_bf16(const uint16_t *p) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p)), 16));
}
INLINE void vec16_store_f16(uint16_t *p, vec16 x) {
    _mm256_storeu_si256((__m256i *)p, _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
}
INLINE vec16 vec16_add(vec16 x, vec16 y) {
    return _mm512_add_ps(x, y);
}
INLINE vec16 vec16_sub(vec16 x, vec16 y) {
    return _mm512_sub_ps(x, y);
}
INLINE vec16 vec16_mul(vec16 x, vec16 y) {
    return _mm512_mul_ps(x, y);
}
INLINE vec16 vec16_div(vec16 x, vec16 y) {
    return _mm512_div_ps(x, y);
}
INLINE vec16 vec16_fma(vec16 x, vec16 y, vec16 z) {
    return _mm512_fmadd_ps(x, y, z);
}
INLINE vec16 vec16_max(vec16 x, vec16 y) {
    return _mm512_max_ps(x, y);
}
INLINE vec16 vec16_min(vec16 x, vec16 y) {
    return _mm512_min_ps(x, y);
}

INLINE mask16 vec16_ge(vec16 x, vec16 y) {
    return _mm512_cmp_ps_mask(x, y, _CMP_GE_OQ);
}
INLINE uint32_t mask16_bits(mask16 m) {
    return m;
}
INLINE mask16 mask16_below(int n) {
    return (mask16)(n >= 16 ? 0xffff : n <= 0 ? 0 : (1u << n) - 1);
}
INLINE vec16 vec16_select(mask16 m, vec16 x, vec16 y) {
    return _mm512_mask_blend_ps(m, y, x);
}

INLINE ivec16 vec16_bits(vec16 x) {
    return _mm512_castps_si512(x);
}
INLINE vec16 ivec16_as_float(ivec16 x) {
    return _mm512_castsi512_ps(x);
}
INLINE ivec16 ivec16_set1(int32_t x) {
    return _mm512_set1_epi32(x);
}
INLINE ivec16 ivec16_add(ivec16 x, ivec16 y) {
    return _mm512_add_epi32(x, y);
}
INLINE ivec16 ivec16_sub(ivec16 x, ivec16 y) {
    return _mm512_sub_epi32(x, y);
}
INLINE ivec16 ivec16_and(ivec16 x, ivec16 y) {
    return _mm512_and_si512(x, y);
}
INLINE ivec16 ivec16_max(ivec16 x, ivec16 y) {
    return _mm512_max_epi32(x, y);
}
INLINE ivec16 ivec16_left(ivec16 x, int n) {
    return _mm512_slli_epi32(x, (unsigned)n);
}
INLINE ivec16 ivec16_right(ivec16 x, int n) {
    return _mm512_srai_epi32(x, (unsigned)n);
}
INLINE vec16 ivec16_float(ivec16 x) {
    return _mm512_cvtepi32_ps(x);
}
INLINE ivec16 ivec16_load(const void *p) {
    return _mm512_loadu_si512(p);
}
INLINE ivec16 ivec16_load_u8(const uint8_t *p) {
    return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p));
}
INLINE ivec16 ivec16_load_i8(const int8_t *p) {
    return _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p));
}
INLINE ivec16 ivec16_lookup(ivec16 table, ivec16 index) {
    return _mm512_permutexvar_epi32(index, table);
}
INLINE void ivec16_store_i8(int8_t *p, ivec16 x) {
    _mm_storeu_si128((__m128i *)p, _mm512_cvtepi32_epi8(x));
}

INLINE float vec16_sum(vec16 x) {
    __m256 s = _mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
    __m128 t = _mm_add_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
    t = _mm_add_ps(t, _mm_movehl_ps(t, t));
    return _mm_cvtss_f32(_mm_add_ss(t, _mm_movehdup_ps(t)));
}

INLINE float vec16_max_lane(vec16 x) {
    __m256 s = _mm256_max_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
    __m128 t = _mm_max_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
    t = _mm_max_ps(t, _mm_movehl_ps(t, t));
    return _mm_cvtss_f32(_mm_max_ss(t, _mm_movehdup_ps(t)));
}

INLINE int32_t ivec16_sum(ivec16 x) {
    return _mm512_reduce_add_epi32(x);
}
INLINE int32_t ivec16_max_lane(ivec16 x) {
    return _mm512_reduce_max_epi32(x);
}
