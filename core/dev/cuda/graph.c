/* graph.c: graphs of lists. A list that runs in a shape for the second time is captured, its launches as they are, and from then on replayed: the first run goes item by
 * item, which also lets cuBLAS set itself up. Captures happen inside of one call on the stream's thread, so nothing of weir's can come between their begin and their
 * end: no other capture, no copy, no release, no error of a script, no actor's death. Bounded by count and bytes for a device. */
#include "cuda.h"

#include <stdio.h>
#include <string.h>

enum { MOST_OF_LIST = 16, MOST_GRAPHS = 512 };
#define MOST_BYTES ((size_t)256 << 20)

/* Of one list and one shape; exec NULL: launched once, item by item. */
struct weir__cuda_graph {
    weir__cuda_graph *next; /* of the list, most recently used first */
    weir__shape shape;
    CUgraphExec exec;
    size_t bytes;
    CUstream stream; /* where it was used last, and by which item */
    uint64_t number;
};

void weir__cuda_graphs_init(weir__cuda *c) {
    pthread_mutex_init(&c->graphs, NULL);
}

static void drop(weir__cuda *c, weir__cuda_graph *g) {
    if (g->exec) {
        if (!c->gone)
            c->driver.GraphExecDestroy(g->exec);
        c->graph_count--;
        c->graph_bytes -= g->bytes;
    }
    weir__free(c->base.system, g);
}

void weir__cuda_list_free(weir__list *l) {
    weir__cuda *c = weir__cuda_of(l->device);
    weir__cuda_scope scope = {0};
    if (!l->native)
        return;
    pthread_mutex_lock(&c->graphs);
    bool there = !c->gone;
    if (there)
        scope = weir__cuda_enter(c);
    for (weir__cuda_graph *g = l->native, *next; g; g = next) {
        next = g->next;
        drop(c, g);
    }
    l->native = NULL;
    if (there)
        weir__cuda_leave(c, scope);
    pthread_mutex_unlock(&c->graphs);
}

/* ---- below, c->graphs is held ---- */

static bool same_shape(const weir__shape *a, const weir__shape *b) {
    return a->rows == b->rows && a->outputs == b->outputs && a->positions == b->positions;
}

/* The graph of a shape, moved to the front; NULL: none. */
static weir__cuda_graph *find(weir__list *l, const weir__shape *shape) {
    for (weir__cuda_graph **at = (weir__cuda_graph **)&l->native; *at; at = &(*at)->next) {
        weir__cuda_graph *g = *at;
        if (!same_shape(&g->shape, shape))
            continue;
        *at = g->next;
        g->next = l->native;
        l->native = g;
        return g;
    }
    return NULL;
}

/* Makes room in the list: the graph that was not used for longest goes, unless work under way may be in it. */
static bool make_room(weir__cuda_queue *q, weir__list *l) {
    unsigned n = 0;
    weir__cuda_graph **last = NULL;
    for (weir__cuda_graph **at = (weir__cuda_graph **)&l->native; *at; at = &(*at)->next, n++)
        last = at;
    if (n < MOST_OF_LIST)
        return true;
    weir__cuda_graph *g = *last;
    if (g->exec && (g->stream != q->stream || g->number > q->ended))
        return false;
    *last = NULL;
    drop(q->device, g);
    return true;
}

static void remember(weir__cuda_queue *q, weir__list *l, const weir__shape *shape) {
    weir__cuda_graph *g = make_room(q, l) ? weir__alloc(q->device->base.system, sizeof *g) : NULL;
    if (!g)
        return;
    g->shape = *shape;
    g->next = l->native;
    l->native = g;
}

/* About what a graph of so many launches holds. */
static size_t bytes_of(const weir__list *l) {
    size_t n = 0;
    for (size_t i = 0; i < l->length; i++)
        n += ((const weir__cuda_op *)l->items[i].entry)->count;
    return n * 1024;
}

/* The end of a capture, whatever happened inside of it: the stream is as before, a partial graph is gone. */
static CUresult end_capture(weir__cuda_queue *q, CUresult code, CUgraph *graph) {
    const weir__cuda_driver *d = &q->device->driver;
    CUresult end = d->StreamEndCapture(q->stream, graph);
    if (!code && !end)
        return CUDA_SUCCESS;
    if (!end && *graph)
        d->GraphDestroy(*graph);
    *graph = NULL;
    return code ? code : end;
}

static CUresult capture(weir__cuda_queue *q, const weir__list *l, weir__cuda_graph *g) {
    weir__cuda *c = q->device;
    CUgraph graph = NULL;
    CUresult code = c->driver.StreamBeginCapture(q->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    if (code)
        return code;
    code = end_capture(q, weir__cuda_launch_all(q, l, &g->shape), &graph);
    if (!code)
        code = c->driver.GraphInstantiate(&g->exec, graph, 0);
    if (graph)
        c->driver.GraphDestroy(graph);
    if (code) {
        g->exec = NULL;
        return code;
    }
    g->bytes = bytes_of(l);
    c->graph_count++;
    c->graph_bytes += g->bytes;
    return CUDA_SUCCESS;
}

/* What failed inside of the capture is in q->why already; of its own calls nothing is. */
static void say_captured(weir__cuda_queue *q, const weir__list *l, const weir__shape *shape, CUresult code) {
    char inside[WEIR__CUDA_WHY];
    snprintf(inside, sizeof inside, "%s", q->why);
    int n = snprintf(q->why, WEIR__CUDA_WHY, "list %s: capturing: ", l->name);
    if (*inside)
        strncat(q->why, inside, WEIR__CUDA_WHY - 1 - (size_t)n);
    else
        snprintf(q->why + n, WEIR__CUDA_WHY - (size_t)n, "%s (%d rows, %d outputs, %d positions)", weir__cuda_error_text(code), shape->rows,
                 shape->outputs, shape->positions);
}

static CUresult replay(weir__cuda_queue *q, weir__list *l, const weir__shape *shape, uint64_t number, bool *done) {
    weir__cuda *c = q->device;
    weir__cuda_graph *g = find(l, shape);
    CUresult code = CUDA_SUCCESS;
    if (!g || (!g->exec && (c->graph_count == MOST_GRAPHS || c->graph_bytes + bytes_of(l) > MOST_BYTES)))
        return CUDA_SUCCESS;
    if (!g->exec)
        code = capture(q, l, g);
    if (code) {
        say_captured(q, l, shape, code);
        return code;
    }
    g->stream = q->stream;
    g->number = number;
    *done = true;
    code = c->driver.GraphLaunch(g->exec, q->stream);
    if (code)
        snprintf(q->why, WEIR__CUDA_WHY, "list %s: cuGraphLaunch: %s", l->name, weir__cuda_error_text(code));
    return code;
}

CUresult weir__cuda_replay(weir__cuda_queue *q, weir__list *l, const weir__shape *shape, uint64_t number, bool *done) {
    pthread_mutex_lock(&q->device->graphs);
    CUresult code = replay(q, l, shape, number, done);
    pthread_mutex_unlock(&q->device->graphs);
    weir__cuda_note(q->device, code);
    return code;
}

void weir__cuda_ran(weir__cuda_queue *q, weir__list *l, const weir__shape *shape) {
    pthread_mutex_lock(&q->device->graphs);
    if (!find(l, shape))
        remember(q, l, shape);
    pthread_mutex_unlock(&q->device->graphs);
}
