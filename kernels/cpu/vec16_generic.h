/* vec16_generic.h: the 16 lanes as an array, in plain C. Included by vec16.h alone. */
typedef struct vec16 {
    float f[16];
} vec16;
typedef struct ivec16 {
    int32_t i[16];
} ivec16;
typedef uint32_t mask16; /* bit i: lane i */

#define LANES for (int i = 0; i < 16; i++)
#define VEC16_MAP(expression)                                                                                                              \
    vec16 r;                                                                                                                               \
    LANES r.f[i] = (expression);                                                                                                           \
    return r
#define IVEC16_MAP(expression)                                                                                                             \
    ivec16 r;                                                                                                                              \
    LANES r.i[i] = (expression);                                                                                                           \
    return r

INLINE vec16 vec16_set1(float a) {
    VEC16_MAP(a);
}
INLINE vec16 vec16_load(const float *p) {
    VEC16_MAP(p[i]);
}
INLINE void vec16_store(float *p, vec16 a) {
    memcpy(p, a.f, sizeof a.f);
}
INLINE vec16 vec16_load_f16(const uint16_t *p) {
    VEC16_MAP(f16_to_float(p[i]));
}
INLINE void vec16_store_f16(uint16_t *p, vec16 a) {
    LANES p[i] = float_to_f16(a.f[i]);
}
INLINE vec16 vec16_add(vec16 a, vec16 b) {
    VEC16_MAP(a.f[i] + b.f[i]);
}
INLINE vec16 vec16_sub(vec16 a, vec16 b) {
    VEC16_MAP(a.f[i] - b.f[i]);
}
INLINE vec16 vec16_mul(vec16 a, vec16 b) {
    VEC16_MAP(a.f[i] * b.f[i]);
}
INLINE vec16 vec16_div(vec16 a, vec16 b) {
    VEC16_MAP(a.f[i] / b.f[i]);
}
INLINE vec16 vec16_fma(vec16 a, vec16 b, vec16 c) {
    VEC16_MAP(fmaf(a.f[i], b.f[i], c.f[i]));
}
INLINE vec16 vec16_max(vec16 a, vec16 b) {
    VEC16_MAP(a.f[i] > b.f[i] ? a.f[i] : b.f[i]);
}
INLINE vec16 vec16_min(vec16 a, vec16 b) {
    VEC16_MAP(a.f[i] < b.f[i] ? a.f[i] : b.f[i]);
}

INLINE mask16 vec16_ge(vec16 a, vec16 b) {
    mask16 m = 0;
    LANES m |= (mask16)(a.f[i] >= b.f[i]) << i;
    return m;
}
INLINE uint32_t mask16_bits(mask16 m) {
    return m;
}
INLINE mask16 mask16_below(int n) {
    return n >= 16 ? 0xffff : n <= 0 ? 0 : (1u << n) - 1;
}
INLINE vec16 vec16_select(mask16 m, vec16 a, vec16 b) {
    VEC16_MAP(m >> i & 1 ? a.f[i] : b.f[i]);
}

INLINE ivec16 vec16_bits(vec16 a) {
    IVEC16_MAP((int32_t)float_bits(a.f[i]));
}
INLINE vec16 ivec16_as_float(ivec16 a) {
    VEC16_MAP(bits_float((uint32_t)a.i[i]));
}
INLINE ivec16 ivec16_set1(int32_t a) {
    IVEC16_MAP(a);
}
INLINE ivec16 ivec16_add(ivec16 a, ivec16 b) {
    IVEC16_MAP((int32_t)((uint32_t)a.i[i] + (uint32_t)b.i[i]));
}
INLINE ivec16 ivec16_sub(ivec16 a, ivec16 b) {
    IVEC16_MAP((int32_t)((uint32_t)a.i[i] - (uint32_t)b.i[i]));
}
INLINE ivec16 ivec16_and(ivec16 a, ivec16 b) {
    IVEC16_MAP(a.i[i] & b.i[i]);
}
INLINE ivec16 ivec16_max(ivec16 a, ivec16 b) {
    IVEC16_MAP(a.i[i] > b.i[i] ? a.i[i] : b.i[i]);
}
INLINE ivec16 ivec16_left(ivec16 a, int n) {
    IVEC16_MAP((int32_t)((uint32_t)a.i[i] << n));
}
INLINE ivec16 ivec16_right(ivec16 a, int n) {
    IVEC16_MAP(a.i[i] >> n);
}
INLINE vec16 ivec16_float(ivec16 a) {
    VEC16_MAP((float)a.i[i]);
}
INLINE ivec16 ivec16_load(const void *p) {
    ivec16 r;
    memcpy(&r, p, sizeof r);
    return r;
}
INLINE void ivec16_store_i8(int8_t *p, ivec16 a) {
    LANES p[i] = (int8_t)a.i[i];
}

INLINE float vec16_sum(vec16 a) {
    for (int step = 8; step; step /= 2)
        for (int i = 0; i < step; i++)
            a.f[i] = a.f[i] + a.f[i + step];
    return a.f[0];
}

INLINE float vec16_max_lane(vec16 a) {
    for (int step = 8; step; step /= 2)
        for (int i = 0; i < step; i++)
            a.f[i] = a.f[i] > a.f[i + step] ? a.f[i] : a.f[i + step];
    return a.f[0];
}

INLINE int32_t ivec16_sum(ivec16 a) {
    int32_t s = 0;
    LANES s += a.i[i];
    return s;
}

INLINE int32_t ivec16_max_lane(ivec16 a) {
    int32_t m = a.i[0];
    LANES m = a.i[i] > m ? a.i[i] : m;
    return m;
}
#undef VEC16_MAP
#undef IVEC16_MAP
#undef LANES
