/* test_bits.c: the logits of SmolLM2 are the same bits whatever the threads, the tile, the batch, the splitting into passes and the instruction set; one axis is
 * varied at a time from a base. Positions: the first 128 of the text `long` (fewer under sanitizers), or WEIR_BITS_POSITIONS of it. */
#include "../safetensors.h"
#include "bits_fixture.h"

#define NEED_MODEL()                                                                                                                       \
    if (!base_logits)                                                                                                                      \
    weir_test_skip("the fetched model (weir fetch smollm2) is not there")

static void logits_are_the_same_bits_for_1_2_4_threads(void **state) {
    (void)state;
    NEED_MODEL();
    for (unsigned threads = 1; threads <= 4; threads *= 2)
        same_bits(&(setting){.threads = threads});
}

static void logits_are_the_same_bits_for_tiles_of_1_7_64_512(void **state) {
    (void)state;
    NEED_MODEL();
    static const unsigned tiles[] = {1, 7, 64, 512};
    for (size_t i = 0; i < 4; i++)
        same_bits(&(setting){.threads = 2, .tile = tiles[i]});
}

static void logits_are_the_same_bits_alone_and_in_a_batch_of_5(void **state) {
    (void)state;
    NEED_MODEL();
    same_bits(&(setting){.threads = 2, .batch = true});
}

static void logits_are_the_same_bits_in_one_pass_and_in_many(void **state) {
    (void)state;
    NEED_MODEL();
    same_bits(&(setting){.threads = 2, .chunk = 13});
}

static void logits_are_the_same_bits_at_every_instruction_set_level(void **state) {
    (void)state;
    NEED_MODEL();
    for (int level = 0; level < WEIR_CPU_LEVELS; level++)
        if (weir_cpu_level_runs(level))
            same_bits(&(setting){.threads = 2, .level = weir_cpu_level_name(level)});
}

static void every_level_of_this_project_runs_here(void **state) {
    (void)state;
    for (int level = 0; level < WEIR_CPU_LEVELS; level++)
        if (!weir_cpu_level_runs(level))
            weir_test_skip_machine("this processor has no %s", weir_cpu_level_name(level));
}

int main(void) {
    tensors data = {0};
    const char *asked = getenv("WEIR_BITS_POSITIONS"), *sanitized = getenv("WEIR_SANITIZED");
    size_t bytes = 0;
    model_path = weir_test_smollm2();
    if (tensors_open(&data, WEIR_TEST_DATA "/smollm2/reference.safetensors"))
        ids = tensors_find(&data, "long.ids", &bytes);
    positions = asked ? (size_t)atoi(asked) : sanitized && *sanitized ? 24 : 128;
    if (positions > bytes / 4)
        positions = bytes / 4;
    if (model_path && ids)
        logits_under(&(setting){.threads = 2}, &base_logits, &base_bytes);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logits_are_the_same_bits_for_1_2_4_threads),
        cmocka_unit_test(logits_are_the_same_bits_for_tiles_of_1_7_64_512),
        cmocka_unit_test(logits_are_the_same_bits_alone_and_in_a_batch_of_5),
        cmocka_unit_test(logits_are_the_same_bits_in_one_pass_and_in_many),
        cmocka_unit_test(logits_are_the_same_bits_at_every_instruction_set_level),
        cmocka_unit_test(every_level_of_this_project_runs_here),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(base_logits);
    tensors_close(&data);
    return failed;
}
