/* test_planted.c: six faults of a device, planted in the tables of an opened one while it does its ordinary work: each is found, and the same work without it is
 * not complained of. Needs the emulated driver. */
#include "hold.h"

static rig r;
static weir__cuda_driver true_driver; /* the table as it was */

static const weir__forward_options options = {.tile = 32, .context = 32};

static void open_plain(void) {
    rig_open(&r);
    true_driver = r.c->driver;
}

static void open_loaded(void) {
    open_plain();
    rig_load(&r, RIG_LLAMA, &options);
}

static void restore(void) {
    r.c->driver = true_driver;
}

/* The report of a planted fault is taken; it is the only kind. */
static void must_be_found(const char *kind, const char *text) {
    int n = rig_reports(kind);
    if (!n)
        fail_msg("nothing was reported as \"%s\"", kind);
    assert_int_equal(n, EMU(cuemu_report_count)());
    if (!strstr(EMU(cuemu_report)(0), text))
        fail_msg("%s: says nothing of %s", EMU(cuemu_report)(0), text);
    EMU(cuemu_reports_clear)();
}

static void close_clean(void) {
    rig_close(&r);
    rig_no_reports();
}

/* ---- a missing event wait ---- */

static CUstream first_made; /* by the opening of a stream: that of its work */

static CUresult watch_streams(CUstream *out, unsigned flags) {
    CUresult code = true_driver.StreamCreate(out, flags);
    first_made = first_made ? first_made : *out;
    return code;
}

static CUstream deaf; /* waits for no event */

static CUresult no_wait(CUstream st, CUevent e, unsigned flags) {
    return st == deaf ? CUDA_SUCCESS : true_driver.StreamWaitEvent(st, e, flags);
}

/* One stream uploads, another computes with it. */
static void upload_and_compute(bool planted) {
    open_plain();
    rig_record(&r, RIG_LLAMA, &options);
    first_made = NULL;
    r.c->driver.StreamCreate = watch_streams;
    weir__stream *compute = dev_stream(&r.t, "compute");
    assert_int_equal(weir__stream_run(compute, r.f->tables, NULL), WEIR_OK);
    assert_int_equal(rig_wait(&r, compute), WEIR_OK);
    deaf = planted ? first_made : NULL;
    r.c->driver.StreamWaitEvent = no_wait;
    hold_begin(r.c);
    long launches = EMU(cuemu_count)("cuLaunchKernel");
    weir__event *there = NULL;
    assert_int_equal(weir__event_new(r.t.d, &there), WEIR_OK);
    assert_int_equal(weir__mirror_push(r.st, &r.f->frequencies, 0, weir__buffer_size(r.f->frequencies.host)), WEIR_OK);
    assert_int_equal(weir__stream_record(r.st, there), WEIR_OK);
    assert_int_equal(weir__stream_wait(compute, there), WEIR_OK);
    assert_int_equal(weir__stream_run(compute, r.f->normed, &(weir__shape){1, 1, 1}), WEIR_OK);
    assert_int_equal(weir__stream_run(compute, r.f->tables, NULL), WEIR_OK);
    hold_until_called("cuLaunchKernel", launches + (long)weir__list_length(r.f->normed) + 1);
    hold_end();
    assert_int_equal(rig_wait(&r, compute), WEIR_OK);
    weir__event_unref(there);
    weir__stream_close(compute);
    restore();
}

static void a_missing_event_wait_is_found(void **state) {
    (void)state;
    upload_and_compute(false);
    close_clean();
    upload_and_compute(true);
    must_be_found("unordered", "weir_rope_table");
    close_clean();
}

/* ---- a swapped argument ---- */

static CUresult swap_arguments(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                               CUstream st, void **parameters, void **extra) {
    if (f == r.c->functions[WEIR__CUDA_weir_rmsnorm]) { /* x and x_rows */
        void *x = parameters[1];
        parameters[1] = parameters[2];
        parameters[2] = x;
    }
    return true_driver.LaunchKernel(f, gx, gy, gz, bx, by, bz, shared, st, parameters, extra);
}

static void a_swapped_argument_is_found(void **state) {
    char why[256];
    (void)state;
    open_loaded();
    assert_int_equal(rig_pass(&r, 0, 1, 1), WEIR_OK);
    rig_no_reports();
    r.c->driver.LaunchKernel = swap_arguments;
    assert_int_equal(rig_pass(&r, 0, 3, 1), WEIR_EDEVICE); /* of another shape: launched, not replayed */
    weir__stream_why(r.st, why, sizeof why);
    assert_non_null(strstr(why, "weir_rmsnorm"));
    must_be_found("bad argument", "weir_rmsnorm");
    restore();
    assert_int_equal(rig_pass(&r, 0, 3, 1), WEIR_OK);
    close_clean();
}

/* ---- a store out of bounds: memory that is smaller than what was asked for ---- */

#ifndef __SANITIZE_ADDRESS__ /* it stops the program at the store */
static struct {
    int nth; /* call from now on that is given less */
    size_t bytes;
    CUdeviceptr address;
} less;

static CUresult give_less(CUdeviceptr *p, size_t bytes) {
    bool now = --less.nth == 0;
    CUresult code = true_driver.MemAlloc(p, now ? less.bytes : bytes);
    if (now)
        less.address = *p;
    return code;
}

static CUresult clear_less(CUdeviceptr p, unsigned char value, size_t bytes, CUstream st) {
    return true_driver.MemsetD8Async(p, value, p == less.address ? less.bytes : bytes, st);
}

static void a_store_out_of_bounds_is_found(void **state) {
    (void)state;
    open_loaded();
    assert_int_equal(rig_pass(&r, 0, 32, 1), WEIR_OK);
    size_t kv = weir__buffer_size(r.f->kv_memory);
    close_clean();
    open_plain();
    less.nth = 2; /* after the workspace */
    less.bytes = kv - 16;
    less.address = 0;
    r.c->driver.MemAlloc = give_less;
    r.c->driver.MemsetD8Async = clear_less;
    rig_load(&r, RIG_LLAMA, &options);
    assert_int_equal(rig_pass(&r, 0, 31, 1), WEIR_OK); /* all but the last position, which alone lies beyond */
    rig_no_reports();
    assert_int_equal(rig_pass(&r, 31, 1, 1), WEIR_OK);
    must_be_found("out of bounds", "weir_rope_store");
    restore();
    close_clean();
}
#endif

/* ---- a buffer freed in flight: a list that does not count what it touches ---- */

static void compute_and_drop(bool counts) {
    weir__buffer *out = NULL, *frequency = NULL, *other = NULL;
    weir__list *l = NULL;
    open_plain();
    r.c->eager = true;
    assert_int_equal(weir__buffer_new(r.t.d, 4096, "a table", &out, NULL), WEIR_OK);
    assert_int_equal(weir__buffer_new(r.t.d, 64, "frequencies", &frequency, NULL), WEIR_OK);
    assert_int_equal(weir__list_new(r.t.d, "table", &l, NULL), WEIR_OK);
    weir_k_rope_table table = {weir__buffer_pointer(out), 64, 16, weir__buffer_pointer(frequency), 1};
    assert_int_equal(weir__list_add(l, WEIR_K_rope_table, &table, true, NULL), WEIR_OK);
    assert_int_equal(weir__list_own(l, frequency), WEIR_OK);
    if (counts)
        assert_int_equal(weir__list_own(l, out), WEIR_OK);
    assert_int_equal(weir__stream_run(r.st, l, NULL), WEIR_OK);
    assert_int_equal(rig_wait(&r, r.st), WEIR_OK);
    EMU(cuemu_set)("lazy", 1);
    hold_begin(r.c);
    long launches = EMU(cuemu_count)("cuLaunchKernel");
    assert_int_equal(weir__stream_run(r.st, l, NULL), WEIR_OK);
    hold_until_called("cuLaunchKernel", launches + 1);
    weir__list_unref(l);
    weir__buffer_unref(frequency);
    weir__buffer_unref(out);
    r.c->device_pool.budget = r.c->device_pool.used_bytes + 8192; /* what is kept must go for this one */
    assert_int_equal(weir__buffer_new(r.t.d, 8192, "another", &other, NULL), WEIR_OK);
    hold_end();
    assert_int_equal(rig_wait(&r, r.st), WEIR_OK);
    weir__buffer_unref(other);
    restore();
    EMU(cuemu_set)("lazy", 0);
}

static void a_buffer_freed_in_flight_is_found(void **state) {
    (void)state;
    compute_and_drop(true);
    close_clean();
    compute_and_drop(false);
    must_be_found("freed in flight", "weir_rope_table");
    close_clean();
}

/* ---- a leaked graph ---- */

static CUresult destroy_nothing(CUgraphExec exec) {
    (void)exec;
    return CUDA_SUCCESS;
}

static void replay_and_close(bool planted) {
    open_loaded();
    for (int i = 0; i < 3; i++)
        assert_int_equal(rig_pass(&r, i, 1, 1), WEIR_OK);
    assert_int_equal(r.c->graph_count, 1);
    if (planted)
        r.c->driver.GraphExecDestroy = destroy_nothing;
    rig_close(&r);
}

static void a_leaked_graph_is_found(void **state) {
    (void)state;
    replay_and_close(false);
    rig_no_reports();
    replay_and_close(true);
    must_be_found("leak", "graph execs");
}

/* ---- a read of the host before the copy is over: a notice that does not wait for the work ---- */

static CUresult tell_at_once(CUstream st, CUhostFn fn, void *data) {
    (void)st;
    fn(data);
    return CUDA_SUCCESS;
}

static void read_results(bool planted) {
    open_loaded();
    EMU(cuemu_set)("lazy", 1);
    if (planted)
        r.c->driver.LaunchHostFunc = tell_at_once;
    assert_int_equal(rig_pass(&r, 0, 2, 1), WEIR_OK);
    const int32_t *sampled = r.f->step.view.sampled;
    EMU(cuemu_host_access)(sampled, sizeof *sampled, 0);
    assert_true(planted ? *sampled == -1 : *sampled >= 0); /* the emulator makes what is not there yet NaN */
    restore();
    EMU(cuemu_set)("lazy", 0);
    assert_int_equal(rig_wait(&r, r.st), WEIR_OK);
}

static void a_read_before_the_copy_is_over_is_found(void **state) {
    (void)state;
    read_results(false);
    close_clean();
    read_results(true);
    must_be_found("unfinished transfer", "copy DtoH");
    close_clean();
}

#define T(name) cmocka_unit_test_setup(name, rig_setup)
int main(void) {
    const struct CMUnitTest tests[] = {
        T(a_missing_event_wait_is_found),     T(a_swapped_argument_is_found),
#ifndef __SANITIZE_ADDRESS__
        T(a_store_out_of_bounds_is_found),
#endif
        T(a_buffer_freed_in_flight_is_found), T(a_leaked_graph_is_found),     T(a_read_before_the_copy_is_over_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
