/* llama2c.c: reads llama2.c's checkpoints and vocabularies and writes them as GGUF. Knows the two formats; runs nothing.
 *
 * Checkpoint ("version 0"): int32 dim, hidden_dim, n_layers, n_heads, n_kv_heads, vocab_size (negative: the head is not tied), seq_len; then float32 weights
 * in the order of table `weights` below. Vocabulary: int32 longest piece, then per piece float32 score, int32 length, bytes. Rotary pairs are adjacent, as
 * in GGUF's llama, so q and k go over as they are. */
#include "llama2c.h"

#include "file.h"
#include "llama2c_internal.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

enum { HEADER = 28, CHUNK = 1 << 20, FLOAT = 4 }; /* bytes */
#define ROPE_BASE 10000.0f
#define NORM_EPSILON 1e-5f

/* Sides of a weight. */
enum side { ONE, DIM, KV_DIM, HIDDEN, VOCAB, ROTARY };

static const struct {
    const char *name;        /* GGUF's; NULL: not written. With %d: one a layer */
    enum side rows, columns; /* rows ONE: a vector */
} weights[] = {
    {"token_embd.weight", VOCAB, DIM},       {"blk.%d.attn_norm.weight", ONE, DIM},
    {"blk.%d.attn_q.weight", DIM, DIM},      {"blk.%d.attn_k.weight", KV_DIM, DIM},
    {"blk.%d.attn_v.weight", KV_DIM, DIM},   {"blk.%d.attn_output.weight", DIM, DIM},
    {"blk.%d.ffn_norm.weight", ONE, DIM},    {"blk.%d.ffn_gate.weight", HIDDEN, DIM},
    {"blk.%d.ffn_down.weight", DIM, HIDDEN}, {"blk.%d.ffn_up.weight", HIDDEN, DIM},
    {"output_norm.weight", ONE, DIM},        {NULL, ONE, ROTARY}, /* cosines and sines, computed anew by whoever runs the model */
    {"output.weight", VOCAB, DIM},                                /* not there if the head is tied */
};
enum { WEIGHTS = sizeof weights / sizeof weights[0], HEAD = WEIGHTS - 1 };

static int64_t side(const weir__llama2c *m, enum side s) {
    switch (s) {
    case DIM:
        return m->dim;
    case KV_DIM:
        return m->dim / m->heads * m->kv_heads;
    case HIDDEN:
        return m->hidden;
    case VOCAB:
        return m->vocab;
    case ROTARY:
        return m->dim / m->heads * m->context;
    default:
        return 1;
    }
}

static bool by_layer(size_t w) {
    return weights[w].name && strstr(weights[w].name, "%d");
}
static size_t weight_count(const weir__llama2c *m) {
    return m->tied ? HEAD : WEIGHTS;
}
static int64_t weight_layers(const weir__llama2c *m, size_t w) {
    return by_layer(w) ? m->layers : 1;
}
/* Bytes of one layer's weight; sides are below 2^23 (limits.h), products of two and the layers below 2^60. */
static int64_t weight_bytes(const weir__llama2c *m, size_t w) {
    return side(m, weights[w].rows) * side(m, weights[w].columns) * FLOAT;
}

static int check_field(const char *name, const char *field, int64_t found, int64_t min, int64_t max, weir_error **error) {
    if (found >= min && found <= max)
        return WEIR_OK;
    return weir_fail(error, WEIR_EFORMAT, "%s: %s: found %lld, wanted %lld to %lld", name, field, (long long)found, (long long)min,
                     (long long)max);
}

static int check_heads(const char *name, const weir__llama2c *m, weir_error **error) {
    if (m->dim % (2 * m->heads) != 0)
        return weir_fail(error, WEIR_EFORMAT, "%s: n_heads: found %lld, wanted a divisor of dim, %lld, with an even quotient", name,
                         (long long)m->heads, (long long)m->dim);
    if (m->heads % m->kv_heads != 0)
        return weir_fail(error, WEIR_EFORMAT, "%s: n_kv_heads: found %lld, wanted a divisor of n_heads, %lld", name, (long long)m->kv_heads,
                         (long long)m->heads);
    return WEIR_OK;
}

int weir__llama2c_header(const char *name, const void *header, size_t size, uint64_t file_size, weir__llama2c *m, weir_error **error) {
    int64_t v[7];
    if (size < HEADER)
        return weir_fail(error, WEIR_EFORMAT, "%s: header: found %zu bytes, wanted %d", name, size, HEADER);
    for (int i = 0; i < 7; i++)
        v[i] = (int32_t)weir__le32((const uint8_t *)header + 4 * i);
    *m = (weir__llama2c){v[0], v[1], v[2], v[3], v[4], v[5] < 0 ? -v[5] : v[5], v[6], v[5] > 0};
    int code;
    if ((code = check_field(name, "dim", m->dim, 2, WEIR_MAX_WIDTH, error)) ||
        (code = check_field(name, "hidden_dim", m->hidden, 1, WEIR_MAX_WIDTH, error)) ||
        (code = check_field(name, "n_layers", m->layers, 1, WEIR_MAX_LAYERS, error)) ||
        (code = check_field(name, "n_heads", m->heads, 1, m->dim, error)) ||
        (code = check_field(name, "n_kv_heads", m->kv_heads, 1, m->heads, error)) ||
        (code = check_field(name, "vocab_size", m->vocab, 1, WEIR_MAX_VOCAB, error)) ||
        (code = check_field(name, "seq_len", m->context, 1, WEIR_MAX_WIDTH, error)) || (code = check_heads(name, m, error)))
        return code;
    int64_t wanted = HEADER;
    for (size_t w = 0; w < weight_count(m); w++)
        wanted += weight_layers(m, w) * weight_bytes(m, w);
    if (file_size != (uint64_t)wanted)
        return weir_fail(error, WEIR_EFORMAT, "%s: found a file of %llu bytes, wanted %lld as its header says", name,
                         (unsigned long long)file_size, (long long)wanted);
    return WEIR_OK;
}

int weir__llama2c_check(weir_system *s, const void *header, size_t size, uint64_t file_size, weir_error **error) {
    weir__llama2c m;
    (void)s;
    return weir__llama2c_header("checkpoint", header, size, file_size, &m, error);
}

static void put_keys(weir__gguf_writer *w, const weir__llama2c *m) {
    weir__gguf_put_string(w, "general.architecture", "llama");
    weir__gguf_put_string(w, "general.type", "model");
    weir__gguf_put_u32(w, "general.file_type", WEIR_F32);
    weir__gguf_put_u32(w, "llama.block_count", (uint32_t)m->layers);
    weir__gguf_put_u32(w, "llama.context_length", (uint32_t)m->context);
    weir__gguf_put_u32(w, "llama.embedding_length", (uint32_t)m->dim);
    weir__gguf_put_u32(w, "llama.feed_forward_length", (uint32_t)m->hidden);
    weir__gguf_put_u32(w, "llama.attention.head_count", (uint32_t)m->heads);
    weir__gguf_put_u32(w, "llama.attention.head_count_kv", (uint32_t)m->kv_heads);
    weir__gguf_put_u32(w, "llama.rope.dimension_count", (uint32_t)(m->dim / m->heads));
    weir__gguf_put_f32(w, "llama.rope.freq_base", ROPE_BASE);
    weir__gguf_put_f32(w, "llama.attention.layer_norm_rms_epsilon", NORM_EPSILON);
    weir__gguf_put_u32(w, "llama.vocab_size", (uint32_t)m->vocab);
}

/* Tensors stand in the file in the checkpoint's order, so that it is read once, from front to back. */
static void put_tensors(weir__gguf_writer *w, const weir__llama2c *m) {
    char name[64];
    for (size_t i = 0; i < weight_count(m); i++) {
        int64_t rows = side(m, weights[i].rows), columns = side(m, weights[i].columns);
        for (int layer = 0; weights[i].name && layer < weight_layers(m, i); layer++) {
            const char *percent = strstr(weights[i].name, "%d");
            if (percent)
                snprintf(name, sizeof name, "%.*s%d%s", (int)(percent - weights[i].name), weights[i].name, layer, percent + 2);
            weir__gguf_put_tensor(w, percent ? name : weights[i].name, WEIR_F32, weights[i].rows == ONE ? 1 : 2,
                                  (int64_t[]){columns, rows});
        }
    }
}

static int copy_weights(weir__gguf_writer *w, const weir__llama2c *m, const weir__file *f, weir_error **error) {
    char *chunk = weir__alloc(f->system, CHUNK);
    int code = chunk ? WEIR_OK : weir_fail(error, WEIR_ENOMEM, "%s", f->path);
    uint64_t at = HEADER;
    for (size_t i = 0; i < weight_count(m) && !code; i++) {
        int64_t left = weight_layers(m, i) * weight_bytes(m, i);
        if (!weights[i].name) {
            at += (uint64_t)left;
            continue;
        }
        while (left > 0 && !code) {
            size_t n = left < CHUNK ? (size_t)left : CHUNK;
            code = weir__file_read(f, at, chunk, n, error);
            if (!code)
                code = weir__gguf_put_data(w, chunk, n, error);
            at += n;
            left -= (int64_t)n;
        }
    }
    weir__free(f->system, chunk);
    return code;
}

static bool is_vocabulary(const char *name) {
    size_t n = strlen(name);
    return n > 6 && strncmp(name, "tok", 3) == 0 && strcmp(name + n - 4, ".bin") == 0;
}

/* The vocabulary beside the checkpoint: exactly one tok*.bin. *out is owned by the caller. */
static int find_vocabulary(weir_system *s, const char *checkpoint, char **out, weir_error **error) {
    const char *slash = strrchr(checkpoint, '/'), *folder_name = slash ? checkpoint : "./";
    size_t folder = slash ? (size_t)(slash - checkpoint) + 1 : 2;
    char *path = weir__alloc(s, folder + NAME_MAX + 2);
    int code = path ? WEIR_OK : weir_fail(error, WEIR_ENOMEM, "%s", checkpoint);
    if (code)
        return code;
    memcpy(path, folder_name, folder);
    DIR *dir = opendir(path);
    size_t found = 0;
    for (struct dirent *d; dir && (d = readdir(dir));) {
        if (is_vocabulary(d->d_name) && found++ == 0)
            strcpy(path + folder, d->d_name);
    }
    if (dir)
        closedir(dir);
    if (found == 1) {
        *out = path;
        return WEIR_OK;
    }
    code = weir_fail(error, found ? WEIR_EINVAL : WEIR_ENOENT, "%.*s: found %zu vocabularies beside the checkpoint, wanted one tok*.bin",
                     (int)folder, folder_name, found);
    weir__free(s, path);
    return code;
}

static int write_model(const weir__file *f, const weir__llama2c *m, const char *vocabulary, const char *out_path, weir_error **error) {
    weir__gguf_writer *w;
    int code = weir__gguf_create(f->system, out_path, &w, error);
    if (code)
        return code;
    put_keys(w, m);
    code = weir__llama2c_put_vocabulary(f->system, w, vocabulary, m->vocab, error);
    if (!code) {
        put_tensors(w, m);
        code = copy_weights(w, m, f, error);
    }
    if (!code)
        return weir__gguf_finish(w, error);
    weir__gguf_abort(w);
    return code;
}

int weir__llama2c_convert(weir_system *s, const char *checkpoint, const char *tokenizer, const char *out_path, weir_error **error) {
    weir__file f;
    weir__llama2c m;
    uint8_t header[HEADER];
    char *beside = NULL;
    int code = weir__file_open(s, checkpoint, &f, error);
    if (code)
        return code;
    code = weir__file_read(&f, 0, header, f.size < HEADER ? (size_t)f.size : HEADER, error);
    if (!code)
        code = weir__llama2c_header(checkpoint, header, f.size < HEADER ? (size_t)f.size : HEADER, f.size, &m, error);
    if (!code && !tokenizer)
        code = find_vocabulary(s, checkpoint, &beside, error);
    if (!code)
        code = write_model(&f, &m, tokenizer ? tokenizer : beside, out_path, error);
    weir__free(s, beside);
    weir__file_close(&f);
    return code;
}
