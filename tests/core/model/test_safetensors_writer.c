/* test_safetensors_writer.c: what the writer writes the reader reads; a failed write leaves nothing behind. */
#include "../../../core/model/safetensors_writer.h"
#include "helper_safetensors.h"

#include <dirent.h>
#include <sys/stat.h>

static char folder[64], target[80];
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

static int new_folder(void **state) {
    (void)state;
    strcpy(folder, "/tmp/weir-test-writing-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(target, sizeof target, "%s/model", folder);
    return 0;
}

static int remove_folder(void **state) {
    (void)state;
    char line[128];
    snprintf(line, sizeof line, "rm -r %s", folder);
    return system(line);
}

static const char *in_target(const char *name) {
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", target, name);
    return path;
}

static int entries(const char *path) {
    int n = 0;
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));)
        n += e->d_name[0] != '.';
    if (d)
        closedir(d);
    return n;
}

/* Narrow elements first, an odd number of them: the f32 tensor would lie askew if it followed. */
static void put_everything(weir__safetensors_writer *w) {
    static const char config[] = "{\"model_type\":\"llama\"}";
    weir__safetensors_put_file(w, "config.json", config, strlen(config));
    weir__safetensors_put_tensor(w, "a \"quoted\"\n", WEIR_BF16, 1, (int64_t[]){3});
    weir__safetensors_put_tensor(w, "empty", WEIR_F32, 2, (int64_t[]){0, 7});
    weir__safetensors_put_tensor(w, "b", WEIR_F32, 2, (int64_t[]){2, 5});
    weir__safetensors_put_tensor(w, "scalar", WEIR_F16, 0, NULL);
}

static void check(const weir__source *src, const char *name, const uint8_t *wanted, size_t size) {
    uint8_t data[64];
    const weir__tensor *t = weir__source_find(src, name);
    assert_non_null(t);
    assert_int_equal(t->size, size);
    assert_int_equal(weir__source_read(src, t, 0, data, size, NULL), WEIR_OK);
    assert_memory_equal(data, wanted, size);
}

static void write_and_read(uint64_t shard_bytes, uint32_t files) {
    weir__safetensors_writer *w;
    weir__source *src;
    weir_error *error = NULL;
    uint8_t data[48];
    for (int i = 0; i < 48; i++)
        data[i] = (uint8_t)(i + 1);
    assert_int_equal(weir__safetensors_create(s, target, shard_bytes, &w, NULL), WEIR_OK);
    put_everything(w);
    weir__safetensors_put_data(w, data, 5, NULL); /* pieces need not end where tensors end */
    weir__safetensors_put_data(w, data + 5, 43, NULL);
    assert_int_equal(access(in_target("config.json"), F_OK), -1); /* not there before all is whole */
    if (weir__safetensors_finish(w, &error))
        fail_msg("%s", weir_error_text(error));
    assert_int_equal(entries(target), files == 1 ? 2 : (int)files + 2);
    if (weir__source_open(s, target, &src, &error))
        fail_msg("%s", weir_error_text(error));
    assert_int_equal(weir__source_files(src), files);
    check(src, "a \"quoted\"\n", data, 6);
    check(src, "b", data + 6, 40);
    check(src, "scalar", data + 46, 2);
    check(src, "empty", data, 0);
    const weir__tensor *b = weir__source_find(src, "b");
    assert_int_equal(b->offset % 4, 0);
    assert_int_equal(b->dims[0], 2);
    assert_int_equal(b->dims[1], 5);
    weir__source_free(src);
}

static void one_file_is_read_back(void **state) {
    (void)state;
    write_and_read(0, 1);
}

static void shards_are_cut_by_size(void **state) {
    (void)state;
    write_and_read(42, 2); /* 6 | 40 + 2: what fits exactly is not cut */
}

static void a_tensor_larger_than_a_shard_is_alone(void **state) {
    (void)state;
    write_and_read(7, 3);
}

static void expect_failure(weir__safetensors_writer *w, int code) {
    weir_error *error = NULL;
    assert_int_equal(weir__safetensors_finish(w, &error), code);
    assert_non_null(strstr(weir_error_text(error), target));
    weir_error_free(error);
    assert_int_equal(entries(folder), 0);
}

static void what_cannot_be_right_is_not_written(void **state) {
    (void)state;
    weir__safetensors_writer *w;
    uint8_t data[64] = {0};
    uint64_t before = held_bytes(s);
    static const size_t sizes[] = {0, 47, 49};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(weir__safetensors_create(s, target, 0, &w, NULL), WEIR_OK);
        put_everything(w);
        weir__safetensors_put_data(w, data, sizes[i], NULL);
        expect_failure(w, WEIR_EINVAL);
    }
    static const struct {
        const char *name;
        int type;
        int64_t dim;
    } bad[] = {{"w", WEIR_Q8_0, 32},       {"w", 4711, 1},        {"w", WEIR_F32, -1},
               {"w", WEIR_F32, INT64_MAX}, {"\xFF", WEIR_F32, 1}, {"__metadata__", WEIR_F32, 1}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(weir__safetensors_create(s, target, 0, &w, NULL), WEIR_OK);
        weir__safetensors_put_tensor(w, bad[i].name, bad[i].type, 1, &bad[i].dim);
        expect_failure(w, WEIR_EINVAL);
    }
    assert_int_equal(weir__safetensors_create(s, target, 7, &w, NULL), WEIR_OK);
    put_everything(w);
    weir__safetensors_put_data(w, data, 20, NULL);
    weir__safetensors_abort(w);
    assert_int_equal(entries(folder), 0);
    assert_int_equal(held_bytes(s), before);
}

static void a_folder_that_has_a_checkpoint_is_refused(void **state) {
    (void)state;
    weir__safetensors_writer *w;
    weir_error *error = NULL;
    mkdir(target, 0700);
    write_bytes(in_target("model.safetensors"), "", 0);
    assert_int_equal(weir__safetensors_create(s, target, 0, &w, &error), WEIR_EINVAL);
    assert_non_null(strstr(weir_error_text(error), in_target("model.safetensors")));
    weir_error_free(error);
}

static void a_name_that_is_taken_takes_nothing_with_it(void **state) {
    (void)state;
    weir__safetensors_writer *w;
    uint8_t data[48] = {0};
    assert_int_equal(weir__safetensors_create(s, target, 0, &w, NULL), WEIR_OK);
    put_everything(w);
    weir__safetensors_put_data(w, data, 48, NULL);
    mkdir(in_target("model.safetensors"), 0700); /* cannot be replaced by a file */
    assert_int_equal(weir__safetensors_finish(w, NULL), WEIR_EIO);
    assert_int_equal(entries(target), 1);
}

static void without_memory_nothing_is_written(void **state) {
    (void)state;
    weir__safetensors_writer *w;
    uint64_t before = held_bytes(s), failures = 0;
    uint8_t data[48] = {0};
    for (uint64_t nth = 1;; nth++, failures++) {
        weir__inject_arm(s, "ALLOC", nth, 1);
        int code = weir__safetensors_create(s, target, 7, &w, NULL);
        if (!code) {
            put_everything(w);
            weir__safetensors_put_data(w, data, sizeof data, NULL);
            code = weir__safetensors_finish(w, NULL);
        }
        weir__inject_arm(s, "ALLOC", 1, 0);
        assert_int_equal(held_bytes(s), before);
        if (!code)
            break;
        assert_int_equal(code, WEIR_ENOMEM);
        assert_int_equal(entries(folder), 0);
    }
    assert_true(failures >= 15);
}

#define in_new_folder(test) cmocka_unit_test_setup_teardown(test, new_folder, remove_folder)

int main(void) {
    const struct CMUnitTest tests[] = {
        in_new_folder(one_file_is_read_back),
        in_new_folder(shards_are_cut_by_size),
        in_new_folder(a_tensor_larger_than_a_shard_is_alone),
        in_new_folder(what_cannot_be_right_is_not_written),
        in_new_folder(a_folder_that_has_a_checkpoint_is_refused),
        in_new_folder(a_name_that_is_taken_takes_nothing_with_it),
        in_new_folder(without_memory_nothing_is_written),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
