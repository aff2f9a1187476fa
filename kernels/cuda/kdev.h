/* kdev.h: what a .cu file is written against: device code under nvcc, plain C++ on the emulator's threads elsewhere. Owns every line of PTX, each in a wrapper that
 * cuemu.h has a twin of. Knows no kernel. */
#ifndef WEIR_KERNELS_CUDA_KDEV_H
#define WEIR_KERNELS_CUDA_KDEV_H

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

/* Dynamic shared memory: one base array, seen as T. */
#define KDEV_DYN_SHARED(T, name)                                                                                                           \
    extern __shared__ __align__(16) unsigned char kdev_dynamic_shared[];                                                                   \
    T *const name = reinterpret_cast<T *>(kdev_dynamic_shared)
#define KDEV_PTR(p) (p)     /* around every device pointer that was itself loaded from device memory */
#define KDEV_EXPORT(kernel) /* registration: the emulator's alone */

/* Joins the values of each LANES neighbouring lanes of a whole warp, a power of two, by a butterfly: all of them get the same bits if join(a, b) = join(b, a). */
template <class Op, int LANES, class T> static __device__ __forceinline__ T kdev_reduce(T v) {
#pragma unroll
    for (int o = LANES / 2; o > 0; o >>= 1)
        v = Op::join(v, __shfl_xor_sync(0xffffffffu, v, o));
    return v;
}

/* d += a b, 16 x 8 x 16: fragments as the PTX manual lays out mma.m16n8k16 for .f16 with .f32 sums. Before sm_80 by two of m16n8k8. */
static __device__ __forceinline__ void kdev_mma_m16n8k16_f16f32(float d[4], const unsigned a[4], const unsigned b[2]) {
#if __CUDA_ARCH__ >= 800
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5},{%6},{%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(b[0]));
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5},{%6},{%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[2]), "r"(a[3]), "r"(b[1]));
#endif
}
#else
#include "cuemu.h"
#endif

#endif
