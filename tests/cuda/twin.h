/* twin.h: the second way from a recorded kernel to launches: at the time of a launch it makes the entry point's name, looks the function up by it, finds each
 * parameter by its key, and reckons the grid from the shape of the run. It shares no code with the device's binder, which has done all of that before; so both must
 * come to the same calls. Knows no list, no stream of weir's and no recording. */
#ifndef WEIR_TEST_TWIN_H
#define WEIR_TEST_TWIN_H

#include "../../core/dev/cuda/driver.h"
#include "../../kernels/kernels.h"

typedef struct twin {
    CUresult (*get_function)(CUfunction *, CUmodule, const char *);
    CUresult (*launch)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void **, void **);
    const weir__cublas *blas; /* NULL: products of many rows by own kernels */
    CUmodule module;
    CUstream stream;
    cublasHandle_t handle;
    int32_t rows, outputs, positions; /* the shape of the run */
    char why[160];                    /* what could not be launched; "": nothing */
} twin;

void twin_launch(twin *t, enum weir_kernel kernel, const void *args);

/* ---- shared by the twin's files ---- */

/* A launch while it is put together: values by their keys. */
typedef struct twin_call {
    char name[64];
    unsigned grid[3], threads, shared;
    struct {
        const char *key;
        uint64_t bits;
        unsigned size;
    } values[24];
    unsigned count;
} twin_call;

twin_call twin_begin(const char *family, const char *first, const char *second); /* "weir_FAMILY_FIRST_SECOND"; NULL: left out */
void twin_pointer(twin_call *l, const char *key, const void *p);
void twin_address(twin_call *l, const char *key, uint64_t p);
void twin_int(twin_call *l, const char *key, int32_t value);
void twin_offset(twin_call *l, const char *key, uint64_t value);
void twin_float(twin_call *l, const char *key, float value);
void twin_double(twin_call *l, const char *key, double value);
/* Launches; nothing if the grid is empty. */
void twin_end(twin *t, twin_call *l, int64_t x, int64_t y, int64_t z, unsigned threads);

int64_t twin_over(int64_t n, int64_t of);          /* n / of, rounded up */
int32_t twin_rows(const twin *t, int32_t rows);    /* how many a kernel runs over, by its enum weir_rows */
const char *twin_type(twin *t, int32_t type);      /* the name of a weight type as the last part of an entry point's */
void twin_matmul(twin *t, const weir_k_matmul *k); /* twin_products.c, with the next */
void twin_glu(twin *t, const weir_k_glu *k);

#endif
