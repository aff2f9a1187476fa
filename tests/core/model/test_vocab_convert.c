/* test_vocab_convert.c: a vocabulary written in the other format, and back again, makes the same ids of the same texts and the same texts of the same ids. */
#include "helper_folder.h"
#include "helper_tokenizer.h"

#include "../../../core/model/gguf.h"
#include "../../../core/model/vocab_gguf.h"
#include "../../../core/model/vocab_json.h"

static weir_system *s;

static int setup(void **state) {
    return weir_system_new(NULL, &s, NULL) || folder_make(state);
}

static int teardown(void **state) {
    weir_system_free(s);
    return folder_remove(state);
}

static int restart(void **state) {
    return folder_remove(state) || folder_make(state);
}

/* ---- a vocabulary from a file, in both formats ---- */

static bool is_gguf(const char *path) {
    return strcmp(path + strlen(path) - 5, ".gguf") == 0;
}

static int with_vocab(const char *path, weir__vocab_fn *fn, void *data, weir_error **error) {
    weir__gguf *g;
    if (!is_gguf(path))
        return weir__tokenizer_json_vocab(s, path, fn, data, error);
    assert_int_equal(weir__gguf_open(s, path, &g, NULL), WEIR_OK);
    int code = weir__gguf_vocab(g, fn, data, error);
    weir__gguf_free(g);
    return code;
}

static weir__tokenizer *load(const char *path) {
    weir__tokenizer *t = NULL;
    weir_error *error = NULL;
    if (with_vocab(path, weir__make_tokenizer, &(weir__making){s, &t, ""}, &error))
        fail_msg("%s", weir_error_text(error));
    assert_non_null(t);
    return t;
}

static weir__vocab_said said;

static int as_gguf(void *path, const weir__vocab *v, weir_error **error) {
    weir__gguf_writer *w;
    assert_int_equal(weir__gguf_create(s, path, &w, error), WEIR_OK);
    int code = weir__vocab_write_gguf(s, v, 0, w, &said, error);
    if (!code && said.phi3)
        weir__gguf_put_string(w, "general.name", "Phi-3");
    assert_int_equal(weir__gguf_finish(w, NULL), WEIR_OK);
    return code;
}

static void put_json(const char *name, weir__json_writer *w) {
    assert_int_equal(w->code, WEIR_OK);
    folder_put(name, w->text, w->size);
    weir__json_write_fini(w);
}

static int as_folder(void *unused, const weir__vocab *v, weir_error **error) {
    weir__json_writer w;
    (void)unused;
    weir__json_write_init(&w, s, 1);
    int code = weir__vocab_write_json(s, v, &w, error);
    if (code) {
        weir__json_write_fini(&w);
        return code;
    }
    put_json("tokenizer.json", &w);
    weir__json_write_init(&w, s, 2);
    weir__vocab_write_config(v, NULL, &w);
    put_json("tokenizer_config.json", &w);
    weir__json_write_init(&w, s, 2);
    weir__vocab_write_generation(v, &w);
    put_json("generation_config.json", &w);
    return WEIR_OK;
}

static void convert(const char *from, const char *gguf) {
    weir_error *error = NULL;
    if (with_vocab(from, gguf ? as_gguf : as_folder, (void *)gguf, &error))
        fail_msg("%s", weir_error_text(error));
}

/* ---- comparing ---- */

static weir__string decode(const weir__tokenizer *t, const weir__ids *ids, weir__decoder *d) {
    weir__decoder_init(d, s, t, NULL, 0);
    for (size_t i = 0; i < ids->size; i++)
        assert_int_equal(weir__decoder_feed(d, ids->data[i], NULL), WEIR_OK);
    assert_int_equal(weir__decoder_finish(d, NULL), WEIR_OK);
    return (weir__string){d->held, d->safe};
}

static void same_text(const weir__tokenizer *a, const weir__tokenizer *b, const weir__ids *ids) {
    weir__decoder x, y;
    weir__string one = decode(a, ids, &x), other = decode(b, ids, &y);
    assert_int_equal(one.size, other.size);
    if (one.size > 0)
        assert_memory_equal(one.data, other.data, one.size);
    weir__decoder_fini(&x);
    weir__decoder_fini(&y);
}

static void same_ids(const weir__tokenizer *a, const weir__tokenizer *b, weir__string text, bool special, bool bounds) {
    weir__part part = {text.data, text.size, special};
    weir__ids one = {0}, other = {0};
    char shown[160];
    int code = weir__tokenizer_encode(a, &part, 1, bounds, &one, NULL);
    assert_int_equal(weir__tokenizer_encode(b, &part, 1, bounds, &other, NULL), code);
    if (one.size != other.size || (one.size > 0 && memcmp(one.data, other.data, one.size * sizeof *one.data) != 0))
        fail_msg("ids of \"%s\" differ", weir__quote(shown, sizeof shown, text.data, text.size));
    same_text(a, b, &one);
    weir__ids_free(s, &one);
    weir__ids_free(s, &other);
}

static void same_in_all_ways(const weir__tokenizer *a, const weir__tokenizer *b, weir__string text) {
    for (int i = 0; i < 4; i++)
        same_ids(a, b, text, i & 1, i & 2);
}

static void same_on_texts(const weir__tokenizer *a, const weir__tokenizer *b) {
    static const char *const texts[] = {
        "",
        " ",
        "  two  spaces ",
        "Hello, world! I've 1234 words\n\n\tand more.\r\n",
        "caf\xC3\xA9 e\xCC\x81 \xE4\xB8\xAD\xE6\x96\x87 \xF0\x9F\xA6\x99\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x92\xBB",
        "<s>a</s> b <unk><mask> <|endoftext|> [CLS] x <|im_start|>user\n",
        " \xE2\x96\x81marks \xE2\x96\x81\xE2\x96\x81",
        "\xFF\xFE no utf-8 \xC3",
        "aaaaaaaaaaaaaaaaaaaaaaaaa        bbbbbbb\n\n\n\n"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        same_in_all_ways(a, b, (weir__string){texts[i], strlen(texts[i])});
    if (weir__tokenizer_bos(a) >= 0)
        assert_int_equal(weir__tokenizer_bos(a), weir__tokenizer_bos(b));
    if (weir__tokenizer_eos(a) >= 0)
        assert_int_equal(weir__tokenizer_eos(a), weir__tokenizer_eos(b));
}

/* Texts between lines of "__ggml_vocab_test__", or of a list of cases; and each piece's own text. */
static void same_on_file(const weir__tokenizer *a, const weir__tokenizer *b, const char *path) {
    static const char line[] = "\n__ggml_vocab_test__\n";
    weir__text_file f;
    size_t count = 0;
    assert_int_equal(weir__text_file_read(s, NULL, path, 64 << 20, &f, NULL), WEIR_OK);
    for (char *at = f.data, *next; (next = strstr(at, line)) != NULL; at = next + sizeof line - 1, count++)
        same_in_all_ways(a, b, (weir__string){at, (size_t)(next - at)});
    for (char *at = f.data, *next; count == 0 && (next = strstr(at, "\"text\": \"")) != NULL; at = next + 1)
        same_in_all_ways(a, b, (weir__string){next + 9, (size_t)(strchr(next + 9, '\n') - next - 9)});
    weir__text_file_fini(&f);
}

static void same_on_pieces(const weir__tokenizer *a, const weir__tokenizer *b) {
    size_t step = 1 + weir__tokenizer_size(a) / 4000;
    for (size_t i = 0; i < weir__tokenizer_size(a); i += step) {
        same_ids(a, b, weir__tokenizer_piece(a, (int32_t)i), true, false);
    }
}

static void assert_same(const char *path, const char *other, const char *texts) {
    weir__tokenizer *a = load(path), *b = load(other);
    same_on_texts(a, b);
    same_on_pieces(a, b);
    if (texts)
        same_on_file(a, b, texts);
    weir__tokenizer_free(a);
    weir__tokenizer_free(b);
}

/* ---- GGUF to a folder and back ---- */

static void through_a_folder(const char *name, bool own) {
    char file[96], path[4096], texts[4200], gguf[256];
    snprintf(file, sizeof file, "vectors/ggml-vocab-%s.gguf", name);
    weir_test_need(weir_test_reference(file), "the folder of reference vocabularies");
    snprintf(path, sizeof path, "%s", weir_test_reference(file));
    snprintf(texts, sizeof texts, "%s.inp", path);
    convert(path, NULL);
    assert_same(path, folder, texts);
    snprintf(gguf, sizeof gguf, "%s", folder_path("back.gguf"));
    convert(folder, gguf);
    assert_int_equal(said.warning[0] == 0, own);
    assert_same(path, gguf, texts);
}

#define VECTORS(test, name, own)                                                                                                           \
    static void test##_through_a_folder(void **state) {                                                                                    \
        (void)state;                                                                                                                       \
        through_a_folder(name, own);                                                                                                       \
    }
VECTORS(llama_spm, "llama-spm", true)
VECTORS(gpt_2, "gpt-2", true)
VECTORS(starcoder, "starcoder", true)
VECTORS(llama_bpe, "llama-bpe", true)
VECTORS(qwen2, "qwen2", true)
VECTORS(deepseek_llm, "deepseek-llm", true)
VECTORS(bert_bge, "bert-bge", false)

/* ---- tokenizer.json to GGUF and back ---- */

static void through_gguf(const char *path, const char *texts, bool own) {
    char gguf[256];
    snprintf(gguf, sizeof gguf, "%s", folder_path("model.gguf"));
    convert(path, gguf);
    if ((said.warning[0] == 0) != own)
        fail_msg("%s", said.warning);
    assert_same(path, gguf, texts);
    convert(gguf, NULL);
    assert_same(path, folder, texts);
}

static void data_through_gguf(const char *name, bool own) {
    char path[512], texts[512];
    snprintf(path, sizeof path, WEIR_TEST_DATA "/tokenizers/%s.json", name);
    snprintf(texts, sizeof texts, WEIR_TEST_DATA "/tokenizers/%s.cases.json", name);
    through_gguf(path, texts, own);
}

/* `own`: GGUF's own words say it. */
#define LIBRARY(name, own)                                                                                                                 \
    static void name##_json_through_gguf(void **state) {                                                                                   \
        (void)state;                                                                                                                       \
        data_through_gguf(#name, own);                                                                                                     \
    }
LIBRARY(llama3, true)
LIBRARY(qwen2, true)
LIBRARY(deepseek3, true)
LIBRARY(falcon, false)
LIBRARY(roberta, false)
LIBRARY(llama2, true)
LIBRARY(gemma, true)
LIBRARY(mistral, false)
LIBRARY(bert, false)
LIBRARY(t5, false)
LIBRARY(wordy, false)
LIBRARY(chars, false)

static void reference_through_gguf(const char *name, bool own) {
    char path[4096];
    weir_test_need(weir_test_reference(name), name);
    snprintf(path, sizeof path, "%s", weir_test_reference(name));
    through_gguf(path, NULL, own);
}

static void the_families_tokenizer_through_gguf(void **state) {
    (void)state;
    reference_through_gguf("models/families/tokenizer.json", true);
}
static void patchworks_tokenizer_through_gguf(void **state) {
    (void)state;
    reference_through_gguf("models/patchwork/tokenizer.json", true);
}
static void the_reference_unigram_through_gguf(void **state) {
    (void)state;
    reference_through_gguf("vectors/unigram.tokenizer.json", false);
}

#define TEST(name) cmocka_unit_test_setup(name, restart)
int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(llama_spm_through_a_folder),
        TEST(gpt_2_through_a_folder),
        TEST(starcoder_through_a_folder),
        TEST(llama_bpe_through_a_folder),
        TEST(qwen2_through_a_folder),
        TEST(deepseek_llm_through_a_folder),
        TEST(bert_bge_through_a_folder),
        TEST(llama3_json_through_gguf),
        TEST(qwen2_json_through_gguf),
        TEST(deepseek3_json_through_gguf),
        TEST(falcon_json_through_gguf),
        TEST(roberta_json_through_gguf),
        TEST(llama2_json_through_gguf),
        TEST(gemma_json_through_gguf),
        TEST(mistral_json_through_gguf),
        TEST(bert_json_through_gguf),
        TEST(t5_json_through_gguf),
        TEST(wordy_json_through_gguf),
        TEST(chars_json_through_gguf),
        TEST(the_families_tokenizer_through_gguf),
        TEST(patchworks_tokenizer_through_gguf),
        TEST(the_reference_unigram_through_gguf),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
