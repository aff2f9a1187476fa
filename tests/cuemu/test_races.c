/* test_races.c: ThreadSanitizer sees races between the threads of a kernel, and between the host and a transfer. The child is this program again, under
 * halt_on_error: it must end by the sanitizer where something is missing, and well where it is not. Without TSan there is nothing to see. */
#include "helper.h"

#include <sys/wait.h>

static const char *self;

#ifdef CUEMU_TSAN
static int ends_well(const char *what) {
    char command[4096];
    snprintf(command, sizeof command, "TSAN_OPTIONS='halt_on_error=1 exitcode=66' '%s' %s >/dev/null 2>&1", self, what);
    const int status = system(command);
    assert_true(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 66));
    return WEXITSTATUS(status) == 0;
}
#else
static int ends_well(const char *what) {
    (void)what;
    weir_test_skip_machine("needs -DWEIR_SANITIZE=thread");
    return 0;
}
#endif

static void a_missing_syncwarp_is_a_race(void **state) {
    (void)state;
    assert_true(ends_well("syncwarp"));
    assert_false(ends_well("no-syncwarp"));
}

static void a_result_read_before_it_is_there_is_a_race(void **state) {
    (void)state;
    assert_true(ends_well("wait"));
    assert_false(ends_well("no-wait"));
}

static int unsynced(int sync) {
    CUstream s;
    CUdeviceptr y;
    if (cu.StreamCreate(&s, 0) || cu.MemAlloc(&y, 128))
        return 1;
    void *params[] = {&y, &sync};
    return launch("weir_test_unsynced", 32, 0, s, params) || cu.StreamSynchronize(s);
}

static int read_result(int wait) {
    CUstream s;
    CUdeviceptr y;
    void *pinned;
    if (cu.StreamCreate(&s, 0) || cu.MemAlloc(&y, 4) || cu.MemHostAlloc(&pinned, 4, 0) || cu.MemsetD8Async(y, 0, 4, s) ||
        cu.MemcpyDtoHAsync(pinned, y, 4, s))
        return 1;
    if (wait && cu.StreamSynchronize(s))
        return 1;
    usleep(wait ? 0 : 100000); /* long over, but nothing says so */
    printf("%d\n", *(volatile int *)pinned);
    return cu.StreamSynchronize(s);
}

static int child(const char *what) {
    if (open_device(NULL))
        return 1;
    const int missing = strncmp(what, "no-", 3) == 0;
    return strstr(what, "syncwarp") ? unsynced(!missing) : read_result(!missing);
}

int main(int argc, char **argv) {
    if (argc > 1)
        return child(argv[1]);
    self = argv[0];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_missing_syncwarp_is_a_race),
        cmocka_unit_test(a_result_read_before_it_is_there_is_a_race),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
