/* softcap.c: cap * tanh(x / cap) over the rows of a buffer. Element by element: rows are cut without regard to where they end. */
#include "vec16.h"

enum { CHUNK = 2048 }; /* values */

void WEIR__AT(softcap)(const void *args, const weir_work *work) {
    const weir_k_softcap *a = args;
    size_t total = (size_t)rows_count(a->step, a->rows) * (size_t)a->width;
    vec16 cap = vec16_set1(a->cap);
    for (size_t first; first = (size_t)weir_work_take(work) * CHUNK, first < total;) {
        size_t end = total - first < CHUNK ? total : first + CHUNK;
        for (size_t i = first; i < end; i += 16) {
            int n = (int)(end - i < 16 ? end - i : 16);
            vec16_store_n(a->x + i, vec16_softcap(vec16_load_n(a->x + i, n), cap), n);
        }
    }
}
