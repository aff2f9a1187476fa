// device.cpp: the one device and its primary context. After an error that runs late every function returns its code, until the context is reset or released by all:
// then all its objects are gone and it can be retained anew.
#include "state.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>

EXPORT CUresult cuInit(unsigned) {
    ENTER(cuInit, NOTHING);
    if (!emu.initialised) {
        read_environment();
        if (int code = take_fault("cuInit")) // it could not be known before
            return code;
    }
    emu.initialised = true;
    return getenv("CUEMU_NO_DEVICE") ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS;
}

EXPORT CUresult cuDriverGetVersion(int *version) {
    ENTER(cuDriverGetVersion, NOTHING);
    *version = 13000;
    return 0;
}

static const char *error_name(CUresult code) {
    switch (code) {
#define ERROR_CASE(name, value)                                                                                                            \
    case value:                                                                                                                            \
        return #name;
        WEIR_CUDA_ERRORS(ERROR_CASE)
#undef ERROR_CASE
    default:
        return nullptr;
    }
}

EXPORT CUresult cuGetErrorName(CUresult code, const char **text) {
    *text = error_name(code);
    return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuGetErrorString(CUresult code, const char **text) {
    return cuGetErrorName(code, text);
}

EXPORT CUresult cuDeviceGetCount(int *n) {
    ENTER(cuDeviceGetCount, DRIVER);
    *n = 1;
    return 0;
}

EXPORT CUresult cuDeviceGet(CUdevice *device, int i) {
    ENTER(cuDeviceGet, DRIVER);
    if (i)
        return fail(CUDA_ERROR_INVALID_DEVICE, "there is one device");
    *device = 0;
    return 0;
}

EXPORT CUresult cuDeviceGetName(char *name, int n, CUdevice) {
    ENTER(cuDeviceGetName, DRIVER);
    snprintf(name, (size_t)n, "cuemu sm_%ld", emu.cc);
    return 0;
}

EXPORT CUresult cuDeviceTotalMem_v2(size_t *n, CUdevice) {
    ENTER(cuDeviceTotalMem, DRIVER);
    *n = emu.total;
    return 0;
}

// Bytes of shared memory that a block may have at most: the programming guide's table of compute capabilities, less 1 KiB from 8.0 on.
int shared_limit() {
    return emu.cc >= 90 ? 232448 : emu.cc == 80 ? 166912 : emu.cc > 80 ? 101376 : 65536;
}

EXPORT CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice) {
    ENTER(cuDeviceGetAttribute, DRIVER);
    switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        *value = (int)(emu.cc / 10);
        return 0;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
        *value = (int)(emu.cc % 10);
        return 0;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
        *value = 4; // few, so that grids that are sized by it stay small
        return 0;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
        *value = 49152;
        return 0;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
        *value = shared_limit();
        return 0;
    default:
        return fail(CUDA_ERROR_INVALID_VALUE, "a device attribute that is not emulated");
    }
}

static void destroy_everything(Lock &l) {
    emu.skip = true;
    while (!emu.streams.empty())
        stop_stream(l, *emu.streams.begin());
    for (CUevent e : emu.events)
        delete e;
    for (CUgraph g : emu.graphs)
        delete g;
    for (CUmodule m : emu.modules)
        delete m;
    for (auto &m : emu.memory)
        release_memory(m.first, m.second);
    emu.events.clear();
    emu.graphs.clear();
    emu.modules.clear();
    emu.memory.clear();
    emu.execs.clear();
    emu.handles = 0;
    emu.skip = false;
    emu.lost = 0;
}

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice) {
    ENTER(cuDevicePrimaryCtxRetain, DRIVER);
    emu.context.refs++;
    *out = &emu.context;
    return 0;
}

EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice) {
    ENTER(cuDevicePrimaryCtxRelease, DRIVER);
    if (!emu.context.refs)
        return misuse(CUDA_ERROR_INVALID_CONTEXT, "misuse", "the primary context was released more often than retained");
    if (--emu.context.refs == 0) {
        if (!emu.lost)
            count_leaks(true);
        destroy_everything(call.lock);
    }
    return 0;
}

EXPORT CUresult cuDevicePrimaryCtxReset_v2(CUdevice) {
    ENTER(cuDevicePrimaryCtxReset, DRIVER);
    destroy_everything(call.lock);
    return 0;
}

EXPORT CUresult cuCtxSetCurrent(CUcontext c) {
    ENTER(cuCtxSetCurrent, DRIVER);
    if (c && (c != &emu.context || !emu.context.refs))
        return misuse(CUDA_ERROR_INVALID_CONTEXT, "misuse", "cuCtxSetCurrent of a context that is not alive");
    current_context = c;
    return 0;
}

EXPORT CUresult cuCtxGetCurrent(CUcontext *c) {
    ENTER(cuCtxGetCurrent, DRIVER);
    *c = current_context;
    return 0;
}

EXPORT CUresult cuCtxSynchronize(void) {
    ENTER(cuCtxSynchronize, UNSAFE);
    const std::set<CUstream> all = emu.streams;
    for (CUstream s : all)
        if (emu.streams.count(s))
            drain(call.lock, s);
    for (auto &m : emu.memory)
        check_canaries(m.first, m.second, "cuCtxSynchronize");
    return emu.lost;
}
