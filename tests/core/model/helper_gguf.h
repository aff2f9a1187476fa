/* helper_gguf.h: builds the bytes of GGUF files, right ones and broken ones, and parses them in a system of its own. */
#ifndef WEIR_HELPER_GGUF_H
#define WEIR_HELPER_GGUF_H

#include "../../../core/model/gguf.h"
#include "test.h"

#include <time.h>

typedef struct bytes {
    uint8_t data[8192];
    size_t size;
} bytes;

static inline void put(bytes *b, const void *p, size_t n) {
    assert_true(b->size + n <= sizeof b->data);
    memcpy(b->data + b->size, p, n);
    b->size += n;
}
static inline void put_u32(bytes *b, uint32_t v) {
    put(b, &v, 4);
}
static inline void put_u64(bytes *b, uint64_t v) {
    put(b, &v, 8);
}
static inline void put_string(bytes *b, const char *s) {
    put_u64(b, strlen(s));
    put(b, s, strlen(s));
}
static inline void put_start(bytes *b, uint64_t tensors, uint64_t keys) {
    *b = (bytes){.size = 0};
    put(b, "GGUF", 4);
    put_u32(b, 3);
    put_u64(b, tensors);
    put_u64(b, keys);
}
static inline void put_key(bytes *b, const char *name, uint32_t type) {
    put_string(b, name);
    put_u32(b, type);
}
static inline void put_array(bytes *b, const char *name, uint32_t element, uint64_t count) {
    put_key(b, name, WEIR__GGUF_ARRAY);
    put_u32(b, element);
    put_u64(b, count);
}
static inline void put_tensor(bytes *b, const char *name, uint32_t n_dims, const uint64_t *dims, uint32_t type, uint64_t offset) {
    put_string(b, name);
    put_u32(b, n_dims);
    for (uint32_t i = 0; i < n_dims; i++)
        put_u64(b, dims[i]);
    put_u32(b, type);
    put_u64(b, offset);
}

/* A system, and what a parse left in it. */
typedef struct parsed {
    weir_system *system;
    weir__gguf *file;
    weir_error *error;
    int code;
    double seconds;
    uint64_t bytes_before;
} parsed;

static inline uint64_t held_bytes(weir_system *s) {
    weir_system_stats stats;
    weir_system_get_stats(s, &stats);
    return stats.bytes;
}

static inline parsed parse_sized(const bytes *b, uint64_t file_size) {
    parsed p = {0};
    struct timespec from, to;
    assert_int_equal(weir_system_new(NULL, &p.system, NULL), WEIR_OK);
    p.bytes_before = held_bytes(p.system);
    clock_gettime(CLOCK_MONOTONIC, &from);
    p.code = weir__gguf_parse(p.system, "test.gguf", b->data, b->size, file_size, &p.file, &p.error);
    clock_gettime(CLOCK_MONOTONIC, &to);
    p.seconds = (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) * 1e-9;
    return p;
}
static inline parsed parse(const bytes *b) {
    return parse_sized(b, b->size);
}

static inline void end(parsed *p) {
    weir__gguf_free(p->file);
    weir_error_free(p->error);
    assert_int_equal(held_bytes(p->system), p->bytes_before);
    weir_system_free(p->system);
}

/* The file must be refused with that code, quickly, and with all of these words in the text. */
#define refused_sized(b, file_size, want_code, ...)                                                                                        \
    do {                                                                                                                                   \
        const char *words_[] = {__VA_ARGS__};                                                                                              \
        parsed p_ = parse_sized(b, file_size);                                                                                             \
        assert_int_equal(p_.code, want_code);                                                                                              \
        for (size_t i_ = 0; i_ < sizeof words_ / sizeof words_[0]; i_++)                                                                   \
            if (!strstr(weir_error_text(p_.error), words_[i_]))                                                                            \
                fail_msg("\"%s\" is not in \"%s\"", words_[i_], weir_error_text(p_.error));                                                \
        assert_true(p_.seconds < 1.0);                                                                                                     \
        end(&p_);                                                                                                                          \
    } while (0)
#define refused(b, want_code, ...) refused_sized(b, (b)->size, want_code, "test.gguf", __VA_ARGS__)

#endif
