/* product_k_avx2.h: integer products with AVX2: vpmaddubsw multiplies unsigned by signed bytes and adds pairs in int16, with saturation; some such pairs are
 * added in int16, then vpmaddwd multiplies them by their sub-block's scale:
 *   codes up to 15: a pair is at most 2 * 15 * 127 and the eight pairs of 32 k 30,480; up to 31: four pairs, 31,496; up to 63: two pairs, 32,004;
 *   iq4_xs: |w| times x with w's sign, one pair of at most 2 * 127 * 127.
 * What unsigned codes have too much, and minima, meet the sums of activations by vpmaddwd too. Works on halves of 8 outputs; from 4 rows on a super-block's
 * codes are unpacked once, to memory, for all rows. Included by product_k.c alone. */

enum {
    TOGETHER = 4,    /* rows times halves whose sums stay in registers */
    GROUP = TOGETHER /* rows of integer_groups, from which on codes go through memory */
};

/* Four activations, or two sums of them, in every lane. */
INLINE __m256i four(const void *p) {
    int32_t v;
    memcpy(&v, p, sizeof v);
    return _mm256_set1_epi32(v);
}

INLINE int pairs_of(const int type) {
    return type == WEIR_Q4_K ? 8 : type == WEIR_Q6_K ? 2 : facts_of(type).book ? 1 : 4;
}

INLINE __m256i masked(__m256i v, int shift, int mask) {
    __m256i shifted = shift > 0 ? _mm256_srli_epi16(v, shift) : shift < 0 ? _mm256_slli_epi16(v, -shift) : v;
    return _mm256_and_si256(shifted, _mm256_set1_epi8((char)mask));
}

INLINE __m256i half_words(const uint8_t *words, int c, int half) {
    return _mm256_loadu_si256((const __m256i *)(const void *)(words + 64 * c) + half);
}

/* Codes of half a panel at k = 64 i + 4 c + j: unsigned, or iq4_xs's values. */
INLINE __m256i code_at(const int type, const uint8_t *w, int i, const int c, int half) {
    const panel_facts f = facts_of(type);
    const int up = upper_shift(type);
    __m256i code = _mm256_setzero_si256();
    if (f.nibbles)
        code = masked(half_words(w + f.nibbles, 8 * i + c % 8, half), c / 8 * 4, 15);
    if (f.pairs && !f.nibbles)
        code = masked(half_words(w + f.pairs, 4 * i + c % 4, half), c / 4 * 2, 3);
    else if (f.pairs)
        code = _mm256_or_si256(code, masked(half_words(w + f.pairs, 4 * i + c % 4, half), c / 4 * 2 - up, 3 << up));
    if (f.bits)
        code = _mm256_or_si256(code, masked(half_words(w + f.bits, 2 * i + c % 2, half), c / 2 - up, 1 << up));
    if (f.book)
        code = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)weir__codes_iq4)), code);
    return code;
}

/* Eight bytes of scales or minima as int32. */
INLINE __m256i half_bytes(const uint8_t *p, bool is_signed) {
    __m128i v = _mm_loadl_epi64((const __m128i *)(const void *)p);
    return is_signed ? _mm256_cvtepi8_epi32(v) : _mm256_cvtepu8_epi32(v);
}

/* Scales (or minima) of 16 k from a and from b on, as pairs of int16. */
INLINE __m256i sub_pairs(const uint8_t *bytes, bool is_signed, int a, int b, int half) {
    __m256i v = half_bytes(bytes + a * PANEL + 8 * half, is_signed), u = half_bytes(bytes + b * PANEL + 8 * half, is_signed);
    return _mm256_blend_epi16(v, _mm256_slli_epi32(u, 16), 0xaa);
}

/* The sum of two codes' products with activations each, in int16. */
INLINE __m256i product_pair(const int type, __m256i code, __m256i x) {
    if (facts_of(type).book)
        return _mm256_maddubs_epi16(_mm256_abs_epi8(code), _mm256_sign_epi8(x, code));
    return _mm256_maddubs_epi16(code, x);
}

/* One super-block: n rows times halves first .. first + halves, n * halves <= TOGETHER; index h * n + r. */
typedef struct side {
    const act_block_k *a[TOGETHER];
    __m256i sum[TOGETHER], min[TOGETHER];
} side;

/* 64 k from 64 i on; codes: [64][2] where they lie in memory, or NULL. */
INLINE void add_64(const int type, const uint8_t *w, const __m256i *codes, int i, const int n, const int first, const int halves, side *s) {
    const panel_facts f = facts_of(type);
    const int pairs = pairs_of(type);
    __m256i words[TOGETHER];
    UNROLL for (int c = 0; c < 16; c++) {
        if (!codes && n == 1)
            prefetch_step(w, facts_of(type).size, i, c);
        UNROLL for (int h = 0; h < halves; h++) {
            __m256i q = codes ? _mm256_load_si256(codes + 2 * (16 * i + c) + first + h) : code_at(type, w, i, c, first + h);
            const int sub = (64 * i + 4 * c) / f.sub;
            __m256i scale = sub_pairs(w + f.scale, f.signed_scale, sub, sub, first + h);
            UNROLL for (int r = 0; r < n; r++) {
                __m256i p = product_pair(type, q, four(s->a[r]->q + 64 * i + 4 * c)), *to = &words[h * n + r];
                *to = c % pairs ? _mm256_add_epi16(*to, p) : p;
                if ((c + 1) % pairs == 0)
                    s->sum[h * n + r] = _mm256_add_epi32(s->sum[h * n + r], _mm256_madd_epi16(*to, scale));
            }
        }
    }
}

/* What meets the sums of activations: minima, or scales whose codes are unsigned. */
INLINE void add_sums(const int type, const uint8_t *w, const int n, const int first, const int halves, side *s) {
    const panel_facts f = facts_of(type);
    UNROLL for (int i = 0; i < SUPER / 32; i++) {
        UNROLL for (int h = 0; h < halves; h++) {
            __m256i m =
                sub_pairs(w + (f.min ? f.min : f.scale), !f.min && f.signed_scale, 32 * i / f.sub, (32 * i + 16) / f.sub, first + h);
            UNROLL for (int r = 0; r < n; r++) s->min[h * n + r] =
                _mm256_add_epi32(s->min[h * n + r], _mm256_madd_epi16(m, four(s->a[r]->sums + 2 * i)));
        }
    }
    if (f.offset)
        UNROLL for (int r = 0; r < n * halves; r++) s->sum[r] =
            _mm256_sub_epi32(s->sum[r], _mm256_mullo_epi32(s->min[r], _mm256_set1_epi32(f.offset)));
}

/* Sums of a super-block, by row and output. */
typedef struct block_sums {
    _Alignas(32) int32_t sum[PRODUCT_ROWS][PANEL], min[PRODUCT_ROWS][PANEL];
} block_sums;

INLINE void add_rows(const int type, const tile *t, int b, const __m256i *codes, int row, const int n, const int first, const int halves,
                     block_sums *to) {
    const panel_facts f = facts_of(type);
    const uint8_t *w = t->w + (size_t)b * (size_t)f.size;
    side s;
    UNROLL for (int r = 0; r < n; r++) s.a[r] = act_of(t, row + r, b);
    UNROLL for (int r = 0; r < n * halves; r++) s.sum[r] = s.min[r] = _mm256_setzero_si256();
    for (int i = 0; i < SUPER / 64; i++)
        add_64(type, w, codes, i, n, first, halves, &s);
    if (f.min || f.offset)
        add_sums(type, w, n, first, halves, &s);
    UNROLL for (int h = 0; h < halves; h++) UNROLL for (int r = 0; r < n; r++) {
        _mm256_store_si256((__m256i *)(void *)to->sum[row + r] + first + h, s.sum[h * n + r]);
        _mm256_store_si256((__m256i *)(void *)to->min[row + r] + first + h, s.min[h * n + r]);
    }
}

INLINE void unpack(const int type, const uint8_t *w, __m256i *codes) {
    for (int i = 0; i < SUPER / 64; i++)
        UNROLL for (int c = 0; c < 16; c++) UNROLL for (int h = 0; h < 2; h++) codes[2 * (16 * i + c) + h] = code_at(type, w, i, c, h);
}

INLINE void add_sums_of_block(const int type, const tile *t, int b, const block_sums *sums, int rows, float (*out)[PANEL]) {
    const uint8_t *w = t->w + (size_t)b * (size_t)facts_of(type).size;
    for (int r = 0; r < rows; r++) {
        vec16 acc = vec16_load(out[r]);
        acc = add_block(type, w, act_of(t, r, b), ivec16_load(sums->sum[r]), ivec16_load(sums->min[r]), acc);
        vec16_store(out[r], acc);
    }
}

INLINE void integer_groups(const int type, const tile *t, int rows, float (*out)[PANEL]) {
    __m256i codes[SUPER / 2];
    block_sums sums;
    memset(out, 0, (size_t)rows * sizeof *out);
    for (int b = 0; b < t->k / SUPER; b++) {
        unpack(type, t->w + (size_t)b * (size_t)facts_of(type).size, codes);
        for (int row = 0; row < rows; row += GROUP)
            for (int half = 0; half < 2; half++)
                add_rows(type, t, b, codes, row, GROUP, half, 1, &sums);
        add_sums_of_block(type, t, b, &sums, rows, out);
    }
}

INLINE void integer_few(const int type, const tile *t, const int rows, float (*out)[PANEL]) {
    block_sums sums;
    memset(out, 0, (size_t)rows * sizeof *out);
    for (int b = 0; b < t->k / SUPER; b++) {
        add_rows(type, t, b, NULL, 0, rows, 0, 2, &sums);
        add_sums_of_block(type, t, b, &sums, rows, out);
    }
}
