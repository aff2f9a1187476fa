/* worker.c: worker loops: a thread each, which sleeps on a futex. They run from weir_system_new on and end in weir_system_free. */
#include <errno.h>
#include <stdio.h>

#include "internal.h"

_Thread_local weir__loop *weir__worker;

static void worker_close(weir__loop *l) {
    (void)l;
}

static void worker_poll(weir__loop *l) {
    (void)l;
}

const weir__driver weir__driver_worker = {.turn = WEIR_TURN_MESSAGES,
                                          .close = worker_close,
                                          .now = weir__wait_clock,
                                          .choose = weir__wait_choose,
                                          .poll = worker_poll,
                                          .wait = weir__wait_futex,
                                          .wake = weir__wake_futex};

/* ---- their life ---- */

static bool closing(void *data) {
    weir__loop *l = data;
    return atomic_load_explicit(&l->system->closing, memory_order_relaxed);
}

static void *worker_main(void *data) {
    weir__loop *l = data;
    weir__worker = l;
    weir__loop_run(l, closing, l);
    weir__loop_end_actors(l);
    weir__pending(l->system, -1);
    return NULL;
}

static bool seeded(const weir_system *s) {
    return s->main_loop.driver == &weir__driver_test;
}

static int worker_new(weir_system *s, unsigned index, weir_error **error) {
    weir__loop *l = weir__alloc(s, sizeof *l);
    if (!l)
        return weir_fail(error, WEIR_ENOMEM, "no memory for worker loop %u", index);
    weir__loop_init(s, l, index, seeded(s) ? &weir__driver_test : &weir__driver_worker);
    s->loops[s->n_loops++] = l;
    return WEIR_OK;
}

static int worker_start(weir_system *s, weir__loop *l, weir_error **error) {
    char name[16];
    snprintf(name, sizeof name, "weir loop %u", l->index);
    atomic_fetch_add(&s->pending, 1);
    int failure = weir__inject(s, WEIR__INJECT_THREAD) ? EAGAIN : weir__thread_start(&l->thread, name, worker_main, l);
    if (failure) {
        atomic_fetch_sub(&s->pending, 1);
        return weir_fail(error, WEIR_EIO, "no thread for worker loop %u: %s", l->index, strerror(failure));
    }
    s->n_threads++;
    return WEIR_OK;
}

int weir__workers_make(weir_system *s, unsigned workers, weir_error **error) {
    s->loops = weir__alloc(s, (1 + (size_t)workers) * sizeof *s->loops);
    if (!s->loops)
        return weir_fail(error, WEIR_ENOMEM, "no memory for %u worker loops", workers);
    s->loops[s->n_loops++] = &s->main_loop;
    int code = WEIR_OK;
    for (unsigned i = 1; i <= workers && code == WEIR_OK; i++)
        code = worker_new(s, i, error);
    return code;
}

/* The loops and the main actor are there before the first thread runs: they look at each other. */
int weir__workers_start(weir_system *s, weir_error **error) {
    int code = WEIR_OK;
    for (unsigned i = 1; i < s->n_loops && code == WEIR_OK && !seeded(s); i++)
        code = worker_start(s, s->loops[i], error);
    return code;
}

void weir__workers_stop(weir_system *s) {
    atomic_store(&s->closing, true);
    for (unsigned i = 1; i < s->n_loops; i++)
        weir__wake(s->loops[i]);
    for (unsigned i = 1; i <= s->n_threads; i++)
        pthread_join(s->loops[i]->thread, NULL);
    s->n_threads = 0;
    for (unsigned i = 1; i < s->n_loops; i++) { /* the test driver's; who was started there when the thread had ended */
        s->here = s->loops[i];
        weir__loop_end_actors(s->here);
    }
    s->here = &s->main_loop;
}

unsigned weir_loops(const weir_system *s) {
    return s->n_loops;
}
