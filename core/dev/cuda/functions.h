/* functions.h: the device kernels as the host sees them, made from the one list of kernels (kernels/cuda/list.h): numbers, names, argument structs and where each
 * parameter lies in its struct. Knows no driver. */
#ifndef WEIR_DEV_CUDA_FUNCTIONS_H
#define WEIR_DEV_CUDA_FUNCTIONS_H

#include "../../../kernels/cuda/list.h"
#include "../../../kernels/kernels.h"

#define PTR(T) uint64_t
#define WEIR_FIELD(T, n) T n;
#define K(name, ...)                                                                                                                       \
    typedef struct name##_args {                                                                                                           \
        WEIR_CUDA_EACH(WEIR_FIELD, __VA_ARGS__)                                                                                            \
    } name##_args;
WEIR_CUDA_KERNELS(K)
#undef K
#undef WEIR_FIELD

enum weir__cuda_function {
#define K(name, ...) WEIR__CUDA_##name,
    WEIR_CUDA_KERNELS(K)
#undef K
        WEIR__CUDA_FUNCTIONS
};

enum { WEIR__CUDA_MAX_PARAMETERS = 20, WEIR__CUDA_MAX_ARGS = 160 }; /* bytes; both are checked against every kernel */

/* Parameters are scalars of 4 or 8 bytes, each aligned to its size, so that sizes say where they lie. */
typedef struct weir__cuda_signature {
    const char *name;
    uint8_t size[WEIR__CUDA_MAX_PARAMETERS + 1]; /* bytes of each parameter; 0 after the last */
} weir__cuda_signature;
extern const weir__cuda_signature weir__cuda_signatures[WEIR__CUDA_FUNCTIONS];

/* Where the parameters of a function lie in its arguments, as the driver wants it; returns their number. */
unsigned weir__cuda_parameters(enum weir__cuda_function f, void *args, void *to[WEIR__CUDA_MAX_PARAMETERS]);

#endif
