/* vocab.c: from the tokenizer.ggml.* keys of a GGUF file to a tokeniser. Checks types and lengths; what pieces mean is core/text's. */
#include "gguf_internal.h"

#include <string.h>

/* Arrays made of the file's for the time of weir__tokenizer_new. */
typedef struct arrays {
    weir__string *pieces, *merges;
    float *scores;
    int32_t *kinds;
    char *model, *pre;
} arrays;

/* What a vocabulary of a model has where its file says nothing: llama.cpp's defaults for SentencePiece; nothing for others. */
static weir__old_vocab defaults(const weir__gguf *g, const char *model) {
    bool spm = strcmp(model, "llama") == 0;
    return (weir__old_vocab){
        .model = model,
        .source = weir__gguf_path(g),
        .bos = spm ? 1 : -1,
        .eos = spm ? 2 : -1,
        .unk = spm ? 0 : -1,
        .add_bos = spm,
        .add_space_prefix = spm,
    };
}

/* An array key of one of two element types and, if `size` is not 0, of that many elements. NULL and 0: absent. */
static int want_array(const weir__gguf *g, const char *name, uint32_t type, uint32_t other, uint64_t size, const weir__gguf_key **out,
                      weir_error **error) {
    const weir__gguf_key *key = *out = weir__gguf_find(g, name);
    if (!key)
        return WEIR_OK;
    if (key->type != WEIR__GGUF_ARRAY)
        return weir_fail(error, WEIR_EFORMAT, "%s: key \"%s\": found %s, wanted an array of %s", weir__gguf_path(g), name,
                         weir__gguf_type_name(key->type), weir__gguf_type_name(type));
    if (key->element != type && key->element != other)
        return weir_fail(error, WEIR_EFORMAT, "%s: key \"%s\": found an array of %s, wanted an array of %s", weir__gguf_path(g), name,
                         weir__gguf_type_name(key->element), weir__gguf_type_name(type));
    if (size > 0 && key->count != size)
        return weir_fail(error, WEIR_EFORMAT, "%s: key \"%s\": found %llu elements, wanted %llu, one a token", weir__gguf_path(g), name,
                         (unsigned long long)key->count, (unsigned long long)size);
    return WEIR_OK;
}

static int no_memory(const weir__gguf *g, weir_error **error) {
    return weir_fail(error, WEIR_ENOMEM, "%s: vocabulary", weir__gguf_path(g));
}

static int read_strings(const weir__gguf *g, const weir__gguf_key *key, weir__string **out, weir_error **error) {
    *out = weir__alloc(g->system, ((size_t)key->count + 1) * sizeof **out);
    if (!*out)
        return no_memory(g, error);
    const uint8_t *at = key->data;
    for (uint64_t i = 0; i < key->count; i++)
        (*out)[i] = weir__gguf_next_string(&at);
    return WEIR_OK;
}

/* Numbers of 4 bytes, as they lie. */
static int read_words(const weir__gguf *g, const weir__gguf_key *key, void **out, weir_error **error) {
    uint32_t *words = *out = weir__alloc(g->system, ((size_t)key->count + 1) * sizeof *words);
    if (!words)
        return no_memory(g, error);
    for (uint64_t i = 0; i < key->count; i++)
        words[i] = weir__le32(key->data + 4 * i);
    return WEIR_OK;
}

static int read_pieces(const weir__gguf *g, weir__old_vocab *v, arrays *a, weir_error **error) {
    const weir__gguf_key *tokens;
    int code = want_array(g, "tokenizer.ggml.tokens", WEIR__GGUF_STRING, WEIR__GGUF_STRING, 0, &tokens, error);
    if (code)
        return code;
    if (!tokens || tokens->count == 0 || tokens->count > WEIR_MAX_VOCAB)
        return weir_fail(error, WEIR_EFORMAT, "%s: key \"tokenizer.ggml.tokens\": found %llu pieces, wanted 1 to %d", weir__gguf_path(g),
                         tokens ? (unsigned long long)tokens->count : 0, WEIR_MAX_VOCAB);
    code = read_strings(g, tokens, &a->pieces, error);
    v->pieces = a->pieces;
    v->size = (size_t)tokens->count;
    return code;
}

static int read_scores(const weir__gguf *g, weir__old_vocab *v, arrays *a, weir_error **error) {
    const weir__gguf_key *key;
    void *words = NULL;
    int code = want_array(g, "tokenizer.ggml.scores", WEIR__GGUF_F32, WEIR__GGUF_F32, v->size, &key, error);
    if (!code && key)
        code = read_words(g, key, &words, error);
    v->scores = a->scores = words;
    return code;
}

static int read_kinds(const weir__gguf *g, weir__old_vocab *v, arrays *a, weir_error **error) {
    const weir__gguf_key *key;
    void *words = NULL;
    int code = want_array(g, "tokenizer.ggml.token_type", WEIR__GGUF_I32, WEIR__GGUF_U32, v->size, &key, error);
    if (!code && key)
        code = read_words(g, key, &words, error);
    v->kinds = a->kinds = words;
    return code;
}

static int read_merges(const weir__gguf *g, weir__old_vocab *v, arrays *a, weir_error **error) {
    const weir__gguf_key *key;
    int code = want_array(g, "tokenizer.ggml.merges", WEIR__GGUF_STRING, WEIR__GGUF_STRING, 0, &key, error);
    if (code)
        return code;
    if (!key && strcmp(v->model, "gpt2") == 0)
        return weir_fail(error, WEIR_EFORMAT, "%s: key \"tokenizer.ggml.merges\": not found, but needed", weir__gguf_path(g));
    if (!key)
        return WEIR_OK;
    code = read_strings(g, key, &a->merges, error);
    v->merges = a->merges;
    v->merges_count = (size_t)key->count;
    return code;
}

/* A token id. Numbers outside the vocabulary mean that there is none. */
static int read_id(const weir__gguf *g, const char *name, const weir__old_vocab *v, int32_t *id, weir_error **error) {
    int64_t found = *id;
    int code = weir__gguf_get_int(g, name, false, INT64_MIN, INT64_MAX, &found, error);
    *id = found >= 0 && (uint64_t)found < v->size ? (int32_t)found : -1;
    return code;
}

/* A string key, copied with an ending zero. */
static int read_name(const weir__gguf *g, const char *name, char **out, weir_error **error) {
    weir__string s = {NULL, 0};
    int code = weir__gguf_get_string(g, name, false, &s, error);
    if (code || !s.data)
        return code;
    *out = weir__alloc(g->system, s.size + 1);
    if (!*out)
        return no_memory(g, error);
    memcpy(*out, s.data, s.size);
    return WEIR_OK;
}

static int read_vocab(const weir__gguf *g, arrays *a, weir__old_vocab *v, weir_error **error) {
    *v = defaults(g, a->model);
    int code = read_pieces(g, v, a, error);
    if (code || (code = read_scores(g, v, a, error)) || (code = read_kinds(g, v, a, error)) || (code = read_merges(g, v, a, error)) ||
        (code = read_name(g, "tokenizer.ggml.pre", &a->pre, error)) ||
        (code = read_id(g, "tokenizer.ggml.bos_token_id", v, &v->bos, error)) ||
        (code = read_id(g, "tokenizer.ggml.eos_token_id", v, &v->eos, error)) ||
        (code = read_id(g, "tokenizer.ggml.unknown_token_id", v, &v->unk, error)) ||
        (code = weir__gguf_get_bool(g, "tokenizer.ggml.add_bos_token", false, &v->add_bos, error)) ||
        (code = weir__gguf_get_bool(g, "tokenizer.ggml.add_eos_token", false, &v->add_eos, error)))
        return code;
    v->pre = a->pre;
    return weir__gguf_get_bool(g, "tokenizer.ggml.add_space_prefix", false, &v->add_space_prefix, error);
}

int weir__gguf_tokenizer(const weir__gguf *g, weir__tokenizer **out, weir_error **error) {
    arrays a = {0};
    weir__old_vocab v;
    *out = NULL;
    int code = read_name(g, "tokenizer.ggml.model", &a.model, error);
    if (!code && a.model)
        code = read_vocab(g, &a, &v, error);
    if (!code && a.model)
        code = weir__tokenizer_new(g->system, &v, out, error);
    weir__free(g->system, a.pieces);
    weir__free(g->system, a.merges);
    weir__free(g->system, a.scores);
    weir__free(g->system, a.kinds);
    weir__free(g->system, a.model);
    weir__free(g->system, a.pre);
    return code;
}
