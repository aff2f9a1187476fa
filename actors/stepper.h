/* stepper.h: the stepper's state, shared by the files that make it up: stepper.c (the actor, its queue, sequences), pass.c (a pass from its message to its
 * rows and its reply), drive.c (submitting a pass: the policy's transaction, units, run-ahead). */
#ifndef WEIR_STEPPER_H
#define WEIR_STEPPER_H

#include "actors.h"

/* One run: consecutive positions of one sequence inside a pass. */
typedef struct weir__run {
    uint64_t sequence;
    uint32_t first, count; /* positions */
    uint32_t outputs;      /* rows that want logits */
    weir_error *error;     /* why it is not part of the pass; NULL: it is */
} weir__run;

/* What the pass waits for. */
enum weir__phase { WEIR__QUEUED, WEIR__BEGIN, WEIR__ACQUIRE, WEIR__COMPLETE, WEIR__RUNNING, WEIR__FINISH, WEIR__ABORT };

typedef struct weir__pass {
    struct weir__pass *next;
    uint64_t id;
    weir_reply_to to;
    weir_address caller;
    int64_t tag; /* the caller's, for cancel */
    weir_body *body;
    bool hidden, return_logits;
    weir__run *runs;
    uint32_t n_runs;
    weir__buffer *hidden_out; /* float [units + 1][rows][H] */
    weir__buffer *logits_out; /* float [outputs][vocab] */
    enum weir__phase phase;
    bool transaction;    /* begin was answered, neither finish nor abort was sent */
    int64_t lease;       /* ordinal of the active lease, -1: none */
    uint32_t unit;       /* next to submit */
    uint32_t units_done; /* known to be done on the device */
    uint32_t standing;   /* units run under standing grants */
    uint32_t notices;    /* notifications under way */
    bool submitted;      /* everything is on the stream */
    weir_error *error;   /* why the pass fails; the first counts */
} weir__pass;

typedef struct weir__stepper {
    weir_system *system;
    weir_address self;
    weir__stepper_options options;
    weir__device *device;
    weir__checkpoint *checkpoint;
    weir__stream *stream;
    weir__forward *forward; /* NULL until prepared */
    weir__kv *kv;
    weir_address owners[WEIR_MAX_SEQUENCES]; /* who opened the sequence in that slot */
    uint64_t sequences[WEIR_MAX_SEQUENCES];  /* its id, 0: closed */
    weir__pass *current, *queue;
    uint64_t passes;
    weir_reply_to preparing; /* the answer to `prepare`, until the expert provider has answered */
    uint32_t units;
    int64_t generation;                     /* of the policy's standing grants */
    bool policy_gone;                       /* passes wait until another one is named */
    weir_address next_policy, next_experts; /* for the passes after the current one, 0: as they are */
    bool *granted;                          /* [units + 1] */
    weir__buffer **leases;                  /* [units + 1] blobs that the slots point at */
    weir_verb begin, acquire, complete, finish, abort, banks, unit_done, pass_done, tables_done;
} weir__stepper;

/* pass.c */
/* Reads the message of a pass. On failure nothing is left. */
int weir__pass_new(weir__stepper *s, const weir_body *body, weir__pass **out, weir_error **error);
void weir__pass_free(weir__stepper *s, weir__pass *p);
/* Reserves positions and fills the step block. A run that cannot be part gets its error; fails if none is left. */
int weir__pass_fill(weir__stepper *s, weir__pass *p, weir_error **error);
/* Commits the sequences' lengths and makes the reply. NULL: no memory. */
weir_body *weir__pass_reply(weir__stepper *s, weir__pass *p);

/* drive.c */
void weir__drive_start(weir_actor *self, weir__pass *p);
void weir__drive_fail(weir_actor *self, weir__pass *p, weir_error *error); /* taken; the pass ends when its work has drained */
void weir__drive_unit_done(weir_actor *self, int64_t status, int64_t ordinal);
void weir__drive_pass_done(weir_actor *self, int64_t status, int64_t id);

/* stepper.c */
void weir__stepper_ended(weir_actor *self, weir__pass *p); /* answered: frees it and starts the next */

#endif
