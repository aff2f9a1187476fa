/* cuemu.h: CUDA kernel source as plain C++17 on the CPU, for tests. One fiber per CUDA thread; a block runs on one OS thread, so __shared__ is
 * thread_local. Kernels include it through kdev.h; the scheduler is in simt.cpp. Knows the language, no driver. */
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

/* these collide with libstdc++ headers, so the runtime does without them */
#ifndef CUEMU_RUNTIME
#define __host__
#define __device__
#define __global__
#define __constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __restrict__ __restrict
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))
#define __shared__ thread_local /* block scope: static is implied */
#endif
#define CUEMU_INLINE static inline __attribute__((always_inline, unused))

#include "cuemu_types.h"

/* ---- the runtime's interface: libcuda.so.1 of the emulator ---- */

struct cuemu_thread {
    uint3 tid;
    const dim3 *bdim, *gdim;
    const uint3 *bid;
    void *dyn; /* the block's dynamic shared memory */
};
struct cuemu_param {
    uint32_t size;
    char kind; /* p pointer, r pointer to const, i signed, u unsigned, f float, s other */
};
struct cuemu_kernel {
    const char *name;
    void (*call)(void **arguments);
    void (*touch)(); /* forces the library's TLS block into being on this thread */
    const cuemu_param *params;
    int count;
    const void *module; /* an address inside the library */
    cuemu_kernel *next;
};
enum cuemu_op {
    CUEMU_SYNCWARP,
    CUEMU_SHFL,
    CUEMU_BALLOT,
    CUEMU_ADD,
    CUEMU_MIN,
    CUEMU_MAX,
    CUEMU_AND,
    CUEMU_OR,
    CUEMU_XOR,
    CUEMU_MATCH,
    CUEMU_MMA,
    CUEMU_BUTTERFLY
};

extern "C" {
/* const: the same for the life of a CUDA thread, so that calls are hoisted */
cuemu_thread *cuemu_me(void) __attribute__((const));
void cuemu_syncthreads(int line);
uint64_t cuemu_warp(int op, uint32_t mask, uint64_t value, int source, int line); /* collective over the lanes in mask */
/* v = join(v, of lane ^ o) for o = width / 2, ..., 1: width shuffles at once, over a whole warp */
uint64_t cuemu_butterfly(uint64_t value, uint64_t (*join)(uint64_t, uint64_t), int width, int line);
unsigned cuemu_lane(void);
uint32_t cuemu_livemask(void);
void cuemu_trap(const char *what, int line);
void cuemu_register(cuemu_kernel *);
uint64_t cuemu_untag(const void *p);
}

#define threadIdx (cuemu_me()->tid)
#define blockIdx (*cuemu_me()->bid)
#define blockDim (*cuemu_me()->bdim)
#define gridDim (*cuemu_me()->gdim)
static const int warpSize __attribute__((unused)) = 32;
#define KDEV_DYN_SHARED(T, name) T *const name = reinterpret_cast<T *>(cuemu_me()->dyn)
#define KDEV_PTR(p) (reinterpret_cast<std::remove_cv_t<std::remove_reference_t<decltype(p)>>>(cuemu_untag(p)))

/* ---- registration of a kernel: its name, its parameters, a call with untyped arguments ---- */

namespace cuemu {
template <class T> constexpr char kind() {
    if (std::is_pointer<T>::value)
        return std::is_const<std::remove_pointer_t<T>>::value ? 'r' : 'p';
    if (std::is_floating_point<T>::value)
        return 'f';
    return std::is_unsigned<T>::value ? 'u' : std::is_integral<T>::value ? 'i' : 's';
}

template <class F, F *f> struct reg;
template <class... A, void (*f)(A...)> struct reg<void(A...), f> {
    template <size_t... I> static void go(void **a, std::index_sequence<I...>) {
        f(*static_cast<std::remove_cv_t<std::remove_reference_t<A>> *>(a[I])...);
    }
    static void call(void **a) { go(a, std::index_sequence_for<A...>()); }
    static void touch() {
        static thread_local volatile char t __attribute__((unused));
        t = 1;
    }
    cuemu_kernel k;
    explicit reg(const char *name) {
        static const cuemu_param params[] = {{(uint32_t)sizeof(A), kind<A>()}..., {0, 0}};
        static const char anchor = 0;
        k = {name, call, touch, params, (int)sizeof...(A), &anchor, nullptr};
        cuemu_register(&k);
    }
};
} // namespace cuemu
#define KDEV_EXPORT(fn) static cuemu::reg<decltype(fn), &fn> cuemu_reg_##fn(#fn);

#include "cuemu_half.h"
#include "cuemu_math.h"
#include "cuemu_sync.h"
