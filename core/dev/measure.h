/* measure.h: what a device can do, measured: copies, how soon one small kernel follows another, and copies beside kernels. Knows no model. */
#ifndef WEIR_DEV_MEASURE_H
#define WEIR_DEV_MEASURE_H

#include "device.h"

typedef struct weir__measures {
    double copy, upload,
        download; /* bytes per second that are copied inside of the device, to it from the host's (pinned) memory, and back; the best round */
    double launch,
        replay; /* ns from one smallest kernel of a list to the next, when the list runs in a new shape, and when it did before (graphs) */
    double work, sending, both; /* ns: kernels alone, an upload alone, the two at once on two streams; each the best round */
} weir__measures;

/* Waits for the device: on the loop's thread, but the loop does not turn. bytes: of a copy, at least 1 MiB; rounds: 1 or more. Errors of the device, ENOMEM. */
WEIR_API int weir__device_measure(weir_system *s, const char *name, size_t bytes, int rounds, weir__measures *out, weir_error **error);

#endif
