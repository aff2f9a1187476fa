/* test_restart.c: a model's actors die with work under way: requests end once with an error that names who died, what is left on the device is waited for or
 * quarantined, and the next request is right. */
#include <unistd.h>

#include "verbs_fixture.h"

static const char *const names[] = {"stepper", "policy", "residency", "experts", "generator"};
enum { NAMES = sizeof names / sizeof *names };

static const int32_t prompt[] = {1, 20, 30, 40, 50};
static const weir_generate_options some = {.tokens = prompt, .n_tokens = 5, .max_tokens = 12, .ignore_end = true};

static void right_text(generation *g) {
    weir_system *s = new_system(WEIR_DRIVER_EV, 0);
    weir_model *m = load(s, NULL);
    generate(s, m, &some, g);
    weir_model_free(m);
    weir_system_free(s);
}

static void same(const generation *g, const generation *right) {
    if (g->code)
        fail_msg("%s: %s", weir_code_name(g->code), g->error);
    assert_int_equal(g->size, right->size);
    assert_memory_equal(g->text, right->text, right->size);
}

/* ---- deaths in the midst of a generation ---- */

typedef struct killer {
    weir_system *system;
    const char *name; /* NULL: all of them */
    unsigned at;      /* piece */
} killer;

static void kill_all_named(const killer *k) {
    for (int i = 0; i < NAMES; i++)
        if (!k->name || strcmp(k->name, names[i]) == 0)
            weir_kill(k->system, actor_named(k->system, names[i]));
}

static void kill_at(generation *g) {
    const killer *k = g->data;
    if (g->pieces == k->at)
        kill_all_named(k);
}

static void dies_and_goes_on(enum weir_driver driver, uint64_t seed, const char *name, unsigned at, const generation *right) {
    weir_system *s = new_system(driver, seed);
    weir_model *m = load(s, NULL);
    killer k = {s, name, at};
    generation g = {.on_piece = kill_at, .data = &k}, after = {0}, again = {0};
    weir_generate_options o = some;
    o.max_tokens = 200;
    generate(s, m, &o, &g);
    if (!name || strcmp(name, "stepper") == 0 || strcmp(name, "generator") == 0) {
        if (g.code != WEIR_EEXITED && g.code != WEIR_EKILLED)
            fail_msg("%s at %u: %s: %s", name ? name : "all", at, weir_code_name(g.code), g.error);
        assert_non_null(strstr(g.error, name ? name : "generator"));
    } else if (strcmp(name, "policy") == 0) { /* between two passes nothing of a request is lost */
        assert_true(!g.code || strstr(g.error, "policy"));
    } else {
        assert_int_equal(g.code, 0);
    }
    generate(s, m, &some, &after);
    same(&after, right);
    generate(s, m, &some, &again);
    same(&again, right);
    weir_model_free(m);
    weir_system_free(s);
}

static void whoever_dies_in_mid_generation_the_next_one_is_right(void **state) {
    (void)state;
    generation right = {0};
    right_text(&right);
    for (int i = 0; i <= NAMES; i++)
        for (unsigned at = 1; at <= 3; at++) {
            const char *name = i < NAMES ? names[i] : NULL;
            dies_and_goes_on(WEIR_DRIVER_EV, 0, name, at, &right);
            dies_and_goes_on(WEIR_DRIVER_TEST, at * 7 + (unsigned)i, name, at, &right);
        }
}

typedef struct turns {
    weir_system *system;
    generation *generation;
    unsigned left;
} turns;

static bool turns_over(void *data) {
    turns *t = data;
    return t->generation->ended || t->left-- == 0;
}

/* The seed decides what is under way when it dies. */
static void dies_some_turns_later(const char *name, uint64_t seed, const generation *right) {
    weir_system *s = new_system(WEIR_DRIVER_TEST, seed);
    weir_model *m = load(s, NULL);
    generation g = {0}, after = {0};
    turns t = {s, &g, (unsigned)(seed % 97)};
    killer k = {s, name, 0};
    assert_int_equal(weir_generate(m, &some, generation_piece, generation_done, &g, NULL, NULL), WEIR_OK);
    assert_int_equal(weir_system_run(s, turns_over, &t, NULL), WEIR_OK);
    kill_all_named(&k);
    generate(s, m, &some, &after); /* asked at once */
    same(&after, right);
    assert_int_equal(weir_system_run(s, generation_ended, &g, NULL), WEIR_OK);
    if (!g.code)
        same(&g, right);
    else if (name && !strstr(g.error, name))
        fail_msg("%s seed %llu: %s: %s", name, (unsigned long long)seed, weir_code_name(g.code), g.error);
    weir_model_free(m);
    weir_system_free(s);
}

static void whenever_they_die_the_next_one_is_right(void **state) {
    (void)state;
    generation right = {0};
    right_text(&right);
    for (int i = 0; i <= NAMES; i++)
        for (uint64_t seed = 1; seed <= 40; seed++)
            dies_some_turns_later(i < NAMES ? names[i] : NULL, seed * 13 + (uint64_t)i, &right);
}

/* ---- what is left on the device ---- */

typedef struct watcher {
    weir_address target;
    bool down, killed;
} watcher;
static void watch(weir_actor *self, const weir_message *m) {
    (void)m;
    assert_int_equal(weir_monitor(self, ((watcher *)weir_state(self))->target), WEIR_OK);
    weir_reply(self, m, NULL);
}
static void watched_down(weir_actor *self, weir_address who, const weir_error *why) {
    watcher *w = weir_state(self);
    w->down = who == w->target;
    w->killed = weir_error_code(why) == WEIR_EKILLED;
}
static const weir_handler watcher_handlers[] = {{"watch", watch}, {NULL, NULL}};
static const weir_behaviour watcher_behaviour = {.name = "watcher", .handlers = watcher_handlers, .down = watched_down};
static bool is_down(void *data) {
    return ((watcher *)data)->down;
}

static void watch_it(weir_system *s, watcher *w, weir_address target) {
    weir_address a;
    *w = (watcher){.target = target};
    assert_int_equal(weir_spawn(s, &watcher_behaviour, w, NULL, &a, NULL), WEIR_OK);
    assert_int_equal(ask(s, a, "watch", NULL).code, 0);
}

typedef struct ticks {
    int left;
} ticks;
static void tick(weir_actor *self, void *data, uint64_t missed) {
    (void)self, (void)missed;
    ((ticks *)data)->left--;
}
static bool ticked(void *data) {
    return ((ticks *)data)->left <= 0;
}
/* Long enough for every actor to have handled what it has. */
static void run_a_while(weir_system *s) {
    ticks t = {20};
    uint64_t id;
    assert_int_equal(weir_timer(weir_main_actor(s), 1000000, WEIR_TIMER_RATE, tick, &t, &id), WEIR_OK);
    assert_int_equal(weir_system_run(s, ticked, &t, NULL), WEIR_OK);
    weir_timer_cancel(weir_main_actor(s), id);
}

static void down_is_at_once_and_the_restart_waits_for_the_drain(void **state) {
    (void)state;
    weir_system *s = new_system(WEIR_DRIVER_EV, 0);
    members m = load_members(s, LLAMA, 3, 60);
    char right[4096], text[4096];
    assert_int_equal(whole_text(s, m.generator, 12, right), 0);
    gate g = {0};
    watcher w;
    watch_it(s, &w, m.stepper);
    gate_close(&g, stepper_stream(s, m.stepper));
    weir_kill(s, m.stepper);
    assert_int_equal(weir_system_run(s, is_down, &w, NULL), WEIR_OK);
    assert_true(w.killed && !g.open);
    answer asked = {0};
    assert_int_equal(weir_call(weir_main_actor(s), m.model, weir_intern(s, "info"), NULL, -1, on_answer, &asked, NULL), WEIR_OK);
    run_a_while(s);
    assert_false(asked.ended); /* the old stream is not empty yet */
    assert_int_equal(actor_named(s, "stepper"), 0);
    assert_int_equal(streams_in(s, "stepper", WEIR__STREAM_DRAINING), 1);
    g.open = true;
    assert_int_equal(weir_system_run(s, answer_ended, &asked, NULL), WEIR_OK);
    members now = members_of(m.model, &asked);
    weir_body_free(asked.body);
    assert_true(now.stepper != m.stepper && now.generator == m.generator && now.policy == m.policy);
    assert_int_equal(streams_in(s, "stepper", WEIR__STREAM_DRAINING), 0);
    assert_int_equal(streams_in(s, "stepper", WEIR__STREAM_OPEN), 1);
    assert_int_equal(whole_text(s, m.generator, 12, text), 0);
    assert_string_equal(text, right);
    weir_system_free(s);
    assert_true(g.released);
}

static void a_request_made_meanwhile_waits_and_is_right(void **state) {
    (void)state;
    weir_system *s = new_system(WEIR_DRIVER_EV, 0);
    members m = load_members(s, LLAMA, 3, 60);
    char right[4096], text[4096] = "";
    assert_int_equal(whole_text(s, m.generator, 12, right), 0);
    gate g = {0};
    gate_close(&g, stepper_stream(s, m.stepper));
    weir_kill(s, m.stepper);
    answer asked = {0};
    assert_int_equal(
        weir_call(weir_main_actor(s), m.generator, weir_intern(s, "generate"), some_request(s, 12), -1, on_answer, &asked, NULL), WEIR_OK);
    run_a_while(s);
    assert_false(asked.ended);
    g.open = true;
    assert_int_equal(weir_system_run(s, answer_ended, &asked, NULL), WEIR_OK);
    weir_cursor c = weir_read(asked.body, NULL);
    int64_t id = 0;
    bool ended;
    assert_true(weir_read_int(&c, &id));
    weir_body_free(asked.body);
    assert_int_equal(read_text(s, m.generator, (uint64_t)id, text, sizeof text, &ended), 0);
    assert_string_equal(text, right);
    weir_system_free(s);
}

static void a_stream_that_does_not_drain_is_quarantined_and_the_model_goes_on(void **state) {
    (void)state;
    weir_system *s = new_system(WEIR_DRIVER_EV, 0);
    members m = load_members(s, LLAMA, 3, 0.01);
    char right[4096], text[4096];
    assert_int_equal(whole_text(s, m.generator, 12, right), 0);
    gate g = {0};
    gate_close(&g, stepper_stream(s, m.stepper));
    weir_kill(s, m.stepper);
    members now = ask_members(s, m.model);
    assert_true(now.stepper != m.stepper);
    assert_false(g.open);
    assert_int_equal(streams_in(s, "stepper", WEIR__STREAM_QUARANTINED), 1);
    assert_int_equal(streams_in(s, "stepper", WEIR__STREAM_OPEN), 1);
    assert_int_equal(whole_text(s, m.generator, 12, text), 0);
    assert_string_equal(text, right);
    g.open = true;
    weir_system_free(s);
    assert_true(g.released);
}

/* ---- what is not lost ---- */

static void a_stalled_generation_outlives_the_policy_and_residency(void **state) {
    (void)state;
    for (int which = 0; which < 3; which++) {
        weir_system *s = new_system(WEIR_DRIVER_TEST, (uint64_t)which);
        members m = load_members(s, LLAMA, 3, 10);
        char right[4096], text[4096] = "";
        int code;
        bool ended;
        assert_int_equal(whole_text(s, m.generator, 40, right), 0);
        uint64_t id = begin_text(s, m.generator, 40, &code);
        assert_int_equal(read_text(s, m.generator, id, text, 4, &ended), 0);
        assert_false(ended);
        assert_int_equal(weir_system_run(s, NULL, NULL, NULL), WEIR_OK); /* it stalls */
        weir_kill(s, which == 0 ? m.policy : which == 1 ? m.residency : m.experts);
        assert_int_equal(read_text(s, m.generator, id, text, sizeof text, &ended), 0);
        assert_string_equal(text, right);
        members now = ask_members(s, m.model);
        assert_true(now.stepper == m.stepper && now.generator == m.generator);
        weir_system_free(s);
    }
}

static void the_units_of_a_dead_policy_are_given_back(void **state) {
    (void)state;
    weir_system *s = new_system(WEIR_DRIVER_TEST, 5);
    members m = load_members(s, LLAMA, 16, 10);
    char text[4096];
    weir_system_stats before, after;
    assert_int_equal(whole_text(s, m.generator, 4, text), 0);
    assert_int_equal(weir_system_run(s, NULL, NULL, NULL), WEIR_OK);
    weir_system_get_stats(s, &before);
    for (int i = 0; i < 3; i++) {
        m = ask_members(s, m.model);
        weir_kill(s, m.policy);
        if (i == 1)
            weir_kill(s, m.stepper);
        m = ask_members(s, m.model);
        assert_int_equal(whole_text(s, m.generator, 4, text), 0);
    }
    assert_int_equal(weir_system_run(s, NULL, NULL, NULL), WEIR_OK);
    weir_system_get_stats(s, &after);
    assert_true(after.bytes < before.bytes + 65536);
    weir_system_free(s);
}

static void residency_encodes_long_texts_again_after_its_restart(void **state) {
    (void)state;
    weir_system *s = new_system(WEIR_DRIVER_TEST, 5);
    members m = load_members(s, LLAMA, 3, 10);
    static char words[20000];
    memset(words, 'a', sizeof words - 1);
    answer before = ask(s, m.generator, "tokenize", weir_pack(s, "s", words));
    if (before.code == WEIR_EUNSUPPORTED) { /* this file has no tokeniser: nothing is encoded */
        weir_system_free(s);
        skip();
    }
    weir_kill(s, m.residency);
    answer busy = ask(s, m.generator, "tokenize", weir_pack(s, "s", words));
    assert_int_equal(busy.code, WEIR_EBUSY);
    assert_true(weir_code_retry(busy.code));
    ask_members(s, m.model);
    answer after = ask(s, m.generator, "tokenize", weir_pack(s, "s", words));
    size_t n, size;
    assert_int_equal(after.code, 0);
    const void *a = weir_body_bytes(before.body, &n), *b = weir_body_bytes(after.body, &size);
    assert_int_equal(n, size);
    assert_memory_equal(a, b, n);
    weir_body_free(before.body);
    weir_body_free(after.body);
    weir_system_free(s);
}

/* ---- too often ---- */

static void a_model_whose_actors_die_too_often_ends_and_says_why(void **state) {
    (void)state;
    weir_system *s = new_system(WEIR_DRIVER_TEST, 9);
    weir_model *m = load(s, NULL);
    for (int i = 0; i < 3; i++) {
        generation g = {0};
        weir_kill(s, actor_named(s, "stepper"));
        generate(s, m, &some, &g);
        assert_int_equal(g.code, 0);
    }
    generation open = {0}, late = {0};
    assert_int_equal(weir_generate(m, &some, generation_piece, generation_done, &open, NULL, NULL), WEIR_OK);
    weir_kill(s, actor_named(s, "stepper"));
    assert_int_equal(weir_system_run(s, generation_ended, &open, NULL), WEIR_OK);
    assert_int_equal(open.code, WEIR_EEXITED);
    assert_int_equal(weir_system_run(s, NULL, NULL, NULL), WEIR_OK);
    for (int i = 0; i < NAMES; i++)
        assert_int_equal(actor_named(s, names[i]), 0);
    assert_int_equal(actor_named(s, "model"), 0);
    generate(s, m, &some, &late);
    assert_int_not_equal(late.code, 0);
    assert_non_null(strstr(late.error, "model"));
    weir_model_free(m);
    weir_system_free(s);
}

static void those_who_wait_hear_why_the_model_ended(void **state) {
    (void)state;
    weir_system *s = new_system(WEIR_DRIVER_TEST, 9);
    members m = load_members(s, LLAMA, 0, 10); /* bears none */
    answer asked = {0};
    weir_kill(s, m.policy);
    assert_int_equal(weir_call(weir_main_actor(s), m.model, weir_intern(s, "info"), NULL, -1, on_answer, &asked, NULL), WEIR_OK);
    assert_int_equal(weir_system_run(s, answer_ended, &asked, NULL), WEIR_OK);
    assert_true(asked.code == WEIR_EEXITED || asked.code == WEIR_ENOACTOR);
    weir_system_free(s);
}

static void deaths_far_apart_are_borne(void **state) {
    (void)state;
    weir_system *s = new_system(WEIR_DRIVER_TEST, 9);
    members m = load_members(s, LLAMA, 1, 10);
    for (int i = 0; i < 6; i++) {
        m = ask_members(s, m.model);
        weir_kill(s, m.stepper);
        m = ask_members(s, m.model);
        ticks t = {1};
        uint64_t id;
        assert_int_equal(weir_timer(weir_main_actor(s), INT64_C(6000000000), WEIR_TIMER_ONCE, tick, &t, &id), WEIR_OK);
        assert_int_equal(weir_system_run(s, ticked, &t, NULL), WEIR_OK); /* the virtual clock jumps */
    }
    weir_system_free(s);
}

static void a_model_is_freed_while_an_actor_restarts(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        weir_system *s = new_system(WEIR_DRIVER_TEST, seed);
        weir_model *m = load(s, NULL);
        generation g = {0};
        killer k = {s, names[seed % NAMES], 0};
        kill_all_named(&k);
        assert_int_equal(weir_generate(m, &some, generation_piece, generation_done, &g, NULL, NULL), WEIR_OK);
        turns t = {s, &g, (unsigned)(seed % 31)};
        assert_int_equal(weir_system_run(s, turns_over, &t, NULL), WEIR_OK);
        weir_model_free(m);
        assert_true(g.ended);
        weir_system_free(s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whoever_dies_in_mid_generation_the_next_one_is_right),
        cmocka_unit_test(whenever_they_die_the_next_one_is_right),
        cmocka_unit_test(down_is_at_once_and_the_restart_waits_for_the_drain),
        cmocka_unit_test(a_request_made_meanwhile_waits_and_is_right),
        cmocka_unit_test(a_stream_that_does_not_drain_is_quarantined_and_the_model_goes_on),
        cmocka_unit_test(a_stalled_generation_outlives_the_policy_and_residency),
        cmocka_unit_test(the_units_of_a_dead_policy_are_given_back),
        cmocka_unit_test(residency_encodes_long_texts_again_after_its_restart),
        cmocka_unit_test(a_model_whose_actors_die_too_often_ends_and_says_why),
        cmocka_unit_test(those_who_wait_hear_why_the_model_ended),
        cmocka_unit_test(deaths_far_apart_are_borne),
        cmocka_unit_test(a_model_is_freed_while_an_actor_restarts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
