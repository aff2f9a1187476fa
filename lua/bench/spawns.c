/* spawns.c: fork-join creation, spawn tree, Fibonacci: what actors cost that live for one message or two. */
#include "kinds.h"

/* ---- creation: N actors get one message each and end. Result: actors that ran = N ---- */

static void on_once(weir_actor *self, const weir_message *m) {
    bench **b = weir_state(self);
    (void)m;
    bench_add(*b, 1);
    weir_exit(self, NULL);
}

static const weir_handler once_handlers[] = {{"go", on_once}, {NULL, NULL}};
static const weir_behaviour once_kind = {.name = "once", .handlers = once_handlers, .fini = bench_fini};

static void create_start(bench *b) {
    for (int64_t i = 0; i < b->p[0]; i++) {
        weir_address a;
        if (!bench_spawn(b, &once_kind, sizeof b, &a))
            return;
        bench_send(b, b->main, a, b->go, NULL);
    }
}

static int64_t create_expected(const int64_t *p) {
    return p[0];
}

const bench_kind bench_create = {"create", "actors", {"actors"}, {200}, {40000}, create_start, create_expected};

/* ---- trees: an actor asks children for parts of its answer, adds them up, tells its parent and ends ---- */

typedef struct branch {
    bench *b;
    weir_address parent; /* 0: the answer is the result */
    int64_t sum, waiting;
} branch;

static void answer(weir_actor *self, branch *n) {
    if (n->parent)
        bench_int(n->b, self, n->parent, n->b->done, n->sum);
    else
        bench_add(n->b, n->sum);
    weir_exit(self, NULL);
}

static void on_part(weir_actor *self, const weir_message *m) {
    branch *n = weir_state(self);
    n->sum += bench_first(n->b, m);
    if (--n->waiting == 0)
        answer(self, n);
}

/* The children of the root are spread over the loops; theirs stay with them. */
static bool grow(weir_actor *self, const weir_behaviour *kind, int64_t first, int64_t second) {
    branch *n = weir_state(self);
    weir_address a;
    branch *child = n->parent ? bench_spawn_here(n->b, kind, sizeof *child, &a) : bench_spawn(n->b, kind, sizeof *child, &a);
    if (!child)
        return false;
    child->parent = weir_self(self);
    n->waiting++;
    bench_send(n->b, self, a, n->b->go, weir_pack(n->b->system, "ii", first, second));
    return true;
}

static void plant(bench *b, const weir_behaviour *kind, int64_t first, int64_t second) {
    weir_address a;
    if (bench_spawn(b, kind, sizeof(branch), &a))
        bench_send(b, b->main, a, b->go, weir_pack(b->system, "ii", first, second));
}

static void read_two(bench *b, const weir_message *m, int64_t *first, int64_t *second) {
    weir_cursor c = weir_read(weir_message_body(m), NULL);
    if (!weir_read_int(&c, first) || !weir_read_int(&c, second))
        bench_fail(b, WEIR_ETYPE, "two numbers were wanted");
}

/* ---- spawn tree: every actor has `children` until there are `leaves`. Result: the sum of the leaves' ordinals = leaves (leaves - 1) / 2 ---- */

static void tree_go(weir_actor *self, const weir_message *m);
static const weir_handler tree_handlers[] = {{"go", tree_go}, {"done", on_part}, {NULL, NULL}};
static const weir_behaviour tree_kind = {.name = "tree", .handlers = tree_handlers, .fini = bench_fini};

static void tree_go(weir_actor *self, const weir_message *m) {
    branch *n = weir_state(self);
    int64_t ordinal = 0, leaves = 1, children = n->b->p[1];
    read_two(n->b, m, &ordinal, &leaves);
    if (leaves <= 1) {
        n->sum = ordinal;
        answer(self, n);
        return;
    }
    for (int64_t i = 0; i < children; i++)
        if (!grow(self, &tree_kind, ordinal + i * (leaves / children), leaves / children))
            return;
}

static void tree_start(bench *b) {
    plant(b, &tree_kind, 0, b->p[0]);
}

static int64_t tree_expected(const int64_t *p) {
    return bench_triangle(p[0]);
}

const bench_kind bench_spawntree = {"spawntree",   "sum of ordinals", {"leaves", "children"}, {1000, 10},
                                    {1000000, 10}, tree_start,        tree_expected};

/* ---- Fibonacci: F(n) asks for F(n - 1) and F(n - 2). Result: F(n), F(1) = F(2) = 1 ---- */

static void fibonacci_go(weir_actor *self, const weir_message *m);
static const weir_handler fibonacci_handlers[] = {{"go", fibonacci_go}, {"done", on_part}, {NULL, NULL}};
static const weir_behaviour fibonacci_kind = {.name = "fibonacci", .handlers = fibonacci_handlers, .fini = bench_fini};

static void fibonacci_go(weir_actor *self, const weir_message *m) {
    branch *n = weir_state(self);
    int64_t index = bench_first(n->b, m);
    if (index <= 2) {
        n->sum = 1;
        answer(self, n);
    } else if (grow(self, &fibonacci_kind, index - 1, 0)) {
        grow(self, &fibonacci_kind, index - 2, 0);
    }
}

static void fibonacci_start(bench *b) {
    plant(b, &fibonacci_kind, b->p[0], 0);
}

static int64_t fibonacci_expected(const int64_t *p) {
    int64_t a = 0, f = 1;
    for (int64_t i = 1; i < p[0]; i++) {
        int64_t next = a + f;
        a = f;
        f = next;
    }
    return f;
}

const bench_kind bench_fibonacci = {"fibonacci", "F(n)", {"n"}, {12}, {25}, fibonacci_start, fibonacci_expected};
