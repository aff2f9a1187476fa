/* cuemu_sync.h: barriers, shuffles, votes, atomics. Part of cuemu.h. Every collective takes the line it stands in: two lanes of one mask at different lines are
 * reported as divergent. */
#pragma once

CUEMU_INLINE void __syncthreads(int line = __builtin_LINE()) {
    cuemu_syncthreads(line);
}
CUEMU_INLINE void __syncwarp(unsigned mask = ~0u, int line = __builtin_LINE()) {
    cuemu_warp(CUEMU_SYNCWARP, mask, 0, 0, line);
}

template <class T> T cuemu_shfl(unsigned mask, T v, int source, int line) {
    return cuemu::unbits<T>(cuemu_warp(CUEMU_SHFL, mask, cuemu::bits(v), source, line));
}
template <class T> T __shfl_sync(unsigned mask, T v, int source, int width = 32, int line = __builtin_LINE()) {
    const int me = (int)cuemu_lane();
    return cuemu_shfl(mask, v, (me & ~(width - 1)) | (source & (width - 1)), line);
}
template <class T> T __shfl_xor_sync(unsigned mask, T v, int x, int width = 32, int line = __builtin_LINE()) {
    const int me = (int)cuemu_lane(), source = me ^ x;
    return cuemu_shfl(mask, v, source >= (me & ~(width - 1)) + width ? me : source, line);
}
template <class T> T __shfl_down_sync(unsigned mask, T v, unsigned delta, int width = 32, int line = __builtin_LINE()) {
    const int me = (int)cuemu_lane(), source = me + (int)delta;
    return cuemu_shfl(mask, v, (source & ~(width - 1)) != (me & ~(width - 1)) ? me : source, line);
}
template <class T> T __shfl_up_sync(unsigned mask, T v, unsigned delta, int width = 32, int line = __builtin_LINE()) {
    const int me = (int)cuemu_lane(), source = me - (int)delta;
    return cuemu_shfl(mask, v, source < (me & ~(width - 1)) ? me : source, line);
}
/* the twin of kdev.h's, where lanes take turns: one for all shuffles */
template <class Op, int LANES, class T> T kdev_reduce(T v, int line = __builtin_LINE()) {
    return cuemu::unbits<T>(cuemu_butterfly(
        cuemu::bits(v), [](uint64_t a, uint64_t b) { return cuemu::bits(Op::join(cuemu::unbits<T>(a), cuemu::unbits<T>(b))); }, LANES,
        line));
}
CUEMU_INLINE unsigned __ballot_sync(unsigned mask, int p, int line = __builtin_LINE()) {
    return (unsigned)cuemu_warp(CUEMU_BALLOT, mask, p != 0, 0, line);
}
CUEMU_INLINE int __any_sync(unsigned mask, int p, int line = __builtin_LINE()) {
    return __ballot_sync(mask, p, line) != 0;
}
CUEMU_INLINE int __all_sync(unsigned mask, int p, int line = __builtin_LINE()) {
    return __ballot_sync(mask, p, line) == mask;
}
CUEMU_INLINE unsigned __activemask() {
    return cuemu_livemask();
}
CUEMU_INLINE unsigned __reduce_add_sync(unsigned mask, unsigned v, int line = __builtin_LINE()) {
    return (unsigned)cuemu_warp(CUEMU_ADD, mask, v, 0, line);
}
CUEMU_INLINE unsigned __reduce_min_sync(unsigned mask, unsigned v, int line = __builtin_LINE()) {
    return (unsigned)cuemu_warp(CUEMU_MIN, mask, v, 0, line);
}
CUEMU_INLINE unsigned __reduce_max_sync(unsigned mask, unsigned v, int line = __builtin_LINE()) {
    return (unsigned)cuemu_warp(CUEMU_MAX, mask, v, 0, line);
}
template <class T> unsigned __match_any_sync(unsigned mask, T v, int line = __builtin_LINE()) {
    return (unsigned)cuemu_warp(CUEMU_MATCH, mask, cuemu::bits(v), 0, line);
}
/* a block runs on one OS thread, and atomics are real ones */
#define __threadfence() ((void)0)
#define __threadfence_block() ((void)0)
#define __trap() cuemu_trap("__trap", __LINE__)

/* ---- atomics: relaxed, as on the device; blocks of other streams run at the same time ---- */

template <class T, class F> T cuemu_rmw(T *p, F change) {
    using U = std::conditional_t<sizeof(T) == 8, uint64_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint16_t>>;
    U old = __atomic_load_n((U *)p, __ATOMIC_RELAXED), next;
    do {
        T t;
        memcpy(&t, &old, sizeof t);
        t = change(t);
        memcpy(&next, &t, sizeof t);
    } while (!__atomic_compare_exchange_n((U *)p, &old, next, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    T t;
    memcpy(&t, &old, sizeof t);
    return t;
}
#define CUEMU_ATOMIC(name, expression)                                                                                                     \
    template <class T> T name(T *p, std::common_type_t<T> v) {                                                                             \
        return cuemu_rmw(p, [v](T a) -> T { return expression; });                                                                         \
    }
CUEMU_ATOMIC(atomicAdd, (T)(a + v))
CUEMU_ATOMIC(atomicSub, (T)(a - v))
CUEMU_ATOMIC(atomicAnd, (T)(a &v))
CUEMU_ATOMIC(atomicOr, (T)(a | v))
CUEMU_ATOMIC(atomicXor, (T)(a ^ v))
CUEMU_ATOMIC(atomicMax, a > v ? a : v)
CUEMU_ATOMIC(atomicMin, a < v ? a : v)
CUEMU_ATOMIC(atomicExch, ((void)a, v))
#undef CUEMU_ATOMIC
template <class T> T atomicCAS(T *p, std::common_type_t<T> expected, std::common_type_t<T> v) {
    return cuemu_rmw(p, [expected, v](T a) -> T { return a == expected ? v : a; });
}

/* ---- tensor core: each lane passes its fragments, the last lane to arrive computes all ---- */

struct cuemu_mma_arg {
    float *d;
    const unsigned *a, *b;
};
CUEMU_INLINE void kdev_mma_m16n8k16_f16f32(float d[4], const unsigned a[4], const unsigned b[2], int line = __builtin_LINE()) {
    cuemu_mma_arg arg{d, a, b};
    cuemu_warp(CUEMU_MMA, ~0u, (uint64_t)(uintptr_t)&arg, 0, line);
}
