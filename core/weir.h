/** @file
 * weir.h: the whole public C API of libweir.
 *
 * Conventions
 * - Opaque types; `_new/_free` own heap objects. A pointer parameter marked "taken" changes owner even when the call fails.
 * - Functions that can fail return a code: WEIR_OK (0) or one of WEIR_E*. A trailing `weir_error **error` may be NULL; on failure it
 *   receives an error object that the caller frees with weir_error_free; on success it is left alone.
 * - Durations and times are int64_t nanoseconds; times are of the system's clock, weir_now().
 * - Threads: unless a function says "any thread", it belongs to the thread that drives the loop of the actor it is given, or, without an actor, to any
 *   thread that drives one of the system's loops. "Main loop's thread": the one that made the system.
 * - The library never calls abort, exit, signal, fork or setlocale, prints nothing, and never uses libev's default loop.
 * - Misuse returns WEIR_EINVAL; debug builds (without NDEBUG) stop at it with a message. */
#ifndef WEIR_H
#define WEIR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_VERSION "0.1.0" /**< of this header: major.minor.patch */
/** On every public function: what the shared library exports. */
#define WEIR_API __attribute__((visibility("default")))

/* ---- errors ------------------------------------------------------------------------------------------------------------- */

/** What functions return: WEIR_OK or why not. The codes and their texts stand in errors.def; their numbers are part of the wire protocol. */
enum weir_code {
    WEIR_OK = 0, /**< done */
/** One row of errors.def, here a value of the enumeration. */
#define WEIR_ERROR(name, text, http, retry) WEIR_##name,
#include "errors.def"
#undef WEIR_ERROR
    WEIR_CODES /**< how many there are */
};

/** An error: a code, a text that names the culprit, the actor it came from, and what caused it. Immutable; any thread. */
typedef struct weir_error weir_error;

WEIR_API const char *weir_code_name(int code); /**< "EFULL"; "?" for a number that is no code */
WEIR_API const char *weir_code_text(int code); /**< "mailbox full"; static. Any thread, as the two below */
WEIR_API int weir_code_http(int code);         /**< the HTTP status that tells it to a client: 503; 500 for a number that is no code */
WEIR_API bool weir_code_retry(int code);       /**< the same request may succeed later */

/** Makes an error; `actor` may be NULL, `cause` is taken. Never returns NULL: without memory it returns a static error. */
WEIR_API weir_error *weir_error_new(int code, const char *actor, weir_error *cause, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
WEIR_API weir_error *weir_error_ref(const weir_error *e);         /**< one more owner of the same object */
WEIR_API void weir_error_free(weir_error *e);                     /**< NULL does nothing */
WEIR_API int weir_error_code(const weir_error *e);                /**< WEIR_OK for NULL */
WEIR_API const char *weir_error_text(const weir_error *e);        /**< borrowed from the error; the text of WEIR_OK for NULL */
WEIR_API const char *weir_error_actor(const weir_error *e);       /**< NULL if none */
WEIR_API const weir_error *weir_error_cause(const weir_error *e); /**< NULL if none */
/** Sets *error (if error is not NULL) to a new error and returns the code: `return weir_fail(error, WEIR_EINVAL, "...")`. */
WEIR_API int weir_fail(weir_error **error, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* ---- memory ------------------------------------------------------------------------------------------------------------- */

/** Like realloc with sizes: (NULL, 0, n) allocates, (p, old, 0) frees and returns NULL, else resizes. May be called from any thread. */
typedef void *weir_alloc_fn(void *data, void *p, size_t old_size, size_t new_size);

/* ---- system ------------------------------------------------------------------------------------------------------------- */

/** One runtime: its loop, actors, devices. Several may live in one process. */
typedef struct weir_system weir_system;
typedef uint64_t weir_address; /**< an actor; below 2^53, never reused; 0 is nobody */
typedef uint32_t weir_verb;    /**< an interned name; 0 is none */
/** A living actor, seen from its own code: borrowed by its callbacks, valid until it ends. Only its loop's thread may use it. */
typedef struct weir_actor weir_actor;
/** An envelope (to, from, session, verb, deadline) and its body: borrowed by the handler, or by the callback of a call. */
typedef struct weir_message weir_message;
/** An immutable, counted msgpack array of arguments. Any thread. */
typedef struct weir_body weir_body;

/** Who waits for events and what time it is. */
enum weir_driver {
    WEIR_DRIVER_EV = 0, /**< libev (epoll): a loop of its own, run by weir_system_run, or the host's: options.ev_loop */
    WEIR_DRIVER_TEST, /**< seeded choice of the next loop and actor, virtual clock, device streams drained inline: a run replays exactly */
    WEIR_DRIVER_FD /**< for any other host loop: wait until weir_system_fd is readable or weir_system_timeout passed, then weir_system_step */
};

/** How a system is made; all zero: libev, no workers, malloc. */
typedef struct weir_system_options {
    enum weir_driver driver; /**< who waits: libev, a host, or the test driver */
    unsigned workers;        /**< worker loops beside the main loop, each with a thread of its own; at most WEIR_MAX_WORKERS (63) */
    /** Driver EV: the host's struct ev_loop, which the host runs on this thread; it must outlive the system. NULL: a loop of its own. */
    void *ev_loop;
    uint64_t seed;        /**< test driver: decides the order of loops, actors and streams */
    int64_t drain;        /**< ns that weir_system_free waits for device work, and for a driver that makes a device; 0: 10 s */
    weir_alloc_fn *alloc; /**< NULL: malloc */
    void *alloc_data;     /**< handed to alloc */
} weir_system_options;

/** Makes a system; the calling thread becomes its main loop's thread. options may be NULL. ENOMEM, EIO (no epoll, no eventfd, no thread), EINVAL. */
WEIR_API int weir_system_new(const weir_system_options *options, weir_system **out, weir_error **error);
/** Stops what is left (as weir_system_stop with no patience) and gives everything back, but for device work that does not end within `drain`: that goes on, and
 * what it uses, the system's memory included, stays; a line on standard error says what it is. NULL does nothing. */
WEIR_API void weir_system_free(weir_system *s);
/** Runs the main loop until `done(data)` is true (asked between turns), until weir_system_quit, or, with done NULL, until nothing is left in any loop
 * that could happen without the outside (no message, no timer, no stream work). Worker loops run by themselves. In a host's libev loop it runs that.
 * EBUSY: already running (a pump inside a pump), also inside a callback of the host's libev loop. */
WEIR_API int weir_system_run(weir_system *s, bool (*done)(void *data), void *data, weir_error **error);
/** Makes a running weir_system_run return soon; between two runs, the next one. Any thread; async-signal-safe. */
WEIR_API void weir_system_quit(weir_system *s);
/** Driver FD only (else -1): becomes readable when weir_system_step has something to do. One descriptor, the system's, for poll, epoll or select. */
WEIR_API int weir_system_fd(const weir_system *s);
/** ns until weir_system_step has something to do: 0: now; -1: only the descriptor will tell. A host that watches the descriptor needs no timeout. */
WEIR_API int64_t weir_system_timeout(const weir_system *s);
/** Driver FD only: does what there is to do, but no more turns after max_ns (0: 2 ms), and returns without waiting. EBUSY, EINVAL (another driver). */
WEIR_API int weir_system_step(weir_system *s, int64_t max_ns, weir_error **error);
WEIR_API unsigned weir_loops(const weir_system *s); /**< the main loop and the workers. Any thread */

/** Asks every actor to stop, runs the loop until all have ended or `patience` ns passed, kills the rest. ETIMEOUT names who survived. */
WEIR_API int weir_system_stop(weir_system *s, int64_t patience, weir_error **error);
WEIR_API int64_t weir_now(const weir_system *s);                        /**< monotonic, or virtual with the test driver. Any thread */
WEIR_API weir_verb weir_intern(weir_system *s, const char *name);       /**< 0: empty, 64 bytes or more, or no memory. Any thread */
WEIR_API const char *weir_verb_name(const weir_system *s, weir_verb v); /**< valid as long as the system. Any thread */

/** Counters of a system. At the end sent = handled + dead + queued, calls = calls_ended, and bytes = 0 after weir_system_free. */
typedef struct weir_system_stats {
    uint64_t sent;         /**< messages accepted, the dropped ones too */
    uint64_t handled;      /**< of them, those given to a handler */
    uint64_t dead;         /**< of them, those that became dead letters */
    uint64_t queued;       /**< of them, those still in mailboxes, or on their way there */
    uint64_t refused;      /**< not accepted: mailbox full, no such actor */
    uint64_t dropped;      /**< of the dead: because of a mailbox's policy */
    uint64_t calls;        /**< made */
    uint64_t calls_ended;  /**< by a reply, an error, a deadline, an end, or forgotten */
    uint64_t late_replies; /**< answers to calls that had ended */
    uint64_t actors;       /**< living, the main actor too */
    uint64_t spawned;      /**< ever, the main actor too */
    uint64_t timers;       /**< living */
    uint64_t bytes;        /**< memory held through the allocator */
    uint64_t blocks;       /**< the same in allocations */
} weir_system_stats;
WEIR_API void weir_system_get_stats(weir_system *s, weir_system_stats *out); /**< any thread; exact when nothing runs */

/** A handler has run for longer than the limit and still does: once per handler, on a thread of the watchdog's; must not call into the system. */
typedef void weir_slow_fn(void *data, weir_address actor, const char *name, const char *verb, int64_t elapsed);
/** Watches handlers of all loops; limit in ns, 0: off. No thread runs while every loop sleeps. Main loop's thread. ENOMEM, EIO (no thread). */
WEIR_API int weir_set_watchdog(weir_system *s, int64_t limit, weir_slow_fn *fn, void *data);

/* ---- actors ------------------------------------------------------------------------------------------------------------- */

/** Handles one message. `m` is borrowed for the time of the handler. */
typedef void weir_receive_fn(weir_actor *self, const weir_message *m);
/** One row of a behaviour's table. */
typedef struct weir_handler {
    const char *verb;        /**< its name; interned when the first actor of the behaviour starts */
    weir_receive_fn *handle; /**< what it does */
} weir_handler;

/** What an actor does. The struct must outlive its actors (usually static const). Every function may be NULL. */
typedef struct weir_behaviour {
    const char *name;             /**< default name in traces and errors */
    const weir_handler *handlers; /**< ends with {NULL, NULL} */
    weir_receive_fn *receive;     /**< gets verbs that no handler has; NULL: a call is answered with EVERB, a send is a dead letter */
    void (*down)(weir_actor *self, weir_address who,
                 const weir_error *why);       /**< a monitored actor ended; why is NULL after an orderly end */
    void (*stop)(weir_actor *self);            /**< asked to stop; ends when it calls weir_exit. NULL: ends at once */
    void (*fini)(weir_system *s, void *state); /**< last call: gives `state` back */
} weir_behaviour;

/** What becomes of a message that a full mailbox cannot take. */
enum weir_full {
    WEIR_FULL_REFUSE = 0, /**< the sender is told: EFULL */
    WEIR_FULL_AWAIT,      /**< the same in C (see weir_want_space); senders in Lua wait until there is room */
    /** Accepted; the oldest message becomes a dead letter. A dropped call ends with EFULL. EFULL all the same: on other threads, while as much as the bounds
     * again has not yet arrived. */
    WEIR_FULL_DROP_OLDEST,
    WEIR_FULL_DROP_NEWEST /**< the new message becomes a dead letter; a send says WEIR_OK, a call ends with EFULL */
};

/** Where an actor lives: weir_spawn_options.loop. Worker n (from 0) is WEIR_LOOP_MAIN + 1 + n. */
enum {
    WEIR_LOOP_HERE = 0, /**< the calling thread's */
    WEIR_LOOP_MAIN = 1, /**< the main loop */
    WEIR_LOOP_ANY = -1  /**< the workers in turn; the main loop if there are none */
};

/** How an actor is started; all zero: here, with the default bounds, refusing when full. */
typedef struct weir_spawn_options {
    const char *name;        /**< copied; NULL: the behaviour's */
    int loop;                /**< WEIR_LOOP_HERE, WEIR_LOOP_ANY, or WEIR_LOOP_MAIN and what is added to it */
    enum weir_full full;     /**< what becomes of a message that the mailbox cannot take */
    size_t mailbox_messages; /**< 0: WEIR_MAILBOX_MESSAGES; at most 2^24 - 1 count */
    size_t mailbox_bytes;    /**< 0: WEIR_MAILBOX_BYTES; at most 2^40 - 1 count */
} weir_spawn_options;

/** Starts an actor. `state` is taken: when this fails, fini has been called. On another loop, handlers and fini run on that loop's thread.
 * ENOMEM, ESTOPPING, EINVAL (no such loop, no such policy). */
WEIR_API int weir_spawn(weir_system *s, const weir_behaviour *b, void *state, const weir_spawn_options *options, weir_address *out,
                        weir_error **error);
WEIR_API void *weir_state(const weir_actor *self);            /**< what weir_spawn was given; the actor's until its fini */
WEIR_API weir_system *weir_system_of(const weir_actor *self); /**< the system it lives in */
WEIR_API weir_address weir_self(const weir_actor *self);      /**< its own address, to be sent to others */
WEIR_API const char *weir_actor_name(const weir_actor *self); /**< as spawned; valid as long as the actor */
/** The actor that stands for code outside of actors (a main program, a Lua main chunk): sends and calls of such code are its. */
WEIR_API weir_actor *weir_main_actor(weir_system *s);
/** Ends the calling actor after its handler returned; `why` is taken, NULL is an orderly end. Queued mail becomes dead letters, its
 * calls end, callers get EEXITED (or `why` as the cause). */
WEIR_API void weir_exit(weir_actor *self, weir_error *why);
WEIR_API int weir_stop(weir_system *s, weir_address a); /**< orderly, in arrival order behind what was sent before. ENOACTOR. Any thread */
/** At once, overtakes everything, needs no memory. When it returns `a` is gone, unless it is the caller, whose handler returns first, or lives on another
 * loop, which ends it between two messages. ENOACTOR; EINVAL: the main actor. Any thread */
WEIR_API int weir_kill(weir_system *s, weir_address a);
/** `down` will be called once when `a` ends (at once, with ENOACTOR, when it has ended already). Cannot fail later for want of memory. */
WEIR_API int weir_monitor(weir_actor *self, weir_address a);
WEIR_API int weir_demonitor(weir_actor *self, weir_address a); /**< ENOACTOR: it did not monitor a */
/** When one of the two ends with an error or is killed, the other is ended too, at once as by weir_kill, with EEXITED and that error as the cause. An orderly
 * end breaks the link. Linking to an actor that has ended ends `self`. ENOMEM; EINVAL: the main actor, or itself. */
WEIR_API int weir_link(weir_actor *self, weir_address a);
WEIR_API int weir_unlink(weir_actor *self, weir_address a); /**< ENOACTOR: self did not make this link */
/** Asks for one message "space" [address] when the mailbox of `a` is at most half full, or `a` has ended. Asked twice: once. ENOMEM, ENOACTOR */
WEIR_API int weir_want_space(weir_actor *self, weir_address a);
WEIR_API unsigned weir_loop_of(weir_system *s, weir_address a); /**< 0: the main loop, or no such actor; from 1: workers. Any thread */
/** While held (a count), an actor gets only replies to its calls, its timers' callbacks and kill; its mail waits. */
WEIR_API void weir_hold(weir_actor *self);
WEIR_API void weir_unhold(weir_actor *self); /**< takes one hold back; with the last one its mail goes on in order of arrival */

/* ---- names: any thread. A name is 1 to 63 bytes; it is free again when its actor ends ---- */

WEIR_API int weir_register(weir_system *s, const char *name,
                           weir_address a);                           /**< EBUSY: another living actor has it; ENOACTOR, ENOMEM, EINVAL */
WEIR_API int weir_unregister(weir_system *s, const char *name);       /**< ENOENT */
WEIR_API weir_address weir_whereis(weir_system *s, const char *name); /**< 0: nobody */
WEIR_API void weir_names(weir_system *s, void (*fn)(void *data, const char *name, weir_address a),
                         void *data); /**< fn must not call into the system */

/* ---- supervision ---- */

/** Whom the end of one child concerns. */
enum weir_strategy {
    WEIR_ONE_FOR_ONE = 0, /**< the child that ended starts anew */
    WEIR_ONE_FOR_ALL      /**< the others are stopped, last first, and all start anew */
};
/** Whether a child that ended is started again. */
enum weir_restart {
    WEIR_RESTART_ALWAYS = 0, /**< however it ended */
    WEIR_RESTART_ON_ERROR,   /**< after an error or a kill; an orderly end is final */
    WEIR_RESTART_NEVER       /**< its first life is its only one */
};

/** One child of a supervisor. */
typedef struct weir_child {
    const char *name; /**< copied */
    /** Starts the child and gives its address; on the supervisor's loop. Called again for each restart: the address changes, so what others know a child by
     * is a name that start gives with weir_register (free again, since the former child has ended). Runs nothing of the loop. */
    int (*start)(weir_system *s, void *data, weir_address *out, weir_error **error);
    void *data;                /**< handed to start */
    enum weir_restart restart; /**< when it is started again */
    int64_t patience;          /**< ns between asking it to stop and killing it; 0: 5 s, < 0: kills at once */
} weir_child;

/** How a supervisor decides; all zero: one for one, 3 restarts in 5 s. */
typedef struct weir_supervisor_options {
    const char *name;            /**< copied; NULL: "supervisor" */
    enum weir_strategy strategy; /**< whom the end of one child concerns */
    unsigned intensity;   /**< restarts within `period` that are borne; one more ends the supervisor with an error. 0: 3; most: 10,000 */
    int64_t period;       /**< ns; 0: 5 s */
    int64_t backoff;      /**< ns before the first restart, doubled for each further one within `period`; 0: at once, then from 10 ms */
    int64_t backoff_most; /**< ns; 0: 10 s */
    int64_t drain;        /**< ns to wait for device work that a dead child left; then its streams are quarantined. 0: 10 s */
    void (*fini)(void *data); /**< called once when the supervisor has ended, or weir_supervise failed; may be NULL */
    void *data;               /**< handed to fini */
} weir_supervisor_options;

/** Starts an actor that starts the children in order and keeps them running; stopped, it stops them, last first; killed, it takes them along. If a first
 * start fails it stops those that run and ends with that error. A restart whose start fails counts as one more restart. ONE_FOR_ALL starts all anew but those with
 * WEIR_RESTART_NEVER. Verb `children`: one list, [[name, address or 0, restarts, state], ...]; state is "running", "stopping", "draining" (what it left on
 * devices), "waiting" (for its restart) or "ended". `children` is copied; options may be NULL. ENOMEM, EINVAL. */
WEIR_API int weir_supervise(weir_system *s, const weir_child *children, size_t n, const weir_supervisor_options *options, weir_address *out,
                            weir_error **error);

/** Counters of one actor. */
typedef struct weir_actor_stats {
    char name[64];         /**< zero-ended */
    uint64_t handled;      /**< messages given to its handlers */
    uint64_t sent;         /**< messages of its that were accepted */
    uint64_t refused;      /**< messages that its mailbox did not take */
    uint64_t dead;         /**< of its mail, dead letters */
    uint64_t queued;       /**< messages in its mailbox */
    uint64_t queued_peak;  /**< the most there were */
    uint64_t queued_bytes; /**< bytes of the bodies in its mailbox */
    uint64_t calls_open;   /**< calls it made that have not been reported to it */
    int64_t busy;          /**< ns spent in its code */
    unsigned loop;         /**< 0: the main loop; from 1: workers */
} weir_actor_stats;
WEIR_API int weir_actor_get_stats(weir_system *s, weir_address a, weir_actor_stats *out); /**< ENOACTOR. Any thread */
/** Calls fn for every living actor, in order of address. Any thread */
WEIR_API void weir_actors(weir_system *s, void (*fn)(void *data, weir_address a, const weir_actor_stats *stats), void *data);

/* ---- messages ----------------------------------------------------------------------------------------------------------- */

/** Sends; the body (NULL: no arguments) is taken, whatever comes back. Not accepted: EFULL, ENOACTOR, ESTOPPING; ETOOBIG: the body is larger than the bound of
 * the receiver's mailbox. */
WEIR_API int weir_send(weir_actor *self, weir_address to, weir_verb verb, weir_body *body);
/** The same from any thread, in the name of `from` (0: nobody). */
WEIR_API int weir_post(weir_system *s, weir_address from, weir_address to, weir_verb verb, weir_body *body);

/** How a call ended: error NULL and the reply (borrowed), or an error (borrowed) and reply NULL. Runs in the caller's turn; never
 * inside weir_call itself. */
typedef void weir_reply_fn(weir_actor *self, void *data, const weir_message *reply, const weir_error *error);
/** Calls `to`; `done` runs exactly once, unless the caller itself ends first (then `data` must be reachable from its state). The actor
 * goes on receiving mail meanwhile; bracket with weir_hold/weir_unhold to wait serially. timeout in ns: 0 = WEIR_CALL_TIMEOUT, < 0 = none.
 * A refused message ends the call too (EFULL, ENOACTOR). Fails only with ENOMEM or EINVAL, then done is not called. session may be NULL. */
WEIR_API int weir_call(weir_actor *self, weir_address to, weir_verb verb, weir_body *body, int64_t timeout, weir_reply_fn *done, void *data,
                       uint64_t *session);
/** Forgets a call: done will not run, a reply is dropped and counted as late. */
WEIR_API void weir_call_cancel(weir_actor *self, uint64_t session);

WEIR_API weir_address weir_message_from(const weir_message *m); /**< the sender; 0: nobody */
WEIR_API weir_verb weir_message_verb(const weir_message *m);    /**< what is asked; see weir_verb_name */
WEIR_API bool weir_message_is_call(const weir_message *m);      /**< it must end in a reply or an error */
WEIR_API int64_t weir_message_deadline(const weir_message *m);  /**< absolute; 0: none */
WEIR_API weir_body *weir_message_body(const weir_message *m);   /**< borrowed, NULL: no arguments */

/** Where a reply goes. A value: may be copied, kept, and used once, even after either actor ended (then it does nothing). */
typedef struct weir_reply_to {
    weir_address caller; /**< who asked */
    uint64_t session;    /**< which of its calls */
    uint64_t ticket;     /**< of a call from another loop */
} weir_reply_to;
/** Answers the call being handled; the body is taken. A second answer to the same call is EINVAL. For a message that is no call: nothing. */
WEIR_API int weir_reply(weir_actor *self, const weir_message *m, weir_body *body);
WEIR_API int weir_reply_error(weir_actor *self, const weir_message *m, weir_error *error); /**< error is taken */
/** Takes the duty to answer away from the handler's end; answer later with weir_answer/weir_answer_error, from this actor. */
WEIR_API weir_reply_to weir_defer(weir_actor *self, const weir_message *m);
/** ENOACTOR: the caller has ended; EINVAL: the call is another actor's to answer. Too late (a deadline, a cancel, a second answer): WEIR_OK,
 * dropped and counted as late. */
WEIR_API int weir_answer(weir_actor *self, weir_reply_to to, weir_body *body);
WEIR_API int weir_answer_error(weir_actor *self, weir_reply_to to, weir_error *error); /**< weir_answer with an error, which is taken */

/** What happens to a message that is traced. */
enum weir_trace {
    WEIR_TRACE_SEND,        /**< a message that is no call reaches its mailbox */
    WEIR_TRACE_CALL,        /**< a call does */
    WEIR_TRACE_REPLY,       /**< a reply reaches the caller */
    WEIR_TRACE_ERROR_REPLY, /**< an error does; `why` is its code */
    WEIR_TRACE_DEAD         /**< nobody handles it; `why` says why */
};
/** Sees messages, for tools and tests. `verb` is valid as long as the system; `why` is a code, WEIR_OK where there is nothing to tell. */
typedef void weir_trace_fn(void *data, enum weir_trace kind, weir_address from, weir_address to, const char *verb, size_t body_bytes,
                           int why);
/** Called on the receiving loop's thread, at delivery; it must not call into the system, but for names and the clock. NULL: off. Set it before workers
 * have work: with workers it is called on their threads too. */
WEIR_API void weir_set_trace(weir_system *s, weir_trace_fn *fn, void *data);

/** The last WEIR_DEAD_LETTERS (256) messages that nobody handled, and why. */
typedef struct weir_dead_letter {
    int64_t at;        /**< ns, when it died, as weir_now */
    weir_address from; /**< the sender; 0: nobody */
    weir_address to;   /**< who did not get it */
    const char *verb;  /**< valid as long as the system */
    int why;           /**< EEXITED, EKILLED, EVERB, ENOACTOR, EFULL, ... */
    size_t bytes;      /**< of its body */
    weir_body *body;   /**< borrowed; NULL: none, or not kept: larger than 4 KiB, or with handles in it */
} weir_dead_letter;
/** Calls fn for those that are kept, oldest first. Any thread; fn must not call into the system. */
WEIR_API void weir_dead_letters(weir_system *s, void (*fn)(void *data, const weir_dead_letter *letter), void *data);

/* ---- timers ------------------------------------------------------------------------------------------------------------- */

/** missed: whole periods that passed unnoticed since the last tick. Never early. */
typedef void weir_timer_fn(weir_actor *self, void *data, uint64_t missed);
/** When a timer ticks again. */
enum weir_timer_kind {
    WEIR_TIMER_ONCE, /**< never */
    WEIR_TIMER_RATE, /**< at its first time plus whole periods */
    WEIR_TIMER_DELAY /**< `period` after its last tick ended */
};
/** Runs fn in the actor's turn after `period` ns. The timer ends with weir_timer_cancel or its actor. id (not NULL) is never reused. */
WEIR_API int weir_timer(weir_actor *self, int64_t period, enum weir_timer_kind kind, weir_timer_fn *fn, void *data, uint64_t *id);
WEIR_API void weir_timer_cancel(weir_actor *self, uint64_t id); /**< an ended or foreign id does nothing */

/* ---- bodies: msgpack --------------------------------------------------------------------------------------------------- */

/** A body is an immutable, counted msgpack array of positional arguments; the last may be a map. Any thread. */
WEIR_API weir_body *weir_body_ref(weir_body *b);
WEIR_API void weir_body_free(weir_body *b);                             /**< NULL does nothing */
WEIR_API const void *weir_body_bytes(const weir_body *b, size_t *size); /**< its msgpack, valid as long as the body. Any thread */
/** Checks outside bytes (one msgpack array; every length against what is there; depth <= 64; O(size), no recursion) and copies them.
 * Ext values that stand for handles are refused. EMSGPACK, EDEPTH (the text has the offset), ENOMEM. */
WEIR_API int weir_body_from_bytes(weir_system *s, const void *bytes, size_t size, weir_body **out, weir_error **error);
/** Makes a body from a format: i int64_t, u uint64_t, d double, s const char*, S const char* + size_t (str), b const void* + size_t (bin), t int as
 * bool, n nil, h weir_handle (its count is taken), [ ] and { } nest. "s{sisd}" is ["..", {"..": 1, "..": 2.0}]. NULL: no memory, or a
 * wrong format. */
WEIR_API weir_body *weir_pack(weir_system *s, const char *format, ...);

/** The same step by step. An error sticks: weir_write_end then returns NULL. Arrays and maps are closed by weir_write_close. */
typedef struct weir_writer weir_writer;
WEIR_API weir_writer *weir_write_begin(weir_system *s);    /**< opens the array of arguments; NULL: no memory, accepted by all below */
WEIR_API void weir_write_nil(weir_writer *w);              /**< the value nil */
WEIR_API void weir_write_bool(weir_writer *w, bool v);     /**< true or false */
WEIR_API void weir_write_int(weir_writer *w, int64_t v);   /**< in the shortest form */
WEIR_API void weir_write_uint(weir_writer *w, uint64_t v); /**< in the shortest form */
WEIR_API void weir_write_double(weir_writer *w, double v); /**< as float 64 */
WEIR_API void weir_write_str(weir_writer *w, const char *s, size_t n); /**< n bytes, copied; UTF-8 is the caller's affair */
WEIR_API void weir_write_bin(weir_writer *w, const void *p, size_t n); /**< n bytes, copied */
WEIR_API void weir_write_array(weir_writer *w);                        /**< opens an array; what follows is in it */
WEIR_API void weir_write_map(weir_writer *w);                          /**< opens a map: key, value, key, value ... */
WEIR_API void weir_write_close(weir_writer *w);                        /**< closes the innermost array or map */
WEIR_API int weir_write_error(const weir_writer *w); /**< WEIR_OK, ENOMEM, EDEPTH, ETOOBIG, EINVAL (a map with an odd count) */
WEIR_API weir_body *weir_write_end(weir_writer *w);  /**< frees the writer */
WEIR_API void weir_write_abort(weir_writer *w);      /**< frees the writer and what was written */

/** A handle is a counted object that travels beside the bytes (a buffer, an event): only inside the process. */
typedef struct weir_handle_type {
    const char *name;            /**< what weir_read_handle asks for; static */
    void (*ref)(void *object);   /**< one more owner. Any thread */
    void (*unref)(void *object); /**< one owner less; the last one frees. Any thread */
} weir_handle_type;
/** A counted object and its type. */
typedef struct weir_handle {
    const weir_handle_type *type; /**< how to count it; static */
    void *object;                 /**< one count of it belongs to whoever holds the handle */
} weir_handle;
WEIR_API void weir_write_handle(weir_writer *w, weir_handle h); /**< its count is taken */

/** What a value of a body is. */
enum weir_kind {
    WEIR_NIL,    /**< nothing */
    WEIR_BOOL,   /**< true or false */
    WEIR_INT,    /**< an integer that fits int64_t */
    WEIR_UINT,   /**< a larger one, below 2^64 */
    WEIR_DOUBLE, /**< a float of 32 or 64 bits */
    WEIR_STR,    /**< text, as bytes */
    WEIR_BIN,    /**< bytes */
    WEIR_ARRAY,  /**< the head of an array */
    WEIR_MAP,    /**< the head of a map */
    WEIR_EXT,    /**< a value of an extension type */
    WEIR_HANDLE, /**< an object beside the bytes */
    WEIR_END     /**< nothing left, or malformed */
};
/** Reads a body in order, without allocating. A plain value that may be copied to come back to a place. */
typedef struct weir_cursor {
    const uint8_t *p;      /**< the next value */
    const uint8_t *end;    /**< behind the last one */
    const weir_body *body; /**< borrowed: must outlive the cursor */
} weir_cursor;
/** One value; what its kind is decides which member is valid. */
typedef struct weir_value {
    enum weir_kind kind; /**< WEIR_INT when it fits int64_t, WEIR_UINT only above; WEIR_END: nothing left, or malformed */
    int8_t ext_type;     /**< of WEIR_EXT */
    union {
        bool b;         /**< of WEIR_BOOL */
        int64_t i;      /**< of WEIR_INT */
        uint64_t u;     /**< of WEIR_UINT */
        double d;       /**< of WEIR_DOUBLE */
        uint32_t count; /**< arrays: elements, maps: pairs; they follow */
        struct {
            const char *data; /**< into the body */
            uint32_t size;    /**< bytes */
        } s;                  /**< str, bin, ext */
        weir_handle handle;   /**< borrowed */
    };
} weir_value;
/** A cursor at the first argument; count (may be NULL): how many there are. NULL b: none. */
WEIR_API weir_cursor weir_read(const weir_body *b, uint32_t *count);
WEIR_API weir_value weir_read_value(weir_cursor *c); /**< arrays and maps: only the head is consumed */
WEIR_API bool weir_read_skip(weir_cursor *c);        /**< one whole value; iterative */
/** Typed reads: false, and the cursor stays, when the next value is of another kind (numbers convert when exact). */
WEIR_API bool weir_read_int(weir_cursor *c, int64_t *v);
WEIR_API bool weir_read_double(weir_cursor *c, double *v);                       /**< a float, or an integer that a double holds exactly */
WEIR_API bool weir_read_bool(weir_cursor *c, bool *v);                           /**< true or false */
WEIR_API bool weir_read_bytes(weir_cursor *c, const char **s, size_t *n);        /**< str or bin */
WEIR_API bool weir_read_array(weir_cursor *c, uint32_t *n);                      /**< the head; its n elements follow */
WEIR_API bool weir_read_map(weir_cursor *c, uint32_t *n);                        /**< the head; its n pairs follow */
WEIR_API bool weir_read_handle(weir_cursor *c, const char *type, void **object); /**< borrowed from the body */
/** In a map that the cursor stands before: a cursor at the value of `key`; false if it has none. The first of equal keys. */
WEIR_API bool weir_read_find(weir_cursor map, const char *key, weir_cursor *value);

/* ---- models (implemented by actors/) ------------------------------------------------------------------------------------- */

/** A loaded model: a set of actors (model, residency, policy, experts, stepper, generator; see actors/README.md for their verbs). When one of them dies the
 * generations that it takes with it end with EEXITED or EKILLED, it is started anew, and new generations wait for it; after too many deaths the model ends. */
typedef struct weir_model weir_model;

/** How a model is loaded; all zero: the defaults. */
typedef struct weir_load_options {
    unsigned threads; /**< workers of the cpu device, 0: the processors this process may use. Another value than the first load's: EBUSY */
    unsigned context; /**< positions in the KV pool, shared by the model's sequences; 0: the model's own length, at most 8,192 */
    unsigned tile;    /**< rows that go through a unit together; 0: 512. Never changes a bit of the result */
    bool activations_f32; /**< products in float instead of int8 activations: slow, for reference; on cuda always */
    bool kv_f32;          /**< KV cache in f32 instead of f16 */
    const char *device;   /**< "cpu" (also NULL), "cuda", "cuda:1"; EINVAL: none of this name; EUNSUPPORTED: no driver, no kernels */
    const char *quant;    /**< type to which float weights are quantised while they are loaded ("q8_0"); NULL: none */
    void (*progress)(void *data, uint64_t done, uint64_t total); /**< bytes packed; on the loop's thread; may be NULL */
    void *data;                                                  /**< handed to progress */
} weir_load_options;

/** Loads a model: a GGUF file, a folder of safetensors, or a name kept by `weir fetch` (in ${XDG_DATA_HOME:-~/.local/share}/weir/models). Runs the loop until it is
 * ready. ENOENT, EFORMAT, EUNSUPPORTED (naming file, key or tensor, found, wanted), ENOMEM, EBUSY. */
WEIR_API int weir_model_load(weir_system *s, const char *model, const weir_load_options *options, weir_model **out, weir_error **error);
/** How an asynchronous load ended: the model, or NULL and why (borrowed; ESTOPPING: the system stopped meanwhile). */
typedef void weir_ready_fn(void *data, weir_model *m, const weir_error *error);
/** weir_model_load without running the loop, for hosts that run it: `ready` runs once, on the loop's thread, never inside this call. The strings and
 * options are copied. Fails only with EINVAL, ENOMEM and, in a system that stops, ESTOPPING; then ready is not called. */
WEIR_API int weir_model_load_async(weir_system *s, const char *model, const weir_load_options *options, weir_ready_fn *ready, void *data,
                                   weir_error **error);
/** Stops the model's actors and gives the handle back; generations under way end with ECANCELLED or EEXITED. NULL does nothing. */
WEIR_API void weir_model_free(weir_model *m);

/** What is added to the logit of a token. */
typedef struct weir_logit_bias {
    int32_t token; /**< in the vocabulary */
    double addend; /**< -100 (practically never) to 100 (practically always) */
} weir_logit_bias;

/** A token and its probability. */
typedef struct weir_token {
    int32_t id;       /**< in the vocabulary */
    const char *text; /**< its bytes, which need not be whole characters, not zero-ended, borrowed; NULL without a tokeniser */
    size_t size;      /**< bytes of text */
    double logprob;   /**< natural logarithm of the probability that the model itself gives it, before any sampling step; -INFINITY: none */
} weir_token;
/** A generated token and the most probable ones in its place (the first is the most probable). Borrowed. On the loop's thread, before the piece that has its text. */
typedef void weir_token_fn(void *data, const weir_token *token, const weir_token *best, size_t n_best);

/** What to generate and how; all zero but the prompt: greedy, until the model ends. */
typedef struct weir_generate_options {
    const char *prompt;       /**< UTF-8; beginning and end tokens as the model's file says. Control tokens are not taken from it */
    const int32_t *tokens;    /**< instead of prompt: taken as they are */
    size_t n_tokens;          /**< how many */
    unsigned max_tokens;      /**< 0: until the model ends or the context is full */
    double temperature;       /**< 0: greedy */
    unsigned top_k;           /**< 0: off */
    double top_p;             /**< 0: off */
    double min_p;             /**< 0: off */
    uint64_t seed;            /**< same seed, same text */
    const char *const *stop;  /**< stop strings: never part of the text */
    size_t n_stop;            /**< how many */
    bool ignore_end;          /**< go on after the model's end token */
    double typical;           /**< 0: off. What the steps do stands in lua/README.md, "Sampling" */
    double repeat_penalty;    /**< 0 or 1: off */
    double frequency_penalty; /**< -2 to 2, 0: off */
    double presence_penalty;  /**< -2 to 2, 0: off */
    unsigned penalty_last;    /**< tokens that the penalties look back at, 0: all */
    const weir_logit_bias *logit_bias; /**< at most 1,024 */
    size_t n_logit_bias;               /**< how many */
    const char *const
        *samplers;        /**< names of the steps in their order; NULL: repeat_penalty, frequency_penalty, presence_penalty, logit_bias,
                                      temperature, top_k, typical, top_p, min_p. A step that is set must be among them */
    size_t n_samplers;    /**< how many */
    weir_token_fn *token; /**< told of each token, with weir_generate's data; NULL: nobody is */
    unsigned logprobs;    /**< best tokens that `token` is told of, at most 20 */
} weir_generate_options;

/** What a generation came to. */
typedef struct weir_finish {
    const char
        *reason; /**< "stop" (end token or stop string), "length" (max_tokens), "context" (the context is full); NULL after an error */
    unsigned prompt_tokens; /**< of the prompt, with what was added to it */
    unsigned tokens;        /**< generated */
    int64_t prefill;        /**< ns until the first token */
    int64_t decode;         /**< ns from the first to the last */
} weir_finish;

/** A piece of the text: whole UTF-8 characters, not zero-ended, borrowed. On the loop's thread. */
typedef void weir_piece_fn(void *data, const char *piece, size_t size);
/** The end of a generation, exactly once, after its last piece: finish and error are borrowed; error is NULL if it went well. On the loop's thread. */
typedef void weir_done_fn(void *data, const weir_finish *finish, const weir_error *error);
/** Starts a generation; run the loop to let it go on. EINVAL, ENOMEM. request may be NULL. */
WEIR_API int weir_generate(weir_model *m, const weir_generate_options *options, weir_piece_fn *piece, weir_done_fn *done, void *data,
                           uint64_t *request, weir_error **error);
/** Ends a generation: done runs with ECANCELLED, once, from the loop. An ended request does nothing. */
WEIR_API void weir_cancel(weir_model *m, uint64_t request);

#ifdef __cplusplus
}
#endif
#endif
