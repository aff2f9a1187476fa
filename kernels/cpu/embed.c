/* embed.c: gathers rows of a packed table as floats: one lane of a panel. Every level runs this code: conversions and one product or two, each rounded
 * as the float product's weights are. */
#include "block.h"
#include "f16.h"
#include "level.h"

static void gather_values(int type, const uint8_t *panel, int lane, int k, float *x) {
    const uint16_t *halves = (const uint16_t *)(const void *)panel;
    for (int i = 0; i < k; i++) {
        int at = i * PANEL + lane;
        x[i] = type == WEIR_F32   ? ((const float *)(const void *)panel)[at]
               : type == WEIR_F16 ? f16_to_float(halves[at])
                                  : bits_float((uint32_t)halves[at] << 16);
    }
}

static void gather(const weir_weight *w, int row, float *x) {
    const weir_type_info *type = weir_type_get(w->type);
    const weir_block_codec *codec = weir_block_codec_of(w->type);
    size_t blocks = (size_t)w->k / type->block;
    const uint8_t *panel = weight_at(w) + (size_t)(row / PANEL) * blocks * type->panel_bytes;
    if (!codec) {
        gather_values(w->type, panel, row % PANEL, w->k, x);
        return;
    }
    for (size_t b = 0; b < blocks; b++)
        codec->gather(panel + b * type->panel_bytes, row % PANEL, x + b * type->block);
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
