/* rt.h: what the runtime (core/rt) gives to the rest of weir besides weir.h: counted memory, reserved notices from other threads, error
 * injection, attachments of a system. Knows no device, no model, no Lua. */
#ifndef WEIR_RT_H
#define WEIR_RT_H

#include <pthread.h>

#include "../limits.h"
#include "../weir.h"

/* ---- memory: everything that weir allocates goes through these and is counted in weir_system_stats. Any thread. ---- */

WEIR_API void *weir__alloc(weir_system *s, size_t n);            /* zeroed, 16-byte aligned; NULL without memory (or injected) */
WEIR_API void *weir__realloc(weir_system *s, void *p, size_t n); /* p may be NULL; new bytes are not zeroed; on failure p is unchanged */
WEIR_API void weir__free(weir_system *s, void *p);               /* NULL does nothing */
char *weir__strdup(weir_system *s, const char *text);            /* NULL without memory */
/* Pages from the kernel for weights and caches: zeroed, 2 MiB aligned and MADV_HUGEPAGE from 2 MiB on, else 64-byte aligned. Counted. */
void *weir__pages(weir_system *s, size_t n);
void weir__pages_free(weir_system *s, void *p, size_t n);

/* ---- notices: a message that is made and reserved in advance and can be posted from any thread without failing ---- */

typedef struct weir__notice weir__notice;
/* Body is taken. NULL without memory. The notice counts as pending work of the system until it is posted or freed. */
WEIR_API weir__notice *weir__notice_new(weir_system *s, weir_address from, weir_address to, weir_verb verb, weir_body *body);
WEIR_API void weir__notice_post(
    weir__notice *n); /* consumes n; not bounded by the mailbox (reserved); a dead receiver makes it a dead letter. Any thread */
WEIR_API void weir__notice_free(weir__notice *n); /* instead of posting. Any thread */

/* Work outside of actors that will lead to messages (stream work): while the count is not 0, weir_system_run(done = NULL) does not
 * return. Any thread. */
void weir__pending(weir_system *s, int delta);

/* ---- file descriptors: watched by the main loop (driver EV: libev; FD: the system's epoll; TEST: not watched, EUNSUPPORTED) ---- */

enum { WEIR__IO_READ = 1, WEIR__IO_WRITE = 2, WEIR__IO_ERROR = 4 };
typedef struct weir__io weir__io;
/* On the main loop's thread, between turns. ERROR: the descriptor was closed or cannot be watched any more; the watcher is stopped already. */
typedef void weir__io_fn(weir_system *s, void *data, int events);
/* Calls fn whenever fd can be read or written (level-triggered). The descriptor stays the caller's. A file that is always ready (regular files) fires at once.
 * While it is watched weir_system_run(done = NULL) does not return. ENOMEM, EIO, EINVAL (not the main loop's thread). */
WEIR_API int weir__io_start(weir_system *s, int fd, int events, weir__io_fn *fn, void *data, weir__io **out, weir_error **error);
WEIR_API void weir__io_stop(weir__io *io); /* gives it back; NULL does nothing. May be called in fn */

/* ---- what an ended actor leaves behind on devices: a supervisor waits for it before it restarts ---- */

/* Something (a stream that is closed and drains) still works for `owner`. The record is the caller's, zeroed at first, and must stay until it has ended;
 * so nothing here can fail. Any thread. */
typedef struct weir__linger {
    weir_address owner; /* 0: does not linger */
    struct weir__linger *prev, *next;
} weir__linger;
void weir__linger_begin(weir_system *s, weir__linger *l, weir_address owner); /* nothing if it lingers already */
void weir__linger_end(weir_system *s, weir__linger *l);                       /* nothing if it does not, or was quarantined */
/* How many still work for owner. Any thread */
int weir__lingering(weir_system *s, weir_address owner);
/* Posts the notice (taken) as soon as nothing lingers for owner; at once if nothing does. Any thread */
void weir__when_drained(weir_system *s, weir_address owner, weir__notice *notice);
/* Called by a supervisor whose patience with `owner` is over; set by the device layer, which names its streams as quarantined and gives up waiting. What
 * still lingers for owner afterwards counts as ended: its notices are posted. fn runs on the supervisor's thread and may end records. */
typedef void weir__quarantine_fn(void *data, weir_address owner);
void weir__set_quarantine(weir_system *s, weir__quarantine_fn *fn, void *data); /* fn NULL: none. Any thread */
void weir__quarantine(weir_system *s, weir_address owner);                      /* any thread */
/* Said by an attachment's close that could not end its work in bounded time: the system's memory and descriptors, which that work may still use, stay when
 * weir_system_free returns, unchecked. Standard error is told what. */
void weir__leave_behind(weir_system *s, const char *what);
int64_t weir__drain(const weir_system *s); /* ns that such a close waits at most */

/* ---- names: weir_register with a text that names both actors ---- */

WEIR_API int weir__register(weir_system *s, const char *name, weir_address a, weir_error **error);

/* ---- test driver: streams drained inline ---- */

bool weir__system_inline(const weir_system *s); /* true under WEIR_DRIVER_TEST: devices start no threads */
/* Called by the test driver when no actor is ready: runs one piece of stream work on this thread, chosen by `random`; false: none is ready. */
typedef bool weir__drain_fn(void *data, uint64_t random);
void weir__set_drain(weir_system *s, weir__drain_fn *fn, void *data);

/* ---- attachments: a value that other layers keep with a system (its devices, its fixed verbs) ---- */

void *weir__attached(weir_system *s, const char *key); /* NULL if none */
/* close(value) is called in weir_system_free after all actors have ended, last attached first. ENOMEM, EBUSY (key is taken). */
int weir__attach(weir_system *s, const char *key, void *value, void (*close)(weir_system *s, void *value));

/* The same for one loop: its thread closes the values after its actors have ended, before it ends itself. On the loop's thread. */
WEIR_API void *weir__loop_attached(weir_system *s, const char *key);
WEIR_API int weir__loop_attach(weir_system *s, const char *key, void *value, void (*close)(weir_system *s, void *value));

/* ---- threads ---- */

/* A thread that takes no signals. 0, or an errno. */
int weir__thread_start(pthread_t *thread, const char *name, void *(*run)(void *), void *data);

/* ---- actors for bindings ---- */

WEIR_API weir_actor *
weir__actor(weir_system *s, weir_address a); /* the living actor; NULL if none, or not of the calling thread's loop; valid until it ends */
/* weir_monitor by one who gives back what the other had of it, and is no reader of its errors. ENOMEM. */
int weir__monitor_quietly(weir_actor *self, weir_address a);
WEIR_API bool weir__watched(const weir_actor *a);   /* somebody monitors it, not just quietly, or is linked to it. The loop's thread */
WEIR_API bool weir__was_quit(const weir_system *s); /* the last run took a weir_system_quit, whatever else ended it. Main loop's thread */
WEIR_API bool weir__running(const weir_system *s);  /* inside weir_system_run */
bool weir__on_loop(const weir_system *s);           /* called on the loop's thread */
/* An error as a body [code, text, actor, nil, cause text], and back: inside the process errors travel as objects, on a wire as bodies. */
weir_body *weir__error_pack(weir_system *s, const weir_error *e); /* NULL without memory */
weir_error *weir__error_unpack(const weir_body *b);               /* never NULL: EMSGPACK for a body of another form */

WEIR_API const weir_behaviour *weir__behaviour(const weir_actor *self);
WEIR_API enum weir_full weir__full_of(weir_system *s, weir_address a); /* the policy of its mailbox; REFUSE: no such actor. Any thread */

/* ---- injected faults: core/rt/inject.def lists the points ---- */

enum weir__point {
#define WEIR_INJECT(name, text) WEIR__INJECT_##name,
#include "inject.def"
#undef WEIR_INJECT
    WEIR__INJECT_POINTS
};
/* True if the fault at this point is due now. Cheap when nothing is armed. Any thread. */
bool weir__inject(weir_system *s, enum weir__point point);
/* Arms a point by name: it fires at its nth passing from now (1: the next), `times` times in a row (0: disarm). EINVAL: no such point. */
WEIR_API int weir__inject_arm(weir_system *s, const char *point, uint64_t nth, uint64_t times);
uint64_t weir__inject_passed(weir_system *s, enum weir__point point); /* how often it was passed since it was armed; 0 when it is not */
const char *weir__inject_name(int point, const char **text);          /* NULL beyond the last */

/* ---- checks ---- */

/* Debug builds: walks every structure of the system and stops at the first broken invariant. A no-op with NDEBUG. */
void weir__verify(weir_system *s);
/* A violated precondition of the API: in debug builds prints `text` and traps; in release evaluates to the condition. */
#ifdef NDEBUG
static inline bool weir__checked(bool ok) {
    return ok;
}
#define weir__check(cond, text) weir__checked(cond)
#else
bool weir__check_failed(const char *function, const char *text);
static inline bool weir__checked(bool ok, const char *function, const char *text) {
    return ok || weir__check_failed(function, text);
}
#define weir__check(cond, text) weir__checked(cond, __func__, text)
#endif

#endif
