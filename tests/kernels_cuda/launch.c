/* launch.c: launch.h by the driver: the embedded kernels in the first device's primary context, one stream, and what a launch needs on the device for as long as it runs. */
#include "launch.h"

#include "../../core/dev/cuda/driver.h"
#include "../../core/dev/cuda/image.h"
#include "../cuemu/cuemu_ctl.h"

#include <dlfcn.h>

enum { ZONE = 256, MOST_ARGS = 24, MOST_MIRRORS = 24 };

static struct {
    weir__cuda_driver driver;
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CUstream stream;
    size_t zone;
    char why[400];
} gpu;

/* A function of cuemu_ctl.h; NULL on a device. */
#define EMULATED(name) ((__typeof__(&name))dlsym(gpu.driver.library, #name))

__attribute__((format(printf, 1, 2))) static bool failed(const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(gpu.why, sizeof gpu.why, format, list);
    va_end(list);
    return false;
}

static bool ok(CUresult code, const char *call) {
    if (code == CUDA_SUCCESS)
        return true;
    __typeof__(&cuemu_last_error) last = EMULATED(cuemu_last_error);
    return failed("%s: %s%s%s", call, weir__cuda_error_text(code), last ? ": " : "", last ? last() : "");
}

/* ---- the device ---- */

static bool open_device(void) {
    const weir__cuda_driver *d = &gpu.driver;
    return ok(d->Init(0), "cuInit") && ok(d->DeviceGet(&gpu.device, 0), "cuDeviceGet") &&
           ok(d->PrimaryCtxRetain(&gpu.context, gpu.device), "cuDevicePrimaryCtxRetain") &&
           ok(d->CtxSetCurrent(gpu.context), "cuCtxSetCurrent") &&
           ok(d->ModuleLoadData(&gpu.module, weir__cuda_image), "cuModuleLoadData (without nvcc no code is built for a device)") &&
           ok(d->StreamCreate(&gpu.stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
}

int launch_open(void **state) {
    (void)state;
    const char *zone = getenv("WEIR_TEST_ZONE");
    char name[64] = "";
    gpu.zone = zone ? strtoul(zone, NULL, 10) / ZONE * ZONE : ZONE;
    if (!weir__cuda_driver_open(&gpu.driver, gpu.why, sizeof gpu.why) || !open_device()) {
        printf("%s\n(without a device: LD_LIBRARY_PATH=BUILD/cuemu)\n", gpu.why);
        return -1;
    }
    gpu.driver.DeviceGetName(name, sizeof name, gpu.device);
    printf("on %s\n", name);
    return 0;
}

int launch_close(void **state) {
    (void)state;
    if (!gpu.stream) /* it was not opened */
        return 0;
    bool closed = ok(gpu.driver.StreamDestroy(gpu.stream), "cuStreamDestroy") &&
                  ok(gpu.driver.ModuleUnload(gpu.module), "cuModuleUnload") &&
                  ok(gpu.driver.PrimaryCtxRelease(gpu.device), "cuDevicePrimaryCtxRelease");
    if (!closed)
        printf("%s\n", gpu.why);
    return closed ? 0 : -1;
}

size_t launch_zone(void) {
    return gpu.zone;
}

void launch_reverse(bool on) {
    __typeof__(&cuemu_set) set = EMULATED(cuemu_set);
    if (set)
        set("reverse", on);
}

/* ---- arrays ---- */

typedef struct array {
    struct array *next;
    char *host;
    size_t bytes;
} array;
static array *arrays; /* newest first */

static void *keep(void *host, size_t bytes) {
    array *a = malloc(sizeof *a);
    assert_non_null(a);
    *a = (array){arrays, host, bytes};
    arrays = a;
    return host;
}

void *zeros(size_t bytes) {
    return keep(zeroed(bytes), bytes);
}

void *nans(size_t bytes) {
    return keep(poisoned(bytes), bytes);
}

void *copied(const void *source, size_t bytes) {
    return memcpy(zeros(bytes), source, bytes);
}

int arrays_end(void **state) {
    (void)state;
    while (arrays) {
        array *a = arrays;
        arrays = a->next;
        free(a->host);
        free(a);
    }
    return 0;
}

static const array *array_of(const void *p) {
    const array *a = arrays;
    while (a && !((const char *)p >= a->host && (const char *)p < a->host + a->bytes))
        a = a->next;
    return a;
}

/* ---- mirrors: what of a launch is on the device ---- */

/* Structures that hold pointers into arrays: their size, and where. */
typedef struct record {
    size_t bytes;
    const size_t *pointers;
    int count;
} record;

static const size_t step_pointers[] = {offsetof(weir_step, token),   offsetof(weir_step, slot),   offsetof(weir_step, position),
                                       offsetof(weir_step, out_row), offsetof(weir_step, blocks), offsetof(weir_step, sample),
                                       offsetof(weir_step, sampled), offsetof(weir_step, bias),   offsetof(weir_step, history),
                                       offsetof(weir_step, logprobs)};
static const size_t unit_pointers[] = {0};
static const record plain = {0, NULL, 0}, step_record = {sizeof(weir_step), step_pointers, 10},
                    unit_record = {sizeof(void *), unit_pointers, 1};

typedef struct mirror {
    char *host;
    size_t bytes;
    const record *record;
    char *sent; /* [zone][bytes][zone], as it went there */
    CUdeviceptr device;
} mirror;

static struct {
    mirror all[MOST_MIRRORS];
    int count;
} mirrors;

static size_t mirror_size(const mirror *m) {
    return m->bytes + 2 * gpu.zone;
}

static bool place(const void *p, uint64_t *there);

static bool place_pointers(mirror *m) {
    for (int i = 0; i < m->record->count; i++) {
        const void *p;
        uint64_t there;
        memcpy(&p, m->host + m->record->pointers[i], sizeof p);
        if (!place(p, &there))
            return false;
        memcpy(m->sent + gpu.zone + m->record->pointers[i], &there, sizeof there);
    }
    return true;
}

/* The zones are NaNs as floats and as halves, other ones than those of `nans`. */
static mirror *send(char *host, size_t bytes, const record *r) {
    if (mirrors.count == MOST_MIRRORS)
        return failed("more than %d arrays", MOST_MIRRORS), NULL;
    mirror *m = &mirrors.all[mirrors.count++];
    *m = (mirror){host, bytes, r, NULL, 0};
    size_t size = mirror_size(m);
    m->sent = malloc(size);
    if (!m->sent)
        return failed("no memory"), NULL;
    for (size_t i = 0; i < size; i++)
        m->sent[i] = (char)(i % 2 ? 0xff : 0xc5);
    memcpy(m->sent + gpu.zone, host, bytes);
    bool sent = place_pointers(m) && ok(gpu.driver.MemAlloc(&m->device, size), "cuMemAlloc") &&
                ok(gpu.driver.MemcpyHtoDAsync(m->device, m->sent, size, gpu.stream), "cuMemcpyHtoDAsync");
    return sent ? m : NULL;
}

static bool place_at(const void *p, char *host, size_t bytes, const record *r, uint64_t *there) {
    mirror *m = mirrors.all, *const end = m + mirrors.count;
    while (m < end && m->host != host)
        m++;
    if (m == end)
        m = send(host, bytes, r);
    *there = m ? m->device + gpu.zone + (uint64_t)((const char *)p - host) : 0;
    return m != NULL;
}

/* Where the device has what p points to, NULL for NULL. */
static bool place(const void *p, uint64_t *there) {
    const array *a = array_of(p);
    *there = 0;
    return !p || (a ? place_at(p, a->host, a->bytes, &plain, there) : failed("%p points into no array", p));
}

static bool zones_are_whole(const mirror *m, const char *got) {
    size_t back = gpu.zone + m->bytes;
    if (memcmp(got, m->sent, gpu.zone) || memcmp(got + back, m->sent + back, gpu.zone))
        return failed("bytes beside an array of %zu were written", m->bytes);
    for (int i = 0; i < m->record->count; i++)
        if (memcmp(got + gpu.zone + m->record->pointers[i], m->sent + gpu.zone + m->record->pointers[i], sizeof(void *)))
            return failed("a pointer in the step block or of a unit was written");
    return true;
}

static bool bring_back(const mirror *m) {
    char *got = malloc(mirror_size(m));
    bool good =
        got ? ok(gpu.driver.MemcpyDtoH(got, m->device, mirror_size(m)), "cuMemcpyDtoH") && zones_are_whole(m, got) : failed("no memory");
    if (good && m->record != &unit_record) {
        for (int i = 0; i < m->record->count; i++)
            memcpy(got + gpu.zone + m->record->pointers[i], m->host + m->record->pointers[i], sizeof(void *));
        memcpy(m->host, got + gpu.zone, m->bytes);
    }
    free(got);
    return good;
}

static bool bring_all_back(void) {
    for (int i = 0; i < mirrors.count; i++)
        if (!bring_back(&mirrors.all[i]))
            return false;
    return true;
}

static void forget_all(void) {
    gpu.driver.StreamSynchronize(gpu.stream); /* after a failure something may still be on its way */
    for (int i = 0; i < mirrors.count; i++) {
        gpu.driver.MemFree(mirrors.all[i].device);
        free(mirrors.all[i].sent);
    }
    mirrors.count = 0;
}

/* ---- launches ---- */

static bool place_argument(const launch_arg *a, uint64_t *there) {
    static const record *const records[] = {[LAUNCH_STEP] = &step_record, [LAUNCH_UNIT] = &unit_record};
    char *p;
    memcpy(&p, a->at, sizeof p);
    if (a->kind == LAUNCH_ARRAY || !p)
        return place(p, there);
    return place_at(p, p, records[a->kind]->bytes, records[a->kind], there);
}

static bool run(const char *name, launch l, const launch_arg *args, int count) {
    CUfunction f = NULL;
    uint64_t there[MOST_ARGS];
    void *parameters[MOST_ARGS];
    if (count > MOST_ARGS)
        return failed("more than %d arguments", MOST_ARGS);
    for (int i = 0; i < count; i++) {
        parameters[i] = args[i].kind == LAUNCH_VALUE ? args[i].at : &there[i];
        if (args[i].kind != LAUNCH_VALUE && !place_argument(&args[i], &there[i]))
            return false;
    }
    return ok(gpu.driver.ModuleGetFunction(&f, gpu.module, name), "cuModuleGetFunction") &&
           ok(gpu.driver.LaunchKernel(f, l.x, l.y ? l.y : 1, l.z ? l.z : 1, l.threads, 1, 1, (unsigned)l.shared, gpu.stream, parameters,
                                      NULL),
              "cuLaunchKernel") &&
           ok(gpu.driver.StreamSynchronize(gpu.stream), "cuStreamSynchronize") && bring_all_back();
}

const char *launch_try(const char *name, launch l, const launch_arg *args, int count) {
    bool good = run(name, l, args, count);
    forget_all();
    return good ? NULL : gpu.why;
}

void launch_kernel(const char *name, launch l, const launch_arg *args, int count) {
    const char *why = launch_try(name, l, args, count);
    if (why)
        fail_msg("%s: %s", name, why);
}
