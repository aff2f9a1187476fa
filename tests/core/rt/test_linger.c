/* What lingers for ended actors: counted by owner, its end told once, given up by quarantine. */
#include <pthread.h>

#include "fixture.h"

typedef struct waiter {
    int told;
    weir_address of; /* of the last notice */
} waiter;

static void on_drained(weir_actor *self, const weir_message *m) {
    waiter *w = weir_state(self);
    w->told++;
    w->of = weir_message_from(m);
}

static const weir_handler handlers[] = {{"drained", on_drained}, {NULL, NULL}};
static const weir_behaviour behaviour = {.name = "waiter", .handlers = handlers};
static const weir_behaviour owner_behaviour = {.name = "owner"};

static void await_drain(fixture *f, weir_address owner, weir_address to) {
    weir__notice *n = weir__notice_new(f->s, owner, to, weir_intern(f->s, "drained"), NULL);
    assert_non_null(n);
    weir__when_drained(f->s, owner, n);
}

static void its_end_is_told_when_the_last_record_ends(void **state) {
    (void)state;
    for (enum weir_driver driver = WEIR_DRIVER_EV; driver <= WEIR_DRIVER_TEST; driver++) {
        fixture f;
        waiter w = {0};
        weir__linger l[3] = {{0}, {0}, {0}};
        fixture_open(&f, driver, 1);
        weir_address to = fixture_spawn(&f, &behaviour, &w);
        weir_address a = fixture_spawn(&f, &owner_behaviour, NULL), b = fixture_spawn(&f, &owner_behaviour, NULL);
        weir_kill(f.s, a);
        weir__linger_begin(f.s, &l[0], a);
        weir__linger_begin(f.s, &l[1], b);
        weir__linger_begin(f.s, &l[2], a);
        assert_int_equal(weir__lingering(f.s, a), 2);
        await_drain(&f, a, to);
        weir__linger_end(f.s, &l[0]);
        weir__linger_end(f.s, &l[1]);
        weir_actor_stats stats;
        weir_actor_get_stats(f.s, to, &stats);
        assert_int_equal(stats.queued, 0);
        weir__linger_end(f.s, &l[2]);
        weir__linger_end(f.s, &l[2]);
        fixture_run(&f);
        assert_int_equal(w.told, 1);
        assert_int_equal(w.of, a);
        assert_int_equal(weir__lingering(f.s, a), 0);
        fixture_close(&f);
    }
}

static void nothing_lingers_is_told_at_once(void **state) {
    (void)state;
    fixture f;
    waiter w = {0};
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    weir_address to = fixture_spawn(&f, &behaviour, &w);
    await_drain(&f, 12345, to);
    fixture_run(&f);
    assert_int_equal(w.told, 1);
    fixture_close(&f);
}

static void a_record_that_begins_twice_counts_once(void **state) {
    (void)state;
    fixture f;
    weir__linger l = {0};
    fixture_open(&f, WEIR_DRIVER_TEST, 1);
    weir__linger_begin(f.s, &l, 7);
    weir__linger_begin(f.s, &l, 8);
    assert_int_equal(weir__lingering(f.s, 7), 1);
    assert_int_equal(weir__lingering(f.s, 8), 0);
    weir__linger_end(f.s, &l);
    assert_int_equal(weir__lingering(f.s, 7), 0);
    fixture_close(&f);
}

typedef struct device {
    weir_system *s;
    weir_address asked;
    int times;
    weir__linger *ends; /* a stream that ends when asked; NULL: none does */
} device;

static void quarantine(void *data, weir_address owner) {
    device *d = data;
    d->asked = owner;
    d->times++;
    if (d->ends)
        weir__linger_end(d->s, d->ends);
}

static void quarantine_ends_what_lingers_and_tells(void **state) {
    (void)state;
    for (int ends = 0; ends < 2; ends++) {
        fixture f;
        waiter w = {0};
        weir__linger l[2] = {{0}, {0}}, other = {0};
        fixture_open(&f, WEIR_DRIVER_EV, 0);
        device d = {.s = f.s, .ends = ends ? &l[0] : NULL};
        weir__set_quarantine(f.s, quarantine, &d);
        weir_address to = fixture_spawn(&f, &behaviour, &w);
        weir__linger_begin(f.s, &l[0], 7);
        weir__linger_begin(f.s, &other, 8);
        weir__linger_begin(f.s, &l[1], 7);
        await_drain(&f, 7, to);
        weir__quarantine(f.s, 7);
        assert_int_equal(d.asked, 7);
        assert_int_equal(d.times, 1);
        assert_int_equal(weir__lingering(f.s, 7), 0);
        assert_int_equal(weir__lingering(f.s, 8), 1);
        weir__linger_end(f.s, &l[0]);
        weir__linger_end(f.s, &l[1]);
        fixture_run(&f);
        assert_int_equal(w.told, 1);
        weir__linger_end(f.s, &other);
        fixture_close(&f);
    }
}

/* The system ends while somebody waits: the notice is given back. */
static void a_notice_that_still_waits_is_freed_with_the_system(void **state) {
    (void)state;
    fixture f;
    waiter w = {0};
    static weir__linger l;
    l = (weir__linger){0};
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    weir_address to = fixture_spawn(&f, &behaviour, &w);
    weir__linger_begin(f.s, &l, to);
    await_drain(&f, to, to);
    await_drain(&f, to, to);
    fixture_close(&f);
    assert_int_equal(w.told, 0);
}

enum { THREADS = 4, STREAMS = 100 };

typedef struct drainer {
    weir_system *s;
    weir_address owner;
    weir__linger l[STREAMS];
} drainer;

static void *end_all(void *data) {
    drainer *d = data;
    for (int i = 0; i < STREAMS; i++)
        weir__linger_end(d->s, &d->l[i]);
    return NULL;
}

/* Each owner's records end on a thread of their own; each end is told once. While a notice waits, the run goes on: it is pending work. */
static void records_end_on_any_thread(void **state) {
    (void)state;
    static drainer d[THREADS];
    fixture f;
    waiter w = {0};
    pthread_t threads[THREADS];
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    weir_address to = fixture_spawn(&f, &behaviour, &w);
    memset(d, 0, sizeof d);
    for (int t = 0; t < THREADS; t++) {
        d[t].s = f.s;
        d[t].owner = (weir_address)t + 100;
        for (int i = 0; i < STREAMS; i++)
            weir__linger_begin(f.s, &d[t].l[i], d[t].owner);
        await_drain(&f, d[t].owner, to);
    }
    for (int t = 0; t < THREADS; t++)
        pthread_create(&threads[t], NULL, end_all, &d[t]);
    fixture_run(&f);
    assert_int_equal(w.told, THREADS);
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
    fixture_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_end_is_told_when_the_last_record_ends),
        cmocka_unit_test(nothing_lingers_is_told_at_once),
        cmocka_unit_test(a_record_that_begins_twice_counts_once),
        cmocka_unit_test(quarantine_ends_what_lingers_and_tells),
        cmocka_unit_test(a_notice_that_still_waits_is_freed_with_the_system),
        cmocka_unit_test(records_end_on_any_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
