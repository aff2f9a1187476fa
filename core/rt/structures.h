/* structures.h: the structures that the files of core/rt share. Nothing outside of core/rt includes it.
 *
 * Threads: an actor and everything of weir__loop belong to the thread that drives that loop, unless a field is _Atomic or its comment says otherwise. */
#ifndef WEIR_RT_STRUCTURES_H
#define WEIR_RT_STRUCTURES_H

#include <pthread.h>
#include <unistd.h>

#include "parts.h"

/* ---- queues ---- */

/* In an actor's queues: MAIL: a message. STOP: the wish that an actor ends. DOWN: a watched actor ended. REPLY: a call ended. TIMER: a timer is due.
 * Only between loops: ANSWER: of a call from another loop. BOND, UNBOND, GONE: of a monitor or a link with another loop's actor. WANT: a wish for room there. PROBE:
 * of the search for cycles of calls. */
enum weir__entry_kind {
    WEIR__MAIL,
    WEIR__STOP,
    WEIR__DOWN,
    WEIR__REPLY,
    WEIR__TIMER,
    WEIR__ANSWER,
    WEIR__BOND,
    WEIR__UNBOND,
    WEIR__GONE,
    WEIR__WANT,
    WEIR__PROBE
};

typedef struct weir__entry {
    struct weir__entry *next;
    uint64_t arrival; /* counts up per actor: the order among both queues */
    enum weir__entry_kind kind;
} weir__entry;

typedef struct weir__queue {
    weir__entry *first, *last;
} weir__queue;

/* A message's flags. RESERVED: not counted in the mailbox's bounds. PENDING: its arrival ends pending work. AWAY: a call from another loop that has not
 * arrived there; DEBT: one that has; HELD: whose caller waits for the answer. */
enum { WEIR__RESERVED = 1, WEIR__PENDING = 2, WEIR__AWAY = 4, WEIR__DEBT = 8, WEIR__HELD = 16 };

struct weir_message {
    weir__entry entry;
    weir_system *system;
    weir_address from, to;
    weir_verb verb;
    uint32_t flags;
    uint64_t session; /* of the call it asks; 0: none */
    int64_t deadline;
    weir_body *body;
    union {
        struct weir__carrier *carrier; /* AWAY */
        uint64_t ticket;               /* DEBT */
    };
};

struct weir__notice { /* while it waits in linger.c: entry.next links, deadline holds the owner */
    weir_message message;
};

/* ---- due times (timer.c): a heap by (at, order) ---- */

typedef struct weir__due {
    int64_t at;
    uint64_t order; /* equal times come in the order they were set */
    size_t place;   /* in the heap, from 1; 0: not in it */
    void (*fire)(weir__loop *l, struct weir__due *d);
} weir__due;

typedef struct weir__heap {
    weir__due **at; /* [1, count] */
    size_t count, capacity, reserved;
    uint64_t order;
} weir__heap;

int weir__due_reserve(weir__loop *l); /* a place for one more due time, so that setting it cannot fail. ENOMEM */
void weir__due_unreserve(weir__loop *l);
void weir__due_set(weir__loop *l, weir__due *d, int64_t at);
void weir__due_clear(weir__loop *l, weir__due *d);
void weir__due_fire(weir__loop *l, int64_t now); /* all that are due */
int64_t weir__due_next(const weir__loop *l);     /* the earliest; 0: none */
int64_t weir__later(int64_t at, int64_t ns);     /* at + ns, at most INT64_MAX */
int64_t weir__after(weir_system *s, int64_t ns); /* weir__later from now */

/* ---- actors ---- */

/* A place in the actor table. It outlives the actors in it, so that other threads may reserve in its mailbox and read its counters without a lock; what
 * they read may be of the next actor in it, so they look at the id again. What is not counted is written before `live`. */
typedef struct weir__slot {
    weir__id id;
    weir_actor *actor; /* its loop's thread only */
    _Atomic(weir__loop *) loop;
    _Atomic uint64_t asked; /* generation << 8 | WEIR__ASK_*: what other threads want of its actor. Any thread */
    struct weir__slot *asked_next;
    _Atomic uint8_t full;  /* enum weir_full */
    _Atomic uint64_t load; /* mail accepted and not yet taken: messages in the low 24 bits, bytes above. Any thread */
    _Atomic uint64_t max_messages, max_bytes;
    _Atomic uint64_t refused;
    _Atomic uint64_t name[WEIR_MAX_NAME / 8];
    weir__counter handled, sent, lost, peak, calls_open, busy;
} weir__slot;

/* A behaviour with its verbs interned, shared by its actors (behaviour.c). */
typedef struct weir__compiled {
    const weir_behaviour *behaviour;
    struct weir__compiled *next;
    size_t actors, count;
    struct {
        weir_verb verb;
        weir_receive_fn *handle;
    } handlers[];
} weir__compiled;

struct weir_actor {
    weir_system *system;
    weir__loop *loop;
    weir__slot *slot;
    weir_actor *ready_next; /* in the run queue */
    weir_address address;
    weir__compiled *compiled;
    void *state;
    weir__queue mail; /* MAIL, STOP, DOWN: waits while held */
    weir__queue own;  /* REPLY, TIMER: what its own calls and timers bring */
    uint64_t arrivals;
    uint32_t held;
    bool ready; /* in the run queue, or has the turn */
    bool dead;  /* has ended; the struct waits until the run queue lets go of it */
    bool stopping;
    int ending; /* WEIR_EEXITED or WEIR_EKILLED: ends when its code returns */
    weir_error *why;
    const weir_message *current; /* being handled */
    bool answered;               /* the current message needs no answer any more */
    weir__entry stop;
    weir__link calls;    /* weir__call.by_caller: made by it, not yet reported to it */
    weir__link incoming; /* weir__call.by_callee: to be answered by it */
    weir__link debts;    /* weir__debt.link: calls from other loops, to be answered by it */
    weir__link timers;   /* weir__timer.link */
    weir__link watching; /* weir__bond.by_watcher */
    weir__link watchers; /* weir__bond.by_target */
    weir__link wants;    /* weir__want.link: who waits for room in its mailbox */
    uint64_t visit;      /* search for cycles (cycle.c) */
    weir_actor *visit_from;
    weir__link *visit_call;
    weir_address probed_by; /* the last search that came from another loop */
    uint64_t probed_session, probed_search;
    char name[WEIR_MAX_NAME];
};

/* A monitor or a link: the watcher is told when the target ends; by a link the target too when the watcher does. With both on one loop only `entry` is
 * used. Else the record travels: `out` tells the target's loop, `cancel` takes it back, `entry` brings the news; whoever holds it is counted. */
typedef struct weir__bond {
    weir__entry entry;          /* GONE on its way to the watcher's loop, DOWN in the watcher's mail */
    weir__entry out;            /* BOND */
    weir__entry cancel;         /* UNBOND */
    weir__link by_watcher;      /* the watcher's loop's thread; alone once it is not the watcher's any more */
    struct weir__bond *chained; /* in the table of the watcher's loop */
    weir__link by_target;       /* the target's loop's thread; alone once the target has ended */
    weir_actor *watcher;        /* the watcher's loop's thread */
    weir__loop *home, *there;
    weir_address watcher_address, target;
    weir_error *why;   /* how the target ended: from the target's loop, with the entry */
    weir_error *cause; /* how the watcher of a link ended: with the cancel */
    _Atomic int holders;
    bool link, quiet;       /* quiet: weir__monitor_quietly */
    bool queued, forgotten; /* the watcher's loop's. forgotten: taken back, or the watcher has ended */
} weir__bond;

/* A wish for room in a mailbox; its message is made already. */
typedef struct weir__want {
    weir__entry entry; /* WANT */
    weir__link link;   /* the target's loop's thread */
    weir_message *message;
    weir_address target;
} weir__want;

/* Brings the answer of a call from another loop; made with the call, so that the answer cannot fail. */
typedef struct weir__carrier {
    weir_message message; /* ANSWER. from: the callee, to: the caller; session, verb, the reply's body */
    weir_error *error;
    weir__loop *home; /* the caller's */
} weir__carrier;

/* A call from another loop that an actor here is to answer. Its id is the ticket. */
typedef struct weir__debt {
    weir__id id;
    weir__link link;
    weir_address callee;
    weir__carrier *carrier;
    bool revoked; /* its call was ended because it closed a cycle: not to be handled */
} weir__debt;

typedef struct weir__call {
    weir__id id;
    weir_message reply; /* its entry brings the end of the call to the caller */
    weir__due due;
    weir_actor *caller;
    weir_address callee;
    weir__link by_caller, by_callee; /* by_callee is alone when the call is not open */
    bool open, forgotten, timed;
    weir_error *error; /* how it ended; NULL: reply */
    weir_reply_fn *done;
    void *data;
} weir__call;

typedef struct weir__timer {
    weir__id id;
    weir__entry entry;
    weir__due due;
    weir__link link;
    weir_actor *actor;
    enum weir_timer_kind kind;
    bool queued, running, forgotten;
    int64_t period;
    weir_timer_fn *fn;
    void *data;
} weir__timer;

/* ---- bodies ---- */

enum { WEIR__EXT_HANDLE = 1, WEIR__EXT_HANDLE_BYTES = 6 }; /* fixext 4 of type 1: index into the body's handles, big endian */

struct weir_body {
    weir_system *system;
    weir_handle *handles;
    _Atomic uint32_t refs;
    uint32_t size; /* bytes of msgpack */
    uint32_t room; /* bytes that fit into data */
    uint32_t n_handles, max_handles;
    uint8_t data[];
};

static inline size_t weir__body_size(const weir_body *b) {
    return b ? b->size : 0;
}
weir_body *weir__body_new(weir_system *s, size_t room); /* empty, one owner. NULL without memory. Any thread */
bool weir__body_grow(weir_body **b, size_t room);       /* the only owner's; false: unchanged */

/* The number in up to 8 bytes. */
static inline uint64_t weir__big_endian(const uint8_t *p, unsigned bytes) {
    uint64_t v = 0;
    while (bytes--)
        v = v << 8 | *p++;
    return v;
}

/* One whole value, within WEIR_MAX_DEPTH from `depth` on; handles: how many there are, or -1: none may occur. On failure *at is the place. */
int weir__msgpack_check(const uint8_t *p, size_t n, unsigned depth, int64_t handles, size_t *at, const char **what);

/* ---- the system ---- */

typedef struct weir__pooled {
    struct weir__pooled *next;
} weir__pooled;

typedef struct weir__pool {
    weir__pooled *free;
    size_t count;
} weir__pool;

/* Sizes in steps of 32 bytes up to 256, then doubling up to 4096. KEEP: bytes a pool keeps: two full default mailboxes of small messages. */
enum { WEIR__POOLS = 12, WEIR__POOL_STEP = 32, WEIR__POOL_SMALL = 256, WEIR__POOL_LARGEST = 4096, WEIR__POOL_KEEP = 512 << 10 };

/* Blocks on their way home. */
typedef struct weir__chain {
    weir__pooled *first, *last;
    unsigned count;
} weir__chain;

/* In front of each block; keeps what follows 16-byte aligned. */
typedef struct weir__header {
    size_t size;    /* of the whole block, this header included */
    uint32_t owner; /* 1 + the loop to whose pools it belongs; 0: none */
    uint32_t unused;
} weir__header;

/* dead.c: the last dead letters. */
typedef struct weir__grave {
    int64_t at;
    weir_address from, to;
    weir_verb verb;
    int why;
    size_t bytes;
    weir_body *body;
} weir__grave;

typedef struct weir__graveyard {
    pthread_mutex_t lock;
    uint64_t count; /* ever; the last WEIR_DEAD_LETTERS of them are kept */
    weir__grave graves[WEIR_DEAD_LETTERS];
} weir__graveyard;

typedef struct weir__attachment {
    struct weir__attachment *next;
    void *value;
    void (*close)(weir_system *s, void *value);
    char key[];
} weir__attachment;

typedef struct weir__verbs {
    pthread_mutex_t lock; /* held to intern; names are read without it */
    _Atomic(const char **) chunk[WEIR__ID_CHUNKS];
    _Atomic uint32_t count;
    uint32_t *table; /* open addressing, verbs; 0 is free */
    uint32_t table_size;
} weir__verbs;

/* registry.c: names, open addressing. An entry whose actor has ended is free: ids are never reused, so nothing has to be told of an end. */
typedef struct weir__named {
    weir_address actor; /* 0: never used */
    char name[WEIR_MAX_NAME];
} weir__named;

typedef struct weir__registry {
    pthread_mutex_t lock;
    weir__named *table;
    size_t size, used; /* used: entries that are not 0; size is 0 or a power of 2 above it */
} weir__registry;

/* linger.c */
typedef struct weir__lingers {
    pthread_mutex_t lock;
    weir__linger *first;
    weir_message *waiting; /* notices for weir__when_drained */
    weir__quarantine_fn *quarantine;
    void *quarantine_data;
    bool left;     /* by weir__leave_behind; main loop's thread */
    int64_t drain; /* ns */
} weir__lingers;

/* What a driver decides: which ready actor is next, what time it is, how to wait. */
typedef struct weir__driver {
    unsigned turn; /* messages an actor handles in one turn */
    int (*open)(weir__loop *l, weir_error **error);
    void (*close)(weir__loop *l);
    int64_t (*now)(const weir_system *s); /* any thread */
    size_t (*choose)(weir__loop *l);      /* of l->ready_count ready actors */
    void (*poll)(weir__loop *l);          /* looks at the outside without waiting */
    void (*wait)(weir__loop *l);          /* until something happens; may return for nothing */
    bool (*advance)(weir__loop *l); /* test driver: makes something happen without waiting: stream work, a jump of the clock. Else NULL */
    void (*wake)(weir__loop *l);    /* ends a wait. Any thread, async-signal-safe */

    /* of loops that a host drives, else NULL */
    void (*leave)(weir__loop *l);      /* the loop does not run any more: the host must be able to wait for what comes next */
    void (*part)(weir__loop *l);       /* before the system is freed, or left behind: the host's loop knows it no more */
    bool (*busy)(const weir__loop *l); /* the host's loop is running: it cannot be run in itself */

    /* of loops that can watch descriptors, else NULL. The watcher is in the system's list */
    int (*io_start)(weir__loop *l, weir__io *io, weir_error **error);
    void (*io_stop)(weir__loop *l, weir__io *io); /* may be called when the descriptor is closed already */
} weir__driver;

extern const weir__driver weir__driver_ev, weir__driver_host, weir__driver_fd, weir__driver_test, weir__driver_worker;

typedef struct weir__fault {
    _Atomic uint64_t passes, first, last; /* fires while first <= passes <= last */
} weir__fault;

/* DOZING: sleeps, and may wake by itself or is the main loop. IDLE: sleeps until somebody wakes it; not counted in weir_system.pending. */
enum { WEIR__AWAKE, WEIR__DOZING, WEIR__IDLE };

enum { WEIR__LINE = 64 }; /* bytes between what different threads write: a line of cache */

/* A scheduler: a run queue, due times, and the thread that drives it. */
/* ---- what else a loop keeps ---- */

/* What the loop's thread does right now, for the watchdog (watchdog.c has the order). Its thread writes, any thread may read the atomics. */
typedef struct weir__watch {
    _Atomic bool awake;
    _Atomic uint64_t serial; /* odd: of the running handler; even: none runs */
    _Atomic int64_t since;   /* when it began: ns of CLOCK_MONOTONIC */
    _Atomic uint64_t what;   /* enum weir__entry_kind << 32 | verb */
    _Atomic weir_address actor;
    _Atomic uint64_t name[WEIR_MAX_NAME / 8];
    uint64_t handlers; /* of the loop's thread: twice how many were begun */
    uint64_t told;     /* of the watchdog's thread: the serial that it told of last */
} weir__watch;

/* A watched descriptor (io.c). */
struct weir__io {
    weir__link link; /* weir_system.ios, or .failed_ios once it is stopped */
    weir_system *system;
    int fd, events;
    bool stopped; /* after an error: not watched, not yet given back */
    weir__io_fn *fn;
    void *data;
    uint64_t device, inode; /* of what the descriptor was when it was started */
    void *watcher;          /* driver_ev: its ev_io */
    bool always;            /* driver_fd: epoll refuses the file, which is always ready */
    uint32_t born;          /* driver_fd: the first registration that it belongs to */
    uint64_t told;          /* driver_fd: the last event that it was told */
};

/* The descriptors of a system's main loop (io.c). */
typedef struct weir__ios {
    weir__link living, failed;
    size_t always;   /* driver_fd: how many are always ready */
    uint32_t serial; /* driver_fd: registrations */
    uint64_t round;  /* driver_fd: events told */
    weir__due due;   /* the next check of what was closed behind the loop's back */
    int64_t checked; /* when the last one was */
    bool dirty;      /* something ran since then that may have closed one */
} weir__ios;

/* Who watches whom: those of a loop's watchers (bond.c). */
typedef struct weir__bonds {
    weir__bond **table; /* chains by hash */
    size_t size, count; /* size: 0 or a power of 2 */
} weir__bonds;

struct weir__loop {
    weir_system *system;
    const weir__driver *driver;
    unsigned index; /* 0: the main loop */
    int wake_fd;    /* eventfd, written by `wake` */

    /* written by any thread */
    uint8_t apart1[WEIR__LINE];
    _Atomic(weir__entry *) inbox;     /* what other threads sent, newest first */
    _Atomic(weir__slot *) asked;      /* actors that other threads want to stop or kill */
    _Atomic(weir__pooled *) returned; /* blocks of this loop's pools that others freed */
    _Atomic uint32_t asleep;          /* WEIR__AWAKE ..; whoever posts must wake the loop */
    uint8_t apart2[WEIR__LINE];

    weir__ids calls, timers, debts;
    weir__bonds bonds;
    weir__heap heap;
    weir__pool pools[WEIR__POOLS];
    weir__chain away[WEIR_MAX_WORKERS + 1]; /* freed blocks of other loops' pools, by loop */
    weir_actor *ready_first, *ready_last;
    size_t ready_count;
    weir_actor *current;
    int64_t now; /* the clock at the end of the last turn */
    bool running;
    bool was_quit;            /* the last run took a weir_system_quit */
    uint64_t visit, searches; /* for cycles: on this loop, begun by its actors */
    weir__counter sent, handled, dead, dropped, queued, away_sent, arrived, calls_made, calls_ended, late, timers_live;
    weir__attachment *attachments;

    weir__watch watch;
    pthread_t thread;      /* a worker's */
    void *watchers;        /* driver_ev's */
    _Atomic bool on_futex; /* driver_ev: how it sleeps */
    void *host;            /* driver_host: the host's struct ev_loop */
    int epoll_fd;          /* driver_fd */
    int timer_fd;          /* driver_ev, driver_fd */
    int64_t timer_set;     /* what timer_fd is set to, 0: to nothing */
};

struct weir_system {
    /* read by any thread, hardly ever written */
    weir_alloc_fn *alloc;
    void *alloc_data;
    void *thread;                   /* weir__thread() of the main loop's thread */
    const volatile uint8_t *parent; /* a page that the kernel wipes in a forked child; its first byte is 1 elsewhere */
    int parent_pid;                 /* asked instead where the kernel cannot wipe; 0: not needed */
    _Atomic bool stopping;          /* no actor starts any more */
    _Atomic bool stopped;           /* nothing is accepted any more */
    _Atomic bool watched;           /* loops publish their handlers */
    _Atomic uint32_t armed;         /* faults */
    weir__fault faults[WEIR__INJECT_POINTS];
    weir__verbs verbs;
    weir__ids actors;
    weir__registry registry;
    weir__lingers lingers;

    /* written by any thread */
    uint8_t apart1[WEIR__LINE];
    _Atomic uint64_t posted, refused, spilled; /* posted: by threads that drive no loop, and notices. spilled: the newest
                                                * of mailboxes that drop it */
    _Atomic int64_t pending;                   /* work outside of actors, and workers that run, or will by themselves */
    _Atomic bool quit, closing;
    _Atomic bool settled; /* pending work, or the workers, have come to rest since the main loop slept last */
    uint8_t apart2[WEIR__LINE];
    _Atomic uint64_t bytes, blocks;
    uint8_t apart3[WEIR__LINE];
    _Atomic uint64_t living, spawned;
    _Atomic uint64_t unfinished; /* actors that live, or whose fini has not returned */

    pthread_mutex_t lock; /* for: free places in the actor table, behaviours, attachments */
    weir__compiled *behaviours;
    weir__attachment *attachments;

    _Atomic(weir__watchdog *) watchdog; /* NULL: never set */
    weir__ios ios;
    weir_actor *main;
    weir__loop *here; /* the loop that the main thread drives: the main loop; the test driver's turn */
    weir__loop main_loop;
    weir__loop **loops;           /* n_loops; [0] is the main loop */
    unsigned n_loops, n_threads;  /* n_threads: of workers, to be joined */
    _Atomic uint32_t next_worker; /* for WEIR_LOOP_ANY */
    weir_address main_address;
    weir__graveyard graveyard;
    weir_trace_fn *_Atomic trace;
    void *_Atomic trace_data; /* written before trace */

    _Atomic int64_t clock; /* driver_test. Any thread reads */
    uint64_t random;       /* driver_test */
    weir__drain_fn *drain;
    void *drain_data;
};

/* What tells threads apart at the cost of one load: their thread pointer, where the compiler can give it. */
static inline void *weir__thread(void) {
#if defined(__GNUC__) && !defined(__clang__) && (defined(__x86_64__) || defined(__aarch64__))
    return __builtin_thread_pointer();
#else
    return (void *)pthread_self();
#endif
}
extern _Thread_local weir__loop *weir__worker __attribute__((tls_model("initial-exec"))); /* worker.c: the loop of a worker's thread */

/* The loop that the calling thread drives; NULL: none of this system's. */
static inline weir__loop *weir__here(const weir_system *s) {
    if (s->thread == weir__thread())
        return s->here;
    weir__loop *l = weir__worker;
    return l && l->system == s ? l : NULL;
}
/* Where messages to an actor go. Any thread */
static inline weir__loop *weir__loop_of(const weir__slot *slot) {
    return atomic_load_explicit(&slot->loop, memory_order_acquire); /* pairs with the release in slot_fill */
}
/* Whether it is still the place of `a`, after other fields were read, in acquiring order. Any thread */
static inline bool weir__slot_still(const weir__slot *slot, weir_address a) {
    return weir__ids_of(&slot->id) == a;
}
/* The living actor, if it is one of l's; on l's thread, which alone can end it. Its loop may be another's, where it ends just now: then a third thread may have
 * started the next actor in its place, here. */
static inline weir_actor *weir__local(const weir__loop *l, weir_address a) {
    weir__slot *slot = (weir__slot *)weir__ids_find(&l->system->actors, a);
    return slot && weir__loop_of(slot) == l && weir__slot_still(slot, a) ? slot->actor : NULL;
}
/* The main loop, then the workers'; NULL beyond the last. Any thread */
static inline weir__loop *weir__loop_at(weir_system *s, unsigned i) {
    return i < s->n_loops ? s->loops[i] : NULL;
}
static inline bool weir__forked(const weir_system *s) {
    return !*s->parent || (s->parent_pid && s->parent_pid != (int)getpid());
}
/* What a call on any loop's thread begins with; and one that is made for an actor. */
#define weir__usable(s) (!weir__forked(s) && weir__check(weir__here(s) != NULL, "called on a thread that drives no loop of the system"))
#define weir__usable_by(a)                                                                                                                 \
    (!weir__forked((a)->system) &&                                                                                                         \
     weir__check(weir__here((a)->system) == (a)->loop, "called on a thread that does not drive the actor's loop"))

#endif
