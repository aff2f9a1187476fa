/* product_vnni.h: integer products with AVX-512 VNNI: vpdpbusd adds four products of an unsigned and a signed byte to an int32, without saturation.
 * Codes of q8_0 are signed: w + 128 is unsigned, and 128 times the sum of the activations is taken off again. From 4 rows on a block's sum is one chain: the
 * rows beside it hide its latency, and an addition a row is saved; few rows need two chains. Included by product.h alone. */

enum { TOGETHER = 8 }; /* rows whose sums advance side by side: each waits for its own last product */

/* Four activations in every lane. */
INLINE __m512i four(const int8_t *q) {
    int32_t v;
    memcpy(&v, q, sizeof v);
    return _mm512_set1_epi32(v);
}

INLINE void product_q4_1(const tile *t, const int rows, const int panels, float (*out)[PANEL]) {
    const __m512i low = _mm512_set1_epi8(15), zero = _mm512_setzero_si512();
    vec16 acc[PRODUCT_ROWS];
    UNROLL for (int i = 0; i < rows * panels; i++) acc[i] = vec16_zero();
    for (int b = 0; b < t->k / BLOCK; b++) {
        UNROLL for (int p = 0; p < panels; p++) {
            const panel_q4_1 *w = (const panel_q4_1 *)(const void *)(t->w + (size_t)p * t->panel_bytes) + b;
            if (rows == 1)
                prefetch_ahead(w, sizeof *w);
            __m512i q[8];
            UNROLL for (int c = 0; c < 4; c++) {
                __m512i v = _mm512_loadu_si512(w->q[c]);
                q[c] = _mm512_and_si512(v, low);
                q[c + 4] = _mm512_and_si512(_mm512_srli_epi16(v, 4), low);
            }
            vec16 d = vec16_load_f16(w->d), m = vec16_load_f16(w->m);
            UNROLL for (int first = 0; first < rows; first += TOGETHER) {
                const act_block *a[TOGETHER];
                __m512i s[TOGETHER];
                const int n = rows - first < TOGETHER ? rows - first : TOGETHER;
                UNROLL for (int r = 0; r < n; r++) {
                    a[r] = (const act_block *)(const void *)(t->x + (size_t)(first + r) * t->stride) + b;
                    s[r] = zero;
                }
                UNROLL for (int c = 0; c < 8; c++) UNROLL for (int r = 0; r < n; r++) s[r] =
                    _mm512_dpbusd_epi32(s[r], q[c], four(a[r]->q + 4 * c));
                UNROLL for (int r = 0; r < n; r++) {
                    vec16 *to = &acc[p * rows + first + r];
                    *to = vec16_fma(vec16_mul(d, vec16_set1(a[r]->d)), _mm512_cvtepi32_ps(s[r]), *to);
                    *to = vec16_fma(m, vec16_set1(a[r]->s), *to);
                }
            }
        }
    }
    UNROLL for (int i = 0; i < rows * panels; i++) vec16_store(out[i], acc[i]);
}

INLINE void product_q8_0(const tile *t, const int rows, const int panels, float (*out)[PANEL]) {
    const __m512i top = _mm512_set1_epi8((char)0x80), zero = _mm512_setzero_si512();
    vec16 acc[PRODUCT_ROWS];
    UNROLL for (int i = 0; i < rows * panels; i++) acc[i] = vec16_zero();
    for (int b = 0; b < t->k / BLOCK; b++) {
        UNROLL for (int p = 0; p < panels; p++) {
            const panel_q8_0 *w = (const panel_q8_0 *)(const void *)(t->w + (size_t)p * t->panel_bytes) + b;
            if (rows == 1)
                prefetch_ahead(w, sizeof *w);
            __m512i q[8];
            UNROLL for (int c = 0; c < 8; c++) q[c] = _mm512_xor_si512(_mm512_loadu_si512(w->q[c]), top);
            vec16 d = vec16_load_f16(w->d);
            UNROLL for (int r = 0; r < rows; r++) {
                const act_block *a = (const act_block *)(const void *)(t->x + (size_t)r * t->stride) + b;
                __m512i s[2] = {_mm512_set1_epi32(-128 * a->sum), zero};
                UNROLL for (int c = 0; c < 8; c += 2) {
                    s[0] = _mm512_dpbusd_epi32(s[0], q[c], four(a->q + 4 * c));
                    s[rows < 4] = _mm512_dpbusd_epi32(s[rows < 4], q[c + 1], four(a->q + 4 * c + 4));
                }
                vec16 sum = _mm512_cvtepi32_ps(rows < 4 ? _mm512_add_epi32(s[0], s[1]) : s[0]), *to = &acc[p * rows + r];
                *to = vec16_fma(vec16_mul(d, vec16_set1(a->d)), sum, *to);
            }
        }
    }
    UNROLL for (int i = 0; i < rows * panels; i++) vec16_store(out[i], acc[i]);
}
