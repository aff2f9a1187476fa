/* sorts.c: quicksort and radix sort: large bodies; a chain of actors with credit between them. What is sorted is a permutation of 0 .. N - 1, so i must end
 * at place i. Result: the sum of the values in order = N (N - 1) / 2. */
#include "kinds.h"

#include <string.h>

/* i -> 7919 i mod N, a permutation for all N that 7919, a prime, does not divide. */
static int64_t shuffled(int64_t i, int64_t n) {
    return i * 7919 % n;
}

static int64_t sum_expected(const int64_t *p) {
    return bench_triangle(p[0]);
}

/* ---- quicksort: an actor splits what it gets, leaves both parts to actors of their own, and puts together what they send back ---- */

enum { SMALL = 2000 }; /* values that an actor sorts itself */

typedef struct sorter {
    bench *b;
    weir_address parent; /* 0: the answer is the result */
    int64_t place;       /* of its values among the parent's */
    int32_t *values;     /* (n) */
    size_t n;
    int waiting;
} sorter;

/* [place, values] into a copy of the values' bytes at `to`, or, with to NULL, into memory that the caller frees. */
static int32_t *read_values(bench *b, const weir_message *m, int64_t *place, int32_t *to, size_t *n) {
    const char *bytes;
    weir_cursor c = weir_read(weir_message_body(m), NULL);
    if (!weir_read_int(&c, place) || !weir_read_bytes(&c, &bytes, n)) {
        bench_fail(b, WEIR_ETYPE, "no values");
        return NULL;
    }
    to = to ? to + *place : malloc(*n);
    if (to)
        memcpy(to, bytes, *n);
    else
        bench_fail(b, WEIR_ENOMEM, "%zu values", *n);
    *n /= sizeof *to;
    return to;
}

static void send_values(weir_actor *self, bench *b, weir_address to, weir_verb verb, int64_t place, const int32_t *values, size_t n) {
    bench_send(b, self, to, verb, weir_pack(b->system, "ib", place, (const void *)values, n * sizeof *values));
}

static int ascending(const void *a, const void *b) {
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

static void hand_in(weir_actor *self, sorter *s) {
    if (s->parent)
        send_values(self, s->b, s->parent, s->b->done, s->place, s->values, s->n);
    for (size_t i = 0; i < s->n && !s->parent; i++) {
        if (s->values[i] != (int64_t)i)
            bench_fail(s->b, WEIR_EINVAL, "%d at place %zu", s->values[i], i);
        bench_add(s->b, s->values[i]);
    }
    weir_exit(self, NULL);
}

/* Hoare's partition: below the result no value is above the pivot, from it on none is below. */
static size_t split(int32_t *v, size_t n) {
    int32_t pivot = v[n / 2];
    size_t i = 0, j = n - 1;
    for (;; i++, j--) {
        while (v[i] < pivot)
            i++;
        while (v[j] > pivot)
            j--;
        if (i >= j)
            return i;
        int32_t swapped = v[i];
        v[i] = v[j];
        v[j] = swapped;
    }
}

static void sort_part(weir_actor *self, sorter *s, size_t first, size_t n);

static void on_values(weir_actor *self, const weir_message *m) {
    sorter *s = weir_state(self);
    s->values = read_values(s->b, m, &s->place, NULL, &s->n);
    if (!s->values)
        return;
    if (s->n > SMALL) {
        size_t middle = split(s->values, s->n);
        sort_part(self, s, 0, middle);
        sort_part(self, s, middle, s->n - middle);
    } else {
        qsort(s->values, s->n, sizeof *s->values, ascending);
        hand_in(self, s);
    }
}

static void on_sorted(weir_actor *self, const weir_message *m) {
    sorter *s = weir_state(self);
    int64_t place;
    size_t n;
    if (read_values(s->b, m, &place, s->values, &n) && --s->waiting == 0)
        hand_in(self, s);
}

static void sorter_fini(weir_system *system, void *state) {
    sorter *s = state;
    free(s->values);
    bench_fini(system, s);
}

static const weir_handler sorter_handlers[] = {{"put", on_values}, {"done", on_sorted}, {NULL, NULL}};
static const weir_behaviour sorter_kind = {.name = "sorter", .handlers = sorter_handlers, .fini = sorter_fini};

static void sort_part(weir_actor *self, sorter *s, size_t first, size_t n) {
    weir_address a;
    sorter *part = bench_spawn(s->b, &sorter_kind, sizeof *part, &a);
    if (!part)
        return;
    part->parent = weir_self(self);
    s->waiting++;
    send_values(self, s->b, a, s->b->put, (int64_t)first, s->values + first, n);
}

static void quicksort_start(bench *b) {
    weir_address a;
    int32_t *values = b->data = malloc((size_t)b->p[0] * sizeof *values);
    if (!values) {
        bench_fail(b, WEIR_ENOMEM, "values");
        return;
    }
    for (int64_t i = 0; i < b->p[0]; i++)
        values[i] = (int32_t)shuffled(i, b->p[0]);
    if (bench_spawn(b, &sorter_kind, sizeof(sorter), &a))
        send_values(b->main, b, a, b->put, 0, values, (size_t)b->p[0]);
}

const bench_kind bench_quicksort = {"quicksort", "sum in order", {"values"}, {10000}, {1000000}, quicksort_start, sum_expected};

/* ---- radix sort: an actor for each bit, lowest first, passes values on with the bit clear, and those with it set when it has seen all ---- */

typedef struct digit {
    bench *b;
    weir_address next;
    int64_t bit;            /* -1: the source; -2: the sink */
    int64_t *kept, *passed; /* (N), with the bit set and clear */
    int64_t n_kept, n_passed, received, sent, credit;
} digit;

static void pass_on(weir_actor *self, digit *d) {
    bool all = d->received == d->b->p[0];
    for (; d->credit && d->sent < d->n_passed + (all ? d->n_kept : 0); d->credit--, d->sent++)
        bench_int(d->b, self, d->next, d->b->put, d->sent < d->n_passed ? d->passed[d->sent] : d->kept[d->sent - d->n_passed]);
}

static void on_credit(weir_actor *self, const weir_message *m) {
    digit *d = weir_state(self);
    d->credit += bench_first(d->b, m);
    pass_on(self, d);
}

static void on_value(weir_actor *self, const weir_message *m) {
    digit *d = weir_state(self);
    int64_t v = bench_first(d->b, m);
    if (d->received == d->b->p[0]) {
        bench_fail(d->b, WEIR_EINVAL, "more values than there are");
        return;
    }
    d->received++;
    if (v >> d->bit & 1)
        d->kept[d->n_kept++] = v;
    else
        d->passed[d->n_passed++] = v;
    if (d->received % BENCH_GRANT == 0)
        bench_int(d->b, self, weir_message_from(m), d->b->more, BENCH_GRANT);
    pass_on(self, d);
}

static void on_last(weir_actor *self, const weir_message *m) {
    digit *d = weir_state(self);
    int64_t v = bench_first(d->b, m);
    if (v != d->received)
        bench_fail(d->b, WEIR_EINVAL, "%lld at place %lld", (long long)v, (long long)d->received);
    bench_add(d->b, v);
    if (++d->received % BENCH_GRANT == 0)
        bench_int(d->b, self, weir_message_from(m), d->b->more, BENCH_GRANT);
}

static void digit_fini(weir_system *s, void *state) {
    digit *d = state;
    free(d->kept);
    free(d->passed);
    bench_fini(s, d);
}

static const weir_handler digit_handlers[] = {{"put", on_value}, {"more", on_credit}, {NULL, NULL}};
static const weir_handler last_handlers[] = {{"put", on_last}, {NULL, NULL}};
static const weir_behaviour digit_kind = {.name = "digit", .handlers = digit_handlers, .fini = digit_fini};
static const weir_behaviour last_kind = {.name = "sorted", .handlers = last_handlers, .fini = digit_fini};

/* The actor of one bit, before `next`. */
static digit *digit_new(bench *b, int64_t bit, weir_address next, weir_address *out) {
    size_t n = (size_t)b->p[0];
    digit *d = bench_spawn(b, &digit_kind, sizeof *d, out);
    if (!d)
        return NULL;
    d->bit = bit;
    d->next = next;
    d->credit = BENCH_WINDOW;
    d->kept = calloc(n, sizeof *d->kept);
    d->passed = calloc(n, sizeof *d->passed);
    if (d->kept && d->passed)
        return d;
    bench_fail(b, WEIR_ENOMEM, "a radix actor");
    return NULL;
}

/* The source is an actor of the chain that has received all values, none to keep; the credit that sets it going is its first. */
static void radixsort_start(bench *b) {
    weir_address next;
    int64_t bits = 0;
    if (!bench_spawn(b, &last_kind, sizeof(digit), &next))
        return;
    while (b->p[0] > (int64_t)1 << bits)
        bits++;
    for (int64_t bit = bits - 1; bit >= 0; bit--)
        if (!digit_new(b, bit, next, &next))
            return;
    digit *source = digit_new(b, 0, next, &next);
    if (!source)
        return;
    for (int64_t i = 0; i < b->p[0]; i++)
        source->passed[i] = shuffled(i, b->p[0]);
    source->n_passed = source->received = b->p[0];
    bench_int(b, b->main, next, b->more, 0);
}

const bench_kind bench_radixsort = {"radixsort", "sum in order", {"values"}, {1000}, {100000}, radixsort_start, sum_expected};
