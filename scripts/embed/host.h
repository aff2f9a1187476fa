/* host.h: what the host programs of this folder share, and what has nothing to do with event loops: options, the calls of weir, figures, an echo service of
 * lines and a client that measures it. Everything but the client belongs to the host's one thread. */
#ifndef HOST_H
#define HOST_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1 /* accept4 */
#endif

#include <pthread.h>
#include <stdatomic.h>
#include <weir.h>

enum { HOST_TICK_NS = 5000000 };                       /* the host's own timer */
enum phase { LOADING, PREFILL, DECODE, IDLE, PHASES }; /* what weir does meanwhile */

/* Samples in ns. */
typedef struct samples {
    int64_t *values;
    size_t count, room;
} samples;

typedef struct host {
    /* options */
    const char *model;
    char *prompt; /* NULL: tokens */
    int32_t *tokens;
    size_t n_tokens;
    unsigned max_tokens, threads;
    double idle; /* s that the program stays after the generation, with the model loaded and nothing to do */

    /* weir */
    weir_system *system;
    weir_model *loaded;
    uint64_t request;
    weir_finish finish;
    int status; /* exit code: 0 done, 1 failed, 130 interrupted */

    /* figures */
    _Atomic int phase;
    samples late[PHASES];  /* of the host's timer */
    samples trips[PHASES]; /* of the client's lines, there and back */
    struct timespec idle_since;
    long idle_switches;

    /* the client, on a thread of its own */
    pthread_t client;
    bool client_runs; /* not yet joined */
    _Atomic int client_fd;
    int port;
    _Atomic bool client_stop;
    unsigned replies, wrong;
} host;

int64_t host_now(void); /* ns, CLOCK_MONOTONIC */

/* Reads the options. 0, or the program's exit code after a usage text. */
int host_options(host *h, int argc, char **argv);
/* Begins to load the model; the generation follows by itself. false: failed, and said so. */
bool host_begin(host *h);
/* For Ctrl-C: cancels what goes on. */
void host_interrupt(host *h);
/* An error that ends the program. */
void host_fail(host *h, const char *what, const weir_error *error);
void host_late(host *h, int64_t ns); /* a sample of the host's timer */

/* A socket that listens on 127.0.0.1, or -1 and said so. Sets h->port. */
int host_listen(host *h);
bool host_client_start(host *h);
/* The client has closed its connection: prints the figures. */
void host_client_gone(host *h);

/* A connection of the echo service, on a non-blocking socket. */
typedef struct echo {
    int fd;
    char bytes[4096];
    size_t size, lines; /* bytes that are there; of them whole lines, that are to be sent back */
} echo;
enum echo_wants { ECHO_READ, ECHO_WRITE, ECHO_CLOSE };
enum echo_wants host_echo(echo *e); /* when it is ready: does what can be done without waiting */

/* Around the idle time. */
void host_idle_begin(host *h);
void host_idle_end(host *h);
/* Gives everything back; the program's exit code. */
int host_end(host *h);

#endif
