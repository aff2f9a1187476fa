/* checkpoint.c: an opened file with its config, graph, plan and tokeniser (model.h). */
#include "model.h"

#include <stdatomic.h>

struct weir__checkpoint {
    atomic_uint refs;
    weir_system *system;
    weir__gguf *gguf;
    const weir__arch *arch;
    weir__config config;
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
    weir__gguf_free(c->gguf);
    weir__free(c->system, c->units);
    weir__free(c->system, c);
}

static int find_arch(weir__checkpoint *c, weir_error **error) {
    weir__string name;
    int code = weir__gguf_get_string(c->gguf, "general.architecture", true, &name, error);
    if (code)
        return code;
    c->arch = weir__arch_find(name);
    if (!c->arch)
        return weir_fail(error, WEIR_EUNSUPPORTED, "%s: architecture \"%.*s\" is not supported (supported: %s)", weir__gguf_path(c->gguf),
                         (int)(name.size < 64 ? name.size : 64), name.data, weir__arch_names());
    return WEIR_OK;
}

/* A tensor that no unit uses (a bias, a norm of another family) would change the result: such a file is refused. */
static int check_all_used(const weir__checkpoint *c, weir_error **error) {
    size_t n = weir__gguf_tensor_count(c->gguf), first = 0;
    bool *used = weir__alloc(c->system, n * sizeof *used);
    if (!used)
        return weir_fail(error, WEIR_ENOMEM, "%s: no memory for %zu tensors", weir__gguf_path(c->gguf), n);
    for (uint32_t u = 0; u <= c->graph.units; u++)
        for (uint32_t i = 0; i < c->units[u].count; i++)
            used[c->units[u].tensors[i].source - weir__gguf_tensor_at(c->gguf, 0)] = true;
    while (first < n && used[first])
        first++;
    weir__free(c->system, used);
    if (first == n)
        return WEIR_OK;
    weir__string name = weir__gguf_tensor_at(c->gguf, first)->name;
    return weir_fail(error, WEIR_EUNSUPPORTED, "%s: tensor \"%.*s\" is not used by architecture \"%s\"", weir__gguf_path(c->gguf),
                     (int)name.size, name.data, c->arch->name);
}

static int plan_units(weir__checkpoint *c, weir_error **error) {
    c->group = (weir__group){"decoder", 0, (uint32_t)c->config.layers};
    c->graph = (weir__graph){.n_groups = 1, .output = 0, .groups = &c->group, .units = c->group.units};
    c->units = weir__alloc(c->system, sizeof *c->units * (c->graph.units + 1));
    if (!c->units)
        return weir_fail(error, WEIR_ENOMEM, "%s: no memory for the plan of %u units", weir__gguf_path(c->gguf), c->graph.units);
    for (uint32_t u = 0; u <= c->graph.units; u++) {
        int code = c->arch->plan(c, u, &c->units[u], error);
        if (code)
            return code;
    }
    return check_all_used(c, error);
}

/* A file whose tokeniser is unknown still runs on token ids. */
static int make_tokenizer(weir__checkpoint *c, weir_error **error) {
    weir_error *why = NULL;
    int code = weir__gguf_tokenizer(c->gguf, &c->tokenizer, &why);
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

int weir__checkpoint_open(weir_system *s, const char *path, weir__checkpoint **out, weir_error **error) {
    weir__checkpoint *c = weir__alloc(s, sizeof *c);
    if (!c)
        return weir_fail(error, WEIR_ENOMEM, "%s: no memory", path);
    c->refs = 1;
    c->system = s;
    int code = weir__gguf_open(s, path, &c->gguf, error);
    if (!code)
        code = find_arch(c, error);
    if (!code)
        code = c->arch->configure(c->gguf, &c->config, error);
    if (!code)
        code = plan_units(c, error);
    if (!code)
        code = make_tokenizer(c, error);
    if (!code && c->tokenizer && weir__tokenizer_size(c->tokenizer) > (size_t)c->config.vocab)
        code = weir_fail(error, WEIR_EFORMAT, "%s: the tokeniser has %zu pieces, the model %d", path, weir__tokenizer_size(c->tokenizer),
                         c->config.vocab);
    if (code)
        weir__checkpoint_unref(c);
    else
        *out = c;
    return code;
}

weir_system *weir__checkpoint_system(const weir__checkpoint *c) {
    return c->system;
}
const weir__gguf *weir__checkpoint_gguf(const weir__checkpoint *c) {
    return c->gguf;
}
const weir__config *weir__checkpoint_config(const weir__checkpoint *c) {
    return &c->config;
}
const weir__arch *weir__checkpoint_arch(const weir__checkpoint *c) {
    return c->arch;
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
