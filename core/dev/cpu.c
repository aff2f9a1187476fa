/* cpu.c: the cpu device: its table of functions, memory, binding of kernels, and the execution of one item. Knows neither threads nor queues. */
#include "cpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *cpu_memory(weir__device *d, size_t bytes, bool host) {
    (void)host;
    return weir__pages(d->system, bytes);
}
static void cpu_memory_free(weir__device *d, void *p, size_t bytes, bool host) {
    (void)host;
    weir__pages_free(d->system, p, bytes);
}

static size_t product_workspace(const weir__device *d, int32_t rows, int32_t n, int32_t k) {
    (void)d, (void)rows, (void)n, (void)k;
    return 0;
}
static size_t attention_workspace(const weir__device *d, int32_t rows, int32_t heads, int32_t dim, int32_t splits) {
    (void)d, (void)rows;
    return weir_attention_workspace(heads, dim, splits);
}
static size_t sample_workspace(const weir__device *d, int32_t rows, int32_t vocab) {
    (void)rows;
    return weir_sample_workspace(vocab) * d->threads;
}

static const char *cpu_bind(weir__device *d, enum weir_kernel kernel, const void *args, weir__entry **entry) {
    const weir_cpu_table *kernels = ((weir__cpu *)d)->kernels;
    const char *why = kernels->check ? kernels->check((int)kernel, args) : NULL;
    if (why)
        return why;
    if (!kernels->run[kernel])
        return "this device has no such kernel";
    *entry = (weir__entry *)kernels->run[kernel];
    return NULL;
}

static void device_free(weir__cpu *cpu) {
    weir__threads_fini(&cpu->threads);
    pthread_mutex_destroy(&cpu->base.lock);
    weir__free(cpu->base.system, cpu);
}

/* Work that does not end keeps its thread, and with it the device and the system that it uses. */
static void name_left(weir__device *d) {
    char text[256] = "device cpu: work that does not end was left behind, with all that it uses:";
    size_t n = strlen(text);
    pthread_mutex_lock(&d->lock);
    for (const weir__stream *st = d->streams; st && n < sizeof text - 1; st = st->next)
        n += (size_t)snprintf(text + n, sizeof text - n, " stream %s of actor %llu", st->name, (unsigned long long)st->owner);
    pthread_mutex_unlock(&d->lock);
    weir__leave_behind(d->system, text);
}

static bool cpu_close(weir__device *d) {
    weir__cpu *cpu = (weir__cpu *)d;
    if (!weir__cpu_streams_end(cpu)) {
        name_left(d);
        return false;
    }
    weir__team_free(cpu->team);
    device_free(cpu);
    return true;
}

static bool inline_close(weir__device *d) {
    weir__cpu *cpu = (weir__cpu *)d;
    weir__set_drain(d->system, NULL, NULL);
    weir__inline_streams_end(cpu);
    device_free(cpu);
    return true;
}

static const weir__device_table cpu_table = {
    .name = "cpu",
    .shares_memory = true,
    .int8 = true,
    .stops_lists = true,
    .close = cpu_close,
    .memory = cpu_memory,
    .memory_free = cpu_memory_free,
    .product_workspace = product_workspace,
    .attention_workspace = attention_workspace,
    .sample_workspace = sample_workspace,
    .bind = cpu_bind,
    .stream_open = weir__cpu_stream_open,
    .submit = weir__cpu_stream_submit,
    .wake = weir__cpu_stream_wake,
    .stream_close = weir__cpu_stream_close,
};

static const weir__device_table inline_table = {
    .name = "cpu",
    .shares_memory = true,
    .int8 = true,
    .stops_lists = true,
    .close = inline_close,
    .memory = cpu_memory,
    .memory_free = cpu_memory_free,
    .product_workspace = product_workspace,
    .attention_workspace = attention_workspace,
    .sample_workspace = sample_workspace,
    .bind = cpu_bind,
    .stream_open = weir__inline_stream_open,
    .submit = weir__inline_stream_submit,
    .wake = weir__inline_stream_wake,
    .stream_close = weir__inline_stream_close,
};

/* ---- making it ---- */

static void levels_that_run(char *text, size_t size) {
    size_t at = 0;
    text[0] = 0;
    for (int level = 0; level < WEIR_CPU_LEVELS; level++)
        if (weir_cpu_level_runs(level) && at < size)
            at += (size_t)snprintf(text + at, size - at, "%s%s", at ? ", " : "", weir_cpu_level_name(level));
}

static int choose_level(int *level, weir_error **error) {
    const char *wanted = getenv("WEIR_CPU");
    if (!wanted || !*wanted) {
        *level = weir_cpu_level_best();
        return WEIR_OK;
    }
    *level = weir_cpu_level_find(wanted);
    if (*level >= 0 && weir_cpu_level_runs(*level))
        return WEIR_OK;
    char running[128];
    levels_that_run(running, sizeof running);
    return weir_fail(error, WEIR_EINVAL, "WEIR_CPU=%.32s: %s; this processor runs %s", wanted,
                     *level < 0 ? "no such level" : "this level does not run here", running);
}

static int cpu_new(weir_system *s, unsigned threads, int level, weir__device **out, weir_error **error) {
    weir__cpu *cpu = weir__alloc(s, sizeof *cpu);
    if (!cpu)
        return weir_fail(error, WEIR_ENOMEM, "device cpu: no memory");
    bool inline_mode = weir__system_inline(s);
    cpu->base.table = inline_mode ? &inline_table : &cpu_table;
    cpu->base.system = s;
    cpu->base.threads = threads;
    cpu->kernels = weir_cpu_table_get(level);
    snprintf(cpu->base.detail, sizeof cpu->base.detail, "%s%s, %u thread%s", level == WEIR_CPU_VNNI ? "avx512+" : "",
             weir_cpu_level_name(level), threads, threads == 1 ? "" : "s");
    pthread_mutex_init(&cpu->base.lock, NULL);
    weir__threads_init(&cpu->threads, &cpu->base, weir__cpu_stream_release);
    int code = inline_mode ? WEIR_OK : weir__team_new(s, threads, &cpu->team, error);
    if (code) {
        device_free(cpu);
        return code;
    }
    if (inline_mode)
        weir__set_drain(s, weir__inline_drain, cpu);
    *out = &cpu->base;
    return WEIR_OK;
}

static int make(weir_system *s, unsigned index, unsigned threads, weir__device **out, weir_error **error) {
    int level = 0, code = choose_level(&level, error);
    (void)index;
    if (code)
        return code;
    if (threads == 0)
        threads = weir__processors();
    return cpu_new(s, threads < WEIR_MAX_THREADS ? threads : WEIR_MAX_THREADS, level, out, error);
}

static void list(weir_system *s, weir__device_fn *fn, void *data) {
    char detail[128];
    int level = 0;
    weir_error *error = NULL;
    (void)s;
    bool usable = choose_level(&level, &error) == WEIR_OK;
    unsigned n = weir__processors();
    snprintf(detail, sizeof detail, "%s%s, %u processor%s", level == WEIR_CPU_VNNI ? "avx512+" : "", weir_cpu_level_name(level), n,
             n == 1 ? "" : "s");
    fn(data, "cpu", usable ? detail : weir_error_text(error), usable);
    weir_error_free(error);
}

const weir__backend weir__cpu_backend = {.name = "cpu", .threads = true, .make = make, .list = list};

/* ---- work ---- */

int weir__cpu_execute(const weir__item *item) {
    switch (item->kind) {
    case WEIR__ITEM_COPY:
        memmove((char *)weir__buffer_pointer(item->copy.to) + item->copy.to_offset,
                (const char *)weir__buffer_pointer(item->copy.from) + item->copy.from_offset, item->copy.bytes);
        return WEIR_OK;
    case WEIR__ITEM_HOST:
        return item->host.fn(item->host.data);
    default:
        return WEIR_OK;
    }
}

int weir__cpu_run_list(weir__cpu *cpu, weir__stream *st, const weir__item *item) {
    if (weir__inject(cpu->base.system, WEIR__INJECT_KERNEL))
        return WEIR_EDEVICE;
    if (cpu->team)
        return weir__team_run(cpu->team, item->run.list, st, item);
    return weir__list_run_alone(item->run.list, st, item);
}
