/* test_json.c: the JSON reader: what it takes, what it gives, what it refuses and how it says so. */
#include "../../../core/text/json.h"
#include "test.h"

static weir_error *error;

static int teardown(void **state) {
    (void)state;
    weir_error_free(error);
    error = NULL;
    return 0;
}

static weir__json reader(const char *text) {
    weir__json j;
    weir_error_free(error);
    error = NULL;
    weir__json_init(&j, "f.json", text, strlen(text), &error);
    return j;
}

/* Reads a whole text. */
static int check(const char *text, size_t size) {
    weir__json j;
    weir_error_free(error);
    error = NULL;
    weir__json_init(&j, "f.json", text, size, &error);
    return weir__json_finish(&j);
}

#define assert_fine(text) assert_int_equal(check(text, sizeof(text) - 1), WEIR_OK)
#define assert_refused(text) assert_int_equal(check(text, sizeof(text) - 1), WEIR_EFORMAT)
#define assert_error(text, wanted)                                                                                                         \
    do {                                                                                                                                   \
        assert_refused(text);                                                                                                              \
        assert_string_equal(weir_error_text(error), "f.json: " wanted);                                                                    \
    } while (0)

static void every_kind_of_value_is_taken(void **state) {
    (void)state;
    assert_fine(" {\"a\" : [1, -2.5e+3, \"x\", true, false, null, {}, []], \"b\":{\"c\":0}}\r\n\t");
    assert_fine("0");
    assert_fine("\"\"");
    assert_fine("[[[]],[{}]]");
    assert_fine("\"\\u0000\\ud83e\\uDD99\x7F\xF0\x9F\xA6\x99\"");
}

static void malformed_texts_are_refused(void **state) {
    (void)state;
    assert_refused("");
    assert_refused("  ");
    assert_refused("[1,]");
    assert_refused("[,1]");
    assert_refused("[1 2]");
    assert_refused("[1}");
    assert_refused("{\"a\":1,}");
    assert_refused("{\"a\" 1}");
    assert_refused("{\"a\":}");
    assert_refused("{a:1}");
    assert_refused("{1:1}");
    assert_refused("{\"a\":1");
    assert_refused("[1");
    assert_refused("1 1");
    assert_refused("]");
    assert_refused("nul");
    assert_refused("nulls");
    assert_refused("True");
    assert_refused("NaN");
    assert_refused("// x\n1");
    assert_refused("\xEF\xBB\xBF{}");
    assert_refused("1\0");
    assert_refused("[1,\0 2]");
}

static void malformed_numbers_are_refused(void **state) {
    (void)state;
    assert_refused("01");
    assert_refused("-");
    assert_refused("+1");
    assert_refused(".5");
    assert_refused("1.");
    assert_refused("1.e1");
    assert_refused("1e");
    assert_refused("1e+");
    assert_refused("0x10");
    assert_refused("-Infinity");
}

static void malformed_strings_are_refused(void **state) {
    (void)state;
    assert_refused("\"");
    assert_refused("\"abc");
    assert_refused("\"\\\"");
    assert_refused("\"\\x\"");
    assert_refused("\"\\u12\"");
    assert_refused("\"\\u12G4\"");
    assert_refused("\"\\ud800\"");
    assert_refused("\"\\ud800\\u0041\"");
    assert_refused("\"\\udc00\"");
    assert_refused("\"a\nb\"");
    assert_refused("\"\x1F\"");
    assert_refused("\"\xC0\x80\"");
    assert_refused("\"\xED\xA0\x80\"");
    assert_refused("\"\xF4\x90\x80\x80\"");
    assert_refused("\"\xE2\x82\"");
    assert_refused("\"\0\"");
}

static void errors_name_file_line_column_found_and_wanted(void **state) {
    (void)state;
    assert_error("{\n  \"\xC3\xA9\": tru\n}", "line 2, column 8: found \"tru\\x0A}\", wanted true");
    assert_error("[1\n,2", "line 2, column 3: found the end of the text, wanted \",\" or \"]\"");
    assert_error("\"a\\q\"", "line 1, column 3: found \"\\q\"\", wanted an escape that JSON has");
    assert_error("[1] x", "line 1, column 5: found \"x\", wanted the end of the text");
}

static void a_wrong_kind_is_named_with_its_key(void **state) {
    (void)state;
    weir__json_text key;
    int64_t n;
    weir__json j = reader("{\"layers\": \"12\"}");
    weir__json_object(&j);
    assert_true(weir__json_next_key(&j, &key));
    assert_false(weir__json_int(&j, &n));
    assert_string_equal(weir_error_text(error), "f.json: line 1, column 12: \"layers\": found a string, wanted a number");
    j = reader("[1.5]");
    weir__json_array(&j);
    assert_true(weir__json_next(&j));
    assert_false(weir__json_int(&j, &n));
    assert_string_equal(weir_error_text(error), "f.json: line 1, column 2: found 1.5, wanted an integer of 64 bits");
}

static void the_first_failure_sticks(void **state) {
    (void)state;
    weir__json_text key, text;
    bool truth = true;
    weir__json j = reader("{\"a\": 1, \"b\": true}");
    weir__json_object(&j);
    assert_true(weir__json_next_key(&j, &key));
    assert_false(weir__json_string(&j, &text));
    assert_false(weir__json_next_key(&j, &key));
    assert_null(key.data);
    assert_false(weir__json_bool(&j, &truth));
    assert_false(truth);
    assert_false(weir__json_fail(&j, WEIR_EINVAL, "later"));
    assert_int_equal(weir__json_finish(&j), WEIR_EFORMAT);
    assert_non_null(strstr(weir_error_text(error), "\"a\": found a number, wanted a string"));
}

static void values_that_are_not_read_are_skipped(void **state) {
    (void)state;
    weir__json_text key;
    int64_t n = 0;
    weir__json j = reader("{\"a\": {\"x\": [1, {}]}, \"b\": [[2], 3], \"c\": 4}");
    weir__json_object(&j);
    while (weir__json_next_key(&j, &key))
        if (weir__json_equal(key, "c"))
            weir__json_int(&j, &n);
    assert_int_equal(weir__json_finish(&j), WEIR_OK);
    assert_int_equal(n, 4);
}

static void integers_are_exact(void **state) {
    (void)state;
    static const char *const good[] = {"9223372036854775807", "-9223372036854775808", "0", "-0", "9007199254740993"};
    static const int64_t values[] = {INT64_MAX, INT64_MIN, 0, 0, INT64_C(9007199254740993)};
    static const char *const bad[] = {"9223372036854775808", "-9223372036854775809", "18446744073709551616", "1.0", "1e3"};
    int64_t n;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        weir__json j = reader(good[i]);
        assert_true(weir__json_int(&j, &n));
        assert_true(n == values[i]);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        weir__json j = reader(bad[i]);
        assert_false(weir__json_int(&j, &n));
    }
}

static double read_double(const char *text) {
    double x;
    weir__json j = reader(text);
    weir__json_double(&j, &x);
    assert_int_equal(weir__json_finish(&j), WEIR_OK);
    return x;
}

static void doubles_are_rounded_to_nearest(void **state) {
    (void)state;
    assert_true(read_double("1e-05") == 1e-05);
    assert_true(read_double("-12.082191467285156") == -12.082191467285156);
    assert_true(read_double("10000") == 10000);
    assert_true(read_double("1000000000000000019884624838656") == 1e30);
    assert_true(read_double("1e-400") == 0);
    double x;
    weir__json j = reader("1e400");
    assert_false(weir__json_double(&j, &x));
}

static void an_endless_number_is_refused(void **state) {
    (void)state;
    char text[4097];
    memset(text, '1', 4096);
    text[4096] = 0;
    assert_int_equal(check(text, 4096), WEIR_EFORMAT);
}

static void strings_are_unescaped_in_place(void **state) {
    (void)state;
    char text[] = "\"\\u0120a\\ud83e\\udd99\\n\\\\\\/\\u0000\xE2\x96\x81\"";
    static const char wanted[] = "\xC4\xA0"
                                 "a\xF0\x9F\xA6\x99\n\\/\0\xE2\x96\x81";
    weir__json_text s;
    weir__json j;
    weir__json_init(&j, "f.json", text, sizeof text - 1, &error);
    assert_true(weir__json_string(&j, &s));
    assert_true(s.escaped);
    assert_true(weir__json_same(s, wanted, sizeof wanted - 1));
    assert_false(weir__json_same(s, wanted, sizeof wanted - 2));
    assert_false(weir__json_same(s, wanted, sizeof wanted));
    assert_false(weir__json_equal(s, "\xC4\xA0"));
    assert_int_equal(weir__json_unescape(s, text + (s.data - text)), sizeof wanted - 1);
    assert_memory_equal(s.data, wanted, sizeof wanted - 1);
}

static void depth_is_limited(void **state) {
    (void)state;
    char text[2 * WEIR_MAX_DEPTH + 2];
    memset(text, '[', WEIR_MAX_DEPTH);
    memset(text + WEIR_MAX_DEPTH, ']', WEIR_MAX_DEPTH);
    assert_int_equal(check(text, sizeof text - 2), WEIR_OK);
    memset(text, '[', WEIR_MAX_DEPTH + 1);
    memset(text + WEIR_MAX_DEPTH + 1, ']', WEIR_MAX_DEPTH + 1);
    assert_int_equal(check(text, sizeof text), WEIR_EDEPTH);
}

static void a_copy_is_a_bookmark(void **state) {
    (void)state;
    int64_t n;
    double x;
    weir__json j = reader("[7, 8]");
    weir__json_array(&j);
    assert_true(weir__json_next(&j));
    weir__json copy = j;
    assert_true(weir__json_double(&copy, &x));
    assert_true(weir__json_next(&copy));
    assert_true(weir__json_int(&j, &n));
    assert_int_equal(n, 7);
    assert_int_equal(weir__json_peek(&copy), WEIR__JSON_NUMBER);
}

static void a_slice_is_a_value_as_it_stands(void **state) {
    (void)state;
    weir__json_text key;
    weir__string slice;
    weir__json j = reader("{\"a\": {\"b\" : [1, 2] }, \"c\": 3}");
    weir__json_object(&j);
    assert_true(weir__json_next_key(&j, &key));
    assert_true(weir__json_slice(&j, &slice));
    assert_int_equal(slice.size, strlen("{\"b\" : [1, 2] }"));
    assert_memory_equal(slice.data, "{\"b\" : [1, 2] }", slice.size);
    assert_true(weir__json_next_key(&j, &key));
}

static const char config[] =
    "{\"rope_parameters\": {\"rope_theta\": 5e5, \"a\": {\"b\": \"x\"}}, \"rope_scaling\": null, \"n\": 1, \"\\u006e\": 2}";

static void a_path_is_found(void **state) {
    (void)state;
    double x;
    weir__json_text text;
    weir__json j = reader(config), at = j;
    assert_true(weir__json_find(&at, "rope_parameters.rope_theta"));
    assert_true(weir__json_double(&at, &x));
    assert_true(x == 5e5);
    at = j;
    assert_true(weir__json_find(&at, "rope_parameters.a.b"));
    assert_true(weir__json_string(&at, &text));
    assert_true(weir__json_equal(text, "x"));
}

static void an_absent_path_is_no_failure(void **state) {
    (void)state;
    static const char *const absent[] = {"x", "rope_parameters.x", "rope_scaling.factor", "n.x", "rope_parameters.rope_theta.x", "rope",
                                         ""};
    for (size_t i = 0; i < sizeof absent / sizeof absent[0]; i++) {
        weir__json j = reader(config);
        assert_false(weir__json_find(&j, absent[i]));
        assert_int_equal(j.code, WEIR_OK);
    }
}

static void of_equal_keys_the_last_is_found(void **state) {
    (void)state;
    int64_t n;
    weir__json j = reader(config);
    assert_true(weir__json_find(&j, "n"));
    assert_true(weir__json_int(&j, &n));
    assert_int_equal(n, 2);
}

static void finding_checks_what_it_passes(void **state) {
    (void)state;
    weir__json j = reader("{\"a\": 1, \"b\": [1,]}");
    assert_false(weir__json_find(&j, "a"));
    assert_int_equal(j.code, WEIR_EFORMAT);
}

static void null_is_optional(void **state) {
    (void)state;
    int64_t n;
    weir__json j = reader("[null, 3]");
    weir__json_array(&j);
    assert_true(weir__json_next(&j));
    assert_true(weir__json_null(&j));
    assert_true(weir__json_next(&j));
    assert_false(weir__json_null(&j));
    assert_true(weir__json_int(&j, &n));
    assert_false(weir__json_next(&j));
    assert_int_equal(weir__json_finish(&j), WEIR_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_value_is_taken),
        cmocka_unit_test(malformed_texts_are_refused),
        cmocka_unit_test(malformed_numbers_are_refused),
        cmocka_unit_test(malformed_strings_are_refused),
        cmocka_unit_test(errors_name_file_line_column_found_and_wanted),
        cmocka_unit_test(a_wrong_kind_is_named_with_its_key),
        cmocka_unit_test(the_first_failure_sticks),
        cmocka_unit_test(values_that_are_not_read_are_skipped),
        cmocka_unit_test(integers_are_exact),
        cmocka_unit_test(doubles_are_rounded_to_nearest),
        cmocka_unit_test(an_endless_number_is_refused),
        cmocka_unit_test(strings_are_unescaped_in_place),
        cmocka_unit_test(depth_is_limited),
        cmocka_unit_test(a_copy_is_a_bookmark),
        cmocka_unit_test(a_slice_is_a_value_as_it_stands),
        cmocka_unit_test(a_path_is_found),
        cmocka_unit_test(an_absent_path_is_no_failure),
        cmocka_unit_test(of_equal_keys_the_last_is_found),
        cmocka_unit_test(finding_checks_what_it_passes),
        cmocka_unit_test(null_is_optional),
    };
    return cmocka_run_group_tests(tests, NULL, teardown);
}
