/* workload.h: generated workloads: seeded random programs of actors, and their laws. */
#ifndef WEIR_WORKLOAD_H
#define WEIR_WORKLOAD_H

#include "ledger.h"

typedef struct workload_options {
    enum weir_driver driver;
    uint64_t seed;
    uint64_t messages; /* that actors and threads send, in all */
    unsigned workers;  /* worker loops */
    unsigned threads;  /* that belong to no loop and post */
    uint64_t plant;    /* this handled message (from 1) is not booked: a fault on purpose; 0: none */
} workload_options;

typedef struct workload_result {
    weir_system_stats stats; /* after all actors but main have ended */
    uint64_t events, hash;   /* of the trace; test driver only */
    uint64_t mail, asks;     /* sends accepted, calls made */
    uint64_t lives, read;    /* actors started; dead letters whose body was read */
    char violation[256];     /* the first broken law; empty: none */
} workload_result;

/* Runs one workload to its end, prints its counts; memory, stats and books are compared. */
void workload_run(const workload_options *options, workload_result *result);

#endif
