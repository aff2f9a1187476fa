/* notes.h: stands in front of a device's table: writes down what is bound (kernel and arguments) and which list runs in which shape, and lets the true functions do
 * their work. */
#ifndef WEIR_TEST_NOTES_H
#define WEIR_TEST_NOTES_H

#include "../../core/dev/cuda/cuda.h"

enum { NOTES_BOUND = 4096, NOTES_RUNS = 64 };

typedef struct note {
    enum weir_kernel kernel;
    _Alignas(16) unsigned char args[WEIR_KERNEL_MAX_ARGS];
} note;

typedef struct note_run {
    const weir__list *list;
    weir__shape shape;
} note_run;

typedef struct notes {
    note bound[NOTES_BOUND]; /* in the order in which they were recorded */
    size_t count;
    note_run runs[NOTES_RUNS];
    size_t n_runs;
    void (*spoil)(enum weir_kernel kernel, weir__cuda_op *op); /* changes what the device has bound; NULL: nothing does */
} notes;
extern notes noted; /* of the one device that is noted */

void notes_install(weir__device *d); /* forgets what was noted before */

#endif
