/* stream_inline.c: streams of the cpu device without threads: the test driver runs one item at a time on the loop's thread, and its random number chooses
 * among the streams whose next item can run. Knows no driver. */
#include "cpu.h"

struct weir__inline_stream {
    weir__stream base;
    weir__item *head, *tail;
    bool closing, running; /* running: inside its own item */
    weir__inline_stream *next;
};

static void stream_free(weir__inline_stream *st) {
    weir__cpu *cpu = (weir__cpu *)st->base.device;
    weir__inline_stream **p = &cpu->streams;
    while (*p != st)
        p = &(*p)->next;
    *p = st->next;
    weir__stream_drained(&st->base);
    weir__free(cpu->base.system, st);
}

static bool is_ready(const weir__inline_stream *st) {
    const weir__item *item = st->head;
    if (!item || st->running)
        return false;
    return item->kind != WEIR__ITEM_WAIT || weir__item_verdict(&st->base, item) || weir__event_status(item->event) != WEIR_EBUSY;
}

static int run_item(weir__cpu *cpu, weir__inline_stream *st, const weir__item *item) {
    int verdict = weir__item_verdict(&st->base, item);
    if (verdict)
        return verdict;
    if (item->kind == WEIR__ITEM_WAIT)
        return weir__event_status(item->event);
    if (item->kind == WEIR__ITEM_LIST)
        return weir__cpu_run_list(cpu, &st->base, item);
    return weir__cpu_execute(item);
}

static void run_head(weir__cpu *cpu, weir__inline_stream *st) {
    weir__item *item = st->head;
    st->head = item->next;
    st->running = true;
    int64_t begin = weir__dev_clock();
    int status = run_item(cpu, st, item);
    weir__item_done(&st->base, item, status, weir__dev_clock() - begin);
    st->running = false;
    if (st->closing && !st->head)
        stream_free(st);
}

bool weir__inline_drain(void *data, uint64_t random) {
    weir__cpu *cpu = data;
    uint64_t ready = 0;
    for (const weir__inline_stream *st = cpu->streams; st; st = st->next)
        ready += is_ready(st);
    if (ready == 0)
        return false;
    uint64_t chosen = random % ready;
    weir__inline_stream *st = cpu->streams;
    while (!is_ready(st) || chosen-- > 0)
        st = st->next;
    run_head(cpu, st);
    return true;
}

int weir__inline_stream_open(weir__device *d, const char *name, weir__stream **out, weir_error **error) {
    weir__cpu *cpu = (weir__cpu *)d;
    weir__inline_stream *st = weir__alloc(d->system, sizeof *st);
    if (!st)
        return weir_fail(error, WEIR_ENOMEM, "device cpu: no memory for stream %s", name);
    st->base.device = d;
    weir__inline_stream **p = &cpu->streams;
    while (*p)
        p = &(*p)->next;
    *p = st;
    *out = &st->base;
    return WEIR_OK;
}

void weir__inline_stream_submit(weir__stream *base, weir__item *item) {
    weir__inline_stream *st = (weir__inline_stream *)base;
    item->next = NULL;
    if (st->head)
        st->tail->next = item;
    else
        st->head = item;
    st->tail = item;
}

void weir__inline_stream_wake(weir__stream *base) {
    (void)base;
}

void weir__inline_stream_close(weir__stream *base) {
    weir__inline_stream *st = (weir__inline_stream *)base;
    st->closing = true;
    if (!st->head && !st->running)
        stream_free(st);
}

void weir__inline_streams_end(weir__cpu *cpu) {
    for (weir__stream *st; (st = weir__stream_any_open(&cpu->base));)
        weir__stream_close(st);
    while (cpu->streams)
        weir__inline_drain(cpu, 0);
}
