/* elementwise.c: exp, silu, tanh and GELU over arrays, as the kernels of this level compute them: for tests of their accuracy and of their bits. */
#include "vec16.h"

void WEIR__AT(exp)(const float *x, float *y, int n) {
    for (int i = 0; i < n; i += 16)
        vec16_store_n(y + i, vec16_exp(vec16_load_n(x + i, n - i)), n - i);
}

void WEIR__AT(silu)(const float *x, float *y, int n) {
    for (int i = 0; i < n; i += 16)
        vec16_store_n(y + i, vec16_silu(vec16_load_n(x + i, n - i)), n - i);
}

void WEIR__AT(tanh)(const float *x, float *y, int n) {
    for (int i = 0; i < n; i += 16)
        vec16_store_n(y + i, vec16_tanh(vec16_load_n(x + i, n - i)), n - i);
}

void WEIR__AT(gelu)(const float *x, float *y, int n) {
    for (int i = 0; i < n; i += 16)
        vec16_store_n(y + i, vec16_gelu_tanh(vec16_load_n(x + i, n - i)), n - i);
}
