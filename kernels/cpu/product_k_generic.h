/* product_k_generic.h: integer products in plain C: a super-block's codes are widened once for all rows. Included by product_k.c alone. */

enum { GROUP = 1 }; /* rows of integer_groups: any number */

/* What one super-block of a panel is to all rows. */
typedef struct unpacked {
    ivec16 code[SUPER], scale[SUPER / 16], min[SUPER / 16]; /* scales and minima of every 16 k */
} unpacked;

INLINE void unpack(const int type, const uint8_t *w, unpacked *u) {
    const panel_facts f = facts_of(type);
    for (int k = 0; k < SUPER; k++)
        u->code[k] = codes_at(type, w, k);
    for (int i = 0; i < SUPER / 16; i++) {
        u->scale[i] = sub_scale(type, w, 16 * i / f.sub);
        u->min[i] = f.min ? sub_minimum(type, w, 16 * i / f.sub) : ivec16_set1(0);
    }
}

INLINE void integer_groups(const int type, const tile *t, int rows, float (*out)[PANEL]) {
    unpacked u;
    memset(out, 0, (size_t)rows * sizeof *out);
    for (int b = 0; b < t->k / SUPER; b++) {
        const uint8_t *w = t->w + (size_t)b * (size_t)facts_of(type).size;
        unpack(type, w, &u);
        for (int r = 0; r < rows; r++) {
            const act_block_k *a = act_of(t, r, b);
            ivec16 sum = ivec16_set1(0), min_sum = sum;
            for (int i = 0; i < SUPER / 16; i++) {
                ivec16 dot = ivec16_set1(0);
                for (int k = 16 * i; k < 16 * i + 16; k++)
                    dot += u.code[k] * a->q[k];
                sum += u.scale[i] * dot;
                min_sum += u.min[i] * a->sums[i];
            }
            vec16_store(out[r], add_block(type, w, a, sum, min_sum, vec16_load(out[r])));
        }
    }
}
