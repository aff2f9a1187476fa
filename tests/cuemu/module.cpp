// module.cpp: modules: names and resources from the real image, code from the CPU library of the same kernels. A kernel that is missing in one of them, or has other
// parameters there, is refused. An image that begins with "CUEMU", or where only PTX or packed code fits, is taken without these checks.
#include "state.h"
#include <climits>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>

static cuemu_kernel *kernels; // newest first
static std::mutex &kernels_lock = *new std::mutex;

EXPORT void cuemu_register(cuemu_kernel *k) {
    std::lock_guard<std::mutex> l(kernels_lock);
    k->next = kernels;
    kernels = k;
}

// $CUEMU_KERNELS, or libcuemu_kernels.so beside this library.
static string library_path() {
    if (const char *path = getenv("CUEMU_KERNELS"))
        return path;
    Dl_info info;
    if (!dladdr((void *)&cuemu_register, &info) || !info.dli_fname)
        return "libcuemu_kernels.so";
    const string self = info.dli_fname;
    return self.substr(0, self.rfind('/') + 1) + "libcuemu_kernels.so";
}

// Of an image in memory no size is known but what it says itself.
static int read_image(CUmodule m, const uint8_t *p) {
    const uint64_t size = fatbin_size(p);
    bool usable = memcmp(p, "CUEMU", 5) == 0;
    if (size)
        m->parsed = parse_fatbin(p, size, (unsigned)emu.cc, m->cubin, &usable);
    else if (!usable)
        return misuse(CUDA_ERROR_INVALID_IMAGE, "bad argument", "cuModuleLoadData of what is no fatbin");
    return usable ? 0 : fail(CUDA_ERROR_NO_BINARY_FOR_GPU, "the image has no code for sm_" + std::to_string(emu.cc));
}

EXPORT CUresult cuModuleLoadData(CUmodule *out, const void *image) {
    ENTER(cuModuleLoadData, UNSAFE);
    std::unique_ptr<CUmod_st> m(new CUmod_st);
    m->parsed = false;
    if (int code = read_image(m.get(), (const uint8_t *)image))
        return code;
    if (!dlopen(library_path().c_str(), RTLD_NOW | RTLD_GLOBAL))
        return fail(CUDA_ERROR_INVALID_IMAGE, dlerror());
    *out = m.release();
    emu.modules.insert(*out);
    return 0;
}

EXPORT CUresult cuModuleUnload(CUmodule m) {
    ENTER(cuModuleUnload, RELEASE);
    if (!emu.modules.erase(m))
        return misuse(CUDA_ERROR_INVALID_HANDLE, "misuse", "a module that is not alive");
    delete m;
    return call.pending;
}

static const cuemu_kernel *find_kernel(const char *name) {
    std::lock_guard<std::mutex> l(kernels_lock);
    const cuemu_kernel *k = kernels;
    while (k && strcmp(k->name, name) != 0)
        k = k->next;
    return k;
}

static bool same_parameters(const Resources &r, const cuemu_kernel *k) {
    if (r.parameters.size() != (size_t)k->count)
        return false;
    for (int i = 0; i < k->count; i++)
        if (r.parameters[(size_t)i].size != k->params[i].size)
            return false;
    return true;
}

EXPORT CUresult cuModuleGetFunction(CUfunction *out, CUmodule m, const char *name) {
    ENTER(cuModuleGetFunction, CONTEXT);
    if (!emu.modules.count(m))
        return misuse(CUDA_ERROR_INVALID_HANDLE, "misuse", "a module that is not alive");
    if (int code = take_fault(string("function:") + name))
        return code;
    std::unique_ptr<CUfunc_st> &f = m->functions[name];
    if (!f) {
        const cuemu_kernel *k = find_kernel(name);
        if (!k || (m->parsed && !m->cubin.count(name))) {
            m->functions.erase(name);
            return fail(CUDA_ERROR_NOT_FOUND, string(name) + (k ? " is not in the image" : " is not in the CPU library of kernels"));
        }
        const Resources r = m->parsed ? m->cubin[name] : Resources();
        if (m->parsed && !same_parameters(r, k)) {
            m->functions.erase(name);
            return misuse(CUDA_ERROR_INVALID_IMAGE, "bad argument", string(name) + ": image and CPU library differ in its parameters");
        }
        f.reset(new CUfunc_st{k, r, 0});
    }
    *out = f.get();
    return 0;
}

EXPORT CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction f) {
    ENTER(cuFuncGetAttribute, CONTEXT);
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
        *value = f->resources.registers;
        return 0;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
        *value = f->resources.local;
        return 0;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
        *value = f->resources.shared;
        return 0;
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = f->resources.max_threads ? f->resources.max_threads : 1024;
        return 0;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *value = f->max_dynamic;
        return 0;
    default:
        return fail(CUDA_ERROR_INVALID_VALUE, "a function attribute that is not emulated");
    }
}

EXPORT CUresult cuFuncSetAttribute(CUfunction f, CUfunction_attribute attribute, int value) {
    ENTER(cuFuncSetAttribute, CONTEXT);
    if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
        return fail(CUDA_ERROR_INVALID_VALUE, "a function attribute that is not emulated");
    if (value < 0 || value + f->resources.shared > shared_limit())
        return fail(CUDA_ERROR_INVALID_VALUE, string(f->kernel->name) + ": more shared memory than the device has");
    f->max_dynamic = value;
    return 0;
}

EXPORT CUresult cuFuncGetParamInfo(CUfunction f, size_t index, size_t *offset, size_t *size) {
    ENTER(cuFuncGetParamInfo, CONTEXT);
    if (index >= (size_t)f->kernel->count)
        return fail(CUDA_ERROR_INVALID_VALUE, string(f->kernel->name) + " has no such parameter");
    size_t at = 0;
    for (size_t i = 0; i <= index; i++) { // natural alignment, as in a C struct
        const size_t n = f->kernel->params[i].size, align = n > 8 ? 8 : n;
        at = (at + align - 1) / align * align;
        *offset = at;
        *size = n;
        at += n;
    }
    return 0;
}
