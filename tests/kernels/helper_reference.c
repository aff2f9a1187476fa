/* helper_reference.c: the literal scalar reference that all levels are compared with, bit for bit. */
#include "helper_reference.h"

#include <math.h>

/* ---- half precision, by powers of two in double ---- */

float ref_from_f16(uint16_t h) {
    int exponent = h >> 10 & 31, fraction = h & 1023;
    double v = exponent == 31 ? (fraction ? NAN : INFINITY) : exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
    return (float)(h & 0x8000 ? -v : v);
}

uint16_t ref_to_f16(float f) {
    uint16_t sign = signbit(f) ? 0x8000 : 0;
    double v = fabs((double)f);
    if (isnan(f))
        return sign | 0x7e00;
    if (v >= 65520.0)
        return sign | 0x7c00;
    int exponent;
    frexp(v, &exponent); /* v = m 2^exponent, m in [0.5, 1) */
    int unit = exponent - 11 > -24 ? exponent - 11 : -24;
    double whole = nearbyint(ldexp(v, -unit)), back = ldexp(whole, unit);
    if (back < ldexp(1, -14))
        return sign | (uint16_t)ldexp(back, 24);
    frexp(back, &exponent);
    return sign | (uint16_t)((exponent + 14) << 10 | ((int)ldexp(back, 11 - exponent) & 1023));
}

/* ---- functions ---- */

float ref_exp(float x) {
    static const float c[7] = {1.0f, 1.0f, 0x1.fffffcp-2f, 0x1.555492p-3f, 0x1.5558b6p-5f, 0x1.1239a2p-7f, 0x1.6a4744p-10f};
    if (isnan(x))
        return x;
    if (x <= -86.0f)
        return 0;
    x = x > 89.0f ? 89.0f : x;
    float n = (float)nearbyint((double)x * (double)0x1.715476p+0f), r = fmaf(n, -0x1.62e4p-1f, x), p = c[6];
    r = fmaf(n, -0x1.7f7d1cp-20f, r);
    for (int i = 5; i >= 0; i--)
        p = fmaf(p, r, c[i]);
    return (float)ldexp((double)p, (int)n);
}

float ref_silu(float x) {
    return x / (1.0f + ref_exp(-x));
}

float ref_tanh(float x) {
    static const float c[5] = {-0x1.555548p-2f, 0x1.110c72p-3f, -0x1.b90948p-5f, 0x1.582fbp-6f, -0x1.95001ep-8f};
    float a = fabsf(x), square = a * a, p = c[4];
    if (!(a <= 0.5625f))
        return copysignf(1.0f - 2.0f / (ref_exp(a + a) + 1.0f), x);
    for (int i = 3; i >= 0; i--)
        p = fmaf(p, square, c[i]);
    return copysignf(fmaf(a * square, p, a), x);
}

float ref_gelu(float x) {
    float square = x * x, inner = fmaf(square, -0x1.2444f2p-4f, -0x1.988454p+0f);
    return x / (1.0f + ref_exp(x * inner));
}

float ref_softcap(float x, float cap) {
    return cap * ref_tanh(x / cap);
}

float ref_tree(const float *p) {
    float a[8];
    for (int i = 0; i < 8; i++)
        a[i] = p[i] + p[i + 8];
    return ((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7]));
}

/* ---- activations ---- */

static void quantise_block(const float *x, ref_act *out) {
    float amax = 0;
    bool finite = true;
    for (int i = 0; i < 32; i++) {
        finite = finite && isfinite(x[i]);
        amax = fabsf(x[i]) > amax ? fabsf(x[i]) : amax;
    }
    float scale = finite && amax >= 0x1p-119f ? 127.0f / amax : 0.0f;
    memset(out, 0, sizeof *out);
    out->d = finite ? amax / 127.0f : NAN;
    for (int i = 0; i < 32 && scale > 0; i++) {
        out->q[i] = (int)nearbyintf(x[i] * scale);
        out->sum += out->q[i];
    }
    out->s = out->d * (float)out->sum;
}

void ref_quantise(const float *x, int k, ref_act *out) {
    for (int b = 0; b < k / 32; b++)
        quantise_block(x + 32 * b, &out[b]);
}

void assert_same_acts(const void *acts, const ref_act *want, int k, const char *what) {
    const act_block *a = acts;
    for (int b = 0; b < k / 32; b++) {
        assert_same_bits(&a[b].d, &want[b].d, 1, what);
        assert_same_bits(&a[b].s, &want[b].s, 1, what);
        assert_int_equal(a[b].sum, want[b].sum);
        assert_int_equal(a[b].off, -128 * want[b].sum);
        for (int i = 0; i < 32; i++)
            assert_int_equal(a[b].q[i], want[b].q[i]);
    }
}

/* ---- weights ---- */

size_t ref_row_bytes(int type, int k) {
    const weir_type_info *t = weir_type_get(type);
    return (size_t)k / t->block * t->bytes;
}

static void put_half(uint8_t *to, float f) {
    uint16_t h = ref_to_f16(f);
    memcpy(to, &h, 2);
}

/* Scales, minima and floats of a block; its codes stay. */
static void random_scales(rng *r, int type, uint8_t *block) {
    float f = rng_normal(r);
    switch (type) {
    case WEIR_F32:
        memcpy(block, &f, 4);
        return;
    case WEIR_F16:
        put_half(block, f);
        return;
    case WEIR_BF16:
        memcpy(block, (uint8_t *)&f + 2, 2);
        return;
    case WEIR_MXFP4:
        block[0] = (uint8_t)(rng_below(r, 50) ? 110 + rng_below(r, 15) : rng_below(r, 4));
        return;
    case WEIR_Q4_1:
    case WEIR_Q5_1:
        put_half(block + 2, 0.2f * f);
    }
    put_half(block, 0.02f * rng_float(r));
}

uint8_t *ref_random_weights(rng *r, int type, int n, int k) {
    size_t size = ref_row_bytes(type, k) * (size_t)n;
    uint8_t *w = zeroed(size);
    for (size_t i = 0; i < size; i++)
        w[i] = (uint8_t)(rng_below(r, 5) ? rng_next(r) : rng_below(r, 2) ? 0x80 : rng_below(r, 2) ? 0xff : 0);
    size_t bytes = weir_type_get(type)->bytes;
    for (size_t b = 0; b < size / bytes; b++)
        random_scales(r, type, w + b * bytes);
    return w;
}

static float half_at(const uint8_t *p) {
    uint16_t h;
    memcpy(&h, p, 2);
    return ref_from_f16(h);
}

static bool has_minimum(int type) {
    return type == WEIR_Q4_1 || type == WEIR_Q5_1;
}

/* What the value at i of a block is before scale and minimum; formats as in ggml-common.h. */
static int code_at(int type, const uint8_t *block, int i) {
    static const int iq4_nl[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
    static const int mxfp4[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
    if (type == WEIR_Q8_0)
        return (int8_t)block[2 + i];
    size_t bytes = weir_type_get(type)->bytes;
    const uint8_t *nibbles = block + bytes - 16, *fifth = nibbles - 4;
    bool five = type == WEIR_Q5_0 || type == WEIR_Q5_1;
    int low = i < 16 ? nibbles[i] & 15 : nibbles[i - 16] >> 4, high = five ? fifth[i / 8] >> i % 8 & 1 : 0;
    switch (type) {
    case WEIR_Q4_0:
        return low - 8;
    case WEIR_Q4_1:
        return low;
    case WEIR_Q5_0:
        return low + 16 * high - 16;
    case WEIR_Q5_1:
        return low + 16 * high;
    case WEIR_IQ4_NL:
        return iq4_nl[low];
    default:
        return mxfp4[low];
    }
}

static float scale_of(int type, const uint8_t *block) {
    return type == WEIR_MXFP4 ? (float)ldexp(1, block[0] - 128) : half_at(block);
}

float ref_value(int type, const uint8_t *row, int k) {
    const weir_type_info *t = weir_type_get(type);
    const uint8_t *block = row + k / (int)t->block * (int)t->bytes;
    float f = 0;
    switch (type) {
    case WEIR_F32:
        memcpy(&f, block, 4);
        return f;
    case WEIR_F16:
        return half_at(block);
    case WEIR_BF16:
        memcpy((uint8_t *)&f + 2, block, 2);
        return f;
    }
    f = scale_of(type, block) * (float)code_at(type, block, k % 32);
    return has_minimum(type) ? f + half_at(block + 2) : f;
}

float ref_product_int(int type, const uint8_t *row, int k, const ref_act *acts) {
    float acc = 0;
    for (int b = 0; b < k / 32; b++) {
        const uint8_t *block = row + b * (int)weir_type_get(type)->bytes;
        int64_t sum = 0;
        for (int i = 0; i < 32; i++)
            sum += code_at(type, block, i) * acts[b].q[i];
        acc = fmaf(scale_of(type, block) * acts[b].d, (float)sum, acc);
        if (has_minimum(type))
            acc = fmaf(half_at(block + 2), acts[b].s, acc);
    }
    return acc;
}

float ref_product_float(int type, const uint8_t *row, int k, const float *x) {
    float acc = 0;
    for (int i = 0; i < k; i++)
        acc = fmaf(x[i], ref_value(type, row, i), acc);
    return acc;
}

/* ---- norm and attention ---- */

void ref_rmsnorm(const float *x, const float *w, int n, float eps, float *y) {
    float partial[16] = {0};
    for (int i = 0; i < n; i++)
        partial[i % 16] = fmaf(x[i], x[i], partial[i % 16]);
    float scale = 1.0f / sqrtf(ref_tree(partial) / (float)n + eps);
    for (int i = 0; i < n; i++) {
        float t = x[i] * scale;
        y[i] = t * w[i];
    }
}

/* One split: positions [from, n), n <= 256. */
static void attention_split(const float *q, const float *k, const float *v, int from, int n, float cap, int stride, int dim, float *largest,
                            float *sum, float *out) {
    float score[256], partial[16] = {0};
    *largest = -INFINITY;
    for (int j = from; j < n; j++) {
        score[j] = 0;
        for (int d = 0; d < dim; d++)
            score[j] = fmaf(q[d], k[j * stride + d], score[j]);
        score[j] = cap > 0 ? ref_softcap(score[j], cap) : score[j];
        *largest = score[j] > *largest ? score[j] : *largest;
    }
    for (int d = 0; d < dim; d++)
        out[d] = 0;
    for (int j = from; j < n; j++) {
        float weight = ref_exp(score[j] - *largest);
        partial[j % 16] = partial[j % 16] + weight;
        for (int d = 0; d < dim; d++)
            out[d] = fmaf(weight, v[j * stride + d], out[d]);
    }
    *sum = ref_tree(partial);
}

void ref_attention(const float *q, const float *k, const float *v, const ref_view *view, int stride, int dim, float *out) {
    float scaled[256], largest = 0, sum = 0;
    for (int d = 0; d < dim; d++)
        scaled[d] = q[d] * view->scale;
    for (int first = view->from / 256 * 256; first < view->positions; first += 256) {
        int n = view->positions - first < 256 ? view->positions - first : 256, from = view->from > first ? view->from - first : 0;
        float m, l, o[256];
        attention_split(scaled, k + first * stride, v + first * stride, from, n, view->cap, stride, dim, &m, &l, o);
        if (first <= view->from) {
            largest = m;
            sum = l;
            memcpy(out, o, (size_t)dim * sizeof *o);
            continue;
        }
        float most = largest > m ? largest : m, old = ref_exp(largest - most), add = ref_exp(m - most), part = l * add;
        largest = most;
        sum = fmaf(sum, old, part);
        for (int d = 0; d < dim; d++) {
            part = o[d] * add;
            out[d] = fmaf(out[d], old, part);
        }
    }
    for (int d = 0; d < dim; d++)
        out[d] = out[d] / sum;
}
