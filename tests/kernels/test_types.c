/* The tables: weight types, packed sizes, kernels, levels, and the shapes that are refused. */
#include "helper_kernels.h"

static void every_gguf_type_has_a_name_and_the_specified_block(void **state) {
    (void)state;
    static const struct {
        int type;
        const char *name;
        uint32_t block, bytes;
    } known[] = {{0, "f32", 1, 4},       {1, "f16", 1, 2},       {2, "q4_0", 32, 18},      {3, "q4_1", 32, 20}, {8, "q8_0", 32, 34},
                 {12, "q4_k", 256, 144}, {14, "q6_k", 256, 210}, {23, "iq4_xs", 256, 136}, {30, "bf16", 1, 2},  {39, "mxfp4", 32, 17}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const weir_type_info *t = weir_type_any(known[i].type);
        assert_non_null(t);
        assert_string_equal(t->name, known[i].name);
        assert_int_equal(t->block, known[i].block);
        assert_int_equal(t->bytes, known[i].bytes);
    }
}

static void numbers_that_are_no_type_have_no_name(void **state) {
    (void)state;
    static const int wrong[] = {-1, 4, 5, 31, 32, 33, 36, 38, 40, 1 << 30};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_null(weir_type_any(wrong[i]));
}

static void only_types_with_kernels_are_runnable(void **state) {
    (void)state;
#define ROW(type, name) [WEIR_##type] = true,
    static const bool runnable[WEIR_TYPES] = {WEIR_TYPES_FLOAT(ROW) WEIR_TYPES_BLOCKS(ROW)};
#undef ROW
    for (int type = 0; type < WEIR_TYPES; type++)
        assert_int_equal(weir_type_get(type) != NULL, runnable[type]);
}

static void packed_sizes_count_whole_panels(void **state) {
    (void)state;
    assert_int_equal(weir_packed_size(WEIR_Q4_1, 16, 32), 320);
    assert_int_equal(weir_packed_size(WEIR_Q4_1, 17, 64), 4 * 320);
    assert_int_equal(weir_packed_size(WEIR_Q8_0, 1, 32), 576);
    assert_int_equal(weir_packed_size(WEIR_F16, 1, 3), 128);
    assert_int_equal(weir_packed_size(WEIR_F32, 33, 5), 3 * 5 * 64);
    assert_int_equal(weir_act_size(32, 576), 18 * 48);
}

static void impossible_packed_sizes_are_zero(void **state) {
    (void)state;
    assert_int_equal(weir_packed_size(WEIR_Q4_1, 16, 33), 0);
    assert_int_equal(weir_packed_size(WEIR_Q4_1, 0, 32), 0);
    assert_int_equal(weir_packed_size(WEIR_Q4_1, 16, -32), 0);
    assert_int_equal(weir_packed_size(9, 16, 32), 0);
    assert_int_equal(weir_packed_size(WEIR_F32, INT64_MAX, INT64_MAX), 0);
    assert_int_equal(weir_packed_size(WEIR_F32, INT64_MAX / 4, 64), 0);
}

static void every_kernel_has_a_name_and_a_size(void **state) {
    (void)state;
    for (int i = 0; i < WEIR_KERNEL_COUNT; i++) {
        assert_non_null(weir_kernel_name(i));
        assert_true(weir_kernel_args_size(i) > 0 && weir_kernel_args_size(i) <= WEIR_KERNEL_MAX_ARGS);
    }
    assert_null(weir_kernel_name(WEIR_KERNEL_COUNT));
    assert_int_equal(weir_kernel_args_size(-1), 0);
    assert_string_equal(weir_kernel_name(WEIR_K_attention_merge), "attention_merge");
}

static void levels_are_found_by_name_and_generic_always_runs(void **state) {
    (void)state;
    for (int i = 0; i < WEIR_CPU_LEVELS; i++)
        assert_int_equal(weir_cpu_level_find(weir_cpu_level_name(i)), i);
    assert_int_equal(weir_cpu_level_find("sse9"), -1);
    assert_true(weir_cpu_level_runs(WEIR_CPU_GENERIC));
    assert_true(weir_cpu_level_runs(weir_cpu_level_best()));
    assert_null(weir_cpu_table_get(WEIR_CPU_LEVELS));
    assert_false(weir_cpu_level_runs(-1));
}

static void every_level_that_runs_has_every_kernel(void **state) {
    need_level(state);
    for (int k = 0; k < WEIR_KERNEL_COUNT; k++)
        assert_non_null(weir_cpu_table_get(level_of(state))->run[k]);
}

static const char *refusal(int kernel, const void *args) {
    return weir_cpu_table_get(WEIR_CPU_GENERIC)->check(kernel, args);
}

static void weights_of_unknown_types_and_broken_rows_are_refused(void **state) {
    (void)state;
    float x[64], y[64];
    weir_k_matmul a = {.w = {NULL, 0, 9, 16, 32}, .x = x, .ldx = 64, .y = y, .ldy = 64};
    assert_non_null(strstr(refusal(WEIR_K_matmul, &a), "weight type"));
    a.w.type = WEIR_Q4_1;
    a.w.k = 33;
    assert_non_null(strstr(refusal(WEIR_K_matmul, &a), "multiple"));
    a.w.k = 32;
    assert_null(refusal(WEIR_K_matmul, &a));
    a.ldx = 31;
    assert_non_null(refusal(WEIR_K_matmul, &a));
    a.x = NULL;
    assert_non_null(refusal(WEIR_K_matmul, &a));
}

static void conversions_that_do_not_exist_are_refused(void **state) {
    (void)state;
    weir_k_pack a = {NULL, {NULL, 0, WEIR_Q4_0, 16, 64}, 0, 0, WEIR_F32, 0};
    assert_null(refusal(WEIR_K_pack, &a));
    a.source_type = WEIR_Q4_K;
    assert_non_null(strstr(refusal(WEIR_K_pack, &a), "source type's block"));
    a.source_type = 24; /* i8 */
    assert_non_null(strstr(refusal(WEIR_K_pack, &a), "not made"));
    a.source_type = WEIR_F32;
    a.w.type = WEIR_IQ4_NL;
    assert_non_null(strstr(refusal(WEIR_K_pack, &a), "not made"));
    weir_k_pack_vector v = {NULL, {NULL, 0, WEIR_Q8_0, 1, 32}, 0, 0, 0};
    assert_non_null(strstr(refusal(WEIR_K_pack_vector, &v), "bf16"));
    v = (weir_k_pack_vector){NULL, {NULL, 0, WEIR_BF16, 1, 32}, 4, 16, 0};
    assert_non_null(strstr(refusal(WEIR_K_pack_vector, &v), "within a head"));
}

static void odd_rotary_dimensions_are_refused(void **state) {
    (void)state;
    double frequency[4] = {1};
    weir_k_rope_table t = {.positions = 1, .dim = 7, .frequency = frequency, .scale = 1};
    assert_non_null(refusal(WEIR_K_rope_table, &t));
    t.dim = 8;
    assert_null(refusal(WEIR_K_rope_table, &t));
    t.frequency = NULL;
    assert_non_null(refusal(WEIR_K_rope_table, &t));
    weir_k_rope_store s = {.rope_dim = 8, .kv = {NULL, NULL, WEIR_F16, 2, 4, 0}};
    assert_non_null(refusal(WEIR_K_rope_store, &s));
}

static void activations_need_widths_of_whole_blocks(void **state) {
    (void)state;
    int acts;
    weir_k_rmsnorm n = {.width = 48, .acts = &acts};
    assert_non_null(refusal(WEIR_K_rmsnorm, &n));
    n.acts = NULL;
    assert_null(refusal(WEIR_K_rmsnorm, &n));
    float partial;
    weir_k_attention a = {
        .heads = 3, .splits = 1, .kv = {NULL, NULL, WEIR_F16, 1, 8, 0}, .partial = &partial, .acts = &acts, .acts_block = 32};
    assert_non_null(refusal(WEIR_K_attention, &a));
    a.heads = 4;
    assert_null(refusal(WEIR_K_attention, &a));
    a.kv.kv_heads = 3;
    assert_non_null(strstr(refusal(WEIR_K_attention_merge, &a), "multiple"));
    a.kv.kv_heads = 1;
    a.kv.dim = 512;
    assert_non_null(refusal(WEIR_K_attention, &a));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_gguf_type_has_a_name_and_the_specified_block),
        cmocka_unit_test(numbers_that_are_no_type_have_no_name),
        cmocka_unit_test(only_types_with_kernels_are_runnable),
        cmocka_unit_test(packed_sizes_count_whole_panels),
        cmocka_unit_test(impossible_packed_sizes_are_zero),
        cmocka_unit_test(every_kernel_has_a_name_and_a_size),
        cmocka_unit_test(levels_are_found_by_name_and_generic_always_runs),
        EACH_LEVEL(every_level_that_runs_has_every_kernel),
        cmocka_unit_test(weights_of_unknown_types_and_broken_rows_are_refused),
        cmocka_unit_test(conversions_that_do_not_exist_are_refused),
        cmocka_unit_test(odd_rotary_dimensions_are_refused),
        cmocka_unit_test(activations_need_widths_of_whole_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
