/* binding.h: what the files of the module weir.core share. One binding per Lua state; it owns the state's system and the tasks in it. Knows weir.h
 * and the few internals of core that libweir exports; knows no model.
 *
 * Errors: a Lua error (longjmp) may leave a lua_CFunction, but never a function that the runtime called: everything that can raise there runs
 * in a coroutine's lua_resume or in protect(). */
#ifndef WEIR_LUA_BINDING_H
#define WEIR_LUA_BINDING_H

#include <lauxlib.h>
#include <lua.h>
#include <pthread.h>
#include <stdatomic.h>

#include "../core/dev/device.h"
#include "../core/rt/rt.h"

/* A Lua object that holds something of the system's: listed, so that closing the system takes it back before its memory goes. */
typedef struct holder {
    struct holder *previous, *next;
    void (*drop)(struct holder *h); /* gives back what is held; the Lua object stays, empty */
} holder;

enum wait { WAIT_NONE, WAIT_START, WAIT_RECEIVE, WAIT_CALL, WAIT_SLEEP, WAIT_SPACE, WAIT_AWAIT, WAIT_FD, WAIT_FOREVER };

typedef struct pending pending;   /* lib_await.c */
typedef struct watchdog watchdog; /* lib_watchdog.c */

/* A message as a Lua actor keeps it. Owns body and down. */
typedef struct letter {
    weir_address from;
    weir_verb verb;
    weir_body *body;
    weir_error *why;   /* of a "down" */
    weir_address gone; /* of a "down"; 0: a plain message */
    bool is_call;
    weir_reply_to to;
} letter;

/* What a task could not deliver to a full mailbox (lib_space.c). Owns body. */
typedef struct parcel {
    weir_address to;
    weir_verb verb;
    weir_body *body;
    int64_t until;       /* INT64_MAX: no deadline */
    weir_reply_fn *done; /* of a call; NULL: a send */
    bool refused;        /* the call that is ending was not accepted */
    bool waits;          /* is among binding.waiting */
    struct task *previous, *next;
} parcel;

/* An actor in Lua (a coroutine), or the main chunk (co NULL), which has an actor to send, call and receive with. */
typedef struct task {
    struct binding *binding;
    struct task *previous, *next; /* all tasks of the binding, newest first */
    weir_actor *self;             /* NULL before the first turn */
    weir_address address;
    lua_State *co;
    int ref; /* co in the registry */
    enum wait wait;
    bool running; /* inside lua_resume */
    bool over;    /* ended while running: freed after lua_resume */
    bool ready;   /* main chunk: the wait is over */
    bool has_letter;
    letter letter; /* arrived for WAIT_RECEIVE */
    uint64_t session, timer;
    parcel parcel;
    weir_body *reply;  /* of the last call */
    weir_error *error; /* of the last call */
    pending *awaited;  /* WAIT_AWAIT: what has not ended of what it waits for */
    size_t await_left; /* how many those are */
    bool await_any;    /* one of them is enough */
    weir__io *io;      /* WAIT_FD: the watcher; NULL: none */
    bool io_ready;     /* WAIT_FD: it fired before the timeout */
    bool owes;         /* the message last received is a call without an answer */
    weir_reply_to debt;
    weir_verb verb; /* of the message last received; 0: none yet */
} task;

enum { CALM, INTERRUPT, TERMINATE };

/* What watches Lua code that does not pause (lib_guard.c). A stretch is what runs between two pauses: one resume of a task, or the main chunk between waits. */
typedef struct guard {
    _Atomic bool on;
    bool kill;
    int64_t limit;      /* ns that a stretch may take */
    int64_t since;      /* when the stretch began */
    bool told;          /* weir.slow has heard of it */
    int64_t noticed;    /* when a hook saw an interrupt inside the running loop; 0: it did not */
    weir_error *ending; /* the stretch is being ended, for this reason; NULL: it is not */
    lua_State *chunk;   /* the coroutine of core.guarded that runs; NULL: none */
} guard;

/* A verb that Lua code used lately, found by the address of its string. */
typedef struct known_verb {
    const char *name;
    unsigned system; /* binding.number */
    weir_verb verb;
} known_verb;

enum { KNOWN_VERBS = 64 };

typedef struct binding {
    lua_State *aux;              /* a thread of its own for Lua code that C starts outside of coroutines */
    weir_system *_Atomic system; /* NULL: not made yet, or shut down */
    unsigned number;             /* of systems made */
    task *tasks, *current, *main;
    holder *holders;
    struct tally *tally;     /* the root's: message counts for traces; NULL: off */
    bool closed;             /* the state is closing */
    bool stopping;           /* weir.stop_all: actors that end because of it are no failures */
    _Atomic int interrupted; /* CALM, INTERRUPT or TERMINATE: asked for, not answered yet. Any thread */
    _Atomic int visitors;    /* threads that are inside interrupt(). Any thread */
    _Atomic bool woken;      /* a wait of the main chunk is to return for something else. Any thread */
    bool quits;              /* weir.quit told the loop to quit */
    _Atomic bool terminated; /* somebody asked for the end of the program; stays */
    bool answered;           /* an interrupt has been answered since core.calm */
    bool last_words;         /* the program ends: terminated breaks off no waits any more */
    pthread_t thread;        /* the state's */
    guard guard;
    watchdog *watchdog; /* what the runtime's watchdog has reported; NULL: it was never on */
    uint64_t ends;      /* of calls that were begun with core.start */
    known_verb verbs[KNOWN_VERBS];
    task *waiting;             /* for room in mailboxes */
    weir_actor *keeper;        /* asks for room; NULL: not there */
    _Atomic uint64_t failures; /* the root's: actors that died of an error that nobody watched. Any thread */

    /* lib_loop.c: states of other loops share the root's system */
    struct binding *root;                             /* of the state that owns the system; a root's own is itself */
    bool attached;                                    /* it is not the root */
    unsigned loop;                                    /* of the state, from 0 */
    _Atomic weir_address hosts[WEIR_MAX_WORKERS + 1]; /* the root's: of each loop; 0: none yet. Any thread */
    _Atomic unsigned turn;                            /* the root's: of loop = "any". Any thread */
    _Atomic int exit_code;                            /* the root's: what os.exit on another loop wanted; -1: nothing. Any thread */
    pthread_mutex_t tracing;                          /* the root's: guards tally, which every loop counts in */
    weir_verb start, down;
    const void *bin, *map, *error; /* metatables, for comparing */
} binding;

/* ---- lib_system.c ---- */
binding *binding_of(lua_State *L);                                                           /* of a function made by binding_register */
weir_system *system_of(lua_State *L, binding *b);                                            /* made on first use. Raises */
void binding_register(lua_State *L, binding *b, const luaL_Reg *functions);                  /* into the table on top */
void binding_metatable(lua_State *L, binding *b, const char *name, const luaL_Reg *methods); /* with __index itself, kept under `name` */
void set_metatable(lua_State *L, const char *name); /* of the value on top: the one made with the same pointer; no string is looked up */
void hold(binding *b, holder *h);
void drop_holders(binding *b); /* takes back what is held */
void unhold(binding *b, holder *h);
/* Runs fn(L, data) on a thread of its own (a lua_State of this state's); false if it raised (out of memory): nothing is left behind. */
bool protect(binding *b, lua_CFunction fn, void *data);
void binding_field(lua_State *L, const char *name); /* pushes a registered value: see core.register */
/* Runs the loop from a main chunk until done(data). EBUSY inside the running loop, ECANCELLED after an interrupt. */
int pump(binding *b, bool (*done)(void *data), void *data, weir_error **error);
binding *binding_find(lua_State *L); /* the state's */

/* ---- lib_actor.c ---- */
task *current(lua_State *L, binding *b); /* the running actor's, or the main chunk's, made on first use. Raises */
task *task_find(binding *b, weir_address a);
void wait_check(lua_State *L, binding *b, task *t, const char *what); /* raises EYIELD or EBUSY where a wait could not suspend */
int wait_here(lua_State *L, binding *b, task *t, enum wait wait);     /* returns what the C function must return */
void task_wake(task *t);                                              /* the wait is over */
void wake_sleepers(binding *b);                                       /* the system is stopping: weir.sleep raises ESTOPPING */
void letter_clear(letter *l);
void push_letter(lua_State *L, binding *b, task *t); /* lib_message.c: takes t's letter */

/* ---- lib_space.c ---- */
bool space_awaits(weir_system *s, weir_address to); /* its senders wait while its mailbox is full */
/* After a send was refused with EFULL: waits for room and sends the body (taken). Returns what the C function must return; raises. */
int space_send(lua_State *L, binding *b, task *t, weir_address to, weir_verb verb, weir_body *body);
int space_call(task *t, weir_address to, weir_verb verb, weir_body *body, int64_t timeout, weir_reply_fn *done); /* as weir_call */
bool space_refused(task *t, const weir_error *e); /* in done: the call was refused and will be made again when there is room */
void parcel_drop(task *t);

/* ---- lib_await.c ---- */
void await_clear(task *t); /* it waits for none of its calls any more */

/* ---- lib_io.c ---- */
void io_clear(task *t); /* it waits for no descriptor any more */

/* ---- lib_call.c ---- */
weir_verb intern_verb(binding *b, const char *name); /* name: of a Lua string. As weir_intern */
int64_t call_timeout(lua_State *L, int index);       /* ns as weir_call takes it, from seconds, nil (the default) or false (none). Raises */

/* ---- lib_guard.c ---- */
void stretch_begin(binding *b);                       /* Lua code starts or goes on after a pause */
weir_error *stretch_end(binding *b);                  /* it pauses; not NULL: why it was ended. Taken */
int interrupt_answer(binding *b, weir_error **error); /* a wait of the main chunk: ECANCELLED if it has to be broken off */
bool interrupt_waits(binding *b);                     /* whether it has to be */

/* ---- lib_watchdog.c ---- */
void watchdog_free(binding *b); /* after the system, which may report as long as it lives */

void terminate_program(binding *b); /* as SIGTERM does. Any thread */

/* ---- lib_loop.c ---- */
bool attach(lua_State *L, binding *b); /* a new binding finds its root; false: no memory */
void detach(binding *b);               /* of an attached binding whose state closes */
void stop_hosts(binding *b);           /* the root's system stops: sleepers on other loops are woken */

/* ---- lib_inspect.c ---- */
void trace_free(binding *b); /* after the system */

/* ---- lib_model.c ---- */
int model_spawn(weir_system *s, weir_address *out, weir_error **error); /* an actor that loads a model, on this loop */

/* ---- lib_yield.c ---- */
lua_State *coroutine_parent(lua_State *L, lua_State *co); /* who resumed it; NULL: not by the library's functions, or nobody */
bool can_yield(lua_State *L, const task *t, lua_State **where);
const char *blame(lua_State *where); /* the call that cannot be yielded across, by its name. Pushes it on `where` */

/* ---- lib_error.c ---- */
int raise_code(lua_State *L, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));
int raise_error(lua_State *L, weir_error *e); /* e is taken */
void push_error(lua_State *L, const weir_error *e);
void push_taken(lua_State *L, weir_error *e);               /* e is taken, also if there is no memory to push it */
void forget_errors(void);                                   /* of this thread: that there was no memory to push */
weir_error *to_error(lua_State *L, int index);              /* any value; never NULL */
int fail_or_raise(lua_State *L, bool quiet, weir_error *e); /* quiet: nil, error */

/* ---- lib_address.c ---- */
weir_address check_address(lua_State *L, int index);
/* A string is a registered name; false: nobody's. Raises for what is neither. */
bool find_address(lua_State *L, binding *b, int index, weir_address *a);
weir_error *unregistered(lua_State *L, int index);              /* ENOACTOR for the name at index */
weir_address need_address(lua_State *L, binding *b, int index); /* find_address; raises ENOACTOR */
void push_address(lua_State *L, weir_address a);
bool is_address(lua_State *L, int index, weir_address *a);

/* ---- lib_encode.c, lib_decode.c ---- */
/* Encodes the values at first..top as arguments. Raises; `from` says how error texts count arguments. */
weir_body *encode(lua_State *L, binding *b, int first);
int decode_arguments(lua_State *L, binding *b, const weir_body *body); /* pushes all, returns how many */
int decode_all(lua_State *L, binding *b, weir_cursor c,
               uint32_t count); /* the same of `count` values at a cursor, which may have no body */
void decode_value(lua_State *L, binding *b, weir_cursor *c, bool top);

/* ---- lib_buffer.c ---- */
void push_handle(lua_State *L, binding *b, weir_handle h);                                      /* counts it */
void push_body_bytes(lua_State *L, binding *b, const weir_body *body, const void *p, size_t n); /* counts the body */
bool to_handle(lua_State *L, int index, weir_handle *h);                                        /* borrowed */
bool to_bytes(lua_State *L, int index, const void **p, size_t *n);                              /* a string, or a buffer */

/* Seconds to nanoseconds; raises for what is no duration. */
int64_t check_seconds(lua_State *L, int index);

/* Each adds its functions to the module's table, which is on top. */
void open_system(lua_State *L, binding *b);
void open_actor(lua_State *L, binding *b);
void open_call(lua_State *L, binding *b);
void open_await(lua_State *L, binding *b);
void open_guard(lua_State *L, binding *b);
void open_watchdog(lua_State *L, binding *b);
void open_loop(lua_State *L, binding *b);
void open_names(lua_State *L, binding *b);
void open_supervise(lua_State *L, binding *b);
void open_space(lua_State *L, binding *b);
void open_dead(lua_State *L, binding *b);
void open_message(lua_State *L, binding *b);
void open_address(lua_State *L, binding *b);
void open_error(lua_State *L, binding *b);
void open_yield(lua_State *L, binding *b);
void open_buffer(lua_State *L, binding *b);
void open_json(lua_State *L, binding *b);
void open_inspect(lua_State *L, binding *b);
void open_unicode(lua_State *L, binding *b);
void open_terminal(lua_State *L, binding *b);
void open_io(lua_State *L, binding *b);
void open_statistics(lua_State *L, binding *b);
void open_file(lua_State *L, binding *b);
void open_convert(lua_State *L, binding *b);
void open_source(lua_State *L, binding *b);
void open_template(lua_State *L, binding *b);
void open_model(lua_State *L, binding *b);
void open_bench(lua_State *L, binding *b);

#endif
