/* driver.c: opens libraries and fills tables of functions; codes as text. Knows symbols, calls none. */
#include "driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

typedef struct symbol {
    const char *name;
    size_t offset; /* of its pointer in the table */
} symbol;

#define WEIR_CUDA_SYMBOL(member, symbol, parameters) {#symbol, offsetof(weir__cuda_driver, member)},
static const symbol driver_symbols[] = {WEIR_CUDA_FUNCTIONS(WEIR_CUDA_SYMBOL){NULL, 0}};
#undef WEIR_CUDA_SYMBOL
#define WEIR_CUDA_SYMBOL(member, symbol, parameters) {#symbol, offsetof(weir__cublas, member)},
static const symbol cublas_symbols[] = {WEIR_CUBLAS_FUNCTIONS(WEIR_CUDA_SYMBOL){NULL, 0}};
#undef WEIR_CUDA_SYMBOL

/* Returns the library's handle, or NULL and why. */
static void *open_table(const char *library, const symbol *symbols, void *table, char *why, size_t size) {
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        const char *text = dlerror();
        snprintf(why, size, "%s", text ? text : library);
        return NULL;
    }
    for (; symbols->name; symbols++) {
        void *function = dlsym(handle, symbols->name);
        if (!function) {
            snprintf(why, size, "%s lacks %s: it is too old", library, symbols->name);
            dlclose(handle);
            return NULL;
        }
        memcpy((char *)table + symbols->offset, &function, sizeof function);
    }
    return handle;
}

_Bool weir__cuda_driver_open(weir__cuda_driver *driver, char *why, size_t size) {
    memset(driver, 0, sizeof *driver);
    void *library = open_table("libcuda.so.1", driver_symbols, driver, why, size);
    if (!library)
        memset(driver, 0, sizeof *driver);
    driver->library = library;
    return library != NULL;
}

_Bool weir__cublas_open(weir__cublas *blas, char *why, size_t size) {
    static const char *const names[] = {"libcublas.so.13", "libcublas.so.12"};
    memset(blas, 0, sizeof *blas);
    void *library = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !library; i++)
        library = open_table(names[i], cublas_symbols, blas, why, size);
    if (!library)
        memset(blas, 0, sizeof *blas);
    blas->library = library;
    return library != NULL;
}

void weir__cuda_driver_close(weir__cuda_driver *driver) {
    if (driver->library)
        dlclose(driver->library);
    memset(driver, 0, sizeof *driver);
}

void weir__cublas_close(weir__cublas *blas) {
    if (blas->library)
        dlclose(blas->library);
    memset(blas, 0, sizeof *blas);
}

const char *weir__cuda_error_text(CUresult code) {
    switch (code) {
#define WEIR_CUDA_CASE(name, value)                                                                                                        \
    case value:                                                                                                                            \
        return #name;
        WEIR_CUDA_ERRORS(WEIR_CUDA_CASE)
#undef WEIR_CUDA_CASE
    default:
        return "unknown error";
    }
}

const char *weir__cublas_error_text(cublasStatus_t status) {
    switch (status) {
    case CUBLAS_STATUS_SUCCESS:
        return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED:
        return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_INVALID_VALUE:
        return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_EXECUTION_FAILED:
        return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_NOT_SUPPORTED:
        return "CUBLAS_STATUS_NOT_SUPPORTED";
    default:
        return "unknown status";
    }
}
