/* kinds.h: the benchmarks by name, in the order they run. */
#ifndef WEIR_BENCH_KINDS_H
#define WEIR_BENCH_KINDS_H

#include "bench.h"

#define BENCH_KINDS(K)                                                                                                                     \
    K(pingpong)                                                                                                                            \
    K(counting) K(create) K(throughput) K(ring) K(chameneos) K(big)                                       /* micro */                      \
        K(dictionary) K(sortedlist) K(buffer) K(philosophers) K(barber) K(smokers) K(logistic) K(banking) /* concurrency */                \
        K(fibonacci) K(quicksort) K(radixsort) K(sieve) K(trapezoid) K(queens) K(spawntree)               /* parallel */

#define BENCH_KIND(name) extern const bench_kind bench_##name;
BENCH_KINDS(BENCH_KIND)
#undef BENCH_KIND

#endif
