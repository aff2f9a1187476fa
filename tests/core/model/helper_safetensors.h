/* helper_safetensors.h: builds safetensors files, right ones and broken ones, from the text of their header. */
#ifndef WEIR_HELPER_SAFETENSORS_H
#define WEIR_HELPER_SAFETENSORS_H

#include "../../../core/model/safetensors.h"
#include "helper_gguf.h"

/* Length, header and `data` bytes, each the low byte of its place in the buffer. */
static inline void put_safetensors(bytes *b, const char *header, size_t data) {
    *b = (bytes){.size = 0};
    put_u64(b, strlen(header));
    put(b, header, strlen(header));
    for (size_t i = 0; i < data; i++)
        put(b, &(uint8_t){(uint8_t)i}, 1);
}

static inline void write_bytes(const char *path, const void *p, size_t n) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(p, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static inline void write_safetensors(const char *path, const char *header, size_t data) {
    bytes b;
    put_safetensors(&b, header, data);
    write_bytes(path, b.data, b.size);
}

#endif
