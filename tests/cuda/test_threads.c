/* test_threads.c: two streams of the cuda device that are driven from the loop's thread while the driver pauses at random: a closed workload of copies, lists, events,
 * host functions and notices, with streams that are skipped and closed in between. What went in comes out: a notice for each notify, in order; each host function ran
 * or was released, and each event ended. Meant for TSan. WEIR_SEED chooses another workload. */
#include "../core/dev/helper_dev.h"

#include <unistd.h>

enum { ROUNDS = 64, TOGETHER = 8, WORDS = 1024 };

typedef struct round {
    weir__buffer *in, *out; /* for the host */
    weir__event *event;
    _Atomic int ran, released;
} round;

typedef struct work {
    dev_test t;
    weir__stream *up, *down;
    weir__buffer *slots[TOGETHER], *table, *frequencies;
    weir__list *list;
    round rounds[ROUNDS];
    int notified[2]; /* notices asked for, of up and of down */
    uint32_t random;
} work;

static uint32_t draw(work *w, uint32_t below) {
    w->random = w->random * 1664525 + 1013904223;
    return (w->random >> 16) % below;
}

static int count_run(void *data) {
    atomic_fetch_add(&((round *)data)->ran, 1);
    return WEIR_OK;
}

static void count_release(void *data) {
    atomic_fetch_add(&((round *)data)->released, 1);
}

static weir__buffer *host_buffer(work *w) {
    weir__buffer *b = NULL;
    assert_int_equal(weir__buffer_new_host(w->t.d, WORDS * 4, "test", &b, NULL), WEIR_OK);
    return b;
}

/* With a table of its own: a stream that was closed may still write the last one's. */
static void make_list(work *w) {
    w->table = dev_buffer(&w->t, 64 * 4);
    w->frequencies = dev_buffer(&w->t, 64);
    weir_k_rope_table args = {weir__buffer_pointer(w->table), 8, 8, weir__buffer_pointer(w->frequencies), 1};
    assert_int_equal(weir__list_new(w->t.d, "table", &w->list, NULL), WEIR_OK);
    assert_int_equal(weir__list_add(w->list, WEIR_K_rope_table, &args, true, NULL), WEIR_OK);
    assert_int_equal(weir__list_own(w->list, w->table), WEIR_OK);
    assert_int_equal(weir__list_own(w->list, w->frequencies), WEIR_OK);
}

static void drop_list(work *w) {
    weir__list_unref(w->list);
    weir__buffer_unref(w->table);
    weir__buffer_unref(w->frequencies);
}

static void open_work(work *w) {
    const char *seed = getenv("WEIR_SEED");
    memset(w, 0, sizeof *w);
    w->random = seed ? (uint32_t)strtoul(seed, NULL, 10) : 1;
    dev_open_system(&w->t, NULL);
    assert_int_equal(weir__device_open(w->t.s, "cuda", 0, &w->t.d, NULL), WEIR_OK);
    w->up = dev_stream(&w->t, "up");
    w->down = dev_stream(&w->t, "down");
    for (int i = 0; i < TOGETHER; i++)
        w->slots[i] = dev_buffer(&w->t, WORDS * 4);
    make_list(w);
}

static void close_work(work *w) {
    weir__stream_close(w->up);
    weir__stream_close(w->down);
    drop_list(w);
    for (int i = 0; i < TOGETHER; i++)
        weir__buffer_unref(w->slots[i]);
    dev_close(&w->t);
}

static void notify(work *w, int which, int round) {
    dev_notify(&w->t, which ? w->down : w->up, 2 * round + which);
    w->notified[which]++;
}

/* Up: a copy to the device, a list, the event. Down: behind the event, a copy back and a host function. */
static void submit(work *w, int n) {
    round *r = &w->rounds[n];
    weir__buffer *slot = w->slots[n % TOGETHER];
    weir__shape shape = {1 + n % 3, 1, 1};
    r->in = host_buffer(w);
    r->out = host_buffer(w);
    for (int i = 0; i < WORDS; i++)
        ((int *)weir__buffer_host(r->in))[i] = n * WORDS + i;
    assert_int_equal(weir__event_new(w->t.d, &r->event), WEIR_OK);
    assert_int_equal(weir__stream_copy(w->up, slot, 0, r->in, 0, WORDS * 4), WEIR_OK);
    assert_int_equal(weir__stream_run(w->up, w->list, &shape), WEIR_OK);
    assert_int_equal(weir__stream_record(w->up, r->event), WEIR_OK);
    notify(w, 0, n);
    assert_int_equal(weir__stream_wait(w->down, r->event), WEIR_OK);
    assert_int_equal(weir__stream_copy(w->down, r->out, 0, slot, 0, WORDS * 4), WEIR_OK);
    assert_int_equal(weir__stream_host(w->down, count_run, count_release, r), WEIR_OK);
    notify(w, 1, n);
}

/* Skips one of the streams, or closes it and takes another, now and then. */
static void disturb(work *w) {
    weir__stream **st = draw(w, 2) ? &w->up : &w->down;
    uint32_t what = draw(w, 12);
    if (what < 2)
        weir__stream_skip(*st);
    else if (what == 2) {
        weir__stream_close(*st);
        *st = dev_stream(&w->t, st == &w->up ? "up" : "down");
        drop_list(w);
        make_list(w);
    } else if (what == 3)
        usleep(300);
}

/* The notice of a round and stream; -1: none. */
static int status_of(const work *w, int64_t arg) {
    for (int i = 0; i < w->t.count; i++)
        if (w->t.notice[i].arg == arg)
            return w->t.notice[i].status;
    return -1;
}

static void check_round(work *w, int n, int *done) {
    round *r = &w->rounds[n];
    int up = status_of(w, 2 * n), down = status_of(w, 2 * n + 1), event = weir__event_status(r->event);
    assert_true(up == WEIR_OK || up == WEIR_ECANCELLED);
    assert_true(down == WEIR_OK || down == WEIR_ECANCELLED);
    assert_true(event == WEIR_OK || event == WEIR_ECANCELLED);
    assert_int_equal(atomic_load(&r->released), 1);
    assert_true(atomic_load(&r->ran) <= 1);
    if (down == WEIR_OK) {
        assert_int_equal(event, WEIR_OK);
        assert_int_equal(atomic_load(&r->ran), 1);
        assert_memory_equal(weir__buffer_host(r->in), weir__buffer_host(r->out), WORDS * 4);
        ++*done;
    }
    weir__buffer_unref(r->in);
    weir__buffer_unref(r->out);
    weir__event_unref(r->event);
}

static void what_two_streams_are_given_comes_back_while_they_are_skipped_and_closed(void **state) {
    (void)state;
    static work w;
    int done = 0;
    open_work(&w);
    for (int first = 0; first < ROUNDS; first += TOGETHER) {
        for (int n = first; n < first + TOGETHER; n++) {
            submit(&w, n);
            disturb(&w);
        }
        dev_run_until(&w.t, w.notified[0] + w.notified[1]);
        dev_settle(&w.t); /* closed streams are gone too */
        for (int n = first; n < first + TOGETHER; n++)
            check_round(&w, n, &done);
    }
    assert_int_equal(w.t.count, 2 * ROUNDS);
    assert_true(done > ROUNDS / 8);
    close_work(&w);
}

static void notices_of_a_stream_come_in_order(void **state) {
    (void)state;
    static work w;
    open_work(&w);
    for (int n = 0; n < 200; n++) {
        assert_int_equal(weir__stream_run(w.up, w.list, &(weir__shape){1, 1, 1}), WEIR_OK);
        notify(&w, 0, n);
        if (n % 64 == 63)
            weir__stream_skip(w.up);
    }
    dev_run_until(&w.t, 200);
    for (int n = 0; n < 200; n++)
        assert_int_equal(w.t.notice[n].arg, 2 * n);
    close_work(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_two_streams_are_given_comes_back_while_they_are_skipped_and_closed),
        cmocka_unit_test(notices_of_a_stream_come_in_order),
    };
    setenv("CUEMU_JITTER_US", "200", 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
