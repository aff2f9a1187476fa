/* cuemu_types.h: CUDA's vector types, and values as bits. Part of cuemu.h. */
#pragma once

#define CUEMU_VEC(T, n)                                                                                                                    \
    struct alignas(sizeof(T) * 2) n##2 {                                                                                                   \
        T x, y;                                                                                                                            \
    };                                                                                                                                     \
    struct n##3 {                                                                                                                          \
        T x, y, z;                                                                                                                         \
    };                                                                                                                                     \
    struct alignas(sizeof(T) * 4 > 16 ? 16 : sizeof(T) * 4) n##4 {                                                                         \
        T x, y, z, w;                                                                                                                      \
    };                                                                                                                                     \
    CUEMU_INLINE n##2 make_##n##2(T x, T y) {                                                                                              \
        return {x, y};                                                                                                                     \
    }                                                                                                                                      \
    CUEMU_INLINE n##3 make_##n##3(T x, T y, T z) {                                                                                         \
        return {x, y, z};                                                                                                                  \
    }                                                                                                                                      \
    CUEMU_INLINE n##4 make_##n##4(T x, T y, T z, T w) {                                                                                    \
        return {x, y, z, w};                                                                                                               \
    }
CUEMU_VEC(float, float)
CUEMU_VEC(double, double)
CUEMU_VEC(int, int)
CUEMU_VEC(unsigned, uint)
CUEMU_VEC(long long, longlong)
CUEMU_VEC(signed char, char)
CUEMU_VEC(unsigned char, uchar)
CUEMU_VEC(short, short)
CUEMU_VEC(unsigned short, ushort)
#undef CUEMU_VEC

struct dim3 {
    unsigned x = 1, y = 1, z = 1;
};

namespace cuemu {
template <class T> uint64_t bits(T v) {
    static_assert(sizeof(T) <= 8, "at most 8 bytes");
    uint64_t u = 0;
    memcpy(&u, &v, sizeof v);
    return u;
}
template <class T> T unbits(uint64_t u) {
    T v;
    memcpy(&v, &u, sizeof v);
    return v;
}
} // namespace cuemu
