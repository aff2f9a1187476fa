/* launch.h: runs device kernels in this process, on the emulator's threads: a function run_<kernel> for every kernel of list.h, with its parameters, and grids as list.h
 * says. Pointers are plain memory. Knows no driver. */
#ifndef WEIR_TEST_LAUNCH_H
#define WEIR_TEST_LAUNCH_H

#include "../kernels/helper_kernels.h"
#include "../kernels/helper_reference.h"

#include "../../kernels/cuda/list.h"

typedef uint16_t __half;

typedef struct launch {
    unsigned x, y, z, threads;
    size_t shared;
} launch;

/* Fails the test if the emulator finds a fault: divergence, a deadlock, a kernel or a number of arguments that is not there. */
void launch_kernel(const char *name, launch l, void **args, int count);
const char *launch_error(const char *name, const unsigned *grid, unsigned threads, size_t shared, void **args, int count); /* launch.cpp */
int launch_reverse(int on); /* blocks and threads in reverse order; returns what was */

#define PTR(T) T *
#define LAUNCH_ADDRESS(T, n) (void *)&n,
#define K(name, ...)                                                                                                                       \
    static inline void run_##name(launch l, WEIR_CUDA_PARAMETERS(__VA_ARGS__)) {                                                           \
        void *args[] = {WEIR_CUDA_EACH(LAUNCH_ADDRESS, __VA_ARGS__)};                                                                      \
        launch_kernel(#name, l, args, (int)(sizeof args / sizeof *args));                                                                  \
    }
WEIR_CUDA_KERNELS(K)
#undef K

/* ---- a type's kernels by its name ---- */

#define LAUNCH_TYPE(name) LAUNCH_##name,
enum launch_type { WEIR_CUDA_TYPES(LAUNCH_TYPE) LAUNCH_TYPES };
extern const int launch_weir_type[LAUNCH_TYPES]; /* enum weir_type */

/* Packs a file's rows on the device; free(). */
void *launch_packed(int type, const void *source, int source_type, int n, int k, int rope_heads, int rope_dim);
size_t launch_packed_size(int type, int n, int k); /* with n padded to 16 */

void launch_product(int type, const weir_step *step, void *const *base, int n, int k, const float *x, int rows, float *y, int ldy,
                    int y_rows, int add, int bias, uint64_t bias_offset);

/* |got - want| <= tolerance * (1 + the largest |want|), everywhere. */
void assert_near(const float *got, const double *want, size_t n, double tolerance, const char *what);

#endif
