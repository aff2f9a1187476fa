/* helper_dev.h: what the tests of core/dev share: a system whose memory is counted, an actor that keeps the notices it gets, and lists of real kernels whose
 * results show whether each chunk ran once and in order. */
#ifndef WEIR_HELPER_DEV_H
#define WEIR_HELPER_DEV_H

#include "../../../core/dev/device.h"
#include "test.h"

#include <stdatomic.h>

#define DEV_NOTICES 4096

typedef struct dev_test {
    weir_system *s;
    weir__device *d;
    weir_address inbox; /* an actor that records notices */
    weir_verb verb;
    int count; /* notices so far */
    int wanted;
    struct {
        int status;
        int64_t arg;
    } notice[DEV_NOTICES];
    _Atomic int64_t bytes; /* held through the system's allocator */
    bool inline_mode;
} dev_test;

void dev_open(dev_test *t, unsigned threads);
void dev_open_inline(dev_test *t, unsigned threads, uint64_t seed);
void dev_open_system(dev_test *t, const weir_system_options *options); /* without a device */
/* Runs the system until nothing is pending, frees it and asserts that every byte came back. */
void dev_close(dev_test *t);
void dev_run_until(dev_test *t, int notices); /* runs the loop until so many notices have come since dev_open */
void dev_settle(dev_test *t);                 /* runs the loop until nothing is pending */
weir__stream *dev_stream(dev_test *t, const char *name);
void dev_notify(dev_test *t, weir__stream *st, int64_t arg);
weir__buffer *dev_buffer(dev_test *t, size_t bytes);
uint64_t dev_bytes(dev_test *t);       /* bytes held now, pages too */
int dev_threads(void);                 /* threads of this process */
void dev_threads_settle(int expected); /* waits until there are so many: a thread that was joined may be seen for a moment longer */
int64_t dev_cpu_ticks(void);           /* user and system time of all threads */
void dev_nap(int64_t ns);

/* A host function that stands still until it is opened. */
typedef struct dev_gate {
    _Atomic bool entered, open;
    _Atomic int ran, released;
    int result;
} dev_gate;
int dev_gate_fn(void *gate);
void dev_gate_release(void *gate);
void dev_gate_submit(weir__stream *st, dev_gate *g);
void dev_gate_entered(dev_gate *g); /* waits until the stream stands in it */

/* Products y = W x or y += W x over [n] floats. W is F32, packed. All in buffers of the device, owned by the list. */
typedef struct dev_work {
    weir__list *list;
    weir__buffer *memory;
    float *x, *y, *z; /* [n] */
    int n;
} dev_work;
/* `items` times y[j] += 1 for each j: a chunk that is run twice or not at all shows in y. With `pairs` every second item adds to z instead and is not waited
 * for by the one before it. */
void dev_adder(dev_test *t, dev_work *w, int n, int items, bool pairs);
/* `items` times, alternately from x to y and from y to x: out[j] = in[(j + 16) mod n]. So each chunk reads what another chunk of the item before wrote. */
void dev_shifter(dev_test *t, dev_work *w, int n, int items);
void dev_work_free(dev_work *w);

#endif
