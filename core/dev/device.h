/* device.h: devices, buffers, streams, events and lists. A device is a table of functions; the functions below check, count and forward.
 * Knows actors only as addresses that are notified; knows no model.
 *
 * Threads: everything is called on the loop's thread and returns at once (the loop thread never computes and never blocks); the work itself
 * runs elsewhere, in order within a stream. Under the test driver it is run inline by the driver, one item at a time.
 * Ownership: all objects are counted. Work that is under way owns what it touches. */
#ifndef WEIR_DEVICE_H
#define WEIR_DEVICE_H

#include "../../kernels/kernels.h"
#include "../rt/rt.h"

typedef struct weir__device weir__device;
typedef struct weir__buffer weir__buffer;
typedef struct weir__stream weir__stream;
typedef struct weir__event weir__event;
typedef struct weir__list weir__list;

extern WEIR_API const weir_handle_type weir__buffer_handle; /* name "buffer": a buffer inside a message */
extern const weir_handle_type weir__event_handle;           /* name "event" */

/* ---- devices ---- */

/* A device of the system by its name, made on first use, and anew when it is lost; the system owns it. May wait for a driver. NULL: "cpu". threads: of the cpu; 0: as it is, or the processors this process may
 * use. EBUSY: made with another count; EINVAL: no such device, WEIR_CPU in the environment names no level, or one that does not run here; ENOMEM. */
int weir__device_open(weir_system *s, const char *name, unsigned threads, weir__device **out, weir_error **error);
/* The same for drivers that take their time: *device at once if it is there or made quickly, else *opening, and the device is made on a thread of its own; `verb`
 * is posted to `who` from itself when weir__device_open_end will tell at once. One that is lost is made anew as soon as no stream of it is left. Each opening is ended or
 * dropped. */
typedef struct weir__opening weir__opening;
int weir__device_open_start(weir_system *s, const char *name, unsigned threads, weir_address who, weir_verb verb, weir__device **device,
                            weir__opening **opening, weir_error **error);
int weir__device_open_end(weir__opening *o, weir__device **out, weir_error **error); /* after the message; frees it. As weir__device_open */
/* Instead: nobody waits for it, and it is given back when it is done. A message that is posted already still comes. */
void weir__device_open_drop(weir__opening *o);
/* Why the device is of no use any more, static; NULL: it is. All its work fails with EDEVICE, and who owns a stream of it is told: after what was submitted has
 * ended, the message "device_lost" is posted to it from itself. Any thread */
const char *weir__device_lost(const weir__device *d);
/* What devices there are: fn with each one's name, "cpu" or "cuda:0", what it is, and whether models can be loaded to it; if not, `detail` says why. Makes none.
 * Blocks while drivers are asked: for tools. */
typedef void weir__device_fn(void *data, const char *name, const char *detail, bool usable);
WEIR_API void weir__devices(weir_system *s, weir__device_fn *fn, void *data);
/* Whether there are products with int8 activations; without them activations are floats. */
bool weir__device_has_int8(const weir__device *d);
bool weir__device_stops_lists(const weir__device *d); /* skip ends a list that runs within a few items; else it ends whole */
/* Bytes of workspace that kernels take beside their rows, for at most so many rows at a time: a product of [rows][k] and [n][k], attention, sampling. */
size_t weir__device_product_workspace(const weir__device *d, int32_t rows, int32_t n, int32_t k);
size_t weir__device_attention_workspace(const weir__device *d, int32_t rows, int32_t heads, int32_t dim, int32_t splits);
size_t weir__device_sample_workspace(const weir__device *d, int32_t rows, int32_t vocab);
/* EUNSUPPORTED names what a sample asks for and the device cannot do. */
int weir__device_check_sample(const weir__device *d, const weir_sample *s, weir_error **error);
weir_system *weir__device_system(weir__device *d);
const char *weir__device_name(const weir__device *d);   /* "cpu" */
const char *weir__device_detail(const weir__device *d); /* "avx512+vnni, 2 threads" */
unsigned weir__device_threads(const weir__device *d);

/* ---- buffers ---- */

/* Memory for kernels, 64-byte aligned, zeroed; on cpu large ones in huge pages. Counted in the system's bytes. ENOMEM (the text says how many bytes, for what). */
int weir__buffer_new(weir__device *d, size_t bytes, const char *what, weir__buffer **out, weir_error **error);
/* Memory for the host, which the device copies from and to without the host's help: read and written by host code while no copy does. */
int weir__buffer_new_host(weir__device *d, size_t bytes, const char *what, weir__buffer **out, weir_error **error);
/* An address without memory: for lists that are recorded to see whether the device has what they ask for, and never run. ENOMEM */
int weir__buffer_new_nowhere(weir__device *d, weir__buffer **out, weir_error **error);
weir__buffer *weir__buffer_ref(weir__buffer *b); /* any thread */
void weir__buffer_unref(weir__buffer *b);        /* any thread; NULL does nothing */
WEIR_API size_t weir__buffer_size(const weir__buffer *b);
WEIR_API void *weir__buffer_pointer(weir__buffer *b); /* the address that kernels and copies know */
/* The address that host code may read and write when no work does; NULL: it may not (memory for kernels of a device that does not share its memory). */
WEIR_API void *weir__buffer_host(weir__buffer *b);

/* Memory that the host fills and kernels read, or the other way: a buffer for each, the same one where the device shares its memory. */
typedef struct weir__mirror {
    weir__buffer *device, *host;
} weir__mirror;
int weir__mirror_new(weir__device *d, size_t bytes, const char *what, weir__mirror *m, weir_error **error);
void weir__mirror_free(weir__mirror *m); /* work under way keeps what it needs; a zeroed one: nothing */
/* Submits the copy of a part to the device, from the device; nothing where both are one. As weir__stream_copy. */
int weir__mirror_push(weir__stream *st, const weir__mirror *m, size_t offset, size_t bytes);
int weir__mirror_pull(weir__stream *st, const weir__mirror *m, size_t offset, size_t bytes);

/* ---- lists: recorded device work ---- */

int weir__list_new(weir__device *d, const char *name, weir__list **out, weir_error **error);
weir__list *weir__list_ref(weir__list *l);
void weir__list_unref(weir__list *l);
/* Appends kernel `kernel` with a copy of its arguments, bound now. `joined`: the next item waits until this one is complete on all workers;
 * false: the next one may start meanwhile. EUNSUPPORTED: the device has no kernel for this shape (the text says which), ENOMEM, EBUSY. */
int weir__list_add(weir__list *l, enum weir_kernel kernel, const void *args, bool joined, weir_error **error);
int weir__list_append(weir__list *l, const weir__list *other, weir_error **error); /* all items and buffers of another list */
int weir__list_own(weir__list *l, weir__buffer *b); /* the list counts a buffer that its items touch. ENOMEM, EBUSY */
size_t weir__list_length(const weir__list *l);

/* ---- streams ---- */

/* A new ordered queue of work with a thread of its own. owner is shown by weir__streams and gets notices. ENOMEM, EIO (no thread). */
int weir__stream_new(weir__device *d, weir_address owner, const char *name, weir__stream **out, weir_error **error);
/* Submits: each returns EINVAL (NULL, something of another device, out of bounds), ENOMEM, EDEVICE (injected); then nothing was queued and what was
 * given stays the caller's. The work counts what it is given. A failure of one piece of work sticks to the stream: what follows is not run, its
 * events fail, until the next notify, which reports the first failure and clears it. */
/* How much of what a list was recorded for this run needs: devices that launch a grid a kernel fit it to this. The counts in the step block decide; these are at
 * least as large. NULL: the list reads no step block. */
typedef struct weir__shape {
    int32_t rows, outputs; /* of the tile, of the output tile */
    int32_t positions;     /* 1 + the largest position of a row */
} weir__shape;
int weir__stream_run(weir__stream *st, weir__list *l, const weir__shape *shape);
int weir__stream_copy(weir__stream *st, weir__buffer *to, size_t to_offset, weir__buffer *from, size_t from_offset, size_t bytes);
/* What lists on this stream need of the device beside their own memory is taken now, so that no step takes any; without it, by the first list that needs it. */
int weir__stream_prepare(weir__stream *st);
/* Runs fn(data) on the stream's thread: reading files, parsing, tokenising. release(data) is called once, after fn or instead of it when the
 * stream was closed or skipped, on any thread. fn's result: 0 or a weir code that becomes the stream's failure. */
int weir__stream_host(weir__stream *st, int (*fn)(void *data), void (*release)(void *data), void *data);
/* Counts a buffer until all earlier work is done. */
int weir__stream_keep(weir__stream *st, weir__buffer *b);
int weir__stream_record(weir__stream *st, weir__event *e); /* e is done when all earlier work is; once per event, else EINVAL */
/* Later work waits for e; a failed e fails this stream's later work up to the next notify. EINVAL: e was never recorded. So a wait is only ever for
 * work that was submitted before it, and streams cannot wait for each other in a circle. */
int weir__stream_wait(weir__stream *st, weir__event *e);
/* Posts [status, args...] to `to` when all earlier work is done: status is 0, or the code of the first failure since the last notify (ECANCELLED for
 * skipped work, EDEVICE). Bounded by nothing, cannot fail later. arg is one integer for the receiver. */
int weir__stream_notify(weir__stream *st, weir_address to, weir_verb verb, int64_t arg);
/* What is known of the failure that a notice reported: the call, the kernel, the shape, after ": "; "": nothing. */
void weir__stream_why(weir__stream *st, char *to, size_t size);
/* Skips all work submitted so far that has not finished: lists stop at the next joined item, host functions are not started, notices not yet posted
 * say ECANCELLED (or an earlier failure). Returns at once. */
void weir__stream_skip(weir__stream *st);
/* Skips, lets the running item end, then gives all back, in the background; until then it lingers for its owner (rt.h). The pointer is not to be used
 * again. Notices are still posted. NULL does nothing. */
void weir__stream_close(weir__stream *st);

/* Draining: closed, and its last work has not ended. Quarantined: the same, and whoever waited for it has given up (weir__quarantine). */
enum weir__stream_state { WEIR__STREAM_OPEN, WEIR__STREAM_DRAINING, WEIR__STREAM_QUARANTINED };
WEIR_API const char *weir__stream_state_name(int state);

typedef struct weir__stream_info {
    char device[32], name[64];
    weir_address owner;
    int state;                     /* WEIR__STREAM_* */
    uint64_t submitted, completed; /* work items */
    int64_t busy;                  /* ns of work */
    int tid;                       /* kernel thread id, 0 inline */
} weir__stream_info;
/* Calls fn for every stream of the system that is open or drains; fn must not call into the device. Any thread. */
WEIR_API void weir__streams(weir_system *s, void (*fn)(void *data, const weir__stream_info *info), void *data);

/* ---- events ---- */

int weir__event_new(weir__device *d, weir__event **out);
weir__event *weir__event_ref(weir__event *e);
void weir__event_unref(weir__event *e);
int weir__event_status(const weir__event *e); /* EBUSY: not yet; 0: done; else how it failed */

/* ---- the device table: what a backend brings ---- */

/* A bound entry point; the backend that bound it knows its true type (cpu: weir_kernel_fn; cuda: a driver's function handle). */
typedef void weir__entry(void);
typedef struct weir__item weir__item; /* one piece of submitted work: private.h */

/* The functions in front check, count and make items; a backend queues the items and ends each one, in its stream's order, with weir__item_done. */
typedef struct weir__device_table {
    const char *name;
    bool shares_memory; /* host code reads and writes what kernels use: buffers for the host are memory as those for kernels */
    bool int8;          /* weir__device_has_int8 */
    bool stops_lists;   /* weir__device_stops_lists */
    bool can_be_lost;   /* weir__device_lost */
    /* Of a device that is lost: waits up to `patience` ns until no stream is left, then gives back what the driver holds, so that it can be made anew; d stays for what
     * still counts its parts. False: a stream has not ended. Any thread. */
    bool (*retire)(weir__device *d, int64_t patience);
    /* In weir_system_free: ends every stream, waits for what runs, joins the threads, frees d. False: something has not ended within weir__drain; d and what it
     * holds stay, and weir__leave_behind has said so. */
    bool (*close)(weir__device *d);
    /* Zeroed, 64-byte aligned, for kernels or for the host; NULL without memory. */
    void *(*memory)(weir__device *d, size_t bytes, bool host);
    /* No queued work touches p any more. Any thread; must not wait for a stream. */
    void (*memory_free)(weir__device *d, void *p, size_t bytes, bool host);
    /* Bytes that kernels ask for beside their rows: products of [rows][k] with [n][k], attention, sampling. */
    size_t (*product_workspace)(const weir__device *d, int32_t rows, int32_t n, int32_t k);
    size_t (*attention_workspace)(const weir__device *d, int32_t rows, int32_t heads, int32_t dim, int32_t splits);
    size_t (*sample_workspace)(const weir__device *d, int32_t rows, int32_t vocab);
    /* The name of what a sample asks for and this device cannot do; NULL: it can. */
    const char *(*check_sample)(const weir_sample *s);
    /* Finds the entry point for these arguments, or returns a text, valid until the next call, that says why there is none. */
    const char *(*bind)(weir__device *d, enum weir_kernel kernel, const void *args, weir__entry **entry);
    /* Counts an entry point once more, once less; NULL: entry points are not counted. Any thread. */
    void (*entry_ref)(weir__entry *entry);
    void (*entry_unref)(weir__entry *entry);
    /* What the backend keeps with a list, with an event, when these end; NULL: nothing. Any thread. */
    void (*list_free)(weir__list *l);
    void (*event_free)(weir__event *e);
    /* Makes a stream, or gives a closed one with its thread anew, ready for submit. Its base is zeroed but for `device` and, of one that is given anew,
     * tid, the pool of items, and the name and owner, which the front replaces. ENOMEM, EIO. */
    int (*stream_open)(weir__device *d, const char *name, weir__stream **out, weir_error **error);
    void (*submit)(weir__stream *st, weir__item *item); /* cannot fail, does not wait */
    /* What the stream may be waiting for has changed (an event, a skip). The device's lock is held. */
    void (*wake)(weir__stream *st);
    /* Nothing will be submitted any more, everything queued is marked as skipped: ends the items, then gives the stream back with weir__stream_drained, in the
     * background. */
    void (*stream_close)(weir__stream *st);
} weir__device_table;

#endif
