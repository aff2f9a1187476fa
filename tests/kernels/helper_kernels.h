/* helper_kernels.h: what the kernel tests share: levels, threads that run a kernel, random numbers, aligned memory, one file format. */
#ifndef WEIR_HELPER_KERNELS_H
#define WEIR_HELPER_KERNELS_H

#include "test.h"

#include "../../kernels/cpu/layout.h"
#include "../../kernels/cpu/level.h"

/* A function of the vector code at each level, NULL where it is not built: the initialiser of an array by level. */
#ifdef WEIR_HAS_avx2
#define AT_AVX2(name) name##_avx2
#else
#define AT_AVX2(name) NULL
#endif
#ifdef WEIR_HAS_avx512
#define AT_AVX512(name) name##_avx512
#else
#define AT_AVX512(name) NULL
#endif
#define AT_LEVELS(name)                                                                                                                    \
    { name##_generic, AT_AVX2(name), AT_AVX512(name), AT_AVX512(name) }

/* Every test runs once per level, through that level's own table. */
extern int kernel_levels[WEIR_CPU_LEVELS];
#define EACH_LEVEL(f)                                                                                                                      \
    {#f " generic", f, NULL, NULL, &kernel_levels[0]}, {#f " avx2", f, NULL, NULL, &kernel_levels[1]},                                     \
        {#f " avx512", f, NULL, NULL, &kernel_levels[2]}, {                                                                                \
#f " vnni", f, NULL, NULL, &kernel_levels[3]                                                                                       \
    }
#define need_level(state)                                                                                                                  \
    do {                                                                                                                                   \
        if (!weir_cpu_level_runs(*(int *)*(state)))                                                                                        \
            weir_test_skip_machine("level %s does not run here", weir_cpu_level_name(*(int *)*(state)));                                   \
    } while (0)
#define level_of(state) (*(int *)*(state))

/* Runs a kernel of a level on 1..4 threads; the arguments must pass its check. */
void run_kernel(int level, int kernel, const void *args, unsigned workers);

/* How far a loop over cases goes at a time: `step` under sanitizers, where a case costs ten times as much, else 1. */
int case_step(int step);

typedef struct rng {
    uint64_t x;
} rng;
uint32_t rng_next(rng *r);
int rng_below(rng *r, int n);
float rng_float(rng *r);  /* -1..1 */
float rng_normal(rng *r); /* about N(0, 1) */

void *zeroed(size_t bytes);   /* 64-byte aligned; fails the test without memory; free() */
void *poisoned(size_t bytes); /* the same, every float and half in it a NaN */
void assert_same_bits(const float *got, const float *want, size_t n, const char *what); /* NaNs are alike */

/* A tensor of a safetensors file. data is NULL if the file lacks it. */
typedef struct tensor {
    const void *data;
    size_t bytes;
} tensor;
typedef struct tensors {
    uint8_t *file;
    size_t size;
} tensors;
tensors tensors_open(const char *path);
tensor tensors_get(const tensors *t, const char *name);
void tensors_close(tensors *t);

#endif
