/* make.c: random models as GGUF (make.h): settings from the family's tables, tensors from its rows, weights from a counter. */
#include "make.h"

#include "gguf.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PIECE = 1 << 16, BYTES = 256 }; /* weights made at a time; pieces of single bytes */

typedef struct maker {
    const weir__make_options *o;
    const char *path;
    const weir__family *family;
    weir__config config;
    weir__gguf_writer *writer;
    uint64_t counter, done, total;
    float *values;   /* [PIECE] */
    uint8_t *blocks; /* bytes of PIECE weights */
} maker;

/* ---- settings ---- */

static void put_setting(void *data, const char *key, const weir__value *v) {
    const maker *m = data;
    if (v->kind == WEIR__INTEGER)
        weir__gguf_put_u32(m->writer, key, (uint32_t)v->integer);
    else if (v->kind == WEIR__REAL)
        weir__gguf_put_f32(m->writer, key, (float)v->real);
    else if (v->kind == WEIR__TEXT)
        weir__gguf_put_string(m->writer, key, v->text.data);
}

/* GPT-2's alphabet: bytes that print stand for themselves, the others for characters from U+0100 on. */
static size_t letter(int byte, char *to) {
    bool prints = (byte > 32 && byte < 127) || (byte > 160 && byte != 173);
    int code = byte;
    for (int b = 0, n = 0; b <= byte && !prints; b++)
        if (!((b > 32 && b < 127) || (b > 160 && b != 173)))
            code = 256 + n++;
    if (code < 128) {
        to[0] = (char)code;
        return 1;
    }
    to[0] = (char)(0xc0 | code >> 6);
    to[1] = (char)(0x80 | (code & 63));
    return 2;
}

/* A piece of each byte, one that ends a text, one merge (a vocabulary without any is refused elsewhere), the rest unused. */
static int put_tokenizer(const maker *m, weir_system *s, weir_error **error) {
    enum { MERGED = BYTES, END, UNUSED, NAME = 24 };
    size_t n = (size_t)m->config.vocab;
    if (n < UNUSED)
        return WEIR_OK;
    weir__string *pieces = weir__alloc(s, n * sizeof *pieces);
    char *text = weir__alloc(s, n * NAME);
    int32_t *kinds = weir__alloc(s, n * sizeof *kinds);
    int code = pieces && text && kinds ? WEIR_OK : weir_fail(error, WEIR_ENOMEM, "no memory for %zu pieces", n);
    for (size_t i = 0; i < n && !code; i++) {
        char *to = text + i * NAME;
        size_t size = i < BYTES ? letter((int)i, to)
                                : (size_t)snprintf(to, NAME,
                                                   i == MERGED ? "\xc4\xa0t"
                                                   : i == END  ? "<|endoftext|>"
                                                               : "<unused%zu>",
                                                   i);
        pieces[i] = (weir__string){to, size};
        kinds[i] = i <= MERGED ? WEIR__NORMAL : i == END ? WEIR__CONTROL : WEIR__UNUSED;
    }
    if (!code) {
        weir__gguf_put_string(m->writer, "tokenizer.ggml.model", "gpt2");
        weir__gguf_put_string(m->writer, "tokenizer.ggml.pre", "gpt-2");
        weir__gguf_put_strings(m->writer, "tokenizer.ggml.tokens", pieces, n);
        weir__gguf_put_i32s(m->writer, "tokenizer.ggml.token_type", kinds, n);
        weir__gguf_put_strings(m->writer, "tokenizer.ggml.merges", &(weir__string){"\xc4\xa0 t", 4}, 1);
        weir__gguf_put_u32(m->writer, "tokenizer.ggml.eos_token_id", END);
        weir__gguf_put_bool(m->writer, "tokenizer.ggml.add_bos_token", false);
    }
    weir__free(s, pieces);
    weir__free(s, text);
    weir__free(s, kinds);
    return code;
}

/* ---- weights ---- */

/* splitmix64 (Steele, Lea & Flood 2014). */
static uint64_t next(maker *m) {
    uint64_t x = m->counter += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* About normal: the sum of four uniform numbers. */
static float normal(maker *m) {
    uint64_t x = next(m);
    int sum = (int)(x & 65535) + (int)(x >> 16 & 65535) + (int)(x >> 32 & 65535) + (int)(x >> 48);
    return (float)(sum - 131070) * (1.7320508f / 65536);
}

/* Where a block's scales are, and by what they are smaller than the weights' size; -1: there is none. Codes and scales of sub-blocks are random bytes. */
static const struct {
    int type, d, dmin;
    float d_part, dmin_part;
} scales[] = {{WEIR_Q2_K, 80, 82, 9, 6},     {WEIR_Q3_K, 108, -1, 42, 0}, {WEIR_Q4_K, 0, 2, 150, 20},   {WEIR_Q5_K, 0, 2, 300, 19},
              {WEIR_Q6_K, 208, -1, 1300, 0}, {WEIR_IQ4_NL, 0, -1, 70, 0}, {WEIR_IQ4_XS, 0, -1, 1300, 0}};
enum { SCALES = sizeof scales / sizeof *scales };

static void random_blocks(maker *m, int type, float size, int64_t n, uint8_t *to) {
    const weir_type_info *info = weir_type_any(type);
    size_t bytes = (size_t)(n / info->block) * info->bytes, s = 0;
    for (size_t i = 0; i < bytes; i += 8) {
        uint64_t x = next(m);
        memcpy(to + i, &x, bytes - i < 8 ? bytes - i : 8);
    }
    while (s < SCALES && scales[s].type != type)
        s++;
    for (size_t at = 0; at < bytes; at += info->bytes) {
        if (s == SCALES) { /* mxfp4: a power of two */
            to[at] = (uint8_t)(126 + (int)floorf(log2f(size)));
            continue;
        }
        float d = size / scales[s].d_part, dmin = size / (scales[s].dmin_part + 1e-9f);
        weir_quantise(WEIR_F16, &d, 1, to + at + scales[s].d);
        if (scales[s].dmin >= 0)
            weir_quantise(WEIR_F16, &dmin, 1, to + at + scales[s].dmin);
    }
}

static int put_weights(maker *m, int type, int64_t n, int64_t k, bool vector, weir_error **error) {
    const weir_type_info *info = weir_type_any(type);
    float size = 1 / sqrtf((float)k);
    int64_t all = (vector ? 1 : n) * k;
    for (int64_t left = all; left > 0;) {
        int64_t now = left < PIECE ? left : PIECE;
        for (int64_t i = 0; i < now && weir_type_writes(type); i++)
            m->values[i] = vector ? 1 + 0.1f * normal(m) : size * normal(m);
        if (weir_type_writes(type))
            weir_quantise(type, m->values, now, m->blocks);
        else
            random_blocks(m, type, size, now, m->blocks);
        size_t bytes = (size_t)(now / info->block) * info->bytes;
        int code = weir__gguf_put_data(m->writer, m->blocks, bytes, error);
        if (code)
            return code;
        m->done += bytes;
        left -= now;
        if (m->o->progress && !m->o->progress(m->o->data, m->done, m->total))
            return weir_fail(error, WEIR_ECANCELLED, "%s: given up", m->path);
    }
    return WEIR_OK;
}

/* ---- tensors ---- */

static int announce(void *data, const weir__tensor_row *row, int32_t layer, int64_t n, int64_t k, weir_error **error) {
    maker *m = data;
    int type = n ? m->o->type : WEIR_F32;
    const weir_type_info *info = weir_type_any(type);
    int64_t dims[2] = {k, n};
    char name[96];
    snprintf(name, sizeof name, row->gguf, layer);
    if (k % info->block)
        return weir_fail(error, WEIR_EINVAL, "%s: rows of %lld (\"%s\") are no multiple of %u, the block of %s", m->path, (long long)k,
                         name, info->block, info->name);
    weir__gguf_put_tensor(m->writer, name, type, n ? 2 : 1, dims);
    m->total += (uint64_t)(n ? n : 1) * (uint64_t)(k / info->block) * info->bytes;
    return WEIR_OK;
}

static int write_one(void *data, const weir__tensor_row *row, int32_t layer, int64_t n, int64_t k, weir_error **error) {
    maker *m = data;
    (void)row, (void)layer;
    return put_weights(m, n ? m->o->type : WEIR_F32, n, k, n == 0, error);
}

/* ---- the whole ---- */

static int configure(maker *m, weir_error **error) {
    const weir__make_options *o = m->o;
    weir__config *c = &m->config;
    const struct {
        const char *name;
        int32_t value, most;
    } sizes[] = {{"layers", o->layers, WEIR_MAX_LAYERS}, {"hidden", o->width, WEIR_MAX_WIDTH}, {"heads", o->heads, WEIR_MAX_WIDTH},
                 {"ffn", o->ffn, WEIR_MAX_WIDTH},        {"vocab", o->vocab, WEIR_MAX_VOCAB},  {"context", o->context, INT32_MAX}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].value < 1 || sizes[i].value > sizes[i].most)
            return weir_fail(error, WEIR_EINVAL, "%s is %d, wanted 1 to %d", sizes[i].name, sizes[i].value, sizes[i].most);
    *c = (weir__config){.rope_config = {.base = 10000, .partial = 1, .truncate = true}, .norm_eps = 1e-5, .tied = o->tied};
    m->family->defaults(c, WEIR__FORMAT_GGUF);
    c->tied = o->tied;
    c->layers = o->layers;
    c->width = o->width;
    c->heads = o->heads;
    c->kv_heads = o->kv_heads ? o->kv_heads : o->heads;
    c->head_dim = c->value_dim = o->head_dim ? o->head_dim : o->width / o->heads;
    c->rope_config.dim = c->head_dim;
    c->ffn = o->ffn;
    c->vocab = o->vocab;
    c->context = o->context;
    c->qkv_bias = strcmp(m->family->name, "qwen2") == 0;
    c->query_scalar = c->head_dim;
    if (c->kv_heads < 1 || c->heads % c->kv_heads)
        return weir_fail(error, WEIR_EINVAL, "heads are %d, wanted a multiple of kv-heads, %d", c->heads, c->kv_heads);
    if (c->head_dim < 2 || c->head_dim % 2)
        return weir_fail(error, WEIR_EINVAL, "heads of %d dimensions, wanted an even number from 2 on", c->head_dim);
    return WEIR_OK;
}

static int choose(maker *m, weir_error **error) {
    const weir__family *f;
    char known[512];
    for (size_t i = 0; (f = weir__family_at(i)); i++)
        if (strcmp(f->name, m->o->family) == 0)
            m->family = f;
    weir__family_names(known, sizeof known);
    if (!m->family)
        return weir_fail(error, WEIR_EUNSUPPORTED, "no family \"%s\" (there are %s)", m->o->family, known);
    if (!weir_type_get(m->o->type))
        return weir_fail(error, WEIR_EUNSUPPORTED, "weights of type %d are not supported", m->o->type);
    return configure(m, error);
}

static int fill(maker *m, weir_system *s, const char *path, weir_error **error) {
    weir__gguf_put_string(m->writer, "general.architecture", m->family->gguf ? m->family->gguf : m->family->name);
    weir__gguf_put_string(m->writer, "general.name", "random");
    weir__config_emit(m->family, &m->config, WEIR__FORMAT_GGUF, put_setting, m);
    m->values = weir__alloc(s, PIECE * sizeof *m->values);
    m->blocks = weir__alloc(s, PIECE * sizeof(float));
    int code = m->values && m->blocks ? WEIR_OK : weir_fail(error, WEIR_ENOMEM, "%s: no memory", path);
    if (!code)
        code = put_tokenizer(m, s, error);
    if (!code)
        code = weir__family_each(m->family, &m->config, announce, m, error);
    return code ? code : weir__family_each(m->family, &m->config, write_one, m, error);
}

int weir__make(weir_system *s, const weir__make_options *o, const char *path, weir_error **error) {
    maker m = {.o = o, .path = path, .counter = o->seed};
    int code = choose(&m, error);
    if (!code)
        code = weir__gguf_create(s, path, &m.writer, error);
    if (code)
        return code;
    code = fill(&m, s, path, error);
    weir__free(s, m.values);
    weir__free(s, m.blocks);
    if (!code)
        return weir__gguf_finish(m.writer, error);
    weir__gguf_abort(m.writer);
    return code;
}
