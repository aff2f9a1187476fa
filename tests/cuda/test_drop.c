/* test_drop.c: what is given back while work uses it, in every order: graphs go before what they launch with, nothing is freed in flight, and in the end all of it is
 * with the driver again. Needs the emulated driver. */
#include "hold.h"

static rig r;
static const weir__forward_options options = {.tile = 32, .context = 64};

/* ---- what the driver has given and got back ---- */

static const char *const pairs[][2] = {
    {"cuMemAlloc", "cuMemFree"},         {"cuMemHostRegister", "cuMemHostUnregister"}, {"cuStreamCreate", "cuStreamDestroy"},
    {"cuEventCreate", "cuEventDestroy"}, {"cuGraphInstantiate", "cuGraphExecDestroy"}, {"cuStreamEndCapture", "cuGraphDestroy"},
    {"cublasCreate", "cublasDestroy"}};
enum { PAIRS = sizeof pairs / sizeof *pairs };
static long made_before[PAIRS], given_before[PAIRS];

static int begin(void **state) {
    for (int i = 0; i < PAIRS; i++) {
        made_before[i] = EMU(cuemu_count)(pairs[i][0]);
        given_before[i] = EMU(cuemu_count)(pairs[i][1]);
    }
    return rig_setup(state);
}

/* The device has ended. */
static void must_be_returned(void) {
    rig_no_reports();
    for (int i = 0; i < PAIRS; i++)
        assert_int_equal(EMU(cuemu_count)(pairs[i][0]) - made_before[i], EMU(cuemu_count)(pairs[i][1]) - given_before[i]);
}

/* A stream that a model was prepared on keeps the workspace of cuBLAS. */
static void nothing_is_used_but(size_t bytes) {
    assert_int_equal(r.c->device_pool.used_bytes, bytes);
    assert_int_equal(r.c->host_pool.used_bytes, 0);
    assert_int_equal(r.c->graph_count, 0);
    assert_int_equal(r.c->graph_bytes, 0);
}

/* ---- a list and its buffers ---- */

enum { THINGS = 4 }; /* a list and three buffers that it touches */

typedef struct things {
    weir__list *list;
    weir__buffer *buffers[THINGS - 1]; /* two tables and their frequencies */
} things;

static void make_things(things *t) {
    assert_int_equal(weir__list_new(r.t.d, "tables", &t->list, NULL), WEIR_OK);
    for (int i = 0; i < THINGS - 1; i++) {
        assert_int_equal(weir__buffer_new(r.t.d, (size_t)(i + 1) * 4096, "a table", &t->buffers[i], NULL), WEIR_OK);
        assert_int_equal(weir__list_own(t->list, t->buffers[i]), WEIR_OK);
    }
    for (int i = 0; i < 2; i++) {
        weir_k_rope_table table = {weir__buffer_pointer(t->buffers[i]), 64, 16, weir__buffer_pointer(t->buffers[2]), 1};
        assert_int_equal(weir__list_add(t->list, WEIR_K_rope_table, &table, true, NULL), WEIR_OK);
    }
}

static void drop_thing(things *t, int i) {
    if (i == 0)
        weir__list_unref(t->list);
    else
        weir__buffer_unref(t->buffers[i - 1]);
}

/* Permutation `number` of the things, dropped one by one. */
static void drop_all(things *t, int number) {
    int left[THINGS] = {0, 1, 2, 3};
    for (int n = THINGS; n > 0; n--) {
        int i = number % n;
        number /= n;
        drop_thing(t, left[i]);
        memmove(&left[i], &left[i + 1], (size_t)(n - i - 1) * sizeof *left);
    }
}

/* Has a graph, whose launch the driver has in flight, and another run behind a host function that stands still. */
static void run_things(things *t, dev_gate *gate) {
    for (int i = 0; i < 2; i++)
        assert_int_equal(weir__stream_run(r.st, t->list, NULL), WEIR_OK);
    assert_int_equal(rig_wait(&r, r.st), WEIR_OK);
    hold_begin(r.c);
    long launches = EMU(cuemu_count)("cuGraphLaunch");
    assert_int_equal(weir__stream_run(r.st, t->list, NULL), WEIR_OK);
    hold_until_called("cuGraphLaunch", launches + 1);
    dev_gate_submit(r.st, gate);
    assert_int_equal(weir__stream_run(r.st, t->list, NULL), WEIR_OK);
}

static void a_list_and_its_buffers_are_dropped_in_every_order(void **state) {
    enum { ORDERS = 24 };
    (void)state;
    rig_open(&r);
    for (int order = 0; order < ORDERS; order++) {
        dev_gate gate = {0};
        things t;
        make_things(&t);
        run_things(&t, &gate);
        unsigned graphs = r.c->graph_count;
        drop_all(&t, order);
        assert_int_equal(r.c->graph_count, graphs); /* work holds the list, and so all of it */
        hold_end();
        atomic_store(&gate.open, true);
        assert_int_equal(rig_wait(&r, r.st), WEIR_OK);
        nothing_is_used_but(0);
        rig_no_reports();
    }
    rig_close(&r);
    must_be_returned();
}

/* ---- memory that no work has used ---- */

static void memory_is_not_given_back_while_it_is_zeroed(void **state) {
    weir__buffer *b = NULL, *other = NULL;
    (void)state;
    rig_open(&r);
    EMU(cuemu_set)("lazy", 1);
    assert_int_equal(weir__buffer_new(r.t.d, 4096, "unused", &b, NULL), WEIR_OK);
    weir__buffer_unref(b);
    r.c->device_pool.budget = r.c->device_pool.used_bytes + 8192; /* what is kept must go for this one */
    assert_int_equal(weir__buffer_new(r.t.d, 8192, "another", &other, NULL), WEIR_OK);
    weir__buffer_unref(other);
    rig_close(&r);
    EMU(cuemu_set)("lazy", 0);
    must_be_returned();
}

/* ---- a model ---- */

static void run_model(dev_gate *gate) {
    rig_open(&r);
    rig_load(&r, rig_narrow(), &options);
    for (int i = 0; i < 2; i++)
        assert_int_equal(rig_pass(&r, i, 1, 1), WEIR_OK);
    assert_int_equal(r.c->graph_count, 1);
    hold_begin(r.c);
    long launches = EMU(cuemu_count)("cuGraphLaunch");
    rig_rows(&r, 1, 2, 1, 1);
    assert_int_equal(rig_submit(&r), WEIR_OK);
    hold_until_called("cuGraphLaunch", launches + 1);
    dev_gate_submit(r.st, gate);
    assert_int_equal(weir__forward_run(r.f, r.st, r.f->whole, 0), WEIR_OK);
    for (uint32_t i = 0; i <= r.units; i++)
        assert_int_equal(weir__stream_keep(r.st, r.blobs[i]), WEIR_OK);
}

static void a_model_is_dropped_while_its_pass_runs(void **state) {
    dev_gate gate = {0};
    (void)state;
    run_model(&gate);
    rig_unload(&r);
    assert_int_equal(r.c->graph_count, 1);
    hold_end();
    atomic_store(&gate.open, true);
    assert_int_equal(rig_wait(&r, r.st), WEIR_OK);
    nothing_is_used_but(32 << 20);
    rig_close(&r);
    must_be_returned();
}

static void a_model_is_dropped_after_its_stream_is_closed_under_a_pass(void **state) {
    dev_gate gate = {0};
    (void)state;
    run_model(&gate);
    weir__stream_close(r.st);
    r.st = NULL;
    rig_unload(&r);
    hold_end();
    atomic_store(&gate.open, true);
    dev_settle(&r.t);
    nothing_is_used_but(0);
    rig_close(&r);
    must_be_returned();
}

/* Memory of one model is the next one's at once: what the first one's graphs launched with must not be in use. */
static void a_model_follows_another_in_its_memory(void **state) {
    (void)state;
    rig_open(&r);
    float first = 0;
    for (int i = 0; i < 3; i++) {
        rig_load(&r, rig_narrow(), &options);
        for (int k = 0; k < 3; k++)
            assert_int_equal(rig_pass(&r, 0, 2, 1), WEIR_OK);
        if (i == 0)
            first = rig_logits(&r)[0];
        assert_true(rig_logits(&r)[0] == first);
        rig_rows(&r, 1, 0, 2, 1);
        assert_int_equal(rig_submit(&r), WEIR_OK); /* under way when the lists, then the weights go */
        for (uint32_t u = 0; u <= r.units; u++)
            assert_int_equal(weir__stream_keep(r.st, r.blobs[u]), WEIR_OK);
        rig_unload(&r);
    }
    assert_int_equal(rig_wait(&r, r.st), WEIR_OK);
    rig_close(&r);
    must_be_returned();
}

/* ---- the end of a device that has graphs ---- */

static void unload(weir_system *s, void *data) {
    (void)s;
    rig_unload(data);
}

static void a_device_ends_with_graphs_in_its_cache(void **state) {
    (void)state;
    rig_open(&r);
    assert_int_equal(weir__attach(r.t.s, "a model", &r, unload), WEIR_OK); /* closed before the device, whose streams are open */
    rig_load(&r, rig_narrow(), &options);
    for (int i = 0; i < 3; i++)
        assert_int_equal(rig_pass(&r, i, 1, 1), WEIR_OK);
    assert_int_equal(r.c->graph_count, 1);
    r.st = NULL;
    dev_close(&r.t);
    must_be_returned();
}

#define T(name) cmocka_unit_test_setup(name, begin)
int main(void) {
    const struct CMUnitTest tests[] = {T(a_list_and_its_buffers_are_dropped_in_every_order),
                                       T(memory_is_not_given_back_while_it_is_zeroed),
                                       T(a_model_is_dropped_while_its_pass_runs),
                                       T(a_model_is_dropped_after_its_stream_is_closed_under_a_pass),
                                       T(a_model_follows_another_in_its_memory),
                                       T(a_device_ends_with_graphs_in_its_cache)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
