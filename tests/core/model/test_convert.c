/* test_convert.c: conversion and random models under injected faults: the error names a file, nothing stays on the disk or allocated, and the next try succeeds. */
#include "../../../core/model/convert.h"
#include "../../../core/model/make.h"
#include "helper_folder.h"
#include "helper_gguf.h"

#include <dirent.h>

static weir_system *s;

static int setup(void **state) {
    return folder_make(state) == 0 && weir_system_new(NULL, &s, NULL) == WEIR_OK ? 0 : -1;
}

static int teardown(void **state) {
    weir_system_free(s);
    return folder_remove(state);
}

static int entries(void) {
    int n = 0;
    DIR *d = opendir(folder);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));)
        n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

typedef int work(weir_error **error);

static int make(const char *name, const char *family, int type, weir_error **error) {
    weir__make_options o = {
        .family = family, .layers = 2, .width = 64, .heads = 2, .kv_heads = 1, .ffn = 64, .vocab = 300, .context = 64, .type = type};
    return weir__make(s, &o, folder_path(name), error);
}

static int convert(const char *from, const char *to, weir__convert_options o, weir_error **error) {
    char in[256];
    strcpy(in, folder_path(from));
    return weir__convert(s, in, folder_path(to), &o, error);
}

/* Lets the nth pass of a point fail, for all n until the work succeeds; the folder's contents are then removed. */
static void sweep(const char *point, int code, int at_least, work *fn) {
    uint64_t before = held_bytes(s);
    int there = entries(), failures = 0;
    for (;; failures++) {
        weir_error *error = NULL;
        weir__inject_arm(s, point, (uint64_t)failures + 1, 1);
        int got = fn(&error);
        weir__inject_arm(s, point, 1, 0);
        if (got)
            assert_true(strstr(weir_error_text(error), folder) || got == WEIR_ENOMEM);
        weir_error_free(error);
        assert_int_equal(held_bytes(s), before);
        if (!got)
            break;
        assert_int_equal(got, code);
        assert_int_equal(entries(), there);
    }
    assert_true(failures >= at_least);
    assert_int_equal(entries(), there + 1);
}

static void remove_made(const char *name) {
    assert_int_equal(nftw(folder_path(name), folder_remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

static int make_target(weir_error **error) {
    return make("made.gguf", "qwen2", WEIR_Q4_0, error);
}

static int to_gguf(weir_error **error) {
    return convert("a.gguf", "b.gguf", (weir__convert_options){.type = WEIR_Q8_0}, error);
}

static int to_folder(weir_error **error) {
    return convert("a.gguf", "b", (weir__convert_options){.type = -1}, error);
}

static int to_shards(weir_error **error) {
    return convert("a.gguf", "b", (weir__convert_options){.type = WEIR_F16, .shard_bytes = 20000}, error);
}

static int from_folder(weir_error **error) {
    return convert("f", "b.gguf", (weir__convert_options){.type = WEIR_Q4_1}, error);
}

static void faults_of(const char *made, work *fn) {
    static const struct {
        const char *point;
        int code;
    } points[] = {{"ALLOC", WEIR_ENOMEM}, {"WRITE", WEIR_EIO}, {"READ", WEIR_EIO}, {"OPEN", WEIR_EIO}};
    for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
        bool reads = points[i].code == WEIR_EIO && points[i].point[0] != 'W' && fn != make_target;
        sweep(points[i].point, points[i].code, points[i].point[0] == 'A' ? 5 : points[i].point[0] == 'W' || reads ? 1 : 0, fn);
        remove_made(made);
    }
}

static void a_random_model_under_faults(void **state) {
    (void)state;
    faults_of("made.gguf", make_target);
}

static void gguf_to_gguf_under_faults(void **state) {
    (void)state;
    assert_int_equal(make("a.gguf", "llama", WEIR_F32, NULL), WEIR_OK);
    faults_of("b.gguf", to_gguf);
}

static void gguf_to_safetensors_under_faults(void **state) {
    (void)state;
    assert_int_equal(make("a.gguf", "gemma2", WEIR_F32, NULL), WEIR_OK);
    faults_of("b", to_folder);
    faults_of("b", to_shards);
}

static void safetensors_to_gguf_under_faults(void **state) {
    (void)state;
    assert_int_equal(make("a.gguf", "qwen3", WEIR_F32, NULL), WEIR_OK);
    assert_int_equal(convert("a.gguf", "f", (weir__convert_options){.type = -1, .shard_bytes = 50000}, NULL), WEIR_OK);
    faults_of("b.gguf", from_folder);
}

/* The bytes of the source that were read when the conversion gave up. */
static bool note(void *data, uint64_t done, uint64_t total) {
    (void)total;
    *(uint64_t *)data = done;
    return true;
}

static void a_full_disk_ends_the_conversion_at_once(void **state) {
    (void)state;
    weir_error *error = NULL;
    uint64_t done = 0;
    static const char *const targets[] = {"b.gguf", "b"};
    assert_int_equal(make("a.gguf", "llama", WEIR_F32, NULL), WEIR_OK);
    for (size_t i = 0; i < 2; i++) {
        weir__inject_arm(s, "WRITE", 1, 1000000);
        assert_int_equal(convert("a.gguf", targets[i], (weir__convert_options){.type = -1, .progress = note, .data = &done}, &error),
                         WEIR_EIO);
        weir__inject_arm(s, "WRITE", 1, 0);
        assert_non_null(strstr(weir_error_text(error), folder_path(targets[i])));
        weir_error_free(error);
        assert_int_equal(done, 0);
    }
}

static bool refuse(void *data, uint64_t done, uint64_t total) {
    (void)data, (void)done, (void)total;
    return false;
}

static void a_conversion_that_is_given_up_leaves_nothing(void **state) {
    (void)state;
    assert_int_equal(make("a.gguf", "llama", WEIR_F32, NULL), WEIR_OK);
    uint64_t before = held_bytes(s);
    assert_int_equal(convert("a.gguf", "b.gguf", (weir__convert_options){.type = -1, .progress = refuse}, NULL), WEIR_ECANCELLED);
    assert_int_equal(convert("a.gguf", "b", (weir__convert_options){.type = -1, .progress = refuse}, NULL), WEIR_ECANCELLED);
    assert_int_equal(entries(), 1);
    assert_int_equal(held_bytes(s), before);
}

static void quantised_weights_into_safetensors_are_refused(void **state) {
    (void)state;
    weir_error *error = NULL;
    assert_int_equal(make("a.gguf", "llama", WEIR_F32, NULL), WEIR_OK);
    assert_int_equal(convert("a.gguf", "b", (weir__convert_options){.type = WEIR_Q4_0}, &error), WEIR_EINVAL);
    assert_non_null(strstr(weir_error_text(error), "q4_0"));
    assert_non_null(strstr(weir_error_text(error), folder_path("b")));
    weir_error_free(error);
    assert_int_equal(entries(), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_random_model_under_faults),
        TEST(gguf_to_gguf_under_faults),
        TEST(gguf_to_safetensors_under_faults),
        TEST(safetensors_to_gguf_under_faults),
        TEST(a_full_disk_ends_the_conversion_at_once),
        TEST(a_conversion_that_is_given_up_leaves_nothing),
        TEST(quantised_weights_into_safetensors_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
