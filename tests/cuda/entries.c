/* entries.c: see entries.h. */
#include "entries.h"

#include "../../kernels/cuda/list.h"

#include <stddef.h>
#include <string.h>

#define PTR(T) uint64_t
#define PARAMETER(T, n) {#n, sizeof(T)},
#define K(name, ...) {#name, {WEIR_CUDA_EACH(PARAMETER, __VA_ARGS__)}},
const entry entries[] = {WEIR_CUDA_KERNELS(K){NULL, {{NULL, 0}}}};
#undef K

const entry entry_gemm = {"cublasGemmEx",
                          {{"transa", 4},
                           {"transb", 4},
                           {"m", 4},
                           {"n", 4},
                           {"k", 4},
                           {"alpha", 4},
                           {"A", 8},
                           {"Atype", 4},
                           {"lda", 4},
                           {"B", 8},
                           {"Btype", 4},
                           {"ldb", 4},
                           {"beta", 4},
                           {"C", 8},
                           {"Ctype", 4},
                           {"ldc", 4},
                           {"computeType", 4},
                           {"algo", 4}}};

const entry *entry_find(const char *name) {
    for (const entry *e = entries; e->name; e++)
        if (strcmp(e->name, name) == 0)
            return e;
    return NULL;
}
