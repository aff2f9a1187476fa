/* work.h: what a recorded kernel becomes on this device: launches and library products with their arguments, bound once. How many rows a run has decides which of
 * them are taken and how large their grids are; nothing else is decided after binding. Knows no stream. */
#ifndef WEIR_DEV_CUDA_WORK_H
#define WEIR_DEV_CUDA_WORK_H

#include "functions.h"

#include "../device.h"

enum { WEIR__CUDA_FEW_ROWS = 16 };   /* up to so many rows products read packed weights; more go through tiles of floats */
enum { WEIR__CUDA_FEW_QUERIES = 8 }; /* up to so many rows attention is split over the context */

/* What a size is counted in. */
enum weir__cuda_count { WEIR__CUDA_ONE, WEIR__CUDA_ROWS, WEIR__CUDA_OUTPUTS, WEIR__CUDA_SPLITS };

typedef struct weir__cuda_dim {
    enum weir__cuda_count count;
    uint32_t per, times; /* times * (count / per, rounded up); ONE: times */
} weir__cuda_dim;

/* Taken only in runs with at least / at most so many of `count`. */
typedef struct weir__cuda_when {
    enum weir__cuda_count count;
    int32_t least, most;
} weir__cuda_when;

typedef struct weir__cuda_launch {
    enum weir__cuda_function function;
    uint32_t threads, shared;
    weir__cuda_dim grid[3];
    _Alignas(8) unsigned char args[WEIR__CUDA_MAX_ARGS];
} weir__cuda_launch;

/* y[m][n] = (y +) x[m][k] w[n][k]^T, row-major, by cuBLAS. */
typedef struct weir__cuda_gemm {
    uint64_t x, w, y;
    int32_t n, k, ldx, ldy;
    enum weir__cuda_count m;
    bool f16, add; /* x and w are f16; else f32 */
} weir__cuda_gemm;

typedef struct weir__cuda_work {
    weir__cuda_when when;
    bool is_gemm;
    union {
        weir__cuda_launch launch;
        weir__cuda_gemm gemm;
    };
} weir__cuda_work;

/* A bound kernel of a list. Immutable; counted by the list's items. */
typedef struct weir__cuda_op {
    _Atomic uint32_t refs;
    weir_system *system;
    uint32_t count, room;
    weir__cuda_work work[];
} weir__cuda_op;

uint32_t weir__cuda_size(weir__cuda_dim d, const weir__shape *shape);
int32_t weir__cuda_counted(enum weir__cuda_count count, const weir__shape *shape);
bool weir__cuda_taken(const weir__cuda_work *w, const weir__shape *shape);

/* Binds a kernel's arguments (weir_k_*); blas: there is cuBLAS. Returns NULL and *out, or a static text that says why there is nothing for this shape. ENOMEM is
 * the text "no memory". */
const char *weir__cuda_bind(weir_system *s, bool blas, enum weir_kernel kernel, const void *args, weir__cuda_op **out);
weir__cuda_op *weir__cuda_op_ref(weir__cuda_op *op);
void weir__cuda_op_unref(weir__cuda_op *op);

/* Bytes of the workspaces of weir_k_matmul and weir_k_glu, of attention and of sampling. */
size_t weir__cuda_product_workspace(int32_t rows, int32_t n, int32_t k);
size_t weir__cuda_attention_workspace(int32_t rows, int32_t heads, int32_t dim, int32_t splits);
size_t weir__cuda_sample_workspace(int32_t rows, int32_t vocab);

#endif
