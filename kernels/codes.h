/* codes.h: how codes and scales are packed in a file's blocks, and the code books. Shared by whatever reads such blocks. */
#ifndef WEIR_CODES_H
#define WEIR_CODES_H

#include <stdint.h>
#include <string.h>

/* ggml's code books (ggml-common.h: kvalues_iq4nl, kvalues_mxfp4; the latter are twice the values of OCP's E2M1). */
static const int8_t weir__codes_iq4[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
static const int8_t weir__codes_mxfp4[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

/* Code i of 32: the low nibbles are the first half. */
static inline int nibble(const uint8_t *q, int i) {
    return i < 16 ? q[i] & 15 : q[i - 16] >> 4;
}
/* Bit i of 32. */
static inline int bit(const uint8_t *h, int i) {
    return h[i / 8] >> i % 8 & 1;
}
/* Two bits i of 256 (q2_k, q3_k): byte by byte of 32, the lowest bits first. */
static inline int crumb(const uint8_t *q, int i) {
    return q[i / 128 * 32 + i % 32] >> (i / 32 % 4 * 2) & 3;
}

/* 6-bit scale and minimum j of 8 (q4_k, q5_k). */
static inline int scale_k(const uint8_t *s, int j) {
    return j < 4 ? s[j] & 63 : (s[j + 4] & 15) | (s[j - 4] >> 6) << 4;
}
static inline int min_k(const uint8_t *s, int j) {
    return j < 4 ? s[j + 4] & 63 : s[j + 4] >> 4 | (s[j] >> 6) << 4;
}
/* 6-bit scale j of 16, 32 taken off (q3_k). */
static inline int scale_q3_k(const uint8_t *s, int j) {
    int low = j < 8 ? s[j] & 15 : s[j - 8] >> 4;
    return (low | (s[8 + j % 4] >> (j / 4 * 2) & 3) << 4) - 32;
}
/* 6-bit scale j of 8, 32 taken off (iq4_xs): two upper bits of all in a half word, then the low nibbles. */
static inline int scale_iq4_xs(const uint8_t *s, int j) {
    int high = (s[0] | s[1] << 8) >> 2 * j & 3, low = s[2 + j / 2] >> j % 2 * 4 & 15;
    return (low | high << 4) - 32;
}

/* 2^(e - 128): half of OCP's E8M0 scale, since the code book holds twice the values. */
static inline float half_power(uint8_t e) {
    uint32_t bits = e < 2 ? UINT32_C(0x00200000) << e : (uint32_t)(e - 1) << 23;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

#endif
