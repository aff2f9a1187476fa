/* queens.c: N queens: a master keeps a stack of boards and gives one at a time to each worker; a worker answers with the boards that come of it, or, when
 * few rows are set, no more, with the solutions that it leads to. Result: solutions. */
#include "kinds.h"

#include <string.h>

enum { SIZE, WORKERS, LARGEST = 16, DEEP = 4 }; /* DEEP: rows from which on a worker solves the rest by itself */

/* rows set, then the column of the queen in each. */
typedef struct board {
    uint8_t rows, column[LARGEST];
} board;

typedef struct stack {
    bench *b;
    int64_t count, room, solutions;
    weir_address *idle; /* (n_idle), room for all workers */
    int64_t n_idle;
    board *boards; /* (count) */
} stack;

static bool safe(const board *q, uint8_t column) {
    for (int i = 0; i < q->rows; i++) {
        int away = q->rows - i, beside = column - q->column[i];
        if (beside == 0 || beside == away || beside == -away)
            return false;
    }
    return true;
}

static int64_t solve(board *q, int64_t n) {
    if (q->rows == n)
        return 1;
    int64_t found = 0;
    for (uint8_t column = 0; column < n; column++) {
        if (!safe(q, column))
            continue;
        q->column[q->rows++] = column;
        found += solve(q, n);
        q->rows--;
    }
    return found;
}

/* A board comes as the bytes of its struct; the answer is [solutions, boards]. */
static void on_board(weir_actor *self, const weir_message *m) {
    bench *b = *(bench **)weir_state(self);
    board q, next[LARGEST];
    const char *bytes;
    size_t size, n = 0;
    weir_cursor c = weir_read(weir_message_body(m), NULL);
    if (!weir_read_bytes(&c, &bytes, &size) || size != sizeof q) {
        bench_fail(b, WEIR_ETYPE, "no board");
        return;
    }
    memcpy(&q, bytes, sizeof q);
    int64_t found = q.rows >= DEEP ? solve(&q, b->p[SIZE]) : 0;
    for (uint8_t column = 0; q.rows < DEEP && column < b->p[SIZE]; column++) {
        if (!safe(&q, column))
            continue;
        next[n] = q;
        next[n].column[next[n].rows++] = column;
        n++;
    }
    bench_send(b, self, weir_message_from(m), b->done, weir_pack(b->system, "ib", found, (const void *)next, n * sizeof *next));
}

static void hand_out(weir_actor *self, stack *s) {
    for (; s->count && s->n_idle; s->n_idle--)
        bench_send(s->b, self, s->idle[s->n_idle - 1], s->b->put,
                   weir_pack(s->b->system, "b", (const void *)&s->boards[--s->count], sizeof *s->boards));
}

static bool stack_grow(stack *s, size_t more) {
    int64_t room = s->room;
    while (room < s->count + (int64_t)more)
        room = room ? 2 * room : 64;
    board *boards = room > s->room ? realloc(s->boards, (size_t)room * sizeof *boards) : s->boards;
    if (!boards)
        return false;
    s->boards = boards;
    s->room = room;
    return true;
}

static void on_done(weir_actor *self, const weir_message *m) {
    stack *s = weir_state(self);
    int64_t found;
    const char *bytes;
    size_t size;
    weir_cursor c = weir_read(weir_message_body(m), NULL);
    if (!weir_read_int(&c, &found) || !weir_read_bytes(&c, &bytes, &size) || !stack_grow(s, size / sizeof(board))) {
        bench_fail(s->b, WEIR_EINVAL, "no boards");
        return;
    }
    s->solutions += found;
    if (size)
        memcpy(s->boards + s->count, bytes, size);
    s->count += (int64_t)(size / sizeof(board));
    s->idle[s->n_idle++] = weir_message_from(m);
    hand_out(self, s);
    if (!s->count && s->n_idle == s->b->p[WORKERS])
        bench_add(s->b, s->solutions);
}

static void on_go(weir_actor *self, const weir_message *m) {
    (void)m;
    hand_out(self, weir_state(self));
}

static void stack_fini(weir_system *system, void *state) {
    stack *s = state;
    free(s->boards);
    free(s->idle);
    bench_fini(system, s);
}

static const weir_handler stack_handlers[] = {{"go", on_go}, {"done", on_done}, {NULL, NULL}};
static const weir_handler solver_handlers[] = {{"put", on_board}, {NULL, NULL}};
static const weir_behaviour stack_kind = {.name = "boards", .handlers = stack_handlers, .fini = stack_fini};
static const weir_behaviour solver_kind = {.name = "solver", .handlers = solver_handlers, .fini = bench_fini};

static void start(bench *b) {
    weir_address a;
    stack *s = bench_spawn(b, &stack_kind, sizeof *s, &a);
    if (!s)
        return;
    s->idle = calloc((size_t)b->p[WORKERS], sizeof *s->idle);
    if (!s->idle || !stack_grow(s, 1)) {
        bench_fail(b, WEIR_ENOMEM, "boards");
        return;
    }
    s->boards[s->count++] = (board){0};
    for (; s->n_idle < b->p[WORKERS]; s->n_idle++)
        if (!bench_spawn(b, &solver_kind, sizeof b, &s->idle[s->n_idle]))
            return;
    bench_send(b, b->main, a, b->go, NULL);
}

/* OEIS A000170. */
static int64_t expected(const int64_t *p) {
    static const int64_t solutions[] = {1, 1, 0, 0, 2, 10, 4, 40, 92, 352, 724, 2680, 14200, 73712, 365596, 2279184, 14772512};
    return solutions[p[SIZE]];
}

const bench_kind bench_queens = {"queens", "solutions", {"queens", "workers"}, {7, 4}, {12, 20}, start, expected};
