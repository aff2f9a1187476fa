/* product_32_vnni.h: integer products with AVX-512 VNNI: vpdpbusd adds four products of an unsigned and a signed byte to an int32, without saturation.
 * Signed codes become unsigned by 128 more, and 128 times the sum of the activations is taken off again. From 4 rows on a block's sum is one chain: the rows
 * beside it hide its latency, and an addition a row is saved; few rows need two chains. Included by product_32.c alone. */

enum { TOGETHER = 8 }; /* rows whose sums advance side by side: each waits for its own last product */

/* Four activations in every lane. */
INLINE __m512i four(const int8_t *q) {
    int32_t v;
    memcpy(&v, q, sizeof v);
    return _mm512_set1_epi32(v);
}

/* What a nibble stands for, plus 128. */
INLINE __m512i book_bytes(const int type) {
    static const int8_t q4_0[16] = {-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7};
    const int8_t *book = type == WEIR_Q4_0 ? q4_0 : type == WEIR_IQ4_NL ? weir__codes_iq4 : weir__codes_mxfp4;
    __m128i bytes = _mm_xor_si128(_mm_loadu_si128((const __m128i *)(const void *)book), _mm_set1_epi8((char)0x80));
    return _mm512_broadcast_i32x4(bytes);
}

/* Adds 16 to codes [c][row][j] where bit k % 8 of byte (k / 8, row) is set, k = 4 c + j. */
INLINE __m512i with_fifth(__m512i code, const uint8_t *fifth, int c) {
    const __m512i spread = _mm512_add_epi8(_mm512_set_epi32(0x03030303, 0x02020202, 0x01010101, 0, 0x03030303, 0x02020202, 0x01010101, 0,
                                                            0x03030303, 0x02020202, 0x01010101, 0, 0x03030303, 0x02020202, 0x01010101, 0),
                                           _mm512_set_epi64(0x0c0c0c0c0c0c0c0c, 0x0c0c0c0c0c0c0c0c, 0x0808080808080808, 0x0808080808080808,
                                                            0x0404040404040404, 0x0404040404040404, 0, 0));
    __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(fifth + c / 2 * PANEL));
    __m512i bits = _mm512_shuffle_epi8(_mm512_broadcast_i32x4(bytes), spread);
    __mmask64 set = _mm512_test_epi8_mask(bits, _mm512_set1_epi32(c % 2 ? (int)0x80402010 : 0x08040201));
    return _mm512_mask_add_epi8(code, set, code, _mm512_set1_epi8(16));
}

/* The codes of a block, unsigned: [c] holds k = 4 c + j. True if they are 128 too large. */
INLINE bool unsigned_codes(const int type, const uint8_t *w, __m512i q[8]) {
    const panel_facts f = facts_of(type);
    const __m512i low = _mm512_set1_epi8(15);
    if (type == WEIR_Q8_0) {
        UNROLL for (int c = 0; c < 8; c++) q[c] = _mm512_xor_si512(_mm512_loadu_si512(w + f.q + 64 * c), _mm512_set1_epi8((char)0x80));
        return true;
    }
    UNROLL for (int c = 0; c < 4; c++) {
        __m512i v = _mm512_loadu_si512(w + f.q + 64 * c);
        q[c] = _mm512_and_si512(v, low);
        q[c + 4] = _mm512_and_si512(_mm512_srli_epi16(v, 4), low);
    }
    if (f.fifth) {
        UNROLL for (int c = 0; c < 8; c++) q[c] = with_fifth(q[c], w + f.fifth, c);
        if (f.offset)
            UNROLL for (int c = 0; c < 8; c++) q[c] = _mm512_add_epi8(q[c], _mm512_set1_epi8((char)(128 - f.offset)));
    } else if (!f.min) {
        UNROLL for (int c = 0; c < 8; c++) q[c] = _mm512_shuffle_epi8(book_bytes(type), q[c]);
    }
    return !f.min;
}

INLINE void integer_product(const int type, const tile *t, const int rows, float (*out)[PANEL]) {
    const panel_facts f = facts_of(type);
    const int chains = rows < 4 ? 2 : 1;
    vec16 acc[PRODUCT_ROWS];
    UNROLL for (int i = 0; i < rows; i++) acc[i] = vec16_zero();
    const uint8_t *w = t->w;
    for (int b = 0; b < t->k / BLOCK; b++, w += f.size) {
        __m512i q[8];
        if (rows == 1)
            prefetch_ahead(w, (size_t)f.size);
        const bool more = unsigned_codes(type, w, q);
        vec16 d = scale_of(type, w), m = f.min ? minimum_of(type, w) : vec16_zero();
        UNROLL for (int first = 0; first < rows; first += TOGETHER) {
            const act_block *a[TOGETHER];
            __m512i s[TOGETHER], t1[TOGETHER];
            const int n = rows - first < TOGETHER ? rows - first : TOGETHER;
            UNROLL for (int r = 0; r < n; r++) {
                a[r] = act_of(t, first + r, b);
                s[r] = more ? _mm512_set1_epi32(a[r]->off) : _mm512_setzero_si512();
                t1[r] = _mm512_setzero_si512();
            }
            UNROLL for (int c = 0; c < 8; c++) UNROLL for (int r = 0; r < n; r++) {
                __m512i *to = chains == 2 && c % 2 ? &t1[r] : &s[r];
                *to = _mm512_dpbusd_epi32(*to, q[c], four(a[r]->q + 4 * c));
            }
            UNROLL for (int r = 0; r < n; r++) {
                vec16 *to = &acc[first + r], sum = _mm512_cvtepi32_ps(chains == 2 ? _mm512_add_epi32(s[r], t1[r]) : s[r]);
                *to = vec16_fma(vec16_mul(d, vec16_set1(a[r]->d)), sum, *to);
                if (f.min)
                    *to = vec16_fma(m, vec16_set1(a[r]->s), *to);
            }
        }
    }
    UNROLL for (int i = 0; i < rows; i++) vec16_store(out[i], acc[i]);
}
