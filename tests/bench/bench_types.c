/* bench_types.c: the products of every weight type alone, with matrices of [256][5632], short enough for a busy machine's time slices: one row (GB/s of packed
 * weights, more of them than caches below the last level hold) and 64 rows (GMAC/s); per level, 1 and 2 threads. The machine may be shared: see best_of.
 *   bench_types [level [type]]     without a level: all but generic */
#include "kernel_team.h"

enum { OUTPUTS = 256, INNER = 5632, ROWS = 64, COPIES = 64 };

static weir_step step;
static weir_k_matmul products[COPIES];
static void *bases[COPIES];

/* The largest type's matrices; every type's lie here in turn. */
static uint8_t *arena(void) {
    static uint8_t *p;
    if (!p)
        p = memory(COPIES * weir_packed_size(WEIR_Q8_0, OUTPUTS, INNER));
    return p;
}

static void random_bytes(uint8_t *p, size_t bytes) {
    uint32_t r = 1;
    for (size_t i = 0; i + 4 <= bytes; i += 4) {
        r = r * 1664525 + 1013904223;
        memcpy(p + i, &r, 4);
    }
}

/* Random codes; scales and minima at the beginning of each block that are ordinary numbers. */
static void fill(int type, uint8_t *p, size_t bytes) {
    const weir_type_info *info = weir_type_get(type);
    random_bytes(p, bytes);
    for (size_t b = 0; b + info->panel_bytes <= bytes && info->block > 1; b += info->panel_bytes)
        for (size_t i = 0; i < (type == WEIR_MXFP4 ? 16 : 64); i += 2)
            memcpy(p + b + i, type == WEIR_MXFP4 ? (const uint8_t[]){120, 120} : (const uint8_t[]){0, 0x14}, 2);
    for (size_t i = 0; i + 2 <= bytes && info->block == 1; i += 2) /* f16 and bf16: small; f32: two of them */
        memcpy(p + i, (const uint8_t[]){(uint8_t)i, 0x14}, 2);
}

static void *activations(int type) {
    int block = (int)weir_type_get(type)->acts;
    static void *acts;
    if (!acts)
        acts = memory(ROWS * weir_act_size(32, INNER));
    memset(acts, 0, ROWS * weir_act_size(32, INNER));
    for (int i = 0; block && i < ROWS * INNER / block; i++) {
        if (block == SUPER)
            ((act_block_k *)acts)[i] = (act_block_k){.d = 0.01f, .q = {10}, .sums = {10}};
        else
            ((act_block *)acts)[i] = (act_block){.d = 0.01f, .s = 0.1f, .sum = 10, .off = -1280, .q = {10}};
    }
    return block ? acts : NULL;
}

static int prepare(int type, item *items) {
    static float *x, *y;
    size_t bytes = weir_packed_size(type, OUTPUTS, INNER), room = COPIES * weir_packed_size(WEIR_Q8_0, OUTPUTS, INNER);
    int copies = min_int(COPIES, (int)(room / bytes));
    x = x ? x : memory(ROWS * INNER * sizeof *x);
    y = y ? y : memory(ROWS * OUTPUTS * sizeof *y);
    void *acts = activations(type);
    fill(type, arena(), (size_t)copies * bytes);
    for (int i = 0; i < copies; i++) {
        bases[i] = arena() + (size_t)i * bytes;
        products[i] = (weir_k_matmul){
            .step = &step, .w = {&bases[i], 0, type, OUTPUTS, INNER}, .x = x, .acts = acts, .ldx = INNER, .y = y, .ldy = OUTPUTS};
        items[i] = (item){WEIR_K_matmul, &products[i]};
    }
    return copies;
}

static void bench(int level, int type, unsigned threads) {
    item items[COPIES];
    int copies = prepare(type, items);
    double bytes = (double)copies * (double)weir_packed_size(type, OUTPUTS, INNER);
    step = (weir_step){.tile_rows = 1};
    double one = best_of(level, threads, items, copies, 20);
    step = (weir_step){.tile_rows = ROWS};
    double many = best_of(level, threads, items, min_int(copies, 8), level == WEIR_CPU_GENERIC ? 1 : 20);
    printf("%-8s %u  %-7s decode %5.1f GB/s = %5.1f G weights/s, prefill %6.1f GMAC/s\n", weir_cpu_level_name(level), threads,
           weir_type_get(type)->name, bytes / one / 1e9, (double)copies * OUTPUTS * INNER / one / 1e9,
           (double)min_int(copies, 8) * OUTPUTS * INNER * ROWS / many / 1e9);
}

int main(int argc, char **argv) {
    int only = argc > 1 ? weir_cpu_level_find(argv[1]) : -1;
    for (int level = WEIR_CPU_LEVELS - 1; level >= 0; level--)
        for (unsigned threads = 1; threads <= 2; threads++)
            for (int type = 0; type < WEIR_TYPES; type++) {
                bool wanted = only < 0 ? level != WEIR_CPU_GENERIC : level == only;
                if (!wanted || !weir_cpu_level_runs(level) || !weir_type_get(type))
                    continue;
                if (argc < 3 || strcmp(argv[2], weir_type_get(type)->name) == 0)
                    bench(level, type, threads);
            }
    return 0;
}
