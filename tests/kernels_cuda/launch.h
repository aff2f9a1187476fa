/* launch.h: runs device kernels by the driver: a function run_<kernel> for every kernel of list.h, with its parameters, and grids as list.h says. Tests see host memory
 * only: a launch takes what its pointers lead to, also those in a step block and behind a base, to the device, and brings it back. Knows no kernel's meaning. */
#ifndef WEIR_TEST_LAUNCH_H
#define WEIR_TEST_LAUNCH_H

#include "../kernels/helper_kernels.h"
#include "../kernels/helper_reference.h"

#include "../../kernels/cuda/list.h"

typedef uint16_t __half;

/* For cmocka_run_group_tests. libcuda.so.1 is the device's, or the emulated one with LD_LIBRARY_PATH=BUILD/cuemu. */
int launch_open(void **state);
int launch_close(void **state);
#define launch_test(f) cmocka_unit_test_teardown(f, arrays_end)

/* ---- arrays: the only memory that kernels can be given. Theirs for just these bytes, the host's as `zeroed` of helper_kernels.h says; until arrays_end ---- */

void *zeros(size_t bytes);
void *nans(size_t bytes); /* every float and half in it is one */
void *copied(const void *source, size_t bytes);
int arrays_end(void **state);

/* ---- launches ---- */

typedef struct launch {
    unsigned x, y, z, threads;
    size_t shared;
} launch;

enum launch_kind { LAUNCH_VALUE, LAUNCH_ARRAY, LAUNCH_STEP, LAUNCH_UNIT };

typedef struct launch_arg {
    enum launch_kind kind;
    void *at; /* of the argument */
} launch_arg;

/* NULL, or why it failed: the driver's error, a pointer into no array, bytes beside an array that were written. Valid until the next call. */
const char *launch_try(const char *name, launch l, const launch_arg *args, int count);
void launch_kernel(const char *name, launch l, const launch_arg *args, int count); /* fails the test then */
size_t launch_zone(void);                                                          /* bytes on each side of an array that are watched */
void launch_reverse(bool on); /* blocks and threads in reverse order, where the emulator chooses it; a device has an order of its own */

#define PTR(T) T *
// clang-format off
#define LAUNCH_KIND(n) \
    _Generic((n), int32_t: LAUNCH_VALUE, uint64_t: LAUNCH_VALUE, float: LAUNCH_VALUE, double: LAUNCH_VALUE, weir_step *: LAUNCH_STEP, \
             const weir_step *: LAUNCH_STEP, void *const *: LAUNCH_UNIT, default: LAUNCH_ARRAY)
// clang-format on
#define LAUNCH_ARG(T, n) {LAUNCH_KIND(n), (void *)&n},
#define K(name, ...)                                                                                                                       \
    static inline void run_##name(launch l, WEIR_CUDA_PARAMETERS(__VA_ARGS__)) {                                                           \
        const launch_arg args[] = {WEIR_CUDA_EACH(LAUNCH_ARG, __VA_ARGS__)};                                                               \
        launch_kernel(#name, l, args, (int)(sizeof args / sizeof *args));                                                                  \
    }
WEIR_CUDA_KERNELS(K)
#undef K

/* ---- a type's kernels by its name ---- */

#define LAUNCH_TYPE(name) LAUNCH_##name,
enum launch_type { WEIR_CUDA_TYPES(LAUNCH_TYPE) LAUNCH_TYPES };
extern const int launch_weir_type[LAUNCH_TYPES]; /* enum weir_type */

/* Packs a file's rows, of which `source` is an array, on the device: an array. */
void *launch_packed(int type, const void *source, int source_type, int n, int k, int rope_heads, int rope_dim);
size_t launch_packed_size(int type, int n, int k);       /* with n padded to 16 */
uint8_t *launch_weights(rng *r, int type, int n, int k); /* random ones as in a file: an array */

void launch_product(int type, const weir_step *step, void *const *base, int n, int k, const float *x, int rows, float *y, int ldy,
                    int y_rows, int add, int bias, uint64_t bias_offset);

/* |got - want| <= tolerance * (1 + the largest |want|), everywhere. For sums alone, which are taken in another order than what they are compared with: all else has the
 * cpu's bits, on a device too (README.md). */
void assert_near(const float *got, const double *want, size_t n, double tolerance, const char *what);
#define NEAR_SUM 2e-5   /* floats of up to 2048 products, or 640 positions, against doubles */
#define NEAR_GATED 5e-5 /* two of those, and a polynomial for exp */
#define NEAR_SUM_F16                                                                                                                       \
    3e-3               /* of operands that were rounded to halves, 2^-12 of each; tensor cores may also round sums in a way of their own */
#define NEAR_NORM 1e-6 /* a sum of squares in another order than the cpu's: some ulp of the scale */
#define NEAR_NORM_F16 1e-3 /* such a value as a half: the ulp of a half, where it lay between two */

#endif
