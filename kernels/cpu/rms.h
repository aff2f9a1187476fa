/* rms.h: what RMSNorm makes of a row, of the model or of one head: the scale 1 / sqrt(mean(x^2) + eps), then (x * scale) * w. */
#ifndef WEIR_CPU_RMS_H
#define WEIR_CPU_RMS_H

#include "vec16.h"

/* Sum of squares: 16 strided partials, one fma each, and the fixed tree. */
static float rms_scale(const float *x, int n, float eps) {
    vec16 acc = vec16_zero();
    for (int i = 0; i < n; i += 16) {
        vec16 v = vec16_load_n(x + i, n - i);
        acc = vec16_fma(v, v, acc);
    }
    return 1.0f / sqrtf(vec16_sum(acc) / (float)n + eps);
}

INLINE vec16 rms_scaled(const float *x, const float *w, vec16 scale, int n) {
    return vec16_mul(vec16_mul(vec16_load_n(x, n), scale), vec16_load_n(w, n));
}

#endif
