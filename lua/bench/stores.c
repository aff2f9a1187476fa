/* stores.c: concurrent dictionary and sorted list: many actors that read and write one store. Every tenth request writes. Keys are chosen so that it is known
 * what each read must find. */
#include "kinds.h"

#include <string.h>

/* A worker asks one thing after another. Its n-th write is its key number n; its reads look for what it wrote last. */
typedef struct worker {
    bench *b;
    weir_address store;
    int64_t index, step, sum;
    weir_body *(*request)(bench *b, int64_t index, int64_t step, weir_verb *verb);
} worker;

static void request(weir_actor *self, worker *w) {
    weir_verb verb;
    weir_body *body = w->request(w->b, w->index, w->step, &verb);
    bench_send(w->b, self, w->store, verb, body);
}

static void on_go(weir_actor *self, const weir_message *m) {
    (void)m;
    request(self, weir_state(self));
}

static void on_answer(weir_actor *self, const weir_message *m) {
    worker *w = weir_state(self);
    w->sum += bench_first(w->b, m);
    if (++w->step < w->b->p[1])
        request(self, w);
    else
        bench_add(w->b, w->sum);
}

static const weir_handler worker_handlers[] = {{"go", on_go}, {"pong", on_answer}, {NULL, NULL}};
static const weir_behaviour worker_kind = {.name = "worker", .handlers = worker_handlers, .fini = bench_fini};

static void hire(bench *b, weir_address store, weir_body *(*ask)(bench *, int64_t, int64_t, weir_verb *)) {
    for (int64_t i = 0; i < b->p[0]; i++) {
        weir_address a;
        worker *w = bench_spawn(b, &worker_kind, sizeof *w, &a);
        if (!w)
            return;
        *w = (worker){b, store, i, 0, 0, ask};
        bench_send(b, b->main, a, b->go, NULL);
    }
}

static int64_t written_by_all(const int64_t *p) {
    return p[0] * p[1] / 10;
}

/* ---- concurrent dictionary: key k gets the value k. A write and the nine reads after it are answered with the value.
 * Result: 10 x the sum of the keys = 10 x K (K - 1) / 2, K = workers x requests / 10 ---- */

typedef struct dictionary {
    bench *b;
    int64_t *keys; /* (room), open addressing; key + 1, 0: free */
    uint64_t mask;
    int64_t *values;
} dictionary;

static uint64_t place_of(const dictionary *d, int64_t key) {
    uint64_t at = (uint64_t)key * UINT64_C(0x9e3779b97f4a7c15) >> 20 & d->mask;
    while (d->keys[at] && d->keys[at] != key + 1)
        at = (at + 1) & d->mask;
    return at;
}

static void dictionary_put(weir_actor *self, const weir_message *m) {
    dictionary *d = weir_state(self);
    int64_t key = bench_first(d->b, m);
    uint64_t at = place_of(d, key);
    d->keys[at] = key + 1;
    d->values[at] = key;
    bench_int(d->b, self, weir_message_from(m), d->b->pong, key);
}

static void dictionary_get(weir_actor *self, const weir_message *m) {
    dictionary *d = weir_state(self);
    uint64_t at = place_of(d, bench_first(d->b, m));
    bench_int(d->b, self, weir_message_from(m), d->b->pong, d->keys[at] ? d->values[at] : -1);
}

static void dictionary_fini(weir_system *s, void *state) {
    dictionary *d = state;
    free(d->keys);
    free(d->values);
    bench_fini(s, d);
}

static const weir_handler dictionary_handlers[] = {{"put", dictionary_put}, {"get", dictionary_get}, {NULL, NULL}};
static const weir_behaviour dictionary_kind = {.name = "dictionary", .handlers = dictionary_handlers, .fini = dictionary_fini};

static weir_body *dictionary_request(bench *b, int64_t index, int64_t step, weir_verb *verb) {
    *verb = step % 10 ? b->get : b->put;
    return weir_pack(b->system, "i", index * (b->p[1] / 10) + step / 10);
}

static void dictionary_start(bench *b) {
    weir_address store;
    dictionary *d = bench_spawn(b, &dictionary_kind, sizeof *d, &store);
    if (!d)
        return;
    uint64_t room = 16;
    while (room < 2 * (uint64_t)written_by_all(b->p))
        room *= 2;
    d->mask = room - 1;
    d->keys = calloc(room, sizeof *d->keys);
    d->values = calloc(room, sizeof *d->values);
    if (d->keys && d->values)
        hire(b, store, dictionary_request);
    else
        bench_fail(b, WEIR_ENOMEM, "a dictionary");
}

static int64_t dictionary_expected(const int64_t *p) {
    return 10 * bench_triangle(written_by_all(p));
}

const bench_kind bench_dictionary = {"dictionary", "sum of answers", {"workers", "requests"}, {4, 100},
                                     {20, 10000},  dictionary_start, dictionary_expected};

/* ---- sorted list: every hundredth request asks for the size, which is answered with 0; a write and a read that finds its value are answered with 1.
 * The list is 0 .. K - 1 at the end, in order. Result: answers = workers x requests x 99 / 100 ---- */

typedef struct list {
    bench *b;
    int64_t *values; /* (count), ascending */
    int64_t count, requests;
} list;

/* The first place whose value is not below v. */
static int64_t list_place(const list *l, int64_t v) {
    int64_t low = 0, high = l->count;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (l->values[middle] < v)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool list_has(const list *l, int64_t v) {
    int64_t at = list_place(l, v);
    return at < l->count && l->values[at] == v;
}

static void list_answer(weir_actor *self, list *l, const weir_message *m, int64_t value) {
    bool sorted = true;
    if (++l->requests == l->b->p[0] * l->b->p[1])
        for (int64_t i = 0; i < l->count; i++)
            sorted = sorted && l->values[i] == i;
    if (!sorted || l->count > written_by_all(l->b->p))
        bench_fail(l->b, WEIR_EINVAL, "the list is not sorted");
    bench_int(l->b, self, weir_message_from(m), l->b->pong, value);
}

static void list_put(weir_actor *self, const weir_message *m) {
    list *l = weir_state(self);
    int64_t v = bench_first(l->b, m), at = list_place(l, v);
    if (l->count == written_by_all(l->b->p)) {
        bench_fail(l->b, WEIR_EINVAL, "more writes than were sent");
        return;
    }
    memmove(l->values + at + 1, l->values + at, (size_t)(l->count++ - at) * sizeof *l->values);
    l->values[at] = v;
    list_answer(self, l, m, 1);
}

static void list_get(weir_actor *self, const weir_message *m) {
    list *l = weir_state(self);
    list_answer(self, l, m, list_has(l, bench_first(l->b, m)));
}

static void list_size(weir_actor *self, const weir_message *m) {
    list *l = weir_state(self);
    list_answer(self, l, m, 0);
}

static void list_fini(weir_system *s, void *state) {
    list *l = state;
    free(l->values);
    bench_fini(s, l);
}

static const weir_handler list_handlers[] = {{"put", list_put}, {"get", list_get}, {"take", list_size}, {NULL, NULL}};
static const weir_behaviour list_kind = {.name = "list", .handlers = list_handlers, .fini = list_fini};

/* Values come in no order: 7919 is prime and divides no K here, so that x -> 7919 x mod K is a permutation. */
static weir_body *list_request(bench *b, int64_t index, int64_t step, weir_verb *verb) {
    *verb = step % 100 == 99 ? b->take : step % 10 ? b->get : b->put;
    return weir_pack(b->system, "i", (step / 10 * b->p[0] + index) * 7919 % written_by_all(b->p));
}

static void list_start(bench *b) {
    weir_address store;
    list *l = bench_spawn(b, &list_kind, sizeof *l, &store);
    if (!l)
        return;
    l->values = calloc((size_t)written_by_all(b->p), sizeof *l->values);
    if (l->values)
        hire(b, store, list_request);
    else
        bench_fail(b, WEIR_ENOMEM, "a list");
}

static int64_t list_expected(const int64_t *p) {
    return p[0] * p[1] / 100 * 99;
}

const bench_kind bench_sortedlist = {"sortedlist", "answers", {"workers", "requests"}, {4, 100}, {20, 8000}, list_start, list_expected};
