/* kinds.c: the list of the benchmarks. */
#include "kinds.h"

#define KIND(name) &bench_##name,
const bench_kind *const bench_kinds[] = {BENCH_KINDS(KIND) NULL};
