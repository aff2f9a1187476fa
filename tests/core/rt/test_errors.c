/* Errors: the table of codes, objects, chains, the form they take as bodies. */
#include "fixture.h"

static void codes_have_names_texts_and_statuses(void **state) {
    (void)state;
    assert_string_equal(weir_code_name(WEIR_EFULL), "EFULL");
    assert_string_equal(weir_code_name(WEIR_OK), "OK");
    assert_string_equal(weir_code_name(-1), "?");
    assert_string_equal(weir_code_name(WEIR_CODES), "?");
    assert_int_equal(weir_code_http(WEIR_ENOACTOR), 404);
    assert_int_equal(weir_code_http(99999), 500);
    assert_true(weir_code_retry(WEIR_EFULL));
    assert_false(weir_code_retry(WEIR_EINVAL));
    for (int i = 1; i < WEIR_CODES; i++)
        assert_true(weir_code_name(i)[0] == 'E' && weir_code_text(i)[0] && weir_code_http(i) >= 400);
}

static void an_error_keeps_its_chain(void **state) {
    (void)state;
    weir_error *root = weir_error_new(WEIR_ENOENT, "disk", NULL, "no %s", "file");
    weir_error *e = weir_error_new(WEIR_EFORMAT, NULL, root, "cannot load %d", 7);
    weir_error *again = weir_error_ref(e);
    weir_error_free(e);
    assert_int_equal(weir_error_code(again), WEIR_EFORMAT);
    assert_string_equal(weir_error_text(again), "cannot load 7");
    assert_null(weir_error_actor(again));
    assert_string_equal(weir_error_actor(weir_error_cause(again)), "disk");
    assert_string_equal(weir_error_text(weir_error_cause(again)), "no file");
    assert_null(weir_error_cause(weir_error_cause(again)));
    weir_error_free(again);
}

static void no_error_is_harmless(void **state) {
    (void)state;
    assert_int_equal(weir_error_code(NULL), WEIR_OK);
    assert_string_equal(weir_error_text(NULL), "no error");
    assert_null(weir_error_actor(NULL));
    assert_null(weir_error_cause(NULL));
    assert_null(weir_error_ref(NULL));
    weir_error_free(NULL);
    assert_int_equal(weir_fail(NULL, WEIR_EBUSY, "x"), WEIR_EBUSY);
}

static void a_long_chain_is_freed_without_recursion(void **state) {
    (void)state;
    weir_error *e = NULL;
    for (int i = 0; i < 200000; i++)
        e = weir_error_new(WEIR_EIO, NULL, e, "%d", i);
    weir_error_free(e);
}

static void an_error_travels_as_a_body(void **state) {
    (void)state;
    fixture f;
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    weir_error *cause = weir_error_new(WEIR_ENOENT, NULL, NULL, "no file"),
               *e = weir_error_new(WEIR_EFORMAT, "loader", cause, "cannot load");
    weir_body *b = weir__error_pack(f.s, e);
    weir_error_free(e);
    e = weir__error_unpack(b);
    weir_body_free(b);
    assert_int_equal(weir_error_code(e), WEIR_EFORMAT);
    assert_string_equal(weir_error_text(e), "cannot load");
    assert_string_equal(weir_error_actor(e), "loader");
    assert_string_equal(weir_error_text(weir_error_cause(e)), "no file");
    weir_error_free(e);
    e = weir_error_new(WEIR_EIO, NULL, NULL, "alone");
    b = weir__error_pack(f.s, e);
    weir_error_free(e);
    e = weir__error_unpack(b);
    weir_body_free(b);
    assert_null(weir_error_actor(e));
    assert_null(weir_error_cause(e));
    weir_error_free(e);
    fixture_close(&f);
}

static void a_body_that_is_no_error_is_said_to_be_none(void **state) {
    (void)state;
    fixture f;
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    weir_body *bodies[] = {weir_pack(f.s, ""),           weir_pack(f.s, "i", INT64_C(3)),      weir_pack(f.s, "nnnnn"),
                           weir_pack(f.s, "snnnn", "x"), weir_pack(f.s, "i[]nnn", INT64_C(3)), weir_pack(f.s, "isnnn", INT64_C(-3), "x")};
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        weir_error *e = weir__error_unpack(bodies[i]);
        assert_int_equal(weir_error_code(e), WEIR_EMSGPACK);
        weir_error_free(e);
        weir_body_free(bodies[i]);
    }
    weir_error *e = weir__error_unpack(NULL);
    assert_int_equal(weir_error_code(e), WEIR_EMSGPACK);
    weir_error_free(e);
    fixture_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_have_names_texts_and_statuses),
        cmocka_unit_test(an_error_keeps_its_chain),
        cmocka_unit_test(no_error_is_harmless),
        cmocka_unit_test(a_long_chain_is_freed_without_recursion),
        cmocka_unit_test(an_error_travels_as_a_body),
        cmocka_unit_test(a_body_that_is_no_error_is_said_to_be_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
