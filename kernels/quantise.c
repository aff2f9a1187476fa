/* quantise.c: a file's blocks of values, with the bytes that gguf-py makes (github.com/ggml-org/llama.cpp, gguf-py/gguf/quants.py): each operation rounded to
 * float where numpy does, halves away from zero for q8_0. Knows no panels and no instruction set. */
#include "kernels.h"

#include "cpu/f16.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 32 };

static void put_half(uint8_t *to, float f) {
    uint16_t h = float_to_f16(f);
    to[0] = (uint8_t)h;
    to[1] = (uint8_t)(h >> 8);
}

static float inverse(float d) {
    return d == 0 ? 0 : 1 / d;
}

/* A code: no number becomes 0. */
static uint8_t code_of(float q, int most) {
    int whole = q >= 0 ? (q < (float)most ? (int)q : most) : 0;
    return (uint8_t)whole;
}

/* The value of largest magnitude, the first of several. */
static float extreme(const float *x) {
    float best = x[0];
    for (int i = 1; i < BLOCK; i++)
        if (fabsf(x[i]) > fabsf(best))
            best = x[i];
    return best;
}

static void range(const float *x, float *least, float *most) {
    *least = *most = x[0];
    for (int i = 1; i < BLOCK; i++) {
        *least = x[i] < *least ? x[i] : *least;
        *most = x[i] > *most ? x[i] : *most;
    }
}

static void put_nibbles(uint8_t *to, const uint8_t *codes) {
    for (int i = 0; i < BLOCK / 2; i++)
        to[i] = (uint8_t)((codes[i] & 15) | codes[i + BLOCK / 2] << 4);
}

static void put_bits(uint8_t *to, const uint8_t *codes) {
    memset(to, 0, BLOCK / 8);
    for (int i = 0; i < BLOCK; i++)
        to[i / 8] = (uint8_t)(to[i / 8] | (codes[i] >> 4 & 1) << i % 8);
}

/* Codes around `middle` (8 or 16), the extreme value at the end of the range; the sum is made in double and rounded to float before it is cut. */
static float symmetric(const float *x, int middle, uint8_t *codes) {
    float d = extreme(x) / (float)-middle, id = inverse(d);
    for (int i = 0; i < BLOCK; i++)
        codes[i] = code_of((float)((double)x[i] * (double)id + (middle + 0.5)), 2 * middle - 1);
    return d;
}

static float from_least(const float *x, int most, float *m, uint8_t *codes) {
    float top;
    range(x, m, &top);
    float d = (top - *m) / (float)most, id = inverse(d);
    for (int i = 0; i < BLOCK; i++)
        codes[i] = code_of((x[i] - *m) * id + 0.5f, most);
    return d;
}

static void q4_0(const float *x, uint8_t *b) {
    uint8_t codes[BLOCK];
    put_half(b, symmetric(x, 8, codes));
    put_nibbles(b + 2, codes);
}

static void q4_1(const float *x, uint8_t *b) {
    uint8_t codes[BLOCK];
    float m;
    put_half(b, from_least(x, 15, &m, codes));
    put_half(b + 2, m);
    put_nibbles(b + 4, codes);
}

static void q5_0(const float *x, uint8_t *b) {
    uint8_t codes[BLOCK];
    put_half(b, symmetric(x, 16, codes));
    put_bits(b + 2, codes);
    put_nibbles(b + 6, codes);
}

static void q5_1(const float *x, uint8_t *b) {
    uint8_t codes[BLOCK];
    float m;
    put_half(b, from_least(x, 31, &m, codes));
    put_half(b + 2, m);
    put_bits(b + 4, codes);
    put_nibbles(b + 8, codes);
}

static void q8_0(const float *x, uint8_t *b) {
    float d = fabsf(extreme(x)) / 127, id = inverse(d);
    put_half(b, d);
    for (int i = 0; i < BLOCK; i++) {
        float q = x[i] * id, size = fabsf(q), whole = floorf(size);
        whole += floorf(2 * (size - whole));
        b[2 + i] = (uint8_t)(int8_t)(whole <= 127 ? (q < 0 ? -whole : whole) : 0);
    }
}

static void halves(const float *x, int64_t k, uint8_t *to) {
    for (int64_t i = 0; i < k; i++)
        put_half(to + 2 * i, x[i]);
}

/* Nearest even; what is no number stays so, quietly. */
static void brains(const float *x, int64_t k, uint8_t *to) {
    for (int64_t i = 0; i < k; i++) {
        uint32_t n;
        memcpy(&n, &x[i], sizeof n);
        if ((n & 0x7fffffff) > 0x7f800000)
            n = (n & 0xffff0000) | UINT32_C(64) << 16;
        n += 0x7fff + (n >> 16 & 1);
        to[2 * i] = (uint8_t)(n >> 16);
        to[2 * i + 1] = (uint8_t)(n >> 24);
    }
}

static void (*const blocks_of[WEIR_TYPES])(const float *x, uint8_t *b) = {
    [WEIR_Q4_0] = q4_0, [WEIR_Q4_1] = q4_1, [WEIR_Q5_0] = q5_0, [WEIR_Q5_1] = q5_1, [WEIR_Q8_0] = q8_0,
};

bool weir_type_writes(int type) {
    return type == WEIR_F32 || type == WEIR_F16 || type == WEIR_BF16 || (type >= 0 && type < WEIR_TYPES && blocks_of[type]);
}

void weir_quantise(int type, const float *values, int64_t k, void *blocks) {
    uint8_t *b = blocks;
    if (type == WEIR_F32) {
        memcpy(blocks, values, (size_t)k * sizeof *values);
        return;
    }
    if (type == WEIR_F16 || type == WEIR_BF16) {
        (type == WEIR_F16 ? halves : brains)(values, k, b);
        return;
    }
    for (int64_t i = 0; i < k; i += BLOCK, b += weir_type_any(type)->bytes)
        blocks_of[type](values + i, b);
}
