/* Bodies: writing, reading, and what comes from outside. The rows of the msgpack cases by their numbers. */
#include "fixture.h"

static weir_system *the_system;

static int open_system(void **state) {
    (void)state;
    return weir_system_new(NULL, &the_system, NULL);
}

static int close_system(void **state) {
    (void)state;
    weir_system_free(the_system);
    return 0;
}

/* What weir_body_from_bytes says to these bytes; the body is freed. */
static int outside(const void *bytes, size_t n) {
    weir_body *b = NULL;
    weir_error *e = NULL;
    void *exact = malloc(n ? n : 1); /* so that ASan sees a read past the end */
    memcpy(exact, bytes, n);
    int code = weir_body_from_bytes(the_system, exact, n, &b, &e);
    free(exact);
    assert_int_equal(weir_error_code(e), code);
    if (code)
        assert_non_null(strstr(weir_error_text(e), "offset"));
    assert_true((code == WEIR_OK) == (b != NULL));
    weir_error_free(e);
    weir_body_free(b);
    return code;
}

#define OUTSIDE(text) outside(text, sizeof(text) - 1)

/* n bytes of `byte`, then `tail`. */
static int nested(unsigned char byte, size_t n, const char *tail, size_t tail_size) {
    unsigned char *p = malloc(n + tail_size);
    memset(p, byte, n);
    memcpy(p + n, tail, tail_size);
    int code = outside(p, n + tail_size);
    free(p);
    return code;
}

static void msgpack_M1(void **state) {
    (void)state;
    assert_int_equal(nested(0x91, 100000, "\xc0", 1), WEIR_EDEPTH);
}

static void msgpack_M3(void **state) {
    (void)state;
    assert_int_equal(nested(0x91, 10000, "\x90", 1), WEIR_EDEPTH);
}

/* `depth` arrays (or maps) in each other; NULL if the writer refuses. */
static weir_body *write_nested(unsigned depth, bool map, int *error) {
    weir_writer *w = weir_write_begin(the_system);
    for (unsigned i = 1; i < depth; i++) {
        map ? weir_write_map(w) : weir_write_array(w);
        if (map)
            weir_write_nil(w);
    }
    if (map && depth > 1)
        weir_write_nil(w);
    for (unsigned i = 1; i < depth; i++)
        weir_write_close(w);
    *error = weir_write_error(w);
    return weir_write_end(w);
}

/* One limit for both sides: what encodes decodes, and what does not encode does not decode. */
static void msgpack_M5(void **state) {
    (void)state;
    const unsigned depths[] = {1, 2, 31, 32, 33, WEIR_MAX_DEPTH - 1, WEIR_MAX_DEPTH, WEIR_MAX_DEPTH + 1, WEIR_MAX_DEPTH + 2};
    for (size_t i = 0; i < 2 * sizeof depths / sizeof depths[0]; i++) {
        int error;
        unsigned depth = depths[i / 2];
        weir_body *b = write_nested(depth, i % 2, &error);
        assert_int_equal(error, depth > WEIR_MAX_DEPTH ? WEIR_EDEPTH : WEIR_OK);
        if (b) {
            size_t n;
            const void *p = weir_body_bytes(b, &n);
            assert_int_equal(outside(p, n), WEIR_OK);
            weir_body_free(b);
        }
        assert_int_equal(nested(0x91, depth - 1, "\x90", 1), depth > WEIR_MAX_DEPTH ? WEIR_EDEPTH : WEIR_OK);
    }
}

/* What is inside an ext is opaque: it adds no depth, however deep it looks. */
static void msgpack_M7(void **state) {
    (void)state;
    unsigned char bytes[1 + 3 + 200];
    memset(bytes, 0xc7, sizeof bytes);
    bytes[0] = 0x91;
    bytes[1] = 0xc7;
    bytes[2] = 200;
    bytes[3] = 5;
    assert_int_equal(outside(bytes, sizeof bytes), WEIR_OK);
}

/* A count of four thousand million costs neither memory nor time; nor do all parts of it. */
static void msgpack_M9(void **state) {
    (void)state;
    for (size_t n = 1; n <= 5; n++)
        assert_int_equal(outside("\xdd\xff\xff\xff\xff", n), WEIR_EMSGPACK);
}

static void msgpack_M11(void **state) {
    (void)state;
    assert_int_equal(OUTSIDE("\xdd\xff\x00\x00\x00"), WEIR_EMSGPACK);
    assert_int_equal(OUTSIDE("\x91\xdf\xff\x00\x00\x00"), WEIR_EMSGPACK);
}

static void msgpack_M13(void **state) {
    (void)state;
    unsigned char *p = malloc(3 * 24000);
    for (int i = 0; i < 24000; i++)
        memcpy(p + 3 * i, "\xdc\xff\xff", 3);
    weir_system_stats before, after;
    weir_system_get_stats(the_system, &before);
    int code = outside(p, 3 * 24000);
    weir_system_get_stats(the_system, &after);
    assert_true(code == WEIR_EDEPTH || code == WEIR_EMSGPACK);
    assert_int_equal(after.bytes, before.bytes);
    free(p);
}

static void msgpack_M15(void **state) {
    (void)state;
    assert_int_equal(OUTSIDE("\x91\xc9\xff\xff\xff\xff\x05"), WEIR_EMSGPACK);
    assert_int_equal(OUTSIDE("\x91\xdb\xff\xff\xff\xff"), WEIR_EMSGPACK);
    assert_int_equal(OUTSIDE("\x91\xc6\xff\xff\xff\xff"), WEIR_EMSGPACK);
}

static void msgpack_M17(void **state) {
    (void)state;
    assert_int_equal(OUTSIDE("\x91\xdb\xff\xff\xff\xff\x5a"), WEIR_EMSGPACK);
}

/* A deep answer is read with a cursor: no stack grows with it. */
static void msgpack_M21(void **state) {
    (void)state;
    int error;
    weir_body *b = write_nested(WEIR_MAX_DEPTH, false, &error);
    weir_cursor c = weir_read(b, NULL);
    assert_true(weir_read_skip(&c));
    assert_int_equal(weir_read_value(&c).kind, WEIR_END);
    weir_body_free(b);
    unsigned char deep[100000];
    memset(deep, 0x91, sizeof deep);
    c = (weir_cursor){deep, deep + sizeof deep, NULL};
    assert_false(weir_read_skip(&c));
    assert_ptr_equal(c.p, deep);
}

/* Ext values of unknown types are opaque, whatever they hold; the type that stands for handles is refused wherever it stands. */
static void msgpack_M23(void **state) {
    (void)state;
    weir_body *b;
    assert_int_equal(weir_body_from_bytes(the_system, "\x92\xd4\x03\x00\xd4\x03\x02", 7, &b, NULL), WEIR_OK);
    weir_cursor c = weir_read(b, NULL);
    weir_value v = weir_read_value(&c);
    assert_int_equal(v.kind, WEIR_EXT);
    assert_int_equal(v.ext_type, 3);
    assert_int_equal(v.s.size, 1);
    weir_body_free(b);
    assert_int_equal(OUTSIDE("\x91\xd6\x01\x00\x00\x00\x00"), WEIR_EMSGPACK);
    assert_int_equal(OUTSIDE("\x91\xd4\x01\x00"), WEIR_EMSGPACK);
    assert_int_equal(OUTSIDE("\x91\xc7\x00\x01"), WEIR_EMSGPACK);
    assert_int_equal(OUTSIDE("\x91\xc8\x00\x01\x01\x00"), WEIR_EMSGPACK);
    assert_int_equal(OUTSIDE("\x91\xc9\x00\x00\x00\x01\x01\x00"), WEIR_EMSGPACK);
    assert_int_equal(OUTSIDE("\x91\x81\xa1x\x92\xc0\xd6\x01\x00\x00\x00\x00"), WEIR_EMSGPACK);
    assert_int_equal(OUTSIDE("\x91\x81\xd6\x01\x00\x00\x00\x00\xc0"), WEIR_EMSGPACK);
}

static void msgpack_M25(void **state) {
    (void)state;
    assert_int_equal(OUTSIDE("\x91\xc9\x00\x00\x00\x00\x02"), WEIR_OK);
    assert_int_equal(OUTSIDE("\x91\xc9\x00\x00\x00\x00\x01"), WEIR_EMSGPACK);
    assert_int_equal(OUTSIDE("\x91\xc9\x00\x00\x00\x00\x02\x00\x00"), WEIR_EMSGPACK);
}

/* Any value may be a key in C: it is for the reader to say which it understands. */
static void msgpack_M27(void **state) {
    (void)state;
    weir_body *b;
    assert_int_equal(weir_body_from_bytes(the_system, "\x91\x82\xc0\x01\xa1k\x02", 7, &b, NULL), WEIR_OK);
    weir_cursor c = weir_read(b, NULL), v;
    int64_t n = 0;
    assert_true(weir_read_find(c, "k", &v) && weir_read_int(&v, &n));
    assert_int_equal(n, 2);
    assert_false(weir_read_find(c, "x", &v));
    weir_body_free(b);
}

/* Lengths that do not fit are refused before anything is read. */
static void msgpack_M41(void **state) {
    (void)state;
    const size_t sizes[] = {(size_t)WEIR_MAX_BODY + 1, ((size_t)1 << 32) + 5, SIZE_MAX};
    for (int i = 0; i < 6; i++) {
        weir_writer *w = weir_write_begin(the_system);
        if (i % 2)
            weir_write_str(w, "x", sizes[i / 2]);
        else
            weir_write_bin(w, "x", sizes[i / 2]);
        assert_int_equal(weir_write_error(w), WEIR_ETOOBIG);
        assert_null(weir_write_end(w));
    }
    weir_body *b;
    assert_int_equal(weir_body_from_bytes(the_system, "\x90", (size_t)WEIR_MAX_BODY + 1, &b, NULL), WEIR_ETOOBIG);
}

/* ---- the format ---- */

static void the_outermost_value_is_one_array(void **state) {
    (void)state;
    assert_int_equal(OUTSIDE("\x90"), WEIR_OK);
    assert_int_equal(OUTSIDE(""), WEIR_EMSGPACK);
    assert_int_equal(OUTSIDE("\xc0"), WEIR_EMSGPACK);
    assert_int_equal(OUTSIDE("\x80"), WEIR_EMSGPACK);
    assert_int_equal(OUTSIDE("\x90\x90"), WEIR_EMSGPACK);
    assert_int_equal(OUTSIDE("\x91\xc1"), WEIR_EMSGPACK);
}

/* A body with every kind of value, cut at every byte: always an error, never a read past the end. */
static void every_truncation_is_an_error(void **state) {
    (void)state;
    static const char all[] =
        "\xdc\x00\x15\x00\x7f\xff\xc0\xc2\xc3\xc4\x02xy\xca\x3f\x80\x00\x00\xcb\x3f\xf0\x00\x00\x00\x00\x00\x00\xcc\xff\xcd\xff\xff\xce\xff"
        "\xff"
        "\xff\xff\xcf\xff\xff\xff\xff\xff\xff\xff\xff\xd0\x80\xd1\x80\x00\xd2\x80\x00\x00\x00\xd3\x80\x00\x00\x00\x00\x00\x00\x00\xd5\x07zz"
        "\xd9\x01s\x82\xa1k\x01\xa1l\x92\x01\x02\xde\x00\x00";
    assert_int_equal(outside(all, sizeof all - 1), WEIR_OK);
    for (size_t n = 0; n < sizeof all - 1; n++)
        assert_int_equal(outside(all, n), WEIR_EMSGPACK);
    weir_body *b;
    assert_int_equal(weir_body_from_bytes(the_system, all, sizeof all - 1, &b, NULL), WEIR_OK);
    uint32_t count, read = 0;
    weir_cursor c = weir_read(b, &count);
    while (weir_read_skip(&c))
        read++;
    assert_int_equal(read, count);
    assert_ptr_equal(c.p, c.end);
    weir_body_free(b);
}

static const int64_t ints[] = {0,        1,   127, 128,  255,  256,    65535,  65536,     INT64_C(4294967295),    INT64_C(4294967296),
                               -1,       -32, -33, -128, -129, -32768, -32769, INT32_MIN, (int64_t)INT32_MIN - 1, INT64_MAX,
                               INT64_MIN};

static void integers_come_back_in_the_shortest_form(void **state) {
    (void)state;
    static const size_t sizes[] = {1, 1, 1, 2, 2, 3, 3, 5, 5, 9, 1, 1, 2, 2, 3, 3, 5, 5, 9, 9, 9};
    for (size_t i = 0; i < sizeof ints / sizeof ints[0]; i++) {
        int64_t v;
        size_t n;
        weir_body *b = weir_pack(the_system, "i", ints[i]);
        weir_cursor c = weir_read(b, NULL);
        weir_body_bytes(b, &n);
        assert_int_equal(n, 1 + sizes[i]);
        assert_int_equal(weir_read_value(&(weir_cursor){c.p, c.end, b}).kind, WEIR_INT);
        assert_true(weir_read_int(&c, &v) && v == ints[i]);
        weir_body_free(b);
    }
    weir_body *b = weir_pack(the_system, "u", UINT64_MAX);
    weir_cursor c = weir_read(b, NULL);
    int64_t v;
    assert_false(weir_read_int(&c, &v));
    weir_value u = weir_read_value(&c);
    assert_int_equal(u.kind, WEIR_UINT);
    assert_true(u.u == UINT64_MAX);
    weir_body_free(b);
}

static void numbers_convert_when_exact(void **state) {
    (void)state;
    weir_body *b = weir_pack(the_system, "dddduii", 3.0, 3.5, 9223372036854775808.0, -9223372036854775808.0, UINT64_C(1) << 63,
                             (INT64_C(1) << 53) + 1, INT64_MAX);
    weir_cursor c = weir_read(b, NULL);
    int64_t i;
    double d;
    assert_true(weir_read_int(&c, &i) && i == 3);
    assert_false(weir_read_int(&c, &i));
    assert_true(weir_read_double(&c, &d) && d == 3.5);
    assert_false(weir_read_int(&c, &i));
    assert_true(weir_read_double(&c, &d) && d == 9223372036854775808.0);
    assert_true(weir_read_int(&c, &i) && i == INT64_MIN);
    assert_true(weir_read_double(&c, &d) && d == 9223372036854775808.0);
    assert_false(weir_read_double(&c, &d));
    assert_true(weir_read_int(&c, &i));
    assert_false(weir_read_double(&c, &d));
    weir_body_free(b);
}

static void typed_reads_leave_the_cursor_on_another_kind(void **state) {
    (void)state;
    weir_body *b = weir_pack(the_system, "sti[]{}n", "text", 1, INT64_C(5));
    weir_cursor c = weir_read(b, NULL);
    const char *s;
    size_t n;
    int64_t i;
    bool t;
    uint32_t count;
    double d;
    void *object;
    assert_false(weir_read_int(&c, &i) || weir_read_bool(&c, &t) || weir_read_array(&c, &count) || weir_read_map(&c, &count) ||
                 weir_read_double(&c, &d) || weir_read_handle(&c, "buffer", &object));
    assert_true(weir_read_bytes(&c, &s, &n) && n == 4 && memcmp(s, "text", 4) == 0);
    assert_false(weir_read_bytes(&c, &s, &n));
    assert_true(weir_read_bool(&c, &t) && t);
    assert_true(weir_read_int(&c, &i) && i == 5);
    assert_true(weir_read_array(&c, &count) && count == 0);
    assert_true(weir_read_map(&c, &count) && count == 0);
    assert_int_equal(weir_read_value(&c).kind, WEIR_NIL);
    assert_int_equal(weir_read_value(&c).kind, WEIR_END);
    weir_body_free(b);
}

/* Heads grow from 1 to 3 to 5 bytes, at every level at once. */
static void containers_of_every_size_come_back(void **state) {
    (void)state;
    const uint32_t sizes[] = {0, 1, 14, 15, 16, 17, 255, 65534, 65535, 65536, 65537, 100000};
    for (size_t k = 0; k < 2 * sizeof sizes / sizeof sizes[0]; k++) {
        uint32_t n = sizes[k / 2], count;
        bool map = k % 2;
        weir_writer *w = weir_write_begin(the_system);
        weir_write_array(w);
        map ? weir_write_map(w) : weir_write_array(w);
        for (uint32_t i = 0; i < n; i++) {
            if (map)
                weir_write_int(w, i);
            weir_write_int(w, i);
        }
        weir_write_close(w);
        weir_write_str(w, "behind", 6);
        weir_write_close(w);
        weir_body *b = weir_write_end(w);
        assert_non_null(b);
        size_t size;
        const void *bytes = weir_body_bytes(b, &size);
        assert_int_equal(outside(bytes, size), WEIR_OK);
        weir_cursor c = weir_read(b, &count);
        assert_int_equal(count, 1);
        assert_true(weir_read_array(&c, &count) && count == 2);
        assert_true((map ? weir_read_map(&c, &count) : weir_read_array(&c, &count)) && count == n);
        for (uint32_t i = 0; i < n * (map ? 2 : 1); i++) {
            int64_t v;
            assert_true(weir_read_int(&c, &v) && v == (int64_t)(map ? i / 2 : i));
        }
        const char *s;
        assert_true(weir_read_bytes(&c, &s, &size) && size == 6);
        weir_body_free(b);
    }
}

static void strings_of_every_size_come_back(void **state) {
    (void)state;
    const size_t sizes[] = {0, 1, 31, 32, 255, 256, 4000, 65535, 65536, 1 << 20};
    char *text = malloc(1 << 20);
    memset(text, 'x', 1 << 20);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        weir_body *b = weir_pack(the_system, "Sb", text, sizes[i], text, sizes[i]);
        weir_cursor c = weir_read(b, NULL);
        const char *s;
        size_t n;
        assert_int_equal(weir_read_value(&(weir_cursor){c.p, c.end, b}).kind, WEIR_STR);
        for (int k = 0; k < 2; k++)
            assert_true(weir_read_bytes(&c, &s, &n) && n == sizes[i] && memcmp(s, text, n) == 0);
        weir_body_free(b);
    }
    free(text);
}

static void the_writer_refuses_what_is_no_message(void **state) {
    (void)state;
    weir_writer *w = weir_write_begin(the_system);
    weir_write_map(w);
    weir_write_nil(w);
    weir_write_close(w);
    assert_int_equal(weir_write_error(w), WEIR_EINVAL);
    assert_null(weir_write_end(w));
    w = weir_write_begin(the_system);
    weir_write_close(w);
    assert_int_equal(weir_write_error(w), WEIR_EINVAL);
    weir_write_abort(w);
    w = weir_write_begin(the_system);
    weir_write_array(w);
    assert_null(weir_write_end(w));
    assert_int_equal(weir_write_error(NULL), WEIR_ENOMEM);
    assert_null(weir_write_end(NULL));
    weir_write_nil(NULL);
    weir_write_close(NULL);
    weir_write_abort(NULL);
    assert_null(weir_pack(the_system, "x"));
    assert_null(weir_pack(the_system, "[}"));
    assert_null(weir_pack(the_system, "]"));
    assert_null(weir_pack(the_system, "{s}", "key"));
    assert_null(weir_pack(the_system, "[["));
}

static void a_find_takes_the_first_of_equal_keys(void **state) {
    (void)state;
    weir_body *b =
        weir_pack(the_system, "{sisis{si}bi}", "a", INT64_C(1), "a", INT64_C(2), "deep", "b", INT64_C(3), "b", (size_t)1, INT64_C(4));
    weir_cursor c = weir_read(b, NULL), v;
    int64_t i;
    assert_true(weir_read_find(c, "a", &v) && weir_read_int(&v, &i) && i == 1);
    assert_true(weir_read_find(c, "b", &v) && weir_read_int(&v, &i) && i == 4);
    assert_false(weir_read_find(c, "c", &v));
    assert_true(weir_read_find(c, "deep", &v));
    assert_false(weir_read_find((weir_cursor){c.end, c.end, b}, "a", &v));
    weir_body_free(b);
}

/* ---- handles ---- */

static int live;

static void ref_object(void *object) {
    ++*(int *)object;
}

static void unref_object(void *object) {
    --*(int *)object;
}

static const weir_handle_type type = {"thing", ref_object, unref_object};

static weir_handle new_handle(void) {
    live++;
    return (weir_handle){&type, &live};
}

static void handles_travel_beside_the_bytes(void **state) {
    (void)state;
    live = 0;
    weir_writer *w = weir_write_begin(the_system);
    for (int i = 0; i < 10; i++)
        weir_write_handle(w, new_handle());
    weir_body *b = weir_write_end(w);
    assert_int_equal(live, 10);
    weir_cursor c = weir_read(b, NULL);
    void *object;
    assert_false(weir_read_handle(&c, "other", &object));
    assert_true(weir_read_handle(&c, "thing", &object));
    assert_ptr_equal(object, &live);
    assert_int_equal(weir_read_value(&c).kind, WEIR_HANDLE);
    size_t n;
    const void *bytes = weir_body_bytes(b, &n);
    assert_int_equal(outside(bytes, n), WEIR_EMSGPACK);
    weir_body_free(b);
    assert_int_equal(live, 0);
}

/* The count is taken whatever happens: after an error, a wrong format, without memory. */
static void handles_are_taken_even_on_failure(void **state) {
    (void)state;
    live = 0;
    weir_writer *w = weir_write_begin(the_system);
    weir_write_close(w);
    weir_write_handle(w, new_handle());
    assert_int_equal(live, 0);
    weir_write_abort(w);
    w = weir_write_begin(the_system);
    weir_write_handle(w, new_handle());
    weir_write_abort(w);
    assert_int_equal(live, 0);
    assert_null(weir_pack(the_system, "]h", new_handle()));
    assert_int_equal(live, 0);
    weir_write_handle(NULL, new_handle());
    assert_int_equal(live, 0);
    for (uint64_t n = 1; n < 4; n++) {
        char big[20000] = {0};
        weir__inject_arm(the_system, "ALLOC", n, 1);
        weir_body *b = weir_pack(the_system, "bhh", big, sizeof big, new_handle(), new_handle());
        weir_body_free(b);
        assert_int_equal(live, 0);
    }
    weir__inject_arm(the_system, "ALLOC", 0, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(msgpack_M1),
        cmocka_unit_test(msgpack_M3),
        cmocka_unit_test(msgpack_M5),
        cmocka_unit_test(msgpack_M7),
        cmocka_unit_test(msgpack_M9),
        cmocka_unit_test(msgpack_M11),
        cmocka_unit_test(msgpack_M13),
        cmocka_unit_test(msgpack_M15),
        cmocka_unit_test(msgpack_M17),
        cmocka_unit_test(msgpack_M21),
        cmocka_unit_test(msgpack_M23),
        cmocka_unit_test(msgpack_M25),
        cmocka_unit_test(msgpack_M27),
        cmocka_unit_test(msgpack_M41),
        cmocka_unit_test(the_outermost_value_is_one_array),
        cmocka_unit_test(every_truncation_is_an_error),
        cmocka_unit_test(integers_come_back_in_the_shortest_form),
        cmocka_unit_test(numbers_convert_when_exact),
        cmocka_unit_test(typed_reads_leave_the_cursor_on_another_kind),
        cmocka_unit_test(containers_of_every_size_come_back),
        cmocka_unit_test(strings_of_every_size_come_back),
        cmocka_unit_test(the_writer_refuses_what_is_no_message),
        cmocka_unit_test(a_find_takes_the_first_of_equal_keys),
        cmocka_unit_test(handles_travel_beside_the_bytes),
        cmocka_unit_test(handles_are_taken_even_on_failure),
    };
    return cmocka_run_group_tests(tests, open_system, close_system);
}
