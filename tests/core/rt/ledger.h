/* ledger.h: the books of a generated workload. Each pair of sender and receiver has a line: what was accepted, what was handled, what became a dead
 * letter. At the end accepted = handled + dead, in messages, in bytes and, where every dead letter was read, in the sum of their numbers. */
#ifndef WEIR_LEDGER_H
#define WEIR_LEDGER_H

#include <pthread.h>
#include <stdatomic.h>

#include "fixture.h"

/* MAIL: sends and fan-outs: accepted is known. ASK: calls: issued only, a refusal is one of the ways in which a call ends. */
enum ledger_kind { LEDGER_MAIL, LEDGER_ASK, LEDGER_KINDS };

typedef struct ledger_flow {
    uint64_t count, bytes, mix; /* mix: sum of ledger_mix(sequence number) */
} ledger_flow;

typedef struct ledger_line {
    struct ledger_line *next;
    weir_address from, to;
    enum ledger_kind kind;
    ledger_flow accepted; /* the sender's thread */
    ledger_flow handled;  /* the receiver's thread */
    ledger_flow dead;     /* under the lock; mix: of those that were read */
    uint64_t read;        /* dead letters that were read; under the lock */
} ledger_line;

typedef struct ledger {
    pthread_mutex_t lock;
    ledger_line **buckets;
    size_t room, count;
    weir_verb verbs[LEDGER_KINDS];
    uint64_t events, hash;     /* of the trace; test driver only */
    uint64_t dead, seen, read; /* dead letters: traced, looked at, read before they were gone */
    bool hashing;
    char violation[256]; /* the first one; empty: none */
} ledger;

void ledger_init(ledger *g, bool hashing);
void ledger_fini(ledger *g);
/* The line of a pair, made on first use. Any thread */
ledger_line *ledger_find(ledger *g, weir_address from, weir_address to, enum ledger_kind kind);
void ledger_add(ledger_flow *f, uint64_t number, size_t bytes);
uint64_t ledger_mix(uint64_t number);
/* The first violation is kept, with the number of the trace's event at which it was seen. Any thread */
void ledger_violation(ledger *g, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The system's trace: data is the ledger. */
void ledger_trace(void *data, enum weir_trace kind, weir_address from, weir_address to, const char *verb, size_t bytes, int why);
/* Reads the dead letters that came since, when many wait or all are asked for. Only where one thread runs everything: they are told apart by their count. */
void ledger_read(ledger *g, weir_system *s, bool all);
/* Compares all lines, when nothing runs any more. */
void ledger_close(ledger *g, ledger_flow *mail, ledger_flow *ask);

#endif
