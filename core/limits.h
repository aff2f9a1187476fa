/* limits.h: the limits that matter beyond one file, each with its reason. Those of one file stand beside their use, named; those that kernels share with
 * core stand in kernels/kernels.h. */
#ifndef WEIR_LIMITS_H
#define WEIR_LIMITS_H

#define WEIR_MAX_DEPTH 64                      /* nesting of msgpack: what is encoded can be decoded; a decoder's stack stays small */
#define WEIR_MAILBOX_MESSAGES 1024             /* default bound of a mailbox: a slow actor shows within one burst */
#define WEIR_MAILBOX_BYTES (16 << 20)          /* default bound of its bodies, so that large bodies are refused sooner */
#define WEIR_MAX_BODY (1u << 30)               /* one message body; a longer one belongs into a buffer */
#define WEIR_CALL_TIMEOUT INT64_C(30000000000) /* ns; a call without a deadline of its own still ends */
#define WEIR_MAX_NAME 64                       /* actor names, verbs, tensor names in messages, with the ending zero */
#define WEIR_TURN_MESSAGES 64                  /* messages an actor handles before the next one's turn: latency of the others */
#define WEIR_TURN_NS 2000000                   /* ns of actor code before the loop looks at timers and sockets again */

#define WEIR_MAX_WORKERS 63         /* worker loops of a system: one word of bits */
#define WEIR_DEAD_LETTERS 256       /* dead letters that are kept for reading */
#define WEIR_DEAD_LETTER_BYTES 4096 /* a larger body is not kept with its dead letter */

#define WEIR_MAX_DIMS 4            /* dimensions of a tensor, as in GGUF */
#define WEIR_AHEAD 2               /* units that the host may be ahead of the device */
#define WEIR_WHOLE_ROWS 16         /* rows of a pass that is one list where lists cannot be stopped: more go unit by unit, for cancel */
#define WEIR_BARRIER_SPIN_NS 20000 /* ns a worker spins at a barrier before it sleeps (measured: see core/dev/README.md) */
#define WEIR_DRAIN_NS                                                                                                                      \
    INT64_C(10000000000)     /* ns that weir_system_free waits for work that a closed stream has begun, and a restart for a dead actor's */
#define WEIR_MAX_THREADS 256 /* workers of one cpu device */
#define WEIR_PARKED_STREAMS                                                                                                                \
    4 /* threads of closed streams kept for the next ones: a model's four owners can come and go without a new thread */

#define WEIR_GGUF_MAX_KV 65536                 /* metadata keys of a file; published ones have under 100 */
#define WEIR_GGUF_MAX_TENSORS 65536            /* published ones have under 3,000 */
#define WEIR_GGUF_MAX_NAME 256                 /* bytes of a key or a tensor's name */
#define WEIR_GGUF_MAX_HEADER (256u << 20)      /* bytes before the tensor data; published ones have under 32 MiB */
#define WEIR_GGUF_MAX_NESTING 8                /* arrays in arrays; published files have none */
#define WEIR_GGUF_CHUNK (256u << 10)           /* bytes of the header read at a time */
#define WEIR_SAFETENSORS_MAX_HEADER 100000000  /* bytes of a header or an index: the format's own bound */
#define WEIR_SAFETENSORS_MAX_TENSORS (1 << 18) /* of all shards; published ones, with every expert by itself, have under 200,000 */
#define WEIR_MAX_FILES 1000                    /* shards of a checkpoint, each an open descriptor; published ones have under 200 */
#define WEIR_MAX_CONFIG (1 << 20)              /* bytes of a config.json; published ones have under 64 KiB */
#define WEIR_MAX_SETTINGS 65536                /* settings of a config.json, as WEIR_GGUF_MAX_KV */
#define WEIR_MAX_LAYERS 1024
#define WEIR_MAX_WIDTH (1 << 20) /* any one dimension of a model but the vocabulary */
#define WEIR_MAX_VOCAB (1 << 22)
#define WEIR_MAX_PIECE 4096       /* bytes of one piece of a vocabulary: looking one up costs its length; published ones have under 1,024 */
#define WEIR_MAX_MERGES (1 << 24) /* of a byte-level BPE; published ones have under 600,000 */
#define WEIR_MAX_TEXT (1u << 30)  /* bytes of one text to the tokeniser, and of a vocabulary's pieces: positions are 32 bits wide */
#define WEIR_DEFAULT_CONTEXT 8192 /* positions in the KV pool when the caller does not say */
#define WEIR_MAX_SEQUENCES 64     /* sequences of one model at a time: rows of the block table */
#define WEIR_DEFAULT_TILE 512     /* rows of a pass that go through a unit together: their activations stay in L2 */
#define WEIR_CREDIT 8             /* pieces that a generation runs ahead of its reader */
#define WEIR_MAX_STOPS 16         /* stop strings of a request */
#define WEIR_MAX_STOP_BYTES 256
#define WEIR_TOKENIZE_INLINE 4096 /* bytes tokenised on the loop; a longer text goes to a stream (1 MB takes a second) */

#endif
