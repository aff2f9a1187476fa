/* test_strict.c: what a program leaves behind is said at its end, and becomes its exit status. The child is this program again, with what it should do wrong. */
#include "helper.h"

#include <sys/wait.h>

static const char *self;

static int status_of(const char *what) {
    char command[4096];
    snprintf(command, sizeof command, "CUEMU_STRICT=1 '%s' %s >/dev/null 2>&1", self, what);
    const int status = system(command);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void a_program_that_leaves_nothing_succeeds(void **state) {
    (void)state;
    assert_int_equal(status_of("nothing"), 0);
}

static void a_leaked_graph_fails_the_program(void **state) {
    (void)state;
    assert_int_equal(status_of("graph"), 86);
}

static void an_injected_fault_comes_from_the_environment(void **state) {
    (void)state;
    setenv("CUEMU_FAIL", "cuStreamCreate:1:2,exec:copy:3", 1);
    assert_int_equal(status_of("stream"), 2);
    unsetenv("CUEMU_FAIL");
}

static int child(const char *what) {
    CUgraph g;
    CUstream s = NULL;
    if (open_device(NULL))
        return 1;
    const int code = cu.StreamCreate(&s, 0);
    if (strcmp(what, "stream") == 0)
        return code + close_device(NULL);
    if (strcmp(what, "graph") == 0 && (cu.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED) || cu.StreamEndCapture(s, &g)))
        return 1;
    cu.StreamDestroy(s);
    return close_device(NULL) ? 1 : 0;
}

int main(int argc, char **argv) {
    if (argc > 1)
        return child(argv[1]);
    self = argv[0];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_that_leaves_nothing_succeeds),
        cmocka_unit_test(a_leaked_graph_fails_the_program),
        cmocka_unit_test(an_injected_fault_comes_from_the_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
