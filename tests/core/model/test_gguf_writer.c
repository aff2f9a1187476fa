/* test_gguf_writer.c: what the writer writes the reader reads; a failed write leaves nothing behind. */
#include "helper_gguf.h"

#include <dirent.h>
#include <sys/stat.h>

static char folder[64];
static weir_system *s;

static int setup(void **state) {
    (void)state;
    strcpy(folder, "/tmp/weir-test-writer-XXXXXX");
    return mkdtemp(folder) && weir_system_new(NULL, &s, NULL) == WEIR_OK ? 0 : -1;
}

static const char *in_folder(const char *name) {
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static int teardown(void **state) {
    (void)state;
    weir_system_free(s);
    unlink(in_folder("a.gguf"));
    return rmdir(folder);
}

static int files(void) {
    int n = 0;
    DIR *d = opendir(folder);
    for (struct dirent *e; (e = readdir(d));)
        n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

static void put_everything(weir__gguf_writer *w) {
    weir__gguf_put_string(w, "general.architecture", "llama");
    weir__gguf_put_u32(w, "u", 4000000000u);
    weir__gguf_put_f32(w, "f", 1e-5f);
    weir__gguf_put_bool(w, "b", true);
    weir__gguf_put_strings(w, "s", (weir__string[]){{"", 0}, {"xyz", 3}}, 2);
    weir__gguf_put_f32s(w, "fs", (float[]){-1.0f, 0.5f}, 2);
    weir__gguf_put_i32s(w, "is", (int32_t[]){-1, 7}, 2);
    weir__gguf_put_tensor(w, "one", WEIR_F32, 1, (int64_t[]){3});
    weir__gguf_put_tensor(w, "two", WEIR_F32, 2, (int64_t[]){2, 5});
}

static void a_written_file_is_read_back(void **state) {
    (void)state;
    weir__gguf_writer *w;
    float values[13], back[10];
    for (int i = 0; i < 13; i++)
        values[i] = (float)i;
    assert_int_equal(weir__gguf_create(s, in_folder("a.gguf"), &w, NULL), WEIR_OK);
    put_everything(w);
    weir__gguf_put_data(w, values, 5, NULL); /* pieces need not end where tensors end */
    weir__gguf_put_data(w, (char *)values + 5, sizeof values - 5, NULL);
    assert_int_equal(access(in_folder("a.gguf"), F_OK), -1); /* not there before it is whole */
    assert_int_equal(weir__gguf_finish(w, NULL), WEIR_OK);
    assert_int_equal(files(), 1);

    weir__gguf *g;
    int64_t i = 0;
    double d = 0;
    bool flag = false;
    weir__string text;
    assert_int_equal(weir__gguf_open(s, in_folder("a.gguf"), &g, NULL), WEIR_OK);
    assert_int_equal(weir__gguf_key_count(g), 7);
    assert_int_equal(weir__gguf_get_int(g, "u", true, 0, UINT32_MAX, &i, NULL), WEIR_OK);
    assert_int_equal(i, 4000000000u);
    assert_int_equal(weir__gguf_get_float(g, "f", true, &d, NULL), WEIR_OK);
    assert_true((float)d == 1e-5f);
    assert_int_equal(weir__gguf_get_bool(g, "b", true, &flag, NULL), WEIR_OK);
    assert_true(flag);
    assert_int_equal(weir__gguf_get_string(g, "general.architecture", true, &text, NULL), WEIR_OK);
    const uint8_t *at = weir__gguf_find(g, "s")->data;
    assert_int_equal(weir__gguf_next_string(&at).size, 0);
    text = weir__gguf_next_string(&at);
    assert_int_equal(text.size, 3);
    assert_memory_equal(text.data, "xyz", 3);
    assert_memory_equal(weir__gguf_find(g, "fs")->data, ((float[]){-1.0f, 0.5f}), 8);
    assert_memory_equal(weir__gguf_find(g, "is")->data, ((int32_t[]){-1, 7}), 8);
    const weir__tensor *t = weir__gguf_find_tensor(g, "two");
    assert_int_equal(t->offset % 32, 0);
    assert_int_equal(weir__gguf_read(g, t->offset, back, sizeof back, NULL), WEIR_OK);
    assert_memory_equal(back, values + 3, sizeof back);
    weir__gguf_free(g);
    unlink(in_folder("a.gguf"));
}

static void a_value_is_copied_as_another_file_has_it(void **state) {
    (void)state;
    bytes b;
    put_start(&b, 0, 4);
    put_key(&b, "big", WEIR__GGUF_U64);
    put_u64(&b, UINT64_MAX);
    put_array(&b, "shorts", WEIR__GGUF_I16, 3);
    put(&b, "\1\2\3\4\5\6", 6);
    put_array(&b, "texts", WEIR__GGUF_STRING, 2);
    put_string(&b, "");
    put_string(&b, "xyz");
    put_array(&b, "nested", WEIR__GGUF_ARRAY, 1);
    put_u32(&b, WEIR__GGUF_BOOL);
    put_u64(&b, 2);
    put(&b, "\1\0", 2);
    parsed p = parse(&b);
    weir__gguf_writer *w;
    weir__gguf *g;
    assert_int_equal(weir__gguf_create(s, in_folder("a.gguf"), &w, NULL), WEIR_OK);
    static const char *const names[] = {"big", "shorts", "texts", "nested"};
    for (size_t i = 0; i < 4; i++)
        weir__gguf_put_copy(w, names[i], weir__gguf_key_at(p.file, i));
    assert_int_equal(weir__gguf_finish(w, NULL), WEIR_OK);
    assert_int_equal(weir__gguf_open(s, in_folder("a.gguf"), &g, NULL), WEIR_OK);
    for (size_t i = 0; i < 4; i++) {
        const weir__gguf_key *from = weir__gguf_key_at(p.file, i), *to = weir__gguf_find(g, names[i]);
        assert_int_equal(to->type, from->type);
        assert_int_equal(to->element, from->element);
        assert_int_equal(to->count, from->count);
        assert_int_equal(to->size, from->size);
        assert_memory_equal(to->data, from->data, from->size);
    }
    weir__gguf_free(g);
    end(&p);
    unlink(in_folder("a.gguf"));
}

static void expect_failure(weir__gguf_writer *w, int code) {
    weir_error *error = NULL;
    assert_int_equal(weir__gguf_finish(w, &error), code);
    assert_non_null(strstr(weir_error_text(error), "a.gguf"));
    weir_error_free(error);
    assert_int_equal(files(), 0);
}

static void a_file_that_cannot_be_right_is_not_written(void **state) {
    (void)state;
    weir__gguf_writer *w;
    uint64_t before = held_bytes(s);
    char data[256] = {0};
    assert_int_equal(weir__gguf_create(s, in_folder("a.gguf"), &w, NULL), WEIR_OK);
    put_everything(w);
    weir__gguf_put_data(w, data, 51, NULL);
    expect_failure(w, WEIR_EINVAL); /* less data than announced */
    weir__gguf_create(s, in_folder("a.gguf"), &w, NULL);
    put_everything(w);
    weir__gguf_put_data(w, data, 53, NULL);
    expect_failure(w, WEIR_EINVAL);
    weir__gguf_create(s, in_folder("a.gguf"), &w, NULL);
    weir__gguf_put_tensor(w, "w", WEIR_Q8_0, 1, (int64_t[]){33});
    expect_failure(w, WEIR_EINVAL);
    weir__gguf_create(s, in_folder("a.gguf"), &w, NULL);
    weir__gguf_put_tensor(w, "w", WEIR_F32, 2, (int64_t[]){4, 0});
    expect_failure(w, WEIR_EINVAL);
    weir__gguf_create(s, in_folder("a.gguf"), &w, NULL);
    put_everything(w);
    weir__gguf_abort(w);
    assert_int_equal(files(), 0);
    assert_int_equal(held_bytes(s), before);
}

static void without_memory_nothing_is_written(void **state) {
    (void)state;
    weir__gguf_writer *w;
    uint64_t before = held_bytes(s), failures = 0;
    char data[52] = {0};
    for (uint64_t nth = 1;; nth++, failures++) {
        weir__inject_arm(s, "ALLOC", nth, 1);
        int code = weir__gguf_create(s, in_folder("a.gguf"), &w, NULL);
        if (!code) {
            put_everything(w);
            weir__gguf_put_data(w, data, sizeof data, NULL);
            code = weir__gguf_finish(w, NULL);
        }
        weir__inject_arm(s, "ALLOC", 1, 0);
        assert_int_equal(held_bytes(s), before);
        if (!code)
            break;
        assert_int_equal(code, WEIR_ENOMEM);
        assert_int_equal(files(), 0);
    }
    assert_true(failures >= 5);
    unlink(in_folder("a.gguf"));
}

static void a_folder_that_is_not_there_is_an_error(void **state) {
    (void)state;
    weir__gguf_writer *w;
    weir_error *error = NULL;
    assert_int_equal(weir__gguf_create(s, in_folder("no/a.gguf"), &w, &error), WEIR_EIO);
    assert_non_null(strstr(weir_error_text(error), "no/a.gguf"));
    weir_error_free(error);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_written_file_is_read_back),
        cmocka_unit_test(a_value_is_copied_as_another_file_has_it),
        cmocka_unit_test(a_file_that_cannot_be_right_is_not_written),
        cmocka_unit_test(without_memory_nothing_is_written),
        cmocka_unit_test(a_folder_that_is_not_there_is_an_error),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
