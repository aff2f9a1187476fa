/* Messages: order, sharing, bounds, accounting, dead letters, traces. */
#include "fixture.h"

typedef struct sink {
    int64_t seen[4096];
    size_t count;
    const void *bytes; /* of the last body */
} sink;

static void on_number(weir_actor *self, const weir_message *m) {
    sink *k = weir_state(self);
    k->bytes = weir_body_bytes(weir_message_body(m), NULL);
    k->seen[k->count++ % 4096] = first_int(m);
}

static const weir_handler handlers[] = {{"number", on_number}, {NULL, NULL}};
static const weir_behaviour sink_behaviour = {.name = "sink", .handlers = handlers};

static void messages_of_one_sender_arrive_in_order(void **state) {
    (void)state;
    fixture f;
    sink k = {0};
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    weir_address a = fixture_spawn(&f, &sink_behaviour, &k);
    for (int i = 0; i < 1000; i++)
        fixture_send(&f, a, "number", i);
    fixture_run(&f);
    assert_int_equal(k.count, 1000);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(k.seen[i], i);
    fixture_close(&f);
}

static void a_body_is_shared_by_its_receivers(void **state) {
    (void)state;
    fixture f;
    sink a = {0}, b = {0};
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    weir_address to[2] = {fixture_spawn(&f, &sink_behaviour, &a), fixture_spawn(&f, &sink_behaviour, &b)};
    weir_body *body = weir_pack(f.s, "i", INT64_C(7));
    for (int i = 0; i < 2; i++)
        assert_int_equal(weir_send(f.main, to[i], weir_intern(f.s, "number"), weir_body_ref(body)), WEIR_OK);
    fixture_run(&f);
    assert_ptr_equal(a.bytes, weir_body_bytes(body, NULL));
    assert_ptr_equal(b.bytes, weir_body_bytes(body, NULL));
    assert_int_equal(a.seen[0], 7);
    weir_body_free(body);
    fixture_close(&f);
}

static void a_full_mailbox_refuses(void **state) {
    (void)state;
    fixture f;
    sink k = {0};
    weir_address a;
    weir_spawn_options o = {.name = "small", .mailbox_messages = 3};
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    assert_int_equal(weir_spawn(f.s, &sink_behaviour, &k, &o, &a, NULL), WEIR_OK);
    for (int i = 0; i < 3; i++)
        fixture_send(&f, a, "number", i);
    assert_int_equal(weir_send(f.main, a, weir_intern(f.s, "number"), weir_pack(f.s, "i", INT64_C(3))), WEIR_EFULL);
    weir_actor_stats stats;
    assert_int_equal(weir_actor_get_stats(f.s, a, &stats), WEIR_OK);
    assert_int_equal(stats.queued, 3);
    assert_int_equal(stats.queued_peak, 3);
    assert_int_equal(stats.refused, 1);
    assert_string_equal(stats.name, "small");
    assert_int_equal(stats_of(f.s).refused, 1);
    fixture_run(&f);
    assert_int_equal(k.count, 3);
    fixture_close(&f);
}

static void bytes_bound_a_mailbox_too(void **state) {
    (void)state;
    fixture f;
    sink k = {0};
    weir_address a;
    weir_spawn_options o = {.mailbox_bytes = 250};
    char text[100] = {0};
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    assert_int_equal(weir_spawn(f.s, &sink_behaviour, &k, &o, &a, NULL), WEIR_OK);
    weir_verb verb = weir_intern(f.s, "number");
    for (int i = 0; i < 2; i++)
        assert_int_equal(weir_send(f.main, a, verb, weir_pack(f.s, "b", text, sizeof text)), WEIR_OK);
    assert_int_equal(weir_send(f.main, a, verb, weir_pack(f.s, "b", text, sizeof text)), WEIR_EFULL);
    assert_int_equal(weir_send(f.main, a, verb, NULL), WEIR_OK);
    fixture_run(&f);
    assert_int_equal(k.count, 3);
    fixture_close(&f);
}

/* 16 places, 50 messages, drained, 50 more: delivery resumes. */
static void actors_A15(void **state) {
    (void)state;
    fixture f;
    sink k = {0};
    weir_address a;
    weir_spawn_options o = {.mailbox_messages = 16};
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    assert_int_equal(weir_spawn(f.s, &sink_behaviour, &k, &o, &a, NULL), WEIR_OK);
    for (int round = 1; round <= 2; round++) {
        int accepted = 0;
        for (int i = 0; i < 50; i++)
            accepted += weir_send(f.main, a, weir_intern(f.s, "number"), NULL) == WEIR_OK;
        assert_int_equal(accepted, 16);
        fixture_run(&f);
        assert_int_equal(k.count, 16 * round);
    }
    fixture_close(&f);
}

/* With bodies and without, some dropped by the end of a receiver: what a mailbox counts returns to exactly 0. */
static void actors_A43(void **state) {
    (void)state;
    fixture f;
    sink k = {0};
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    weir_address a = fixture_spawn(&f, &sink_behaviour, &k), b = fixture_spawn(&f, &sink_behaviour, &k);
    weir_verb verb = weir_intern(f.s, "number"), unknown = weir_intern(f.s, "unknown");
    for (int i = 0; i < 300; i++) {
        weir_body *body = i % 3 ? weir_pack(f.s, "ib", (int64_t)i, "xxxxxxxxxxxxxxxx", (size_t)(i % 17)) : NULL;
        weir_send(f.main, a, i % 7 ? verb : unknown, weir_body_ref(body));
        weir_send(f.main, b, verb, body);
    }
    weir_actor_stats stats;
    weir_actor_get_stats(f.s, a, &stats);
    assert_true(stats.queued_bytes > 0);
    weir_kill(f.s, b);
    fixture_run(&f);
    weir_actor_get_stats(f.s, a, &stats);
    assert_int_equal(stats.queued, 0);
    assert_int_equal(stats.queued_bytes, 0);
    assert_int_equal(stats.handled + stats.dead, 300);
    weir_system_stats all = stats_of(f.s);
    assert_int_equal(all.queued, 0);
    assert_int_equal(all.sent, 600);
    assert_int_equal(all.handled + all.dead, 600);
    fixture_close(&f);
}

typedef struct trace {
    int dead, sends, why;
    char verb[32];
} trace;

static void on_trace(void *data, enum weir_trace kind, weir_address from, weir_address to, const char *verb, size_t bytes, int why) {
    trace *t = data;
    (void)from, (void)to, (void)bytes;
    t->sends += kind == WEIR_TRACE_SEND;
    if (kind != WEIR_TRACE_DEAD)
        return;
    t->dead++;
    t->why = why;
    snprintf(t->verb, sizeof t->verb, "%s", verb);
}

static void a_verb_that_nobody_handles_is_a_dead_letter(void **state) {
    (void)state;
    fixture f;
    sink k = {0};
    trace t = {0};
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    weir_set_trace(f.s, on_trace, &t);
    fixture_send(&f, fixture_spawn(&f, &sink_behaviour, &k), "nonsense", 1);
    fixture_run(&f);
    assert_int_equal(t.sends, 1);
    assert_int_equal(t.dead, 1);
    assert_int_equal(t.why, WEIR_EVERB);
    assert_string_equal(t.verb, "nonsense");
    assert_int_equal(stats_of(f.s).dead, 1);
    fixture_close(&f);
}

static void mail_of_an_ended_actor_is_a_dead_letter(void **state) {
    (void)state;
    fixture f;
    sink k = {0};
    trace t = {0};
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    weir_set_trace(f.s, on_trace, &t);
    weir_address a = fixture_spawn(&f, &sink_behaviour, &k);
    fixture_send(&f, a, "number", 1);
    assert_int_equal(weir_kill(f.s, a), WEIR_OK);
    assert_int_equal(t.dead, 1);
    assert_int_equal(t.why, WEIR_EKILLED);
    assert_int_equal(weir_send(f.main, a, weir_intern(f.s, "number"), NULL), WEIR_ENOACTOR);
    fixture_close(&f);
}

/* Pumps messages between two actors: when all pools are warm, none of them asks the allocator for anything. */
typedef struct player {
    weir_address other;
    int64_t left;
} player;

static void on_ball(weir_actor *self, const weir_message *m) {
    player *p = weir_state(self);
    if (p->left-- > 0)
        weir_send(self, p->other, weir_message_verb(m),
                  weir_pack(weir_system_of(self), "b", "0123456789012345678901234567890123456789", (size_t)40));
}

static const weir_handler player_handlers[] = {{"ball", on_ball}, {NULL, NULL}};
static const weir_behaviour player_behaviour = {.name = "player", .handlers = player_handlers};

static void a_warm_send_does_not_allocate(void **state) {
    (void)state;
    fixture f;
    player p[2] = {{0, 100}, {0, 100}};
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    weir_address a = fixture_spawn(&f, &player_behaviour, &p[0]), b = fixture_spawn(&f, &player_behaviour, &p[1]);
    p[0].other = b;
    p[1].other = a;
    fixture_send(&f, a, "ball", 0);
    fixture_run(&f);
    p[0].left = p[1].left = 1000;
    fixture_send(&f, a, "ball", 0);
    int64_t before = f.memory.calls;
    fixture_run(&f);
    assert_int_equal(p[0].left, -1);
    assert_int_equal(f.memory.calls, before);
    fixture_close(&f);
}

static void addresses_are_never_reused(void **state) {
    (void)state;
    fixture f;
    sink k = {0};
    weir_address last = 0;
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    for (int i = 0; i < 10000; i++) {
        weir_address a = fixture_spawn(&f, &sink_behaviour, &k);
        assert_true(a > 0 && a < (UINT64_C(1) << 53));
        assert_int_not_equal(a, last);
        assert_int_equal(weir_send(f.main, last, weir_intern(f.s, "number"), NULL), WEIR_ENOACTOR);
        weir_kill(f.s, a);
        last = a;
    }
    fixture_close(&f);
}

/* Addresses that were never handed out, as a wire might bring them. */
static void foreign_addresses_are_no_actors(void **state) {
    (void)state;
    fixture f;
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    const weir_address odd[] = {0, 2, UINT64_C(1) << 29, (UINT64_C(1) << 29) | 1, (UINT64_C(1) << 53) - 1, UINT64_C(1) << 60, UINT64_MAX};
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        assert_int_equal(weir_send(f.main, odd[i], weir_intern(f.s, "x"), NULL), WEIR_ENOACTOR);
        assert_int_equal(weir_kill(f.s, odd[i]), WEIR_ENOACTOR);
        assert_int_equal(weir_stop(f.s, odd[i]), WEIR_ENOACTOR);
    }
    fixture_close(&f);
}

static void verbs_are_interned_once(void **state) {
    (void)state;
    fixture f;
    char name[80];
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    weir_verb first = weir_intern(f.s, "verb 0");
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "verb %d", i);
        weir_verb v = weir_intern(f.s, name);
        assert_int_equal(v, weir_intern(f.s, name));
        assert_string_equal(weir_verb_name(f.s, v), name);
    }
    assert_int_equal(weir_intern(f.s, "verb 0"), first);
    memset(name, 'x', sizeof name);
    name[WEIR_MAX_NAME] = 0;
    assert_int_equal(weir_intern(f.s, name), 0);
    name[WEIR_MAX_NAME - 1] = 0;
    assert_int_not_equal(weir_intern(f.s, name), 0);
    assert_int_equal(weir_intern(f.s, ""), 0);
    assert_string_equal(weir_verb_name(f.s, 0), "?");
    assert_string_equal(weir_verb_name(f.s, 123456), "?");
    fixture_close(&f);
}

typedef struct walk {
    weir_address last;
    int count;
} walk;

static void on_actor(void *data, weir_address a, const weir_actor_stats *stats) {
    walk *w = data;
    assert_true(a > w->last && stats->name[0]);
    w->last = a;
    w->count++;
}

static void actors_are_listed_in_order_of_address(void **state) {
    (void)state;
    fixture f;
    sink k = {0};
    walk w = {0, 0};
    weir_address a[50];
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    for (int i = 0; i < 50; i++)
        a[i] = fixture_spawn(&f, &sink_behaviour, &k);
    for (int i = 0; i < 50; i += 2)
        weir_kill(f.s, a[i]);
    for (int i = 0; i < 10; i++)
        fixture_spawn(&f, &sink_behaviour, &k);
    weir_actors(f.s, on_actor, &w);
    assert_int_equal(w.count, 36);
    fixture_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_of_one_sender_arrive_in_order),
        cmocka_unit_test(a_body_is_shared_by_its_receivers),
        cmocka_unit_test(a_full_mailbox_refuses),
        cmocka_unit_test(bytes_bound_a_mailbox_too),
        cmocka_unit_test(actors_A15),
        cmocka_unit_test(actors_A43),
        cmocka_unit_test(a_verb_that_nobody_handles_is_a_dead_letter),
        cmocka_unit_test(mail_of_an_ended_actor_is_a_dead_letter),
        cmocka_unit_test(a_warm_send_does_not_allocate),
        cmocka_unit_test(addresses_are_never_reused),
        cmocka_unit_test(foreign_addresses_are_no_actors),
        cmocka_unit_test(verbs_are_interned_once),
        cmocka_unit_test(actors_are_listed_in_order_of_address),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
