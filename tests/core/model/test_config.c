/* test_config.c: numbers that settings make and that no checkpoint at hand shows: yarn's factor of the rotary table in its spellings, gemma2's scale of scores. */
#include "../../../core/model/family.h"
#include "helper_folder.h"
#include "helper_safetensors.h"

#include <math.h>

static weir_system *s;

static int setup(void **state) {
    return folder_make(state) == 0 && weir_system_new(NULL, &s, NULL) == WEIR_OK ? 0 : -1;
}

static int teardown(void **state) {
    weir_system_free(s);
    return folder_remove(state);
}

/* The config of the model at a path; nothing of it but numbers outlives this. */
static weir__config config_of(const char *path) {
    weir__source *src;
    const weir__family *f;
    weir__config c = {0};
    assert_int_equal(weir__source_open(s, path, &src, NULL), WEIR_OK);
    assert_int_equal(weir__family_of(src, &f, NULL), WEIR_OK);
    assert_int_equal(weir__config_read(src, f, &c, NULL), WEIR_OK);
    weir__config_fini(s, &c);
    weir__source_free(src);
    return c;
}

static weir__config with_scaling(const char *rope_scaling) {
    char text[1024];
    snprintf(text, sizeof text,
             "{\"model_type\":\"llama\",\"hidden_size\":8,\"num_hidden_layers\":1,\"num_attention_heads\":2,\"num_key_value_heads\":2,"
             "\"intermediate_size\":8,\"vocab_size\":4,\"rms_norm_eps\":1e-5,\"max_position_embeddings\":4096,"
             "\"tie_word_embeddings\":true,\"rope_scaling\":%s}",
             rope_scaling);
    folder_text("config.json", text);
    write_safetensors(folder_path("model.safetensors"),
                      "{\"model.embed_tokens.weight\":{\"dtype\":\"F16\",\"shape\":[4,8],\"data_offsets\":[0,64]}}", 64);
    return config_of(folder);
}

static void same(double found, double wanted) {
    assert_true(fabs(found - wanted) < 1e-12 * fabs(wanted));
}

static void yarn_scales_by_its_factor(void **state) {
    (void)state;
    same(with_scaling("{\"type\":\"yarn\",\"factor\":4.0}").rope_scale, 0.1 * log(4) + 1);
    same(with_scaling("{\"rope_type\":\"yarn\",\"factor\":1.0}").rope_scale, 1);
}

static void yarn_scales_by_a_given_factor_instead(void **state) {
    (void)state;
    same(with_scaling("{\"rope_type\":\"yarn\",\"factor\":4.0,\"attention_factor\":0.75}").rope_scale, 0.75);
}

static void yarn_scales_by_the_ratio_of_both_mscales(void **state) {
    (void)state;
    same(with_scaling("{\"rope_type\":\"yarn\",\"factor\":40,\"mscale\":0.707,\"mscale_all_dim\":0.707}").rope_scale, 1);
    same(with_scaling("{\"rope_type\":\"yarn\",\"factor\":40,\"mscale\":1.0,\"mscale_all_dim\":0.5}").rope_scale,
         (0.1 * log(40) + 1) / (0.05 * log(40) + 1));
    same(with_scaling("{\"rope_type\":\"yarn\",\"factor\":40,\"mscale\":2.0}").rope_scale, 0.1 * log(40) + 1);
}

static void yarn_without_a_factor_goes_from_the_original_context(void **state) {
    (void)state;
    weir__config c = with_scaling("{\"rope_type\":\"yarn\",\"factor\":null,\"original_max_position_embeddings\":512}");
    same(c.rope.factor, 8);
    same(c.rope_scale, 0.1 * log(8) + 1);
}

static int32_t kv_heads(const char *family, const char *key) {
    char text[1024];
    snprintf(text, sizeof text,
             "{\"model_type\":\"%s\",\"hidden_size\":256,\"num_hidden_layers\":1,\"num_attention_heads\":64,\"intermediate_size\":8,%s"
             "\"vocab_size\":1,\"tie_word_embeddings\":true}",
             family, key);
    folder_text("config.json", text);
    write_safetensors(folder_path("model.safetensors"),
                      "{\"model.embed_tokens.weight\":{\"dtype\":\"F16\",\"shape\":[1,256],\"data_offsets\":[0,512]}}", 512);
    return config_of(folder).kv_heads;
}

static void kv_heads_that_are_missing_are_the_familys(void **state) {
    (void)state;
    const struct {
        const char *family;
        int32_t heads;
    } rows[] = {{"llama", 64}, {"phi3", 64}, {"mistral", 8}, {"gemma2", 4}, {"qwen2", 32}, {"qwen3", 32}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(kv_heads(rows[i].family, ""), rows[i].heads);
        assert_int_equal(kv_heads(rows[i].family, "\"num_key_value_heads\":null,"), 64);
        assert_int_equal(kv_heads(rows[i].family, "\"num_key_value_heads\":16,"), 16);
    }
}

static void put_sizes(weir__gguf_writer *w, const char *family, uint32_t layers, uint32_t width, uint32_t heads) {
    char key[64];
    const struct {
        const char *name;
        uint32_t value;
    } sizes[] = {{"block_count", layers},         {"embedding_length", width},    {"feed_forward_length", 64},
                 {"attention.head_count", heads}, {"attention.head_count_kv", 1}, {"attention.key_length", 8},
                 {"attention.value_length", 8},   {"context_length", 4096}};
    weir__gguf_put_string(w, "general.architecture", family);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        snprintf(key, sizeof key, "%s.%s", family, sizes[i].name);
        weir__gguf_put_u32(w, key, sizes[i].value);
    }
    snprintf(key, sizeof key, "%s.attention.layer_norm_rms_epsilon", family);
    weir__gguf_put_f32(w, key, 1e-6f);
}

/* Writes and reads a file of keys and of an embedding table of zeros. */
static weir__config finish(weir__gguf_writer *w, int64_t width) {
    float *zeros = calloc((size_t)width, sizeof *zeros);
    weir__gguf_put_tensor(w, "token_embd.weight", WEIR_F32, 2, (int64_t[]){width, 1});
    assert_int_equal(weir__gguf_put_data(w, zeros, (size_t)width * sizeof *zeros, NULL), WEIR_OK);
    assert_int_equal(weir__gguf_finish(w, NULL), WEIR_OK);
    free(zeros);
    return config_of(folder_path("a.gguf"));
}

static weir__config gemma2(uint32_t layers, uint32_t width, uint32_t heads) {
    weir__gguf_writer *w;
    assert_int_equal(weir__gguf_create(s, folder_path("a.gguf"), &w, NULL), WEIR_OK);
    put_sizes(w, "gemma2", layers, width, heads);
    return finish(w, width);
}

static void gemma2_of_27b_divides_scores_by_the_root_of_width_over_heads(void **state) {
    (void)state;
    same(gemma2(46, 4608, 32).attention_scale, 1 / sqrt(4608.0 / 32)); /* 144, not 128 */
    same(gemma2(42, 3584, 16).attention_scale, 1 / sqrt(8));           /* of the head, as in the other sizes */
}

static void yarn_of_gguf_multiplies_its_factors(void **state) {
    (void)state;
    weir__gguf_writer *w;
    assert_int_equal(weir__gguf_create(s, folder_path("a.gguf"), &w, NULL), WEIR_OK);
    put_sizes(w, "llama", 1, 16, 2);
    weir__gguf_put_string(w, "llama.rope.scaling.type", "yarn");
    weir__gguf_put_f32(w, "llama.rope.scaling.factor", 4);
    weir__gguf_put_f32(w, "llama.rope.scaling.attn_factor", 0.5f);
    weir__gguf_put_u32(w, "llama.rope.scaling.original_context_length", 1024);
    weir__config c = finish(w, 16);
    same(c.rope_scale, 0.5 * (0.1 * log(4) + 1));
    same(c.rope.original_context, 1024);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(yarn_scales_by_its_factor),
        TEST(yarn_scales_by_a_given_factor_instead),
        TEST(yarn_scales_by_the_ratio_of_both_mscales),
        TEST(yarn_without_a_factor_goes_from_the_original_context),
        TEST(kv_heads_that_are_missing_are_the_familys),
        TEST(yarn_of_gguf_multiplies_its_factors),
        TEST(gemma2_of_27b_divides_scores_by_the_root_of_width_over_heads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
