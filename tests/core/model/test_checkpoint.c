/* test_checkpoint.c: whole files at the model's level: what weir does not run is refused by file, key or tensor, found and wanted. */
#include "../../../core/model/model.h"
#include "helper_gguf.h"

static char path[64];
static weir_system *s;

/* How a file differs from the right one: a key's value (or a new key), a tensor's shape (or a new tensor). */
typedef struct change {
    const char *key, *text; /* text NULL: value, or a list of a number a layer */
    const int32_t *list;
    uint32_t value;
    const char *tensor;
    int64_t dims[2]; /* dims[0] 0: left out; dims[1] 0: a vector */
} change;

enum { LAYERS = 2, WIDTH = 32, HEADS = 4, KV_HEADS = 2, KV_WIDTH = 16, FFN = 64, VOCAB = 8 };

static int setup(void **state) {
    (void)state;
    strcpy(path, "/tmp/weir-test-checkpoint-XXXXXX");
    int fd = mkstemp(path);
    return fd >= 0 && close(fd) == 0 && weir_system_new(NULL, &s, NULL) == WEIR_OK ? 0 : -1;
}

static int teardown(void **state) {
    (void)state;
    weir_system_free(s);
    return unlink(path);
}

static void put_number(weir__gguf_writer *w, const char *name, uint32_t value, change *c) {
    bool changed = c->key && strcmp(name, c->key) == 0;
    weir__gguf_put_u32(w, name, changed ? c->value : value);
    if (changed)
        c->key = NULL;
}

static size_t put_matrix(weir__gguf_writer *w, const char *name, int64_t k, int64_t n, change *c) {
    int64_t dims[2] = {k, n};
    if (c->tensor && strcmp(name, c->tensor) == 0) {
        memcpy(dims, c->dims, sizeof dims);
        c->tensor = NULL;
    }
    if (!dims[0])
        return 0;
    weir__gguf_put_tensor(w, name, WEIR_F32, dims[1] ? 2 : 1, dims);
    return (size_t)(dims[0] * (dims[1] ? dims[1] : 1)) * sizeof(float);
}

static void put_keys(weir__gguf_writer *w, change *c) {
    bool arch = c->key && strcmp(c->key, "general.architecture") == 0;
    weir__gguf_put_string(w, "general.architecture", arch ? c->text : "llama");
    put_number(w, "llama.block_count", LAYERS, c);
    put_number(w, "llama.embedding_length", WIDTH, c);
    put_number(w, "llama.feed_forward_length", FFN, c);
    put_number(w, "llama.attention.head_count", HEADS, c);
    put_number(w, "llama.attention.head_count_kv", KV_HEADS, c);
    put_number(w, "llama.context_length", 64, c);
    weir__gguf_put_f32(w, "llama.attention.layer_norm_rms_epsilon", 1e-5f);
    if (c->key && !arch && c->text)
        weir__gguf_put_string(w, c->key, c->text);
    else if (c->key && !arch && c->list)
        weir__gguf_put_i32s(w, c->key, c->list, LAYERS);
    else if (c->key && !arch)
        weir__gguf_put_u32(w, c->key, c->value);
}

static size_t put_layer(weir__gguf_writer *w, int layer, change *c) {
    static const struct {
        const char *name;
        int64_t k, n;
    } tensors[] = {{"attn_norm", WIDTH, 0},     {"attn_q", WIDTH, WIDTH},      {"attn_k", WIDTH, KV_WIDTH},
                   {"attn_v", WIDTH, KV_WIDTH}, {"attn_output", WIDTH, WIDTH}, {"ffn_norm", WIDTH, 0},
                   {"ffn_gate", WIDTH, FFN},    {"ffn_up", WIDTH, FFN},        {"ffn_down", FFN, WIDTH}};
    size_t bytes = 0;
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
        char name[64];
        snprintf(name, sizeof name, "blk.%d.%s.weight", layer, tensors[i].name);
        bytes += put_matrix(w, name, tensors[i].k, tensors[i].n, c);
    }
    return bytes;
}

static void write_file(change c) {
    weir__gguf_writer *w;
    assert_int_equal(weir__gguf_create(s, path, &w, NULL), WEIR_OK);
    put_keys(w, &c);
    size_t bytes = put_matrix(w, "token_embd.weight", WIDTH, VOCAB, &c);
    for (int layer = 0; layer < LAYERS; layer++)
        bytes += put_layer(w, layer, &c);
    bytes += put_matrix(w, "output_norm.weight", WIDTH, 0, &c);
    if (c.tensor)
        bytes += put_matrix(w, c.tensor, 0, 0, &c);
    void *zeros = calloc(1, bytes);
    weir__gguf_put_data(w, zeros, bytes, NULL);
    free(zeros);
    assert_int_equal(weir__gguf_finish(w, NULL), WEIR_OK);
}

/* The changed file must be refused with that code and with its path and all of these words in the text; nothing stays allocated. */
#define refused_file(want_code, the_change, ...)                                                                                           \
    do {                                                                                                                                   \
        const char *words_[] = {path, __VA_ARGS__};                                                                                        \
        weir_error *error_ = NULL;                                                                                                         \
        weir__checkpoint *none_ = NULL;                                                                                                    \
        write_file(the_change);                                                                                                            \
        uint64_t before_ = held_bytes(s);                                                                                                  \
        assert_int_equal(weir__checkpoint_open(s, path, -1, &none_, &error_), want_code);                                                  \
        assert_null(none_);                                                                                                                \
        for (size_t i_ = 0; i_ < sizeof words_ / sizeof words_[0]; i_++)                                                                   \
            if (!strstr(weir_error_text(error_), words_[i_]))                                                                              \
                fail_msg("\"%s\" is not in \"%s\"", words_[i_], weir_error_text(error_));                                                  \
        weir_error_free(error_);                                                                                                           \
        assert_int_equal(held_bytes(s), before_);                                                                                          \
    } while (0)
#define key(name, v) ((change){.key = name, .value = v})
#define key_text(name, v) ((change){.key = name, .text = v})
#define tensor(name, k, n) ((change){.tensor = name, .dims = {k, n}})

static void a_right_file_is_opened(void **state) {
    (void)state;
    weir__checkpoint *c = NULL;
    write_file((change){0});
    uint64_t before = held_bytes(s);
    assert_int_equal(weir__checkpoint_open(s, path, -1, &c, NULL), WEIR_OK);
    assert_int_equal(weir__checkpoint_graph(c)->units, LAYERS);
    assert_int_equal(weir__checkpoint_config(c)->vocab, VOCAB);
    assert_int_equal(weir__checkpoint_config(c)->head_dim, WIDTH / HEADS);
    assert_true(weir__checkpoint_config(c)->tied);
    const int64_t layer = 2 * WIDTH + 2 * WIDTH * WIDTH + 2 * WIDTH * KV_WIDTH + 3 * WIDTH * FFN;
    assert_int_equal(weir__checkpoint_parameters(c), WIDTH * VOCAB + WIDTH + LAYERS * layer);
    weir__checkpoint_unref(c);
    assert_int_equal(held_bytes(s), before);
}

static void a_head_of_its_own_is_used(void **state) {
    (void)state;
    weir__checkpoint *c = NULL;
    write_file(tensor("output.weight", WIDTH, VOCAB));
    assert_int_equal(weir__checkpoint_open(s, path, -1, &c, NULL), WEIR_OK);
    assert_false(weir__checkpoint_config(c)->tied);
    weir__checkpoint_unref(c);
}

static void a_tensor_that_no_unit_uses_is_refused(void **state) {
    (void)state;
    refused_file(WEIR_EUNSUPPORTED, tensor("blk.0.attn_sinks.weight", WIDTH, 0), "\"blk.0.attn_sinks.weight\"", "not used", "\"llama\"");
    refused_file(WEIR_EUNSUPPORTED, tensor("blk.1.attn_q_norm.weight", WIDTH, 0), "\"blk.1.attn_q_norm.weight\"");
    refused_file(WEIR_EUNSUPPORTED, key("llama.block_count", 1), "\"blk.1.attn_norm.weight\""); /* the first of many */
}

static void gguf_A15_a_head_count_of_zero_is_refused(void **state) {
    (void)state;
    refused_file(WEIR_EFORMAT, key("llama.attention.head_count", 0), "\"llama.attention.head_count\"", "found 0",
                 "wanted a whole number from 1 to");
    refused_file(WEIR_EFORMAT, key("llama.attention.head_count_kv", 0), "\"llama.attention.head_count_kv\"", "found 0",
                 "wanted a whole number from 1 to");
}

static void gguf_A15_kv_heads_must_divide_the_heads(void **state) {
    (void)state;
    refused_file(WEIR_EFORMAT, key("llama.attention.head_count_kv", 3), "llama.attention.head_count is 4", "wanted a multiple",
                 "head_count_kv, 3");
    refused_file(WEIR_EFORMAT, key("llama.attention.head_count_kv", 8), "llama.attention.head_count is 4", "wanted a multiple",
                 "head_count_kv, 8");
}

static void gguf_A15_more_heads_than_width_is_refused(void **state) {
    (void)state;
    refused_file(WEIR_EFORMAT, key("llama.attention.head_count", 64), "llama.attention.head_count is 64", "llama.embedding_length, 32");
}

static void gguf_A15_a_huge_block_count_is_refused(void **state) {
    (void)state;
    refused_file(WEIR_EFORMAT, key("llama.block_count", UINT32_MAX), "\"llama.block_count\"", "found 4294967295",
                 "wanted a whole number from 1 to 1024");
    refused_file(WEIR_EFORMAT, key("llama.block_count", 0), "\"llama.block_count\"", "found 0", "wanted a whole number from 1 to 1024");
    refused_file(WEIR_EFORMAT, key("llama.block_count", WEIR_MAX_LAYERS), "\"blk.2.attn_norm.weight\"", "missing");
}

static void a_tensor_of_another_shape_is_refused(void **state) {
    (void)state;
    refused_file(WEIR_EFORMAT, tensor("blk.1.attn_k.weight", WIDTH, WIDTH), "\"blk.1.attn_k.weight\"", "is 32 x 32", "wanted 32 x 16");
    refused_file(WEIR_EFORMAT, tensor("blk.0.ffn_norm.weight", 2 * WIDTH, 0), "\"blk.0.ffn_norm.weight\"", "is 64", "wanted 32");
    refused_file(WEIR_EFORMAT, tensor("token_embd.weight", FFN, VOCAB), "\"token_embd.weight\"", "is 64 x 8", "wanted 32 x 8");
    refused_file(WEIR_EFORMAT, tensor("output.weight", WIDTH, VOCAB + 1), "\"output.weight\"", "is 32 x 9", "wanted 32 x 8");
}

static void a_missing_tensor_is_named(void **state) {
    (void)state;
    refused_file(WEIR_EFORMAT, tensor("blk.1.ffn_up.weight", 0, 0), "\"blk.1.ffn_up.weight\"", "missing");
    refused_file(WEIR_EFORMAT, tensor("token_embd.weight", 0, 0), "\"token_embd.weight\"", "missing");
}

static void an_unknown_architecture_is_refused(void **state) {
    (void)state;
    refused_file(WEIR_EUNSUPPORTED, key_text("general.architecture", "mamba"), "architecture \"mamba\"", "supported: llama");
    refused_file(WEIR_EUNSUPPORTED, key_text("general.architecture", "llama4"), "architecture \"llama4\"", "supported: llama");
}

static void biases_are_all_there_or_none(void **state) {
    (void)state;
    refused_file(WEIR_EFORMAT, tensor("blk.0.attn_q.bias", WIDTH, 0), "\"blk.0.attn_k.bias\"", "missing");
    refused_file(WEIR_EUNSUPPORTED, tensor("blk.1.attn_q.bias", WIDTH, 0), "\"blk.1.attn_q.bias\"", "not used");
}

static void a_setting_that_is_not_known_is_refused_by_name_and_value(void **state) {
    (void)state;
    refused_file(WEIR_EUNSUPPORTED, key("llama.attention.clamp_kqv", 3), "llama.attention.clamp_kqv is 3");
    refused_file(WEIR_EUNSUPPORTED, key_text("llama.rope.scaling.type", "longrope"), "\"llama.rope.scaling.type\"", "found \"longrope\"",
                 "\"yarn\"");
}

static void a_mixture_of_experts_is_refused_by_what_it_is(void **state) {
    (void)state;
    refused_file(WEIR_EUNSUPPORTED, key("llama.expert_count", 8), "\"llama\" with llama.expert_count 8 is a mixture of experts");
}

static void gguf_A21_layers_without_experts_are_dense(void **state) {
    (void)state;
    static const char *const keys[] = {"llama.expert_count", "llama.expert_used_count"};
    weir__checkpoint *c = NULL;
    for (size_t i = 0; i < 2; i++) {
        write_file((change){.key = keys[i], .list = (int32_t[LAYERS]){0}});
        assert_int_equal(weir__checkpoint_open(s, path, -1, &c, NULL), WEIR_OK);
        weir__checkpoint_unref(c);
        write_file(key(keys[i], 0));
        assert_int_equal(weir__checkpoint_open(s, path, -1, &c, NULL), WEIR_OK);
        weir__checkpoint_unref(c);
    }
    refused_file(WEIR_EUNSUPPORTED, ((change){.key = keys[0], .list = (int32_t[LAYERS]){0, 4}}),
                 "llama.expert_count 4 is a mixture of experts");
    refused_file(WEIR_EUNSUPPORTED, ((change){.key = keys[1], .list = (int32_t[LAYERS]){0, 2}}), "\"llama\"", "llama.expert_used_count");
}

static void rotary_factors_must_fit(void **state) {
    (void)state;
    refused_file(WEIR_EFORMAT, tensor("rope_freqs.weight", 5, 0), "\"rope_freqs.weight\" is 5 of f32", "wanted 4 of f32");
    refused_file(WEIR_EFORMAT, tensor("rope_freqs.weight", 4, 0), "\"rope_freqs.weight\": element 0 is 0");
    refused_file(WEIR_EFORMAT, key_text("llama.rope.scaling.type", "linear"), "\"linear\" without a factor");
}

static void rope_scaling_of_none_is_accepted(void **state) {
    (void)state;
    weir__checkpoint *c = NULL;
    write_file(key_text("llama.rope.scaling.type", "none"));
    assert_int_equal(weir__checkpoint_open(s, path, -1, &c, NULL), WEIR_OK);
    weir__checkpoint_unref(c);
}

static void without_memory_nothing_is_opened(void **state) {
    (void)state;
    write_file((change){0});
    uint64_t before = held_bytes(s), failures = 0;
    for (int code = WEIR_ENOMEM; code; failures++) {
        weir__checkpoint *c = NULL;
        weir__inject_arm(s, "ALLOC", failures + 1, 1);
        code = weir__checkpoint_open(s, path, -1, &c, NULL);
        weir__inject_arm(s, "ALLOC", 1, 0);
        assert_true(code == WEIR_OK || code == WEIR_ENOMEM);
        weir__checkpoint_unref(c);
        assert_int_equal(held_bytes(s), before);
    }
    assert_true(failures > 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_right_file_is_opened),
        cmocka_unit_test(a_head_of_its_own_is_used),
        cmocka_unit_test(a_tensor_that_no_unit_uses_is_refused),
        cmocka_unit_test(gguf_A15_a_head_count_of_zero_is_refused),
        cmocka_unit_test(gguf_A15_kv_heads_must_divide_the_heads),
        cmocka_unit_test(gguf_A15_more_heads_than_width_is_refused),
        cmocka_unit_test(gguf_A15_a_huge_block_count_is_refused),
        cmocka_unit_test(a_tensor_of_another_shape_is_refused),
        cmocka_unit_test(a_missing_tensor_is_named),
        cmocka_unit_test(an_unknown_architecture_is_refused),
        cmocka_unit_test(biases_are_all_there_or_none),
        cmocka_unit_test(a_setting_that_is_not_known_is_refused_by_name_and_value),
        cmocka_unit_test(a_mixture_of_experts_is_refused_by_what_it_is),
        cmocka_unit_test(gguf_A21_layers_without_experts_are_dense),
        cmocka_unit_test(rotary_factors_must_fit),
        cmocka_unit_test(rope_scaling_of_none_is_accepted),
        cmocka_unit_test(without_memory_nothing_is_opened),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
