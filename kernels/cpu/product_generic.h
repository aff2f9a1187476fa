/* product_generic.h: integer products in plain C. Included by product.h alone. */

static void block_sums_q4_1(const panel_q4_1 *w, const int8_t *q, int32_t *sums) {
    for (int i = 0; i < PANEL; i++) {
        int32_t sum = 0;
        for (int c = 0; c < BLOCK / 8; c++)
            for (int j = 0; j < 4; j++)
                sum += (w->q[c][i][j] & 15) * q[4 * c + j] + (w->q[c][i][j] >> 4) * q[16 + 4 * c + j];
        sums[i] = sum;
    }
}

static void block_sums_q8_0(const panel_q8_0 *w, const int8_t *q, int32_t *sums) {
    for (int i = 0; i < PANEL; i++) {
        int32_t sum = 0;
        for (int c = 0; c < BLOCK / 4; c++)
            for (int j = 0; j < 4; j++)
                sum += w->q[c][i][j] * q[4 * c + j];
        sums[i] = sum;
    }
}

INLINE void product_q4_1(const tile *t, const int rows, const int panels, float (*out)[PANEL]) {
    for (int i = 0; i < rows * panels; i++) {
        const panel_q4_1 *w = (const panel_q4_1 *)(const void *)(t->w + (size_t)(i / rows) * t->panel_bytes);
        const act_block *a = (const act_block *)(const void *)(t->x + (size_t)(i % rows) * t->stride);
        vec16 acc = vec16_zero();
        for (int b = 0; b < t->k / BLOCK; b++, w++, a++) {
            int32_t sums[PANEL];
            block_sums_q4_1(w, a->q, sums);
            acc = vec16_fma(vec16_mul(vec16_load_f16(w->d), vec16_set1(a->d)), ivec16_float(ivec16_load(sums)), acc);
            acc = vec16_fma(vec16_load_f16(w->m), vec16_set1(a->s), acc);
        }
        vec16_store(out[i], acc);
    }
}

INLINE void product_q8_0(const tile *t, const int rows, const int panels, float (*out)[PANEL]) {
    for (int i = 0; i < rows * panels; i++) {
        const panel_q8_0 *w = (const panel_q8_0 *)(const void *)(t->w + (size_t)(i / rows) * t->panel_bytes);
        const act_block *a = (const act_block *)(const void *)(t->x + (size_t)(i % rows) * t->stride);
        vec16 acc = vec16_zero();
        for (int b = 0; b < t->k / BLOCK; b++, w++, a++) {
            int32_t sums[PANEL];
            block_sums_q8_0(w, a->q, sums);
            acc = vec16_fma(vec16_mul(vec16_load_f16(w->d), vec16_set1(a->d)), ivec16_float(ivec16_load(sums)), acc);
        }
        vec16_store(out[i], acc);
    }
}
