/* Drawing tokens: the same ones as on the cpu, for equal logits. */
#include "launch.h"

#include <math.h>

enum { OUTPUTS = 3 };

static void check_draw(const float *logits, int vocab, weir_sample s) {
    size_t results = (OUTPUTS + 2) * sizeof(int32_t);
    weir_sample *samples = zeros((OUTPUTS + 1) * sizeof *samples);
    int32_t *slot = zeros(sizeof *slot), *out_row = zeros((OUTPUTS + 1) * sizeof *out_row), *got = zeros(results), *want = zeros(results);
    for (int i = 0; i <= OUTPUTS; i++) {
        samples[i] = s;
        samples[i].position = s.position + i;
    }
    memset(got, 0x7f, results); /* what is no token, and not the -1 of none */
    memset(want, 0x7f, results);
    weir_step step = {.outputs = OUTPUTS + 1,
                      .out_tile = OUTPUTS,
                      .out_first = 1,
                      .out_rows = OUTPUTS,
                      .slot = slot,
                      .out_row = out_row,
                      .sample = samples,
                      .sampled = want};
    void *cpu = zeros(weir_sample_workspace(vocab)), *room = nans(WEIR_CUDA_SAMPLE_WORKSPACE(vocab) * OUTPUTS);
    run_kernel(WEIR_CPU_GENERIC, WEIR_K_sample, &(weir_k_sample){&step, logits, vocab, 0, cpu, 1, 0}, 1);
    step.sampled = got;
    run_weir_draw((launch){.x = OUTPUTS + 2, .threads = WEIR_CUDA_SAMPLE_THREADS}, &step, logits, vocab, room);
    assert_memory_equal(got, want, results);
}

static float *logits_of(int vocab, float spread, uint64_t seed) {
    rng r = {seed};
    float *x = zeros((size_t)(OUTPUTS * vocab) * sizeof *x);
    for (int i = 0; i < OUTPUTS * vocab; i++)
        x[i] = rng_normal(&r) * spread;
    return x;
}

static void greedy_takes_the_lowest_id_of_the_largest_logits(void **state) {
    (void)state;
    float *x = logits_of(3000, 2, 1);
    x[77] = x[78] = x[2999] = 20;
    x[3000 + 5] = NAN;
    check_draw(x, 3000, (weir_sample){0});
    for (int i = 0; i < 3 * 100; i++)
        x[i] = i < 100 ? NAN : i < 200 ? -INFINITY : i % 2 ? 0.0f : -0.0f;
    check_draw(x, 100, (weir_sample){0});
}

static void draws_the_cpus_tokens(const weir_sample *s, int cases) {
    const int vocabs[] = {1, 2, 31, 700, 3000};
    for (int v = 0; v < 5; v++)
        for (int i = 0; i < cases; i++) {
            float *x = logits_of(vocabs[v], i % 2 ? 0.3f : 3, (uint64_t)(v * 100 + i));
            weir_sample one = *s;
            one.seed = (uint64_t)(i * 17 + 3);
            one.position = i * 5;
            check_draw(x, vocabs[v], one);
        }
}

static void draws_by_temperature_alone(void **state) {
    (void)state;
    draws_the_cpus_tokens(&(weir_sample){.temperature = 0.8f}, 4);
}

static void draws_of_the_k_largest(void **state) {
    (void)state;
    draws_the_cpus_tokens(&(weir_sample){.temperature = 1.1f, .top_k = 1}, 2);
    draws_the_cpus_tokens(&(weir_sample){.temperature = 1.1f, .top_k = 40}, 4);
    draws_the_cpus_tokens(&(weir_sample){.temperature = 1.1f, .top_k = 600}, 3);
}

static void draws_of_the_fewest_that_make_p(void **state) {
    (void)state;
    draws_the_cpus_tokens(&(weir_sample){.temperature = 1, .top_p = 0.9f}, 4);
    draws_the_cpus_tokens(&(weir_sample){.temperature = 0.7f, .top_p = 0.01f}, 2);
}

static void draws_of_those_near_the_best(void **state) {
    (void)state;
    draws_the_cpus_tokens(&(weir_sample){.temperature = 1, .min_p = 0.2f}, 4);
    draws_the_cpus_tokens(&(weir_sample){.temperature = 1, .min_p = 2}, 1);
}

static void draws_by_all_steps_together(void **state) {
    (void)state;
    draws_the_cpus_tokens(&(weir_sample){.temperature = 0.9f, .top_k = 50, .top_p = 0.95f, .min_p = 0.05f}, 6);
}

static void equal_logits_at_the_edges_are_kept_as_on_the_cpu(void **state) {
    (void)state;
    float *x = zeros(OUTPUTS * 200 * sizeof *x);
    for (int i = 0; i < OUTPUTS * 200; i++)
        x[i] = (float)(i % 5);
    for (uint64_t seed = 0; seed < 4; seed++) {
        check_draw(x, 200, (weir_sample){.temperature = 1, .top_k = 30, .seed = seed});
        check_draw(x, 200, (weir_sample){.temperature = 1, .top_p = 0.3f, .seed = seed});
        check_draw(x, 200, (weir_sample){.temperature = 1, .top_k = 60, .top_p = 0.8f, .seed = seed});
    }
}

static void logits_that_are_no_numbers_are_never_drawn(void **state) {
    (void)state;
    float *x = logits_of(300, 1, 8);
    for (int i = 0; i < OUTPUTS * 300; i += 3)
        x[i] = i % 2 ? NAN : -INFINITY;
    check_draw(x, 300, (weir_sample){.temperature = 1, .seed = 4});
    check_draw(x, 300, (weir_sample){.temperature = 1, .top_k = 250, .top_p = 0.99f, .seed = 4});
    x[7] = INFINITY;
    check_draw(x, 300, (weir_sample){.temperature = 1, .top_p = 0.5f, .seed = 5});
    for (int i = 0; i < OUTPUTS * 300; i++)
        x[i] = i < 300 ? NAN : -INFINITY;
    check_draw(x, 300, (weir_sample){.temperature = 1, .seed = 6});
}

int main(void) {
    const struct CMUnitTest tests[] = {
        launch_test(greedy_takes_the_lowest_id_of_the_largest_logits),
        launch_test(draws_by_temperature_alone),
        launch_test(draws_of_the_k_largest),
        launch_test(draws_of_the_fewest_that_make_p),
        launch_test(draws_of_those_near_the_best),
        launch_test(draws_by_all_steps_together),
        launch_test(equal_logits_at_the_edges_are_kept_as_on_the_cpu),
        launch_test(logits_that_are_no_numbers_are_never_drawn),
    };
    return cmocka_run_group_tests(tests, launch_open, launch_close);
}
