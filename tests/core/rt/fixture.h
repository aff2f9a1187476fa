/* fixture.h: what the runtime's tests share: a counting allocator that can fail, a system around each test, an actor that records what it gets. */
#ifndef WEIR_RT_FIXTURE_H
#define WEIR_RT_FIXTURE_H

#include <ev.h>
#include <stdatomic.h>

#include "../../../core/rt/rt.h"
#include "../../test.h"

/* Blocks and bytes handed out; fails the `fail`th allocation from now on (0: never). */
typedef struct counter {
    _Atomic int64_t bytes, blocks, calls;
    _Atomic int64_t fail;
    bool failed;
} counter;

static inline void *counter_alloc(void *data, void *p, size_t old_size, size_t new_size) {
    counter *c = data;
    if (new_size) {
        atomic_fetch_add(&c->calls, 1);
        if (atomic_load(&c->fail) > 0 && atomic_fetch_sub(&c->fail, 1) == 1) {
            c->failed = true;
            return NULL;
        }
    }
    atomic_fetch_add(&c->bytes, (int64_t)new_size - (int64_t)old_size);
    atomic_fetch_add(&c->blocks, (new_size != 0) - (p != NULL));
    if (new_size)
        return realloc(p, new_size);
    free(p);
    return NULL;
}

typedef struct fixture {
    weir_system *s;
    weir_actor *main;
    counter memory;
    struct ev_loop *host; /* NULL: the system has a loop of its own */
} fixture;

/* Tests of the libev driver run on another one where WEIR_TEST_DRIVER says so: "fd", or "host", a loop of the test's. */
static inline bool fixture_wants(const char *driver) {
    const char *wanted = getenv("WEIR_TEST_DRIVER");
    return wanted && strcmp(wanted, driver) == 0;
}

static inline void fixture_open(fixture *f, enum weir_driver driver, uint64_t seed) {
    memset(f, 0, sizeof *f);
    if (driver == WEIR_DRIVER_EV && fixture_wants("fd"))
        driver = WEIR_DRIVER_FD;
    if (driver == WEIR_DRIVER_EV && fixture_wants("host"))
        f->host = ev_loop_new(EVFLAG_NOENV);
    weir_system_options o = {.driver = driver, .seed = seed, .ev_loop = f->host, .alloc = counter_alloc, .alloc_data = &f->memory};
    assert_int_equal(weir_system_new(&o, &f->s, NULL), WEIR_OK);
    f->main = weir_main_actor(f->s);
}

/* Debug builds check conservation in weir_system_free; memory is checked here in all builds. */
static inline void fixture_close(fixture *f) {
    weir__verify(f->s);
    weir_system_free(f->s);
    assert_int_equal(f->memory.bytes, 0);
    assert_int_equal(f->memory.blocks, 0);
    if (f->host)
        ev_loop_destroy(f->host);
}

static inline void fixture_run(fixture *f) {
    weir_error *e = NULL;
    int code = weir_system_run(f->s, NULL, NULL, &e);
    if (code)
        fail_msg("%s", weir_error_text(e));
}

static inline bool flag_is_set(void *data) {
    return *(bool *)data;
}

static inline weir_address fixture_spawn(fixture *f, const weir_behaviour *b, void *state) {
    weir_address a = 0;
    assert_int_equal(weir_spawn(f->s, b, state, NULL, &a, NULL), WEIR_OK);
    return a;
}

static inline void fixture_send(fixture *f, weir_address to, const char *verb, int64_t value) {
    assert_int_equal(weir_send(f->main, to, weir_intern(f->s, verb), weir_pack(f->s, "i", value)), WEIR_OK);
}

static inline int64_t first_int(const weir_message *m) {
    int64_t v = -1;
    weir_cursor c = weir_read(weir_message_body(m), NULL);
    return weir_read_int(&c, &v) ? v : -1;
}

static inline weir_system_stats stats_of(weir_system *s) {
    weir_system_stats stats;
    weir_system_get_stats(s, &stats);
    return stats;
}

/* How a call ended. */
typedef struct outcome {
    int ended, code;
    int64_t value;
    char text[256], actor[64], cause[256];
} outcome;

static inline void record_outcome(weir_actor *self, void *data, const weir_message *reply, const weir_error *error) {
    outcome *o = data;
    (void)self;
    o->ended++;
    o->code = weir_error_code(error);
    o->value = reply ? first_int(reply) : -1;
    if (!error)
        return;
    snprintf(o->text, sizeof o->text, "%s", weir_error_text(error));
    snprintf(o->actor, sizeof o->actor, "%s", weir_error_actor(error) ? weir_error_actor(error) : "");
    const weir_error *cause = weir_error_cause(error);
    snprintf(o->cause, sizeof o->cause, "%s", cause ? weir_error_text(cause) : "");
}

static inline void fixture_call(fixture *f, weir_address to, const char *verb, int64_t value, int64_t timeout, outcome *o) {
    assert_int_equal(weir_call(f->main, to, weir_intern(f->s, verb), weir_pack(f->s, "i", value), timeout, record_outcome, o, NULL),
                     WEIR_OK);
}

#endif
