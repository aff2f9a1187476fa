/* pack, pack_vector, embed: the layout byte by byte, the exact values of the reference's blocks, GGUF's rotary order. */
#include "helper_reference.h"

#include <ctype.h>
#include <math.h>

/* Packs n rows of k values; rope_heads as in weir_k_pack. free(). */
static void *packed(int level, int type, const void *source, int n, int k, int rope_heads, int rope_dim) {
    void *p = poisoned(weir_packed_size(type, n, k)), *base = p;
    weir_k_pack a = {source, {&base, 0, type, n, k}, rope_heads, rope_dim, type, 0};
    run_kernel(level, WEIR_K_pack, &a, 3);
    return p;
}

static void q4_1_panels_lie_as_drawn(void **state) {
    need_level(state);
    rng r = {1};
    uint8_t *w = ref_random_weights(&r, WEIR_Q4_1, 32, 96);
    const uint8_t *p = packed(level_of(state), WEIR_Q4_1, w, 32, 96, 0, 0);
    for (int row = 0; row < 32; row++)
        for (int b = 0; b < 3; b++) {
            const uint8_t *block = w + row * 60 + b * 20, *panel = p + (row / 16 * 3 + b) * 320;
            assert_memory_equal(panel + row % 16 * 2, block, 2);
            assert_memory_equal(panel + 32 + row % 16 * 2, block + 2, 2);
            for (int i = 0; i < 16; i++)
                assert_int_equal(panel[64 + i / 4 * 64 + row % 16 * 4 + i % 4], block[4 + i]);
        }
    free(w);
    free((void *)(uintptr_t)p);
}

static void q8_0_panels_lie_as_drawn(void **state) {
    need_level(state);
    rng r = {2};
    uint8_t *w = ref_random_weights(&r, WEIR_Q8_0, 16, 64);
    const uint8_t *p = packed(level_of(state), WEIR_Q8_0, w, 16, 64, 0, 0);
    for (int row = 0; row < 16; row++)
        for (int b = 0; b < 2; b++) {
            const uint8_t *block = w + row * 68 + b * 34, *panel = p + b * 544;
            assert_memory_equal(panel + row * 2, block, 2);
            for (int i = 0; i < 32; i++)
                assert_int_equal(panel[32 + i / 4 * 64 + row * 4 + i % 4], block[2 + i]);
        }
    free(w);
    free((void *)(uintptr_t)p);
}

static void rows_beyond_the_last_are_zero(void **state) {
    need_level(state);
    float w[17 * 3];
    for (int i = 0; i < 51; i++)
        w[i] = (float)i + 1;
    float *p = packed(level_of(state), WEIR_F32, w, 17, 3, 0, 0);
    for (int row = 0; row < 32; row++)
        for (int k = 0; k < 3; k++)
            assert_true(p[row / 16 * 48 + k * 16 + row % 16] == (row < 17 ? w[row * 3 + k] : 0.0f));
    free(p);
}

static void adjacent_rotary_pairs_become_half_split(void **state) {
    need_level(state);
    float w[2 * 10]; /* 2 heads of 10, of which 8 are rotated: 0 1 2 3 4 5 6 7 | 8 9 */
    for (int i = 0; i < 20; i++)
        w[i] = (float)i;
    static const int from[10] = {0, 2, 4, 6, 1, 3, 5, 7, 8, 9};
    float *p = packed(level_of(state), WEIR_F32, w, 20, 1, 2, 8);
    for (int row = 0; row < 20; row++)
        assert_true(p[row / 16 * 16 + row % 16] == (float)(row / 10 * 10 + from[row % 10]));
    free(p);
}

static void vectors_are_widened(void **state) {
    need_level(state);
    const uint16_t halves[3] = {0x3c00, 0xc000, 0x0001}, brains[3] = {0x3f80, 0xc000, 0x0001};
    const float floats[3] = {1.5f, -2, 3};
    float to[4] = {0};
    void *base = to;
    weir_k_pack_vector a = {halves, {&base, 4, WEIR_F16, 1, 3}, 0, 0, 0};
    run_kernel(level_of(state), WEIR_K_pack_vector, &a, 2);
    assert_true(to[0] == 0 && to[1] == 1 && to[2] == -2 && to[3] == 0x1p-24f);
    a = (weir_k_pack_vector){brains, {&base, 0, WEIR_BF16, 1, 3}, 0, 0, 0};
    run_kernel(level_of(state), WEIR_K_pack_vector, &a, 2);
    assert_true(to[0] == 1 && to[1] == -2 && to[2] == 0x1p-133f);
    a = (weir_k_pack_vector){floats, {&base, 0, WEIR_F32, 1, 3}, 0, 0, 0};
    run_kernel(level_of(state), WEIR_K_pack_vector, &a, 2);
    assert_memory_equal(to, floats, sizeof floats);
}

static void vectors_are_added_to_and_put_in_half_split_order(void **state) {
    need_level(state);
    const float floats[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}; /* 2 heads of 6, of which 4 are rotated */
    static const float want[12] = {1, 3, 2, 4, 5, 6, 7, 9, 8, 10, 11, 12};
    float to[12] = {0};
    void *base = to;
    weir_k_pack_vector a = {floats, {&base, 0, WEIR_F32, 1, 12}, 2, 4, 1};
    run_kernel(level_of(state), WEIR_K_pack_vector, &a, 2);
    assert_memory_equal(to, want, sizeof want);
}

/* The same as packing what weir_quantise makes of the values; rows are longer than the pieces that are converted at a time. */
static void a_source_of_another_type_is_quantised_as_it_is_packed(void **state) {
    need_level(state);
    enum { N = 18, K = 288 };
    static const int sources[] = {WEIR_F32, WEIR_F16, WEIR_BF16, WEIR_Q8_0, WEIR_Q4_1, WEIR_MXFP4};
    for (int i = 0; i < 6; i++)
        for (int type = 0; type < WEIR_TYPES; type++) {
            if (!weir_type_writes(type) || !weir_type_get(type) || type == sources[i])
                continue;
            rng r = {5};
            uint8_t *source = ref_random_weights(&r, sources[i], N, K);
            float *values = zeroed(N * K * sizeof *values);
            uint8_t *blocks = zeroed(N * ref_row_bytes(type, K));
            weir_dequantise(sources[i], source, N * K, values);
            weir_quantise(type, values, N * K, blocks);
            void *want = packed(level_of(state), type, blocks, N, K, 3, 4);
            void *got = poisoned(weir_packed_size(type, N, K)), *base = got;
            weir_k_pack a = {source, {&base, 0, type, N, K}, 3, 4, sources[i], 0};
            run_kernel(level_of(state), WEIR_K_pack, &a, 3);
            size_t used = (size_t)2 * K / weir_type_get(type)->block * weir_type_get(type)->panel_bytes;
            assert_memory_equal(got, want, used);
            void *all[] = {source, values, blocks, want, got};
            for (int j = 0; j < 5; j++)
                free(all[j]);
        }
}

static void panels_of_five_bits_lie_as_drawn(void **state) {
    need_level(state);
    rng r = {3};
    uint8_t *w = ref_random_weights(&r, WEIR_Q5_1, 16, 64);
    const uint8_t *p = packed(level_of(state), WEIR_Q5_1, w, 16, 64, 0, 0);
    for (int row = 0; row < 16; row++)
        for (int b = 0; b < 2; b++) {
            const uint8_t *block = w + row * 48 + b * 24, *panel = p + b * 384;
            assert_memory_equal(panel + row * 2, block, 2);
            assert_memory_equal(panel + 32 + row * 2, block + 2, 2);
            for (int i = 0; i < 4; i++)
                assert_int_equal(panel[64 + i * 16 + row], block[4 + i]);
            for (int i = 0; i < 16; i++)
                assert_int_equal(panel[128 + i / 4 * 64 + row * 4 + i % 4], block[8 + i]);
        }
    free(w);
    free((void *)(uintptr_t)p);
}

/* ---- the reference's blocks ---- */

/* A table of the reference's blocks: rows of k values. */
static void check_values(int level, int type, const void *bytes, const float *values, int n, int k) {
    void *p = packed(level, type, bytes, n, k, 0, 0), *base = p;
    weir_weight w = {&base, 0, type, n, k};
    int32_t *token = zeroed((size_t)n * sizeof *token);
    for (int i = 0; i < n; i++)
        token[i] = n - 1 - i;
    float *x = poisoned((size_t)(n * k) * sizeof *x), *y = poisoned((size_t)(k * n) * sizeof *y),
          *unit = zeroed((size_t)(k * k) * sizeof *unit);
    weir_step step = {.rows = n, .tile_rows = n, .token = token};
    weir_k_embed embed = {&step, w, x, 0};
    run_kernel(level, WEIR_K_embed, &embed, 2);
    for (int i = 0; i < n; i++)
        assert_same_bits(x + i * k, values + (n - 1 - i) * k, (size_t)k, "embed");
    for (int i = 0; i < k; i++)
        unit[i * k + i] = 1;
    step.tile_rows = k;
    weir_k_matmul m = {.step = &step, .w = w, .x = unit, .ldx = k, .y = y, .ldy = n};
    run_kernel(level, WEIR_K_matmul, &m, 2);
    for (int i = 0; i < k * n; i++) /* a sum with zeros has no negative zero */
        assert_true(y[i] == values[i % n * k + i / n]);
    free(p);
    free(token);
    free(x);
    free(y);
    free(unit);
}

/* "Q4_1.bytes" */
static void upper(char to[32], const char *type, const char *what) {
    size_t n = strlen(type);
    for (size_t i = 0; i < n; i++)
        to[i] = (char)toupper((unsigned char)type[i]);
    snprintf(to + n, 32 - n, ".%s", what);
}

static void values_of_the_reference_blocks_are_exact(void **state) {
    need_level(state);
    const char *path = weir_test_reference("vectors/quants.safetensors");
    weir_test_need(path, "vectors/quants.safetensors");
    tensors t = tensors_open(path);
    for (int type = 0; type < WEIR_TYPES; type++) {
        const weir_type_info *info = weir_type_get(type);
        if (!info || type == WEIR_F32)
            continue;
        char name[32];
        upper(name, info->name, "bytes");
        tensor bytes = tensors_get(&t, name);
        upper(name, info->name, "values");
        tensor values = tensors_get(&t, name);
        if (!bytes.data || !values.data)
            fail_msg("no %s", name);
        int count = (int)(values.bytes / sizeof(float)), k = info->block == 1 ? count / 8 : 256, n = count / k;
        assert_int_equal(bytes.bytes, (size_t)(n * k) / info->block * info->bytes);
        float *v = malloc(values.bytes);
        assert_non_null(v);
        memcpy(v, values.data, values.bytes);
        check_values(level_of(state), type, bytes.data, v, n, k);
        free(v);
    }
    tensors_close(&t);
}

static void every_half_is_widened_as_defined(void **state) {
    need_level(state);
    enum { K = 4096 };
    uint16_t *h = zeroed(65536 * sizeof *h);
    for (int i = 0; i < 65536; i++)
        h[i] = (uint16_t)i;
    void *p = packed(level_of(state), WEIR_F16, h, 16, K, 0, 0), *base = p;
    float *x = poisoned(65536 * sizeof *x), *want = zeroed(65536 * sizeof *want);
    int32_t token[16];
    for (int i = 0; i < 16; i++)
        token[i] = i;
    weir_step step = {.rows = 16, .tile_rows = 16, .token = token};
    weir_k_embed embed = {&step, {&base, 0, WEIR_F16, 16, K}, x, 0};
    run_kernel(level_of(state), WEIR_K_embed, &embed, 1);
    for (int i = 0; i < 65536; i++)
        want[i] = ref_from_f16(h[i]);
    assert_same_bits(x, want, 65536, "half");
    free(h);
    free(p);
    free(x);
    free(want);
}

static void a_token_outside_the_table_is_a_row_of_zeros(void **state) {
    need_level(state);
    float w[2] = {5, 6}, x[3] = {7, 7, 7};
    void *p = packed(level_of(state), WEIR_F32, w, 2, 1, 0, 0), *base = p;
    const int32_t token[3] = {-1, 1, 2};
    weir_step step = {.rows = 3, .tile_rows = 3, .token = token};
    weir_k_embed embed = {&step, {&base, 0, WEIR_F32, 2, 1}, x, 0};
    run_kernel(level_of(state), WEIR_K_embed, &embed, 1);
    assert_true(x[0] == 0 && x[1] == 6 && x[2] == 0);
    free(p);
}

static void an_embedding_scale_multiplies_every_value_once(void **state) {
    need_level(state);
    enum { K = 21 };
    float source[16 * K], x[2 * K];
    rng r = {31};
    for (int i = 0; i < 16 * K; i++)
        source[i] = rng_normal(&r);
    void *base = poisoned(weir_packed_size(WEIR_F32, 16, K));
    weir_k_pack pack = {source, {&base, 0, WEIR_F32, 16, K}, 0, 0, WEIR_F32, 0};
    run_kernel(level_of(state), WEIR_K_pack, &pack, 1);
    const int32_t token[2] = {5, 16}; /* the second is not there: zeros */
    weir_step step = {.rows = 2, .tile_rows = 2, .token = token};
    weir_k_embed embed = {&step, {&base, 0, WEIR_F32, 16, K}, x, 19.1833f};
    run_kernel(level_of(state), WEIR_K_embed, &embed, 2);
    for (int i = 0; i < K; i++) {
        float want = source[5 * K + i] * 19.1833f;
        assert_same_bits(&x[i], &want, 1, "scaled");
        assert_true(x[K + i] == 0);
    }
    free(base);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        EACH_LEVEL(q4_1_panels_lie_as_drawn),
        EACH_LEVEL(q8_0_panels_lie_as_drawn),
        EACH_LEVEL(rows_beyond_the_last_are_zero),
        EACH_LEVEL(adjacent_rotary_pairs_become_half_split),
        EACH_LEVEL(panels_of_five_bits_lie_as_drawn),
        EACH_LEVEL(vectors_are_widened),
        EACH_LEVEL(vectors_are_added_to_and_put_in_half_split_order),
        EACH_LEVEL(a_source_of_another_type_is_quantised_as_it_is_packed),
        EACH_LEVEL(values_of_the_reference_blocks_are_exact),
        EACH_LEVEL(every_half_is_widened_as_defined),
        EACH_LEVEL(a_token_outside_the_table_is_a_row_of_zeros),
        EACH_LEVEL(an_embedding_scale_multiplies_every_value_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
