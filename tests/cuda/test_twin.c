/* test_twin.c: what the device launches for a model's lists is what a second way from the same kernels comes to, which looks everything up by name: entry points,
 * grids, every argument, products of cuBLAS, and their order. Nothing runs: both ways end in a recorder. */
#include "notes.h"
#include "recorder.h"
#include "rig.h"
#include "twin.h"

#include "../../core/model/convert.h"
#include "../../core/model/llama2c.h"

enum { LISTS = 64 };

/* What was recorded for a list: notes [first, first + count), and for `whole` those of other lists. */
typedef struct program {
    const weir__list *list;
    size_t first, count;
} program;

/* How a model is looked at. */
typedef struct how {
    bool f32; /* activations and KV */
    bool without_cublas;
    void (*spoil)(enum weir_kernel kernel, weir__cuda_op *op); /* of what is bound */
} how;

typedef struct fixture {
    rig r;
    void *cublas; /* its library, while the device is told that there is none */
    program programs[LISTS];
    size_t n_programs, told; /* told: notes that belong to a program */
    recording device, twin;
    char why[512];
} fixture;

static fixture f;

/* ---- from lists to what was recorded for them ---- */

static void add_program(const weir__list *l) {
    size_t n = weir__list_length(l);
    f.programs[f.n_programs++] = (program){l, f.told, n};
    f.told += n;
}

/* In the order in which forward.c records them. */
static void add_forward(void) {
    const weir__forward *w = f.r.f;
    add_program(w->tables);
    add_program(w->begin);
    for (uint32_t u = 0; u < f.r.units; u++)
        add_program(w->units[u]);
    add_program(w->finish);
    add_program(w->normed);
    assert_int_equal(f.told, noted.count);
}

static void run_program(twin *t, const weir__list *l) {
    for (size_t i = 0; i < f.n_programs; i++)
        for (size_t k = 0; f.programs[i].list == l && k < f.programs[i].count; k++) {
            const note *n = &noted.bound[f.programs[i].first + k];
            twin_launch(t, n->kernel, n->args);
        }
}

static void run_twin(twin *t, const weir__list *l) {
    const weir__forward *w = f.r.f;
    if (!w || l != w->whole) {
        run_program(t, l);
        return;
    }
    run_program(t, w->begin);
    for (uint32_t u = 0; u < f.r.units; u++)
        run_program(t, w->units[u]);
    run_program(t, w->finish);
}

/* ---- both ways ---- */

/* What was submitted since the last time has been given to the driver: whether the twin comes to the same. */
static bool agree(void) {
    weir__cuda *c = f.r.c;
    assert_int_equal(rig_wait(&f.r, f.r.st), WEIR_OK);
    weir__cuda_scope scope = weir__cuda_enter(c);
    recorder_into(&f.twin);
    for (size_t i = 0; i < noted.n_runs; i++) {
        weir__shape s = noted.runs[i].shape;
        twin t = {.get_function = c->driver.ModuleGetFunction,
                  .launch = c->driver.LaunchKernel,
                  .blas = c->blas.library ? &c->blas : NULL,
                  .module = c->module,
                  .rows = s.rows,
                  .outputs = s.outputs,
                  .positions = s.positions};
        run_twin(&t, noted.runs[i].list);
        if (*t.why)
            fail_msg("%s", t.why);
    }
    recorder_into(&f.device);
    weir__cuda_leave(c, scope);
    bool equal = recordings_equal(&f.device, &f.twin, f.why, sizeof f.why);
    noted.n_runs = 0;
    return equal;
}

static void clear(void) {
    recording_clear(&f.device);
    recording_clear(&f.twin);
}

static void must_agree(const char *what, int sequences, int length) {
    if (!agree())
        fail_msg("%s, %d sequences of %d: %s", what, sequences, length, f.why);
    assert_true(f.device.count > 0);
    clear();
}

static void check_outputs(int sequences, int length) {
    weir__forward *w = f.r.f;
    for (uint32_t i = 0; i < weir__forward_out_tiles(w); i++)
        assert_int_equal(weir__forward_run(w, f.r.st, w->finish, i), WEIR_OK);
    must_agree("finish", sequences, length);
    if (weir__forward_tiles(w) > 1 || weir__forward_out_tiles(w) > 1)
        return;
    assert_int_equal(weir__forward_run(w, f.r.st, w->whole, 0), WEIR_OK);
    must_agree("whole", sequences, length);
}

static void check_shape(int sequences, int length) {
    weir__forward *w = f.r.f;
    rig_rows(&f.r, sequences, 0, (uint32_t)length, length == 16 ? 2 : 1);
    assert_int_equal(weir__forward_run_tiles(w, f.r.st, w->begin), WEIR_OK);
    must_agree("begin", sequences, length);
    for (uint32_t u = 0; u < f.r.units; u++) {
        assert_int_equal(weir__forward_run_tiles(w, f.r.st, w->units[u]), WEIR_OK);
        must_agree(weir__checkpoint_unit(f.r.checkpoint, u)->path, sequences, length);
    }
    assert_int_equal(weir__forward_run_tiles(w, f.r.st, w->normed), WEIR_OK);
    must_agree("normed", sequences, length);
    check_outputs(sequences, length);
}

static void check_packing(void) {
    for (uint32_t i = 0; i <= f.r.units; i++) {
        rig_unit u;
        rig_unit_read(&f.r, i, true, &u);
        add_program(u.pack);
        assert_int_equal(weir__stream_run(f.r.st, u.pack, NULL), WEIR_OK);
        must_agree("pack", 0, (int)i);
        rig_unit_drop(&u);
        f.n_programs--;
    }
}

/* ---- a device whose calls are recorded ---- */

static void open_recorder(how h) {
    f = (fixture){0};
    rig_open(&f.r);
    f.r.c->eager = true;
    f.cublas = f.r.c->blas.library;
    if (h.without_cublas)
        f.r.c->blas.library = NULL;
    weir__cuda_scope scope = weir__cuda_enter(f.r.c);
    recorder_install(f.r.c);
    weir__cuda_leave(f.r.c, scope);
    recorder_into(&f.device);
    notes_install(f.r.t.d);
    noted.spoil = h.spoil;
}

static void open_recorded(const char *path, how h) {
    const weir__forward_options o = {.tile = 512, .context = 2048, .activations_f32 = h.f32, .kv_f32 = h.f32};
    open_recorder(h);
    rig_record(&f.r, path, &o);
    add_forward();
}

static void close_recorded(void) {
    recording_free(&f.device);
    recording_free(&f.twin);
    f.r.c->blas.library = f.cublas;
    rig_close(&f.r);
}

static void check_model(const char *path, how h) {
    open_recorded(path, h);
    assert_int_equal(weir__stream_run(f.r.st, f.r.f->tables, NULL), WEIR_OK);
    must_agree("tables", 0, 0);
    static const int batches[] = {1, 2, 4}, lengths[] = {1, 16, 512};
    for (int b = 0; b < 3; b++)
        for (int l = 0; l < 3; l++)
            check_shape(batches[b], lengths[l]);
    check_packing();
    close_recorded();
}

/* ---- stories260K, as weir converts it ---- */

static void converted(const char *type, char path[64]) {
    weir_error *error = NULL;
    weir_system *s = NULL;
    const char *source = weir_test_reference("models/stories260K/stories260K.bin");
    char plain[] = "/tmp/weir-test-XXXXXX.gguf";
    assert_int_equal(weir_system_new(NULL, &s, NULL), WEIR_OK);
    close(mkstemps(plain, 5));
    strcpy(path, "/tmp/weir-test-XXXXXX.gguf");
    close(mkstemps(path, 5));
    rig_must(weir__llama2c_convert(s, source, NULL, type ? plain : path, &error), error);
    if (type) {
        weir__convert_options o = {.type = weir_type_find(type)};
        rig_must(weir__convert(s, plain, path, &o, &error), error);
    }
    unlink(plain);
    weir_system_free(s);
}

static void check_stories(const char *type, bool f32) {
    char path[64];
    weir_test_need(weir_test_reference("models/stories260K/stories260K.bin"), "stories260K");
    converted(type, path);
    check_model(path, (how){.f32 = f32});
    unlink(path);
}

static void stories260k_in_f32_is_launched_as_its_twin(void **state) {
    (void)state;
    check_stories(NULL, true);
}
static void stories260k_in_q8_0_is_launched_as_its_twin(void **state) {
    (void)state;
    check_stories("q8_0", false);
}
static void stories260k_in_q4_1_is_launched_as_its_twin(void **state) {
    (void)state;
    check_stories("q4_1", false);
}

/* ---- families that take the other kernels ---- */

static void check_reference(const char *name, how h) {
    const char *path = weir_test_reference(name);
    weir_test_need(path, name);
    check_model(path, h);
}

static void gemma2_is_launched_as_its_twin(void **state) { /* norms behind blocks, soft caps, windows, a tied head */
    (void)state;
    check_reference("models/families/gemma2-b/model.gguf", (how){0});
}
static void qwen2_is_launched_as_its_twin(void **state) { /* biases */
    (void)state;
    check_reference("models/families/qwen2/model.gguf", (how){0});
}
static void qwen3_is_launched_as_its_twin(void **state) { /* norms of heads */
    (void)state;
    check_reference("models/families/qwen3/model.gguf", (how){0});
}
static void phi3_is_launched_as_its_twin(void **state) { /* parts of fused matrices */
    (void)state;
    check_reference("models/families/phi3/model.gguf", (how){0});
}

static void bf16_is_launched_as_its_twin(void **state) {
    (void)state;
    check_reference("models/kquants/bf16.gguf", (how){0});
}
static void f16_in_floats_without_cublas_is_launched_as_its_twin(void **state) {
    (void)state;
    check_reference("models/kquants/f16.gguf", (how){.f32 = true, .without_cublas = true});
}
static void q4_0_without_cublas_is_launched_as_its_twin(void **state) {
    (void)state;
    check_reference("models/kquants/q4_0.gguf", (how){.without_cublas = true});
}

/* ---- products that these models have not: recorded on addresses that nobody reads ---- */

static void *at(uintptr_t address) {
    return (void *)address;
}

static void add_kernel(weir__list *l, enum weir_kernel kernel, const void *args) {
    weir_error *error = NULL;
    rig_must(weir__list_add(l, kernel, args, true, &error), error);
}

static void add_products(weir__list *l, int32_t type, int32_t other, int32_t n, int32_t k) {
    weir_weight w = {at(0x1000), 640, type, n, k}, up = {at(0x2000), 1280, other, n, k};
    for (int i = 0; i < 32; i++) {
        weir_k_matmul m = {at(0x3000),   w,          at(0x4000),
                           NULL,         k + 3,      i & 1 ? WEIR_ROWS_OUT : WEIR_ROWS_TILE,
                           at(0x5000),   n + 5,      i & 2 ? WEIR_ROWS_PASS : WEIR_ROWS_TILE,
                           i >> 2 & 1,   i >> 3 & 1, 77,
                           at(0x100000), 512,        i >> 4 & 1};
        add_kernel(l, WEIR_K_matmul, &m);
    }
    for (int i = 0; i < 4; i++) {
        weir_k_glu g = {.step = at(0x3000),
                        .gate = w,
                        .up = up,
                        .x = at(0x4000),
                        .ldx = k + 3,
                        .ldy = n + 7,
                        .y = at(0x6000),
                        .activation = WEIR_GELU_TANH,
                        .bias = i & 1,
                        .f32 = i >> 1,
                        .gate_bias = 88,
                        .up_bias = 99,
                        .workspace = at(0x100000),
                        .most_rows = 512};
        add_kernel(l, WEIR_K_glu, &g);
    }
}

static void check_products(weir__list *l) {
    static const int32_t rows[] = {0, 1, 4, 15, 16, 17, 65, 512};
    for (int i = 0; i < 8; i++)
        for (int k = 0; k < 8; k++) {
            assert_int_equal(weir__stream_run(f.r.st, l, &(weir__shape){rows[i], rows[k], 256}), WEIR_OK);
            if (!agree())
                fail_msg("%s, %d rows, %d outputs", f.why, rows[i], rows[k]);
            clear();
        }
}

static void products_of_each_type(bool without_cublas) {
    static const int32_t types[] = {WEIR_F32, WEIR_F16, WEIR_BF16, WEIR_Q4_0, WEIR_Q4_1, WEIR_Q8_0};
    open_recorder((how){.without_cublas = without_cublas});
    for (int i = 0; i < 6; i++) {
        weir__list *l = NULL;
        assert_int_equal(weir__list_new(f.r.t.d, "products", &l, NULL), WEIR_OK);
        add_products(l, types[i], types[i], 1000, 96);
        add_products(l, types[i], types[(i + 1) % 6], 40, 4096);
        add_products(l, types[i], types[i], 5000, 8192); /* in pieces */
        add_program(l);
        check_products(l);
        weir__list_unref(l);
        f.n_programs--;
    }
    close_recorded();
}

static void products_with_cublas_are_launched_as_their_twins(void **state) {
    (void)state;
    products_of_each_type(false);
}
static void products_without_cublas_are_launched_as_their_twins(void **state) {
    (void)state;
    products_of_each_type(true);
}

/* ---- the comparison sees what differs ---- */

static void differs(void (*spoil)(enum weir_kernel, weir__cuda_op *), int length, const char *text) {
    open_recorded(RIG_LLAMA, (how){.spoil = spoil});
    rig_rows(&f.r, 1, 0, (uint32_t)length, 1);
    assert_int_equal(weir__forward_run(f.r.f, f.r.st, f.r.f->whole, 0), WEIR_OK);
    assert_false(agree());
    if (!strstr(f.why, text))
        fail_msg("%s: says nothing of %s", f.why, text);
    close_recorded();
}

static void swap_launches(enum weir_kernel kernel, weir__cuda_op *op) {
    if (kernel != WEIR_K_matmul)
        return;
    weir__cuda_work first = op->work[1]; /* few rows take only 0: f16 rows, then weights */
    op->work[1] = op->work[2];
    op->work[2] = first;
}

static void a_binder_that_swaps_two_launches_differs(void **state) {
    (void)state;
    differs(swap_launches, 20, "wanted weir_to_f16");
}

static void change_argument(enum weir_kernel kernel, weir__cuda_op *op) {
    if (kernel == WEIR_K_rmsnorm)
        ((weir_rmsnorm_args *)op->work[0].launch.args)->width++;
}

static void an_argument_that_is_one_more_differs(void **state) {
    (void)state;
    differs(change_argument, 1, "weir_rmsnorm: width is");
}

static void swap_arguments(enum weir_kernel kernel, weir__cuda_op *op) {
    weir_rmsnorm_args *a = (weir_rmsnorm_args *)op->work[0].launch.args;
    uint64_t x = a->x;
    if (kernel != WEIR_K_rmsnorm)
        return;
    a->x = a->y;
    a->y = x;
}

static void two_pointers_that_are_swapped_differ(void **state) {
    (void)state;
    differs(swap_arguments, 1, "weir_rmsnorm: x is");
}

static void change_grid(enum weir_kernel kernel, weir__cuda_op *op) {
    if (kernel == WEIR_K_rope_store)
        op->work[0].launch.grid[1].times++;
}

static void another_grid_differs(void **state) {
    (void)state;
    differs(change_grid, 1, "weir_rope_store");
}

static void change_product(enum weir_kernel kernel, weir__cuda_op *op) {
    for (uint32_t i = 0; kernel == WEIR_K_matmul && i < op->count; i++)
        if (op->work[i].is_gemm)
            op->work[i].gemm.ldy++;
}

static void a_library_product_with_another_row_length_differs(void **state) {
    (void)state;
    differs(change_product, 20, "cublasGemmEx: ldc is");
}

static void drop_launch(enum weir_kernel kernel, weir__cuda_op *op) {
    if (kernel == WEIR_K_sample)
        op->count = 0;
}

static void a_launch_that_is_missing_differs(void **state) {
    (void)state;
    differs(drop_launch, 1, "calls, wanted");
}

#define T(name) cmocka_unit_test_setup(name, rig_setup)
int main(void) {
    const struct CMUnitTest tests[] = {T(stories260k_in_f32_is_launched_as_its_twin),
                                       T(stories260k_in_q8_0_is_launched_as_its_twin),
                                       T(stories260k_in_q4_1_is_launched_as_its_twin),
                                       T(gemma2_is_launched_as_its_twin),
                                       T(qwen2_is_launched_as_its_twin),
                                       T(qwen3_is_launched_as_its_twin),
                                       T(phi3_is_launched_as_its_twin),
                                       T(bf16_is_launched_as_its_twin),
                                       T(f16_in_floats_without_cublas_is_launched_as_its_twin),
                                       T(q4_0_without_cublas_is_launched_as_its_twin),
                                       T(products_with_cublas_are_launched_as_their_twins),
                                       T(products_without_cublas_are_launched_as_their_twins),
                                       T(a_binder_that_swaps_two_launches_differs),
                                       T(an_argument_that_is_one_more_differs),
                                       T(two_pointers_that_are_swapped_differ),
                                       T(another_grid_differs),
                                       T(a_library_product_with_another_row_length_differs),
                                       T(a_launch_that_is_missing_differs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
