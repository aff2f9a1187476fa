/* product_avx2.h: integer products with AVX2: vpmaddubsw multiplies unsigned by signed bytes and adds pairs in int16, with saturation.
 *   q4_1: a pair is at most 2 * 15 * 127 and the eight pairs of a block 30,480: int16 holds their sum.
 *   q8_0: |w| times x with w's sign; |w| may be 128 and x is never -128, so a pair is at most 2 * 128 * 127 = 32,512.
 * Works on halves of 8 outputs. Included by product.h alone. */

INLINE __m256i four(const int8_t *q) {
    int32_t v;
    memcpy(&v, q, sizeof v);
    return _mm256_set1_epi32(v);
}

INLINE __m256 half_f16(const uint16_t *p, int half) {
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(p + 8 * half)));
}

/* Rows x halves [first, first + halves) of one panel: at most 4 in all. */
INLINE void halves_q4_1(const tile *t, const panel_q4_1 *w, int row, const int rows, const int first, const int halves,
                        float (*out)[PANEL]) {
    const __m256i low = _mm256_set1_epi8(15), one = _mm256_set1_epi16(1);
    __m256 acc[4];
    UNROLL for (int i = 0; i < rows * halves; i++) acc[i] = _mm256_setzero_ps();
    const uint8_t *x = t->x + (size_t)row * t->stride;
    for (int b = 0; b < t->k / BLOCK; b++, w++, x += sizeof(act_block)) {
        if (rows == 1)
            prefetch_ahead(w, sizeof *w);
        __m256i sum[4];
        UNROLL for (int i = 0; i < rows * halves; i++) sum[i] = _mm256_setzero_si256();
        UNROLL for (int c = 0; c < 4; c++) {
            UNROLL for (int h = 0; h < halves; h++) {
                __m256i v = _mm256_loadu_si256((const __m256i *)(const void *)w->q[c] + first + h);
                __m256i q0 = _mm256_and_si256(v, low), q1 = _mm256_and_si256(_mm256_srli_epi16(v, 4), low);
                UNROLL for (int r = 0; r < rows; r++) {
                    const int8_t *a = ((const act_block *)(const void *)(x + (size_t)r * t->stride))->q + 4 * c;
                    __m256i *s = &sum[h * rows + r];
                    *s = _mm256_add_epi16(*s, _mm256_maddubs_epi16(q0, four(a)));
                    *s = _mm256_add_epi16(*s, _mm256_maddubs_epi16(q1, four(a + 16)));
                }
            }
        }
        UNROLL for (int h = 0; h < halves; h++) {
            __m256 d = half_f16(w->d, first + h), m = half_f16(w->m, first + h);
            UNROLL for (int r = 0; r < rows; r++) {
                const act_block *a = (const act_block *)(const void *)(x + (size_t)r * t->stride);
                __m256 *to = &acc[h * rows + r];
                __m256 whole = _mm256_cvtepi32_ps(_mm256_madd_epi16(sum[h * rows + r], one));
                *to = _mm256_fmadd_ps(_mm256_mul_ps(d, _mm256_set1_ps(a->d)), whole, *to);
                *to = _mm256_fmadd_ps(m, _mm256_set1_ps(a->s), *to);
            }
        }
    }
    UNROLL for (int i = 0; i < rows * halves; i++) _mm256_storeu_ps(out[row + i % rows] + 8 * (first + i / rows), acc[i]);
}

INLINE void halves_q8_0(const tile *t, const panel_q8_0 *w, int row, const int rows, const int first, const int halves,
                        float (*out)[PANEL]) {
    const __m256i one = _mm256_set1_epi16(1);
    __m256 acc[4];
    UNROLL for (int i = 0; i < rows * halves; i++) acc[i] = _mm256_setzero_ps();
    const uint8_t *x = t->x + (size_t)row * t->stride;
    for (int b = 0; b < t->k / BLOCK; b++, w++, x += sizeof(act_block)) {
        if (rows == 1)
            prefetch_ahead(w, sizeof *w);
        __m256i sum[4];
        UNROLL for (int i = 0; i < rows * halves; i++) sum[i] = _mm256_setzero_si256();
        UNROLL for (int c = 0; c < 8; c++) {
            UNROLL for (int h = 0; h < halves; h++) {
                __m256i v = _mm256_loadu_si256((const __m256i *)(const void *)w->q[c] + first + h), magnitude = _mm256_abs_epi8(v);
                UNROLL for (int r = 0; r < rows; r++) {
                    const int8_t *a = ((const act_block *)(const void *)(x + (size_t)r * t->stride))->q + 4 * c;
                    __m256i pairs = _mm256_maddubs_epi16(magnitude, _mm256_sign_epi8(four(a), v));
                    sum[h * rows + r] = _mm256_add_epi32(sum[h * rows + r], _mm256_madd_epi16(pairs, one));
                }
            }
        }
        UNROLL for (int h = 0; h < halves; h++) {
            __m256 d = half_f16(w->d, first + h);
            UNROLL for (int r = 0; r < rows; r++) {
                const act_block *a = (const act_block *)(const void *)(x + (size_t)r * t->stride);
                __m256 *to = &acc[h * rows + r];
                *to = _mm256_fmadd_ps(_mm256_mul_ps(d, _mm256_set1_ps(a->d)), _mm256_cvtepi32_ps(sum[h * rows + r]), *to);
            }
        }
    }
    UNROLL for (int i = 0; i < rows * halves; i++) _mm256_storeu_ps(out[row + i % rows] + 8 * (first + i / rows), acc[i]);
}

/* One or two rows take both halves at once, more rows four at a time and half by half. */
#define PRODUCT_BY_HALVES(type)                                                                                                            \
    INLINE void product_##type(const tile *t, const int rows, const int panels, float(*out)[PANEL]) {                                      \
        UNROLL for (int p = 0; p < panels; p++) {                                                                                          \
            const panel_##type *w = (const panel_##type *)(const void *)(t->w + (size_t)p * t->panel_bytes);                               \
            if (rows <= 2) {                                                                                                               \
                halves_##type(t, w, 0, rows, 0, 2, out + p * rows);                                                                        \
                continue;                                                                                                                  \
            }                                                                                                                              \
            UNROLL for (int row = 0; row < rows; row += 4) {                                                                               \
                halves_##type(t, w, row, 4, 0, 1, out + p * rows);                                                                         \
                halves_##type(t, w, row, 4, 1, 1, out + p * rows);                                                                         \
            }                                                                                                                              \
        }                                                                                                                                  \
    }
PRODUCT_BY_HALVES(q4_1)
PRODUCT_BY_HALVES(q8_0)
#undef PRODUCT_BY_HALVES
