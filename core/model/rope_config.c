/* rope_config.c: from what a file says about the rotary embedding to a weir_rope, and the factor of its tables. */
#include "family.h"

/* GGUF carries llama3's scaling as a tensor of divisors. */
static int read_factors(const weir__source *src, weir__config *c, weir_error **error) {
    static const char name[] = "rope_freqs.weight";
    const weir__tensor *t = weir__source_format(src) == WEIR__FORMAT_GGUF ? weir__source_find(src, name) : NULL;
    const char *path = weir__source_settings_path(src);
    int32_t half = c->rope.dim / 2;
    if (!t)
        return WEIR_OK;
    if (t->type != WEIR_F32 || t->n_dims != 1 || t->dims[0] != half)
        return weir_fail(error, WEIR_EFORMAT, "%s: tensor \"%s\" is %lld of %s, wanted %d of f32", path, name, (long long)t->dims[0],
                         weir__tensor_type_name(t->type), half);
    c->rope_factors = weir__alloc(weir__source_system(src), t->size + sizeof *c->rope_factors);
    if (!c->rope_factors)
        return weir_fail(error, WEIR_ENOMEM, "%s: rotary factors", path);
    int code = weir__source_read(src, t, 0, c->rope_factors, t->size, error);
    for (int32_t i = 0; i < half && !code; i++)
        if (!(c->rope_factors[i] > 1e-6f && c->rope_factors[i] < 1e6f))
            code = weir_fail(error, WEIR_EFORMAT, "%s: tensor \"%s\": element %d is %g, wanted a number above 0", path, name, i,
                             (double)c->rope_factors[i]);
    c->rope.scaling = WEIR_ROPE_FACTORS;
    c->rope.factors = c->rope_factors;
    return code;
}

static int need(const weir__source *src, double v, const char *what, const char *type, weir_error **error) {
    return v > 0 ? WEIR_OK
                 : weir_fail(error, WEIR_EFORMAT, "%s: rotary scaling \"%s\" without a %s above 0", weir__source_settings_path(src), type,
                             what);
}

double weir__yarn_magnitude(double factor, double mscale) {
    return factor > 1 ? 0.1 * mscale * weir_log(factor) + 1 : 1;
}

/* transformers' and llama.cpp's ways to say the same: GGUF's attn_factor multiplies what the factor gives, config.json's replaces it. */
static double yarn_scale(const weir__source *src, const weir__rope_config *r) {
    double whole = weir__yarn_magnitude(r->factor, 1);
    if (weir__source_format(src) == WEIR__FORMAT_GGUF)
        return whole * (r->attention > 0 ? r->attention : 1);
    if (r->attention > 0)
        return r->attention;
    return r->mscale > 0 && r->mscale_all_dim > 0
               ? weir__yarn_magnitude(r->factor, r->mscale) / weir__yarn_magnitude(r->factor, r->mscale_all_dim)
               : whole;
}

static int scale(const weir__source *src, weir__config *c, weir_error **error) {
    weir__rope_config *r = &c->rope_config;
    int code = WEIR_OK;
    c->rope.factor = r->factor;
    c->rope.original_context = r->original > 0 ? r->original : c->context;
    c->rope_scale = 1;
    switch (c->rope.scaling) {
    case WEIR_ROPE_LINEAR:
        return need(src, r->factor, "factor", "linear", error);
    case WEIR_ROPE_LLAMA3:
        c->rope.low_freq = r->low;
        c->rope.high_freq = r->high;
        code = need(src, r->factor, "factor", "llama3", error);
        if (!code)
            code = need(src, r->low, "low_freq_factor", "llama3", error);
        if (!code && !(r->high > r->low))
            code = weir_fail(error, WEIR_EFORMAT, "%s: rotary scaling \"llama3\": high_freq_factor is %g, wanted above low_freq_factor, %g",
                             weir__source_settings_path(src), r->high, r->low);
        return code;
    case WEIR_ROPE_YARN:
        if (!(r->factor > 0))
            r->factor = c->rope.factor = (double)c->context / c->rope.original_context;
        c->rope.beta_fast = r->beta_fast > 0 ? r->beta_fast : 32;
        c->rope.beta_slow = r->beta_slow > 0 ? r->beta_slow : 1;
        c->rope.untruncated = !r->truncate;
        c->rope_scale = yarn_scale(src, r);
        return WEIR_OK;
    default:
        return WEIR_OK;
    }
}

/* GGUF files that name no scaling but give a factor mean linear scaling. */
static int choose_type(const weir__source *src, weir__rope_config *r, weir_error **error) {
    if (r->type >= 0)
        return WEIR_OK;
    if (r->factor > 0 && weir__source_format(src) == WEIR__FORMAT_SAFETENSORS)
        return weir_fail(error, WEIR_EFORMAT, "%s: rotary scaling by a factor of %g, but no rope_type", weir__source_settings_path(src),
                         r->factor);
    r->factor = r->factor > 0 ? r->factor : r->linear;
    r->type = r->factor > 0 && r->factor != 1 ? WEIR_ROPE_LINEAR : WEIR_ROPE_PLAIN;
    return WEIR_OK;
}

static bool makes(const weir_rope *r, const float *factors) {
    enum { MOST = 512 };
    double plain[MOST], scaled[MOST];
    if (r->dim / 2 > MOST)
        return false;
    weir_rope_frequencies(&(weir_rope){.base = r->base, .dim = r->dim}, plain);
    weir_rope_frequencies(r, scaled);
    for (int32_t i = 0; i < r->dim / 2; i++) {
        double made = plain[i] / scaled[i];
        if (!(made - (double)factors[i] < 1e-5 * made && (double)factors[i] - made < 1e-5 * made))
            return false;
    }
    return true;
}

bool weir__rope_guess(weir__config *c) {
    double most = 0;
    for (int32_t i = 0; i < c->rope.dim / 2; i++)
        most = (double)c->rope_factors[i] > most ? (double)c->rope_factors[i] : most;
    for (double original = 16; original <= 1 << 20; original *= 2) {
        weir_rope r = {.base = c->rope.base,
                       .dim = c->rope.dim,
                       .scaling = WEIR_ROPE_LLAMA3,
                       .factor = most,
                       .low_freq = 1,
                       .high_freq = 4,
                       .original_context = original};
        if (!makes(&r, c->rope_factors))
            continue;
        c->rope = r;
        c->rope_config.type = r.scaling;
        c->rope_config.factor = most;
        c->rope_config.low = r.low_freq;
        c->rope_config.high = r.high_freq;
        c->rope_config.original = original;
        return true;
    }
    return false;
}

int weir__config_rope(const weir__source *src, weir__config *c, weir_error **error) {
    weir__rope_config *r = &c->rope_config;
    int32_t dim = r->dim ? r->dim : (int32_t)((double)c->head_dim * r->partial);
    if (dim > c->head_dim || dim % 2)
        return weir_fail(error, WEIR_EFORMAT, "%s: %d rotary dimensions (%s), wanted an even number up to %d",
                         weir__source_settings_path(src), dim, r->dim ? "rope.dimension_count" : "head_dim * partial_rotary_factor",
                         c->head_dim);
    int code = choose_type(src, r, error);
    if (code)
        return code;
    r->dim = dim;
    r->partial = (double)dim / (double)c->head_dim;
    c->rope = (weir_rope){.base = r->base, .dim = dim, .scaling = r->type};
    code = scale(src, c, error);
    return code ? code : read_factors(src, c, error);
}
