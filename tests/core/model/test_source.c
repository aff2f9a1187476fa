/* test_source.c: checkpoints as people have them: a file, shards with an index, a folder; what is missing or another thing is named. */
#include "helper_safetensors.h"

#include <sys/stat.h>

#define ENTRY(name, from, to) "\"" name "\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[" #from "," #to "]}"
#define CONFIG                                                                                                                             \
    "{\"model_type\":\"llama\",\"rms_norm_eps\":1e-05,\"hidden_size\":64,\"rope_parameters\":{\"rope_theta\":10000.0,\"rope_type\":"       \
    "\"default\"},\"layer_types\":[\"full_attention\",\"sliding_attention\"],\"sliding_window\":null,\"tie_word_embeddings\":false}"

static char folder[64];
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
    strcpy(folder, "/tmp/weir-test-source-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
    (void)state;
    char line[128];
    snprintf(line, sizeof line, "rm -r %s", folder);
    return system(line);
}

static const char *in_folder(const char *name) {
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void write_text(const char *name, const char *text) {
    write_bytes(in_folder(name), text, strlen(text));
}

static void write_gguf(const char *name) {
    weir__gguf_writer *w;
    assert_int_equal(weir__gguf_create(s, in_folder(name), &w, NULL), WEIR_OK);
    weir__gguf_put_string(w, "general.architecture", "llama");
    weir__gguf_put_string(w, "tokenizer.chat_template", "the default");
    weir__gguf_put_string(w, "tokenizer.chat_template.tool_use", "another");
    weir__gguf_put_f32s(w, "list", (float[]){0.5f, 2.0f}, 2);
    assert_int_equal(weir__gguf_finish(w, NULL), WEIR_OK);
}

/* Tensors a, b and c in two shards. */
static void write_shards(void) {
    write_safetensors(in_folder("model-00001-of-00002.safetensors"), "{" ENTRY("a", 0, 4) "," ENTRY("b", 4, 8) "}", 8);
    write_safetensors(in_folder("model-00002-of-00002.safetensors"), "{" ENTRY("c", 0, 4) "}", 4);
    write_text("model.safetensors.index.json",
               "{\"metadata\":{\"total_size\":12},\"weight_map\":{"
               "\"c\":\"model-00002-of-00002.safetensors\",\"\\u0061\":\"model-00001-of-00002.safetensors\","
               "\"b\":\"model-00001-of-00002.safetensors\"}}");
    write_text("config.json", CONFIG);
}

static weir__source *opened(const char *name) {
    weir__source *src = NULL;
    weir_error *error = NULL;
    if (weir__source_open(s, in_folder(name), &src, &error))
        fail_msg("%s", weir_error_text(error));
    return src;
}

/* Opening must fail with that code and these words; nothing stays allocated. */
static void refused_path(const char *name, int want_code, const char *first, const char *second) {
    weir__source *src = NULL;
    weir_error *error = NULL;
    uint64_t before = held_bytes(s);
    int code = weir__source_open(s, in_folder(name), &src, &error);
    if (code != want_code || !strstr(weir_error_text(error), first) || !strstr(weir_error_text(error), second))
        fail_msg("code %d: \"%s\", wanted code %d with \"%s\" and \"%s\"", code, weir_error_text(error), want_code, first, second);
    assert_null(src);
    weir_error_free(error);
    assert_int_equal(held_bytes(s), before);
}

static weir__value value_of(const weir__source *src, const char *key) {
    weir__value v;
    weir__source_get(src, key, &v);
    return v;
}

/* ---- safetensors ---- */

static void a_folder_of_one_file_is_opened(void **state) {
    (void)state;
    uint8_t data[4];
    write_safetensors(in_folder("model.safetensors"), "{" ENTRY("a", 0, 4) "," ENTRY("b", 4, 8) "}", 8);
    write_safetensors(in_folder("reference.safetensors"), "{}", 0);
    write_text("config.json", CONFIG);
    write_gguf("model.gguf"); /* safetensors go first */
    static const char *const ways[] = {"", "model.safetensors"};
    for (int i = 0; i < 2; i++) {
        weir__source *src = opened(ways[i]);
        weir__string family;
        assert_int_equal(weir__source_format(src), WEIR__FORMAT_SAFETENSORS);
        assert_int_equal(weir__source_files(src), 1);
        assert_int_equal(weir__source_tensor_count(src), 2);
        assert_int_equal(weir__source_read(src, weir__source_find(src, "b"), 1, data, 3, NULL), WEIR_OK);
        assert_memory_equal(data, "\5\6\7", 3);
        assert_int_equal(weir__source_family(src, &family, NULL), WEIR_OK);
        assert_memory_equal(family.data, "llama", 5);
        weir__source_free(src);
    }
}

static void settings_are_found_by_path(void **state) {
    (void)state;
    weir__value v;
    write_safetensors(in_folder("model.safetensors"), "{}", 0);
    write_text("config.json", CONFIG);
    weir__source *src = opened("");
    assert_int_equal(value_of(src, "hidden_size").kind, WEIR__INTEGER);
    assert_int_equal(value_of(src, "hidden_size").integer, 64);
    assert_true(value_of(src, "hidden_size").real == 64.0);
    assert_int_equal(value_of(src, "rms_norm_eps").kind, WEIR__REAL);
    assert_true(value_of(src, "rms_norm_eps").real == 1e-05);
    assert_int_equal(value_of(src, "rope_parameters").kind, WEIR__MAP);
    assert_true(value_of(src, "rope_parameters.rope_theta").real == 10000.0);
    assert_memory_equal(value_of(src, "rope_parameters.rope_type").text.data, "default", 7);
    assert_int_equal(value_of(src, "sliding_window").kind, WEIR__NULL);
    assert_int_equal(value_of(src, "tie_word_embeddings").kind, WEIR__BOOLEAN);
    assert_int_equal(value_of(src, "absent").kind, WEIR__ABSENT);
    assert_int_equal(value_of(src, "hidden_size.absent").kind, WEIR__ABSENT);
    assert_int_equal(value_of(src, "layer_types").count, 2);
    weir__source_element(src, "layer_types", 1, &v);
    assert_memory_equal(v.text.data, "sliding_attention", v.text.size);
    weir__source_element(src, "layer_types", 2, &v);
    assert_int_equal(v.kind, WEIR__ABSENT);
    weir__source_free(src);
}

static int join(void *data, const char *key, const weir__value *v, weir_error **error) {
    (void)error;
    char *text = data;
    snprintf(text + strlen(text), 512 - strlen(text), "%s:%d ", key, (int)v->kind);
    return strcmp(key, "stop") == 0 ? WEIR_ECANCELLED : WEIR_OK;
}

static void every_setting_is_given_in_order(void **state) {
    (void)state;
    char text[512] = "";
    write_safetensors(in_folder("model.safetensors"), "{}", 0);
    write_text("config.json", "{\"a\":1,\"b\":{\"c\":{},\"d\":{\"e\":\"x\"}},\"f\":[{\"g\":1},[2]],\"h\":1.0}");
    weir__source *src = opened("");
    assert_int_equal(weir__source_each(src, join, text, NULL), WEIR_OK);
    assert_string_equal(text, "a:3 b.c:7 b.d.e:5 f:6 h:4 ");
    weir__source_free(src);
    text[0] = 0;
    write_text("config.json", "{\"a\":1,\"stop\":2,\"b\":3}");
    src = opened("");
    assert_int_equal(weir__source_each(src, join, text, NULL), WEIR_ECANCELLED);
    assert_string_equal(text, "a:3 stop:3 ");
    weir__source_free(src);
}

static void a_folder_has_a_tokeniser_and_templates(void **state) {
    (void)state;
    weir__source *src;
    weir__tokenizer *t;
    weir__string text;
    write_text("config.json", CONFIG);
    write_safetensors(in_folder("model.safetensors"), "{" ENTRY("a", 0, 4) "}", 4);
    assert_int_equal(weir__source_open(s, folder, &src, NULL), WEIR_OK);
    assert_int_equal(weir__source_tokenizer(src, &t, NULL), WEIR_OK);
    assert_null(t);
    assert_false(weir__source_template(src, NULL, &text));
    weir__source_free(src);
    write_text("tokenizer.json", "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1}, \"merges\": []}}");
    write_text("tokenizer_config.json", "{\"chat_template\": [{\"name\": \"default\", \"template\": \"D\"}, {\"name\": \"rag\", "
                                        "\"template\": \"R\"}]}");
    assert_int_equal(weir__source_open(s, in_folder("model.safetensors"), &src, NULL), WEIR_OK);
    assert_int_equal(weir__source_tokenizer(src, &t, NULL), WEIR_OK);
    assert_int_equal(weir__tokenizer_size(t), 2);
    assert_true(weir__source_template(src, NULL, &text) && text.data[0] == 'D');
    assert_true(weir__source_template(src, "rag", &text) && text.data[0] == 'R');
    assert_true(weir__source_template_name(src, 0, &text) && text.size == 3);
    assert_false(weir__source_template_name(src, 1, &text));
    weir__tokenizer_free(t);
    weir__source_free(src);
}

static void shards_are_opened_by_folder_index_or_any_shard(void **state) {
    (void)state;
    static const char *const ways[] = {"", "model.safetensors.index.json", "model-00001-of-00002.safetensors",
                                       "model-00002-of-00002.safetensors"};
    write_shards();
    for (size_t i = 0; i < 4; i++) {
        weir__source *src = opened(ways[i]);
        assert_int_equal(weir__source_files(src), 2);
        assert_string_equal(weir__source_file(src, 1), in_folder("model-00002-of-00002.safetensors"));
        assert_int_equal(weir__source_tensor_count(src), 3);
        assert_int_equal(weir__source_find(src, "a")->file, 0);
        assert_int_equal(weir__source_find(src, "c")->file, 1);
        assert_int_equal(value_of(src, "hidden_size").integer, 64);
        weir__source_free(src);
    }
}

static void a_shard_that_is_missing_is_named(void **state) {
    (void)state;
    write_shards();
    unlink(in_folder("model-00002-of-00002.safetensors"));
    refused_path("", WEIR_ENOENT, "model-00002-of-00002.safetensors: is missing", "model.safetensors.index.json names it");
    unlink(in_folder("model.safetensors.index.json"));
    refused_path("model-00001-of-00002.safetensors", WEIR_ENOENT, "model.safetensors.index.json: is missing", "one of 2 shards");
}

static void shards_that_differ_from_their_index_are_refused(void **state) {
    (void)state;
    write_shards();
    write_safetensors(in_folder("model-00002-of-00002.safetensors"), "{" ENTRY("d", 0, 4) "}", 4);
    refused_path("", WEIR_EFORMAT, "\"d\"", "does not name it");
    write_safetensors(in_folder("model-00002-of-00002.safetensors"), "{" ENTRY("b", 0, 4) "}", 4);
    refused_path("", WEIR_EFORMAT, "model-00002-of-00002.safetensors: tensor \"b\"", "it is in model-00001-of-00002.safetensors");
    write_safetensors(in_folder("model-00002-of-00002.safetensors"), "{}", 0);
    refused_path("", WEIR_EFORMAT, "model-00002-of-00002.safetensors: tensor \"c\": not found", "index.json");
    write_safetensors(in_folder("model-00002-of-00002.safetensors"), "{" ENTRY("c", 0, 4) "," ENTRY("c", 4, 8) "}", 8);
    refused_path("", WEIR_EFORMAT, "\"c\"", "found twice");
}

static void an_index_that_is_broken_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *text, *first, *second;
    } cases[] = {
        {"{}", "weight_map", "not found"},
        {"{\"weight_map\":{}}", "weight_map", "empty"},
        {"{\"weight_map\":[]}", "weight_map", "wanted an object"},
        {"{\"weight_map\":{\"a\":1}}", "\"a\"", "wanted a string"},
        {"{\"weight_map\":{\"a\":\"../x.safetensors\"}}", "../x.safetensors", "beside the index"},
        {"{\"weight_map\":{\"a\":\"/etc/passwd\"}}", "/etc/passwd", "beside the index"},
        {"{\"weight_map\":{\"a\":\"\"}}", "shard \"\"", "beside the index"},
        {"{\"weight_map\":{\"a\":\"x\\u0000y\"}}", "shard", "beside the index"},
        {"{\"weight_map\":{\"a\":\"m\",\"a\":\"m\"}}", "\"a\"", "found twice"},
        {"{\"weight_map\":{\"a\":\"m\"},\"weight_map\":{\"b\":\"m\"}}", "weight_map", "found twice"},
        {"{\"weight_map\":{\"a\":\"m\"}", "line 1", "index.json"},
    };
    write_shards();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_text("model.safetensors.index.json", cases[i].text);
        refused_path("", WEIR_EFORMAT, cases[i].first, cases[i].second);
    }
}

static void a_config_that_is_broken_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int code;
        const char *word;
    } cases[] = {
        {"", WEIR_EFORMAT, "wanted a value"},
        {"[]", WEIR_EFORMAT, "wanted an object"},
        {"{\"a\":1,}", WEIR_EFORMAT, "line 1, column"},
        {"{\"a\":1}{", WEIR_EFORMAT, "line 1, column 8"},
        {"{\"a\":NaN}", WEIR_EFORMAT, "wanted a value"},
        {"{\"a\":1e999}", WEIR_EFORMAT, "line 1"},
        {"{\"a\":\"\xFF\"}", WEIR_EFORMAT, "line 1"},
        {"{\"a\":1,\"a\":1}", WEIR_EFORMAT, "key \"a\": found twice"},
        {"{\"a\":{\"b\":1,\"b\":1}}", WEIR_EFORMAT, "key \"a.b\": found twice"},
        {"{\"a\":{\"b\":1},\"a.b\":1}", WEIR_EFORMAT, "key \"a.b\": found twice"},
    };
    write_safetensors(in_folder("model.safetensors"), "{}", 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_text("config.json", cases[i].text);
        refused_path("", cases[i].code, "config.json", cases[i].word);
    }
}

/* `unit` over and over, n bytes of it, as config.json. */
static void refused_config(const char *begin, const char *unit, size_t n, int code, const char *word) {
    FILE *f = fopen(in_folder("config.json"), "wb");
    fputs(begin, f);
    for (size_t at = 0; at < n; at += strlen(unit))
        fputs(unit, f);
    fclose(f);
    refused_path("", code, "config.json", word);
}

static void a_hostile_config_is_refused_in_bounded_memory(void **state) {
    (void)state;
    write_safetensors(in_folder("model.safetensors"), "{}", 0);
    refused_config("{", " ", 2 << 20, WEIR_ETOOBIG, "wanted at most 1048576");
    refused_config("{\"a\":", "[", 1000000, WEIR_EDEPTH, "more than 64 deep");
    refused_config("", "{\"a\":", 1000000, WEIR_EDEPTH, "more than 64 deep");
    refused_config("{\"a\":[", "1,", 1000000, WEIR_EFORMAT, "line 1");
    refused_config("{", "\"a\":1,", 1000000, WEIR_EFORMAT, "more than 65536 settings");
    refused_config("{\"", "long", 1000000, WEIR_EFORMAT, "line 1");
    refused_config("{\"a\":1,\"", "quite a long key\":{\"", 4000, WEIR_EFORMAT, "more than 256 bytes");
}

static void numbers_beyond_64_bits_are_reals(void **state) {
    (void)state;
    write_safetensors(in_folder("model.safetensors"), "{}", 0);
    write_text("config.json",
               "{\"a\":9223372036854775807,\"b\":9223372036854775808,\"c\":-9223372036854775808,\"d\":1000000000000000019884624838656}");
    weir__source *src = opened("");
    assert_int_equal(value_of(src, "a").integer, INT64_MAX);
    assert_int_equal(value_of(src, "b").kind, WEIR__REAL);
    assert_true(value_of(src, "b").real == 0x1p63);
    assert_int_equal(value_of(src, "c").integer, INT64_MIN);
    assert_true(value_of(src, "d").real == 1e30); /* as some published files write "no bound" */
    weir__source_free(src);
}

static void a_file_without_config_has_tensors_and_no_family(void **state) {
    (void)state;
    weir__string family;
    weir_error *error = NULL;
    write_safetensors(in_folder("other.safetensors"), "{" ENTRY("a", 0, 4) "}", 4);
    weir__source *src = opened("other.safetensors");
    assert_int_equal(weir__source_tensor_count(src), 1);
    assert_int_equal(weir__source_family(src, &family, &error), WEIR_ENOENT);
    assert_non_null(strstr(weir_error_text(error), "config.json: not found"));
    weir_error_free(error);
    weir__source_free(src);
    write_text("config.json", "{\"model_type\":7}");
    src = opened("other.safetensors");
    assert_int_equal(weir__source_family(src, &family, &error), WEIR_EFORMAT);
    assert_non_null(strstr(weir_error_text(error), "\"model_type\": found no string"));
    weir_error_free(error);
    weir__source_free(src);
}

/* ---- folders ---- */

static void a_folder_of_one_gguf_is_opened(void **state) {
    (void)state;
    weir__string text;
    write_gguf("some.gguf");
    write_gguf("mmproj-some.gguf"); /* the part that sees is no model by itself */
    write_text("README.md", "");
    weir__source *src = opened("");
    assert_int_equal(weir__source_format(src), WEIR__FORMAT_GGUF);
    assert_string_equal(weir__source_path(src), in_folder(""));
    assert_string_equal(weir__source_file(src, 0), in_folder("some.gguf"));
    assert_true(weir__source_template(src, NULL, &text));
    assert_int_equal(text.size, 11);
    assert_true(weir__source_template_name(src, 0, &text));
    assert_memory_equal(text.data, "tool_use", 8);
    assert_false(weir__source_template_name(src, 1, &text));
    weir__value v;
    weir__source_element(src, "list", 1, &v);
    assert_true(v.real == 2.0);
    weir__source_free(src);
    write_text("config.json", CONFIG); /* published beside GGUF files too */
    weir__source_free(opened(""));
}

static void a_folder_of_one_split_gguf_is_opened(void **state) {
    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        char name[64];
        weir__gguf_writer *w;
        snprintf(name, sizeof name, "x-%05u-of-00002.gguf", i + 1);
        assert_int_equal(weir__gguf_create(s, in_folder(name), &w, NULL), WEIR_OK);
        weir__gguf_put_u32(w, "split.no", i);
        weir__gguf_put_u32(w, "split.count", 2);
        weir__gguf_put_u32(w, "split.tensors.count", 0);
        assert_int_equal(weir__gguf_finish(w, NULL), WEIR_OK);
    }
    weir__source *src = opened("");
    assert_int_equal(weir__source_files(src), 2);
    weir__source_free(src);
    write_gguf("y.gguf");
    refused_path("", WEIR_EINVAL, "found 2", "y.gguf");
}

static void a_folder_of_several_lists_them(void **state) {
    (void)state;
    write_gguf("b.q8_0.gguf");
    write_gguf("a.q4_0.gguf");
    refused_path("", WEIR_EINVAL, "found 2", "(a.q4_0.gguf, b.q8_0.gguf)");
    write_text("config.json", CONFIG);
    write_safetensors(in_folder("y.safetensors"), "{}", 0);
    weir__source_free(opened("")); /* one file of safetensors, whatever its name */
    write_safetensors(in_folder("x.safetensors"), "{}", 0);
    refused_path("", WEIR_EINVAL, "(x.safetensors, y.safetensors)", "model.safetensors.index.json");
}

static void a_folder_of_another_thing_is_said_to_be_one(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int code;
        const char *what;
    } cases[] = {
        {"notes.md", WEIR_ENOENT, "no file of weights"},
        {"tokenizer.json", WEIR_ENOENT, "a tokeniser and no weights"},
        {"model.onnx", WEIR_EUNSUPPORTED, "model.onnx, an ONNX model"},
        {"pytorch_model.bin", WEIR_EUNSUPPORTED, "a PyTorch checkpoint"},
        {"model.safetensors", WEIR_ENOENT, "config.json is missing beside model.safetensors"},
        {"adapter_config.json", WEIR_EUNSUPPORTED, "a PEFT adapter"},
    };
    refused_path("", WEIR_ENOENT, folder, "no file of weights");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_text(cases[i].name, "x");
        refused_path("", cases[i].code, folder, cases[i].what);
    }
}

static void a_file_of_another_thing_is_said_to_be_one(void **state) {
    (void)state;
    static const struct {
        const char *name, *text, *what;
    } cases[] = {
        {"pytorch_model.bin", "PK\3\4 and more bytes", "a zip archive"},
        {"old.bin", "\x80\2 and more bytes", "a Python pickle"},
        {"x.safetensors", "version https://git-lfs.github.com/spec/v1", "a Git LFS pointer"},
        {"x.onnx", "\10\7\22\7pytorch", "an ONNX model"},
        {"config.json", "{\"a\": 1, \"b\": 2}", "a JSON file"},
        {"ggml-model.bin", "tjgg and more bytes", "before GGUF"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_text(cases[i].name, cases[i].text);
        refused_path(cases[i].name, WEIR_EUNSUPPORTED, cases[i].name, cases[i].what);
    }
    write_text("x.bin", "nothing known, of some length");
    refused_path("x.bin", WEIR_EFORMAT, "x.bin", "wanted \"GGUF\"");
    write_text("short.gguf", "");
    refused_path("short.gguf", WEIR_EFORMAT, "short.gguf", "the end of the file");
    refused_path("absent", WEIR_ENOENT, "absent", "No such file");
}

static void a_renamed_file_is_known_by_its_content(void **state) {
    (void)state;
    write_safetensors(in_folder("weights"), "{" ENTRY("a", 0, 4) "}", 4);
    weir__source *src = opened("weights");
    assert_int_equal(weir__source_format(src), WEIR__FORMAT_SAFETENSORS);
    weir__source_free(src);
    write_gguf("model.bin");
    src = opened("model.bin");
    assert_int_equal(weir__source_format(src), WEIR__FORMAT_GGUF);
    weir__source_free(src);
}

static void without_memory_nothing_is_left(void **state) {
    (void)state;
    weir__source *src;
    uint64_t before = held_bytes(s), failures = 0;
    write_shards();
    for (uint64_t nth = 1;; nth++, failures++) {
        weir__inject_arm(s, "ALLOC", nth, 1);
        int code = weir__source_open(s, folder, &src, NULL);
        weir__inject_arm(s, "ALLOC", 1, 0);
        if (!code)
            break;
        assert_int_equal(code, WEIR_ENOMEM);
        assert_int_equal(held_bytes(s), before);
    }
    assert_true(failures >= 30);
    weir__source_free(src);
    assert_int_equal(held_bytes(s), before);
}

/* ---- what others published ---- */

static void every_reference_model_is_opened(void **state) {
    (void)state;
    static const char *const names[] = {"llama", "qwen2", "qwen3",      "mistral",   "gemma2",      "phi3", "mixtral",
                                        "olmoe", "bert",  "modernbert", "qwen3_moe", "deepseek_v2", "t5"};
    weir_test_need(weir_test_reference("models/families"), "the reference folder");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char name[64];
        weir__source *src;
        weir__string family;
        snprintf(name, sizeof name, "models/families/%s", names[i]);
        assert_int_equal(weir__source_open(s, weir_test_reference(name), &src, NULL), WEIR_OK);
        assert_int_equal(weir__source_format(src), WEIR__FORMAT_SAFETENSORS);
        assert_int_equal(weir__source_files(src), strcmp(names[i], "mixtral") == 0 ? 3 : 1);
        assert_int_equal(weir__source_family(src, &family, NULL), WEIR_OK);
        assert_int_equal(family.size, strlen(names[i]));
        assert_memory_equal(family.data, names[i], family.size);
        assert_true(weir__source_tensor_count(src) > 20);
        weir__source_free(src);
    }
}

#define in_new_folder(test) cmocka_unit_test_setup_teardown(test, new_folder, remove_folder)

int main(void) {
    const struct CMUnitTest tests[] = {
        in_new_folder(a_folder_of_one_file_is_opened),
        in_new_folder(settings_are_found_by_path),
        in_new_folder(every_setting_is_given_in_order),
        in_new_folder(a_folder_has_a_tokeniser_and_templates),
        in_new_folder(shards_are_opened_by_folder_index_or_any_shard),
        in_new_folder(a_shard_that_is_missing_is_named),
        in_new_folder(shards_that_differ_from_their_index_are_refused),
        in_new_folder(an_index_that_is_broken_is_refused),
        in_new_folder(a_config_that_is_broken_is_refused),
        in_new_folder(a_hostile_config_is_refused_in_bounded_memory),
        in_new_folder(numbers_beyond_64_bits_are_reals),
        in_new_folder(a_file_without_config_has_tensors_and_no_family),
        in_new_folder(a_folder_of_one_gguf_is_opened),
        in_new_folder(a_folder_of_one_split_gguf_is_opened),
        in_new_folder(a_folder_of_several_lists_them),
        in_new_folder(a_folder_of_another_thing_is_said_to_be_one),
        in_new_folder(a_file_of_another_thing_is_said_to_be_one),
        in_new_folder(a_renamed_file_is_known_by_its_content),
        in_new_folder(without_memory_nothing_is_left),
        cmocka_unit_test(every_reference_model_is_opened),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
