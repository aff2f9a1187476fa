/* pack.c: from a file's rows of blocks to panels of 16 rows. Moves bytes, changes none but the order; widens norm weights. Runs the same code at every level. */
#include "block.h"
#include "f16.h"
#include "level.h"

/* The file's row of packed row r: undoes adjacent rotary pairs (2 i, 2 i + 1) to half split (i, i + rope_dim / 2) within each head. */
static int source_row(const weir_k_pack *a, int r) {
    if (a->rope_heads <= 0)
        return r;
    int dim = a->w.n / a->rope_heads, head = r / dim, i = r % dim, half = a->rope_dim / 2;
    if (i >= a->rope_dim)
        return r;
    return head * dim + i % half * 2 + i / half;
}

static void pack_blocks(const weir_block_codec *codec, const weir_type_info *type, const uint8_t *row, int lane, size_t blocks,
                        uint8_t *panel) {
    for (size_t b = 0; b < blocks; b++)
        codec->pack(row + b * type->bytes, lane, panel + b * type->panel_bytes);
}

static void pack_values(const uint8_t *row, int lane, int k, size_t width, uint8_t *panel) {
    for (int i = 0; i < k; i++)
        memcpy(panel + ((size_t)i * PANEL + (size_t)lane) * width, row + (size_t)i * width, width);
}

static void pack_panel(const weir_k_pack *a, const weir_type_info *type, int panel) {
    size_t blocks = (size_t)a->w.k / type->block, row_bytes = blocks * type->bytes, panel_bytes = blocks * type->panel_bytes;
    uint8_t *to = weight_at(&a->w) + (size_t)panel * panel_bytes;
    const weir_block_codec *codec = weir_block_codec_of(a->w.type);
    int lanes = min_int(PANEL, a->w.n - panel * PANEL);
    if (lanes < PANEL)
        memset(to, 0, panel_bytes);
    for (int lane = 0; lane < lanes; lane++) {
        const uint8_t *row = (const uint8_t *)a->source + (size_t)source_row(a, panel * PANEL + lane) * row_bytes;
        if (codec)
            pack_blocks(codec, type, row, lane, blocks, to);
        else
            pack_values(row, lane, a->w.k, type->bytes, to);
    }
}

void weir__pack_generic(const void *args, const weir_work *work) {
    const weir_k_pack *a = args;
    const weir_type_info *type = weir_type_get(a->w.type);
    uint32_t panels = (uint32_t)panels_of(a->w.n);
    for (uint32_t c; c = weir_work_take(work), c < panels;)
        pack_panel(a, type, (int)c);
}

void weir__pack_vector_generic(const void *args, const weir_work *work) {
    const weir_k_pack_vector *a = args;
    uint8_t *to = weight_at(&a->w);
    if (weir_work_take(work))
        return;
    if (a->w.type == WEIR_F32) {
        memcpy(to, a->source, (size_t)a->w.k * sizeof(float));
        return;
    }
    for (int i = 0; i < a->w.k; i++) {
        uint16_t h;
        memcpy(&h, (const uint8_t *)a->source + 2 * (size_t)i, sizeof h);
        ((float *)(void *)to)[i] = f16_to_float(h);
    }
}
