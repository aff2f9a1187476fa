/* product_32_generic.h: integer products in plain C. Included by product_32.c alone. */

INLINE ivec16 block_sums(const int type, const uint8_t *w, const int8_t *q) {
    ivec16 sums = ivec16_set1(0);
    for (int k = 0; k < BLOCK; k++)
        sums += codes_at(type, w, k) * q[k];
    return sums;
}

INLINE void integer_product(const int type, const tile *t, const int rows, float (*out)[PANEL]) {
    const panel_facts f = facts_of(type);
    for (int r = 0; r < rows; r++) {
        const uint8_t *w = t->w;
        vec16 acc = vec16_zero();
        for (int b = 0; b < t->k / BLOCK; b++, w += f.size) {
            const act_block *a = act_of(t, r, b);
            acc = vec16_fma(vec16_mul(scale_of(type, w), vec16_set1(a->d)), ivec16_float(block_sums(type, w, a->q)), acc);
            if (f.min)
                acc = vec16_fma(minimum_of(type, w), vec16_set1(a->s), acc);
        }
        vec16_store(out[r], acc);
    }
}
