/* helper_kernels.c: levels, threads, random numbers, memory and a reader of safetensors files for the kernel tests. */
#include "helper_kernels.h"

#include <math.h>
#include <pthread.h>

int kernel_levels[WEIR_CPU_LEVELS] = {WEIR_CPU_GENERIC, WEIR_CPU_AVX2, WEIR_CPU_AVX512, WEIR_CPU_VNNI};

typedef struct job {
    weir_kernel_fn *fn;
    const void *args;
    weir_work work;
} job;

static void *run_job(void *data) {
    job *j = data;
    weir_cpu_set_mxcsr();
    j->fn(j->args, &j->work);
    return NULL;
}

int case_step(int step) {
    const char *sanitized = getenv("WEIR_SANITIZED");
    return sanitized && *sanitized ? step : 1;
}

void run_kernel(int level, int kernel, const void *args, unsigned workers) {
    const weir_cpu_table *t = weir_cpu_table_get(level);
    assert_non_null(t);
    const char *why = t->check(kernel, args);
    if (why)
        fail_msg("%s: %s", weir_kernel_name(kernel), why);
    _Atomic uint32_t next = 0;
    job jobs[4];
    pthread_t threads[4];
    for (unsigned i = 0; i < workers; i++) {
        jobs[i] = (job){t->run[kernel], args, {i, workers, &next}};
        if (i && pthread_create(&threads[i], NULL, run_job, &jobs[i]))
            fail_msg("no thread");
    }
    run_job(&jobs[0]);
    for (unsigned i = 1; i < workers; i++)
        pthread_join(threads[i], NULL);
}

uint32_t rng_next(rng *r) {
    r->x = r->x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(r->x >> 33);
}
int rng_below(rng *r, int n) {
    return (int)(rng_next(r) % (uint32_t)n);
}
float rng_float(rng *r) {
    return (float)rng_next(r) / 1073741824.0f - 1.0f;
}
float rng_normal(rng *r) {
    return (rng_float(r) + rng_float(r) + rng_float(r)) * 1.0f;
}

void *zeroed(size_t bytes) {
    size_t size = (bytes + 63) / 64 * 64 + 64;
    void *p = aligned_alloc(64, size);
    if (!p)
        fail_msg("no memory");
    memset(p, 0, size);
    return p;
}

void *poisoned(size_t bytes) {
    void *p = zeroed(bytes);
    memset(p, 0xff, bytes);
    return p;
}

void assert_same_bits(const float *got, const float *want, size_t n, const char *what) {
    for (size_t i = 0; i < n; i++)
        if (memcmp(&got[i], &want[i], sizeof *got) && !(isnan(got[i]) && isnan(want[i])))
            fail_msg("%s: value %zu of %zu is %a, wanted %a", what, i, n, (double)got[i], (double)want[i]);
}

tensors tensors_open(const char *path) {
    tensors t = {0};
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    t.size = (size_t)ftell(f);
    rewind(f);
    t.file = malloc(t.size + 1);
    assert_non_null(t.file);
    assert_int_equal(fread(t.file, 1, t.size, f), t.size);
    t.file[t.size] = 0;
    fclose(f);
    return t;
}

/* The header is trusted: these files are part of the reference. */
tensor tensors_get(const tensors *t, const char *name) {
    uint64_t header;
    char key[128];
    memcpy(&header, t->file, sizeof header);
    snprintf(key, sizeof key, "\"%s\"", name);
    const char *text = (const char *)t->file + 8, *at = strstr(text, key), *offsets = at ? strstr(at, "data_offsets") : NULL;
    unsigned long long from = 0, to = 0;
    if (!offsets || sscanf(strchr(offsets, '['), "[%llu,%llu]", &from, &to) != 2 || 8 + header + to > t->size)
        return (tensor){0};
    return (tensor){t->file + 8 + header + from, (size_t)(to - from)};
}

void tensors_close(tensors *t) {
    free(t->file);
}
