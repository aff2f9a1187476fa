/* list.c: the kernels by name, the sizes of their arguments, and the sizes of their workspaces. Knows no instruction set. */
#include "kernels.h"

#include "cpu/layout.h"

#define K(name) _Static_assert(sizeof(weir_k_##name) <= WEIR_KERNEL_MAX_ARGS, "the arguments of " #name " do not fit a list's item");
WEIR_KERNELS(K)
#undef K

static const struct kernel {
    const char *name;
    size_t args;
} kernels[WEIR_KERNEL_COUNT] = {
#define K(name) {#name, sizeof(weir_k_##name)},
    WEIR_KERNELS(K)
#undef K
};

const char *weir_kernel_name(int kernel) {
    return kernel >= 0 && kernel < WEIR_KERNEL_COUNT ? kernels[kernel].name : NULL;
}

size_t weir_kernel_args_size(int kernel) {
    return kernel >= 0 && kernel < WEIR_KERNEL_COUNT ? kernels[kernel].args : 0;
}

size_t weir_attention_workspace(int heads, int dim, int splits) {
    return (size_t)PARTIAL_ROWS * (size_t)heads * (size_t)splits * partial_floats(dim) * sizeof(float);
}

size_t weir_sample_workspace(int vocab) {
    return pad16((size_t)vocab) * (sizeof(candidate) + sizeof(float) + sizeof(int32_t));
}
