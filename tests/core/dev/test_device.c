/* test_device.c: making the cpu device, its level and threads, and how many processors this process may use. */
#include "../../../core/dev/cpu.h"
#include "helper_dev.h"

#include <sched.h>
#include <sys/stat.h>

static int make(dev_test *t, unsigned threads, weir_error **error) {
    weir__device *d = NULL;
    int code = weir__device_open(t->s, "cpu", threads, &d, error);
    if (code == WEIR_OK)
        t->d = d;
    return code;
}

static void device_is_made_once(void **state) {
    (void)state;
    dev_test t;
    dev_open(&t, 2);
    weir__device *first = t.d;
    assert_int_equal(make(&t, 2, NULL), WEIR_OK);
    assert_ptr_equal(t.d, first);
    assert_int_equal(make(&t, 0, NULL), WEIR_OK);
    assert_ptr_equal(t.d, first);
    assert_int_equal(weir__device_threads(first), 2);
    assert_ptr_equal(weir__device_system(first), t.s);
    assert_string_equal(weir__device_name(first), "cpu");
    assert_non_null(strstr(weir__device_detail(first), "2 threads"));
    dev_close(&t);
}

static void device_with_other_threads_is_busy(void **state) {
    (void)state;
    dev_test t;
    dev_open(&t, 2);
    weir_error *error = NULL;
    assert_int_equal(make(&t, 3, &error), WEIR_EBUSY);
    assert_string_equal(weir_error_text(error), "device cpu: made with 2 threads, 3 wanted");
    weir_error_free(error);
    error = NULL;
    assert_int_equal(make(&t, WEIR_MAX_THREADS + 1, &error), WEIR_EINVAL);
    weir_error_free(error);
    dev_close(&t);
}

static void device_unsaid_threads_are_the_processors(void **state) {
    (void)state;
    dev_test t;
    dev_open(&t, 0);
    cpu_set_t set;
    assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
    assert_in_range(weir__device_threads(t.d), 1, CPU_COUNT(&set));
    dev_close(&t);
}

static void device_level_of_the_environment(void **state) {
    (void)state;
    for (int level = 0; level < WEIR_CPU_LEVELS; level++) {
        dev_test t;
        dev_open_system(&t, NULL);
        setenv("WEIR_CPU", weir_cpu_level_name(level), 1);
        weir_error *error = NULL;
        int code = make(&t, 1, &error);
        if (weir_cpu_level_runs(level)) {
            assert_int_equal(code, WEIR_OK);
            assert_non_null(strstr(weir__device_detail(t.d), weir_cpu_level_name(level)));
        } else {
            assert_int_equal(code, WEIR_EINVAL);
            assert_non_null(strstr(weir_error_text(error), "does not run here"));
            weir_error_free(error);
        }
        unsetenv("WEIR_CPU");
        dev_close(&t);
    }
}

static void device_unknown_level_names_those_that_run(void **state) {
    (void)state;
    dev_test t;
    dev_open_system(&t, NULL);
    setenv("WEIR_CPU", "sse9", 1);
    weir_error *error = NULL;
    assert_int_equal(make(&t, 1, &error), WEIR_EINVAL);
    unsetenv("WEIR_CPU");
    assert_non_null(strstr(weir_error_text(error), "WEIR_CPU=sse9: no such level; this processor runs generic"));
    weir_error_free(error);
    assert_int_equal(make(&t, 1, NULL), WEIR_OK);
    dev_close(&t);
}

static void device_without_memory_can_be_made_later(void **state) {
    (void)state;
    dev_test t;
    dev_open_system(&t, NULL);
    int threads = dev_threads();
    uint64_t before = dev_bytes(&t), list = 0;
    for (uint64_t nth = 1;; nth++) {
        weir_error *error = NULL;
        assert_int_equal(weir__inject_arm(t.s, "ALLOC", nth, 1), WEIR_OK);
        int code = make(&t, 3, &error);
        assert_int_equal(weir__inject_arm(t.s, "ALLOC", 1, 0), WEIR_OK);
        if (code == WEIR_OK)
            break;
        assert_int_equal(code, WEIR_ENOMEM);
        weir_error_free(error);
        if (!list)
            list = dev_bytes(&t) - before; /* the system's list of devices stays, once it is there */
        assert_int_equal(dev_bytes(&t), before + list);
        dev_threads_settle(threads);
    }
    dev_close(&t);
}

static void streams_G7_ended_system_leaves_no_thread(void **state) {
    (void)state;
    int before = dev_threads();
    for (int round = 0; round < 3; round++) {
        dev_test t;
        dev_open(&t, 3);
        weir__stream *st[6];
        for (int i = 0; i < 6; i++)
            st[i] = dev_stream(&t, "thread");
        assert_int_equal(dev_threads(), before + 2 + 6);
        for (int i = 0; i < 6; i += 2)
            weir__stream_close(st[i]); /* some closed, some left to the system */
        dev_close(&t);
        dev_threads_settle(before);
    }
}

static void device_two_systems_have_one_each(void **state) {
    (void)state;
    dev_test a, b;
    dev_open(&a, 2);
    dev_open(&b, 3);
    assert_ptr_not_equal(a.d, b.d);
    weir__stream *st = dev_stream(&a, "a");
    dev_notify(&a, st, 1);
    dev_run_until(&a, 1);
    assert_int_equal(b.count, 0);
    weir__stream_close(st);
    dev_close(&a);
    dev_close(&b);
}

/* ---- processors ---- */

static void write_file(const char *root, const char *name, const char *text) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", root, name);
    for (char *p = path + strlen(root) + 1; (p = strchr(p, '/')); p++) {
        *p = 0;
        mkdir(path, 0700);
        *p = '/';
    }
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static unsigned quota(const char *root, const char *membership) {
    char path[512];
    write_file(root, "membership", membership);
    snprintf(path, sizeof path, "%s/membership", root);
    return weir__cgroup_processors(path, root);
}

static void remove_tree(const char *root) {
    char command[600];
    snprintf(command, sizeof command, "rm -r '%s'", root);
    assert_int_equal(system(command), 0);
}

static void processors_quota_of_cgroup_2(void **state) {
    (void)state;
    char root[] = "/tmp/weir-cgroup-XXXXXX";
    assert_non_null(mkdtemp(root));
    write_file(root, "a/b/cpu.max", "max 100000\n");
    assert_int_equal(quota(root, "0::/a/b\n"), 0);
    write_file(root, "a/b/cpu.max", "350000 100000\n");
    assert_int_equal(quota(root, "0::/a/b\n"), 4);
    write_file(root, "a/cpu.max", "150000 100000\n"); /* the parent allows less */
    assert_int_equal(quota(root, "0::/a/b\n"), 2);
    write_file(root, "cpu.max", "1000 100000\n"); /* seen from inside of a container */
    assert_int_equal(quota(root, "0::/\n"), 1);
    remove_tree(root);
}

static void processors_quota_of_cgroup_1(void **state) {
    (void)state;
    char root[] = "/tmp/weir-cgroup-XXXXXX";
    assert_non_null(mkdtemp(root));
    write_file(root, "cpu,cpuacct/x/cpu.cfs_quota_us", "-1\n");
    write_file(root, "cpu,cpuacct/x/cpu.cfs_period_us", "100000\n");
    assert_int_equal(quota(root, "4:memory:/x\n3:cpu,cpuacct:/x\n"), 0);
    write_file(root, "cpu,cpuacct/x/cpu.cfs_quota_us", "250000\n");
    assert_int_equal(quota(root, "4:memory:/x\n3:cpu,cpuacct:/x\n"), 3);
    assert_int_equal(quota(root, "4:cpuset:/x\n"), 0);
    remove_tree(root);
}

static void processors_broken_files_mean_no_quota(void **state) {
    (void)state;
    char root[] = "/tmp/weir-cgroup-XXXXXX";
    assert_non_null(mkdtemp(root));
    assert_int_equal(weir__cgroup_processors("/nonexistent", root), 0);
    assert_int_equal(quota(root, ""), 0);
    assert_int_equal(quota(root, "nonsense\n:\n::\n0::/missing/group\n1:cpu:/missing\n"), 0);
    write_file(root, "cpu.max", "");
    assert_int_equal(quota(root, "0::/\n"), 0);
    write_file(root, "cpu.max", "100000 0\n");
    assert_int_equal(quota(root, "0::/\n"), 0);
    assert_true(weir__processors() >= 1);
    remove_tree(root);
}

int main(void) {
    unsetenv("WEIR_CPU");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(device_is_made_once),
        cmocka_unit_test(device_with_other_threads_is_busy),
        cmocka_unit_test(device_unsaid_threads_are_the_processors),
        cmocka_unit_test(device_level_of_the_environment),
        cmocka_unit_test(device_unknown_level_names_those_that_run),
        cmocka_unit_test(device_without_memory_can_be_made_later),
        cmocka_unit_test(streams_G7_ended_system_leaves_no_thread),
        cmocka_unit_test(device_two_systems_have_one_each),
        cmocka_unit_test(processors_quota_of_cgroup_2),
        cmocka_unit_test(processors_quota_of_cgroup_1),
        cmocka_unit_test(processors_broken_files_mean_no_quota),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
