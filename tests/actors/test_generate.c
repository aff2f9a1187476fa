/* test_generate.c: the model calls of weir.h: load, generate, cancel, errors; on threads and under the test driver. */
#include "model_fixture.h"

static const int32_t prompt[] = {1, 20, 30, 40, 50};
static const weir_generate_options greedy = {.tokens = prompt, .n_tokens = 5, .max_tokens = 24, .ignore_end = true};

static void text_of(enum weir_driver driver, uint64_t seed, const weir_generate_options *o, generation *g) {
    weir_system *s = new_system(driver, seed);
    weir_model *m = load(s, NULL);
    *g = (generation){0};
    generate(s, m, o, g);
    weir_model_free(m);
    weir_system_free(s);
}

static void a_generation_ends_with_its_counts(void **state) {
    (void)state;
    generation g;
    text_of(WEIR_DRIVER_EV, 0, &greedy, &g);
    assert_int_equal(g.code, 0);
    assert_string_equal(g.reason, "length");
    assert_int_equal(g.finish.prompt_tokens, 5);
    assert_int_equal(g.finish.tokens, 24);
    assert_true(g.size > 0);
}

static void the_test_driver_gives_the_same_text_for_every_seed(void **state) {
    (void)state;
    generation real, test;
    text_of(WEIR_DRIVER_EV, 0, &greedy, &real);
    for (uint64_t seed = 1; seed <= 5; seed++) {
        text_of(WEIR_DRIVER_TEST, seed, &greedy, &test);
        assert_int_equal(test.size, real.size);
        assert_memory_equal(test.text, real.text, real.size);
    }
}

static void the_same_seed_gives_the_same_text(void **state) {
    (void)state;
    weir_generate_options o = greedy;
    generation a, b, c;
    o.temperature = 1.5;
    o.seed = 7;
    text_of(WEIR_DRIVER_EV, 0, &o, &a);
    text_of(WEIR_DRIVER_EV, 0, &o, &b);
    o.seed = 8;
    text_of(WEIR_DRIVER_EV, 0, &o, &c);
    assert_int_equal(a.size, b.size);
    assert_memory_equal(a.text, b.text, a.size);
    assert_true(a.size != c.size || memcmp(a.text, c.text, a.size) != 0);
}

static void several_generations_share_passes_and_keep_their_text(void **state) {
    (void)state;
    enum { N = 5 };
    generation alone, g[N] = {0};
    text_of(WEIR_DRIVER_EV, 0, &greedy, &alone);
    weir_system *s = new_system(WEIR_DRIVER_EV, 0);
    weir_model *m = load(s, NULL);
    for (int i = 0; i < N; i++)
        assert_int_equal(weir_generate(m, &greedy, generation_piece, generation_done, &g[i], NULL, NULL), WEIR_OK);
    for (int i = 0; i < N; i++)
        weir_system_run(s, generation_ended, &g[i], NULL);
    for (int i = 0; i < N; i++) {
        assert_int_equal(g[i].code, 0);
        assert_memory_equal(g[i].text, alone.text, alone.size);
    }
    weir_model_free(m);
    weir_system_free(s);
}

static void cancel_now(generation *g) {
    if (g->pieces == 2)
        weir_cancel(((void **)g->data)[0], *(uint64_t *)((void **)g->data)[1]);
}

static void a_cancelled_generation_ends_once_with_ECANCELLED(void **state) {
    (void)state;
    weir_system *s = new_system(WEIR_DRIVER_EV, 0);
    weir_model *m = load(s, NULL);
    uint64_t request;
    void *data[] = {m, &request};
    generation g = {.on_piece = cancel_now, .data = data}, next = {0};
    weir_generate_options o = greedy;
    o.max_tokens = 200;
    assert_int_equal(weir_generate(m, &o, generation_piece, generation_done, &g, &request, NULL), WEIR_OK);
    weir_system_run(s, generation_ended, &g, NULL);
    assert_int_equal(g.code, WEIR_ECANCELLED);
    assert_int_equal(g.pieces, 2);
    generate(s, m, &greedy, &next);
    assert_int_equal(next.code, 0);
    weir_model_free(m);
    weir_system_free(s);
}

static void a_prompt_beyond_the_context_is_an_error(void **state) {
    (void)state;
    weir_system *s = new_system(WEIR_DRIVER_EV, 0);
    weir_load_options lo = {.context = 32};
    weir_model *m = load(s, &lo);
    int32_t many[40] = {0};
    weir_generate_options o = {.tokens = many, .n_tokens = 40, .max_tokens = 4};
    generation g = {0}, full = {0};
    generate(s, m, &o, &g);
    assert_int_equal(g.code, WEIR_ECONTEXT);
    assert_non_null(strstr(g.error, "32"));
    o.n_tokens = 30;
    o.max_tokens = 0;
    o.ignore_end = true;
    generate(s, m, &o, &full);
    assert_int_equal(full.code, 0);
    assert_string_equal(full.reason, "context");
    assert_int_equal(full.finish.tokens, 3);
    weir_model_free(m);
    weir_system_free(s);
}

static void a_token_outside_the_vocabulary_is_an_error(void **state) {
    (void)state;
    weir_system *s = new_system(WEIR_DRIVER_EV, 0);
    weir_model *m = load(s, NULL);
    int32_t bad[] = {1, 512};
    weir_generate_options o = {.tokens = bad, .n_tokens = 2, .max_tokens = 4};
    generation g = {0};
    generate(s, m, &o, &g);
    assert_int_equal(g.code, WEIR_ETOKEN);
    assert_non_null(strstr(g.error, "512"));
    weir_model_free(m);
    weir_system_free(s);
}

static void a_missing_file_is_named(void **state) {
    (void)state;
    weir_system *s = new_system(WEIR_DRIVER_EV, 0);
    weir_model *m = NULL;
    weir_error *error = NULL;
    assert_int_equal(weir_model_load(s, "/no/such/model.gguf", NULL, &m, &error), WEIR_ENOENT);
    assert_non_null(strstr(weir_error_text(error), "/no/such/model.gguf"));
    weir_error_free(error);
    weir_system_free(s);
}

static void another_count_of_threads_is_EBUSY(void **state) {
    (void)state;
    weir_system *s = new_system(WEIR_DRIVER_EV, 0);
    weir_load_options one = {.threads = 1}, two = {.threads = 2};
    weir_model *m = load(s, &one), *n = NULL;
    assert_int_equal(weir_model_load(s, LLAMA, &two, &n, NULL), WEIR_EBUSY);
    weir_model_free(m);
    weir_system_free(s);
}

typedef struct {
    uint64_t done, total;
    int calls;
} progress;
static void note_progress(void *data, uint64_t done, uint64_t total) {
    progress *p = data;
    assert_true(done >= p->done && done <= total);
    *p = (progress){done, total, p->calls + 1};
}

static void progress_reaches_the_whole(void **state) {
    (void)state;
    weir_system *s = new_system(WEIR_DRIVER_EV, 0);
    progress p = {0};
    weir_load_options o = {.progress = note_progress, .data = &p};
    weir_model *m = load(s, &o);
    assert_int_equal(p.done, p.total);
    assert_int_equal(p.calls, 4); /* three layers and the static modules */
    weir_model_free(m);
    weir_system_free(s);
}

static void free_now(generation *g) {
    weir_model_free(g->data);
}

static void a_model_freed_inside_its_own_callback_ends_its_requests(void **state) {
    (void)state;
    weir_system *s = new_system(WEIR_DRIVER_EV, 0);
    weir_model *m = load(s, NULL);
    generation g = {.data = m};
    weir_generate_options o = greedy;
    o.max_tokens = 200;
    assert_int_equal(weir_generate(m, &o, generation_piece, generation_done, &g, NULL, NULL), WEIR_OK);
    g.on_piece = free_now;
    weir_system_run(s, generation_ended, &g, NULL);
    assert_true(g.code == WEIR_EEXITED || g.code == WEIR_ENOACTOR || g.code == WEIR_ECANCELLED);
    weir_system_free(s);
}

static void free_in_done(void *data, const weir_finish *finish, const weir_error *error) {
    generation *g = data;
    generation_done(g, finish, error);
    weir_model_free(g->data);
}

static void a_model_may_be_freed_in_done(void **state) {
    (void)state;
    weir_system *s = new_system(WEIR_DRIVER_EV, 0);
    weir_model *m = load(s, NULL);
    generation g = {.data = m};
    assert_int_equal(weir_generate(m, &greedy, generation_piece, free_in_done, &g, NULL, NULL), WEIR_OK);
    weir_system_run(s, generation_ended, &g, NULL);
    assert_int_equal(g.code, 0);
    weir_system_free(s);
}

/* Notices are taken from the actor's own stream only: a script that knows an address cannot end a pass or a job with one. */
static void forge(generation *g) {
    weir_system *s = g->data;
    for (int64_t id = 0; id < 80; id++)
        weir_send(weir_main_actor(s), actor_named(s, "stepper"), weir_intern(s, "pass_done"), weir_pack(s, "ii", INT64_C(0), id));
}

static void forged_notices_change_nothing(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 8; seed++) {
        weir_system *s = new_system(WEIR_DRIVER_TEST, seed);
        weir_model *m = load(s, NULL);
        generation before = {0}, g = {.on_piece = forge, .data = s};
        generate(s, m, &greedy, &before);
        generate(s, m, &greedy, &g);
        assert_int_equal(g.code, 0);
        assert_int_equal(g.size, before.size);
        assert_memory_equal(g.text, before.text, before.size);
        weir_model_free(m);
        weir_system_free(s);
    }
}

/* ---- sampling ---- */

typedef struct told {
    int32_t id[32];
    double logprob[32], best[32];
    unsigned n, n_best;
    weir_model *cancel; /* NULL: nobody */
    uint64_t *request;
} told;
static told heard;

static void note_token(void *data, const weir_token *token, const weir_token *best, size_t n_best) {
    (void)data;
    assert_true(heard.n < 32 && n_best >= 1 && token->text && token->logprob <= best[0].logprob && best[0].logprob <= 0);
    heard.id[heard.n] = token->id;
    heard.logprob[heard.n] = token->logprob;
    heard.best[heard.n++] = best[0].logprob;
    heard.n_best = (unsigned)n_best;
    if (heard.cancel && heard.n == 2)
        weir_cancel(heard.cancel, *heard.request);
}

static const weir_logit_bias ban_and_push[] = {{77, 100}, {78, 100.0}, {77, -100}};

static void options_of_sampling_reach_the_kernel(void **state) {
    (void)state;
    static const char *const order[] = {"logit_bias", "presence_penalty"};
    generation g;
    weir_generate_options o = greedy;
    heard = (told){0};
    o.logit_bias = ban_and_push;
    o.n_logit_bias = 3;
    o.token = note_token;
    o.logprobs = 3;
    text_of(WEIR_DRIVER_EV, 0, &o, &g);
    assert_int_equal(g.code, 0);
    assert_int_equal(heard.n, 24);
    assert_int_equal(heard.n_best, 3);
    for (unsigned i = 0; i < heard.n; i++)
        assert_true(heard.id[i] == 78 && heard.logprob[i] < heard.best[i]); /* the model's own distribution, not the biased one */
    heard = (told){0};
    o.presence_penalty = 2;
    o.samplers = order;
    o.n_samplers = 2;
    text_of(WEIR_DRIVER_TEST, 3, &o, &g);
    assert_int_equal(g.code, 0);
    assert_int_equal(heard.id[23], 78);
    o.n_samplers = 1;
    text_of(WEIR_DRIVER_TEST, 3, &o, &g);
    assert_int_equal(g.code, WEIR_EINVAL);
    assert_non_null(strstr(g.error, "presence_penalty"));
}

static void repetition_is_known_after_any_splitting_into_tiles(void **state) {
    (void)state;
    generation whole, tiles;
    weir_generate_options o = greedy;
    o.repeat_penalty = 1.8;
    o.frequency_penalty = 0.7;
    text_of(WEIR_DRIVER_EV, 0, &o, &whole);
    weir_system *s = new_system(WEIR_DRIVER_EV, 0);
    weir_load_options lo = {.tile = 2};
    weir_model *m = load(s, &lo);
    tiles = (generation){0};
    generate(s, m, &o, &tiles);
    assert_int_equal(tiles.size, whole.size);
    assert_memory_equal(tiles.text, whole.text, whole.size);
    weir_model_free(m);
    weir_system_free(s);
}

static void a_cancel_while_a_token_is_told_ends_the_generation(void **state) {
    (void)state;
    weir_system *s = new_system(WEIR_DRIVER_EV, 0);
    weir_model *m = load(s, NULL);
    uint64_t request;
    generation g = {0};
    weir_generate_options o = greedy;
    heard = (told){.cancel = m, .request = &request};
    o.token = note_token;
    o.logprobs = 20;
    o.logit_bias = ban_and_push;
    o.n_logit_bias = 3;
    o.max_tokens = 200;
    assert_int_equal(weir_generate(m, &o, generation_piece, generation_done, &g, &request, NULL), WEIR_OK);
    weir_system_run(s, generation_ended, &g, NULL);
    assert_int_equal(g.code, WEIR_ECANCELLED);
    assert_int_equal(heard.n, 2);
    weir_model_free(m);
    weir_system_free(s);
}

/* ---- requests by message, from an actor that may go away ---- */

typedef struct asker {
    weir_address generator;
    bool asked;
} asker;

static void on_request(weir_actor *self, void *data, const weir_message *reply, const weir_error *error) {
    (void)self, (void)reply;
    assert_null(error);
    *(bool *)data = true;
}
static void ask_it(weir_actor *self, const weir_message *m) {
    asker *a = weir_state(self);
    weir_system *s = weir_system_of(self);
    weir_body *b = weir_pack(s, "{s[iii]si}", "tokens", INT64_C(1), INT64_C(20), INT64_C(30), "max_tokens", INT64_C(200));
    (void)m;
    weir_call(self, a->generator, weir_intern(s, "generate"), b, -1, on_request, &a->asked, NULL);
}
static const weir_behaviour asker_behaviour = {.name = "asker", .receive = ask_it};

static weir_address start_asker(weir_system *s, asker *a) {
    weir_address address;
    *a = (asker){.generator = actor_named(s, "generator")};
    assert_int_equal(weir_spawn(s, &asker_behaviour, a, NULL, &address, NULL), WEIR_OK);
    assert_int_equal(weir_send(weir_main_actor(s), address, weir_intern(s, "go"), NULL), WEIR_OK);
    assert_int_equal(weir_system_run(s, NULL, NULL, NULL), WEIR_OK);
    assert_true(a->asked);
    return address;
}

static void a_generation_that_nobody_reads_stalls_after_its_credit(void **state) {
    (void)state;
    weir_system *s = new_system(WEIR_DRIVER_TEST, 1);
    weir_model *m = load(s, NULL);
    asker a;
    weir_actor_stats before, after;
    weir_actor_get_stats(s, actor_named(s, "policy"), &before);
    start_asker(s, &a);
    weir_actor_get_stats(s, actor_named(s, "policy"), &after);
    uint64_t passes = (after.handled - before.handled) / 2; /* begin and finish */
    assert_true(passes >= WEIR_CREDIT);
    assert_true(passes < 60); /* tokens that leave a character incomplete are no pieces; 200 were asked for */
    weir_model_free(m);
    weir_system_free(s);
}

static void a_generation_ends_with_its_owner(void **state) {
    (void)state;
    weir_system *s = new_system(WEIR_DRIVER_TEST, 1);
    weir_model *m = load(s, NULL);
    for (int i = 0; i < WEIR_MAX_SEQUENCES + 6; i++) { /* more than could be open at a time */
        asker a;
        assert_int_equal(weir_kill(s, start_asker(s, &a)), WEIR_OK);
        assert_int_equal(weir_system_run(s, NULL, NULL, NULL), WEIR_OK);
    }
    weir_model_free(m);
    weir_system_free(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_generation_ends_with_its_counts),
        cmocka_unit_test(the_test_driver_gives_the_same_text_for_every_seed),
        cmocka_unit_test(the_same_seed_gives_the_same_text),
        cmocka_unit_test(several_generations_share_passes_and_keep_their_text),
        cmocka_unit_test(a_cancelled_generation_ends_once_with_ECANCELLED),
        cmocka_unit_test(a_prompt_beyond_the_context_is_an_error),
        cmocka_unit_test(a_token_outside_the_vocabulary_is_an_error),
        cmocka_unit_test(a_missing_file_is_named),
        cmocka_unit_test(another_count_of_threads_is_EBUSY),
        cmocka_unit_test(progress_reaches_the_whole),
        cmocka_unit_test(a_model_may_be_freed_in_done),
        cmocka_unit_test(forged_notices_change_nothing),
        cmocka_unit_test(options_of_sampling_reach_the_kernel),
        cmocka_unit_test(repetition_is_known_after_any_splitting_into_tiles),
        cmocka_unit_test(a_cancel_while_a_token_is_told_ends_the_generation),
        cmocka_unit_test(a_generation_that_nobody_reads_stalls_after_its_credit),
        cmocka_unit_test(a_generation_ends_with_its_owner),
        cmocka_unit_test(a_model_freed_inside_its_own_callback_ends_its_requests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
