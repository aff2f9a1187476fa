/* helper_dev.c: see helper_dev.h. Knows only the interface of core/dev. */
#include "helper_dev.h"

#include <dirent.h>
#include <time.h>

static void *counted(void *data, void *p, size_t old_size, size_t new_size) {
    dev_test *t = data;
    if (new_size == 0) {
        atomic_fetch_sub(&t->bytes, (int64_t)old_size);
        free(p);
        return NULL;
    }
    void *q = realloc(p, new_size);
    if (q)
        atomic_fetch_add(&t->bytes, (int64_t)new_size - (int64_t)old_size);
    return q;
}

static void on_note(weir_actor *self, const weir_message *m) {
    dev_test *t = *(dev_test **)weir_state(self);
    int64_t status = -1, arg = -1;
    weir_cursor c = weir_read(weir_message_body(m), NULL);
    assert_true(weir_read_int(&c, &status));
    assert_true(weir_read_int(&c, &arg));
    assert_in_range(t->count, 0, DEV_NOTICES - 1);
    t->notice[t->count].status = (int)status;
    t->notice[t->count].arg = arg;
    t->count++;
}

static void inbox_fini(weir_system *s, void *state) {
    (void)s;
    free(state);
}

static const weir_handler inbox_handlers[] = {{"note", on_note}, {NULL, NULL}};
static const weir_behaviour inbox = {.name = "inbox", .handlers = inbox_handlers, .fini = inbox_fini};

void dev_open_system(dev_test *t, const weir_system_options *options) {
    memset(t, 0, sizeof *t);
    weir_system_options o = options ? *options : (weir_system_options){0};
    o.alloc = counted;
    o.alloc_data = t;
    assert_int_equal(weir_system_new(&o, &t->s, NULL), WEIR_OK);
    t->inline_mode = o.driver == WEIR_DRIVER_TEST;
    t->verb = weir_intern(t->s, "note");
    dev_test **state = malloc(sizeof *state);
    *state = t;
    assert_int_equal(weir_spawn(t->s, &inbox, state, NULL, &t->inbox, NULL), WEIR_OK);
}

static void open_device(dev_test *t, unsigned threads) {
    weir_error *error = NULL;
    if (weir__device_open(t->s, "cpu", threads, &t->d, &error))
        fail_msg("%s", weir_error_text(error));
}

void dev_open(dev_test *t, unsigned threads) {
    dev_open_system(t, NULL);
    open_device(t, threads);
}

void dev_open_inline(dev_test *t, unsigned threads, uint64_t seed) {
    weir_system_options o = {.driver = WEIR_DRIVER_TEST, .seed = seed};
    dev_open_system(t, &o);
    open_device(t, threads);
}

void dev_settle(dev_test *t) {
    assert_int_equal(weir_system_run(t->s, NULL, NULL, NULL), WEIR_OK);
}

void dev_close(dev_test *t) {
    dev_settle(t);
    weir_system_free(t->s);
    assert_int_equal(atomic_load(&t->bytes), 0);
}

static bool enough(void *data) {
    const dev_test *t = data;
    return t->count >= t->wanted;
}

void dev_run_until(dev_test *t, int notices) {
    t->wanted = notices;
    assert_int_equal(weir_system_run(t->s, enough, t, NULL), WEIR_OK);
    assert_true(t->count >= notices);
}

weir__stream *dev_stream(dev_test *t, const char *name) {
    weir__stream *st = NULL;
    assert_int_equal(weir__stream_new(t->d, t->inbox, name, &st, NULL), WEIR_OK);
    return st;
}

void dev_notify(dev_test *t, weir__stream *st, int64_t arg) {
    assert_int_equal(weir__stream_notify(st, t->inbox, t->verb, arg), WEIR_OK);
}

weir__buffer *dev_buffer(dev_test *t, size_t bytes) {
    weir__buffer *b = NULL;
    assert_int_equal(weir__buffer_new(t->d, bytes, "test", &b, NULL), WEIR_OK);
    return b;
}

uint64_t dev_bytes(dev_test *t) {
    weir_system_stats stats;
    weir_system_get_stats(t->s, &stats);
    return stats.bytes;
}

/* ---- this process ---- */

static int each_thread(int64_t *ticks) {
    int count = 0;
    DIR *dir = opendir("/proc/self/task");
    assert_non_null(dir);
    for (struct dirent *e; (e = readdir(dir));) {
        if (e->d_name[0] == '.')
            continue;
        char path[300], text[1024] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/stat", e->d_name);
        FILE *f = fopen(path, "r");
        if (!f)
            continue;
        size_t n = fread(text, 1, sizeof text - 1, f);
        fclose(f);
        long user = 0, system = 0;
        const char *after = n ? strrchr(text, ')') : NULL;
        if (!after || sscanf(after + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld", &user, &system) != 2)
            continue;
        count++;
        *ticks += user + system;
    }
    closedir(dir);
    return count;
}

int dev_threads(void) {
    int64_t ticks = 0;
    return each_thread(&ticks);
}

int64_t dev_cpu_ticks(void) {
    int64_t ticks = 0;
    each_thread(&ticks);
    return ticks;
}

void dev_threads_settle(int expected) {
    for (int i = 0; i < 5000 && dev_threads() != expected; i++)
        dev_nap(2000000);
    assert_int_equal(dev_threads(), expected);
}

void dev_nap(int64_t ns) {
    struct timespec t = {ns / 1000000000, ns % 1000000000};
    nanosleep(&t, NULL);
}

/* ---- host functions ---- */

int dev_gate_fn(void *data) {
    dev_gate *g = data;
    atomic_store(&g->entered, true);
    while (!atomic_load(&g->open))
        dev_nap(100000);
    atomic_fetch_add(&g->ran, 1);
    return g->result;
}

void dev_gate_release(void *data) {
    atomic_fetch_add(&((dev_gate *)data)->released, 1);
}

void dev_gate_submit(weir__stream *st, dev_gate *g) {
    assert_int_equal(weir__stream_host(st, dev_gate_fn, dev_gate_release, g), WEIR_OK);
}

void dev_gate_entered(dev_gate *g) {
    while (!atomic_load(&g->entered))
        dev_nap(100000);
}

/* ---- products ---- */

/* Element (j, k) of an F32 matrix of `n` inputs in panels of 16 rows. */
static float *weight(float *w, int n, int j, int k) {
    return &w[((size_t)(j / 16) * (size_t)n + (size_t)k) * 16 + (size_t)(j % 16)];
}

typedef struct layout {
    weir_step step;
    void *base; /* of W */
    float *x, *y, *w;
} layout;

static layout *product_memory(dev_test *t, dev_work *work, int n) {
    size_t w_bytes = weir_packed_size(WEIR_F32, n, n), vector = (size_t)n * sizeof(float);
    size_t head = (sizeof(layout) + 63) / 64 * 64;
    assert_true(w_bytes >= (size_t)n * vector && vector % 64 == 0);
    work->memory = dev_buffer(t, head + w_bytes + 3 * vector);
    char *p = weir__buffer_pointer(work->memory);
    layout *l = (layout *)p;
    l->base = l->w = (float *)(p + head);
    l->x = work->x = (float *)(p + head + w_bytes);
    l->y = work->y = (float *)(p + head + w_bytes + vector);
    work->z = work->y + n;
    l->step.rows = l->step.tile = l->step.tile_rows = 1;
    work->n = n;
    assert_int_equal(weir__list_new(t->d, "products", &work->list, NULL), WEIR_OK);
    assert_int_equal(weir__list_own(work->list, work->memory), WEIR_OK);
    return l;
}

static void add_product(dev_work *work, layout *l, const float *from, float *to, bool add, bool joined) {
    weir_k_matmul args = {.step = &l->step,
                          .w = {.base = &l->base, .offset = 0, .type = WEIR_F32, .n = work->n, .k = work->n},
                          .x = from,
                          .ldx = work->n,
                          .rows = WEIR_ROWS_TILE,
                          .y = to,
                          .ldy = work->n,
                          .y_rows = WEIR_ROWS_TILE,
                          .add = add};
    weir_error *error = NULL;
    if (weir__list_add(work->list, WEIR_K_matmul, &args, joined, &error))
        fail_msg("%s", weir_error_text(error));
}

void dev_adder(dev_test *t, dev_work *work, int n, int items, bool pairs) {
    layout *l = product_memory(t, work, n);
    l->x[0] = 1;
    for (int j = 0; j < n; j++)
        *weight(l->w, n, j, 0) = 1;
    for (int i = 0; i < items; i++)
        add_product(work, l, l->x, pairs && i % 2 ? work->z : l->y, true, !pairs || i % 2);
}

void dev_shifter(dev_test *t, dev_work *work, int n, int items) {
    layout *l = product_memory(t, work, n);
    for (int j = 0; j < n; j++) {
        l->x[j] = (float)j;
        *weight(l->w, n, j, (j + 16) % n) = 1;
    }
    for (int i = 0; i < items; i++)
        add_product(work, l, i % 2 ? l->y : l->x, i % 2 ? l->x : l->y, false, true);
}

void dev_work_free(dev_work *work) {
    weir__list_unref(work->list);
    weir__buffer_unref(work->memory);
}
