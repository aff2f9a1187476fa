/* actors.h: how the actors of a model are made, and what they share. Each is spawned by the model actor and speaks only messages afterwards; their verbs are in
 * verbs.def. Knows no Lua. */
#ifndef WEIR_ACTORS_H
#define WEIR_ACTORS_H

#include "../core/model/forward.h"
#include "../core/model/model.h"

/* Starts the actor "model": it loads a model on `load` and starts the others. */
WEIR_API int weir__model_spawn(weir_system *s, weir_address *model, weir_error **error);

/* Reads, packs and hands out units; owns the transfer stream. c: the file that is open already, or NULL. */
int weir__residency_spawn(weir_system *s, weir__device *d, weir__checkpoint *c, weir_address *out, weir_error **error);
/* The policy that keeps every unit resident and grants one standing run. */
int weir__policy_spawn(weir_system *s, weir__device *d, weir__checkpoint *c, weir_address residency, weir_address *out, weir_error **error);
/* The expert provider of a model without experts. */
int weir__experts_spawn(weir_system *s, weir__device *d, weir_address *out, weir_error **error);

typedef struct weir__stepper_options {
    weir__forward_options forward;
    weir_address policy, experts;
} weir__stepper_options;
/* Runs passes; owns the compute stream, the sequences and the KV cache. */
int weir__stepper_spawn(weir_system *s, weir__device *d, weir__checkpoint *c, const weir__stepper_options *o, weir_address *out,
                        weir_error **error);

typedef struct weir__generator_options {
    weir_address stepper, residency;
    weir_address model; /* whose end ends every request; 0: nobody's */
    uint32_t context;   /* positions of the KV pool */
} weir__generator_options;
/* Turns requests into passes and tokens into text. */
int weir__generator_spawn(weir_system *s, weir__checkpoint *c, const weir__generator_options *o, weir_address *out, weir_error **error);

/* Reply and answer with a body that was just made: NULL (no memory for it) becomes ENOMEM. */
void weir__reply_made(weir_actor *self, const weir_message *m, weir_body *body);
void weir__answer_made(weir_actor *self, weir_reply_to to, weir_body *body);
void weir__write_key(weir_writer *w, const char *key);
/* True if the message is a notice of the actor's own stream, and nobody's who learnt its address. */
bool weir__own_notice(const weir_actor *self, const weir_message *m);

/* Reads an address from the map of `use`: absent is 0. False: not an address, answered. */
bool weir__read_neighbour(weir_actor *self, const weir_message *m, const char *key, weir_address *out);
/* Makes the stream of an actor that was just spawned; on failure the actor is killed (its fini sees a NULL stream). */
int weir__actor_stream(weir_system *s, weir_address owner, weir__device *d, const char *name, weir__stream **out, weir_error **error);

/* What is told of an actor that has ended, or of what it left undone (error is taken): the loss of the device where that is the reason, else the error itself. */
weir_error *weir__reason(weir_error *error);
bool weir__is_gone(int code); /* of a call: the actor that was asked has ended */
weir_error *weir__lost_error(const weir__device *d);
weir_error *weir__why_failed(const weir__device *d,
                             weir_error *error); /* error (taken), or that the device is lost, whatever it was that failed first */
/* Ends an actor whose device is lost: the model starts it anew. */
void weir__exit_lost(weir_actor *self, const weir__device *d);
void weir__on_device_lost(weir_actor *self, const weir_message *m, const weir__device *d); /* the message "device_lost" of its stream */

/* Why work was not accepted by an actor's stream. */
weir_error *weir__stream_refused(const weir__device *d, const char *stream, int code);

/* The behaviours, for tests that compare them with verbs.def. Ends with NULL. */
const weir_behaviour *const *weir__behaviours(void);
extern const weir_behaviour weir__model_behaviour, weir__residency_behaviour, weir__policy_behaviour, weir__experts_behaviour,
    weir__stepper_behaviour, weir__generator_behaviour;

/* ---- options: the map that may end the arguments ---- */

/* A cursor at the map that is argument `index` of a body; without it a cursor in which nothing is found. */
weir_cursor weir__options(const weir_body *b, uint32_t index);
/* Absent or nil: *v is left alone, true. Of another type or out of range: false, and *error says which. */
bool weir__option_int(weir_cursor map, const char *key, int64_t min, int64_t max, int64_t *v, weir_error **error);
bool weir__option_double(weir_cursor map, const char *key, double min, double max, double *v, weir_error **error);
bool weir__option_bool(weir_cursor map, const char *key, bool *v, weir_error **error);
bool weir__option_bytes(weir_cursor map, const char *key, const char **data, size_t *size, weir_error **error);

/* ---- text in messages ---- */

/* Encodes a value of a message that is a text or an array of [text, special] parts. */
int weir__encode_value(weir_system *s, const weir__tokenizer *t, weir_cursor value, bool special, bool bounds, weir__ids *ids,
                       weir_error **error);
size_t weir__encode_size(weir_cursor value); /* bytes of text in it */
/* Ids given as bin of int32 little endian, or as an array of integers. ETOKEN, ETYPE. */
int weir__read_ids(weir_system *s, weir_cursor value, int32_t vocab, weir__ids *ids, weir_error **error);

#endif
