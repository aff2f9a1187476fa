/* test_injected.c: every point of core/rt/inject.def, one after the other, at many passings: what fails says who failed, everything is returned, and the next
 * load and the next request are right. Prints each different error once. */
#include "../../core/model/make.h"
#include <unistd.h>

#include "stories_fixture.h"

/* ---- memory is counted from outside ---- */

typedef struct heap {
    _Atomic int64_t bytes, blocks;
} heap;

static void *counted(void *data, void *p, size_t old_size, size_t new_size) {
    heap *h = data;
    void *q = NULL;
    if (new_size && !(q = realloc(p, new_size)))
        return NULL;
    if (!new_size)
        free(p);
    h->bytes += (int64_t)new_size - (int64_t)old_size;
    h->blocks += (p == NULL) - (new_size == 0 && p != NULL);
    return q;
}

static weir_system *counted_system(heap *h, enum weir_driver driver, uint64_t seed) {
    weir_system_options o = {.driver = driver, .seed = seed, .alloc = counted, .alloc_data = h};
    weir_system *s = NULL;
    assert_int_equal(weir_system_new(&o, &s, NULL), WEIR_OK);
    return s;
}

static void all_returned(weir_system *s, heap *h) {
    weir_system_stats stats;
    weir_system_get_stats(s, &stats);
    assert_int_equal(stats.sent, stats.handled + stats.dead + stats.queued);
    weir_system_free(s);
    assert_int_equal(h->bytes, 0);
    assert_int_equal(h->blocks, 0);
}

/* ---- errors name the culprit ---- */

/* One of these must be in the texts of an error and its causes. */
static const struct {
    const char *point;
    const char *words[16];
} culprits[] = {{"OPEN", {".gguf"}},
                {"READ", {".gguf"}},
                {"SHORT_READ", {".gguf"}},
                {"STREAM", {"stream residency", "stream policy", "stream experts", "stream stepper"}},
                {"SUBMIT", {"stream residency", "stream stepper"}},
                {"KERNEL", {"stream residency", "stream stepper"}},
                {"SPAWN", {"\"model\"", "\"loader\"", "\"residency\"", "\"policy\"", "\"experts\"", "\"stepper\"", "\"generator\""}},
                {"WATCH", {"model", "residency", "policy", "experts", "stepper", "generator", "caller"}}};

static bool chain_has(const weir_error *e, const char *word) {
    for (; e; e = weir_error_cause(e))
        if (strstr(weir_error_text(e), word) || (weir_error_actor(e) && strstr(weir_error_actor(e), word)))
            return true;
    return false;
}

static bool names_culprit(const char *point, const weir_error *e) {
    for (size_t i = 0; i < sizeof culprits / sizeof *culprits; i++)
        if (strcmp(culprits[i].point, point) == 0) {
            for (const char *const *w = culprits[i].words; *w; w++)
                if (chain_has(e, *w))
                    return true;
            return false;
        }
    /* no memory can be missed anywhere: the text says more than the code's */
    return strcmp(weir_error_text(e), weir_code_text(weir_error_code(e))) != 0;
}

enum { TEXTS = 256 };
static char seen_texts[TEXTS][160];
static int seen;

/* Digits apart, each text once. */
static void show(const char *point, uint64_t nth, const char *stage, const weir_error *e) {
    char text[160], key[160];
    size_t n = 0;
    snprintf(text, sizeof text, "%s: %s: %s: %s", point, stage, weir_code_name(weir_error_code(e)), weir_error_text(e));
    for (const char *c = text; *c; c++)
        if (*c < '0' || *c > '9')
            key[n++] = *c;
    key[n] = 0;
    for (int i = 0; i < seen; i++)
        if (strcmp(seen_texts[i], key) == 0)
            return;
    if (seen < TEXTS)
        memcpy(seen_texts[seen++], key, sizeof key);
    print_message("%s at passing %llu\n", text, (unsigned long long)nth);
    for (e = weir_error_cause(e); e; e = weir_error_cause(e))
        print_message("    because %s: %s\n", weir_code_name(weir_error_code(e)), weir_error_text(e));
}

/* ---- load, generate, close, with one fault somewhere ---- */

static const weir_generate_options once = {.prompt = "Once upon a time", .max_tokens = 10, .ignore_end = true};
static const int32_t ids[] = {1, 20, 30, 40, 50};
static void nobody_listens(void *data, const weir_token *token, const weir_token *best, size_t n) {
    (void)data, (void)token, (void)best, (void)n;
}
static const weir_logit_bias biases[] = {{7, 1}, {8, -1}};
static const char *const order[] = {"logit_bias", "repeat_penalty"};
static const weir_generate_options from_ids = {.tokens = ids,
                                               .n_tokens = 5,
                                               .max_tokens = 10,
                                               .ignore_end = true,
                                               .repeat_penalty = 1.2,
                                               .logit_bias = biases,
                                               .n_logit_bias = 2,
                                               .samplers = order,
                                               .n_samplers = 2,
                                               .token = nobody_listens,
                                               .logprobs = 3};

typedef struct told {
    generation g;
    weir_error *error;
} told;

static void told_piece(void *data, const char *piece, size_t size) {
    generation_piece(&((told *)data)->g, piece, size);
}
static void told_done(void *data, const weir_finish *finish, const weir_error *error) {
    told *t = data;
    generation_done(&t->g, finish, error);
    t->error = error ? weir_error_ref(error) : NULL;
}

/* The error of the generation, NULL: the text is there. */
static weir_error *tell(weir_system *s, weir_model *m, told *t) {
    weir_error *error = NULL;
    *t = (told){.error = NULL};
    if (weir_generate(m, has_stories() ? &once : &from_ids, told_piece, told_done, t, NULL, &error))
        return error;
    assert_int_equal(weir_system_run(s, generation_ended, &t->g, NULL), WEIR_OK);
    return t->error;
}

static void right_or_fail(const told *t, const told *right) {
    assert_int_equal(t->g.size, right->g.size);
    assert_memory_equal(t->g.text, right->g.text, right->g.size);
}

static bool due(weir_system *s, int point, uint64_t nth) {
    return weir__inject_passed(s, (enum weir__point)point) >= nth;
}

typedef struct fault {
    const char *point;
    int index;
    uint64_t nth, times;
} fault;

static void failed(const fault *f, const char *stage, weir_error *e) {
    assert_non_null(e);
    assert_true(weir_error_code(e) != WEIR_OK && strlen(weir_error_text(e)) > 0);
    show(f->point, f->nth, stage, e);
    if (!names_culprit(f->point, e))
        fail_msg("%s at passing %llu: %s: nobody is named: %s", f->point, (unsigned long long)f->nth, stage, weir_error_text(e));
    weir_error_free(e);
}

/* Loads; after a failure once more, without the fault. */
static weir_model *load_under(weir_system *s, const fault *f, unsigned *errors) {
    weir_model *m = NULL;
    weir_error *error = NULL;
    if (weir_model_load(s, stories(), NULL, &m, &error)) {
        assert_null(m);
        weir__inject_arm(s, f->point, 0, 0);
        failed(f, "load", error);
        ++*errors;
        error = NULL;
        must(weir_model_load(s, stories(), NULL, &m, &error), error);
    }
    return m;
}

/* True if the passing was reached. */
static bool model_under(const fault *f, enum weir_driver driver, const told *right, unsigned *errors) {
    heap h = {0};
    weir_system *s = counted_system(&h, driver, f->nth);
    told t, after;
    assert_int_equal(weir__inject_arm(s, f->point, f->nth, f->times), WEIR_OK);
    unsigned before = *errors;
    weir_model *m = load_under(s, f, errors);
    weir_error *error = tell(s, m, &t);
    bool reached = *errors > before || due(s, f->index, f->nth);
    if (error) {
        failed(f, "generate", error);
        ++*errors;
    } else {
        right_or_fail(&t, right);
    }
    if (reached || error)
        weir__inject_arm(s, f->point, 0, 0); /* else it may still meet the end */
    if (*errors > before) {
        error = tell(s, m, &after);
        if (error)
            fail_msg("%s at passing %llu: the next request: %s", f->point, (unsigned long long)f->nth, weir_error_text(error));
        right_or_fail(&after, right);
    }
    weir_model_free(m);
    reached = reached || due(s, f->index, f->nth);
    all_returned(s, &h);
    return reached;
}

static void right_text(told *right) {
    heap h = {0};
    weir_system *s = counted_system(&h, WEIR_DRIVER_EV, 0);
    weir_model *m = NULL;
    weir_error *error = NULL;
    must(weir_model_load(s, stories(), NULL, &m, &error), error);
    error = tell(s, m, right);
    must(weir_error_code(error), error);
    weir_model_free(m);
    all_returned(s, &h);
}

/* Dense at first, then ever wider steps, until the scenario ends before the passing. */
static uint64_t next_passing(uint64_t nth) {
    return nth + 1 + nth / 64;
}

static unsigned sweep(const char *point, int index, enum weir_driver driver, uint64_t times, uint64_t last) {
    told right;
    unsigned errors = 0, runs = 0;
    right_text(&right);
    for (uint64_t nth = 1; nth <= last; nth = next_passing(nth), runs++) {
        fault f = {point, index, nth, times};
        if (!model_under(&f, driver, &right, &errors))
            break;
    }
    print_message("%s: %u runs of load, generate, close; %u errors\n", point, runs, errors);
    return errors;
}

/* A fault while two of a model's actors start anew: the model tries again. False: the passing was not reached. */
static bool restart_under(const fault *f, const told *right, unsigned *errors) {
    heap h = {0};
    weir_system *s = counted_system(&h, WEIR_DRIVER_TEST, f->nth);
    weir_model *m = NULL;
    weir_error *error = NULL;
    told t;
    must(weir_model_load(s, stories(), NULL, &m, &error), error);
    error = tell(s, m, &t);
    must(weir_error_code(error), error);
    assert_int_equal(weir__inject_arm(s, f->point, f->nth, f->times), WEIR_OK);
    weir_kill(s, actor_named(s, "stepper"));
    weir_kill(s, actor_named(s, f->nth % 2 ? "policy" : "residency"));
    error = tell(s, m, &t);
    bool reached = due(s, f->index, f->nth);
    weir__inject_arm(s, f->point, 0, 0);
    if (error) {
        failed(f, "restart", error);
        ++*errors;
        error = tell(s, m, &t);
        must(weir_error_code(error), error);
    }
    right_or_fail(&t, right);
    weir_model_free(m);
    all_returned(s, &h);
    return reached;
}

static void restart_scenario(const char *point, int index) {
    told right;
    unsigned errors = 0, runs = 0;
    right_text(&right);
    for (uint64_t nth = 1; nth < UINT32_MAX; nth = next_passing(nth), runs++) {
        fault f = {point, index, nth, 1};
        if (!restart_under(&f, &right, &errors))
            break;
    }
    print_message("%s: %u runs of restarts; %u errors\n", point, runs, errors);
}

static void model_scenario(const char *point, int index) {
    unsigned errors = sweep(point, index, WEIR_DRIVER_TEST, 1, UINT32_MAX);
    errors += sweep(point, index, WEIR_DRIVER_TEST, 2, 40);
    errors += sweep(point, index, WEIR_DRIVER_EV, 1, 8);
    assert_true(errors > 0);
    restart_scenario(point, index);
}

/* Small memory comes from the allocator; only with pages of their own can they fail. */
static void pages_scenario(const char *point, int index) {
    sweep(point, index, WEIR_DRIVER_TEST, 1, UINT32_MAX);
    heap h = {0};
    weir_system *s = counted_system(&h, WEIR_DRIVER_TEST, 0);
    weir__device *d;
    weir__buffer *b = NULL;
    weir_error *error = NULL;
    assert_int_equal(weir__device_open(s, "cpu", 1, &d, NULL), WEIR_OK);
    assert_int_equal(weir__inject_arm(s, point, 1, 1), WEIR_OK);
    assert_int_equal(weir__buffer_new(d, 4 << 20, "a cache", &b, &error), WEIR_ENOMEM);
    assert_non_null(strstr(weir_error_text(error), "a cache"));
    show(point, 1, "buffer", error);
    weir_error_free(error);
    assert_int_equal(weir__buffer_new(d, 4 << 20, "a cache", &b, NULL), WEIR_OK);
    weir__buffer_unref(b);
    all_returned(s, &h);
}

/* ---- what a model has no part in ---- */

static void code_of(const char *point, const char *stage, int code) {
    assert_int_not_equal(code, WEIR_OK);
    print_message("%s: %s: %s at passing 1\n", point, stage, weir_code_name(code));
}

static void slow(void *data, weir_address actor, const char *name, const char *verb, int64_t elapsed) {
    (void)data, (void)actor, (void)name, (void)verb, (void)elapsed;
}

static void thread_scenario(const char *point, int index) {
    (void)index;
    heap h = {0};
    weir_system *s = counted_system(&h, WEIR_DRIVER_EV, 0);
    assert_int_equal(weir__inject_arm(s, point, 1, 1), WEIR_OK);
    code_of(point, "weir_set_watchdog", weir_set_watchdog(s, 1000000000, slow, NULL));
    assert_int_equal(weir_set_watchdog(s, 1000000000, slow, NULL), WEIR_OK);
    all_returned(s, &h);
#ifndef NDEBUG
    for (int nth = 1; nth <= 4; nth++) { /* of three workers: the fourth passing is not reached */
        char armed[32];
        weir_system_options o = {.workers = 3, .alloc = counted, .alloc_data = &h};
        weir_error *error = NULL;
        snprintf(armed, sizeof armed, "THREAD:%d", nth);
        setenv("WEIR_INJECT", armed, 1);
        int code = weir_system_new(&o, &s, &error);
        unsetenv("WEIR_INJECT");
        if (nth <= 3) {
            assert_int_equal(code, WEIR_EIO);
            assert_non_null(strstr(weir_error_text(error), "worker"));
            show(point, (uint64_t)nth, "weir_system_new", error);
            weir_error_free(error);
            assert_int_equal(h.bytes, 0);
        } else {
            must(code, error);
            all_returned(s, &h);
        }
    }
#endif
}

static void ignore_io(weir_system *s, void *data, int events) {
    (void)s, (void)data, (void)events;
}

static void io_scenario(const char *point, int index) {
    (void)index;
    heap h = {0};
    weir_system *s = counted_system(&h, WEIR_DRIVER_EV, 0);
    int fds[2];
    weir__io *io = NULL;
    weir_error *error = NULL;
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(weir__inject_arm(s, point, 1, 1), WEIR_OK);
    code_of(point, "weir__io_start", weir__io_start(s, fds[0], WEIR__IO_READ, ignore_io, NULL, &io, &error));
    show(point, 1, "weir__io_start", error);
    weir_error_free(error);
    assert_int_equal(weir__io_start(s, fds[0], WEIR__IO_READ, ignore_io, NULL, &io, NULL), WEIR_OK);
    weir__io_stop(io);
    close(fds[0]);
    close(fds[1]);
    all_returned(s, &h);
}

static const weir_behaviour idle_behaviour = {.name = "idle"};

static void register_scenario(const char *point, int index) {
    (void)index;
    heap h = {0};
    weir_system *s = counted_system(&h, WEIR_DRIVER_EV, 0);
    weir_address a;
    assert_int_equal(weir_spawn(s, &idle_behaviour, NULL, NULL, &a, NULL), WEIR_OK);
    assert_int_equal(weir__inject_arm(s, point, 1, 1), WEIR_OK);
    code_of(point, "weir_register", weir_register(s, "idle", a));
    assert_int_equal(weir_whereis(s, "idle"), 0);
    assert_int_equal(weir_register(s, "idle", a), WEIR_OK);
    assert_true(weir_whereis(s, "idle") == a);
    all_returned(s, &h);
}

/* Models only read; what writes is conversion and the like. */
static void write_scenario(const char *point, int index) {
    (void)index;
    heap h = {0};
    weir_system *s = counted_system(&h, WEIR_DRIVER_EV, 0);
    weir_error *error = NULL;
    char path[64];
    weir__make_options o = {.family = "llama", .layers = 1, .width = 32, .heads = 1, .ffn = 32, .vocab = 300, .context = 32};
    snprintf(path, sizeof path, "/tmp/weir-written-%d.gguf", (int)getpid());
    assert_int_equal(weir__inject_arm(s, point, 1, 1), WEIR_OK);
    assert_int_equal(weir__make(s, &o, path, &error), WEIR_EIO);
    show(point, 1, "weir__make", error);
    weir_error_free(error);
    assert_int_not_equal(access(path, F_OK), 0);
    assert_int_equal(weir__make(s, &o, path, NULL), WEIR_OK);
    assert_int_equal(unlink(path), 0);
    all_returned(s, &h);
}

static void watch_scenario(const char *point, int index) {
    heap h = {0};
    weir_system *s = counted_system(&h, WEIR_DRIVER_EV, 0);
    weir_address a, b;
    assert_int_equal(weir_spawn(s, &idle_behaviour, NULL, NULL, &a, NULL), WEIR_OK);
    assert_int_equal(weir_spawn(s, &idle_behaviour, NULL, NULL, &b, NULL), WEIR_OK);
    weir_actor *self = weir__actor(s, a);
    int (*const watches[])(weir_actor *, weir_address) = {weir_monitor, weir_link, weir_want_space};
    static const char *const watch_names[] = {"weir_monitor", "weir_link", "weir_want_space"};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(weir__inject_arm(s, point, 1, 1), WEIR_OK);
        code_of(point, watch_names[i], watches[i](self, b));
        assert_int_equal(watches[i](self, b), WEIR_OK);
    }
    all_returned(s, &h);
    model_scenario(point, index);
}

/* ---- every point ---- */

static const struct {
    const char *point;
    void (*run)(const char *point, int index);
} scenarios[] = {
    {"ALLOC", model_scenario},  {"PAGES", pages_scenario},       {"SPAWN", model_scenario},   {"SEND", model_scenario},
    {"STREAM", model_scenario}, {"SUBMIT", model_scenario},      {"KERNEL", model_scenario},  {"OPEN", model_scenario},
    {"READ", model_scenario},   {"SHORT_READ", model_scenario},  {"THREAD", thread_scenario}, {"WATCH", watch_scenario},
    {"IO", io_scenario},        {"REGISTER", register_scenario}, {"WRITE", write_scenario},
};
enum { SCENARIOS = sizeof scenarios / sizeof *scenarios };

static void every_point_has_a_scenario(void **state) {
    (void)state;
    const char *name;
    for (int i = 0; (name = weir__inject_name(i, NULL)); i++) {
        int found = 0;
        for (int j = 0; j < SCENARIOS; j++)
            found += strcmp(scenarios[j].point, name) == 0;
        if (found != 1)
            fail_msg("point %s of inject.def is exercised by %d scenarios", name, found);
    }
    assert_int_equal(SCENARIOS, WEIR__INJECT_POINTS);
}

static void library_J1_every_injected_fault_is_an_error_and_the_next_request_is_right(void **state) {
    (void)state;
    const char *name;
    for (int i = 0; (name = weir__inject_name(i, NULL)); i++)
        for (int j = 0; j < SCENARIOS; j++)
            if (strcmp(scenarios[j].point, name) == 0)
                scenarios[j].run(name, i);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_point_has_a_scenario),
        cmocka_unit_test(library_J1_every_injected_fault_is_an_error_and_the_next_request_is_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
