/* safetensors.h: finds a tensor in a safetensors file of the tests' own data (trusted: no checks worth the name). */
#ifndef TESTS_SAFETENSORS_H
#define TESTS_SAFETENSORS_H

#include "test.h"

#include <stdbool.h>

typedef struct tensors {
    char *bytes;
    uint64_t header; /* bytes of JSON */
} tensors;

static inline bool tensors_open(tensors *t, const char *path) {
    FILE *f = fopen(path, "rb");
    if (!f)
        return false;
    fseek(f, 0, SEEK_END);
    long size = ftell(f);
    rewind(f);
    t->bytes = malloc((size_t)size + 1);
    bool ok = t->bytes && fread(t->bytes, 1, (size_t)size, f) == (size_t)size;
    fclose(f);
    if (ok)
        memcpy(&t->header, t->bytes, 8);
    return ok;
}

/* Data of a tensor and its size in bytes; NULL if it is not there. */
static inline const void *tensors_find(const tensors *t, const char *name, size_t *bytes) {
    char key[256];
    uint64_t first, last;
    snprintf(key, sizeof key, "\"%s\":{", name);
    const char *at = memmem(t->bytes + 8, t->header, key, strlen(key));
    at = at ? strstr(at, "\"data_offsets\":[") : NULL;
    if (!at || sscanf(at, "\"data_offsets\":[%lu,%lu]", &first, &last) != 2)
        return NULL;
    *bytes = last - first;
    return t->bytes + 8 + t->header + first;
}

static inline void tensors_close(tensors *t) {
    free(t->bytes);
}

#endif
