/* recorder.h: stands where the driver's cuLaunchKernel and cuBLAS's GemmEx stood in the tables of an opened device: writes calls down, with the bytes of every
 * argument, and runs nothing. And the comparison of two such recordings. */
#ifndef WEIR_TEST_RECORDER_H
#define WEIR_TEST_RECORDER_H

#include "../../core/dev/cuda/cuda.h"
#include "entries.h"

typedef struct call {
    const entry *entry;
    unsigned grid[3], block[3], shared; /* 0 of a library product */
    uint64_t values[ENTRY_PARAMETERS];  /* the bytes of each argument */
} call;

typedef struct recording {
    call *calls;
    size_t count, room;
} recording;

/* One device at a time. The context is current. */
void recorder_install(weir__cuda *c);
void recorder_into(recording *r); /* from now on; while no work is under way */
void recording_clear(recording *r);
void recording_free(recording *r);

/* Whether both are the same, call for call; if not, *why names the first difference: which call, which entry point, which parameter. */
bool recordings_equal(const recording *got, const recording *wanted, char *why, size_t size);

#endif
