/* generator.h: the generator's state, shared by generator.c (the actor), generator_pass.c (its turns: passes from requests), request.c (a request from its message to its text) and
 * encode.c (texts and ids asked for by others). */
#ifndef WEIR_GENERATOR_H
#define WEIR_GENERATOR_H

#include "sampling.h"

enum weir__request_state {
    WEIR__OPENING, /* waits for its ids or its sequence */
    WEIR__WAITING, /* has its ids; asks for a sequence when there is a stepper again */
    WEIR__READY,   /* may be part of the next pass */
    WEIR__IN_PASS,
    WEIR__STALLED, /* its reader is WEIR_CREDIT pieces behind */
    WEIR__ENDED    /* finished or failed; freed when the reader has been told */
};

typedef struct weir__request {
    struct weir__request *next;
    uint64_t id;
    weir_address owner;
    weir_reply_to opening; /* the answer to `generate` */
    enum weir__request_state state;
    uint64_t sequence; /* of the stepper, 0: none */
    weir__ids prompt;  /* given back after the first pass */
    uint32_t position; /* positions written */
    int32_t token;     /* the last one, next pass's row */
    /* what was asked for */
    weir_sample sample;
    weir_bias *bias; /* [sample.biases], owned */
    int64_t max_tokens, credit;
    bool ignore_end;
    weir_body *body; /* holds the stop strings */
    weir__string stops[WEIR_MAX_STOPS];
    uint32_t n_stops;
    /* what came out */
    weir__decoder decoder;
    char *text; /* not yet taken by the reader */
    size_t text_size, text_room;
    weir__ids tokens;        /* of that text */
    weir_logprobs *logprobs; /* of those tokens, if the request wants them, owned */
    size_t n_logprobs, logprobs_room;
    int64_t ahead; /* pieces in it */
    bool reading;  /* `next` waits */
    weir_reply_to reader;
    const char *reason; /* "stop", "length", "context"; NULL: goes on */
    weir_error *error;
    uint32_t prompt_tokens, generated;
    int64_t began, first, last; /* times: asked, first token, latest token */
} weir__request;

/* A `tokenize` that residency works on. */
typedef struct weir__forwarded {
    struct weir__forwarded *next;
    uint64_t id;
    weir_reply_to to;
} weir__forwarded;

typedef struct weir__generator {
    weir_system *system;
    weir__checkpoint *checkpoint;
    const weir__tokenizer *tokenizer; /* NULL: token ids only */
    weir__generator_options options;
    weir__request *requests; /* oldest first */
    weir__forwarded *forwarded;
    uint64_t count, tags;
    int64_t tag;                          /* of the pass in flight, 0: none */
    int64_t cancelled;                    /* tag of the pass that this actor cancelled last */
    uint64_t in_pass[WEIR_MAX_SEQUENCES]; /* request of each run, 0: cancelled meanwhile */
    uint32_t n_in_pass;
    bool stepper_gone; /* until `use` names another one nothing is asked of it */
    weir_verb open, close, pass, cancel, encode;
} weir__generator;

/* request.c */
/* Reads the options of a request. On failure nothing is left. */
int weir__request_new(weir__generator *g, const weir_message *m, weir__request **out, weir_error **error);
void weir__request_free(weir__generator *g, weir__request *r); /* taken off the list */
weir__request *weir__request_find(weir__generator *g, uint64_t id);
bool weir__request_owner(const weir__generator *g, weir_address owner); /* has one */
/* Takes a sampled token: text, stop strings, ends; logprobs: NULL if the request wants none. ENOMEM. */
int weir__request_token(weir__generator *g, weir__request *r, int32_t token, const weir_logprobs *logprobs, weir_error **error);
/* Ends it for a reason: what the decoder held is text now. On failure it has not ended. ENOMEM. */
int weir__request_finish(weir__generator *g, weir__request *r, const char *reason, weir_error **error);
/* Answers a waiting `next` if there is text or an end. True: the request was told its end and is gone. */
bool weir__request_deliver(weir_actor *self, weir__request *r);
void weir__request_fail(weir__request *r, weir_error *error); /* taken */

/* True while `generate` has not been answered. */
static inline bool weir__request_unopened(const weir__request *r) {
    return r->state == WEIR__OPENING || r->state == WEIR__WAITING;
}

/* generator.c */
void weir__generator_deliver(weir_actor *self, weir__request *r);                 /* to a reader that waits; it may be gone afterwards */
void weir__generator_fail(weir_actor *self, weir__request *r, weir_error *error); /* taken; told where `generate` or `next` waits */

/* generator_pass.c */
/* Begins a pass, if none is in flight and a request may go on. */
void weir__generator_schedule(weir_actor *self);

/* Asked before its `down` may have come. */
static inline bool weir__stepper_there(const weir__generator *g) {
    return !g->stepper_gone && weir__actor(g->system, g->options.stepper);
}

/* encode.c */
/* False: it restarts, and what it would do for us is EBUSY. */
bool weir__residency_there(const weir__generator *g, weir_error **error);
void weir__on_tokenize(weir_actor *self, const weir_message *m);
void weir__on_detokenize(weir_actor *self, const weir_message *m);

#endif
