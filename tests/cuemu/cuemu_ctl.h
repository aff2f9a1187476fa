/* cuemu_ctl.h: what a test asks of the emulated driver beside the driver's own functions. Link libcuda.so.1 of the emulator, or find these with dlsym in
 * it. Any thread, but not from a host function. Keys of faults and counts are names of functions without their version suffix: "cuMemAlloc". */
#ifndef CUEMU_CTL_H
#define CUEMU_CTL_H

#include <stddef.h>

struct CUstream_st;
#ifdef __cplusplus
extern "C" {
#endif

/* Settings, as in the environment (README.md): "memory", "lazy", "jitter_us", "call_us", "hold", "seed", "reverse", "cc". False: no such key. */
int cuemu_set(const char *key, long value);

/* The nth call from now on (1: the next) of `what` fails with code. what: a function's name; "alloc", "copy", "launch", "event", "stream", "graph",
 * "capture", "module": any function of that group; "any": any function; "function:KERNEL": its lookup fails; "launch:KERNEL": its launch is refused; "exec:KERNEL", "exec:copy", "exec:memset",
 * "exec:host": fails when it runs, asynchronously; "device": from that call on the device is lost and every function returns code, until the context is
 * reset. nth 0 takes the fault back. */
void cuemu_fail(const char *what, int nth, int code);
void cuemu_fail_clear(void);
/* Calls so far of a function or a group; also "implicit_sync" (a free that had to wait) and "pageable_async" (an asynchronous copy of unpinned memory). */
long cuemu_count(const char *what);
long cuemu_count_here(const char *what); /* those made on the calling thread */

/* The launch log. A line says what was asked for, on which stream, in order of submission:
 *   launch NAME sS gX,Y,Z bX,Y,Z smBYTES (ARGUMENTS)    copy HtoD sS #2+0 <- h#5+64 256    memset sS #2+0 0 256    record sS eE    wait sS eE
 *   host sS    graph sS xX    library NAME sS    and each of them with "capture " in front while sS captures.
 * Pointers are #ALLOCATION+OFFSET, h# for pinned memory, "host" for other host memory; streams, events and allocations are numbered from 1. */
void cuemu_log_clear(void);
int cuemu_log_size(void);
const char *cuemu_log_line(int i); /* valid until cuemu_log_clear; NULL beyond the end */

/* Faults of the program that were found, each a line beginning with its kind: "unordered:", "freed in flight:", "use after free:", "out of bounds:",
 * "bad argument:", "pinned memory changed:", "unfinished transfer:", "leak:", "kernel failed:", "misuse:". */
int cuemu_report_count(void);
const char *cuemu_report(int i); /* valid until cuemu_reports_clear; NULL beyond the end */
void cuemu_reports_clear(void);
int cuemu_check_leaks(void); /* reports every object that is alive, returns how many */
/* Says that the host now reads (write 0) or writes [p, p + bytes): reported when an unfinished transfer touches it. */
void cuemu_host_access(const void *p, size_t bytes, int write);
const char *cuemu_last_error(void); /* the text behind the last code that was not 0; valid until the next call */

/* For the emulated cuBLAS. Each operand is a range of device memory that the work touches. */
typedef struct cuemu_operand {
    const void *pointer;
    size_t bytes;
    int write;
} cuemu_operand;
int cuemu_enter(const char *function, int *code); /* counts the call; true: code is what an injected fault or a lost device returns */
/* Runs fn(copy of data) in stream order; capturable. Returns a driver's code. */
int cuemu_enqueue(struct CUstream_st *stream, const char *name, void (*fn)(void *), const void *data, size_t size,
                  const cuemu_operand *operands, int count);
int cuemu_is_live(const void *p, size_t bytes); /* [p, p + bytes) lies in one live allocation of the device or of pinned memory */
int cuemu_is_capturing(struct CUstream_st *stream);
void cuemu_async_error(int code, const char *why); /* called by work: the context is lost */
void cuemu_track_handle(int delta);                /* library handles made or destroyed, for the report of leaks */

#ifdef __cplusplus
}
#endif
#endif
