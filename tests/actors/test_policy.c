/* test_policy.c: the stepper against policies of all kinds: one that grants nothing but the static modules gives the same bits, asked in the order of the contract;
 * one that fails at any verb is told of one abort, the caller of the error, and the next pass is right. */
#include "pass_fixture.h"

enum { UNITS = 3 };
static const int32_t prompt[] = {1, 20, 30, 40, 50, 60, 70};

/* A policy that asks for every unit, writes down what it is asked, and fails where it is told to. */
typedef struct asking {
    weir__buffer *blobs[UNITS + 1];
    char log[1024];
    const char *fail_at; /* verb */
    int64_t fail_unit;   /* for acquire and complete */
    bool dies;           /* in the next begin */
    int aborts;
    int64_t aborted_lease; /* -1: none */
} asking;

static void note(asking *p, const char *verb, int64_t unit) {
    size_t n = strlen(p->log);
    snprintf(p->log + n, sizeof p->log - n, unit < 0 ? "%s " : "%s%lld ", verb, (long long)unit);
}

static bool failing(weir_actor *self, const weir_message *m, const char *verb, int64_t unit) {
    asking *p = weir_state(self);
    note(p, verb, unit);
    if (!p->fail_at || strcmp(p->fail_at, verb) != 0 || (unit >= 0 && unit != p->fail_unit))
        return false;
    p->fail_at = NULL;
    weir_reply_error(self, m, weir_error_new(WEIR_EINJECTED, NULL, NULL, "policy fails in %s", verb));
    return true;
}

static int64_t first_int(const weir_message *m) {
    int64_t v = -1;
    weir_cursor c = weir_read(weir_message_body(m), NULL);
    weir_read_int(&c, &v);
    return v;
}

static weir_handle blob(asking *p, int64_t unit) {
    return (weir_handle){&weir__buffer_handle, weir__buffer_ref(p->blobs[unit])};
}

static void on_begin(weir_actor *self, const weir_message *m) {
    asking *p = weir_state(self);
    if (p->dies)
        weir_exit(self, weir_error_new(WEIR_EINJECTED, NULL, NULL, "the policy dies"));
    else if (!failing(self, m, "begin", -1))
        weir_reply(self, m, weir_pack(weir_system_of(self), "i[[i[h]]]", INT64_C(1), (int64_t)UNITS, blob(p, UNITS)));
}
static void on_acquire(weir_actor *self, const weir_message *m) {
    int64_t unit = first_int(m);
    if (!failing(self, m, "acquire", unit))
        weir_reply(self, m, weir_pack(weir_system_of(self), "h", blob(weir_state(self), unit)));
}
static void on_complete(weir_actor *self, const weir_message *m) {
    if (!failing(self, m, "complete", first_int(m)))
        weir_reply(self, m, NULL);
}
static void on_finish(weir_actor *self, const weir_message *m) {
    if (!failing(self, m, "finish", -1))
        weir_reply(self, m, NULL);
}
static void on_abort(weir_actor *self, const weir_message *m) {
    asking *p = weir_state(self);
    p->aborts++;
    p->aborted_lease = first_int(m);
    weir_reply(self, m, NULL);
}
static const weir_handler handlers[] = {{"begin", on_begin},   {"acquire", on_acquire}, {"complete", on_complete},
                                        {"finish", on_finish}, {"abort", on_abort},     {NULL, NULL}};
static const weir_behaviour asking_behaviour = {.name = "asking", .handlers = handlers};

typedef struct bench {
    weir_system *system;
    weir__device *device;
    weir__checkpoint *checkpoint;
    weir_address residency, policy, experts, stepper;
    asking asking;
} bench;

static void *handle_of(const answer *a, const char *type) {
    void *object = NULL;
    weir_cursor c = weir_read(a->body, NULL);
    if (a->code)
        fail_msg("%s", a->error);
    assert_true(weir_read_handle(&c, type, &object));
    return object;
}

static void bench_open(bench *b, enum weir_driver driver) {
    *b = (bench){.system = new_system(driver, 1)};
    weir_system *s = b->system;
    assert_int_equal(weir__device_open(s, "cpu", 2, &b->device, NULL), WEIR_OK);
    assert_int_equal(weir__residency_spawn(s, b->device, NULL, &b->residency, NULL), WEIR_OK);
    answer a = ask(s, b->residency, "open", weir_pack(s, "s", LLAMA));
    b->checkpoint = weir__checkpoint_ref(handle_of(&a, "checkpoint"));
    weir_body_free(a.body);
    for (int64_t u = 0; u <= UNITS; u++) {
        a = ask(s, b->residency, "fetch", weir_pack(s, "i", u));
        b->asking.blobs[u] = weir__buffer_ref(handle_of(&a, "buffer"));
        weir_body_free(a.body);
    }
    assert_int_equal(weir_spawn(s, &asking_behaviour, &b->asking, NULL, &b->policy, NULL), WEIR_OK);
    assert_int_equal(weir__experts_spawn(s, b->device, &b->experts, NULL), WEIR_OK);
    weir__stepper_options o = {{.tile = 4, .context = 64}, b->policy, b->experts};
    assert_int_equal(weir__stepper_spawn(s, b->device, b->checkpoint, &o, &b->stepper, NULL), WEIR_OK);
    a = ask(s, b->stepper, "prepare", NULL);
    assert_int_equal(a.code, 0);
}

static void bench_close(bench *b) {
    weir__checkpoint_unref(b->checkpoint);
    for (int u = 0; u <= UNITS; u++)
        weir__buffer_unref(b->asking.blobs[u]);
    weir_system_free(b->system);
}

static answer bench_pass(bench *b, uint64_t sequence) {
    run r = {sequence, 0, prompt, 7, "all"};
    return ask_pass(b->system, b->stepper, &r, 1);
}

static float *resident_logits(size_t *bytes) {
    weir_system *s = new_system(WEIR_DRIVER_EV, 0);
    weir_load_options o = {.threads = 2};
    weir_model *m = load(s, &o);
    weir_address stepper = actor_named(s, "stepper");
    run r = {open_sequence(s, stepper), 0, prompt, 7, "all"};
    answer a = ask_pass(s, stepper, &r, 1);
    const float *logits = logits_of(&a, bytes);
    float *copy = malloc(*bytes);
    memcpy(copy, logits, *bytes);
    weir_body_free(a.body);
    weir_model_free(m);
    weir_system_free(s);
    return copy;
}

static void same_as_resident(const answer *a) {
    size_t want_bytes, bytes;
    float *want = resident_logits(&want_bytes);
    const float *got = logits_of(a, &bytes);
    assert_int_equal(bytes, want_bytes);
    assert_memory_equal(got, want, bytes);
    free(want);
}

static void a_policy_that_is_asked_for_every_unit_gives_the_same_bits(void **state) {
    (void)state;
    for (int driver = WEIR_DRIVER_EV; driver <= WEIR_DRIVER_TEST; driver++) {
        bench b;
        bench_open(&b, driver);
        answer a = bench_pass(&b, open_sequence(b.system, b.stepper));
        same_as_resident(&a);
        weir_body_free(a.body);
        assert_string_equal(b.asking.log, "begin acquire0 complete0 acquire1 complete1 acquire2 complete2 finish ");
        assert_int_equal(b.asking.aborts, 0);
        bench_close(&b);
    }
}

static void a_fault_in_any_verb_is_one_abort_and_the_next_pass_is_right(void **state) {
    (void)state;
    static const struct {
        const char *verb;
        int64_t unit;
    } faults[] = {{"begin", -1}, {"acquire", 0}, {"acquire", 2}, {"complete", 0}, {"complete", 1}, {"finish", -1}};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        bench b;
        bench_open(&b, i % 2 ? WEIR_DRIVER_TEST : WEIR_DRIVER_EV);
        uint64_t sequence = open_sequence(b.system, b.stepper);
        b.asking.fail_at = faults[i].verb;
        b.asking.fail_unit = faults[i].unit;
        answer a = bench_pass(&b, sequence);
        assert_int_equal(a.code, WEIR_EINJECTED);
        assert_non_null(strstr(a.error, faults[i].verb));
        assert_int_equal(b.asking.aborts, 1);
        assert_int_equal(b.asking.aborted_lease, -1);
        a = bench_pass(&b, sequence);
        same_as_resident(&a);
        assert_int_equal(b.asking.aborts, 1);
        weir_body_free(a.body);
        bench_close(&b);
    }
}

static void a_kernel_that_fails_under_a_lease_is_one_abort(void **state) {
    (void)state;
    for (uint64_t nth = 1; nth <= 6; nth++) {
        bench b;
        bench_open(&b, nth % 2 ? WEIR_DRIVER_TEST : WEIR_DRIVER_EV);
        uint64_t sequence = open_sequence(b.system, b.stepper);
        weir__inject_arm(b.system, "KERNEL", nth, 1);
        answer a = bench_pass(&b, sequence);
        assert_int_equal(a.code, WEIR_EDEVICE);
        assert_int_equal(b.asking.aborts, 1);
        a = bench_pass(&b, sequence);
        same_as_resident(&a);
        weir_body_free(a.body);
        bench_close(&b);
    }
}

/* The sequences stay: they are the stepper's. */
static void a_policy_that_dies_fails_the_pass_and_later_ones_wait_for_another(void **state) {
    (void)state;
    for (int driver = WEIR_DRIVER_EV; driver <= WEIR_DRIVER_TEST; driver++) {
        bench b;
        bench_open(&b, driver);
        weir_system *s = b.system;
        uint64_t sequence = open_sequence(s, b.stepper);
        b.asking.dies = true;
        answer a = bench_pass(&b, sequence), waiting = {0};
        assert_int_equal(a.code, WEIR_EEXITED);
        assert_non_null(strstr(a.error, "asking"));
        b.asking.dies = false;
        run r = {sequence, 0, prompt, 7, "all"};
        assert_int_equal(
            weir_call(weir_main_actor(s), b.stepper, weir_intern(s, "pass"), pass_body(s, &r, 1), -1, on_answer, &waiting, NULL), WEIR_OK);
        assert_int_equal(ask(s, b.stepper, "cancel", weir_pack(s, "i", INT64_C(77))).code, 0);
        assert_false(waiting.ended);
        assert_int_equal(weir_spawn(s, &asking_behaviour, &b.asking, NULL, &b.policy, NULL), WEIR_OK);
        assert_int_equal(ask(s, b.stepper, "use", weir_pack(s, "{su}", "policy", b.policy)).code, 0);
        assert_int_equal(weir_system_run(s, answer_ended, &waiting, NULL), WEIR_OK);
        same_as_resident(&waiting);
        weir_body_free(waiting.body);
        bench_close(&b);
    }
}

static void another_policy_takes_over_between_two_passes(void **state) {
    (void)state;
    bench b;
    bench_open(&b, WEIR_DRIVER_EV);
    weir_system *s = b.system;
    asking second = {.fail_at = NULL};
    weir_address other;
    memcpy(second.blobs, b.asking.blobs, sizeof second.blobs);
    uint64_t sequence = open_sequence(s, b.stepper);
    assert_int_equal(weir_spawn(s, &asking_behaviour, &second, NULL, &other, NULL), WEIR_OK);
    answer under_way = {0};
    run r = {sequence, 0, prompt, 7, "all"};
    assert_int_equal(weir_call(weir_main_actor(s), b.stepper, weir_intern(s, "pass"), pass_body(s, &r, 1), -1, on_answer, &under_way, NULL),
                     WEIR_OK);
    assert_int_equal(ask(s, b.stepper, "use", weir_pack(s, "{su}", "policy", other)).code, 0);
    assert_int_equal(weir_system_run(s, answer_ended, &under_way, NULL), WEIR_OK);
    same_as_resident(&under_way);
    assert_string_equal(second.log, ""); /* the pass that had begun is the first one's to its end */
    answer a = bench_pass(&b, sequence);
    same_as_resident(&a);
    assert_string_equal(second.log, b.asking.log);
    weir_body_free(under_way.body);
    weir_body_free(a.body);
    bench_close(&b);
}

static void a_pass_beyond_what_is_written_is_refused(void **state) {
    (void)state;
    bench b;
    bench_open(&b, WEIR_DRIVER_EV);
    run r = {open_sequence(b.system, b.stepper), 5, prompt, 2, "all"};
    answer a = ask_pass(b.system, b.stepper, &r, 1);
    assert_int_equal(a.code, WEIR_ESTATE);
    assert_non_null(strstr(a.error, "position 5"));
    bench_close(&b);
}

static void one_bad_run_does_not_fail_the_others(void **state) {
    (void)state;
    bench b;
    bench_open(&b, WEIR_DRIVER_EV);
    int32_t many[70] = {0};
    run runs[] = {{open_sequence(b.system, b.stepper), 0, many, 70, "all"}, {open_sequence(b.system, b.stepper), 0, prompt, 7, "all"}};
    answer a = ask_pass(b.system, b.stepper, runs, 2);
    same_as_resident(&a);
    weir_cursor errors;
    uint32_t n = 0;
    assert_true(weir_read_find(weir__options(a.body, 0), "errors", &errors) && weir_read_array(&errors, &n));
    assert_int_equal(n, 1);
    weir_body_free(a.body);
    bench_close(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_policy_that_is_asked_for_every_unit_gives_the_same_bits),
        cmocka_unit_test(a_fault_in_any_verb_is_one_abort_and_the_next_pass_is_right),
        cmocka_unit_test(a_kernel_that_fails_under_a_lease_is_one_abort),
        cmocka_unit_test(a_policy_that_dies_fails_the_pass_and_later_ones_wait_for_another),
        cmocka_unit_test(another_policy_takes_over_between_two_passes),
        cmocka_unit_test(a_pass_beyond_what_is_written_is_refused),
        cmocka_unit_test(one_bad_run_does_not_fail_the_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
