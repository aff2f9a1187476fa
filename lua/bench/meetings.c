/* meetings.c: chameneos and big: many actors that meet others, through one place or at random. */
#include "kinds.h"

/* ---- chameneos: creatures meet in pairs in a mall and change colours. Result: meetings seen by all creatures = 2 x meetings ---- */

enum colour { BLUE, RED, YELLOW };

typedef struct mall {
    bench *b;
    weir_address waiting; /* 0: nobody */
    int64_t colour, left;
} mall;

typedef struct creature {
    bench *b;
    weir_address mall;
    int64_t colour, meetings;
} creature;

static void on_visit(weir_actor *self, const weir_message *m) {
    mall *place = weir_state(self);
    weir_address from = weir_message_from(m);
    int64_t colour = bench_first(place->b, m);
    if (place->left == 0) {
        bench_send(place->b, self, from, place->b->done, NULL);
    } else if (!place->waiting) {
        place->waiting = from;
        place->colour = colour;
    } else {
        bench_int(place->b, self, place->waiting, place->b->put, colour);
        bench_int(place->b, self, from, place->b->put, place->colour);
        place->waiting = 0;
        place->left--;
    }
}

static void visit(weir_actor *self, creature *c) {
    bench_int(c->b, self, c->mall, c->b->take, c->colour);
}

static void on_go(weir_actor *self, const weir_message *m) {
    (void)m;
    visit(self, weir_state(self));
}

/* Two of one colour keep it, two of different ones take the third. */
static void on_meeting(weir_actor *self, const weir_message *m) {
    creature *c = weir_state(self);
    int64_t other = bench_first(c->b, m);
    if (other != c->colour)
        c->colour = BLUE + RED + YELLOW - other - c->colour;
    c->meetings++;
    visit(self, c);
}

static void on_closed(weir_actor *self, const weir_message *m) {
    creature *c = weir_state(self);
    (void)m;
    bench_add(c->b, c->meetings);
    weir_exit(self, NULL);
}

static const weir_handler mall_handlers[] = {{"take", on_visit}, {NULL, NULL}};
static const weir_handler creature_handlers[] = {{"go", on_go}, {"put", on_meeting}, {"done", on_closed}, {NULL, NULL}};
static const weir_behaviour mall_kind = {.name = "mall", .handlers = mall_handlers, .fini = bench_fini};
static const weir_behaviour creature_kind = {.name = "creature", .handlers = creature_handlers, .fini = bench_fini};

static void chameneos_start(bench *b) {
    weir_address place, a;
    mall *m = bench_spawn(b, &mall_kind, sizeof *m, &place);
    if (!m)
        return;
    m->left = b->p[1];
    for (int64_t i = 0; i < b->p[0]; i++) {
        creature *c = bench_spawn(b, &creature_kind, sizeof *c, &a);
        if (!c)
            return;
        c->mall = place;
        c->colour = i % 3;
        bench_send(b, b->main, a, b->go, NULL);
    }
}

static int64_t chameneos_expected(const int64_t *p) {
    return 2 * p[1];
}

const bench_kind bench_chameneos = {"chameneos",   "meetings seen", {"creatures", "meetings"}, {10, 100},
                                    {100, 200000}, chameneos_start, chameneos_expected};

/* ---- big: every actor pings others, chosen at random, one at a time. Result: pongs of all = pings x actors ---- */

typedef struct peer {
    bench *b;
    const weir_address *peers; /* (actors) */
    int64_t left;
    uint64_t random;
} peer;

static void on_ping(weir_actor *self, const weir_message *m) {
    peer *p = weir_state(self);
    bench_send(p->b, self, weir_message_from(m), p->b->pong, NULL);
}

static void ping_one(weir_actor *self, peer *p) {
    bench_send(p->b, self, p->peers[bench_random(&p->random) % (uint64_t)p->b->p[1]], p->b->ping, NULL);
}

static void on_start(weir_actor *self, const weir_message *m) {
    (void)m;
    ping_one(self, weir_state(self));
}

static void on_pong(weir_actor *self, const weir_message *m) {
    peer *p = weir_state(self);
    (void)m;
    if (--p->left)
        ping_one(self, p);
    else
        bench_add(p->b, p->b->p[0]);
}

static const weir_handler peer_handlers[] = {{"go", on_start}, {"ping", on_ping}, {"pong", on_pong}, {NULL, NULL}};
static const weir_behaviour peer_kind = {.name = "peer", .handlers = peer_handlers, .fini = bench_fini};

static void big_start(bench *b) {
    weir_address *peers = b->data = calloc((size_t)b->p[1], sizeof *peers);
    for (int64_t i = 0; peers && i < b->p[1]; i++) {
        peer *p = bench_spawn(b, &peer_kind, sizeof *p, &peers[i]);
        if (!p)
            break;
        p->peers = peers;
        p->left = b->p[0];
        p->random = (uint64_t)i + 1;
    }
    if (!peers)
        bench_fail(b, WEIR_ENOMEM, "addresses");
    for (int64_t i = 0; i < b->p[1] && !b->failed; i++)
        bench_send(b, b->main, peers[i], b->go, NULL);
}

static int64_t big_expected(const int64_t *p) {
    return p[0] * p[1];
}

const bench_kind bench_big = {"big", "pongs", {"pings", "actors"}, {50, 10}, {20000, 120}, big_start, big_expected};
