/* kernel_team.h: what the kernel benches share: memory in huge pages, a team of threads that meet after each kernel, the best of several runs. */
#ifndef TESTS_KERNEL_TEAM_H
#define TESTS_KERNEL_TEAM_H

#include "../../kernels/cpu/layout.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

enum { ARENA = 192 << 20, HUGE_PAGE = 2 << 20 };

/* Zeroed, 64-byte aligned, never given back. Everything lies side by side in huge pages, as a model's units do: matrices that each began a page of their own
 * would all fall on the same cache sets. */
static void *memory(size_t bytes) {
    static uint8_t *at, *end;
    if (!at) {
        uint8_t *p = mmap(NULL, ARENA + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED)
            exit(1);
        at = p + (HUGE_PAGE - (uintptr_t)p % HUGE_PAGE) % HUGE_PAGE;
        end = at + ARENA;
        madvise(at, ARENA, MADV_HUGEPAGE);
        memset(at, 0, ARENA);
    }
    uint8_t *p = at;
    at += (bytes + 63) / 64 * 64;
    if (at > end)
        exit(1);
    return p;
}

/* ---- a list of kernels, run by a team whose threads meet after each ---- */

enum { MOST_THREADS = 8, MOST_ITEMS = 128 };

typedef struct item {
    int kernel;
    const void *args;
} item;
typedef struct team {
    const weir_cpu_table *table;
    const item *items;
    int count;
    unsigned threads;
    _Atomic uint32_t next[MOST_ITEMS];
    _Atomic unsigned arrived;
    double stamp[MOST_ITEMS + 1][MOST_THREADS]; /* when each thread came to each meeting */
} team;
typedef struct member {
    team *team;
    unsigned worker;
} member;

static void meet(team *t, unsigned worker, int nth) {
    unsigned want = (unsigned)(nth + 1) * t->threads;
    t->stamp[nth][worker] = now();
    atomic_fetch_add(&t->arrived, 1);
    while (atomic_load_explicit(&t->arrived, memory_order_acquire) < want)
        ;
}

static void *run_member(void *data) {
    member *m = data;
    team *t = m->team;
    meet(t, m->worker, 0);
    for (int i = 0; i < t->count; i++) {
        weir_work w = {m->worker, t->threads, &t->next[i]};
        t->table->run[t->items[i].kernel](t->items[i].args, &w);
        meet(t, m->worker, i + 1);
    }
    return NULL;
}

static double last_stamp(const team *t, int nth) {
    double last = 0;
    for (unsigned i = 0; i < t->threads; i++)
        last = t->stamp[nth][i] > last ? t->stamp[nth][i] : last;
    return last;
}

static void run_once(team *t) {
    pthread_t thread[MOST_THREADS];
    member m[MOST_THREADS];
    for (int i = 0; i < t->count; i++)
        atomic_store(&t->next[i], 0);
    atomic_store(&t->arrived, 0);
    for (unsigned i = 0; i < t->threads; i++) {
        m[i] = (member){t, i};
        if (i && pthread_create(&thread[i], NULL, run_member, &m[i]))
            exit(1);
    }
    run_member(&m[0]);
    for (unsigned i = 1; i < t->threads; i++)
        pthread_join(thread[i], NULL);
}

/* Seconds of running the items one after the other: the sum of each one's best time, from the last thread's coming to one meeting to the last one's coming
 * to the next. Items are short, so that the best is free of other programs' time slices. */
static double best_of(int level, unsigned threads, const item *items, int count, int runs) {
    static team t;
    static double best[MOST_ITEMS];
    double sum = 0;
    t.table = weir_cpu_table_get(level);
    t.items = items;
    t.count = count;
    t.threads = threads;
    for (int run = 0; run < runs; run++) {
        run_once(&t);
        for (int i = 0; i < count; i++) {
            double s = last_stamp(&t, i + 1) - last_stamp(&t, i);
            best[i] = run == 0 || s < best[i] ? s : best[i];
        }
    }
    for (int i = 0; i < count; i++)
        sum += best[i];
    return sum;
}

#endif
