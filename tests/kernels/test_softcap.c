/* softcap: the bits of the reference over whole rows, any threads, and nothing beyond them. */
#include "helper_reference.h"

static void compare(int level, int rows, int width, int kind, float cap) {
    rng r = {(uint64_t)(rows * width)};
    size_t n = (size_t)rows * (size_t)width;
    float *x = zeroed((n + 16) * 4), *from = zeroed((n + 16) * 4), *want = zeroed((n + 16) * 4);
    for (size_t i = 0; i < n + 16; i++) {
        from[i] = 60 * rng_normal(&r);
        want[i] = i < n ? ref_softcap(from[i], cap) : from[i];
    }
    weir_step step = {.tile_rows = kind == WEIR_ROWS_TILE ? rows : 77, .out_rows = kind == WEIR_ROWS_OUT ? rows : 77};
    weir_k_softcap a = {.step = &step, .x = x, .width = width, .rows = kind, .cap = cap};
    for (unsigned workers = 1; workers <= 4; workers++) {
        memcpy(x, from, (n + 16) * 4);
        run_kernel(level, WEIR_K_softcap, &a, workers);
        assert_same_bits(x, want, n + 16, "softcap");
    }
    free(x);
    free(from);
    free(want);
}

static void rows_are_capped_with_the_bits_of_the_reference(void **state) {
    need_level(state);
    compare(level_of(state), 1, 49153, WEIR_ROWS_OUT, 30);
    compare(level_of(state), 5, 2048, WEIR_ROWS_TILE, 50);
    compare(level_of(state), 3, 21, WEIR_ROWS_OUT, 0.5f);
    compare(level_of(state), 0, 64, WEIR_ROWS_TILE, 30);
}

int main(void) {
    const struct CMUnitTest tests[] = {EACH_LEVEL(rows_are_capped_with_the_bits_of_the_reference)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
