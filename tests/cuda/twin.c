/* twin.c: names, keys and launches of the twin, and every kernel but products (twin.h). Sizes of blocks are the kernels' own, from their list; what a grid covers is
 * read from its comments. */
#include "twin.h"
#include "entries.h"

#include "../../kernels/cuda/list.h"

#include <stdio.h>
#include <string.h>

/* ---- a launch ---- */

twin_call twin_begin(const char *family, const char *first, const char *second) {
    twin_call l = {0};
    snprintf(l.name, sizeof l.name, "weir_%s%s%s%s%s", family, first ? "_" : "", first ? first : "", second ? "_" : "",
             second ? second : "");
    return l;
}

static void put(twin_call *l, const char *key, const void *value, unsigned size) {
    if (l->count == sizeof l->values / sizeof *l->values)
        return;
    l->values[l->count].key = key;
    l->values[l->count].size = size;
    memcpy(&l->values[l->count++].bits, value, size);
}

void twin_address(twin_call *l, const char *key, uint64_t p) {
    put(l, key, &p, sizeof p);
}
void twin_pointer(twin_call *l, const char *key, const void *p) {
    twin_address(l, key, (uint64_t)(uintptr_t)p);
}
void twin_int(twin_call *l, const char *key, int32_t value) {
    put(l, key, &value, sizeof value);
}
void twin_offset(twin_call *l, const char *key, uint64_t value) {
    put(l, key, &value, sizeof value);
}
void twin_float(twin_call *l, const char *key, float value) {
    put(l, key, &value, sizeof value);
}
void twin_double(twin_call *l, const char *key, double value) {
    put(l, key, &value, sizeof value);
}

/* The place of the value with this key, of this size; NULL: there is none. */
static void *value_of(twin_call *l, const entry_parameter *p) {
    for (unsigned i = 0; i < l->count; i++)
        if (strcmp(l->values[i].key, p->key) == 0 && l->values[i].size == p->size)
            return &l->values[i].bits;
    return NULL;
}

static bool arguments(twin *t, twin_call *l, const entry *e, void **to) {
    unsigned n = 0;
    for (; e->parameters[n].key; n++) {
        to[n] = value_of(l, &e->parameters[n]);
        if (!to[n]) {
            snprintf(t->why, sizeof t->why, "%s: nothing for its parameter %s", l->name, e->parameters[n].key);
            return false;
        }
    }
    if (n != l->count)
        snprintf(t->why, sizeof t->why, "%s: has %u parameters, %u are given", l->name, n, l->count);
    return n == l->count;
}

void twin_end(twin *t, twin_call *l, int64_t x, int64_t y, int64_t z, unsigned threads) {
    void *to[ENTRY_PARAMETERS];
    CUfunction f = NULL;
    const entry *e = entry_find(l->name);
    if (*t->why || x == 0 || y == 0 || z == 0)
        return;
    CUresult code = e ? t->get_function(&f, t->module, l->name) : CUDA_ERROR_NOT_FOUND;
    if (!code && arguments(t, l, e, to))
        code = t->launch(f, (unsigned)x, (unsigned)y, (unsigned)z, threads, 1, 1, l->shared, t->stream, to, NULL);
    if (code)
        snprintf(t->why, sizeof t->why, "%s: %s", l->name, weir__cuda_error_text(code));
}

int64_t twin_over(int64_t n, int64_t of) {
    return n / of + (n % of != 0);
}

int32_t twin_rows(const twin *t, int32_t rows) {
    return rows == WEIR_ROWS_TILE || rows == WEIR_ROWS_PASS ? t->rows : t->outputs;
}

const char *twin_type(twin *t, int32_t type) {
    const weir_type_info *info = weir_type_get(type);
    if (!info)
        snprintf(t->why, sizeof t->why, "no weight type %d", type);
    return info ? info->name : "";
}

/* ---- kernels ---- */

static void launch_tile(twin *t, const weir_k_tile *k) {
    twin_call l = twin_begin("tile", NULL, NULL);
    twin_int(&l, "outputs", k->outputs);
    twin_pointer(&l, "step", k->step);
    twin_end(t, &l, 1, 1, 1, WEIR_CUDA_TILE_THREADS);
}

static void launch_embed(twin *t, const weir_k_embed *k) {
    twin_call l = twin_begin("embed", twin_type(t, k->table.type), NULL);
    twin_float(&l, "scale", k->scale);
    twin_pointer(&l, "x", k->x);
    twin_int(&l, "k", k->table.k);
    twin_int(&l, "n", k->table.n);
    twin_offset(&l, "offset", k->table.offset);
    twin_pointer(&l, "base", k->table.base);
    twin_pointer(&l, "step", k->step);
    twin_end(t, &l, t->rows, 1, 1, WEIR_CUDA_MAP_THREADS);
}

static void launch_rmsnorm(twin *t, const weir_k_rmsnorm *k) {
    twin_call l = twin_begin("rmsnorm", NULL, NULL);
    twin_int(&l, "add", k->add);
    twin_int(&l, "x_rows", k->x_rows);
    twin_int(&l, "y_rows", k->y_rows);
    twin_int(&l, "width", k->width);
    twin_float(&l, "eps", k->eps);
    twin_offset(&l, "weight_offset", k->weight_offset);
    twin_pointer(&l, "weight_base", k->weight_base);
    twin_pointer(&l, "x", k->x);
    twin_pointer(&l, "y", k->y);
    twin_pointer(&l, "step", k->step);
    twin_end(t, &l, twin_rows(t, k->x_rows), 1, 1, WEIR_CUDA_MAP_THREADS);
}

static void launch_rope_table(twin *t, const weir_k_rope_table *k) {
    twin_call l = twin_begin("rope_table", NULL, NULL);
    twin_pointer(&l, "frequency", k->frequency);
    twin_double(&l, "scale", k->scale);
    twin_int(&l, "dim", k->dim);
    twin_int(&l, "positions", k->positions);
    twin_pointer(&l, "out", k->out);
    twin_end(t, &l, twin_over((int64_t)k->positions * (k->dim / 2), WEIR_CUDA_MAP_THREADS), 1, 1, WEIR_CUDA_MAP_THREADS);
}

static void put_kv(twin_call *l, const weir_kv *kv) {
    twin_pointer(l, "kv_k", kv->k);
    twin_pointer(l, "kv_v", kv->v);
    twin_int(l, "kv_heads", kv->kv_heads);
    twin_int(l, "dim", kv->dim);
}

static void launch_rope_store(twin *t, const weir_k_rope_store *k) {
    twin_call l = twin_begin("rope_store", twin_type(t, k->kv.type), NULL);
    put_kv(&l, &k->kv);
    twin_pointer(&l, "norm_base", k->norm_base);
    twin_offset(&l, "q_norm", k->q_norm);
    twin_offset(&l, "k_norm", k->k_norm);
    twin_float(&l, "norm_eps", k->norm_eps);
    twin_pointer(&l, "table", k->table);
    twin_int(&l, "rope_dim", k->rope_dim);
    twin_int(&l, "heads", k->heads);
    twin_int(&l, "k_offset", k->k_offset);
    twin_int(&l, "v_offset", k->v_offset);
    twin_int(&l, "ld", k->ld);
    twin_pointer(&l, "qkv", k->qkv);
    twin_pointer(&l, "step", k->step);
    twin_end(t, &l, t->rows, twin_over(k->heads + k->kv.kv_heads, WEIR_CUDA_STORE_HEADS), 1, WEIR_CUDA_STORE_THREADS);
}

enum { FEW_QUERIES = 8 }; /* up to so many rows attention is split over the context, and merged */

static void put_attention(twin_call *l, const weir_k_attention *k) {
    put_kv(l, &k->kv);
    twin_float(l, "softcap", k->softcap);
    twin_int(l, "window", k->window);
    twin_float(l, "scale", k->scale);
    twin_int(l, "heads", k->heads);
    twin_int(l, "ldq", k->ldq);
    twin_pointer(l, "q", k->q);
    twin_pointer(l, "step", k->step);
}

static void launch_attention(twin *t, const weir_k_attention *k) {
    bool split = t->rows <= FEW_QUERIES;
    int64_t dim = k->kv.dim, positions = dim > 128 ? 16 : 32, rows = WEIR_CUDA_TILED_ROWS;
    twin_call l = twin_begin(split ? "attention" : "attention_tiled", twin_type(t, k->kv.type), NULL);
    put_attention(&l, k);
    if (split) {
        twin_pointer(&l, "partial", k->partial);
        twin_int(&l, "splits", k->splits);
        twin_end(t, &l, twin_over(t->positions, WEIR_CUDA_ATTENTION_SPLIT),
                 k->kv.kv_heads * twin_over(k->heads / k->kv.kv_heads, WEIR_CUDA_ATTENTION_QUERIES), t->rows, WEIR_CUDA_ATTENTION_THREADS);
        return;
    }
    /* floats: rows of q, a piece of K or V, each a column longer than a head; a score for each of both, a column longer */
    l.shared = (unsigned)(sizeof(float) * (size_t)((rows + positions) * (dim + 1) + rows * (positions + 1)));
    twin_pointer(&l, "out", k->out);
    twin_end(t, &l, twin_over(t->rows, rows), k->heads, 1, WEIR_CUDA_ATTENTION_THREADS);
}

static void launch_attention_merge(twin *t, const weir_k_attention *k) {
    twin_call l = twin_begin("attention_merge", NULL, NULL);
    twin_int(&l, "window", k->window);
    twin_pointer(&l, "out", k->out);
    twin_pointer(&l, "partial", k->partial);
    twin_int(&l, "dim", k->kv.dim);
    twin_int(&l, "splits", k->splits);
    twin_int(&l, "heads", k->heads);
    twin_pointer(&l, "step", k->step);
    if (t->rows <= FEW_QUERIES)
        twin_end(t, &l, k->heads, t->rows, 1, WEIR_CUDA_MAP_THREADS);
}

static void launch_softcap(twin *t, const weir_k_softcap *k) {
    twin_call l = twin_begin("softcap", NULL, NULL);
    twin_float(&l, "cap", k->cap);
    twin_int(&l, "rows", k->rows);
    twin_int(&l, "width", k->width);
    twin_pointer(&l, "x", k->x);
    twin_pointer(&l, "step", k->step);
    twin_end(t, &l, twin_over(k->width, WEIR_CUDA_MAP_THREADS), twin_rows(t, k->rows), 1, WEIR_CUDA_MAP_THREADS);
}

static void launch_sample(twin *t, const weir_k_sample *k) {
    twin_call l = twin_begin("draw", NULL, NULL);
    twin_pointer(&l, "workspace", k->workspace);
    twin_int(&l, "vocab", k->vocab);
    twin_pointer(&l, "logits", k->logits);
    twin_pointer(&l, "step", k->step);
    twin_end(t, &l, t->outputs, 1, 1, WEIR_CUDA_SAMPLE_THREADS);
}

static void launch_pack(twin *t, const weir_k_pack *k) {
    twin_call l = twin_begin("pack", twin_type(t, k->w.type), NULL);
    twin_int(&l, "rope_dim", k->rope_dim);
    twin_int(&l, "rope_heads", k->rope_heads);
    twin_int(&l, "k", k->w.k);
    twin_int(&l, "n", k->w.n);
    twin_offset(&l, "offset", k->w.offset);
    twin_pointer(&l, "base", k->w.base);
    twin_int(&l, "source_type", k->source_type);
    twin_pointer(&l, "source", k->source);
    twin_end(t, &l, 16 * twin_over(k->w.n, 16), 1, 1, WEIR_CUDA_PACK_THREADS);
}

static void launch_pack_vector(twin *t, const weir_k_pack_vector *k) {
    twin_call l = twin_begin("pack_vector", NULL, NULL);
    twin_float(&l, "add", k->add);
    twin_int(&l, "rope_dim", k->rope_dim);
    twin_int(&l, "rope_heads", k->rope_heads);
    twin_int(&l, "k", k->w.k);
    twin_offset(&l, "offset", k->w.offset);
    twin_pointer(&l, "base", k->w.base);
    twin_int(&l, "type", k->w.type);
    twin_pointer(&l, "source", k->source);
    twin_end(t, &l, twin_over(k->w.k, WEIR_CUDA_MAP_THREADS), 1, 1, WEIR_CUDA_MAP_THREADS);
}

static void launch_matmul(twin *t, const weir_k_matmul *k) {
    twin_matmul(t, k);
}
static void launch_glu(twin *t, const weir_k_glu *k) {
    twin_glu(t, k);
}

void twin_launch(twin *t, enum weir_kernel kernel, const void *args) {
    switch (kernel) {
#define K(name)                                                                                                                            \
    case WEIR_K_##name:                                                                                                                    \
        launch_##name(t, args);                                                                                                            \
        break;
        WEIR_KERNELS(K)
#undef K
    default:
        snprintf(t->why, sizeof t->why, "no kernel %d", (int)kernel);
    }
}
