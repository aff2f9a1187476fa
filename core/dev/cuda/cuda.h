/* cuda.h: the cuda device's own parts, shared by its files: the device, its memory, streams and graphs. Knows no model. */
#ifndef WEIR_DEV_CUDA_H
#define WEIR_DEV_CUDA_H

#include "driver.h"
#include "work.h"

#include "../threads.h"

typedef struct weir__cuda_stream weir__cuda_stream;
typedef struct weir__cuda_graph weir__cuda_graph;

/* Memory of one kind that was taken from the driver: what is not in use is kept for blocks of the same size. */
typedef struct weir__cuda_block {
    struct weir__cuda_block *next;
    uint64_t address;
    size_t bytes;
} weir__cuda_block;

typedef struct weir__cuda_pool {
    bool host;
    weir__cuda_block *free; /* kept */
    weir__cuda_block *used;
    size_t used_bytes, free_bytes, budget; /* used + free never exceed the budget */
} weir__cuda_pool;

typedef struct weir__cuda {
    weir__device base;
    weir__cuda_driver driver;
    weir__cublas blas;         /* library NULL: none, own kernels instead */
    char no_blas[80];          /* then: why */
    cublasHandle_t spare_blas; /* the first one, until a stream takes it; device's lock */
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CUfunction functions[WEIR__CUDA_FUNCTIONS]; /* NULL: the image lacks it for this device */
    int capability;                             /* 10 * major + minor */
    char lacking[96];                           /* weir__cuda_kernels_check; loop's thread */
    bool eager;                                 /* no graphs: WEIR_CUDA_GRAPHS=0 */
    /* The device was lost and its context given back: no handle of the driver means anything. Under `memory` or `graphs`, set under both. */
    bool gone;

    pthread_mutex_t memory; /* the pools; held during calls of the driver, the device's lock is taken inside of it at most */
    weir__cuda_pool device_pool, host_pool;
    CUstream clearing; /* zeroes new memory */
    CUevent cleared;   /* recorded behind the last zeroing */
    _Atomic uint64_t clearings;

    /* under the device's lock */
    CUevent *events; /* [event_count] of [event_room], not in use */
    size_t event_count, event_room;
    weir__threads threads;

    pthread_mutex_t graphs; /* what lists have captured; held during calls of the driver */
    unsigned graph_count;
    size_t graph_bytes; /* about what they hold */
} weir__cuda;

static inline weir__cuda *weir__cuda_of(weir__device *d) {
    return (weir__cuda *)d;
}

/* Makes the context current on a thread that may have another one, the host's; leave gives that back. */
typedef struct weir__cuda_scope {
    CUcontext before;
    bool restore;
} weir__cuda_scope;
weir__cuda_scope weir__cuda_enter(weir__cuda *c);
void weir__cuda_leave(weir__cuda *c, weir__cuda_scope scope);

/* Whether a code means that the context is lost, which the driver then says of every call; note: the device is lost then. */
bool weir__cuda_is_loss(CUresult code);
bool weir__cuda_note(weir__cuda *c, CUresult code);

/* kernels.c */
bool weir__cuda_image_is_there(void);              /* false: built without nvcc */
void weir__cuda_image_text(char *to, size_t size); /* what is embedded, for people */
/* The context is current. EUNSUPPORTED: nothing in the image runs on this device. EDEVICE: the context is lost, or the driver refuses a kernel for another reason than its absence. */
int weir__cuda_kernels_open(weir__cuda *c, unsigned index, weir_error **error);
/* NULL, or which kernel of the op the image lacks: valid until the next call. */
const char *weir__cuda_kernels_check(weir__cuda *c, const weir__cuda_op *op);

/* memory.c: functions of the device's table */
int weir__cuda_memory_init(weir__cuda *c, weir_error **error);
void weir__cuda_memory_fini(weir__cuda *c);
void weir__cuda_memory_gone(weir__cuda *c); /* with the context: what is kept is given back, what is in use when it is freed */
void *weir__cuda_memory(weir__device *d, size_t bytes, bool host);
void weir__cuda_memory_free(weir__device *d, void *p, size_t bytes, bool host);
/* The stream's later work comes after every zeroing of memory that was begun so far. */
CUresult weir__cuda_memory_order(weir__cuda *c, CUstream stream, uint64_t *seen);

/* stream.c */
int weir__cuda_stream_open(weir__device *d, const char *name, weir__stream **out, weir_error **error);
void weir__cuda_stream_submit(weir__stream *st, weir__item *item);
void weir__cuda_stream_wake(weir__stream *st);
void weir__cuda_stream_close(weir__stream *st);
void weir__cuda_stream_release(weir__stream *st); /* gives its memory back: weir__threads */

/* issue.c: items as calls of the driver; the stream's thread */
/* What a stream's thread gives to the driver with. */
typedef struct weir__cuda_queue {
    weir__cuda *device;
    CUstream stream;
    cublasHandle_t blas; /* NULL: the stream was not prepared, or there is no library */
    uint64_t blas_space; /* its workspace */
    size_t blas_bytes;
    uint64_t seen;  /* zeroings that its work comes after */
    uint64_t ended; /* items up to this number are not in flight */
    char *why;      /* of the last failure: call, kernel, shape */
} weir__cuda_queue;
enum { WEIR__CUDA_WHY = WEIR__WHY };
int weir__cuda_queue_init(weir__cuda *c, weir__cuda_queue *q, weir_error **error);
void weir__cuda_queue_fini(weir__cuda_queue *q);
/* Returns code; of a failure it keeps why, and notes whether the context is lost. */
CUresult weir__cuda_said(weir__cuda_queue *q, const char *call, CUresult code);
CUresult weir__cuda_order(weir__cuda_queue *q); /* its later work comes after the zeroing of all memory that there is */
CUresult weir__cuda_issue_list(weir__cuda_queue *q, const weir__item *item);
CUresult weir__cuda_issue_copy(weir__cuda_queue *q, const weir__item *item);
CUresult weir__cuda_launch_all(weir__cuda_queue *q, const weir__list *l, const weir__shape *shape); /* one after the other */

/* blas.c */
void weir__cuda_blas_open(weir__cuda *c); /* the context is current, as for the next */
void weir__cuda_blas_close(weir__cuda *c);
CUresult
weir__cuda_blas_prepare(weir__cuda_queue *q); /* takes the handle and the workspace if it has none yet; nothing without a library */
CUresult weir__cuda_blas_run(weir__cuda_queue *q, const weir__cuda_gemm *g, const weir__shape *shape);
void weir__cuda_blas_end(weir__cuda_queue *q);

/* graph.c: lists that are run again in the same shape are captured once and replayed */
void weir__cuda_graphs_init(weir__cuda *c);
/* *done: a graph was launched; else the list is to be launched item by item. number: of the stream's item. A failed capture leaves the stream usable. */
CUresult weir__cuda_replay(weir__cuda_queue *q, weir__list *l, const weir__shape *shape, uint64_t number, bool *done);
/* The list was launched item by item in this shape, all of it, which set up what its launches need: the next run may be captured. */
void weir__cuda_ran(weir__cuda_queue *q, weir__list *l, const weir__shape *shape);
void weir__cuda_list_free(weir__list *l); /* the list ends, no work uses it: gives its graphs back. Any thread */

#endif
