/* barber.c: sleeping barber: customers come to a waiting room with some seats; who finds none goes back to the street and comes again. Result: haircuts =
 * customers. The street lets few be on their way at a time, so that the room's mailbox is never full. */
#include "kinds.h"

enum { COMING = 64 }; /* customers between the street and a seat */

typedef struct customer {
    bench *b;
    weir_address street, room;
} customer;

typedef struct street {
    bench *b;
    weir_address room;
    int64_t left;
} street;

typedef struct room {
    bench *b;
    weir_address barber;
    bool cutting;
    int64_t first, count;
    weir_address waiting[]; /* (seats), a ring */
} room;

/* ---- customers: put: into the room; full: no seat; take: seated; done: the haircut is over ---- */

static void enter(weir_actor *self, const weir_message *m) {
    customer *c = weir_state(self);
    (void)m;
    bench_send(c->b, self, c->room, c->b->put, NULL);
}

static void on_full(weir_actor *self, const weir_message *m) {
    customer *c = weir_state(self);
    (void)m;
    bench_send(c->b, self, c->street, c->b->full, NULL);
}

static void on_seat(weir_actor *self, const weir_message *m) {
    customer *c = weir_state(self);
    (void)m;
    bench_send(c->b, self, c->street, c->b->more, NULL);
}

static void on_done(weir_actor *self, const weir_message *m) {
    customer *c = weir_state(self);
    (void)m;
    bench_add(c->b, 1);
    weir_exit(self, NULL);
}

static const weir_handler customer_handlers[] = {{"go", enter}, {"full", on_full}, {"take", on_seat}, {"done", on_done}, {NULL, NULL}};
static const weir_behaviour customer_kind = {.name = "customer", .handlers = customer_handlers, .fini = bench_fini};

/* ---- the street ---- */

static void send_customer(weir_actor *self, street *s) {
    weir_address a;
    customer *c = s->left-- > 0 ? bench_spawn_here(s->b, &customer_kind, sizeof *c, &a) : NULL;
    if (!c)
        return;
    c->street = weir_self(self);
    c->room = s->room;
    bench_send(s->b, self, a, s->b->go, NULL);
}

static void on_open(weir_actor *self, const weir_message *m) {
    (void)m;
    for (int i = 0; i < COMING; i++)
        send_customer(self, weir_state(self));
}

static void on_seated(weir_actor *self, const weir_message *m) {
    (void)m;
    send_customer(self, weir_state(self));
}

static void on_returned(weir_actor *self, const weir_message *m) {
    street *s = weir_state(self);
    bench_send(s->b, self, weir_message_from(m), s->b->go, NULL);
}

static const weir_handler street_handlers[] = {{"go", on_open}, {"more", on_seated}, {"full", on_returned}, {NULL, NULL}};
static const weir_behaviour street_kind = {.name = "street", .handlers = street_handlers, .fini = bench_fini};

/* ---- the room and the barber ---- */

static void call_next(weir_actor *self, room *r) {
    r->cutting = r->count > 0;
    if (!r->cutting)
        return;
    bench_int(r->b, self, r->barber, r->b->put, (int64_t)r->waiting[r->first]);
    r->first = (r->first + 1) % r->b->p[1];
    r->count--;
}

static void on_customer(weir_actor *self, const weir_message *m) {
    room *r = weir_state(self);
    if (r->count == r->b->p[1]) {
        bench_send(r->b, self, weir_message_from(m), r->b->full, NULL);
        return;
    }
    r->waiting[(r->first + r->count++) % r->b->p[1]] = weir_message_from(m);
    bench_send(r->b, self, weir_message_from(m), r->b->take, NULL);
    if (!r->cutting)
        call_next(self, r);
}

static void on_next(weir_actor *self, const weir_message *m) {
    (void)m;
    call_next(self, weir_state(self));
}

static void cut(weir_actor *self, const weir_message *m) {
    bench **b = weir_state(self);
    bench_send(*b, self, (weir_address)bench_first(*b, m), (*b)->done, NULL);
    bench_send(*b, self, weir_message_from(m), (*b)->get, NULL);
}

static const weir_handler room_handlers[] = {{"put", on_customer}, {"get", on_next}, {NULL, NULL}};
static const weir_handler barber_handlers[] = {{"put", cut}, {NULL, NULL}};
static const weir_behaviour room_kind = {.name = "room", .handlers = room_handlers, .fini = bench_fini};
static const weir_behaviour barber_kind = {.name = "barber", .handlers = barber_handlers, .fini = bench_fini};

static void start(bench *b) {
    weir_address outside, inside;
    street *s = bench_spawn(b, &street_kind, sizeof *s, &outside);
    room *r = s ? bench_spawn(b, &room_kind, sizeof *r + (size_t)b->p[1] * sizeof r->waiting[0], &inside) : NULL;
    if (!r || !bench_spawn(b, &barber_kind, sizeof b, &r->barber))
        return;
    s->room = inside;
    s->left = b->p[0];
    bench_send(b, b->main, outside, b->go, NULL);
}

static int64_t expected(const int64_t *p) {
    return p[0];
}

const bench_kind bench_barber = {"barber", "haircuts", {"customers", "seats"}, {200, 5}, {5000, 1000}, start, expected};
