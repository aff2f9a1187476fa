/* test_split.c: a GGUF file that was cut into parts opens as one, whichever part is given; parts that are missing or disagree are refused by name. */
#include "../../../core/model/split.h"
#include "helper_gguf.h"

static char folder[64];
static weir_system *s;

static int setup(void **state) {
    (void)state;
    strcpy(folder, "/tmp/weir-test-split-XXXXXX");
    return mkdtemp(folder) && weir_system_new(NULL, &s, NULL) == WEIR_OK ? 0 : -1;
}

static int teardown(void **state) {
    (void)state;
    char line[128];
    weir_system_free(s);
    snprintf(line, sizeof line, "rm -r %s", folder);
    return system(line);
}

static const char *in_folder(const char *name) {
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* What is written into part no of `count`: by default as llama.cpp does it. */
typedef struct part {
    uint32_t no, count, tensors;
    const char *tensor; /* its one tensor; NULL: none */
    const char *key, *value;
} part;

static void write_part(const char *name, part p) {
    weir__gguf_writer *w;
    assert_int_equal(weir__gguf_create(s, in_folder(name), &w, NULL), WEIR_OK);
    if (p.count) {
        weir__gguf_put_u32(w, "split.no", p.no);
        weir__gguf_put_u32(w, "split.count", p.count);
        weir__gguf_put_u32(w, "split.tensors.count", p.tensors);
    }
    if (p.key)
        weir__gguf_put_string(w, p.key, p.value);
    if (p.tensor) {
        weir__gguf_put_tensor(w, p.tensor, WEIR_F32, 1, (int64_t[]){2});
        weir__gguf_put_data(w, (float[]){(float)p.no, 9.0f}, 8, NULL);
    }
    assert_int_equal(weir__gguf_finish(w, NULL), WEIR_OK);
}

/* m-0000K-of-00003.gguf, three tensors in the last two parts (the first has only settings, as gguf-split --no-tensor-first-split makes it). */
static void write_three(void) {
    write_part("m-00001-of-00003.gguf", (part){0, 3, 2, NULL, "general.architecture", "llama"});
    write_part("m-00002-of-00003.gguf", (part){1, 3, 2, "a", NULL, NULL});
    write_part("m-00003-of-00003.gguf", (part){2, 3, 2, "b", NULL, NULL});
}

static void refused_part(const char *name, int want_code, const char *first, const char *second) {
    weir__source *src = NULL;
    weir_error *error = NULL;
    uint64_t before = held_bytes(s);
    assert_int_equal(weir__source_open(s, in_folder(name), &src, &error), want_code);
    assert_null(src);
    if (!strstr(weir_error_text(error), first) || !strstr(weir_error_text(error), second))
        fail_msg("\"%s\" and \"%s\" are not both in \"%s\"", first, second, weir_error_text(error));
    weir_error_free(error);
    assert_int_equal(held_bytes(s), before);
}

static void names_of_parts_are_parsed_strictly(void **state) {
    (void)state;
    weir__split split;
    assert_true(weir__split_parse("/x/m-00002-of-00005.gguf", ".gguf", 5, &split));
    assert_int_equal(split.prefix, 4);
    assert_int_equal(split.no, 2);
    assert_int_equal(split.count, 5);
    static const char *const others[] = {"m.gguf",
                                         "best-of-breed.gguf",
                                         "m-0002-of-00005.gguf",
                                         "m-00002-of-0005.gguf",
                                         "m-000002-of-00005.gguf",
                                         "m-00002-of-000005.gguf",
                                         "m-0000x-of-00005.gguf",
                                         "m_00002-of-00005.gguf",
                                         "m-00002_of_00005.gguf",
                                         "m-00002-of-00005.gguf.part",
                                         "m--0002-of-00005.gguf",
                                         "m-+0002-of-00005.gguf",
                                         "-of-.gguf",
                                         "/x/-00002-of-00005.gguf",
                                         "-00002-of-00005.gguf",
                                         ".gguf",
                                         ""};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (weir__split_parse(others[i], ".gguf", 5, &split))
            fail_msg("%s", others[i]);
    assert_true(weir__split_parse("model-00001-of-000163.safetensors", ".safetensors", 0, &split));
    assert_int_equal(split.count, 163);
    assert_false(weir__split_parse("model-1234567890-of-2.safetensors", ".safetensors", 0, &split));
}

static void any_part_opens_the_whole(void **state) {
    (void)state;
    static const char *const names[] = {"m-00001-of-00003.gguf", "m-00002-of-00003.gguf", "m-00003-of-00003.gguf"};
    write_three();
    for (int i = 0; i < 3; i++) {
        weir__source *src;
        weir__string family;
        float values[2];
        assert_int_equal(weir__source_open(s, in_folder(names[i]), &src, NULL), WEIR_OK);
        assert_int_equal(weir__source_files(src), 3);
        for (uint32_t k = 0; k < 3; k++)
            assert_string_equal(weir__source_file(src, k), in_folder(names[k]));
        assert_int_equal(weir__source_family(src, &family, NULL), WEIR_OK);
        assert_int_equal(weir__source_tensor_count(src), 2);
        const weir__tensor *b = weir__source_find(src, "b");
        assert_int_equal(b->file, 2);
        assert_int_equal(weir__source_read(src, b, 0, values, sizeof values, NULL), WEIR_OK);
        assert_true(values[0] == 2.0f);
        assert_int_equal(weir__source_read(src, weir__source_find(src, "a"), 0, values, sizeof values, NULL), WEIR_OK);
        assert_true(values[0] == 1.0f);
        weir__source_free(src);
    }
}

static void gguf_A19_a_missing_part_is_reported_by_name(void **state) {
    (void)state;
    write_three();
    unlink(in_folder("m-00002-of-00003.gguf"));
    refused_part("m-00001-of-00003.gguf", WEIR_ENOENT, "m-00002-of-00003.gguf", "part 2 of 3 is missing");
    refused_part("m-00003-of-00003.gguf", WEIR_ENOENT, "m-00002-of-00003.gguf", "part 2 of 3 is missing");
    refused_part("m-00002-of-00003.gguf", WEIR_ENOENT, "m-00002-of-00003.gguf", "No such file");
}

static void gguf_A19_a_name_that_only_looks_like_a_part_is_a_file(void **state) {
    (void)state;
    static const char *const names[] = {"best-of-breed.gguf", "x-00000-of-00003.gguf", "x-00004-of-00003.gguf"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        weir__source *src;
        write_part(names[i], (part){0, i == 0, 1, "a", "general.architecture", "llama"});
        assert_int_equal(weir__source_open(s, in_folder(names[i]), &src, NULL), WEIR_OK);
        assert_int_equal(weir__source_files(src), 1);
        weir__source_free(src);
    }
}

static void gguf_A19_a_part_with_another_name_is_refused(void **state) {
    (void)state;
    write_part("best-of-breed.gguf", (part){0, 3, 2, "a", NULL, NULL});
    refused_part("best-of-breed.gguf", WEIR_EFORMAT, "best-of-breed.gguf", "NAME-00001-of-00003.gguf");
    write_part("x-00000-of-00003.gguf", (part){0, 3, 2, "a", NULL, NULL});
    refused_part("x-00000-of-00003.gguf", WEIR_EFORMAT, "part 0", "wanted 1 to 3");
    write_part("x-00004-of-00003.gguf", (part){0, 3, 2, "a", NULL, NULL});
    refused_part("x-00004-of-00003.gguf", WEIR_EFORMAT, "part 4", "wanted 1 to 3");
    write_part("x-00001-of-00002.gguf", (part){0, 3, 2, "a", NULL, NULL});
    refused_part("x-00001-of-00002.gguf", WEIR_EFORMAT, "split.count", "found 3, wanted 2");
}

static void parts_that_disagree_are_refused(void **state) {
    (void)state;
    static const struct {
        part second;
        const char *first, *found;
    } cases[] = {
        {{2, 3, 2, "a", NULL, NULL}, "split.no", "found 2, wanted 1"},
        {{1, 4, 2, "a", NULL, NULL}, "split.count", "found 4, wanted 3"},
        {{1, 3, 7, "a", NULL, NULL}, "split.tensors.count", "found 7, but the 3 parts have 2"},
        {{1, 3, 2, NULL, NULL, NULL}, "split.tensors.count", "have 1 tensors"},
        {{0, 0, 0, "a", NULL, NULL}, "split.no", "not found"},
        {{1, 3, 2, "b", NULL, NULL}, "\"b\"", "found also in"},
        {{1, 3, 2, "a", "general.architecture", "qwen2"}, "general.architecture", "another value"},
        {{1, 3, 2, "a", "general.name", "x"}, "general.name", "no such key"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_three();
        write_part("m-00002-of-00003.gguf", cases[i].second);
        refused_part("m-00003-of-00003.gguf", WEIR_EFORMAT, cases[i].first, cases[i].found);
    }
    write_three();
    write_part("m-00002-of-00003.gguf", (part){1, 3, 2, "a", "general.architecture", "llama"}); /* the same again does no harm */
    weir__source *src;
    assert_int_equal(weir__source_open(s, in_folder("m-00001-of-00003.gguf"), &src, NULL), WEIR_OK);
    weir__source_free(src);
}

static void without_memory_nothing_is_left(void **state) {
    (void)state;
    weir__source *src;
    uint64_t before = held_bytes(s), failures = 0;
    write_three();
    for (uint64_t nth = 1;; nth++, failures++) {
        weir__inject_arm(s, "ALLOC", nth, 1);
        int code = weir__source_open(s, in_folder("m-00002-of-00003.gguf"), &src, NULL);
        weir__inject_arm(s, "ALLOC", 1, 0);
        if (!code)
            break;
        assert_int_equal(code, WEIR_ENOMEM);
        assert_int_equal(held_bytes(s), before);
    }
    assert_true(failures >= 15);
    weir__source_free(src);
    assert_int_equal(held_bytes(s), before);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_parts_are_parsed_strictly),
        cmocka_unit_test(any_part_opens_the_whole),
        cmocka_unit_test(gguf_A19_a_missing_part_is_reported_by_name),
        cmocka_unit_test(gguf_A19_a_name_that_only_looks_like_a_part_is_a_file),
        cmocka_unit_test(gguf_A19_a_part_with_another_name_is_refused),
        cmocka_unit_test(parts_that_disagree_are_refused),
        cmocka_unit_test(without_memory_nothing_is_left),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
