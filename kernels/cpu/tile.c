/* tile.c: moves the step block to its next tile. */
#include "level.h"

static void next_tile(int32_t total, int32_t most, int32_t *first, int32_t *rows) {
    *first += *rows;
    if (*first >= total)
        *first = 0;
    *rows = min_int(total - *first, most);
}

void weir__tile_generic(const void *args, const weir_work *work) {
    const weir_k_tile *a = args;
    weir_step *s = a->step;
    if (weir_work_take(work))
        return;
    if (a->outputs)
        next_tile(s->outputs, s->out_tile, &s->out_first, &s->out_rows);
    else
        next_tile(s->rows, s->tile, &s->tile_first, &s->tile_rows);
}
