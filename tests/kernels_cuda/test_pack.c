/* Packing: where every value lies, GGUF's order of rotary rows undone, float types made of one another, sources at any address. */
#include "launch.h"

static float value_at(int type, const void *packed, int n, int k, int row, int i) {
    size_t rows = (size_t)(n + 15) / 16 * 16, at = (size_t)row * (size_t)k + (size_t)i, block = at / 32;
    const uint8_t *bytes = packed;
    if (type == WEIR_Q8_0) {
        const uint16_t *d = (const uint16_t *)(const void *)(bytes + rows * (size_t)k);
        return ref_from_f16(d[block]) * (float)(int8_t)bytes[at];
    }
    if (type == WEIR_Q4_0 || type == WEIR_Q4_1) {
        int code = bytes[block * 16 + (size_t)(i % 16)] >> (i % 32 < 16 ? 0 : 4) & 15;
        const uint16_t *d = (const uint16_t *)(const void *)(bytes + rows * (size_t)k / 2);
        if (type == WEIR_Q4_0)
            return ref_from_f16(d[block]) * (float)(code - 8);
        float product = ref_from_f16(d[2 * block]) * (float)code;
        return product + ref_from_f16(d[2 * block + 1]);
    }
    float value;
    weir_dequantise(type, bytes + at * (type == WEIR_F32 ? 4 : 2), 1, &value);
    return value;
}

static int source_row(int heads, int rope_dim, int n, int row) {
    if (!heads)
        return row;
    int dim = n / heads, j = row % dim;
    return j >= rope_dim ? row : row - j + j % (rope_dim / 2) * 2 + j / (rope_dim / 2);
}

static void check_pack(int type, int n, int k, int heads, int rope_dim) {
    rng r = {(uint64_t)(n + type)};
    int weir = launch_weir_type[type];
    uint8_t *file = launch_weights(&r, type, n, k);
    size_t bytes = ref_row_bytes(weir, k) * (size_t)n;
    uint8_t *odd = (uint8_t *)zeros(bytes + 1) + 1;
    memcpy(odd, file, bytes);
    void *packed = launch_packed(type, odd, weir, n, k, heads, rope_dim);
    for (int row = 0; row < (n + 15) / 16 * 16; row++)
        for (int i = 0; i < k; i++) {
            float got = value_at(weir, packed, n, k, row, i), want = 0;
            if (row < n)
                want = ref_value(weir, file + (size_t)source_row(heads, rope_dim, n, row) * ref_row_bytes(weir, k), i);
            assert_float_equal(got, want, 0);
        }
}

static void pack_puts_every_value_where_the_layout_says(void **state) {
    (void)state;
    for (int type = 0; type < LAUNCH_TYPES; type++) {
        check_pack(type, 16, 64, 0, 0);
        check_pack(type, 5, 576, 0, 0);
        check_pack(type, 37, 32, 0, 0);
    }
    check_pack(LAUNCH_bf16, 3, 7, 0, 0);
}

static void pack_undoes_ggufs_order_of_rotary_rows(void **state) {
    (void)state;
    for (int type = 0; type < LAUNCH_TYPES; type++) {
        check_pack(type, 48, 32, 3, 16);
        check_pack(type, 36, 32, 3, 8);
    }
}

static void pack_makes_float_types_of_one_another_as_the_cpu_does(void **state) {
    (void)state;
    enum { N = 3, K = 40 };
    const int types[] = {LAUNCH_f32, LAUNCH_f16, LAUNCH_bf16};
    rng r = {11};
    for (int from = 0; from < 3; from++)
        for (int to = 0; to < 3; to++) {
            int source = launch_weir_type[types[from]], target = launch_weir_type[types[to]];
            float values[N * K];
            uint8_t *file = zeros(N * K * ref_row_bytes(source, 1)), want[N * K * 4];
            for (int i = 0; i < N * K; i++)
                values[i] = i == 7 ? 1e30f : i == 8 ? 3e-6f : rng_normal(&r);
            weir_quantise(source, values, N * K, file);
            weir_dequantise(source, file, N * K, values);
            weir_quantise(target, values, N * K, want);
            void *packed = launch_packed(types[to], file, source, N, K, 0, 0);
            assert_memory_equal(packed, want, (size_t)(N * K) * (target == WEIR_F32 ? 4 : 2));
        }
}

static void pack_vector_widens_permutes_and_adds_as_on_the_cpu(void **state) {
    (void)state;
    enum { K = 600 };
    const int types[] = {WEIR_F32, WEIR_F16, WEIR_BF16};
    rng r = {12};
    for (int i = 0; i < 3; i++)
        for (int heads = 0; heads <= 10; heads += 5) {
            float values[K], want[K], *got = nans(sizeof want);
            uint8_t *source = zeros(K * ref_row_bytes(types[i], 1));
            void *to = got, *cpu = want;
            for (int j = 0; j < K; j++)
                values[j] = rng_normal(&r);
            weir_quantise(types[i], values, K, source);
            weir_k_pack_vector a = {source, {&cpu, 0, types[i], 1, K}, heads, 30, 1.0f};
            run_kernel(WEIR_CPU_GENERIC, WEIR_K_pack_vector, &a, 1);
            launch l = {.x = WEIR_CUDA_DIV(K, WEIR_CUDA_MAP_THREADS), .threads = WEIR_CUDA_MAP_THREADS};
            run_weir_pack_vector(l, source, types[i], &to, 0, K, heads, 30, 1.0f);
            assert_same_bits(got, want, K, "vector");
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        launch_test(pack_puts_every_value_where_the_layout_says),
        launch_test(pack_undoes_ggufs_order_of_rotary_rows),
        launch_test(pack_makes_float_types_of_one_another_as_the_cpu_does),
        launch_test(pack_vector_widens_permutes_and_adds_as_on_the_cpu),
    };
    return cmocka_run_group_tests(tests, launch_open, launch_close);
}
