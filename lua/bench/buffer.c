/* buffer.c: bounded buffer: producers are asked for the next item only while the buffer has room for what may be on its way; consumers ask for one item at a
 * time. Items are 0 .. N - 1, N = producers x items. Result: the sum of the consumed items = N (N - 1) / 2. */
#include "kinds.h"

/* Addresses in the order they came; never more than there are actors of a kind. */
typedef struct line {
    weir_address *at; /* (room) */
    int64_t first, count, room;
} line;

typedef struct buffer {
    bench *b;
    int64_t *items;             /* (slots), a ring */
    int64_t first, count, left; /* left: items not handed out yet */
    line producers, consumers;  /* waiting */
    weir_address *all;          /* (consumers) */
} buffer;

typedef struct producer {
    bench *b;
    int64_t next, left;
} producer;

typedef struct consumer {
    bench *b;
    weir_address buffer;
    int64_t sum;
} consumer;

enum { SLOTS, PRODUCERS, ITEMS }; /* parameters; there are as many consumers as producers */

static void line_add(line *l, weir_address a) {
    l->at[(l->first + l->count++) % l->room] = a;
}

static weir_address line_take(line *l) {
    weir_address a = l->at[l->first];
    l->first = (l->first + 1) % l->room;
    l->count--;
    return a;
}

static void hand_out(weir_actor *self, buffer *f, weir_address to, int64_t item) {
    bench_int(f->b, self, to, f->b->put, item);
    if (--f->left == 0)
        for (int64_t i = 0; i < f->b->p[PRODUCERS]; i++)
            bench_send(f->b, self, f->all[i], f->b->done, NULL);
}

/* Room for one more item beside those that producers may be making: one each. */
static bool roomy(const buffer *f) {
    return f->count + f->b->p[PRODUCERS] <= f->b->p[SLOTS];
}

static void on_item(weir_actor *self, const weir_message *m) {
    buffer *f = weir_state(self);
    int64_t item = bench_first(f->b, m), slots = f->b->p[SLOTS];
    if (f->consumers.count)
        hand_out(self, f, line_take(&f->consumers), item);
    else if (f->count == slots)
        bench_fail(f->b, WEIR_EFULL, "an item more than the buffer has slots");
    else
        f->items[(f->first + f->count++) % slots] = item;
    if (roomy(f))
        bench_send(f->b, self, weir_message_from(m), f->b->more, NULL);
    else
        line_add(&f->producers, weir_message_from(m));
}

static void on_take(weir_actor *self, const weir_message *m) {
    buffer *f = weir_state(self);
    if (!f->count) {
        line_add(&f->consumers, weir_message_from(m));
        return;
    }
    int64_t item = f->items[f->first];
    f->first = (f->first + 1) % f->b->p[SLOTS];
    f->count--;
    hand_out(self, f, weir_message_from(m), item);
    if (f->producers.count && roomy(f))
        bench_send(f->b, self, line_take(&f->producers), f->b->more, NULL);
}

static void buffer_fini(weir_system *s, void *state) {
    buffer *f = state;
    free(f->items);
    free(f->all);
    free(f->producers.at);
    free(f->consumers.at);
    bench_fini(s, f);
}

static void on_more(weir_actor *self, const weir_message *m) {
    producer *p = weir_state(self);
    if (p->left-- > 0)
        bench_int(p->b, self, weir_message_from(m), p->b->put, p->next++);
}

static void on_begin(weir_actor *self, const weir_message *m) {
    consumer *c = weir_state(self);
    (void)m;
    bench_send(c->b, self, c->buffer, c->b->take, NULL);
}

static void on_consume(weir_actor *self, const weir_message *m) {
    consumer *c = weir_state(self);
    c->sum += bench_first(c->b, m);
    bench_send(c->b, self, weir_message_from(m), c->b->take, NULL);
}

static void on_done(weir_actor *self, const weir_message *m) {
    consumer *c = weir_state(self);
    (void)m;
    bench_add(c->b, c->sum);
}

/* The buffer asks each producer for its first item. */
static void on_go(weir_actor *self, const weir_message *m) {
    buffer *f = weir_state(self);
    bench_send(f->b, self, (weir_address)bench_first(f->b, m), f->b->more, NULL);
}

static const weir_handler buffer_handlers[] = {{"go", on_go}, {"put", on_item}, {"take", on_take}, {NULL, NULL}};
static const weir_handler producer_handlers[] = {{"more", on_more}, {NULL, NULL}};
static const weir_handler consumer_handlers[] = {{"go", on_begin}, {"put", on_consume}, {"done", on_done}, {NULL, NULL}};
static const weir_behaviour buffer_kind = {.name = "buffer", .handlers = buffer_handlers, .fini = buffer_fini};
static const weir_behaviour producer_kind = {.name = "producer", .handlers = producer_handlers, .fini = bench_fini};
static const weir_behaviour consumer_kind = {.name = "consumer", .handlers = consumer_handlers, .fini = bench_fini};

static bool furnish(buffer *f, const int64_t *p) {
    size_t many = (size_t)p[PRODUCERS];
    f->left = p[PRODUCERS] * p[ITEMS];
    f->items = calloc((size_t)p[SLOTS], sizeof *f->items);
    f->all = calloc(many, sizeof *f->all);
    f->producers = (line){calloc(many, sizeof(weir_address)), 0, 0, p[PRODUCERS]};
    f->consumers = (line){calloc(many, sizeof(weir_address)), 0, 0, p[PRODUCERS]};
    return f->items && f->all && f->producers.at && f->consumers.at;
}

static void start(bench *b) {
    weir_address middle, a;
    buffer *f = bench_spawn(b, &buffer_kind, sizeof *f, &middle);
    if (!f)
        return;
    if (!furnish(f, b->p)) {
        bench_fail(b, WEIR_ENOMEM, "a buffer");
        return;
    }
    for (int64_t i = 0; i < b->p[PRODUCERS]; i++) {
        consumer *c = bench_spawn(b, &consumer_kind, sizeof *c, &f->all[i]);
        if (!c)
            return;
        c->buffer = middle;
    }
    for (int64_t i = 0; i < b->p[PRODUCERS]; i++) {
        producer *p = bench_spawn(b, &producer_kind, sizeof *p, &a);
        if (!p)
            return;
        p->next = i * b->p[ITEMS];
        p->left = b->p[ITEMS];
        bench_send(b, b->main, f->all[i], b->go, NULL);
        bench_int(b, b->main, middle, b->go, (int64_t)a);
    }
}

static int64_t expected(const int64_t *p) {
    return bench_triangle(p[PRODUCERS] * p[ITEMS]);
}

const bench_kind bench_buffer = {"buffer", "sum of items", {"slots", "producers", "items"}, {9, 5, 40}, {50, 40, 1000}, start, expected};
