/* Other threads: posts arrive all and in order, bounds hold, notices, waking, quitting. Run under TSan too. */
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "fixture.h"

enum { THREADS = 4, POSTS = 250000 };

typedef struct receiver {
    int64_t next[THREADS];
    int64_t handled, out_of_order;
} receiver;

static void on_post(weir_actor *self, const weir_message *m) {
    receiver *r = weir_state(self);
    weir_cursor c = weir_read(weir_message_body(m), NULL);
    int64_t thread = 0, n = 0;
    weir_read_int(&c, &thread);
    weir_read_int(&c, &n);
    r->out_of_order += n != r->next[thread]++;
    r->handled++;
}

static const weir_handler handlers[] = {{"post", on_post}, {NULL, NULL}};
static const weir_behaviour behaviour = {.name = "receiver", .handlers = handlers};

typedef struct poster {
    weir_system *s;
    weir_address to;
    int thread, posts;
    int64_t refused;
    bool again; /* after EFULL */
} poster;

static void *post_all(void *data) {
    poster *p = data;
    weir_verb verb = weir_intern(p->s, "post");
    for (int64_t i = 0; i < p->posts;) {
        int code = weir_post(p->s, 0, p->to, verb, weir_pack(p->s, "ii", (int64_t)p->thread, i));
        if (code == WEIR_EFULL)
            p->refused++;
        if (code == WEIR_EFULL && p->again)
            sched_yield();
        else
            i++;
    }
    return NULL;
}

typedef struct goal {
    receiver *r;
    int64_t wanted;
} goal;

static bool reached(void *data) {
    goal *g = data;
    return g->r->handled >= g->wanted;
}

/* 1,000,000 posts of 4 threads: all are handled, each thread's in order. */
static void loop_E7(void **state) {
    (void)state;
    fixture f;
    receiver r = {.handled = 0};
    pthread_t t[THREADS];
    poster p[THREADS];
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    weir_address a = fixture_spawn(&f, &behaviour, &r);
    for (int i = 0; i < THREADS; i++) {
        p[i] = (poster){f.s, a, i, POSTS, 0, true};
        assert_int_equal(pthread_create(&t[i], NULL, post_all, &p[i]), 0);
    }
    goal g = {&r, (int64_t)THREADS * POSTS};
    assert_int_equal(weir_system_run(f.s, reached, &g, NULL), WEIR_OK);
    for (int i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
    assert_int_equal(r.out_of_order, 0);
    weir_system_stats s = stats_of(f.s);
    assert_int_equal(s.sent, (uint64_t)THREADS * POSTS);
    assert_int_equal(s.handled, s.sent);
    fixture_close(&f);
}

/* Nobody takes anything: exactly as many as the bound are accepted, however they race. */
static void posts_respect_the_bound(void **state) {
    (void)state;
    fixture f;
    receiver r = {.handled = 0};
    pthread_t t[THREADS];
    poster p[THREADS];
    weir_address a;
    weir_spawn_options o = {.mailbox_messages = 1000};
    int64_t refused = 0;
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    assert_int_equal(weir_spawn(f.s, &behaviour, &r, &o, &a, NULL), WEIR_OK);
    for (int i = 0; i < THREADS; i++) {
        p[i] = (poster){f.s, a, i, 10000, 0, false};
        assert_int_equal(pthread_create(&t[i], NULL, post_all, &p[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(t[i], NULL);
        refused += p[i].refused;
    }
    assert_int_equal(refused, 4 * 10000 - 1000);
    fixture_run(&f);
    assert_int_equal(r.handled, 1000);
    assert_int_equal(stats_of(f.s).refused, (uint64_t)refused);
    fixture_close(&f);
}

/* The receiver ends while others post: each message is handled or a dead letter or was refused. */
static void posts_to_an_ending_actor_are_conserved(void **state) {
    (void)state;
    fixture f;
    receiver r = {.handled = 0};
    pthread_t t[THREADS];
    poster p[THREADS];
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    weir_address a = fixture_spawn(&f, &behaviour, &r);
    for (int i = 0; i < THREADS; i++) {
        p[i] = (poster){f.s, a, i, 20000, 0, true};
        assert_int_equal(pthread_create(&t[i], NULL, post_all, &p[i]), 0);
    }
    goal g = {&r, 10000};
    assert_int_equal(weir_system_run(f.s, reached, &g, NULL), WEIR_OK);
    weir_kill(f.s, a);
    for (int i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
    fixture_run(&f);
    weir_system_stats s = stats_of(f.s);
    assert_int_equal(s.sent, s.handled + s.dead);
    assert_int_equal(s.queued, 0);
    fixture_close(&f);
}

static void nap(long us) {
    nanosleep(&(struct timespec){0, us * 1000}, NULL);
}

typedef struct sleeper {
    weir_system *s;
    weir__notice *notice;
    weir_address to;
    long us;
} sleeper;

static void *post_notice(void *data) {
    sleeper *l = data;
    nap(l->us);
    weir__notice_post(l->notice);
    return NULL;
}

/* The loop has nothing to do but waits for the notice, which is not bounded by the full mailbox. */
static void a_notice_keeps_the_loop_and_passes_a_full_mailbox(void **state) {
    (void)state;
    fixture f;
    receiver r = {.handled = 0};
    weir_address a;
    weir_spawn_options o = {.mailbox_messages = 1};
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    assert_int_equal(weir_spawn(f.s, &behaviour, &r, &o, &a, NULL), WEIR_OK);
    weir_verb verb = weir_intern(f.s, "post");
    weir_hold(weir__actor(f.s, a));
    weir_send(f.main, a, verb, weir_pack(f.s, "ii", INT64_C(1), INT64_C(0)));
    sleeper l = {f.s, weir__notice_new(f.s, 0, a, verb, weir_pack(f.s, "ii", INT64_C(0), INT64_C(0))), a, 20000};
    pthread_t t;
    assert_non_null(l.notice);
    assert_int_equal(pthread_create(&t, NULL, post_notice, &l), 0);
    fixture_run(&f);
    pthread_join(t, NULL);
    weir_unhold(weir__actor(f.s, a));
    fixture_run(&f);
    assert_int_equal(r.handled, 2);
    assert_int_equal(r.out_of_order, 0);
    fixture_close(&f);
}

static void *free_notice(void *data) {
    sleeper *l = data;
    nap(l->us);
    weir__notice_free(l->notice);
    return NULL;
}

static void freeing_the_last_notice_ends_the_run(void **state) {
    (void)state;
    fixture f;
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    sleeper l = {f.s, weir__notice_new(f.s, 0, weir_self(f.main), weir_intern(f.s, "post"), NULL), 0, 20000};
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, free_notice, &l), 0);
    fixture_run(&f);
    pthread_join(t, NULL);
    assert_int_equal(stats_of(f.s).sent, 0);
    fixture_close(&f);
}

static void a_notice_to_a_dead_actor_is_a_dead_letter(void **state) {
    (void)state;
    fixture f;
    receiver r = {.handled = 0};
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    weir_address a = fixture_spawn(&f, &behaviour, &r);
    weir__notice *n = weir__notice_new(f.s, 0, a, weir_intern(f.s, "post"), NULL);
    weir_kill(f.s, a);
    weir__notice_post(n);
    fixture_run(&f);
    assert_int_equal(stats_of(f.s).dead, 1);
    fixture_close(&f);
}

static void *quit_later(void *data) {
    sleeper *l = data;
    nap(l->us);
    weir_system_quit(l->s);
    return NULL;
}

static bool never(void *data) {
    (void)data;
    return false;
}

static void quit_wakes_a_sleeping_loop(void **state) {
    (void)state;
    for (int driver = 0; driver < 2; driver++) {
        fixture f;
        fixture_open(&f, driver ? WEIR_DRIVER_TEST : WEIR_DRIVER_EV, 0);
        for (long us = 0; us < 3000; us += 100) {
            sleeper l = {f.s, NULL, 0, us};
            pthread_t t;
            assert_int_equal(pthread_create(&t, NULL, quit_later, &l), 0);
            assert_int_equal(weir_system_run(f.s, never, NULL, NULL), WEIR_OK);
            pthread_join(t, NULL);
        }
        fixture_close(&f);
    }
}

/* Posts at random moments to a loop that sleeps in between: none is slept over. */
static void *post_slowly(void *data) {
    poster *p = data;
    weir_verb verb = weir_intern(p->s, "post");
    uint32_t random = 5;
    for (int64_t i = 0; i < p->posts; i++) {
        random = random * 1664525u + 1013904223u;
        for (volatile uint32_t spin = random >> 20; spin; spin--)
            ;
        while (weir_post(p->s, 0, p->to, verb, weir_pack(p->s, "ii", (int64_t)p->thread, i)) == WEIR_EFULL)
            sched_yield();
    }
    return NULL;
}

static void no_post_is_slept_over(void **state) {
    (void)state;
    fixture f;
    receiver r = {.handled = 0};
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    poster p = {f.s, fixture_spawn(&f, &behaviour, &r), 0, 50000, 0, true};
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, post_slowly, &p), 0);
    for (int64_t wanted = 1; wanted <= p.posts; wanted += 7) {
        goal g = {&r, wanted};
        assert_int_equal(weir_system_run(f.s, reached, &g, NULL), WEIR_OK);
    }
    goal g = {&r, p.posts};
    assert_int_equal(weir_system_run(f.s, reached, &g, NULL), WEIR_OK);
    pthread_join(t, NULL);
    assert_int_equal(r.out_of_order, 0);
    fixture_close(&f);
}

typedef struct settler {
    weir_system *s;
    _Atomic int rounds; /* that were begun */
} settler;

enum { ROUNDS = 100000 };

static void *settle(void *data) {
    settler *t = data;
    for (int i = 1; i <= ROUNDS; i++) {
        while (atomic_load(&t->rounds) < i)
            sched_yield();
        for (volatile int spin = i * 7 % 300; spin; spin--)
            ;
        weir__pending(t->s, -1);
    }
    return NULL;
}

/* The last pending work ends just when the loop goes to sleep: it wakes and returns. */
static void no_end_of_pending_work_is_slept_over(void **state) {
    (void)state;
    fixture f;
    pthread_t t;
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    settler l = {f.s, 0};
    assert_int_equal(pthread_create(&t, NULL, settle, &l), 0);
    for (int i = 1; i <= ROUNDS; i++) {
        weir__pending(f.s, 1);
        atomic_store(&l.rounds, i);
        fixture_run(&f);
    }
    pthread_join(t, NULL);
    fixture_close(&f);
}

/* Bodies are made, counted and freed on several threads at once; verbs are interned meanwhile. */
static void *use_bodies(void *data) {
    weir_system *s = ((sleeper *)data)->s;
    for (int i = 0; i < 2000; i++) {
        char name[32];
        snprintf(name, sizeof name, "verb %d", i % 300);
        weir_verb v = weir_intern(s, name);
        if (strcmp(weir_verb_name(s, v), name) != 0)
            return data;
        weir_body *b = weir_pack(s, "is", (int64_t)i, name), *c = weir_body_ref(b);
        weir_body_free(b);
        weir_body_free(c);
    }
    return NULL;
}

static void bodies_and_verbs_belong_to_any_thread(void **state) {
    (void)state;
    fixture f;
    pthread_t t[THREADS];
    fixture_open(&f, WEIR_DRIVER_EV, 0);
    sleeper l = {f.s, NULL, 0, 0};
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&t[i], NULL, use_bodies, &l), 0);
    assert_null(use_bodies(&l));
    for (int i = 0; i < THREADS; i++) {
        void *failed;
        pthread_join(t[i], &failed);
        assert_null(failed);
    }
    fixture_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loop_E7),
        cmocka_unit_test(posts_respect_the_bound),
        cmocka_unit_test(posts_to_an_ending_actor_are_conserved),
        cmocka_unit_test(a_notice_keeps_the_loop_and_passes_a_full_mailbox),
        cmocka_unit_test(freeing_the_last_notice_ends_the_run),
        cmocka_unit_test(a_notice_to_a_dead_actor_is_a_dead_letter),
        cmocka_unit_test(quit_wakes_a_sleeping_loop),
        cmocka_unit_test(no_post_is_slept_over),
        cmocka_unit_test(no_end_of_pending_work_is_slept_over),
        cmocka_unit_test(bodies_and_verbs_belong_to_any_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
