/* level.h: one source, compiled once per instruction-set level. WEIR_LEVEL (generic, avx2, avx512, vnni) becomes part of every name that leaves
 * the object, everything else in it is static, so that no function of one level can be linked into another. */
#ifndef WEIR_CPU_LEVEL_H
#define WEIR_CPU_LEVEL_H

#include "layout.h"

#define WEIR__PASTE2(a, b) a##_##b
#define WEIR__PASTE(a, b) WEIR__PASTE2(a, b)
#ifdef WEIR_LEVEL
#define WEIR__AT(name) WEIR__PASTE(weir__##name, WEIR_LEVEL)
#endif

/* Every kernel at every level; a level that is not compiled in is not defined, nor used. tile, rope_table, pack and pack_vector are generic only. */
#define K(name) weir_kernel_fn weir__##name##_generic, weir__##name##_avx2, weir__##name##_avx512, weir__##name##_vnni;
WEIR_KERNELS(K)
#undef K

/* What output c of the current output tile is drawn from: the candidates, in the workspace of worker 0, and how many. Not greedy. For tests, which compare
 * kept sets; the kernel `sample` draws from the same. */
typedef int weir__sample_keep_fn(const weir_k_sample *a, int c, const candidate **kept);
weir__sample_keep_fn weir__sample_keep_generic, weir__sample_keep_avx2, weir__sample_keep_avx512;

/* Functions of n floats, as the kernels compute them. For tests. */
typedef void weir__map_fn(const float *x, float *y, int n);
weir__map_fn weir__exp_generic, weir__exp_avx2, weir__exp_avx512, weir__silu_generic, weir__silu_avx2, weir__silu_avx512;
weir__map_fn weir__tanh_generic, weir__tanh_avx2, weir__tanh_avx512, weir__gelu_generic, weir__gelu_avx2, weir__gelu_avx512;

#define INLINE static inline __attribute__((always_inline))
/* Loops over arrays that must stay in registers; the generic level has none to spare, and under sanitizers every step of an unrolled loop would be checked by
 * code of its own, which takes compilers minutes. */
#if defined(__SANITIZE_ADDRESS__)
#define WEIR__SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WEIR__SANITIZED
#endif
#endif
#if defined(WEIR__SANITIZED) || (!defined(WEIR_VEC_AVX2) && !defined(WEIR_VEC_AVX512))
#define UNROLL
#elif defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

#endif
