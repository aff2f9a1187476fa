/* Supervisors: who is started, stopped and started anew, in which order, how often and how soon; what an end takes along. */
#include "supervised.h"

static void children_start_in_order_and_stop_in_reverse(void **state) {
    (void)state;
    for (enum weir_driver driver = WEIR_DRIVER_EV; driver <= WEIR_DRIVER_TEST; driver++) {
        world w;
        kid k[3];
        weir_child c[3];
        world_open(&w, driver, 7);
        kids_init(&w, k, c, 3);
        weir_address a = supervise(&w, c, 3, (weir_supervisor_options){0});
        assert_string_equal(w.log, "+a +b +c");
        stop_and_run(&w, a);
        assert_string_equal(w.log, "+a +b +c -c -b -a");
        assert_int_equal(w.downs, 1);
        assert_null(w.ended);
        assert_int_equal(w.finis, 1);
        world_close(&w);
    }
}

static void one_for_one_starts_only_the_one_that_failed(void **state) {
    (void)state;
    for (enum weir_driver driver = WEIR_DRIVER_EV; driver <= WEIR_DRIVER_TEST; driver++) {
        world w;
        kid k[3];
        weir_child c[3];
        world_open(&w, driver, 7);
        kids_init(&w, k, c, 3);
        weir_address a = supervise(&w, c, 3, (weir_supervisor_options){0});
        weir_address before = weir_whereis(w.f.s, "b");
        tell(&w, "b", "fail");
        assert_string_equal(w.log, "+a +b +c -b +b");
        assert_int_equal(weir_whereis(w.f.s, "b"), k[1].address);
        assert_int_not_equal(k[1].address, before);
        stop_and_run(&w, a);
        world_close(&w);
    }
}

static void one_for_all_stops_the_others_last_first_and_starts_all_anew(void **state) {
    (void)state;
    for (enum weir_driver driver = WEIR_DRIVER_EV; driver <= WEIR_DRIVER_TEST; driver++) {
        world w;
        kid k[4];
        weir_child c[4];
        world_open(&w, driver, 7);
        kids_init(&w, k, c, 4);
        c[3].restart = WEIR_RESTART_NEVER;
        weir_address a = supervise(&w, c, 4, (weir_supervisor_options){.strategy = WEIR_ONE_FOR_ALL});
        tell(&w, "b", "fail");
        assert_string_equal(w.log, "+a +b +c +d -b -d -c -a +a +b +c");
        stop_and_run(&w, a);
        assert_string_equal(w.log, "+a +b +c +d -b -d -c -a +a +b +c -c -b -a");
        world_close(&w);
    }
}

static void a_restart_policy_says_which_ends_are_final(void **state) {
    (void)state;
    static const struct {
        enum weir_restart restart;
        const char *verb;
        int starts;
    } rows[] = {{WEIR_RESTART_ALWAYS, "end", 2},    {WEIR_RESTART_ALWAYS, "fail", 2}, {WEIR_RESTART_ON_ERROR, "end", 1},
                {WEIR_RESTART_ON_ERROR, "fail", 2}, {WEIR_RESTART_NEVER, "end", 1},   {WEIR_RESTART_NEVER, "fail", 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        world w;
        kid k[2];
        weir_child c[2];
        world_open(&w, WEIR_DRIVER_TEST, i);
        kids_init(&w, k, c, 2);
        c[1].restart = rows[i].restart;
        weir_address a = supervise(&w, c, 2, (weir_supervisor_options){.strategy = i % 2 ? WEIR_ONE_FOR_ALL : WEIR_ONE_FOR_ONE});
        tell(&w, "b", rows[i].verb);
        assert_int_equal(k[1].starts, rows[i].starts);
        assert_int_equal(w.downs, 0);
        stop_and_run(&w, a);
        world_close(&w);
    }
}

static void a_killed_child_starts_anew(void **state) {
    (void)state;
    world w;
    kid k[1];
    weir_child c[1];
    world_open(&w, WEIR_DRIVER_TEST, 1);
    kids_init(&w, k, c, 1);
    c[0].restart = WEIR_RESTART_ON_ERROR;
    weir_address a = supervise(&w, c, 1, (weir_supervisor_options){0});
    weir_kill(w.f.s, k[0].address);
    fixture_run(&w.f);
    assert_string_equal(w.log, "+a -a +a");
    stop_and_run(&w, a);
    world_close(&w);
}

static void one_restart_too_many_ends_the_supervisor_with_the_childs_error_as_cause(void **state) {
    (void)state;
    for (enum weir_strategy strategy = WEIR_ONE_FOR_ONE; strategy <= WEIR_ONE_FOR_ALL; strategy++) {
        world w;
        kid k[2];
        weir_child c[2];
        world_open(&w, WEIR_DRIVER_TEST, 1);
        kids_init(&w, k, c, 2);
        supervise(&w, c, 2, (weir_supervisor_options){.name = "boss", .strategy = strategy, .intensity = 2});
        tell(&w, "b", "fail");
        tell(&w, "b", "fail");
        assert_int_equal(w.downs, 0);
        tell(&w, "b", "fail");
        assert_int_equal(w.downs, 1);
        assert_int_equal(weir_error_code(w.ended), WEIR_EEXITED);
        assert_string_equal(weir_error_text(w.ended), "\"b\" failed, and 2 restarts within 5 s are all that is borne");
        assert_string_equal(weir_error_actor(w.ended), "boss");
        assert_int_equal(weir_error_code(weir_error_cause(w.ended)), WEIR_EIO);
        assert_string_equal(weir_error_text(weir_error_cause(w.ended)), "b broke at 1");
        assert_int_equal(k[0].alive + k[1].alive, 0);
        assert_int_equal(k[1].starts, 3);
        assert_int_equal(w.finis, 1);
        world_close(&w);
    }
}

static void sleep_over(weir_actor *self, void *data, uint64_t missed) {
    (void)self, (void)missed;
    *(bool *)data = true;
}

/* The virtual clock goes on by ns. */
static void pass(world *w, int64_t ns) {
    bool over = false;
    assert_int_equal(weir_timer(w->f.main, ns, WEIR_TIMER_ONCE, sleep_over, &over, NULL), WEIR_OK);
    weir_system_run(w->f.s, flag_is_set, &over, NULL);
}

static void restarts_that_lie_a_period_apart_are_borne_for_ever(void **state) {
    (void)state;
    world w;
    kid k[1];
    weir_child c[1];
    world_open(&w, WEIR_DRIVER_TEST, 1);
    kids_init(&w, k, c, 1);
    weir_address a = supervise(&w, c, 1, (weir_supervisor_options){.intensity = 2, .period = 100 * MS});
    for (int i = 0; i < 20; i++) {
        tell(&w, "a", "fail");
        pass(&w, i % 2 ? 60 * MS : 40 * MS);
    }
    assert_int_equal(k[0].starts, 21);
    assert_int_equal(w.downs, 0);
    stop_and_run(&w, a);
    world_close(&w);
}

static void the_wait_before_a_restart_doubles(void **state) {
    (void)state;
    static const struct {
        int64_t backoff, most;
        int64_t waits[6];
    } rows[] = {{0, 0, {0, 10 * MS, 20 * MS, 40 * MS, 80 * MS, 160 * MS}},
                {5 * MS, 30 * MS, {5 * MS, 10 * MS, 20 * MS, 30 * MS, 30 * MS, 30 * MS}},
                {INT64_MAX / 3, 7 * MS, {7 * MS, 7 * MS, 7 * MS, 7 * MS, 7 * MS, 7 * MS}}};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        for (enum weir_strategy strategy = WEIR_ONE_FOR_ONE; strategy <= WEIR_ONE_FOR_ALL; strategy++) {
            world w;
            kid k[1];
            weir_child c[1];
            world_open(&w, WEIR_DRIVER_TEST, r);
            kids_init(&w, k, c, 1);
            weir_address a =
                supervise(&w, c, 1,
                          (weir_supervisor_options){
                              .strategy = strategy, .intensity = 100, .backoff = rows[r].backoff, .backoff_most = rows[r].most});
            for (int i = 0; i < 6; i++) {
                int64_t failed = weir_now(w.f.s);
                tell(&w, "a", "fail");
                assert_int_equal(k[0].at[i + 1] - failed, rows[r].waits[i]);
            }
            stop_and_run(&w, a);
            world_close(&w);
        }
    }
}

static void who_does_not_stop_in_time_is_killed(void **state) {
    (void)state;
    static const int64_t patience[] = {30 * MS, -1, 0}, wanted[] = {30 * MS, 0, 5000 * (int64_t)MS};
    for (int i = 0; i < 3; i++) {
        world w;
        kid k[2];
        weir_child c[2];
        world_open(&w, WEIR_DRIVER_TEST, 1);
        kids_init(&w, k, c, 2);
        k[1].stubborn = true;
        c[1].patience = patience[i];
        weir_address a = supervise(&w, c, 2, (weir_supervisor_options){0});
        int64_t begin = weir_now(w.f.s);
        stop_and_run(&w, a);
        assert_string_equal(w.log, "+a +b -b -a");
        assert_int_equal(weir_now(w.f.s) - begin, wanted[i]);
        assert_null(w.ended);
        world_close(&w);
    }
}

static void a_first_start_that_fails_stops_the_others_and_is_the_supervisors_end(void **state) {
    (void)state;
    for (enum weir_strategy strategy = WEIR_ONE_FOR_ONE; strategy <= WEIR_ONE_FOR_ALL; strategy++) {
        world w;
        kid k[3];
        weir_child c[3];
        world_open(&w, WEIR_DRIVER_TEST, 1);
        kids_init(&w, k, c, 3);
        k[2].failing = 1;
        supervise(&w, c, 3, (weir_supervisor_options){.strategy = strategy});
        assert_string_equal(w.log, "+a +b -b -a");
        assert_int_equal(weir_error_code(w.ended), WEIR_ENOENT);
        assert_string_equal(weir_error_text(w.ended), "\"c\" did not start: c has nothing to start with");
        assert_int_equal(w.finis, 1);
        world_close(&w);
    }
}

static void a_restart_that_fails_is_tried_again_later(void **state) {
    (void)state;
    for (enum weir_strategy strategy = WEIR_ONE_FOR_ONE; strategy <= WEIR_ONE_FOR_ALL; strategy++) {
        world w;
        kid k[2];
        weir_child c[2];
        world_open(&w, WEIR_DRIVER_TEST, 1);
        kids_init(&w, k, c, 2);
        k[1].failing = 6;
        weir_address a = supervise(&w, c, 2, (weir_supervisor_options){.strategy = strategy});
        int64_t begin = weir_now(w.f.s);
        tell(&w, "b", "fail");
        assert_int_equal(k[1].starts, 4);
        assert_int_equal(k[1].alive, 1);
        assert_int_equal(weir_now(w.f.s) - begin, 30 * MS);
        stop_and_run(&w, a);
        world_close(&w);
    }
}

static void restarts_that_only_fail_end_the_supervisor(void **state) {
    (void)state;
    for (enum weir_strategy strategy = WEIR_ONE_FOR_ONE; strategy <= WEIR_ONE_FOR_ALL; strategy++) {
        world w;
        kid k[2];
        weir_child c[2];
        world_open(&w, WEIR_DRIVER_TEST, 1);
        kids_init(&w, k, c, 2);
        k[1].failing = ~UINT64_C(1);
        supervise(&w, c, 2, (weir_supervisor_options){.strategy = strategy});
        tell(&w, "b", "fail");
        assert_int_equal(k[1].starts, 4);
        assert_int_equal(weir_error_code(w.ended), WEIR_EEXITED);
        assert_string_equal(weir_error_text(weir_error_cause(w.ended)), "\"b\" did not start again");
        assert_int_equal(weir_error_code(weir_error_cause(weir_error_cause(w.ended))), WEIR_ENOENT);
        assert_int_equal(k[0].alive, 0);
        world_close(&w);
    }
}

static void a_killed_supervisor_takes_its_children_along(void **state) {
    (void)state;
    world w;
    kid k[3];
    weir_child c[3];
    world_open(&w, WEIR_DRIVER_TEST, 1);
    kids_init(&w, k, c, 3);
    weir_address a = supervise(&w, c, 3, (weir_supervisor_options){0});
    weir_kill(w.f.s, a);
    fixture_run(&w.f);
    assert_string_equal(w.log, "+a +b +c -c -b -a");
    assert_int_equal(w.finis, 1);
    world_close(&w);
}

static void a_stop_before_the_first_turn_starts_nobody(void **state) {
    (void)state;
    world w;
    kid k[1];
    weir_child c[1];
    weir_address a;
    world_open(&w, WEIR_DRIVER_EV, 0);
    kids_init(&w, k, c, 1);
    assert_int_equal(weir_supervise(w.f.s, c, 1, NULL, &a, NULL), WEIR_OK);
    stop_and_run(&w, a);
    assert_int_equal(k[0].starts, 0);
    assert_int_equal(weir_stop(w.f.s, a), WEIR_ENOACTOR);
    world_close(&w);
}

static void a_stop_while_it_waits_for_a_restart_ends_it(void **state) {
    (void)state;
    for (enum weir_strategy strategy = WEIR_ONE_FOR_ONE; strategy <= WEIR_ONE_FOR_ALL; strategy++) {
        world w;
        kid k[2];
        weir_child c[2];
        world_open(&w, WEIR_DRIVER_TEST, 1);
        kids_init(&w, k, c, 2);
        k[0].stubborn = true;
        weir_address a = supervise(&w, c, 2, (weir_supervisor_options){.strategy = strategy, .backoff = 1000 * (int64_t)MS});
        fixture_send(&w.f, k[1].address, "fail", 1);
        pass(&w, 10 * MS);
        weir_stop(w.f.s, a);
        fixture_run(&w.f);
        assert_int_equal(k[1].starts, 1);
        assert_int_equal(k[0].alive, 0);
        assert_int_equal(w.downs, 1);
        assert_null(w.ended);
        assert_int_equal(stats_of(w.f.s).timers, 0);
        world_close(&w);
    }
}

static void the_end_of_the_system_is_no_failure(void **state) {
    (void)state;
    for (enum weir_driver driver = WEIR_DRIVER_EV; driver <= WEIR_DRIVER_TEST; driver++) {
        world w;
        kid k[3];
        weir_child c[3];
        world_open(&w, driver, 3);
        kids_init(&w, k, c, 3);
        supervise(&w, c, 3, (weir_supervisor_options){0});
        assert_int_equal(weir_system_stop(w.f.s, 1000 * (int64_t)MS, NULL), WEIR_OK);
        assert_int_equal(k[0].starts + k[1].starts + k[2].starts, 3);
        assert_null(w.ended);
        assert_int_equal(w.finis, 1);
        world_close(&w);
    }
}

static void a_start_refused_because_the_system_stops_is_an_orderly_end(void **state) {
    (void)state;
    for (enum weir_strategy strategy = WEIR_ONE_FOR_ONE; strategy <= WEIR_ONE_FOR_ALL; strategy++) {
        world w;
        kid k[2];
        weir_child c[2];
        world_open(&w, WEIR_DRIVER_TEST, 1);
        kids_init(&w, k, c, 2);
        k[1].failing = 2;
        k[1].refusal = WEIR_ESTOPPING;
        supervise(&w, c, 2, (weir_supervisor_options){.strategy = strategy});
        tell(&w, "b", "fail");
        assert_int_equal(w.downs, 1);
        assert_null(w.ended);
        assert_int_equal(k[1].starts, 2);
        world_close(&w);
    }
}

static void a_stop_after_it_gave_up_does_not_hide_why(void **state) {
    (void)state;
    world w;
    kid k[2];
    weir_child c[2];
    world_open(&w, WEIR_DRIVER_TEST, 1);
    kids_init(&w, k, c, 2);
    k[0].stubborn = true;
    weir_address a = supervise(&w, c, 2, (weir_supervisor_options){.intensity = 1});
    tell(&w, "b", "fail");
    fixture_send(&w.f, k[1].address, "fail", 1);
    pass(&w, MS);
    assert_int_equal(w.downs, 0);
    stop_and_run(&w, a);
    assert_int_equal(weir_error_code(w.ended), WEIR_EEXITED);
    world_close(&w);
}

/* ---- supervisors of supervisors ---- */

typedef struct inner {
    world *w;
    weir_child *children;
    int n, starts;
    weir_address address;
} inner;

static int inner_start(weir_system *s, void *data, weir_address *out, weir_error **error) {
    inner *in = data;
    weir_supervisor_options o = {.name = "inner", .intensity = 1, .fini = world_fini, .data = in->w};
    in->starts++;
    int code = weir_supervise(s, in->children, (size_t)in->n, &o, out, error);
    in->address = *out;
    return code;
}

static void a_supervisor_of_supervisors_restarts_the_one_that_gave_up(void **state) {
    (void)state;
    world w;
    kid k[2];
    weir_child c[2];
    world_open(&w, WEIR_DRIVER_TEST, 1);
    kids_init(&w, k, c, 2);
    inner in = {.w = &w, .children = c, .n = 2};
    weir_child outer = {.name = "inner", .start = inner_start, .data = &in};
    weir_address a = supervise(&w, &outer, 1, (weir_supervisor_options){.name = "outer"});
    assert_string_equal(w.log, "+a +b");
    tell(&w, "b", "fail");
    assert_int_equal(in.starts, 1);
    tell(&w, "b", "fail");
    assert_int_equal(in.starts, 2);
    assert_string_equal(w.log, "+a +b -b +b -b -a +a +b");
    stop_and_run(&w, a);
    assert_string_equal(w.log, "+a +b -b +b -b -a +a +b -b -a");
    assert_int_equal(w.finis, 3);
    world_close(&w);
}

static void an_error_climbs_through_supervisors(void **state) {
    (void)state;
    world w;
    kid k[1];
    weir_child c[1];
    world_open(&w, WEIR_DRIVER_TEST, 1);
    kids_init(&w, k, c, 1);
    inner in = {.w = &w, .children = c, .n = 1};
    weir_child outer = {.name = "inner", .start = inner_start, .data = &in};
    supervise(&w, &outer, 1, (weir_supervisor_options){.name = "outer", .intensity = 1});
    for (int i = 0; i < 4; i++)
        tell(&w, "a", "fail");
    assert_int_equal(w.downs, 1);
    assert_string_equal(weir_error_actor(w.ended), "outer");
    const weir_error *cause = weir_error_cause(w.ended);
    assert_string_equal(weir_error_actor(cause), "inner");
    assert_string_equal(weir_error_text(weir_error_cause(cause)), "a broke at 1");
    world_close(&w);
}

/* ---- looking, misuse ---- */

typedef struct row {
    char name[8], state[16];
    int64_t address, restarts;
} row;

static void on_rows(weir_actor *self, void *data, const weir_message *reply, const weir_error *error) {
    row *rows = data;
    weir_value v;
    (void)self;
    assert_null(error);
    weir_cursor c = weir_read(weir_message_body(reply), NULL);
    assert_int_equal((v = weir_read_value(&c)).kind, WEIR_ARRAY);
    for (uint32_t i = 0, n = v.count; i < n; i++) {
        assert_int_equal((v = weir_read_value(&c)).kind, WEIR_ARRAY);
        v = weir_read_value(&c);
        snprintf(rows[i].name, sizeof rows[i].name, "%.*s", (int)v.s.size, v.s.data);
        assert_true(weir_read_int(&c, &rows[i].address));
        assert_true(weir_read_int(&c, &rows[i].restarts));
        v = weir_read_value(&c);
        snprintf(rows[i].state, sizeof rows[i].state, "%.*s", (int)v.s.size, v.s.data);
    }
}

static void children_are_listed_with_their_state(void **state) {
    (void)state;
    world w;
    kid k[3];
    weir_child c[3];
    row rows[3] = {0};
    world_open(&w, WEIR_DRIVER_TEST, 1);
    kids_init(&w, k, c, 3);
    c[0].restart = WEIR_RESTART_NEVER;
    weir_address a = supervise(&w, c, 3, (weir_supervisor_options){.backoff = 100 * MS});
    tell(&w, "b", "fail");
    tell(&w, "a", "end");
    fixture_send(&w.f, k[2].address, "fail", 1);
    pass(&w, MS);
    assert_int_equal(weir_call(w.f.main, a, weir_intern(w.f.s, "children"), NULL, 0, on_rows, rows, NULL), WEIR_OK);
    fixture_run(&w.f);
    assert_string_equal(rows[0].name, "a");
    assert_string_equal(rows[0].state, "ended");
    assert_int_equal(rows[0].address, 0);
    assert_string_equal(rows[1].state, "running");
    assert_int_equal(rows[1].address, k[1].address);
    assert_int_equal(rows[1].restarts, 1);
    assert_string_equal(rows[2].state, "waiting");
    assert_int_equal(rows[2].address, 0);
    stop_and_run(&w, a);
    world_close(&w);
}

static int start_stray(weir_system *s, void *data, weir_address *out, weir_error **error) {
    (void)error;
    *out = *(weir_address *)data == 1 ? weir_self(weir_main_actor(s)) : *(weir_address *)data;
    return WEIR_OK;
}

static void a_start_that_gives_no_actor_of_its_own_has_failed(void **state) {
    (void)state;
    for (weir_address stray = 0; stray < 2; stray++) {
        world w;
        world_open(&w, WEIR_DRIVER_TEST, 1);
        weir_child c = {.name = "stray", .start = start_stray, .data = &stray};
        supervise(&w, &c, 1, (weir_supervisor_options){0});
        assert_int_equal(weir_error_code(w.ended), WEIR_EINVAL);
        assert_non_null(strstr(weir_error_text(w.ended), "\"stray\""));
        world_close(&w);
    }
}

static void wrong_options_are_refused_by_name(void **state) {
    (void)state;
    world w;
    kid k[2];
    weir_child good[2], c[2];
    world_open(&w, WEIR_DRIVER_TEST, 1);
    kids_init(&w, k, good, 2);
    const struct {
        weir_supervisor_options o;
        const char *name;
        int restart;
        const char *text;
    } rows[] = {{{.intensity = 10001}, "b", 0, "10001"},
                {{.period = -1}, "b", 0, "period"},
                {{.strategy = (enum weir_strategy)5}, "b", 0, "5"},
                {{0}, "b", 7, "\"b\""},
                {{0}, "", 0, "child 1 has no name"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        weir_error *e = NULL;
        weir_address a;
        weir_supervisor_options o = rows[i].o;
        memcpy(c, good, sizeof c);
        c[1].name = rows[i].name;
        c[1].restart = (enum weir_restart)rows[i].restart;
        o.fini = world_fini;
        o.data = &w;
        assert_int_equal(weir_supervise(w.f.s, c, 2, &o, &a, &e), WEIR_EINVAL);
        assert_non_null(strstr(weir_error_text(e), rows[i].text));
        assert_int_equal(w.finis, i + 1);
        weir_error_free(e);
    }
    world_close(&w);
}

/* A failed actor handles nothing more: what it had in its mailbox are dead letters, what comes meanwhile is refused, and the next life starts with nothing. */
static void actors_A29_no_message_is_handled_between_a_failure_and_the_restart(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 50; seed++) {
        world w;
        kid k[1];
        weir_child c[1];
        world_open(&w, WEIR_DRIVER_TEST, seed);
        kids_init(&w, k, c, 1);
        weir_address a = supervise(&w, c, 1, (weir_supervisor_options){.backoff = 100 * MS}), old = k[0].address;
        uint64_t dead = stats_of(w.f.s).dead;
        for (int i = 0; i < 3; i++)
            fixture_send(&w.f, old, "work", i);
        fixture_send(&w.f, old, "fail", 3);
        for (int i = 0; i < 5; i++)
            fixture_send(&w.f, old, "work", i);
        pass(&w, MS);
        assert_int_equal(k[0].handled, 4);
        assert_int_equal(stats_of(w.f.s).dead, dead + 5);
        assert_int_equal(weir_whereis(w.f.s, "a"), 0);
        assert_int_equal(weir_send(w.f.main, old, weir_intern(w.f.s, "work"), NULL), WEIR_ENOACTOR);
        fixture_run(&w.f);
        assert_int_equal(k[0].starts, 2);
        assert_int_equal(k[0].handled, 4);
        tell(&w, "a", "work");
        assert_int_equal(k[0].handled, 5);
        stop_and_run(&w, a);
        world_close(&w);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(children_start_in_order_and_stop_in_reverse),
        cmocka_unit_test(one_for_one_starts_only_the_one_that_failed),
        cmocka_unit_test(one_for_all_stops_the_others_last_first_and_starts_all_anew),
        cmocka_unit_test(a_restart_policy_says_which_ends_are_final),
        cmocka_unit_test(a_killed_child_starts_anew),
        cmocka_unit_test(one_restart_too_many_ends_the_supervisor_with_the_childs_error_as_cause),
        cmocka_unit_test(restarts_that_lie_a_period_apart_are_borne_for_ever),
        cmocka_unit_test(the_wait_before_a_restart_doubles),
        cmocka_unit_test(who_does_not_stop_in_time_is_killed),
        cmocka_unit_test(a_first_start_that_fails_stops_the_others_and_is_the_supervisors_end),
        cmocka_unit_test(a_restart_that_fails_is_tried_again_later),
        cmocka_unit_test(restarts_that_only_fail_end_the_supervisor),
        cmocka_unit_test(a_killed_supervisor_takes_its_children_along),
        cmocka_unit_test(a_stop_before_the_first_turn_starts_nobody),
        cmocka_unit_test(a_stop_while_it_waits_for_a_restart_ends_it),
        cmocka_unit_test(the_end_of_the_system_is_no_failure),
        cmocka_unit_test(a_start_refused_because_the_system_stops_is_an_orderly_end),
        cmocka_unit_test(a_stop_after_it_gave_up_does_not_hide_why),
        cmocka_unit_test(a_supervisor_of_supervisors_restarts_the_one_that_gave_up),
        cmocka_unit_test(an_error_climbs_through_supervisors),
        cmocka_unit_test(children_are_listed_with_their_state),
        cmocka_unit_test(a_start_that_gives_no_actor_of_its_own_has_failed),
        cmocka_unit_test(wrong_options_are_refused_by_name),
        cmocka_unit_test(actors_A29_no_message_is_handled_between_a_failure_and_the_restart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
