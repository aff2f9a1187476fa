/* checkpoint.c: an opened file with its config, graph, plan and tokeniser (model.h). */
#include "model.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

struct weir__checkpoint {
    atomic_uint refs;
    weir_system *system;
    weir__source *source;
    const weir__family *family;
    weir__config config;
    int quant;         /* -1: none */
    char warning[512]; /* "": none; several are separated by "; " */
    weir__group group; /* the decoder; architectures with several groups bring their own array */
    weir__graph graph;
    weir__unit_plan *units; /* [graph.units + 1] */
    weir__tokenizer *tokenizer;
    weir_error *no_tokenizer; /* why there is none */
};

static void handle_ref(void *object) {
    weir__checkpoint_ref(object);
}
static void handle_unref(void *object) {
    weir__checkpoint_unref(object);
}
const weir_handle_type weir__checkpoint_handle = {"checkpoint", handle_ref, handle_unref};

weir__checkpoint *weir__checkpoint_ref(weir__checkpoint *c) {
    atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
    return c;
}

void weir__checkpoint_unref(weir__checkpoint *c) {
    /* acq_rel: the last owner sees every other owner's writes before it frees */
    if (!c || atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) != 1)
        return;
    weir__tokenizer_free(c->tokenizer);
    weir_error_free(c->no_tokenizer);
    weir__config_fini(c->system, &c->config);
    weir__source_free(c->source);
    weir__free(c->system, c->units);
    weir__free(c->system, c);
}

/* Tensors that no unit has and that change nothing: tables that old checkpoints carry, rotary factors (read by weir__config_rope), a head that is tied. */
static bool harmless(const weir__checkpoint *c, const weir__tensor *t) {
    static const char table[] = ".rotary_emb.inv_freq";
    char name[96];
    snprintf(name, sizeof name, "%.*s", (int)t->name.size, t->name.data);
    size_t n = strlen(name), ending = sizeof table - 1;
    if (weir__source_format(c->source) == WEIR__FORMAT_GGUF)
        return c->config.rope_factors && strcmp(name, "rope_freqs.weight") == 0;
    return (n > ending && strcmp(name + n - ending, table) == 0) || (c->config.tied && strcmp(name, "lm_head.weight") == 0);
}

/* A tensor that no unit uses (a bias, a norm of another family) would change the result: such a file is refused. */
static int check_all_used(const weir__checkpoint *c, weir_error **error) {
    size_t n = weir__source_tensor_count(c->source), first = 0;
    const char *path = weir__source_path(c->source);
    bool *used = weir__alloc(c->system, n * sizeof *used + 1);
    if (!used)
        return weir_fail(error, WEIR_ENOMEM, "%s: no memory for %zu tensors", path, n);
    for (uint32_t u = 0; u <= c->graph.units; u++)
        for (uint32_t i = 0; i < c->units[u].count; i++)
            used[c->units[u].tensors[i].source - weir__source_tensor_at(c->source, 0)] = true;
    while (first < n && (used[first] || harmless(c, weir__source_tensor_at(c->source, first))))
        first++;
    weir__free(c->system, used);
    if (first == n)
        return WEIR_OK;
    weir__string name = weir__source_tensor_at(c->source, first)->name;
    return weir_fail(error, WEIR_EUNSUPPORTED, "%s: tensor \"%.*s\" is not used by architecture \"%s\"", path, (int)name.size, name.data,
                     c->family->name);
}

static int plan_units(weir__checkpoint *c, weir_error **error) {
    c->group = (weir__group){"decoder", 0, (uint32_t)c->config.layers};
    c->graph = (weir__graph){.n_groups = 1, .output = 0, .groups = &c->group, .units = c->group.units};
    c->units = weir__alloc(c->system, sizeof *c->units * (c->graph.units + 1));
    if (!c->units)
        return weir_fail(error, WEIR_ENOMEM, "%s: no memory for the plan of %u units", weir__source_path(c->source), c->graph.units);
    for (uint32_t u = 0; u <= c->graph.units; u++) {
        int code = weir__decoder_plan(c, u, &c->units[u], error);
        if (code)
            return code;
    }
    return check_all_used(c, error);
}

static void warn(weir__checkpoint *c, const char *text) {
    size_t used = strlen(c->warning);
    snprintf(c->warning + used, sizeof c->warning - used, "%s%s", used ? "; " : "", text);
}

/* config.json says that the head is a matrix of its own, and there is none; or that it is not, and there is one; a token that ends a text is none of the
 * vocabulary; a tokeniser has pieces (added for padding, say) that the model has no rows for: using one is ETOKEN. */
static void look_for_oddities(weir__checkpoint *c) {
    char text[160];
    int64_t id;
    weir__value v = {0};
    if (c->tokenizer && weir__tokenizer_size(c->tokenizer) > (size_t)c->config.vocab) {
        snprintf(text, sizeof text, "the tokeniser has %zu pieces, the model knows the first %d of them",
                 weir__tokenizer_size(c->tokenizer), c->config.vocab);
        warn(c, text);
    }
    if (weir__config_end_outside(c->source, &c->config, &id)) {
        snprintf(text, sizeof text, "eos_token_id %lld of config.json is outside of the vocabulary of %d", (long long)id, c->config.vocab);
        warn(c, text);
    }
    if (c->config.own_head)
        warn(c, WEIR__OWN_HEAD);
    if (weir__source_format(c->source) == WEIR__FORMAT_SAFETENSORS)
        weir__source_get(c->source, "tie_word_embeddings", &v);
    if (c->config.tied && v.kind == WEIR__BOOLEAN && !v.integer)
        warn(c, "tie_word_embeddings is false, but there is no tensor \"lm_head.weight\": the embedding table is the head");
}

/* A file whose tokeniser is unknown still runs on token ids. */
static int make_tokenizer(weir__checkpoint *c, weir_error **error) {
    weir_error *why = NULL;
    weir__making making = {c->system, &c->tokenizer, ""};
    int code = weir__source_vocab(c->source, weir__make_tokenizer, &making, &why);
    if (*making.warning)
        warn(c, making.warning);
    if (code == WEIR_EUNSUPPORTED) {
        c->no_tokenizer = why;
        return WEIR_OK;
    }
    if (code && error)
        *error = why;
    else
        weir_error_free(why);
    return code;
}

static int check_quant(const weir__checkpoint *c, weir_error **error) {
    if (c->quant < 0 || (weir_type_writes(c->quant) && weir_type_get(c->quant)))
        return WEIR_OK;
    return weir_fail(error, WEIR_EINVAL, "%s: weights cannot be quantised to type %d", weir__source_path(c->source), c->quant);
}

static int fill(weir__checkpoint *c, const char *path, weir_error **error) {
    int code = weir__source_open(c->system, path, &c->source, error);
    if (!code)
        code = check_quant(c, error);
    if (!code)
        code = weir__family_of(c->source, &c->family, error);
    if (!code)
        code = weir__config_read(c->source, c->family, &c->config, error);
    if (!code)
        code = plan_units(c, error);
    if (!code)
        code = make_tokenizer(c, error);
    if (!code)
        look_for_oddities(c);
    return code;
}

int weir__checkpoint_open(weir_system *s, const char *path, int quant, weir__checkpoint **out, weir_error **error) {
    weir__checkpoint *c = weir__alloc(s, sizeof *c);
    if (!c)
        return weir_fail(error, WEIR_ENOMEM, "%s: no memory", path);
    c->refs = 1;
    c->system = s;
    c->quant = quant;
    int code = fill(c, path, error);
    if (code)
        weir__checkpoint_unref(c);
    else
        *out = c;
    return code;
}

weir_system *weir__checkpoint_system(const weir__checkpoint *c) {
    return c->system;
}
const weir__source *weir__checkpoint_source(const weir__checkpoint *c) {
    return c->source;
}
int weir__checkpoint_quant(const weir__checkpoint *c) {
    return c->quant;
}
const char *weir__checkpoint_warning(const weir__checkpoint *c) {
    return *c->warning ? c->warning : NULL;
}
const weir__config *weir__checkpoint_config(const weir__checkpoint *c) {
    return &c->config;
}
const weir__family *weir__checkpoint_family(const weir__checkpoint *c) {
    return c->family;
}
const weir__graph *weir__checkpoint_graph(const weir__checkpoint *c) {
    return &c->graph;
}
const weir__unit_plan *weir__checkpoint_unit(const weir__checkpoint *c, uint32_t ordinal) {
    return &c->units[ordinal];
}

uint64_t weir__checkpoint_bytes(const weir__checkpoint *c) {
    uint64_t bytes = 0;
    for (uint32_t u = 0; u <= c->graph.units; u++)
        bytes += c->units[u].blob_bytes;
    return bytes;
}

uint64_t weir__checkpoint_parameters(const weir__checkpoint *c) {
    uint64_t n = 0;
    for (uint32_t u = 0; u <= c->graph.units; u++)
        for (uint32_t i = 0; i < c->units[u].count; i++)
            n += (uint64_t)c->units[u].tensors[i].n * (uint64_t)c->units[u].tensors[i].k;
    return n;
}

const weir__tokenizer *weir__checkpoint_tokenizer(const weir__checkpoint *c, const weir_error **why) {
    if (why)
        *why = c->no_tokenizer;
    return c->tokenizer;
}
