/* inject.c: faults on purpose, at the points that inject.def lists. */
#include "internal.h"

static const struct {
    const char *name, *text;
} points[] = {
#define WEIR_INJECT(name, text) {#name, text},
#include "inject.def"
#undef WEIR_INJECT
};

const char *weir__inject_name(int point, const char **text) {
    if (point < 0 || point >= WEIR__INJECT_POINTS)
        return NULL;
    if (text)
        *text = points[point].text;
    return points[point].name;
}

bool weir__inject(weir_system *s, enum weir__point point) {
    if (__builtin_expect(!atomic_load_explicit(&s->armed, memory_order_relaxed), 1))
        return false;
    weir__fault *f = &s->faults[point];
    uint64_t last = atomic_load(&f->last);
    if (!last)
        return false;
    uint64_t pass = atomic_fetch_add(&f->passes, 1) + 1;
    return pass >= atomic_load(&f->first) && pass <= last;
}

static int find(const char *name, size_t n) {
    for (int i = 0; i < WEIR__INJECT_POINTS; i++)
        if (strlen(points[i].name) == n && memcmp(points[i].name, name, n) == 0)
            return i;
    return -1;
}

static int arm(weir_system *s, const char *name, size_t n, uint64_t nth, uint64_t times) {
    int point = name ? find(name, n) : -1;
    if (point < 0 || (times && !nth) || times > UINT64_MAX - nth)
        return WEIR_EINVAL;
    weir__fault *f = &s->faults[point];
    bool was = atomic_exchange(&f->last, 0) != 0;
    atomic_store(&f->passes, 0);
    atomic_store(&f->first, nth);
    atomic_store(&f->last, times ? nth + times - 1 : 0);
    atomic_fetch_add(&s->armed, (uint32_t)(times != 0) - (uint32_t)was);
    return WEIR_OK;
}

int weir__inject_arm(weir_system *s, const char *point, uint64_t nth, uint64_t times) {
    return arm(s, point, point ? strlen(point) : 0, nth, times);
}

uint64_t weir__inject_passed(weir_system *s, enum weir__point point) {
    return atomic_load(&s->faults[point].passes);
}

#ifdef NDEBUG
int weir__inject_environment(weir_system *s, weir_error **error) {
    (void)s, (void)error;
    return WEIR_OK;
}
#else
/* NAME:nth[:times],... */
int weir__inject_environment(weir_system *s, weir_error **error) {
    const char *p = getenv("WEIR_INJECT");
    while (p && *p) {
        size_t n = strcspn(p, ":,");
        char *end = (char *)p + n;
        uint64_t nth = *end == ':' ? strtoull(end + 1, &end, 10) : 1;
        uint64_t times = *end == ':' ? strtoull(end + 1, &end, 10) : 1;
        if ((*end && *end != ',') || arm(s, p, n, nth, times) != WEIR_OK)
            return weir_fail(error, WEIR_EINVAL, "WEIR_INJECT: \"%s\": wanted NAME:nth[:times],... with a name of core/rt/inject.def", p);
        p = *end ? end + 1 : end;
    }
    return WEIR_OK;
}
#endif
