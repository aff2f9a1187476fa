/* cpu.h: the cpu backend's table of entry points, one per instruction-set level, and how a team of threads shares a kernel's work. */
#ifndef WEIR_KERNELS_CPU_H
#define WEIR_KERNELS_CPU_H

#include "../kernels.h"

#include <stdatomic.h>

/* One kernel, run by `workers` threads at once, each with its own copy of this struct. Work comes in chunks from a shared counter. */
typedef struct weir_work {
    uint32_t worker, workers; /* this thread, of how many */
    _Atomic uint32_t *next;   /* zero before the kernel starts; nobody else uses it meanwhile */
} weir_work;
static inline uint32_t weir_work_take(const weir_work *w) {
    return atomic_fetch_add_explicit(w->next, 1, memory_order_relaxed);
}

/* args: the kernel's weir_k_* struct. Writes of one kernel are visible to the next after the caller's barrier. Needs the default MXCSR. */
typedef void weir_kernel_fn(const void *args, const weir_work *work);

enum weir_cpu_level { WEIR_CPU_GENERIC, WEIR_CPU_AVX2, WEIR_CPU_AVX512, WEIR_CPU_VNNI, WEIR_CPU_LEVELS };
const char *weir_cpu_level_name(int level);
int weir_cpu_level_find(const char *name); /* -1: no such level */
bool weir_cpu_level_runs(int level);       /* compiled in, and this processor (and its OS) has it */
int weir_cpu_level_best(void);

typedef struct weir_cpu_table {
    weir_kernel_fn *run[WEIR_KERNEL_COUNT];
    /* NULL if the kernel can run these arguments, else a static text that says why not: only that shape is refused. */
    const char *(*check)(int kernel, const void *args);
} weir_cpu_table;
const weir_cpu_table *weir_cpu_table_get(int level); /* NULL: this level does not run here */
void weir_cpu_set_mxcsr(void);                       /* default rounding and no flush-to-zero, for the calling thread */

#endif
