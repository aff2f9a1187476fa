/* Supervisors whose children live on worker loops: on threads and by the test
 * driver's choice. Run under TSan too. */
#include <time.h>

#include "fixture.h"

enum { MS = 1000000, KIDS = 3, WORKERS = 2 };

typedef struct family {
    fixture f;
    _Atomic int clock; /* of ends */
    weir__linger left; /* of the child that leaves work behind */
} family;

typedef struct kid {
    family *family;
    const char *name;
    int loop;
    bool stubborn, leaves, slow;
    weir_address address; /* the supervisor's loop writes it */
    int starts;
    _Atomic int alive, twice, ended; /* ended: when the last life did */
} kid;

static void on_fail(weir_actor *self, const weir_message *m) {
    (void)m;
    weir_exit(self, weir_error_new(WEIR_EIO, NULL, NULL, "broken"));
}

static void on_stop(weir_actor *self) {
    if (!((kid *)weir_state(self))->stubborn)
        weir_exit(self, NULL);
}

/* What it leaves lingers before anybody hears of the end. */
static void on_fini(weir_system *s, void *state) {
    kid *k = state;
    if (k->slow)
        nanosleep(&(struct timespec){0, MS}, NULL);
    if (k->leaves && k->starts == 1)
        weir__linger_begin(s, &k->family->left, k->address);
    atomic_store(&k->ended, atomic_fetch_add(&k->family->clock, 1) + 1);
    atomic_fetch_sub(&k->alive, 1);
}

static const weir_handler handlers[] = {{"fail", on_fail}, {NULL, NULL}};
static const weir_behaviour behaviour = {.name = "kid", .handlers = handlers, .stop = on_stop, .fini = on_fini};

static int start(weir_system *s, void *data, weir_address *out, weir_error **error) {
    kid *k = data;
    weir_spawn_options o = {.name = k->name, .loop = k->loop};
    k->starts++;
    if (atomic_fetch_add(&k->alive, 1))
        atomic_store(&k->twice, 1);
    int code = weir_spawn(s, &behaviour, k, &o, out, error);
    if (code != WEIR_OK)
        return code;
    k->address = *out;
    code = weir__register(s, k->name, *out, error);
    if (code != WEIR_OK)
        weir_kill(s, *out);
    return code;
}

static weir_address open_family(family *y, kid *k, enum weir_driver driver, uint64_t seed, weir_supervisor_options o) {
    static const char *const names[KIDS] = {"a", "b", "c"};
    weir_child c[KIDS];
    weir_address a = 0;
    memset(y, 0, sizeof *y);
    weir_system_options so = {.driver = driver, .seed = seed, .workers = WORKERS, .alloc = counter_alloc, .alloc_data = &y->f.memory};
    assert_int_equal(weir_system_new(&so, &y->f.s, NULL), WEIR_OK);
    y->f.main = weir_main_actor(y->f.s);
    memset(c, 0, sizeof c);
    for (int i = 0; i < KIDS; i++) {
        k[i].family = y;
        k[i].name = names[i];
        k[i].loop = WEIR_LOOP_MAIN + i;
        c[i] = (weir_child){.name = names[i], .start = start, .data = &k[i], .patience = 5 * MS};
    }
    assert_int_equal(weir_supervise(y->f.s, c, KIDS, &o, &a, NULL), WEIR_OK);
    fixture_run(&y->f);
    return a;
}

static void close_family(family *y, kid *k, weir_address a) {
    weir_stop(y->f.s, a);
    fixture_run(&y->f);
    for (int i = 0; i < KIDS; i++) {
        assert_int_equal(atomic_load(&k[i].alive), 0);
        assert_false(atomic_load(&k[i].twice));
    }
    assert_true(atomic_load(&k[2].ended) < atomic_load(&k[1].ended));
    assert_true(atomic_load(&k[1].ended) < atomic_load(&k[0].ended));
    fixture_close(&y->f);
}

static void break_one(family *y, const char *name) {
    weir_address a = weir_whereis(y->f.s, name);
    assert_int_equal(weir_send(y->f.main, a, weir_intern(y->f.s, "fail"), NULL), WEIR_OK);
    fixture_run(&y->f);
}

/* Seed 0 is on threads. */
#define EACH_DRIVER(seed) (seed) ? WEIR_DRIVER_TEST : WEIR_DRIVER_EV, (seed)

static void children_on_other_loops_start_anew_and_stop_in_reverse(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 30; seed++)
        for (enum weir_strategy strategy = WEIR_ONE_FOR_ONE; strategy <= WEIR_ONE_FOR_ALL; strategy++) {
            family y;
            kid k[KIDS] = {0};
            k[1].slow = k[2].slow = seed == 0;
            weir_address a = open_family(&y, k, EACH_DRIVER(seed), (weir_supervisor_options){.strategy = strategy});
            for (int i = 0; i < KIDS; i++)
                assert_int_equal(weir_loop_of(y.f.s, k[i].address), i);
            break_one(&y, "c");
            break_one(&y, "b");
            bool all = strategy == WEIR_ONE_FOR_ALL;
            assert_int_equal(k[0].starts, all ? 3 : 1);
            assert_int_equal(k[1].starts, all ? 3 : 2);
            assert_int_equal(k[2].starts, all ? 3 : 2);
            close_family(&y, k, a);
        }
}

static void a_child_on_another_loop_that_does_not_stop_is_killed(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 10; seed++) {
        family y;
        kid k[KIDS] = {0};
        k[1].stubborn = true;
        close_family(&y, k, open_family(&y, k, EACH_DRIVER(seed), (weir_supervisor_options){0}));
    }
}

/* The actor's fini has closed its streams before the supervisor hears of its
 * end, on whatever loop. */
static void what_a_child_on_another_loop_leaves_is_waited_for(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        family y;
        kid k[KIDS] = {0};
        k[2].leaves = true;
        k[2].slow = seed == 0;
        weir_address a = open_family(&y, k, EACH_DRIVER(seed), (weir_supervisor_options){.drain = 5 * MS});
        int64_t begin = weir_now(y.f.s);
        break_one(&y, "c");
        assert_int_equal(k[2].starts, 2);
        assert_true(weir_now(y.f.s) - begin >= 5 * MS);
        assert_int_equal(y.left.owner, 0);
        close_family(&y, k, a);
    }
}

static void a_killed_supervisor_takes_children_on_other_loops_along(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        family y;
        kid k[KIDS] = {0};
        weir_address a = open_family(&y, k, EACH_DRIVER(seed), (weir_supervisor_options){0});
        weir_kill(y.f.s, a);
        fixture_run(&y.f);
        for (int i = 0; i < KIDS; i++)
            assert_int_equal(atomic_load(&k[i].alive), 0);
        fixture_close(&y.f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(children_on_other_loops_start_anew_and_stop_in_reverse),
        cmocka_unit_test(a_child_on_another_loop_that_does_not_stop_is_killed),
        cmocka_unit_test(what_a_child_on_another_loop_leaves_is_waited_for),
        cmocka_unit_test(a_killed_supervisor_takes_children_on_other_loops_along),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
