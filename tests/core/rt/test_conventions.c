/* What holds without being said: default deadlines, bounds, loops. */
#include "fixture.h"

enum { MS = 1000000 };

static void never(weir_actor *self, const weir_message *m) {
    if (weir_message_is_call(m))
        weir_defer(self, m);
}

static const weir_behaviour silent = {.name = "silent", .receive = never};

static void a_call_without_a_deadline_has_30_seconds(void **state) {
    (void)state;
    fixture f;
    outcome o = {0};
    fixture_open(&f, WEIR_DRIVER_TEST, 0);
    fixture_call(&f, fixture_spawn(&f, &silent, NULL), "ask", 0, 0, &o);
    fixture_run(&f);
    assert_int_equal(o.ended, 1);
    assert_int_equal(o.code, WEIR_ETIMEOUT);
    assert_int_equal(weir_now(f.s), INT64_C(30000) * MS);
    fixture_close(&f);
}

static void a_mailbox_takes_1024_messages_and_16_MiB(void **state) {
    (void)state;
    fixture f;
    fixture_open(&f, WEIR_DRIVER_TEST, 0);
    weir_address many = fixture_spawn(&f, &silent, NULL), large = fixture_spawn(&f, &silent, NULL);
    for (int i = 0; i < 1024; i++)
        fixture_send(&f, many, "item", i);
    assert_int_equal(weir_send(f.main, many, weir_intern(f.s, "item"), NULL), WEIR_EFULL);
    static char megabyte[1 << 20];
    for (int i = 0; i < 15; i++)
        assert_int_equal(weir_send(f.main, large, weir_intern(f.s, "item"), weir_pack(f.s, "b", megabyte, sizeof megabyte)), WEIR_OK);
    assert_int_equal(weir_send(f.main, large, weir_intern(f.s, "item"), weir_pack(f.s, "b", megabyte, sizeof megabyte - 64 * 16)), WEIR_OK);
    assert_int_equal(weir_send(f.main, large, weir_intern(f.s, "item"), weir_pack(f.s, "b", megabyte, (size_t)1024)), WEIR_EFULL);
    fixture_run(&f);
    fixture_close(&f);
}

static void a_system_has_one_loop(void **state) {
    (void)state;
    weir_system *s;
    assert_int_equal(weir_system_new(NULL, &s, NULL), WEIR_OK);
    assert_int_equal(weir_loops(s), 1);
    weir_system_free(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_without_a_deadline_has_30_seconds),
        cmocka_unit_test(a_mailbox_takes_1024_messages_and_16_MiB),
        cmocka_unit_test(a_system_has_one_loop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
