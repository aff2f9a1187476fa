/* lib_bench.c: measures what a machine's memory gives: threads that read a buffer from end to end. Knows no actors. */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "binding.h"

enum { MAX_READERS = 256 };

typedef struct reader {
    pthread_t thread;
    const uint64_t *data;
    size_t words;
    uint64_t sum;
} reader;

/* Eight sums side by side: loads, not additions, are what takes the time. */
static void *read_all(void *data) {
    reader *r = data;
    uint64_t sum[8] = {0};
    for (size_t i = 0; i + 8 <= r->words; i += 8) {
        for (size_t k = 0; k < 8; k++)
            sum[k] += r->data[i + k];
    }
    for (size_t k = 0; k < 8; k++)
        r->sum += sum[k];
    return NULL;
}

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* One pass of `n` threads over the buffer; the time it took, < 0 if a thread could not be made. */
static double read_once(const uint64_t *data, size_t words, int n) {
    reader readers[MAX_READERS];
    double start = seconds();
    int made = 0;
    for (; made < n; made++) {
        size_t first = words * (size_t)made / (size_t)n, last = words * (size_t)(made + 1) / (size_t)n;
        readers[made] = (reader){.data = data + first, .words = last - first};
        if (pthread_create(&readers[made].thread, NULL, read_all, &readers[made]) != 0)
            break;
    }
    for (int i = 0; i < made; i++)
        pthread_join(readers[i].thread, NULL);
    return made == n ? seconds() - start : -1;
}

/* core.bandwidth(bytes, threads, rounds) -> bytes per second, the best round */
static int bandwidth(lua_State *L) {
    size_t words = (size_t)luaL_checknumber(L, 1) / 8;
    int threads = (int)luaL_checkinteger(L, 2), rounds = (int)luaL_checkinteger(L, 3);
    if (threads < 1 || threads > MAX_READERS || words < 4096)
        return raise_code(L, WEIR_EINVAL, "%d threads over %.0f bytes", threads, (double)words * 8);
    uint64_t *data = malloc(words * 8);
    if (!data)
        return raise_code(L, WEIR_ENOMEM, "a buffer of %.0f bytes", (double)words * 8);
    for (size_t i = 0; i < words; i++)
        data[i] = i;
    double best = -1;
    for (int i = 0; i < rounds; i++) {
        double time = read_once(data, words, threads);
        if (time > 0 && (best < 0 || time < best))
            best = time;
    }
    free(data);
    if (best < 0)
        return raise_code(L, WEIR_EIO, "no threads");
    lua_pushnumber(L, (double)words * 8 / best);
    return 1;
}

void open_bench(lua_State *L, binding *b) {
    static const luaL_Reg functions[] = {{"bandwidth", bandwidth}, {NULL, NULL}};
    binding_register(L, b, functions);
}
