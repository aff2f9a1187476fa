/* glu: activation(gate) * up with the bits of the reference, as floats and as activation blocks. */
#include "helper_reference.h"
#include "helper_reference_k.h"

#include <math.h>

typedef struct glu_case {
    int level, type, n, k, rows;
    bool integer, bias;
    int activation;
} glu_case;

static void *pack_random(const glu_case *c, rng *r, uint8_t **source, void **base) {
    *source = ref_random_weights(r, c->type, c->n, c->k);
    size_t size = weir_packed_size(c->type, c->n, c->k);
    *base = poisoned(size + (size_t)c->n * 4);
    float *bias = (float *)(void *)((uint8_t *)*base + size);
    for (int j = 0; j < c->n; j++)
        bias[j] = rng_normal(r);
    weir_k_pack a = {*source, {base, 0, c->type, c->n, c->k}, 0, 0, c->type, 0};
    run_kernel(c->level, WEIR_K_pack, &a, 1);
    return *base;
}

static const float *bias_of(const glu_case *c, const void *base) {
    return (const float *)(const void *)((const uint8_t *)base + weir_packed_size(c->type, c->n, c->k));
}

static float product(const glu_case *c, const uint8_t *source, int j, const float *x, const ref_act *acts) {
    const uint8_t *row = source + (size_t)j * ref_row_bytes(c->type, c->k);
    return c->integer ? ref_product_int(c->type, row, c->k, acts) : ref_product_float(c->type, row, c->k, x);
}

/* Activation blocks with the contents of the reference. */
static void *acts_of(const ref_act *ref, int blocks) {
    act_block *a = zeroed((size_t)blocks * sizeof *a);
    for (int i = 0; i < blocks; i++) {
        a[i] = (act_block){.d = ref[i].d, .s = ref[i].s, .sum = ref[i].sum, .off = -128 * ref[i].sum};
        for (int j = 0; j < 32; j++)
            a[i].q[j] = (int8_t)ref[i].q[j];
    }
    return a;
}

/* The same once more, in blocks of 256. */
static void check_acts_k(int level, const weir_k_glu *glu, const float *want) {
    int outputs = glu->step->rows * glu->gate.n;
    weir_k_glu a = *glu;
    a.acts_out = poisoned((size_t)glu->step->rows * weir_act_size(256, a.gate.n));
    a.acts_block = 256;
    ref_act_k *ref = zeroed((size_t)(outputs / 256) * sizeof *ref);
    ref_quantise_k(want, outputs, ref);
    for (unsigned workers = 1; workers <= 4; workers++) {
        memset(a.acts_out, 0xff, (size_t)glu->step->rows * weir_act_size(256, a.gate.n));
        run_kernel(level, WEIR_K_glu, &a, workers);
        assert_same_acts_k(a.acts_out, ref, outputs, "glu's activations of 256");
    }
    free(a.acts_out);
    free(ref);
}

static void compare(const glu_case *c) {
    rng r = {(uint64_t)(c->n + c->rows)};
    uint8_t *gate, *up;
    void *gate_base, *up_base;
    pack_random(c, &r, &gate, &gate_base);
    pack_random(c, &r, &up, &up_base);
    int values = c->rows * c->k, outputs = c->rows * c->n;
    float *x = zeroed((size_t)values * 4), *y = poisoned((size_t)outputs * 4), *want = zeroed((size_t)outputs * 4);
    for (int i = 0; i < values; i++)
        x[i] = 2 * rng_normal(&r);
    ref_act *ref = zeroed((size_t)values / 32 * sizeof *ref + sizeof *ref),
            *out_ref = zeroed((size_t)outputs / 32 * sizeof *out_ref + sizeof *ref);
    if (c->integer)
        ref_quantise(x, values, ref);
    for (int i = 0; i < outputs; i++) {
        int row = i / c->n, j = i % c->n;
        const ref_act *a = ref + row * (c->k / 32);
        float g = product(c, gate, j, x + row * c->k, a), u = product(c, up, j, x + row * c->k, a);
        if (c->bias) {
            g = g + bias_of(c, gate_base)[j];
            u = u + bias_of(c, up_base)[j];
        }
        g = c->activation == WEIR_GELU_TANH ? ref_gelu(g) : ref_silu(g);
        want[i] = g * u;
    }
    bool blocks = c->n % 32 == 0;
    void *acts = acts_of(ref, values / 32), *acts_out = poisoned((size_t)c->rows * weir_act_size(32, c->n) + 64);
    weir_step step = {.rows = c->rows, .tile_rows = c->rows};
    weir_k_glu a = {.step = &step,
                    .gate = {&gate_base, 0, c->type, c->n, c->k},
                    .up = {&up_base, 0, c->type, c->n, c->k},
                    .x = x,
                    .ldx = c->k,
                    .acts = c->integer ? acts : NULL,
                    .ldy = c->n,
                    .y = y,
                    .acts_out = blocks ? acts_out : NULL,
                    .acts_block = 32,
                    .activation = c->activation,
                    .bias = c->bias,
                    .gate_bias = weir_packed_size(c->type, c->n, c->k),
                    .up_bias = weir_packed_size(c->type, c->n, c->k)};
    for (unsigned workers = 1; workers <= 4; workers++) {
        memset(y, 0xff, (size_t)outputs * 4);
        run_kernel(c->level, WEIR_K_glu, &a, workers);
        assert_same_bits(y, want, (size_t)outputs, "glu");
        if (blocks) {
            ref_quantise(want, outputs, out_ref);
            assert_same_acts(acts_out, out_ref, outputs, "glu's activations");
        }
    }
    if (c->n % 256 == 0)
        check_acts_k(c->level, &a, want);
    void *all[] = {gate, up, gate_base, up_base, x, y, want, ref, out_ref, acts, acts_out};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

static void integer_glu_has_the_bits_of_the_reference(void **state) {
    need_level(state);
    static const int rows[] = {1, 2, 3, 7, 17, 66};
    for (int type = 0; type < WEIR_TYPES; type++)
        for (int i = 0; i < 6 && weir_type_get(type) && weir_type_get(type)->acts == 32; i++)
            compare(&(glu_case){level_of(state), type, 96, 160, rows[i], true, false, WEIR_SILU});
}

static void outputs_become_blocks_of_256(void **state) {
    need_level(state);
    static const int rows[] = {1, 3, 65};
    for (int i = 0; i < 3; i++) {
        compare(&(glu_case){level_of(state), WEIR_Q4_1, 768, 64, rows[i], true, false, WEIR_SILU});
        compare(&(glu_case){level_of(state), WEIR_F16, 256, 21, rows[i], false, false, WEIR_SILU});
    }
}

static void float_glu_has_the_bits_of_the_reference(void **state) {
    need_level(state);
    static const int rows[] = {1, 3, 8, 17};
    for (int type = 0; type < WEIR_TYPES; type++) {
        const weir_type_info *t = weir_type_get(type);
        if (!t || (t->block > 1 && t->acts != 32))
            continue;
        for (int i = 0; i < 4; i++) {
            compare(&(glu_case){level_of(state), type, 172, 64, rows[i], false, false, WEIR_SILU});
            compare(&(glu_case){level_of(state), type, 33, t->block == 1 ? 21 : 32, rows[i], false, false, WEIR_SILU});
        }
    }
}

static void gelu_and_biases_have_the_bits_of_the_reference(void **state) {
    need_level(state);
    static const int rows[] = {1, 3, 9, 66};
    for (int i = 0; i < 4; i++)
        for (int bias = 0; bias < 2; bias++) {
            compare(&(glu_case){level_of(state), WEIR_Q8_0, 96, 64, rows[i], true, bias, WEIR_GELU_TANH});
            compare(&(glu_case){level_of(state), WEIR_Q4_1, 64, 32, rows[i], true, true, WEIR_SILU});
            compare(&(glu_case){level_of(state), WEIR_F32, 41, 16, rows[i], false, bias, WEIR_GELU_TANH});
            compare(&(glu_case){level_of(state), WEIR_F16, 64, 16, rows[i], false, bias, WEIR_GELU_TANH});
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        EACH_LEVEL(integer_glu_has_the_bits_of_the_reference),
        EACH_LEVEL(outputs_become_blocks_of_256),
        EACH_LEVEL(gelu_and_biases_have_the_bits_of_the_reference),
        EACH_LEVEL(float_glu_has_the_bits_of_the_reference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
