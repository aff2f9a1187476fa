/* test_opening.c: devices that are made while their driver does not answer: the loop opens others meanwhile, an opening that nobody waits for is given back when it is
 * done, and a system whose driver never comes back is freed and says so. */
#include "../core/dev/helper_dev.h"

#include "rig.h"

#include <fcntl.h>
#include <unistd.h>

enum { UNKNOWN = 999, A_MOMENT = 100000000 /* ns */ };

/* An actor that waits for devices. */
typedef struct waiter {
    int messages;
    weir_address address;
    weir_verb opened;
} waiter;

static void on_opened(weir_actor *self, const weir_message *m) {
    (void)m;
    ((waiter *)weir_state(self))->messages++;
}
static bool told(void *data) {
    return ((waiter *)data)->messages > 0;
}
static const weir_handler handlers[] = {{"opened", on_opened}, {NULL, NULL}};
static const weir_behaviour waiting = {.name = "waiting", .handlers = handlers};

static void open_all(dev_test *t, waiter *w, int64_t drain) {
    weir_system_options o = {.drain = drain};
    dev_open_system(t, &o);
    *w = (waiter){.opened = weir_intern(t->s, "opened")};
    assert_int_equal(weir_spawn(t->s, &waiting, w, NULL, &w->address, NULL), WEIR_OK);
}

static weir__opening *start(dev_test *t, const waiter *w) {
    weir__device *d = NULL;
    weir__opening *o = NULL;
    assert_int_equal(weir__device_open_start(t->s, "cuda", 0, w->address, w->opened, &d, &o, NULL), WEIR_OK);
    assert_null(d);
    assert_non_null(o);
    return o;
}

static void hold(bool on) {
    assert_true(EMU(cuemu_set)("hold", on));
}

static void other_devices_are_opened_while_a_driver_does_not_answer(void **state) {
    (void)state;
    dev_test t;
    waiter w;
    weir__device *cpu = NULL, *cuda = NULL;
    open_all(&t, &w, 0);
    hold(true);
    weir__opening *o = start(&t, &w);
    assert_int_equal(weir__device_open(t.s, "cpu", 1, &cpu, NULL), WEIR_OK);
    assert_int_equal(w.messages, 0);
    hold(false);
    assert_int_equal(weir_system_run(t.s, told, &w, NULL), WEIR_OK);
    assert_int_equal(weir__device_open_end(o, &cuda, NULL), WEIR_OK);
    assert_string_equal(weir__device_name(cuda), "cuda:0");
    dev_close(&t);
}

static void those_that_nobody_waits_for_are_given_back_when_they_are_done(void **state) {
    (void)state;
    dev_test t;
    waiter w;
    weir__device *d = NULL;
    open_all(&t, &w, 0);
    hold(true);
    weir__opening *o[3] = {start(&t, &w), start(&t, &w), start(&t, &w)};
    for (int i = 0; i < 3; i++)
        weir__device_open_drop(o[(i + 1) % 3]);
    hold(false);
    dev_settle(&t); /* an opening is pending work */
    assert_int_equal(w.messages, 0);
    assert_int_equal(weir__device_open(t.s, "cuda", 0, &d, NULL), WEIR_OK); /* all of them found or made this one */
    dev_close(&t);
}

static void one_that_fails_and_that_nobody_waits_for_leaves_nothing(void **state) {
    (void)state;
    enum { ROUNDS = 4 };
    dev_test t;
    waiter w;
    uint64_t bytes[ROUNDS];
    int bare = dev_threads();
    open_all(&t, &w, 0);
    for (int i = 0; i < ROUNDS; i++) {
        hold(true);
        weir__opening *o = start(&t, &w);
        EMU(cuemu_fail)("cuDeviceGet", 1, UNKNOWN);
        weir__device_open_drop(o);
        hold(false);
        dev_settle(&t);
        dev_threads_settle(bare);
        bytes[i] = dev_bytes(&t);
    }
    assert_int_equal(w.messages, 0);
    assert_int_equal(bytes[ROUNDS - 1], bytes[0]); /* but for the last one, whose thread the next one joins */
    dev_close(&t);
}

static void one_that_is_done_may_be_dropped(void **state) {
    (void)state;
    dev_test t;
    waiter w;
    open_all(&t, &w, 0);
    weir__opening *o = start(&t, &w);
    assert_int_equal(weir_system_run(t.s, told, &w, NULL), WEIR_OK);
    weir__device_open_drop(o);
    weir__device *d = NULL;
    assert_int_equal(weir__device_open(t.s, "cuda", 0, &d, NULL), WEIR_OK);
    dev_close(&t);
}

/* Standard error of a system's end. */
static void free_and_listen(weir_system *s, char *said, size_t size) {
    int ends[2], before = dup(STDERR_FILENO);
    assert_true(before >= 0);
    assert_int_equal(pipe(ends), 0);
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
    weir_system_free(s);
    dup2(before, STDERR_FILENO);
    close(before);
    ssize_t n = read(ends[0], said, size - 1);
    close(ends[0]);
    said[n > 0 ? n : 0] = 0;
}

static dev_test left[2]; /* what is left behind outlives the test's frame */

static void a_system_whose_driver_does_not_come_back_is_freed_and_says_so(void **state) {
    (void)state;
    int bare = dev_threads();
    for (int dropped = 0; dropped < 2; dropped++) {
        dev_test *t = &left[dropped];
        waiter w;
        char said[256];
        weir__device *cpu = NULL;
        open_all(t, &w, A_MOMENT);
        assert_int_equal(weir__device_open(t->s, "cpu", 2, &cpu, NULL), WEIR_OK);
        hold(true);
        EMU(cuemu_fail)("cuDeviceGet", 1, UNKNOWN); /* so that it leaves no device of its own when it goes on */
        weir__opening *o = start(t, &w);
        if (dropped)
            weir__device_open_drop(o);
        free_and_listen(t->s, said, sizeof said);
        assert_string_equal(said, "weir_system_free: device cuda:0, which is being made, was left behind: its driver does not come back\n");
        dev_threads_settle(bare + 1); /* the cpu's have ended */
        hold(false);
        dev_threads_settle(bare); /* what it uses is still there */
        EMU(cuemu_fail_clear)();
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_devices_are_opened_while_a_driver_does_not_answer),
        cmocka_unit_test(those_that_nobody_waits_for_are_given_back_when_they_are_done),
        cmocka_unit_test(one_that_fails_and_that_nobody_waits_for_leaves_nothing),
        cmocka_unit_test(one_that_is_done_may_be_dropped),
        cmocka_unit_test(a_system_whose_driver_does_not_come_back_is_freed_and_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
