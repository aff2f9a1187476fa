/* test_chat_settings.c: chat templates and what stands beside them in a folder. */
#include "../../../core/model/chat_settings.h"
#include "helper_folder.h"

static weir_system *s;

static int setup(void **state) {
    return weir_system_new(NULL, &s, NULL) || folder_make(state);
}

static int teardown(void **state) {
    weir_system_free(s);
    return folder_remove(state);
}

static weir__chat_settings read_settings(void) {
    weir__chat_settings c;
    weir_error *error = NULL;
    if (weir__chat_settings_read(s, folder, &c, &error))
        fail_msg("%s", weir_error_text(error));
    return c;
}

static void assert_template(const weir__chat_settings *c, const char *name, const char *wanted) {
    const weir__string *text = weir__chat_template_find(c, name);
    assert_non_null(text);
    assert_int_equal(text->size, strlen(wanted));
    assert_memory_equal(text->data, wanted, text->size);
}

static void a_folder_without_templates_has_none(void **state) {
    (void)state;
    weir__chat_settings c = read_settings();
    assert_int_equal(c.n_templates, 0);
    assert_null(weir__chat_template_find(&c, NULL));
    weir__chat_settings_fini(&c);
}

static void a_template_is_a_string_with_escapes(void **state) {
    (void)state;
    folder_text("tokenizer_config.json", "{\"chat_template\": \"{% if x %}\\n\\u00e9\", \"clean_up_tokenization_spaces\": true}");
    weir__chat_settings c = read_settings();
    assert_template(&c, NULL, "{% if x %}\n\xC3\xA9");
    assert_true(c.clean_up_spaces);
    weir__chat_settings_fini(&c);
}

static void templates_may_have_names(void **state) {
    (void)state;
    folder_text("tokenizer_config.json",
                "{\"chat_template\": [{\"name\": \"tool_use\", \"template\": \"T\"}, {\"template\": \"D\", \"name\": \"default\"}]}");
    weir__chat_settings c = read_settings();
    assert_int_equal(c.n_templates, 2);
    assert_template(&c, NULL, "D");
    assert_template(&c, "tool_use", "T");
    assert_null(weir__chat_template_find(&c, "rag"));
    weir__chat_settings_fini(&c);
}

static void files_of_their_own_win(void **state) {
    (void)state;
    folder_text("tokenizer_config.json", "{\"chat_template\": \"old\"}");
    folder_text("chat_template.json", "{\"chat_template\": \"newer\"}");
    weir__chat_settings c = read_settings();
    assert_template(&c, NULL, "newer");
    weir__chat_settings_fini(&c);
    folder_text("chat_template.jinja", "newest\n");
    assert_int_equal(mkdir(folder_path("additional_chat_templates"), 0700), 0);
    folder_text("additional_chat_templates/rag.jinja", "R");
    folder_text("additional_chat_templates/README", "no template");
    c = read_settings();
    assert_int_equal(c.n_templates, 2);
    assert_template(&c, NULL, "newest\n");
    assert_template(&c, "rag", "R");
    weir__chat_settings_fini(&c);
}

static void what_is_wrong_is_named(void **state) {
    (void)state;
    static const char *const texts[] = {"{\"chat_template\": 5}", "{\"chat_template\": [{\"name\": \"x\"}]}", "{\"chat_template\": [5]}",
                                        "{\"clean_up_tokenization_spaces\": 1}", "{"};
    weir__chat_settings c;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        weir_error *error = NULL;
        folder_text("tokenizer_config.json", texts[i]);
        assert_int_equal(weir__chat_settings_read(s, folder, &c, &error), WEIR_EFORMAT);
        assert_non_null(strstr(weir_error_text(error), "tokenizer_config.json"));
        weir_error_free(error);
    }
    folder_text("tokenizer_config.json", "{\"chat_template\": null}");
    folder_text("chat_template.jinja", "\xFF");
    assert_int_equal(weir__chat_settings_read(s, folder, &c, NULL), WEIR_EFORMAT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_folder_without_templates_has_none),
        TEST(a_template_is_a_string_with_escapes),
        TEST(templates_may_have_names),
        TEST(files_of_their_own_win),
        TEST(what_is_wrong_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
