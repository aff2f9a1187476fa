/* The steps of sampling: each of the reference's single steps on its rows (transformers), any steps in any order against the literal ones, and what no reference has:
 * counted penalties, biases, greedy. */
#include "helper_sampling.h"

#include <math.h>

/* ---- the reference's single steps: a test for each row, step and value of vectors/samplers.json ---- */

#define TINY 1e-12

typedef struct entry {
    char row[32], step[32];
    const char *key; /* ROW.STEP-VALUE */
    double value;
    int kept;
} entry;

static tensors rows;
static entry entries[256];
static char keys[256][96];
static int n_entries;
static int32_t past[64];
static int n_past;

static char *whole_file(const char *path) {
    FILE *f = fopen(path, "rb");
    char *text = calloc(1, 1 << 20);
    if (!f || !text || !fread(text, 1, (1 << 20) - 1, f))
        text = NULL;
    if (f)
        fclose(f);
    return text;
}

static void must_be(bool what) {
    if (!what) {
        printf("vectors/samplers.json is not as it was expected\n");
        exit(1);
    }
}

/* The value of the next `"key":` at or after *at. */
static bool next_value(const char **at, const char *key, const char *format, void *out) {
    char quoted[32];
    snprintf(quoted, sizeof quoted, "\"%s\":", key);
    const char *found = strstr(*at, quoted);
    if (!found)
        return false;
    *at = found + strlen(quoted);
    return sscanf(*at, format, out) == 1;
}

static void read_entries(const char *at) {
    char c = 0;
    must_be(next_value(&at, "history", " %c", &c) && c == '[');
    for (int used; n_past < 64 && (at += strcspn(at, "0123456789]"), sscanf(at, "%d%n", &past[n_past], &used) == 1); at += used)
        n_past++;
    for (entry *e = entries; n_entries < 256 && next_value(&at, "row", " \"%31[^\"]", e->row); e++) {
        must_be(next_value(&at, "step", " \"%31[^\"]", e->step) && next_value(&at, "value", "%lf", &e->value) &&
                next_value(&at, "kept", "%d", &e->kept));
        snprintf(keys[n_entries], sizeof *keys, "%.31s.%.31s-%g", e->row, e->step, e->value);
        e->key = keys[n_entries++];
    }
}

static void set_step(scene *s, const entry *e) {
    weir_sample *sample = &s->sample[0];
    *sample = (weir_sample){.temperature = 1, .position = n_past - 1};
    scene_history(s, s->slot[0], past, n_past);
    if (strcmp(e->step, "temperature") == 0)
        sample->temperature = (float)e->value;
    else if (strcmp(e->step, "top_k") == 0)
        sample->top_k = (int32_t)e->value;
    else if (strcmp(e->step, "top_p") == 0)
        sample->top_p = (float)e->value;
    else if (strcmp(e->step, "min_p") == 0)
        sample->min_p = (float)e->value;
    else if (strcmp(e->step, "typical_p") == 0)
        sample->typical = (float)e->value;
    else if (strcmp(e->step, "repetition_penalty") == 0)
        sample->repeat_penalty = (float)e->value;
    else
        fail_msg("%s: a step that this test does not know", e->key);
}

static void compare(const char *what, const candidate *c, int kept, const double *want, int n) {
    double *got = calloc((size_t)n, sizeof *got), sum = 0;
    for (int i = 0; i < kept; i++)
        sum += (double)c[i].weight;
    for (int i = 0; i < kept; i++)
        got[c[i].id] = (double)c[i].weight / sum + TINY; /* kept, be its weight zero */
    for (int i = 0; i < n; i++)
        if (fabs(got[i] - want[i]) > 1e-6 || (want[i] > 0 && got[i] < TINY) || (want[i] == 0 && got[i] > 1e-11))
            fail_msg("%s: token %d has %.9g, wanted %.9g", what, i, got[i], want[i]);
    free(got);
}

static void keeps_what_transformers_keeps(void **state) {
    const entry *e = *state;
    char key[64];
    snprintf(key, sizeof key, "%s.logits", e->row);
    tensor logits = tensors_get(&rows, key), want = tensors_get(&rows, e->key);
    assert_non_null(logits.data);
    assert_non_null(want.data);
    int n = (int)(logits.bytes / sizeof(float));
    float *x = malloc(logits.bytes), *p = malloc(want.bytes);
    double *wanted = calloc((size_t)n, sizeof *wanted);
    candidate *c = calloc((size_t)n, sizeof *c);
    scene *s = malloc(sizeof *s);
    memcpy(x, logits.data, logits.bytes);
    memcpy(p, want.data, want.bytes);
    for (int i = 0; i < n; i++)
        wanted[i] = (double)p[i];
    for (int level = 0; level < WEIR_CPU_LEVELS; level++) {
        if (!weir_cpu_level_runs(level))
            continue;
        scene_begin(s, 1);
        set_step(s, e);
        int kept = scene_keep(s, level, x, n, c);
        compare(e->key, c, kept, wanted, n);
        assert_int_equal(kept, e->kept);
    }
    free(x), free(p), free(wanted), free(c), free(s);
}

/* ---- any steps in any order ---- */

enum { VOCAB = 333, PAST = 70, PROMPT = 20 };

static weir_sample random_sample(rng *r) {
    weir_sample s = {.temperature = 0.4f + 0.3f * (float)rng_below(r, 5), .position = PAST - 1, .generated_from = PROMPT};
    s.top_k = rng_below(r, 3) ? 0 : 1 + rng_below(r, 60);
    s.top_p = rng_below(r, 2) ? 0 : 0.3f + 0.1f * (float)rng_below(r, 7);
    s.min_p = rng_below(r, 3) ? 0 : 0.01f * (float)(1 + rng_below(r, 30));
    s.typical = rng_below(r, 2) ? 0 : 0.15f + 0.1f * (float)rng_below(r, 8);
    s.repeat_penalty = rng_below(r, 2) ? 0 : 0.7f + 0.2f * (float)rng_below(r, 4);
    s.frequency_penalty = rng_below(r, 2) ? 0 : -0.5f + 0.4f * (float)rng_below(r, 4);
    s.presence_penalty = rng_below(r, 2) ? 0 : -0.5f + 0.4f * (float)rng_below(r, 4);
    s.penalty_last = rng_below(r, 2) ? 0 : 1 + rng_below(r, 90);
    s.biases = rng_below(r, 2) ? 0 : 1 + rng_below(r, 20);
    for (int i = 0; i < WEIR_SAMPLER_COUNT; i++)
        s.order[i] = (uint8_t)(i + 1);
    for (int i = WEIR_SAMPLER_COUNT - 1; i > 0; i--) {
        int j = rng_below(r, i + 1);
        uint8_t t = s.order[i];
        s.order[i] = s.order[j];
        s.order[j] = t;
    }
    return s;
}

static void ref_step(float *x, const weir_sample *s, int step, const int32_t *tokens, const weir_bias *bias) {
    int first = s->penalty_last > 0 && s->penalty_last < PAST ? PAST - s->penalty_last : 0, generated = first > PROMPT ? first : PROMPT;
    switch (step) {
    case WEIR_S_repeat_penalty:
        if (s->repeat_penalty > 0)
            ref_repeat_penalty(x, tokens + first, PAST - first, s->repeat_penalty);
        return;
    case WEIR_S_frequency_penalty:
        ref_counted_penalties(x, tokens + generated, PAST - generated, s->frequency_penalty, 0);
        return;
    case WEIR_S_presence_penalty:
        ref_counted_penalties(x, tokens + generated, PAST - generated, 0, s->presence_penalty);
        return;
    case WEIR_S_logit_bias:
        for (int i = 0; i < s->biases; i++)
            x[bias[i].token] += bias[i].addend;
        return;
    case WEIR_S_temperature:
        for (int i = 0; i < VOCAB; i++)
            x[i] /= s->temperature;
        return;
    case WEIR_S_top_k:
        if (s->top_k)
            ref_top_k(x, VOCAB, s->top_k);
        return;
    case WEIR_S_typical:
        if (s->typical > 0)
            ref_typical(x, VOCAB, (double)s->typical);
        return;
    case WEIR_S_top_p:
        if (s->top_p > 0)
            ref_top_p(x, VOCAB, (double)s->top_p);
        return;
    default:
        if (s->min_p > 0)
            ref_min_p(x, VOCAB, (double)s->min_p);
    }
}

/* Logits with infinities, NaN and, sometimes, few distinct values. */
static void random_logits(rng *r, float *x, int n) {
    int coarse = rng_below(r, 4) == 0;
    for (int i = 0; i < n; i++) {
        x[i] = 3 * rng_normal(r);
        x[i] = coarse ? floorf(x[i]) : x[i];
        if (rng_below(r, 20) == 0)
            x[i] = rng_below(r, 2) ? -INFINITY : NAN;
    }
}

static void fill_scene(scene *s, rng *r, int32_t *tokens) {
    scene_begin(s, 1);
    s->sample[0] = random_sample(r);
    for (int i = 0; i < PAST; i++)
        tokens[i] = rng_below(r, 40) * 8;
    scene_history(s, s->slot[0], tokens, PAST);
    for (int i = 0; i < s->sample[0].biases; i++)
        s->bias[s->slot[0]][i] = (weir_bias){rng_below(r, VOCAB), 5 * rng_float(r)};
}

static void steps_in_any_order_are_the_literal_ones(void **state) {
    need_level(state);
    rng r = {77};
    scene *s = malloc(sizeof *s);
    float x[VOCAB], y[VOCAB];
    double want[VOCAB];
    int32_t tokens[PAST];
    candidate c[VOCAB];
    for (int i = 0; i < 400; i++) {
        char what[32];
        snprintf(what, sizeof what, "case %d", i);
        fill_scene(s, &r, tokens);
        random_logits(&r, x, VOCAB);
        memcpy(y, x, sizeof y);
        for (int k = 0; k < WEIR_SAMPLER_COUNT; k++)
            ref_step(y, &s->sample[0], s->sample[0].order[k], tokens, s->bias[s->slot[0]]);
        ref_probabilities(y, VOCAB, want);
        compare(what, c, scene_keep(s, level_of(state), x, VOCAB, c), want, VOCAB);
    }
    free(s);
}

static void draws_and_logprobs_have_the_same_bits_at_every_level(void **state) {
    need_level(state);
    rng r = {5};
    scene *s = malloc(sizeof *s), *t = malloc(sizeof *t);
    float x[VOCAB];
    int32_t tokens[PAST];
    for (int i = 0; i < 400; i++) {
        fill_scene(s, &r, tokens);
        random_logits(&r, x, VOCAB);
        s->sample[0].seed = rng_next(&r);
        s->sample[0].logprobs = rng_below(&r, WEIR_MAX_LOGPROBS + 2);
        s->sample[0].temperature = i % 5 ? s->sample[0].temperature : 0;
        memcpy(t, s, sizeof *t);
        t->step.slot = t->slot, t->step.out_row = t->out_row, t->step.blocks = t->blocks[0], t->step.sample = t->sample;
        t->step.sampled = t->sampled, t->step.bias = t->bias[0], t->step.history = t->history, t->step.logprobs = t->logprobs;
        scene_run(s, WEIR_CPU_GENERIC, x, VOCAB, 1);
        scene_run(t, level_of(state), x, VOCAB, 1 + (unsigned)i % 3);
        assert_int_equal(s->sampled[0], t->sampled[0]);
        assert_memory_equal(s->logprobs, t->logprobs, sizeof s->logprobs);
    }
    free(s), free(t);
}

/* ---- what counts ---- */

static void greedy_of(void **state, const weir_sample *sample, const weir_bias *bias, int32_t want) {
    static const float x[6] = {1, 5, 4, 3, -2, 4.5f};
    static const int32_t tokens[] = {1, 1, 5, 1, 5, 2};
    scene *s = malloc(sizeof *s);
    scene_begin(s, 1);
    s->sample[0] = *sample;
    s->sample[0].position = 5;
    if (bias)
        memcpy(s->bias[s->slot[0]], bias, (size_t)sample->biases * sizeof *bias);
    scene_history(s, s->slot[0], tokens, 6);
    scene_run(s, level_of(state), x, 6, 1);
    assert_int_equal(s->sampled[0], want);
    free(s);
}

static void repeat_penalty_is_for_every_token_of_the_window(void **state) {
    need_level(state);
    greedy_of(state, &(weir_sample){0}, NULL, 1);
    greedy_of(state, &(weir_sample){.repeat_penalty = 2}, NULL, 3);
    greedy_of(state, &(weir_sample){.repeat_penalty = 2, .penalty_last = 1}, NULL, 1);
    greedy_of(state, &(weir_sample){.repeat_penalty = 2, .penalty_last = 3}, NULL, 3);
    greedy_of(state, &(weir_sample){.repeat_penalty = 2, .penalty_last = 2}, NULL, 1);
    greedy_of(state, &(weir_sample){.repeat_penalty = 1}, NULL, 1);
}

static void frequency_and_presence_count_generated_tokens(void **state) {
    need_level(state);
    /* the whole text: 1 three times, 5 twice, 2 once; from position 4: 5 and 2 once */
    greedy_of(state, &(weir_sample){.frequency_penalty = 0.6f}, NULL, 2);
    greedy_of(state, &(weir_sample){.presence_penalty = 0.6f}, NULL, 1);
    greedy_of(state, &(weir_sample){.presence_penalty = 2.1f}, NULL, 3);
    greedy_of(state, &(weir_sample){.frequency_penalty = 2, .generated_from = 4}, NULL, 1);
    greedy_of(state, &(weir_sample){.frequency_penalty = 2, .generated_from = 6}, NULL, 1);
    greedy_of(state, &(weir_sample){.frequency_penalty = -0.6f, .generated_from = 4}, NULL, 5);
    greedy_of(state, &(weir_sample){.frequency_penalty = 2, .penalty_last = 2}, NULL, 1);
}

static void biases_ban_and_force(void **state) {
    need_level(state);
    greedy_of(state, &(weir_sample){.biases = 1}, (weir_bias[]){{4, 100}}, 4);
    greedy_of(state, &(weir_sample){.biases = 2}, (weir_bias[]){{1, -100}, {5, -100}}, 2);
    greedy_of(state, &(weir_sample){.biases = 2}, (weir_bias[]){{2, 0.6f}, {2, 0.6f}}, 2);
}

static void greedy_takes_no_token_away(void **state) {
    need_level(state);
    const weir_bias bias[] = {{4, 100}};
    greedy_of(state, &(weir_sample){.biases = 1, .top_k = 1, .order = {WEIR_S_top_k, WEIR_S_logit_bias}}, bias, 4);
    greedy_of(state, &(weir_sample){.biases = 1, .typical = 0.1f}, bias, 4);
}

static void a_tiny_temperature_takes_the_best(void **state) {
    need_level(state);
    static const float tiny[] = {1e-6f, 1e-30f, 1e-45f};
    for (int i = 0; i < 3; i++) {
        greedy_of(state, &(weir_sample){.temperature = tiny[i]}, NULL, 1);
        greedy_of(state, &(weir_sample){.temperature = tiny[i], .typical = 0.9f, .top_p = 0.9f, .min_p = 0.1f, .top_k = 3}, NULL, 1);
    }
}

static void something_is_always_kept(void **state) {
    need_level(state);
    float x[64];
    candidate c[64];
    scene *s = malloc(sizeof *s);
    for (int kind = 0; kind < 4; kind++) {
        static const float value[] = {0, -INFINITY, INFINITY, 1e38f};
        for (int i = 0; i < 64; i++)
            x[i] = value[kind];
        scene_begin(s, 1);
        s->sample[0] = (weir_sample){.temperature = 1, .top_p = 1e-9f, .min_p = 1, .typical = 1e-9f, .top_k = 1};
        assert_true(scene_keep(s, level_of(state), x, 64, c) >= 1);
        scene_run(s, level_of(state), x, 64, 1);
        assert_in_range(s->sampled[0], 0, 63);
    }
    free(s);
}

static void typical_keeps_all_that_are_as_near_as_the_last(void **state) {
    need_level(state);
    const float x[5] = {1, 1, -INFINITY, 1, 1};
    candidate c[5];
    scene *s = malloc(sizeof *s);
    scene_begin(s, 1);
    s->sample[0] = (weir_sample){.temperature = 1, .typical = 0.3f};
    assert_int_equal(scene_keep(s, level_of(state), x, 5, c), 4);
    free(s);
}

/* ---- log-probabilities ---- */

/* Whether token a stands before b among the best. */
static bool better(const float *x, int a, int b) {
    return x[a] > x[b] || (x[a] == x[b] && a < b);
}

static void check_logprobs(const float *x, const weir_logprobs *got, int32_t chosen, int want) {
    double p[VOCAB];
    int numbers = 0;
    ref_probabilities(x, VOCAB, p);
    for (int i = 0; i < VOCAB; i++)
        numbers += !isnan(x[i]);
    assert_int_equal(got->count, want < numbers ? want : numbers);
    assert_true(x[chosen] == -INFINITY || fabs(got->chosen - log(p[chosen])) < 1e-6);
    for (int k = 0; k < got->count; k++) {
        int id = got->token[k], before = 0;
        for (int i = 0; i < VOCAB; i++)
            before += !isnan(x[i]) && better(x, i, id);
        assert_int_equal(before, k);
        assert_true(p[id] > 0 ? fabs(got->best[k] - log(p[id])) < 1e-6 : got->best[k] == -(double)INFINITY || got->best[k] < -700);
    }
}

static void logprobs_are_the_log_softmax_of_the_raw_logits(void **state) {
    need_level(state);
    rng r = {31};
    scene *s = malloc(sizeof *s);
    float x[VOCAB];
    int32_t tokens[PAST];
    for (int i = 0; i < 200; i++) {
        fill_scene(s, &r, tokens);
        random_logits(&r, x, VOCAB);
        for (int k = 0; i % 4 == 0 && k < VOCAB - 7; k++) /* fewer numbers than are asked for */
            x[k] = NAN;
        for (int k = 0; i % 4 == 1 && k < VOCAB; k++) /* ties */
            x[k] = floorf(x[k]);
        s->sample[0].logprobs = 1 + i % (WEIR_MAX_LOGPROBS + 1);
        scene_run(s, level_of(state), x, VOCAB, 1);
        check_logprobs(x, &s->logprobs[s->slot[0]], s->sampled[0], i % (WEIR_MAX_LOGPROBS + 1));
    }
    free(s);
}

static void one_infinite_logit_has_all_the_probability(void **state) {
    need_level(state);
    float x[VOCAB] = {0};
    scene *s = malloc(sizeof *s);
    x[9] = INFINITY;
    scene_begin(s, 1);
    s->sample[0].logprobs = 3;
    scene_run(s, level_of(state), x, VOCAB, 1);
    const weir_logprobs *l = &s->logprobs[s->slot[0]];
    assert_int_equal(s->sampled[0], 9);
    assert_int_equal(l->token[0], 9);
    assert_true(l->chosen == 0 && l->best[0] == 0 && l->best[1] == -(double)INFINITY);
    free(s);
}

/* ---- neighbours ---- */

static void neighbours_with_other_settings_change_nothing(void **state) {
    need_level(state);
    rng r = {12};
    scene *batch = malloc(sizeof *batch), *alone = malloc(sizeof *alone);
    float *x = malloc(SCENE_SLOTS * VOCAB * sizeof *x);
    for (int round = 0; round < 40; round++) {
        int32_t tokens[SCENE_SLOTS][PAST];
        scene_begin(batch, SCENE_SLOTS);
        random_logits(&r, x, SCENE_SLOTS * VOCAB);
        for (int o = 0; o < SCENE_SLOTS; o++) {
            batch->sample[o] = random_sample(&r);
            batch->sample[o].logprobs = rng_below(&r, 6);
            for (int i = 0; i < PAST; i++)
                tokens[o][i] = rng_below(&r, VOCAB);
            scene_history(batch, batch->slot[o], tokens[o], PAST);
            for (int i = 0; i < batch->sample[o].biases; i++)
                batch->bias[batch->slot[o]][i] = (weir_bias){rng_below(&r, VOCAB), 5 * rng_float(&r)};
        }
        scene_run(batch, level_of(state), x, VOCAB, 3);
        for (int o = 0; o < SCENE_SLOTS; o++) {
            scene_begin(alone, 1);
            alone->sample[0] = batch->sample[o];
            scene_history(alone, alone->slot[0], tokens[o], PAST);
            memcpy(alone->bias[alone->slot[0]], batch->bias[batch->slot[o]], sizeof alone->bias[0]);
            scene_run(alone, level_of(state), x + o * VOCAB, VOCAB, 1);
            assert_int_equal(batch->sampled[o], alone->sampled[0]);
            assert_memory_equal(&batch->logprobs[batch->slot[o]], &alone->logprobs[alone->slot[0]], sizeof(weir_logprobs));
        }
    }
    free(batch), free(alone), free(x);
}

int main(void) {
    const struct CMUnitTest own[] = {
        EACH_LEVEL(steps_in_any_order_are_the_literal_ones),
        EACH_LEVEL(draws_and_logprobs_have_the_same_bits_at_every_level),
        EACH_LEVEL(repeat_penalty_is_for_every_token_of_the_window),
        EACH_LEVEL(frequency_and_presence_count_generated_tokens),
        EACH_LEVEL(biases_ban_and_force),
        EACH_LEVEL(greedy_takes_no_token_away),
        EACH_LEVEL(a_tiny_temperature_takes_the_best),
        EACH_LEVEL(something_is_always_kept),
        EACH_LEVEL(typical_keeps_all_that_are_as_near_as_the_last),
        EACH_LEVEL(logprobs_are_the_log_softmax_of_the_raw_logits),
        EACH_LEVEL(one_infinite_logit_has_all_the_probability),
        EACH_LEVEL(neighbours_with_other_settings_change_nothing),
    };
    struct CMUnitTest steps[256];
    char path[4096] = "";
    const char *reference = weir_test_reference("vectors/samplers.json");
    char *text = reference ? whole_file(reference) : NULL;
    int failed = cmocka_run_group_tests(own, NULL, NULL);
    if (!text) {
        printf("SKIP keeps_what_transformers_keeps: the reference folder has no vectors/samplers.json\n");
        return failed || (getenv("CI") && strcmp(getenv("CI"), "true") == 0);
    }
    read_entries(text);
    snprintf(path, sizeof path, "%s", weir_test_reference("vectors/samplers.safetensors"));
    rows = tensors_open(path);
    for (int i = 0; i < n_entries; i++)
        steps[i] = (struct CMUnitTest){entries[i].key, keeps_what_transformers_keeps, NULL, NULL, &entries[i]};
    must_be(n_entries >= 50);
    failed += _cmocka_run_group_tests("samplers", steps, (size_t)n_entries, NULL, NULL);
    tensors_close(&rows);
    free(text);
    return failed;
}
