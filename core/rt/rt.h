/* rt.h: what the runtime (core/rt) gives to the rest of weir besides weir.h: counted memory, reserved notices from other threads, error
 * injection, attachments of a system. Knows no device, no model, no Lua. */
#ifndef WEIR_RT_H
#define WEIR_RT_H

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
weir__notice *weir__notice_new(weir_system *s, weir_address from, weir_address to, weir_verb verb, weir_body *body);
void weir__notice_post(
    weir__notice *n); /* consumes n; not bounded by the mailbox (reserved); a dead receiver makes it a dead letter. Any thread */
void weir__notice_free(weir__notice *n); /* instead of posting. Any thread */

/* Work outside of actors that will lead to messages (stream work): while the count is not 0, weir_system_run(done = NULL) does not
 * return. Any thread. */
void weir__pending(weir_system *s, int delta);

/* ---- test driver: streams drained inline ---- */

bool weir__system_inline(const weir_system *s); /* true under WEIR_DRIVER_TEST: devices start no threads */
/* Called by the test driver when no actor is ready: runs one piece of stream work on this thread, chosen by `random`; false: none is ready. */
typedef bool weir__drain_fn(void *data, uint64_t random);
void weir__set_drain(weir_system *s, weir__drain_fn *fn, void *data);

/* ---- attachments: a value that other layers keep with a system (its devices, its fixed verbs) ---- */

void *weir__attached(weir_system *s, const char *key); /* NULL if none */
/* close(value) is called in weir_system_free after all actors have ended, last attached first. ENOMEM, EBUSY (key is taken). */
int weir__attach(weir_system *s, const char *key, void *value, void (*close)(weir_system *s, void *value));

/* ---- actors for bindings ---- */

WEIR_API weir_actor *weir__actor(weir_system *s, weir_address a); /* the living actor, NULL if none; loop's thread; valid until it ends */
WEIR_API bool weir__running(const weir_system *s);                /* inside weir_system_run */
bool weir__on_loop(const weir_system *s);                         /* called on the loop's thread */
/* An error as a body [code, text, actor, nil, cause text], and back: inside the process errors travel as objects, on a wire as bodies. */
weir_body *weir__error_pack(weir_system *s, const weir_error *e); /* NULL without memory */
weir_error *weir__error_unpack(const weir_body *b);               /* never NULL: EMSGPACK for a body of another form */

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
const char *weir__inject_name(int point, const char **text); /* NULL beyond the last */

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
