/* Blocks of every weight type against the reference's values, and values against the reference's blocks. */
#include "helper_kernels.h"

#include <ctype.h>
#include <math.h>

static tensors data;

static int setup(void **state) {
    (void)state;
    const char *whole = weir_test_reference("vectors/quants.safetensors");
    data = tensors_open(whole ? whole : WEIR_TEST_DATA "/quants.safetensors");
    return 0;
}

static int teardown(void **state) {
    (void)state;
    tensors_close(&data);
    return 0;
}

static tensor named(const char *before, const char *type, const char *after) {
    char name[64];
    snprintf(name, sizeof name, "%s%s%s", before, type, after);
    for (char *at = name + strlen(before); *at && *at != '.'; at++)
        *at = (char)toupper((unsigned char)*at);
    return tensors_get(&data, name);
}

static void values_of_every_type_are_the_reference_s(void **state) {
    (void)state;
    int seen = 0;
    for (int type = 0; type < WEIR_TYPES; type++) {
        if (!weir_type_reads(type) || type == WEIR_F32)
            continue;
        const weir_type_info *info = weir_type_any(type);
        tensor bytes = named("", info->name, ".bytes"), values = named("", info->name, ".values");
        if (!bytes.data)
            fail_msg("no blocks of %s", info->name);
        int64_t k = (int64_t)(bytes.bytes / info->bytes * info->block);
        assert_int_equal(values.bytes, (size_t)k * sizeof(float));
        float *got = zeroed((size_t)k * sizeof *got), *want = zeroed((size_t)k * sizeof *want);
        memcpy(want, values.data, values.bytes);
        weir_dequantise(type, bytes.data, k, got);
        assert_same_bits(got, want, (size_t)k, info->name);
        free(got);
        free(want);
        seen++;
    }
    assert_int_equal(seen, 15);
}

static void quantised_bytes_are_the_reference_s(void **state) {
    (void)state;
    tensor input = tensors_get(&data, "quantize.input");
    int64_t k = (int64_t)(input.bytes / sizeof(float));
    float *x = zeroed(input.bytes);
    int seen = 0;
    memcpy(x, input.data, input.bytes);
    for (int type = 0; type < WEIR_TYPES; type++) {
        tensor want = weir_type_writes(type) ? named("quantize.", weir_type_any(type)->name, "") : (tensor){0};
        if (!want.data)
            continue;
        uint8_t *got = zeroed(want.bytes);
        weir_quantise(type, x, k, got);
        assert_memory_equal(got, want.data, want.bytes);
        free(got);
        seen++;
    }
    assert_int_equal(seen, 5);
    free(x);
}

/* What reading gives is written back as the same bytes. */
static void floats_of_two_bytes_survive(void **state) {
    (void)state;
    static const int types[] = {WEIR_F16, WEIR_BF16};
    for (int i = 0; i < 2; i++) {
        tensor bytes = named("", weir_type_any(types[i])->name, ".bytes");
        int64_t k = (int64_t)bytes.bytes / 2;
        float *x = zeroed((size_t)k * sizeof *x);
        uint8_t *back = zeroed(bytes.bytes);
        weir_dequantise(types[i], bytes.data, k, x);
        weir_quantise(types[i], x, k, back);
        assert_memory_equal(back, bytes.data, bytes.bytes);
        free(x);
        free(back);
    }
}

/* No number, infinite, huge and empty blocks are written without undefined conversions, and 0 stays 0. */
static void blocks_without_a_finite_scale_are_written(void **state) {
    (void)state;
    static const float odd[] = {0, NAN, INFINITY, -INFINITY, 3e38f, -3e38f, 1e-45f};
    for (int type = 0; type < WEIR_TYPES; type++)
        for (size_t i = 0; i < sizeof odd / sizeof *odd && weir_type_writes(type); i++) {
            float x[32] = {0, 1, -1}, back[32];
            uint8_t block[128];
            for (int j = 3; j < 32; j++)
                x[j] = odd[i];
            if (i == 0)
                x[1] = x[2] = 0;
            weir_quantise(type, x, 32, block);
            weir_dequantise(type, block, 32, back);
            for (int j = 0; j < 32 && i == 0; j++)
                assert_true(back[j] == 0);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_of_every_type_are_the_reference_s),
        cmocka_unit_test(quantised_bytes_are_the_reference_s),
        cmocka_unit_test(floats_of_two_bytes_survive),
        cmocka_unit_test(blocks_without_a_finite_scale_are_written),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
