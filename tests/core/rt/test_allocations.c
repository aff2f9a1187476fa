/* What a message costs in allocations once the first ones have gone through: nothing. The program's malloc, calloc and realloc are wrapped by the linker, so
 * that whatever calls them is counted, on every thread; the system's allocator is counted too. */
#include "fixture.h"

enum { BURST = 256, WARM = 80 * BURST, COUNTED = 400 * BURST }; /* whole bursts: the credit is what it was before */

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

/* Allocations of the second of two flows, however counted. */
static int64_t allocations(traffic *t, const char *verb) {
    flow(t, verb, WARM);
    int64_t calls = t->f.memory.calls, before = mallocs;
    flow(t, verb, COUNTED);
    return (t->f.memory.calls - calls) + (mallocs - before);
}

static int64_t measure(traffic *t, const char *verb, bool shared) {
    fixture_open(&t->f, WEIR_DRIVER_EV, 0);
    t->put = weir_intern(t->f.s, "put");
    t->more = weir_intern(t->f.s, "more");
    t->get = weir_intern(t->f.s, "get");
    t->pump = fixture_spawn(&t->f, &pump_kind, t);
    t->sink = fixture_spawn(&t->f, &sink_kind, t);
    t->shared = shared ? body_of(t) : NULL;
    t->credit = 2 * BURST;
    int64_t n = allocations(t, verb);
    weir_body_free(t->shared);
    fixture_close(&t->f);
    return n;
}

static void sends_with_new_bodies_allocate_nothing(void **state) {
    (void)state;
    traffic t = {0};
    assert_int_equal(measure(&t, "go", false), 0);
}

static void sends_of_a_shared_body_allocate_nothing(void **state) {
    (void)state;
    traffic t = {0};
    assert_int_equal(measure(&t, "go", true), 0);
}

static void calls_and_their_replies_allocate_nothing(void **state) {
    (void)state;
    traffic t = {0};
    assert_int_equal(measure(&t, "ask", false), 0);
}

static void an_allocation_is_seen(void **state) {
    (void)state;
    int64_t before = mallocs;
    void *volatile p = malloc(16);
    assert_true(mallocs > before);
    free(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_allocation_is_seen),
        cmocka_unit_test(sends_with_new_bodies_allocate_nothing),
        cmocka_unit_test(sends_of_a_shared_body_allocate_nothing),
        cmocka_unit_test(calls_and_their_replies_allocate_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
