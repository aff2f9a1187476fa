/* helper_launch.c: launches by type, and comparison within a tolerance. */
#include "launch.h"

#include <math.h>

const int launch_weir_type[LAUNCH_TYPES] = {WEIR_F32, WEIR_F16, WEIR_BF16, WEIR_Q4_0, WEIR_Q4_1, WEIR_Q8_0};

size_t launch_packed_size(int type, int n, int k) {
    return weir_packed_size(launch_weir_type[type], n, k);
}

uint8_t *launch_weights(rng *r, int type, int n, int k) {
    const int weir = launch_weir_type[type];
    uint8_t *made = ref_random_weights(r, weir, n, k), *file = copied(made, ref_row_bytes(weir, k) * (size_t)n);
    free(made);
    return file;
}

void *launch_packed(int type, const void *source, int source_type, int n, int k, int rope_heads, int rope_dim) {
    void *packed = nans(launch_packed_size(type, n, k)), *const slot = packed;
    launch l = {.x = (unsigned)(n + 15) / 16 * 16, .threads = WEIR_CUDA_PACK_THREADS};
    switch (type) {
#define T(name)                                                                                                                            \
    case LAUNCH_##name:                                                                                                                    \
        run_weir_pack_##name(l, source, source_type, &slot, 0, n, k, rope_heads, rope_dim);                                                \
        break;
        WEIR_CUDA_TYPES(T)
#undef T
    }
    return packed;
}

void launch_product(int type, const weir_step *step, void *const *base, int n, int k, const float *x, int rows, float *y, int ldy,
                    int y_rows, int add, int bias, uint64_t bias_offset) {
    launch l = {.x = (unsigned)WEIR_CUDA_DIV(n, WEIR_CUDA_PRODUCT_OUTPUTS),
                .y = (unsigned)WEIR_CUDA_DIV(step->tile, WEIR_CUDA_PRODUCT_ROWS),
                .threads = WEIR_CUDA_PRODUCT_THREADS};
    switch (type) {
#define T(name)                                                                                                                            \
    case LAUNCH_##name:                                                                                                                    \
        run_weir_product_##name(l, step, base, 0, n, k, x, k, rows, y, ldy, y_rows, add, bias, bias_offset);                               \
        break;
        WEIR_CUDA_TYPES(T)
#undef T
    }
}

void assert_near(const float *got, const double *want, size_t n, double tolerance, const char *what) {
    double most = 0;
    for (size_t i = 0; i < n; i++)
        most = fmax(most, fabs(want[i]));
    for (size_t i = 0; i < n; i++)
        if (!(fabs((double)got[i] - want[i]) <= tolerance * (1 + most)))
            fail_msg("%s: value %zu of %zu is %.9g, wanted %.9g (largest %.3g)", what, i, n, (double)got[i], want[i], most);
}
