/* fuzz_cubin.c: any bytes as an image of device code, a fatbin or a cubin, as the emulated driver reads them (tests/cuemu). The first byte chooses the device. */
#include "../cuemu/cubin.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const unsigned capabilities[] = {75, 80, 90};
    if (size < 1)
        return 0;
    int kernels = cuemu_kernels_of(data + 1, size - 1, capabilities[data[0] % 3]);
    if (kernels > (int)(size / 24)) /* each has a symbol of its own */
        abort();
    return 0;
}
