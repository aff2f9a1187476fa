/* bits_fixture.h: one model's logits under different settings, compared bit by bit with those of a base. One model at a time. */
#ifndef WEIR_BITS_FIXTURE_H
#define WEIR_BITS_FIXTURE_H

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
    /* these belong to the base as well */
    unsigned context;
    bool activations_f32;
    const char *quant;
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
    weir_load_options lo = {
        .threads = o->threads, .tile = o->tile, .context = o->context, .activations_f32 = o->activations_f32, .quant = o->quant};
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
            fail_msg("%s: logit %zu of position %zu is %a, wanted %a", model_path, i % (bytes / 4 / positions), i / (bytes / 4 / positions),
                     (double)logits[i], (double)base_logits[i]);
    free(logits);
}

#endif
