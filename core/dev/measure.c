/* measure.c: measures a device through what every device has: buffers, lists, two streams (measure.h). Times are the caller's clock, from the first submission to the
 * end of the last piece of work. */
#include "measure.h"
#include "private.h"

enum { SMALL_ITEMS = 256, LARGE_ITEMS = 8, DIM = 64, MOST_SHAPES = 12, MOST_RUNS = 64 };

typedef struct rig {
    weir__device *device;
    weir__stream *work, *other;
    weir__buffer *a, *b, *host, *table, *frequencies;
    weir__list *small, *large;
    size_t bytes;
    int rounds;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    int waiting, failed; /* lock */
} rig;

/* ---- waiting ---- */

typedef struct mark {
    rig *rig;
    bool ran;
} mark;

static int reach(void *data) {
    ((mark *)data)->ran = true;
    return WEIR_OK;
}

static void end(void *data) {
    mark *m = data;
    rig *r = m->rig;
    pthread_mutex_lock(&r->lock);
    r->failed += !m->ran;
    r->waiting--;
    pthread_cond_signal(&r->ended);
    pthread_mutex_unlock(&r->lock);
}

static int wait_for(rig *r, weir__stream *const *streams, int count, weir_error **error) {
    mark marks[2];
    char why[WEIR__WHY] = "";
    int code = WEIR_OK;
    r->waiting = r->failed = 0;
    for (int i = 0; i < count && !code; i++) {
        marks[i] = (mark){r, false};
        pthread_mutex_lock(&r->lock);
        r->waiting++;
        pthread_mutex_unlock(&r->lock);
        code = weir__stream_host(streams[i], reach, end, &marks[i]);
    }
    pthread_mutex_lock(&r->lock);
    r->waiting -= code != 0; /* of the submission that was refused */
    while (r->waiting)
        pthread_cond_wait(&r->ended, &r->lock);
    pthread_mutex_unlock(&r->lock);
    if (!code && !r->failed)
        return WEIR_OK;
    weir__stream_why(streams[0], why, sizeof why);
    return weir_fail(error, WEIR_EDEVICE, "device %s: a measured piece of work failed%s", weir__device_name(r->device), why);
}

/* ---- what is measured ---- */

typedef struct task {
    weir__list *list; /* NULL: none */
    int runs;
    weir__shape shape;
    weir__buffer *to, *from; /* NULL: no copy */
} task;

static int submit(rig *r, const task *t) {
    int code = WEIR_OK;
    if (t->to)
        code = weir__stream_copy(t->list ? r->other : r->work, t->to, 0, t->from, 0, r->bytes);
    for (int i = 0; i < t->runs && !code; i++)
        code = weir__stream_run(r->work, t->list, &t->shape);
    return code;
}

/* Once, in ns. */
static int time_once(rig *r, const task *t, double *ns, weir_error **error) {
    weir__stream *const streams[] = {r->work, r->other};
    int64_t begin = weir__dev_clock();
    int code = submit(r, t);
    if (code)
        return weir_fail(error, code, "device %s: a measured piece of work was refused", weir__device_name(r->device));
    code = wait_for(r, streams, 2, error);
    *ns = (double)(weir__dev_clock() - begin);
    return code;
}

/* The best of the rounds, after one that does not count. */
static int time_best(rig *r, const task *t, double *ns, weir_error **error) {
    double once;
    int code = time_once(r, t, ns, error);
    for (int i = 0; i < r->rounds && !code; i++) {
        code = time_once(r, t, &once, error);
        *ns = i == 0 || once < *ns ? once : *ns;
    }
    return code;
}

static int measure_copies(rig *r, weir__measures *m, weir_error **error) {
    const task tasks[] = {{.to = r->b, .from = r->a}, {.to = r->a, .from = r->host}, {.to = r->host, .from = r->a}};
    double *const rates[] = {&m->copy, &m->upload, &m->download}, ns = 0;
    for (int i = 0; i < 3; i++) {
        int code = time_best(r, &tasks[i], &ns, error);
        if (code)
            return code;
        *rates[i] = (double)r->bytes / ns * 1e9;
    }
    return WEIR_OK;
}

/* A list is launched item by item in a shape that it has not run in, and may be replayed from the third run in one on. */
static int measure_launches(rig *r, weir__measures *m, weir_error **error) {
    double once;
    int code = WEIR_OK, shapes = r->rounds < MOST_SHAPES ? r->rounds : MOST_SHAPES;
    task t = {.list = r->small, .runs = 1, .shape = {1, 1, 1}};
    for (int i = 0; i <= shapes && !code; i++) {
        t.shape.rows = i + 1;
        code = time_once(r, &t, &once, error);
        m->launch = i <= 1 || once < m->launch ? once : m->launch;
    }
    if (!code)
        code = time_once(r, &t, &once, error);
    if (!code)
        code = time_best(r, &t, &m->replay, error);
    m->launch /= SMALL_ITEMS;
    m->replay /= SMALL_ITEMS;
    return code;
}

static int measure_overlap(rig *r, weir__measures *m, weir_error **error) {
    task sending = {.to = r->a, .from = r->host}, work = {.list = r->large, .runs = 1, .shape = {1, 1, 1}};
    int code = time_best(r, &sending, &m->sending, error);
    for (int i = 0; i < 3 && !code; i++)
        code = time_once(r, &work, &m->work, error);
    if (code)
        return code;
    double runs = m->sending / m->work; /* about as long as the upload */
    work.runs = runs < 1 ? 1 : runs > MOST_RUNS ? MOST_RUNS : (int)runs;
    code = time_best(r, &work, &m->work, error);
    work.to = r->a;
    work.from = r->host;
    return code ? code : time_best(r, &work, &m->both, error);
}

/* ---- making it ---- */

static int make_buffers(rig *r, weir_error **error) {
    size_t table = r->bytes / 64 / DIM * DIM;
    int code = weir__buffer_new(r->device, r->bytes, "a measured copy", &r->a, error);
    if (!code)
        code = weir__buffer_new(r->device, r->bytes, "a measured copy", &r->b, error);
    if (!code)
        code = weir__buffer_new_host(r->device, r->bytes, "a measured copy", &r->host, error);
    if (!code)
        code = weir__buffer_new(r->device, table, "a measured table", &r->table, error);
    return code ? code : weir__buffer_new(r->device, sizeof(double) * DIM / 2, "rotary frequencies", &r->frequencies, error);
}

static int make_list(rig *r, const char *name, int items, int positions, int dim, weir__list **out, weir_error **error) {
    weir_k_rope_table args = {weir__buffer_pointer(r->table), positions, dim, weir__buffer_pointer(r->frequencies), 1};
    int code = weir__list_new(r->device, name, out, error);
    if (!code)
        code = weir__list_own(*out, r->table);
    if (!code)
        code = weir__list_own(*out, r->frequencies);
    for (int i = 0; i < items && !code; i++)
        code = weir__list_add(*out, WEIR_K_rope_table, &args, true, error);
    return code;
}

static int make(rig *r, weir_error **error) {
    int positions = (int)(weir__buffer_size(r->table) / sizeof(float) / DIM);
    int code = weir__stream_new(r->device, 0, "work", &r->work, error);
    if (!code)
        code = weir__stream_new(r->device, 0, "other", &r->other, error);
    if (!code)
        code = make_list(r, "small", SMALL_ITEMS, 1, 2, &r->small, error);
    return code ? code : make_list(r, "large", LARGE_ITEMS, positions, DIM, &r->large, error);
}

static void unmake(rig *r) {
    weir__buffer *const buffers[] = {r->a, r->b, r->host, r->table, r->frequencies};
    weir__list_unref(r->small);
    weir__list_unref(r->large);
    weir__stream_close(r->work);
    weir__stream_close(r->other);
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        weir__buffer_unref(buffers[i]);
    pthread_mutex_destroy(&r->lock);
    pthread_cond_destroy(&r->ended);
}

int weir__device_measure(weir_system *s, const char *name, size_t bytes, int rounds, weir__measures *out, weir_error **error) {
    rig r = {.bytes = bytes, .rounds = rounds};
    if (bytes < 1 << 20 || rounds < 1)
        return weir_fail(error, WEIR_EINVAL, "measuring a device: %zu bytes, %d rounds", bytes, rounds);
    int code = weir__device_open(s, name, 0, &r.device, error);
    if (code)
        return code;
    *out = (weir__measures){0};
    pthread_mutex_init(&r.lock, NULL);
    pthread_cond_init(&r.ended, NULL);
    int (*const steps[])(rig *, weir__measures *, weir_error **) = {measure_copies, measure_launches, measure_overlap};
    code = make_buffers(&r, error);
    if (!code)
        code = make(&r, error);
    for (size_t i = 0; i < sizeof steps / sizeof *steps && !code; i++)
        code = steps[i](&r, out, error);
    unmake(&r);
    return code;
}
