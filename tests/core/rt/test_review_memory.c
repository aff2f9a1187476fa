/* Memory that runs out anywhere in a scene between loops, on threads and by the test driver's choice, with each policy of full mailboxes: nothing is lost, nothing
 * is counted twice, the run ends. */
#include "fixture.h"

enum { ACTORS = 4, SEEDS = 4, ALLOCATIONS = 110, PATIENCE = 20000000 };

typedef struct member {
    weir_address other;
    outcome waited, deferred;
    int64_t downs;
} member;

static void on_echo(weir_actor *self, const weir_message *m) {
    weir_reply(self, m, weir_body_ref(weir_message_body(m)));
}

static void on_defer(weir_actor *self, const weir_message *m) {
    weir_defer(self, m);
}

static void waited(weir_actor *self, void *data, const weir_message *reply, const weir_error *error) {
    record_outcome(self, data, reply, error);
    weir_unhold(self);
}

/* Everything that goes to another loop, whatever of it succeeds. */
static void on_go(weir_actor *self, const weir_message *m) {
    member *s = weir_state(self);
    weir_system *system = weir_system_of(self);
    (void)m;
    weir_monitor(self, s->other);
    weir_link(self, s->other);
    weir_want_space(self, s->other);
    weir_send(self, s->other, weir_intern(system, "nobody handles this"), weir_pack(system, "is", (int64_t)1, "abc"));
    weir_hold(self);
    if (weir_call(self, s->other, weir_intern(system, "echo"), weir_pack(system, "i", (int64_t)3), PATIENCE, waited, &s->waited, NULL))
        weir_unhold(self);
    weir_call(self, s->other, weir_intern(system, "defer"), NULL, PATIENCE, record_outcome, &s->deferred, NULL);
    weir_unlink(self, s->other);
    weir_demonitor(self, s->other);
    weir_monitor(self, s->other);
}

static void on_fail(weir_actor *self, const weir_message *m) {
    (void)m;
    weir_exit(self, weir_error_new(WEIR_EIO, "failing", NULL, "no disk"));
}

static void on_down(weir_actor *self, weir_address who, const weir_error *why) {
    (void)who, (void)why;
    ((member *)weir_state(self))->downs++;
}

static const weir_handler handlers[] = {{"echo", on_echo}, {"defer", on_defer}, {"go", on_go}, {"fail", on_fail}, {NULL, NULL}};
static const weir_behaviour behaviour = {.name = "member", .handlers = handlers, .down = on_down};

static void scene(fixture *f, enum weir_full full, bool quiet) {
    static member members[ACTORS];
    weir_address at[ACTORS] = {0};
    outcome o = {0};
    static const char *const verbs[] = {"go", "echo", "go", "fail"};
    memset(members, 0, sizeof members);
    for (int i = 0; i < ACTORS; i++) {
        weir_spawn_options options = {.loop = WEIR_LOOP_MAIN + i % 3, .full = full, .mailbox_messages = 2};
        weir_spawn(f->s, &behaviour, &members[i], &options, &at[i], NULL);
    }
    for (int i = 0; i < ACTORS; i++)
        members[i].other = at[(i + 1) % ACTORS];
    for (int k = 0; k < 4; k++) {
        weir_verb verb = weir_intern(f->s, verbs[k]);
        for (int i = 0; i < ACTORS && verb; i += k == 3 ? ACTORS : 1)
            if (k % 2 == 0 || weir_call(f->main, at[i], verb, NULL, PATIENCE, record_outcome, &o, NULL) != WEIR_OK)
                weir_send(f->main, at[i], verb, NULL);
        if (quiet || k < 2)
            fixture_run(f);
    }
}

static void with_policy(enum weir_full full) {
    for (uint64_t seed = 0; seed < SEEDS; seed++)
        for (uint64_t n = 1; n < ALLOCATIONS; n++) {
            fixture f = {0};
            weir_system_options o = {
                .driver = seed ? WEIR_DRIVER_TEST : WEIR_DRIVER_EV, .seed = seed, .workers = 2, .alloc = counter_alloc};
            o.alloc_data = &f.memory;
            assert_int_equal(weir_system_new(&o, &f.s, NULL), WEIR_OK);
            f.main = weir_main_actor(f.s);
            assert_int_equal(weir__inject_arm(f.s, "ALLOC", n, 1 + n % 3), WEIR_OK);
            scene(&f, full, n % 2);
            if (n % 2) {
                weir_system_stats s = stats_of(f.s);
                assert_int_equal(s.sent, s.handled + s.dead + s.queued);
                assert_int_equal(s.calls, s.calls_ended);
            }
            fixture_close(&f);
        }
}

static void memory_runs_out_where_full_mailboxes_refuse(void **state) {
    (void)state;
    with_policy(WEIR_FULL_REFUSE);
}

static void memory_runs_out_where_full_mailboxes_drop_the_oldest(void **state) {
    (void)state;
    with_policy(WEIR_FULL_DROP_OLDEST);
}

static void memory_runs_out_where_full_mailboxes_drop_the_newest(void **state) {
    (void)state;
    with_policy(WEIR_FULL_DROP_NEWEST);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_runs_out_where_full_mailboxes_refuse),
        cmocka_unit_test(memory_runs_out_where_full_mailboxes_drop_the_oldest),
        cmocka_unit_test(memory_runs_out_where_full_mailboxes_drop_the_newest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
