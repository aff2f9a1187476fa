/* test_gguf.c: headers that are broken or hostile are refused by name, in bounded time and memory; right ones are read. */
#include "helper_gguf.h"

#include <fcntl.h>
#include <sys/stat.h>

static const uint64_t HUGE_COUNT = UINT64_C(1) << 63;

/* One f32 tensor of 4 x 2 with its data, behind whatever keys the caller put. */
static void finish_small(bytes *b) {
    put_tensor(b, "w", 2, (uint64_t[]){4, 2}, 0, 0);
    while (b->size % 32 != 0)
        put(b, "", 1);
    for (int i = 0; i < 8; i++)
        put_u32(b, (uint32_t)i);
}

static void a_right_file_is_read(void **state) {
    (void)state;
    bytes b;
    put_start(&b, 1, 2);
    put_key(&b, "llama.block_count", WEIR__GGUF_U32);
    put_u32(&b, 7);
    put_key(&b, "general.name", WEIR__GGUF_STRING);
    put_string(&b, "small");
    finish_small(&b);
    parsed p = parse(&b);
    assert_int_equal(p.code, WEIR_OK);
    int64_t n = 0;
    weir__string name;
    assert_int_equal(weir__gguf_get_int(p.file, "llama.block_count", true, 1, 1024, &n, NULL), WEIR_OK);
    assert_int_equal(n, 7);
    assert_int_equal(weir__gguf_get_string(p.file, "general.name", true, &name, NULL), WEIR_OK);
    assert_memory_equal(name.data, "small", 5);
    const weir__tensor *t = weir__gguf_find_tensor(p.file, "w");
    assert_non_null(t);
    assert_int_equal(t->dims[0], 4);
    assert_int_equal(t->dims[1], 2);
    assert_int_equal(t->dims[2], 1);
    assert_int_equal(t->size, 32);
    assert_int_equal(t->offset + t->size, b.size);
    assert_null(weir__gguf_find_tensor(p.file, "absent"));
    assert_null(weir__gguf_find(p.file, "absent"));
    end(&p);
}

static void other_versions_and_byte_orders_are_refused_by_name(void **state) {
    (void)state;
    bytes b;
    for (uint32_t version = 0; version <= 4; version++) {
        char text[32];
        if (version == 3)
            continue;
        put_start(&b, 0, 0);
        memcpy(b.data + 4, &version, 4);
        snprintf(text, sizeof text, "version %u", version);
        refused(&b, WEIR_EUNSUPPORTED, text, "wanted 3");
    }
    put_start(&b, 0, 0);
    memcpy(b.data + 4, "\0\0\0\3", 4);
    refused(&b, WEIR_EUNSUPPORTED, "big-endian");
    memcpy(b.data, "FUGG", 4);
    refused(&b, WEIR_EUNSUPPORTED, "big-endian");
    memcpy(b.data, "PK\3\4", 4);
    refused(&b, WEIR_EFORMAT, "50 4b 03 04", "GGUF");
}

static void every_cut_of_a_header_is_refused(void **state) {
    (void)state;
    bytes b;
    put_start(&b, 1, 1);
    put_array(&b, "names", WEIR__GGUF_STRING, 2);
    put_string(&b, "one");
    put_string(&b, "two");
    finish_small(&b);
    for (size_t n = 0; n < b.size; n++) {
        bytes cut = b;
        cut.size = n;
        refused(&cut, WEIR_EFORMAT, ":");
    }
}

static void gguf_A1(void **state) {
    (void)state;
    bytes b;
    put_start(&b, UINT64_MAX, 0);
    refused(&b, WEIR_EFORMAT, "18446744073709551615 tensors");
    put_start(&b, 0, UINT64_MAX / 24);
    refused(&b, WEIR_EFORMAT, "keys");
    put_start(&b, 0, 1);
    put_u64(&b, UINT64_MAX - 7); /* length of the key's name */
    put(&b, "abcdefgh", 8);
    refused(&b, WEIR_EFORMAT, "key 0", "18446744073709551608");
    put_start(&b, 0, 1);
    put_key(&b, "general.name", WEIR__GGUF_STRING);
    put_u64(&b, UINT64_MAX - 3);
    refused(&b, WEIR_EFORMAT, "general.name", "18446744073709551612");
    put_start(&b, 1, 0);
    put_tensor(&b, "w", 5, (uint64_t[]){1, 1, 1, 1, 1}, 0, 0);
    refused(&b, WEIR_EFORMAT, "\"w\"", "5 dimensions", "1 to 4");
    /* Products of dimensions that wrap to something small. */
    put_start(&b, 1, 0);
    put_tensor(&b, "w", 4, (uint64_t[]){1 << 16, 1 << 16, 1 << 16, 1 << 16}, 0, 0);
    refused_sized(&b, UINT64_C(1) << 40, WEIR_EFORMAT, "\"w\"", "2^63");
    put_start(&b, 1, 0);
    put_tensor(&b, "w", 2, (uint64_t[]){INT64_MAX, 2}, 0, 0);
    refused(&b, WEIR_EFORMAT, "\"w\"", "2^63");
    put_start(&b, 1, 0);
    put_tensor(&b, "w", 1, (uint64_t[]){UINT64_MAX}, 0, 0);
    refused(&b, WEIR_EFORMAT, "\"w\"", "dimension 0", "18446744073709551615");
}

static void alignment_key(bytes *b, uint32_t type, uint32_t value) {
    put_start(b, 1, 1);
    put_key(b, "general.alignment", type);
    put_u32(b, value);
    finish_small(b);
}

static void gguf_A3(void **state) {
    (void)state;
    bytes b;
    static const uint32_t bad[] = {0, 1, 4, 33, 48, 0x80000000u, UINT32_MAX};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        alignment_key(&b, WEIR__GGUF_U32, bad[i]);
        refused(&b, WEIR_EFORMAT, "general.alignment", "power of two");
    }
    alignment_key(&b, WEIR__GGUF_I32, 32);
    refused(&b, WEIR_EFORMAT, "general.alignment", "found i32", "wanted u32");
    alignment_key(&b, WEIR__GGUF_U32, 32);
    parsed p = parse(&b);
    assert_int_equal(p.code, WEIR_OK);
    end(&p);
    put_start(&b, 1, 0);
    put_tensor(&b, "w", 1, (uint64_t[]){1}, 0, UINT64_MAX - 31); /* offset that wraps when the data's start is added */
    refused(&b, WEIR_EFORMAT, "\"w\"", "wanted 4");
    put_start(&b, 1, 0);
    put_tensor(&b, "w", 1, (uint64_t[]){1}, 0, 16);
    refused(&b, WEIR_EFORMAT, "\"w\"", "offset 16", "32");
}

static void put_vocabulary(bytes *b, const char *model, uint64_t tokens, uint64_t scores, uint64_t kinds) {
    put_key(b, "tokenizer.ggml.model", WEIR__GGUF_STRING);
    put_string(b, model);
    put_array(b, "tokenizer.ggml.tokens", WEIR__GGUF_STRING, tokens);
    for (uint64_t i = 0; i < tokens; i++)
        put_string(b, (char[]){(char)('a' + i), 0});
    put_array(b, "tokenizer.ggml.scores", WEIR__GGUF_F32, scores);
    for (uint64_t i = 0; i < scores; i++)
        put_u32(b, 0);
    put_array(b, "tokenizer.ggml.token_type", WEIR__GGUF_I32, kinds);
    for (uint64_t i = 0; i < kinds; i++)
        put_u32(b, WEIR__NORMAL);
}

static void gguf_A5(void **state) {
    (void)state;
    bytes b;
    weir__tokenizer *t;
    put_start(&b, 0, 4); /* no ids: the defaults 1 and 2 of this model lie outside of one piece */
    put_vocabulary(&b, "llama", 1, 1, 1);
    parsed p = parse(&b);
    assert_int_equal(p.code, WEIR_OK);
    assert_int_equal(weir__gguf_tokenizer(p.file, &t, &p.error), WEIR_OK);
    assert_int_equal(weir__tokenizer_bos(t), -1);
    assert_int_equal(weir__tokenizer_eos(t), -1);
    assert_false(weir__tokenizer_add_bos(t));
    assert_false(weir__tokenizer_is_end(t, -1));
    assert_false(weir__tokenizer_is_end(t, 2));
    weir__tokenizer_free(t);
    end(&p);

    put_start(&b, 0, 6);
    put_vocabulary(&b, "llama", 3, 3, 3);
    put_key(&b, "tokenizer.ggml.bos_token_id", WEIR__GGUF_U32);
    put_u32(&b, UINT32_MAX);
    put_key(&b, "tokenizer.ggml.eos_token_id", WEIR__GGUF_U32);
    put_u32(&b, 3);
    p = parse(&b);
    assert_int_equal(weir__gguf_tokenizer(p.file, &t, &p.error), WEIR_OK);
    assert_int_equal(weir__tokenizer_bos(t), -1);
    assert_int_equal(weir__tokenizer_eos(t), -1);
    weir__ids ids = {0};
    assert_int_equal(weir__tokenizer_encode(t, &(weir__part){"abc", 3, true}, 1, true, &ids, NULL), WEIR_OK);
    assert_int_equal(ids.data[ids.size - 1], 2); /* no end token behind it */
    weir__ids_free(p.system, &ids);
    weir__tokenizer_free(t);
    end(&p);
}

static void gguf_A7(void **state) {
    (void)state;
    static const uint64_t sizes[][2] = {{2, 3}, {3, 2}, {4, 3}, {0, 3}, {3, 4}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        bytes b;
        weir__tokenizer *t;
        put_start(&b, 0, 4);
        put_vocabulary(&b, "llama", 3, sizes[i][0], sizes[i][1]);
        parsed p = parse(&b);
        assert_int_equal(p.code, WEIR_OK);
        assert_int_equal(weir__gguf_tokenizer(p.file, &t, &p.error), WEIR_EFORMAT);
        assert_null(t);
        assert_non_null(strstr(weir_error_text(p.error), sizes[i][0] != 3 ? "tokenizer.ggml.scores" : "tokenizer.ggml.token_type"));
        assert_non_null(strstr(weir_error_text(p.error), "wanted 3"));
        end(&p);
    }
}

static void gguf_A9(void **state) {
    (void)state;
    bytes b;
    static const uint32_t elements[] = {WEIR__GGUF_U8, WEIR__GGUF_F64, WEIR__GGUF_STRING, WEIR__GGUF_ARRAY};
    for (size_t i = 0; i < sizeof elements / sizeof elements[0]; i++) {
        put_start(&b, 0, 1);
        put_array(&b, "k", elements[i], HUGE_COUNT);
        refused(&b, WEIR_EFORMAT, "\"k\"", "9223372036854775808");
    }
    put_start(&b, HUGE_COUNT, 0);
    refused(&b, WEIR_EFORMAT, "9223372036854775808 tensors");
    put_start(&b, 0, HUGE_COUNT);
    refused(&b, WEIR_EFORMAT, "9223372036854775808 keys");
    put_start(&b, 0, 1);
    put_key(&b, "k", WEIR__GGUF_STRING);
    put_u64(&b, HUGE_COUNT);
    refused(&b, WEIR_EFORMAT, "\"k\"", "9223372036854775808");
    put_start(&b, 0, 1);
    put_array(&b, "k", WEIR__GGUF_ARRAY, 1);
    put_u32(&b, WEIR__GGUF_ARRAY);
    put_u64(&b, UINT64_C(1) << 62);
    refused(&b, WEIR_EFORMAT, "\"k\"", "4611686018427387904");
}

static void nested_arrays_are_read_and_bounded(void **state) {
    (void)state;
    bytes b;
    put_start(&b, 0, 2);
    put_array(&b, "k", WEIR__GGUF_ARRAY, 2);
    put_u32(&b, WEIR__GGUF_STRING);
    put_u64(&b, 1);
    put_string(&b, "x");
    put_u32(&b, WEIR__GGUF_U16);
    put_u64(&b, 3);
    put(&b, "123456", 6);
    put_key(&b, "after", WEIR__GGUF_BOOL);
    put(&b, "\1", 1);
    parsed p = parse(&b);
    bool after = false;
    assert_int_equal(p.code, WEIR_OK);
    assert_int_equal(weir__gguf_get_bool(p.file, "after", true, &after, NULL), WEIR_OK);
    assert_true(after);
    end(&p);
    put_start(&b, 0, 1);
    put_array(&b, "k", WEIR__GGUF_ARRAY, 1);
    for (int i = 0; i < 100; i++) {
        put_u32(&b, WEIR__GGUF_ARRAY);
        put_u64(&b, 1);
    }
    refused(&b, WEIR_EFORMAT, "\"k\"", "nested");
}

static void gguf_A11(void **state) {
    (void)state;
    bytes b;
    put_start(&b, 1, 0);
    put_tensor(&b, "w", 9, (uint64_t[]){1, 1, 1, 1, 1, 1, 1, 1, 1}, 0, 0);
    refused(&b, WEIR_EFORMAT, "\"w\"", "9 dimensions");
    put_start(&b, 1, 0);
    put_string(&b, "w");
    put_u32(&b, UINT32_MAX);
    put(&b, "0123456789abcdef0123456789abcdef", 32);
    refused(&b, WEIR_EFORMAT, "\"w\"", "4294967295 dimensions");
    put_start(&b, 1, 0);
    put_tensor(&b, "w", 0, NULL, 0, 0);
    put(&b, "0123456789abcdef", 16);
    refused(&b, WEIR_EFORMAT, "\"w\"", "0 dimensions");
}

static void gguf_A13(void **state) {
    (void)state;
    for (unsigned zero = 0; zero < 4; zero++) {
        bytes b;
        uint64_t dims[4] = {4, 4, 4, 4};
        char text[32];
        dims[zero] = 0;
        put_start(&b, 1, 0);
        put_tensor(&b, "w", 4, dims, 0, 0);
        snprintf(text, sizeof text, "dimension %u", zero);
        refused(&b, WEIR_EFORMAT, "\"w\"", text, "found 0");
    }
}

static void gguf_A15(void **state) {
    (void)state;
    bytes b;
    int64_t v = 5;
    put_start(&b, 0, 3);
    put_key(&b, "llama.attention.head_count", WEIR__GGUF_U32);
    put_u32(&b, 0);
    put_key(&b, "llama.block_count", WEIR__GGUF_U64);
    put_u64(&b, UINT64_MAX);
    put_key(&b, "llama.attention.head_count_kv", WEIR__GGUF_I32);
    put_u32(&b, (uint32_t)-8);
    parsed p = parse(&b);
    static const struct {
        const char *key, *found;
    } rows[] = {{"llama.attention.head_count", "found 0"},
                {"llama.block_count", "found 18446744073709551615"},
                {"llama.attention.head_count_kv", "found -8"}};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(weir__gguf_get_int(p.file, rows[i].key, true, 1, WEIR_MAX_LAYERS, &v, &p.error), WEIR_EFORMAT);
        assert_non_null(strstr(weir_error_text(p.error), rows[i].key));
        assert_non_null(strstr(weir_error_text(p.error), rows[i].found));
        assert_non_null(strstr(weir_error_text(p.error), "wanted 1 to 1024"));
        assert_int_equal(v, 5);
        weir_error_free(p.error);
        p.error = NULL;
    }
    end(&p);
}

static void gguf_A17(void **state) {
    (void)state;
    bytes b;
    put_start(&b, 1, 0);
    finish_small(&b);
    b.size -= 1;
    refused(&b, WEIR_EFORMAT, "\"w\"", "found 31 bytes", "wanted 32");
    put_start(&b, 2, 0);
    put_tensor(&b, "first", 1, (uint64_t[]){8}, 0, 0);
    put_tensor(&b, "second", 1, (uint64_t[]){8}, 0, 1 << 20);
    refused_sized(&b, b.size + 100, WEIR_EFORMAT, "test.gguf", "\"second\"", "found 0 bytes", "wanted 32");
}

static void gguf_A23(void **state) {
    (void)state;
    bytes b;
    put_start(&b, 0, 1);
    put_array(&b, "k", WEIR__GGUF_STRING, 2);
    put_string(&b, "inside");
    put_u64(&b, 9); /* one byte more than is left */
    put(&b, "12345678", 8);
    refused(&b, WEIR_EFORMAT, "\"k\"", "wanted 9 bytes");
    put_start(&b, 0, 1);
    put_array(&b, "k", WEIR__GGUF_U32, 5);
    put(&b, "0123456789abcdef", 16);
    refused(&b, WEIR_EFORMAT, "\"k\"", "5 elements");
    put_start(&b, 0, 1);
    put_u64(&b, WEIR_GGUF_MAX_NAME + 1);
    for (int i = 0; i <= WEIR_GGUF_MAX_NAME; i++)
        put(&b, "k", 1);
    put(&b, "0123456789abcdef", 16);
    refused(&b, WEIR_EFORMAT, "key 0", "257", "256");
}

/* Writes bytes to a new file. */
static const char *file_of(const bytes *b) {
    static char path[] = "/tmp/weir-test-gguf-XXXXXX";
    strcpy(path + sizeof path - 7, "XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, b->data, b->size), b->size);
    close(fd);
    return path;
}

static void gguf_A25(void **state) {
    (void)state;
    bytes b;
    weir_system *s;
    weir__gguf *g;
    weir_error *error = NULL;
    float data[8];
    put_start(&b, 1, 0);
    finish_small(&b);
    const char *path = file_of(&b);
    assert_int_equal(weir_system_new(NULL, &s, NULL), WEIR_OK);
    assert_int_equal(weir__gguf_open(s, path, &g, NULL), WEIR_OK);
    uint64_t offset = weir__gguf_find_tensor(g, "w")->offset;
    assert_int_equal(weir__gguf_read(g, offset, data, sizeof data, NULL), WEIR_OK);
    assert_int_equal(truncate(path, (off_t)offset + 12), 0); /* the file shrinks under the reader */
    assert_int_equal(weir__gguf_read(g, offset, data, sizeof data, &error), WEIR_EFORMAT);
    assert_non_null(strstr(weir_error_text(error), path));
    assert_non_null(strstr(weir_error_text(error), "found 12 bytes"));
    assert_non_null(strstr(weir_error_text(error), "wanted 32"));
    weir_error_free(error);
    weir__gguf_free(g);
    static const struct {
        const char *point;
        int code;
    } faults[] = {{"OPEN", WEIR_EIO}, {"READ", WEIR_EIO}, {"SHORT_READ", WEIR_EFORMAT}};
    for (size_t i = 0; i < 3; i++) {
        uint64_t before = held_bytes(s);
        error = NULL;
        assert_int_equal(weir__inject_arm(s, faults[i].point, 1, 1), WEIR_OK);
        assert_int_equal(weir__gguf_open(s, path, &g, &error), faults[i].code);
        assert_non_null(strstr(weir_error_text(error), path));
        weir_error_free(error);
        assert_int_equal(held_bytes(s), before);
    }
    unlink(path);
    weir_system_free(s);
}

static void names_that_are_there_twice_are_refused(void **state) {
    (void)state;
    bytes b;
    put_start(&b, 0, 2);
    for (int i = 0; i < 2; i++) {
        put_key(&b, "general.name", WEIR__GGUF_BOOL);
        put(&b, "\0", 1);
    }
    refused(&b, WEIR_EFORMAT, "general.name", "twice");
    put_start(&b, 2, 0);
    put_tensor(&b, "w", 1, (uint64_t[]){8}, 0, 0);
    put_tensor(&b, "w", 1, (uint64_t[]){8}, 0, 32);
    refused_sized(&b, 4096, WEIR_EFORMAT, "\"w\"", "twice");
}

static void unknown_types_are_refused_by_number(void **state) {
    (void)state;
    bytes b;
    put_start(&b, 0, 1);
    put_key(&b, "k", 13);
    put(&b, "0123456789abcdef", 16);
    refused(&b, WEIR_EFORMAT, "\"k\"", "type 13");
    put_start(&b, 0, 1);
    put_array(&b, "k", 77, 1);
    put(&b, "0123456789abcdef", 16);
    refused(&b, WEIR_EFORMAT, "\"k\"", "type 77");
    static const uint32_t unknown[] = {4, 5, 31, 40, 4000, UINT32_MAX};
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        char text[32];
        put_start(&b, 1, 0);
        put_tensor(&b, "w", 1, (uint64_t[]){256}, unknown[i], 0);
        snprintf(text, sizeof text, "type %u", unknown[i]);
        refused_sized(&b, 4096, WEIR_EFORMAT, "\"w\"", text);
    }
}

static void types_that_are_not_run_are_still_read(void **state) {
    (void)state;
    bytes b;
    put_start(&b, 1, 0);
    put_tensor(&b, "w", 2, (uint64_t[]){512, 3}, 16, 0); /* iq2_xxs: 66 bytes for 256 values */
    parsed p = parse_sized(&b, 4096);
    assert_int_equal(p.code, WEIR_OK);
    assert_int_equal(weir__gguf_tensor_at(p.file, 0)->size, 2 * 3 * 66);
    end(&p);
    put_start(&b, 1, 0);
    put_tensor(&b, "w", 2, (uint64_t[]){300, 3}, 16, 0);
    refused_sized(&b, 4096, WEIR_EFORMAT, "\"w\"", "300", "multiple", "256");
}

static void typed_values_are_checked(void **state) {
    (void)state;
    bytes b;
    put_start(&b, 0, 4);
    put_key(&b, "llama.block_count", WEIR__GGUF_STRING);
    put_string(&b, "30");
    put_key(&b, "f", WEIR__GGUF_F32);
    put(&b, &(float){1.5f}, 4);
    put_key(&b, "nan", WEIR__GGUF_F32);
    put_u32(&b, 0x7FC00000);
    put_key(&b, "flag", WEIR__GGUF_BOOL);
    put(&b, "\2", 1);
    parsed p = parse(&b);
    int64_t i = 9;
    double d = 0;
    bool flag = false;
    weir__string s;
    assert_int_equal(weir__gguf_get_int(p.file, "llama.block_count", false, 0, 9, &i, &p.error), WEIR_EFORMAT);
    assert_string_equal(weir_error_text(p.error), "test.gguf: key \"llama.block_count\": found string, wanted an unsigned integer");
    assert_int_equal(weir__gguf_get_int(p.file, "f", false, 0, 9, &i, NULL), WEIR_EFORMAT);
    assert_int_equal(weir__gguf_get_int(p.file, "absent", false, 0, 9, &i, NULL), WEIR_OK);
    assert_int_equal(i, 9);
    assert_int_equal(weir__gguf_get_int(p.file, "absent", true, 0, 9, &i, NULL), WEIR_EFORMAT);
    assert_int_equal(weir__gguf_get_float(p.file, "f", true, &d, NULL), WEIR_OK);
    assert_true(d == 1.5);
    assert_int_equal(weir__gguf_get_float(p.file, "nan", true, &d, NULL), WEIR_EFORMAT);
    assert_int_equal(weir__gguf_get_float(p.file, "flag", true, &d, NULL), WEIR_EFORMAT);
    assert_int_equal(weir__gguf_get_bool(p.file, "flag", true, &flag, NULL), WEIR_EFORMAT);
    assert_int_equal(weir__gguf_get_bool(p.file, "f", true, &flag, NULL), WEIR_EFORMAT);
    assert_int_equal(weir__gguf_get_string(p.file, "f", true, &s, NULL), WEIR_EFORMAT);
    end(&p);
}

static void names_in_errors_are_fit_to_be_shown(void **state) {
    (void)state;
    bytes b;
    put_start(&b, 0, 1);
    put_key(&b, "a\xFF\n\xC3\xA9", 99);
    refused(&b, WEIR_EFORMAT, "a\\xFF\\x0A\xC3\xA9");
}

static void what_is_no_file_is_refused(void **state) {
    (void)state;
    weir_system *s;
    weir__gguf *g;
    weir_error *error = NULL;
    assert_int_equal(weir_system_new(NULL, &s, NULL), WEIR_OK);
    assert_int_equal(weir__gguf_open(s, "/tmp/no/such/file.gguf", &g, NULL), WEIR_ENOENT);
    assert_int_equal(weir__gguf_open(s, "/tmp", &g, &error), WEIR_EFORMAT);
    assert_non_null(strstr(weir_error_text(error), "/tmp"));
    weir_error_free(error);
    char pipe[64];
    snprintf(pipe, sizeof pipe, "/tmp/weir-test-fifo-%d", (int)getpid());
    assert_int_equal(mkfifo(pipe, 0600), 0);
    assert_int_equal(weir__gguf_open(s, pipe, &g, NULL), WEIR_EFORMAT); /* at once, without a writer */
    unlink(pipe);
    weir_system_free(s);
}

static void without_memory_nothing_is_left(void **state) {
    (void)state;
    bytes b;
    put_start(&b, 1, 1);
    put_array(&b, "names", WEIR__GGUF_STRING, 1);
    put_string(&b, "one");
    finish_small(&b);
    const char *path = file_of(&b);
    weir_system *s;
    weir__gguf *g;
    assert_int_equal(weir_system_new(NULL, &s, NULL), WEIR_OK);
    uint64_t before = held_bytes(s), failures = 0;
    for (uint64_t nth = 1;; nth++, failures++) {
        weir__inject_arm(s, "ALLOC", nth, 1);
        int code = weir__gguf_open(s, path, &g, NULL);
        weir__inject_arm(s, "ALLOC", 1, 0);
        if (code == WEIR_OK)
            break;
        assert_int_equal(code, WEIR_ENOMEM);
        assert_int_equal(held_bytes(s), before);
    }
    assert_true(failures >= 6);
    weir__gguf_free(g);
    assert_int_equal(held_bytes(s), before);
    unlink(path);
    weir_system_free(s);
}

static void a_header_longer_than_the_limit_is_refused(void **state) {
    (void)state;
    bytes b;
    put_start(&b, 0, 1);
    put_array(&b, "k", WEIR__GGUF_U8, UINT64_C(1) << 30);
    const char *path = file_of(&b);
    assert_int_equal(truncate(path, (off_t)2 << 30), 0); /* sparse */
    weir_system *s;
    weir__gguf *g;
    weir_error *error = NULL;
    assert_int_equal(weir_system_new(NULL, &s, NULL), WEIR_OK);
    assert_int_equal(weir__gguf_open(s, path, &g, &error), WEIR_EFORMAT);
    assert_non_null(strstr(weir_error_text(error), "268435456"));
    weir_error_free(error);
    unlink(path);
    weir_system_free(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_right_file_is_read),
        cmocka_unit_test(other_versions_and_byte_orders_are_refused_by_name),
        cmocka_unit_test(every_cut_of_a_header_is_refused),
        cmocka_unit_test(gguf_A1),
        cmocka_unit_test(gguf_A3),
        cmocka_unit_test(gguf_A5),
        cmocka_unit_test(gguf_A7),
        cmocka_unit_test(gguf_A9),
        cmocka_unit_test(nested_arrays_are_read_and_bounded),
        cmocka_unit_test(gguf_A11),
        cmocka_unit_test(gguf_A13),
        cmocka_unit_test(gguf_A15),
        cmocka_unit_test(gguf_A17),
        cmocka_unit_test(gguf_A23),
        cmocka_unit_test(gguf_A25),
        cmocka_unit_test(names_that_are_there_twice_are_refused),
        cmocka_unit_test(unknown_types_are_refused_by_number),
        cmocka_unit_test(types_that_are_not_run_are_still_read),
        cmocka_unit_test(typed_values_are_checked),
        cmocka_unit_test(names_in_errors_are_fit_to_be_shown),
        cmocka_unit_test(what_is_no_file_is_refused),
        cmocka_unit_test(without_memory_nothing_is_left),
        cmocka_unit_test(a_header_longer_than_the_limit_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
