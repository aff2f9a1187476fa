/* vec16_generic.h: the 16 lanes as the compiler's own vectors, which it cuts to what the target has; what they lack is written lane by lane. Included by
 * vec16.h alone. */
typedef float vec16 __attribute__((vector_size(64)));
typedef int32_t ivec16 __attribute__((vector_size(64)));
typedef ivec16 mask16; /* all bits of a lane or none */
typedef uint32_t uvec16 __attribute__((vector_size(64)));

#define LANES for (int i = 0; i < 16; i++)

INLINE vec16 vec16_set1(float a) {
    return (vec16){a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a};
}
INLINE vec16 vec16_load(const float *p) {
    vec16 r;
    memcpy(&r, p, sizeof r);
    return r;
}
INLINE void vec16_store(float *p, vec16 a) {
    memcpy(p, &a, sizeof a);
}
INLINE vec16 vec16_load_f16(const uint16_t *p) {
    vec16 r;
    LANES r[i] = f16_to_float(p[i]);
    return r;
}
INLINE vec16 vec16_load_bf16(const uint16_t *p) {
    vec16 r;
    LANES r[i] = bits_float((uint32_t)p[i] << 16);
    return r;
}
INLINE void vec16_store_f16(uint16_t *p, vec16 a) {
    LANES p[i] = float_to_f16(a[i]);
}
INLINE vec16 vec16_add(vec16 a, vec16 b) {
    return a + b;
}
INLINE vec16 vec16_sub(vec16 a, vec16 b) {
    return a - b;
}
INLINE vec16 vec16_mul(vec16 a, vec16 b) {
    return a * b;
}
INLINE vec16 vec16_div(vec16 a, vec16 b) {
    return a / b;
}
INLINE vec16 vec16_fma(vec16 a, vec16 b, vec16 c) {
    vec16 r;
    LANES r[i] = fmaf(a[i], b[i], c[i]);
    return r;
}

INLINE ivec16 vec16_bits(vec16 a) {
    return (ivec16)a;
}
INLINE vec16 ivec16_as_float(ivec16 a) {
    return (vec16)a;
}
INLINE vec16 vec16_select(mask16 m, vec16 a, vec16 b) {
    return (vec16)(((ivec16)a & m) | ((ivec16)b & ~m));
}
INLINE vec16 vec16_max(vec16 a, vec16 b) {
    return vec16_select(a > b, a, b);
}
INLINE vec16 vec16_min(vec16 a, vec16 b) {
    return vec16_select(a < b, a, b);
}
INLINE mask16 vec16_ge(vec16 a, vec16 b) {
    return a >= b;
}
INLINE uint32_t mask16_bits(mask16 m) {
    uint32_t bits = 0;
    LANES bits |= (uint32_t)(m[i] & 1) << i;
    return bits;
}
INLINE mask16 mask16_below(int n) {
    return (ivec16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} < n;
}

INLINE ivec16 ivec16_set1(int32_t a) {
    return (ivec16){a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a};
}
INLINE ivec16 ivec16_add(ivec16 a, ivec16 b) {
    return (ivec16)((uvec16)a + (uvec16)b);
}
INLINE ivec16 ivec16_sub(ivec16 a, ivec16 b) {
    return (ivec16)((uvec16)a - (uvec16)b);
}
INLINE ivec16 ivec16_and(ivec16 a, ivec16 b) {
    return a & b;
}
INLINE ivec16 ivec16_max(ivec16 a, ivec16 b) {
    mask16 m = a > b;
    return (a & m) | (b & ~m);
}
INLINE ivec16 ivec16_left(ivec16 a, int n) {
    return (ivec16)((uvec16)a << n);
}
INLINE ivec16 ivec16_right(ivec16 a, int n) {
    return a >> n;
}
INLINE vec16 ivec16_float(ivec16 a) {
    return __builtin_convertvector(a, vec16);
}
INLINE ivec16 ivec16_load(const void *p) {
    ivec16 r;
    memcpy(&r, p, sizeof r);
    return r;
}
INLINE ivec16 ivec16_load_u8(const uint8_t *p) {
    ivec16 r;
    LANES r[i] = p[i];
    return r;
}
INLINE ivec16 ivec16_load_i8(const int8_t *p) {
    ivec16 r;
    LANES r[i] = p[i];
    return r;
}
INLINE ivec16 ivec16_lookup(ivec16 table, ivec16 index) {
    ivec16 r;
    LANES r[i] = table[index[i]];
    return r;
}
INLINE void ivec16_store_i8(int8_t *p, ivec16 a) {
    LANES p[i] = (int8_t)a[i];
}

INLINE float vec16_sum(vec16 a) {
    float t[16];
    vec16_store(t, a);
    for (int step = 8; step; step /= 2)
        for (int i = 0; i < step; i++)
            t[i] = t[i] + t[i + step];
    return t[0];
}

INLINE float vec16_max_lane(vec16 a) {
    float t[16];
    vec16_store(t, a);
    for (int step = 8; step; step /= 2)
        for (int i = 0; i < step; i++)
            t[i] = t[i] > t[i + step] ? t[i] : t[i + step];
    return t[0];
}

INLINE int32_t ivec16_sum(ivec16 a) {
    int32_t s = 0;
    LANES s += a[i];
    return s;
}

INLINE int32_t ivec16_max_lane(ivec16 a) {
    int32_t m = a[0];
    LANES m = a[i] > m ? a[i] : m;
    return m;
}
#undef LANES
