/* block.c: packing and gathering of the types with blocks of 32 (file formats: ggml-common.h), and the table of all types with blocks. Products round as here:
 * scale * code, then + minimum. */
#include "block.h"
#include "../codes.h"
#include "f16.h"

const weir_block_codec *weir_block_codec_of(int type) {
#define ROW(type, name) [WEIR_##type] = {weir__pack_##name, weir__gather_##name},
    static const weir_block_codec codecs[WEIR_TYPES] = {WEIR_TYPES_BLOCKS(ROW)};
#undef ROW
    return codecs[type].pack ? &codecs[type] : NULL;
}

/* 32 nibbles: byte i of the file has k = i in its low half and k = 16 + i in its high half. */
static void pack_nibbles(const uint8_t *from, int lane, uint8_t (*q)[PANEL][4]) {
    for (int c = 0; c < BLOCK / 8; c++)
        memcpy(q[c][lane], from + 4 * c, 4);
}
static int code4(const uint8_t (*q)[PANEL][4], int lane, int k) {
    return q[k % 16 / 4][lane][k % 4] >> k / 16 * 4 & 15;
}

static void pack_fifth(const uint8_t *from, int lane, uint8_t (*h)[PANEL]) {
    for (int i = 0; i < 4; i++)
        h[i][lane] = from[i];
}
static int code5(const uint8_t (*q)[PANEL][4], const uint8_t (*h)[PANEL], int lane, int k) {
    return code4(q, lane, k) | (h[k / 8][lane] >> k % 8 & 1) << 4;
}

void weir__pack_q4_0(const uint8_t *block, int lane, uint8_t *packed) {
    panel_q4_0 *p = (panel_q4_0 *)(void *)packed;
    memcpy(&p->d[lane], block, 2);
    pack_nibbles(block + 2, lane, p->q);
}
void weir__gather_q4_0(const uint8_t *packed, int lane, float *values) {
    const panel_q4_0 *p = (const panel_q4_0 *)(const void *)packed;
    float d = f16_to_float(p->d[lane]);
    for (int k = 0; k < BLOCK; k++)
        values[k] = d * (float)(code4(p->q, lane, k) - 8);
}

void weir__pack_q4_1(const uint8_t *block, int lane, uint8_t *packed) {
    panel_q4_1 *p = (panel_q4_1 *)(void *)packed;
    memcpy(&p->d[lane], block, 2);
    memcpy(&p->m[lane], block + 2, 2);
    pack_nibbles(block + 4, lane, p->q);
}
void weir__gather_q4_1(const uint8_t *packed, int lane, float *values) {
    const panel_q4_1 *p = (const panel_q4_1 *)(const void *)packed;
    float d = f16_to_float(p->d[lane]), m = f16_to_float(p->m[lane]);
    for (int k = 0; k < BLOCK; k++)
        values[k] = d * (float)code4(p->q, lane, k) + m;
}

void weir__pack_q5_0(const uint8_t *block, int lane, uint8_t *packed) {
    panel_q5_0 *p = (panel_q5_0 *)(void *)packed;
    memcpy(&p->d[lane], block, 2);
    pack_fifth(block + 2, lane, p->h);
    pack_nibbles(block + 6, lane, p->q);
}
void weir__gather_q5_0(const uint8_t *packed, int lane, float *values) {
    const panel_q5_0 *p = (const panel_q5_0 *)(const void *)packed;
    float d = f16_to_float(p->d[lane]);
    for (int k = 0; k < BLOCK; k++)
        values[k] = d * (float)(code5(p->q, p->h, lane, k) - 16);
}

void weir__pack_q5_1(const uint8_t *block, int lane, uint8_t *packed) {
    panel_q5_1 *p = (panel_q5_1 *)(void *)packed;
    memcpy(&p->d[lane], block, 2);
    memcpy(&p->m[lane], block + 2, 2);
    pack_fifth(block + 4, lane, p->h);
    pack_nibbles(block + 8, lane, p->q);
}
void weir__gather_q5_1(const uint8_t *packed, int lane, float *values) {
    const panel_q5_1 *p = (const panel_q5_1 *)(const void *)packed;
    float d = f16_to_float(p->d[lane]), m = f16_to_float(p->m[lane]);
    for (int k = 0; k < BLOCK; k++)
        values[k] = d * (float)code5(p->q, p->h, lane, k) + m;
}

void weir__pack_q8_0(const uint8_t *block, int lane, uint8_t *packed) {
    panel_q8_0 *p = (panel_q8_0 *)(void *)packed;
    memcpy(&p->d[lane], block, 2);
    for (int c = 0; c < BLOCK / 4; c++)
        memcpy(p->q[c][lane], block + 2 + 4 * c, 4);
}
void weir__gather_q8_0(const uint8_t *packed, int lane, float *values) {
    const panel_q8_0 *p = (const panel_q8_0 *)(const void *)packed;
    float d = f16_to_float(p->d[lane]);
    for (int k = 0; k < BLOCK; k++)
        values[k] = d * (float)p->q[k / 4][lane][k % 4];
}

void weir__pack_iq4_nl(const uint8_t *block, int lane, uint8_t *packed) {
    panel_iq4_nl *p = (panel_iq4_nl *)(void *)packed;
    memcpy(&p->d[lane], block, 2);
    pack_nibbles(block + 2, lane, p->q);
}
void weir__gather_iq4_nl(const uint8_t *packed, int lane, float *values) {
    const panel_iq4_nl *p = (const panel_iq4_nl *)(const void *)packed;
    float d = f16_to_float(p->d[lane]);
    for (int k = 0; k < BLOCK; k++)
        values[k] = d * (float)weir__codes_iq4[code4(p->q, lane, k)];
}

void weir__pack_mxfp4(const uint8_t *block, int lane, uint8_t *packed) {
    panel_mxfp4 *p = (panel_mxfp4 *)(void *)packed;
    p->e[lane] = block[0];
    pack_nibbles(block + 1, lane, p->q);
}
void weir__gather_mxfp4(const uint8_t *packed, int lane, float *values) {
    const panel_mxfp4 *p = (const panel_mxfp4 *)(const void *)packed;
    float d = half_power(p->e[lane]);
    for (int k = 0; k < BLOCK; k++)
        values[k] = d * (float)weir__codes_mxfp4[code4(p->q, lane, k)];
}
