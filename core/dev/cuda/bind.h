/* bind.h: shared by bind.c and products.c: an op while it is made. */
#ifndef WEIR_DEV_CUDA_BIND_H
#define WEIR_DEV_CUDA_BIND_H

#include "work.h"

#include <stdatomic.h>

typedef struct weir__binder {
    weir_system *system;
    bool blas;
    weir__cuda_when when; /* of what is added next */
    weir__cuda_op *op;    /* NULL: nothing was added yet */
    const char *why;      /* not NULL: nothing can be bound */
} weir__binder;

#define WEIR__CUDA_ALWAYS ((weir__cuda_when){WEIR__CUDA_ONE, 0, INT32_MAX})

weir__cuda_work *weir__cuda_more(weir__binder *b); /* NULL: no memory, b->why says so */
void weir__cuda_add(weir__binder *b, enum weir__cuda_function f, const void *args, size_t size, uint32_t threads, weir__cuda_dim x,
                    weir__cuda_dim y);
weir__cuda_dim weir__cuda_fixed(int64_t n);
weir__cuda_dim weir__cuda_per(enum weir__cuda_count count, uint32_t per); /* count / per, rounded up */
enum weir__cuda_count weir__cuda_rows_of(int32_t rows);                   /* enum weir_rows */
uint64_t weir__cuda_address(const void *p);
int weir__cuda_type(int32_t type); /* its place in WEIR_CUDA_TYPES; -1: not on this device */

/* products.c */
void weir__cuda_bind_matmul(weir__binder *b, const weir_k_matmul *k);
void weir__cuda_bind_glu(weir__binder *b, const weir_k_glu *k);

#endif
