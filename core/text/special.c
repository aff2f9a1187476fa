/* special.c: finds control and user-defined pieces in text. They stand in an array in order of their bytes; matching narrows a range of it byte by byte, so that
 * a position costs the length of the longest match times the logarithm of the number of pieces. */
#include "tokenizer.h"

#include <string.h>

static bool before(const weir__tokenizer *t, int32_t a, int32_t b) {
    weir__string x = t->pieces[a], y = t->pieces[b];
    int order = memcmp(x.data, y.data, x.size < y.size ? x.size : y.size);
    return order != 0 ? order < 0 : x.size < y.size;
}

static void sift(const weir__tokenizer *t, int32_t *ids, size_t at, size_t n) {
    int32_t id = ids[at];
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && before(t, ids[child], ids[child + 1]))
            child++;
        if (!before(t, id, ids[child]))
            break;
        ids[at] = ids[child];
    }
    ids[at] = id;
}

/* Heapsort: n log n for every input, in place. */
static void sort(const weir__tokenizer *t, int32_t *ids, size_t n) {
    for (size_t i = n / 2; i-- > 0;)
        sift(t, ids, i, n);
    for (size_t i = n; i-- > 1;) {
        int32_t last = ids[i];
        ids[i] = ids[0];
        ids[0] = last;
        sift(t, ids, 0, i);
    }
}

int weir__specials_init(weir__tokenizer *t) {
    size_t n = 0;
    for (size_t i = 0; i < t->size; i++)
        n += weir__is_special(t, (int64_t)i) && t->pieces[i].size > 0;
    t->specials = weir__alloc(t->system, (n + 1) * sizeof *t->specials);
    if (!t->specials)
        return WEIR_ENOMEM;
    for (size_t i = 0; i < t->size; i++) {
        if (weir__is_special(t, (int64_t)i) && t->pieces[i].size > 0)
            t->specials[t->n_specials++] = (int32_t)i;
    }
    for (size_t i = 0; i < n; i++)
        t->special_first[(unsigned char)t->pieces[t->specials[i]].data[0]] = true;
    sort(t, t->specials, n);
    return WEIR_OK;
}

/* The first of specials[low..high), which agree in `depth` bytes, whose next byte is at least `c`; a piece that ends there is below every byte. */
static size_t bound(const weir__tokenizer *t, size_t low, size_t high, size_t depth, int c) {
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        weir__string piece = t->pieces[t->specials[middle]];
        int byte = piece.size > depth ? (unsigned char)piece.data[depth] : -1;
        if (byte < c)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int32_t weir__special_at(const weir__tokenizer *t, const char *text, size_t size) {
    size_t low = 0, high = t->n_specials;
    int32_t best = -1;
    if (size == 0 || !t->special_first[(unsigned char)text[0]])
        return -1;
    for (size_t depth = 0; depth < size && low < high; depth++) {
        int c = (unsigned char)text[depth];
        low = bound(t, low, high, depth, c);
        high = bound(t, low, high, depth, c + 1);
        if (low < high && t->pieces[t->specials[low]].size == depth + 1)
            best = t->specials[low];
    }
    return best;
}
