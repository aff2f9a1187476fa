/* bench.h: what the benchmarks of this folder share: how one is described, run and checked, and the few lines that each of its actors needs. Built on weir.h
 * alone, as a host's program would be. The benchmarks are those of Savina (Imam and Sarkar, "Savina - An Actor Benchmark Suite", 2014): each comes to a
 * count or a sum that is known beforehand. All mailboxes have the default bound and refuse: who would send more than the receiver can take has to ask. */
#ifndef WEIR_BENCH_H
#define WEIR_BENCH_H

#include <stdatomic.h>
#include <stdlib.h>

#include "weir.h"

/* WINDOW: messages that a sender may have on their way to one receiver. GRANT: the receiver says how it goes after that many. */
enum { BENCH_PARAMETERS = 3, BENCH_WINDOW = 512, BENCH_GRANT = BENCH_WINDOW / 2, BENCH_TEXT = 200 };

/* The verbs of all benchmarks: b->go and so on. */
#define BENCH_VERBS(V) V(go) V(ping) V(pong) V(put) V(get) V(take) V(more) V(full) V(done) V(space)

typedef struct bench bench;

typedef struct bench_kind {
    const char *name, *counts;                             /* on the command line; what the result is */
    const char *parameters[BENCH_PARAMETERS];              /* their names; NULL behind the last */
    int64_t few[BENCH_PARAMETERS], full[BENCH_PARAMETERS]; /* small ones for tests; those of the suite */
    void (*start)(bench *b);                               /* spawns the actors and sends what sets them going */
    int64_t (*expected)(const int64_t *p);                 /* the closed form */
} bench_kind;

/* One run. Actors on any loop read it; result and failed are written by them. */
struct bench {
    weir_system *system;
    weir_actor *main; /* sends in the name of nobody: its mail is not looked at */
    const int64_t *p; /* (BENCH_PARAMETERS) */
    int loop;         /* where bench_spawn puts actors */
    void *data;       /* the benchmark's own; given to free when all actors have ended */
    _Atomic int64_t result;
    _Atomic int failed;       /* a code; 0: nothing went wrong */
    char failure[BENCH_TEXT]; /* written by whoever set failed */
#define BENCH_VERB(name) weir_verb name;
    BENCH_VERBS(BENCH_VERB)
#undef BENCH_VERB
};

typedef struct bench_options {
    bool few;
    unsigned workers; /* 0: all actors on the main loop; else spread over the workers in turn */
    enum weir_driver driver;
    uint64_t seed;
} bench_options;

typedef struct bench_result {
    int64_t value, expected;
    int64_t messages;         /* accepted, and replies of calls */
    int64_t refused;          /* sends to a full mailbox, made again later */
    int64_t ns;               /* from the first spawn until nothing was left to do */
    char failure[BENCH_TEXT]; /* "": the value is the expected one, every message was handled */
} bench_result;

extern const bench_kind *const bench_kinds[]; /* NULL behind the last */
const bench_kind *bench_find(const char *name);
/* WEIR_OK: the result is right; EINVAL: it is not, or a message was lost; else the code of what failed. out->failure says more. The calling thread's. */
int bench_run(const bench_kind *kind, const bench_options *o, bench_result *out);

/* What one of something costs, measured once, in ns: to be asked for in turns and more than once, since machines are noisy. */
typedef struct bench_rate {
    const char *name, *text;
    double (*measure)(bench *b); /* < 0: failed, b says why */
    unsigned workers;            /* loops that it needs beside the main loop */
} bench_rate;

extern const bench_rate bench_rates[]; /* name NULL behind the last */
/* < 0: failure (of BENCH_TEXT bytes) says why. Blocks, the calling thread drives the loop meanwhile. */
double bench_rate_measure(const bench_rate *rate, char *failure);

/* ---- for benchmarks ---- */

/* The system and the verbs of a run; a code, and b->failure says what failed. */
int bench_open(bench *b, const bench_options *o);
void bench_close(bench *b);

/* Starts an actor whose state is `size` zeroed bytes that begin with the bench; NULL after a failure, which has been noted. It gets no message before the
 * caller sends it one, so the state may be filled in until then. kind->fini must be bench_fini or end with it. */
void *bench_spawn(bench *b, const weir_behaviour *kind, size_t size, weir_address *out);
void *bench_spawn_here(bench *b, const weir_behaviour *kind, size_t size, weir_address *out); /* on the calling thread's loop */
void bench_fini(weir_system *s, void *state);

/* Notes the first failure and ends the run. */
void bench_fail(bench *b, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Sends; a refusal is a failure. */
void bench_send(bench *b, weir_actor *self, weir_address to, weir_verb verb, weir_body *body);
void bench_int(bench *b, weir_actor *self, weir_address to, weir_verb verb, int64_t value);
int64_t bench_first(bench *b, const weir_message *m); /* the first argument, an integer */

static inline void bench_add(bench *b, int64_t n) {
    atomic_fetch_add_explicit(&b->result, n, memory_order_relaxed);
}
static inline uint64_t bench_random(uint64_t *state) { /* xorshift64 (Marsaglia, 2003); *state is not 0 */
    *state ^= *state << 13;
    *state ^= *state >> 7;
    return *state ^= *state << 17;
}
static inline int64_t bench_triangle(int64_t n) { /* 0 + 1 + ... + n - 1 */
    return n * (n - 1) / 2;
}

#endif
