/* test_load.c: weir_model_load_async: who is told, when, how often; what ends a load; what is left then. */
#include "model_fixture.h"

typedef struct answer {
    int told;
    weir_model *model;
    int code;
    char text[512];
    int progress, progress_after;
    void (*then)(struct answer *a);
    generation g;
} answer;

static void on_ready(void *data, weir_model *m, const weir_error *error) {
    answer *a = data;
    a->told++;
    a->model = m;
    a->code = weir_error_code(error);
    if (error)
        snprintf(a->text, sizeof a->text, "%s", weir_error_text(error));
    assert_true((m != NULL) == (error == NULL));
    if (a->then)
        a->then(a);
}

static bool is_told(void *data) {
    return ((answer *)data)->told > 0;
}

static void note_progress(void *data, uint64_t done, uint64_t total) {
    answer *a = data;
    assert_true(done <= total);
    a->progress++;
    a->progress_after += a->told;
}

static void begin(weir_system *s, const char *path, answer *a) {
    weir_load_options o = {.progress = note_progress, .data = a};
    weir_error *error = NULL;
    must(weir_model_load_async(s, path, &o, on_ready, a, &error), error);
    assert_int_equal(a->told, 0);
}

static void ready_runs_once_and_never_inside_the_call(void **state) {
    (void)state;
    for (int driver = 0; driver < 2; driver++) {
        weir_system *s = new_system(driver ? WEIR_DRIVER_TEST : WEIR_DRIVER_EV, 3);
        answer a = {0};
        begin(s, LLAMA, &a);
        assert_int_equal(weir_system_run(s, NULL, NULL, NULL), WEIR_OK);
        assert_int_equal(a.told, 1);
        assert_int_equal(a.code, WEIR_OK);
        assert_int_equal(a.progress, 4); /* three layers and the static modules */
        assert_int_equal(a.progress_after, 0);
        assert_int_equal(actor_named(s, "loader"), 0);
        weir_model_free(a.model);
        weir_system_free(s);
        assert_int_equal(a.told, 1);
    }
}

static void what_is_passed_is_copied(void **state) {
    (void)state;
    weir_system *s = new_system(WEIR_DRIVER_EV, 0);
    answer a = {0};
    char path[] = LLAMA;
    weir_load_options o = {.context = 64, .progress = note_progress, .data = &a};
    assert_int_equal(weir_model_load_async(s, path, &o, on_ready, &a, NULL), WEIR_OK);
    memset(path, 'x', sizeof path - 1);
    memset(&o, 0xff, sizeof o);
    weir_system_run(s, is_told, &a, NULL);
    assert_int_equal(a.code, WEIR_OK);
    assert_int_equal(a.progress, 4);
    weir_model_free(a.model);
    weir_system_free(s);
}

static const int32_t prompt[] = {1, 20, 30};

static void generate_at_once(answer *a) {
    weir_generate_options o = {.tokens = prompt, .n_tokens = 3, .max_tokens = 5, .ignore_end = true};
    assert_int_equal(weir_generate(a->model, &o, generation_piece, generation_done, &a->g, NULL, NULL), WEIR_OK);
}

static void a_generation_may_begin_in_ready(void **state) {
    (void)state;
    weir_system *s = new_system(WEIR_DRIVER_EV, 0);
    answer a = {.then = generate_at_once};
    begin(s, LLAMA, &a);
    weir_system_run(s, generation_ended, &a.g, NULL);
    assert_int_equal(a.g.code, 0);
    assert_int_equal(a.g.finish.tokens, 5);
    weir_model_free(a.model);
    weir_system_free(s);
}

static void free_at_once(answer *a) {
    weir_model_free(a->model);
}

static void a_model_may_be_freed_in_ready(void **state) {
    (void)state;
    weir_system *s = new_system(WEIR_DRIVER_TEST, 1);
    answer a = {.then = free_at_once};
    begin(s, LLAMA, &a);
    assert_int_equal(weir_system_run(s, NULL, NULL, NULL), WEIR_OK);
    assert_int_equal(a.told, 1);
    assert_int_equal(actor_named(s, "model"), 0);
    weir_system_free(s);
}

static void two_models_load_at_a_time(void **state) {
    (void)state;
    weir_system *s = new_system(WEIR_DRIVER_EV, 0);
    answer a = {0}, b = {0};
    begin(s, LLAMA, &a);
    begin(s, LLAMA, &b);
    assert_int_equal(weir_system_run(s, NULL, NULL, NULL), WEIR_OK);
    assert_int_equal(a.code, WEIR_OK);
    assert_int_equal(b.code, WEIR_OK);
    assert_ptr_not_equal(a.model, b.model);
    weir_model_free(a.model);
    weir_model_free(b.model);
    weir_system_free(s);
}

static void an_error_names_the_file_and_leaves_no_actor(void **state) {
    (void)state;
    weir_system *s = new_system(WEIR_DRIVER_EV, 0);
    answer a = {0};
    begin(s, "/no/such/model.gguf", &a);
    assert_int_equal(weir_system_run(s, NULL, NULL, NULL), WEIR_OK);
    assert_int_equal(a.told, 1);
    assert_int_equal(a.code, WEIR_ENOENT);
    assert_non_null(strstr(a.text, "/no/such/model.gguf"));
    weir_system_stats stats;
    weir_system_get_stats(s, &stats);
    assert_int_equal(stats.actors, 1);
    weir_system_free(s);
}

typedef struct turns {
    answer *a;
    int left;
} turns;

static bool turns_over(void *data) {
    turns *t = data;
    return t->a->told || t->left-- <= 0;
}

/* Ends a load after n turns in one of several ways; false: it had been over before. The host is told once, of an error. */
static bool end_early(unsigned n, void (*end)(weir_system *s)) {
    weir_system *s = new_system(WEIR_DRIVER_TEST, n);
    answer a = {0};
    begin(s, LLAMA, &a);
    turns t = {&a, (int)n};
    weir_system_run(s, turns_over, &t, NULL);
    bool early = !a.told;
    if (!early)
        weir_model_free(a.model);
    if (end)
        end(s);
    if (early && end)
        assert_int_equal(a.told, 1);
    if (early)
        weir_model_free(a.model); /* the answer was under way */
    weir_system_free(s);
    assert_int_equal(a.told, 1);
    if (early && !a.model)
        assert_true(a.code == WEIR_ESTOPPING || a.code == WEIR_EEXITED || a.code == WEIR_EKILLED);
    return early;
}

static void end_at_every_turn(void (*end)(weir_system *s)) {
    unsigned n = 0;
    while (end_early(n, end))
        n++;
    assert_true(n > 20);
}

static void freeing_the_system_ends_a_load_with_an_error(void **state) {
    (void)state;
    end_at_every_turn(NULL);
}

static void stop_now(weir_system *s) {
    weir_system_stop(s, 0, NULL);
}
static void stop_in_time(weir_system *s) {
    assert_int_equal(weir_system_stop(s, INT64_C(1000000000), NULL), WEIR_OK);
}
static void kill_loader(weir_system *s) {
    weir_address a = actor_named(s, "loader");
    if (a)
        assert_int_equal(weir_kill(s, a), WEIR_OK);
    assert_int_equal(weir_system_run(s, NULL, NULL, NULL), WEIR_OK);
    if (!a)
        return;
    weir_system_stats stats;
    weir_system_get_stats(s, &stats);
    assert_int_equal(stats.actors, 1);
}

static void stopping_the_system_ends_a_load_with_an_error(void **state) {
    (void)state;
    end_at_every_turn(stop_now);
    end_at_every_turn(stop_in_time);
}

static void a_killed_loader_takes_its_model_with_it(void **state) {
    (void)state;
    end_at_every_turn(kill_loader);
}

static void a_thread_that_loads_is_not_waited_for(void **state) {
    (void)state;
    for (int i = 0; i < 20; i++) { /* on threads: freed at some moment of the load */
        weir_system *s = new_system(WEIR_DRIVER_EV, 0);
        answer a = {0};
        begin(s, LLAMA, &a);
        turns t = {&a, i * 2};
        weir_system_run(s, turns_over, &t, NULL);
        weir_model_free(a.model);
        weir_system_free(s);
        assert_int_equal(a.told, 1);
    }
}

static void wrong_use_and_want_of_memory_are_told_at_once(void **state) {
    (void)state;
    uint64_t at_once = 0, later = 0, nth = 1;
    for (unsigned step = 1; nth < 400; nth += step, step = 1 + (unsigned)(nth / 20)) {
        weir_system *s = new_system(WEIR_DRIVER_TEST, nth);
        answer a = {0};
        weir_error *error = NULL;
        weir__inject_arm(s, "ALLOC", nth, 1);
        int code = weir_model_load_async(s, LLAMA, NULL, on_ready, &a, &error);
        weir_error_free(error);
        if (code)
            assert_int_equal(code, WEIR_ENOMEM);
        at_once += code != WEIR_OK;
        assert_int_equal(a.told, 0);
        assert_int_equal(weir_system_run(s, NULL, NULL, NULL), WEIR_OK);
        assert_int_equal(a.told, code ? 0 : 1);
        later += a.code != WEIR_OK;
        weir__inject_arm(s, "ALLOC", 0, 0);
        weir_model_free(a.model);
        weir_system_free(s);
    }
    assert_true(at_once > 5 && later > 20);
    weir_system *s = new_system(WEIR_DRIVER_TEST, 1);
    answer a = {0};
    assert_int_equal(weir_system_stop(s, 0, NULL), WEIR_OK);
    assert_int_equal(weir_model_load_async(s, LLAMA, NULL, on_ready, &a, NULL), WEIR_ESTOPPING);
    weir_system_free(s);
    assert_int_equal(a.told, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ready_runs_once_and_never_inside_the_call),
        cmocka_unit_test(what_is_passed_is_copied),
        cmocka_unit_test(a_generation_may_begin_in_ready),
        cmocka_unit_test(a_model_may_be_freed_in_ready),
        cmocka_unit_test(two_models_load_at_a_time),
        cmocka_unit_test(an_error_names_the_file_and_leaves_no_actor),
        cmocka_unit_test(freeing_the_system_ends_a_load_with_an_error),
        cmocka_unit_test(stopping_the_system_ends_a_load_with_an_error),
        cmocka_unit_test(a_killed_loader_takes_its_model_with_it),
        cmocka_unit_test(a_thread_that_loads_is_not_waited_for),
        cmocka_unit_test(wrong_use_and_want_of_memory_are_told_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
