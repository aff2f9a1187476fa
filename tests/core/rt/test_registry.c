/* Names: they find their actors, end with them, are one's only; memory, other threads. */
#include <pthread.h>

#include "fixture.h"

static const weir_behaviour behaviour = {.name = "bearer"};

static void a_name_finds_its_actor_until_that_ends(void **state) {
    (void)state;
    for (enum weir_driver driver = WEIR_DRIVER_EV; driver <= WEIR_DRIVER_TEST; driver++) {
        fixture f;
        fixture_open(&f, driver, 1);
        weir_address a = fixture_spawn(&f, &behaviour, NULL);
        assert_int_equal(weir_whereis(f.s, "a"), 0);
        assert_int_equal(weir_register(f.s, "a", a), WEIR_OK);
        assert_int_equal(weir_whereis(f.s, "a"), a);
        assert_int_equal(weir_whereis(f.s, "ab"), 0);
        weir_kill(f.s, a);
        assert_int_equal(weir_whereis(f.s, "a"), 0);
        weir_address b = fixture_spawn(&f, &behaviour, NULL); /* takes the place of a in the table of actors */
        assert_int_equal(weir_whereis(f.s, "a"), 0);
        assert_int_equal(weir_register(f.s, "a", b), WEIR_OK);
        assert_int_equal(weir_whereis(f.s, "a"), b);
        fixture_close(&f);
    }
}

static void a_taken_name_is_refused_with_both_actors_named(void **state) {
    (void)state;
    fixture f;
    fixture_open(&f, WEIR_DRIVER_TEST, 1);
    weir_spawn_options first = {.name = "first"}, second = {.name = "second"};
    weir_address a, b;
    weir_error *e = NULL;
    char wanted[256];
    assert_int_equal(weir_spawn(f.s, &behaviour, NULL, &first, &a, NULL), WEIR_OK);
    assert_int_equal(weir_spawn(f.s, &behaviour, NULL, &second, &b, NULL), WEIR_OK);
    assert_int_equal(weir_register(f.s, "n", a), WEIR_OK);
    assert_int_equal(weir_register(f.s, "n", a), WEIR_OK);
    assert_int_equal(weir_register(f.s, "n", b), WEIR_EBUSY);
    assert_int_equal(weir__register(f.s, "n", b, &e), WEIR_EBUSY);
    snprintf(wanted, sizeof wanted, "the name \"n\" cannot be given to actor %llu (second): actor %llu (first) has it",
             (unsigned long long)b, (unsigned long long)a);
    assert_string_equal(weir_error_text(e), wanted);
    assert_int_equal(weir_whereis(f.s, "n"), a);
    weir_error_free(e);
    fixture_close(&f);
}

typedef struct listing {
    int count;
    weir_address sum;
} listing;

static void list(void *data, const char *name, weir_address a) {
    listing *l = data;
    assert_true(*name);
    l->count++;
    l->sum += a;
}

static void an_actor_may_have_several_names_and_give_one_back(void **state) {
    (void)state;
    fixture f;
    listing l = {0};
    fixture_open(&f, WEIR_DRIVER_TEST, 1);
    weir_address a = fixture_spawn(&f, &behaviour, NULL), b = fixture_spawn(&f, &behaviour, NULL);
    weir_register(f.s, "one", a);
    weir_register(f.s, "two", a);
    weir_register(f.s, "three", b);
    weir_names(f.s, list, &l);
    assert_int_equal(l.count, 3);
    assert_int_equal(l.sum, 2 * a + b);
    assert_int_equal(weir_unregister(f.s, "one"), WEIR_OK);
    assert_int_equal(weir_unregister(f.s, "one"), WEIR_ENOENT);
    assert_int_equal(weir_whereis(f.s, "one"), 0);
    assert_int_equal(weir_whereis(f.s, "two"), a);
    weir_kill(f.s, a);
    assert_int_equal(weir_unregister(f.s, "two"), WEIR_ENOENT);
    l = (listing){0};
    weir_names(f.s, list, &l);
    assert_int_equal(l.count, 1);
    fixture_close(&f);
}

static void what_is_no_name_and_who_is_no_actor_is_refused(void **state) {
    (void)state;
    fixture f;
    char name[80];
    weir_error *e = NULL;
    fixture_open(&f, WEIR_DRIVER_TEST, 1);
    weir_address a = fixture_spawn(&f, &behaviour, NULL);
    memset(name, 'x', sizeof name);
    name[64] = 0;
    assert_int_equal(weir__register(f.s, name, a, &e), WEIR_EINVAL);
    assert_non_null(strstr(weir_error_text(e), name));
    weir_error_free(e);
    assert_int_equal(weir_register(f.s, "", a), WEIR_EINVAL);
    assert_int_equal(weir_register(f.s, NULL, a), WEIR_EINVAL);
    name[63] = 0;
    assert_int_equal(weir_register(f.s, name, a), WEIR_OK);
    assert_int_equal(weir_whereis(f.s, name), a);
    assert_int_equal(weir_unregister(f.s, ""), WEIR_EINVAL);
    weir_kill(f.s, a);
    assert_int_equal(weir_register(f.s, "dead", a), WEIR_ENOACTOR);
    fixture_close(&f);
}

static void a_registration_without_memory_changes_nothing(void **state) {
    (void)state;
    static const char *const points[] = {"REGISTER", "ALLOC"};
    for (int i = 0; i < 2; i++) {
        fixture f;
        weir_error *e = NULL;
        fixture_open(&f, WEIR_DRIVER_TEST, 1);
        weir_address a = fixture_spawn(&f, &behaviour, NULL);
        assert_int_equal(weir__inject_arm(f.s, points[i], 1, 1), WEIR_OK);
        assert_int_equal(weir__register(f.s, "a", a, &e), WEIR_ENOMEM);
        assert_non_null(strstr(weir_error_text(e), "\"a\""));
        weir_error_free(e);
        assert_int_equal(weir_whereis(f.s, "a"), 0);
        assert_int_equal(weir_register(f.s, "a", a), WEIR_OK);
        assert_int_equal(weir_whereis(f.s, "a"), a);
        fixture_close(&f);
    }
}

/* Many names at a time; and many one after the other, whose memory does not grow. */
static void thousands_of_names_are_found_and_those_of_ended_actors_cost_nothing(void **state) {
    (void)state;
    enum { MANY = 2000, ROUNDS = 20000 };
    fixture f;
    char name[32];
    static weir_address a[MANY];
    fixture_open(&f, WEIR_DRIVER_TEST, 1);
    weir_address keeper = fixture_spawn(&f, &behaviour, NULL);
    weir_register(f.s, "keeper", keeper);
    for (int i = 0; i < ROUNDS; i++) {
        weir_address once = fixture_spawn(&f, &behaviour, NULL);
        snprintf(name, sizeof name, "once %d", i);
        assert_int_equal(weir_register(f.s, name, once), WEIR_OK);
        weir_kill(f.s, once);
    }
    assert_true(f.memory.bytes < 1 << 20);
    for (int i = 0; i < MANY; i++) {
        a[i] = fixture_spawn(&f, &behaviour, NULL);
        snprintf(name, sizeof name, "name %d", i);
        assert_int_equal(weir_register(f.s, name, a[i]), WEIR_OK);
    }
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "name %d", i);
        assert_int_equal(weir_whereis(f.s, name), a[i]);
    }
    assert_int_equal(weir_whereis(f.s, "keeper"), keeper);
    fixture_close(&f);
}

enum { THREADS = 4, TRIES = 20000 };

typedef struct contender {
    weir_system *s;
    _Atomic weir_address *actor;
    int64_t won, lost, found;
} contender;

static void *contend(void *data) {
    contender *c = data;
    for (int i = 0; i < TRIES; i++) {
        weir_address a = atomic_load(c->actor);
        int code = weir_register(c->s, "prize", a);
        c->won += code == WEIR_OK;
        c->lost += code == WEIR_EBUSY || code == WEIR_ENOACTOR;
        c->found += weir_whereis(c->s, "prize") != 0;
        if (i % 3 == 0)
            weir_unregister(c->s, "prize");
    }
    return NULL;
}

/* Other threads register and look up while the loop's thread ends the actors. */
static void names_may_be_used_on_any_thread(void **state) {
    (void)state;
    fixture f;
    pthread_t threads[THREADS];
    contender c[THREADS];
    _Atomic weir_address actor;
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    atomic_init(&actor, fixture_spawn(&f, &behaviour, NULL));
    for (int i = 0; i < THREADS; i++) {
        c[i] = (contender){.s = f.s, .actor = &actor};
        pthread_create(&threads[i], NULL, contend, &c[i]);
    }
    for (int i = 0; i < TRIES / 10; i++) {
        weir_address old = atomic_load(&actor);
        atomic_store(&actor, fixture_spawn(&f, &behaviour, NULL));
        weir_kill(f.s, old);
    }
    int64_t answers = 0;
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        answers += c[i].won + c[i].lost;
    }
    assert_int_equal(answers, THREADS * TRIES);
    weir_register(f.s, "prize", atomic_load(&actor));
    assert_int_equal(weir_whereis(f.s, "prize"), atomic_load(&actor));
    fixture_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_finds_its_actor_until_that_ends),
        cmocka_unit_test(a_taken_name_is_refused_with_both_actors_named),
        cmocka_unit_test(an_actor_may_have_several_names_and_give_one_back),
        cmocka_unit_test(what_is_no_name_and_who_is_no_actor_is_refused),
        cmocka_unit_test(a_registration_without_memory_changes_nothing),
        cmocka_unit_test(thousands_of_names_are_found_and_those_of_ended_actors_cost_nothing),
        cmocka_unit_test(names_may_be_used_on_any_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
