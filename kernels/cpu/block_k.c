/* block_k.c: packing and gathering of the types with super-blocks of 256 (file formats: ggml-common.h). Works on words of four codes, k = 4 c + j in byte j, as
 * panels keep them (layout.h). Products round as here: (scale of the super-block * that of the sub-block) * code, then - (dmin * minimum). */
#include "../codes.h"
#include "block.h"
#include "f16.h"

typedef uint8_t words[PANEL][4]; /* [c][row][j] */

static uint32_t word_at(const uint8_t *p) {
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}
static void put_word(words *to, int c, int lane, uint32_t v) {
    memcpy(to[c][lane], &v, sizeof v);
}
static void add_word(words *to, int c, int lane, uint32_t v) {
    put_word(to, c, lane, word_at(to[c][lane]) | v);
}

/* ---- codes: from the order of files to that of panels ---- */

/* q4_k, q5_k: byte l of 32 has k = 64 i + l in its low half and 32 more in its high half: the same order. */
static void pack_nibbles(const uint8_t *from, int lane, words *q) {
    for (int c = 0; c < SUPER / 8; c++)
        memcpy(q[c][lane], from + 4 * c, 4);
}

/* q6_k: of 64 bytes for 128 k, byte l has l and l + 64. */
static void pack_nibbles_far(const uint8_t *from, int lane, words *q) {
    const uint32_t low = 0x0f0f0f0f, high = 0xf0f0f0f0;
    for (int n = 0; n < 2; n++)
        for (int c = 0; c < 8; c++) {
            uint32_t a = word_at(from + 64 * n + 4 * c), b = word_at(from + 64 * n + 32 + 4 * c);
            put_word(q, 16 * n + c, lane, (a & low) | (b & low) << 4);
            put_word(q, 16 * n + 8 + c, lane, (a & high) >> 4 | (b & high));
        }
}

/* iq4_xs: of 16 bytes for 32 k, byte l has l and l + 16. */
static void pack_nibbles_near(const uint8_t *from, int lane, words *q) {
    const uint32_t low = 0x0f0f0f0f, high = 0xf0f0f0f0;
    for (int i = 0; i < 4; i++)
        for (int c = 0; c < 4; c++) {
            uint32_t a = word_at(from + 32 * i + 4 * c), b = word_at(from + 32 * i + 16 + 4 * c);
            put_word(q, 8 * i + c, lane, (a & low) | (b & low) << 4);
            put_word(q, 8 * i + 4 + c, lane, (a & high) >> 4 | (b & high));
        }
}

/* Two bits: of 32 bytes for 128 k, bits 2 s of byte l are k = 32 s + l. */
static void pack_pairs(const uint8_t *from, int lane, words *to) {
    for (int c = 0; c < SUPER / 16; c++)
        put_word(to, c, lane, 0);
    for (int w = 0; w < 16; w++)
        for (int s = 0; s < 4; s++) {
            int i = w / 8 * 2 + s / 2, c = s % 2 * 8 + w % 8;
            add_word(to, 4 * i + c % 4, lane, (word_at(from + 4 * w) >> 2 * s & 0x03030303) << c / 4 * 2);
        }
}

/* One bit: of 32 bytes, bit s of byte l is k = 32 s + l. */
static void pack_bits(const uint8_t *from, int lane, words *to) {
    for (int c = 0; c < SUPER / 32; c++)
        put_word(to, c, lane, 0);
    for (int w = 0; w < 8; w++)
        for (int s = 0; s < 8; s++) {
            int c = s % 2 * 8 + w;
            add_word(to, s / 2 * 2 + c % 2, lane, (word_at(from + 4 * w) >> s & 0x01010101) << c / 2);
        }
}

static int nibble_at(const words *q, int lane, int k) {
    int i = k / 64, c = k % 64 / 4;
    return q[8 * i + c % 8][lane][k % 4] >> c / 8 * 4 & 15;
}
static int pair_at(const words *q, int lane, int k) {
    int i = k / 64, c = k % 64 / 4;
    return q[4 * i + c % 4][lane][k % 4] >> c / 4 * 2 & 3;
}
static int bit_at(const words *q, int lane, int k) {
    int i = k / 64, c = k % 64 / 4;
    return q[2 * i + c % 2][lane][k % 4] >> c / 2 & 1;
}

/* ---- scales and minima ---- */

/* 8 scales and 8 minima of 6 bits in 12 bytes. */
static void pack_scales_6(const uint8_t *from, int lane, uint8_t (*scale)[PANEL], uint8_t (*min)[PANEL]) {
    for (int s = 0; s < 4; s++) {
        scale[s][lane] = from[s] & 63;
        min[s][lane] = from[s + 4] & 63;
        scale[s + 4][lane] = (uint8_t)((from[s + 8] & 15) | from[s] >> 6 << 4);
        min[s + 4][lane] = (uint8_t)(from[s + 8] >> 4 | from[s + 4] >> 6 << 4);
    }
}

static float value(float d, int scale, int code) {
    float ds = d * (float)scale;
    return ds * (float)code;
}

/* ---- the types ---- */

void weir__pack_q4_k(const uint8_t *block, int lane, uint8_t *packed) {
    panel_q4_k *p = (panel_q4_k *)(void *)packed;
    memcpy(&p->d[lane], block, 2);
    memcpy(&p->dmin[lane], block + 2, 2);
    pack_scales_6(block + 4, lane, p->scale, p->min);
    pack_nibbles(block + 16, lane, p->q);
}
void weir__gather_q4_k(const uint8_t *packed, int lane, float *values) {
    const panel_q4_k *p = (const panel_q4_k *)(const void *)packed;
    float d = f16_to_float(p->d[lane]), dmin = f16_to_float(p->dmin[lane]);
    for (int k = 0; k < SUPER; k++)
        values[k] = value(d, p->scale[k / 32][lane], nibble_at(p->q, lane, k)) - dmin * (float)p->min[k / 32][lane];
}

void weir__pack_q5_k(const uint8_t *block, int lane, uint8_t *packed) {
    panel_q5_k *p = (panel_q5_k *)(void *)packed;
    memcpy(&p->d[lane], block, 2);
    memcpy(&p->dmin[lane], block + 2, 2);
    pack_scales_6(block + 4, lane, p->scale, p->min);
    pack_bits(block + 16, lane, p->h);
    pack_nibbles(block + 48, lane, p->q);
}
void weir__gather_q5_k(const uint8_t *packed, int lane, float *values) {
    const panel_q5_k *p = (const panel_q5_k *)(const void *)packed;
    float d = f16_to_float(p->d[lane]), dmin = f16_to_float(p->dmin[lane]);
    for (int k = 0; k < SUPER; k++) {
        int code = nibble_at(p->q, lane, k) | bit_at(p->h, lane, k) << 4;
        values[k] = value(d, p->scale[k / 32][lane], code) - dmin * (float)p->min[k / 32][lane];
    }
}

void weir__pack_q6_k(const uint8_t *block, int lane, uint8_t *packed) {
    panel_q6_k *p = (panel_q6_k *)(void *)packed;
    memcpy(&p->d[lane], block + 208, 2);
    for (int s = 0; s < 16; s++)
        p->scale[s][lane] = (int8_t)block[192 + s];
    pack_pairs(block + 128, lane, p->h);
    pack_nibbles_far(block, lane, p->q);
}
void weir__gather_q6_k(const uint8_t *packed, int lane, float *values) {
    const panel_q6_k *p = (const panel_q6_k *)(const void *)packed;
    float d = f16_to_float(p->d[lane]);
    for (int k = 0; k < SUPER; k++)
        values[k] = value(d, p->scale[k / 16][lane], (nibble_at(p->q, lane, k) | pair_at(p->h, lane, k) << 4) - 32);
}

/* 16 scales of 6 bits in 12 bytes: the lower four in nibbles, the upper two after them. */
void weir__pack_q3_k(const uint8_t *block, int lane, uint8_t *packed) {
    panel_q3_k *p = (panel_q3_k *)(void *)packed;
    const uint8_t *scales = block + 96;
    memcpy(&p->d[lane], block + 108, 2);
    for (int s = 0; s < 16; s++)
        p->scale[s][lane] = (int8_t)(((scales[s % 8] >> s / 8 * 4 & 15) | (scales[8 + s % 4] >> s / 4 * 2 & 3) << 4) - 32);
    pack_bits(block, lane, p->h);
    pack_pairs(block + 32, lane, p->q);
}
void weir__gather_q3_k(const uint8_t *packed, int lane, float *values) {
    const panel_q3_k *p = (const panel_q3_k *)(const void *)packed;
    float d = f16_to_float(p->d[lane]);
    for (int k = 0; k < SUPER; k++)
        values[k] = value(d, p->scale[k / 16][lane], (pair_at(p->q, lane, k) | bit_at(p->h, lane, k) << 2) - 4);
}

void weir__pack_q2_k(const uint8_t *block, int lane, uint8_t *packed) {
    panel_q2_k *p = (panel_q2_k *)(void *)packed;
    memcpy(&p->d[lane], block + 80, 2);
    memcpy(&p->dmin[lane], block + 82, 2);
    for (int s = 0; s < 16; s++) {
        p->scale[s][lane] = block[s] & 15;
        p->min[s][lane] = block[s] >> 4;
    }
    pack_pairs(block + 16, lane, p->q);
}
void weir__gather_q2_k(const uint8_t *packed, int lane, float *values) {
    const panel_q2_k *p = (const panel_q2_k *)(const void *)packed;
    float d = f16_to_float(p->d[lane]), dmin = f16_to_float(p->dmin[lane]);
    for (int k = 0; k < SUPER; k++)
        values[k] = value(d, p->scale[k / 16][lane], pair_at(p->q, lane, k)) - dmin * (float)p->min[k / 16][lane];
}

void weir__pack_iq4_xs(const uint8_t *block, int lane, uint8_t *packed) {
    panel_iq4_xs *p = (panel_iq4_xs *)(void *)packed;
    int high = block[2] | block[3] << 8;
    memcpy(&p->d[lane], block, 2);
    for (int s = 0; s < 8; s++)
        p->scale[s][lane] = (int8_t)(((block[4 + s / 2] >> s % 2 * 4 & 15) | (high >> 2 * s & 3) << 4) - 32);
    pack_nibbles_near(block + 8, lane, p->q);
}
void weir__gather_iq4_xs(const uint8_t *packed, int lane, float *values) {
    const panel_iq4_xs *p = (const panel_iq4_xs *)(const void *)packed;
    float d = f16_to_float(p->d[lane]);
    for (int k = 0; k < SUPER; k++)
        values[k] = value(d, p->scale[k / 32][lane], weir__codes_iq4[nibble_at(p->q, lane, k)]);
}
