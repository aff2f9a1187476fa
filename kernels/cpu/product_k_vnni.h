/* product_k_vnni.h: integer products with AVX-512 VNNI: vpdpbusd adds four products of an unsigned code and a signed byte to an int32, without saturation.
 * Sums of 16 or 32 k begin with what the codes' offset takes off, so they are exact at once; then they meet their sub-block's scale:
 *   codes up to 15 (q4_k), or signed ones within 8 (q2_k, q3_k): a sum of 16 is at most 16 * 15 * 127 = 30,480 and fits int16: vpdpwssd with (scale, 0);
 *   others: vpmulld.
 * Minima times sums of activations: vpdpwssd, two sums of 16 at a time. From 4 rows on a super-block's codes are unpacked once, to memory, for all rows.
 * Included by product_k.c alone. */

enum {
    TOGETHER = 8,     /* rows whose sums advance side by side: each waits for its own last product */
    BUFFERED = 4,     /* rows from which codes go through memory */
    GROUP = TOGETHER, /* rows of integer_groups */
};

/* Four activations, or two sums of them, in every lane. */
INLINE __m512i four(const void *p) {
    int32_t v;
    memcpy(&v, p, sizeof v);
    return _mm512_set1_epi32(v);
}

/* Sums of how many k meet a scale at once; whether they fit 16 bits. */
INLINE bool sums_are_words(const int type) {
    return type == WEIR_Q4_K || type == WEIR_Q3_K || type == WEIR_Q2_K;
}
INLINE int sum_width(const int type) {
    return sums_are_words(type) ? 16 : facts_of(type).sub;
}

/* What the codes of vpdpbusd have too much. */
INLINE int unsigned_offset(const int type) {
    return facts_of(type).book ? 128 : facts_of(type).offset;
}

INLINE __m512i masked(__m512i v, int shift, int mask) {
    __m512i shifted = shift > 0 ? _mm512_srli_epi16(v, (unsigned)shift) : shift < 0 ? _mm512_slli_epi16(v, (unsigned)-shift) : v;
    return _mm512_and_si512(shifted, _mm512_set1_epi8((char)mask));
}

/* Unsigned codes of 16 rows at k = 64 i + 4 c + j. */
INLINE __m512i code_at(const int type, const uint8_t *w, int i, const int c) {
    const panel_facts f = facts_of(type);
    const int up = upper_shift(type);
    __m512i code = _mm512_setzero_si512();
    if (f.nibbles)
        code = masked(_mm512_loadu_si512(w + f.nibbles + 64 * (8 * i + c % 8)), c / 8 * 4, 15);
    if (f.pairs && !f.nibbles)
        code = masked(_mm512_loadu_si512(w + f.pairs + 64 * (4 * i + c % 4)), c / 4 * 2, 3);
    else if (f.pairs)
        code = _mm512_or_si512(code, masked(_mm512_loadu_si512(w + f.pairs + 64 * (4 * i + c % 4)), c / 4 * 2 - up, 3 << up));
    if (f.bits)
        code = _mm512_or_si512(code, masked(_mm512_loadu_si512(w + f.bits + 64 * (2 * i + c % 2)), c / 2 - up, 1 << up));
    if (f.book) {
        __m128i bytes = _mm_xor_si128(_mm_loadu_si128((const __m128i *)(const void *)weir__codes_iq4), _mm_set1_epi8((char)0x80));
        code = _mm512_shuffle_epi8(_mm512_broadcast_i32x4(bytes), code);
    }
    return code;
}

/* Minima of sub-blocks 2 i and 2 i + 1 of 16, as pairs of int16. */
INLINE __m512i minima_at(const int type, const uint8_t *w, int i) {
    const int sub = facts_of(type).sub;
    __m512i a = sub_minimum(type, w, 32 * i / sub), b = sub_minimum(type, w, (32 * i + 16) / sub);
    return _mm512_or_si512(a, _mm512_slli_epi32(b, 16));
}

/* What sums of activations begin with, by the k that they begin at: -offset times the sum of their activations. */
INLINE void sum_begins(const int type, const act_block_k *a, int32_t begin[SUPER / 16]) {
    __m512i sums = _mm512_cvtepi16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)a->sums));
    if (sum_width(type) == 32)
        sums = _mm512_add_epi32(sums, _mm512_shuffle_epi32(sums, _MM_PERM_CDAB));
    _mm512_storeu_si512(begin, _mm512_mullo_epi32(sums, _mm512_set1_epi32(-unsigned_offset(type))));
}

/* Rows side by side, and their sums of a super-block. */
typedef struct side {
    const act_block_k *a[TOGETHER];
    int32_t begin[TOGETHER][SUPER / 16];
    __m512i sum[TOGETHER];
} side;

INLINE void add_scaled(const int type, const uint8_t *w, int k, const int n, const __m512i *dot, side *s) {
    __m512i scale = sub_scale(type, w, k / facts_of(type).sub);
    if (facts_of(type).signed_scale && sums_are_words(type))
        scale = _mm512_and_si512(scale, _mm512_set1_epi32(0xffff));
    UNROLL for (int r = 0; r < n; r++) {
        if (sums_are_words(type))
            s->sum[r] = _mm512_dpwssd_epi32(s->sum[r], dot[r], scale);
        else
            s->sum[r] = _mm512_add_epi32(s->sum[r], _mm512_mullo_epi32(dot[r], scale));
    }
}

/* 64 k from 64 i on; codes: where they lie in memory, or NULL. */
INLINE void add_64(const int type, const uint8_t *w, const __m512i *codes, int i, const int n, side *s) {
    const int width = sum_width(type);
    __m512i dot[TOGETHER];
    UNROLL for (int c = 0; c < 16; c++) {
        if (!codes && n == 1)
            prefetch_step(w, facts_of(type).size, i, c);
        __m512i q = codes ? _mm512_load_si512(codes + 16 * i + c) : code_at(type, w, i, c);
        if (4 * c % width == 0)
            UNROLL for (int r = 0; r < n; r++) dot[r] =
                unsigned_offset(type) ? _mm512_set1_epi32(s->begin[r][4 * i + c / 4]) : _mm512_setzero_si512();
        UNROLL for (int r = 0; r < n; r++) dot[r] = _mm512_dpbusd_epi32(dot[r], q, four(s->a[r]->q + 64 * i + 4 * c));
        if ((4 * c + 4) % width == 0)
            add_scaled(type, w, 64 * i + 4 * c, n, dot, s);
    }
}

/* n rows from `first` on, one super-block. */
INLINE void add_rows(const int type, const tile *t, int b, const __m512i *codes, int first, const int n, float (*out)[PANEL]) {
    const uint8_t *w = t->w + (size_t)b * (size_t)facts_of(type).size;
    side s;
    UNROLL for (int r = 0; r < n; r++) {
        s.a[r] = act_of(t, first + r, b);
        s.sum[r] = _mm512_setzero_si512();
        if (unsigned_offset(type))
            sum_begins(type, s.a[r], s.begin[r]);
    }
    for (int i = 0; i < SUPER / 64; i++)
        add_64(type, w, codes, i, n, &s);
    __m512i min[TOGETHER];
    UNROLL for (int r = 0; r < n; r++) min[r] = _mm512_setzero_si512();
    if (facts_of(type).min) {
        UNROLL for (int i = 0; i < SUPER / 32; i++) {
            __m512i m = minima_at(type, w, i);
            UNROLL for (int r = 0; r < n; r++) min[r] = _mm512_dpwssd_epi32(min[r], m, four(s.a[r]->sums + 2 * i));
        }
    }
    UNROLL for (int r = 0; r < n; r++)
        vec16_store(out[first + r], add_block(type, w, s.a[r], s.sum[r], min[r], vec16_load(out[first + r])));
}

INLINE void unpack(const int type, const uint8_t *w, __m512i *codes) {
    for (int i = 0; i < SUPER / 64; i++)
        UNROLL for (int c = 0; c < 16; c++) codes[16 * i + c] = code_at(type, w, i, c);
}

INLINE void integer_groups(const int type, const tile *t, int rows, float (*out)[PANEL]) {
    __m512i codes[SUPER / 4];
    memset(out, 0, (size_t)rows * sizeof *out);
    for (int b = 0; b < t->k / SUPER; b++) {
        unpack(type, t->w + (size_t)b * (size_t)facts_of(type).size, codes);
        for (int first = 0; first < rows; first += GROUP)
            add_rows(type, t, b, codes, first, GROUP, out);
    }
}

INLINE void integer_few(const int type, const tile *t, const int rows, float (*out)[PANEL]) {
    __m512i codes[SUPER / 4];
    memset(out, 0, (size_t)rows * sizeof *out);
    for (int b = 0; b < t->k / SUPER; b++) {
        if (rows >= BUFFERED)
            unpack(type, t->w + (size_t)b * (size_t)facts_of(type).size, codes);
        add_rows(type, t, b, rows >= BUFFERED ? codes : NULL, 0, rows, out);
    }
}
