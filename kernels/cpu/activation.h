/* activation.h: floats to int8 activation blocks of 32 and 256. Part of every integer product's bits.
 *
 * amax = the largest magnitude; d = amax / 127; q = nearest even of x * (127 / amax). Of 32: sum = the sum of q; s = d * sum; off = -128 * sum. Of 256: sums of 16 q.
 * amax of 0, and so small that 127 / amax would be no finite number: q = 0. An infinity or NaN among the values: d is NaN and q = 0, so that every
 * product with the block is NaN. */
#ifndef WEIR_CPU_ACTIVATION_H
#define WEIR_CPU_ACTIVATION_H

#include "vec16.h"

#define ACT_LEAST 0x1p-119f /* the least amax whose block is not zero */

INLINE void act_quantise_block(vec16 a, vec16 b, act_block *out) {
    ivec16 magnitude = ivec16_set1(0x7fffffff);
    int32_t largest = ivec16_max_lane(ivec16_max(ivec16_and(vec16_bits(a), magnitude), ivec16_and(vec16_bits(b), magnitude)));
    float amax = bits_float((uint32_t)largest), scale = 0;
    bool finite = largest < 0x7f800000;
    if (finite && amax >= ACT_LEAST) {
        scale = 127.0f / amax;
    } else if (!finite) {
        a = b = vec16_zero();
    }
    ivec16 qa = vec16_round(vec16_mul(a, vec16_set1(scale))), qb = vec16_round(vec16_mul(b, vec16_set1(scale)));
    out->d = finite ? amax / 127.0f : bits_float(0x7fc00000);
    out->sum = ivec16_sum(ivec16_add(qa, qb));
    out->s = out->d * (float)out->sum;
    out->off = -128 * out->sum;
    ivec16_store_i8(out->q, qa);
    ivec16_store_i8(out->q + 16, qb);
}

INLINE void act_quantise_block_k(const float *x, act_block_k *out) {
    ivec16 magnitude = ivec16_set1(0x7fffffff), most = ivec16_set1(0);
    for (int i = 0; i < SUPER; i += 16)
        most = ivec16_max(most, ivec16_and(vec16_bits(vec16_load(x + i)), magnitude));
    int32_t largest = ivec16_max_lane(most);
    float amax = bits_float((uint32_t)largest);
    bool finite = largest < 0x7f800000, zero = !finite || amax < ACT_LEAST;
    *out = (act_block_k){.d = finite ? amax / 127.0f : bits_float(0x7fc00000)};
    if (zero)
        return;
    vec16 scale = vec16_set1(127.0f / amax);
    for (int i = 0; i < SUPER; i += 16) {
        ivec16 q = vec16_round(vec16_mul(vec16_load(x + i), scale));
        out->sums[i / 16] = (int16_t)ivec16_sum(q);
        ivec16_store_i8(out->q + i, q);
    }
}

/* k floats, a multiple of `block` (32 or 256), to a row of such blocks. */
INLINE void act_quantise(const float *x, int k, int block, void *row) {
    for (int i = 0; i < k; i += block) {
        if (block == SUPER)
            act_quantise_block_k(x + i, (act_block_k *)row + i / SUPER);
        else
            act_quantise_block(vec16_load(x + i), vec16_load(x + i + 16), (act_block *)row + i / BLOCK);
    }
}

#endif
