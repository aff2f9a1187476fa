/* glu.c: activation(gate product) * (up product), as many outputs at a time by one thread as an activation block has, so that they become one at once: blocks of
 * 32 in registers, blocks of 256 from the floats that were just written. */
#include "activation.h"
#include "product.h"

/* Sums of 32 outputs, [panel * rows + row], of both matrices. */
typedef struct pair {
    _Alignas(64) float gate[SUMS][PANEL], up[SUMS][PANEL];
} pair;

/* Outputs that one thread computes together. */
static int acts_width(const weir_k_glu *a) {
    return a->acts_out && a->acts_block == SUPER ? SUPER : BLOCK;
}

/* 16 of a unit's 32 outputs for one row, from sum `at`. */
INLINE vec16 half_unit(const weir_k_glu *a, const pair *p, int unit, int i, int at) {
    vec16 gate = vec16_load(p->gate[at]), up = vec16_load(p->up[at]);
    int first = unit * BLOCK + i * PANEL, n = min_int(a->gate.n - first, PANEL);
    if (a->bias && n > 0) {
        gate = vec16_add(gate, vec16_load_n(floats_at(a->gate.base, a->gate_bias) + first, n));
        up = vec16_add(up, vec16_load_n(floats_at(a->up.base, a->up_bias) + first, n));
    }
    return vec16_mul(a->activation == WEIR_GELU_TANH ? vec16_gelu_tanh(gate) : vec16_silu(gate), up);
}

/* Row `row` of the tile from sums r and r + rows. */
static void finish_row(const weir_k_glu *a, const pair *p, int unit, int row, int r, int rows) {
    vec16 h[2];
    for (int i = 0; i < 2; i++)
        h[i] = half_unit(a, p, unit, i, i * rows + r);
    if (a->y) {
        float *y = a->y + (size_t)row * (size_t)a->ldy + (size_t)unit * BLOCK;
        int n = min_int(BLOCK, a->gate.n - unit * BLOCK);
        vec16_store_n(y, h[0], min_int(n, 16));
        vec16_store_n(y + 16, h[1], max_int(n - 16, 0));
    }
    if (a->acts_out && a->acts_block == BLOCK)
        act_quantise_block(h[0], h[1],
                           (act_block *)(void *)((uint8_t *)a->acts_out + (size_t)row * weir_act_size(BLOCK, a->gate.n)) + unit);
}

/* A last unit of 16 outputs or fewer has one panel; the sums of the other are zero. */
static void unit_block(const weir_k_glu *a, const operand *gate, const operand *up, int unit, int row, int rows) {
    pair p;
    int panels = min_int(2, panels_of(a->gate.n) - unit * 2);
    operand_product(gate, unit * 2, panels, row, rows, p.gate);
    operand_product(up, unit * 2, panels, row, rows, p.up);
    if (panels == 1) {
        memset(p.gate + rows, 0, (size_t)rows * sizeof *p.gate);
        memset(p.up + rows, 0, (size_t)rows * sizeof *p.up);
    }
    for (int r = 0; r < rows; r++)
        finish_row(a, &p, unit, row + r, r, rows);
}

/* The units of 32 outputs that make activation block `block`, for some rows. */
static void acts_unit(const weir_k_glu *a, const operand *gate, const operand *up, int block, int row, int rows) {
    int width = acts_width(a), first = block * width / BLOCK, last = min_int(first + width / BLOCK, (a->gate.n + BLOCK - 1) / BLOCK);
    for (int u = first; u < last; u++)
        unit_block(a, gate, up, u, row, rows);
    for (int r = row; r < row + rows && width == SUPER; r++) {
        uint8_t *acts = (uint8_t *)a->acts_out + (size_t)r * weir_act_size(SUPER, a->gate.n);
        act_quantise_block_k(a->y + (size_t)r * (size_t)a->ldy + (size_t)block * SUPER, (act_block_k *)(void *)acts + block);
    }
}

static void one_row(const weir_k_glu *a, const operand *gate, const operand *up, int units, const weir_work *work) {
    share s = share_of(units, work);
    for (int first, end; share_take(&s, work, &first, &end);)
        for (int u = first; u < end; u++)
            acts_unit(a, gate, up, u, 0, 1);
}

void WEIR__AT(glu)(const void *args, const weir_work *work) {
    const weir_k_glu *a = args;
    operand gate = operand_of(&a->gate, a->x, a->ldx, glu_acts(a, &a->gate)), up = operand_of(&a->up, a->x, a->ldx, glu_acts(a, &a->up));
    int rows = a->step->tile_rows, width = acts_width(a), units = (a->gate.n + width - 1) / width;
    int blocks = (rows + ROW_BLOCK - 1) / ROW_BLOCK;
    if (rows == 1) {
        one_row(a, &gate, &up, units, work);
        return;
    }
    for (uint32_t c; c = weir_work_take(work), c < (uint32_t)units * (uint32_t)blocks;) {
        int row = (int)c / units * ROW_BLOCK;
        acts_unit(a, &gate, &up, (int)c % units, row, min_int(ROW_BLOCK, rows - row));
    }
}
