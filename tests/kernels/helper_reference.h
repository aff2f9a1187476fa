/* helper_reference.h: every kernel again, written literally: scalar, straight from the definitions in kernels/README.md, on the file's blocks and not on
 * panels. Nothing of kernels/ is used but structs and block sizes. */
#ifndef WEIR_HELPER_REFERENCE_H
#define WEIR_HELPER_REFERENCE_H

#include "helper_kernels.h"

float ref_from_f16(uint16_t h);
uint16_t ref_to_f16(float f);
float ref_exp(float x);
float ref_silu(float x);
float ref_tanh(float x);
float ref_gelu(float x);
float ref_softcap(float x, float cap);
float ref_tree(const float *partials); /* 16 of them */

/* One block of 32 activations. */
typedef struct ref_act {
    float d, s;
    int32_t sum;
    int q[32];
} ref_act;
void ref_quantise(const float *x, int k, ref_act *out);
void assert_same_acts(const void *acts, const ref_act *want, int k, const char *what);

/* Random blocks of a type, [n][k], with unequal scales and extreme codes; free(). */
uint8_t *ref_random_weights(rng *r, int type, int n, int k);
size_t ref_row_bytes(int type, int k);
float ref_value(int type, const uint8_t *row, int k); /* exact value at k of a row */
float ref_product_int(int type, const uint8_t *row, int k, const ref_act *acts);
float ref_product_float(int type, const uint8_t *row, int k, const float *x);

void ref_rmsnorm(const float *x, const float *w, int n, float eps, float *y);

/* Attention of one query over keys and values [positions][dim] as they are stored, of which it sees those from `from` on. cap: 0 for none. */
typedef struct ref_view {
    int from, positions;
    float scale, cap;
} ref_view;
void ref_attention(const float *q, const float *k, const float *v, const ref_view *view, int stride, int dim, float *out);

#endif
