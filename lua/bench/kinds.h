/* kinds.h: the benchmarks by name, in the order they run. */
#ifndef WEIR_BENCH_KINDS_H
#define WEIR_BENCH_KINDS_H

#include "bench.h"

/* The suite's micro benchmarks, those of concurrency, the parallel ones. */
#define BENCH_MICRO(K) K(pingpong) K(counting) K(create) K(throughput) K(ring) K(chameneos) K(big)
#define BENCH_CONCURRENCY(K) K(dictionary) K(sortedlist) K(buffer) K(philosophers) K(barber) K(smokers) K(logistic) K(banking)
#define BENCH_PARALLEL(K) K(fibonacci) K(quicksort) K(radixsort) K(sieve) K(trapezoid) K(queens) K(spawntree)
#define BENCH_KINDS(K) BENCH_MICRO(K) BENCH_CONCURRENCY(K) BENCH_PARALLEL(K)

#define BENCH_KIND(name) extern const bench_kind bench_##name;
BENCH_KINDS(BENCH_KIND)
#undef BENCH_KIND

#endif
