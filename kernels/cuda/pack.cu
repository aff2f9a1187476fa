/* pack.cu: from a file's row-major blocks to this device's layout (README.md), and vectors to floats. The source is read byte by byte: it may lie at any address. */
#include "weights.h"

/* The file's index of what goes to i: undoes adjacent rotary pairs (2 i, 2 i + 1) to half split (i, i + rope_dim / 2) within each of `heads`. */
DEVICE int source_index(int heads, int rope_dim, int n, int i) {
    if (heads <= 0)
        return i;
    const int dim = n / heads, head = i / dim, j = i % dim, half = rope_dim / 2;
    return j >= rope_dim ? i : head * dim + j % half * 2 + j / half;
}

DEVICE uint32_t bytes16(const unsigned char *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}
DEVICE uint32_t bytes32(const unsigned char *p) {
    return bytes16(p) | bytes16(p + 2) << 16;
}

/* Value i of an array of float type `type`. */
DEVICE float float_at(const unsigned char *from, int type, size_t i) {
    if (type == WEIR_F32)
        return bits_float(bytes32(from + 4 * i));
    const uint16_t u = (uint16_t)bytes16(from + 2 * i);
    if (type == WEIR_BF16)
        return bits_float((uint32_t)u << 16);
    __half h;
    memcpy(&h, &u, sizeof h);
    return __half2float(h);
}

/* bf16 as gguf-py rounds to it: nearest even, a NaN kept and made quiet. */
DEVICE uint16_t bf16_bits(float f) {
    const uint32_t u = float_bits(f);
    if ((u & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(u >> 16 | 64);
    return (uint16_t)((u + 0x7fffu + (u >> 16 & 1)) >> 16);
}

DEVICE void put_value(value_f32::type *to, float v) {
    *to = v;
}
DEVICE void put_value(value_f16::type *to, float v) {
    *to = __float2half_rn(v);
}
DEVICE void put_value(value_bf16::type *to, float v) {
    const uint16_t u = bf16_bits(v);
    memcpy(to, &u, sizeof u);
}

/* Row blockIdx.x of a float matrix: the same bits where the types are the same. */
template <class V>
DEVICE void pack_float(const unsigned char *source, int source_type, int type, char *at, int n, int k, int heads, int rope_dim) {
    const int row = (int)blockIdx.x;
    const size_t width = source_type == WEIR_F32 ? 4 : 2;
    typename V::type *to = (typename V::type *)at + (size_t)row * (size_t)k;
    const unsigned char *from = source + (size_t)(row < n ? source_index(heads, rope_dim, n, row) : 0) * (size_t)k * width;
    for (int i = (int)threadIdx.x; i < k; i += WEIR_CUDA_PACK_THREADS) {
        if (row >= n)
            put_value(to + i, 0.0f);
        else if (source_type != type)
            put_value(to + i, float_at(from, source_type, (size_t)i));
        else if (width == 4) {
            const uint32_t u = bytes32(from + 4 * (size_t)i);
            memcpy(to + i, &u, sizeof *to);
        } else {
            const uint16_t u = (uint16_t)bytes16(from + 2 * (size_t)i);
            memcpy(to + i, &u, sizeof *to < sizeof u ? sizeof *to : sizeof u);
        }
    }
}

/* Row blockIdx.x of blocks of `halves` f16 numbers and `bytes` bytes of codes, the codes' words first (a row's blocks side by side), then the numbers. */
DEVICE void pack_blocks(const unsigned char *source, int halves, int bytes, char *at, int n, int k, int heads, int rope_dim) {
    const int row = (int)blockIdx.x, blocks = k / BLOCK, words = bytes / 4, size = 2 * halves + bytes;
    uint32_t *codes = (uint32_t *)at + (size_t)row * (size_t)(blocks * words);
    uint16_t *numbers = (uint16_t *)(at + padded_rows(n) * (size_t)blocks * (size_t)bytes) + (size_t)row * (size_t)(blocks * halves);
    const unsigned char *from = source + (size_t)(row < n ? source_index(heads, rope_dim, n, row) : 0) * (size_t)blocks * (size_t)size;
    for (int i = (int)threadIdx.x; i < blocks * words; i += WEIR_CUDA_PACK_THREADS)
        codes[i] = row < n ? bytes32(from + (size_t)(i / words) * (size_t)size + (size_t)(2 * halves + i % words * 4)) : 0;
    for (int i = (int)threadIdx.x; i < blocks * halves; i += WEIR_CUDA_PACK_THREADS)
        numbers[i] = row < n ? (uint16_t)bytes16(from + (size_t)(i / halves) * (size_t)size + (size_t)(i % halves * 2)) : 0;
}

#define PACK(name, body)                                                                                                                   \
    extern "C" __global__ void __launch_bounds__(WEIR_CUDA_PACK_THREADS)                                                                   \
        weir_pack_##name(const void *source, int32_t source_type, void *const *base, uint64_t offset, int32_t n, int32_t k,                \
                         int32_t rope_heads, int32_t rope_dim) {                                                                           \
        const unsigned char *from = (const unsigned char *)source;                                                                         \
        char *to = unit_at(base, offset);                                                                                                  \
        body;                                                                                                                              \
    }
PACK(f32, pack_float<value_f32>(from, source_type, WEIR_F32, to, n, k, rope_heads, rope_dim))
PACK(f16, pack_float<value_f16>(from, source_type, WEIR_F16, to, n, k, rope_heads, rope_dim))
PACK(bf16, pack_float<value_bf16>(from, source_type, WEIR_BF16, to, n, k, rope_heads, rope_dim))
PACK(q4_0, (void)source_type; pack_blocks(from, 1, BLOCK / 2, to, n, k, rope_heads, rope_dim))
PACK(q4_1, (void)source_type; pack_blocks(from, 2, BLOCK / 2, to, n, k, rope_heads, rope_dim))
PACK(q8_0, (void)source_type; pack_blocks(from, 1, BLOCK, to, n, k, rope_heads, rope_dim))
#undef PACK

extern "C" __global__ void __launch_bounds__(WEIR_CUDA_MAP_THREADS)
    weir_pack_vector(const void *source, int32_t type, void *const *base, uint64_t offset, int32_t k, int32_t rope_heads, int32_t rope_dim,
                     float add) {
    const int i = (int)(blockIdx.x * WEIR_CUDA_MAP_THREADS + threadIdx.x);
    if (i < k) {
        const int from = source_index(rope_heads, rope_dim, k, i);
        ((float *)unit_at(base, offset))[i] = float_at((const unsigned char *)source, type, (size_t)from) + add;
    }
}
