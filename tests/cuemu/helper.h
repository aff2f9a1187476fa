/* helper.h: what the tests of the emulator share: a context with the test kernels, and short ways to launch and copy. The functions of the emulator itself
 * are found with dlsym, so that contract tests need nothing but the driver. */
#ifndef CUEMU_HELPER_H
#define CUEMU_HELPER_H

#include "../test.h"
#include "core/dev/cuda/driver.h"
#include "cuemu_ctl.h"

#include <dlfcn.h>

static weir__cuda_driver cu;
static CUmodule the_module;

static const unsigned char no_image[64] = "CUEMU: code for the CPU alone";

/* The test kernels as nvcc made them, which a real device needs; without nvcc no_image, which the emulator takes. */
static inline const void *test_image(void) {
    static unsigned char *image;
    FILE *file = image ? NULL : fopen(CUEMU_TEST_IMAGE, "rb");
    if (file) {
        fseek(file, 0, SEEK_END);
        size_t size = (size_t)ftell(file);
        rewind(file);
        image = malloc(size);
        if (image && fread(image, 1, size, file) != size)
            *image = 0;
        fclose(file);
    }
    return image ? image : no_image;
}

#define OK(call) assert_int_equal(call, CUDA_SUCCESS)

static inline CUfunction function(const char *name) {
    CUfunction f = NULL;
    OK(cu.ModuleGetFunction(&f, the_module, name));
    return f;
}

static inline int open_device(void **state) {
    (void)state;
    char why[256];
    CUdevice device;
    CUcontext context;
    if (!cu.library && !weir__cuda_driver_open(&cu, why, sizeof why)) {
        printf("%s\n", why);
        return -1;
    }
    return cu.Init(0) || cu.DeviceGet(&device, 0) || cu.PrimaryCtxRetain(&context, device) || cu.CtxSetCurrent(context) ||
                   cu.ModuleLoadData(&the_module, test_image())
               ? -1
               : 0;
}

static inline int close_device(void **state) {
    (void)state;
    cu.ModuleUnload(the_module);
    return cu.PrimaryCtxRelease(0) ? -1 : 0;
}

static inline CUstream new_stream(void) {
    CUstream s = NULL;
    OK(cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    return s;
}

static inline CUevent new_event(void) {
    CUevent e = NULL;
    OK(cu.EventCreate(&e, CU_EVENT_DISABLE_TIMING));
    return e;
}

static inline CUdeviceptr new_memory(size_t bytes) {
    CUdeviceptr p = 0;
    OK(cu.MemAlloc(&p, bytes));
    return p;
}

static inline void *new_pinned(size_t bytes) {
    void *p = NULL;
    OK(cu.MemHostAlloc(&p, bytes, 0));
    return p;
}

/* One block of `threads`. */
static inline CUresult launch(const char *name, unsigned threads, unsigned shared, CUstream s, void **params) {
    return cu.LaunchKernel(function(name), 1, 1, 1, threads, 1, 1, shared, s, params, NULL);
}

static inline CUresult fill(CUdeviceptr y, float value, int n, CUstream s) {
    void *params[] = {&y, &value, &n};
    return cu.LaunchKernel(function("weir_test_fill"), (unsigned)(n + 63) / 64, 1, 1, 64, 1, 1, 0, s, params, NULL);
}

static inline CUresult add(CUdeviceptr y, CUdeviceptr x, int n, CUstream s) {
    void *params[] = {&y, &x, &n};
    return cu.LaunchKernel(function("weir_test_add"), (unsigned)(n + 63) / 64, 1, 1, 64, 1, 1, 0, s, params, NULL);
}

static inline float first(CUdeviceptr p) {
    float value = 0;
    OK(cu.MemcpyDtoH(&value, p, sizeof value));
    return value;
}

/* A function of cuemu_ctl.h: emulator tests only. */
#define EMU(name) ((__typeof__(&name))emulated(#name))
static inline void *emulated(const char *name) {
    void *p = dlsym(cu.library, name);
    assert_non_null(p);
    return p;
}

/* Number of reports of a kind: "unordered", "leak", ... */
static inline int reports(const char *kind) {
    int count = 0;
    for (int i = 0; EMU(cuemu_report)(i); i++)
        count += strncmp(EMU(cuemu_report)(i), kind, strlen(kind)) == 0;
    return count;
}

static inline void no_reports(void) {
    if (EMU(cuemu_report_count)())
        fail_msg("%s", EMU(cuemu_report)(0));
}

/* Each test begins without reports, log and faults. */
static inline int clean(void **state) {
    (void)state;
    EMU(cuemu_reports_clear)();
    EMU(cuemu_log_clear)();
    EMU(cuemu_fail_clear)();
    return 0;
}

#endif
