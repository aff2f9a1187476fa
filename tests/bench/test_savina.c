/* The benchmarks in C with small parameters: each must come to its closed form with every message handled, whoever decides the order. */
#include "../../lua/bench/bench.h"
#include "../test.h"

enum { SEEDS = 5, NAME = 80 };

static void run(const bench_kind *kind, const bench_options *o) {
    bench_result r;
    int code = bench_run(kind, o, &r);
    if (code != WEIR_OK)
        fail_msg("%s, seed %llu: %s", kind->name, (unsigned long long)o->seed, r.failure);
    assert_int_equal(r.value, r.expected);
    assert_true(r.messages > 0);
}

static void on_libev(void **state) {
    run(*state, &(bench_options){.few = true});
}

static void under_the_test_driver(void **state) {
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        run(*state, &(bench_options){.few = true, .driver = WEIR_DRIVER_TEST, .seed = seed});
}

static void on_one_worker(void **state) {
    run(*state, &(bench_options){.few = true, .workers = 1});
}

static void on_three_workers(void **state) {
    run(*state, &(bench_options){.few = true, .workers = 3});
}

static void on_two_workers_under_the_test_driver(void **state) {
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        run(*state, &(bench_options){.few = true, .driver = WEIR_DRIVER_TEST, .seed = seed, .workers = 2});
}

static int64_t one_more(const int64_t *p) {
    return p[0] + 1;
}

static void a_wrong_result_fails(void **state) {
    (void)state;
    bench_kind wrong = *bench_find("pingpong");
    bench_result r;
    wrong.expected = one_more;
    assert_int_equal(bench_run(&wrong, &(bench_options){.few = true}, &r), WEIR_EINVAL);
    assert_string_equal(r.failure, "100, wanted 101");
}

static void nobody_knows_an_unknown_name(void **state) {
    (void)state;
    assert_null(bench_find("nothing"));
}

int main(void) {
    static const struct {
        const char *how;
        CMUnitTestFunction test;
    } ways[] = {{"on_libev", on_libev},
                {"under_the_test_driver", under_the_test_driver},
                {"on_one_worker", on_one_worker},
                {"on_three_workers", on_three_workers},
                {"on_two_workers_under_the_test_driver", on_two_workers_under_the_test_driver}};
    enum { WAYS = sizeof ways / sizeof ways[0], MOST = 200 };
    static char names[MOST][NAME];
    struct CMUnitTest tests[MOST] = {cmocka_unit_test(a_wrong_result_fails), cmocka_unit_test(nobody_knows_an_unknown_name)};
    size_t n = 2;
    for (const bench_kind *const *kind = bench_kinds; *kind; kind++)
        for (size_t i = 0; i < WAYS && n < MOST; i++, n++) {
            snprintf(names[n], NAME, "savina_%s_%s", (*kind)->name, ways[i].how);
            tests[n] = (struct CMUnitTest){names[n], ways[i].test, NULL, NULL, (void *)(uintptr_t)*kind};
        }
    return _cmocka_run_group_tests("savina", tests, n, NULL, NULL);
}
