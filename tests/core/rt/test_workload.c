/* Generated workloads: seeded random programs of actors, threads beside them, and the laws that must hold at the end (workload.c). The long run:
 * WEIR_WORKLOAD_MESSAGES=24000000, WEIR_WORKLOAD_SEED=n for another seed than 1. */
#include <inttypes.h>

#include "workload.h"

enum { QUICK = 120000, REPLAYED = 20000 };

static workload_result run(workload_options o) {
    workload_result r;
    workload_run(&o, &r);
    return r;
}

static void lawful(workload_options o) {
    workload_result r = run(o);
    if (r.violation[0])
        fail_msg("seed %" PRIu64 ": %s", o.seed, r.violation);
    assert_true(r.stats.sent >= o.messages - o.messages / 8); /* calls that are refused count as sent */
    assert_true(r.stats.dead > 0 && r.stats.refused > 0 && r.asks > 0 && r.lives > 40);
}

static void a_workload_under_the_test_driver_keeps_every_law(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++)
        lawful((workload_options){.driver = WEIR_DRIVER_TEST, .seed = seed, .messages = QUICK});
}

static void a_workload_on_libev_keeps_every_law(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 2; seed++)
        lawful((workload_options){.driver = WEIR_DRIVER_EV, .seed = seed, .messages = QUICK});
}

static void a_workload_with_threads_that_post_keeps_every_law(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 2; seed++)
        lawful((workload_options){.driver = WEIR_DRIVER_EV, .seed = seed, .messages = QUICK, .threads = 3});
}

static void a_workload_on_worker_loops_keeps_every_law(void **state) {
    (void)state;
    for (unsigned workers = 1; workers <= 3; workers++)
        lawful(
            (workload_options){.driver = WEIR_DRIVER_EV, .seed = workers, .messages = QUICK, .workers = workers, .threads = workers - 1});
}

static void a_workload_on_worker_loops_under_the_test_driver_keeps_every_law(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++)
        lawful((workload_options){.driver = WEIR_DRIVER_TEST, .seed = seed, .messages = QUICK, .workers = (unsigned)seed});
}

static void replays(unsigned workers) {
    workload_options o = {.driver = WEIR_DRIVER_TEST, .seed = 7, .messages = REPLAYED, .workers = workers};
    workload_result first = run(o), second = run(o);
    assert_int_equal(first.hash, second.hash);
    assert_int_equal(first.events, second.events);
    o.seed = 8;
    assert_int_not_equal(first.hash, run(o).hash);
}

static void a_seed_replays_exactly(void **state) {
    (void)state;
    replays(0);
}

static void a_seed_replays_exactly_with_worker_loops(void **state) {
    (void)state;
    replays(2);
}

/* A fault planted at a message shows there, and again there when the seed is run again. */
static void a_failing_seed_fails_again_at_the_same_message(void **state) {
    (void)state;
    workload_options o = {.driver = WEIR_DRIVER_TEST, .seed = 9, .messages = REPLAYED, .plant = REPLAYED / 3};
    workload_result first = run(o), second = run(o);
    assert_true(first.violation[0]);
    assert_string_equal(first.violation, second.violation);
    assert_int_equal(first.hash, second.hash);
}

/* Quick without WEIR_WORKLOAD_MESSAGES: that many on libev, with two worker loops, and with threads besides; a quarter of them under the test driver. */
static void a_long_workload_keeps_every_law(void **state) {
    (void)state;
    const char *messages = getenv("WEIR_WORKLOAD_MESSAGES"), *seed = getenv("WEIR_WORKLOAD_SEED");
    workload_options o = {.seed = seed ? strtoull(seed, NULL, 0) : 100, .messages = messages ? strtoull(messages, NULL, 0) : REPLAYED};
    lawful(o);
    o.workers = 2;
    lawful(o);
    o.threads = 2;
    lawful(o);
    o = (workload_options){.driver = WEIR_DRIVER_TEST, .seed = o.seed, .messages = o.messages / 4};
    lawful(o);
    o.workers = 2;
    lawful(o);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_workload_under_the_test_driver_keeps_every_law),
        cmocka_unit_test(a_workload_on_libev_keeps_every_law),
        cmocka_unit_test(a_workload_with_threads_that_post_keeps_every_law),
        cmocka_unit_test(a_workload_on_worker_loops_keeps_every_law),
        cmocka_unit_test(a_workload_on_worker_loops_under_the_test_driver_keeps_every_law),
        cmocka_unit_test(a_seed_replays_exactly),
        cmocka_unit_test(a_seed_replays_exactly_with_worker_loops),
        cmocka_unit_test(a_failing_seed_fails_again_at_the_same_message),
        cmocka_unit_test(a_long_workload_keeps_every_law),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
