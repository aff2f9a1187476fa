/* team.c: the worker team: threads that walk one list together, item by item, sharing each item's chunks and meeting at barriers. Knows no stream queue.
 *
 * Meeting points spin for at most WEIR_BARRIER_SPIN_NS and then sleep on a futex; with more threads than processors they sleep at once, because whoever
 * spins would keep the one that is waited for from running. */
#include "team.h"
#include "cpu.h"

#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- gates: a word that changes, and those who wait for that ---- */

typedef struct gate {
    alignas(WEIR__CACHE_LINE) _Atomic uint32_t word;
    _Atomic uint32_t sleepers;
} gate;

static void pause_briefly(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* True when the word has changed within `spin` ns. The clock is read every 32nd time: it costs as much as a pause. */
static bool gate_spin(const gate *g, uint32_t old, int64_t spin) {
    int64_t end = 0;
    for (unsigned i = 1;; i++) {
        /* acquire: pairs with the release half of gate_open's store; what was written before it is visible */
        if (atomic_load_explicit(&g->word, memory_order_acquire) != old)
            return true;
        if (spin == 0)
            return false;
        pause_briefly();
        if (i % 32)
            continue;
        int64_t now = weir__dev_clock();
        if (end == 0)
            end = now + spin;
        else if (now >= end)
            return false;
    }
}

static void gate_wait(gate *g, uint32_t old, int64_t spin) {
    if (gate_spin(g, old, spin))
        return;
    /* seq_cst with the load of the word below, against gate_open's store and load: either this thread sees the new word, or the opener sees a sleeper */
    atomic_fetch_add_explicit(&g->sleepers, 1, memory_order_seq_cst);
    while (atomic_load_explicit(&g->word, memory_order_seq_cst) == old)
        syscall(SYS_futex, &g->word, FUTEX_WAIT_PRIVATE, old, NULL, NULL, 0);
    atomic_fetch_sub_explicit(&g->sleepers, 1, memory_order_relaxed);
}

static void gate_open(gate *g, uint32_t new) {
    atomic_store_explicit(&g->word, new, memory_order_seq_cst);
    if (atomic_load_explicit(&g->sleepers, memory_order_seq_cst))
        syscall(SYS_futex, &g->word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

/* ---- the team ---- */

typedef struct worker {
    weir__team *team;
    uint32_t number; /* 1.. */
    pthread_t thread;
} worker;

struct weir__team {
    gate start;   /* one more for every list, and for the end of the team */
    gate barrier; /* one more whenever all have arrived */
    alignas(WEIR__CACHE_LINE) _Atomic uint32_t arrived;
    /* Written by worker 0 before `start` opens, read by the others after it; `stop` by whoever arrives last, before `barrier` opens. */
    alignas(WEIR__CACHE_LINE) weir__list *list;
    const weir__stream *stream;
    const weir__item *item;
    bool stop; /* the list ends here */
    bool quit;
    weir_system *system;
    void *memory; /* the block this team is in, not aligned */
    int64_t spin; /* ns */
    uint32_t threads, started;
    worker workers[];
};

/* Whoever arrives last decides for all whether the list goes on, and opens. */
static bool arrive(weir__team *t) {
    /* acq_rel: releases this thread's writes, and gives the last one everybody's, which gate_open's store then passes on to all */
    if (atomic_fetch_add_explicit(&t->arrived, 1, memory_order_acq_rel) + 1 != t->threads)
        return false;
    atomic_store_explicit(&t->arrived, 0, memory_order_relaxed); /* ordered by the opening: nobody arrives again before it */
    t->stop = weir__item_skipped(t->stream, t->item);
    gate_open(&t->barrier, atomic_load_explicit(&t->barrier.word, memory_order_relaxed) + 1);
    return true;
}

/* false: the list ends here. */
static bool meet(weir__team *t) {
    uint32_t old = atomic_load_explicit(&t->barrier.word, memory_order_relaxed); /* cannot change before this thread has arrived */
    if (!arrive(t))
        gate_wait(&t->barrier, old, t->spin);
    return !t->stop;
}

static void run_item(weir__list *l, size_t i, uint32_t number, uint32_t threads) {
    weir_work work = {number, threads, &l->chunks[i].next};
    ((weir_kernel_fn *)l->items[i].entry)(l->items[i].args, &work);
}

/* Walks the list; the meeting behind the last item, or behind the one where it was stopped, is the caller's. */
static bool walk(weir__team *t, weir__list *l, uint32_t number) {
    size_t length = l->length;
    for (size_t i = 0; i < length; i++) {
        run_item(l, i, number, t->threads);
        if (l->items[i].joined && i + 1 < length && !meet(t))
            return false;
    }
    return true;
}

static void *worker_main(void *data) {
    const worker *w = data;
    weir__team *t = w->team;
    uint32_t seen = 0;
    weir_cpu_set_mxcsr();
    for (;;) {
        gate_wait(&t->start, seen, t->spin);
        seen++;
        if (t->quit)
            return NULL;
        walk(t, t->list, w->number);
        arrive(t); /* and back to the start: only worker 0 waits for the others here */
    }
}

static void reset_chunks(weir__list *l) {
    for (size_t i = 0; i < l->length; i++)
        atomic_store_explicit(&l->chunks[i].next, 0, memory_order_relaxed); /* before gate_open, or on the only thread */
}

int weir__list_run_alone(weir__list *l, const weir__stream *st, const weir__item *item) {
    reset_chunks(l);
    for (size_t i = 0; i < l->length; i++) {
        run_item(l, i, 0, 1);
        if (l->items[i].joined && i + 1 < l->length && weir__item_skipped(st, item))
            return WEIR_ECANCELLED;
    }
    return WEIR_OK;
}

int weir__team_run(weir__team *t, weir__list *l, const weir__stream *st, const weir__item *item) {
    if (t->threads == 1)
        return weir__list_run_alone(l, st, item);
    reset_chunks(l);
    t->list = l;
    t->stream = st;
    t->item = item;
    gate_open(&t->start, atomic_load_explicit(&t->start.word, memory_order_relaxed) + 1);
    bool whole = walk(t, l, 0);
    meet(t);
    return whole ? WEIR_OK : WEIR_ECANCELLED;
}

/* ---- making and ending ---- */

void weir__team_free(weir__team *t) {
    if (!t)
        return;
    t->quit = true;
    gate_open(&t->start, atomic_load_explicit(&t->start.word, memory_order_relaxed) + 1);
    for (uint32_t i = 0; i < t->started; i++)
        pthread_join(t->workers[i].thread, NULL);
    weir__free(t->system, t->memory);
}

static weir__team *team_alloc(weir_system *s, unsigned threads) {
    void *memory = weir__alloc(s, sizeof(weir__team) + threads * sizeof(worker) + WEIR__CACHE_LINE);
    if (!memory)
        return NULL;
    weir__team *t = (weir__team *)(((uintptr_t)memory + WEIR__CACHE_LINE - 1) & ~(uintptr_t)(WEIR__CACHE_LINE - 1));
    t->memory = memory;
    t->system = s;
    t->threads = threads;
    t->spin = threads <= weir__processors() ? WEIR_BARRIER_SPIN_NS : 0;
    return t;
}

int weir__team_new(weir_system *s, unsigned threads, weir__team **out, weir_error **error) {
    weir__team *t = team_alloc(s, threads);
    if (!t)
        return weir_fail(error, WEIR_ENOMEM, "device cpu: no memory for a team of %u", threads);
    for (uint32_t i = 1; i < threads; i++) {
        worker *w = &t->workers[i - 1];
        char name[32];
        *w = (worker){.team = t, .number = i};
        snprintf(name, sizeof name, "weir:cpu:%u", i);
        int failure = weir__thread_start(&w->thread, name, worker_main, w);
        if (failure) {
            weir__team_free(t);
            return weir_fail(error, WEIR_EIO, "device cpu: worker thread %u of %u: error %d", i, threads, failure);
        }
        t->started++;
    }
    *out = t;
    return WEIR_OK;
}
