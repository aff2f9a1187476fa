/* What a message costs in allocations once the first ones have gone through: nothing. The program's malloc, calloc and realloc are wrapped by the linker, so
 * that whatever calls them is counted, on every thread; the system's allocator is counted too. */
#include "fixture.h"

enum { BURST = 256, COUNTED = 200 * BURST, FLOWS = 20 }; /* whole bursts: the credit is what it was before */

static _Atomic int64_t mallocs;

void *__real_malloc(size_t n);
void *__real_calloc(size_t count, size_t n);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t count, size_t n);
void *__wrap_realloc(void *p, size_t n);

void *__wrap_malloc(size_t n) {
    atomic_fetch_add(&mallocs, 1);
    return __real_malloc(n);
}

void *__wrap_calloc(size_t count, size_t n) {
    atomic_fetch_add(&mallocs, 1);
    return __real_calloc(count, n);
}

void *__wrap_realloc(void *p, size_t n) {
    atomic_fetch_add(&mallocs, 1);
    return __real_realloc(p, n);
}

/* A pump sends, by credit, or calls; a sink counts. */
typedef struct traffic {
    fixture f;
    weir_verb put, more, get;
    weir_address pump, sink;
    int64_t left, credit, seen;
    weir_body *shared; /* sent if not NULL */
    char payload[64];
} traffic;

static weir_body *body_of(traffic *t) {
    return t->shared ? weir_body_ref(t->shared) : weir_pack(t->f.s, "b", t->payload, sizeof t->payload);
}

static void on_put(weir_actor *self, const weir_message *m) {
    traffic *t = weir_state(self);
    (void)m;
    if (++t->seen % BURST == 0)
        weir_send(self, t->pump, t->more, NULL);
}

static void on_get(weir_actor *self, const weir_message *m) {
    traffic *t = weir_state(self);
    t->seen++;
    weir_reply(self, m, weir_body_ref(weir_message_body(m)));
}

static void send_some(weir_actor *self, traffic *t) {
    for (; t->left && t->credit; t->left--, t->credit--)
        assert_int_equal(weir_send(self, t->sink, t->put, body_of(t)), WEIR_OK);
}

static void on_more(weir_actor *self, const weir_message *m) {
    traffic *t = weir_state(self);
    (void)m;
    t->credit += BURST;
    send_some(self, t);
}

static void on_go(weir_actor *self, const weir_message *m) {
    (void)m;
    send_some(self, weir_state(self));
}

static void on_reply(weir_actor *self, void *data, const weir_message *reply, const weir_error *error) {
    traffic *t = data;
    (void)reply;
    assert_null(error);
    if (--t->left)
        assert_int_equal(weir_call(self, t->sink, t->get, body_of(t), 0, on_reply, t, NULL), WEIR_OK);
}

static void on_ask(weir_actor *self, const weir_message *m) {
    traffic *t = weir_state(self);
    (void)m;
    assert_int_equal(weir_call(self, t->sink, t->get, body_of(t), 0, on_reply, t, NULL), WEIR_OK);
}

static const weir_handler pump_handlers[] = {{"go", on_go}, {"more", on_more}, {"ask", on_ask}, {NULL, NULL}};
static const weir_handler sink_handlers[] = {{"put", on_put}, {"get", on_get}, {NULL, NULL}};
static const weir_behaviour pump_kind = {.name = "pump", .handlers = pump_handlers},
                            sink_kind = {.name = "sink", .handlers = sink_handlers};

/* n messages, begun with `verb` to the pump. */
static void flow(traffic *t, const char *verb, int64_t n) {
    int64_t seen = t->seen;
    t->left = n;
    assert_int_equal(weir_send(t->f.main, t->pump, weir_intern(t->f.s, verb), NULL), WEIR_OK);
    fixture_run(&t->f);
    assert_int_equal(t->seen, seen + n);
}

/* Allocations of a flow, however counted, after others. How many blocks are between two loops at most shows only with time, so the warm-up is over when a
 * flow needs none; FLOWS are enough for that. */
static int64_t allocations(traffic *t, const char *verb) {
    int64_t n = 1;
    for (int i = 0; i < FLOWS && n; i++) {
        int64_t before = t->f.memory.calls + mallocs;
        flow(t, verb, COUNTED);
        n = t->f.memory.calls + mallocs - before;
    }
    return n;
}

typedef struct plan {
    const char *verb;
    bool shared;
    unsigned workers; /* 1: the sink is on the worker's loop */
} plan;

static int64_t measure(const plan *p) {
    traffic t = {.credit = 2 * BURST};
    weir_system_options o = {.workers = p->workers, .alloc = counter_alloc, .alloc_data = &t.f.memory};
    weir_spawn_options where = {.loop = p->workers ? WEIR_LOOP_MAIN + 1 : WEIR_LOOP_HERE};
    assert_int_equal(weir_system_new(&o, &t.f.s, NULL), WEIR_OK);
    t.f.main = weir_main_actor(t.f.s);
    t.put = weir_intern(t.f.s, "put");
    t.more = weir_intern(t.f.s, "more");
    t.get = weir_intern(t.f.s, "get");
    t.pump = fixture_spawn(&t.f, &pump_kind, &t);
    assert_int_equal(weir_spawn(t.f.s, &sink_kind, &t, &where, &t.sink, NULL), WEIR_OK);
    t.shared = p->shared ? body_of(&t) : NULL;
    int64_t n = allocations(&t, p->verb);
    weir_body_free(t.shared);
    fixture_close(&t.f);
    return n;
}

static void allocates_nothing(void **state) {
    assert_int_equal(measure(*state), 0);
}

static void an_allocation_is_seen(void **state) {
    (void)state;
    int64_t before = mallocs;
    void *volatile p = malloc(16);
    assert_true(mallocs > before);
    free(p);
}

#define NOTHING(name, ...)                                                                                                                 \
    {                                                                                                                                      \
        name "_allocate_nothing", allocates_nothing, NULL, NULL, &(plan) {                                                                 \
            __VA_ARGS__                                                                                                                    \
        }                                                                                                                                  \
    }

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_allocation_is_seen),
        NOTHING("sends_with_new_bodies", "go", false, 0),
        NOTHING("sends_of_a_shared_body", "go", true, 0),
        NOTHING("calls_and_their_replies", "ask", false, 0),
        NOTHING("sends_with_new_bodies_to_another_loop", "go", false, 1),
        NOTHING("sends_of_a_shared_body_to_another_loop", "go", true, 1),
        NOTHING("calls_to_another_loop_and_their_replies", "ask", false, 1),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
