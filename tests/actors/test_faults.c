/* test_faults.c: dying actors, failing kernels, reads and allocations: the caller gets an error, the next request is right, everything is given back (debug builds
 * check the conservation laws in weir_system_free). */
#include "model_fixture.h"

static const int32_t prompt[] = {1, 20, 30, 40, 50};
static const weir_generate_options some = {.tokens = prompt, .n_tokens = 5, .max_tokens = 8, .ignore_end = true};

static void kill_stepper(generation *g) {
    if (g->pieces == 1)
        weir_kill(g->data, actor_named(g->data, "stepper"));
}

static void killing_the_stepper_in_mid_token_gives_the_caller_an_error(void **state) {
    (void)state;
    for (int driver = WEIR_DRIVER_EV; driver <= WEIR_DRIVER_TEST; driver++) {
        weir_system *s = new_system(driver, 3);
        weir_model *m = load(s, NULL);
        generation g = {.on_piece = kill_stepper, .data = s};
        weir_generate_options o = some;
        o.max_tokens = 200;
        generate(s, m, &o, &g);
        assert_true(g.code == WEIR_EKILLED || g.code == WEIR_EEXITED);
        assert_non_null(strstr(g.error, "stepper"));
        weir_system_stats stats;
        weir_model_free(m);
        weir_system_get_stats(s, &stats);
        assert_int_equal(stats.sent, stats.handled + stats.dead + stats.queued);
        weir_system_free(s);
    }
}

static void killing_any_actor_of_the_model_ends_every_request(void **state) {
    (void)state;
    static const char *const names[] = {"generator", "policy", "residency", "experts", "model"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        weir_system *s = new_system(WEIR_DRIVER_TEST, i);
        weir_model *m = load(s, NULL);
        generation g = {0};
        assert_int_equal(weir_generate(m, &some, generation_piece, generation_done, &g, NULL, NULL), WEIR_OK);
        assert_int_equal(weir_kill(s, actor_named(s, names[i])), WEIR_OK);
        assert_int_equal(weir_system_run(s, generation_ended, &g, NULL), WEIR_OK);
        assert_true(g.ended);
        weir_model_free(m);
        weir_system_free(s);
    }
}

/* True a turn after the policy has been asked to begin: the pass is on the stream then. */
typedef struct begun {
    weir_system *system;
    weir_address policy;
    uint64_t handled;
    int turns;
} begun;
static bool has_begun(void *data) {
    begun *b = data;
    weir_actor_stats stats;
    return weir_actor_get_stats(b->system, b->policy, &stats) || (stats.handled > b->handled && ++b->turns > 1);
}

/* A unit whose memory goes while the device reads it is a fault of the process in most runs. */
static void work_under_way_keeps_the_units_it_reads(void **state) {
    (void)state;
    static const char *const owners[] = {"policy", "residency", "stepper"};
    int32_t tokens[200];
    for (int i = 0; i < 200; i++)
        tokens[i] = i;
    for (int round = 0; round < 40; round++) {
        weir_system *s = new_system(WEIR_DRIVER_EV, 0);
        weir_model *m = load(s, NULL);
        begun b = {s, actor_named(s, "policy"), 0, 0};
        weir_actor_stats stats;
        generation g = {0};
        weir_generate_options o = {.tokens = tokens, .n_tokens = 200, .max_tokens = 2};
        assert_int_equal(weir_actor_get_stats(s, b.policy, &stats), WEIR_OK);
        b.handled = stats.handled;
        assert_int_equal(weir_generate(m, &o, generation_piece, generation_done, &g, NULL, NULL), WEIR_OK);
        assert_int_equal(weir_system_run(s, has_begun, &b, NULL), WEIR_OK);
        for (size_t i = 0; i < sizeof owners / sizeof *owners; i++)
            weir_kill(s, actor_named(s, owners[i]));
        assert_int_equal(weir_system_run(s, generation_ended, &g, NULL), WEIR_OK);
        weir_model_free(m);
        weir_system_free(s);
    }
}

/* Arms a point after the load, generates, and checks that the fault was told and that the next generation is as if nothing had been. */
static void fault_then_right(const char *point, uint64_t nth, enum weir_driver driver) {
    weir_system *s = new_system(driver, nth);
    weir_model *m = load(s, NULL);
    generation before = {0}, faulty = {0}, after = {0};
    generate(s, m, &some, &before);
    assert_int_equal(weir__inject_arm(s, point, nth, 1), WEIR_OK);
    generate(s, m, &some, &faulty);
    weir__inject_arm(s, point, 0, 0);
    generate(s, m, &some, &after);
    if (faulty.code == 0) /* the nth passing was not reached, or the fault was in something that may be left out */
        assert_memory_equal(faulty.text, before.text, before.size);
    assert_int_equal(after.code, 0);
    assert_int_equal(after.size, before.size);
    assert_memory_equal(after.text, before.text, before.size);
    weir_model_free(m);
    weir_system_free(s);
}

static void a_failed_kernel_fails_its_request_only(void **state) {
    (void)state;
    for (uint64_t nth = 1; nth <= 4; nth++) {
        fault_then_right("KERNEL", nth, WEIR_DRIVER_EV);
        fault_then_right("KERNEL", nth, WEIR_DRIVER_TEST);
    }
}

static void a_refused_submission_fails_its_request_only(void **state) {
    (void)state;
    for (uint64_t nth = 1; nth <= 12; nth++)
        fault_then_right("SUBMIT", nth, WEIR_DRIVER_TEST);
}

static void a_failed_allocation_fails_its_request_only(void **state) {
    (void)state;
    for (uint64_t nth = 1; nth <= 60; nth++)
        fault_then_right("ALLOC", nth, WEIR_DRIVER_TEST);
}

static void faults_while_loading_are_told_and_leave_nothing(void **state) {
    (void)state;
    static const struct {
        const char *point;
        uint64_t last;
    } points[] = {{"OPEN", 1},    {"READ", 8},  {"SHORT_READ", 8}, {"PAGES", 4}, {"STREAM", 4},
                  {"SUBMIT", 20}, {"SPAWN", 6}, {"KERNEL", 5},     {"SEND", 20}};
    for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
        unsigned failed = 0;
        for (uint64_t nth = 1; nth <= points[i].last; nth++) {
            weir_system *s = new_system(WEIR_DRIVER_TEST, nth);
            weir_model *m = NULL;
            weir_error *error = NULL;
            assert_int_equal(weir__inject_arm(s, points[i].point, nth, 1), WEIR_OK);
            int code = weir_model_load(s, LLAMA, NULL, &m, &error);
            if (code) {
                failed++;
                assert_null(m);
                assert_non_null(error);
                assert_true(strlen(weir_error_text(error)) > 0);
                weir_error_free(error);
            } else {
                weir__inject_arm(s, points[i].point, 0, 0);
                weir_model_free(m);
            }
            weir_system_free(s);
        }
        if (strcmp(points[i].point, "PAGES") != 0) /* the small model needs no pages where buffers are small */
            assert_true(failed > 0);
    }
}

static void any_failed_allocation_while_loading_leaves_nothing(void **state) {
    (void)state;
    uint64_t nth = 1, failed = 0;
    for (unsigned step = 1;; nth += step, step = 1 + (unsigned)(nth / 20)) {
        weir_system *s = new_system(WEIR_DRIVER_TEST, nth);
        weir_model *m = NULL;
        weir_error *error = NULL;
        weir__inject_arm(s, "ALLOC", nth, 1);
        int code = weir_model_load(s, LLAMA, NULL, &m, &error);
        weir__inject_arm(s, "ALLOC", 0, 0);
        bool whole = code == WEIR_OK;
        weir_error_free(error);
        weir_model_free(m);
        weir_system_free(s);
        if (whole && nth > 400)
            break;
        failed += !whole;
    }
    assert_true(failed > 50);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killing_the_stepper_in_mid_token_gives_the_caller_an_error),
        cmocka_unit_test(killing_any_actor_of_the_model_ends_every_request),
        cmocka_unit_test(work_under_way_keeps_the_units_it_reads),
        cmocka_unit_test(a_failed_kernel_fails_its_request_only),
        cmocka_unit_test(a_refused_submission_fails_its_request_only),
        cmocka_unit_test(a_failed_allocation_fails_its_request_only),
        cmocka_unit_test(faults_while_loading_are_told_and_leave_nothing),
        cmocka_unit_test(any_failed_allocation_while_loading_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
