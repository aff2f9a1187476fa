/* entries.h: the entry points of the kernels by name, and their parameters by key, as the kernels' own list has them. Knows nothing of how weir binds them. */
#ifndef WEIR_TEST_ENTRIES_H
#define WEIR_TEST_ENTRIES_H

#include <stdbool.h>
#include <stdint.h>

enum { ENTRY_PARAMETERS = 20 };

typedef struct entry_parameter {
    const char *key;
    unsigned size; /* bytes: 4 or 8 */
} entry_parameter;

typedef struct entry {
    const char *name;
    entry_parameter parameters[ENTRY_PARAMETERS + 1]; /* key NULL behind the last */
} entry;

extern const entry entries[];              /* name NULL behind the last */
extern const entry entry_gemm;             /* cublasGemmEx, its arguments as parameters */
const entry *entry_find(const char *name); /* NULL: there is none */

#endif
