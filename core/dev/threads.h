/* threads.h: the threads of a device's streams, one each: counted, joined without anybody waiting for one, and left behind when one does not end. */
#ifndef WEIR_DEV_THREADS_H
#define WEIR_DEV_THREADS_H

#include "private.h"

/* All under the device's lock. */
typedef struct weir__threads {
    weir__device *device;
    void (*release)(weir__stream *st); /* gives a stream's memory back; its thread has ended, or is about to */
    unsigned live;                     /* threads that have not left */
    bool closed;                       /* none is counted any more */
    bool abandoned;                    /* the device was left behind with the threads that still run */
    weir__stream *left;                /* whose thread left last: the next one that leaves joins it, or the end */
    pthread_cond_t empty;              /* live has become 0 */
} weir__threads;

void weir__threads_init(weir__threads *t, weir__device *d, void (*release)(weir__stream *st));
void weir__threads_fini(weir__threads *t);

/* Counts a thread before it is started; false: weir__threads_gone has closed. Drop: it was not started. */
bool weir__threads_enter(weir__threads *t);
void weir__threads_drop(weir__threads *t);
/* What a thread does last, its stream being drained. */
void weir__threads_leave(weir__threads *t, weir__stream *st);
/* Closes every stream that is open, and returns when all threads have left. False: one has not within weir__drain; it goes on to use the device. */
bool weir__threads_end(weir__threads *t);
/* Waits up to `patience` ns until the threads have left whose owners close their streams; then none is counted any more. False: one is there. Any thread. */
bool weir__threads_gone(weir__threads *t, int64_t patience);

#endif
