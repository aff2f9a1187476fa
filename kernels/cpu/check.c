/* check.c: which arguments the cpu kernels cannot run, and why. The same for every level. Looks at shapes only, never through pointers. */
#include "check.h"

#include <math.h>

static const char *check_weight(const weir_weight *w) {
    const weir_type_info *type = weir_type_get(w->type);
    if (!type)
        return "no cpu kernel for this weight type";
    if (w->n <= 0 || w->k <= 0)
        return "a matrix without rows or columns";
    if (w->k % (int)type->block)
        return "the row length is no multiple of the weight type's block";
    return NULL;
}

/* Needs x for float products, acts (k a multiple of 32, as every integer type's block is) for integer ones. */
static const char *check_product(const weir_weight *w, const float *x, int ldx, const void *acts) {
    const char *why = check_weight(w);
    if (why)
        return why;
    if (weir_type_get(w->type)->acts && acts)
        return NULL;
    if (!x)
        return "a float product without float rows";
    return ldx < w->k ? "rows of x are shorter than the product's inner dimension" : NULL;
}

/* Rows of `width` as activations in blocks of `block`. */
static const char *check_acts(int block, int width) {
    if (block != BLOCK && block != SUPER)
        return "int8 activations are in blocks of 32 or 256";
    return width % block ? "int8 activations need rows that are a multiple of their block" : NULL;
}

/* A vector of floats in a unit's blob. */
static bool unaligned(uint64_t offset) {
    return offset % sizeof(float) != 0;
}

static const char *check_embed(const weir_k_embed *a) {
    if (!isfinite(a->scale))
        return "an embedding scale that is no finite number";
    return check_weight(&a->table);
}

static const char *check_rmsnorm(const weir_k_rmsnorm *a) {
    if (a->width <= 0)
        return "a norm without width";
    if (a->x_rows != WEIR_ROWS_TILE && a->x_rows != WEIR_ROWS_PASS && a->x_rows != WEIR_ROWS_GATHER)
        return "a norm reads the rows of a tile, of a pass, or gathers them";
    if (a->y && (a->x_rows == WEIR_ROWS_GATHER) != (a->y_rows == WEIR_ROWS_OUT))
        return "gathered rows, and no others, are normed to output rows";
    if (a->add && (!a->y || a->acts || a->acts_k))
        return "a norm that is added goes to y alone, without int8 activations";
    if (a->acts && a->width % BLOCK)
        return "int8 activations need a width that is a multiple of 32";
    return a->acts_k && a->width % SUPER ? "int8 activations in blocks of 256 need a width that is a multiple of 256" : NULL;
}

static const char *check_matmul(const weir_k_matmul *a) {
    if (a->ldy < a->w.n)
        return "rows of y are shorter than the outputs";
    if (a->bias && unaligned(a->bias_offset))
        return "a bias that is not aligned to its floats";
    return check_product(&a->w, a->x, a->ldx, a->acts);
}

static const char *check_glu(const weir_k_glu *a) {
    const char *why = check_product(&a->gate, a->x, a->ldx, glu_acts(a, &a->gate));
    if (why || (why = check_product(&a->up, a->x, a->ldx, glu_acts(a, &a->up))))
        return why;
    if (a->gate.n != a->up.n || a->gate.k != a->up.k)
        return "gate and up have different shapes";
    why = a->acts_out ? check_acts(a->acts_block, a->gate.n) : NULL;
    if (why)
        return why;
    if (a->acts_out && a->acts_block == SUPER && !a->y)
        return "int8 activations in blocks of 256 are made from y";
    if (a->activation != WEIR_SILU && a->activation != WEIR_GELU_TANH)
        return "no such activation";
    if (a->bias && (unaligned(a->gate_bias) || unaligned(a->up_bias)))
        return "a bias that is not aligned to its floats";
    return a->y && a->ldy < a->gate.n ? "rows of y are shorter than the outputs" : NULL;
}

static const char *check_rope_table(const weir_k_rope_table *a) {
    if (a->dim <= 0 || a->dim % 2)
        return "rotary dimensions must be even and above zero";
    if (!(isfinite(a->scale) && a->scale > 0))
        return "the scale of a rotary table must be a finite number above zero";
    return a->frequency ? NULL : "a rotary table without frequencies";
}

static const char *check_kv(const weir_kv *kv) {
    if (kv->type != WEIR_F16 && kv->type != WEIR_F32)
        return "KV blocks are f16 or f32";
    if (kv->kv_heads <= 0 || kv->dim <= 0)
        return "KV blocks without heads or dimensions";
    return kv->dim > MAX_HEAD ? "heads of more than 256 dimensions" : NULL;
}

static const char *check_rope_store(const weir_k_rope_store *a) {
    if (a->rope_dim < 0 || a->rope_dim % 2 || a->rope_dim > a->kv.dim)
        return "rotary dimensions must be even and within a head";
    if (a->norm_base && (unaligned(a->q_norm) || unaligned(a->k_norm)))
        return "norm weights that are not aligned to their floats";
    if (a->norm_base && !(isfinite(a->norm_eps) && a->norm_eps >= 0))
        return "a norm's epsilon must be a finite number, zero or above";
    return check_kv(&a->kv);
}

static const char *check_attention(const weir_k_attention *a) {
    const char *why = check_kv(&a->kv);
    if (why)
        return why;
    if (a->heads <= 0 || a->heads % a->kv.kv_heads)
        return "the number of heads must be a multiple of the number of KV heads";
    if (a->splits <= 0 || !a->partial)
        return "attention without a workspace";
    if (a->window < 0)
        return "a window of less than no position";
    if (!(isfinite(a->softcap) && a->softcap >= 0))
        return "a soft cap must be a finite number above zero, or 0 for none";
    return a->acts ? check_acts(a->acts_block, a->heads * a->kv.dim) : NULL;
}

static const char *check_softcap(const weir_k_softcap *a) {
    if (a->width <= 0)
        return "rows without width";
    if (a->rows != WEIR_ROWS_TILE && a->rows != WEIR_ROWS_OUT)
        return "a soft cap runs over the rows of a tile or of an output tile";
    return isfinite(a->cap) && a->cap > 0 ? NULL : "a soft cap must be a finite number above zero";
}

static const char *check_sample(const weir_k_sample *a) {
    if (a->vocab <= 0)
        return "a vocabulary without tokens";
    return a->workspace ? NULL : "sampling without a workspace";
}

static const char *check_rope_order(int n, int heads, int rope_dim) {
    if (heads <= 0)
        return NULL;
    if (n % heads)
        return "the rows are no multiple of the rotary heads";
    return rope_dim < 0 || rope_dim % 2 || rope_dim > n / heads ? "rotary dimensions must be even and within a head" : NULL;
}

static const char *check_pack(const weir_k_pack *a) {
    const char *why = check_weight(&a->w);
    if (why)
        return why;
    if (a->source_type != a->w.type) {
        if (!weir_type_reads(a->source_type) || !weir_type_writes(a->w.type))
            return "weights of this type are not made from that one";
        if (a->w.k % (int)weir_type_any(a->source_type)->block)
            return "the row length is no multiple of the source type's block";
    }
    return check_rope_order(a->w.n, a->rope_heads, a->rope_dim);
}

static const char *check_pack_vector(const weir_k_pack_vector *a) {
    if (a->w.type != WEIR_F32 && a->w.type != WEIR_F16 && a->w.type != WEIR_BF16)
        return "vectors are f32, f16 or bf16";
    return check_rope_order(a->w.k, a->rope_heads, a->rope_dim);
}

const char *weir__cpu_check(int kernel, const void *args) {
    switch (kernel) {
    case WEIR_K_tile:
        return NULL;
    case WEIR_K_embed:
        return check_embed(args);
    case WEIR_K_rmsnorm:
        return check_rmsnorm(args);
    case WEIR_K_matmul:
        return check_matmul(args);
    case WEIR_K_glu:
        return check_glu(args);
    case WEIR_K_rope_table:
        return check_rope_table(args);
    case WEIR_K_rope_store:
        return check_rope_store(args);
    case WEIR_K_attention:
    case WEIR_K_attention_merge:
        return check_attention(args);
    case WEIR_K_softcap:
        return check_softcap(args);
    case WEIR_K_sample:
        return check_sample(args);
    case WEIR_K_pack:
        return check_pack(args);
    case WEIR_K_pack_vector:
        return check_pack_vector(args);
    default:
        return "no such kernel";
    }
}
