/* model.h: the state of the actor "model", shared by model.c (its verbs and its end), assemble.c (starting the members, and starting them anew) and describe.c
 * (what it says of itself). */
#ifndef WEIR_ACTORS_MODEL_H
#define WEIR_ACTORS_MODEL_H

#include "actors.h"

/* The actors of a model, in the order in which they start; they are stopped in the other one. */
enum weir__member_name { WEIR__RESIDENCY, WEIR__POLICY, WEIR__EXPERTS, WEIR__STEPPER, WEIR__GENERATOR, WEIR__MEMBERS };
extern const char *const weir__member_names[WEIR__MEMBERS];

typedef struct weir__member {
    weir_address address; /* 0: there is none */
    weir_address dead;    /* the one before, until its streams have drained; 0: none */
    bool ready;           /* stepper: prepared; policy: warm; the others: as soon as they are there */
    bool stale;           /* knows a neighbour that has been replaced */
} weir__member;

#define WEIR__MOST_RESTARTS 16

/* A call `info` that waits until the model is whole again. */
typedef struct weir__waiting {
    struct weir__waiting *next;
    weir_reply_to to;
} weir__waiting;

typedef struct weir__model {
    weir_system *system;
    char device_name[32]; /* asked for, "": the default */
    unsigned threads;
    weir__device *device;   /* NULL: not open yet */
    weir__opening *opening; /* it is being made, or made anew */
    weir__checkpoint *checkpoint;
    weir__member members[WEIR__MEMBERS];
    weir__forward_options options;
    int64_t context; /* asked for, 0: default */
    int quant;       /* type to which weights are quantised while they are loaded, -1: none */
    weir_address progress;
    char path[4096];
    bool loading, loaded, stopping;
    weir_reply_to caller; /* of `load` */
    weir__waiting *waiting;
    /* assembling */
    bool asked;        /* a step waits for an answer, or for a drain */
    uint64_t backoff;  /* timer before the next try, 0: none */
    uint64_t patience; /* timer of a drain, 0: none */
    int draining;      /* the member whose drain is waited for */
    int64_t drain;     /* ns to wait for what a dead member left on the device */
    int64_t intensity; /* restarts within the period that are borne */
    int64_t restarts[WEIR__MOST_RESTARTS];
    int n_restarts; /* within the period */
    weir_verb open, warm, prepare, use, drained, device_opened;
} weir__model;

/* describe.c: what `load` and `info` answer. NULL: no memory */
weir_body *weir__model_describe(const weir__model *m);

/* assemble.c */
/* Does what is missing to a whole model: starts members, prepares them, tells them of each other. Returns at the first step that has to be waited for, which
 * goes on by itself; when all is there `load` and those who wait for `info` are answered. */
void weir__model_assemble(weir_actor *self);
bool weir__model_whole(const weir__model *m);
/* A member has ended, or cannot be made ready (error is taken): a load fails; a loaded model is assembled anew, after a pause, unless that happened too often:
 * then it ends. */
void weir__model_broken(weir_actor *self, weir_error *error);
void weir__model_drained(weir_actor *self, const weir_message *m);       /* the notice: what a dead member left is no longer waited for */
void weir__model_device_opened(weir_actor *self, const weir_message *m); /* the notice: whether there is a device is known */

/* model.c */
void weir__model_load_failed(weir_actor *self, weir_error *error); /* taken */
void weir__model_answer_info(weir_actor *self);                    /* whoever waits for `info` */

#endif
