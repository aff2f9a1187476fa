/* cuemu_math.h: mathematics and bit intrinsics. Part of cuemu.h. The fast functions are libm's: their last bits differ from a GPU's. */
#pragma once

#define CUEMU_MATH1(name, expression)                                                                                                      \
    CUEMU_INLINE float name(float a) {                                                                                                     \
        return expression;                                                                                                                 \
    }
#define CUEMU_MATH2(name, expression)                                                                                                      \
    CUEMU_INLINE float name(float a, float b) {                                                                                            \
        return expression;                                                                                                                 \
    }
CUEMU_MATH1(rsqrtf, 1.0f / sqrtf(a))
CUEMU_MATH1(__frsqrt_rn, 1.0f / sqrtf(a))
CUEMU_MATH1(__frcp_rn, 1.0f / a)
CUEMU_MATH1(__fsqrt_rn, sqrtf(a))
CUEMU_MATH1(__saturatef, a > 0 ? (a < 1 ? a : 1) : 0)
CUEMU_MATH2(__fdividef, a / b)
CUEMU_MATH2(__fdiv_rn, a / b)
/* through a volatile value: the compiler contracts a * b + c, which these forbid */
CUEMU_INLINE float __fmul_rn(float a, float b) {
    volatile float r = a * b;
    return r;
}
CUEMU_INLINE float __fadd_rn(float a, float b) {
    volatile float r = a + b;
    return r;
}
CUEMU_INLINE float __fsub_rn(float a, float b) {
    volatile float r = a - b;
    return r;
}
CUEMU_INLINE float __fmaf_rn(float a, float b, float c) {
    return fmaf(a, b, c);
}
#undef CUEMU_MATH1
#undef CUEMU_MATH2
/* macros: glibc's math.h already declares functions of these names */
#define __expf(x) expf(x)
#define __exp10f(x) exp10f(x)
#define __logf(x) logf(x)
#define __log2f(x) log2f(x)
#define __sinf(x) sinf(x)
#define __cosf(x) cosf(x)
#define __powf(x, y) powf(x, y)

template <class A, class B> std::common_type_t<A, B> min(A a, B b) {
    return a < b ? a : b;
}
template <class A, class B> std::common_type_t<A, B> max(A a, B b) {
    return a > b ? a : b;
}
template <class T> T __ldg(const T *p) {
    return *p;
}
template <class T> T __ldcs(const T *p) {
    return *p;
}
template <class T> T __ldcg(const T *p) {
    return *p;
}
template <class T> void __stcs(T *p, T v) {
    *p = v;
}
CUEMU_INLINE int __popc(unsigned x) {
    return __builtin_popcount(x);
}
CUEMU_INLINE int __clz(int x) {
    return x ? __builtin_clz((unsigned)x) : 32;
}
CUEMU_INLINE int __ffs(int x) {
    return __builtin_ffs(x);
}
CUEMU_INLINE unsigned __umulhi(unsigned a, unsigned b) {
    return (unsigned)((uint64_t)a * b >> 32);
}
CUEMU_INLINE unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
CUEMU_INLINE int __float_as_int(float f) {
    return cuemu::unbits<int>(cuemu::bits(f));
}
CUEMU_INLINE unsigned __float_as_uint(float f) {
    return cuemu::unbits<unsigned>(cuemu::bits(f));
}
CUEMU_INLINE float __int_as_float(int i) {
    return cuemu::unbits<float>(cuemu::bits(i));
}
CUEMU_INLINE float __uint_as_float(unsigned i) {
    return cuemu::unbits<float>(cuemu::bits(i));
}
CUEMU_INLINE int __float2int_rn(float f) {
    return (int)nearbyintf(f);
}
CUEMU_INLINE int __dp4a(int a, int b, int c) {
    for (int i = 0; i < 4; i++)
        c += (int8_t)(a >> 8 * i) * (int8_t)(b >> 8 * i);
    return c;
}
CUEMU_INLINE unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
    const uint64_t v = (uint64_t)b << 32 | a;
    unsigned r = 0;
    for (int i = 0; i < 4; i++)
        r |= (unsigned)(uint8_t)(v >> 8 * (selector >> 4 * i & 7)) << 8 * i;
    return r;
}
