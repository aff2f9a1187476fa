/* The types with super-blocks of 256: their layout, exact values, and products with the bits of the literal reference at every level. */
#include "helper_reference.h"
#include "helper_reference_k.h"

#include <math.h>

static const int types[] = {WEIR_Q2_K, WEIR_Q3_K, WEIR_Q4_K, WEIR_Q5_K, WEIR_Q6_K, WEIR_IQ4_XS};
#define TYPES (int)(sizeof types / sizeof *types)

/* Random blocks with unequal scales. */
static uint8_t *random_blocks(rng *r, int type, int blocks) {
    size_t bytes = weir_type_get(type)->bytes;
    uint8_t *w = zeroed((size_t)blocks * bytes);
    for (size_t i = 0; i < (size_t)blocks * bytes; i++)
        w[i] = (uint8_t)(rng_below(r, 5) ? rng_next(r) : rng_below(r, 2) ? 0xff : 0);
    for (int b = 0; b < blocks; b++)
        ref_put_scales_k(type, w + (size_t)b * bytes, ref_to_f16(0.02f * rng_float(r)), ref_to_f16(0.1f * rng_float(r)));
    return w;
}

static void *packed(int level, int type, const void *source, int n, int k) {
    void *p = poisoned(weir_packed_size(type, n, k)), *base = p;
    weir_k_pack a = {source, {&base, 0, type, n, k}, 0, 0, type, 0};
    run_kernel(level, WEIR_K_pack, &a, 3);
    return p;
}

/* ---- products ---- */

typedef struct product_case {
    int level, type, n, k, rows;
    uint8_t *source;
    float *x;
    ref_act_k *ref;
} product_case;

static product_case case_of(rng *r, int level, int type, int n, int k, int rows) {
    product_case c = {level, type, n, k, rows, random_blocks(r, type, n * k / 256), zeroed((size_t)(rows * k) * 4), NULL};
    c.ref = zeroed((size_t)(rows * k / 256) * sizeof *c.ref);
    for (int i = 0; i < rows * k; i++)
        c.x[i] = rng_normal(r) * (rng_below(r, 50) ? 1.0f : 20.0f);
    return c;
}

static void close_case(product_case *c) {
    free(c->source);
    free(c->x);
    free(c->ref);
}

static float wanted(const product_case *c, bool integer, int row, int j) {
    const uint8_t *w = c->source + (size_t)j * ref_row_bytes(c->type, c->k);
    if (integer)
        return ref_product_k(c->type, w, c->k, c->ref + row * (c->k / 256));
    float acc = 0;
    for (int k = 0; k < c->k; k++)
        acc = fmaf(c->x[row * c->k + k], ref_value_k(c->type, w, k), acc);
    return acc;
}

/* Compares all outputs, with 1 thread and with 3. */
static void compare(product_case *c, bool integer) {
    size_t outputs = (size_t)(c->rows * c->n);
    float *y = poisoned(outputs * 4), *want = zeroed(outputs * 4);
    void *base = packed(c->level, c->type, c->source, c->n, c->k), *acts;
    ref_quantise_k(c->x, c->rows * c->k, c->ref);
    acts = ref_acts_k(c->ref, c->rows * c->k / 256);
    for (int i = 0; i < c->rows * c->n; i++)
        want[i] = wanted(c, integer, i / c->n, i % c->n);
    weir_step step = {.rows = c->rows, .tile_rows = c->rows};
    weir_k_matmul a = {
        .step = &step, .w = {&base, 0, c->type, c->n, c->k}, .x = c->x, .acts = integer ? acts : NULL, .ldx = c->k, .y = y, .ldy = c->n};
    for (unsigned workers = 1; workers <= 3; workers += 2) {
        char what[96];
        snprintf(what, sizeof what, "%s %s [%d][%d] x %d rows, %u threads", weir_type_get(c->type)->name, integer ? "int8" : "float", c->n,
                 c->k, c->rows, workers);
        memset(y, 0xff, outputs * 4);
        run_kernel(c->level, WEIR_K_matmul, &a, workers);
        assert_same_bits(y, want, outputs, what);
    }
    free(y);
    free(want);
    free(base);
    free(acts);
}

static void any_number_of_rows_has_the_bits_of_the_reference(void **state) {
    need_level(state);
    for (int t = 0; t < TYPES; t++)
        for (int rows = 1; rows <= 17; rows++) {
            rng r = {(uint64_t)(rows * 7 + t)};
            product_case c = case_of(&r, level_of(state), types[t], 19, 512, rows);
            compare(&c, true);
            close_case(&c);
        }
}

/* Each level's table is called directly, not through a dispatcher that would pick another one. Odd block counts, outputs that fill no panel. */
static void kernels_I1_I5_products_of_any_shape_have_the_bits_of_the_reference(void **state) {
    need_level(state);
    static const int shapes[][3] = {{16, 256, 1}, {3, 768, 2}, {50, 1280, 1}, {33, 256, 65}, {97, 256, 9}};
    for (int t = 0; t < TYPES; t++)
        for (int i = 0; i < 5; i++) {
            rng r = {(uint64_t)(i * 10 + t)};
            product_case c = case_of(&r, level_of(state), types[t], shapes[i][0], shapes[i][1], shapes[i][2]);
            compare(&c, true);
            close_case(&c);
        }
}

static void float_products_have_the_bits_of_the_reference(void **state) {
    need_level(state);
    for (int t = 0; t < TYPES; t++)
        for (int rows = 1; rows <= 17; rows += 4) {
            rng r = {(uint64_t)(rows + t)};
            product_case c = case_of(&r, level_of(state), types[t], 35, 768, rows);
            compare(&c, false);
            close_case(&c);
        }
}

/* All codes and scales at an end, all activations at +-127: sums that would saturate 16 bits, and the largest that 32 must hold. */
static void kernels_I3_the_largest_sums_are_exact(void **state) {
    need_level(state);
    static const uint8_t fills[] = {0xff, 0x00, 0x80, 0x7f, 0xf0, 0x0f};
    for (int t = 0; t < TYPES; t++)
        for (int fill = 0; fill < 6; fill++)
            for (int rows = 1; rows <= 9; rows += 4) {
                rng r = {7};
                product_case c = case_of(&r, level_of(state), types[t], 16, 512, rows);
                size_t bytes = weir_type_get(c.type)->bytes;
                memset(c.source, fills[fill], 16 * 2 * bytes);
                for (int b = 0; b < 32; b++)
                    ref_put_scales_k(c.type, c.source + (size_t)b * bytes, 0x3c00, 0xc000);
                for (int i = 0; i < rows * c.k; i++)
                    c.x[i] = i % 512 < (rows == 9 ? 512 : 300) ? 3.0f : -3.0f;
                compare(&c, true);
                close_case(&c);
            }
}

/* One scale at its end and the others random: each scale meets its own sub-block alone. */
static void kernels_I1_every_scale_meets_its_own_codes(void **state) {
    need_level(state);
    for (int t = 0; t < TYPES; t++)
        for (int at = 0; at < 256; at += 8) {
            rng r = {(uint64_t)at};
            product_case c = case_of(&r, level_of(state), types[t], 16, 256, 4);
            for (int i = 0; i < c.rows * 256; i++)
                c.x[i] = i % 256 / 8 == at / 8 ? 2.0f : 0.0f;
            compare(&c, true);
            close_case(&c);
        }
}

/* Scales that no quantiser writes: infinities, NaNs, the least and the largest. */
static void hostile_scales_give_what_the_reference_gives(void **state) {
    need_level(state);
    static const uint16_t scales[] = {0x7c00, 0xfc00, 0x7e00, 0x7c01, 0x0001, 0x8001, 0x7bff, 0xfbff, 0, 0x8000};
    for (int t = 0; t < TYPES; t++) {
        rng r = {23};
        product_case c = case_of(&r, level_of(state), types[t], 48, 512, 9);
        for (int b = 0; b < 48 * 2; b++)
            ref_put_scales_k(c.type, c.source + (size_t)b * weir_type_get(c.type)->bytes, scales[rng_below(&r, 10)],
                             scales[rng_below(&r, 10)]);
        compare(&c, true);
        compare(&c, false);
        close_case(&c);
    }
}

/* The value itself, not only the bits: one row and many rows are within the rounding of the activations. */
static void kernels_I7_one_row_is_as_right_as_many(void **state) {
    need_level(state);
    for (int t = 0; t < TYPES; t++)
        for (int rows = 1; rows <= 9; rows += 8) {
            rng r = {11};
            product_case c = case_of(&r, level_of(state), types[t], 64, 512, rows);
            ref_quantise_k(c.x, rows * c.k, c.ref);
            double error = 0, size = 0;
            for (int i = 0; i < rows * 64; i++) {
                double exact = 0;
                for (int k = 0; k < 512; k++)
                    exact += (double)c.x[i / 64 * 512 + k] *
                             (double)ref_value_k(c.type, c.source + (size_t)(i % 64) * ref_row_bytes(c.type, 512), k);
                error += fabs((double)wanted(&c, true, i / 64, i % 64) - exact);
                size += fabs(exact);
            }
            assert_true(error < 0.05 * size);
            compare(&c, true);
            close_case(&c);
        }
}

/* ---- glu ---- */

/* A product of either kind of blocks with row x. */
static float either(int type, const uint8_t *w, int k, const float *x) {
    ref_act acts[512 / 32];
    ref_act_k acts_k[512 / 256];
    ref_quantise(x, k, acts);
    ref_quantise_k(x, k, acts_k);
    return weir_type_get(type)->acts == 256 ? ref_product_k(type, w, k, acts_k) : ref_product_int(type, w, k, acts);
}

static void *acts_of(const float *x, int values) {
    ref_act *ref = zeroed((size_t)(values / 32) * sizeof *ref);
    act_block *a = zeroed((size_t)(values / 32) * sizeof *a);
    ref_quantise(x, values, ref);
    for (int i = 0; i < values / 32; i++) {
        a[i] = (act_block){.d = ref[i].d, .s = ref[i].s, .sum = ref[i].sum, .off = -128 * ref[i].sum};
        for (int j = 0; j < 32; j++)
            a[i].q[j] = (int8_t)ref[i].q[j];
    }
    free(ref);
    return a;
}

/* [256][512] of both types; the outputs become blocks of 256. */
static void compare_glu(int level, int gate_type, int up_type, int rows) {
    enum { N = 256, K = 512 };
    rng r = {(uint64_t)rows};
    product_case c = case_of(&r, level, gate_type, N, K, rows);
    uint8_t *up = ref_random_weights(&r, up_type, N, K);
    for (int b = 0; b < N * K / 256 && weir_type_get(up_type)->block == 256; b++)
        ref_put_scales_k(up_type, up + (size_t)b * weir_type_get(up_type)->bytes, 0x2000, 0x2100);
    void *gate_base = packed(level, gate_type, c.source, N, K), *up_base = packed(level, up_type, up, N, K);
    float *y = poisoned((size_t)(rows * N) * 4), *want = zeroed((size_t)(rows * N) * 4);
    for (int i = 0; i < rows * N; i++) {
        const float *x = c.x + i / N * K;
        float gate = ref_silu(either(gate_type, c.source + (size_t)(i % N) * ref_row_bytes(gate_type, K), K, x));
        want[i] = gate * either(up_type, up + (size_t)(i % N) * ref_row_bytes(up_type, K), K, x);
    }
    ref_quantise_k(c.x, rows * K, c.ref);
    void *acts = acts_of(c.x, rows * K), *acts_k = ref_acts_k(c.ref, rows * K / 256);
    ref_act_k *out_ref = zeroed((size_t)(rows * N / 256) * sizeof *out_ref);
    ref_quantise_k(want, rows * N, out_ref);
    weir_step step = {.rows = rows, .tile_rows = rows};
    weir_k_glu a = {.step = &step,
                    .gate = {&gate_base, 0, gate_type, N, K},
                    .up = {&up_base, 0, up_type, N, K},
                    .acts = acts,
                    .acts_k = acts_k,
                    .ldy = N,
                    .y = y,
                    .acts_out = poisoned((size_t)rows * weir_act_size(256, N)),
                    .acts_block = 256};
    run_kernel(level, WEIR_K_glu, &a, 2);
    assert_same_bits(y, want, (size_t)(rows * N), "glu");
    assert_same_acts_k(a.acts_out, out_ref, rows * N, "glu's activations");
    void *all[] = {up, gate_base, up_base, y, want, acts, acts_k, out_ref, a.acts_out};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    close_case(&c);
}

static void each_matrix_of_glu_takes_the_blocks_of_its_type(void **state) {
    need_level(state);
    for (int rows = 1; rows <= 17; rows += 8) {
        compare_glu(level_of(state), WEIR_Q4_K, WEIR_Q6_K, rows);
        compare_glu(level_of(state), WEIR_Q5_K, WEIR_Q8_0, rows);
    }
}

/* ---- values ---- */

/* Blocks of the reference as a table of n rows of k: gathered and multiplied by unit vectors. */
static void check_values(int level, int type, const void *bytes, const float *values, int n, int k) {
    void *base = packed(level, type, bytes, n, k);
    weir_weight w = {&base, 0, type, n, k};
    int32_t *token = zeroed((size_t)n * sizeof *token);
    float *x = poisoned((size_t)(n * k) * 4), *y = poisoned((size_t)(k * n) * 4), *unit = zeroed((size_t)(k * k) * 4);
    for (int i = 0; i < n; i++)
        token[i] = n - 1 - i;
    for (int i = 0; i < k; i++)
        unit[i * k + i] = 1;
    weir_step step = {.rows = n, .tile_rows = n, .token = token};
    weir_k_embed embed = {&step, w, x, 0};
    run_kernel(level, WEIR_K_embed, &embed, 2);
    for (int i = 0; i < n; i++)
        assert_same_bits(x + i * k, values + (n - 1 - i) * k, (size_t)k, "embed");
    step.tile_rows = k;
    weir_k_matmul m = {.step = &step, .w = w, .x = unit, .ldx = k, .y = y, .ldy = n};
    run_kernel(level, WEIR_K_matmul, &m, 2);
    for (int i = 0; i < k * n; i++) /* a sum with zeros has no negative zero */
        assert_true(y[i] == values[i % n * k + i / n]);
    free(base);
    free(token);
    free(x);
    free(y);
    free(unit);
}

static void values_of_the_reference_blocks_are_exact(void **state) {
    need_level(state);
    static const char *const names[] = {"Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_XS"};
    const char *path = weir_test_reference("vectors/quants.safetensors");
    weir_test_need(path, "vectors/quants.safetensors");
    tensors t = tensors_open(path);
    for (int i = 0; i < TYPES; i++) {
        char key[32];
        snprintf(key, sizeof key, "%s.bytes", names[i]);
        tensor bytes = tensors_get(&t, key);
        snprintf(key, sizeof key, "%s.values", names[i]);
        tensor values = tensors_get(&t, key);
        assert_non_null(bytes.data);
        assert_int_equal(values.bytes, 64 * 256 * sizeof(float));
        float *v = zeroed(values.bytes);
        memcpy(v, values.data, values.bytes);
        check_values(level_of(state), types[i], bytes.data, v, 16, 1024);
        for (int k = 0; k < 64 * 256; k++)
            assert_true(ref_value_k(types[i], bytes.data, k) == v[k]);
        free(v);
    }
    tensors_close(&t);
}

/* Where k = 64 i + 4 c + j of a row lies (layout.h). */
static int nibble(const uint8_t *q, int row, int k) {
    int i = k / 64, c = k % 64 / 4;
    return q[(8 * i + c % 8) * 64 + row * 4 + k % 4] >> c / 8 * 4 & 15;
}

static void q4_k_panels_lie_as_drawn(void **state) {
    need_level(state);
    rng r = {1};
    uint8_t *w = random_blocks(&r, WEIR_Q4_K, 32 * 2), *p = packed(level_of(state), WEIR_Q4_K, w, 32, 512);
    for (int row = 0; row < 32; row++)
        for (int k = 0; k < 512; k++) {
            const uint8_t *panel = p + (row / 16 * 2 + k / 256) * 2368;
            ref_k v = ref_k_at(WEIR_Q4_K, w + row * 288, k);
            int lane = row % 16, s = k % 256 / 32;
            assert_memory_equal(panel + lane * 2, &v.d, 2);
            assert_memory_equal(panel + 32 + lane * 2, &v.dmin, 2);
            assert_int_equal(panel[64 + s * 16 + lane], v.scale);
            assert_int_equal(panel[192 + s * 16 + lane], v.min);
            assert_int_equal(nibble(panel + 320, lane, k % 256), v.code);
        }
    free(w);
    free(p);
}

static void q6_k_panels_lie_as_drawn(void **state) {
    need_level(state);
    rng r = {2};
    uint8_t *w = random_blocks(&r, WEIR_Q6_K, 16), *p = packed(level_of(state), WEIR_Q6_K, w, 16, 256);
    for (int row = 0; row < 16; row++)
        for (int k = 0; k < 256; k++) {
            ref_k v = ref_k_at(WEIR_Q6_K, w + row * 210, k);
            int i = k / 64, c = k % 64 / 4, upper = p[288 + (4 * i + c % 4) * 64 + row * 4 + k % 4] >> c / 4 * 2 & 3;
            assert_memory_equal(p + row * 2, &v.d, 2);
            assert_int_equal((int8_t)p[32 + k / 16 * 16 + row], v.scale);
            assert_int_equal((nibble(p + 1312, row, k) | upper << 4) - 32, v.code);
        }
    free(w);
    free(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        EACH_LEVEL(any_number_of_rows_has_the_bits_of_the_reference),
        EACH_LEVEL(kernels_I1_I5_products_of_any_shape_have_the_bits_of_the_reference),
        EACH_LEVEL(float_products_have_the_bits_of_the_reference),
        EACH_LEVEL(kernels_I3_the_largest_sums_are_exact),
        EACH_LEVEL(kernels_I1_every_scale_meets_its_own_codes),
        EACH_LEVEL(hostile_scales_give_what_the_reference_gives),
        EACH_LEVEL(kernels_I7_one_row_is_as_right_as_many),
        EACH_LEVEL(each_matrix_of_glu_takes_the_blocks_of_its_type),
        EACH_LEVEL(values_of_the_reference_blocks_are_exact),
        EACH_LEVEL(q4_k_panels_lie_as_drawn),
        EACH_LEVEL(q6_k_panels_lie_as_drawn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
