/* families.c: the table of families. A new one is a file that defines its weir__family and a row here. */
#include "family.h"

#include <stdio.h>
#include <string.h>

static const weir__family *const table[] = {&weir__llama, &weir__mistral, &weir__qwen2, &weir__qwen3, &weir__phi3, &weir__gemma2};
enum { FAMILIES = sizeof table / sizeof *table };

/* Published models of other kinds, so that the refusal says what is missing. */
static const struct {
    const char *names, *kind;
} others[] = {
    {" bert modernbert roberta xlm-roberta distilbert nomic-bert nomic_bert jina-bert-v2 mpnet electra deberta-v2 ", "an encoder"},
    {" t5 mt5 umt5 t5encoder bart mbart pegasus whisper ", "an encoder-decoder"},
    {" mixtral qwen2_moe qwen2moe qwen3_moe qwen3moe olmoe deepseek_v2 deepseek2 deepseek_v3 gpt_oss gpt-oss phimoe granitemoe dbrx ",
     "a mixture of experts"},
};

const weir__family *weir__family_at(size_t i) {
    return i < FAMILIES ? table[i] : NULL;
}

static bool is(const char *name, weir__string s) {
    return name && strlen(name) == s.size && memcmp(name, s.data, s.size) == 0;
}

static const char *kind_of(weir__string name) {
    char word[64];
    if (name.size + 3 > sizeof word)
        return NULL;
    snprintf(word, sizeof word, " %.*s ", (int)name.size, name.data);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strstr(others[i].names, word))
            return others[i].kind;
    return NULL;
}

void weir__family_names(char *to, size_t room) {
    *to = 0;
    for (size_t i = 0; i < FAMILIES; i++)
        weir__enumerate(to, room, table[i]->name);
}

static int refuse(const weir__source *src, weir__string name, weir_error **error) {
    char known[512], shown[96];
    const char *kind = kind_of(name);
    weir__family_names(known, sizeof known);
    weir__quote(shown, sizeof shown, name.data, name.size);
    if (kind)
        return weir_fail(error, WEIR_EUNSUPPORTED, "%s: architecture \"%s\" is %s, which is not supported (supported: %s)",
                         weir__source_path(src), shown, kind, known);
    return weir_fail(error, WEIR_EUNSUPPORTED, "%s: architecture \"%s\" is not supported (supported: %s)", weir__source_path(src), shown,
                     known);
}

/* The most experts that a layer has: files say one number, or one a layer, 0 for a dense one. */
static int64_t most_experts(const weir__source *src, const char *key) {
    weir__value v, element;
    weir__source_get(src, key, &v);
    int64_t most = v.kind == WEIR__INTEGER ? v.integer : 0;
    for (uint64_t i = 0; v.kind == WEIR__LIST && i < v.count && i < WEIR_MAX_LAYERS; i++) {
        weir__source_element(src, key, i, &element);
        if (element.kind == WEIR__INTEGER && element.integer > most)
            most = element.integer;
    }
    return most;
}

/* GGUF has mixtral as llama with experts. */
static int check_experts(const weir__source *src, weir__string name, weir_error **error) {
    char key[96], known[512], shown[72];
    weir__quote(shown, sizeof shown, name.data, name.size);
    snprintf(key, sizeof key, "%.*s.expert_count", (int)(name.size < 64 ? name.size : 64), name.data);
    int64_t most = most_experts(src, key);
    if (most <= 0)
        return WEIR_OK;
    weir__family_names(known, sizeof known);
    return weir_fail(error, WEIR_EUNSUPPORTED,
                     "%s: architecture \"%s\" with %s %lld is a mixture of experts, which is not supported (supported: %s)",
                     weir__source_path(src), shown, key, (long long)most, known);
}

int weir__tensor_missing(const weir__source *src, const char *name, weir_error **error) {
    static const char prefix[] = "model.";
    size_t n = sizeof prefix - 1;
    if (strncmp(name, prefix, n) == 0 && weir__source_find(src, name + n))
        return weir_fail(error, WEIR_EFORMAT, "%s: tensor \"%s\" is missing: \"%s\" is there, without the prefix \"%s\" of a whole model",
                         weir__source_path(src), name, name + n, prefix);
    return weir_fail(error, WEIR_EFORMAT, "%s: tensor \"%s\" is missing", weir__source_path(src), name);
}

int weir__family_of(const weir__source *src, const weir__family **out, weir_error **error) {
    weir__string name;
    bool gguf = weir__source_format(src) == WEIR__FORMAT_GGUF;
    int code = weir__source_family(src, &name, error);
    if (code)
        return code;
    for (size_t i = 0; i < FAMILIES; i++)
        if (is(table[i]->name, name) && !(gguf && table[i]->gguf)) {
            *out = table[i];
            return gguf ? check_experts(src, name, error) : WEIR_OK;
        }
    return refuse(src, name, error);
}
