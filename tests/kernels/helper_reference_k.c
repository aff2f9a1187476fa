/* helper_reference_k.c: see helper_reference_k.h. */
#include "helper_reference_k.h"

#include <math.h>

/* ---- activations ---- */

static void quantise_block(const float *x, ref_act_k *out) {
    float amax = 0;
    bool finite = true;
    for (int i = 0; i < 256; i++) {
        finite = finite && isfinite(x[i]);
        amax = fabsf(x[i]) > amax ? fabsf(x[i]) : amax;
    }
    float scale = finite && amax >= 0x1p-119f ? 127.0f / amax : 0.0f;
    memset(out, 0, sizeof *out);
    out->d = finite ? amax / 127.0f : NAN;
    for (int i = 0; i < 256 && scale > 0; i++) {
        out->q[i] = (int)nearbyintf(x[i] * scale);
        out->sums[i / 16] += out->q[i];
    }
}

void ref_quantise_k(const float *x, int k, ref_act_k *out) {
    for (int b = 0; b < k / 256; b++)
        quantise_block(x + 256 * b, &out[b]);
}

void assert_same_acts_k(const void *acts, const ref_act_k *want, int k, const char *what) {
    const act_block_k *a = acts;
    for (int b = 0; b < k / 256; b++) {
        assert_same_bits(&a[b].d, &want[b].d, 1, what);
        for (int i = 0; i < 16; i++)
            assert_int_equal(a[b].sums[i], want[b].sums[i]);
        for (int i = 0; i < 256; i++)
            assert_int_equal(a[b].q[i], want[b].q[i]);
    }
}

void *ref_acts_k(const ref_act_k *ref, int blocks) {
    act_block_k *a = zeroed((size_t)blocks * sizeof *a);
    for (int b = 0; b < blocks; b++) {
        a[b].d = ref[b].d;
        for (int i = 0; i < 16; i++)
            a[b].sums[i] = (int16_t)ref[b].sums[i];
        for (int i = 0; i < 256; i++)
            a[b].q[i] = (int8_t)ref[b].q[i];
    }
    return a;
}
