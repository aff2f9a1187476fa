/* test_graphs.c: lists that are captured and replayed give the bits of lists that are launched; whatever fails in a capture leaves the stream and the cache of graphs
 * usable; and what belongs together on a stream is done as a whole or not at all. Needs the emulated driver. */
#include "rig.h"

enum { UNKNOWN = 999 }; /* CUDA_ERROR_UNKNOWN: no code that says that the context is lost */

/* Under TSan a launch takes a hundred times as long, and what shows nothing of threads is left out. */
#ifdef __SANITIZE_THREAD__
enum { THREADS_ALONE = 1 };
#else
enum { THREADS_ALONE = 0 };
#endif

static rig r;

/* The logits of a pass, allocated. */
static float *logits_of(int32_t first, uint32_t rows, int want) {
    assert_int_equal(rig_pass(&r, first, rows, want), WEIR_OK);
    float *copy = malloc(rig_logits_size(&r));
    memcpy(copy, rig_logits(&r), rig_logits_size(&r));
    return copy;
}

static void must_have(const float *logits) {
    assert_memory_equal(rig_logits(&r), logits, rig_logits_size(&r));
}

/* ---- replay ---- */

static void check_steps(int32_t first, uint32_t rows, int want) {
    float *right[3];
    r.c->eager = true;
    for (int i = 0; i < 3; i++)
        right[i] = logits_of(first + i * (int32_t)rows, rows, want);
    r.c->eager = false;
    unsigned graphs = r.c->graph_count;
    long launches = rig_calls("cuGraphLaunch");
    for (int i = 0; i < 3; i++) {
        assert_int_equal(rig_pass(&r, first + i * (int32_t)rows, rows, want), WEIR_OK);
        must_have(right[i]);
        free(right[i]);
    }
    assert_int_equal(r.c->graph_count, graphs + 1);
    assert_int_equal(rig_calls("cuGraphLaunch"), launches + 2);
}

static void replayed_steps_give_the_bits_of_launched_ones(void **state) {
    (void)state;
    rig_open_narrow(&r);
    check_steps(0, 1, 1);
    check_steps(0, 3, 2);
    rig_close_clean(&r);
}

static void replayed_steps_of_other_shapes_do_too(void **state) {
    (void)state;
    rig_open_narrow(&r);
    check_steps(0, 4, 1);
    check_steps(300, 1, 1); /* two splits of attention */
    check_steps(0, 17, 1);  /* products by cuBLAS */
    rig_close_clean(&r);
}

/* The final norm of the row that was pushed, in a run that says it had up to `rows`. */
static void norm(int32_t rows, float *to, size_t width) {
    weir__forward *f = r.f;
    size_t from = (size_t)((uint8_t *)f->w.normed - (uint8_t *)weir__buffer_pointer(f->memory));
    assert_int_equal(weir__stream_run(r.st, f->normed, &(weir__shape){rows, 1, 256}), WEIR_OK);
    assert_int_equal(weir__stream_copy(r.st, r.logits, 0, f->memory, from, width * sizeof *to), WEIR_OK);
    assert_int_equal(rig_wait(&r, r.st), WEIR_OK);
    memcpy(to, rig_logits(&r), width * sizeof *to);
}

static void more_shapes_than_are_kept_are_right_and_the_oldest_goes(void **state) {
    enum { KEPT = 16, SHAPES = 18, TURNS = 2 };
    float right[256], again[256];
    (void)state;
    rig_open_narrow(&r);
    size_t width = (size_t)weir__checkpoint_config(r.checkpoint)->width;
    assert_true(width <= 256);
    assert_int_equal(rig_pass(&r, 0, 1, 1), WEIR_OK);
    norm(1, right, width);
    long destroyed = rig_calls("cuGraphExecDestroy");
    for (int turn = 0; turn < TURNS; turn++)
        for (int32_t rows = 2; rows < 2 + SHAPES; rows++)
            for (int i = 0; i < 3; i++) {
                norm(rows, again, width);
                assert_memory_equal(again, right, width * sizeof *right);
                assert_true(r.c->graph_count <= KEPT);
            }
    assert_int_equal(r.c->graph_count, KEPT);
    assert_int_equal(rig_calls("cuGraphExecDestroy"), destroyed + TURNS * SHAPES - KEPT);
    rig_close_clean(&r);
}

static void run_twice_without_a_graph(const float *right) {
    long made = rig_calls("cuGraphInstantiate");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(rig_pass(&r, 0, 2, 1), WEIR_OK);
        must_have(right);
    }
    assert_int_equal(rig_calls("cuGraphInstantiate"), made);
}

static void a_device_that_holds_enough_graphs_launches_instead(void **state) {
    (void)state;
    rig_open_narrow(&r);
    float *right = logits_of(0, 2, 1);
    r.c->graph_count = 512;
    run_twice_without_a_graph(right);
    r.c->graph_count = 0;
    r.c->graph_bytes = (size_t)256 << 20;
    run_twice_without_a_graph(right);
    r.c->graph_bytes = 0;
    assert_int_equal(rig_pass(&r, 0, 2, 1), WEIR_OK);
    must_have(right);
    assert_int_equal(r.c->graph_count, 1);
    free(right);
    rig_close_clean(&r);
}

/* ---- failures in a capture ---- */

/* A pass in a shape of its own whose second run, the capture, fails; then it is right, captured and replayed. */
static void fails_in_capture(const char *what, int nth, uint32_t rows) {
    char why[256];
    float *right = logits_of(0, rows, 1);
    unsigned graphs = r.c->graph_count;
    EMU(cuemu_fail)(what, nth, UNKNOWN);
    int status = rig_pass(&r, 0, rows, 1);
    EMU(cuemu_fail_clear)();
    weir__stream_why(r.st, why, sizeof why);
    if (status != WEIR_EDEVICE)
        fail_msg("call %d of %s: status %d (%s)", nth, what, status, why);
    assert_non_null(strstr(why, "whole"));
    long launches = rig_calls("cuGraphLaunch");
    for (int i = 0; i < 2; i++) {
        status = rig_pass(&r, 0, rows, 1);
        weir__stream_why(r.st, why, sizeof why);
        if (status)
            fail_msg("after call %d of %s failed: status %d (%s)", nth, what, status, why);
        must_have(right);
    }
    assert_int_equal(r.c->graph_count, graphs + 1);
    assert_int_equal(rig_calls("cuGraphLaunch"), launches + 2);
    free(right);
}

static void a_launch_that_fails_in_a_capture_leaves_stream_and_cache_usable(void **state) {
    (void)state;
    rig_open_narrow(&r);
    long before = rig_calls("cuLaunchKernel");
    assert_int_equal(rig_pass(&r, 0, 1, 1), WEIR_OK);
    int n = (int)(rig_calls("cuLaunchKernel") - before);
    assert_true(n > 10);
    fails_in_capture("cuLaunchKernel", 1, 2);
    fails_in_capture("cuLaunchKernel", n / 2, 3);
    fails_in_capture("cuLaunchKernel", n, 4);
    rig_close_clean(&r);
}

static void a_library_product_that_fails_in_a_capture_leaves_stream_and_cache_usable(void **state) {
    (void)state;
    rig_open_narrow(&r);
    fails_in_capture("cublasGemmEx", 3, 17);
    rig_close_clean(&r);
}

static void a_capture_that_does_not_begin_or_end_leaves_stream_and_cache_usable(void **state) {
    (void)state;
    rig_open_narrow(&r);
    fails_in_capture("cuStreamBeginCapture", 1, 1);
    fails_in_capture("cuStreamEndCapture", 1, 2);
    fails_in_capture("cuGraphInstantiate", 1, 3);
    rig_close_clean(&r);
}

static void a_graph_that_is_not_launched_stays(void **state) {
    (void)state;
    rig_open_narrow(&r);
    float *right = logits_of(0, 2, 1);
    for (int i = 0; i < 2; i++) { /* in the run that captures, and in one that replays */
        EMU(cuemu_fail)("cuGraphLaunch", 1, UNKNOWN);
        assert_int_equal(rig_pass(&r, 0, 2, 1), WEIR_EDEVICE);
        assert_int_equal(rig_pass(&r, 0, 2, 1), WEIR_OK);
        must_have(right);
        assert_int_equal(r.c->graph_count, 1);
    }
    free(right);
    rig_close_clean(&r);
}

/* ---- a stream that is closed while its thread is in a capture ---- */

static CUresult (*end_capture)(CUstream, CUgraph *);
static _Atomic bool entered, go;

static CUresult wait_in_capture(CUstream st, CUgraph *graph) {
    atomic_store(&entered, true);
    while (!atomic_load(&go))
        dev_nap(100000);
    return end_capture(st, graph);
}

static void a_stream_that_is_closed_in_a_capture_gives_everything_back(void **state) {
    (void)state;
    rig_open_narrow(&r);
    float *right = logits_of(0, 2, 1);
    end_capture = r.c->driver.StreamEndCapture;
    entered = go = false;
    r.c->driver.StreamEndCapture = wait_in_capture;
    rig_rows(&r, 1, 0, 2, 1);
    assert_int_equal(rig_submit(&r), WEIR_OK);
    while (!atomic_load(&entered))
        dev_nap(100000);
    weir__stream_close(r.st); /* as the end of its owner does */
    r.st = dev_stream(&r.t, "another");
    atomic_store(&go, true);
    dev_settle(&r.t); /* a successor waits for that */
    for (int i = 0; i < 2; i++) {
        assert_int_equal(rig_pass(&r, 0, 2, 1), WEIR_OK);
        must_have(right);
    }
    assert_int_equal(r.c->graph_count, 1);
    free(right);
    rig_close_clean(&r);
}

/* ---- what belongs together ---- */

typedef struct group {
    weir__stream *reader; /* waits for the whole of it */
    weir__event *there;
} group;

/* A unit's two copies and its packing, an event behind them, and a list of another stream that waits for that; the nth copy fails. */
static void unit_whose_copy_fails(int nth) {
    rig_unit u;
    group g = {.reader = dev_stream(&r.t, "reader")};
    rig_unit_read(&r, 0, true, &u);
    assert_int_equal(weir__event_new(r.t.d, &g.there), WEIR_OK);
    long launches = rig_calls("cuLaunchKernel"), graphs = rig_calls("cuGraphLaunch");
    EMU(cuemu_fail)("cuMemcpyHtoDAsync", nth, UNKNOWN);
    assert_int_equal(rig_unit_submit(&u, r.st), WEIR_OK);
    assert_int_equal(weir__stream_record(r.st, g.there), WEIR_OK);
    assert_int_equal(weir__stream_wait(g.reader, g.there), WEIR_OK);
    assert_int_equal(weir__stream_run(g.reader, r.f->tables, NULL), WEIR_OK);
    assert_int_equal(rig_wait(&r, r.st), WEIR_EDEVICE);
    assert_int_equal(rig_wait(&r, g.reader), WEIR_EDEVICE);
    assert_int_equal(weir__event_status(g.there), WEIR_EDEVICE);
    assert_int_equal(rig_calls("cuLaunchKernel"), launches);
    assert_int_equal(rig_calls("cuGraphLaunch"), graphs);
    EMU(cuemu_fail_clear)();
    assert_int_equal(rig_unit_submit(&u, r.st), WEIR_OK); /* asked for again, it comes as a whole */
    assert_int_equal(rig_wait(&r, r.st), WEIR_OK);
    weir__event_unref(g.there);
    weir__stream_close(g.reader);
    rig_unit_drop(&u);
}

static void a_unit_is_there_with_all_its_copies_or_not_at_all(void **state) {
    (void)state;
    rig_open_narrow(&r);
    for (int nth = 1; nth <= 2; nth++)
        unit_whose_copy_fails(nth);
    rig_close_clean(&r);
}

/* What was submitted before the submission that failed is not taken for the group: no event, no notice was asked for. What is submitted next goes on. */
static void a_unit_whose_submission_fails_is_not_there(void **state) {
    (void)state;
    rig_open_narrow(&r);
    float *right = logits_of(0, 2, 1);
    for (uint64_t nth = 1; nth <= 3; nth++) {
        rig_unit u;
        rig_unit_read(&r, 0, true, &u);
        long launches = rig_calls("cuLaunchKernel");
        assert_int_equal(weir__inject_arm(r.t.s, "SUBMIT", nth, 1), WEIR_OK);
        assert_int_equal(rig_unit_submit(&u, r.st), WEIR_EDEVICE);
        weir__inject_arm(r.t.s, "SUBMIT", 0, 0);
        rig_unit_drop(&u);
        assert_int_equal(rig_wait(&r, r.st), WEIR_OK);
        assert_int_equal(rig_calls("cuLaunchKernel"), launches);
    }
    assert_int_equal(rig_pass(&r, 0, 2, 1), WEIR_OK);
    must_have(right);
    free(right);
    rig_close_clean(&r);
}

static void a_step_block_arrives_whole_or_the_pass_does_not_run(void **state) {
    (void)state;
    rig_open_narrow(&r);
    float *right = logits_of(0, 2, 1);
    long before = rig_calls("cuMemcpyHtoDAsync");
    assert_int_equal(rig_pass(&r, 0, 2, 1), WEIR_OK);
    int copies = (int)(rig_calls("cuMemcpyHtoDAsync") - before);
    assert_true(copies >= 2);
    for (int nth = 1; nth <= copies; nth++) {
        long launches = rig_calls("cuLaunchKernel") + rig_calls("cuGraphLaunch"), back = rig_calls("cuMemcpyDtoHAsync");
        EMU(cuemu_fail)("cuMemcpyHtoDAsync", nth, UNKNOWN);
        assert_int_equal(rig_pass(&r, 5, 2, 1), WEIR_EDEVICE);
        assert_int_equal(rig_calls("cuLaunchKernel") + rig_calls("cuGraphLaunch"), launches);
        assert_int_equal(rig_calls("cuMemcpyDtoHAsync"), back);
        assert_int_equal(rig_pass(&r, 0, 2, 1), WEIR_OK);
        must_have(right);
    }
    free(right);
    rig_close_clean(&r);
}

#define T(name) cmocka_unit_test_setup(name, rig_setup)
int main(void) {
    const struct CMUnitTest threads[] = {
        T(replayed_steps_give_the_bits_of_launched_ones),
        T(a_launch_that_fails_in_a_capture_leaves_stream_and_cache_usable),
        T(a_stream_that_is_closed_in_a_capture_gives_everything_back),
        T(a_unit_is_there_with_all_its_copies_or_not_at_all),
        T(a_unit_whose_submission_fails_is_not_there),
    };
    const struct CMUnitTest others[] = {
        T(replayed_steps_of_other_shapes_do_too),
        T(more_shapes_than_are_kept_are_right_and_the_oldest_goes),
        T(a_device_that_holds_enough_graphs_launches_instead),
        T(a_library_product_that_fails_in_a_capture_leaves_stream_and_cache_usable),
        T(a_capture_that_does_not_begin_or_end_leaves_stream_and_cache_usable),
        T(a_graph_that_is_not_launched_stays),
        T(a_step_block_arrives_whole_or_the_pass_does_not_run),
    };
    int failed = cmocka_run_group_tests(threads, NULL, NULL);
    return failed + (THREADS_ALONE ? 0 : cmocka_run_group_tests(others, NULL, NULL));
}
