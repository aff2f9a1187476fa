/* test_llama2c.c: llama2.c checkpoints become GGUF files with every weight at its place; headers that lie are refused before anything is allocated. */
#include "../../../core/model/llama2c.h"
#include "helper_gguf.h"

#include <dirent.h>

enum { DIM = 8, HIDDEN = 12, LAYERS = 2, HEADS = 4, KV_HEADS = 2, VOCAB = 260, CONTEXT = 16, KV_DIM = DIM / HEADS * KV_HEADS };

static char folder[64];
static weir_system *s;

static int setup(void **state) {
    (void)state;
    strcpy(folder, "/tmp/weir-test-llama2c-XXXXXX");
    return !mkdtemp(folder) || weir_system_new(NULL, &s, NULL);
}

static const char *in_folder(const char *name) {
    static char paths[4][512];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static int teardown(void **state) {
    (void)state;
    weir_system_free(s);
    DIR *d = opendir(folder);
    for (struct dirent *e; (e = readdir(d));)
        unlink(in_folder(e->d_name));
    closedir(d);
    return rmdir(folder);
}

static size_t write_file(const char *name, const void *bytes, size_t size) {
    FILE *f = fopen(in_folder(name), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, size, f), size);
    fclose(f);
    return size;
}

static size_t weights(bool tied) {
    size_t layer = 2 * DIM + 2 * DIM * DIM + 2 * DIM * KV_DIM + 3 * DIM * HIDDEN;
    return VOCAB * DIM + LAYERS * layer + DIM + CONTEXT * (DIM / HEADS) + (tied ? 0 : VOCAB * DIM);
}

/* Weight i of the file is the number i. */
static void write_checkpoint(const char *name, bool tied) {
    size_t n = weights(tied);
    int32_t *words = malloc(28 + 4 * n);
    memcpy(words, ((int32_t[]){DIM, HIDDEN, LAYERS, HEADS, KV_HEADS, tied ? VOCAB : -VOCAB, CONTEXT}), 28);
    for (size_t i = 0; i < n; i++)
        memcpy(&words[7 + i], &(float){(float)i}, 4);
    write_file(name, words, 28 + 4 * n);
    free(words);
}

static size_t put_piece(char *to, float score, const char *text) {
    int32_t size = (int32_t)strlen(text);
    memcpy(to, &score, 4);
    memcpy(to + 4, &size, 4);
    memcpy(to + 8, text, (size_t)size);
    return 8 + (size_t)size;
}

static size_t make_vocabulary(char *to) {
    size_t n = 4;
    memcpy(to, &(int32_t){7}, 4);
    n += put_piece(to + n, 0, "<unk>");
    n += put_piece(to + n, 0, "\n<s>\n");
    n += put_piece(to + n, 0, "\n</s>\n");
    for (unsigned b = 0; b < 256; b++) {
        char text[8];
        snprintf(text, sizeof text, "<0x%02X>", b);
        n += put_piece(to + n, 0, text);
    }
    return n + put_piece(to + n, -1.5f, " a b");
}

static float first_value(const weir__gguf *g, const char *name) {
    float v;
    const weir__tensor *t = weir__gguf_find_tensor(g, name);
    assert_non_null(t);
    assert_int_equal(weir__gguf_read(g, t->offset, &v, 4, NULL), WEIR_OK);
    return v;
}

static void convert(const char *checkpoint, const char *vocabulary, weir__gguf **g) {
    weir_error *error = NULL;
    if (weir__llama2c_convert(s, in_folder(checkpoint), vocabulary ? in_folder(vocabulary) : NULL, in_folder("out.gguf"), &error))
        fail_msg("%s", weir_error_text(error));
    assert_int_equal(weir__gguf_open(s, in_folder("out.gguf"), g, NULL), WEIR_OK);
}

static void every_weight_keeps_its_place(void **state) {
    (void)state;
    char vocabulary[8192];
    weir__gguf *g;
    write_checkpoint("model.bin", false);
    write_file("tokenizer.bin", vocabulary, make_vocabulary(vocabulary));
    convert("model.bin", NULL, &g); /* the vocabulary is found beside it */
    static const struct {
        const char *name;
        int64_t columns, rows;
    } layer[] = {
        {"attn_norm", DIM, 1}, {"attn_q", DIM, DIM},      {"attn_k", DIM, KV_DIM},   {"attn_v", DIM, KV_DIM}, {"attn_output", DIM, DIM},
        {"ffn_norm", DIM, 1},  {"ffn_gate", DIM, HIDDEN}, {"ffn_down", HIDDEN, DIM}, {"ffn_up", DIM, HIDDEN},
    };
    float at = 0;
    assert_true(first_value(g, "token_embd.weight") == at);
    at += VOCAB * DIM;
    for (size_t w = 0; w < sizeof layer / sizeof layer[0]; w++) {
        for (int i = 0; i < LAYERS; i++, at += (float)(layer[w].columns * layer[w].rows)) {
            char name[64];
            snprintf(name, sizeof name, "blk.%d.%s.weight", i, layer[w].name);
            assert_true(first_value(g, name) == at);
            assert_int_equal(weir__gguf_find_tensor(g, name)->dims[0], layer[w].columns);
            assert_int_equal(weir__gguf_find_tensor(g, name)->dims[1], layer[w].rows);
        }
    }
    assert_true(first_value(g, "output_norm.weight") == at);
    at += DIM + CONTEXT * (DIM / HEADS);
    assert_true(first_value(g, "output.weight") == at);
    assert_int_equal(weir__gguf_tensor_count(g), 3 + 9 * LAYERS);
    weir__gguf_free(g);
}

static void a_tied_head_is_not_written(void **state) {
    (void)state;
    char vocabulary[8192];
    weir__gguf *g;
    write_checkpoint("tied.bin", true);
    write_file("tokenizer.bin", vocabulary, make_vocabulary(vocabulary));
    convert("tied.bin", "tokenizer.bin", &g);
    assert_null(weir__gguf_find_tensor(g, "output.weight"));
    weir__gguf_free(g);
}

static void keys_are_those_that_llamas_have(void **state) {
    (void)state;
    char vocabulary[8192];
    weir__gguf *g;
    write_checkpoint("model.bin", true);
    write_file("tokenizer.bin", vocabulary, make_vocabulary(vocabulary));
    convert("model.bin", "tokenizer.bin", &g);
    static const struct {
        const char *key;
        int64_t value;
    } rows[] = {{"llama.block_count", LAYERS},
                {"llama.context_length", CONTEXT},
                {"llama.embedding_length", DIM},
                {"llama.feed_forward_length", HIDDEN},
                {"llama.attention.head_count", HEADS},
                {"llama.attention.head_count_kv", KV_HEADS},
                {"llama.rope.dimension_count", DIM / HEADS},
                {"tokenizer.ggml.bos_token_id", 1},
                {"tokenizer.ggml.eos_token_id", 2},
                {"tokenizer.ggml.unknown_token_id", 0}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t v = -1;
        assert_int_equal(weir__gguf_get_int(g, rows[i].key, true, 0, 1000, &v, NULL), WEIR_OK);
        assert_int_equal(v, rows[i].value);
    }
    double d = 0;
    assert_int_equal(weir__gguf_get_float(g, "llama.rope.freq_base", true, &d, NULL), WEIR_OK);
    assert_true(d == 10000.0);
    assert_int_equal(weir__gguf_get_float(g, "llama.attention.layer_norm_rms_epsilon", true, &d, NULL), WEIR_OK);
    assert_true((float)d == 1e-5f);
    weir__tokenizer *t;
    size_t size;
    assert_int_equal(weir__gguf_tokenizer(g, &t, NULL), WEIR_OK);
    assert_int_equal(weir__tokenizer_find(t, "<s>", 3), 1);
    assert_int_equal(weir__tokenizer_find(t,
                                          "\xE2\x96\x81"
                                          "a\xE2\x96\x81"
                                          "b",
                                          8),
                     259);
    assert_memory_equal(weir__tokenizer_bytes(t, 259, false, &size), " a b", 4);
    assert_memory_equal(weir__tokenizer_bytes(t, 3 + '\n', false, &size), "\n", 1);
    assert_true(weir__tokenizer_add_bos(t));
    weir__tokenizer_free(t);
    weir__gguf_free(g);
}

static void check(const int32_t header[7], uint64_t file_size, int code, const char *word) {
    weir_error *error = NULL;
    uint64_t before = held_bytes(s);
    assert_int_equal(weir__llama2c_check(s, header, 28, file_size, &error), code);
    if (code && !strstr(weir_error_text(error), word))
        fail_msg("\"%s\" is not in \"%s\"", word, weir_error_text(error));
    weir_error_free(error);
    assert_int_equal(held_bytes(s), before);
}

static void headers_that_lie_are_refused(void **state) {
    (void)state;
    static const int32_t right[7] = {DIM, HIDDEN, LAYERS, HEADS, KV_HEADS, VOCAB, CONTEXT};
    static const char *const fields[7] = {"dim", "hidden_dim", "n_layers", "n_heads", "n_kv_heads", "vocab_size", "seq_len"};
    static const int32_t wrong[] = {0, -1, INT32_MAX, INT32_MIN};
    uint64_t size = 28 + 4 * weights(true);
    check(right, size, WEIR_OK, "");
    check(right, size - 1, WEIR_EFORMAT, "wanted");
    check(right, size + 4, WEIR_EFORMAT, "wanted");
    check(right, 28, WEIR_EFORMAT, "wanted");
    for (size_t i = 0; i < 7; i++) {
        for (size_t k = 0; k < sizeof wrong / sizeof wrong[0]; k++) {
            int32_t header[7];
            memcpy(header, right, sizeof header);
            header[i] = wrong[k];
            check(header, size, WEIR_EFORMAT, i == 5 && wrong[k] == -1 ? "wanted" : fields[i]);
        }
    }
    check((int32_t[]){DIM, HIDDEN, LAYERS, 3, KV_HEADS, VOCAB, CONTEXT}, size, WEIR_EFORMAT, "n_heads");
    check((int32_t[]){DIM, HIDDEN, LAYERS, HEADS, 3, VOCAB, CONTEXT}, size, WEIR_EFORMAT, "n_kv_heads");
    check((int32_t[]){1 << 20, 1 << 20, 1024, 2, 2, 1 << 22, 1 << 20}, size, WEIR_EFORMAT, "wanted"); /* products near the limits */
    assert_int_equal(weir__llama2c_check(s, right, 27, size, NULL), WEIR_EFORMAT);
}

static void vocabularies_that_lie_are_refused(void **state) {
    (void)state;
    char bytes[8192];
    size_t size = make_vocabulary(bytes);
    assert_int_equal(weir__llama2c_vocab_check(s, bytes, size, VOCAB, NULL), WEIR_OK);
    for (size_t n = 0; n < size; n++) {
        char *cut = malloc(n + 1); /* so that reading behind it shows */
        memcpy(cut, bytes, n);
        assert_int_equal(weir__llama2c_vocab_check(s, cut, n, VOCAB, NULL), WEIR_EFORMAT);
        free(cut);
    }
    assert_int_equal(weir__llama2c_vocab_check(s, bytes, size, VOCAB - 1, NULL), WEIR_EFORMAT);
    assert_int_equal(weir__llama2c_vocab_check(s, bytes, size, INT64_MAX, NULL), WEIR_EFORMAT);
    assert_int_equal(weir__llama2c_vocab_check(s, bytes, size, -1, NULL), WEIR_EFORMAT);
    memcpy(bytes + 8, &(int32_t){-1}, 4);
    assert_int_equal(weir__llama2c_vocab_check(s, bytes, size, VOCAB, NULL), WEIR_EFORMAT);
}

static void a_failed_conversion_leaves_no_file(void **state) {
    (void)state;
    char vocabulary[8192];
    weir_error *error = NULL;
    unlink(in_folder("out.gguf"));
    write_checkpoint("model.bin", true);
    write_file("tokenizer.bin", vocabulary, make_vocabulary(vocabulary));
    write_file("tok2.bin", vocabulary, 8);
    uint64_t before = held_bytes(s);
    assert_int_equal(weir__llama2c_convert(s, in_folder("model.bin"), NULL, in_folder("out.gguf"), &error), WEIR_EINVAL);
    assert_non_null(strstr(weir_error_text(error), "2 vocabularies"));
    weir_error_free(error);
    unlink(in_folder("tok2.bin"));
    for (uint64_t nth = 1; nth < 20; nth++) {
        weir__inject_arm(s, "READ", nth, 1);
        int code = weir__llama2c_convert(s, in_folder("model.bin"), NULL, in_folder("out.gguf"), NULL);
        weir__inject_arm(s, "READ", 1, 0);
        assert_int_equal(access(in_folder("out.gguf"), F_OK) == 0, code == WEIR_OK);
        assert_int_equal(held_bytes(s), before);
        if (!code)
            unlink(in_folder("out.gguf"));
    }
    DIR *d = opendir(folder);
    for (struct dirent *e; (e = readdir(d));)
        assert_null(strstr(e->d_name, ".part"));
    closedir(d);
}

static void stories260K_is_converted(void **state) {
    (void)state;
    static const int32_t want[] = {1, 403, 407, 261, 378}; /* <s>, then "Once upon a time" in the vocabulary's longest pieces */
    const char *path = weir_test_reference("models/stories260K/stories260K.bin");
    weir_test_need(path, "stories260K");
    weir__gguf *g;
    weir__tokenizer *t;
    weir__ids ids = {0};
    int64_t layers = 0;
    assert_int_equal(weir__llama2c_convert(s, path, NULL, in_folder("stories.gguf"), NULL), WEIR_OK);
    assert_int_equal(weir__gguf_open(s, in_folder("stories.gguf"), &g, NULL), WEIR_OK);
    assert_int_equal(weir__gguf_get_int(g, "llama.block_count", true, 1, 100, &layers, NULL), WEIR_OK);
    assert_int_equal(layers, 5);
    assert_int_equal(weir__gguf_tensor_count(g), 2 + 9 * 5);
    assert_int_equal(weir__gguf_tokenizer(g, &t, NULL), WEIR_OK);
    assert_int_equal(weir__tokenizer_size(t), 512);
    assert_int_equal(weir__tokenizer_encode(t, &(weir__part){"Once upon a time", 16, false}, 1, true, &ids, NULL), WEIR_OK);
    assert_int_equal(ids.size, sizeof want / sizeof want[0]);
    assert_memory_equal(ids.data, want, sizeof want);
    weir__ids_free(s, &ids);
    weir__tokenizer_free(t);
    weir__gguf_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_weight_keeps_its_place),      cmocka_unit_test(a_tied_head_is_not_written),
        cmocka_unit_test(keys_are_those_that_llamas_have),   cmocka_unit_test(headers_that_lie_are_refused),
        cmocka_unit_test(vocabularies_that_lie_are_refused), cmocka_unit_test(a_failed_conversion_leaves_no_file),
        cmocka_unit_test(stories260K_is_converted),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
