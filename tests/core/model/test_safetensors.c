/* test_safetensors.c: headers of safetensors files that are broken or hostile are refused by name, in bounded time and memory; right ones are read. */
#include "helper_safetensors.h"

static weir_system *s;

static int setup(void **state) {
    (void)state;
    return weir_system_new(NULL, &s, NULL) == WEIR_OK ? 0 : -1;
}

static int teardown(void **state) {
    (void)state;
    weir_system_free(s);
    return 0;
}

/* The bytes must be refused with that code, soon, and with all of these words in the text; nothing stays allocated. */
static void refused_bytes(const void *p, size_t size, uint64_t file_size, int want_code, const char *const *words) {
    weir__safetensors *st = NULL;
    weir_error *error = NULL;
    struct timespec from, to;
    uint64_t before = held_bytes(s);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
    int code = weir__safetensors_parse(s, "test.safetensors", p, size, file_size, &st, &error);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
    if (code != want_code)
        fail_msg("code %d: %s", code, code ? weir_error_text(error) : "read");
    assert_null(st);
    for (; *words; words++)
        if (!strstr(weir_error_text(error), *words))
            fail_msg("\"%s\" is not in \"%s\"", *words, weir_error_text(error));
    weir_error_free(error);
    assert_int_equal(held_bytes(s), before);
    assert_true(to.tv_sec - from.tv_sec < 5); /* of processor time: a limit against hanging */
}

#define refused_header(text, n_data, ...)                                                                                                  \
    do {                                                                                                                                   \
        bytes b_;                                                                                                                          \
        put_safetensors(&b_, text, n_data);                                                                                                \
        refused_bytes(b_.data, b_.size, b_.size, WEIR_EFORMAT, (const char *const[]){"test.safetensors", __VA_ARGS__, NULL});              \
    } while (0)

static weir__safetensors *read_header(const char *header, size_t data) {
    weir__safetensors *st = NULL;
    weir_error *error = NULL;
    bytes b;
    put_safetensors(&b, header, data);
    if (weir__safetensors_parse(s, "test.safetensors", b.data, b.size, b.size, &st, &error))
        fail_msg("%s", weir_error_text(error));
    return st;
}

static void a_right_file_is_read(void **state) {
    (void)state;
    static const char header[] = "{\"__metadata__\":{\"format\":\"pt\"},"
                                 "\"b\":{\"dtype\":\"BF16\",\"shape\":[3,2],\"data_offsets\":[8,20]},"
                                 "\"\\u0061\\n\":{\"shape\":[2],\"data_offsets\":[0,8],\"dtype\":\"F32\"},"
                                 "\"scalar\":{\"dtype\":\"F16\",\"shape\":[],\"data_offsets\":[20,22]},"
                                 "\"empty\":{\"dtype\":\"F32\",\"shape\":[5,0,7],\"data_offsets\":[22,22]}}   ";
    weir__safetensors *st = read_header(header, 22);
    assert_int_equal(st->n_tensors, 4);
    const weir__tensor *b = &st->tensors[0], *a = &st->tensors[1], *scalar = &st->tensors[2], *empty = &st->tensors[3];
    assert_int_equal(b->type, WEIR_BF16);
    assert_int_equal(b->n_dims, 2);
    assert_int_equal(b->dims[0], 2); /* the row length */
    assert_int_equal(b->dims[1], 3);
    assert_int_equal(b->dims[2], 1);
    assert_int_equal(b->offset, 8 + strlen(header) + 8);
    assert_int_equal(b->size, 12);
    assert_int_equal(a->name.size, 2);
    assert_memory_equal(a->name.data, "a\n", 2);
    assert_int_equal(a->type, WEIR_F32);
    assert_int_equal(scalar->n_dims, 0);
    assert_int_equal(scalar->dims[0], 1);
    assert_int_equal(empty->size, 0);
    weir__safetensors_free(st);
}

static void safetensors_B1_data_that_does_not_match_the_shape_is_refused(void **state) {
    (void)state;
    refused_header("{\"w\":{\"dtype\":\"F32\",\"shape\":[1000,1000],\"data_offsets\":[0,4]}}", 4, "\"w\"", "found 4 bytes",
                   "wanted 4000000");
    refused_header("{\"w\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "\"w\"", "found 8 bytes", "wanted 4");
    refused_header("{\"w\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,4]}}", 4, "\"w\"", "found 4 bytes", "wanted 0");
    refused_header("{\"w\":{\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,1]}}", 1, "\"w\"", "no whole number of bytes");
}

static void safetensors_B3_offsets_that_run_backwards_are_refused(void **state) {
    (void)state;
    refused_header("{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[-4,0]}}", 4, "\"w\"", "data_offsets", "found -4");
    refused_header("{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[8,4]}}", 8, "\"w\"", "an end, 4", "beginning, 8");
    refused_header("{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0.5,4.5]}}", 4, "\"w\"", "found 0.5");
    refused_header("{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,1e1]}}", 10, "\"w\"", "found 1e1");
    refused_header("{\"w\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 4, "\"w\"", "shape", "found -1");
}

static void safetensors_B5_offsets_that_are_no_pair_are_refused(void **state) {
    (void)state;
    refused_header("{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[]}}", 4, "\"w\"", "data_offsets", "found 0 numbers");
    refused_header("{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}", 4, "\"w\"", "data_offsets", "found 1 numbers");
    refused_header("{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4,8]}}", 4, "\"w\"", "more than 2 numbers");
    refused_header("{\"w\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "\"w\"", "data_offsets", "not found");
    refused_header("{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":null}}", 4, "\"w\"", "data_offsets", "no array");
    refused_header("{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":{\"0\":0}}}", 4, "\"w\"", "data_offsets", "no array");
    refused_header("{\"w\":{\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "\"w\"", "dtype", "not found");
    refused_header("{\"w\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, "\"w\"", "shape", "not found");
    refused_header("{\"w\":7}", 4, "\"w\"", "wanted an object");
}

static void safetensors_B7_products_that_overflow_are_refused(void **state) {
    (void)state;
    refused_header("{\"w\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}", 0, "\"w\"", "2^63");
    refused_header("{\"w\":{\"dtype\":\"F64\",\"shape\":[288230376151711744],\"data_offsets\":[0,0]}}", 0, "\"w\"", "2^63");
    refused_header("{\"w\":{\"dtype\":\"F32\",\"shape\":[18446744073709551616],\"data_offsets\":[0,0]}}", 0, "\"w\"",
                   "found 18446744073709551616");
    refused_header("{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[9223372036854775804,9223372036854775808]}}", 4, "\"w\"",
                   "9223372036854775804");
    refused_header("{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[999999999999999990,999999999999999994]}}", 4, "\"w\"",
                   "begins at byte 999999999999999990");
    /* The header's own length. */
    static const uint64_t lengths[] = {UINT64_MAX, UINT64_MAX - 7, UINT64_C(1) << 63, 11};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        bytes b;
        put_safetensors(&b, "{}        ", 0);
        memcpy(b.data, &lengths[i], 8);
        refused_bytes(b.data, b.size, b.size, WEIR_EFORMAT, (const char *const[]){"found a header of", "wanted at most the 10", NULL});
    }
}

static void safetensors_B11_bf16_and_every_other_type_is_read(void **state) {
    (void)state;
    static const struct {
        const char *dtype, *name;
        int bits;
    } all[] = {{"BF16", "bf16", 16},      {"F16", "f16", 16},        {"F32", "f32", 32},        {"F64", "f64", 64},
               {"I8", "i8", 8},           {"I16", "i16", 16},        {"I32", "i32", 32},        {"I64", "i64", 64},
               {"U8", "u8", 8},           {"U16", "u16", 16},        {"U32", "u32", 32},        {"U64", "u64", 64},
               {"BOOL", "bool", 8},       {"F8_E4M3", "f8_e4m3", 8}, {"F8_E5M2", "f8_e5m2", 8}, {"F8_E8M0", "f8_e8m0", 8},
               {"F6_E2M3", "f6_e2m3", 6}, {"F6_E3M2", "f6_e3m2", 6}, {"F4", "f4", 4},           {"C64", "c64", 64}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char header[128];
        snprintf(header, sizeof header, "{\"w\":{\"dtype\":\"%s\",\"shape\":[8],\"data_offsets\":[0,%d]}}", all[i].dtype, all[i].bits);
        weir__safetensors *st = read_header(header, (size_t)all[i].bits);
        assert_string_equal(weir__tensor_type_name(st->tensors[0].type), all[i].name);
        assert_true(i < 3 || !weir_type_get(st->tensors[0].type)); /* only floats are run */
        weir__safetensors_free(st);
    }
    refused_header("{\"w\":{\"dtype\":\"F33\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "\"w\"", "\"F33\"");
    refused_header("{\"w\":{\"dtype\":32,\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "\"w\"", "no string");
}

static void tensors_must_cover_the_buffer(void **state) {
    (void)state;
    refused_header(
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[8,"
        "12]}}",
        12, "\"b\"", "byte 8", "wanted 4", "belong to no tensor");
    refused_header(
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,"
        "8]}}",
        8, "\"b\"", "byte 4", "wanted 8", "overlaps");
    refused_header("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 8, "\"a\"", "byte 4", "wanted 0");
    refused_header("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 9, "found 5 bytes behind the last tensor");
    refused_header(
        "{\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]},\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":["
        "0,4]}}",
        11, "\"b\"", "found 7 bytes before the end", "wanted 8", "cut short");
}

static void what_the_format_forbids_is_refused(void **state) {
    (void)state;
    refused_header(" {}", 0, "begins with no");
    refused_header("[]", 0, "begins with no");
    refused_header("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}", 4, "line 1");
    refused_header("{} x", 0, "line 1");
    refused_header("{\"__metadata__\":{\"a\":1}}", 0, "\"a\"", "wanted a string");
    refused_header("{\"__metadata__\":{},\"__metadata__\":{}}", 0, "found twice");
    refused_header("{\"w\":{\"dtype\":\"F32\",\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "\"w\"", "dtype", "twice");
    refused_header("{\"w\":{\"dtype\":\"F32\",\"strides\":[1],\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "\"w\"", "\"strides\"");
    refused_header("{\"w\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1],\"data_offsets\":[0,4]}}", 4, "\"w\"", "more than 4 dimensions");
    refused_header("{\"\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "0 bytes");
    for (size_t n = 0; n < 8; n++)
        refused_bytes("\2\0\0\0\0\0\0\0", n, n, WEIR_EFORMAT, (const char *const[]){"wanted 8 at least", NULL});
    refused_bytes("\0\0\0\0\0\0\0\0", 8, 8, WEIR_EFORMAT, (const char *const[]){"begins with no", NULL});
}

static void every_cut_is_refused(void **state) {
    (void)state;
    bytes b;
    put_safetensors(&b, "{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4);
    for (size_t n = 0; n < b.size; n++)
        refused_bytes(b.data, n, n, WEIR_EFORMAT, (const char *const[]){"test.safetensors", NULL});
}

/* ---- hostile sizes: the system's bytes are counted, the process's own are bounded by the file and 64 MiB ---- */

static uint64_t resident(void) {
    unsigned long long size, pages;
    FILE *f = fopen("/proc/self/statm", "r");
    assert_int_equal(fscanf(f, "%llu %llu", &size, &pages), 2);
    fclose(f);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* `unit` over and over, as long as the format allows a header, between `begin` and `end`. */
static void refused_long(const char *begin, const char *unit, size_t size, int code, const char *word) {
    size_t n = strlen(unit), at = 8;
    char *text = malloc(size + 8);
    uint64_t length = size;
    memcpy(text, &length, 8);
    memcpy(text + at, begin, strlen(begin));
    for (at += strlen(begin); at + n <= size + 8; at += n)
        memcpy(text + at, unit, n);
    memset(text + at, ' ', size + 8 - at);
    uint64_t before = resident();
    refused_bytes(text, size + 8, size + 8, code, (const char *const[]){word, NULL});
    assert_true(resident() < before + size + (64u << 20));
    free(text);
}

static void a_hundred_megabytes_of_brackets_are_refused(void **state) {
    (void)state;
    refused_long("{\"w\":", "[", 100000000, WEIR_EFORMAT, "wanted an object");
    refused_long("{\"w\":{\"shape\":", "[", 100000000, WEIR_EFORMAT, "shape: found no number");
    refused_long("{\"__metadata__\":", "{\"a\":", 100000000, WEIR_EFORMAT, "wanted a string");
    refused_long("", "{\"w\":", 100000000, WEIR_EFORMAT, "\"w\"");
}

static void a_header_beyond_the_formats_bound_is_refused(void **state) {
    (void)state;
    bytes b;
    put_safetensors(&b, "{", 0);
    uint64_t length = 100000001;
    memcpy(b.data, &length, 8);
    refused_bytes(b.data, b.size, UINT64_C(1) << 40, WEIR_EFORMAT, (const char *const[]){"100000001", "100000000", NULL});
}

static void more_tensors_than_any_model_has_are_refused(void **state) {
    (void)state;
    refused_long("{", "\"w\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]},", 60000000, WEIR_EFORMAT,
                 "more than 262144 tensors");
}

static void without_memory_nothing_is_left(void **state) {
    (void)state;
    static const char header[] = "{\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]},"
                                 "\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}";
    bytes b;
    weir__safetensors *st;
    uint64_t before = held_bytes(s), failures = 0;
    put_safetensors(&b, header, 8);
    for (uint64_t nth = 1;; nth++, failures++) {
        weir__inject_arm(s, "ALLOC", nth, 1);
        int code = weir__safetensors_parse(s, "test.safetensors", b.data, b.size, b.size, &st, NULL);
        weir__inject_arm(s, "ALLOC", 1, 0);
        if (!code)
            break;
        assert_int_equal(code, WEIR_ENOMEM);
        assert_int_equal(held_bytes(s), before);
    }
    assert_true(failures >= 5);
    weir__safetensors_free(st);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_right_file_is_read),
        cmocka_unit_test(safetensors_B1_data_that_does_not_match_the_shape_is_refused),
        cmocka_unit_test(safetensors_B3_offsets_that_run_backwards_are_refused),
        cmocka_unit_test(safetensors_B5_offsets_that_are_no_pair_are_refused),
        cmocka_unit_test(safetensors_B7_products_that_overflow_are_refused),
        cmocka_unit_test(safetensors_B11_bf16_and_every_other_type_is_read),
        cmocka_unit_test(tensors_must_cover_the_buffer),
        cmocka_unit_test(what_the_format_forbids_is_refused),
        cmocka_unit_test(every_cut_is_refused),
        cmocka_unit_test(a_hundred_megabytes_of_brackets_are_refused),
        cmocka_unit_test(a_header_beyond_the_formats_bound_is_refused),
        cmocka_unit_test(more_tensors_than_any_model_has_are_refused),
        cmocka_unit_test(without_memory_nothing_is_left),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
