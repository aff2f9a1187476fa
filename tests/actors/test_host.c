/* test_host.c: a model in a host's loop, by the fd driver and in a host's libev loop: loading and generating take turns with the host's work, which never waits for
 * them. */
#include <ev.h>
#include <poll.h>

#include "model_fixture.h"

static const int32_t prompt[] = {1, 20, 30, 40, 50};
static const weir_generate_options greedy = {.tokens = prompt, .n_tokens = 5, .max_tokens = 100, .ignore_end = true};

/* A host with an actor that answers at once: what a health check is. */
typedef struct host {
    weir_system *s;
    struct ev_loop *loop; /* NULL: driver FD */
    weir_model *m;
    generation g;
    uint64_t request;
    weir_address echo;
    bool asked;
    unsigned answered, during;  /* all; between the begin and the end of the generation */
    unsigned steps, most_steps; /* since the question; the most that any needed */
    bool failed;
} host;

static void on_ask(weir_actor *self, const weir_message *m) {
    weir_reply(self, m, NULL);
}
static const weir_handler handlers[] = {{"ask", on_ask}, {NULL, NULL}};
static const weir_behaviour echo_behaviour = {.name = "echo", .handlers = handlers};

static void on_answer(weir_actor *self, void *data, const weir_message *reply, const weir_error *error) {
    host *h = data;
    (void)self, (void)reply;
    assert_null(error);
    h->asked = false;
    h->answered++;
    h->during += h->request && !h->g.ended;
    if (h->steps > h->most_steps)
        h->most_steps = h->steps;
}

static void ask(host *h) {
    if (h->asked)
        return;
    h->asked = true;
    h->steps = 0;
    weir_actor *main = weir_main_actor(h->s);
    assert_int_equal(weir_call(main, h->echo, weir_intern(h->s, "ask"), NULL, -1, on_answer, h, NULL), WEIR_OK);
}

static void on_ready(void *data, weir_model *m, const weir_error *error) {
    host *h = data;
    h->m = m;
    h->failed = error != NULL;
}

static void host_open(host *h, bool fd) {
    *h = (host){.loop = fd ? NULL : ev_loop_new(EVFLAG_NOENV)};
    weir_system_options o = {.driver = fd ? WEIR_DRIVER_FD : WEIR_DRIVER_EV, .ev_loop = h->loop};
    assert_int_equal(weir_system_new(&o, &h->s, NULL), WEIR_OK);
    assert_int_equal(weir_spawn(h->s, &echo_behaviour, NULL, NULL, &h->echo, NULL), WEIR_OK);
}

/* One round of the host's loop: it asks, and waits for nothing but weir's descriptor (or runs its libev loop once). */
static void round_once(host *h) {
    ask(h);
    h->steps++;
    if (h->loop) {
        ev_run(h->loop, EVRUN_ONCE);
        return;
    }
    struct pollfd p = {weir_system_fd(h->s), POLLIN, 0};
    assert_int_equal(poll(&p, 1, 60000), 1);
    assert_int_equal(weir_system_step(h->s, 0, NULL), WEIR_OK);
}

static void host_load(host *h) {
    assert_int_equal(weir_model_load_async(h->s, LLAMA, NULL, on_ready, h, NULL), WEIR_OK);
    while (!h->m && !h->failed)
        round_once(h);
    assert_false(h->failed);
}

static void host_close(host *h) {
    weir_model_free(h->m);
    weir_system_free(h->s);
    if (!h->loop)
        return;
    ev_run(h->loop, 0); /* returns: nothing is left in it */
    ev_loop_destroy(h->loop);
}

/* Questions are answered while the model generates, each by the host's next or next but one step. */
static void library_J5_questions_are_answered_during_a_generation(void **state) {
    (void)state;
    generation alone = {0};
    weir_system *s = new_system(WEIR_DRIVER_EV, 0);
    weir_model *m = load(s, NULL);
    generate(s, m, &greedy, &alone);
    weir_model_free(m);
    weir_system_free(s);
    for (int fd = 0; fd < 2; fd++) {
        host h;
        host_open(&h, fd);
        host_load(&h);
        assert_true(h.answered > 0);
        assert_int_equal(weir_generate(h.m, &greedy, generation_piece, generation_done, &h.g, &h.request, NULL), WEIR_OK);
        while (!h.g.ended)
            round_once(&h);
        assert_int_equal(h.g.code, 0);
        assert_int_equal(h.g.finish.tokens, 100);
        assert_true(h.during >= 50);
        assert_true(h.most_steps <= 2);
        assert_int_equal(h.g.size, alone.size);
        assert_memory_equal(h.g.text, alone.text, alone.size);
        host_close(&h);
    }
}

static void library_J5_cancel_is_answered_during_a_generation(void **state) {
    (void)state;
    for (int fd = 0; fd < 2; fd++) {
        host h;
        host_open(&h, fd);
        host_load(&h);
        weir_generate_options o = greedy;
        o.max_tokens = 0;
        assert_int_equal(weir_generate(h.m, &o, generation_piece, generation_done, &h.g, &h.request, NULL), WEIR_OK);
        while (h.g.pieces < 3)
            round_once(&h);
        size_t before = (size_t)h.g.pieces; /* a round may bring many on a busy machine */
        weir_cancel(h.m, h.request);
        while (!h.g.ended)
            round_once(&h);
        assert_int_equal(h.g.code, WEIR_ECANCELLED);
        assert_true((size_t)h.g.pieces < before + 20);
        host_close(&h);
    }
}

/* Cancels after so many rounds; how many pieces came all the same. */
static int pieces_after_cancel(int fd, const weir_generate_options *o, int rounds) {
    host h;
    host_open(&h, fd);
    host_load(&h);
    assert_int_equal(weir_generate(h.m, o, generation_piece, generation_done, &h.g, &h.request, NULL), WEIR_OK);
    while (rounds-- > 0)
        round_once(&h);
    weir_cancel(h.m, h.request);
    while (!h.g.ended)
        round_once(&h);
    assert_int_equal(h.g.code, WEIR_ECANCELLED);
    host_close(&h);
    return (int)h.g.pieces;
}

/* A cancel in the prompt: before the first token. On a busy machine the prompt may be done after one round, so it has some attempts, the last ones at once. */
static void library_J3_cancel_takes_effect_in_the_prompt(void **state) {
    (void)state;
    int32_t many[100];
    for (int i = 0; i < 100; i++)
        many[i] = 3 + i;
    weir_generate_options o = {.tokens = many, .n_tokens = 100, .ignore_end = true};
    for (int fd = 0; fd < 2; fd++) {
        int attempts = 20;
        while (pieces_after_cancel(fd, &o, attempts > 10) > 0)
            assert_true(--attempts > 0);
    }
}

static void a_host_may_leave_while_a_model_loads_or_generates(void **state) {
    (void)state;
    for (int i = 0; i < 12; i++) {
        host h;
        host_open(&h, i % 2);
        if (i >= 6) {
            host_load(&h);
            assert_int_equal(weir_generate(h.m, &greedy, generation_piece, generation_done, &h.g, &h.request, NULL), WEIR_OK);
        } else {
            assert_int_equal(weir_model_load_async(h.s, LLAMA, NULL, on_ready, &h, NULL), WEIR_OK);
        }
        for (int n = 0; n < i % 6 * 2; n++)
            round_once(&h);
        bool loading = i < 6 && !h.m;
        host_close(&h);
        if (loading)
            assert_true(h.failed);
        if (i >= 6)
            assert_true(h.g.ended);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(library_J5_questions_are_answered_during_a_generation),
        cmocka_unit_test(library_J5_cancel_is_answered_during_a_generation),
        cmocka_unit_test(library_J3_cancel_takes_effect_in_the_prompt),
        cmocka_unit_test(a_host_may_leave_while_a_model_loads_or_generates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
