/* private.h: what the files of core/dev share: the layout of its objects, and the path of a work item from its submission to its end. Knows no
 * kernel and no thread: those belong to a backend (cpu.h). */
#ifndef WEIR_DEV_PRIVATE_H
#define WEIR_DEV_PRIVATE_H

#include "device.h"

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>

#define WEIR__CACHE_LINE 64
enum { WEIR__WHY = 192 };

/* A kind of device that can be made by name. */
typedef struct weir__backend {
    const char *name;
    bool many;    /* "name:1" is another device */
    bool threads; /* the number of threads is the caller's to choose */
    bool slow;    /* making one waits for a driver */
    /* EINVAL, EUNSUPPORTED, ENOMEM, EIO: the text says what is missing. */
    int (*make)(weir_system *s, unsigned index, unsigned threads, weir__device **out, weir_error **error);
    void (*list)(weir_system *s, weir__device_fn *fn, void *data); /* weir__devices */
} weir__backend;
extern const weir__backend weir__cpu_backend, weir__cuda_backend;

/* The base of every backend's device; the backend's struct starts with it. */
struct weir__device {
    const weir__device_table *table;
    weir_system *system;
    weir__device *next; /* of the system's */
    const weir__backend *backend;
    unsigned index;
    char name[24];              /* "cpu", "cuda:0" */
    _Atomic(const char *) lost; /* static; NULL: it is not */
    bool retired;               /* lost, and nothing of the driver is left; front's lock */
    unsigned threads;
    char detail[64];
    /* the list, queues, pools and counters of its streams, waiters of its events; held for a few instructions, never while work runs */
    pthread_mutex_t lock;
    weir__stream *streams; /* open ones and those that drain, newest first; lock */
};

struct weir__buffer {
    weir__device *device;
    _Atomic uint32_t refs;
    size_t size, allocated; /* bytes asked for; bytes held, 0: it is nowhere */
    bool host;              /* for the host */
    void *pointer;
};

struct weir__event {
    weir__device *device;
    _Atomic uint32_t refs;
    bool recorded;         /* loop's thread */
    bool issued;           /* its record is with the driver; device's lock */
    void *native;          /* the backend's, given back with event_free; device's lock */
    _Atomic int status;    /* EBUSY until it is done. The release in weir__event_finish pairs with the acquire in weir__event_status */
    weir__stream *waiters; /* streams that stand still for it, linked by next_waiter; device's lock */
};

typedef struct weir__list_item {
    weir__entry *entry;
    bool joined;
    alignas(16) unsigned char args[WEIR_KERNEL_MAX_ARGS];
} weir__list_item;

/* A counter per item, a cache line each, so that workers that are already at the next item do not slow those that are not. */
typedef struct weir__chunks {
    alignas(WEIR__CACHE_LINE) _Atomic uint32_t next;
} weir__chunks;

struct weir__list {
    weir__device *device;
    _Atomic uint32_t refs;
    _Atomic uint32_t queued; /* submissions that have not ended: while there are any, the list is not changed */
    char name[WEIR_MAX_NAME];
    weir__list_item *items; /* [capacity], length used */
    weir__chunks *chunks;   /* [capacity], inside chunks_memory; used by whoever runs the list, one runner at a time */
    void *chunks_memory;
    size_t length, capacity;
    weir__buffer **buffers; /* [buffer_capacity], buffer_count used, each counted */
    size_t buffer_count, buffer_capacity;
    void *native; /* the backend's, freed with list_free; its lock */
};

enum weir__item_kind {
    WEIR__ITEM_LIST,
    WEIR__ITEM_COPY,
    WEIR__ITEM_HOST,
    WEIR__ITEM_PREPARE,
    WEIR__ITEM_KEEP,
    WEIR__ITEM_RECORD,
    WEIR__ITEM_WAIT,
    WEIR__ITEM_NOTIFY
};

/* Objects in it are counted for the item. */
struct weir__item {
    weir__item *next;
    uint64_t number; /* 1, 2, 3... in its stream */
    /* for backends whose work goes on elsewhere: between an item's turn and its end */
    weir__stream *stream;
    int64_t begun; /* weir__dev_clock */
    int status;    /* what its turn came to */
    enum weir__item_kind kind;
    union {
        struct {
            weir__list *list;
            weir__shape shape;
        } run;
        weir__buffer *kept; /* KEEP */
        struct {
            weir__buffer *to, *from;
            size_t to_offset, from_offset, bytes;
        } copy;
        struct {
            int (*fn)(void *data);
            void (*release)(void *data);
            void *data;
        } host;
        weir__event *event; /* RECORD, WAIT */
        struct {
            weir__notice *notice;
            weir_body *body; /* the notice's body, whose status is written when it is known */
        } notify;
    };
};

/* The base of every backend's stream; the backend's struct starts with it. */
struct weir__stream {
    weir__device *device;
    weir__stream *next, *prev; /* in the device's list, until it is given back; device's lock */
    weir_address owner;
    char name[WEIR_MAX_NAME];
    _Atomic int state;   /* WEIR__STREAM_*. Written under the device's lock; its owner's thread reads it without */
    weir__linger linger; /* from close until it is given back */
    uint64_t submitted;  /* number of the newest item; loop's thread */
    _Atomic uint64_t
        skipped; /* items up to this number are not run. Only a request: relaxed, the lock or a barrier orders what follows from it */
    weir__notice *lost;  /* for the owner, if the device is lost; NULL: told, or nobody is to be told */
    char why[WEIR__WHY]; /* what the backend knows of its last failure, "": nothing; device's lock */
    int failure;         /* first failure since the last notify; whoever ends the stream's items */
    _Atomic int tid;     /* 0: no thread (yet) */
    pthread_t thread;    /* of backends with one a stream (threads.h) */
    uint64_t completed;  /* device's lock, with the next two */
    int64_t busy;
    weir__item *pool;          /* ended items, for the next submissions */
    weir__stream *next_waiter; /* in weir__event.waiters */
    bool waiting;              /* it is among them */
};

void weir__device_streams(weir__device *d, void (*fn)(void *data, const weir__stream_info *info), void *data); /* weir__streams of one */
/* The device is lost (why: static); the first reason counts. Wakes its streams. Any thread that does not hold the device's lock. */
void weir__device_lose(weir__device *d, const char *why);
/* All that was submitted has ended: tells the stream's owner, once. The stream's thread. */
void weir__stream_tell_lost(weir__stream *st);

static inline bool weir__item_skipped(const weir__stream *st, const weir__item *item) {
    return item->number <= atomic_load_explicit(&st->skipped, memory_order_relaxed);
}

/* Why the item must not run: ECANCELLED, or the stream's failure; 0: run it. Called by whoever ends the stream's items. */
int weir__item_verdict(const weir__stream *st, const weir__item *item);
/* Ends an item with its status after `busy` ns of work: keeps the first failure, finishes the event or posts the notice, gives back what the item
 * counts, and the item to the pool. Any thread, but one at a time and in order for one stream. */
void weir__item_done(weir__stream *st, weir__item *item, int status, int64_t busy);
/* The last of a closed stream, when all its items have ended: frees its pool, takes it off the list, tells who waits for the drain. Afterwards the memory
 * is the backend's, to free or to give anew. Any thread. */
void weir__stream_drained(weir__stream *st);
void weir__streams_quarantine(weir__device *d, weir_address owner); /* names the closed streams of `owner` that still drain */
weir__stream *weir__stream_any_open(weir__device *d);               /* NULL: none */

void weir__event_finish(weir__event *e, int status); /* device's lock is held; wakes who waits */
/* The device's lock is held, e is not done: the stream is among the waiters until weir__event_leave. */
void weir__event_join(weir__event *e, weir__stream *st);
void weir__event_leave(weir__event *e, weir__stream *st);

int64_t weir__dev_clock(void); /* monotonic ns */

#endif
