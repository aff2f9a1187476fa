/* llama.c: the family llama: pre-norm decoder with RMSNorm, rotary positions, grouped-query attention and a SiLU-gated MLP (Touvron et al. 2023). Tensor
 * names and keys as in GGUF. */
#include "forward.h"

#include <stdio.h>
#include <string.h>

enum { ATTN_NORM, Q, K, V, O, FFN_NORM, GATE, UP, DOWN };
/* Static modules; HEAD is absent when the embedding table is the head. */
enum { EMBEDDING, OUTPUT_NORM, HEAD };

static int get(const weir__gguf *g, const char *key, bool required, int64_t max, int32_t *v, weir_error **error) {
    int64_t wide = *v;
    int code = weir__gguf_get_int(g, key, required, 1, max, &wide, error);
    *v = (int32_t)wide;
    return code;
}

static int get_sizes(const weir__gguf *g, weir__config *c, weir_error **error) {
    int code = get(g, "llama.block_count", true, WEIR_MAX_LAYERS, &c->layers, error);
    if (!code)
        code = get(g, "llama.embedding_length", true, WEIR_MAX_WIDTH, &c->width, error);
    if (!code)
        code = get(g, "llama.feed_forward_length", true, WEIR_MAX_WIDTH, &c->ffn, error);
    if (!code)
        code = get(g, "llama.attention.head_count", true, WEIR_MAX_WIDTH, &c->heads, error);
    c->kv_heads = c->heads;
    if (!code)
        code = get(g, "llama.attention.head_count_kv", false, WEIR_MAX_WIDTH, &c->kv_heads, error);
    if (!code)
        code = get(g, "llama.context_length", true, INT32_MAX, &c->context, error);
    return code;
}

static int get_head(const weir__gguf *g, weir__config *c, weir_error **error) {
    const char *path = weir__gguf_path(g);
    if (c->heads % c->kv_heads)
        return weir_fail(error, WEIR_EFORMAT, "%s: llama.attention.head_count is %d, wanted a multiple of head_count_kv, %d", path,
                         c->heads, c->kv_heads);
    int32_t value_dim;
    c->head_dim = c->width / c->heads;
    if (c->head_dim < 1 && !weir__gguf_find(g, "llama.attention.key_length"))
        return weir_fail(error, WEIR_EFORMAT, "%s: llama.attention.head_count is %d, more than llama.embedding_length, %d", path, c->heads,
                         c->width);
    int code = get(g, "llama.attention.key_length", false, 1024, &c->head_dim, error);
    value_dim = c->head_dim;
    if (!code)
        code = get(g, "llama.attention.value_length", false, 1024, &value_dim, error);
    c->rope_dim = c->head_dim;
    if (!code)
        code = get(g, "llama.rope.dimension_count", false, 1024, &c->rope_dim, error);
    if (code)
        return code;
    if (value_dim != c->head_dim)
        return weir_fail(error, WEIR_EUNSUPPORTED, "%s: llama.attention.value_length is %d, wanted key_length, %d", path, value_dim,
                         c->head_dim);
    if (c->rope_dim > c->head_dim || c->rope_dim % 2)
        return weir_fail(error, WEIR_EFORMAT, "%s: llama.rope.dimension_count is %d, wanted an even number up to %d", path, c->rope_dim,
                         c->head_dim);
    if ((int64_t)c->heads * c->head_dim > WEIR_MAX_WIDTH)
        return weir_fail(error, WEIR_EFORMAT, "%s: %d heads of %d are wider than %d", path, c->heads, c->head_dim, WEIR_MAX_WIDTH);
    return WEIR_OK;
}

static int refuse_number(const weir__gguf *g, const char *key, weir_error **error) {
    int64_t whole;
    double real;
    char found[32] = "set";
    if (!weir__gguf_get_int(g, key, true, INT64_MIN, INT64_MAX, &whole, NULL))
        snprintf(found, sizeof found, "%lld", (long long)whole);
    else if (!weir__gguf_get_float(g, key, true, &real, NULL))
        snprintf(found, sizeof found, "%g", real);
    return weir_fail(error, WEIR_EUNSUPPORTED, "%s: %s is %s, which is not supported: wanted no such key", weir__gguf_path(g), key, found);
}

/* A setting that changes the result and is not run is refused by its name and value. */
static int refuse_unknown(const weir__gguf *g, weir_error **error) {
    static const char *const keys[] = {"llama.expert_count", "llama.rope.scaling.type", "llama.rope.scaling.factor",
                                       "llama.attention.sliding_window", "llama.rope.scale_linear"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const weir__gguf_key *k = weir__gguf_find(g, keys[i]);
        int64_t n = 0;
        weir__string s;
        if (!k || (k->type == WEIR__GGUF_U32 && !weir__gguf_get_int(g, keys[i], true, 0, 0, &n, NULL)))
            continue;
        if (k->type == WEIR__GGUF_STRING && !weir__gguf_get_string(g, keys[i], true, &s, NULL)) {
            if (s.size == 4 && memcmp(s.data, "none", 4) == 0)
                continue;
            return weir_fail(error, WEIR_EUNSUPPORTED, "%s: %s is \"%.*s\", which is not supported: wanted \"none\" or no such key",
                             weir__gguf_path(g), keys[i], (int)(s.size < 64 ? s.size : 64), s.data);
        }
        return refuse_number(g, keys[i], error);
    }
    if (weir__gguf_find_tensor(g, "rope_freqs.weight"))
        return weir_fail(error, WEIR_EUNSUPPORTED, "%s: tensor \"rope_freqs.weight\" (scaled rotary frequencies) is not supported",
                         weir__gguf_path(g));
    return WEIR_OK;
}

static int get_vocab(const weir__gguf *g, weir__config *c, weir_error **error) {
    const weir__tensor *embedding = weir__gguf_find_tensor(g, "token_embd.weight");
    if (!embedding)
        return weir_fail(error, WEIR_EFORMAT, "%s: tensor \"token_embd.weight\" is missing", weir__gguf_path(g));
    if (embedding->dims[1] > WEIR_MAX_VOCAB)
        return weir_fail(error, WEIR_EFORMAT, "%s: tensor \"token_embd.weight\" has %lld rows, at most %d are supported",
                         weir__gguf_path(g), (long long)embedding->dims[1], WEIR_MAX_VOCAB);
    c->vocab = (int32_t)embedding->dims[1];
    int64_t said = c->vocab;
    int code = weir__gguf_get_int(g, "llama.vocab_size", false, 1, WEIR_MAX_VOCAB, &said, error);
    if (!code && said != c->vocab)
        code = weir_fail(error, WEIR_EFORMAT, "%s: llama.vocab_size is %lld, tensor \"token_embd.weight\" has %d rows", weir__gguf_path(g),
                         (long long)said, c->vocab);
    c->tied = !weir__gguf_find_tensor(g, "output.weight");
    return code;
}

static int configure(const weir__gguf *g, weir__config *c, weir_error **error) {
    double eps = 0, base = 10000;
    int code = get_sizes(g, c, error);
    if (!code)
        code = get_head(g, c, error);
    if (!code)
        code = get_vocab(g, c, error);
    if (!code)
        code = weir__gguf_get_float(g, "llama.attention.layer_norm_rms_epsilon", true, &eps, error);
    if (!code)
        code = weir__gguf_get_float(g, "llama.rope.freq_base", false, &base, error);
    if (!code)
        code = refuse_unknown(g, error);
    if (code)
        return code;
    if (!(eps >= 0 && eps < 1))
        return weir_fail(error, WEIR_EFORMAT, "%s: llama.attention.layer_norm_rms_epsilon is %g, wanted 0 to 1", weir__gguf_path(g), eps);
    if (!(base > 0 && base < 1e12))
        return weir_fail(error, WEIR_EFORMAT, "%s: llama.rope.freq_base is %g, wanted a positive number", weir__gguf_path(g), base);
    c->norm_eps = (float)eps;
    c->rope_base = base;
    return WEIR_OK;
}

static int plan_static(const weir__checkpoint *c, weir__unit_plan *p, weir_error **error) {
    const weir__config *o = weir__checkpoint_config(c);
    strcpy(p->path, "static");
    int code = weir__plan_add(c, p, "token_embd.weight", o->vocab, o->width, 0, error);
    if (!code)
        code = weir__plan_add(c, p, "output_norm.weight", 0, o->width, 0, error);
    if (!code && !o->tied)
        code = weir__plan_add(c, p, "output.weight", o->vocab, o->width, 0, error);
    return code;
}

static int plan(const weir__checkpoint *c, uint32_t ordinal, weir__unit_plan *p, weir_error **error) {
    const weir__config *o = weir__checkpoint_config(c);
    if (ordinal == (uint32_t)o->layers)
        return plan_static(c, p, error);
    const int64_t H = o->width, q = (int64_t)o->heads * o->head_dim, kv = (int64_t)o->kv_heads * o->head_dim;
    const struct {
        const char *name;
        int64_t n, k;
        int rope_heads;
    } tensors[] = {{"attn_norm", 0, H, 0},     {"attn_q", q, H, o->heads}, {"attn_k", kv, H, o->kv_heads},
                   {"attn_v", kv, H, 0},       {"attn_output", H, q, 0},   {"ffn_norm", 0, H, 0},
                   {"ffn_gate", o->ffn, H, 0}, {"ffn_up", o->ffn, H, 0},   {"ffn_down", H, o->ffn, 0}};
    snprintf(p->path, sizeof p->path, "layers.%u", ordinal);
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
        char name[64];
        snprintf(name, sizeof name, "blk.%u.%s.weight", ordinal, tensors[i].name);
        int code = weir__plan_add(c, p, name, tensors[i].n, tensors[i].k, tensors[i].rope_heads, error);
        if (code)
            return code;
    }
    return WEIR_OK;
}

static int attention(const weir__forward *f, uint32_t u, weir__list *l, weir_error **error) {
    const weir__config *c = weir__checkpoint_config(f->checkpoint);
    const weir__unit_plan *p = weir__checkpoint_unit(f->checkpoint, u);
    const weir__workspace *w = &f->w;
    void *const *slot = weir__forward_slot(f, u);
    weir_weight output = weir__plan_weight(p, O, slot);
    int code = weir__record_norm(f, l, slot, p, ATTN_NORM, WEIR_ROWS_PASS, error);
    const struct {
        uint32_t tensor;
        int32_t offset;
    } in[] = {{Q, 0}, {K, f->q_width}, {V, f->q_width + f->k_width}};
    for (int i = 0; i < 3 && !code; i++) {
        weir_weight weight = weir__plan_weight(p, in[i].tensor, slot);
        weir_k_matmul product = {f->step,
                                 weight,
                                 w->normed,
                                 weir__record_normed_acts(f, weight.type),
                                 c->width,
                                 WEIR_ROWS_TILE,
                                 w->qkv + in[i].offset,
                                 f->qkv_width,
                                 WEIR_ROWS_TILE,
                                 0,
                                 0,
                                 0};
        code = weir__list_add(l, WEIR_K_matmul, &product, i == 2, error);
    }
    weir_k_rope_store rope = {.step = f->step,
                              .qkv = w->qkv,
                              .ld = f->qkv_width,
                              .k_offset = f->q_width,
                              .v_offset = f->q_width + f->k_width,
                              .heads = c->heads,
                              .rope_dim = c->rope_dim,
                              .positions = (int32_t)f->options.context,
                              .table = w->rope,
                              .kv = f->kv[u]};
    if (!code)
        code = weir__list_add(l, WEIR_K_rope_store, &rope, true, error);
    if (!code)
        code = weir__record_attention(f, u, output.type, l, error);
    weir_k_matmul out = {f->step,
                         output,
                         w->attention,
                         weir__record_acts(f, output.type) ? w->attention_acts : NULL,
                         f->q_width,
                         WEIR_ROWS_TILE,
                         w->x,
                         c->width,
                         WEIR_ROWS_PASS,
                         1,
                         0,
                         0};
    return code ? code : weir__list_add(l, WEIR_K_matmul, &out, true, error);
}

static int mlp(const weir__forward *f, uint32_t u, weir__list *l, weir_error **error) {
    const weir__config *c = weir__checkpoint_config(f->checkpoint);
    const weir__unit_plan *p = weir__checkpoint_unit(f->checkpoint, u);
    const weir__workspace *w = &f->w;
    void *const *slot = weir__forward_slot(f, u);
    int code = weir__record_norm(f, l, slot, p, FFN_NORM, WEIR_ROWS_PASS, error);
    weir_weight last = weir__plan_weight(p, DOWN, slot);
    int32_t block = weir__record_acts(f, last.type);
    weir_k_glu glu = {.step = f->step,
                      .gate = weir__plan_weight(p, GATE, slot),
                      .up = weir__plan_weight(p, UP, slot),
                      .x = w->normed,
                      .acts = w->normed_acts,
                      .acts_k = w->normed_acts_k,
                      .ldx = c->width,
                      .ldy = c->ffn,
                      .y = block == 32 ? NULL : w->hidden,
                      .acts_out = block ? w->hidden_acts : NULL,
                      .acts_block = block};
    if (!code)
        code = weir__list_add(l, WEIR_K_glu, &glu, true, error);
    weir_k_matmul down = {f->step, last, w->hidden, block ? w->hidden_acts : NULL, c->ffn, WEIR_ROWS_TILE, w->x, c->width, WEIR_ROWS_PASS,
                          1,       0,    0};
    return code ? code : weir__list_add(l, WEIR_K_matmul, &down, true, error);
}

static int record(const weir__forward *f, uint32_t ordinal, weir__list *l, weir_error **error) {
    int code = attention(f, ordinal, l, error);
    return code ? code : mlp(f, ordinal, l, error);
}

const weir__arch weir__arch_llama = {"llama", configure, plan, record};
