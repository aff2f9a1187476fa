/* pack.c: from a file's rows to panels of 16 rows, and vectors to floats. Moves bits and changes none but their order, unless the source is of another type.
 * Runs the same code at every level. */
#include "block.h"
#include "level.h"

#include <string.h>

enum {
    PIECE = 256
}; /* values of a row at a time: whole blocks of every type; a panel's piece stays in L1 while its 16 rows are filled in */

/* The file's index of what goes to i: undoes adjacent rotary pairs (2 i, 2 i + 1) to half split (i, i + rope_dim / 2) within each of `heads`. */
static int source_index(int heads, int rope_dim, int n, int i) {
    if (heads <= 0)
        return i;
    int dim = n / heads, head = i / dim, j = i % dim, half = rope_dim / 2;
    return j >= rope_dim ? i : head * dim + j % half * 2 + j / half;
}

/* The bytes of k values of a row from value `first` on, as the target type has them: the source's own, or made in `room`. */
static const uint8_t *source_piece(const weir_k_pack *a, const uint8_t *row, int first, int k, uint8_t *room) {
    const weir_type_info *from = weir_type_any(a->source_type);
    const uint8_t *piece = row + (size_t)first / from->block * from->bytes;
    if (a->source_type == a->w.type)
        return piece;
    float values[PIECE];
    weir_dequantise(a->source_type, piece, k, values);
    weir_quantise(a->w.type, values, k, room);
    return room;
}

/* k values of a row to lane `lane` of what begins at `to`. */
static void put_piece(int type, const uint8_t *from, int lane, int k, uint8_t *to) {
    const weir_type_info *info = weir_type_get(type);
    const weir_block_codec *codec = weir_block_codec_of(type);
    if (codec) {
        for (int b = 0; b < k / (int)info->block; b++)
            codec->pack(from + (size_t)b * info->bytes, lane, to + (size_t)b * info->panel_bytes);
    } else if (type == WEIR_F32) {
        for (int i = 0; i < k; i++)
            memcpy(to + ((size_t)i * PANEL + (size_t)lane) * 4, from + (size_t)i * 4, 4);
    } else {
        for (int i = 0; i < k; i++)
            memcpy(to + ((size_t)i * PANEL + (size_t)lane) * 2, from + (size_t)i * 2, 2);
    }
}

static void pack_panel(const weir_k_pack *a, int panel) {
    const weir_type_info *from = weir_type_any(a->source_type), *to = weir_type_get(a->w.type);
    size_t row_bytes = (size_t)a->w.k / from->block * from->bytes, panel_bytes = (size_t)a->w.k / to->block * to->panel_bytes;
    uint8_t *packed = weight_at(&a->w) + (size_t)panel * panel_bytes, room[PIECE * sizeof(float)];
    int lanes = min_int(PANEL, a->w.n - panel * PANEL);
    if (lanes < PANEL)
        memset(packed, 0, panel_bytes);
    for (int first = 0; first < a->w.k; first += PIECE) {
        int k = min_int(PIECE, a->w.k - first);
        for (int lane = 0; lane < lanes; lane++) {
            int r = source_index(a->rope_heads, a->rope_dim, a->w.n, panel * PANEL + lane);
            const uint8_t *piece = source_piece(a, (const uint8_t *)a->source + (size_t)r * row_bytes, first, k, room);
            put_piece(a->w.type, piece, lane, k, packed + (size_t)first / to->block * to->panel_bytes);
        }
    }
}

void weir__pack_generic(const void *args, const weir_work *work) {
    const weir_k_pack *a = args;
    uint32_t panels = (uint32_t)panels_of(a->w.n);
    for (uint32_t c; c = weir_work_take(work), c < panels;)
        pack_panel(a, (int)c);
}

void weir__pack_vector_generic(const void *args, const weir_work *work) {
    const weir_k_pack_vector *a = args;
    const weir_type_info *type = weir_type_get(a->w.type);
    float *to = (float *)(void *)weight_at(&a->w), value;
    if (weir_work_take(work))
        return;
    for (int i = 0; i < a->w.k; i++) {
        int from = source_index(a->rope_heads, a->rope_dim, a->w.k, i);
        weir_dequantise(a->w.type, (const uint8_t *)a->source + (size_t)from * type->bytes, 1, &value);
        to[i] = value + a->add;
    }
}
