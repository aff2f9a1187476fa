/* matmul: the bits of the literal reference, at every level, for any number of rows and threads. */
#include "helper_reference.h"

#include <math.h>

/* One product: random weights packed by the level's own kernel, rows of x and their activations. */
typedef struct product_case {
    int level, type, n, k, rows;
    uint8_t *source;
    void *packed, *acts;
    float *x, *y, *want;
    ref_act *ref;
    weir_step step;
    void *base;
    weir_k_matmul args;
} product_case;

static void pack(product_case *c) {
    c->packed = poisoned(weir_packed_size(c->type, c->n, c->k));
    c->base = c->packed;
    weir_weight w = {&c->base, 0, c->type, c->n, c->k};
    weir_k_pack a = {c->source, w, 0, 0, c->type, 0};
    run_kernel(c->level, WEIR_K_pack, &a, 2);
    c->args.w = w;
}

/* Written from the reference; that the kernels make the same ones is tested in test_norm.c. */
static void fill_acts(product_case *c) {
    c->ref = zeroed((size_t)c->rows * (size_t)(c->k / 32) * sizeof *c->ref);
    c->acts = zeroed((size_t)c->rows * weir_act_size(32, c->k));
    ref_quantise(c->x, c->rows * c->k, c->ref);
    act_block *a = c->acts;
    for (int i = 0; i < c->rows * c->k / 32; i++) {
        a[i] = (act_block){.d = c->ref[i].d, .s = c->ref[i].s, .sum = c->ref[i].sum, .off = -128 * c->ref[i].sum};
        for (int j = 0; j < 32; j++)
            a[i].q[j] = (int8_t)c->ref[i].q[j];
    }
}

static void open_case(product_case *c, rng *r, int level, int type, int n, int k, int rows) {
    *c = (product_case){.level = level, .type = type, .n = n, .k = k, .rows = rows};
    c->source = ref_random_weights(r, type, n, k);
    pack(c);
    c->x = zeroed((size_t)(rows * k) * sizeof *c->x);
    for (int i = 0; i < rows * k; i++)
        c->x[i] = rng_normal(r) * (rng_below(r, 50) ? 1.0f : 20.0f);
    if (k % 32 == 0)
        fill_acts(c);
    c->y = poisoned((size_t)(rows * n) * sizeof *c->y);
    c->want = zeroed((size_t)(rows * n) * sizeof *c->want);
    c->step = (weir_step){.rows = rows, .tile = rows, .tile_rows = rows, .out_rows = rows};
    c->args = (weir_k_matmul){.step = &c->step, .w = c->args.w, .x = c->x, .acts = c->acts, .ldx = k, .y = c->y, .ldy = n};
}

/* After a change of source or x. */
static void repack(product_case *c) {
    weir_k_matmul args = c->args;
    free(c->packed);
    free(c->acts);
    free(c->ref);
    pack(c);
    fill_acts(c);
    args.w = c->args.w;
    args.acts = c->acts;
    c->args = args;
}

static void close_case(product_case *c) {
    free(c->source);
    free(c->packed);
    free(c->acts);
    free(c->x);
    free(c->y);
    free(c->want);
    free(c->ref);
}

static void reference(product_case *c, bool integer) {
    for (int r = 0; r < c->rows; r++)
        for (int j = 0; j < c->n; j++) {
            const uint8_t *row = c->source + (size_t)j * ref_row_bytes(c->type, c->k);
            c->want[r * c->n + j] = integer ? ref_product_int(c->type, row, c->k, c->ref + r * (c->k / 32))
                                            : ref_product_float(c->type, row, c->k, c->x + r * c->k);
        }
}

/* Runs with 1..4 threads and compares all outputs. */
static void compare(product_case *c, bool integer) {
    char what[96];
    c->args.acts = integer ? c->acts : NULL;
    c->args.w.base = (void *const *)&c->base;
    reference(c, integer);
    for (unsigned workers = 1; workers <= 4; workers++) {
        memset(c->y, 0xff, (size_t)(c->rows * c->n) * sizeof *c->y);
        run_kernel(c->level, WEIR_K_matmul, &c->args, workers);
        snprintf(what, sizeof what, "%s %s [%d][%d] x %d rows, %u threads", weir_type_get(c->type)->name, integer ? "int8" : "float", c->n,
                 c->k, c->rows, workers);
        assert_same_bits(c->y, c->want, (size_t)(c->rows * c->n), what);
    }
}

/* Every number up to 17, a whole block of rows and one more. */
static const int row_counts[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 64, 65};
#define ROW_COUNTS (int)(sizeof row_counts / sizeof *row_counts)

static void compare_all_rows(int level, int type, int n, int k, bool integer) {
    rng r = {(uint64_t)(n * 1000 + k)};
    for (int i = 0; i < ROW_COUNTS; i++) {
        product_case c;
        open_case(&c, &r, level, type, n, k, row_counts[i]);
        compare(&c, integer);
        close_case(&c);
    }
}

/* Types with products of int8 activations in blocks of 32. */
static bool has_acts_of_32(int type) {
    return weir_type_get(type) && weir_type_get(type)->acts == 32;
}

/* Each level's table is called directly, not through a dispatcher that would pick another one. Odd block counts, outputs that fill no panel. */
static void kernels_I1_integer_products_have_the_bits_of_the_reference(void **state) {
    need_level(state);
    static const int shapes[][2] = {{16, 32}, {50, 160}, {3, 64}};
    for (int type = 0; type < WEIR_TYPES; type++)
        for (int i = 0; i < 3 && has_acts_of_32(type); i++)
            compare_all_rows(level_of(state), type, shapes[i][0], shapes[i][1], true);
    compare_all_rows(level_of(state), WEIR_Q4_1, 97, 288, true);
}

static bool has_reference(int type) {
    const weir_type_info *t = weir_type_get(type);
    return t && (t->block == 1 || t->acts == 32);
}

static void float_products_have_the_bits_of_the_reference(void **state) {
    need_level(state);
    for (int type = 0; type < WEIR_TYPES; type++) {
        if (!has_reference(type))
            continue;
        compare_all_rows(level_of(state), type, 50, 96, false);
        if (weir_type_get(type)->block == 1)
            compare_all_rows(level_of(state), type, 33, 21, false);
    }
}

/* Longer than the pieces of k whose widened panels are kept in cache. */
static void float_products_of_long_rows_have_the_bits_of_the_reference(void **state) {
    need_level(state);
    for (int type = 0; type < WEIR_TYPES; type++) {
        if (!has_reference(type))
            continue;
        for (int rows = 1; rows <= 14; rows += 13) {
            rng r = {31};
            product_case c;
            open_case(&c, &r, level_of(state), type, 40, weir_type_get(type)->block == 1 ? 601 : 608, rows);
            compare(&c, false);
            close_case(&c);
        }
    }
}

/* One row is cut into large and small shares: none is left out, none goes beyond the last panel. */
static void one_row_of_many_panels_is_shared_out_whole(void **state) {
    need_level(state);
    static const int outputs[] = {500, 1203, 2032};
    for (int i = 0; i < 3; i++) {
        rng r = {29};
        product_case c;
        open_case(&c, &r, level_of(state), WEIR_Q4_1, outputs[i], 32, 1);
        compare(&c, true);
        close_case(&c);
    }
}

/* Every code at its end, every activation at +-127: sums that would saturate 16 bits. */
static void kernels_I3_the_largest_sums_are_exact(void **state) {
    need_level(state);
    static const uint8_t patterns[] = {0x80, 0x7f, 0xff, 0xf0, 0x00};
    for (int type = 0; type < WEIR_TYPES; type++)
        for (int i = 0; i < 5 && has_acts_of_32(type); i++) {
            rng r = {7};
            product_case c;
            open_case(&c, &r, level_of(state), type, 16, 1536, 3);
            size_t bytes = weir_type_get(type)->bytes, scales = type == WEIR_MXFP4 ? 1 : type == WEIR_Q4_1 || type == WEIR_Q5_1 ? 4 : 2;
            for (size_t b = 0; b < 16 * 48; b++)
                memset(c.source + b * bytes + scales, patterns[i], bytes - scales);
            for (int j = 0; j < c.rows * c.k; j++)
                c.x[j] = j % 1536 < 700 ? 3.0f : -3.0f;
            repack(&c);
            compare(&c, true);
            close_case(&c);
        }
}

/* The value itself, not only the bits: one row and many rows of a 4-bit type with minima are within the rounding of the activations. */
static void kernels_I7_one_row_is_as_right_as_many(void **state) {
    need_level(state);
    for (int rows = 1; rows <= 9; rows += 8) {
        rng r = {11};
        product_case c;
        open_case(&c, &r, level_of(state), WEIR_Q4_1, 64, 576, rows);
        run_kernel(c.level, WEIR_K_matmul, &c.args, 2);
        double error = 0, size = 0;
        for (int i = 0; i < rows * 64; i++) {
            double exact = 0;
            for (int k = 0; k < 576; k++)
                exact += (double)c.x[i / 64 * 576 + k] *
                         (double)ref_value(WEIR_Q4_1, c.source + (size_t)(i % 64) * ref_row_bytes(WEIR_Q4_1, 576), k);
            error += fabs((double)c.y[i] - exact);
            size += fabs(exact);
        }
        assert_true(error < 0.03 * size);
        close_case(&c);
    }
}

static void add_adds_and_rows_are_addressed_as_asked(void **state) {
    need_level(state);
    rng r = {13};
    product_case c;
    open_case(&c, &r, level_of(state), WEIR_Q4_1, 40, 64, 5);
    float *y = zeroed(12 * 48 * sizeof *y), *before = zeroed(12 * 48 * sizeof *y);
    for (int i = 0; i < 12 * 48; i++)
        y[i] = before[i] = rng_normal(&r);
    c.step.tile_first = 6;
    c.args.y = y;
    c.args.ldy = 48;
    c.args.y_rows = WEIR_ROWS_PASS;
    c.args.add = 1;
    run_kernel(c.level, WEIR_K_matmul, &c.args, 2);
    reference(&c, true);
    for (int row = 0; row < 12; row++)
        for (int j = 0; j < 48; j++)
            if (row >= 6 && row < 11 && j < 40)
                before[row * 48 + j] = before[row * 48 + j] + c.want[(row - 6) * 40 + j];
    assert_same_bits(y, before, 12 * 48, "pass rows");
    free(y);
    free(before);
    close_case(&c);
}

/* The blob of a matrix with its bias behind it. */
static float *append_bias(product_case *c, rng *r) {
    size_t size = weir_packed_size(c->type, c->n, c->k);
    uint8_t *blob = poisoned(size + (size_t)c->n * 4);
    memcpy(blob, c->packed, size);
    free(c->packed);
    c->packed = c->base = blob;
    float *bias = (float *)(void *)(blob + size);
    for (int j = 0; j < c->n; j++)
        bias[j] = rng_normal(r);
    c->args.bias = 1;
    c->args.bias_offset = size;
    return bias;
}

/* The product, plus the bias, then y plus that: one rounding each. */
static void check_bias(int level, int type, int n, int k, int rows, bool add) {
    rng r = {(uint64_t)(n + rows)};
    product_case c;
    char what[64];
    open_case(&c, &r, level, type, n, k, rows);
    float *bias = append_bias(&c, &r), *before = zeroed((size_t)(rows * n) * 4);
    bool integer = weir_type_get(type)->acts && c.acts;
    c.args.w.base = (void *const *)&c.base;
    c.args.acts = integer ? c.acts : NULL;
    c.args.add = add;
    reference(&c, integer);
    for (int i = 0; i < rows * n; i++) {
        before[i] = rng_normal(&r);
        c.want[i] = c.want[i] + bias[i % n];
        c.want[i] = add ? before[i] + c.want[i] : c.want[i];
    }
    for (unsigned workers = 1; workers <= 4; workers++) {
        memcpy(c.y, before, (size_t)(rows * n) * 4);
        run_kernel(level, WEIR_K_matmul, &c.args, workers);
        snprintf(what, sizeof what, "%s [%d][%d] x %d rows with a bias", weir_type_get(type)->name, n, k, rows);
        assert_same_bits(c.y, c.want, (size_t)(rows * n), what);
    }
    free(before);
    close_case(&c);
}

static void a_bias_is_added_to_the_product_first(void **state) {
    need_level(state);
    static const int rows[] = {1, 2, 9, 65};
    for (int i = 0; i < 4; i++)
        for (int add = 0; add < 2; add++) {
            check_bias(level_of(state), WEIR_Q4_1, 50, 64, rows[i], add);
            check_bias(level_of(state), WEIR_Q8_0, 160, 64, rows[i], add);
            check_bias(level_of(state), WEIR_F16, 33, 21, rows[i], add);
            check_bias(level_of(state), WEIR_F32, 7, 5, rows[i], add);
        }
}

static void output_rows_run_over_the_output_tile(void **state) {
    need_level(state);
    rng r = {17};
    product_case c;
    open_case(&c, &r, level_of(state), WEIR_Q8_0, 32, 64, 3);
    c.step.tile_rows = 0;
    c.args.rows = c.args.y_rows = WEIR_ROWS_OUT;
    compare(&c, true);
    close_case(&c);
}

static void a_tile_without_rows_writes_nothing(void **state) {
    need_level(state);
    rng r = {19};
    product_case c;
    open_case(&c, &r, level_of(state), WEIR_F16, 32, 64, 1);
    c.step.tile_rows = 0;
    run_kernel(c.level, WEIR_K_matmul, &c.args, 2);
    for (int i = 0; i < 32; i++)
        assert_true(isnan(c.y[i]));
    close_case(&c);
}

/* Scales that no quantiser writes: infinities, NaNs, the least and the largest. Nothing traps; what is a number in the reference is the same here. */
static void hostile_scales_give_what_the_reference_gives(void **state) {
    need_level(state);
    static const uint16_t scales[] = {0x7c00, 0xfc00, 0x7e00, 0x7c01, 0x0001, 0x8001, 0x7bff, 0xfbff, 0, 0x8000};
    for (int type = 0; type < WEIR_TYPES; type++) {
        if (!has_acts_of_32(type))
            continue;
        rng r = {23};
        product_case c;
        open_case(&c, &r, level_of(state), type, 48, 96, 9);
        size_t bytes = weir_type_get(type)->bytes;
        for (size_t b = 0; b < 48 * 3; b++)
            if (type == WEIR_MXFP4)
                c.source[b * bytes] = (uint8_t[]){0, 1, 2, 3, 127, 253, 254, 255}[rng_below(&r, 8)];
            else
                for (size_t i = 0; i < (type == WEIR_Q4_1 || type == WEIR_Q5_1 ? 2 : 1); i++)
                    memcpy(c.source + b * bytes + 2 * i, &scales[rng_below(&r, 10)], 2);
        repack(&c);
        compare(&c, true);
        compare(&c, false);
        close_case(&c);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        EACH_LEVEL(kernels_I1_integer_products_have_the_bits_of_the_reference),
        EACH_LEVEL(float_products_have_the_bits_of_the_reference),
        EACH_LEVEL(float_products_of_long_rows_have_the_bits_of_the_reference),
        EACH_LEVEL(one_row_of_many_panels_is_shared_out_whole),
        EACH_LEVEL(kernels_I3_the_largest_sums_are_exact),
        EACH_LEVEL(kernels_I7_one_row_is_as_right_as_many),
        EACH_LEVEL(add_adds_and_rows_are_addressed_as_asked),
        EACH_LEVEL(a_bias_is_added_to_the_product_first),
        EACH_LEVEL(output_rows_run_over_the_output_tile),
        EACH_LEVEL(a_tile_without_rows_writes_nothing),
        EACH_LEVEL(hostile_scales_give_what_the_reference_gives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
