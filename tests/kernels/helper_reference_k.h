/* helper_reference_k.h: the literal scalar reference of activations in blocks of 256 and of the weight types that take them. As helper_reference.h. */
#ifndef WEIR_HELPER_REFERENCE_K_H
#define WEIR_HELPER_REFERENCE_K_H

#include "helper_kernels.h"

/* One block of 256 activations. */
typedef struct ref_act_k {
    float d;
    int sums[16], q[256];
} ref_act_k;
void ref_quantise_k(const float *x, int k, ref_act_k *out);
void assert_same_acts_k(const void *acts, const ref_act_k *want, int k, const char *what);
void *ref_acts_k(const ref_act_k *ref, int blocks); /* act_block_k with the contents of the reference; free() */

/* What a file's row says of one value: scale * code - minimum. */
typedef struct ref_k {
    uint16_t d, dmin; /* f16 */
    int scale, min;   /* of the sub-block; min: 0 where the type has none */
    int sub;          /* values of a sub-block */
    int code;         /* offset taken off, or from the code book */
} ref_k;
ref_k ref_k_at(int type, const uint8_t *row, int k);

float ref_value_k(int type, const uint8_t *row, int k);
float ref_product_k(int type, const uint8_t *row, int k, const ref_act_k *acts);
/* Puts d and dmin (which not all types have) of a block. */
void ref_put_scales_k(int type, uint8_t *block, uint16_t d, uint16_t dmin);

#endif
