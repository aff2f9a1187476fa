/* kernels.c: the embedded kernels in a device's context: loading them, and which of them the image lacks for this device: those are refused by name when a list asks for
 * one, so that a model that needs none of them runs. Knows no stream. */
#include "cuda.h"
#include "image.h"

#include <stdio.h>
#include <string.h>

bool weir__cuda_image_is_there(void) {
    return memcmp(weir__cuda_image, "CUEMU", 5) != 0;
}

void weir__cuda_image_text(char *to, size_t size) {
    if (weir__cuda_image_is_there())
        snprintf(to, size, "%.1f MB of kernels, code for %s", (double)(weir__cuda_image_end - weir__cuda_image) / 1e6, WEIR_CUDA_ARCHS);
    else
        snprintf(to, size, "no kernels: this weir was built without nvcc");
}

static int not_loaded(const weir__cuda *c, unsigned index, CUresult code, weir_error **error) {
    if (weir__cuda_is_loss(code))
        return weir_fail(error, WEIR_EDEVICE, "device cuda:%u: cuModuleLoadData: %s", index, weir__cuda_error_text(code));
    if (!weir__cuda_image_is_there())
        return weir_fail(error, WEIR_EUNSUPPORTED, "device cuda:%u: this weir was built without nvcc and has no kernels for it", index);
    return weir_fail(error, WEIR_EUNSUPPORTED, "device cuda:%u: the kernels cannot be loaded to an sm_%d (there is code for %s): %s", index,
                     c->capability, WEIR_CUDA_ARCHS, weir__cuda_error_text(code));
}

int weir__cuda_kernels_open(weir__cuda *c, unsigned index, weir_error **error) {
    CUresult code = c->driver.ModuleLoadData(&c->module, weir__cuda_image);
    if (code)
        return not_loaded(c, index, code, error);
    for (int f = 0; f < WEIR__CUDA_FUNCTIONS; f++) {
        code = c->driver.ModuleGetFunction(&c->functions[f], c->module, weir__cuda_signatures[f].name);
        if (code == CUDA_ERROR_NOT_FOUND)
            c->functions[f] = NULL;
        else if (code)
            return weir_fail(error, WEIR_EDEVICE, "device cuda:%u: cuModuleGetFunction of %s: %s", index, weir__cuda_signatures[f].name,
                             weir__cuda_error_text(code));
    }
    return WEIR_OK;
}

const char *weir__cuda_kernels_check(weir__cuda *c, const weir__cuda_op *op) {
    for (uint32_t i = 0; i < op->count; i++) {
        const weir__cuda_work *w = &op->work[i];
        if (w->is_gemm || c->functions[w->launch.function])
            continue;
        snprintf(c->lacking, sizeof c->lacking, "kernel %s: not in this image for sm_%d", weir__cuda_signatures[w->launch.function].name,
                 c->capability);
        return c->lacking;
    }
    return NULL;
}
