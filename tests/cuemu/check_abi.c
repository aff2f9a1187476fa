/* check_abi.c: compiled, never run, where the toolkit's headers are: every constant, prototype and struct of abi.h agrees with them. */
#include <cublas_v2.h>
#include <cuda.h>

#define WEIR_CUDA_ABI_CHECK
#include "core/dev/cuda/abi.h"

/* cuda.h maps it to _v2 (12.8 and later); weir uses the symbol that every driver exports */
#undef cuEventElapsedTime
CUresult cuEventElapsedTime(float *, CUevent, CUevent);

#define CHECK_CONSTANT(name, value) _Static_assert((int)name == (value), #name);
WEIR_CUDA_ERRORS(CHECK_CONSTANT)
WEIR_CUDA_CONSTANTS(CHECK_CONSTANT)
WEIR_CUBLAS_CONSTANTS(CHECK_CONSTANT)

#define CHECK_DRIVER(name, symbol, parameters)                                                                                             \
    extern CUresult(*const check_##name) parameters;                                                                                       \
    CUresult(*const check_##name) parameters = symbol;
WEIR_CUDA_FUNCTIONS(CHECK_DRIVER)
#define CHECK_CUBLAS(name, symbol, parameters)                                                                                             \
    extern cublasStatus_t(*const check_cublas_##name) parameters;                                                                          \
    cublasStatus_t(*const check_cublas_##name) parameters = symbol;
WEIR_CUBLAS_FUNCTIONS(CHECK_CUBLAS)

_Static_assert(sizeof(CUDA_KERNEL_NODE_PARAMS) == 72, "kernel node parameters");
