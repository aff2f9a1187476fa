/* norm.c: RMSNorm, a row a thread, with the row's activation blocks made while it is in cache. */
#include "activation.h"
#include "rms.h"

/* Where one row goes; NULL: not wanted. */
typedef struct norm_out {
    float *y; /* may be x */
    bool add; /* y + norm */
    act_block *acts;
    act_block_k *acts_k;
} norm_out;

/* `width` values from x[first] on, at most 256, in every form that is wanted. */
static void norm_part(const float *x, const float *w, vec16 scale, int first, int width, const norm_out *out) {
    _Alignas(64) float v[SUPER];
    for (int i = 0; i < width; i += 16) {
        int n = min_int(width - i, 16);
        vec16 normed = rms_scaled(x + first + i, w + first + i, scale, n);
        vec16_store(v + i, normed);
        if (out->y)
            vec16_store_n(out->y + first + i, out->add ? vec16_add(vec16_load_n(out->y + first + i, n), normed) : normed, n);
    }
    if (out->acts)
        act_quantise(v, width, BLOCK, out->acts + first / BLOCK);
    if (out->acts_k)
        act_quantise_block_k(v, out->acts_k + first / SUPER);
}

static void norm_row(const weir_k_rmsnorm *a, const float *w, const float *x, const norm_out *out) {
    vec16 scale = vec16_set1(rms_scale(x, a->width, a->eps));
    for (int i = 0; i < a->width; i += SUPER)
        norm_part(x, w, scale, i, min_int(a->width - i, SUPER), out);
}

void WEIR__AT(rmsnorm)(const void *args, const weir_work *work) {
    const weir_k_rmsnorm *a = args;
    const float *w = floats_at(a->weight_base, a->weight_offset);
    uint32_t rows = (uint32_t)rows_count(a->step, a->x_rows);
    for (uint32_t c; c = weir_work_take(work), c < rows;) {
        int r = (int)c;
        size_t width = (size_t)a->width;
        float *y = a->y ? a->y + rows_index(a->step, a->y_rows, r) * width : NULL;
        void *acts = a->acts ? (uint8_t *)a->acts + (size_t)r * weir_act_size(BLOCK, a->width) : NULL;
        void *acts_k = a->acts_k ? (uint8_t *)a->acts_k + (size_t)r * weir_act_size(SUPER, a->width) : NULL;
        norm_row(a, w, a->x + rows_index(a->step, a->x_rows, r) * width, &(norm_out){y, a->add != 0, acts, acts_k});
    }
}
