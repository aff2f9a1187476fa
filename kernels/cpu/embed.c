/* embed.c: gathers rows of a packed table as floats: one lane of a panel. Every level runs this code: conversions and one product or two, each rounded
 * as the float product's weights are. */
#include "f16.h"
#include "level.h"

static void gather_q4_1(const panel_q4_1 *p, int lane, int k, float *x) {
    for (int b = 0; b < k / BLOCK; b++, p++, x += BLOCK) {
        float d = f16_to_float(p->d[lane]), m = f16_to_float(p->m[lane]);
        for (int i = 0; i < 16; i++) {
            uint8_t q = p->q[i / 4][lane][i % 4];
            x[i] = d * (float)(q & 15) + m;
            x[i + 16] = d * (float)(q >> 4) + m;
        }
    }
}

static void gather_q8_0(const panel_q8_0 *p, int lane, int k, float *x) {
    for (int b = 0; b < k / BLOCK; b++, p++, x += BLOCK) {
        float d = f16_to_float(p->d[lane]);
        for (int i = 0; i < BLOCK; i++)
            x[i] = d * (float)p->q[i / 4][lane][i % 4];
    }
}

static void gather(const weir_weight *w, int row, float *x) {
    const uint8_t *panel = weight_at(w);
    const weir_type_info *type = weir_type_get(w->type);
    int lane = row % PANEL;
    panel += (size_t)(row / PANEL) * ((size_t)w->k / type->block * type->panel_bytes);
    switch (w->type) {
    case WEIR_Q4_1:
        gather_q4_1((const panel_q4_1 *)(const void *)panel, lane, w->k, x);
        return;
    case WEIR_Q8_0:
        gather_q8_0((const panel_q8_0 *)(const void *)panel, lane, w->k, x);
        return;
    case WEIR_F16:
        for (int k = 0; k < w->k; k++)
            x[k] = f16_to_float(((const uint16_t *)(const void *)panel)[k * PANEL + lane]);
        return;
    default:
        for (int k = 0; k < w->k; k++)
            x[k] = ((const float *)(const void *)panel)[k * PANEL + lane];
    }
}

static void scale_row(float *x, int k, float scale) {
    for (int i = 0; i < k; i++)
        x[i] *= scale;
}

static void note(const weir_step *s, size_t row) {
    int32_t position = s->position[row];
    int32_t block = s->blocks[(size_t)s->slot[row] * (size_t)s->blocks_per_sequence + (size_t)position / KV_BLOCK];
    s->history[(size_t)block * KV_BLOCK + (size_t)position % KV_BLOCK] = s->token[row];
}

/* A token that the table does not have becomes a row of zeros. */
void weir__embed_generic(const void *args, const weir_work *work) {
    const weir_k_embed *a = args;
    const weir_step *s = a->step;
    for (uint32_t c; c = weir_work_take(work), c < (uint32_t)s->tile_rows;) {
        size_t row = (size_t)s->tile_first + c;
        float *x = a->x + row * (size_t)a->table.k;
        if (s->history)
            note(s, row);
        if (s->token[row] >= 0 && s->token[row] < a->table.n)
            gather(&a->table, s->token[row], x);
        else
            memset(x, 0, (size_t)a->table.k * sizeof *x);
        if (a->scale != 0)
            scale_row(x, a->table.k, a->scale);
    }
}
