/* processors.c: how many processors this process may use: the affinity mask, and the cpu quota of its cgroup, version 1 or 2. Knows no device. */
#include "cpu.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* First line of a file, without its end; false if it cannot be read. */
static bool read_line(const char *path, char *line, size_t size) {
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    bool ok = fgets(line, (int)size, f) != NULL;
    fclose(f);
    if (ok)
        line[strcspn(line, "\n")] = 0;
    return ok;
}

/* Both in microseconds; quota below 1 ("max", -1): none. */
static unsigned quota_processors(long long quota, long long period) {
    if (quota < 1 || period < 1)
        return 0;
    long long n = quota / period + (quota % period != 0);
    return n > WEIR_MAX_THREADS ? WEIR_MAX_THREADS : (unsigned)n;
}

static unsigned folder_quota(const char *folder, bool v2) {
    char path[4352], line[128];
    long long quota = 0, period = 0;
    if (v2) {
        snprintf(path, sizeof path, "%s/cpu.max", folder);
        if (!read_line(path, line, sizeof line) || sscanf(line, "%lld %lld", &quota, &period) != 2)
            return 0;
        return quota_processors(quota, period);
    }
    snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder);
    if (!read_line(path, line, sizeof line))
        return 0;
    quota = strtoll(line, NULL, 10);
    snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
    if (!read_line(path, line, sizeof line))
        return 0;
    period = strtoll(line, NULL, 10);
    return quota_processors(quota, period);
}

static unsigned least(unsigned a, unsigned b) {
    return !a || (b && b < a) ? b : a;
}

/* The group and its parents, up to the mount. */
static unsigned group_quota(const char *mount, const char *group, bool v2) {
    char folder[4224];
    int n = snprintf(folder, sizeof folder, "%s%s", mount, group);
    if (n < 0 || (size_t)n >= sizeof folder)
        return 0;
    unsigned found = 0;
    for (;;) {
        found = least(found, folder_quota(folder, v2));
        char *slash = strrchr(folder, '/');
        if (!slash || (size_t)(slash - folder) < strlen(mount))
            return found;
        *slash = 0;
    }
}

/* True if the comma-separated list has the controller "cpu". */
static bool has_cpu(const char *controllers) {
    for (const char *p = controllers; *p;) {
        size_t n = strcspn(p, ",");
        if (n == 3 && memcmp(p, "cpu", 3) == 0)
            return true;
        p += n + (p[n] == ',');
    }
    return false;
}

/* One line of the membership file, "number:controllers:group"; no controllers: version 2. */
static unsigned line_quota(char *line, const char *root) {
    char *controllers = strchr(line, ':');
    char *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group)
        return 0;
    controllers++;
    *group++ = 0;
    group[strcspn(group, "\n")] = 0;
    if (strcmp(group, "/") == 0)
        *group = 0;
    char mount[1024];
    if (!*controllers) { /* alone at the root, or beside version 1 */
        snprintf(mount, sizeof mount, "%s/unified", root);
        return least(group_quota(root, group, true), group_quota(mount, group, true));
    }
    if (!has_cpu(controllers))
        return 0;
    snprintf(mount, sizeof mount, "%s/%s", root, controllers); /* "cpu,cpuacct" is mounted under that name, or "cpu" is a link to it */
    unsigned found = group_quota(mount, group, false);
    snprintf(mount, sizeof mount, "%s/cpu", root);
    return least(found, group_quota(mount, group, false));
}

unsigned weir__cgroup_processors(const char *membership, const char *root) {
    FILE *f = fopen(membership, "re");
    if (!f)
        return 0;
    char line[4096];
    unsigned found = 0;
    while (fgets(line, sizeof line, f))
        found = least(found, line_quota(line, root));
    fclose(f);
    return found;
}

unsigned weir__processors(void) {
    cpu_set_t set;
    unsigned n = 1;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        n = (unsigned)CPU_COUNT(&set);
    return least(n, weir__cgroup_processors("/proc/self/cgroup", "/sys/fs/cgroup"));
}
