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

#endif
