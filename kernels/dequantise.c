/* dequantise.c: values of a file's blocks, as gguf-py computes them: every operation rounded to float. Block formats are ggml's (github.com/ggml-org/ggml,
 * ggml-common.h), little endian, at any alignment. Knows no panels and no instruction set. */
#include "kernels.h"

#include "codes.h"
#include "cpu/f16.h"

#include <string.h>

static float half_at(const uint8_t *p) {
    return f16_to_float((uint16_t)(p[0] | p[1] << 8));
}

typedef void block_fn(const uint8_t *b, float *x);

/* ---- blocks of 32 ---- */

static void q4_0(const uint8_t *b, float *x) {
    float d = half_at(b);
    for (int i = 0; i < 32; i++)
        x[i] = d * (float)(nibble(b + 2, i) - 8);
}

static void q4_1(const uint8_t *b, float *x) {
    float d = half_at(b), m = half_at(b + 2);
    for (int i = 0; i < 32; i++)
        x[i] = d * (float)nibble(b + 4, i) + m;
}

static void q5_0(const uint8_t *b, float *x) {
    float d = half_at(b);
    for (int i = 0; i < 32; i++)
        x[i] = d * (float)((nibble(b + 6, i) | bit(b + 2, i) << 4) - 16);
}

static void q5_1(const uint8_t *b, float *x) {
    float d = half_at(b), m = half_at(b + 2);
    for (int i = 0; i < 32; i++)
        x[i] = d * (float)(nibble(b + 8, i) | bit(b + 4, i) << 4) + m;
}

static void q8_0(const uint8_t *b, float *x) {
    float d = half_at(b);
    for (int i = 0; i < 32; i++)
        x[i] = d * (float)(int8_t)b[2 + i];
}

static void iq4_nl(const uint8_t *b, float *x) {
    float d = half_at(b);
    for (int i = 0; i < 32; i++)
        x[i] = d * (float)weir__codes_iq4[nibble(b + 2, i)];
}

static void mxfp4(const uint8_t *b, float *x) {
    float d = half_power(b[0]);
    for (int i = 0; i < 32; i++)
        x[i] = d * (float)weir__codes_mxfp4[nibble(b + 1, i)];
}

/* ---- super-blocks of 256 ---- */

static void q2_k(const uint8_t *b, float *x) {
    float d = half_at(b + 80), dmin = half_at(b + 82);
    for (int i = 0; i < 256; i++) {
        uint8_t s = b[i / 16];
        x[i] = d * (float)(s & 15) * (float)crumb(b + 16, i) - dmin * (float)(s >> 4);
    }
}

static void q3_k(const uint8_t *b, float *x) {
    float d = half_at(b + 108);
    for (int i = 0; i < 256; i++) {
        int high = b[i % 32] >> (i / 32) & 1;
        x[i] = d * (float)scale_q3_k(b + 96, i / 16) * (float)(crumb(b + 32, i) - (high ? 0 : 4));
    }
}

static void q4_k(const uint8_t *b, float *x) {
    float d = half_at(b), dmin = half_at(b + 2);
    for (int i = 0; i < 256; i++) {
        int q = b[16 + i / 64 * 32 + i % 32] >> (i / 32 % 2 * 4) & 15;
        x[i] = d * (float)scale_k(b + 4, i / 32) * (float)q - dmin * (float)min_k(b + 4, i / 32);
    }
}

static void q5_k(const uint8_t *b, float *x) {
    float d = half_at(b), dmin = half_at(b + 2);
    for (int i = 0; i < 256; i++) {
        int q = (b[48 + i / 64 * 32 + i % 32] >> (i / 32 % 2 * 4) & 15) | (b[16 + i % 32] >> (i / 32) & 1) << 4;
        x[i] = d * (float)scale_k(b + 4, i / 32) * (float)q - dmin * (float)min_k(b + 4, i / 32);
    }
}

static void q6_k(const uint8_t *b, float *x) {
    float d = half_at(b + 208);
    for (int i = 0; i < 256; i++) {
        int low = b[i / 128 * 64 + i % 64] >> (i / 64 % 2 * 4) & 15, high = b[128 + i / 128 * 32 + i % 32] >> (i / 32 % 4 * 2) & 3;
        x[i] = d * (float)(int8_t)b[192 + i / 16] * (float)((low | high << 4) - 32);
    }
}

static void iq4_xs(const uint8_t *b, float *x) {
    float d = half_at(b);
    for (int i = 0; i < 256; i++)
        x[i] = d * (float)scale_iq4_xs(b + 2, i / 32) * (float)weir__codes_iq4[nibble(b + 8 + i / 32 * 16, i % 32)];
}

static block_fn *const blocks_of[WEIR_TYPES] = {
    [WEIR_Q4_0] = q4_0,     [WEIR_Q4_1] = q4_1,   [WEIR_Q5_0] = q5_0,     [WEIR_Q5_1] = q5_1, [WEIR_Q8_0] = q8_0,
    [WEIR_IQ4_NL] = iq4_nl, [WEIR_MXFP4] = mxfp4, [WEIR_Q2_K] = q2_k,     [WEIR_Q3_K] = q3_k, [WEIR_Q4_K] = q4_k,
    [WEIR_Q5_K] = q5_k,     [WEIR_Q6_K] = q6_k,   [WEIR_IQ4_XS] = iq4_xs,
};

/* ---- floats ---- */

static void halves(const uint8_t *p, int64_t k, float *x) {
    for (int64_t i = 0; i < k; i++)
        x[i] = half_at(p + 2 * i);
}

static void brains(const uint8_t *p, int64_t k, float *x) {
    for (int64_t i = 0; i < k; i++) {
        uint32_t bits = (uint32_t)(p[2 * i] | p[2 * i + 1] << 8) << 16;
        memcpy(&x[i], &bits, sizeof bits);
    }
}

bool weir_type_reads(int type) {
    return type == WEIR_F32 || type == WEIR_F16 || type == WEIR_BF16 || (type >= 0 && type < WEIR_TYPES && blocks_of[type]);
}

void weir_dequantise(int type, const void *blocks, int64_t k, float *values) {
    const weir_type_info *info = weir_type_any(type);
    const uint8_t *b = blocks;
    if (type == WEIR_F32) {
        memcpy(values, blocks, (size_t)k * sizeof *values);
        return;
    }
    if (type == WEIR_F16 || type == WEIR_BF16) {
        (type == WEIR_F16 ? halves : brains)(b, k, values);
        return;
    }
    for (int64_t i = 0; i < k; i += info->block, b += info->bytes)
        blocks_of[type](b, values + i);
}
