/* settings.c: from a file's settings to a config, by the tables of all decoders and of the family. Every key is read, known to be harmless, or refused. */
#include "settings_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- the settings of all decoders ---- */

const weir__name weir__activations[] = {
    {"silu", WEIR_SILU},           {"swish", WEIR_SILU},         {"gelu_pytorch_tanh", WEIR_GELU_TANH},
    {"gelu_tanh", WEIR_GELU_TANH}, {"gelu_new", WEIR_GELU_TANH}, {NULL, 0},
};
static const weir__name scalings[] = {
    {"none", WEIR_ROPE_PLAIN},    {"default", WEIR_ROPE_PLAIN}, {"linear", WEIR_ROPE_LINEAR},
    {"llama3", WEIR_ROPE_LLAMA3}, {"yarn", WEIR_ROPE_YARN},     {NULL, 0},
};

#define INT(gguf, hf, field, needed, max)                                                                                                  \
    { gguf, hf, WEIR__SET_INT, WEIR__AT(field), needed, false, 1, max, NULL }
#define REAL(gguf, hf, field, min, max)                                                                                                    \
    { gguf, hf, WEIR__SET_REAL, WEIR__AT(field), 0, false, min, max, NULL }
#define ROPE(name) "rope_parameters." name " rope_scaling." name

static const weir__setting decoder[] = {
    INT("block_count", "num_hidden_layers", layers, WEIR__NEEDED, WEIR_MAX_LAYERS),
    INT("embedding_length", "hidden_size", width, WEIR__NEEDED, WEIR_MAX_WIDTH),
    INT("feed_forward_length", "intermediate_size", ffn, WEIR__NEEDED, WEIR_MAX_WIDTH),
    INT("attention.head_count", "num_attention_heads", heads, WEIR__NEEDED, WEIR_MAX_WIDTH),
    {"attention.head_count_kv", "num_key_value_heads", WEIR__SET_INT, WEIR__AT(kv_heads), 0, true, 1, WEIR_MAX_WIDTH, NULL},
    INT("attention.key_length", "head_dim", head_dim, 0, 1024),
    INT("attention.value_length", NULL, value_dim, 0, 1024),
    INT("context_length", "max_position_embeddings", context, 0, INT32_MAX),
    INT("vocab_size", "vocab_size", vocab, 0, WEIR_MAX_VOCAB),
    {"attention.layer_norm_rms_epsilon", "rms_norm_eps", WEIR__SET_REAL, WEIR__AT(norm_eps), WEIR__NEEDED_GGUF, false, 0, 1, NULL},
    REAL("rope.freq_base", ROPE("rope_theta") " rope_theta", rope_config.base, 1e-3, 1e12),
    INT("rope.dimension_count", NULL, rope_config.dim, 0, 1024),
    REAL(NULL, ROPE("partial_rotary_factor") " partial_rotary_factor", rope_config.partial, 0, 1),
    {"rope.scaling.type", ROPE("rope_type") " " ROPE("type"), WEIR__SET_NAME, WEIR__AT(rope_config.type), 0, false, 0, 0, scalings},
    REAL("rope.scaling.factor", ROPE("factor"), rope_config.factor, 0, 1e6),
    REAL("rope.scale_linear", NULL, rope_config.linear, 0, 1e6),
    REAL("rope.scaling.original_context_length", ROPE("original_max_position_embeddings"), rope_config.original, 0, 1e9),
    REAL(NULL, ROPE("low_freq_factor"), rope_config.low, 1e-6, 1e6),
    REAL(NULL, ROPE("high_freq_factor"), rope_config.high, 1e-6, 1e6),
    REAL("rope.scaling.yarn_beta_fast", ROPE("beta_fast"), rope_config.beta_fast, 1e-6, 1e6),
    REAL("rope.scaling.yarn_beta_slow", ROPE("beta_slow"), rope_config.beta_slow, 1e-6, 1e6),
    REAL("rope.scaling.attn_factor", ROPE("attention_factor"), rope_config.attention, 0, 1e6),
    REAL(NULL, ROPE("mscale"), rope_config.mscale, 0, 1e6),
    REAL(NULL, ROPE("mscale_all_dim"), rope_config.mscale_all_dim, 0, 1e6),
    {NULL, ROPE("truncate"), WEIR__SET_FLAG, WEIR__AT(rope_config.truncate), 0, false, 0, 0, NULL},
    {NULL, "tie_word_embeddings", WEIR__SET_FLAG, WEIR__AT(tied), 0, false, 0, 0, NULL},
    {NULL, "eos_token_id", WEIR__SET_ELSEWHERE, 0, 0, false, 0, 0, NULL},
    {NULL, "layer_types", WEIR__SET_ELSEWHERE, 0, 0, false, 0, 0, NULL},
};
enum { DECODER = sizeof decoder / sizeof *decoder };

const weir__setting *weir__family_setting(const weir__family *f, size_t i) {
    return i < DECODER ? &decoder[i] : i < DECODER + f->n_settings ? &f->settings[i - DECODER] : NULL;
}

/* ---- one setting ---- */

/* The next of the names separated by spaces, as the file's key; false: no more. Names in the object that does not count are passed over. */
static bool next_key(const weir__settings *r, const char **at, char *key, size_t size) {
    for (size_t n; (n = strcspn(*at, " ")) > 0;) {
        snprintf(key, size, "%s%.*s", r->prefix, (int)n, *at);
        *at += n + ((*at)[n] == ' ');
        if (!weir__settings_passed_over(r, key))
            return true;
    }
    return false;
}

const char *weir__value_shown(const weir__value *v, char *to, size_t size) {
    switch (v->kind) {
    case WEIR__BOOLEAN:
        return v->integer ? "true" : "false";
    case WEIR__INTEGER:
        snprintf(to, size, "%lld", (long long)v->integer);
        return to;
    case WEIR__REAL:
        snprintf(to, size, "%g", v->real);
        return to;
    case WEIR__TEXT: {
        char text[72];
        snprintf(to, size, "\"%s\"", weir__quote(text, sizeof text, v->text.data, v->text.size));
        return to;
    }
    case WEIR__LIST:
        snprintf(to, size, "a list of %llu", (unsigned long long)v->count);
        return to;
    case WEIR__MAP:
        return "an object";
    default:
        return "null";
    }
}

static int wrong(const weir__settings *r, const char *key, const weir__value *v, int code, const char *wanted, weir_error **error) {
    char found[96];
    return weir_fail(error, code, "%s: key \"%s\": found %s, wanted %s", weir__source_settings_path(r->src), key,
                     weir__value_shown(v, found, sizeof found), wanted);
}

static int store_number(const weir__settings *r, const weir__setting *s, const char *key, const weir__value *v, void *to,
                        weir_error **error) {
    char wanted[80];
    bool whole = s->kind == WEIR__SET_INT, number = v->kind == WEIR__INTEGER || v->kind == WEIR__REAL;
    if (!number || !(v->real >= s->min && v->real <= s->max) || (whole && v->real != floor(v->real))) {
        if (whole)
            snprintf(wanted, sizeof wanted, "a whole number from %.0f to %.0f", s->min, s->max);
        else
            snprintf(wanted, sizeof wanted, "a number from %g to %g", s->min, s->max);
        return wrong(r, key, v, WEIR_EFORMAT, wanted, error);
    }
    if (whole)
        *(int32_t *)to = (int32_t)v->real;
    else
        *(double *)to = v->real;
    return WEIR_OK;
}

static int store_name(const weir__settings *r, const weir__setting *s, const char *key, const weir__value *v, int32_t *to,
                      weir_error **error) {
    char wanted[160] = "";
    for (const weir__name *n = s->names; n->name; n++) {
        if (v->kind == WEIR__TEXT && v->text.size == strlen(n->name) && memcmp(v->text.data, n->name, v->text.size) == 0) {
            *to = n->value;
            return WEIR_OK;
        }
        size_t used = strlen(wanted);
        snprintf(wanted + used, sizeof wanted - used, "%s\"%s\"", used ? ", " : "", n->name);
    }
    return wrong(r, key, v, v->kind == WEIR__TEXT ? WEIR_EUNSUPPORTED : WEIR_EFORMAT, wanted, error);
}

static int store(const weir__settings *r, const weir__setting *s, const char *key, const weir__value *v, weir_error **error) {
    char *to = (char *)r->config + s->offset;
    switch (s->kind) {
    case WEIR__SET_FLAG:
        if (v->kind != WEIR__BOOLEAN)
            return wrong(r, key, v, WEIR_EFORMAT, "true or false", error);
        *(bool *)(void *)to = v->integer != 0;
        return WEIR_OK;
    case WEIR__SET_NAME:
        return store_name(r, s, key, v, (int32_t *)(void *)to, error);
    case WEIR__SET_ELSEWHERE:
        return WEIR_OK;
    default:
        return store_number(r, s, key, v, to, error);
    }
}

static void set_zero(const weir__setting *s, weir__config *c) {
    char *to = (char *)c + s->offset;
    if (s->kind == WEIR__SET_INT)
        *(int32_t *)(void *)to = 0;
    else
        *(double *)(void *)to = 0;
}

/* The first of the setting's keys that the file has. */
static int read_setting(const weir__settings *r, const weir__setting *s, weir_error **error) {
    const char *names = r->gguf ? s->gguf : s->hf;
    char key[WEIR_GGUF_MAX_NAME], first[WEIR_GGUF_MAX_NAME] = "";
    if (!names)
        return WEIR_OK;
    while (next_key(r, &names, key, sizeof key)) {
        weir__value v;
        if (!*first)
            snprintf(first, sizeof first, "%s", key);
        weir__source_get(r->src, key, &v);
        if (v.kind == WEIR__NULL && s->nullable)
            set_zero(s, r->config);
        else if (v.kind != WEIR__ABSENT && v.kind != WEIR__NULL)
            return store(r, s, key, &v, error);
    }
    return s->needed >> weir__source_format(r->src) & 1
               ? weir_fail(error, WEIR_EFORMAT, "%s: key \"%s\": not found, but needed", weir__source_settings_path(r->src), first)
               : WEIR_OK;
}

static int read_table(const weir__settings *r, const weir__setting *table, size_t n, weir_error **error) {
    int code = WEIR_OK;
    for (size_t i = 0; i < n && !code; i++)
        code = read_setting(r, &table[i], error);
    return code;
}

/* ---- what follows from the settings ---- */

bool weir__gguf_has(const weir__source *src, const char *name) {
    char full[96];
    snprintf(full, sizeof full, "blk.0.%s", name);
    return weir__source_format(src) == WEIR__FORMAT_GGUF && weir__source_find(src, full);
}

/* The name under which the file has a setting, for errors. */
static const char *name_of(const weir__settings *r, const char *gguf, const char *hf, char *to, size_t size) {
    snprintf(to, size, "%s%s", r->prefix, r->gguf ? gguf : hf);
    return to;
}

static int check_heads(const weir__settings *r, weir_error **error) {
    weir__config *c = r->config;
    char heads[96], other[96];
    name_of(r, "attention.head_count", "num_attention_heads", heads, sizeof heads);
    c->kv_heads = c->kv_heads ? c->kv_heads : c->heads;
    if (c->heads % c->kv_heads)
        return weir_fail(error, WEIR_EFORMAT, "%s: %s is %d, wanted a multiple of %s, %d", weir__source_settings_path(r->src), heads,
                         c->heads, r->gguf ? "head_count_kv" : "num_key_value_heads", c->kv_heads);
    c->head_dim = c->head_dim ? c->head_dim : c->width / c->heads;
    if (c->head_dim < 1)
        return weir_fail(error, WEIR_EFORMAT, "%s: %s is %d, more than %s, %d", weir__source_settings_path(r->src), heads, c->heads,
                         name_of(r, "embedding_length", "hidden_size", other, sizeof other), c->width);
    c->value_dim = c->value_dim ? c->value_dim : c->head_dim;
    if (c->value_dim != c->head_dim)
        return weir_fail(error, WEIR_EUNSUPPORTED, "%s: %s is %d, wanted the key's length, %d", weir__source_settings_path(r->src),
                         name_of(r, "attention.value_length", "", other, sizeof other), c->value_dim, c->head_dim);
    if ((int64_t)c->heads * c->head_dim > WEIR_MAX_WIDTH)
        return weir_fail(error, WEIR_EFORMAT, "%s: %d heads of %d are wider than %d", weir__source_settings_path(r->src), c->heads,
                         c->head_dim, WEIR_MAX_WIDTH);
    return WEIR_OK;
}

static int check_vocab(const weir__settings *r, weir_error **error) {
    weir__config *c = r->config;
    const char *name = r->gguf ? "token_embd.weight" : "model.embed_tokens.weight", *path = weir__source_settings_path(r->src);
    const weir__tensor *t = weir__source_find(r->src, name);
    if (!t)
        return weir__tensor_missing(r->src, name, error);
    if (t->dims[1] > WEIR_MAX_VOCAB)
        return weir_fail(error, WEIR_EFORMAT, "%s: tensor \"%s\" has %lld rows, at most %d are supported", path, name,
                         (long long)t->dims[1], WEIR_MAX_VOCAB);
    if (c->vocab && c->vocab != t->dims[1])
        return weir_fail(error, WEIR_EFORMAT, "%s: %svocab_size is %d, tensor \"%s\" has %lld rows", path, r->prefix, c->vocab, name,
                         (long long)t->dims[1]);
    c->vocab = (int32_t)t->dims[1];
    return WEIR_OK;
}

int weir__config_read(const weir__source *src, const weir__family *f, weir__config *c, weir_error **error) {
    weir__settings r = {src, f, c, weir__source_format(src) == WEIR__FORMAT_GGUF, "", false};
    if (r.gguf)
        snprintf(r.prefix, sizeof r.prefix, "%s.", f->name);
    *c = (weir__config){.norm_eps = 1e-6, .rope_config = {.type = -1, .base = 10000, .partial = 1, .truncate = true}};
    f->defaults(c, weir__source_format(src));
    weir__settings_begin(&r);
    int code = read_table(&r, decoder, DECODER, error);
    if (!code)
        code = read_table(&r, f->settings, f->n_settings, error);
    if (!code)
        code = weir__settings_check_keys(&r, error);
    if (!code)
        code = check_heads(&r, error);
    if (!code)
        code = check_vocab(&r, error);
    if (!code)
        code = weir__config_head(src, c, error);
    if (!code)
        code = weir__config_ends(src, error);
    if (!code)
        code = weir__config_rope(src, c, error);
    if (!code && f->finish)
        code = f->finish(src, c, error);
    c->query_scalar = c->query_scalar > 0 ? c->query_scalar : (double)c->head_dim;
    c->attention_scale = 1 / sqrt(c->query_scalar);
    return code;
}

void weir__config_fini(weir_system *s, weir__config *c) {
    weir__free(s, c->rope_factors);
    c->rope_factors = NULL;
}
