/* cubin.h: what images of device code say of their kernels: a fatbin's parts, and the ELF sections of a cubin. Knows no driver. The bytes may be any. */
#ifndef CUEMU_CUBIN_H
#define CUEMU_CUBIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#include <map>
#include <string>
#include <vector>

struct Parameter {
    size_t offset, size;
};

struct Resources { // of a kernel in a cubin
    int registers = 0, local = 0, shared = 0, max_threads = 0;
    std::vector<Parameter> parameters;
};

typedef std::map<std::string, Resources> Cubin;

bool parse_cubin(const uint8_t *image, size_t size, Cubin &out);
// Whole bytes that a fatbin says it has; 0: it is none. 16 bytes are read.
uint64_t fatbin_size(const uint8_t *image);
// The newest code for a device among the parts of a fatbin: fills the cubin. usable: something would run, read or not (PTX, packed code).
bool parse_fatbin(const uint8_t *image, size_t size, unsigned capability, Cubin &out, bool *usable);

extern "C" {
#endif
/* Kernels that an image has for a device: a fatbin or a cubin. -1: it is neither, or has none that can be read. */
int cuemu_kernels_of(const uint8_t *image, size_t size, unsigned capability);
#ifdef __cplusplus
}
#endif

#endif
