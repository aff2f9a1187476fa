/* The settings that kernels refuse, each by a text that says what is wrong; the same arguments without the fault are taken. */
#include "helper_kernels.h"

#include <math.h>

static const char *refusal(int kernel, const void *args) {
    return weir_cpu_table_get(WEIR_CPU_GENERIC)->check(kernel, args);
}

static void assert_refused(int kernel, const void *args, const char *text) {
    const char *why = refusal(kernel, args);
    if (!why || !strstr(why, text))
        fail_msg("%s: refusal is %s, wanted something about %s", weir_kernel_name(kernel), why ? why : "missing", text);
}

static void embedding_scales_that_are_no_number_are_refused(void **state) {
    (void)state;
    weir_k_embed a = {.table = {NULL, 0, WEIR_F32, 4, 4}, .scale = 2};
    assert_null(refusal(WEIR_K_embed, &a));
    a.scale = NAN;
    assert_refused(WEIR_K_embed, &a, "scale");
}

static void norms_that_are_added_go_to_y_alone(void **state) {
    (void)state;
    int acts;
    float y;
    weir_k_rmsnorm a = {.width = 256, .y = &y, .add = 1};
    assert_null(refusal(WEIR_K_rmsnorm, &a));
    a.acts = &acts;
    assert_refused(WEIR_K_rmsnorm, &a, "added");
    a.acts = NULL;
    a.acts_k = &acts;
    assert_refused(WEIR_K_rmsnorm, &a, "added");
    a.acts_k = NULL;
    a.y = NULL;
    assert_refused(WEIR_K_rmsnorm, &a, "added");
}

static void norms_read_and_write_the_rows_that_they_can_address(void **state) {
    (void)state;
    float y;
    weir_k_rmsnorm a = {.width = 16, .y = &y, .x_rows = WEIR_ROWS_OUT, .y_rows = WEIR_ROWS_OUT};
    assert_refused(WEIR_K_rmsnorm, &a, "gathers");
    a.x_rows = WEIR_ROWS_PASS;
    assert_refused(WEIR_K_rmsnorm, &a, "output rows");
    a.x_rows = WEIR_ROWS_GATHER;
    assert_null(refusal(WEIR_K_rmsnorm, &a));
    a.y_rows = WEIR_ROWS_TILE;
    assert_refused(WEIR_K_rmsnorm, &a, "output rows");
}

static void unaligned_biases_are_refused(void **state) {
    (void)state;
    float x;
    weir_weight w = {NULL, 0, WEIR_F32, 4, 4};
    weir_k_matmul m = {.w = w, .x = &x, .ldx = 4, .ldy = 4, .bias = 1, .bias_offset = 64};
    assert_null(refusal(WEIR_K_matmul, &m));
    m.bias_offset = 66;
    assert_refused(WEIR_K_matmul, &m, "bias");
    weir_k_glu g = {.gate = w, .up = w, .x = &x, .ldx = 4, .ldy = 4, .y = &x, .acts_block = 32, .bias = 1, .gate_bias = 64};
    assert_null(refusal(WEIR_K_glu, &g));
    g.up_bias = 1;
    assert_refused(WEIR_K_glu, &g, "bias");
}

static void activations_that_do_not_exist_are_refused(void **state) {
    (void)state;
    float x;
    weir_weight w = {NULL, 0, WEIR_F32, 4, 4};
    weir_k_glu g = {.gate = w, .up = w, .x = &x, .ldx = 4, .ldy = 4, .y = &x, .acts_block = 32, .activation = WEIR_GELU_TANH};
    assert_null(refusal(WEIR_K_glu, &g));
    g.activation = 2;
    assert_refused(WEIR_K_glu, &g, "activation");
}

static void rotary_tables_need_a_scale(void **state) {
    (void)state;
    static const float wrong[] = {0, -1, INFINITY, NAN};
    double frequency = 1;
    weir_k_rope_table t = {NULL, 1, 2, &frequency, 1};
    assert_null(refusal(WEIR_K_rope_table, &t));
    for (int i = 0; i < 4; i++) {
        t.scale = (double)wrong[i];
        assert_refused(WEIR_K_rope_table, &t, "scale");
    }
}

static void norms_of_heads_need_an_epsilon_and_aligned_weights(void **state) {
    (void)state;
    void *base = NULL;
    weir_k_rope_store s = {.rope_dim = 4, .kv = {NULL, NULL, WEIR_F16, 2, 4, 0}, .norm_base = &base, .norm_eps = 1e-6f};
    assert_null(refusal(WEIR_K_rope_store, &s));
    s.norm_eps = -1;
    assert_refused(WEIR_K_rope_store, &s, "epsilon");
    s.norm_eps = 0;
    s.k_norm = 2;
    assert_refused(WEIR_K_rope_store, &s, "aligned");
}

static void windows_and_caps_of_attention_must_make_sense(void **state) {
    (void)state;
    float partial;
    weir_k_attention a = {
        .heads = 4, .splits = 1, .kv = {NULL, NULL, WEIR_F16, 1, 8, 0}, .partial = &partial, .acts_block = 32, .window = 1, .softcap = 50};
    assert_null(refusal(WEIR_K_attention, &a));
    a.window = -1;
    assert_refused(WEIR_K_attention, &a, "window");
    a.window = 0;
    a.softcap = NAN;
    assert_refused(WEIR_K_attention, &a, "cap");
    a.softcap = -1;
    assert_refused(WEIR_K_attention_merge, &a, "cap");
}

static void soft_caps_of_rows_must_be_above_zero(void **state) {
    (void)state;
    weir_k_softcap a = {.width = 5, .rows = WEIR_ROWS_OUT, .cap = 30};
    assert_null(refusal(WEIR_K_softcap, &a));
    a.cap = 0;
    assert_refused(WEIR_K_softcap, &a, "cap");
    a.cap = 1;
    a.rows = WEIR_ROWS_PASS;
    assert_refused(WEIR_K_softcap, &a, "rows");
    a.rows = WEIR_ROWS_TILE;
    a.width = 0;
    assert_refused(WEIR_K_softcap, &a, "width");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(embedding_scales_that_are_no_number_are_refused),
        cmocka_unit_test(norms_that_are_added_go_to_y_alone),
        cmocka_unit_test(norms_read_and_write_the_rows_that_they_can_address),
        cmocka_unit_test(unaligned_biases_are_refused),
        cmocka_unit_test(activations_that_do_not_exist_are_refused),
        cmocka_unit_test(rotary_tables_need_a_scale),
        cmocka_unit_test(norms_of_heads_need_an_epsilon_and_aligned_weights),
        cmocka_unit_test(windows_and_caps_of_attention_must_make_sense),
        cmocka_unit_test(soft_caps_of_rows_must_be_above_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
