/* test_bits.c: the logits of SmolLM2 are the same bits whatever the threads, the tile, the batch, the splitting into passes and the instruction set; one axis is
 * varied at a time from a base. Positions: the first 128 of the text `long` (fewer under sanitizers), or WEIR_BITS_POSITIONS of it. */
#include "../safetensors.h"
#include "pass_fixture.h"

#include "../../kernels/cpu/cpu.h"

static const char *model_path;
static const int32_t *ids;
static size_t positions;
static float *base_logits;
static size_t base_bytes;

typedef struct setting {
    unsigned threads, tile;
    const char *level; /* NULL: the best */
    bool batch;        /* with four other sequences in the same pass */
    size_t chunk;      /* positions per pass, 0: all in one */
} setting;

static void run_batch(weir_system *s, weir_address stepper, float **out, size_t *out_bytes) {
    enum { N = 5 };
    run runs[N];
    answer a;
    size_t bytes, before = 0;
    for (size_t i = 0; i < N; i++) { /* the tested one is the third; the others are other parts of the text, of other lengths */
        size_t count = i == 2 ? positions : positions / 2 + i;
        runs[i] = (run){open_sequence(s, stepper), 0, i == 2 ? ids : ids + 3 * i + 1, count, i == 2 ? "all" : "last"};
        before += i < 2;
    }
    a = ask_pass(s, stepper, runs, N);
    const float *logits = logits_of(&a, &bytes);
    *out_bytes = bytes / (positions + N - 1) * positions;
    *out = malloc(*out_bytes);
    memcpy(*out, logits + before * (bytes / 4 / (positions + N - 1)), *out_bytes);
    weir_body_free(a.body);
}

static void run_alone(weir_system *s, weir_address stepper, size_t chunk, float **out, size_t *out_bytes) {
    uint64_t sequence = open_sequence(s, stepper);
    *out = NULL;
    *out_bytes = 0;
    for (size_t first = 0; first < positions; first += chunk) {
        size_t n = positions - first < chunk ? positions - first : chunk, bytes;
        run r = {sequence, (int64_t)first, ids + first, n, "all"};
        answer a = ask_pass(s, stepper, &r, 1);
        const float *logits = logits_of(&a, &bytes);
        *out = realloc(*out, *out_bytes + bytes);
        memcpy((char *)*out + *out_bytes, logits, bytes);
        *out_bytes += bytes;
        weir_body_free(a.body);
    }
}

static void logits_under(const setting *o, float **out, size_t *bytes) {
    if (o->level)
        setenv("WEIR_CPU", o->level, 1);
    else
        unsetenv("WEIR_CPU");
    weir_system *s = new_system(WEIR_DRIVER_EV, 0);
    weir_load_options lo = {.threads = o->threads, .tile = o->tile};
    weir_model *m = NULL;
    weir_error *error = NULL;
    must(weir_model_load(s, model_path, &lo, &m, &error), error);
    weir_address stepper = actor_named(s, "stepper");
    if (o->batch)
        run_batch(s, stepper, out, bytes);
    else
        run_alone(s, stepper, o->chunk ? o->chunk : positions, out, bytes);
    weir_model_free(m);
    weir_system_free(s);
}

static void same_bits(const setting *o) {
    float *logits;
    size_t bytes;
    logits_under(o, &logits, &bytes);
    assert_int_equal(bytes, base_bytes);
    for (size_t i = 0; i < bytes / 4; i++)
        if (memcmp(&logits[i], &base_logits[i], 4))
            fail_msg("logit %zu of position %zu is %a, wanted %a", i % (bytes / 4 / positions), i / (bytes / 4 / positions),
                     (double)logits[i], (double)base_logits[i]);
    free(logits);
}

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
