/* kernels.cu: all kernels as one unit: one fat binary under nvcc, one shared library for the emulator. Their prototypes come from list.h, so that a definition that
 * disagrees with it does not compile. */
#include "common.h"

#define PTR(T) T *
#define K(name, ...) extern "C" __global__ void name(WEIR_CUDA_PARAMETERS(__VA_ARGS__));
WEIR_CUDA_KERNELS(K)
#undef K

#include "product.cu"

#include "rows.cu"

#include "rope.cu"

#include "attention.cu"
#include "attention_tiled.cu"

#include "many.cu"
#include "pack.cu"
#include "sample.cu"

#define K(name, ...) KDEV_EXPORT(name)
WEIR_CUDA_KERNELS(K)
#undef K
