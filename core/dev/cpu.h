/* cpu.h: the cpu device's own parts, shared by its files: the device, its two kinds of stream (threads, inline), and what both execute. */
#ifndef WEIR_DEV_CPU_H
#define WEIR_DEV_CPU_H

#include "../../kernels/cpu/cpu.h"
#include "private.h"
#include "team.h"
#include "threads.h"

typedef struct weir__cpu_stream weir__cpu_stream;
typedef struct weir__inline_stream weir__inline_stream;

typedef struct weir__cpu {
    weir__device base;
    const weir_cpu_table *kernels;
    /* with threads; all under the device's lock */
    weir__team *team;
    weir__cpu_stream *team_queue; /* streams that have a list to run, first come first; the first one owns the team */
    weir__cpu_stream *parked;     /* closed and drained, their threads wait for a new stream */
    unsigned parked_count;
    bool quit; /* no thread parks any more */
    weir__threads threads;
    /* inline */
    weir__inline_stream *streams; /* oldest first, until they are drained; loop's thread */
} weir__cpu;

/* stream_cpu.c: a thread each */
int weir__cpu_stream_open(weir__device *d, const char *name, weir__stream **out, weir_error **error);
void weir__cpu_stream_submit(weir__stream *st, weir__item *item);
void weir__cpu_stream_wake(weir__stream *st);
void weir__cpu_stream_close(weir__stream *st);
void weir__cpu_stream_release(weir__stream *st); /* gives its memory back: weir__threads */
bool weir__cpu_streams_end(weir__cpu *cpu);      /* as weir__threads_end, with the parked threads */

/* stream_inline.c: no threads; items run in the driver's drain hook, on the loop's thread */
int weir__inline_stream_open(weir__device *d, const char *name, weir__stream **out, weir_error **error);
void weir__inline_stream_submit(weir__stream *st, weir__item *item);
void weir__inline_stream_wake(weir__stream *st);
void weir__inline_stream_close(weir__stream *st);
bool weir__inline_drain(void *cpu, uint64_t random); /* a weir__drain_fn */
void weir__inline_streams_end(weir__cpu *cpu);

/* Executes an item that neither waits nor needs the team (all but LIST and WAIT). */
int weir__cpu_execute(const weir__item *item);
/* Runs a list on the device's team, or alone when it has none; the caller owns the team. 0, ECANCELLED, EDEVICE (injected). */
int weir__cpu_run_list(weir__cpu *cpu, weir__stream *st, const weir__item *item);

/* processors.c */
unsigned weir__processors(void); /* that this process may use: affinity mask and cgroup quota; at least 1 */
/* The cgroup's cpu quota in processors, rounded up: the least of a group and its parents. 0: none. membership: a file in the format of
 * /proc/self/cgroup; root: where the hierarchies are mounted, /sys/fs/cgroup. */
unsigned weir__cgroup_processors(const char *membership, const char *root);

#endif
