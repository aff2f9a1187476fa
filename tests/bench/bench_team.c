/* bench_team.c: what the worker team costs: a barrier, and the start of a list on a team that still spins or has gone to sleep; alone, and beside another
 * busy thread. Prints minimum, median and 99th percentile. Usage: bench_team [threads] */
#include "../../core/dev/cpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ITEMS = 100, LISTS = 2000, STARTS = 2000, SLEPT_STARTS = 300 };

static _Atomic bool busy_ends;

static void *busy_main(void *data) {
    (void)data;
    while (!atomic_load_explicit(&busy_ends, memory_order_relaxed))
        ;
    return NULL;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void report(const char *what, double *us, int n) {
    qsort(us, (size_t)n, sizeof *us, compare);
    printf("  %-44s %8.2f %8.2f %8.2f us\n", what, us[0], us[n / 2], us[n * 99 / 100]);
}

/* `tile` is the smallest kernel: what is left is the team's. */
static weir__list *list_of(weir__device *d, weir_step *step, int items, bool joined) {
    weir__list *l = NULL;
    const weir_k_tile args = {.step = step};
    if (weir__list_new(d, "tiles", &l, NULL))
        return NULL;
    for (int i = 0; i < items; i++)
        if (weir__list_add(l, WEIR_K_tile, &args, joined, NULL))
            return NULL;
    return l;
}

/* ns per run, after a pause before each. */
static void measure(weir__team *team, weir__list *l, int runs, int64_t pause, double per, const char *what) {
    static double us[STARTS];
    weir__stream st = {0};
    const weir__item item = {.number = 1};
    for (int i = 0; i < runs; i++) {
        if (pause)
            nanosleep(&(struct timespec){0, pause}, NULL);
        int64_t begin = weir__dev_clock();
        weir__team_run(team, l, &st, &item);
        us[i] = (double)(weir__dev_clock() - begin) / 1000 / per;
    }
    report(what, us, runs);
}

static void measure_all(weir__team *team, weir__list *one, weir__list *joined, weir__list *loose) {
    measure(team, loose, LISTS, 0, ITEMS, "item without a barrier");
    measure(team, joined, LISTS, 0, ITEMS, "item with a barrier");
    measure(team, one, STARTS, 0, 1, "list of one item, workers spin");
    measure(team, one, SLEPT_STARTS, 1000000, 1, "list of one item, workers sleep");
}

int main(int argc, char **argv) {
    unsigned threads = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
    weir_system *s = NULL;
    weir__device *d = NULL;
    weir__team *team = NULL;
    weir_step step = {.rows = 1, .tile = 1, .tile_first = 1};
    if (weir_system_new(NULL, &s, NULL) || weir__device_open(s, "cpu", threads, &d, NULL) ||
        weir__team_new(s, weir__device_threads(d), &team, NULL))
        return 1;
    weir__list *one = list_of(d, &step, 1, true), *joined = list_of(d, &step, ITEMS, true), *loose = list_of(d, &step, ITEMS, false);
    if (!one || !joined || !loose)
        return 1;
    printf("%s; minimum, median, 99th percentile\nalone\n", weir__device_detail(d));
    measure_all(team, one, joined, loose);
    pthread_t busy;
    if (pthread_create(&busy, NULL, busy_main, NULL))
        return 1;
    printf("beside one busy thread\n");
    measure_all(team, one, joined, loose);
    atomic_store(&busy_ends, true);
    pthread_join(busy, NULL);
    weir__list_unref(one);
    weir__list_unref(joined);
    weir__list_unref(loose);
    weir__team_free(team);
    weir_system_free(s);
    return 0;
}
