/* sample: kept sets, greedy choice, and a draw that depends on seed and position alone. The steps against their references: test_sampling_steps.c. */
#include "helper_kernels.h"

#include <math.h>

static weir__sample_keep_fn *keep_of(int level) {
    weir__sample_keep_fn *const f[] = AT_LEVELS(weir__sample_keep);
    return f[level];
}

static int32_t sample_one(int level, const float *logits, int vocab, weir_sample s, unsigned workers) {
    int32_t sampled = -1;
    void *workspace = poisoned(workers * weir_sample_workspace(vocab));
    weir_step step = {.outputs = 1, .out_rows = 1, .sample = &s, .sampled = &sampled};
    weir_k_sample a = {.step = &step, .logits = logits, .vocab = vocab, .workspace = workspace, .workers = (int32_t)workers};
    run_kernel(level, WEIR_K_sample, &a, workers);
    free(workspace);
    return sampled;
}

static int keep(int level, const float *x, int n, weir_sample s, candidate *c) {
    const candidate *kept;
    weir_step step = {.outputs = 1, .out_rows = 1, .sample = &s};
    weir_k_sample a = {.step = &step, .logits = x, .vocab = n, .workspace = poisoned(weir_sample_workspace(n)), .workers = 1};
    int count = keep_of(level)(&a, 0, &kept);
    memcpy(c, kept, (size_t)count * sizeof *c);
    free(a.workspace);
    return count;
}

/* ---- kept sets ---- */

static void top_k_keeps_all_ties_of_the_kth(void **state) {
    need_level(state);
    const float x[7] = {1, 3, 2, 2, 5, 2, 0};
    candidate c[16];
    assert_int_equal(keep(level_of(state), x, 7, (weir_sample){.temperature = 1, .top_k = 3}, c), 5);
    assert_int_equal(keep(level_of(state), x, 7, (weir_sample){.temperature = 1, .top_k = 2}, c), 2);
    assert_int_equal(keep(level_of(state), x, 7, (weir_sample){.temperature = 1, .top_k = 99}, c), 7);
}

static void steps_apply_in_order(void **state) {
    need_level(state);
    /* weights 8 4 2 1 1: top-k leaves 8 4 2 (of 14); top-p 0.8 of these leaves 8 and 4 (12 / 14); min-p 0.6 leaves 8. */
    float x[5] = {logf(1), logf(8), logf(2), logf(4), logf(1)};
    candidate c[16];
    assert_int_equal(keep(level_of(state), x, 5, (weir_sample){.temperature = 1, .top_k = 3}, c), 3);
    assert_int_equal(keep(level_of(state), x, 5, (weir_sample){.temperature = 1, .top_k = 3, .top_p = 0.8f}, c), 2);
    assert_int_equal(keep(level_of(state), x, 5, (weir_sample){.temperature = 1, .top_k = 3, .top_p = 0.8f, .min_p = 0.6f}, c), 1);
    assert_int_equal(c[0].id, 1);
    assert_int_equal(keep(level_of(state), x, 5, (weir_sample){.temperature = 1, .min_p = 7}, c), 1);
}

/* ---- draws ---- */

static void greedy_takes_the_lowest_id_of_equal_logits(void **state) {
    need_level(state);
    float x[100];
    for (int i = 0; i < 100; i++)
        x[i] = -5;
    x[37] = x[61] = x[99] = 2;
    for (unsigned workers = 1; workers <= 3; workers++)
        assert_int_equal(sample_one(level_of(state), x, 100, (weir_sample){0}, workers), 37);
    x[99] = 3;
    assert_int_equal(sample_one(level_of(state), x, 100, (weir_sample){.temperature = -1}, 1), 99);
    assert_int_equal(sample_one(level_of(state), x, 37, (weir_sample){0}, 1), 0);
}

static void nan_logits_are_never_chosen_if_there_is_a_number(void **state) {
    need_level(state);
    float x[40];
    for (int i = 0; i < 40; i++)
        x[i] = NAN;
    assert_int_equal(sample_one(level_of(state), x, 40, (weir_sample){0}, 1), -1);
    assert_int_equal(sample_one(level_of(state), x, 40, (weir_sample){.temperature = 1, .top_k = 3, .top_p = 0.5f}, 1), -1);
    x[23] = -INFINITY;
    assert_int_equal(sample_one(level_of(state), x, 40, (weir_sample){0}, 1), 23);
    assert_int_equal(sample_one(level_of(state), x, 40, (weir_sample){.temperature = 1}, 1), 23);
    x[31] = -1e30f;
    for (int64_t p = 0; p < 20; p++)
        assert_int_equal(sample_one(level_of(state), x, 40, (weir_sample){.temperature = 2, .top_k = 5, .position = p}, 1), 31);
    x[7] = INFINITY;
    assert_int_equal(sample_one(level_of(state), x, 40, (weir_sample){.temperature = 1}, 1), 7);
}

/* The draw of every level is the generic one's, for any settings. */
static void draws_are_the_same_at_every_level(void **state) {
    need_level(state);
    rng r = {41};
    float x[1000];
    for (int i = 0; i < 1000; i++)
        x[i] = 4 * rng_normal(&r);
    for (int i = 0; i < 300; i++) {
        weir_sample s = {.temperature = 0.3f + rng_float(&r) * 0.2f + (float)(i % 3),
                         .top_p = i % 2 ? 0.9f : 0,
                         .min_p = i % 5 ? 0 : 0.05f,
                         .top_k = i % 7 ? 0 : 40,
                         .seed = rng_next(&r),
                         .position = i,
                         .typical = i % 11 ? 0 : 0.7f};
        int32_t want = sample_one(WEIR_CPU_GENERIC, x, 1000, s, 1);
        assert_int_equal(sample_one(level_of(state), x, 1000, s, 1 + (unsigned)i % 4), want);
    }
}

static void draws_follow_the_probabilities(void **state) {
    need_level(state);
    enum { DRAWS = 20000 };
    const float x[4] = {logf(0.5f), logf(0.25f), logf(0.2f), logf(0.05f)};
    int count[4] = {0};
    for (int64_t i = 0; i < DRAWS; i++)
        count[sample_one(level_of(state), x, 4, (weir_sample){.temperature = 1, .seed = 5, .position = i}, 1)]++;
    for (int i = 0; i < 4; i++)
        assert_true(fabs(count[i] / (double)DRAWS - exp((double)x[i])) < 0.015);
}

static void each_output_has_its_own_sample_and_place(void **state) {
    need_level(state);
    float x[3 * 8] = {0};
    x[2] = 1;
    x[8 + 5] = 1;
    x[16 + 7] = 1;
    weir_sample s[5] = {0};
    int32_t sampled[5] = {-1, -1, -1, -1, -1};
    void *workspace = poisoned(2 * weir_sample_workspace(8));
    weir_step step = {.outputs = 5, .out_first = 2, .out_rows = 3, .sample = s, .sampled = sampled};
    weir_k_sample a = {.step = &step, .logits = x, .vocab = 8, .workspace = workspace, .workers = 2};
    run_kernel(level_of(state), WEIR_K_sample, &a, 2);
    const int32_t want[5] = {-1, -1, 2, 5, 7};
    assert_memory_equal(sampled, want, sizeof want);
    free(workspace);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        EACH_LEVEL(top_k_keeps_all_ties_of_the_kth),
        EACH_LEVEL(steps_apply_in_order),
        EACH_LEVEL(greedy_takes_the_lowest_id_of_equal_logits),
        EACH_LEVEL(nan_logits_are_never_chosen_if_there_is_a_number),
        EACH_LEVEL(draws_are_the_same_at_every_level),
        EACH_LEVEL(draws_follow_the_probabilities),
        EACH_LEVEL(each_output_has_its_own_sample_and_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
