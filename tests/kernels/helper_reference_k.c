/* helper_reference_k.c: see helper_reference_k.h. */
#include "helper_reference_k.h"
#include "helper_reference.h"

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

/* ---- weights: offsets and bits as ggml-common.h and gguf-py's quants.py have them ---- */

static uint16_t half_at(const uint8_t *p) {
    return (uint16_t)(p[0] | p[1] << 8);
}

/* 6-bit scale or minimum s of 8 in 12 bytes. */
static int six_bits(const uint8_t *q, int s, bool min) {
    if (s < 4)
        return q[min ? s + 4 : s] & 63;
    return min ? q[s + 4] >> 4 | q[s] >> 6 << 4 : (q[s + 4] & 15) | q[s - 4] >> 6 << 4;
}

static int two_bits(const uint8_t *q, int k) {
    return q[k / 128 * 32 + k % 32] >> k % 128 / 32 * 2 & 3;
}

static ref_k at_q2_k(const uint8_t *b, int k) {
    return (ref_k){half_at(b + 80), half_at(b + 82), b[k / 16] & 15, b[k / 16] >> 4, 16, two_bits(b + 16, k)};
}

static ref_k at_q3_k(const uint8_t *b, int k) {
    int s = k / 16, low = s < 8 ? b[96 + s] & 15 : b[96 + s - 8] >> 4, high = b[104 + s % 4] >> s / 4 * 2 & 3;
    int third = b[k % 32] >> k / 32 & 1;
    return (ref_k){half_at(b + 108), 0, (low | high << 4) - 32, 0, 16, (two_bits(b + 32, k) | third << 2) - 4};
}

static ref_k at_q4_k(const uint8_t *b, int k) {
    int s = k / 32, code = b[16 + k / 64 * 32 + k % 32] >> k % 64 / 32 * 4 & 15;
    return (ref_k){half_at(b), half_at(b + 2), six_bits(b + 4, s, false), six_bits(b + 4, s, true), 32, code};
}

static ref_k at_q5_k(const uint8_t *b, int k) {
    int s = k / 32, code = b[48 + k / 64 * 32 + k % 32] >> k % 64 / 32 * 4 & 15, fifth = b[16 + k % 32] >> k / 32 & 1;
    return (ref_k){half_at(b), half_at(b + 2), six_bits(b + 4, s, false), six_bits(b + 4, s, true), 32, code | fifth << 4};
}

static ref_k at_q6_k(const uint8_t *b, int k) {
    int low = b[k / 128 * 64 + k % 64] >> k % 128 / 64 * 4 & 15;
    return (ref_k){half_at(b + 208), 0, (int8_t)b[192 + k / 16], 0, 16, (low | two_bits(b + 128, k) << 4) - 32};
}

static ref_k at_iq4_xs(const uint8_t *b, int k) {
    static const int book[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
    int s = k / 32, low = b[4 + s / 2] >> s % 2 * 4 & 15, high = half_at(b + 2) >> 2 * s & 3;
    return (ref_k){half_at(b), 0, (low | high << 4) - 32, 0, 32, book[b[8 + 16 * s + k % 16] >> k % 32 / 16 * 4 & 15]};
}

ref_k ref_k_at(int type, const uint8_t *row, int k) {
    const uint8_t *block = row + (size_t)(k / 256) * weir_type_get(type)->bytes;
    switch (type) {
    case WEIR_Q2_K:
        return at_q2_k(block, k % 256);
    case WEIR_Q3_K:
        return at_q3_k(block, k % 256);
    case WEIR_Q4_K:
        return at_q4_k(block, k % 256);
    case WEIR_Q5_K:
        return at_q5_k(block, k % 256);
    case WEIR_Q6_K:
        return at_q6_k(block, k % 256);
    default:
        return at_iq4_xs(block, k % 256);
    }
}

static bool has_minima(int type) {
    return type == WEIR_Q2_K || type == WEIR_Q4_K || type == WEIR_Q5_K;
}

float ref_value_k(int type, const uint8_t *row, int k) {
    ref_k v = ref_k_at(type, row, k);
    float d = ref_from_f16(v.d) * (float)v.scale, value = d * (float)v.code;
    if (!has_minima(type))
        return value;
    float m = ref_from_f16(v.dmin) * (float)v.min;
    return value - m;
}

float ref_product_k(int type, const uint8_t *row, int k, const ref_act_k *acts) {
    float acc = 0;
    for (int b = 0; b < k / 256; b++) {
        const ref_act_k *a = &acts[b];
        ref_k v = ref_k_at(type, row, 256 * b);
        int64_t sum = 0, minima = 0;
        for (int i = 0; i < 256; i++) {
            ref_k at = ref_k_at(type, row, 256 * b + i);
            sum += at.scale * at.code * a->q[i];
            minima += at.min * a->q[i];
        }
        float d = ref_from_f16(v.d) * a->d;
        acc = fmaf(d, (float)sum, acc);
        if (!has_minima(type))
            continue;
        d = ref_from_f16(v.dmin) * a->d;
        acc = fmaf(-d, (float)minima, acc);
    }
    return acc;
}

void ref_put_scales_k(int type, uint8_t *block, uint16_t d, uint16_t dmin) {
    static const uint8_t at[WEIR_TYPES] = {[WEIR_Q2_K] = 80, [WEIR_Q3_K] = 108, [WEIR_Q6_K] = 208};
    memcpy(block + at[type], &d, 2);
    if (has_minima(type))
        memcpy(block + at[type] + 2, &dmin, 2);
}
