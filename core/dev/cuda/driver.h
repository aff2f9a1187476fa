/* driver.h: the CUDA driver and cuBLAS as tables of functions, reached by dlopen: one binary runs with and without a GPU. Knows no device of weir. */
#ifndef WEIR_DEV_CUDA_DRIVER_H
#define WEIR_DEV_CUDA_DRIVER_H

#include "abi.h"

#define WEIR_CUDA_MEMBER(name, symbol, parameters) CUresult(*name) parameters;
typedef struct weir__cuda_driver {
    void *library; /* NULL: not open */
    WEIR_CUDA_FUNCTIONS(WEIR_CUDA_MEMBER)
} weir__cuda_driver;
#undef WEIR_CUDA_MEMBER

#define WEIR_CUDA_MEMBER(name, symbol, parameters) cublasStatus_t(*name) parameters;
typedef struct weir__cublas {
    void *library; /* NULL: not open */
    WEIR_CUBLAS_FUNCTIONS(WEIR_CUDA_MEMBER)
} weir__cublas;
#undef WEIR_CUDA_MEMBER

/* Open libcuda.so.1; libcublas.so.13, or .12 where that is not there. True: every function of the table is there. False: the table is zeroed and why
 * (of size bytes) names the library, and the symbol it lacks. Any thread; nothing of CUDA is initialised by it. */
_Bool weir__cuda_driver_open(weir__cuda_driver *driver, char *why, size_t size);
_Bool weir__cublas_open(weir__cublas *blas, char *why, size_t size);
/* No object of the library may be left. A table that is not open: does nothing. */
void weir__cuda_driver_close(weir__cuda_driver *driver);
void weir__cublas_close(weir__cublas *blas);

/* The name of a code, as in abi.h: static; "unknown error" for one that is not there. */
const char *weir__cuda_error_text(CUresult code);
const char *weir__cublas_error_text(cublasStatus_t status);

#endif
