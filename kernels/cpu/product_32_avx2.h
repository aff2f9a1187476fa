/* product_32_avx2.h: integer products with AVX2: vpmaddubsw multiplies unsigned by signed bytes and adds pairs in int16, with saturation.
 *   codes up to 15: a pair is at most 2 * 15 * 127 and the eight pairs of a block 30,480: int16 holds their sum.
 *   codes up to 31: four pairs at a time, at most 31,496.
 *   signed codes: |w| times x with w's sign; |w| may be 128 and x is never -128, so a pair is at most 2 * 128 * 127 = 32,512.
 * Works on halves of 8 outputs. Included by product_32.c alone. */

INLINE __m256i four(const int8_t *q) {
    int32_t v;
    memcpy(&v, q, sizeof v);
    return _mm256_set1_epi32(v);
}

INLINE __m256 half_f16(const uint8_t *p, int half) {
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(p + 16 * half)));
}

/* Which half of a vector of 16. */
INLINE __m256 half_scale(const int type, const uint8_t *w, int half) {
    if (type != WEIR_MXFP4)
        return half_f16(w, half);
    float d[PANEL];
    vec16_store(d, scale_of(type, w));
    return _mm256_loadu_ps(d + 8 * half);
}

INLINE bool codes_are_signed(const int type) {
    return type == WEIR_Q8_0 || type == WEIR_IQ4_NL;
}
/* What unsigned codes have too much. */
INLINE int unsigned_offset(const int type) {
    return type == WEIR_MXFP4 ? 12 : facts_of(type).offset;
}
INLINE int pairs_of(const int type) {
    return codes_are_signed(type) ? 1 : facts_of(type).fifth || type == WEIR_MXFP4 ? 4 : 8;
}

INLINE __m256i looked_up(const int type, __m256i nibbles) {
    const int8_t *codes = type == WEIR_MXFP4 ? weir__codes_mxfp4 : weir__codes_iq4;
    __m256i book = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)codes));
    if (type == WEIR_MXFP4)
        book = _mm256_add_epi8(book, _mm256_set1_epi8(12));
    return _mm256_shuffle_epi8(book, nibbles);
}

/* Adds 16 to codes [c][row][j] where bit k % 8 of byte (k / 8, row) is set, k = 4 c + j. */
INLINE __m256i with_fifth(__m256i code, const uint8_t *fifth, int c, int half) {
    const __m256i spread = _mm256_setr_epi32(0, 0x01010101, 0x02020202, 0x03030303, 0x04040404, 0x05050505, 0x06060606, 0x07070707);
    int64_t bytes;
    memcpy(&bytes, fifth + c / 2 * PANEL + 8 * half, sizeof bytes);
    const __m256i bit = _mm256_set1_epi32(c % 2 ? (int)0x80402010 : 0x08040201);
    __m256i bits = _mm256_and_si256(_mm256_shuffle_epi8(_mm256_set1_epi64x(bytes), spread), bit);
    return _mm256_or_si256(code, _mm256_and_si256(_mm256_cmpeq_epi8(bits, bit), _mm256_set1_epi8(16)));
}

/* Codes of half a panel at k = 4 c + j. */
INLINE __m256i half_codes(const int type, const uint8_t *w, int c, int half) {
    const panel_facts f = facts_of(type);
    if (type == WEIR_Q8_0)
        return _mm256_loadu_si256((const __m256i *)(const void *)(w + f.q + 64 * c) + half);
    __m256i v = _mm256_loadu_si256((const __m256i *)(const void *)(w + f.q + 64 * (c % 4)) + half);
    v = _mm256_and_si256(c < 4 ? v : _mm256_srli_epi16(v, 4), _mm256_set1_epi8(15));
    if (type == WEIR_IQ4_NL || type == WEIR_MXFP4)
        return looked_up(type, v);
    return f.fifth ? with_fifth(v, w + f.fifth, c, half) : v;
}

/* Sums of int16 pairs of a block of one row; they go to an int32 sum where int16 holds no more, after the i-th product. */
typedef struct sums {
    __m256i pairs, whole;
} sums;

INLINE void add_products(const int type, sums *s, __m256i code, __m256i x, const int i) {
    const __m256i one = _mm256_set1_epi16(1);
    if (codes_are_signed(type)) {
        __m256i pair = _mm256_maddubs_epi16(_mm256_abs_epi8(code), _mm256_sign_epi8(x, code));
        s->whole = _mm256_add_epi32(s->whole, _mm256_madd_epi16(pair, one));
        return;
    }
    s->pairs = _mm256_add_epi16(s->pairs, _mm256_maddubs_epi16(code, x));
    if (i % pairs_of(type) == pairs_of(type) - 1) {
        s->whole = _mm256_add_epi32(s->whole, _mm256_madd_epi16(s->pairs, one));
        s->pairs = _mm256_setzero_si256();
    }
}

/* Rows [row, row + rows) x halves [first, first + halves) of the panel: at most 4 in all. */
INLINE void halves(const int type, const tile *t, int row, const int rows, const int first, const int n, float (*out)[PANEL]) {
    const panel_facts f = facts_of(type);
    const uint8_t *w = t->w;
    __m256 acc[4];
    UNROLL for (int i = 0; i < rows * n; i++) acc[i] = _mm256_setzero_ps();
    for (int b = 0; b < t->k / BLOCK; b++, w += f.size) {
        if (rows == 1)
            prefetch_ahead(w, (size_t)f.size);
        sums s[4];
        UNROLL for (int i = 0; i < rows * n; i++) s[i] = (sums){_mm256_setzero_si256(), _mm256_setzero_si256()};
        UNROLL for (int i = 0; i < 8; i++) UNROLL for (int h = 0; h < n; h++) {
            const int c = i / 2 + i % 2 * 4; /* both nibbles of a byte */
            __m256i code = half_codes(type, w, c, first + h);
            UNROLL for (int r = 0; r < rows; r++) add_products(type, &s[h * rows + r], code, four(act_of(t, row + r, b)->q + 4 * c), i);
        }
        UNROLL for (int h = 0; h < n; h++) {
            __m256 d = half_scale(type, w, first + h), m = f.min ? half_f16(w + f.min, first + h) : _mm256_setzero_ps();
            UNROLL for (int r = 0; r < rows; r++) {
                const act_block *a = act_of(t, row + r, b);
                __m256i whole = s[h * rows + r].whole;
                __m256 *to = &acc[h * rows + r];
                if (unsigned_offset(type))
                    whole = _mm256_sub_epi32(whole, _mm256_set1_epi32(unsigned_offset(type) * a->sum));
                *to = _mm256_fmadd_ps(_mm256_mul_ps(d, _mm256_set1_ps(a->d)), _mm256_cvtepi32_ps(whole), *to);
                if (f.min)
                    *to = _mm256_fmadd_ps(m, _mm256_set1_ps(a->s), *to);
            }
        }
    }
    UNROLL for (int i = 0; i < rows * n; i++) _mm256_storeu_ps(out[row + i % rows] + 8 * (first + i / rows), acc[i]);
}

/* One or two rows take both halves at once, more rows four at a time and half by half. */
INLINE void integer_product(const int type, const tile *t, const int rows, float (*out)[PANEL]) {
    if (rows <= 2) {
        halves(type, t, 0, rows, 0, 2, out);
        return;
    }
    UNROLL for (int row = 0; row < rows; row += 4) {
        halves(type, t, row, 4, 0, 1, out);
        halves(type, t, row, 4, 1, 1, out);
    }
}
