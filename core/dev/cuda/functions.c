/* functions.c: the table of functions.h. */
#include "functions.h"

#define WEIR_SIZE(T, n) sizeof(T),
#define WEIR_COUNT(T, n) +1
#define K(name, ...)                                                                                                                       \
    _Static_assert(sizeof(name##_args) <= WEIR__CUDA_MAX_ARGS, #name);                                                                     \
    _Static_assert(0 WEIR_CUDA_EACH(WEIR_COUNT, __VA_ARGS__) <= WEIR__CUDA_MAX_PARAMETERS, #name);
WEIR_CUDA_KERNELS(K)
#undef K

const weir__cuda_signature weir__cuda_signatures[WEIR__CUDA_FUNCTIONS] = {
#define K(name, ...) {#name, {WEIR_CUDA_EACH(WEIR_SIZE, __VA_ARGS__) 0}},
    WEIR_CUDA_KERNELS(K)
#undef K
};

unsigned weir__cuda_parameters(enum weir__cuda_function f, void *args, void *to[WEIR__CUDA_MAX_PARAMETERS]) {
    const uint8_t *size = weir__cuda_signatures[f].size;
    unsigned n = 0;
    for (size_t at = 0; size[n]; at += size[n++]) {
        at = (at + size[n] - 1) / size[n] * size[n];
        to[n] = (char *)args + at;
    }
    return n;
}
