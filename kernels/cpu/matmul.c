/* matmul.c: y (+)= x W^T for one row (a vector) and for many. Owns how the work is cut; the arithmetic is product.h's. k is never cut. */
#include "product.h"

enum {
    PANEL_GROUP = 4,
    ROW_PANELS = 8,
    BLOCK_PANELS = SUMS / ROW_BLOCK
}; /* panels of a chunk of many rows; of a call, of one row and of many */

static float *output_row(const weir_k_matmul *a, int row) {
    return a->y + rows_index(a->step, a->y_rows, row) * (size_t)a->ldy;
}

static void put(const weir_k_matmul *a, int panel, int row, const float *sums) {
    float *y = output_row(a, row) + (size_t)panel * PANEL;
    int n = min_int(PANEL, a->w.n - panel * PANEL);
    vec16 v = vec16_load(sums);
    if (a->bias)
        v = vec16_add(v, vec16_load_n(floats_at(a->w.base, a->bias_offset) + panel * PANEL, n));
    if (a->add)
        v = vec16_add(vec16_load_n(y, n), v);
    vec16_store_n(y, v, n);
}

static void one_row(const weir_k_matmul *a, const operand *o, const weir_work *work) {
    _Alignas(64) float out[ROW_PANELS][PANEL];
    share s = share_of(panels_of(a->w.n), work);
    for (int first, end; share_take(&s, work, &first, &end);) {
        for (int p = first, n; p < end; p += n) {
            n = min_int(end - p, ROW_PANELS);
            operand_product(o, p, n, 0, 1, out);
            for (int i = 0; i < n; i++)
                put(a, p + i, 0, out[i]);
        }
    }
}

static void block_of_rows(const weir_k_matmul *a, const operand *o, int panel, int panels, int row, int rows) {
    _Alignas(64) float out[SUMS][PANEL];
    operand_product(o, panel, panels, row, rows, out);
    for (int r = 0; r < rows; r++)
        for (int p = 0; p < panels; p++)
            put(a, panel + p, row + r, out[p * rows + r]);
}

static void many_rows(const weir_k_matmul *a, const operand *o, int rows, const weir_work *work) {
    int panels = panels_of(a->w.n), groups = (panels + PANEL_GROUP - 1) / PANEL_GROUP, blocks = (rows + ROW_BLOCK - 1) / ROW_BLOCK;
    for (uint32_t c; c = weir_work_take(work), c < (uint32_t)groups * (uint32_t)blocks;) {
        int first = (int)c % groups * PANEL_GROUP, end = min_int(first + PANEL_GROUP, panels), row = (int)c / groups * ROW_BLOCK;
        for (int p = first; p < end; p += BLOCK_PANELS)
            block_of_rows(a, o, p, min_int(BLOCK_PANELS, end - p), row, min_int(ROW_BLOCK, rows - row));
    }
}

void WEIR__AT(matmul)(const void *args, const weir_work *work) {
    const weir_k_matmul *a = args;
    operand o = operand_of(&a->w, a->x, a->ldx, a->acts);
    int rows = rows_count(a->step, a->rows);
    if (rows == 1)
        one_row(a, &o, work);
    else if (rows > 1)
        many_rows(a, &o, rows, work);
}
